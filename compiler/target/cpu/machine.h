/* A processor as the emitter sees it: instruction sets, registers, caches. */
#ifndef GRADC_TARGET_CPU_MACHINE_H
#define GRADC_TARGET_CPU_MACHINE_H

#include "../target.h"

typedef enum Arch { ARCH_X86_64, ARCH_AARCH64 } Arch;
typedef enum Format { FORMAT_ELF, FORMAT_MACHO, FORMAT_COFF } Format;

/* Instruction sets that emitted code may use and init checks: features.def has
 * the name and the cpuid bit of each. */
typedef enum Feature {
#define FEATURE(id, name, leaf, sub, reg, bit) FEATURE_##id,
#include "features.def"
#undef FEATURE
    N_FEATURES
} Feature;

enum { LOCAL_PAD = 128 }; /* bytes of a LOCAL buffer are multiples of it: whole vectors */

typedef struct Machine {
    const char *triple;   /* normalised */
    const char *cpu;      /* as named to the user: "znver3", "baseline" */
    const char *tune;     /* LLVM CPU whose scheduling model is used */
    const char *features; /* LLVM's list for kernels: "+avx,+avx2" */
    Arch arch;
    Format format;
    uint32_t need;     /* bit set of Feature */
    int vec_bytes;     /* 16, 32, 64 */
    int n_vregs;       /* 16 or 32 */
    bool fma;          /* else mul, then add: another class of numerics */
    bool dots;         /* sums of bf16 in pairs: one more class */
    bool flush;        /* denormals are zeros; likewise */
    bool masked;       /* masked loads and stores of 4- and 8-byte elements */
    bool masked_small; /* of 1- and 2-byte elements too */
    bool f16c;         /* f16 <-> f32 in hardware */
    bool exponents;    /* exponents, fractions and scales of f32 by instructions */
    int64_t l1_bytes, l2_bytes;
} Machine;

/* fails: NULL, after a report. */
const Machine *machine_find(Ctx *cx, const TargetOptions *o, Arena *arena);

/* Every second element of memory as one vector of `lanes`: only where masks cost next to nothing.
 */
static inline bool machine_masks_pairs(const Machine *m, DType t, int lanes)
{
    return m->masked_small && dtype_bytes(t) >= 4 && lanes * dtype_bytes(t) == m->vec_bytes;
}

static inline bool machine_has(const Machine *m, Feature f)
{
    return (m->need >> f & 1) != 0;
}

#endif
