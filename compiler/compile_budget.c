/* What a budget changes in the pipeline: steps run again. */
#include "compile.h"

#include "kernel/program.h"
#include "plan/within.h"

/* The budget in bytes, for all entries; 0: there is none. */
static int64_t budget_bytes(const BudgetAsked *asked, Within **w, const Output *out)
{
    int64_t most = 0, least = 0, pinned = 0;
    for (int e = 0; e < N_ENTRIES; e++) {
        if (out->plan[e] == NULL)
            continue;
        pinned = out->plan[e]->base;
        most = out->plan[e]->peak > most ? out->plan[e]->peak : most;
        int64_t needs = budget_is_least(asked) ? within_least(w[e]) : 0;
        least = needs > least ? needs : least;
    }
    switch (asked->kind) {
    case BUDGET_LEAST:
    case BUDGET_LIGHT:
        return least;
    case BUDGET_SHARE:
        return budget_share(pinned, most, asked->share);
    case BUDGET_BYTES:
        return asked->bytes;
    default:
        return 0;
    }
}

/* The entry that a budget fails for: one of which that is proved, else the one whose least is
 * the largest. NULL: it fails for none. */
static const Plan *worst_of(const Output *out, int64_t budget)
{
    const Plan *worst = NULL;
    for (int e = 0; e < N_ENTRIES; e++) {
        const Plan *p = out->plan[e];
        if (p == NULL || p->peak <= budget)
            continue;
        bool proved = p->budget.impossible != NULL;
        bool known = worst != NULL && worst->budget.impossible != NULL;
        if (worst == NULL || proved > known ||
            (proved == known && p->budget.least > worst->budget.least))
            worst = p;
    }
    return worst;
}

static int64_t cost_once(const Output *out)
{
    int64_t cost = 0;
    for (int e = 0; e < N_ENTRIES; e++)
        cost += out->plan[e] == NULL ? 0 : plan_cost(out->plan[e], false);
    return cost;
}

bool compile_within(Ctx *cx, const Options *o, Output *out)
{
    Within *w[N_ENTRIES] = {NULL};
    if (o->budget.kind == BUDGET_NONE)
        return true;
    out->dear = o->enough > 0 && cost_once(out) >= o->enough;
    for (int e = 0; e < N_ENTRIES && o->once; e++)
        out->over = out->over || (out->plan[e] != NULL && out->plan[e]->peak > o->budget.bytes);
    if (out->dear || (o->once && out->over))
        return true;
    for (int e = 0; e < N_ENTRIES; e++)
        if (out->plan[e] != NULL)
            w[e] = within_open(out->plan[e], o->effort, out->arena);
    int64_t budget = out->budget = budget_bytes(&o->budget, w, out);
    int64_t within = o->within > 0 ? o->within : budget;
    for (int e = 0; e < N_ENTRIES; e++) {
        if (w[e] == NULL)
            continue;
        out->over = out->over || out->plan[e]->peak > budget;
        bool fits = !o->only_prove && within_plan(w[e], within);
        out->plan[e]->budget.bytes = budget;
        if (o->once_peak[e] > 0)
            out->plan[e]->budget.once = o->once_peak[e];
        out->plan[e]->budget.within = within != budget ? within : 0;
        /* Proofs are of the steps as they are: no other form is impossible for that. */
        bool has_runs = out->has_runs || out->has_kept;
        if (fits ? o->prove && !has_runs && o->form.slices == 0 : !out->has_forms && !o->exists[e])
            within_prove(w[e], budget);
        out->plan[e]->budget.slices = o->form.slices;
        out->plan[e]->budget.has_slices = out->has_slices;
        if (e == ENTRY_GRAD || e == ENTRY_STEP)
            out->plan[e]->budget.levels = o->form.scan_levels;
        out->plan[e]->budget.kept_steps = out->kept_steps[e];
        out->plan[e]->budget.again_steps = out->again_steps[e];
        out->plan[e]->budget.unsplit = o->unsplit;
        within_close(w[e]);
    }
    const Plan *worst = worst_of(out, budget);
    return worst == NULL || plan_fits(cx, worst, budget, NO_SPAN);
}
