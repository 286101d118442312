#include "polish.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "slots.h"

typedef struct Polish {
    const Problem *p;
    PolishAim aim;
    Slots x;
    uint64_t random;
    double temperature;
    double energy;
    double thin;                  /* falls to 0, as the temperature does */
    int32_t left;                 /* executions that a move may still add */
    int64_t best_peak, best_cost; /* of the best schedule so far, */
    double best_area;
    bool is_copied; /* which is best[], or else is in the slots when all changes are undone */
    int mark;       /* changes up to here are those of accepted moves */
    int32_t *best, *now;
    int32_t n_best, cap;
    Arena arena;
} Polish;

/* ---- chance ------------------------------------------------------------------------- */

/* source: Marsaglia, Xorshift RNGs (2003). */
static uint64_t chance(Polish *q)
{
    q->random ^= q->random << 13;
    q->random ^= q->random >> 7;
    q->random ^= q->random << 17;
    return q->random;
}

static int32_t below(Polish *q, int32_t n)
{
    return (int32_t)(((chance(q) >> 32) * (uint64_t)n) >> 32);
}

/* -ln of a number drawn between 0 and 1: by arithmetic that is the same everywhere. */
static double exponential(Polish *q)
{
    int e;
    double m = frexp((double)((chance(q) >> 11) + 1), &e); /* of 2^53 */
    double z = (m - 1) / (m + 1), zz = z * z;
    double log_m = 2 * z * (1 + zz * (1.0 / 3 + zz * (1.0 / 5 + zz * (1.0 / 7 + zz / 9))));
    return (53 - e) * 0.6931471805599453 - log_m;
}

/* ---- how good ------------------------------------------------------------------------- */

static const double penalty = 4; /* of the share above the budget */

static double energy_of(const Polish *q)
{
    double cost = q->p->cost_base > 0 ? (double)q->x.cost / (double)q->p->cost_base : 1;
    int64_t room = q->aim.budget - q->p->pinned;
    int64_t over = slots_peak(&q->x) - room;
    if (q->thin > 0)
        cost += q->thin * q->x.area / ((double)q->x.n * (double)(room > 0 ? room : 1));
    if (over <= 0)
        return cost;
    double share = (double)over / (double)(room > 0 ? room : 1);
    return cost * (1 + penalty * share) + penalty * share;
}

static bool is_better(const Polish *q, int64_t peak, int64_t cost)
{
    int64_t room = q->aim.budget - q->p->pinned;
    if (peak <= room && q->best_peak <= room && cost == q->best_cost)
        return q->thin > 0 && q->x.area < q->best_area;
    if (peak <= room)
        return q->best_peak > room || cost < q->best_cost;
    return peak < q->best_peak || (peak == q->best_peak && cost < q->best_cost);
}

/* Goes on from what is in the slots. To copy every best schedule would take longer than all else
 * in a deep net: what has changed since then is remembered instead. */
static void go_on(Polish *q)
{
    int64_t peak = slots_peak(&q->x);
    if (is_better(q, peak, q->x.cost)) {
        q->best_peak = peak;
        q->best_cost = q->x.cost;
        q->best_area = q->x.area;
        q->is_copied = false;
        slots_keep(&q->x);
    }
    if (q->is_copied)
        slots_keep(&q->x);
    q->mark = q->x.change.n;
}

static void grow(Polish *q)
{
    q->cap = 2 * q->x.n_run;
    q->now = NEW_ARRAY(&q->arena, int32_t, q->cap);
    int32_t *best = NEW_ARRAY(&q->arena, int32_t, q->cap);
    if (q->n_best > 0)
        memcpy(best, q->best, (size_t)q->n_best * sizeof *best);
    q->best = best;
}

