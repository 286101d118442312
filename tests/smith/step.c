/* A step by definition: the step's graph, each op with plain loops over elements, against the
 * program with its kernels, its storage that is written in place, its order and its
 * memory that values share. In double, so that they differ by the order of sums alone. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../support/eval.h"

typedef struct Step {
    Verdict *v;
    const Program *p;
    const Graph *g;
    Judge *judge;
    Arena *arena;
    const void **in;
    Value *slot, *input; /* before the step */
    int n_slots;
    const Value *value; /* by Ref: by definition */
    bool signs;         /* parameters move by the sign of a gradient */
    bool finite;
} Step;

static double number_at(DType t, const void *data, int64_t i)
{
    switch (t) {
    case F64:
        return ((const double *)data)[i];
    case F32:
        return (double)((const float *)data)[i];
    case I64:
        return (double)((const int64_t *)data)[i];
    case I32:
        return ((const int32_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

/* What the judge holds: double, or integers of 64 bits. */
static double held(const Step *s, int32_t buffer, int64_t i)
{
    const Buffer *b = &s->p->buffer.at[buffer];
    return number_at(dtype_is_float(b->dtype) ? F64 : I64, judge_data(s->judge, buffer), i);
}

/* ---- what the step is given ------------------------------------------------ */

static void take_slots(Step *s, int n)
{
    s->slot = NEW_ARRAY(s->arena, Value, n);
    s->n_slots = n;
    for (int32_t i = 0; i < n; i++) {
        const Buffer *b = &s->p->buffer.at[i];
        Type t = {.dtype = b->dtype, .rank = b->rank};
        memcpy(t.dim, b->shape, sizeof t.dim);
        s->slot[i] = value_new(&t, s->arena);
        for (int64_t k = 0; k < b->elems; k++)
            s->slot[i].x[k] = held(s, i, k);
    }
    if (s->p->rows >= 0)
        s->slot[s->p->rows].x[0] = (double)(s->p->batch_rows * s->p->accumulate);
}

static void take_inputs(Step *s)
{
    s->input = NEW_ARRAY(s->arena, Value, s->p->input.n);
    for (int i = 0; i < s->p->input.n; i++) {
        const Input *in = &s->p->input.at[i];
        Type t = type_make(in->dtype, 1, &in->elems);
        s->input[i] = value_new(&t, s->arena);
        for (int64_t k = 0; k < in->elems; k++)
            s->input[i].x[k] = number_at(in->dtype, s->in[i], k);
    }
}

/* ---- what it gives ----------------------------------------------------------- */

/* Floats of which each is the next one or so. */
static Value *shaken(Step *s, const Value *from, const DType *type, int n, uint64_t seed)
{
    Value *to = NEW_ARRAY(s->arena, Value, n);
    for (int i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].x = NEW_ARRAY(s->arena, double, from[i].n);
        for (int64_t k = 0; k < from[i].n; k++) {
            double by = (double)(int64_t)(hash_mix(seed + (uint64_t)k * 31 + (uint64_t)i) >> 32);
            to[i].x[k] = from[i].x[k];
            if (dtype_is_float(type[i]))
                to[i].x[k] *= 1 + (by / 0x1p31 - 1) * 1e-14;
        }
    }
    return to;
}

/* By definition, the element moves as far where what is given moves by roundings: it is a
 * quotient of differences that are 0 but for roundings, say, and can be anything. */
static bool is_noise(Step *s, Ref r, int64_t element, double off)
{
    int n_slots = s->n_slots, n_inputs = s->p->input.n;
    DType *slot = NEW_ARRAY(s->arena, DType, n_slots),
          *input = NEW_ARRAY(s->arena, DType, n_inputs);
    for (int i = 0; i < n_slots; i++)
        slot[i] = s->p->buffer.at[i].dtype;
    for (int i = 0; i < n_inputs; i++)
        input[i] = s->p->input.at[i].dtype;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        Feed feed = {.slot = shaken(s, s->slot, slot, n_slots, seed),
                     .input = shaken(s, s->input, input, n_inputs, seed + 100)};
        double moved = eval_graph(s->g, &feed, s->arena)[r].x[element];
        if (!(fabs(moved - s->value[r].x[element]) < 0.1 * fabs(off)))
            return true;
    }
    return false;
}

static bool compare(Step *s, const char *what, const char *name, int32_t buffer, const Value *want,
                    Ref r)
{
    double most = 0;
    for (int64_t k = 0; k < want->n; k++)
        most = fmax(most, fabs(want->x[k]));
    for (int64_t k = 0; k < want->n; k++) {
        double is = held(s, buffer, k), w = want->x[k];
        bool same = (isnan(is) && isnan(w)) || is == w || fabs(is - w) <= 1e-6 * most + 1e-9;
        if (!same && (eval_near_tie || is_noise(s, r, k, is - w))) {
            s->v->ties++;
            return false;
        }
        if (!same)
            return fault(s->v, FAULT_DEFINED, "%s %s[%lld] is %.12g, and by definition %.12g", what,
                         name, (long long)k, is, w);
    }
    return true;
}

static int32_t result_buffer(const Program *p, const char *name)
{
    const Entry *e = program_entry(p, "step");
    for (int i = 0; i < e->n_results; i++)
        if (strcmp(e->result[i].name, name) == 0)
            return e->result[i].buffer;
    return -1;
}

static void compare_roots(Step *s)
{
    for (int i = 0; i < s->g->root.n; i++)
        if (s->g->root.at[i].kind == ROOT_FINITE)
            s->finite = s->value[s->g->root.at[i].ref].x[0] != 0;
    for (int i = 0; i < s->g->root.n; i++) {
        const Root *r = &s->g->root.at[i];
        const Value *now = &s->value[r->ref];
        if (r->kind == ROOT_ASSIGN && r->guarded && !s->finite)
            now = &s->slot[r->slot];
        /* of a gradient that is 0 but for the order of a sum, the sign is anything */
        if (r->kind == ROOT_ASSIGN && s->signs && s->p->buffer.at[r->slot].role == ROLE_PARAM)
            continue;
        if (r->kind == ROOT_ASSIGN && !compare(s, "new", r->name, r->slot, now, r->ref))
            return;
        bool result = r->kind == ROOT_LOSS || r->kind == ROOT_OUTPUT || r->kind == ROOT_METRIC;
        if (result && !compare(s, "result", r->name, result_buffer(s->p, r->name), now, r->ref))
            return;
    }
}

void check_step(const Program *p, const Graph *g, int n_slots, Judge *judge, const void **in,
                bool signs, Verdict *v)
{
    Arena arena = {0};
    Step s = {.v = v,
              .p = p,
              .g = g,
              .judge = judge,
              .arena = &arena,
              .in = in,
              .signs = signs,
              .finite = true};
    take_slots(&s, n_slots);
    take_inputs(&s);
    eval_near_tie = false;
    s.value = eval_graph(g, &(Feed){.input = s.input, .slot = s.slot}, &arena);
    int status = judge_run(judge, "step", in, 0);
    if (status == RUN_OK)
        compare_roots(&s);
    arena_free(&arena);
}
