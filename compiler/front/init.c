/* First values: draws keyed by the seed and the name of the parameter, so that they are
 * the same on every machine and do not depend on the order of definitions. */
#include "eval.h"

#include <string.h>

/* a + b * draw */
static Ref drawn(Build *b, const Slot *s, const Init *init, OpId op)
{
    uint64_t key = hash_mix(hash_bytes(HASH_START, s->name, strlen(s->name)));
    Ref seed = seed_value(b);
    Ref zero = g_const_int(b->g, I64, 0);
    double by = op == OP_uniform ? init->b - init->a : init->b;
    Ref x = op == OP_uniform ? g_uniform(b->g, s->type, seed, zero, key)
                             : g_normal(b->g, s->type, seed, zero, key);
    if (by != 1)
        x = g_scale(b->g, x, by);
    if (init->a == 0)
        return x;
    Ref base = g_full(b->g, s->type, init->a);
    return g_add(b->g, x, base);
}

static Ref first_value(Build *b, int32_t slot)
{
    Slot s = b->m->pinned.slot.at[slot];
    const Init *init = &b->m->init.at[slot];
    Type type;
    void *data;
    switch (init->kind) {
    case INIT_FILL:
        return dtype_is_float(s.type.dtype) ? g_full(b->g, s.type, init->a)
                                            : g_full_int(b->g, s.type, init->i);
    case INIT_UNIFORM:
        return drawn(b, &s, init, OP_uniform);
    case INIT_NORMAL:
        return drawn(b, &s, init, OP_normal);
    case INIT_LITERAL:
        if (!literal_data(b, init->items, s.type.dtype, s.origin->span, &type, &data))
            return NONE;
        return g_literal(b->g, type, data);
    }
    return NONE;
}

void build_init(Build *b)
{
    Pinned *p = &b->m->pinned;
    bool draws = false;
    for (int i = 0; i < b->m->init.n; i++)
        draws =
            draws || b->m->init.at[i].kind == INIT_UNIFORM || b->m->init.at[i].kind == INIT_NORMAL;
    if (draws)
        seed_value(b);
    for (int32_t i = 0; i < p->slot.n; i++) {
        if (i == p->seed || i == p->rows)
            continue;
        b->g->origin = p->slot.at[i].origin;
        Ref r = first_value(b, i);
        if (r == NONE)
            move_report(b);
        else
            graph_root(b->g, ROOT_ASSIGN, p->slot.at[i].name, r, i, -1);
    }
}

/* The key of a draw: the call path and which draw of it this is, never a node's number. */
static uint64_t draw_key(Build *b)
{
    Instance *in = b->frame->instance;
    uint64_t h = hash_bytes(HASH_START, in->prefix, strlen(in->prefix));
    int32_t which[] = {in->use, in->draws++};
    return hash_mix(hash_bytes(h, which, sizeof which));
}

/* What draws inside of a scan's body take for the number of the step: it differs from
 * iteration to iteration. */
static Ref scan_step(Build *b, Level *l)
{
    static const int64_t far = INT32_MAX; /* more than a scan has iterations */
    if (l->draw_step != NONE)
        return l->draw_step;
    Ref outer = l->outer == NULL ? step_value(b) : scan_step(b, l->outer);
    Ref step = capture(b, l, l->around, outer);
    if (l->index == NONE) /* the body of a vjp: it runs once */
        return l->draw_step = step;
    Ref times = g_const_int(l->body, I64, far);
    Ref spread = g_mul(l->body, step, times);
    Ref index = g_cast(l->body, I64, l->index);
    Ref one = g_const_int(l->body, I64, 1);
    Ref which = g_add(l->body, index, one);
    return l->draw_step = g_add(l->body, spread, which);
}

Ref draw(Build *b, OpId op, Type t, Span span)
{
    Ref seed = seed_value(b), step = step_value(b);
    uint64_t key = draw_key(b);
    at(b, span);
    if (b->level != NULL) {
        seed = capture(b, b->level, b->top, seed);
        step = scan_step(b, b->level);
    }
    return op == OP_uniform ? g_uniform(b->g, t, seed, step, key)
                            : g_normal(b->g, t, seed, step, key);
}
