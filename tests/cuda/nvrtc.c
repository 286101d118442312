/* Compiles kernels of the target cuda with NVRTC, and looks at what they need.
 *
 *   nvrtc ARCHS WHAT...
 *
 * ARCHS as --arch has them: "sm_80,sm_90"; "newest" stands for a cubin of the newest here. WHAT:
 *   ops                          the kernel of each example of each op, for each element type
 *   FILE.cu                      a text of cases.c or steps.c
 *   FILE.model[:NAME=VALUE...]   whole programs as `build` compiles them, arguments checked;
 *                                --precision=TYPE may be among these
 *   --local=N                    in what follows up to N kernels may use local memory: a little
 *   --list                       in what follows each kernel of a FILE.model has a line, "kernel
 *                                WHAT NAME THREADS sm_N REGISTERS FRAME SHARED", which ends in
 * "local" where local memory is used; the first one is "nvrtc VERSION" Says of each and each
 * architecture how many kernels there are, and what the largest take. Failed are warnings, errors,
 * kernels that use local memory though they may not, and those that can't be launched for want of
 * registers or shared memory, or not as many at once as their bounds ask for. The last line is
 * "passed=N failed=N skipped=N". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile.h"
#include "support/op_kernel.h"
#include "target/cuda/cubin.h"
#include "target/cuda/images.h"
#include "target/cuda/nvrtc.h"

enum { MAX_DEFINES = 16, MAX_ARCHS = 8, OPS_TEXT = 40, LITTLE = 96 };
/* Of a multiprocessor, and of a block without asking for more.
 * source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" */
enum { REGISTERS = 65536, SHARED_BYTES = 48 << 10 };

typedef struct Tool {
    Arena arena;
    Nvrtc nvrtc;
    int n_archs, arch[MAX_ARCHS];
    int most_local; /* kernels of one WHAT that may use local memory */
    bool lists;
    int passed, failed;
} Tool;

/* ---- what kernels need ---------------------------------------------------------------------- */

typedef struct Needs {
    int kernels, registers, local; /* the most registers; kernels with local memory */
    int64_t shared, bytes;
    const char *wrong;
} Needs;

static void add_kernel(const CubinKernel *k, Needs *to)
{
    bool local = k->frame_bytes > 0 || k->loads > 0 || k->stores > 0;
    to->kernels++;
    to->registers = k->registers > to->registers ? k->registers : to->registers;
    to->shared = k->shared_bytes > to->shared ? k->shared_bytes : to->shared;
    to->local += local;
    if (local)
        printf("%s has a frame of %d bytes, and %d accesses to local memory\n", k->name,
               k->frame_bytes, k->loads + k->stores);
    if (k->frame_bytes > LITTLE)
        to->wrong = "a frame is too large";
}

static void add_cubin(Tool *t, const unsigned char *bytes, size_t size, Needs *to)
{
    Cubin c;
    const char *wrong = cubin_read(bytes, size, &t->arena, &c);
    if (wrong != NULL)
        to->wrong = wrong;
    to->bytes += (int64_t)size;
    for (int i = 0; wrong == NULL && i < c.n; i++)
        add_kernel(&c.kernel[i], to);
}

static void say(Tool *t, const char *what, int arch, const Needs *n, const char *log)
{
    const char *wrong = n->wrong != NULL                 ? n->wrong
                        : n->kernels == 0                ? "there is no kernel"
                        : n->local > t->most_local       ? "kernels use local memory"
                        : strstr(log, "warning") != NULL ? "a warning"
                                                         : NULL;
    if (wrong == NULL)
        printf(
            "%s, sm_%d: %d kernels, %lld bytes; at most %d registers, %lld bytes shared; %d with "
            "local memory\n",
            what, arch, n->kernels, (long long)n->bytes, n->registers, (long long)n->shared,
            n->local);
    else
        printf("FAILED: %s, sm_%d: %s\n%.4000s\n", what, arch, wrong, log);
    *(wrong == NULL ? &t->passed : &t->failed) += 1;
}

/* A text by itself, for all architectures; kernels: how many it has, or -1. */
static void compile_text(Tool *t, const char *what, const char *text, int kernels)
{
    for (int i = 0; i < t->n_archs; i++) {
        NvrtcResult r = nvrtc_compile(&t->nvrtc, text, IMAGE_CUBIN, t->arch[i], &t->arena);
        Needs n = {.wrong = r.wrong};
        if (r.wrong == NULL)
            add_cubin(t, r.bytes, r.size, &n);
        if (n.wrong == NULL && kernels >= 0 && n.kernels != kernels)
            n.wrong = "a kernel is not there";
        say(t, what, t->arch[i], &n, r.log);
    }
}

