/* Rates of emitted kernels beside what the machine and libraries reach, in one run.
 *
 *     gradc-rates [--cpu NAME] [--rounds N] [--threads 1|2] [WHAT [FILTER]]
 *
 *     linear-1024, linear-256, small   products beside oneDNN and OpenBLAS, where they are
 *                                      installed, and multiply-adds in registers (rates/lists.c)
 *     bf16-1024, bf16-256, bf16-small  the same of bf16, beside dot products of pairs of them in
 *                                      registers, where the processor that is asked for has them
 *     tile                             one tile by itself, beside multiply-adds in registers
 *     streams, math                    memory; functions beside libmvec (rates/streams.c)
 *     products                         more of them
 *     convolutions                     GFLOP/s, beside a product of as many operations
 *
 * Without WHAT: all of them. */
#include "rates/rates.h"

/* Best of several samples of at least 15 ms, in seconds a call. */
static double time_kernel(Rates *r, Runner *x)
{
    enum { SAMPLES = 12 };
    double best = 1e9;
    int64_t n = 1;
    for (int sample = 0; sample < SAMPLES;) {
        double t = seconds_now(r);
        for (int64_t i = 0; i < n; i++)
            runner_call(r, x);
        t = seconds_now(r) - t;
        if (t < 0.015) {
            n *= 2;
            continue;
        }
        best = t / (double)n < best ? t / (double)n : best;
        sample++;
    }
    return best;
}

static double kernel_rate(Rates *r, Kernel *k, double flops)
{
    Runner x = runner_new(r, k, NULL);
    double rate = flops / time_kernel(r, &x) * 1e-9;
    runner_free(&x);
    return rate;
}

static double matmul_rate(Rates *r, const Matmul *m)
{
    double flops = 2.0 * (double)m->m * (double)m->n * (double)m->k;
    return kernel_rate(r, make_matmul(&r->arena, F32, m), flops);
}

/* Both operands lie as panels do, and are in the caches: the tile with its zeros and its
 * epilogue, which is all that a product of one tile has. In turns with multiply-adds. */
static void tiles(Rates *r)
{
    static const int64_t rounds_of_probe = 20000, calls = 2000;
    static const int64_t rows[] = {14, 13, 12, 8, 6}, k[] = {192, 384};
    static float to[32 * 16], from[32];
    Probe probe = probe_new(r, PROBE_FMA);
    int64_t wide = r->mach->vec_bytes / 4 * 2;
    printf("\none tile, %d rounds\n%-22s %7s %7s %5s\n", r->rounds, "tile", "FMA", "GFLOP/s",
           "share");
    for (int i = 0; i < 10; i++) {
        Matmul m = {1, rows[i / 2], wide, k[i % 2], TRANSPOSE_A, 0};
        Runner x = runner_new(r, make_matmul(&r->arena, F32, &m), NULL);
        double own[MOST_ROUNDS], peak[MOST_ROUNDS], share[MOST_ROUNDS];
        for (int round = 0; round < r->rounds; round++) {
            double t0 = seconds_now(r);
            for (int64_t c = 0; c < calls; c++)
                runner_call(r, &x);
            double t1 = seconds_now(r);
            probe.code(to, from, rounds_of_probe, NULL);
            double t2 = seconds_now(r);
            own[round] = 2e-9 * (double)(m.m * m.n * m.k) * (double)calls / (t1 - t0);
            peak[round] = 1e-9 * probe_flops(r) * (double)rounds_of_probe / (t2 - t1);
            share[round] = own[round] / peak[round];
        }
        printf("%3lld x %lld, k %-10lld %7.1f %7.1f %5.2f\n", (long long)m.m, (long long)m.n,
               (long long)m.k, median(peak, r->rounds), median(own, r->rounds),
               median(share, r->rounds));
        runner_free(&x);
    }
    probe_free(&probe);
}

static void convolution(Rates *r, const char *name, const Conv *c, int pass)
{
    Kernel *k = pass == 0   ? make_conv_forward(&r->arena, c, false)
                : pass == 1 ? make_conv_data(&r->arena, c)
                            : make_conv_weight(&r->arena, c, 0);
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
    double rate = kernel_rate(r, k, flops), product = matmul_rate(r, &equal);
    static const char *const what[] = {"forward", "data", "weight"};
    printf("%-14s %-7s %7.1f %9.1f %6.2f\n", name, what[pass], rate, product, rate / product);
    fflush(stdout);
}

static void convolutions(Rates *r)
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
    printf("\n%-22s %7s %9s %6s\n", "convolution", "GFLOP/s", "product", "ratio");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int pass = 0; pass < 3; pass++)
            if ((r->filter == NULL || strstr(list[i].name, r->filter) != NULL) &&
                (pass != 1 || list[i].c.stride == 1))
                convolution(r, list[i].name, &list[i].c, pass);
}

static bool is_wanted(const char *what, const char *section)
{
    return what == NULL || strcmp(what, section) == 0;
}

static void sections(Rates *r, const char *what)
{
    static const char *const list[] = {"linear-1024", "linear-256", "small",     "products",
                                       "bf16-1024",   "bf16-256",   "bf16-small"};
    for (int i = 0; i < 7; i++)
        if (is_wanted(what, list[i]))
            lists_print(r, list[i]);
    if (is_wanted(what, "tile"))
        tiles(r);
    if (is_wanted(what, "convolutions"))
        convolutions(r);
    if (is_wanted(what, "math"))
        math_print(r);
    if (is_wanted(what, "streams"))
        streams_print(r);
}

int main(int argc, char **argv)
{
    Rates r = {.rounds = 7, .lanes = 1};
    const char *what = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--cpu") == 0 && i + 1 < argc)
            r.o.cpu = argv[++i];
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            r.rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            r.only = atoi(argv[++i]);
        else if (what == NULL)
            what = argv[i];
        else
            r.filter = argv[i];
    }
    if (r.rounds < 1 || r.rounds > MOST_ROUNDS) {
        fprintf(stderr, "gradc-rates: 1 to %d rounds\n", MOST_ROUNDS);
        return 2;
    }
    ctx_init(&r.cx);
    r.mach = machine_find(&r.cx, &r.o, &r.arena);
    if (r.mach == NULL) {
        diag_print(&r.cx, stderr);
        return 2;
    }
    printf("gradc for %s, registers of %d bits, LLVM %s\n", r.mach->cpu, r.mach->vec_bytes * 8,
           cpu_llvm_version(&r.arena));
    sections(&r, what);
    ctx_free(&r.cx);
    arena_free(&r.arena);
    return 0;
}
