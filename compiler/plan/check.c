/* The checker: replays a plan against a map of who wrote each byte last.
 *
 * It believes nothing. Which range a read means, when a value dies, what is live and
 * where the highest byte ends is found anew from the steps alone, and then compared
 * with what the plan says. Nothing of the planner is used: an error there must not be
 * repeated here. */
#include "check.h"

#include <stdlib.h>

/* ---- reads ---------------------------------------------------------------------- */

/* What is read of pinned storage is what the entry began with: a step that runs again
 * after a change would compute something else. */
static bool read_pinned(Check *c, int32_t s, int32_t value)
{
    int32_t place = c->place_of[value], writer = c->writer[place];
    if (writer < 0)
        return true;
    if (writer == value)
        return check_fail(c, "step %d reads `%s`, which step %d has changed", s,
                          check_name(c, value), c->written[place]);
    return check_fail(c, "step %d reads `%s` after step %d wrote `%s` over it", s,
                      check_name(c, value), c->written[place], check_name(c, writer));
}

/* The bytes of the range are those that its store left there. `when` is the reader. */
static bool intact(Check *c, const char *when, int32_t range)
{
    int64_t from = c->p->range[range].offset, to = from + check_range_bytes(c, range);
    int32_t at = -1;
    do {
        int32_t writer = bytemap_next(&c->map, from, to, &at);
        if (writer == range)
            continue;
        if (writer >= 0)
            return check_fail(c, "%s reads `%s` after step %d wrote `%s` over it", when,
                              check_range_name(c, range), c->p->range[writer].from,
                              check_range_name(c, writer));
        return check_fail(c, "%s reads `%s` after %s was there", when, check_range_name(c, range),
                          check_writer_name(c, writer));
    } while (at >= 0);
    return true;
}

static bool read_value(Check *c, int32_t s, int32_t value)
{
    const PlanValue *v = &c->p->value[value];
    if (v->bytes == 0)
        return true;
    if (v->pinned)
        return read_pinned(c, s, value);
    int32_t r = c->current[value];
    if (r < 0)
        return check_fail(c, "step %d reads `%s`, which nothing has stored", s,
                          check_name(c, value));
    if (!intact(c, arena_printf(c->arena, "step %d", s), r))
        return false;
    if (s > c->p->range[r].to)
        return check_fail(c, "step %d reads `%s`, which is freed after step %d", s,
                          check_name(c, value), c->p->range[r].to);
    if (c->track[r].guarded && !c->p->step[s].guarded)
        return check_fail(c, "step %d reads `%s`, but step %d that stores it may be skipped", s,
                          check_name(c, value), c->p->range[r].from);
    c->track[r].last_use = s;
    c->track[r].late = c->track[r].late || c->p->step[s].reverse;
    return true;
}

/* ---- stores --------------------------------------------------------------------- */

static bool declared(const PlanStep *step, int32_t read, int32_t write)
{
    for (int32_t i = 0; i < step->n_inplace; i++)
        if (step->inplace[i].read == read && step->inplace[i].write == write)
            return true;
    return false;
}

/* Range r, stored at step s, covers bytes of range `old`, which is live at s. */
static bool take_over(Check *c, int32_t s, int32_t r, int32_t old)
{
    const PlanRange *to = &c->p->range[r], *from = &c->p->range[old];
    const char *write = check_range_name(c, r), *read = check_range_name(c, old);
    bool stored_now = from->from == s && !c->track[old].given;
    if (from->to > s || stored_now)
        return check_fail(c, "step %d writes `%s` over `%s`, which is live until step %d", s, write,
                          read, from->to);
    if (c->track[old].last_use != s || !declared(&c->p->step[s], from->value, to->value))
        return check_fail(c, "step %d writes `%s` over `%s`, and may not do so in place", s, write,
                          read);
    if (from->storage != to->storage)
        return check_fail(c, "step %d writes `%s` over `%s`, but they share no storage", s, write,
                          read);
    if (check_whole_blocks(check_range_bytes(c, r)) > check_whole_blocks(check_range_bytes(c, old)))
        return check_fail(c, "step %d writes `%s` over `%s`, which is smaller", s, write, read);
    c->track[r].took_over = true;
    return true;
}

