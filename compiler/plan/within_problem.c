#include "within_problem.h"

#include "offload.h"

static int64_t block_bytes(int64_t bytes)
{
    return align_up(bytes, BLOCK_ALIGN);
}

static bool is_given(const PlanValue *v)
{
    return !v->pinned && (v->role == ROLE_INPUT || v->role == ROLE_STAGING);
}

/* ---- who stores what ----------------------------------------------------------- */

/* Notes what the step stores. false: it was stored before, or given. */
static bool note_writes(Steps *st, int32_t s, bool *changed)
{
    const PlanStep *step = &st->p->step[s];
    for (int32_t i = 0; i < step->n_writes; i++) {
        int32_t v = step->write[i];
        if (st->writer[v] >= 0 || is_given(&st->p->value[v]) || changed[v])
            return false;
        if (st->p->value[v].pinned)
            changed[v] = true;
        else
            st->writer[v] = s;
    }
    return true;
}

static bool reads_changed(const Steps *st, int32_t s, const bool *changed)
{
    const PlanStep *step = &st->p->step[s];
    for (int32_t i = 0; i < step->n_reads; i++)
        if (changed[step->read[i]])
            return true;
    return false;
}

/* Pinned storage, and numbers. */
static bool writes_little(const Plan *p, const PlanStep *s)
{
    for (int32_t i = 0; i < s->n_writes; i++)
        if (!p->value[s->write[i]].pinned && p->value[s->write[i]].bytes > BLOCK_ALIGN)
            return false;
    return plan_own_bytes(p, s) == 0;
}

static int32_t find_update(const Plan *p)
{
    int32_t s = p->n_steps;
    while (s > 0 && p->step[s - 1].guarded && writes_little(p, &p->step[s - 1]))
        s--;
    return s;
}

bool steps_find(Steps *st, const Plan *p, Arena *out)
{
    *st = (Steps){.p = p, .update = find_update(p)};
    st->writer = NEW_ARRAY(out, int32_t, p->n_values);
    st->used = NEW_ARRAY(out, bool, p->n_values);
    bool *changed = NEW_ARRAY(out, bool, p->n_values);
    for (int32_t v = 0; v < p->n_values; v++) {
        st->writer[v] = -1;
        st->used[v] = p->value[v].to_end;
    }
    for (int32_t s = 0; s < p->n_steps; s++)
        for (int32_t i = 0; i < p->step[s].n_reads; i++)
            st->used[p->step[s].read[i]] = true;
    st->n = st->update + (st->update < p->n_steps);
    for (int32_t s = 0; s < p->n_steps; s++)
        if (reads_changed(st, s, changed) || !note_writes(st, s, changed))
            return false;
    return true;
}

/* ---- what both problems have ---------------------------------------------------- */

static bool changes_pinned(const Steps *st, int32_t s)
{
    const PlanStep *step = &st->p->step[s];
    for (int32_t i = 0; i < step->n_writes; i++)
        if (st->p->value[step->write[i]].pinned)
            return true;
    return false;
}

static bool is_kept(const Steps *st, int32_t s)
{
    const PlanStep *step = &st->p->step[s];
    for (int32_t i = 0; i < step->n_writes; i++)
        if (st->p->value[step->write[i]].kept)
            return true;
    return false;
}

static int32_t end_of(const Steps *st, int32_t node)
{
    return node == st->update ? st->p->n_steps : node + 1;
}

static bool is_heavy(const PlanStep *s)
{
    return s->chain > 0 || s->body != NULL;
}

/* Name, cost, and whether it may run again; bytes are not yet known. */
static ProblemNode node_of(const Steps *st, int32_t node)
{
    ProblemNode n = {.name = node == st->update ? "update" : st->p->step[node].label};
    n.pure = node != st->update && !changes_pinned(st, node) && !is_kept(st, node) &&
             !(st->p->light && is_heavy(&st->p->step[node]));
    for (int32_t s = node; s < end_of(st, node); s++)
        n.cost += plan_step_cost(st->p, &st->p->step[s]);
    for (int32_t i = 0; node != st->update && i < st->p->step[node].n_writes; i++)
        n.keep = n.keep || st->p->value[st->p->step[node].write[i]].to_end;
    return n;
}

