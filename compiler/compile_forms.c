/* Forms of a program: where steps that run again are not enough for a budget, or dearer, the
 * graphs are built in another way. */
#include "compile_forms.h"

#include "pass/pass.h"

/* ---- how good a form is ------------------------------------------------------------- */

/* Bytes that the entries need, with steps that run again where the budget asks for them. */
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

int64_t forms_cost(const Forms *f, int e)
{
    int64_t cost = plan_cost(f->out->plan[e], true);
    return f->out->form.split > 1 || cost > f->once[e] ? cost : f->once[e];
}

/* In ns, of all entries. */
static int64_t cost_of(const Forms *f)
{
    int64_t cost = 0;
    for (int e = 0; e < N_ENTRIES; e++)
        cost += f->out->plan[e] == NULL ? 0 : forms_cost(f, e);
    return cost;
}

void forms_describe(const Forms *f)
{
    const Form *form = &f->out->form;
    for (int e = 0; e < N_ENTRIES; e++) {
        Plan *p = f->out->plan[e];
        if (p == NULL)
            continue;
        p->budget.cost_once = f->once[e];
        if (e != ENTRY_INIT && form->split > 1) {
            p->budget.rows = model_batch(f->out->model);
            p->budget.split = form->split;
            p->budget.cost_whole = f->whole[e];
        }
        light_describe(f, e, &p->budget);
    }
}

/* ---- one form in place of another ------------------------------------------------------ */

/* Makes room in `out`: the best form so far is not planned again. */
static void put_by(Forms *f)
{
    if (!f->has_program || f->is_kept || !same_form(&f->best, &f->out->form)) {
        output_free_graphs(f->out);
        return;
    }
    f->kept = *f->out;
    f->is_kept = true;
}

void forms_drop_kept(Forms *f)
{
    if (f->is_kept)
        output_free_graphs(&f->kept);
    f->is_kept = false;
}

/* Is what stands in `out` the best so far? Of equals, the smallest, and then the first that was
 * tried. */
static void judge_form(Forms *f)
{
    int64_t cost = cost_of(f), least = needed(f->out);
    bool fits = f->cx->n_errors == 0 && f->o.budget.kind != BUDGET_LEAST;
    bool better = fits ? cost < f->best_cost || (cost == f->best_cost && least < f->best_bytes)
                       : f->best_cost == INT64_MAX && least < f->least;
    light_note(f);
    f->least = least < f->least ? least : f->least;
    if (fits && f->o.timer != NULL)
        vec_push(f->out->arena, &f->rival, ((Rival){.form = f->o.form, .cost = cost}));
    if (!better)
        return;
    forms_drop_kept(f);
    f->has_program = f->cx->n_errors == 0;
    f->best = f->o.form;
    f->best_cost = fits ? cost : f->best_cost;
    f->best_bytes = least;
    for (int e = 0; e < N_ENTRIES && fits && f->o.form.split == 0; e++)
        f->whole[e] = f->out->plan[e] == NULL ? 0 : plan_cost(f->out->plan[e], true);
}

/* ---- one after the other ------------------------------------------------------------ */

/* Forms that cost more are not planned, but for what one of two entries may have alone. */
static int64_t enough(const Forms *f, const Form *form)
{
    bool alone = f->once[ENTRY_GRAD] == 0 || f->once[ENTRY_STEP] == 0 || form->split > 0;
    if (f->best_cost == INT64_MAX || f->o.within > 0 || (form->keeps_light != 0 && !alone))
        return 0;
    return f->o.timer != NULL ? (int64_t)(RIVAL_COST * (double)f->best_cost) : f->best_cost;
}

bool forms_plan(Forms *f, Form form)
{
    put_by(f);
    *f->out = (Output){.arena = f->out->arena, .has_forms = f->has_forms};
    f->o.form = form;
    f->o.enough = enough(f, &form);
    f->cx->diag.n = f->n_diags;
    f->cx->n_errors = 0;
    f->cx->n_warnings = f->n_warnings;
    if (!compile_graphs(f->cx, f->source, &f->o, false, f->out) ||
        (model_pinned(f->out->model)->rows >= 0) != f->counts_rows)
        return false;
    f->cx->diag.n = f->n_diags;
    f->cx->n_warnings = f->n_warnings;
    bool fits = compile_program(f->cx, &f->o, f->out);
    bool planned = fits || f->out->budget > 0; /* else it fails for something else */
    return planned && !f->out->dear && !(f->o.once && f->out->over);
}

