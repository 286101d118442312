/* What steps are predicted to take, by a cost model: where none was measured, that of a machine
 * that stands for all. */
#include "offload.h"

const CostModel cost_time = {
    .flops = 50, .bytes = 20, .call = 50, .work = 35, .store = STORE_HOST_RATE};
const CostModel cost_flops = {.flops = 1, .from = "counted in flops", .store = STORE_HOST_RATE};

/* A loop takes what its steps do: each of them calls, and moves bytes while nothing computes. */
static double step_cost(const CostModel *m, const PlanStep *s)
{
    if (s->kind != STEP_RUN)
        return 0;
    double compute = m->work > 0 ? s->chain / m->flops + s->work / m->work : s->flops / m->flops;
    double move = m->bytes > 0 ? s->bytes_moved / m->bytes : 0;
    if (s->ns > 0)
        return s->ns;
    if (s->body == NULL)
        return (compute > move ? compute : move) + m->call;
    double each = 0;
    for (int32_t i = 0; i < s->body->n_steps; i++)
        each += step_cost(m, &s->body->step[i]);
    return (double)s->count * each + m->call;
}

int64_t plan_step_cost(const Plan *p, const PlanStep *s)
{
    return (int64_t)step_cost(p->cost != NULL ? p->cost : &cost_time, s);
}

static int64_t sum_of_steps(const Plan *p, bool with_again)
{
    int64_t sum = p->beside;
    for (int32_t s = 0; s < p->n_steps; s++)
        if (with_again || p->step[s].run == 0)
            sum += plan_step_cost(p, &p->step[s]);
    return sum;
}

int64_t plan_cost_of_steps(const Plan *p)
{
    return sum_of_steps(p, true) + (int64_t)offload_transfers(p, NULL).waited;
}

int64_t plan_extra(const Plan *p)
{
    const PlanBudget *b = &p->budget;
    int64_t extra = plan_cost(p, true) - plan_cost(p, false);
    bool of_any_budget = b->split > 0 || b->ratio > 0;
    return extra > 0 || of_any_budget ? extra : 0;
}

int64_t plan_cost(const Plan *p, bool with_again)
{
    int64_t once = p->budget.cost_once > 0 ? p->budget.cost_once : sum_of_steps(p, false);
    if (!with_again)
        return once;
    return p->budget.ratio > 0 ? (int64_t)(p->budget.ratio * (double)once + 0.5)
                               : plan_cost_of_steps(p);
}
