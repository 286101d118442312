#include "decode.h"

#include <string.h>

enum { MOST_TIMES = 12 }; /* executions, on average over all nodes */

typedef struct Decoder {
    const Problem *p;
    const bool *kept;
    const DecodeParts *parts; /* or NULL */
    Arena *arena;
    bool *there;       /* by node */
    bool *ran;         /* by node */
    int32_t *last_use; /* by node: position in the order of its last reader */
    int32_t *stack;
    int64_t cost;
    bool too_much;        /* it costs more than 62 bits hold, or runs too late */
    VEC(int32_t) run;     /* the schedule */
    VEC(int32_t) passing; /* what ran again since the last node of the order */
} Decoder;

static void emit(Decoder *d, int32_t v)
{
    d->too_much = d->too_much || d->cost > (INT64_C(1) << 62) - d->p->node[v].cost;
    for (int32_t i = d->p->stop_at[v]; i < d->p->stop_at[v + 1]; i++)
        d->too_much = d->too_much || d->ran[d->p->stop[i]];
    d->cost += d->too_much ? 0 : d->p->node[v].cost;
    if (d->ran[v])
        vec_push(d->arena, &d->passing, v);
    vec_push(d->arena, &d->run, v);
    d->there[v] = d->ran[v] = true;
}

static int32_t missing_input(const Decoder *d, int32_t v)
{
    const Problem *p = d->p;
    for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++)
        if (!d->there[p->input[i]])
            return p->input[i];
    return -1;
}

/* Runs v, after everything that it needs and that is not there. */
static void produce(Decoder *d, int32_t v)
{
    int32_t n = 0;
    d->stack[n++] = v;
    while (n > 0) {
        int32_t input = missing_input(d, d->stack[n - 1]);
        if (input >= 0)
            d->stack[n++] = input;
        else
            emit(d, d->stack[--n]);
    }
}

/* What is not kept after the moment. */
static void forget(Decoder *d, int32_t moment)
{
    const Problem *p = d->p;
    for (int32_t v = 0; v < p->n; v++)
        d->there[v] = d->ran[v] && (d->kept[v] || v == moment || !p->node[v].pure);
}

/* After position t of the order: what ran again and is not read any more goes. */
static void drop_passing(Decoder *d, int32_t t)
{
    int32_t left = 0;
    for (int32_t i = 0; i < d->passing.n; i++) {
        int32_t v = d->passing.at[i];
        if (d->last_use[v] > t)
            d->passing.at[left++] = v;
        else
            d->there[v] = false;
    }
    d->passing.n = left;
}

/* After position t of the order, which is at work on a part: what ran again on the way to that
 * goes, but for what crosses. */
static void leave_parts(Decoder *d, int32_t v)
{
    const Problem *p = d->p;
    int32_t part = -1;
    for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++)
        if (d->parts->part[p->input[i]] > part)
            part = d->parts->part[p->input[i]];
    for (int32_t i = 0; i < d->passing.n; i++) {
        int32_t u = d->passing.at[i];
        if (d->parts->part[u] < part && !d->parts->crossing[u] && !d->kept[u])
            d->there[u] = false;
    }
    d->passing.n = 0;
}

static void find_last_uses(Decoder *d, const int32_t *order)
{
    const Problem *p = d->p;
    for (int32_t t = 0; t < p->n; t++)
        for (int32_t i = p->input_at[order[t]]; i < p->input_at[order[t] + 1]; i++)
            d->last_use[p->input[i]] = t;
    for (int32_t v = 0; v < p->n; v++)
        if (p->node[v].keep)
            d->last_use[v] = p->n;
}

static bool decode_order(Decoder *d, const int32_t *order, int32_t moment, DecodeHow how)
{
    const Problem *p = d->p;
    for (int32_t t = 0; t < p->n; t++) {
        produce(d, order[t]);
        if (order[t] == moment)
            forget(d, moment);
        if (how == RUN_FOR_EACH)
            drop_passing(d, t);
        if (d->parts != NULL)
            leave_parts(d, order[t]);
        if (d->too_much || d->run.n / MOST_TIMES > p->n)
            return false;
    }
    for (int32_t v = 0; v < p->n; v++)
        if (p->node[v].keep && !d->there[v])
            produce(d, v);
    return !d->too_much;
}

static Sequence *decode_all(const Problem *p, const int32_t *order, const KeepSet *keep,
                            DecodeHow how, const DecodeParts *parts, Arena *out)
{
    Arena scratch = {0};
    Decoder d = {.p = p, .kept = keep->kept, .parts = parts, .arena = &scratch};
    d.there = NEW_ARRAY(&scratch, bool, p->n);
    d.ran = NEW_ARRAY(&scratch, bool, p->n);
    d.last_use = NEW_ARRAY(&scratch, int32_t, p->n);
    d.stack = NEW_ARRAY(&scratch, int32_t, p->n);
    find_last_uses(&d, order);
    Sequence *s = NULL;
    if (decode_order(&d, order, keep->moment, how))
        s = sequence_of(p, d.run.at, d.run.n, out);
    arena_free(&scratch);
    return s;
}

Sequence *decode(const Problem *p, const int32_t *order, const KeepSet *keep, DecodeHow how,
                 Arena *out)
{
    return decode_all(p, order, keep, how, NULL, out);
}

Sequence *decode_parts(const Problem *p, const int32_t *order, const KeepSet *keep,
                       const DecodeParts *parts, Arena *out)
{
    return decode_all(p, order, keep, RUN_ONCE_MORE, parts, out);
}

/* ---- within a budget -------------------------------------------------------------------- */

enum { MOST_TRIES = 12 };

Sequence *decode_within(const Problem *p, const int32_t *order, const KeepSet *keep, int64_t budget,
                        int64_t *work, Sequence **lowest, Arena *out)
{
    Sequence *best = NULL;
    KeepSet k = *keep;
    int64_t room = budget;
    for (int i = 0; i < MOST_TRIES && k.kept != NULL; i++) {
        int64_t over = INT64_MAX;
        for (int how = RUN_ONCE_MORE; how <= (int)RUN_FOR_EACH; how++) {
            ArenaMark mark = arena_mark(out);
            Sequence *s = decode(p, order, &k, (DecodeHow)how, out);
            if (s == NULL)
                continue;
            bool better = s->max_live <= budget && (best == NULL || s->cost < best->cost);
            if (lowest != NULL && (*lowest == NULL || s->max_live < (*lowest)->max_live))
                *lowest = s;
            int64_t above = s->max_live - budget;
            over = above < over ? above : over;
            if (better)
                best = s;
            else if (lowest == NULL)
                arena_reset(out, mark);
        }
        if (over <= 0 || over == INT64_MAX)
            break;
        room -= over / 2 + 1;
        k.kept = room > 0 && *work >= 0 ? bound_keep(p, keep->moment, room, work, out) : NULL;
    }
    return best;
}
