/* What steps cost: --cost, and gradc doctor --calibrate, which measures it. */
#include "../target/cuda/gpu.h"
#include "probe.h"

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

/* The model of a GPU, which need not be here (cuda/gpu.h), as a cost model: its f32 rate, and all
 * multiprocessors busy. */
static int take_gpu(Cli *c, const Gpu *g)
{
    CostModel *m = NEW(&c->cx->perm, CostModel);
    if (strcmp(cli_value(c, OPT_TARGET, "cpu"), "cuda") != 0)
        return usage_error(c, "--cost %s is for --target cuda", g->name);
    *m = (CostModel){.flops = g->f32,
                     .work = g->f32 / 2, /* an instruction in the place of an fma */
                     .bytes = gpu_reached * g->memory,
                     .call = gpu_launch_ns,
                     .store = cost_time.store,
                     .from = arena_printf(&c->cx->perm, "by the model of an %s", g->title)};
    c->options.cost = m;
    return EXIT_OK;
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
    if (gpu_find(cost) != NULL)
        return take_gpu(c, gpu_find(cost));
    if (strcmp(cost, "time") != 0 && strcmp(cost, "flops") != 0)
        return read_cost(c, cost);
    c->options.cost = strcmp(cost, "flops") == 0 ? &cost_flops : &cost_time;
    return EXIT_OK;
}

/* ---- doctor --calibrate -------------------------------------------------------------- */

int doctor_calibrate(Cli *c)
{
    Probe calls, flops, bytes;
    int status = probe(c, PROBE_CALLS, 1, &calls);
    if (status == EXIT_OK)
        status = probe(c, PROBE_PRODUCT, 1, &flops);
    if (status == EXIT_OK)
        status = probe(c, PROBE_MEMORY, 1, &bytes);
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