/* Gives the bytes that the form needs; INT64_MAX: forms_plan() fails. */
static int64_t try_form(Forms *f, Form form)
{
    if (!forms_plan(f, form)) {
        if (f->out->dear)
            light_note(f);
        return INT64_MAX;
    }
    judge_form(f);
    forms_describe(f);
    return needed(f->out);
}

/* How much of a scan's steps may be kept, from the least to the most: in 64ths, and below
 * that in halves. */
enum { N_HALVES = 6, N_KEPT = N_HALVES + 63 };

static int32_t kept_share(int i)
{
    return i < N_HALVES ? 1 << i : KEEP_ALL / 64 * (i - N_HALVES + 1);
}

/* The most that fits with every step run once, and the next, in which others have to run again.
 * By bisection: what more bytes allow contains what fewer do, so that a search with more never
 * ends below one with fewer. */
static void try_kept(Forms *f, Form form)
{
    bool least = f->o.budget.kind == BUDGET_LEAST;
    if (!f->out->has_kept || !(f->out->over || least))
        return;
    int fits = -1, over = least ? 0 : N_KEPT;
    f->o.once = true;
    while (over - fits > 1) {
        int i = fits + (over - fits) / 2;
        form.kept = kept_share(i);
        try_form(f, form);
        /* one that is too dear is cheaper than all that keep less */
        *(f->out->dear || !f->out->over ? &fits : &over) = i;
    }
    f->o.once = false;
    form.kept = kept_share(over);
    if (over < N_KEPT)
        try_form(f, form);
}

/* Runs within runs, until deeper ones are not smaller either. */
static void try_scans(Forms *f, Form form, int64_t least)
{
    bool short_of_bytes = f->out->over || f->o.budget.kind == BUDGET_LEAST;
    for (int32_t levels = 1; f->out->has_runs && short_of_bytes && levels < MAX_LOOP_DEPTH;
         levels++) {
        form.scan_levels = levels;
        int64_t needs = try_form(f, form);
        if (needs >= least)
            break;
        least = needs;
    }
}

/* Wide values in slices, until more slices are not smaller either; with scans whole and cut. */
static void try_slices(Forms *f, Form form, int64_t least)
{
    bool short_of_bytes = f->out->over || f->o.budget.kind == BUDGET_LEAST;
    if (!f->out->has_slices || !short_of_bytes)
        return;
    for (form.slices = FEW_SLICES; form.slices <= MANY_SLICES;
         form.slices *= MANY_SLICES / FEW_SLICES) {
        form.scan_levels = 0;
        int64_t needs = try_form(f, form);
        if (needs == INT64_MAX) /* too dear; more slices need not be */
            continue;
        try_scans(f, form, needs);
        if (needs >= least)
            break;
        least = needs;
    }
}

/* Divisors of the batch, of many only some, by which it may be split. */
static void find_splits(Forms *f)
{
    const Model *m = f->out->model;
    int64_t rows = model_batch(m), last = 1;
    bool entry[N_ENTRIES];
    for (int e = 0; e < N_ENTRIES; e++)
        entry[e] = compile_has_entry(&f->o, m, (EntryKind)e);
    if (rows < 2)
        f->o.unsplit = "the model has no `batch` of several rows";
    for (int64_t k = 2; k <= rows; k++) {
        if (rows % k != 0 || (4 * k < 5 * last && k < rows))
            continue;
        const char *why = model_splits(f->cx, m, f->o.define, f->o.n_defines, last = k, entry);
        if (why == NULL)
            vec_push(f->out->arena, &f->split, k);
        else if (f->o.unsplit == NULL)
            f->o.unsplit = why;
    }
    if (f->split.n > 0)
        f->o.unsplit = NULL;
}

/* What there is besides a form that is in `out`. */
static void try_around(Forms *f, Form form, int64_t needs)
{
    const Output first = *f->out;
    try_kept(f, form);
    f->out->over = first.over;
    f->out->has_runs = first.has_runs;
    try_scans(f, form, needs);
    f->out->over = first.over;
    f->out->has_slices = first.has_slices;
    try_slices(f, form, needs);
}

static void try_with(Forms *f, Form form)
{
    int64_t needs = try_form(f, form);
    if (needs < INT64_MAX)
        try_around(f, form, needs);
}

