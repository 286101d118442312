#include "probe.h"

#include <math.h>

#include "values.h"

static const char *const text[N_PROBES] = {
    [PROBE_CALLS] = "model probe {\n"
                    "    input x : f32[4, 4]\n"
                    "    param w : f32[4, 4] = 0.1\n"
                    "    for i in 0..200 {\n"
                    "        x = x @ w\n"
                    "    }\n"
                    "    loss sum(x)\n"
                    "}\n",
    [PROBE_PRODUCT] = "model probe {\n"
                      "    input x : f32[512, 512]\n"
                      "    param w : f32[512, 512] = 0.001\n"
                      "    output y = x @ w\n"
                      "    loss sum(w[0])\n"
                      "}\n",
    [PROBE_TILES] = "model probe {\n"
                    "    input x : f32[168, 256]\n"
                    "    param w : f32[256, 128] = 0.001\n"
                    "    output y = x @ w\n"
                    "    loss sum(w[0])\n"
                    "}\n",
    [PROBE_MATH] = "model probe {\n"
                   "    input x : f32[65536]\n"
                   "    output y = exp(x)\n"
                   "    loss x[0]\n"
                   "}\n",
    [PROBE_NEAR] = "model probe {\n"
                   "    input x : f32[16384]\n"
                   "    param w : f32 = 2\n"
                   "    output y = x * w\n"
                   "    loss w\n"
                   "}\n",
    [PROBE_MIDDLE] = "model probe {\n"
                     "    input x : f32[1048576]\n"
                     "    param w : f32 = 2\n"
                     "    output y = x * w\n"
                     "    loss w\n"
                     "}\n",
    [PROBE_MEMORY] = "model probe {\n"
                     "    input x : f32[33554432]\n"
                     "    param w : f32 = 2\n"
                     "    output y = x * w\n"
                     "    loss w\n"
                     "}\n",
};

enum { WARMUP = 3, RUNS = 21 };

/* The fastest of some runs: nothing makes a run faster than the machine. */
static int run_often(Session *s, Probe *to)
{
    Values in = inputs_make(&s->arena, s->model, 1, 1);
    /* no result is wanted: to copy them would be more than what is measured */
    gradc_block *out = (gradc_block *)NEW_ARRAY(&s->arena, void *, 1 + s->model->n_outputs);
    to->ns = INFINITY;
    for (int i = -WARMUP; i < RUNS; i++) {
        double start = now_ms();
        int status = s->model->eval(s->handle, in.block, out);
        double ns = (now_ms() - start) * 1e6;
        if (status != GRADC_OK)
            return session_failed(s, "probe", status);
        to->ns = i >= 0 && ns < to->ns ? ns : to->ns;
    }
    return EXIT_OK;
}

int probe(const Cli *c, ProbeKind kind, int64_t threads, Probe *to)
{
    Ctx own;
    ctx_init(&own);
    Cli inner = {.cx = &own, .command = c->command};
    Session s;
    *to = (Probe){0};
    int status = session_open_text(&inner, &s, "probe.model", text[kind], threads);
    if (status == EXIT_OK)
        status = run_often(&s, to);
    const Plan *p = status == EXIT_OK ? s.out.plan[ENTRY_EVAL] : NULL;
    for (int32_t i = 0; p != NULL && i < p->n_steps; i++) {
        to->flops += p->step[i].flops;
        to->bytes += p->step[i].bytes_moved;
        to->work += p->step[i].work;
        to->steps++;
    }
    session_close(&s);
    ctx_free(&own);
    return status;
}

int probe_roof(const Cli *c, int64_t threads, Roof *to)
{
    Probe p[N_PROBES];
    for (int k = 0; k < N_PROBES; k++) {
        int status = probe(c, (ProbeKind)k, threads, &p[k]);
        if (status != EXIT_OK)
            return status;
    }
    double rate[N_PROBES];
    for (int k = PROBE_NEAR; k < N_PROBES; k++)
        rate[k] = p[k].bytes / p[k].ns;
    *to = (Roof){.flops = fmax(p[PROBE_PRODUCT].flops / p[PROBE_PRODUCT].ns,
                               p[PROBE_TILES].flops / p[PROBE_TILES].ns),
                 .work = p[PROBE_MATH].work / p[PROBE_MATH].ns,
                 .near_rate = rate[PROBE_NEAR],
                 .middle = rate[PROBE_MIDDLE],
                 .memory = rate[PROBE_MEMORY],
                 .near_bytes = p[PROBE_NEAR].bytes,
                 .middle_bytes = p[PROBE_MIDDLE].bytes,
                 .call = p[PROBE_CALLS].ns / p[PROBE_CALLS].steps};
    return EXIT_OK;
}

double roof_bytes(const Roof *r, double bytes)
{
    return bytes <= r->near_bytes ? r->near_rate : bytes <= r->middle_bytes ? r->middle : r->memory;
}
