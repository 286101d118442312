/* Elementwise kernels over memory beside memcpy and an update in place, and functions beside the
 * vector functions of the C library. */
#include <dlfcn.h>
#include <math.h>
#include "gradc.h"
#include "rates.h"

enum { ELEMS = 1 << 24, IN_CACHE = 4096 };

/* ---- kernels -------------------------------------------------------------------------------- */

static Val number(Kernel *k, double x)
{
    return k_const(k, F32, x);
}

static Val mul(Kernel *k, Val x, Val y)
{
    return k_binary(k, KI_MUL, x, y);
}

static Val add(Kernel *k, Val x, Val y)
{
    return k_binary(k, KI_ADD, x, y);
}

static Val scaled(Kernel *k, double by, Val x)
{
    return mul(k, number(k, by), x);
}

/* 0: to, or what is updated; then what is read. */
static Val load(Kernel *k, int buf, Val i)
{
    return k_load(k, buf, k_aff_val(i, 1));
}

static void store(Kernel *k, int buf, Val i, Val x)
{
    k_store(k, buf, k_aff_val(i, 1), x);
}

static void body_add(Kernel *k, Val i)
{
    Val x = load(k, 1, i), y = load(k, 2, i);
    store(k, 0, i, add(k, x, y));
}

/* tanh(sqrt(2/pi) (x + 0.044715 x^3)) */
static Val gelu_tanh(Kernel *k, Val x)
{
    Val cube = mul(k, mul(k, x, x), x);
    return k_unary(k, KI_TANH, scaled(k, 0.7978845608, add(k, x, scaled(k, 0.044715, cube))));
}

static void body_gelu(Kernel *k, Val i)
{
    Val x = load(k, 1, i), t = gelu_tanh(k, x);
    store(k, 0, i, mul(k, scaled(k, 0.5, x), add(k, t, number(k, 1))));
}

static void body_gelu_back(Kernel *k, Val i)
{
    Val x = load(k, 1, i), ct = load(k, 2, i), t = gelu_tanh(k, x);
    Val inner = add(k, scaled(k, 0.1070322243, mul(k, x, x)), number(k, 0.7978845608));
    Val slope = k_binary(k, KI_SUB, number(k, 1), mul(k, t, t));
    Val second = mul(k, scaled(k, 0.5, x), mul(k, slope, inner));
    Val first = scaled(k, 0.5, add(k, t, number(k, 1)));
    store(k, 0, i, mul(k, ct, add(k, first, second)));
}

/* p, m, v in place, of g. */
static void body_adamw(Kernel *k, Val i)
{
    Val p = load(k, 0, i), g = load(k, 1, i), m = load(k, 2, i), v = load(k, 3, i);
    Val old = scaled(k, 0.9, m), square = mul(k, g, g);
    m = add(k, old, scaled(k, 0.1, g));
    old = scaled(k, 0.999, v);
    v = add(k, old, scaled(k, 0.001, square));
    Val root = k_unary(k, KI_SQRT, scaled(k, 1.7, v));
    Val step = k_binary(k, KI_DIV, scaled(k, 1.3, m), add(k, root, number(k, 1e-8)));
    step = add(k, step, scaled(k, 0.01, p));
    store(k, 0, i, k_binary(k, KI_SUB, p, scaled(k, 1e-3, step)));
    store(k, 2, i, m);
    store(k, 3, i, v);
}

typedef struct Stream {
    const char *name;
    void (*body)(Kernel *k, Val i); /* NULL: memcpy, the update */
    int reads, writes;              /* buffers */
    bool update;                    /* in place: beside the update, else beside memcpy */
} Stream;

static const Stream stream[] = {
    {"memcpy", NULL, 1, 1, false},
    {"x += 1", NULL, 1, 1, true},
    {"x + y", body_add, 2, 1, false},
    {"gelu", body_gelu, 1, 1, false},
    {"gelu, reverse", body_gelu_back, 2, 1, false},
    {"adamw", body_adamw, 4, 3, true},
};
enum { COPY, UPDATE, N_STREAMS = sizeof stream / sizeof *stream };

