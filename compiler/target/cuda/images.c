/* From a Program to images: programs of some kernels each, compiled for each architecture. */
#include "images.h"

#include <ctype.h>
#include <string.h>

#include "../parts.h"
#include "cubin.h"
#include "nvrtc.h"

enum {
    MOST_KERNELS = 16, /* of a program: source: gpu.md, 1.2 */
    MOST_TARGETS = 64,
    LOG_LINES = MAX_NOTES,
    ARGUMENT_BYTES = 8
};

/* ---- architectures ----------------------------------------------------------------------------
 */

typedef struct As {
    ImageKind kind;
    int arch;
} As;

typedef struct Targets {
    int n;
    As at[MOST_TARGETS];
} Targets;

static const char *as_text(As as, Arena *arena)
{
    return arena_printf(arena, "%s_%d", as.kind == IMAGE_CUBIN ? "sm" : "compute", as.arch);
}

/* "sm_90": a cubin; "compute_90" and "newest": PTX. */
static bool read_as(const Nvrtc *nvrtc, const char *s, size_t n, As *as)
{
    static const char *const prefix[] = {[IMAGE_CUBIN] = "sm_", [IMAGE_PTX] = "compute_"};
    if (n == strlen("newest") && memcmp(s, "newest", n) == 0) {
        *as = (As){IMAGE_PTX, nvrtc_newest(nvrtc)};
        return true;
    }
    for (int kind = 0; kind < 2; kind++) {
        size_t head = strlen(prefix[kind]);
        *as = (As){(ImageKind)kind, 0};
        if (n <= head || n > head + 4 || memcmp(s, prefix[kind], head) != 0)
            continue;
        for (size_t i = head; i < n; i++)
            if (!isdigit((unsigned char)s[i]))
                return false;
            else
                as->arch = 10 * as->arch + (s[i] - '0');
        return nvrtc_has(nvrtc, as->arch);
    }
    return false;
}

static bool refuse_as(Ctx *cx, const Nvrtc *nvrtc, const char *s, size_t n)
{
    Arena *a = &cx->perm;
    Diag *d = diag_error(cx, E0705, NO_SPAN, "NVRTC %s has no architecture `%.*s`",
                         nvrtc_version(nvrtc, a), (int)n, s);
    diag_help(cx, d,
              "--arch takes sm_N (a cubin), compute_N (PTX) and newest (PTX), separated by commas; "
              "N is one of %s",
              nvrtc_archs(nvrtc, a));
    return false;
}

static void add_target(Targets *t, As as)
{
    for (int i = 0; i < t->n; i++)
        if (t->at[i].kind == as.kind && t->at[i].arch == as.arch)
            return;
    t->at[t->n++] = as;
}

/* Each once, as they are given. */
static bool read_targets(Ctx *cx, const Nvrtc *nvrtc, const char *list, Targets *t)
{
    t->n = 0;
    for (const char *s = list != NULL ? list : CUDA_ARCHS;; s++) {
        size_t n = strcspn(s, ",");
        As as;
        if (!read_as(nvrtc, s, n, &as) || t->n == MOST_TARGETS)
            return refuse_as(cx, nvrtc, s, n);
        add_target(t, as);
        s += n;
        if (*s == 0)
            return true;
    }
}

/* ---- programs ---------------------------------------------------------------------------------
 */

/* Kernels of Program.kernel that are in one text. */
typedef struct Batch {
    const char *text;
    int n;
    int32_t kernel[MOST_KERNELS];
    const char *name[MOST_KERNELS];
    int32_t n_arguments[MOST_KERNELS];
} Batch;

typedef VEC(Batch) Batches;

static int32_t count_arguments(const Kernel *k, bool guarded)
{
    int32_t n = guarded;
    for (int b = 0; b < k->buf.n; b++)
        n += k->buf.at[b].mode != K_LOCAL;
    return n;
}

static void add_kernel(Batch *b, const CudaText *t, int32_t i)
{
    b->kernel[b->n] = i;
    b->name[b->n] = t->name[i];
    b->n_arguments[b->n++] = count_arguments(t->p->kernel.at[i], t->guarded[i]);
}

