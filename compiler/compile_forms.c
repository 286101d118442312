/* Forms of a program: where steps that run again are not enough for a budget, or dearer, the
 * graphs are built in another way. */
#include "compile.h"

#include "kernel/program.h"

typedef struct Forms {
    Ctx *cx;
    int32_t source;
    Options o; /* of the form that is in `out` */
    Output *out;
    int n_diags, n_warnings; /* of the graphs, which every form has again */
    int64_t once[N_ENTRIES]; /* what the entries cost without a budget */
    Form best;               /* the cheapest that fits, else the one that needs least */
    int64_t best_cost;       /* INT64_MAX: none has fitted */
    int64_t least;           /* bytes: the smallest peak that some form was found to have */
} Forms;

static bool same_form(const Form *a, const Form *b)
{
    return a->scan_levels == b->scan_levels && a->parts == b->parts;
}

/* Bytes that the entries need in this form, with steps that run again where the budget asks for
 * them. */
static int64_t needed(const Output *out)
{
    int64_t most = 0;
    for (int e = 0; e < N_ENTRIES; e++) {
        const Plan *p = out->plan[e];
        int64_t needs = p == NULL ? 0 : p->peak > out->budget ? p->budget.least : p->peak;
        most = needs > most ? needs : most;
    }
    return most;
}

/* In ns, of all entries; each is told what it would cost in the first form, without a budget. */
static int64_t note_costs(Forms *f, bool first)
{
    int64_t cost = 0;
    for (int e = 0; e < N_ENTRIES; e++) {
        Plan *p = f->out->plan[e];
        if (p == NULL)
            continue;
        if (first)
            f->once[e] = plan_cost(p, false);
        p->budget.cost_once = f->once[e];
        cost += plan_cost(p, true);
    }
    return cost;
}

/* Is what stands in `out` the best so far? Of equals, the first that was tried. */
static void judge_form(Forms *f, bool first)
{
    int64_t cost = note_costs(f, first), least = needed(f->out);
    bool fits = f->cx->n_errors == 0 && f->o.budget.kind != BUDGET_LEAST;
    bool smaller = f->best_cost == INT64_MAX && least < f->least;
    if (fits ? cost < f->best_cost : smaller)
        f->best = f->o.form;
    if (fits && cost < f->best_cost)
        f->best_cost = cost;
    f->least = least < f->least ? least : f->least;
}

/* One form, in place of what is in `out`. False: there is no program, but a report. */
static bool try_form(Forms *f, Form form)
{
    output_free_graphs(f->out);
    *f->out = (Output){.arena = f->out->arena, .has_forms = true};
    f->o.form = form;
    f->cx->diag.n = f->n_diags;
    f->cx->n_errors = 0;
    f->cx->n_warnings = f->n_warnings;
    if (!compile_graphs(f->cx, f->source, &f->o, false, f->out))
        return false;
    f->cx->diag.n = f->n_diags;
    f->cx->n_warnings = f->n_warnings;
    bool fits = compile_program(f->cx, &f->o, f->out);
    judge_form(f, false);
    return fits;
}

/* Runs within runs, until deeper ones are not smaller either. */
static void try_scans(Forms *f, Form form)
{
    for (form.scan_levels = 1; form.scan_levels < MAX_LOOP_DEPTH; form.scan_levels++) {
        int64_t before = f->least;
        try_form(f, form);
        if (f->least >= before)
            break;
    }
}

/* Wide values in parts, until more parts are not smaller either; with scans whole and cut. */
static void try_parts(Forms *f, bool has_runs, Form form)
{
    for (form.parts = FEW_PARTS; form.parts <= MANY_PARTS; form.parts *= MANY_PARTS / FEW_PARTS) {
        int64_t before = f->least;
        try_form(f, form);
        if (has_runs)
            try_scans(f, form);
        if (f->least >= before)
            break;
    }
}

bool compile_planned(Ctx *cx, int32_t source, const Options *o, Output *out)
{
    Forms f = {.cx = cx, .source = source, .o = *o, .out = out};
    f.best_cost = f.least = INT64_MAX;
    if (!compile_graphs(cx, source, o, false, out))
        return false;
    f.n_diags = cx->diag.n;
    f.n_warnings = cx->n_warnings;
    out->has_forms = (out->has_runs || out->has_parts) && o->budget.kind != BUDGET_NONE;
    bool has_runs = out->has_runs, has_parts = out->has_parts;
    bool fits = compile_program(cx, o, out);
    if (!out->has_forms || (!out->over && o->budget.kind != BUDGET_LEAST))
        return fits;
    judge_form(&f, true);
    if (o->budget.kind == BUDGET_SHARE) /* of what the first form takes */
        f.o.budget = (BudgetAsked){.kind = BUDGET_BYTES, .bytes = out->budget};
    if (has_runs)
        try_scans(&f, o->form);
    if (has_parts)
        try_parts(&f, has_runs, o->form);
    return same_form(&f.best, &f.o.form) ? cx->n_errors == 0 : try_form(&f, f.best);
}
