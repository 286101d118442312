/* Programs that keep to a budget, timed: kernels that run one by one can't tell that a smaller
 * block lies in nearer caches, or what a kernel that runs again finds there. */
#include "compile_forms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of forms that are planned for the same budget; none where calls take longer. */
enum { MOST_RIVALS = 2 };
static const double most_rival_ns = 2.5e8;

typedef struct Measured {
    Forms *f;
    Options timed; /* f->o, with the entries that there are */
    TimedModel model;
    int64_t budget;
    TimedPlan own;  /* the cheapest as predicted */
    TimedPlan here; /* what is in `out` */
    TimedPlan best;
    VEC(const char *) stale; /* keys of programs that are no longer made */
} Measured;

static Measured measured_of(Forms *f)
{
    Measured m = {.f = f, .timed = f->o, .budget = f->out->budget};
    for (int e = 0; e < N_ENTRIES; e++)
        m.timed.entry[e] = f->out->plan[e] != NULL;
    f->o.budget = (BudgetAsked){.kind = BUDGET_BYTES, .bytes = m.budget};
    f->best = f->out->form;
    f->has_program = true;
    return m;
}

/* In ns, of all entries that are timed. */
static double time_of(const Measured *m, const TimedPlan *x)
{
    double sum = 0;
    for (int e = 0; e < N_ENTRIES; e++) {
        if (e == ENTRY_INIT || !m->timed.entry[e])
            continue;
        sum += x->ratio[e] > 0 ? x->ratio[e] * (double)m->f->once[e] : INFINITY;
    }
    return sum;
}

static const TimedPlan same_time = {.ratio = {1, 1, 1, 1}};

/* The plan is the one without a budget. */
static bool is_unchanged(const Output *out, const Plan *p)
{
    return same_form(&out->form, &(Form){0}) && p->budget.least == 0;
}

/* What is in `out`, into m->here. */
static bool time_here(Measured *m)
{
    Forms *f = m->f;
    const KernelTimer *t = f->o.timer;
    TimedPlan x = {.form = f->out->form, .budget = f->o.within > 0 ? f->o.within : m->budget};
    for (int e = 0; e < N_ENTRIES; e++) {
        const Plan *p = f->out->plan[e];
        if (p == NULL)
            continue;
        x.peak = p->peak > x.peak ? p->peak : x.peak;
        x.ratio[e] = e != ENTRY_INIT && is_unchanged(f->out, p) ? 1 : 0;
    }
    bool ok = isfinite(time_of(m, &x)) || t->plan(t->of, f->cx, &m->model, f->out, &x);
    m->here = x;
    return ok;
}

static bool plan_form(Measured *m, Form form, int64_t within)
{
    Forms *f = m->f;
    f->o.within = within;
    bool ok = forms_plan(f, form) && f->cx->n_errors == 0;
    if (ok)
        forms_describe(f);
    return ok;
}

static void take_if_faster(Measured *m)
{
    if (m->here.untimed == NULL && time_of(m, &m->here) < time_of(m, &m->best))
        m->best = m->here;
}

static int by_cost(const void *a, const void *b)
{
    int64_t x = ((const Rival *)a)->cost, y = ((const Rival *)b)->cost;
    return (x > y) - (x < y);
}

/* Other forms, of nearly the same cost as predicted. */
static bool time_rivals(Measured *m)
{
    Forms *f = m->f;
    int tried = time_of(m, &same_time) <= most_rival_ns ? 0 : MOST_RIVALS;
    if (f->rival.n > 0)
        qsort(f->rival.at, (size_t)f->rival.n, sizeof *f->rival.at, by_cost);
    for (int i = 0; i < f->rival.n && tried < MOST_RIVALS; i++) {
        const Rival *r = &f->rival.at[i];
        if ((double)r->cost > RIVAL_COST * (double)f->best_cost ||
            same_form(&r->form, &m->own.form))
            continue;
        tried++;
        if (!plan_form(m, r->form, m->budget))
            continue;
        if (!time_here(m))
            return false;
        take_if_faster(m);
    }
    return true;
}

static bool is_stale(const Measured *m, const TimedPlan *x)
{
    for (int i = 0; i < m->stale.n; i++)
        if (strcmp(m->stale.at[i], x->key) == 0)
            return true;
    return false;
}

/* Of what was timed before and keeps to the budget, the fastest; NULL: none is faster. */
static const TimedPlan *fastest_known(const Measured *m)
{
    const KernelTimer *t = m->f->o.timer;
    const TimedPlan *best = &m->best, *x;
    for (int i = 0; (x = t->known(t->of, &m->model, i)) != NULL; i++)
        if (x->peak <= m->budget && !is_stale(m, x) && time_of(m, x) < time_of(m, best))
            best = x;
    return best == &m->best ? NULL : best;
}

/* Whoever plans for a smaller budget may have found what is faster: it is planned again. */
static bool take_known(Measured *m)
{
    const TimedPlan *known;
    while ((known = fastest_known(m)) != NULL) {
        const TimedPlan x = *known; /* the list may move */
        if (plan_form(m, x.form, x.budget) && !time_here(m))
            return false;
        if (m->f->cx->n_errors == 0 && strcmp(m->here.key, x.key) == 0)
            m->best = m->here;
        else
            vec_push(m->f->out->arena, &m->stale, arena_strdup(m->f->out->arena, x.key));
    }
    return true;
}

/* The best, in `out`. */
static void bring(Measured *m)
{
    Forms *f = m->f;
    bool own = strcmp(m->best.key, m->own.key) == 0;
    if (own && f->is_kept)
        forms_bring_back(f);
    else if (!own && strcmp(m->best.key, m->here.key) != 0)
        plan_form(m, m->best.form, m->best.budget);
}

static void tell(const Measured *m)
{
    for (int e = 0; e < N_ENTRIES; e++) {
        Plan *p = m->f->out->plan[e];
        if (p == NULL || e == ENTRY_INIT)
            continue;
        p->budget.ratio = m->best.ratio[e];
        p->budget.untimed = m->best.untimed;
    }
}

/* ... in `out`. */
static bool find_best(Measured *m, BudgetKind asked)
{
    if (!time_here(m))
        return false;
    m->best = m->own = m->here;
    if (m->own.untimed != NULL)
        return true;
    if (asked != BUDGET_LEAST && !time_rivals(m)) /* else no other form needs so little */
        return false;
    if (!take_known(m))
        return false;
    bring(m);
    return m->f->cx->n_errors == 0;
}

bool forms_measure(Forms *f, BudgetKind asked)
{
    Measured m = measured_of(f);
    m.model = (TimedModel){f->source, &m.timed, f->hash};
    bool ok = find_best(&m, asked);
    if (ok)
        tell(&m);
    forms_drop_kept(f);
    return ok;
}
