/* Objects of a net for several processors: what each plans for its registers and caches is
 * another order of the same work, so that all give the same bits. No interpreter could judge
 * nets of such sizes. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GIVEN = 4000 };

/* What calls have given, one after the other. */
typedef struct Bits {
    int32_t n;
    struct Given {
        const char *call, *name;
        DType type;
        int64_t elems;
        const void *at;
    } given[MOST_GIVEN];
} Bits;

static void keep(Bench *b, Bits *bits, const char *call, const char *name, DType type,
                 int64_t elems, const void *at)
{
    if (bits->n == MOST_GIVEN) {
        fprintf(stderr, "gradc-smith: a net of more than %d tensors\n", MOST_GIVEN);
        exit(70);
    }
    struct Given *to = &bits->given[bits->n++];
    size_t bytes = (size_t)(elems * dtype_bytes(type));
    void *copy = arena_alloc(&b->arena, bytes + 1);
    memcpy(copy, at, bytes);
    *to = (struct Given){call, name, type, elems, copy};
}

static bool keep_tensors(Bench *b, Bits *bits, void *g, const char *call, bool gradients)
{
    for (int i = 0; i < b->p->tensor.n; i++) {
        const Tensor *t = &b->p->tensor.at[i];
        const Buffer *x = &b->p->buffer.at[t->buffer];
        if ((x->role == ROLE_GRADIENT) != gradients)
            continue;
        const void *got = bench_tensor(b, g, i, call);
        if (got == NULL)
            return false;
        keep(b, bits, call, t->name, x->dtype, x->elems, got);
    }
    return true;
}

/* A step that meets NaN or an infinity, as of halves, meets them on all processors. */
static bool call_entry(Bench *b, Bits *bits, void *g, const char *name, RunEntry *call)
{
    const Entry *e = program_entry(b->p, name);
    if (e == NULL || call == NULL)
        return true;
    int32_t status = bench_call(b, e, g, call, 0);
    if (status != GRADC_OK && status != GRADC_NONFINITE)
        return fault(b->v, FAULT_STATUS, "%s returns %d (%s)", name, status, b->m->error(g));
    keep(b, bits, name, "the status", I32, 1, &status);
    for (int i = 0; i < e->n_results; i++) {
        const Buffer *x = &b->p->buffer.at[e->result[i].buffer];
        if (e->result[i].wanted)
            keep(b, bits, name, e->result[i].name, x->dtype, x->elems,
                 b->out_block->data[bench_output(b, &e->result[i])]);
    }
    return keep_tensors(b, bits, g, name, strcmp(name, "grad") == 0);
}

/* *bits: NULL where this machine lacks the processor's instructions. */
static bool run(Bench *b, int32_t lanes, Bits **bits)
{
    void *g;
    char *block;
    int status = bench_start(b, lanes, &block, &g);
    *bits = NULL;
    if (status == GRADC_CPU)
        return true;
    if (status != GRADC_OK)
        return fault(b->v, FAULT_STATUS, "init returns %d (%s)", status, b->m->error(block));
    *bits = NEW(&b->arena, Bits);
    return call_entry(b, *bits, g, "grad", b->m->grad) &&
           call_entry(b, *bits, g, "step", b->m->step) && bench_edge(b, block);
}

static bool same_bits(Bench *b, const Bits *want, const Bits *got, const char *what)
{
    for (int i = 0; i < want->n && i < got->n; i++) {
        const struct Given *x = &want->given[i], *y = &got->given[i];
        int64_t at = dtype_first_unlike(x->type, x->at, y->at, x->elems);
        if (at >= 0)
            return fault(b->v, FAULT_TARGET,
                         "%s: %s differs at element %lld of %lld: %.9g, %s %.9g", x->call, x->name,
                         (long long)at, (long long)x->elems, dtype_value(x->type, x->at, at), what,
                         dtype_value(y->type, y->at, at));
    }
    return want->n == got->n || fault(b->v, FAULT_TARGET, "%s gives other tensors", what);
}

/* The net for another processor, or within a budget. */
static bool compare(Bench *native, const char *text, const Bits *want, const char *cpu,
                    BudgetAsked budget, int32_t lanes)
{
    Bench *b = arena_alloc(&native->arena, sizeof *b);
    Bits *got;
    *b = *native;
    b->cpu = cpu;
    if (!bench_open_again(b, text, budget) || !run(b, lanes, &got))
        return false;
    if (got == NULL)
        return true;
    b->v->objects++;
    return same_bits(b, want, got, budget.kind != BUDGET_NONE ? "within the least budget" : cpu);
}

void check_targets(const char *text, uint64_t seed, bool loud, Verdict *v)
{
#if defined(__x86_64__)
    static const char *const level[] = {"x86-64-v3", "haswell", "znver3", "alderlake"};
    static const char *const wide[] = {"x86-64-v4", "icelake-client", "icelake-server",
                                       "sapphirerapids"};
#else
    static const char *const level[] = {"cortex-a53", "cortex-a72", "cortex-a76", "generic"};
    static const char *const wide[] = {"neoverse-n1", "neoverse-v1", "neoverse-n2", "apple-m1"};
#endif
    Bench *b = calloc(1, sizeof *b);
    Bits *want;
    if (b == NULL)
        abort();
    b->v = v;
    b->seed = seed;
    b->as_built = true;
    if (seed % 8 == 6) /* halves, on some processors in another class of numerics: con_pairs.c */
        b->precision = seed % 16 == 6 ? "bf16" : "f16";
    bool halves = b->precision != NULL || strstr(text, "bf16") != NULL;
    b->cpu = halves ? level[0] : NULL;
    BudgetAsked none = {.kind = BUDGET_NONE}, least = {.kind = BUDGET_LEAST};
    uint64_t rng = seed ^ 0x7a29e7;
    if (!bench_open(b, text, loud) || !run(b, 1, &want) || want == NULL)
        return;
    if (!compare(b, text, want, level[random_below(&rng, 4)], none, 2) ||
        !compare(b, text, want, wide[random_below(&rng, 4)], none, 3))
        return;
    if (seed % 8 < 2)
        compare(b, text, want, b->cpu, least, 1 + (int32_t)random_below(&rng, 8));
}
