/* What budgets cost where scans may be whole, keep some of their steps or be cut. */
#include "compile.h"

typedef struct Points {
    Ctx *cx;
    int32_t source;
    Options o;
    EntryKind entry;
} Points;

/* The point of one budget; what is said of the model has been said.   fails: false, after a report.
 */
static bool find_point(Points *s, BudgetAsked budget, CurvePoint *point)
{
    Arena arena = {0};
    Output out = {.arena = &arena};
    int n_diags = s->cx->diag.n, n_warnings = s->cx->n_warnings;
    s->o.budget = budget;
    bool found = compile_planned(s->cx, s->source, &s->o, &out);
    if (found) {
        const Plan *p = out.plan[s->entry];
        const PlanBudget *b = &p->budget;
        int64_t once = plan_cost(p, false), extra = plan_cost(p, true) - once;
        *point = (CurvePoint){.budget = budget.kind == BUDGET_BYTES ? budget.bytes : p->peak,
                              .peak = p->peak,
                              .overhead = once > 0 ? (double)extra / (double)once : 0,
                              .levels = b->levels,
                              .kept_steps = b->kept_steps,
                              .again_steps = b->again_steps};
        s->cx->diag.n = n_diags;
        s->cx->n_warnings = n_warnings;
    }
    output_free(&out);
    return found;
}

bool compile_curve(Ctx *cx, const Options *o, EntryKind entry, const Output *whole, Curve *c)
{
    const Plan *p = whole->plan[entry];
    Points s = {.cx = cx, .source = whole->source, .o = *o, .entry = entry};
    if (!whole->has_runs && !whole->has_kept) {
        *c = curve_of(whole->plan[entry], o->effort, whole->arena);
        return true;
    }
    for (int e = 0; e < N_ENTRIES; e++)
        s.o.entry[e] = e == (int)entry;
    s.o.prove = false; /* proofs are of one form */
    *c = (Curve){.entry = p->entry, .pinned = p->base, .once = p->peak, .has_forms = true};
    if (!find_point(&s, (BudgetAsked){.kind = BUDGET_LEAST}, &c->at[0]))
        return false;
    int64_t range = c->once - c->at[0].budget;
    c->n = range > 0 ? CURVE_POINTS : 1;
    for (int32_t i = 0; i < c->n; i++) {
        int64_t bytes = i == c->n - 1 ? c->once : c->at[0].budget + range / (c->n - 1) * i;
        if (!find_point(&s, (BudgetAsked){.kind = BUDGET_BYTES, .bytes = bytes}, &c->at[i]))
            return false;
    }
    return true;
}
