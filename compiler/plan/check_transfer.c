/* The checker's part about values that leave the block: the bytes of a transfer are left alone
 * until it has been waited for, and what comes in is what went out. */
#include "check.h"

#include <stdlib.h>

static const char *name_of(const Check *c, int32_t s)
{
    const PlanStep *step = &c->p->step[s];
    return check_name(c, step->kind == STEP_IN ? step->write[0] : step->read[0]);
}

/* Exactly one value of the block, and nothing else. */
static bool check_one(Check *c, int32_t s)
{
    const PlanStep *step = &c->p->step[s];
    bool in = step->kind == STEP_IN;
    if (step->kind > STEP_WAIT || step->n_reads != !in || step->n_writes != in)
        return check_fail(c, "step %d is no transfer of one value", s);
    if (!check_in_block(&c->p->value[in ? step->write[0] : step->read[0]]))
        return check_fail(c, "step %d moves `%s`, which the plan does not place", s, name_of(c, s));
    if (step->workspace != 0 || step->n_inplace != 0 || step->guarded || step->body != NULL)
        return check_fail(c, "step %d moves `%s`, and does something else", s, name_of(c, s));
    return true;
}

typedef struct Kept {
    int64_t from, to;
    int32_t value;
} Kept;

static int by_place(const void *a, const void *b)
{
    const Kept *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* In the store, values are apart. */
static bool check_store(Check *c, Kept *kept, int32_t n)
{
    qsort(kept, (size_t)n, sizeof *kept, by_place);
    for (int32_t i = 0; i < n; i++) {
        if (kept[i].from < 0 || kept[i].from % BLOCK_ALIGN != 0 || kept[i].to > c->p->store_bytes)
            return check_fail(c, "`%s` has no place in the store", check_name(c, kept[i].value));
        if (i > 0 && kept[i].from < kept[i - 1].to)
            return check_fail(c, "`%s` lies over `%s` in the store", check_name(c, kept[i].value),
                              check_name(c, kept[i - 1].value));
    }
    return true;
}

bool check_transfers(Check *c)
{
    const Plan *p = c->p;
    int32_t n = 0;
    bool *went = NEW_ARRAY(c->arena, bool, p->n_values);
    Kept *kept = NEW_ARRAY(c->arena, Kept, p->n_values);
    c->away = NEW_ARRAY(c->arena, Away, p->n_values);
    for (int32_t s = 0; s < p->n_steps; s++) {
        if (p->step[s].kind == STEP_RUN)
            continue;
        if (!check_one(c, s))
            return false;
        int32_t v = p->step[s].kind == STEP_OUT ? p->step[s].read[0] : -1;
        if (v >= 0 && went[v])
            return check_fail(c, "step %d writes `%s` out a second time", s, check_name(c, v));
        if (v < 0)
            continue;
        went[v] = true;
        kept[n++] = (Kept){p->value[v].store, p->value[v].store + p->value[v].bytes, v};
    }
    return check_store(c, kept, n);
}

/* ---- the replay --------------------------------------------------------------------- */

static bool begin_out(Check *c, int32_t s, int32_t v)
{
    c->away[v] = (Away){.leaving = true, .range = c->current[v]};
    return c->current[v] >= 0 ||
           check_fail(c, "step %d writes out `%s`, which nothing has stored", s, check_name(c, v));
}

static bool begin_in(Check *c, int32_t s, int32_t v)
{
    if (!c->away[v].is_out)
        return check_fail(c, "step %d reads `%s` in, which is not out", s, check_name(c, v));
    c->away[v].entering = c->away[v].came = true;
    c->away[v].range = c->current[v];
    return true;
}

/* Its bytes are those of its store, which the reads of the step have looked at. */
static bool end_wait(Check *c, int32_t s, int32_t v)
{
    Away *a = &c->away[v];
    if (!a->leaving && !a->entering)
        return check_fail(c, "step %d waits for `%s`, of which no transfer has begun", s,
                          check_name(c, v));
    if (a->range != c->current[v])
        return check_fail(c, "step %d waits for `%s`, which has been stored anew", s,
                          check_name(c, v));
    a->is_out = a->is_out || a->leaving;
    a->leaving = a->entering = false;
    return true;
}

bool check_begin_transfer(Check *c, int32_t s)
{
    const PlanStep *step = &c->p->step[s];
    for (int32_t i = 0; step->kind != STEP_WAIT && i < step->n_reads; i++)
        if (c->away[step->read[i]].entering)
            return check_fail(c, "step %d reads `%s`, which is not known to be in yet", s,
                              check_name(c, step->read[i]));
    for (int32_t i = 0; i < step->n_writes; i++)
        if (c->away[step->write[i]].entering)
            return check_fail(c, "step %d stores `%s` while it comes in", s,
                              check_name(c, step->write[i]));
    if (step->kind == STEP_RUN)
        return true;
    if (c->changed)
        return check_fail(c, "step %d moves `%s` after what lasts has been changed", s,
                          name_of(c, s));
    return true;
}

bool check_end_transfer(Check *c, int32_t s)
{
    const PlanStep *step = &c->p->step[s];
    for (int32_t i = 0; i < step->n_writes; i++)
        c->changed = c->changed || c->p->value[step->write[i]].pinned;
    switch (step->kind) {
    case STEP_RUN:
        return true;
    case STEP_OUT:
        return begin_out(c, s, step->read[0]);
    case STEP_IN:
        return begin_in(c, s, step->write[0]);
    default:
        return end_wait(c, s, step->read[0]);
    }
}

bool check_all_over(Check *c)
{
    for (int32_t v = 0; v < c->p->n_values; v++) {
        if (c->away[v].leaving || c->away[v].entering)
            return check_fail(c, "nothing waits for the transfer of `%s`", check_name(c, v));
        if (c->away[v].is_out && !c->away[v].came)
            return check_fail(c, "`%s` goes out, and never comes in", check_name(c, v));
    }
    return true;
}
