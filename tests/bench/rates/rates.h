/* Rates of emitted kernels beside libraries, in one run: what gradc-rates is made of. */
#ifndef GRADC_BENCH_RATES_H
#define GRADC_BENCH_RATES_H

#include "cpu/shapes.h"
#include "target/cpu/object.h"

struct gradc_pool;

enum { MOST_ROUNDS = 64 };

typedef struct Rates {
    Ctx cx;
    Arena arena;
    TargetOptions o;
    const Machine *mach;
    const char *filter; /* of rows, by a part of their names; or NULL */
    int rounds;         /* the figures are medians of so many */
    struct gradc_pool *pool;
    int lanes;   /* of the pool; 1: there is none */
    int only;    /* lanes that are asked for; 0: one, then two */
    bool halves; /* products are of bf16, in pairs where the processor has dot products of them */
} Rates;

/* ---- run.c: kernels and loops as code ---------------------------------------------- */

typedef void (*KernelCode)(void **bufs, void *scratch, int64_t begin, int64_t end);

typedef struct Runner {
    Loaded *loaded;
    KernelCode code;
    KernelFn fn;
    int64_t each; /* pieces for each lane */
    void *buf[8];
    char *scratch;
    int64_t scratch_bytes; /* of one lane */
    int n_own;             /* buffers that are freed with it */
} Runner;

/* `buf`: the operands, which stay the caller's; NULL: its own, filled with small numbers. */
Runner runner_new(Rates *r, Kernel *k, void *const *buf);
void runner_free(Runner *r);
/* One call, as an object makes it: on all lanes if there is work enough. */
void runner_call(Rates *r, Runner *x);

/* The pool of an object with so many lanes; the calling thread stays on the first core. */
void lanes_open(Rates *r, int lanes);
void lanes_close(Rates *r);

/* Seconds of the process's processor time with one lane, else of time. */
double seconds_now(const Rates *r);
double median(double *x, int n); /* sorts */
/* Big memory, whole lines, filled with numbers around 0 that `seed` says. */
float *memory_filled(int64_t elems, unsigned seed);

/* ---- probe.c: loops of a few instructions, as wide as the machine's registers ------------- */

typedef void (*ProbeCode)(float *to, const float *from, int64_t n, void *fn);

typedef struct Probe {
    Loaded *loaded;
    ProbeCode code;
} Probe;

typedef enum ProbeKind {
    PROBE_FMA,    /* n rounds of independent multiply-adds in registers: probe_fmas() each */
    PROBE_DOT,    /* ... of dot products of bf16 pairs, which count for two each */
    PROBE_UPDATE, /* to[i] += 1: read, modified, written where it lies */
    PROBE_MAP     /* to[i] = fn(from[i]), a vector function */
} ProbeKind;

Probe probe_new(Rates *r, ProbeKind kind);
void probe_free(Probe *p);
double probe_flops(const Rates *r); /* of a round of PROBE_FMA, or, of halves, of PROBE_DOT */

/* ---- players.c: who takes turns, each in a process of its own ---------------------------------
 */

/* A list of products; `forward_data`: rows whose means are also taken by themselves. */
typedef struct Product {
    const char *name;
    Matmul m;
    bool forward_data;
} Product;

/* Every product by each who is there, in turns; prints rows and geometric means. */
void players_compare(Rates *r, const char *title, const Product *list, int n, int lanes);

/* ---- sections -----------------------------------------------------------------------------------
 */

void lists_print(Rates *r, const char *which); /* "linear-1024", "linear-256", "small" */
void streams_print(Rates *r);
void math_print(Rates *r);

#endif
