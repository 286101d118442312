/* The checker's first half: whether the plan is well formed. Plans may come from
 * files, so that every index is looked at before it is used. */
#include "check.h"

#include <stdlib.h>

bool check_fail(Check *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (c->error == NULL)
        c->error = arena_vprintf(c->arena, format, ap);
    va_end(ap);
    return false;
}

const char *check_name(const Check *c, int32_t value)
{
    const char *s = c->p->value[value].name;
    return s == NULL ? "?" : s;
}

const char *check_range_name(const Check *c, int32_t range)
{
    return check_name(c, c->p->range[range].value);
}

const char *check_writer_name(const Check *c, int32_t writer)
{
    if (writer >= 0)
        return arena_printf(c->arena, "`%s`", check_range_name(c, writer));
    return arena_printf(c->arena, "the workspace of step %d", FIRST_WORKSPACE - writer);
}

int64_t check_range_bytes(const Check *c, int32_t range)
{
    return c->p->value[c->p->range[range].value].bytes;
}

int64_t check_whole_blocks(int64_t bytes)
{
    return (bytes / BLOCK_ALIGN + (bytes % BLOCK_ALIGN != 0)) * BLOCK_ALIGN;
}

int64_t check_own_bytes(const Check *c, int32_t s)
{
    const PlanStep *step = &c->p->step[s];
    int64_t lanes = step->lanes == 0 ? c->p->threads_max : step->lanes;
    return check_whole_blocks(step->workspace) + lanes * check_whole_blocks(step->lane_bytes);
}

bool check_in_block(const PlanValue *v)
{
    return !v->pinned && v->bytes > 0;
}

/* No plan has that many bytes, and the sum of two such numbers is exact. */
#define TOO_MANY_BYTES ((int64_t)1 << 61)

static bool sane(int64_t bytes)
{
    return bytes >= 0 && bytes < TOO_MANY_BYTES;
}

static bool check_numbers(Check *c)
{
    const Plan *p = c->p;
    if (p->n_values < 0 || p->n_steps < 0 || p->n_ranges < 0)
        return check_fail(c, "the plan has a negative number of values, steps or ranges");
    if (!sane(p->base) || !sane(p->store_bytes) || !sane(p->peak) || p->threads_max < 0)
        return check_fail(c, "base, lanes or peak of the plan are no sizes");
    return true;
}

static bool check_values(Check *c)
{
    const Plan *p = c->p;
    for (int32_t v = 0; v < p->n_values; v++) {
        const PlanValue *value = &p->value[v];
        if (!sane(value->bytes) || !sane(value->store))
            return check_fail(c, "`%s` has %lld bytes", check_name(c, v), (long long)value->bytes);
        if (value->pinned && value->bytes > 0 &&
            (value->offset < 0 || value->offset > p->base - value->bytes))
            return check_fail(c, "pinned `%s` lies outside of pinned storage", check_name(c, v));
    }
    return true;
}

static bool known(const int32_t *list, int32_t n, int32_t limit)
{
    if (n < 0)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (list[i] < 0 || list[i] >= limit)
            return false;
    return true;
}

static bool known_pairs(const Check *c, const PlanStep *step)
{
    int32_t n = c->p->n_values;
    for (int32_t i = 0; i < step->n_inplace; i++) {
        const PlanInPlace *pair = &step->inplace[i];
        if (pair->read < 0 || pair->read >= n || pair->write < 0 || pair->write >= n)
            return false;
    }
    return step->n_inplace >= 0;
}

static bool check_steps(Check *c)
{
    const Plan *p = c->p;
    for (int32_t s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->step[s];
        if (!known(step->read, step->n_reads, p->n_values) ||
            !known(step->write, step->n_writes, p->n_values) || !known_pairs(c, step))
            return check_fail(c, "step %d names a value that does not exist", s);
        if (!known(step->frees, step->n_frees, p->n_ranges))
            return check_fail(c, "step %d frees a range that does not exist", s);
        if (!sane(step->workspace) || !sane(step->lane_bytes) || step->lanes < 0 ||
            step->lanes > p->threads_max ||
            (step->lane_bytes > 0 && p->threads_max > TOO_MANY_BYTES / step->lane_bytes))
            return check_fail(c, "workspace or lane scratch of step %d are no sizes", s);
    }
    return true;
}

