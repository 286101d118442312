/* Rates of emitted contractions: matrix products beside OpenBLAS (if there is one),
 * convolutions beside a matrix product of as many operations, one thread.
 *
 *     gemm [--cpu NAME] [FILTER]
 *
 * Each row: GFLOP/s, share of the FMA rate measured in the same run, OpenBLAS, ratio.
 * Build: link with the compiler library, -ldl. */
#include <dlfcn.h>
#include <time.h>
#include "cpu/shapes.h"

typedef void (*KernelCode)(void **bufs, void *scratch, int64_t begin, int64_t end);
typedef void (*Sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                      float, float *, int);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct Bench {
    Ctx cx;
    Arena arena;
    TargetOptions o;
    Sgemm sgemm;
    const char *filter;
    double peak;
} Bench;

typedef struct Runner {
    Loaded *loaded;
    KernelCode code;
    KernelFn fn;
    void *buf[8], *scratch;
} Runner;

static Runner prepare(Bench *b, Kernel *k)
{
    Runner r = {0};
    ObjectFile object = {0};
    if (!cpu_emit_kernels(&b->cx, &b->o, &k, 1, &b->arena, &r.fn, &object)) {
        diag_print(&b->cx, stderr);
        exit(1);
    }
    r.loaded = cpu_load(&b->cx, &object, NULL);
    *(void **)&r.code = loaded_symbol(r.loaded, "k0");
    for (int i = 0; i < k->buf.n; i++) {
        size_t bytes = (size_t)(k->buf.at[i].elems * dtype_bytes(k->buf.at[i].dtype));
        r.buf[i] = aligned_alloc(64, (bytes + 127) / 64 * 64);
        for (size_t e = 0; e < bytes / 4; e++)
            ((float *)r.buf[i])[e] = (float)(e % 17) * 0.01f;
    }
    r.scratch = aligned_alloc(64, (size_t)r.fn.scratch / 64 * 64 + 64);
    return r;
}

static void finish(Runner *r)
{
    for (int i = 0; i < 8; i++)
        free(r->buf[i]);
    free(r->scratch);
    cpu_unload(r->loaded);
}

/* Best of several samples of at least 15 ms, in seconds a run. */
static double time_kernel(Runner *r)
{
    double best = 1e9;
    int64_t n = 1;
    for (int sample = 0; sample < 12; sample++) {
        double t = now();
        for (int64_t i = 0; i < n; i++)
            r->code(r->buf, r->scratch, 0, r->fn.n_units);
        t = now() - t;
        if (t < 0.015) {
            n *= 2;
            sample--;
            continue;
        }
        best = t / (double)n < best ? t / (double)n : best;
    }
    return best;
}

static double time_blas(Bench *b, Runner *r, const Matmul *m)
{
    double best = 1e9;
    int64_t n = 1;
    enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
    int ta = (m->form & TRANSPOSE_A) != 0, tb = (m->form & TRANSPOSE_B) != 0;
    int M = (int)m->m, N = (int)m->n, K = (int)m->k;
    for (int sample = 0; sample < 12; sample++) {
        double t = now();
        for (int64_t i = 0; i < n; i++)
            b->sgemm(ROW_MAJOR, ta ? TRANSPOSED : PLAIN, tb ? TRANSPOSED : PLAIN, M, N, K, 1,
                     r->buf[1], ta ? M : K, r->buf[2], tb ? K : N, 0, r->buf[0], N);
        t = now() - t;
        if (t < 0.015) {
            n *= 2;
            sample--;
            continue;
        }
        best = t / (double)n < best ? t / (double)n : best;
    }
    return best;
}

static double matmul_rate(Bench *b, const Matmul *m, const char *name, bool print)
{
    Runner r = prepare(b, make_matmul(&b->arena, F32, m));
    double flops = 2.0 * (double)m->m * (double)m->n * (double)m->k * (double)m->batch;
    double rate = flops / time_kernel(&r) * 1e-9;
    if (print) {
        printf("%-22s %7.1f %5.2f", name, rate, rate / b->peak);
        if (b->sgemm != NULL && m->batch == 1) {
            double blas = flops / time_blas(b, &r, m) * 1e-9;
            printf(" %9.1f %6.2f", blas, rate / blas);
        }
        printf("   scratch %lld KiB\n", (long long)r.fn.scratch / 1024);
        fflush(stdout);
    }
    finish(&r);
    return rate;
}

/* What a loop of nothing but fused multiply-adds reaches: a product of one long row of
 * accumulators held in registers. */
static double fma_rate(Bench *b)
{
    Matmul m = {.batch = 1, .m = 6, .n = 16, .k = 256};
    if (b->o.cpu != NULL && strstr(b->o.cpu, "avx512") != NULL)
        m = (Matmul){.batch = 1, .m = 14, .n = 32, .k = 256};
    b->peak = 1;
    return matmul_rate(b, &m, "", false);
}