/* Kernel `i` and those that follow, until there are n that are launched; where the next begins. */
static int32_t print_batch(CudaText *t, int32_t i, int n, Batch *b)
{
    Math math = {.arena = t->arena};
    Text kernels, to;
    text_init(&math.text, t->arena);
    text_init(&to, t->arena);
    text_init(&kernels, t->arena);
    for (*b = (Batch){0}; i < t->p->kernel.n && b->n < n; i++) {
        size_t before = kernels.n;
        cu_text_kernel(t, i, &math, &kernels);
        if (t->launch[i].blocks > 0)
            add_kernel(b, t, i);
        else
            kernels.at[kernels.n = before] = 0;
    }
    cu_text(&to, &math, &kernels);
    b->text = to.at;
    return i;
}

/* All of about the same size, so that none is left alone with the 30 ms of a program. */
static void print_batches(CudaText *t, CudaImages *out, Batches *batches)
{
    int n = t->p->kernel.n, programs = (n + MOST_KERNELS - 1) / MOST_KERNELS;
    int each = programs > 0 ? (n + programs - 1) / programs : 0;
    out->program_of_kernel = NEW_ARRAY(t->arena, int32_t, n);
    memset(out->program_of_kernel, -1, (size_t)n * sizeof *out->program_of_kernel);
    for (int32_t i = 0; i < n;) {
        Batch b;
        i = print_batch(t, i, each, &b);
        for (int k = 0; k < b.n; k++)
            out->program_of_kernel[b.kernel[k]] = batches->n;
        if (b.n > 0)
            vec_push(t->arena, batches, b);
    }
}

/* ---- images ------------------------------------------------------------------------------- */

typedef struct ImagePart {
    Part part; /* first */
    const Batch *batch;
    int32_t program;
    As as;
    Arena own; /* of the thread that compiles it */
    NvrtcResult result;
} ImagePart;

static const char *check_cubin(const ImagePart *x, const NvrtcResult *r, Arena *arena)
{
    Cubin c;
    const char *wrong = cubin_read(r->bytes, r->size, arena, &c);
    if (wrong != NULL)
        return arena_printf(arena, "its cubin can't be read: %s", wrong);
    if (c.arch != x->as.arch)
        return arena_printf(arena, "its cubin is for sm_%d", c.arch);
    for (int i = 0; i < x->batch->n; i++) {
        const CubinKernel *k = cubin_kernel(&c, x->batch->name[i]);
        if (k == NULL)
            return arena_printf(arena, "its cubin has no %s", x->batch->name[i]);
        bool same = k->n_arguments == x->batch->n_arguments[i];
        for (int a = 0; a < k->n_arguments && same; a++)
            same = k->argument[a].offset == ARGUMENT_BYTES * a &&
                   k->argument[a].size == ARGUMENT_BYTES;
        if (!same)
            return arena_printf(arena, "the arguments of %s are not %d pointers", k->name,
                                x->batch->n_arguments[i]);
    }
    return NULL;
}

static const char *check_ptx(const ImagePart *x, const NvrtcResult *r, Arena *arena)
{
    for (int i = 0; i < x->batch->n; i++)
        if (strstr((const char *)r->bytes, arena_printf(arena, ".entry %s(", x->batch->name[i])) ==
            NULL)
            return arena_printf(arena, "its PTX has no %s", x->batch->name[i]);
    return NULL;
}

/* What NVRTC gives is looked at before it is kept: another library may have its name. */
static void compile_image(const void *nvrtc, PartWorker *own, Part *part)
{
    ImagePart *x = (ImagePart *)part;
    (void)own;
    x->result = nvrtc_compile(nvrtc, x->batch->text, x->as.kind, x->as.arch, &x->own);
    if (x->result.wrong == NULL)
        x->result.wrong = x->as.kind == IMAGE_CUBIN ? check_cubin(x, &x->result, &x->own)
                                                    : check_ptx(x, &x->result, &x->own);
    if (x->result.wrong != NULL)
        return;
    part->bytes = x->result.bytes;
    part->n_bytes = x->result.size;
}

/* Of the text but for its #line: where the model lies changes no image. */
static void find_key(const Nvrtc *nvrtc, ImagePart *x)
{
    Blake2b b;
    blake2b_start(&b);
    nvrtc_recipe(nvrtc, x->as.kind, x->as.arch, &b);
    for (const char *line = x->batch->text; *line != 0;) {
        size_t n = strcspn(line, "\n");
        n += line[n] != 0;
        if (strncmp(line, "#line", 5) != 0)
            blake2b_add(&b, line, n);
        line += n;
    }
    blake2b_end(&b, x->part.key);
}

