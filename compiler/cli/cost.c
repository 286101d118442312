/* What steps cost: --cost, and gradc doctor --calibrate, which measures it. */
#include "values.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* ---- --cost ------------------------------------------------------------------------- */

enum { MOST_BYTES = 1 << 16 };

static const json_t *number(const json_t *object, const char *key, double *to)
{
    const json_t *v = json_object_get(object, key);
    *to = json_number_value(v);
    return json_is_number(v) && isfinite(*to) && *to > 0 ? v : NULL;
}

static int refuse(Cli *c, const char *path, const char *what)
{
    Diag *d = diag_error(c->cx, E0615, NO_SPAN, "%s: %s", path, what);
    diag_help(c->cx, d, "`gradc doctor --calibrate -o FILE` writes such a file");
    return finish(c, false);
}

static int read_cost(Cli *c, const char *path)
{
    Arena *a = &c->cx->perm;
    CostModel *m = NEW(a, CostModel);
    *m = cost_time;
    Text t;
    json_error_t error;
    text_init(&t, a);
    int status = read_text(path, MOST_BYTES, &t);
    if (status != EXIT_OK)
        return status;
    json_t *root = json_loadb(t.at, t.n, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return refuse(
            c, path,
            arena_printf(a, "line %d, column %d: %s", error.line, error.column, error.text));
    const char *missing = number(root, "flops_per_ns", &m->flops) == NULL   ? "flops_per_ns"
                          : number(root, "bytes_per_ns", &m->bytes) == NULL ? "bytes_per_ns"
                          : number(root, "call_ns", &m->call) == NULL       ? "call_ns"
                                                                            : NULL;
    json_decref(root);
    m->work = m->flops * (cost_time.work / cost_time.flops);
    m->from = arena_printf(a, "of %s", path);
    c->options.cost = m;
    return missing == NULL
               ? EXIT_OK
               : refuse(c, path, arena_printf(a, "a positive number `%s` is missing", missing));
}

int cli_cost(Cli *c)
{
    const char *cost = cli_value(c, OPT_COST, "time");
    if (strcmp(cost, "measured") == 0)
        return cli_measured(c);
    if (cli_has(c, OPT_COST_FILE))
        return usage_error(c, "--cost-file keeps what --cost measured has measured");
    bool runs = c->command->run != command_build && c->command->run != command_plan &&
                c->command->run != command_explain;
    if (cli_has(c, OPT_THREADS) && !runs)
        return usage_error(c, "--threads is for --cost measured: %s runs nothing else",
                           c->command->name);
    if (strcmp(cost, "time") != 0 && strcmp(cost, "flops") != 0)
        return read_cost(c, cost);
    c->options.cost = strcmp(cost, "flops") == 0 ? &cost_flops : &cost_time;
    return EXIT_OK;
}

/* ---- doctor --calibrate -------------------------------------------------------------- */

/* What a model's forward pass takes, beside what its plan counts. */
typedef struct Measured {
    double ns, flops, bytes, steps;
} Measured;

enum { WARMUP = 3, RUNS = 21 };

/* The fastest of some runs: nothing makes a run faster than the machine. */
static int run_often(Session *s, Measured *m)
{
    Values in = inputs_make(&s->arena, s->model, 1, 1), out = results_make(&s->arena, s->model);
    m->ns = INFINITY;
    for (int i = -WARMUP; i < RUNS; i++) {
        double start = now_ms();
        int status = s->model->eval(s->handle, in.block, out.block);
        double ns = (now_ms() - start) * 1e6;
        if (status != GRADC_OK)
            return session_failed(s, "calibrate", status);
        m->ns = i >= 0 && ns < m->ns ? ns : m->ns;
    }
    return EXIT_OK;
}

static int measure(Cli *c, const char *text, Measured *m)
{
    Session s;
    int status = session_open_text(c, &s, "calibrate.model", text);
    if (status == EXIT_OK)
        status = run_often(&s, m);
    const Plan *p = status == EXIT_OK ? s.out.plan[ENTRY_EVAL] : NULL;
    for (int32_t i = 0; p != NULL && i < p->n_steps; i++) {
        m->flops += p->step[i].flops;
        m->bytes += p->step[i].bytes_moved;
        m->steps++;
    }
    session_close(&s);
    return status;
}

/* Many steps that compute next to nothing; a product that stays in the cache; more bytes than
 * any cache holds. */
static const char calls_text[] = "model calls {\n"
                                 "    input x : f32[4, 4]\n"
                                 "    param w : f32[4, 4] = 0.1\n"
                                 "    for i in 0..200 {\n"
                                 "        x = x @ w\n"
                                 "    }\n"
                                 "    loss sum(x)\n"
                                 "}\n";
static const char flops_text[] = "model flops {\n"
                                 "    input x : f32[512, 512]\n"
                                 "    param w : f32[512, 512] = 0.001\n"
                                 "    output y = x @ w\n"
                                 "    loss sum(w[0])\n"
                                 "}\n";
static const char bytes_text[] = "model bytes {\n"
                                 "    input x : f32[33554432]\n"
                                 "    param w : f32 = 2\n"
                                 "    output y = x * w\n"
                                 "    loss w\n"
                                 "}\n";

int doctor_calibrate(Cli *c)
{
    Measured calls = {0}, flops = {0}, bytes = {0};
    int status = measure(c, calls_text, &calls);
    if (status == EXIT_OK)
        status = measure(c, flops_text, &flops);
    if (status == EXIT_OK)
        status = measure(c, bytes_text, &bytes);
    if (status != EXIT_OK)
        return status;
    Text t;
    text_init(&t, &c->cx->perm);
    text_add(&t, "{");
    text_pair(&t, "cpu", cpu_model(&c->cx->perm));
    text_add(&t, ", \"flops_per_ns\": %.3f, \"bytes_per_ns\": %.3f, \"call_ns\": %.1f}\n",
             flops.flops / flops.ns, bytes.bytes / bytes.ns, calls.ns / calls.steps);
    Files *f = files_open(&c->cx->perm);
    files_add(f, cli_value(c, OPT_OUT, "-"), t.at, t.n);
    return files_commit(f);
}
