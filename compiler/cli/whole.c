/* Times programs as a whole: that without a budget, built and loaded like that of `bench` but apart
 * from what is being compiled, and beside it one that keeps to a budget. */
#include "timing.h"
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct Whole {
    Cli c;
    Ctx own;
    Session s;
};

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

bool whole_time(Whole *w, Ctx *cx, double ns[4])
{
    Session *s = &w->s;
    const Values in = inputs_make(&s->arena, s->model, 0, 1);
    const Values out = results_make(&s->arena, s->model);
    int st = GRADC_OK;
    for (int e = 0; e < N_ENTRIES && st == GRADC_OK; e++)
        st = time_entry(s, entry_fn(s->model, e), &in, &out, &ns[e]);
    return st == GRADC_OK || failed(cx, gradc_strerror(st));
}

/* ---- without a budget ------------------------------------------------------------------- */

static bool has_memory(int64_t bytes)
{
    int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGE_SIZE);
    return bytes <= all / 2;
}

/* *fits: there is memory for it; a warning where not. */
static bool start_whole(Whole *w, Ctx *cx, bool *fits)
{
    Session *s = &w->s;
    if (!compile(&w->own, s->source, &w->c.options, &s->out))
        return failed(cx, "it does not compile without a budget");
    *fits = has_memory(s->out.program->arena_bytes);
    if (!*fits) {
        diag_warning(cx, E0617, NO_SPAN,
                     "the model as a whole is not timed, for it takes %lld bytes: its time is the "
                     "sum of its kernels'",
                     (long long)s->out.program->arena_bytes);
        return true;
    }
    s->loaded = cpu_load(&w->own, &s->out.object, s->out.program->name);
    if (s->loaded == NULL)
        return failed(cx, "what was built is not loaded");
    s->model = loaded_model(s->loaded);
    return session_start(&w->c, s, w->c.timing_threads) == EXIT_OK ||
           failed(cx, "it does not start");
}

bool whole_open(Cli *c, Ctx *cx, const TimedModel *m, Whole **out)
{
    const Source *text = cx->source.at[m->source];
    Whole *w = *out = NEW(&cx->perm, Whole);
    ctx_init(&w->own);
    w->c = *c;
    w->c.cx = &w->own;
    w->s = (Session){.out = {.arena = &w->s.arena}};
    Options *o = &w->c.options;
    *o = *m->o;
    o->budget = (BudgetAsked){.kind = BUDGET_NONE};
    o->offload = o->allow_split = false;
    o->form = (Form){0};
    o->within = 0;
    o->cost = NULL;
    o->timer = NULL;
    o->entry[ENTRY_INIT] = true;
    o->target.want_ir = o->target.want_asm = false;
    o->target.no_lines = true;
    o->target.laps = false;
    w->s.source = source_add(&w->own, text->path, text->text, (size_t)text->bytes, false);
    bool fits = false, ok = start_whole(w, cx, &fits);
    if (!ok || !fits) {
        whole_close(w);
        *out = NULL;
    }
    return ok;
}

void whole_close(Whole *w)
{
    if (w == NULL)
        return;
    session_close(&w->s);
    ctx_free(&w->own);
}

/* ---- in turns --------------------------------------------------------------------------- */

/* In every round both programs have other memory, for pages may lie well or badly in caches. */
enum { ROUNDS = 3, MOST_PAIRS = 24 };
static const double pair_ms = 30;    /* short calls are taken together */
static const double pairs_ms = 5000; /* of all rounds and entries: no more pairs after that */

/* What calls of an entry took beside those without a budget. */
typedef struct Pairs {
    double ns; /* of a call without */
    int n;
    double ratio[ROUNDS * MOST_PAIRS];
} Pairs;

/* A program, and what one of its entries is called with. */
typedef struct Side {
    const Session *s;
    EntryFn *fn;
    Values in, out;
} Side;

static Side side_of(Session *s, int e)
{
    return (Side){.s = s,
                  .fn = entry_fn(s->model, e),
                  .in = inputs_make(&s->arena, s->model, 0, 1),
                  .out = results_make(&s->arena, s->model)};
}

