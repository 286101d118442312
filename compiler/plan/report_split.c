/* What is said of a batch that is split, or may not be. */
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