/* Copies the best schedule, and spreads the slots evenly. */
static void end_phase(Polish *q)
{
    int32_t most = q->x.n_run;
    for (int i = 0; i < q->x.change.n; i++)
        most += !q->x.change.at[i].added;
    if (most > q->cap)
        grow(q);
    int32_t n = slots_order(&q->x, q->now);
    if (!q->is_copied) {
        slots_undo(&q->x, 0);
        q->n_best = slots_order(&q->x, q->best);
        q->is_copied = true;
    }
    slots_load(&q->x, q->now, n);
    q->mark = 0;
    q->best_area = INFINITY; /* of slots that were filled otherwise */
    q->energy = energy_of(q);
}

/* ---- moves ------------------------------------------------------------------------------ */

/* The nearest empty slot below `slot`, above `floor`; -1 if there is none. */
static int32_t empty_below(const Polish *q, int32_t slot, int32_t floor)
{
    for (int32_t t = slot - 1; t > floor; t--)
        if (q->x.node[t] < 0)
            return t;
    return -1;
}

static int32_t empty_above(const Polish *q, int32_t slot, int32_t ceiling)
{
    for (int32_t t = slot + 1; t < ceiling; t++)
        if (q->x.node[t] < 0)
            return t;
    return -1;
}

static int32_t empty_between(Polish *q, int32_t low, int32_t high)
{
    if (high - low < 2)
        return -1;
    int32_t t = low + 1 + below(q, high - low - 1);
    return q->x.node[t] < 0 ? t : empty_below(q, t, low);
}

/* Runs v in the slot; inputs that are not there any more run again as well, or stay. */
static bool run_again(Polish *q, int32_t v, int32_t slot, int32_t floor, int depth)
{
    const Problem *p = q->p;
    for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++) {
        int32_t u = p->input[i], j = slots_before(&q->x.run[u], slot);
        if (j < 0)
            return false;
        int32_t end = slots_end(&q->x, u, j);
        if (end >= slot || depth == 0 || !p->node[u].pure || chance(q) & 1 << 20)
            continue;
        int32_t at = empty_below(q, slot, end > floor ? end : floor);
        if (at >= 0 && !run_again(q, u, at, end > floor ? end : floor, depth - 1))
            return false;
    }
    return q->left-- > 0 && q->x.node[slot] < 0 && slots_add(&q->x, v, slot);
}

/* A value that lies idle over the slot, by drawing. */
static int32_t idle_over(Polish *q, int32_t slot, int32_t *run)
{
    for (int tries = 0; tries < 40; tries++) {
        int32_t v = below(q, q->p->n);
        if (!q->p->node[v].pure || q->p->node[v].bytes == 0)
            continue;
        int32_t i = slots_before(&q->x.run[v], slot);
        if (i < 0 || slots_end(&q->x, v, i) <= slot)
            continue;
        if (q->x.node[slot] >= 0) { /* not read right there */
            const SlotList *use = &q->x.use[v];
            int32_t j = slots_before(use, slot + 1);
            if (j >= 0 && use->at[j] == slot)
                continue;
        }
        *run = i;
        return v;
    }
    return -1;
}

/* Frees the peak of one value: it runs again before its next use. */
static bool drop_idle(Polish *q)
{
    int32_t run, slot = below(q, 4) > 0 ? slots_peak_slot(&q->x, chance(q)) : below(q, q->x.n);
    int32_t v = idle_over(q, slot, &run);
    if (v < 0)
        return false;
    const SlotList *use = &q->x.use[v];
    int32_t j = slots_before(use, slot + 1) + 1;
    int32_t next = j < use->n ? use->at[j] : q->x.n;
    int32_t at = below(q, 4) > 0 ? empty_below(q, next, slot) : empty_between(q, slot, next);
    return at >= 0 && run_again(q, v, at, slot, 1 + below(q, 8));
}

/* What v read in the slot may have no reader left: then it need not have run. */
static void cascade(Polish *q, int32_t v, int32_t slot, int depth)
{
    const Problem *p = q->p;
    for (int32_t i = p->input_at[v]; depth > 0 && i < p->input_at[v + 1]; i++) {
        int32_t u = p->input[i];
        const SlotList *run = &q->x.run[u];
        int32_t j = slots_before(run, slot);
        if (run->n < 2 || j < 0 || slots_end(&q->x, u, j) != run->at[j])
            continue;
        int32_t at = run->at[j];
        if (slots_remove(&q->x, u, at))
            cascade(q, u, at, depth - 1);
    }
}

