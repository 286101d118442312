/* Partial batches: masks, counts, and what is known of each graph. How rows pass through
 * the ops: rows_flow.c. */
#include "rows.h"

#include <string.h>

Rows *rows_new(Build *b)
{
    if (b->m->batch <= 1) /* one row is always there */
        return NULL;
    Rows *rows = NEW(&b->arena, Rows);
    rows->b = b;
    return rows;
}

Followed *rows_of(Rows *rows, const Graph *g)
{
    for (int i = rows->graph.n - 1; i >= 0; i--)
        if (rows->graph.at[i]->g == g)
            return rows->graph.at[i];
    Followed *f = NEW(&rows->b->arena, Followed);
    f->g = g;
    for (const Level *l = rows->b->level; l != NULL; l = l->outer)
        if (l->body == g)
            f->level = l;
    vec_push(&rows->b->arena, &rows->graph, f);
    return f;
}

void rows_follow(Rows *rows, Followed *f)
{
    while (f->flow.n < f->g->node.n) {
        Flow flow = {.lost = false};
        if (f->flow.n > 0)
            flow = flow_of_node(rows, f, (Ref)f->flow.n);
        vec_push(&rows->b->arena, &f->flow, flow);
    }
}

static int64_t per_in(Build *b, const Graph *g, Ref x, int axis)
{
    if (b->rows == NULL || x == NONE)
        return 0;
    Followed *f = rows_of(b->rows, g);
    rows_follow(b->rows, f);
    return f->flow.at[x].per[axis];
}

static int64_t per_of(Build *b, Ref x, int axis)
{
    return per_in(b, b->g, x, axis);
}

bool rows_varies(Build *b, Ref x, int axis)
{
    return per_of(b, x, axis) != 0;
}

bool rows_along(Build *b, const Value *x, int axis)
{
    return x->kind == VALUE_TENSOR && per_in(b, x->graph, x->ref, axis) == 1;
}

void rows_begin(Build *b, Ref x)
{
    if (b->rows == NULL || x == NONE)
        return;
    Followed *f = rows_of(b->rows, b->g);
    vec_push(&b->arena, &f->begun, x);
    if (x < (Ref)f->flow.n)
        f->flow.at[x] = flow_of_node(b->rows, f, x);
}

/* (valid rows) * per, in this graph. */
static Ref valid_elems(Build *b, int64_t per)
{
    if (b->rows_value == NONE) {
        const Origin *keep = b->top->origin;
        b->top->origin = NULL;
        b->rows_value = g_slot(b->top, b->m->pinned.rows, type_scalar(I64));
        b->top->origin = keep;
    }
    Ref rows = b->rows_value;
    if (b->g != b->top)
        rows = capture(b, b->level, b->top, rows);
    if (per == 1)
        return rows;
    Ref times = g_const_int(b->g, I64, per);
    return g_mul(b->g, rows, times);
}

Ref rows_valid(Build *b, Ref x, int axis)
{
    int64_t per = per_of(b, x, axis);
    if (per == 0)
        return NONE;
    Ref n = valid_elems(b, per);
    int64_t extent = dim(b->g, x, axis);
    if (extent == b->m->batch * per)
        return n;
    Ref most = g_const_int(b->g, I64, extent); /* a slice of the first rows */
    return g_binary(b->g, OP_min, n, most);
}

Ref rows_mask(Build *b, Ref x, int axis, Missing by)
{
    int64_t per = per_of(b, x, axis);
    if (per == 0)
        return x;
    Type t = *type_of(b->g, x), line = type_scalar(I64);
    line.rank = t.rank - axis;
    for (int i = 0; i < line.rank; i++)
        line.dim[i] = i == 0 ? t.dim[axis] : 1;
    Ref place = g_iota(b->g, line, 0);
    Ref end = valid_elems(b, per);
    end = g_broadcast(b->g, end, line.rank, line.dim);
    Ref valid = g_binary(b->g, OP_lt, place, end);
    Ref mask = g_broadcast(b->g, valid, t.rank, t.dim);
    Ref other =
        dtype_is_float(t.dtype) ? g_const(b->g, t.dtype, by.f) : g_const_int(b->g, t.dtype, by.i);
    other = g_broadcast(b->g, other, t.rank, t.dim);
    Followed *f = rows_of(b->rows, b->g);
    vec_push(&b->arena, &f->mask, ((Mask){mask, axis, per}));
    return g_where(b->g, mask, x, other);
}

void rows_check(Build *b)
{
    if (b->rows == NULL)
        return;
    Followed *f = rows_of(b->rows, b->top);
    rows_follow(b->rows, f);
    for (int i = 0; i < b->top->root.n; i++)
        if (f->flow.at[b->top->root.at[i].ref].lost)
            b->m->rows_lost = true;
}