static bool live_at(const Check *c, int32_t range, int32_t s)
{
    return c->p->range[range].from <= s && s <= c->p->range[range].to;
}

/* Bytes of `writer` (a range, or the workspace of step s) lie over nothing live. */
static bool claim(Check *c, int32_t s, int32_t writer, int64_t from, int64_t bytes)
{
    int32_t at = -1;
    do {
        int32_t old = bytemap_next(&c->map, from, from + bytes, &at);
        if (old < 0 || old == writer || !live_at(c, old, s))
            continue;
        if (writer < 0)
            return check_fail(c, "the workspace of step %d lies over `%s`, which is live", s,
                              check_range_name(c, old));
        if (!take_over(c, s, writer, old))
            return false;
    } while (at >= 0);
    bytemap_write(&c->map, from, from + bytes, writer);
    return true;
}

/* The plan's next range of the value must begin at this step. */
static int32_t next_range(const Check *c, int32_t s, int32_t value)
{
    int32_t i = c->next[value];
    if (i >= c->p->n_ranges)
        return -1;
    const PlanRange *r = &c->p->range[c->order[i]];
    return r->value == value && r->from == s ? c->order[i] : -1;
}

static bool open_range(Check *c, int32_t s, int32_t value, bool guarded)
{
    int32_t r = next_range(c, s, value);
    if (r < 0)
        return check_fail(c, "step %d stores `%s`, but the plan has no range from there", s,
                          check_name(c, value));
    c->next[value]++;
    c->track[r] = (Track){.last_use = s, .opened = true, .guarded = guarded};
    if (!claim(c, s, r, c->p->range[r].offset, check_range_bytes(c, r)))
        return false;
    if (c->p->range[r].storage != r && !c->track[r].took_over)
        return check_fail(c, "step %d stores `%s` in the storage of `%s` without taking it over", s,
                          check_name(c, value), check_range_name(c, c->p->range[r].storage));
    c->current[value] = r;
    return true;
}

static bool write_value(Check *c, int32_t s, int32_t value)
{
    const PlanValue *v = &c->p->value[value];
    if (v->bytes == 0)
        return true;
    if (!v->pinned)
        return open_range(c, s, value, c->p->step[s].guarded);
    int32_t place = c->place_of[value];
    if (c->writer[place] == value)
        return check_fail(c, "step %d stores `%s`, which step %d has changed", s,
                          check_name(c, value), c->written[place]);
    if (c->writer[place] >= 0 && c->written[place] == s)
        return check_fail(c, "step %d stores both `%s` and `%s` in one place", s,
                          check_name(c, c->writer[place]), check_name(c, value));
    c->writer[place] = value;
    c->written[place] = s;
    return true;
}

/* ---- what is live ----------------------------------------------------------------- */

static void count(Check *c, int32_t range)
{
    c->track[range].counted = true;
    c->live += check_whole_blocks(check_range_bytes(c, range));
}

/* Stores count from their step on, or, where they took bytes over that are counted
 * already, from the next. */
static void count_stores(Check *c, int32_t s, bool taken_over)
{
    const PlanStep *step = &c->p->step[s];
    for (int32_t i = 0; i < step->n_writes; i++) {
        int32_t r = check_in_block(&c->p->value[step->write[i]]) ? c->current[step->write[i]] : -1;
        if (r >= 0 && c->track[r].took_over == taken_over && c->p->range[r].to >= s + taken_over)
            count(c, r);
    }
}

