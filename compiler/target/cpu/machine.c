/* From --cpu and --triple to a Machine. */
#include <string.h>
#include <unistd.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm/Config/llvm-config.h>
#include "machine.h"

static const char *const feature_name[N_FEATURES] = {
#define FEATURE(id, name, leaf, sub, reg, bit) name,
#include "features.def"
#undef FEATURE
};

/* The levels of the x86-64 psABI, as sets of features. */
enum {
    LEVEL_1 = 0,
    LEVEL_2 = (1 << (FEATURE_POPCNT + 1)) - 1,
    LEVEL_3 = (1 << (FEATURE_LZCNT + 1)) - 1,
    LEVEL_4 = (1 << (FEATURE_AVX512VL + 1)) - 1
};

typedef struct CpuName {
    const char *name; /* LLVM's */
    Arch arch;
    int level; /* 1..4; aarch64: 1 */
    int l1_kib, l2_kib;
} CpuName;

/* Cache sizes are those of one core, as the vendors' optimisation manuals give
 * them; they steer block sizes only. */
static const CpuName cpus[] = {
    {"x86-64", ARCH_X86_64, 1, 32, 256},          {"x86-64-v2", ARCH_X86_64, 2, 32, 256},
    {"x86-64-v3", ARCH_X86_64, 3, 32, 512},       {"x86-64-v4", ARCH_X86_64, 4, 32, 1024},
    {"nehalem", ARCH_X86_64, 2, 32, 256},         {"westmere", ARCH_X86_64, 2, 32, 256},
    {"sandybridge", ARCH_X86_64, 2, 32, 256},     {"ivybridge", ARCH_X86_64, 2, 32, 256},
    {"haswell", ARCH_X86_64, 3, 32, 256},         {"broadwell", ARCH_X86_64, 3, 32, 256},
    {"skylake", ARCH_X86_64, 3, 32, 256},         {"alderlake", ARCH_X86_64, 3, 48, 1280},
    {"raptorlake", ARCH_X86_64, 3, 48, 2048},     {"skylake-avx512", ARCH_X86_64, 4, 32, 1024},
    {"cascadelake", ARCH_X86_64, 4, 32, 1024},    {"cooperlake", ARCH_X86_64, 4, 32, 1024},
    {"icelake-client", ARCH_X86_64, 4, 48, 512},  {"icelake-server", ARCH_X86_64, 4, 48, 1280},
    {"tigerlake", ARCH_X86_64, 4, 48, 1280},      {"rocketlake", ARCH_X86_64, 4, 48, 512},
    {"sapphirerapids", ARCH_X86_64, 4, 48, 2048}, {"emeraldrapids", ARCH_X86_64, 4, 48, 2048},
    {"graniterapids", ARCH_X86_64, 4, 48, 2048},  {"znver1", ARCH_X86_64, 3, 32, 512},
    {"znver2", ARCH_X86_64, 3, 32, 512},          {"znver3", ARCH_X86_64, 3, 32, 512},
    {"znver4", ARCH_X86_64, 4, 32, 1024},         {"znver5", ARCH_X86_64, 4, 48, 1024},
    {"generic", ARCH_AARCH64, 1, 32, 512},        {"cortex-a53", ARCH_AARCH64, 1, 32, 512},
    {"cortex-a57", ARCH_AARCH64, 1, 32, 512},     {"cortex-a72", ARCH_AARCH64, 1, 32, 512},
    {"cortex-a76", ARCH_AARCH64, 1, 64, 512},     {"neoverse-n1", ARCH_AARCH64, 1, 64, 1024},
    {"neoverse-v1", ARCH_AARCH64, 1, 64, 1024},   {"neoverse-n2", ARCH_AARCH64, 1, 64, 1024},
    {"apple-m1", ARCH_AARCH64, 1, 128, 4096},
};
enum { N_CPUS = sizeof cpus / sizeof *cpus };

/* Processors whose VDPBF16PS takes no longer than an fma of the same vectors: sums of halves go in
 * pairs there, in half of the time. Of the processor that is named, not of what a host has, for
 * bits depend on it. Sapphire Rapids and what follows it have the instruction too, but at a quarter
 * of fma's rate (measured: 112 GFLOP/s a core beside 227 of f32), so that pairs would double the
 * time. Their tiles of matrices (AMX) add in another order (con_pairs.c). Of Cooper Lake there is
 * no measurement. source: AMD, Software Optimization Guide for the Zen4 Microarchitecture,
 * instruction latencies.
 */
