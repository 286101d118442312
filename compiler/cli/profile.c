/* Times the steps of an entry from inside of it: the object looks at the clock after each. */
#include "profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../plan/report.h"
#include "../target/facts.h"
#include "timing.h"

static const char *const limit_name[N_LIMITS] = {[LIMIT_FLOPS] = "flops",
                                                 [LIMIT_MATH] = "math",
                                                 [LIMIT_BYTES] = "bytes",
                                                 [LIMIT_CALLS] = "calls"};

enum { MOST_EVENTS = 1 << 20 };

Recorder recorder_make(Profile *p, Arena *a)
{
    Recorder r = {.p = p, .arena = a};
    r.ns = NEW_ARRAY(a, double, p->n_steps + 1);
    r.calls = NEW_ARRAY(a, int64_t, p->n_steps + 1);
    r.least = NEW_ARRAY(a, double, p->n_steps + 1);
    return r;
}

void record(Recorder *r, int32_t step, double from, double to)
{
    r->ns[step] += to - from;
    r->calls[step]++;
    if (r->p->event.n < MOST_EVENTS) {
        Event e = {step, from, to};
        vec_push(r->arena, &r->p->event, e);
    } else {
        r->p->has_all = false;
    }
}

static void lap(void *of, int64_t step)
{
    Recorder *r = of;
    double now = timing_clock(false);
    if (step < 0)
        r->began = now;
    else
        record(r, (int32_t)step, r->last - r->began, now - r->began);
    r->last = timing_clock(false); /* what was done here is nobody's time */
}

/* ---- rows ------------------------------------------------------------------------------ */

static bool same_row(const ProfileRow *r, const Call *call, const char *line)
{
    if (r->call->kind != call->kind || (line == NULL) != (r->line == NULL))
        return false;
    return r->call->kernel == call->kernel && (line == NULL || strcmp(r->line, line) == 0);
}

static ProfileRow *row_of(const Ctx *cx, Profile *p, Arena *arena, const Call *call)
{
    const char *line = report_line(cx, call->origin, arena);
    for (int i = 0; i < p->row.n; i++)
        if (same_row(&p->row.at[i], call, line))
            return &p->row.at[i];
    ProfileRow r = {.call = call, .line = line};
    vec_push(arena, &p->row, r);
    return &p->row.at[p->row.n - 1];
}

static void count(const Profile *p, ProfileRow *row, const Program *program, int32_t step,
                  double calls)
{
    const Roof *roof = &p->roof;
    KCost cost = kernel_cost(program->kernel.at[p->step[step]->kernel]);
    double bytes = cost.bytes_read + cost.bytes_written;
    row->flops += calls * cost.flops;
    row->bytes += calls * bytes;
    row->least[LIMIT_FLOPS] += calls * cost.contract_flops / roof->flops;
    row->least[LIMIT_MATH] += calls * cost.work / roof->work;
    row->least[LIMIT_BYTES] += calls * bytes / roof_bytes(roof, bytes);
    row->least[LIMIT_CALLS] += calls * roof->call;
    for (int l = 0; l < N_LIMITS; l++)
        if (row->limit == NULL || row->least[l] > row->best) {
            row->best = row->least[l];
            row->limit = limit_name[l];
        }
}

static int longer(const void *a, const void *b)
{
    const ProfileRow *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

void make_rows(const Ctx *cx, const Program *program, const Recorder *r, CountStep *counts)
{
    Profile *p = r->p;
    for (int32_t i = 0; i < p->n_steps; i++) {
        const Call *call = p->step[i];
        if (call == NULL)
            continue;
        ProfileRow *row = row_of(cx, p, r->arena, call);
        row->ns += r->least[i];
        row->calls += r->calls[i];
        if (call->kind == CALL_KERNEL)
            counts(p, row, program, i, (double)r->calls[i]);
    }
    if (p->row.n > 0)
        qsort(p->row.at, (size_t)p->row.n, sizeof *p->row.at, longer);
}

/* ---- calls ------------------------------------------------------------------------------ */

/* Of each step, and of the entry, what the quickest call took. */
int record_calls(Session *s, Recorder *r, const ProfileRun *run)
{
    Profile *p = r->p;
    EntryFn *fn = entry_fn(s->model, longest_entry(s->model));
    int st = GRADC_OK;
    for (int64_t i = -run->warmup; i < run->n_calls && st == GRADC_OK; i++) {
        memset(r->ns, 0, sizeof *r->ns * (size_t)p->n_steps);
        memset(r->calls, 0, sizeof *r->calls * (size_t)p->n_steps);
        p->event.n = 0;
        p->has_all = true;
        double start = timing_clock(false);
        st = fn(s->handle, run->in->block, run->out->block);
        if (i < 0)
            continue;
        double took = timing_clock(false) - start;
        p->ns = i == 0 ? took : fmin(took, p->ns);
        for (int32_t k = 0; k < p->n_steps; k++)
            r->least[k] = i == 0 ? r->ns[k] : fmin(r->ns[k], r->least[k]);
    }
    return st;
}

/* Where nobody looks, these lanes would take whole turns of one of the loops (Call.turns). */
static bool takes_turns(const Call *call, int32_t n, int64_t threads)
{
    for (const Call *c = call; n-- > 0; c++)
        if ((threads > 1 && c->turns >= threads) || takes_turns(c->body, c->n_body, threads))
            return true;
    return false;
}

int profile_session(const Cli *c, Session *s, const ProfileRun *run, Profile *to)
{
    Arena *a = &s->arena;
    const Program *program = s->out.object.program;
    *to = (Profile){.entry = entry_name((EntryKind)longest_entry(s->model)),
                    .n_calls = run->n_calls,
                    .threads = run->threads};
    const Entry *e = program_entry(program, to->entry);
    to->n_steps = steps_count(e->call, e->n_calls);
    to->step = NEW_ARRAY(a, const Call *, to->n_steps + 1);
    steps_list(e->call, e->n_calls, to->step);
    int status = probe_roof(c, run->threads, &to->roof);
    if (status != EXIT_OK)
        return status;
    Recorder r = recorder_make(to, a);
    Lap *hook =
        loaded_symbol(s->loaded, arena_printf(a, "%s_lap", name_identifier(a, program->name)));
    *hook = (Lap){lap, &r};
    int st = record_calls(s, &r, run);
    *hook = (Lap){0};
    if (st != GRADC_OK)
        return session_failed(s, "bench", st);
    make_rows(c->cx, program, &r, count);
    to->n_chains = s->out.object.n_chains;
    to->in_order = takes_turns(e->call, e->n_calls, run->threads);
    return EXIT_OK;
}
