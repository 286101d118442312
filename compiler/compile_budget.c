/* What a budget changes in the pipeline: steps run again, and where that is not enough, or dearer,
 * scans are cut into runs. */
#include "compile.h"

#include "kernel/program.h"
#include "plan/within.h"

/* ---- steps that run again --------------------------------------------------------- */

/* The budget in bytes, for all entries; 0: there is none. */
static int64_t budget_bytes(const BudgetAsked *asked, Within **w, const Output *out)
{
    int64_t most = 0, least = 0, pinned = 0;
    for (int e = 0; e < N_ENTRIES; e++) {
        if (out->plan[e] == NULL)
            continue;
        pinned = out->plan[e]->base;
        most = out->plan[e]->peak > most ? out->plan[e]->peak : most;
        int64_t needs = asked->kind == BUDGET_LEAST ? within_least(w[e]) : 0;
        least = needs > least ? needs : least;
    }
    switch (asked->kind) {
    case BUDGET_LEAST:
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

bool compile_within(Ctx *cx, const Options *o, Output *out)
{
    Within *w[N_ENTRIES] = {NULL};
    if (o->budget.kind == BUDGET_NONE)
        return true;
    for (int e = 0; e < N_ENTRIES; e++)
        if (out->plan[e] != NULL)
            w[e] = within_open(out->plan[e], o->effort, out->arena);
    int64_t budget = out->budget = budget_bytes(&o->budget, w, out);
    for (int e = 0; e < N_ENTRIES; e++) {
        if (w[e] == NULL)
            continue;
        out->over = out->over || out->plan[e]->peak > budget;
        bool fits = within_plan(w[e], budget);
        /* Proofs are of the steps as they are: where scans can be cut, of no use. */
        if ((!fits || o->prove) && !out->has_runs)
            within_prove(w[e], budget);
        if (e == ENTRY_GRAD || e == ENTRY_STEP)
            out->plan[e]->budget.levels = o->scan_levels;
        within_close(w[e]);
    }
    const Plan *worst = worst_of(out, budget);
    return worst == NULL || plan_fits(cx, worst, budget, NO_SPAN);
}

/* ---- scans cut into runs ---------------------------------------------------------- */

typedef struct Depths {
    Ctx *cx;
    int32_t source;
    Options o;
    Output *out;
    int n_diags, n_warnings; /* of the graphs, which every depth has again */
    int64_t once[N_ENTRIES]; /* what the entries cost without a budget */
    int32_t best;            /* depth: the cheapest that fits, else the one that needs least */
    int64_t best_cost;       /* INT64_MAX: none has fitted */
    int64_t least;
} Depths;

static void note_costs(Depths *d)
{
    int64_t cost = 0, least = 0;
    for (int e = 0; e < N_ENTRIES; e++) {
        Plan *p = d->out->plan[e];
        if (p == NULL)
            continue;
        if (d->o.scan_levels == 0)
            d->once[e] = plan_cost(p, false);
        p->budget.cost_once = d->once[e];
        int64_t needs = p->peak > d->out->budget ? p->budget.least : p->peak;
        least = needs > least ? needs : least;
        cost += plan_cost(p, true);
    }
    bool fits = d->cx->n_errors == 0 && d->o.budget.kind != BUDGET_LEAST;
    bool smaller = d->best_cost == INT64_MAX && least < d->least;
    if (fits ? cost < d->best_cost : smaller)
        d->best = d->o.scan_levels;
    if (fits && cost < d->best_cost)
        d->best_cost = cost;
    d->least = least < d->least ? least : d->least;
}

/* One depth, in place of what is in `out`. False: there is no program, but a report. */
static bool try_depth(Depths *d, int32_t levels)
{
    output_free_graphs(d->out);
    *d->out = (Output){.arena = d->out->arena, .has_runs = true};
    d->o.scan_levels = levels;
    d->cx->diag.n = d->n_diags;
    d->cx->n_errors = 0;
    d->cx->n_warnings = d->n_warnings;
    if (!compile_graphs(d->cx, d->source, &d->o, false, d->out))
        return false;
    d->cx->diag.n = d->n_diags;
    d->cx->n_warnings = d->n_warnings;
    bool fits = compile_program(d->cx, &d->o, d->out);
    note_costs(d);
    return fits;
}

bool compile_planned(Ctx *cx, int32_t source, const Options *o, Output *out)
{
    Depths d = {.cx = cx, .source = source, .o = *o, .out = out, .best_cost = INT64_MAX};
    d.least = INT64_MAX;
    if (!compile_graphs(cx, source, o, false, out))
        return false;
    d.n_diags = cx->diag.n;
    d.n_warnings = cx->n_warnings;
    out->has_runs = out->has_runs && o->budget.kind != BUDGET_NONE;
    bool fits = compile_program(cx, o, out);
    if (!out->has_runs || (!out->over && o->budget.kind != BUDGET_LEAST))
        return fits;
    note_costs(&d);
    if (o->budget.kind == BUDGET_SHARE)
        d.o.budget = (BudgetAsked){.kind = BUDGET_BYTES, .bytes = out->budget};
    for (int32_t levels = 1; levels < MAX_LOOP_DEPTH; levels++) {
        int64_t before = d.least;
        try_depth(&d, levels);
        if (d.least >= before) /* deeper ones are not smaller either */
            break;
    }
    return d.best == d.o.scan_levels ? cx->n_errors == 0 : try_depth(&d, d.best);
}