static bool remove_one(Polish *q)
{
    if (q->x.n_twice == 0)
        return false;
    int32_t v = q->x.twice[below(q, q->x.n_twice)];
    int32_t slot = q->x.run[v].at[below(q, q->x.run[v].n)];
    if (!slots_remove(&q->x, v, slot))
        return false;
    cascade(q, v, slot, 16);
    return true;
}

/* Where an execution may go without changing what reads what: between the last of its
 * inputs and the first of its readers. */
static void window(const Polish *q, int32_t v, int32_t slot, int32_t *low, int32_t *high)
{
    const Problem *p = q->p;
    *low = -1;
    for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++) {
        const SlotList *run = &q->x.run[p->input[i]];
        int32_t at = run->at[slots_before(run, slot)];
        *low = at > *low ? at : *low;
    }
    const SlotList *use = &q->x.use[v];
    int32_t j = slots_before(use, slot) + 1;
    *high = j < use->n ? use->at[j] : q->x.n;
}

static bool shift(Polish *q)
{
    int32_t low, high, at, tries = 0, slot = below(q, q->x.n);
    while (q->x.node[slot] < 0 && ++tries < 64)
        slot = (slot + 1) & (q->x.n - 1);
    int32_t v = q->x.node[slot];
    if (v < 0)
        return false;
    window(q, v, slot, &low, &high);
    switch (below(q, 5)) {
    case 0:
        at = empty_below(q, high, slot);
        break;
    case 1:
        at = empty_above(q, low, slot);
        break;
    case 2:
        at = empty_between(q, low, high);
        break;
    default: { /* not far */
        int32_t far = 1 + (q->x.n >> (3 + below(q, 8)));
        int32_t from = slot - far > low ? slot - far : low;
        int32_t to = slot + far < high ? slot + far : high;
        at = empty_between(q, from, to);
    }
    }
    return at >= 0 && at != slot && slots_add(&q->x, v, at) && slots_remove(&q->x, v, slot);
}

static bool is_over(const Polish *q)
{
    return slots_peak(&q->x) > q->aim.budget - q->p->pinned;
}

/* Something need not run again, and as much as that takes is freed elsewhere. */
static bool exchange(Polish *q)
{
    if (!remove_one(q))
        return false;
    for (int i = 0; i < 6 && is_over(q); i++) {
        int mark = q->x.change.n;
        if (!drop_idle(q))
            slots_undo(&q->x, mark);
    }
    return true;
}

/* The other way round: one value is dropped, and what fits in its place stays. */
static bool refill(Polish *q)
{
    if (!drop_idle(q))
        return false;
    for (int i = 0; i < 6; i++) {
        int mark = q->x.change.n;
        if (!remove_one(q) || is_over(q))
            slots_undo(&q->x, mark);
    }
    return true;
}

static bool move(Polish *q)
{
    int32_t kind = q->aim.order_only ? 100 : below(q, 100);
    q->left = 4 << below(q, 4);
    if (kind < 15)
        return drop_idle(q);
    if (kind < 30)
        return remove_one(q);
    if (kind < 62)
        return exchange(q);
    if (kind < 80)
        return refill(q);
    return shift(q);
}

/* ---- the search ------------------------------------------------------------------------------ */

enum { MOST_PHASES = 64, MOST_THIN_PHASES = 512 };

static void try_move(Polish *q)
{
    if (!move(q)) {
        slots_undo(&q->x, q->mark);
        return;
    }
    double energy = energy_of(q);
    double worse = energy - q->energy;
    bool crowded = q->x.n_run > q->x.n / 3;
    if (crowded || (worse > 0 && worse > q->temperature * exponential(q))) {
        slots_undo(&q->x, q->mark);
        return;
    }
    q->energy = energy;
    go_on(q);
}