static void products(Bench *b)
{
    static const struct {
        const char *name;
        Matmul m;
    } list[] = {
        {"256 NN", {1, 256, 256, 256, 0, 0}},
        {"512 NN", {1, 512, 512, 512, 0, 0}},
        {"1024 NN", {1, 1024, 1024, 1024, 0, 0}},
        {"1024 NT", {1, 1024, 1024, 1024, TRANSPOSE_B, 0}},
        {"1024 TN", {1, 1024, 1024, 1024, TRANSPOSE_A, 0}},
        {"mlp1 fwd NT", {1, 64, 256, 784, TRANSPOSE_B, 0}},
        {"mlp1 fwd NN", {1, 64, 256, 784, 0, 0}},
        {"mlp1 wgrad TN", {1, 256, 784, 64, TRANSPOSE_A, 0}},
        {"mlp2 fwd NT", {1, 64, 10, 256, TRANSPOSE_B, 0}},
        {"mlp2 dgrad NN", {1, 64, 256, 10, 0, 0}},
        {"mlp2 wgrad TN", {1, 10, 256, 64, TRANSPOSE_A, 0}},
        {"qkv fwd NT", {1, 256, 2304, 768, TRANSPOSE_B, 0}},
        {"qkv dgrad NN", {1, 256, 768, 2304, 0, 0}},
        {"qkv wgrad TN", {1, 2304, 768, 256, TRANSPOSE_A, 0}},
        {"gpt-tiny qkv NT", {1, 768, 384, 128, TRANSPOSE_B, 0}},
        {"gpt-tiny mlp NT", {1, 768, 512, 128, TRANSPOSE_B, 0}},
        {"attention QK 64", {1, 64, 64, 32, TRANSPOSE_B, 0}},
        {"attention PV 64", {1, 64, 32, 64, 0, 0}},
        {"row 1x1000x768 NT", {1, 1, 1000, 768, TRANSPOSE_B, 0}},
        {"row 1x1000x768 NN", {1, 1, 1000, 768, 0, 0}},
        {"wide 16x32768x144 NN", {1, 16, 32768, 144, 0, 0}},
        {"wide 32x8192x288 NN", {1, 32, 8192, 288, 0, 0}},
        {"column 1000x1x768", {1, 1000, 1, 768, 0, 0}},
    };
    printf("%-22s %7s %5s %9s %6s\n", "product", "GFLOP/s", "share", "OpenBLAS", "ratio");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (b->filter == NULL || strstr(list[i].name, b->filter) != NULL)
            matmul_rate(b, &list[i].m, list[i].name, true);
}

static void convolution(Bench *b, const char *name, const Conv *c, int pass)
{
    Kernel *k = pass == 0   ? make_conv_forward(&b->arena, c, false)
                : pass == 1 ? make_conv_data(&b->arena, c)
                            : make_conv_weight(&b->arena, c, 0);
    int64_t o = conv_out(c), per = c->in * c->kernel * c->kernel, n = c->batch * o * o;
    double flops = 2.0 * (double)c->out * (double)per * (double)n;
    Matmul equal = {.batch = 1, .m = c->out, .n = n, .k = per};
    if (pass == 1) /* every pixel of x, whatever the padding */
        equal = (Matmul){.batch = 1,
                         .m = c->in,
                         .n = c->batch * c->size * c->size,
                         .k = c->out * c->kernel * c->kernel};
    if (pass == 2)
        equal = (Matmul){.batch = 1, .m = c->out, .n = per, .k = n, .form = TRANSPOSE_B};
    if (pass == 1)
        flops = 2.0 * (double)equal.m * (double)equal.n * (double)equal.k;
    Runner r = prepare(b, k);
    double rate = flops / time_kernel(&r) * 1e-9, product = matmul_rate(b, &equal, name, false);
    static const char *const what[] = {"forward", "data", "weight"};
    printf("%-14s %-7s %7.1f %5.2f %9.1f %6.2f   scratch %lld KiB\n", name, what[pass], rate,
           rate / b->peak, product, rate / product, (long long)r.fn.scratch / 1024);
    fflush(stdout);
    finish(&r);
}

static void convolutions(Bench *b)
{
    static const struct {
        const char *name;
        Conv c;
    } list[] = {
        {"fashion 1", {64, 1, 32, 28, 3, 1, 0, 1}},  {"fashion 2", {64, 32, 64, 26, 3, 1, 0, 1}},
        {"resnet 32", {32, 16, 16, 32, 3, 1, 1, 1}}, {"resnet 16", {32, 32, 32, 16, 3, 1, 1, 1}},
        {"resnet 8", {32, 64, 64, 8, 3, 1, 1, 1}},   {"stride 2", {32, 16, 32, 32, 3, 2, 1, 1}},
        {"lenet 2", {64, 6, 16, 14, 5, 1, 0, 1}},
    };
    printf("\n%-22s %7s %5s %9s %6s\n", "convolution", "GFLOP/s", "share", "product", "ratio");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int pass = 0; pass < 3; pass++)
            if ((b->filter == NULL || strstr(list[i].name, b->filter) != NULL) &&
                (pass != 1 || list[i].c.stride == 1))
                convolution(b, list[i].name, &list[i].c, pass);
}

int main(int argc, char **argv)
{
    Bench b = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--cpu") == 0 && i + 1 < argc)
            b.o.cpu = argv[++i];
        else
            b.filter = argv[i];
    }
    ctx_init(&b.cx);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *blas = dlopen("libopenblas.so.0", RTLD_NOW);
    if (blas != NULL)
        *(void **)&b.sgemm = dlsym(blas, "cblas_sgemm");
    b.peak = fma_rate(&b);
    printf("one tile in registers: %.1f GFLOP/s, the measure of the shares\n\n", b.peak);
    products(&b);
    convolutions(&b);
    ctx_free(&b.cx);
    arena_free(&b.arena);
    return 0;
}