/* at: by step, the node that has its values; NULL: that of its number. */
static void add_inputs(const Steps *st, ProblemMake *m, const int32_t *at, int32_t node)
{
    for (int32_t s = node; s < end_of(st, node); s++)
        for (int32_t i = 0; i < st->p->step[s].n_reads; i++) {
            int32_t writer = st->writer[st->p->step[s].read[i]];
            if (writer >= 0 && writer < node)
                problem_input(m, at == NULL ? writer : at[writer]);
        }
}

/* Bytes of a value in the block. */
static int64_t bytes_of(const Steps *st, int32_t value)
{
    const PlanValue *v = &st->p->value[value];
    return v->pinned ? 0 : block_bytes(v->bytes);
}

static int64_t pinned_bytes(const Plan *p)
{
    return block_bytes(p->base);
}

/* Step s may write `write` over something that it reads, if that dies there. */
static bool may_overwrite(const Steps *st, int32_t s, int32_t write)
{
    const PlanStep *step = &st->p->step[s];
    for (int32_t i = 0; i < step->n_inplace; i++)
        if (step->inplace[i].write == write &&
            bytes_of(st, write) <= bytes_of(st, step->inplace[i].read))
            return true;
    return false;
}

/* Results that can't be written over anything, and what the step has alone. */
static int64_t own_bytes(const Steps *st, int32_t s)
{
    const PlanStep *step = &st->p->step[s];
    int64_t bytes = plan_own_bytes(st->p, step);
    for (int32_t i = 0; i < step->n_writes; i++)
        if (!may_overwrite(st, s, step->write[i]))
            bytes += bytes_of(st, step->write[i]);
    return bytes;
}

/* ---- what may leave the block ----------------------------------------------------- */

static bool may_leave(const Steps *st, int32_t s)
{
    return st->leaves != NULL && s < st->update && st->leaves[s];
}

/* All of the step's values that are read: they go and come together. */
static double moving_time(const Steps *st, int32_t s)
{
    const PlanStep *step = &st->p->step[s];
    double time = 0;
    for (int32_t i = 0; i < step->n_writes; i++)
        if (st->used[step->write[i]] && st->p->value[step->write[i]].bytes > 0)
            time += offload_duration(st->p, step->write[i]);
    return time;
}

static bool has_result(const Steps *st, int32_t s)
{
    const PlanStep *step = &st->p->step[s];
    for (int32_t i = 0; i < step->n_writes; i++)
        if (st->p->value[step->write[i]].to_end)
            return true;
    return false;
}

/* Of the step's values that are read. */
static int64_t used_bytes(const Steps *st, int32_t s)
{
    const PlanStep *step = &st->p->step[s];
    int64_t bytes = 0;
    for (int32_t i = 0; i < step->n_writes; i++)
        bytes += st->used[step->write[i]] ? bytes_of(st, step->write[i]) : 0;
    return bytes;
}

enum { SMALL = 64 }; /* so many times less than the largest is not worth a transfer */

void steps_may_leave(Steps *st, double dear, double price, Arena *out)
{
    int64_t most = 0;
    st->leaves = NEW_ARRAY(out, bool, st->p->n_steps);
    st->price = price;
    for (int32_t s = 0; s < st->update; s++)
        most = used_bytes(st, s) > most ? used_bytes(st, s) : most;
    for (int32_t s = 0; s < st->update; s++) {
        double cost = (double)plan_step_cost(st->p, &st->p->step[s]), move = moving_time(st, s);
        st->leaves[s] = used_bytes(st, s) > most / SMALL && move <= dear * cost &&
                        !changes_pinned(st, s) && !is_kept(st, s) && !has_result(st, s);
    }
}

/* By step: the node that has its values. */
static int32_t *nodes_of_steps(const Steps *st, Arena *out)
{
    int32_t *node = NEW_ARRAY(out, int32_t, st->p->n_steps + 1);
    for (int32_t s = 0, n = 0; s < st->n; s++) {
        n += may_leave(st, s);
        node[s] = n++;
    }
    return node;
}

