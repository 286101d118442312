/* Why a plan stores a value, in a sentence: who reads it, what the alternative would cost. */
#include "report.h"

#include "offload.h"

/* Steps that read (or write) a value. */
typedef struct Uses {
    int n;
    int32_t first, last;
} Uses;

static bool is_in(const int32_t *list, int32_t n, int32_t v)
{
    for (int32_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

static Uses uses_of(const Plan *p, int32_t v, bool writes, int32_t from, int32_t to)
{
    Uses u = {0};
    for (int32_t s = from; s <= to; s++) {
        const PlanStep *step = &p->step[s];
        if (step->kind != STEP_RUN ||
            !is_in(writes ? step->write : step->read, writes ? step->n_writes : step->n_reads, v))
            continue;
        u.first = u.n++ == 0 ? s : u.first;
        u.last = s;
    }
    return u;
}

static void put_uses(Text *t, const Plan *p, const Uses *u, const char *verb)
{
    const char *first = u->n > 0 ? p->step[u->first].label : "";
    const char *last = u->n > 0 ? p->step[u->last].label : "";
    if (u->n == 0)
        text_add(t, "no step %ss it", verb);
    else if (u->n == 1)
        text_add(t, "step %d (%s) %ss it", u->first, first, verb);
    else if (u->n == 2)
        text_add(t, "steps %d (%s) and %d (%s) %s it", u->first, first, u->last, last, verb);
    else
        text_add(t, "%d steps %s it, from %d (%s) to %d (%s)", u->n, verb, u->first, first, u->last,
                 last);
}

/* Of not keeping it: its step once more, before its last reader. */
static void put_price(Text *t, const Plan *p, const PlanRange *r, const Uses *u)
{
    const char *offloaded = offload_value_text(p, r->value, t->arena);
    if (offloaded != NULL && p->step[r->from].kind == STEP_RUN)
        text_add(t, "; %s", offloaded);
    else if (offloaded != NULL)
        return;
    else if (p->value[r->value].offload)
        text_add(t, "; it is not offloaded, for no reverse pass reads it later");
    else if (p->value[r->value].kept)
        text_add(t, "; the model keeps it");
    else if (u->n > 0 && u->last > r->from + 1)
        text_add(t, "; to compute it again would take %.2f us",
                 (double)plan_step_cost(p, &p->step[r->from]) / 1000);
}

const char *report_reason(const Plan *p, const PlanRange *r, Arena *arena)
{
    Text t;
    text_init(&t, arena);
    const PlanValue *val = &p->value[r->value];
    const PlanStep *from = &p->step[r->from];
    Uses u = uses_of(p, r->value, false, r->from + 1, r->to);
    bool given = val->to_end && r->to == p->n_steps - 1;
    if (from->run > 0)
        text_add(&t, "it is computed again, for there is no room to keep it so long; ");
    if (from->kind == STEP_IN)
        text_add(&t, "it comes back from byte %lld of the store; ", (long long)val->store);
    if (given)
        text_add(&t, val->role == ROLE_ACTIVATION ? "it is asked for when the entry ends"
                                                  : "the caller reads it after the entry has run");
    if (given && u.n == 0)
        return t.at;
    text_add(&t, given ? "; before that " : "");
    if (u.n == 0)
        text_add(&t, "no later step reads it");
    else
        put_uses(&t, p, &u, "read");
    if (!given)
        put_price(&t, p, r, &u);
    return t.at;
}

const char *report_pinned_reason(const Plan *p, int32_t value, Arena *arena)
{
    Text t;
    text_init(&t, arena);
    Uses read = uses_of(p, value, false, 0, p->n_steps - 1);
    Uses written = uses_of(p, value, true, 0, p->n_steps - 1);
    if (read.n > 0 || written.n == 0)
        put_uses(&t, p, &read, "read");
    if (written.n > 0) {
        text_add(&t, read.n > 0 ? "; " : "");
        put_uses(&t, p, &written, "write");
    }
    return t.at;
}
