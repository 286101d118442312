/* What is said of a batch that is split, or may not be, and of scans that are not whole. */
#include "report.h"

static double percent(int64_t cost, int64_t once)
{
    return once > 0 ? 100 * (double)(cost - once) / (double)once : 0;
}

const char *plan_split_text(const Plan *p, Arena *a)
{
    const PlanBudget *b = &p->budget;
    int64_t once = plan_cost(p, false);
    if (b->unsplit != NULL)
        return arena_printf(a, "the batch is not split: %s", b->unsplit);
    if (b->split == 0)
        return NULL;
    const char *head = arena_printf(
        a, "the batch of %lld is taken as %lld micro-batches of %lld: %+.2f %% of time%s",
        (long long)b->rows, (long long)b->split, (long long)(b->rows / b->split),
        percent(plan_cost(p, true), once), b->ratio > 0 ? " as measured" : "");
    if (b->cost_whole == 0 || b->bytes == 0)
        return arena_printf(a, "%s; as a whole it does not fit", head);
    return arena_printf(a, "%s instead of %+.2f %%%s", head, percent(b->cost_whole, once),
                        b->ratio > 0 ? " as predicted" : "");
}

const char *plan_scans_text(const Plan *p, Arena *a)
{
    const PlanBudget *b = &p->budget;
    if (b->again_steps > 0)
        return arena_printf(a,
                            "of %s steps of scans the last %s are kept, and the first %s run again",
                            report_exact(a, b->kept_steps + b->again_steps),
                            report_exact(a, b->kept_steps), report_exact(a, b->again_steps));
    if (b->levels > 0)
        return arena_printf(a, "scans are cut into runs, %d deep, whose values are computed again",
                            b->levels);
    return NULL;
}
