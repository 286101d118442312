/* gradc plan M.model: plans, what budgets cost, pictures of both. */
#include "cli.h"

#include <string.h>

#include "../plan/curve.h"

/* The entry that a picture is of: what trains, else what evaluates. */
static EntryKind main_entry(const Output *out)
{
    for (int e = N_ENTRIES; e-- > 0;)
        if (out->plan[e] != NULL && e != ENTRY_INIT)
            return (EntryKind)e;
    return ENTRY_INIT;
}

/* What budgets cost, of the entries; NULL after a report. */
static const char *text_of_curves(const Cli *c, Output *out, bool json)
{
    Text t;
    Curve curve;
    text_init(&t, out->arena);
    bool first = true;
    text_add(&t, json ? "[" : "");
    for (int e = N_ENTRIES; e-- > 0;) {
        if (out->plan[e] == NULL || e == ENTRY_INIT)
            continue;
        if (!compile_curve(c->cx, &c->options, (EntryKind)e, out, &curve))
            return NULL;
        text_add(&t, first ? "" : json ? "," : "\n");
        first = false;
        if (json)
            curve_json(&curve, &t);
        else
            curve_print(&curve, &t);
    }
    text_add(&t, json ? "]\n" : "");
    return t.at;
}

/* Likewise. */
static const char *picture_of_curve(const Cli *c, Output *out)
{
    Text t;
    Curve curve;
    text_init(&t, out->arena);
    if (!compile_curve(c->cx, &c->options, main_entry(out), out, &curve))
        return NULL;
    curve_svg(&curve, &t);
    return t.at;
}

static const char *picture(Output *out)
{
    Text t;
    text_init(&t, out->arena);
    plan_svg(out->plan[main_entry(out)], &t);
    return t.at;
}

/* The entries in the order of main_entry(). */
static const char *page(const Cli *c, Output *out)
{
    const Plan *plan[N_ENTRIES];
    Text t;
    text_init(&t, out->arena);
    for (int e = 0; e < N_ENTRIES; e++)
        plan[e] = out->plan[N_ENTRIES - 1 - e];
    const char *title = arena_printf(out->arena, "gradc plan: %s", model_name(out->model));
    plan_html(c->cx, title, plan, N_ENTRIES, &t);
    return t.at;
}

/* NULL after a report. */
static const char *text_of(const Cli *c, Output *out, const char *format)
{
    bool json = strcmp(format, "json") == 0, curve = cli_has(c, OPT_PARETO);
    if (strcmp(format, "svg") == 0)
        return curve ? picture_of_curve(c, out) : picture(out);
    if (strcmp(format, "html") == 0)
        return page(c, out);
    return curve ? text_of_curves(c, out, json) : text_of_plans(c, out, json);
}

/* What is planned: an option for something else would be forgotten in silence. */
static int refuse_others(const Cli *c)
{
    enum { MODEL = 1, PROBLEM = 2, PLACEMENT = 4, DIFF = 8 };
    static const char *const of[] = {[MODEL] = "a model",
                                     [PROBLEM] = "--problem",
                                     [PLACEMENT] = "--placement",
                                     [DIFF] = "--diff"};
    static const struct {
        OptionId id;
        const char *name;
        int with;
    } limited[] = {
        {OPT_PLACEMENT, "placement", PLACEMENT},
        {OPT_CAPACITY, "capacity", PLACEMENT},
        {OPT_PLAN_IN, "plan-in", PROBLEM},
        {OPT_OUT, "output", PROBLEM | PLACEMENT},
        {OPT_BUDGET, "budget", MODEL | PROBLEM},
        {OPT_PARETO, "pareto", MODEL},
        {OPT_FORMAT, "format", MODEL},
        {OPT_ENTRY, "entry", MODEL},
        {OPT_PROBLEM, "problem", PROBLEM},
        {OPT_DEFINE, "define", MODEL},
        {OPT_DEVICES, "devices", MODEL},
        {OPT_OFFLOAD, "offload", MODEL},
        {OPT_OFFLOAD_RATE, "offload-rate", MODEL},
    };
    int what = cli_has(c, OPT_DIFF)        ? DIFF
               : cli_has(c, OPT_PROBLEM)   ? PROBLEM
               : cli_has(c, OPT_PLACEMENT) ? PLACEMENT
                                           : MODEL;
    for (size_t i = 0; i < sizeof limited / sizeof *limited; i++)
        if (cli_has(c, limited[i].id) && !(limited[i].with & what))
            return usage_error(c, "--%s does not go with %s", limited[i].name, of[what]);
    return EXIT_OK;
}

enum { WORTH_TELLING = 100 }; /* one part of so many */

static int32_t model_source(const Ctx *cx)
{
    for (int32_t i = 0; i < cx->source.n; i++)
        if (!cx->source.at[i]->library)
            return i;
    return -1;
}

/* Updates have to wait for all gradients where each of these is looked at: says in the step's plan
 * what it would take if only the loss were. A budget is kept to in either case. */
static void find_guard_loss(const Cli *c, Output *out)
{
    Plan *step = out->plan[ENTRY_STEP];
    int32_t at = model_source(c->cx);
    if (step == NULL || at < 0 || c->options.budget.kind != BUDGET_NONE || c->options.offload)
        return;
    const Source *text = c->cx->source.at[at];
    Ctx own;
    Arena arena = {0};
    Output other = {.arena = &arena};
    Options o = c->options;
    ctx_init(&own);
    o.guard_loss = true;
    o.prove = false;
    o.timer = NULL;
    o.entry[ENTRY_INIT] = o.entry[ENTRY_EVAL] = o.entry[ENTRY_GRAD] = false;
    int32_t source = source_add(&own, text->path, text->text, (size_t)text->bytes, false);
    bool ok = compile_planned(&own, source, &o, &other);
    if (ok && other.plan[ENTRY_STEP]->peak <= step->peak - step->peak / WORTH_TELLING)
        step->guard_loss = other.plan[ENTRY_STEP]->peak;
    output_free(&other);
    ctx_free(&own);
}

int command_plan(Cli *c)
{
    static const char *const known[] = {"text", "json", "svg", "html"};
    Arena arena = {0};
    Output out = {.arena = &arena};
    const char *format;
    int status = refuse_others(c);
    if (status != EXIT_OK)
        return status;
    if (cli_has(c, OPT_DIFF))
        return plan_diff(c);
    if (cli_has(c, OPT_PROBLEM))
        return plan_problem(c);
    if (cli_has(c, OPT_PLACEMENT))
        return plan_placement(c);
    if (cli_has(c, OPT_PARETO) && cli_has(c, OPT_BUDGET))
        return usage_error(c, "--pareto looks at many budgets, and takes no --budget");
    if (cli_has(c, OPT_DEVICES))
        return plan_devices(c);
    status = show_format(c, known, 4, &format);
    if (status == EXIT_OK && cli_has(c, OPT_PARETO) && strcmp(format, "html") == 0)
        return usage_error(c, "--pareto has no page: --format svg draws it");
    c->options.prove = true;
    if (status == EXIT_OK)
        status = compile_to(c, 2, &out);
    if (status == EXIT_OK && !cli_has(c, OPT_PARETO) && strcmp(format, "svg") != 0)
        find_guard_loss(c, &out);
    const char *text = status == EXIT_OK ? text_of(c, &out, format) : NULL;
    if (text != NULL)
        fputs(text, stdout);
    else if (status == EXIT_OK)
        status = finish(c, false);
    output_free(&out);
    return status;
}