static bool check_range(Check *c, int32_t r)
{
    const Plan *p = c->p;
    const PlanRange *range = &p->range[r];
    if (range->value < 0 || range->value >= p->n_values)
        return check_fail(c, "range %d is of a value that does not exist", r);
    if (!check_in_block(&p->value[range->value]))
        return check_fail(c, "`%s` has a range, but is not placed by the plan",
                          check_range_name(c, r));
    if (range->from < 0 || range->from > range->to || range->to >= p->n_steps)
        return check_fail(c, "the range of `%s` is from step %d to step %d", check_range_name(c, r),
                          range->from, range->to);
    if (range->storage < 0 || range->storage > r ||
        p->range[range->storage].storage != range->storage)
        return check_fail(c, "`%s` is in storage %d, which is none", check_range_name(c, r),
                          range->storage);
    if (p->range[range->storage].offset != range->offset)
        return check_fail(c, "`%s` is not where its storage is", check_range_name(c, r));
    return true;
}

/* Bytes [offset, offset + bytes) that the plan gives to `who`, a writer of the map. */
static bool check_place(Check *c, int32_t who, int64_t offset, int64_t bytes)
{
    const Plan *p = c->p;
    if (offset % BLOCK_ALIGN != 0)
        return check_fail(c, "%s is not aligned: it lies at %lld", check_writer_name(c, who),
                          (long long)offset);
    if (offset < p->base)
        return check_fail(c, "%s lies at %lld, in pinned storage", check_writer_name(c, who),
                          (long long)offset);
    if (bytes > p->peak || offset > p->peak - bytes)
        return check_fail(c, "%s ends behind the peak", check_writer_name(c, who));
    if (check_whole_blocks(offset + bytes) > c->end)
        c->end = check_whole_blocks(offset + bytes);
    return true;
}

static bool check_places(Check *c)
{
    const Plan *p = c->p;
    c->end = check_whole_blocks(p->base);
    for (int32_t r = 0; r < p->n_ranges; r++)
        if (!check_range(c, r) || !check_place(c, r, p->range[r].offset, check_range_bytes(c, r)))
            return false;
    for (int32_t s = 0; s < p->n_steps; s++)
        if (check_own_bytes(c, s) > 0 &&
            !check_place(c, workspace_of(s), p->step[s].workspace_offset, check_own_bytes(c, s)))
            return false;
    return true;
}

/* ---- pinned storage ------------------------------------------------------------ */

typedef struct Pin {
    int64_t offset, bytes;
    int32_t value;
} Pin;

static int by_place(const void *a, const void *b)
{
    const Pin *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* Pinned values are apart, or in the very same place (a slot and its new value). */
static bool check_pinned(Check *c)
{
    const Plan *p = c->p;
    c->place_of = NEW_ARRAY(c->arena, int32_t, p->n_values);
    Pin *pin = NEW_ARRAY(c->arena, Pin, p->n_values);
    int32_t n = 0;
    for (int32_t v = 0; v < p->n_values; v++) {
        c->place_of[v] = v;
        if (p->value[v].pinned && p->value[v].bytes > 0)
            pin[n++] = (Pin){p->value[v].offset, p->value[v].bytes, v};
    }
    qsort(pin, (size_t)n, sizeof *pin, by_place);
    for (int32_t i = 1; i < n; i++) {
        const Pin *a = &pin[i - 1], *b = &pin[i];
        if (a->offset == b->offset && a->bytes == b->bytes)
            c->place_of[b->value] = c->place_of[a->value];
        else if (b->offset < a->offset + a->bytes)
            return check_fail(c, "pinned `%s` lies over pinned `%s`", check_name(c, b->value),
                              check_name(c, a->value));
    }
    return true;
}

bool check_form(Check *c)
{
    return check_numbers(c) && check_values(c) && check_pinned(c) && check_steps(c) &&
           check_transfers(c) && check_places(c);
}