static bool free_ranges(Check *c, int32_t s, int32_t due)
{
    const PlanStep *step = &c->p->step[s];
    if (step->n_frees != due)
        return check_fail(c, "step %d frees %d ranges, but %d end there", s, step->n_frees, due);
    for (int32_t i = 0; i < step->n_frees; i++) {
        int32_t r = step->frees[i];
        if (c->p->range[r].to != s)
            return check_fail(c, "step %d frees `%s`, which is live until step %d", s,
                              check_range_name(c, r), c->p->range[r].to);
        if (c->track[r].freed)
            return check_fail(c, "step %d frees `%s` twice", s, check_range_name(c, r));
        c->track[r].freed = true;
        if (c->track[r].counted)
            c->live -= check_whole_blocks(check_range_bytes(c, r));
    }
    return true;
}

static void measure(Check *c, int32_t s)
{
    int64_t here = c->live + check_own_bytes(c, s);
    if (here <= c->live_peak)
        return;
    c->live_peak = here;
    c->peak_step = s;
}

/* ---- the replay -------------------------------------------------------------------- */

static bool run_step(Check *c, int32_t s, int32_t frees)
{
    const PlanStep *step = &c->p->step[s];
    c->changed = c->changed || step->guarded;
    if (!check_begin_transfer(c, s))
        return false;
    for (int32_t i = 0; i < step->n_reads; i++)
        if (!read_value(c, s, step->read[i]))
            return false;
    for (int32_t i = 0; i < step->n_writes; i++)
        if (!write_value(c, s, step->write[i]))
            return false;
    if (check_own_bytes(c, s) > 0 &&
        !claim(c, s, workspace_of(s), step->workspace_offset, check_own_bytes(c, s)))
        return false;
    if (!check_end_transfer(c, s))
        return false;
    count_stores(c, s, false);
    measure(c, s);
    count_stores(c, s, true);
    return free_ranges(c, s, frees);
}

/* Values that are there before the first step: inputs and staging that are read
 * before anything stores them, or never stored and wanted at the end. */
static bool open_given(Check *c)
{
    const Plan *p = c->p;
    bool *read = NEW_ARRAY(c->arena, bool, p->n_values);
    bool *stored = NEW_ARRAY(c->arena, bool, p->n_values);
    for (int32_t s = 0; s < p->n_steps; s++) {
        for (int32_t i = 0; i < p->step[s].n_reads; i++)
            read[p->step[s].read[i]] |= !stored[p->step[s].read[i]];
        for (int32_t i = 0; i < p->step[s].n_writes; i++)
            stored[p->step[s].write[i]] = true;
    }
    for (int32_t v = 0; v < p->n_values; v++) {
        const PlanValue *value = &p->value[v];
        bool given = value->role == ROLE_INPUT || value->role == ROLE_STAGING;
        bool wanted = read[v] || (value->to_end && !stored[v] && p->n_steps > 0);
        if (!given || !wanted || !check_in_block(value))
            continue;
        if (!open_range(c, 0, v, false))
            return false;
        c->track[c->current[v]].given = true;
        count(c, c->current[v]);
    }
    return true;
}

static bool replay(Check *c)
{
    const Plan *p = c->p;
    int32_t *due = NEW_ARRAY(c->arena, int32_t, p->n_steps);
    for (int32_t r = 0; r < p->n_ranges; r++)
        due[p->range[r].to]++;
    c->live = check_whole_blocks(p->base);
    c->live_peak = c->live;
    if (!open_given(c))
        return false;
    for (int32_t s = 0; s < p->n_steps; s++)
        if (!run_step(c, s, due[s]))
            return false;
    return true;
}

/* ---- the end ------------------------------------------------------------------------ */

static bool check_results(Check *c)
{
    const Plan *p = c->p;
    for (int32_t v = 0; v < p->n_values; v++) {
        if (!check_in_block(&p->value[v]))
            continue;
        int32_t r = c->current[v];
        if (p->value[v].to_end && p->n_steps > 0) {
            if (r < 0)
                return check_fail(c, "nothing stores `%s`, which is read after the last step",
                                  check_name(c, v));
            if (!intact(c, "the caller", r))
                return false;
            if (c->track[r].guarded)
                return check_fail(c,
                                  "the caller reads `%s`, but step %d that stores it may be "
                                  "skipped",
                                  check_name(c, v), p->range[r].from);
            c->track[r].last_use = p->n_steps - 1;
        }
        if (r >= 0 && p->value[v].offset != p->range[r].offset)
            return check_fail(c, "`%s` is said to lie at %lld, but was last stored at %lld",
                              check_name(c, v), (long long)p->value[v].offset,
                              (long long)p->range[r].offset);
    }
    return true;
}

