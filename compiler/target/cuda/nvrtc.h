/* NVRTC, the compiler of CUDA C++ as a library, which is loaded when it is needed: gradc links
 * against nothing of CUDA, and NVRTC needs neither a driver nor a device.
 *
 * Which library: what GRADC_NVRTC names (a path, or a name that the loader knows) and no other;
 * where that is not set, libnvrtc.so.13, libnvrtc.so.12, libnvrtc.so, the first that the loader
 * finds. Where GRADC_NVRTC is empty there is none.
 *
 * source: NVRTC documentation, "User Interface" and "Supported Compile Options". */
#ifndef GRADC_TARGET_CUDA_NVRTC_H
#define GRADC_TARGET_CUDA_NVRTC_H

#include "../../base/diag.h"
#include "../../base/blake2b.h"
#include "images.h"

/* Before compute capability 7.0 threads of a warp run in step, and cubins are others. */
enum { NVRTC_MOST_ARCHS = 256, NVRTC_LEAST_MAJOR = 12, NVRTC_LEAST_ARCH = 70 };

typedef struct NvrtcCalls NvrtcCalls;

typedef struct Nvrtc {
    void *library;
    const char *name; /* its file */
    int major, minor;
    int n_archs;
    int arch[NVRTC_MOST_ARCHS]; /* compute capabilities, 10 * major + minor, from the least up */
    const NvrtcCalls *call;
} Nvrtc;

/* Why there is none; `code` is E0703, nothing was found, or E0704, it is of no use. */
typedef struct NvrtcMissing {
    Code code;
    const char *text, *help;
} NvrtcMissing;

/* Loads it, into `arena`.   fails: false, and says why in *no; nothing is reported. */
bool nvrtc_open(Nvrtc *n, Arena *arena, NvrtcMissing *no);
void nvrtc_close(Nvrtc *n);
void nvrtc_report(Ctx *cx, const NvrtcMissing *no);

/* "13.2"; "75 80 86 ..." */
const char *nvrtc_version(const Nvrtc *n, Arena *arena);
const char *nvrtc_archs(const Nvrtc *n, Arena *arena);
bool nvrtc_has(const Nvrtc *n, int arch);
int nvrtc_newest(const Nvrtc *n);

/* What one program is compiled to. */
typedef struct NvrtcResult {
    const unsigned char *bytes; /* NULL: it was refused */
    size_t size;                /* of PTX with its zero byte */
    const char *log;            /* what the compiler said, or "" */
    const char *wrong;          /* "NVRTC_ERROR_COMPILATION", or what is wrong with its answers */
} NvrtcResult;

/* Compiles `text` for an architecture; results are in `arena`. Any thread, several at once. */
NvrtcResult nvrtc_compile(const Nvrtc *n, const char *text, ImageKind kind, int arch, Arena *arena);
/* Adds all that the result follows from but for the text. */
void nvrtc_recipe(const Nvrtc *n, ImageKind kind, int arch, Blake2b *b);

#endif