static const char *const quick_dots[] = {"znver4", "znver5"};

static char *copy_message(Arena *arena, char *message)
{
    char *s = arena_strdup(arena, message);
    LLVMDisposeMessage(message);
    return s;
}

static uint32_t level_features(int level)
{
    static const uint32_t set[] = {0, LEVEL_1, LEVEL_2, LEVEL_3, LEVEL_4};
    return set[level];
}

/* Those in LLVM's list of the host. */
static uint32_t host_features(const char *list)
{
    uint32_t has = 0;
    for (int f = 0; f < N_FEATURES; f++) {
        const char *name = feature_name[f];
        size_t n = strlen(name);
        for (const char *p = strchr(list, '+'); p != NULL; p = strchr(p + 1, '+'))
            if (strncmp(p + 1, name, n) == 0 && (p[n + 1] == ',' || p[n + 1] == 0))
                has |= UINT32_C(1) << f;
    }
    return has;
}

/* The highest level whose features the host has all. */
static int host_level(uint32_t has)
{
    int level = 4;
    while ((level_features(level) & ~has) != 0)
        level--;
    return level;
}

/* ---- triples -------------------------------------------------------------- */

static bool set_triple(Ctx *cx, Machine *m, const char *triple, Arena *arena)
{
    char *t = triple != NULL ? LLVMNormalizeTargetTriple(triple) : LLVMGetDefaultTargetTriple();
    m->triple = copy_message(arena, t);
    bool x86 = strncmp(m->triple, "x86_64-", 7) == 0;
    bool arm = strncmp(m->triple, "aarch64-", 8) == 0 || strncmp(m->triple, "arm64-", 6) == 0;
    if (!x86 && !arm) {
        Diag *d = diag_error(cx, E0701, NO_SPAN, "no code can be emitted for the triple `%s`",
                             triple != NULL ? triple : m->triple);
        diag_help(cx, d, "triples begin with x86_64 or aarch64, as in aarch64-linux-gnu");
        return false;
    }
    m->arch = x86 ? ARCH_X86_64 : ARCH_AARCH64;
    if (strstr(m->triple, "darwin") != NULL || strstr(m->triple, "apple") != NULL)
        m->format = FORMAT_MACHO;
    else if (strstr(m->triple, "windows") != NULL || strstr(m->triple, "win32") != NULL)
        m->format = FORMAT_COFF;
    else
        m->format = FORMAT_ELF;
    return true;
}

/* ---- processors ------------------------------------------------------------ */

static const CpuName *find_cpu(Arch arch, const char *name)
{
    for (int i = 0; i < N_CPUS; i++)
        if (cpus[i].arch == arch && strcmp(cpus[i].name, name) == 0)
            return &cpus[i];
    return NULL;
}

static const CpuName *baseline_of(Arch arch)
{
    return find_cpu(arch, arch == ARCH_X86_64 ? "x86-64" : "generic");
}

static Arch host_arch(void)
{
    char *t = LLVMGetDefaultTargetTriple();
    Arch a = strncmp(t, "x86_64", 6) == 0 ? ARCH_X86_64 : ARCH_AARCH64;
    LLVMDisposeMessage(t);
    return a;
}

/* What the system says of a cache of this machine, or else `known`. */
static int host_cache(int name, int known)
{
    long bytes = sysconf(name);
    return bytes >= 1024 ? (int)(bytes / 1024) : known;
}

/* The host: its own name where it is known, and what LLVM sees of its features; whether it has
 * dot products. A virtual machine may go by a name that is not its processor's; its caches show. */