/* A plan that may take any step again finds others than are left where elementwise values are
 * computed again in any case; and some are only left there. Each entry has what is better for it,
 * so that more bytes for one never cost the time of another. */
static void try_light(Forms *f)
{
    Form form = f->first;
    form.keeps_light = KEEPS_LIGHT;
    try_with(f, form);
    form.keeps_light = light_choose(f);
    if (form.keeps_light != 0 && form.keeps_light != KEEPS_LIGHT)
        try_form(f, form);
}

static void try_all(Forms *f)
{
    const bool short_of_bytes = f->out->over || f->o.budget.kind == BUDGET_LEAST;
    try_around(f, f->first, needed(f->out));
    if (f->has_light && short_of_bytes)
        try_light(f);
    for (int i = 0; i < f->split.n; i++) {
        Form form = {.split = f->split.at[i]};
        try_with(f, form);
        form.keeps_light = KEEPS_LIGHT;
        if (f->has_light)
            try_with(f, form);
    }
}

/* Where no batch may be split, only if the first form is not good enough; else in any case, for
 * one that is cheaper than the first has to be found whatever the budget is. */
static bool has_to_try(const Forms *f)
{
    bool short_of_bytes = f->out->over || f->o.budget.kind == BUDGET_LEAST;
    return f->split.n > 0 || ((f->has_forms || f->has_light) && short_of_bytes);
}

void forms_bring_back(Forms *f)
{
    if (f->is_kept) {
        output_free_graphs(f->out);
        *f->out = f->kept;
        f->is_kept = false;
        f->cx->diag.n = f->n_diags;
        f->cx->n_errors = 0;
        f->cx->n_warnings = f->n_warnings;
    } else if (!same_form(&f->best, &f->o.form)) {
        try_form(f, f->best);
    }
}

/* ... where none has fitted, after no proof that is of this form alone. */
static void bring_best(Forms *f)
{
    if (!f->has_program && light_exists(f))
        try_form(f, f->best);
    else
        forms_bring_back(f);
}

/* What is the least that is found with keeps_light may be less than without, or more: what is
 * proved of either is to be of the same bytes. */
static void prove_least(Forms *f)
{
    Form other = f->best;
    other.keeps_light ^= KEEPS_LIGHT;
    if (f->o.budget.kind != BUDGET_LEAST || !f->has_light || f->has_forms || !f->o.prove)
        return;
    f->o.budget = (BudgetAsked){.kind = BUDGET_BYTES, .bytes = f->least};
    f->o.only_prove = true;
    forms_plan(f, other);
    f->o.only_prove = false;
    light_note(f);
}

/* Steps one after the other take longer than each alone: what they read may be far from where it is
 * computed. It is the same in all forms and plans, which compute the same at least. */
static bool time_whole(Forms *f)
{
    const KernelTimer *t = f->o.timer;
    double ns[N_ENTRIES] = {0};
    if (t == NULL)
        return true;
    Options o = f->o;
    for (int e = 0; e < N_ENTRIES; e++)
        o.entry[e] = f->out->plan[e] != NULL;
    if (!t->whole(t->of, f->cx, &(TimedModel){f->source, &o, f->hash}, ns))
        return false;
    for (int e = 0; e < N_ENTRIES; e++) {
        Plan *p = f->out->plan[e];
        if (p != NULL && ns[e] > 0)
            p->beside = f->o.beside[e] = (int64_t)ns[e] - plan_cost(p, false);
    }
    return true;
}

/* What the entries take without a budget. */
static void note_once(Forms *f)
{
    for (int e = 0; e < N_ENTRIES; e++) {
        const Plan *p = f->out->plan[e];
        f->once[e] = p == NULL ? 0 : plan_cost(p, false);
        f->o.once_peak[e] = p == NULL ? 0 : p->budget.once;
    }
}

static int64_t largest_peak(const Output *out)
{
    int64_t most = 0;
    for (int e = 0; e < N_ENTRIES; e++)
        if (out->plan[e] != NULL && out->plan[e]->peak > most)
            most = out->plan[e]->peak;
    return most;
}

