/* Regions whose chunks change no bit: nothing is summed over chunks, sums within them have the
 * order of the whole, and cotangents that meet outside of the region meet in the order they had. */
#include "chunk.h"

bool sums_nothing(Search *s, const Region *v)
{
    const Graph *g = s->g;
    for (Ref r = 1; r <= v->last; r++) {
        int n = node(g, r)->n_args, *want = NEW_ARRAY(s->a, int, n);
        if (!is_in(v, r))
            continue;
        operand_axes(g, r, v->axis[r], want);
        for (int i = 0; i < n; i++)
            if (want[i] == WHOLE && !s->free[arg(g, r, i)] &&
                dtype_is_float(type_of(g, arg(g, r, i))->dtype))
                return false;
    }
    return true;
}

/* ---- sums within rows ---------------------------------------------------------------- */

/* Indices walk along axes one by one: each element of an operand has as many terms. */
static bool is_product(const Graph *g, Ref r)
{
    for (int which = 0; which < 2; which++) {
        const Attr *map = attr(g, r, op_attr(&op_contract, which == 0 ? "x" : "y"));
        for (int d = 0; d < map->n; d++)
            if (map->map[d].n > 1)
                return false;
    }
    return true;
}

/* Would a contraction of a chunk, or a gradient of it, be summed in another order than the whole
 * one? */
static bool sums_otherwise(const Graph *g, Ref r, int axis, int64_t slices)
{
    int want[2];
    int64_t all = 1;
    if (!is_product(g, r))
        return true;
    const Attr *extent = attr(g, r, op_attr(&op_contract, "extent"));
    for (int i = 0; i < extent->n; i++)
        all *= extent->ints[i];
    operand_axes(g, r, axis, want);
    for (int i = -1; i < 2; i++) {
        int64_t whole = elems(g, i < 0 ? r : arg(g, r, i)), part = whole / slices;
        if ((i >= 0 && want[i] == WHOLE) || part == 0)
            continue;
        if (contract_in_leaves(part, all / whole) != contract_in_leaves(whole, all / whole))
            return true;
        int64_t read = i < 0 ? 0 : elems(g, r) + elems(g, arg(g, r, 1 - i));
        if (i >= 0 && most_leaves(type_of(g, r)->dtype, whole, all / whole, read) > 1)
            return true; /* a gradient of the whole is cut, no product in a scan's body is */
    }
    return false;
}

/* A reduction of a reduction adds up in one walk; in two, which is another order, if the region
 * ends between them. The cotangent of a broadcast is such a sum. */
static bool ends_walk(const Region *v, Ref r)
{
    const Graph *g = v->g;
    OpId op = op_of(g, r);
    if ((op != OP_sum && op != OP_prod && op != OP_broadcast) ||
        !dtype_is_float(type_of(g, r)->dtype))
        return false;
    Ref x = arg(g, r, 0);
    return op_of(g, x) == op && is_in(v, r) != is_in(v, x) && !v->free[x];
}

/* What is summed within rows is summed in the order of the whole. */
static bool keeps_order(const Region *v)
{
    for (Ref r = 1; r < (Ref)v->g->node.n; r++)
        if (ends_walk(v, r))
            return false;
    for (Ref r = 1; r <= v->last; r++)
        if (is_in(v, r) && op_of(v->g, r) == OP_contract &&
            sums_otherwise(v->g, r, v->axis[r], v->extent / v->rows))
            return false;
    return true;
}

/* ---- sums of cotangents ------------------------------------------------------------- */

/* Who reads a value, by place: a cotangent is the sum over its readers, from the last to the first.
 * The region's readers become one, the scan, which stands where the region ends. */
typedef struct Readers {
    int in, out;                            /* of the region, and others */
    bool out_before, out_within, out_after; /* the region's first, its end */
} Readers;

static void note_reader(const Region *v, Readers *u, Ref r, bool in)
{
    u->in += in;
    u->out += !in;
    if (in)
        return;
    u->out_before = u->out_before || u->in == 0;
    u->out_within = u->out_within || (u->in > 0 && r < v->last);
    u->out_after = u->out_after || r > v->last;
}

/* Readers of x, of which `end` counts as the region's, too. */
static Readers readers_of(const Search *s, const Region *v, Ref x, Ref end)
{
    Readers u = {0};
    for (uint32_t i = s->first_user[x]; i < s->first_user[x + 1]; i++) /* ascending */
        note_reader(v, &u, s->user[i], s->user[i] == end || is_in(v, s->user[i]));
    return u;
}

/* Is a cotangent the same sum, in the same order, if the scan is one reader in place of many? Two
 * terms have no order. */
static bool sums_alike(const Readers *u)
{
    return u->in + u->out <= 2 || u->out == 0 || (!u->out_within && (!u->out_after || u->in == 1));
}

