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
        return g_full(b->g, s.type, init->a);
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

Ref draw(Build *b, OpId op, Type t, Span span)
{
    Value seed = {.kind = VALUE_TENSOR, .graph = b->top, .ref = seed_value(b)};
    Value step = {.kind = VALUE_TENSOR, .graph = b->top, .ref = step_value(b)};
    Ref s = use(b, &seed);
    Ref n = b->level != NULL ? use(b, b->level->draw_step) : use(b, &step);
    uint64_t key = draw_key(b);
    at(b, span);
    return op == OP_uniform ? g_uniform(b->g, t, s, n, key) : g_normal(b->g, t, s, n, key);
}
