/* gradc bench: time of a step, of its gradients and of a forward pass, and what they take. */
#include "profile.h"
#include "values.h"

#include <stdlib.h>
#include <string.h>

typedef struct Times {
    double median, min, p90;
} Times;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int time_entry(const Session *s, EntryFn *fn, Values *in, Values *out, int64_t warmup,
                      int64_t n, Times *t)
{
    double *ms = malloc(sizeof *ms * (size_t)n);
    int st = ms == NULL ? GRADC_MEMORY : GRADC_OK;
    for (int64_t i = -warmup; i < n && st == GRADC_OK; i++) {
        double start = now_ms();
        st = fn(s->handle, in->block, out->block);
        if (i >= 0)
            ms[i] = now_ms() - start;
    }
    if (st == GRADC_OK) {
        qsort(ms, (size_t)n, sizeof *ms, compare);
        *t = (Times){ms[n / 2], ms[0], ms[n * 9 / 10]};
    }
    free(ms);
    return st;
}

static void print_times(const char *name, const Times *t, bool json)
{
    if (json)
        printf("\"%s\": {\"median\": %.4f, \"min\": %.4f, \"p90\": %.4f}, ", name, t->median,
               t->min, t->p90);
    else
        printf("%-12s median %10.4f   min %10.4f   p90 %10.4f ms\n", name, t->median, t->min,
               t->p90);
}

/* What the steps have moved, beside what their plan says. */
static void print_transfers(const Session *s, int64_t calls, bool json)
{
    const gradc_model *m = s->model;
    gradc_store_counts n;
    if (s->store == NULL)
        return;
    gradc_store_count(s->store, &n);
    int grad = m->step == NULL;
    double hidden = n.transfer_s > 0 ? 100 * (1 - n.waited_s / n.transfer_s) : 100;
    printf(json ? "\"offload\": {\"out\": %lld, \"in\": %lld, \"planned_out\": %lld, "
                  "\"planned_in\": %lld, \"transfer_ms\": %.4f, \"waited_ms\": %.4f, "
                  "\"hidden_percent\": %.1f}, "
                : "offloaded    %lld bytes out, %lld in (planned: %lld, %lld), in %.4f ms; "
                  "%.4f ms waited for: %.1f %% hidden\n",
           (long long)(n.written / calls), (long long)(n.read / calls),
           (long long)m->offload_out[grad], (long long)m->offload_in[grad],
           n.transfer_s * 1e3 / (double)calls, n.waited_s * 1e3 / (double)calls, hidden);
}

static void print_all(const Cli *c, const Session *s, int64_t threads, int64_t calls,
                      const Times t[], const char *profile)
{
    static const char *const name[] = {
        [ENTRY_STEP] = "step_ms", [ENTRY_GRAD] = "grad_ms", [ENTRY_EVAL] = "forward_ms"};
    bool json = c->cx->json;
    if (json)
        printf("{\"model\": \"%s\", \"target\": \"%s\", \"threads\": %lld, ", s->model->name,
               s->model->target, (long long)threads);
    for (int e = N_ENTRIES - 1; e >= 0; e--)
        if (entry_fn(s->model, e) != NULL)
            print_times(name[e], &t[e], json);
    print_transfers(s, calls, json);
    if (s->model->device_bytes > 0)
        printf(json ? "\"device_bytes\": %lld, " : "device       %lld bytes\n",
               (long long)s->model->device_bytes);
    const char *form = json ? "\"arena_bytes\": %lld, \"peak_rss_bytes\": %lld, "
                              "\"compile_ms\": %.1f, \"object_bytes\": %zu"
                            : "arena        %lld bytes\npeak rss     %lld bytes\n"
                              "compile      %.1f ms\nobject       %zu bytes\n";
    printf(form, (long long)s->model->arena_bytes, (long long)peak_rss_bytes(), s->compile_ms,
           s->out.object.n_bytes);
    if (json)
        printf("%s%s}\n", profile != NULL ? ", \"profile\": " : "", profile != NULL ? profile : "");
    else if (profile != NULL)
        printf("\n%s", profile);
}

