/* Transposed operands of a reduction. What it goes through lies along its lines or, where it was
 * transposed, across them, and where there is both no order of loops meets all of it line by line:
 * a vector's lanes are then in as many lines of memory, which are gone before their other elements
 * are met. What is transposed is stored first, by a kernel that is free to go tile by tile. */
#include "cluster_build.h"

enum { LIES_ALONG = 1, LIES_ACROSS = 2 };
/* Elements that a near cache does not hold. */
enum { FAR_ELEMS = 1 << 14 };

/* The last axis comes from another one. */
static bool is_across(const Graph *g, Ref r)
{
    int last = rank(g, r) - 1;
    return op_of(g, r) == OP_transpose && attr(g, r, 0)->ints[last] != last;
}

void find_lies(Build *b, Ref r)
{
    const Graph *g = b->g;
    OpKind kind = optab[op_of(g, r)]->kind;
    bool far = type_of(g, r)->rank > 0 && type_elems(type_of(g, r)) >= FAR_ELEMS;
    uint8_t lies = 0;
    if (far && (b->c->stored[r] || (kind != OP_POINTWISE && kind != OP_VIEW)))
        lies = LIES_ALONG;
    else if (far)
        for (int i = 0; i < node(g, r)->n_args; i++)
            lies |= b->lies[arg(g, r, i)];
    b->lies[r] = lies != 0 && is_across(g, r) && !b->c->stored[r] ? LIES_ACROSS : lies;
}

static void store_across(Build *b, Ref r)
{
    const Graph *g = b->g;
    if (b->c->stored[r] || (b->lies[r] & LIES_ACROSS) == 0)
        return;
    if (is_across(g, r)) {
        b->c->stored[r] = true;
        b->lies[r] = LIES_ALONG;
        return;
    }
    b->lies[r] = LIES_ALONG;
    for (int i = 0; i < node(g, r)->n_args; i++)
        store_across(b, arg(g, r, i));
}

void store_across_lines(Build *b, Ref r)
{
    const Graph *g = b->g;
    Ref x = arg(g, r, 0);
    bool along = attr(g, r, REDUCE_AXIS)->i == rank(g, x) - 1;
    if (along && b->lies[x] == (LIES_ALONG | LIES_ACROSS))
        store_across(b, x);
}
