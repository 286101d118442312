/* Rows of the op table as kernels. */
#include "op_kernel.h"

#include <assert.h>
#include <string.h>

enum { TRIES = 40 };

Graph *op_example(Ctx *cx, const Op *op, int which, const char *type)
{
    const char *s = op->example;
    for (; which > 0 && *s != '\0'; which--) {
        s += strcspn(s, ";");
        s += strspn(s, "; ");
    }
    if (*s == '\0')
        return NULL;
    Text text;
    text_init(&text, &cx->perm);
    for (size_t left = strcspn(s, ";"); left > 0; left--, s++) {
        bool here = left >= 3 && memcmp(s, "f32", 3) == 0;
        text_put(&text, here ? type : s, here ? strlen(type) : 1);
        s += here ? 2 : 0;
        left -= here ? 2 : 0;
    }
    return graph_read_example(cx, text.at, text.n);
}

static void open_axes(OpKernel *b, KAff *idx)
{
    for (int i = 0; i < rank(b->g, b->n); i++) {
        for (int f = 0; f < b->axis[i].n; f++)
            b->axis[i].loop[f] = k_par(b->k, b->axis[i].factor[f]);
        idx[i] = axis_index(&b->axis[i]);
    }
}

static void build_once(OpKernel *b)
{
    const Op *op = optab[op_of(b->g, b->n)];
    const Type *t = type_of(b->g, b->n);
    b->k = kernel_new(&b->cx->perm, K_LOOP, "test");
    b->e = NEW(&b->cx->perm, Elem);
    elem_init(b->e, b->k, b->g, &b->cx->perm, b->stored);
    if (op->kind == OP_OPAQUE) {
        b->out = elem_out_buffer(b->e, b->n, 0, t->dtype, type_elems(t));
        op->kernel(b->e, b->n, &b->out);
        return;
    }
    KAff idx[MAX_RANK];
    open_axes(b, idx);
    Val v = elem_at(b->e, b->n, idx);
    if (b->e->trouble != FINE)
        return;
    b->out = elem_out_buffer(b->e, b->n, 0, t->dtype, type_elems(t));
    k_store(b->k, b->out, elem_linear(t, idx), v);
    if (t->rank > 0)
        k_end(b->k, b->axis[0].loop[0]);
}

bool op_kernel(Ctx *cx, OpKernel *b, const Graph *g, Ref n)
{
    const Op *op = optab[op_of(g, n)];
    *b = (OpKernel){.cx = cx, .g = g, .n = n, .stored = NEW_ARRAY(&cx->perm, bool, g->node.n)};
    if (op->scalar == NULL && op->elem == NULL && op->kernel == NULL)
        return false;
    if (type_elems(type_of(g, n)) == 0)
        return false; /* simplify() leaves no such value to be computed */
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        b->stored[r] = r != n;
    for (int i = 0; i < rank(g, n); i++)
        axis_init(&b->axis[i], dim(g, n, i));
    for (int i = 0; i < TRIES; i++) {
        build_once(b);
        if (b->e->trouble != WANTS_CUT)
            break;
        bool cut = axis_cut(b->axis, rank(g, n), b->e->cut_loop, b->e->cut_by);
        assert(cut);
    }
    assert(b->e->trouble == FINE);
    k_finish(b->k);
    return true;
}