/* What would be planned without a budget keeps to it. */
static bool fits_as_it_is(const Forms *f)
{
    Options o = f->o;
    Output probe = {.arena = f->out->arena};
    const int n_diags = f->cx->diag.n, n_warnings = f->cx->n_warnings;
    if (o.budget.kind != BUDGET_BYTES)
        return false;
    o.budget = (BudgetAsked){.kind = BUDGET_NONE};
    o.timer = NULL;
    o.prove = false;
    bool planned =
        compile_graphs(f->cx, f->source, &o, false, &probe) && compile_program(f->cx, &o, &probe);
    bool fits = planned && largest_peak(&probe) <= f->o.budget.bytes;
    output_free_graphs(&probe);
    f->cx->diag.n = n_diags;
    f->cx->n_warnings = n_warnings;
    f->cx->n_errors = 0;
    return fits;
}

/* The form that is the cheapest as predicted, in `out`. */
static bool choose_form(Forms *f)
{
    f->first = f->o.form;
    f->counts_rows = model_pinned(f->out->model)->rows >= 0;
    if (f->o.allow_split)
        find_splits(f);
    bool others = f->out->has_runs || f->out->has_kept || f->out->has_slices || f->split.n > 0;
    f->has_light = f->out->has_light && f->o.budget.kind != BUDGET_NONE;
    f->has_forms = f->out->has_forms = others && f->o.budget.kind != BUDGET_NONE;
    f->o.tells = fits_as_it_is(f);
    bool fits = compile_program(f->cx, &f->o, f->out);
    bool more = (fits || f->out->budget > 0) && has_to_try(f);
    if ((fits || more) && !time_whole(f))
        return false;
    note_once(f);
    if (!more)
        return fits;
    judge_form(f);
    forms_describe(f);
    if (f->o.budget.kind == BUDGET_SHARE) /* of what the first form takes */
        f->o.budget = (BudgetAsked){.kind = BUDGET_BYTES, .bytes = f->out->budget};
    try_all(f);
    prove_least(f);
    bring_best(f);
    forms_describe(f);
    return f->cx->n_errors == 0;
}

static bool plan_as(Forms *f, Form form)
{
    f->o.form = form;
    f->cx->diag.n = f->n_diags; /* the same graphs have the same reports again */
    f->cx->n_warnings = f->n_warnings;
    return compile_graphs(f->cx, f->source, &f->o, false, f->out) &&
           compile_program(f->cx, &f->o, f->out);
}

static void plan_anew(Forms *f)
{
    output_free_graphs(f->out);
    *f->out = (Output){.arena = f->out->arena};
}

/* The least that is found without a contraction that runs again, whichever elementwise values are
 * computed again, and what that costs. */
static bool plan_light(Forms *f)
{
    static const Form form[] = {{0}, {.keeps_light = KEEPS_LIGHT}, {.remakes_light = true}};
    enum { LAST = sizeof form / sizeof *form - 1 };
    int best = 0;
    int64_t least = INT64_MAX;
    f->n_diags = f->cx->diag.n;
    f->n_warnings = f->cx->n_warnings;
    f->o.prove = false; /* a bound would be one of plans in which those values are computed again */
    for (int i = 0; i <= LAST; i++) {
        plan_anew(f);
        if (!plan_as(f, form[i]))
            return false;
        if (i == 0)
            note_once(f);
        int64_t bytes = largest_peak(f->out);
        best = bytes < least || (bytes == least && i == LAST) ? i : best;
        least = bytes < least ? bytes : least;
    }
    if (best != LAST) {
        plan_anew(f);
        if (!plan_as(f, form[best]))
            return false;
    }
    forms_describe(f);
    return true;
}

/* In the form that is the cheapest. */
static bool plan_forms(Forms *f)
{
    if (!compile_graphs(f->cx, f->source, &f->o, false, f->out))
        return false;
    f->n_diags = f->cx->diag.n;
    f->n_warnings = f->cx->n_warnings;
    model_hash(f->out->model, f->hash);
    const BudgetKind asked = f->o.budget.kind;
    return choose_form(f) &&
           (f->o.timer == NULL || asked == BUDGET_NONE || forms_measure(f, asked));
}

bool compile_planned(Ctx *cx, int32_t source, const Options *o, Output *out)
{
    Forms f = {.cx = cx, .source = source, .o = *o, .out = out};
    f.best_cost = f.least = INT64_MAX;
    bool ok = o->budget.kind == BUDGET_LIGHT ? plan_light(&f) : plan_forms(&f);
    if (o->timer != NULL)
        o->timer->close(o->timer->of);
    return ok;
}
