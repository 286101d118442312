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
        int64_t once = plan_cost(p, false), extra = plan_extra(p);
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

/* The curve of two plans: of `whole`, and where elementwise values are kept. */
static bool curve_of_both(Points *s, const Output *whole, Curve *c)
{
    Arena arena = {0};
    Output kept = {.arena = &arena};
    const KernelTimer *timer = s->o.timer;
    int n_diags = s->cx->diag.n, n_warnings = s->cx->n_warnings;
    s->o.form.keeps_light = KEEPS_LIGHT;
    s->o.beside[s->entry] = whole->plan[s->entry]->beside;
    bool planned = compile_graphs(s->cx, s->source, &s->o, false, &kept) &&
                   compile_program(s->cx, &s->o, &kept);
    if (timer != NULL)
        timer->close(timer->of);
    if (planned) {
        Plan *const plan[] = {whole->plan[s->entry], kept.plan[s->entry]};
        *c = curve_of(plan, 2, s->o.effort, whole->arena);
        s->cx->diag.n = n_diags;
        s->cx->n_warnings = n_warnings;
    }
    output_free(&kept);
    return planned;
}

bool compile_curve(Ctx *cx, const Options *o, EntryKind entry, const Output *whole, Curve *c)
{
    const Plan *p = whole->plan[entry];
    Points s = {.cx = cx, .source = whole->source, .o = *o, .entry = entry};
    if (!whole->has_runs && !whole->has_kept) {
        if (whole->has_light)
            return curve_of_both(&s, whole, c);
        *c = curve_of(&whole->plan[entry], 1, o->effort, whole->arena);
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