static int call_side(const Side *x, int calls, double *ns)
{
    int st = GRADC_OK;
    double start = timing_clock(x->s->pool == NULL);
    for (int i = 0; i < calls && st == GRADC_OK; i++)
        st = x->fn(x->s->handle, x->in.block, x->out.block);
    *ns = timing_clock(x->s->pool == NULL) - start;
    return st;
}

/* Each side comes first in turns; the first pair does not count, and one does in any case. */
static int time_pairs(const Side side[2], double most_ms, Pairs *p)
{
    double took[2], begin = now_ms();
    int calls = (int)fmax(1, pair_ms * 1e6 / 2 / p->ns), st = GRADC_OK;
    for (int i = -1; st == GRADC_OK && i < MOST_PAIRS && (i < 1 || now_ms() - begin < most_ms);
         i++) {
        int first = i & 1;
        st = call_side(&side[first], calls, &took[first]);
        if (st == GRADC_OK)
            st = call_side(&side[!first], calls, &took[!first]);
        if (st == GRADC_OK && i >= 0)
            p->ratio[p->n++] = took[1] / took[0];
    }
    return st;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What is faster than without a budget is taken to be as fast: it computes as much at least, and
 * the rest is mostly noise, for which nobody should run steps again where there is room. */
static double median_of(Pairs *p)
{
    qsort(p->ratio, (size_t)p->n, sizeof *p->ratio, ascending);
    double median = (p->ratio[p->n / 2] + p->ratio[(p->n - 1) / 2]) / 2;
    return fmax(round(median * 1e4) / 1e4, 1);
}

static bool load_beside(Whole *w, Ctx *cx, const Program *p, Session *s)
{
    ObjectFile object;
    if (!target_emit(&w->own, p, &w->c.options.target, &object))
        return failed(cx, "it does not compile within the budget");
    s->loaded = cpu_load(&w->own, &object, p->name);
    if (s->loaded == NULL)
        return failed(cx, "what was built is not loaded");
    s->model = loaded_model(s->loaded);
    s->pool = w->s.pool; /* workers that wait for two would be in each other's way */
    return true;
}

static bool start_again(Whole *w, Ctx *cx, Session *s)
{
    gradc_free(s->block);
    s->block = NULL;
    return session_start(&w->c, s, w->c.timing_threads) == EXIT_OK ||
           failed(cx, "it does not start");
}

static bool time_round(Whole *w, Ctx *cx, Session *s, Pairs *pairs)
{
    double most_ms = pairs_ms / (double)ROUNDS;
    int n = 0, st = GRADC_OK;
    if (!start_again(w, cx, &w->s) || !start_again(w, cx, s))
        return false;
    for (int e = 0; e < N_ENTRIES; e++)
        n += pairs[e].ns > 0;
    for (int e = 0; e < N_ENTRIES && st == GRADC_OK; e++)
        if (pairs[e].ns > 0)
            st = time_pairs((Side[]){side_of(&w->s, e), side_of(s, e)}, most_ms / n, &pairs[e]);
    return st == GRADC_OK || failed(cx, gradc_strerror(st));
}

bool whole_beside(Whole *w, Ctx *cx, const Program *p, const double ns[4], double ratio[4],
                  const char **untimed)
{
    Session s = {.out = {.arena = &s.arena}};
    if (!has_memory(p->arena_bytes + w->s.out.program->arena_bytes)) {
        *untimed = "beside that without a budget it takes more than half of the memory";
        return true;
    }
    Pairs pairs[N_ENTRIES] = {0};
    for (int e = 0; e < N_ENTRIES; e++)
        pairs[e].ns = ns[e];
    bool ok = load_beside(w, cx, p, &s);
    for (int round = 0; round < ROUNDS && ok; round++)
        ok = time_round(w, cx, &s, pairs);
    for (int e = 0; e < N_ENTRIES && ok; e++)
        ratio[e] = pairs[e].n > 0 ? median_of(&pairs[e]) : 0;
    s.pool = NULL;
    session_close(&s);
    return ok;
}
