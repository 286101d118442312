/* Elementwise values of a program under a budget: those that take little time are computed again
 * whatever the plan is, as without a budget, or all are kept but for those that the plan takes.
 * What is known of the plans of both. */
#include "compile_forms.h"

/* It is the first form, but for keeps_light. */
static bool is_first(const Forms *f, Form form)
{
    form.keeps_light = f->first.keeps_light;
    return same_form(&form, &f->first);
}

static bool has_ways(int e)
{
    return (KEEPS_LIGHT >> e & 1) != 0;
}

static bool keeps(const Form *form, int e)
{
    return has_ways(e) && (form->keeps_light >> e & 1) != 0;
}

void light_note(Forms *f)
{
    const Output *out = f->out;
    for (int e = 0; e < N_ENTRIES && is_first(f, out->form); e++) {
        const Plan *p = out->plan[e];
        LightWay *way = &f->light[e][keeps(&out->form, e)];
        if (p == NULL)
            continue;
        const PlanBudget *b = &p->budget;
        bool fits = p->peak <= out->budget;
        way->takes = fits ? forms_cost(f, e) : 0;
        way->bound = plan_cost(p, false) + b->bound;
        way->is_bound = out->dear || b->tried || (fits && b->least == 0);
        way->impossible = b->impossible != NULL;
        if (b->least > 0 || fits)
            way->least = b->least > 0 ? b->least : p->peak;
    }
}

void light_describe(const Forms *f, int e, PlanBudget *b)
{
    const LightWay *x = &f->light[e][0], *y = &f->light[e][has_ways(e)];
    if (!f->has_light || !is_first(f, f->out->form))
        return;
    for (int i = 0; i < 2; i++) {
        int64_t least = f->light[e][i].least;
        b->least = least > 0 && least < b->least ? least : b->least;
    }
    int64_t bound = y->impossible || (!x->impossible && x->bound < y->bound) ? x->bound : y->bound;
    b->tried = x->is_bound && y->is_bound;
    b->bound = b->tried && bound > f->once[e] ? bound - f->once[e] : 0;
}

/* Where plans of both are found, the cheaper; else the one that there is, or that needs less. */
static bool is_better(const LightWay *x, const LightWay *than, bool in_bytes)
{
    if (!in_bytes && x->takes > 0 && than->takes > 0)
        return x->takes < than->takes;
    if (!in_bytes && (x->takes > 0 || than->takes > 0))
        return x->takes > 0;
    return x->least > 0 && x->least < than->least;
}

int32_t light_choose(const Forms *f)
{
    const bool in_bytes = f->o.budget.kind == BUDGET_LEAST;
    int32_t entries = 0, there = 0;
    for (int e = 0; e < N_ENTRIES; e++) {
        if (f->once[e] == 0 || !has_ways(e))
            continue;
        there |= 1 << e;
        entries |= is_better(&f->light[e][1], &f->light[e][0], in_bytes) ? 1 << e : 0;
    }
    return entries == there ? KEEPS_LIGHT : entries;
}

bool light_exists(Forms *f)
{
    bool any = false;
    for (int e = 0; e < N_ENTRIES && f->has_light && !f->has_forms; e++) {
        const LightWay *way = f->light[e];
        f->o.exists[e] = has_ways(e) && way[0].impossible != way[1].impossible;
        any = any || (f->o.exists[e] && way[keeps(&f->best, e)].impossible);
    }
    return any;
}