static CpuName native_cpu(const Machine *m, Arena *arena, bool *dots)
{
    const char *name = copy_message(arena, LLVMGetHostCPUName());
    const char *list = copy_message(arena, LLVMGetHostCPUFeatures());
    const CpuName *known = find_cpu(m->arch, name);
    uint32_t has = host_features(list);
    int level = m->arch == ARCH_X86_64 ? host_level(has) : 1;
    if (known == NULL) {
        static const char *const by_level[] = {"", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
        known = find_cpu(m->arch, m->arch == ARCH_X86_64 ? by_level[level] : "generic");
    }
    CpuName c = *known;
    c.level = level;
    *dots = (has >> FEATURE_AVX512BF16 & 1) != 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
    c.l1_kib = host_cache(_SC_LEVEL1_DCACHE_SIZE, c.l1_kib);
    c.l2_kib = host_cache(_SC_LEVEL2_CACHE_SIZE, c.l2_kib);
#endif
    return c;
}

static void unknown_cpu(Ctx *cx, const Machine *m, const char *name)
{
    const char *list[N_CPUS + 2] = {"native", "baseline"};
    int n = 2;
    for (int i = 0; i < N_CPUS; i++)
        if (cpus[i].arch == m->arch)
            list[n++] = cpus[i].name;
    Diag *d = diag_error(cx, E0701, NO_SPAN, "no processor `%s` is known for %s", name, m->triple);
    const char *near = nearest(name, list, n);
    if (near != NULL)
        diag_help(cx, d, "did you mean `%s`?", near);
    else
        diag_help(cx, d, "native, baseline, a level such as x86-64-v3, or LLVM's name of it");
}

static bool choose_cpu(Ctx *cx, Machine *m, const char *name, Arena *arena, CpuName *c)
{
    m->dots = true;
    bool host = m->arch == host_arch();
    if (name == NULL || strcmp(name, "native") == 0) {
        *c = host ? native_cpu(m, arena, &m->dots) : *baseline_of(m->arch);
        return true;
    }
    bool base = strcmp(name, "baseline") == 0;
    const CpuName *known = base ? baseline_of(m->arch) : find_cpu(m->arch, name);
    if (known == NULL) {
        unknown_cpu(cx, m, name);
        return false;
    }
    *c = *known;
    return true;
}

static const char *feature_list(uint32_t need, Arena *arena)
{
    Text t;
    text_init(&t, arena);
    for (int f = 0; f < N_FEATURES; f++)
        if (need >> f & 1)
            text_add(&t, "%s+%s", t.n > 0 ? "," : "", feature_name[f]);
    return t.n > 0 ? t.at : "";
}

static void fill_x86(Machine *m, int level)
{
    bool quick = false;
    for (size_t i = 0; i < sizeof quick_dots / sizeof *quick_dots; i++)
        quick = quick || strcmp(m->cpu, quick_dots[i]) == 0;
    m->dots = m->dots && quick && level == 4;
    m->need = level_features(level) | (m->dots ? UINT32_C(1) << FEATURE_AVX512BF16 : 0);
    m->vec_bytes = level == 4 ? 64 : level == 3 ? 32 : 16;
    m->n_vregs = level == 4 ? 32 : 16;
    m->fma = machine_has(m, FEATURE_FMA);
    m->masked = level >= 3;
    m->masked_small = level == 4;
    m->f16c = machine_has(m, FEATURE_F16C);
    m->exponents = level == 4;
}

/* LLVM's name of the processor whose scheduling model is used. Of a name that it does not know it
 * warns on standard error, and schedules without a model. Zen 5 may be one before 19.1.1. */
static const char *tuned_for(const char *cpu)
{
    bool is_old = LLVM_VERSION_MAJOR * 100 + LLVM_VERSION_MINOR * 10 + LLVM_VERSION_PATCH < 1911;
    if (is_old && strcmp(cpu, "znver5") == 0)
        return "znver4";
    return strcmp(cpu, "generic") == 0 ? "cortex-a57" : cpu;
}

const Machine *machine_find(Ctx *cx, const TargetOptions *o, Arena *arena)
{
    Machine *m = NEW(arena, Machine);
    CpuName c;
    if (!set_triple(cx, m, o->triple, arena) || !choose_cpu(cx, m, o->cpu, arena, &c))
        return NULL;
    m->cpu = c.name;
    m->tune = tuned_for(c.name);
    m->l1_bytes = c.l1_kib * INT64_C(1024);
    m->l2_bytes = c.l2_kib * INT64_C(1024);
    if (m->arch == ARCH_X86_64) {
        fill_x86(m, c.level);
    } else {
        m->dots = false;
        m->vec_bytes = 16;
        m->n_vregs = 32;
        m->fma = true;
        m->f16c = true;
    }
    m->flush = o->flush;
    if (m->flush && m->arch != ARCH_X86_64) {
        diag_error(cx, E0709, NO_SPAN,
                   "objects for `%s` keep denormals: only those for x86_64 flush them", m->triple);
        return NULL;
    }
    m->features = feature_list(m->need, arena);
    return m;
}