static ImagePart *add_images(Parts *parts, const Nvrtc *nvrtc, const Batches *batches,
                             const Targets *targets, Arena *arena)
{
    ImagePart *x = NEW_ARRAY(arena, ImagePart, (size_t)batches->n * (size_t)targets->n);
    for (int b = 0; b < batches->n; b++)
        for (int i = 0; i < targets->n; i++) {
            ImagePart *y = &x[b * targets->n + i];
            y->batch = &batches->at[b];
            y->program = b;
            y->as = targets->at[i];
            y->part.weight = strlen(y->batch->text);
            find_key(nvrtc, y);
            parts_add(parts, &y->part);
        }
    return x;
}

/* The first lines of the log are the compiler's first errors. */
static void report(Ctx *cx, const Nvrtc *nvrtc, const ImagePart *x)
{
    Arena *a = &cx->perm;
    const Batch *b = x->batch;
    Diag *d = diag_error(cx, E0706, NO_SPAN, "NVRTC %s does not compile %s%s%s for %s: %s",
                         nvrtc_version(nvrtc, a), b->name[0], b->n > 1 ? " to " : "",
                         b->n > 1 ? b->name[b->n - 1] : "", as_text(x->as, a), x->result.wrong);
    const char *line = x->result.log;
    for (int i = 0; i < LOG_LINES && *line != 0;) {
        size_t n = strcspn(line, "\n");
        if (n > 0) {
            diag_note(cx, d, NO_SPAN, "%.*s", (int)(n < 400 ? n : 400), line);
            i++;
        }
        line += n + (line[n] != 0);
    }
}

static void keep_image(const ImagePart *x, CudaImages *out, Arena *arena)
{
    unsigned char *bytes = arena_alloc(arena, x->part.n_bytes);
    memcpy(bytes, x->part.bytes, x->part.n_bytes);
    out->items[out->n++] = (CudaImage){.kind = x->as.kind,
                                       .arch = x->as.arch,
                                       .program = x->program,
                                       .bytes = bytes,
                                       .size = x->part.n_bytes};
    out->n_cached += x->part.kept;
}

static bool compile_all(Ctx *cx, const Nvrtc *nvrtc, const TargetOptions *o, const Batches *batches,
                        const Targets *targets, CudaImages *out, Arena *arena)
{
    PartMaker maker = {.of = nvrtc, .make = compile_image};
    Parts *parts = parts_open(&maker, o->cache, o->jobs, arena);
    ImagePart *x = add_images(parts, nvrtc, batches, targets, arena);
    int n = batches->n * targets->n;
    bool ok = true;
    Text log;
    parts_finish(parts);
    out->items = NEW_ARRAY(arena, CudaImage, n);
    out->n_parts = n;
    text_init(&log, arena);
    for (int i = 0; i < n && ok; i++) {
        ok = x[i].part.bytes != NULL;
        text_add(&log, "%s", x[i].result.log != NULL ? x[i].result.log : "");
        if (ok)
            keep_image(&x[i], out, arena);
        else
            report(cx, nvrtc, &x[i]);
    }
    out->log = log.at != NULL ? log.at : "";
    parts_close(parts);
    for (int i = 0; i < n; i++)
        arena_free(&x[i].own);
    return ok;
}

bool cuda_compile(Ctx *cx, const Program *p, const TargetOptions *o, Arena *arena, CudaImages *out)
{
    Nvrtc nvrtc;
    NvrtcMissing no;
    Targets targets;
    *out = (CudaImages){0};
    if (!nvrtc_open(&nvrtc, &cx->perm, &no)) {
        nvrtc_report(cx, &no);
        return false;
    }
    bool ok = read_targets(cx, &nvrtc, o->arch, &targets);
    if (ok) {
        CudaText *t = cu_text_open(cx, p, arena);
        Batches batches = {0};
        print_batches(t, out, &batches);
        out->n_programs = batches.n;
        out->driver = 1000 * nvrtc.major + 10 * nvrtc.minor;
        out->name = t->name;
        out->launch = t->launch;
        out->guarded = t->guarded;
        ok = compile_all(cx, &nvrtc, o, &batches, &targets, out, arena);
    }
    nvrtc_close(&nvrtc);
    return ok;
}
