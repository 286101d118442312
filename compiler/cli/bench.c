/* gradc bench: time of a step (or of the gradients) and of a forward pass, and what they take. */
#include "values.h"

#include <stdlib.h>

typedef struct Times {
    double median, min, p90;
} Times;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef int EntryFn(void *g, const gradc_block *in, gradc_block *out);

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

/* A model without a `train` has gradients to time, but no step. */
static EntryFn *longest_entry(const Session *s)
{
    return s->model->step != NULL ? s->model->step : s->model->grad;
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
                      const Times *step, const Times *forward)
{
    bool json = c->cx->json;
    if (json)
        printf("{\"model\": \"%s\", \"target\": \"%s\", \"threads\": %lld, ", s->model->name,
               s->model->target, (long long)threads);
    if (longest_entry(s) != NULL)
        print_times(s->model->step != NULL ? "step_ms" : "grad_ms", step, json);
    print_times("forward_ms", forward, json);
    print_transfers(s, calls, json);
    const char *form = json ? "\"arena_bytes\": %lld, \"peak_rss_bytes\": %lld, "
                              "\"compile_ms\": %.1f, \"object_bytes\": %zu}\n"
                            : "arena        %lld bytes\npeak rss     %lld bytes\n"
                              "compile      %.1f ms\nobject       %zu bytes\n";
    printf(form, (long long)s->model->arena_bytes, (long long)peak_rss_bytes(), s->compile_ms,
           s->out.object.n_bytes);
}

static int bench(Cli *c, Session *s)
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
    Times step = {0}, forward = {0};
    int st = time_entry(s, s->model->eval, &in, &out, warmup, steps, &forward);
    if (st == GRADC_OK && longest_entry(s) != NULL)
        st = time_entry(s, longest_entry(s), &in, &out, warmup, steps, &step);
    if (st != GRADC_OK)
        return session_failed(s, "bench", st);
    print_all(c, s, threads, warmup + steps, &step, &forward);
    return EXIT_OK;
}

int command_bench(Cli *c)
{
    Session s;
    int status = session_open(c, &s, false);
    if (status == EXIT_OK)
        status = bench(c, &s);
    session_close(&s);
    return status;
}