/* ---- files --------------------------------------------------------------------------------------
 */

static char *read_file(Arena *arena, const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    Text t;
    char part[65536];
    size_t n;
    text_init(&t, arena);
    while (f != NULL && (n = fread(part, 1, sizeof part, f)) > 0)
        text_put(&t, part, n);
    if (f == NULL || t.n == 0) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(3);
    }
    fclose(f);
    *bytes = t.n;
    return t.at;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* "gpt2.model:layers=1": the path alone is left. */
static void split_what(Ctx *cx, char *what, Define *d, Options *o)
{
    o->define = d;
    for (char *s = strchr(what, ':'); s != NULL && o->n_defines < MAX_DEFINES;) {
        *s++ = 0;
        char *next = strchr(s, ':'), *equals = strchr(s, '=');
        if (equals == NULL)
            exit(2);
        size_t n = next != NULL ? (size_t)(next - equals - 1) : strlen(equals + 1);
        const char *value = arena_strndup(&cx->perm, equals + 1, n);
        if (strncmp(s, "--precision=", (size_t)(equals + 1 - s)) == 0)
            o->precision = value;
        else
            d[o->n_defines++] =
                (Define){.name = intern_n(&cx->names, s, (size_t)(equals - s)), .value = value};
        s = next;
    }
}

/* ---- models --------------------------------------------------------------------------------- */

static bool is_too_large(const CubinKernel *k, const Launch *l)
{
    int64_t blocks = l->resident > 1 ? l->resident : 1, warps = blocks * ((l->threads + 31) / 32);
    return align_up((int64_t)k->registers * 32, 256) * warps > REGISTERS ||
           k->shared_bytes > l->shared_bytes || k->shared_bytes > SHARED_BYTES;
}

/* NULL, or the name of a kernel whose blocks need more than there is. */
static const char *too_large(Tool *t, const CudaImages *m, int32_t n_kernels, int image)
{
    Cubin c;
    if (cubin_read(m->items[image].bytes, m->items[image].size, &t->arena, &c) != NULL)
        return NULL;
    for (int32_t k = 0; k < n_kernels; k++) {
        const CubinKernel *x = cubin_kernel(&c, m->name[k]);
        if (m->program_of_kernel[k] == m->items[image].program &&
            (x == NULL || is_too_large(x, &m->launch[k])))
            return m->name[k];
    }
    return NULL;
}

/* What the names of kernels say beside their numbers: "contract_add". */
static void list_kernels(Tool *t, const char *what, const CudaImages *m, int32_t n_kernels,
                         const CudaImage *image)
{
    Cubin c;
    if (cubin_read(image->bytes, image->size, &t->arena, &c) != NULL)
        return;
    for (int32_t k = 0; k < n_kernels; k++) {
        const CubinKernel *x = cubin_kernel(&c, m->name[k]);
        if (x != NULL && m->program_of_kernel[k] == image->program)
            printf("kernel %s %s %d sm_%d %d %d %lld%s\n", what, strchr(x->name, '_') + 1,
                   m->launch[k].threads, image->arch, x->registers, x->frame_bytes,
                   (long long)x->shared_bytes, x->loads + x->stores > 0 ? " local" : "");
    }
}

static void check_images(Tool *t, const char *what, const CudaImages *m, int32_t n_kernels)
{
    for (int i = 0; i < t->n_archs; i++) {
        Needs n = {0};
        int kernels = 0;
        for (int j = 0; j < m->n; j++)
            if (m->items[j].arch == t->arch[i]) {
                const char *large = too_large(t, m, n_kernels, j);
                add_cubin(t, m->items[j].bytes, m->items[j].size, &n);
                if (large != NULL)
                    n.wrong = arena_printf(&t->arena, "%s can't be launched", large);
                if (t->lists)
                    list_kernels(t, what, m, n_kernels, &m->items[j]);
            }
        for (int32_t k = 0; k < n_kernels; k++)
            kernels += m->program_of_kernel[k] >= 0;
        if (n.wrong == NULL && n.kernels != kernels)
            n.wrong = "a kernel is not there";
        say(t, what, t->arch[i], &n, m->log);
    }
}