static Kernel *make_stream(Rates *r, const Stream *s)
{
    Kernel *k = kernel_new(&r->arena, K_LOOP, "stream");
    for (int b = 0; b < 4; b++) {
        bool out = b == 0 || (s->writes == 3 && b != 1), in = b != 0 || s->update;
        k_buf(k, F32, ELEMS, out && in ? K_INOUT : out ? K_OUT : K_IN);
    }
    Val i = k_par(k, ELEMS);
    s->body(k, i);
    k_end(k, i);
    k_finish(k);
    return k;
}

/* ---- bandwidth ----------------------------------------------------------------------------------
 */

typedef struct Part {
    float *to;
    const float *from;
    const Probe *update; /* NULL: memcpy */
    int lanes;
} Part;

static void part(void *arg, int64_t i, int32_t lane)
{
    (void)lane;
    const Part *p = arg;
    int64_t n = ELEMS / p->lanes, at = i * n;
    if (p->update != NULL)
        p->update->code(p->to + at, p->from + at, n, NULL);
    else
        memcpy(p->to + at, p->from + at, (size_t)n * 4);
}

static void run_parts(Rates *r, Part *p)
{
    p->lanes = r->lanes;
    if (r->lanes > 1)
        gradc_pool_parallel_for(r->pool, r->lanes, part, p);
    else
        part(p, 0, 0);
}

static void print_streams(Rates *r, double rate[][MOST_ROUNDS])
{
    printf("\nstreams of %d MiB each, %d thread%s, medians of %d rounds\n", ELEMS / 262144,
           r->lanes, r->lanes > 1 ? "s" : "", r->rounds);
    printf("%-18s %8s %8s   %s\n", "kernel", "ns/elem", "GB/s", "share of");
    for (int s = 0; s < N_STREAMS; s++) {
        int over = stream[s].update ? UPDATE : COPY;
        double ratio[MOST_ROUNDS];
        for (int i = 0; i < r->rounds; i++)
            ratio[i] = rate[s][i] / rate[over][i];
        double share = median(ratio, r->rounds);
        double all[MOST_ROUNDS];
        memcpy(all, rate[s], sizeof all);
        double gb = median(all, r->rounds);
        printf("%-18s %8.3f %8.1f   %.2f %s\n", stream[s].name,
               4.0 * (stream[s].reads + stream[s].writes) / gb, gb, share, stream[over].name);
    }
    fflush(stdout);
}

static void bandwidth(Rates *r, int lanes)
{
    static double rate[N_STREAMS][MOST_ROUNDS];
    lanes_open(r, lanes);
    void *buf[8];
    for (int b = 0; b < 4; b++)
        buf[b] = memory_filled(ELEMS, 1 + (unsigned)b);
    for (int64_t i = 0; i < ELEMS; i++)
        ((float *)buf[3])[i] = fabsf(((float *)buf[3])[i]);
    Probe update = probe_new(r, PROBE_UPDATE);
    Runner x[N_STREAMS];
    for (int s = UPDATE + 1; s < N_STREAMS; s++)
        x[s] = runner_new(r, make_stream(r, &stream[s]), buf);
    for (int round = -1; round < r->rounds; round++)
        for (int s = 0; s < N_STREAMS; s++) {
            Part p = {buf[0], buf[1], s == UPDATE ? &update : NULL, 1};
            double t = seconds_now(r);
            if (stream[s].body == NULL)
                run_parts(r, &p);
            else
                runner_call(r, &x[s]);
            t = seconds_now(r) - t;
            if (round >= 0)
                rate[s][round] = 4e-9 * (double)ELEMS * (stream[s].reads + stream[s].writes) / t;
        }
    print_streams(r, rate);
    for (int s = UPDATE + 1; s < N_STREAMS; s++)
        runner_free(&x[s]);
    probe_free(&update);
    for (int b = 0; b < 4; b++)
        gradc_free(buf[b]);
    lanes_close(r);
}