/* Has x[.., n, ..] this shape once it is cut: [.., n / rows, rows, ..]? */
static bool is_cut_shape(const Region *v, Ref x, int axis, Ref shape)
{
    const Graph *g = v->g;
    bool same = rank(g, shape) == rank(g, x) + 1;
    for (int a = 0; same && a < rank(g, shape); a++) {
        int64_t n = a == axis       ? v->extent / v->rows
                    : a == axis + 1 ? v->rows
                                    : dim(g, x, a < axis ? a : a - 1);
        same = dim(g, shape, a) == n;
    }
    return same;
}

/* Does some reader of `of` show what is the same as x, cut along the axis? The two become one:
 * their cotangents meet before they are added to those of other readers. */
static bool is_cut_elsewhere(const Search *s, const Region *v, Ref of, Ref x, int axis)
{
    for (uint32_t i = s->first_user[of]; i < s->first_user[of + 1]; i++) {
        Ref r = s->user[i];
        if (r != x && op_of(s->g, r) == OP_reshape && is_cut_shape(v, x, axis, r))
            return true;
    }
    return false;
}

static Ref below_reshapes(const Graph *g, Ref r)
{
    while (op_of(g, r) == OP_reshape)
        r = arg(g, r, 0);
    return r;
}

void mark_cut(Search *s, const Region *v)
{
    const Graph *g = s->g;
    for (Ref r = v->first; r <= v->last; r++) {
        int n = node(g, r)->n_args, *want = NEW_ARRAY(s->a, int, n);
        if (!is_in(v, r) || !operand_axes(g, r, v->axis[r], want))
            continue;
        for (int i = 0; i < n; i++)
            if (want[i] != WHOLE && !is_in(v, arg(g, r, i)))
                s->cut[below_reshapes(g, arg(g, r, i))] = true;
    }
}

/* Of what the region reads along an axis. Reshapes are one with the reshape that cuts them: then
 * that is a reader, in the scan's place, of what they show. */
static bool operand_sums_alike(const Search *s, const Region *v, Ref x, int axis)
{
    const Ref whole = x;
    Readers u = readers_of(s, v, x, NONE);
    bool fine = sums_alike(&u) && !is_cut_elsewhere(s, v, x, x, axis);
    while (fine && op_of(s->g, x) == OP_reshape) {
        Ref of = arg(s->g, x, 0);
        if (is_cut_elsewhere(s, v, of, whole, axis))
            return false;
        Readers shown = readers_of(s, v, of, x);
        fine = u.out == 0 ? sums_alike(&shown) : u.in == 1 && u.out == 1 && shown.out == 0;
        u = shown;
        x = of;
    }
    return fine;
}

/* Of what the region gives: others are summed first, and then go on as one. */
static bool result_sums_alike(const Search *s, const Region *v, Ref r)
{
    Readers u = readers_of(s, v, r, NONE);
    return u.out == 0 || (u.out <= 2 && (u.in == 0 || (!u.out_before && !u.out_within)));
}

static bool is_float(const Graph *g, Ref r)
{
    return rank(g, r) >= 0 && dtype_is_float(type_of(g, r)->dtype);
}

/* Each cotangent outside of the region, and of what it gives, is the sum that it was. */
static bool keeps_sums(Search *s, const Region *v)
{
    const Graph *g = s->g;
    bool *later = NEW_ARRAY(s->a, bool, g->node.n), *read = NEW_ARRAY(s->a, bool, g->node.n);
    int *along = NEW_ARRAY(s->a, int, g->node.n);
    for (Ref r = 1; r <= v->last; r++) {
        bool in = is_in(v, r);
        int n = node(g, r)->n_args, *want = NEW_ARRAY(s->a, int, n);
        if (in)
            operand_axes(g, r, v->axis[r], want);
        for (int i = 0; i < n; i++) {
            Ref x = arg(g, r, i);
            later[r] = later[r] || later[x] || (!in && is_in(v, x));
            if (!in || is_in(v, x) || s->free[x] || !is_float(g, x))
                continue;
            if (want[i] != WHOLE && s->cut[below_reshapes(g, x)]) /* as is_cut_elsewhere() */
                return false;
            if (!operand_sums_alike(s, v, x, want[i]) || (read[x] && along[x] != want[i]))
                return false;
            read[x] = true;
            along[x] = want[i];
        }
        if ((!in && later[r]) || (in && is_float(g, r) && !result_sums_alike(s, v, r)))
            return false; /* what stands after the scan now, or is summed in another order */
    }
    return true;
}

bool keeps_bits(Search *s, const Region *v)
{
    return keeps_order(v) && keeps_sums(s, v);
}