StepNode *steps_of_nodes(const Steps *st, Arena *out)
{
    StepNode *of = NEW_ARRAY(out, StepNode, 2 * st->n);
    for (int32_t s = 0, n = 0; s < st->n; s++) {
        of[n++] = (StepNode){s, false};
        if (may_leave(st, s))
            of[n++] = (StepNode){s, true};
    }
    return of;
}

/* ---- for the search --------------------------------------------------------------- */

/* Of writing over values of this input, each of which serves once. */
static int64_t saved_over(const Steps *st, int32_t s, int32_t input)
{
    const PlanStep *step = &st->p->step[s];
    int64_t saved = 0;
    for (int32_t i = 0; i < step->n_inplace; i++) {
        const PlanInPlace *pair = &step->inplace[i];
        bool first = true;
        for (int32_t j = 0; j < i; j++)
            first = first && step->inplace[j].write != pair->write &&
                    step->inplace[j].read != pair->read;
        if (first && st->writer[pair->read] == input && !st->p->value[pair->read].to_end &&
            bytes_of(st, pair->write) <= bytes_of(st, pair->read))
            saved += bytes_of(st, pair->write);
    }
    return saved;
}

static void find_over(const Steps *st, const ProblemMake *m, const int32_t *at, int32_t s,
                      ProblemNode *node)
{
    const PlanStep *step = &st->p->step[s];
    for (int32_t i = 0; i < step->n_inplace; i++) {
        int32_t input = st->writer[step->inplace[i].read];
        int64_t saved = input < 0 || m->node.at[at[input]].keep ? 0 : saved_over(st, s, input);
        if (saved > node->over_bytes) {
            node->over = at[input];
            node->over_bytes = saved;
        }
    }
}

static ProblemNode search_node(const Steps *st, const ProblemMake *m, const int32_t *at, int32_t s)
{
    ProblemNode n = node_of(st, s);
    if (s == st->update) {
        for (int32_t i = s; i < st->p->n_steps; i++)
            n.scratch = own_bytes(st, i) > n.scratch ? own_bytes(st, i) : n.scratch;
        return n;
    }
    const PlanStep *step = &st->p->step[s];
    n.scratch = plan_own_bytes(st->p, step);
    for (int32_t i = 0; i < step->n_writes; i++)
        *(st->used[step->write[i]] ? &n.bytes : &n.scratch) += bytes_of(st, step->write[i]);
    find_over(st, m, at, s, &n);
    return n;
}

/* Computing what may leave gives nothing by itself, and leaves no bytes behind. */
static void add_two(const Steps *st, ProblemMake *m, const int32_t *at, ProblemNode n, int32_t s)
{
    ProblemNode has = {.name = n.name, .bytes = n.bytes, .pure = true, .keep = n.keep};
    has.cost = (int64_t)(st->price * moving_time(st, s)) + 1;
    n.scratch += n.bytes;
    n.bytes = 0;
    n.pure = false;
    n.keep = true;
    problem_node(m, n);
    add_inputs(st, m, at, s);
    problem_node(m, has);
    problem_input(m, m->node.n - 2);
}

/* Nothing runs after the update, and no reader of pinned storage after its change. */
static void add_stops(const Steps *st, ProblemMake *m, const int32_t *at, int32_t *changer)
{
    const Plan *p = st->p;
    for (int32_t s = 0; s < st->update; s++)
        for (int32_t i = 0; i < p->step[s].n_writes; i++)
            if (p->value[p->step[s].write[i]].pinned)
                changer[p->step[s].write[i]] = s;
    for (int32_t s = 0; s < st->update; s++) {
        bool two = may_leave(st, s);
        for (int32_t i = 0; i < p->step[s].n_reads; i++)
            if (changer[p->step[s].read[i]] > s)
                problem_stop(m, at[s] - two, at[changer[p->step[s].read[i]]]);
        for (int32_t i = 0; i <= two && st->n > st->update; i++)
            problem_stop(m, at[s] - i, at[st->update]);
    }
}

static int64_t given_bytes(const Plan *p)
{
    int64_t sum = 0;
    for (int32_t v = 0; v < p->n_values; v++)
        if (is_given(&p->value[v]))
            sum += block_bytes(p->value[v].bytes);
    return sum;
}