typedef struct Saving {
    int32_t node;
    double each; /* cost of running it again, by byte of its output */
} Saving;

static int by_saving(const void *a, const void *b)
{
    const Saving *x = a, *y = b;
    if (x->each != y->each)
        return x->each > y->each ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* The later executions of v, and what serves nothing else, as far as there is room. */
static void run_less(Polish *q, int32_t v)
{
    for (int32_t i = q->x.run[v].n; i-- > 0 && q->x.run[v].n > 1;) {
        if (i >= q->x.run[v].n)
            continue;
        int32_t slot = q->x.run[v].at[i];
        if (!slots_remove(&q->x, v, slot))
            continue;
        cascade(q, v, slot, 16);
        if (is_over(q)) {
            slots_undo(&q->x, q->mark);
            continue;
        }
        q->energy = energy_of(q);
        go_on(q);
    }
}

/* One sweep over what runs again, dear and small values first: where a schedule comes from a rule
 * that leaves room, as good as many moves by chance. */
static void fill(Polish *q)
{
    int32_t n = q->x.n_twice;
    Saving *s = NEW_ARRAY(&q->arena, Saving, n);
    for (int32_t i = 0; i < n; i++) {
        const ProblemNode *node = &q->p->node[q->x.twice[i]];
        double bytes = (double)(node->bytes > 0 ? node->bytes : 1);
        s[i] = (Saving){q->x.twice[i], (double)node->cost / bytes};
    }
    qsort(s, (size_t)n, sizeof *s, by_saving);
    for (int32_t i = 0; i < n; i++)
        run_less(q, s[i].node);
}

/* A phase begins with slots that are evenly filled again, which takes as long as a move
 * for each execution. A power of two. */
static int phases_of(const Polish *q)
{
    int n = 2, most = q->aim.thin > 0 ? MOST_THIN_PHASES : MOST_PHASES;
    while (n < most && n * (int64_t)q->x.n_run < q->aim.moves)
        n *= 2;
    return n;
}

/* The root of that many phases, by square roots, which are the same everywhere. */
static double phase_ratio(double hot, double cold, int phases)
{
    double r = hot > 0 ? cold / hot : 0;
    for (int i = 1; i < phases; i *= 2)
        r = sqrt(r);
    return r;
}

static bool good_enough(const Polish *q)
{
    return q->thin == 0 && q->best_peak <= q->aim.budget - q->p->pinned &&
           q->best_cost <= q->aim.enough;
}

static void search(Polish *q)
{
    int phases = phases_of(q);
    double ratio = phase_ratio(q->aim.hot, q->aim.cold, phases);
    q->temperature = q->aim.hot;
    for (int phase = 0; phase < phases && !good_enough(q); phase++) {
        if (!q->aim.order_only)
            q->thin = q->aim.thin * (phases - phase) / phases;
        q->energy = energy_of(q);
        for (int64_t i = 0; i < q->aim.moves / phases; i++)
            try_move(q);
        q->temperature *= ratio;
        end_phase(q);
    }
}

Sequence *polish(const Problem *p, const Sequence *from, PolishAim aim, Arena *out)
{
    Polish q = {.p = p, .aim = aim, .best_peak = INT64_MAX, .best_cost = INT64_MAX};
    q.random = hash_mix(aim.seed + 1) | 1;
    q.thin = aim.thin;
    slots_init(&q.x, p, from, &q.arena);
    q.energy = energy_of(&q);
    go_on(&q);
    if (aim.fill && !is_over(&q))
        fill(&q);
    if (aim.moves > 0)
        search(&q);
    if (!q.is_copied)
        end_phase(&q);
    Sequence *s = sequence_of(p, q.best, q.n_best, out);
    assert(s->max_live - p->pinned == q.best_peak && s->cost == q.best_cost);
    arena_free(&q.arena);
    return s;
}
