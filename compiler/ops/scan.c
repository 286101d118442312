/* scan: a body run a constant number of times. Its reverse is a scan again: graph/scan_adjoint.c
 * holds g_scan_adjoint(). */
#include "../graph/op.h"

static const Graph *body_of(const Shape *s)
{
    return s->attr[SCAN_BODY].body;
}

/* The type that the body sees of operand i. */
static Type inner_type(const Shape *s, int i)
{
    Type t = *shape_arg(s, i);
    if (i < s->attr[SCAN_CARRIES].i || i >= s->attr[SCAN_CARRIES].i + s->attr[SCAN_SEQUENCES].i)
        return t;
    t.rank--;
    for (int a = 0; a < t.rank; a++)
        t.dim[a] = t.dim[a + 1];
    return t;
}

static bool counts_fit(Shape *s)
{
    int64_t carries = s->attr[SCAN_CARRIES].i, sequences = s->attr[SCAN_SEQUENCES].i;
    int64_t count = s->attr[SCAN_COUNT].i;
    if (carries < 0 || sequences < 0 || carries > s->n_args || sequences > s->n_args - carries)
        return shape_error(s, E0223, "`scan` of %lld values and %lld sequences has %d operands",
                           (long long)carries, (long long)sequences, s->n_args);
    if (count < 0 || count > (int64_t)1 << 40)
        return shape_error(s, E0223, "`scan` cannot run %lld times", (long long)count);
    for (int i = 0; i < s->n_args; i++) {
        bool sequence = i >= carries && i < carries + sequences;
        if (shape_arg(s, i)->rank < 0)
            return shape_error(s, E0221, "`scan` takes no tuple");
        if (sequence && (shape_arg(s, i)->rank == 0 || shape_arg(s, i)->dim[0] != count))
            return shape_error(s, E0220, "`scan` runs %lld times, and a sequence is %s",
                               (long long)count, shape_text(s, i));
    }
    return true;
}

static bool body_args_fit(Shape *s)
{
    const Graph *b = body_of(s);
    for (Ref r = 1; r < (Ref)b->node.n; r++) {
        if (op_of(b, r) != OP_arg)
            continue;
        int64_t i = attr(b, r, 0)->i;
        if (i < 0 || i >= s->n_args)
            return shape_error(s, E0223, "the body of `scan` has no argument %lld", (long long)i);
        Type want = inner_type(s, (int)i);
        if (!type_same(type_of(b, r), &want))
            return shape_error(s, E0220, "the body of `scan` takes %s, and is given %s",
                               type_text(&s->g->cx->perm, type_of(b, r)),
                               type_text(&s->g->cx->perm, &want));
    }
    return true;
}

/* New carries are of the type of the old ones. */
static bool body_results_fit(Shape *s)
{
    const Graph *b = body_of(s);
    int64_t n = 0;
    for (int i = 0; i < b->root.n; i++) {
        const Root *r = &b->root.at[i];
        if (r->kind != ROOT_RESULT)
            continue;
        if (n < s->attr[SCAN_CARRIES].i && !type_same(type_of(b, r->ref), shape_arg(s, (int)n)))
            return shape_error(s, E0220, "a value of `scan` begins as %s and comes back as %s",
                               shape_text(s, (int)n),
                               type_text(&s->g->cx->perm, type_of(b, r->ref)));
        if (n >= s->attr[SCAN_CARRIES].i && type_of(b, r->ref)->rank >= MAX_RANK)
            return shape_error(s, E0910, "`scan` cannot stack values of %d axes", MAX_RANK);
        n++;
    }
    s->type = (Type){.rank = -1, .dim = {n}};
    return n >= s->attr[SCAN_CARRIES].i ||
           shape_error(s, E0223, "the body of `scan` gives %lld of %lld values", (long long)n,
                       (long long)s->attr[SCAN_CARRIES].i);
}

static bool scan_shape(Shape *s)
{
    return counts_fit(s) && body_args_fit(s) && body_results_fit(s);
}

const Op op_scan = {
    .name = "scan",
    .n_args = -1,
    .kind = OP_SCAN,
    .attrs = {{"carries", ATTR_INT},
              {"sequences", ATTR_INT},
              {"count", ATTR_INT},
              {"down", ATTR_BOOL},
              {"lean", ATTR_BOOL},
              {"body", ATTR_BODY}},
    .shape = scan_shape,
    .vjp = g_scan_adjoint,
    .doc = "A body run `count` times. Operands: first values of the carries, sequences (the body "
           "sees a slice of axis 0), then what is the same every time. The body's results are the "
           "new carries, then values that are stacked along axis 0. `down`: slices and stacks run "
           "from the last to the first. The reverse is a scan the other way; what it reads of the "
           "body's values is stacked by the forward scan or, `lean`, computed again.",
    .example =
        /* h = tanh(h*w + x), all h stacked */
    "scan(f32[3], f32[4,3], f32[3], carries = 1, sequences = 1, count = 4, down = false, lean = "
    "false, body = {"
    " %1 = arg(index = 0, dtype = f32, shape = [3])"
    " %2 = arg(index = 1, dtype = f32, shape = [3])"
    " %3 = arg(index = 2, dtype = f32, shape = [3])"
    " %4 = mul(%1, %3) %5 = add(%4, %2) %6 = tanh(%5) result %6 result %6 });"
    /* two carries downwards, one an integer; nothing stacked but a product */
    "scan(f32[2], i32, f32[3,2], carries = 2, sequences = 1, count = 3, down = true, lean = false, "
    "body = {"
    " %1 = arg(index = 0, dtype = f32, shape = [2])"
    " %2 = arg(index = 1, dtype = i32, shape = [])"
    " %3 = arg(index = 2, dtype = f32, shape = [2])"
    " %4 = mul(%1, %3) %5 = sin(%4) %6 = add(%2, %2) result %5 result %6 result %4 });"
    /* no iteration at all */
    "scan(f32[2], carries = 1, sequences = 0, count = 0, down = false, lean = false, body = {"
    " %1 = arg(index = 0, dtype = f32, shape = [2]) %2 = exp(%1) result %2 result %1 });"
    /* a scan in a scan */
    "scan(f32[2], f32[2], carries = 1, sequences = 0, count = 2, down = false, lean = false, body "
    "= {"
    " %1 = arg(index = 0, dtype = f32, shape = [2])"
    " %2 = arg(index = 1, dtype = f32, shape = [2])"
    " %3 = scan(%1, %2, carries = 1, sequences = 0, count = 3, down = false, lean = false, body = {"
    " %1 = arg(index = 0, dtype = f32, shape = [2])"
    " %2 = arg(index = 1, dtype = f32, shape = [2])"
    " %3 = mul(%1, %2) %4 = sin(%3) result %4 result %3 })"
    " %4 = pick(%3, index = 0) %5 = pick(%3, index = 1) %6 = sum(%5, axis = 0, keep = false)"
    " %7 = add(%4, %6) result %7 result %4 })",
};