/* ---- --profile, --emit trace ------------------------------------------------------------ */

/* What --emit says of a trace, or NULL after EXIT_OK: it is not given. */
static int wanted_trace(const Cli *c, const char **trace)
{
    const char *s;
    *trace = NULL;
    for (int i = 0; (s = cli_nth(c, OPT_EMIT, i)) != NULL; i++) {
        if (strcmp(s, "trace") != 0 && strncmp(s, "trace=", 6) != 0)
            return usage_error(c, "bench --emit takes trace and trace=PATH, not `%s`", s);
        if (*trace != NULL)
            return usage_error(c, "bench writes one trace, not `%s` and `%s`", *trace, s);
        *trace = s;
    }
    return EXIT_OK;
}

static int write_trace(const Cli *c, const Session *s, const Profile *p, const char *trace)
{
    Text t;
    text_init(&t, &c->cx->perm);
    if (!p->has_all)
        remark("the trace holds the first %d events of a call", p->event.n);
    profile_trace(c->cx, p, &t);
    Files *f = files_open(&c->cx->perm);
    const char *path =
        trace[5] == '=' ? trace + 6 : output_path(c, &c->cx->perm, s->model->name, ".trace");
    files_add(f, path, t.at, t.n);
    return files_commit(f);
}

/* *text: what --profile prints. */
static int profile(const Cli *c, Session *s, const ProfileRun *run, const char *trace,
                   const char **text)
{
    Profile p;
    Text t;
    text_init(&t, &s->arena);
    int status = (s->gpu != NULL ? profile_launches : profile_session)(c, s, run, &p);
    if (status != EXIT_OK)
        return status;
    if (cli_has(c, OPT_PROFILE)) {
        (c->cx->json ? profile_json : profile_text)(&p, &t);
        *text = t.at;
    }
    return trace != NULL ? write_trace(c, s, &p, trace) : EXIT_OK;
}

static int bench(Cli *c, Session *s, const char *trace)
{
    int64_t seed, steps, warmup, threads;
    int status = cli_integer(c, OPT_SEED, 0, 0, INT64_MAX, &seed);
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_STEPS, 30, 1, 1000000, &steps);
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_WARMUP, 3, 0, 1000000, &warmup);
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_THREADS, 0, 1, 256, &threads);
    if (status != EXIT_OK)
        return status;
    if (threads == 0)
        threads = s->pool != NULL ? gradc_pool_lanes(s->pool) : 1;
    Values in = inputs_make(&s->arena, s->model, (uint64_t)seed, 1);
    Values out = results_make(&s->arena, s->model);
    Times t[N_ENTRIES] = {0};
    int st = GRADC_OK;
    for (int e = 0; e < N_ENTRIES && st == GRADC_OK; e++) {
        EntryFn *fn = entry_fn(s->model, e);
        st = fn != NULL ? time_entry(s, fn, &in, &out, warmup, steps, &t[e]) : GRADC_OK;
    }
    if (st != GRADC_OK)
        return session_failed(s, "bench", st);
    const char *text = NULL;
    const ProfileRun run = {&in, &out, warmup, steps, threads};
    if (c->laps)
        status = profile(c, s, &run, trace, &text);
    if (status != EXIT_OK)
        return status;
    print_all(c, s, threads, warmup + steps, t, text);
    return EXIT_OK;
}

int command_bench(Cli *c)
{
    Session s;
    const char *trace;
    int status = wanted_trace(c, &trace);
    if (status != EXIT_OK)
        return status;
    c->laps = cli_has(c, OPT_PROFILE) || trace != NULL;
    if (cli_has(c, OPT_GPU) && !cli_has(c, OPT_PROFILE))
        return usage_error(c, "--gpu goes with --profile");
    if (cli_gpu(c, NULL, &(const struct Gpu *){NULL}) != EXIT_OK)
        return EXIT_USAGE;
    status = session_open(c, &s, false);
    if (status == EXIT_OK)
        status = bench(c, &s, trace);
    session_close(&s);
    return status;
}
