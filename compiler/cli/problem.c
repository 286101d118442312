/* gradc plan --problem: plans of bare problems, and their check. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include "../plan/check_sequence.h"
#include "../plan/recompute.h"

enum { MOST_BYTES = 1 << 30 };

static int read_limited(Cli *c, const char *path, Text *t)
{
    int status = read_text(path, MOST_BYTES, t);
    if (status == EXIT_OK && t->n > MOST_BYTES) {
        diag_error(c->cx, E0610, NO_SPAN, "%s: the file is larger than 1 GiB", path);
        return finish(c, false);
    }
    return status;
}

/* ---- infeasible --------------------------------------------------------------------------- */

static int refuse(Cli *c, const Recompute *r)
{
    bool proved = r->outcome == PLAN_IMPOSSIBLE;
    Diag *d = proved ? diag_error(c->cx, E0611, NO_SPAN,
                                  "a budget of %lld bytes is proved impossible: %s",
                                  (long long)r->budget, r->why)
                     : diag_error(c->cx, E0612, NO_SPAN,
                                  "a plan within a budget of %lld bytes was not found; that there "
                                  "is none is not proved",
                                  (long long)r->budget);
    diag_help(c->cx, d, "the least budget found that works is %lld bytes", (long long)r->least);
    return finish(c, false);
}

/* ---- plan ----------------------------------------------------------------------------------- */

/* Every plan is checked before it is shown. */
static int check_plan(Cli *c, const Problem *p, const Recompute *r)
{
    const Sequence *s = r->plan;
    Arena scratch = {0};
    PlanClaim claim = {.budget = r->budget,
                       .peak = s->max_live,
                       .arena = s->arena,
                       .max_live = s->max_live,
                       .cost_base = p->cost_base,
                       .cost_plan = s->cost,
                       .bound = r->bound,
                       .n = s->n,
                       .node = s->node,
                       .retain = s->retain,
                       .offset = s->offset,
                       .scratch_offset = s->scratch_offset,
                       .proof = &r->proof};
    const char *error = check_sequence(p, &claim, &scratch);
    if (error != NULL)
        diag_error(c->cx, E0990, NO_SPAN, "the plan does not hold: %s", error);
    int status = error != NULL ? finish(c, false) : EXIT_OK;
    arena_free(&scratch);
    return status;
}

static int report(Cli *c, const Problem *p, const Recompute *r, double seconds, Arena *a)
{
    Text json, text;
    text_init(&json, a);
    text_init(&text, a);
    const char *path = cli_value(c, OPT_OUT, NULL);
    if (c->cx->json || path != NULL)
        recompute_json(p, r, seconds, &json);
    if (!c->cx->json && !cli_has(c, OPT_QUIET))
        recompute_print(p, r, seconds, &text);
    Files *f = files_open(a);
    if (path != NULL)
        files_add(f, path, json.at, json.n);
    else if (c->cx->json)
        files_add(f, "-", json.at, json.n);
    if (!c->cx->json && (path == NULL || strcmp(path, "-") != 0))
        files_add(f, "-", text.at, text.n);
    return files_commit(f);
}

static int make_plan(Cli *c, const Problem *p, Arena *a)
{
    BudgetAsked budget;
    PlanEffort effort;
    int status = cli_budget(c, &budget, &effort);
    if (status != EXIT_OK)
        return status;
    if (budget.kind == BUDGET_NONE || budget.kind == BUDGET_LIGHT)
        return usage_error(c, "--problem needs a --budget: 512MiB, 80%% or min");
    double start = now_ms();
    Recompute *r = recompute(p, budget, effort, a);
    double seconds = (now_ms() - start) / 1000;
    if (r->outcome != PLAN_FOUND)
        return refuse(c, r);
    status = check_plan(c, p, r);
    return status == EXIT_OK ? report(c, p, r, seconds, a) : status;
}

/* ---- check a plan ------------------------------------------------------------------------------
 */

static int check_file(Cli *c, const Problem *p, const char *path, Arena *a)
{
    Text t;
    text_init(&t, a);
    int status = read_limited(c, path, &t);
    if (status != EXIT_OK)
        return status;
    const PlanClaim *claim = claim_read(c->cx, path, t.at, t.n, a);
    if (claim == NULL)
        return finish(c, false);
    const char *error = check_sequence(p, claim, a);
    if (error != NULL) {
        diag_error(c->cx, E0613, NO_SPAN, "%s: %s", path, error);
        return finish(c, false);
    }
    if (!cli_has(c, OPT_QUIET))
        printf("the plan holds: arena %lld of %lld bytes, extra cost %lld, proved to be at least "
               "%lld\n",
               (long long)claim->arena, (long long)claim->budget,
               (long long)(claim->cost_plan - claim->cost_base), (long long)claim->bound);
    return EXIT_OK;
}

int plan_problem(Cli *c)
{
    Arena a = {0};
    Text t;
    text_init(&t, &a);
    const char *path = cli_value(c, OPT_PROBLEM, NULL), *in = cli_value(c, OPT_PLAN_IN, NULL);
    int status = read_limited(c, path, &t);
    if (status == EXIT_OK) {
        const Problem *p = problem_read(c->cx, path, t.at, t.n, &a);
        if (p == NULL)
            status = finish(c, false);
        else if (in != NULL)
            status = check_file(c, p, in, &a);
        else
            status = make_plan(c, p, &a);
    }
    arena_free(&a);
    return status;
}