static bool check_ranges(Check *c)
{
    for (int32_t r = 0; r < c->p->n_ranges; r++) {
        const PlanRange *range = &c->p->range[r];
        if (!c->track[r].opened)
            return check_fail(c, "`%s` is to live from step %d, which does not store it",
                              check_range_name(c, r), range->from);
        if (c->track[r].last_use != range->to)
            return check_fail(c, "`%s` is kept until step %d, but last used by step %d",
                              check_range_name(c, r), range->to, c->track[r].last_use);
    }
    return true;
}

static bool check_peak(Check *c)
{
    const Plan *p = c->p;
    if (c->end != p->peak)
        return check_fail(c, "the peak is given as %lld, but the highest byte ends at %lld",
                          (long long)p->peak, (long long)c->end);
    if (c->live_peak != p->live_peak || c->peak_step != p->peak_step)
        return check_fail(c, "%lld bytes are live at step %d, but the plan says %lld at step %d",
                          (long long)c->live_peak, c->peak_step, (long long)p->live_peak,
                          p->peak_step);
    return true;
}

/* ---- */

typedef struct RangeKey {
    int32_t value, from, range;
} RangeKey;

static int by_value_and_step(const void *a, const void *b)
{
    const RangeKey *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->range > y->range) - (x->range < y->range);
}

/* The ranges of each value in the order of their stores. */
static void order_ranges(Check *c)
{
    const Plan *p = c->p;
    RangeKey *key = NEW_ARRAY(c->arena, RangeKey, p->n_ranges);
    for (int32_t r = 0; r < p->n_ranges; r++)
        key[r] = (RangeKey){p->range[r].value, p->range[r].from, r};
    qsort(key, (size_t)p->n_ranges, sizeof *key, by_value_and_step);
    for (int32_t v = 0; v < p->n_values; v++)
        c->next[v] = p->n_ranges;
    for (int32_t i = p->n_ranges - 1; i >= 0; i--) {
        c->order[i] = key[i].range;
        c->next[key[i].value] = i;
    }
}

static void start(Check *c)
{
    const Plan *p = c->p;
    bytemap_init(&c->map, c->arena);
    c->order = NEW_ARRAY(c->arena, int32_t, p->n_ranges);
    c->next = NEW_ARRAY(c->arena, int32_t, p->n_values);
    c->current = NEW_ARRAY(c->arena, int32_t, p->n_values);
    c->writer = NEW_ARRAY(c->arena, int32_t, p->n_values);
    c->written = NEW_ARRAY(c->arena, int32_t, p->n_values);
    c->track = NEW_ARRAY(c->arena, Track, p->n_ranges);
    for (int32_t v = 0; v < p->n_values; v++)
        c->current[v] = c->writer[v] = c->written[v] = -1;
    order_ranges(c);
}

static bool replay_all(Check *c)
{
    if (!check_form(c))
        return false;
    start(c);
    return replay(c) && check_all_over(c) && check_results(c) && check_ranges(c) && check_peak(c);
}

int64_t plan_check_part(const Plan *p, const BudgetPart *part, Arena *scratch, const char **error)
{
    Check c = {.p = p, .arena = scratch};
    int64_t kept = replay_all(&c) ? check_part_bytes(&c, part) : 0;
    *error = c.error;
    return kept;
}

const char *plan_check(const Plan *p, Arena *scratch)
{
    Check c = {.p = p, .arena = scratch};
    return replay_all(&c) && check_parts(&c) ? NULL : c.error;
}
