/* Times entries as a whole: the program without a budget is built, loaded and called like that of
 * `bench`, apart from what is being compiled. */
#include "timing.h"
#include "values.h"

#include <math.h>
#include <unistd.h>

typedef int EntryFn(void *g, const gradc_block *in, gradc_block *out);

enum { LEAST_CALLS = 3, MOST_CALLS = 25 };
static const double enough_ms = 1500; /* no more calls after that */

static bool failed(Ctx *cx, const char *what)
{
    diag_error(cx, E0616, NO_SPAN, "timing the model as a whole: %s", what);
    return false;
}

/* The least of some calls, after one that does not count; 0: the entry is not there. */
static int time_entry(const Session *s, EntryFn *fn, const Values *in, const Values *out,
                      double *ns)
{
    double begin = 0, least = INFINITY;
    int st = GRADC_OK;
    for (int i = -1; fn != NULL && st == GRADC_OK && i < MOST_CALLS &&
                     (i < LEAST_CALLS || now_ms() - begin < enough_ms);
         i++) {
        begin = i <= 0 ? now_ms() : begin;
        double start = timing_clock(s->pool == NULL);
        st = fn(s->handle, in->block, out->block);
        double took = timing_clock(s->pool == NULL) - start;
        least = i >= 0 && took < least ? took : least;
    }
    *ns = fn != NULL ? round(least * 10) / 10 : 0;
    return st;
}

static bool time_entries(Ctx *cx, Session *s, double ns[4])
{
    EntryFn *const entry[] = {[ENTRY_EVAL] = s->model->eval,
                              [ENTRY_GRAD] = s->model->grad,
                              [ENTRY_STEP] = s->model->step};
    const Values in = inputs_make(&s->arena, s->model, 0, 1);
    const Values out = results_make(&s->arena, s->model);
    int st = GRADC_OK;
    for (size_t e = 0; e < sizeof entry / sizeof *entry && st == GRADC_OK; e++)
        st = time_entry(s, entry[e], &in, &out, &ns[e]);
    return st == GRADC_OK || failed(cx, gradc_strerror(st));
}

static bool has_memory(Ctx *cx, int64_t bytes)
{
    int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGE_SIZE);
    if (bytes <= all / 2)
        return true;
    diag_warning(cx, E0617, NO_SPAN,
                 "the model as a whole is not timed, for it takes %lld bytes: its time is the sum "
                 "of its kernels'",
                 (long long)bytes);
    return false;
}

static bool run_whole(Cli *c, Ctx *cx, Session *s, double ns[4])
{
    if (!compile(c->cx, s->source, &c->options, &s->out))
        return failed(cx, "it does not compile without a budget");
    if (!has_memory(cx, s->out.program->arena_bytes))
        return true;
    s->loaded = cpu_load(c->cx, &s->out.object, s->out.program->name);
    if (s->loaded == NULL)
        return failed(cx, "what was built is not loaded");
    s->model = loaded_model(s->loaded);
    if (session_start(c, s, c->timing_threads) != EXIT_OK)
        return failed(cx, "it does not start");
    return time_entries(cx, s, ns);
}

bool entries_time(Cli *c, Ctx *cx, int32_t source, const Options *o, double ns[4])
{
    const Source *text = cx->source.at[source];
    Ctx own;
    ctx_init(&own);
    Cli inner = *c;
    Session s = {.out = {.arena = &s.arena}};
    inner.cx = &own;
    inner.options = *o;
    inner.options.budget = (BudgetAsked){.kind = BUDGET_NONE};
    inner.options.offload = inner.options.allow_split = false;
    inner.options.form = (Form){0};
    inner.options.cost = NULL;
    inner.options.timer = NULL;
    inner.options.entry[ENTRY_INIT] = true;
    inner.options.target.want_ir = inner.options.target.want_asm = false;
    inner.options.target.no_lines = true;
    s.source = source_add(&own, text->path, text->text, (size_t)text->bytes, false);
    bool ok = run_whole(&inner, cx, &s, ns);
    session_close(&s);
    ctx_free(&own);
    return ok;
}
