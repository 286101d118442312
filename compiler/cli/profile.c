/* Times the steps of an entry from inside of it: the object looks at the clock after each. */
#include "profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../plan/report.h"
#include "timing.h"

const char *const profile_limit[N_LIMITS] = {[LIMIT_FLOPS] = "flops",
                                             [LIMIT_MATH] = "math",
                                             [LIMIT_BYTES] = "bytes",
                                             [LIMIT_CALLS] = "calls"};

enum { MOST_EVENTS = 1 << 20 };

typedef struct Recorder {
    Profile *p;
    Arena *arena;
    double began, last;
    double *ns;     /* by step, of this call */
    int64_t *calls; /* likewise */
} Recorder;

static void lap(void *of, int64_t step)
{
    Recorder *r = of;
    double now = timing_clock(false);
    if (step < 0) {
        r->began = now;
    } else {
        r->ns[step] += now - r->last;
        r->calls[step]++;
        if (r->p->event.n < MOST_EVENTS) {
            Event e = {(int32_t)step, r->last - r->began, now - r->began};
            vec_push(r->arena, &r->p->event, e);
        } else {
            r->p->has_all = false;
        }
    }
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

static void count(ProfileRow *row, const Roof *roof, const Kernel *k, double calls)
{
    KCost cost = kernel_cost(k);
    double bytes = cost.bytes_read + cost.bytes_written;
    row->flops += calls * cost.flops;
    row->bytes += calls * bytes;
    row->least[LIMIT_FLOPS] += calls * cost.contract_flops / roof->flops;
    row->least[LIMIT_MATH] += calls * cost.work / roof->work;
    row->least[LIMIT_BYTES] += calls * bytes / roof_bytes(roof, bytes);
    row->least[LIMIT_CALLS] += calls * roof->call;
}

static int longer(const void *a, const void *b)
{
    const ProfileRow *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static void make_rows(const Ctx *cx, const Program *program, Profile *p, const Recorder *r,
                      const double *ns)
{
    for (int32_t i = 0; i < p->n_steps; i++) {
        const Call *call = p->step[i];
        ProfileRow *row = row_of(cx, p, r->arena, call);
        row->ns += ns[i];
        row->calls += r->calls[i];
        if (call->kind == CALL_KERNEL)
            count(row, &p->roof, program->kernel.at[call->kernel], (double)r->calls[i]);
    }
    for (int i = 0; i < p->row.n; i++)
        for (int l = 0; l < N_LIMITS; l++)
            if (p->row.at[i].least[l] > p->row.at[i].least[p->row.at[i].limit])
                p->row.at[i].limit = l;
    if (p->row.n > 0)
        qsort(p->row.at, (size_t)p->row.n, sizeof *p->row.at, longer);
}

/* ---- calls ------------------------------------------------------------------------------ */

/* ns: of each step, what its quickest call took; of the entry too, into p->ns. */
static int call_often(Session *s, Recorder *r, const ProfileRun *run, double *ns)
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
            ns[k] = i == 0 ? r->ns[k] : fmin(r->ns[k], ns[k]);
    }
    return st;
}

/* Where nobody looks, these lanes would take whole turns of one of the loops (Call.turns). */
static bool takes_turns(const Call *call, int32_t n, int64_t threads)
{
    for (const Call *c = call; c < call + n; c++)
        if ((threads > 1 && c->turns >= threads) || takes_turns(c->body, c->n_body, threads))
            return true;
    return false;
}

int profile_session(const Cli *c, Session *s, const ProfileRun *run, Profile *to)
{
    Arena *a = &s->arena;
    const Program *program = s->out.program;
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
    Recorder r = {.p = to, .arena = a};
    r.ns = NEW_ARRAY(a, double, to->n_steps + 1);
    r.calls = NEW_ARRAY(a, int64_t, to->n_steps + 1);
    double *ns = NEW_ARRAY(a, double, to->n_steps + 1);
    Lap *hook = loaded_symbol(s->loaded, arena_printf(a, "%s_lap", program->name));
    *hook = (Lap){lap, &r};
    int st = call_often(s, &r, run, ns);
    *hook = (Lap){0};
    if (st != GRADC_OK)
        return session_failed(s, "bench", st);
    make_rows(c->cx, program, to, &r, ns);
    to->in_order = takes_turns(e->call, e->n_calls, run->threads);
    return EXIT_OK;
}
