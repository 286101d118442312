/* Loading NVRTC, and what is asked of it. None of its answers is believed unseen: a library under
 * its name may be another one, or damaged. */
#define _GNU_SOURCE
#include "nvrtc.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void *RtcProgram; /* nvrtcProgram; results are ints, and 0 is success */

struct NvrtcCalls {
    int (*version)(int *major, int *minor);
    int (*n_archs)(int *n);
    int (*archs)(int *arch);
    int (*create)(RtcProgram *, const char *text, const char *name, int n,
                  const char *const *headers, const char *const *names);
    int (*compile)(RtcProgram, int n, const char *const *options);
    int (*log_size)(RtcProgram, size_t *);
    int (*log)(RtcProgram, char *);
    int (*cubin_size)(RtcProgram, size_t *);
    int (*cubin)(RtcProgram, char *);
    int (*ptx_size)(RtcProgram, size_t *);
    int (*ptx)(RtcProgram, char *);
    int (*destroy)(RtcProgram *);
    const char *(*error)(int result);
};

/* Each operation is rounded once, and no zero is made of what is not one. The others are of 13:
 * nothing of the runtime's interface is declared, and gradc has a cache of its own. */
static const char *const options[] = {"--fmad=false",     "--ftz=false", "--prec-div=true",
                                      "--prec-sqrt=true", "-minimal",    "-no-cache"};
enum { N_OPTIONS = sizeof options / sizeof *options, N_OLD = 4 };

static int count_options(const Nvrtc *n)
{
    return n->major >= 13 ? N_OPTIONS : N_OLD;
}

static const size_t MOST_LOG = (size_t)16 << 20, MOST_IMAGE = (size_t)1 << 30;

/* ---- loading -------------------------------------------------------------------------- */

static bool refuse(NvrtcMissing *no, Code code, const char *text)
{
    *no = (NvrtcMissing){code, text, NULL};
    return false;
}