static void compile_model(Tool *t, const char *archs, char *what)
{
    Ctx cx;
    Arena arena = {0};
    Output out = {.arena = &arena};
    Define d[MAX_DEFINES];
    size_t n;
    ctx_init(&cx);
    const char *label = arena_strdup(&cx.perm, last_part(what));
    Options o = {.entry = {true, true, true, true},
                 .threads_max = 1,
                 .chunk_from = -1,
                 .target = {.target = "cuda", .want_images = true, .arch = archs}};
    split_what(&cx, what, d, &o);
    o.target.jobs = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    const char *text = read_file(&cx.perm, what, &n);
    if (compile(&cx, source_add(&cx, what, text, n, false), &o, &out)) {
        check_images(t, label, out.object.images, out.program->kernel.n);
    } else {
        diag_print(&cx, stdout);
        printf("FAILED: %s\n", label);
        t->failed++;
    }
    output_free(&out);
    ctx_free(&cx);
}

/* ---- ops --------------------------------------------------------------------------------------
 */

static void compile_kernels(Tool *t, Arena *arena, const char *what, Kernel **k, int n)
{
    Text text;
    Launch launch[OPS_TEXT];
    text_init(&text, arena);
    cuda_kernels_text(k, n, false, arena, &text, launch);
    compile_text(t, what, text.at, n);
}

/* All examples of all ops with this type, in texts of many kernels. */
static void compile_ops(Tool *t, const char *type)
{
    Ctx cx;
    Kernel *k[OPS_TEXT];
    int n = 0;
    ctx_init(&cx);
    const char *what = arena_printf(&cx.perm, "ops of %s", type);
    for (int op = OP_NONE + 1; op < N_OPS; op++)
        for (int example = 0; example < 16; example++) {
            OpKernel b;
            Graph *g = op_example(&cx, optab[op], example, type);
            if (g == NULL || !op_kernel(&cx, &b, g, g->root.at[0].ref))
                continue;
            k[n++] = b.k;
            if (n == OPS_TEXT)
                compile_kernels(t, &cx.perm, what, k, n);
            n %= OPS_TEXT;
        }
    if (n > 0)
        compile_kernels(t, &cx.perm, what, k, n);
    ctx_free(&cx);
}

static void compile_all_ops(Tool *t)
{
    static const char *const type[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"};
    for (int i = 0; i < 8; i++)
        compile_ops(t, type[i]);
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* The list as cuda_compile() takes it. */
static const char *read_archs(Tool *t, const char *list)
{
    Text archs;
    text_init(&archs, &t->arena);
    for (const char *s = list; *s != 0; s += strcspn(s, ","), s += *s == ',') {
        int arch = nvrtc_newest(&t->nvrtc);
        if (t->n_archs == MAX_ARCHS || (s[0] != 'n' && sscanf(s, "sm_%d", &arch) != 1))
            exit(2);
        text_add(&archs, "%ssm_%d", t->n_archs > 0 ? "," : "", arch);
        t->arch[t->n_archs++] = arch;
    }
    return archs.at;
}

int main(int argc, char **argv)
{
    Tool t = {0};
    NvrtcMissing no;
    if (argc < 3)
        return 2;
    if (!nvrtc_open(&t.nvrtc, &t.arena, &no)) {
        printf("skipped: kernels compiled by NVRTC: %s\npassed=0 failed=0 skipped=1\n", no.text);
        return 0;
    }
    const char *archs = read_archs(&t, argv[1]);
    for (int i = 2; i < argc; i++) {
        size_t n = strlen(argv[i]);
        if (sscanf(argv[i], "--local=%d", &t.most_local) == 1)
            continue;
        if (strcmp(argv[i], "--list") == 0) {
            t.lists = true;
            printf("nvrtc %s\n", nvrtc_version(&t.nvrtc, &t.arena));
        } else if (strcmp(argv[i], "ops") == 0)
            compile_all_ops(&t);
        else if (n > 3 && strcmp(argv[i] + n - 3, ".cu") == 0)
            compile_text(&t, last_part(argv[i]), read_file(&t.arena, argv[i], &n), -1);
        else
            compile_model(&t, archs, argv[i]);
    }
    nvrtc_close(&t.nvrtc);
    arena_free(&t.arena);
    printf("passed=%d failed=%d skipped=0\n", t.passed, t.failed);
    return t.failed != 0;
}