Problem *steps_problem(const Steps *st, Arena *out)
{
    ProblemMake m = {.arena = out};
    const int32_t *at = nodes_of_steps(st, out);
    for (int32_t s = 0; s < st->n; s++) {
        ProblemNode n = search_node(st, &m, at, s);
        if (may_leave(st, s)) {
            add_two(st, &m, at, n, s);
            continue;
        }
        problem_node(&m, n);
        add_inputs(st, &m, at, s);
    }
    add_stops(st, &m, at, NEW_ARRAY(out, int32_t, st->p->n_values));
    return problem_end(&m, pinned_bytes(st->p) + given_bytes(st->p));
}

/* ---- for proofs ----------------------------------------------------------------------- */

/* By node: it follows from the moment, which itself does not. */
static bool *find_after(const Steps *st, int32_t moment, Arena *out)
{
    bool *after = NEW_ARRAY(out, bool, st->n);
    for (int32_t v = moment + 1; v < st->n; v++)
        for (int32_t s = v; s < end_of(st, v); s++)
            for (int32_t i = 0; i < st->p->step[s].n_reads; i++) {
                int32_t writer = st->writer[st->p->step[s].read[i]];
                after[v] =
                    after[v] || writer == moment || (writer >= 0 && writer < v && after[writer]);
            }
    return after;
}

/* By value: the caller reads it at the end, or a node that is marked does. */
static bool *find_wanted(const Steps *st, const bool *by, Arena *out)
{
    bool *wanted = NEW_ARRAY(out, bool, st->p->n_values);
    for (int32_t v = 0; v < st->p->n_values; v++)
        wanted[v] = st->p->value[v].to_end;
    for (int32_t v = 0; v < st->n; v++)
        for (int32_t s = v; by[v] && s < end_of(st, v); s++)
            for (int32_t i = 0; i < st->p->step[s].n_reads; i++)
                wanted[st->p->step[s].read[i]] = true;
    return wanted;
}

/* Of the step's values: all that are wanted, or else the smallest that is used. */
static int64_t bytes_there(const Steps *st, int32_t s, const bool *wanted)
{
    const PlanStep *step = &st->p->step[s];
    int64_t all = 0, least = INT64_MAX;
    for (int32_t i = 0; i < step->n_writes; i++) {
        int64_t bytes = bytes_of(st, step->write[i]);
        if (st->p->value[step->write[i]].pinned || !st->used[step->write[i]])
            continue;
        all += wanted[step->write[i]] ? bytes : 0;
        least = bytes < least ? bytes : least;
    }
    return all > 0 ? all : least < INT64_MAX ? least : 0;
}

/* Values that the node's steps read and that were there before: each counts once. */
static int64_t read_bytes(const Steps *st, int32_t node, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    bool *seen = NEW_ARRAY(scratch, bool, st->p->n_values);
    int64_t bytes = 0;
    for (int32_t s = node; s < end_of(st, node); s++)
        for (int32_t i = 0; i < st->p->step[s].n_reads; i++) {
            int32_t v = st->p->step[s].read[i];
            if (seen[v] || st->writer[v] >= node)
                continue;
            seen[v] = true;
            bytes += bytes_of(st, v);
        }
    arena_reset(scratch, mark);
    return bytes;
}

int64_t steps_working_set(const Steps *st, int32_t node, Arena *scratch)
{
    return pinned_bytes(st->p) + read_bytes(st, node, scratch) + own_bytes(st, node);
}

Problem *steps_relaxed(const Steps *st, int32_t moment, Arena *out)
{
    ProblemMake m = {.arena = out};
    const bool *wanted = find_wanted(st, find_after(st, moment, out), out);
    for (int32_t v = 0; v < st->n; v++) {
        ProblemNode n = node_of(st, v);
        n.bytes = v == st->update ? 0 : bytes_there(st, v, wanted);
        problem_node(&m, n);
        add_inputs(st, &m, NULL, v);
    }
    Problem *p = problem_end(&m, pinned_bytes(st->p));
    p->node[moment].scratch = steps_working_set(st, moment, out) - problem_working_set(p, moment);
    return p;
}
