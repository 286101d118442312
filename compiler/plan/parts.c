/* What is kept of parts of the model: bytes of theirs across the turn of a plan. */
#include "plan.h"

/* The moments that are looked at: after each of steps from..to. */
typedef struct Turn {
    int32_t from, to;
} Turn;

static bool is_forward(const PlanStep *s)
{
    return s->kind == STEP_RUN && !s->reverse && !s->guarded;
}

static Turn find_turn(const Plan *p)
{
    int32_t first = p->n_steps, last = -1;
    for (int32_t s = p->n_steps; s-- > 0;) {
        if (p->step[s].reverse)
            first = s;
        if (last < 0 && is_forward(&p->step[s]) && p->step[s].run == 0)
            last = s;
    }
    Turn t = {last, first - 1};
    if (t.from > t.to)
        t = (Turn){t.to, t.from};
    return first < p->n_steps ? t : (Turn){0, -1};
}

static const BudgetPart *part_of(const Plan *p, int32_t value)
{
    const PlanValue *v = &p->value[value];
    return v->origin == NULL || v->pinned ? NULL : v->origin->part;
}

static bool is_across(const PlanRange *r, int32_t moment)
{
    return r->from <= moment && moment < r->to;
}

/* The ranges of each value, in the order of their stores: the first of value v is at first[v]. */
typedef struct Stores {
    int32_t *first, *range;
} Stores;

static Stores find_stores(const Plan *p, Arena *out)
{
    Stores st = {NEW_ARRAY(out, int32_t, p->n_values + 1), NEW_ARRAY(out, int32_t, p->n_ranges)};
    int32_t *n = NEW_ARRAY(out, int32_t, p->n_values);
    for (int32_t r = 0; r < p->n_ranges; r++)
        st.first[p->range[r].value + 1]++;
    for (int32_t v = 0; v < p->n_values; v++)
        st.first[v + 1] += st.first[v];
    for (int32_t r = 0; r < p->n_ranges; r++) {
        int32_t v = p->range[r].value, i = st.first[v] + n[v]++;
        for (; i > st.first[v] && p->range[st.range[i - 1]].from > p->range[r].from; i--)
            st.range[i] = st.range[i - 1];
        st.range[i] = r;
    }
    return st;
}

/* What a read at step s means: the last store before it, or what was given. */
static int32_t range_read(const Plan *p, const Stores *st, int32_t value, int32_t s)
{
    int32_t found = -1;
    for (int32_t i = st->first[value]; i < st->first[value + 1]; i++)
        if (found < 0 || p->range[st->range[i]].from < s)
            found = st->range[i];
    return found;
}

/* By range: the reverse pass reads it. */
static bool *find_read(const Plan *p, Arena *out)
{
    bool *read = NEW_ARRAY(out, bool, p->n_ranges);
    Stores st = find_stores(p, out);
    for (int32_t s = 0; s < p->n_steps; s++)
        for (int32_t i = 0; i < p->step[s].n_reads && p->step[s].reverse; i++) {
            int32_t r = range_read(p, &st, p->step[s].read[i], s);
            if (r >= 0)
                read[r] = true;
        }
    return read;
}

bool *plan_crossing(const Plan *p, Arena *out)
{
    bool *read = find_read(p, out);
    Turn t = find_turn(p);
    for (int32_t r = 0; r < p->n_ranges; r++) {
        const PlanRange *range = &p->range[r];
        read[r] = read[r] && range->from <= t.to && range->to > t.from &&
                  part_of(p, range->value) != NULL;
    }
    return read;
}

/* Bytes of the parts at one moment; by id of the part. */
typedef struct Kept {
    Arena arena;
    int32_t n;
    const BudgetPart **part;
    int64_t *now, *most;
} Kept;

static void count_at(Kept *k, const Plan *p, const bool *counts, int32_t moment)
{
    for (int32_t i = 0; i < k->n; i++)
        k->now[i] = 0;
    for (int32_t r = 0; r < p->n_ranges; r++)
        if (counts[r] && is_across(&p->range[r], moment))
            for (const BudgetPart *x = part_of(p, p->range[r].value); x != NULL; x = x->outer)
                k->now[x->id] += align_up(p->value[p->range[r].value].bytes, BLOCK_ALIGN);
    for (int32_t i = 0; i < k->n; i++)
        k->most[i] = k->now[i] > k->most[i] ? k->now[i] : k->most[i];
}

static void count(Kept *k, const Plan *p)
{
    ArenaMark mark = arena_mark(&k->arena);
    const bool *counts = plan_crossing(p, &k->arena);
    Turn t = find_turn(p);
    for (int32_t moment = t.from; moment <= t.to; moment++)
        count_at(k, p, counts, moment);
    arena_reset(&k->arena, mark);
    for (int32_t s = 0; s < p->n_steps; s++)
        if (p->step[s].body != NULL && p->step[s].run == 0)
            count(k, p->step[s].body);
}

static int32_t largest_id(const Plan *p)
{
    int32_t most = -1;
    for (int32_t v = 0; v < p->n_values; v++)
        for (const BudgetPart *x = part_of(p, v); x != NULL; x = x->outer)
            most = x->id > most ? x->id : most;
    for (int32_t s = 0; s < p->n_steps; s++) {
        int32_t inside = p->step[s].body == NULL ? -1 : largest_id(p->step[s].body);
        most = inside > most ? inside : most;
    }
    return most;
}

static void collect(Kept *k, const Plan *p)
{
    for (int32_t v = 0; v < p->n_values; v++)
        for (const BudgetPart *x = part_of(p, v); x != NULL; x = x->outer)
            k->part[x->id] = x;
    for (int32_t s = 0; s < p->n_steps; s++)
        if (p->step[s].body != NULL && p->step[s].run == 0)
            collect(k, p->step[s].body);
}

void plan_parts(Plan *p)
{
    Kept k = {.n = largest_id(p) + 1};
    p->n_parts = 0;
    if (k.n == 0)
        return;
    k.part = NEW_ARRAY(&k.arena, const BudgetPart *, k.n);
    k.now = NEW_ARRAY(&k.arena, int64_t, k.n);
    k.most = NEW_ARRAY(&k.arena, int64_t, k.n);
    collect(&k, p);
    count(&k, p);
    p->part = NEW_ARRAY(p->arena, PlanPart, k.n);
    for (int32_t i = 0; i < k.n; i++)
        if (k.part[i] != NULL)
            p->part[p->n_parts++] = (PlanPart){k.part[i], k.most[i]};
    arena_free(&k.arena);
}

int64_t plan_parts_over(const Plan *p)
{
    int64_t over = 0;
    for (int32_t i = 0; i < p->n_parts; i++)
        if (p->part[i].kept > p->part[i].part->bytes)
            over += p->part[i].kept - p->part[i].part->bytes;
    return over;
}
