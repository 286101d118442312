/* The learning rate is a graph of its own over a few scalars that live in the block: the step
 * number, the rate that the caller set. With their values put in, it folds to one number, by
 * the same arithmetic as in the step. */
#include "rate.h"

#include <math.h>
#include <string.h>

#include "../../runtime/gradc.h"
#include "../pass/pass.h"
#include "values.h"

struct Rate {
    Cli *c;
    Session *s;
    Graph *g;        /* or NULL: there is no number to know */
    int64_t *slot;   /* by node: the bits that the slot held when `last` was found */
    int32_t *tensor; /* by node: the model's tensor that the slot is, or -1 */
    bool found;
    double last;
};

static int32_t tensor_of(const Session *s, const Graph *g, Ref r)
{
    const char *name = model_pinned(s->out.model)->slot.at[attr(g, r, 0)->i].name;
    for (int32_t i = 0; i < s->model->n_tensors; i++)
        if (strcmp(s->model->tensors[i].name, name) == 0)
            return i;
    return -1;
}

/* All that it depends on can be read: no input, no tensor. */
static bool find_slots(Rate *r)
{
    const Graph *g = r->g;
    r->slot = NEW_ARRAY(&r->s->arena, int64_t, g->node.n);
    r->tensor = NEW_ARRAY(&r->s->arena, int32_t, g->node.n);
    for (Ref n = 1; n < (Ref)g->node.n; n++) {
        r->tensor[n] = -1;
        if (op_of(g, n) == OP_input || op_of(g, n) == OP_scan)
            return false;
        if (op_of(g, n) != OP_slot)
            continue;
        r->tensor[n] = tensor_of(r->s, g, n);
        if (r->tensor[n] < 0 || type_elems(type_of(g, n)) != 1)
            return false;
    }
    return g->root.n == 1;
}

Rate *rate_open(Cli *c, Session *s)
{
    Rate *r = NEW(&s->arena, Rate);
    *r = (Rate){.c = c, .s = s, .g = build_rate(c->cx, s->out.model)};
    simplify(c->cx, r->g);
    if (!find_slots(r)) {
        graph_free(r->g);
        r->g = NULL;
    }
    return r;
}

void rate_close(Rate *r)
{
    if (r != NULL && r->g != NULL)
        graph_free(r->g);
}

/* Reads the slots; true if all of them are what they were. */
static bool unchanged(Rate *r)
{
    bool same = r->found;
    for (Ref n = 1; n < (Ref)r->g->node.n; n++) {
        if (r->tensor[n] < 0)
            continue;
        const gradc_tensor *t = &r->s->model->tensors[r->tensor[n]];
        int64_t held = 0; /* a scalar of any type */
        if (r->s->model->read(r->s->handle, r->tensor[n], &held, (size_t)t->bytes) != GRADC_OK)
            continue;
        same = same && held == r->slot[n];
        r->slot[n] = held;
    }
    return same;
}

/* A copy of the graph, in which slots are the numbers that they hold. */
static Graph *with_numbers(const Rate *r)
{
    Graph *to = graph_new(r->c->cx, r->g->name);
    Ref *map = NEW_ARRAY(&to->arena, Ref, r->g->node.n);
    for (Ref n = 1; n < (Ref)r->g->node.n; n++) {
        DType t = type_of(r->g, n)->dtype;
        if (r->tensor[n] < 0)
            map[n] = graph_copy_node(to, r->g, n, map);
        else if (dtype_is_float(t))
            map[n] = g_const(to, t, dtype_value(t, &r->slot[n], 0));
        else
            map[n] = g_const_int(to, t, dtype_integer(t, &r->slot[n], 0));
    }
    graph_root(to, ROOT_OTHER, "lr", map[r->g->root.at[0].ref], -1, -1);
    return to;
}

double rate_next(Rate *r)
{
    if (r->g == NULL)
        return NAN;
    if (unchanged(r))
        return r->last;
    Graph *g = with_numbers(r);
    simplify(r->c->cx, g);
    if (!const_value(g, g->root.at[0].ref, &r->last))
        r->last = NAN;
    r->found = true;
    graph_free(g);
    return r->last;
}
