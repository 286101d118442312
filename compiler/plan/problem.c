#include "problem.h"

#include <assert.h>

void problem_node(ProblemMake *m, ProblemNode node)
{
    vec_push(m->arena, &m->node, node);
    vec_push(m->arena, &m->input_at, m->input.n);
}

void problem_input(ProblemMake *m, int32_t input)
{
    assert(input >= 0 && input < m->node.n - 1);
    for (int32_t i = m->input_at.at[m->node.n - 1]; i < m->input.n; i++)
        if (m->input.at[i] == input)
            return;
    vec_push(m->arena, &m->input, input);
}

void problem_stop(ProblemMake *m, int32_t node, int32_t by)
{
    assert(node < by && by < m->node.n && !m->node.at[by].pure);
    vec_push(m->arena, &m->stop, ((ProblemStop){node, by}));
}

/* Lists of who stops whom, by node. */
static void find_stops(Problem *p, const ProblemMake *m)
{
    p->stop_at = NEW_ARRAY(m->arena, int32_t, p->n + 2);
    p->halt_at = NEW_ARRAY(m->arena, int32_t, p->n + 2);
    p->stop = NEW_ARRAY(m->arena, int32_t, m->stop.n);
    p->halt = NEW_ARRAY(m->arena, int32_t, m->stop.n);
    for (int32_t i = 0; i < m->stop.n; i++) {
        p->stop_at[m->stop.at[i].node + 2]++;
        p->halt_at[m->stop.at[i].by + 2]++;
    }
    for (int32_t v = 0; v < p->n; v++) {
        p->stop_at[v + 2] += p->stop_at[v + 1];
        p->halt_at[v + 2] += p->halt_at[v + 1];
    }
    for (int32_t i = 0; i < m->stop.n; i++) {
        const ProblemStop *s = &m->stop.at[i];
        p->stop[p->stop_at[s->node + 1]++] = s->by;
        p->halt[p->halt_at[s->by + 1]++] = s->node;
    }
}

/* Turns the lists of inputs around. */
static void find_users(Problem *p, Arena *a)
{
    p->user_at = NEW_ARRAY(a, int32_t, p->n + 2);
    p->user = NEW_ARRAY(a, int32_t, p->input_at[p->n]);
    for (int32_t i = 0; i < p->input_at[p->n]; i++)
        p->user_at[p->input[i] + 2]++;
    for (int32_t v = 0; v < p->n; v++)
        p->user_at[v + 2] += p->user_at[v + 1];
    for (int32_t v = 0; v < p->n; v++)
        for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++)
            p->user[p->user_at[p->input[i] + 1]++] = v;
}

Problem *problem_end(ProblemMake *m, int64_t pinned)
{
    Problem *p = NEW(m->arena, Problem);
    vec_push(m->arena, &m->input_at, m->input.n);
    *p = (Problem){.n = m->node.n,
                   .node = m->node.at,
                   .input_at = m->input_at.at,
                   .input = m->input.at,
                   .pinned = pinned};
    for (int32_t v = 0; v < p->n; v++)
        p->cost_base += p->node[v].cost;
    find_users(p, m->arena);
    find_stops(p, m);
    return p;
}

int64_t problem_working_set(const Problem *p, int32_t v)
{
    int64_t bytes = p->pinned + p->node[v].bytes + p->node[v].scratch - p->node[v].over_bytes;
    for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++)
        bytes += p->node[p->input[i]].bytes;
    return bytes;
}