void streams_print(Rates *r)
{
    for (int lanes = 1; lanes <= 2; lanes++)
        if (r->only == 0 || r->only == lanes)
            bandwidth(r, lanes);
}

/* ---- functions
 * ------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    KOp op;
    bool positive;
} function[] = {
    {"exp", KI_EXP, false},
    {"log", KI_LOG, true},
    {"tanh", KI_TANH, false},
    {"erf", KI_ERF, false},
};

static Kernel *make_function(Rates *r, KOp op)
{
    Kernel *k = kernel_new(&r->arena, K_LOOP, "function");
    int to = k_buf(k, F32, IN_CACHE, K_OUT), from = k_buf(k, F32, IN_CACHE, K_IN);
    Val i = k_par(k, IN_CACHE);
    k_store(k, to, k_aff_val(i, 1), k_unary(k, op, k_load(k, from, k_aff_val(i, 1))));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Of the widest registers; NULL: the C library has none. */
static void *vector_function(const Machine *m, const char *name)
{
    char symbol[64];
    int lanes = m->vec_bytes / 4;
    const char *set = lanes == 16 ? "e" : lanes == 8 ? "d" : "b";
    void *lib = m->arch == ARCH_X86_64 ? dlopen("libmvec.so.1", RTLD_NOW) : NULL;
    snprintf(symbol, sizeof symbol, "_ZGV%sN%dv_%sf", set, lanes, name);
    return lib != NULL ? dlsym(lib, symbol) : NULL;
}

enum { CALLS = 2000 };

static double time_function(Rates *r, Runner *x, const Probe *map, void *fn)
{
    double t = seconds_now(r);
    for (int i = 0; i < CALLS; i++)
        if (fn != NULL)
            map->code(x->buf[0], x->buf[1], IN_CACHE, fn);
        else
            runner_call(r, x);
    return (seconds_now(r) - t) * 1e9 / ((double)CALLS * (double)IN_CACHE);
}

static void one_function(Rates *r, int f, const Probe *map)
{
    double own[MOST_ROUNDS], other[MOST_ROUNDS] = {0}, ratio[MOST_ROUNDS];
    Runner x = runner_new(r, make_function(r, function[f].op), NULL);
    float *from = x.buf[1];
    for (int i = 0; i < IN_CACHE; i++) { /* -8 to 8, or from 2^-8 to 2^8 */
        float at = (float)(i * 37 % IN_CACHE) / (IN_CACHE / 16) - 8;
        from[i] = function[f].positive ? exp2f(at) : at;
    }
    void *fn = vector_function(r->mach, function[f].name);
    for (int i = -1; i < r->rounds; i++) {
        int at = i < 0 ? 0 : i;
        own[at] = time_function(r, &x, NULL, NULL);
        other[at] = fn != NULL ? time_function(r, &x, map, fn) : NAN;
        ratio[at] = other[at] / own[at];
    }
    printf("%-18s %8.3f", function[f].name, median(own, r->rounds));
    if (fn != NULL)
        printf(" %8.3f %6.2f", median(other, r->rounds), median(ratio, r->rounds));
    printf("\n");
    fflush(stdout);
    runner_free(&x);
}

void math_print(Rates *r)
{
    Probe map = probe_new(r, PROBE_MAP);
    printf("\nfunctions, f32, %d elements in the first cache, ns per element, one thread\n",
           IN_CACHE);
    printf("%-18s %8s %8s %6s\n", "function", "gradc", "libmvec", "ratio");
    for (size_t f = 0; f < sizeof function / sizeof *function; f++)
        one_function(r, (int)f, &map);
    probe_free(&map);
}