/* It stays in the process when it has been closed: what it keeps for itself it never frees. */
static void *open_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static bool load(Nvrtc *n, Arena *arena, NvrtcMissing *no)
{
    static const char *const known[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    const char *own = getenv("GRADC_NVRTC");
    if (own != NULL && own[0] == 0)
        return refuse(no, E0703, "there is no NVRTC: GRADC_NVRTC is empty");
    if (own != NULL) {
        n->name = own;
        n->library = open_library(own);
        const char *why = n->library == NULL ? dlerror() : NULL;
        return n->library != NULL ||
               refuse(no, E0703,
                      arena_printf(arena, "GRADC_NVRTC names no NVRTC that can be loaded: %s",
                                   why != NULL ? why : own));
    }
    for (size_t i = 0; i < sizeof known / sizeof *known && n->library == NULL; i++) {
        n->name = known[i];
        n->library = open_library(known[i]);
    }
    if (n->library != NULL)
        return true;
    refuse(no, E0703,
           "there is no NVRTC: the loader finds none of libnvrtc.so.13, libnvrtc.so.12 and "
           "libnvrtc.so");
    no->help = "it is in the CUDA toolkit, and in the Python package nvidia-cuda-nvrtc; "
               "GRADC_NVRTC=FILE names the library";
    return false;
}

typedef struct Symbol {
    const char *name;
    void *to;
} Symbol;

static bool find_calls(Nvrtc *n, Arena *arena, NvrtcMissing *no)
{
    NvrtcCalls *c = NEW(arena, NvrtcCalls);
    const Symbol symbol[] = {
        {"nvrtcVersion", &c->version},
        {"nvrtcGetNumSupportedArchs", &c->n_archs},
        {"nvrtcGetSupportedArchs", &c->archs},
        {"nvrtcCreateProgram", &c->create},
        {"nvrtcCompileProgram", &c->compile},
        {"nvrtcGetProgramLogSize", &c->log_size},
        {"nvrtcGetProgramLog", &c->log},
        {"nvrtcGetCUBINSize", &c->cubin_size},
        {"nvrtcGetCUBIN", &c->cubin},
        {"nvrtcGetPTXSize", &c->ptx_size},
        {"nvrtcGetPTX", &c->ptx},
        {"nvrtcDestroyProgram", &c->destroy},
        {"nvrtcGetErrorString", &c->error},
    };
    n->call = c;
    for (size_t i = 0; i < sizeof symbol / sizeof *symbol; i++) {
        void *at = dlsym(n->library, symbol[i].name);
        if (at == NULL)
            return refuse(no, E0704, arena_printf(arena, "%s has no %s", n->name, symbol[i].name));
        memcpy(symbol[i].to, &at, sizeof at);
    }
    return true;
}

/* "nvrtcVersion ends with NVRTC_ERROR_..." */
static const char *failure(const Nvrtc *n, const char *call, int result, Arena *arena)
{
    const char *name = n->call->error(result);
    return arena_printf(arena, "%s ends with %s (%d)", call, name != NULL ? name : "an error",
                        result);
}

static bool call_fails(const Nvrtc *n, const char *call, int result, Arena *arena, NvrtcMissing *no)
{
    if (result == 0)
        return false;
    refuse(no, E0704, arena_printf(arena, "%s: %s", n->name, failure(n, call, result, arena)));
    return true;
}

static bool find_version(Nvrtc *n, Arena *arena, NvrtcMissing *no)
{
    if (call_fails(n, "nvrtcVersion", n->call->version(&n->major, &n->minor), arena, no))
        return false;
    if (n->major >= NVRTC_LEAST_MAJOR && n->minor >= 0)
        return true;
    return refuse(no, E0704,
                  arena_printf(arena, "%s is NVRTC %d.%d, and %d.0 is the oldest that will do",
                               n->name, n->major, n->minor, NVRTC_LEAST_MAJOR));
}

static int by_size(const void *x, const void *y)
{
    const int *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static bool find_archs(Nvrtc *n, Arena *arena, NvrtcMissing *no)
{
    int count = 0, kept = 0;
    if (call_fails(n, "nvrtcGetNumSupportedArchs", n->call->n_archs(&count), arena, no))
        return false;
    if (count < 1 || count > NVRTC_MOST_ARCHS)
        return refuse(no, E0704,
                      arena_printf(arena, "%s says that it has %d architectures", n->name, count));
    if (call_fails(n, "nvrtcGetSupportedArchs", n->call->archs(n->arch), arena, no))
        return false;
    for (int i = 0; i < count; i++)
        if (n->arch[i] >= NVRTC_LEAST_ARCH && n->arch[i] < 1000)
            n->arch[kept++] = n->arch[i];
    n->n_archs = kept;
    qsort(n->arch, (size_t)kept, sizeof *n->arch, by_size);
    return kept > 0 || refuse(no, E0704, arena_printf(arena, "%s names no architecture", n->name));
}

/* The file, where the loader knows it. */
static void find_path(Nvrtc *n, Arena *arena)
{
    void *at;
    Dl_info info;
    memcpy(&at, &n->call->version, sizeof at);
    if (dladdr(at, &info) != 0 && info.dli_fname != NULL)
        n->name = arena_strdup(arena, info.dli_fname);
}

bool nvrtc_open(Nvrtc *n, Arena *arena, NvrtcMissing *no)
{
    *n = (Nvrtc){0};
    if (!load(n, arena, no))
        return false;
    if (find_calls(n, arena, no) && find_version(n, arena, no) && find_archs(n, arena, no)) {
        find_path(n, arena);
        return true;
    }
    nvrtc_close(n);
    return false;
}

void nvrtc_close(Nvrtc *n)
{
    if (n->library != NULL)
        dlclose(n->library);
    n->library = NULL;
}

void nvrtc_report(Ctx *cx, const NvrtcMissing *no)
{
    Diag *d = diag_error(cx, no->code, NO_SPAN, "%s", no->text);
    if (no->help != NULL)
        diag_help(cx, d, "%s", no->help);
}

/* ---- what it is ------------------------------------------------------------------------- */

const char *nvrtc_version(const Nvrtc *n, Arena *arena)
{
    return arena_printf(arena, "%d.%d", n->major, n->minor);
}

const char *nvrtc_archs(const Nvrtc *n, Arena *arena)
{
    Text t;
    text_init(&t, arena);
    for (int i = 0; i < n->n_archs; i++)
        text_add(&t, "%s%d", i > 0 ? " " : "", n->arch[i]);
    return t.at;
}

bool nvrtc_has(const Nvrtc *n, int arch)
{
    for (int i = 0; i < n->n_archs; i++)
        if (n->arch[i] == arch)
            return true;
    return false;
}

int nvrtc_newest(const Nvrtc *n)
{
    return n->arch[n->n_archs - 1];
}

/* ---- one program -------------------------------------------------------------------------- */

static const char *arch_option(ImageKind kind, int arch, Arena *arena)
{
    return arena_printf(arena, "--gpu-architecture=%s_%d", kind == IMAGE_CUBIN ? "sm" : "compute",
                        arch);
}

/* What the compiler said; a log that can't be had is none. */
static const char *read_log(const Nvrtc *n, RtcProgram p, Arena *arena)
{
    size_t size = 0;
    if (n->call->log_size(p, &size) != 0 || size > MOST_LOG)
        return "";
    char *log = arena_alloc(arena, size + 1);
    return n->call->log(p, log) == 0 ? log : "";
}

static void read_image(const Nvrtc *n, RtcProgram p, ImageKind kind, Arena *arena, NvrtcResult *r)
{
    bool cubin = kind == IMAGE_CUBIN;
    const char *name = cubin ? "nvrtcGetCUBIN" : "nvrtcGetPTX";
    size_t size = 0;
    int got = cubin ? n->call->cubin_size(p, &size) : n->call->ptx_size(p, &size);
    if (got != 0) {
        r->wrong = failure(n, arena_printf(arena, "%sSize", name), got, arena);
    } else if (size < 2 || size > MOST_IMAGE) {
        r->wrong = arena_printf(arena, "%sSize gives %zu bytes", name, size);
    } else {
        char *bytes = arena_alloc(arena, size);
        got = cubin ? n->call->cubin(p, bytes) : n->call->ptx(p, bytes);
        if (got != 0)
            r->wrong = failure(n, name, got, arena);
        else if (!cubin && memchr(bytes, 0, size) != bytes + size - 1)
            r->wrong = "its PTX is no text";
        else
            *r = (NvrtcResult){(const unsigned char *)bytes, size, r->log, NULL};
    }
}

NvrtcResult nvrtc_compile(const Nvrtc *n, const char *text, ImageKind kind, int arch, Arena *arena)
{
    const char *option[N_OPTIONS + 1];
    NvrtcResult r = {.log = ""};
    RtcProgram p = NULL;
    memcpy(option, options, sizeof options);
    int n_options = count_options(n);
    option[n_options++] = arch_option(kind, arch, arena);
    int result = n->call->create(&p, text, "kernels.cu", 0, NULL, NULL);
    if (result != 0) {
        r.wrong = failure(n, "nvrtcCreateProgram", result, arena);
        return r;
    }
    result = n->call->compile(p, n_options, option);
    r.log = read_log(n, p, arena);
    if (result == 0)
        read_image(n, p, kind, arena, &r);
    else
        r.wrong = failure(n, "nvrtcCompileProgram", result, arena);
    result = n->call->destroy(&p);
    if (result != 0 && r.wrong == NULL)
        r = (NvrtcResult){.log = r.log, .wrong = failure(n, "nvrtcDestroyProgram", result, arena)};
    return r;
}

void nvrtc_recipe(const Nvrtc *n, ImageKind kind, int arch, Blake2b *b)
{
    int what[] = {n->major, n->minor, (int)kind, arch};
    blake2b_add(b, what, sizeof what);
    for (int i = 0; i < count_options(n); i++)
        blake2b_add(b, options[i], strlen(options[i]) + 1);
}
