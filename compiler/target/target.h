/* Targets: what turns a Program into an object file and its header.
 *
 * A target sees kernels and calls, never a graph. What it can do is data (Caps),
 * read by cluster and plan before anything is emitted. */
#ifndef GRADC_TARGET_TARGET_H
#define GRADC_TARGET_TARGET_H

#include "../kernel/program.h"

/* Cubins for devices of compute capability 8 and 9; PTX for newer ones, of which the newest
 * architecture's is taken where it can be. */
#define CUDA_ARCHS "sm_80,sm_90,compute_90,newest"

/* Zero (NULL, 0, false) is the default of every field. */
typedef struct TargetOptions {
    const char *target;  /* "cpu", "cuda" */
    const char *cpu;     /* "native" (default), "baseline", a level (x86-64-v3) or a CPU's name */
    const char *triple;  /* x86_64 or aarch64; ELF, Mach-O or COFF; default: this machine */
    bool flush;          /* denormals are zeros; x86-64 only: kernel/denormals.h */
    int32_t threads_max; /* default 8; lanes that the object's scratch has room for */
    bool want_ir;        /* LLVM IR as text, into ObjectFile.ir */
    bool want_asm;       /* assembly as text, into ObjectFile.assembly */
    bool want_cuda;      /* CUDA C++ as text, into ObjectFile.cuda; of the target cuda */
    bool want_images;    /* what NVRTC compiles it to, into ObjectFile.images; likewise */
    const char *arch;    /* of the target cuda: "sm_80,compute_90,newest"; default: CUDA_ARCHS */
    bool no_lines;       /* no DWARF line tables */
    bool laps;           /* entries call a Lap after each step: see there */
    int32_t jobs;        /* threads that compile; 0 is 1. The bytes do not depend on it */
    const char *cache;   /* folder of what has been compiled before, or NULL; nor on this */
    bool no_object;      /* ... and nothing else, of the target cuda */
    const char *prefix;  /* of the symbols of a CUDA object; NULL: the model's name */
    int64_t panels_from; /* bytes of a parameter that lies in panels (cpu/panels.h); 0: what the
                            core's caches don't hold. Of the target cpu, as the next one */
    int32_t panel_width; /* columns; 0: what a tile has */
    int64_t set_bytes;   /* Caps.set_bytes; 0: of the target */
    int64_t tells_from;  /* Caps.tells_from; 0: of the target */
    int64_t chains_from; /* bytes that a kernel hands on to the next one slab by slab (cpu/chain.h),
                            whether that pays or not; 0: what half of a core's cache does not hold,
                            where it pays */
    const char *header_extra; /* C text put before the header's last line, or NULL */
} TargetOptions;

/* An object that is built with `laps` exports one as NAME_lap; where `at` is set, each entry calls
 * at(of, -1) when it begins, and at(of, i) after the i-th of its steps (steps_list), from the
 * calling thread. */
typedef struct Lap {
    void (*at)(void *of, int64_t step);
    void *of;
} Lap;

/* What an entry of a CUDA object launches, by row of its table of ops: a kernel's call; NULL: a
 * loop. */
typedef struct LaunchedCalls {
    int32_t n;
    const Call **call;
} LaunchedCalls;

/* Results of one emission; all in one arena. */
typedef struct ObjectFile {
    const unsigned char *bytes; /* the relocatable object, as written to disk */
    size_t n_bytes;
    const char *header;              /* C99 and C++ text of NAME.h */
    const char *ir, *assembly;       /* NULL unless wanted */
    const char *cuda;                /* likewise */
    const struct CudaImages *images; /* likewise: cuda/images.h */
    const LaunchedCalls *launched;   /* of the target cuda: by entry of the Program */
    const char *cpu;                 /* "cpu:znver3" */
    bool is_exact;                   /* its bits are those of K_EXACT: its processor has fma */
    int64_t device_bytes;            /* of the target cuda: allocated on the device */
    const Program *program;    /* of the target cpu: its entries' calls as they are in the object */
    int32_t n_kernels;         /* kernel functions in the object */
    int32_t n_chains;          /* of calls in its entries, cpu/chain.h; with laps: that there
                                  would be without */
    int32_t n_parts, n_cached; /* compiled by themselves; of these, from the cache */
} ObjectFile;

typedef struct Target {
    const char *name;
    /* chunk_rows(): elements that fill the machine, where each step of a scan is launches; or 0 */
    int64_t wide_elems;
    bool packs; /* products pack what they read the other way than it lies: transpose_once() */
    /* What the target can do under these options; kept in `arena`.
     * fails: NULL, after reporting an unknown CPU or triple. */
    const Caps *(*caps)(Ctx *cx, const TargetOptions *o, Arena *arena);
    /* fails: false, after a report. */
    bool (*emit)(Ctx *cx, const Program *p, const TargetOptions *o, Arena *arena, ObjectFile *out);
} Target;

extern const Target target_cpu, target_cuda;

/* The target of this name, or NULL. */
const Target *target_find(const char *name);

/* Emits `p`, lowered with the caps of the same options, into p->arena.
 * fails: false, after a report: unknown target, CPU or triple, LLVM's own error. */
bool target_emit(Ctx *cx, const Program *p, const TargetOptions *o, ObjectFile *out);

/* Compiles LLVM's text of a module, for the triple of `o` and any processor of it, into out->bytes:
 * what another target's object has for its host.   fails: false, after a report. */
bool cpu_host_object(Ctx *cx, const char *name, const char *text, const TargetOptions *o,
                     Arena *arena, ObjectFile *out);

/* For reports: "19.1.7", and LLVM's name of this machine's processor ("znver3"). */
const char *cpu_llvm_version(Arena *arena);
const char *cpu_host_name(Arena *arena);

/* ---- the object in this process (cpu/jit.c) --------------------------------- */

struct gradc_model;
typedef struct Loaded Loaded;

/* Links the very bytes that a build writes into this process. `model` is the
 * Program's name.   fails: NULL, after a report. */
Loaded *cpu_load(Ctx *cx, const ObjectFile *object, const char *model);
const struct gradc_model *loaded_model(const Loaded *l);
/* Address of an exported symbol ("mlp_step"), or NULL. */
void *loaded_symbol(Loaded *l, const char *name);
void cpu_unload(Loaded *l);

#endif
