/* What transfers take, and what is said of them. */
#include "offload.h"

#include "report.h"

/* A machine that computes, and a queue beside it. */
typedef struct Clock {
    double now, idle; /* idle: when all that has begun is over */
    double *over;     /* by value: when its last transfer is */
} Clock;

static void run(const Plan *p, const PlanStep *s, Clock *c, Transfers *t, double *waited)
{
    int32_t v = s->kind == STEP_IN ? s->write[0] : s->kind == STEP_RUN ? -1 : s->read[0];
    if (s->kind == STEP_RUN) {
        c->now += (double)plan_step_cost(p, s);
    } else if (s->kind == STEP_WAIT) {
        double wait = c->over[v] > c->now ? c->over[v] - c->now : 0;
        c->now += wait;
        t->waited += wait;
        if (waited != NULL)
            waited[v] += wait;
    } else {
        double takes = offload_duration(p, v);
        c->over[v] = c->idle = (c->idle > c->now ? c->idle : c->now) + takes;
        t->busy += takes;
        *(s->kind == STEP_OUT ? &t->out_bytes : &t->in_bytes) += p->value[v].bytes;
    }
}

Transfers offload_transfers(const Plan *p, double *waited)
{
    Transfers t = {0};
    Arena scratch = {0};
    Clock c = {.over = NEW_ARRAY(&scratch, double, p->n_values)};
    for (int32_t v = 0; waited != NULL && v < p->n_values; v++)
        waited[v] = 0;
    for (int32_t s = 0; s < p->n_steps; s++) {
        run(p, &p->step[s], &c, &t, waited);
        if (p->step[s].body == NULL)
            continue;
        Transfers body = offload_transfers(p->step[s].body, NULL);
        t.out_bytes += p->step[s].count * body.out_bytes;
        t.in_bytes += p->step[s].count * body.in_bytes;
        t.busy += (double)p->step[s].count * body.busy;
        t.waited += (double)p->step[s].count * body.waited;
    }
    arena_free(&scratch);
    return t;
}

bool plan_offloads(const Plan *p, int32_t value)
{
    for (int32_t s = 0; p->store_bytes > 0 && s < p->n_steps; s++)
        if (p->step[s].kind == STEP_OUT && p->step[s].read[0] == value)
            return true;
    return false;
}

const char *offload_text(const Plan *p, Arena *a)
{
    Transfers t = offload_transfers(p, NULL);
    if (t.out_bytes == 0)
        return NULL;
    return arena_printf(
        a,
        "offloaded: %lld bytes go out and %lld come in, which takes %.2f us; %.2f us of "
        "that are waited for, as predicted",
        (long long)t.out_bytes, (long long)t.in_bytes, t.busy / 1000, t.waited / 1000);
}

const char *offload_value_text(const Plan *p, int32_t value, Arena *a)
{
    int32_t n = 0, out = -1, first = -1;
    if (p->store_bytes == 0)
        return NULL;
    double *waited = NEW_ARRAY(a, double, p->n_values);
    for (int32_t s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->step[s];
        if (step->kind == STEP_OUT && step->read[0] == value)
            out = s;
        if (step->kind == STEP_IN && step->write[0] == value && n++ == 0)
            first = s;
    }
    if (out < 0)
        return NULL;
    offload_transfers(p, waited);
    const char *times = n > 1 ? arena_printf(a, ", %d times in all", n) : "";
    const PlanValue *v = &p->value[value];
    return arena_printf(a,
                        "offloaded: with step %d its %lld bytes begin to go to byte %lld of the "
                        "store, with step %d "
                        "to come back%s; a transfer takes %.2f us, and %.2f us are waited for",
                        out, (long long)v->bytes, (long long)v->store, first, times,
                        offload_duration(p, value) / 1000, waited[value] / 1000);
}
