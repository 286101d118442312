#include "segments.h"

#include "decode.h"

/* Executions of all schedules that are tried. */
enum { MOST_RUNS = 8000000 };

typedef struct Forward {
    const Problem *p;
    int32_t moment;   /* the last node */
    int64_t *written; /* by node: bytes of all outputs up to it */
    int64_t *cross;   /* by node: bytes behind it that nodes up to the moment still read */
    int32_t *last;    /* by node: its last reader up to the moment, or itself */
    bool *kept;
} Forward;

static int32_t most_live(const Sequence *base)
{
    int32_t at = 0;
    for (int32_t t = 1; t < base->n; t++)
        if (base->live[t] > base->live[at])
            at = t;
    return base->node[at];
}

static void measure(Forward *f, Arena *arena)
{
    const Problem *p = f->p;
    int32_t n = f->moment + 1;
    f->written = NEW_ARRAY(arena, int64_t, n);
    f->cross = NEW_ARRAY(arena, int64_t, n + 1);
    f->last = NEW_ARRAY(arena, int32_t, n);
    f->kept = NEW_ARRAY(arena, bool, p->n);
    for (int32_t v = 0; v < n; v++) {
        f->last[v] = v;
        f->written[v] = p->node[v].bytes + (v > 0 ? f->written[v - 1] : 0);
        for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++)
            f->last[p->input[i]] = v;
    }
    for (int32_t v = 0; v < n; v++) {
        f->cross[v] += p->node[v].bytes;
        f->cross[f->last[v]] -= p->node[v].bytes;
    }
    for (int32_t v = 1; v < n; v++)
        f->cross[v] += f->cross[v - 1];
}

/* Where the least crosses, within a half of a segment around `goal` bytes written. */
static int32_t find_cut(const Forward *f, int32_t from, int64_t goal, int64_t reach)
{
    int32_t best = -1;
    for (int32_t v = from; v < f->moment && f->written[v] <= goal + reach; v++)
        if (f->written[v] >= goal - reach && (best < 0 || f->cross[v] < f->cross[best]))
            best = v;
    return best;
}

static void keep_crossing(Forward *f, int32_t cut)
{
    for (int32_t v = 0; v <= cut; v++)
        f->kept[v] = f->kept[v] || f->last[v] > cut;
}

/* False: two segments would be one. */
static bool cut_into(Forward *f, int32_t segments)
{
    int64_t all = f->written[f->moment], each = all / segments;
    int32_t from = 0;
    for (int32_t v = 0; v < f->p->n; v++)
        f->kept[v] = false;
    for (int32_t i = 1; i < segments; i++) {
        int32_t cut = find_cut(f, from, each * i, each / 2);
        if (cut < 0)
            return false;
        keep_crossing(f, cut);
        from = cut + 1;
    }
    return true;
}

static bool is_dominated(const Segmented *s, const Sequence *by)
{
    for (int32_t i = 0; i < s->n; i++)
        if (s->at[i]->max_live <= by->max_live && s->at[i]->cost <= by->cost)
            return true;
    return false;
}

static void offer(Segmented *to, const Forward *f, const Sequence *base, DecodeHow how, Arena *out)
{
    ArenaMark mark = arena_mark(out);
    KeepSet keep = {.moment = f->moment, .kept = f->kept};
    Sequence *s = to->n < MOST_SEGMENTED ? decode(f->p, base->node, &keep, how, out) : NULL;
    if (s != NULL && s->max_live < base->max_live && !is_dominated(to, s))
        to->at[to->n++] = s;
    else
        arena_reset(out, mark);
}

Segmented segmented(const Problem *p, const Sequence *base, Arena *out)
{
    Segmented to = {0};
    Arena scratch = {0};
    Forward f = {.p = p, .moment = p->n > 0 ? most_live(base) : -1};
    if (f.moment >= 0)
        measure(&f, &scratch);
    int64_t runs = 0;
    for (int32_t n = 2; n <= f.moment / 3 && runs < MOST_RUNS; n += n < 4 ? 1 : n / 4) {
        if (!cut_into(&f, n))
            break;
        offer(&to, &f, base, RUN_ONCE_MORE, out);
        offer(&to, &f, base, RUN_FOR_EACH, out);
        runs += 4 * (int64_t)p->n;
    }
    arena_free(&scratch);
    return to;
}
