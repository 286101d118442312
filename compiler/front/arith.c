/* Operators: on constants they are computed (constant.c); on tensors they become nodes, after
 * both sides have one dtype and one shape. */
#include "eval.h"

/* ---- one dtype, one shape ------------------------------------------------ */

/* Where to put the caret: of an operator in the library, the operand that is written in
 * the user's file. */
static Span caret(const Build *b, Span op, Span left, Span right)
{
    const Source *s = b->cx->source.at[op.file];
    if (!s->library)
        return op;
    if (left.file >= 0 && !b->cx->source.at[left.file]->library)
        return left;
    return right.file >= 0 && !b->cx->source.at[right.file]->library ? right : op;
}

static bool report_dtypes(Build *b, const char *what, Span at, const Value *x, Span x_at,
                          const Value *y, Span y_at)
{
    Diag *d = complain(b, E0220, caret(b, at, x_at, y_at),
                       "`%s` of %s and %s: there is no implicit conversion", what,
                       value_text(&b->cx->perm, x), value_text(&b->cx->perm, y));
    mark_range(b, d, x_at);
    mark_range(b, d, y_at);
    DType tx = type_of(x->graph, x->ref)->dtype, ty = type_of(y->graph, y->ref)->dtype;
    bool first = dtype_is_float(ty) && !dtype_is_float(tx);
    diag_help(b->cx, d, "say which type is meant: `cast(%s, %s)`",
              short_text(b, first ? x_at : y_at), dtype_name(first ? ty : tx));
    return false;
}

/* The dtype that tensors among the values share; constants take part in none. */
static bool common_dtype(Build *b, const Value *const *v, const Span *span, int n, int other,
                         DType *dtype, const char *what, Span at)
{
    int first = -1;
    for (int i = 0; i < n; i++) {
        if (v[i]->kind != VALUE_TENSOR || i == other)
            continue;
        DType t = type_of(v[i]->graph, v[i]->ref)->dtype;
        if (first >= 0 && t != *dtype)
            return report_dtypes(b, what, at, v[first], span[first], v[i], span[i]);
        if (first < 0)
            *dtype = t;
        first = first < 0 ? i : first;
    }
    return true;
}

/* NumPy's rule for two shapes; false where they disagree. */
static bool broadcast_dims(int *rank, int64_t *dim, int other_rank, const int64_t *other)
{
    int more = other_rank > *rank ? other_rank - *rank : 0;
    for (int i = *rank - 1; i >= 0 && more > 0; i--)
        dim[i + more] = dim[i];
    for (int i = 0; i < more; i++)
        dim[i] = 1;
    *rank += more;
    for (int i = 0; i < other_rank; i++) {
        int64_t *d = &dim[*rank - other_rank + i];
        if (*d != other[i] && *d != 1 && other[i] != 1)
            return false;
        if (*d == 1)
            *d = other[i];
    }
    return true;
}

static bool report_shapes(Build *b, const char *what, Span at, const Value *const *v,
                          const Span *span, int n, int wrong)
{
    int other = wrong == 0 ? n - 1 : 0;
    int64_t dx[MAX_RANK], dy[MAX_RANK];
    for (int i = 0; i < n; i++) { /* the first that it disagrees with */
        int64_t d[MAX_RANK], e[MAX_RANK];
        int rd = shape_of(v[i], d), re = shape_of(v[wrong], e);
        if (i != wrong && !broadcast_dims(&rd, d, re, e)) {
            other = i;
            break;
        }
    }
    int rx = shape_of(v[other], dx), ry = shape_of(v[wrong], dy);
    int64_t x = 1, y = 1;
    for (int i = 1; i <= rx && i <= ry; i++)
        if (dx[rx - i] != dy[ry - i] && dx[rx - i] != 1 && dy[ry - i] != 1) {
            x = dx[rx - i];
            y = dy[ry - i];
            break;
        }
    Diag *d = complain(b, E0202, caret(b, at, span[other], span[wrong]),
                       "`%s` of %s and %s: sizes %lld and %lld differ", what,
                       value_text(&b->cx->perm, v[other]), value_text(&b->cx->perm, v[wrong]),
                       (long long)x, (long long)y);
    mark_range(b, d, span[other]);
    mark_range(b, d, span[wrong]);
    diag_help(b->cx, d, "axes are matched from the last; a size of 1 is repeated");
    return false;
}

bool unify(Build *b, const Value *const *v, const Span *span, int n, int other, DType *dtype,
           Ref *out, const char *what, Span where)
{
    int rank = 0;
    int64_t dim[MAX_RANK];
    for (int i = 0; i < n; i++)
        if (v[i]->kind == VALUE_POISON)
            return false;
    if (!common_dtype(b, v, span, n, other, dtype, what, where))
        return false;
    for (int i = 0; i < n; i++) {
        int64_t d[MAX_RANK];
        int r = shape_of(v[i], d);
        if (r < 0) {
            complain(b, E0209, span[i], "`%s` takes tensors and numbers, and this is %s", what,
                     value_kind_text(v[i]));
            return false;
        }
        if (!broadcast_dims(&rank, dim, r, d))
            return report_shapes(b, what, where, v, span, n, i);
    }
    at(b, where);
    for (int i = 0; i < n; i++) {
        Ref r = v[i]->kind == VALUE_TENSOR ? use(b, v[i])
                                           : constant(b, v[i], i == other ? BOOL : *dtype, span[i]);
        if (r == NONE)
            return false;
        at(b, where);
        out[i] = g_broadcast(b->g, r, rank, dim);
        if (out[i] == NONE) {
            move_report(b);
            return false;
        }
    }
    return true;
}

/* ---- tensors ------------------------------------------------------------- */

static const char *matrix_text(Build *b, const Value *v)
{
    Graph *g = v->graph;
    if (op_of(g, v->ref) != OP_transpose)
        return value_text(&b->cx->perm, v);
    const Value *before = value_tensor(&b->arena, g, arg(g, v->ref, 0));
    int r = rank(g, v->ref);
    const int64_t *perm = attr(g, v->ref, 0)->ints;
    for (int i = 0; i < r; i++)
        if (perm[i] != (i < r - 2 ? i : 2 * r - 3 - i))
            return value_text(&b->cx->perm, v);
    return arena_printf(&b->cx->perm, "%s\u1d40", value_text(&b->cx->perm, before));
}

/* The declaration of the parameter that v is, or is a transposed view of. */
static void note_declared(Build *b, Diag *d, const Value *v, const char *what)
{
    Graph *g = v->graph;
    Ref r = v->ref;
    while (op_of(g, r) == OP_transpose || op_of(g, r) == OP_reshape)
        r = arg(g, r, 0);
    if (op_of(g, r) != OP_slot)
        return;
    const Slot *s = &b->m->pinned.slot.at[attr(g, r, 0)->i];
    const Origin *o = origin_instance(s->origin);
    if (o == NULL)
        diag_note(b->cx, d, s->origin->span, "`%s` is declared here", s->name);
    else
        diag_note(b->cx, d, o->span, "%s was made here, %s", origin_path(&b->cx->perm, o), what);
}

static const Value *cannot_multiply(Build *b, const Value *l, const Value *r, const Spans *s,
                                    const char *which, int64_t x, int64_t y)
{
    Diag *d = complain(b, E0203, caret(b, s->op, s->left, s->right),
                       "cannot multiply %s by %s: %s sizes %lld and %lld differ", matrix_text(b, l),
                       matrix_text(b, r), which, (long long)x, (long long)y);
    mark_range(b, d, s->left);
    mark_range(b, d, s->right);
    const char *size = arena_printf(&b->cx->perm, "for inputs of width %lld", (long long)y);
    note_declared(b, d, r, size);
    size = arena_printf(&b->cx->perm, "of width %lld", (long long)x);
    note_declared(b, d, l, size);
    return &value_poison;
}

/* A contraction sums over every row: rows that are not there must be 0 in one factor. */
static Ref masked_for_sum(Build *b, Ref x, int axis)
{
    return rows_varies(b, x, axis) ? rows_mask(b, x, axis, (Missing){0, 0}) : x;
}

/* Constants with a shape, as of the other factor's type; others as they are. */
static const Value *as_factor(Build *b, const Value *v, Span span, const Value *other)
{
    if (v->kind != VALUE_FILL && !value_is_items(v))
        return v;
    DType t = other->kind == VALUE_TENSOR ? type_of(other->graph, other->ref)->dtype : F32;
    Ref x = want_tensor(b, v, span, t);
    return x == NONE ? &value_poison : value_tensor(&b->arena, b->g, x);
}

static const Value *matmul(Build *b, const Value *l, const Value *r, const Spans *s)
{
    const Value *left = l;
    l = as_factor(b, l, s->left, r);
    r = as_factor(b, r, s->right, left);
    if (l->kind == VALUE_POISON || r->kind == VALUE_POISON)
        return &value_poison;
    if (l->kind != VALUE_TENSOR || r->kind != VALUE_TENSOR)
        return fold_refused(b, OPERATOR_MATMUL, l, r, s);
    Type tx = *type_of(l->graph, l->ref), ty = *type_of(r->graph, r->ref);
    if (tx.dtype != ty.dtype) {
        report_dtypes(b, "@", s->op, l, s->left, r, s->right);
        return &value_poison;
    }
    if (tx.rank < 1 || ty.rank < 1) {
        complain(b, E0203, s->op, "cannot multiply %s by %s: `@` takes matrices and vectors",
                 matrix_text(b, l), matrix_text(b, r));
        return &value_poison;
    }
    int kx = tx.rank - 1, ky = ty.rank >= 2 ? ty.rank - 2 : 0;
    if (tx.dim[kx] != ty.dim[ky])
        return cannot_multiply(b, l, r, s, "inner", tx.dim[kx], ty.dim[ky]);
    for (int i = 3; i <= tx.rank && i <= ty.rank; i++) {
        int64_t x = tx.dim[tx.rank - i], y = ty.dim[ty.rank - i];
        if (x != y && x != 1 && y != 1)
            return cannot_multiply(b, l, r, s, "batch", x, y);
    }
    at(b, s->whole);
    Ref x = use(b, l), y = use(b, r);
    x = masked_for_sum(b, x, kx);
    if (!rows_varies(b, x, kx))
        y = masked_for_sum(b, y, ky);
    Ref z = g_matmul(b->g, x, y);
    return made(b, z);
}

/* Where a quotient by y that leaves `rem` is 1 above the one that is rounded down: `rem` is not 0
 * and has not the sign of y. */
static Ref too_high(Graph *g, Ref rem, Ref y)
{
    Ref zero = g_full(g, *type_of(g, y), 0);
    Ref off = g_binary(g, OP_ne, rem, zero);
    Ref below = g_binary(g, OP_lt, rem, zero);
    Ref y_below = g_binary(g, OP_lt, y, zero);
    Ref differ = g_binary(g, OP_ne, below, y_below);
    return g_binary(g, OP_and, off, differ);
}

/* Of integers not by way of x minus its remainder, which may be beyond their type. */
static Ref floor_div(Graph *g, Ref x, Ref y)
{
    Ref q = g_div(g, x, y);
    if (dtype_is_float(type_of(g, x)->dtype))
        return g_unary(g, OP_floor, q);
    Ref rem = g_binary(g, OP_rem, x, y);
    Ref wrong = too_high(g, rem, y);
    Ref one = g_full(g, *type_of(g, y), 1);
    Ref lower = g_sub(g, q, one);
    return g_where(g, wrong, lower, q);
}

/* x - y*q of floats, for a q that is rounded; 0 times an infinite y is 0. */
static Ref float_rem(Graph *g, Ref x, Ref y)
{
    Ref q = floor_div(g, x, y);
    Ref zero = g_full(g, *type_of(g, y), 0);
    Ref none = g_binary(g, OP_eq, q, zero);
    Ref whole = g_mul(g, q, y);
    whole = g_where(g, none, q, whole);
    return g_sub(g, x, whole);
}

/* The remainder that has the sign of y. */
static Ref modulo(Graph *g, Ref x, Ref y)
{
    bool is_float = dtype_is_float(type_of(g, x)->dtype);
    Ref rem = is_float ? float_rem(g, x, y) : g_binary(g, OP_rem, x, y);
    Ref wrong = too_high(g, rem, y);
    Ref moved = g_add(g, rem, y);
    return g_where(g, wrong, moved, rem);
}

static Ref binary_node(Graph *g, Operator op, Ref x, Ref y)
{
    switch (op) {
    case OPERATOR_OR:
        return g_binary(g, OP_or, x, y);
    case OPERATOR_AND:
        return g_binary(g, OP_and, x, y);
    case OPERATOR_EQ:
        return g_binary(g, OP_eq, x, y);
    case OPERATOR_NE:
        return g_binary(g, OP_ne, x, y);
    case OPERATOR_LT:
        return g_binary(g, OP_lt, x, y);
    case OPERATOR_LE:
        return g_binary(g, OP_le, x, y);
    case OPERATOR_GT:
        return g_binary(g, OP_lt, y, x);
    case OPERATOR_GE:
        return g_binary(g, OP_le, y, x);
    case OPERATOR_ADD:
        return g_add(g, x, y);
    case OPERATOR_SUB:
        return g_sub(g, x, y);
    case OPERATOR_MUL:
        return g_mul(g, x, y);
    case OPERATOR_DIV:
        return g_div(g, x, y);
    case OPERATOR_FLOORDIV:
        return floor_div(g, x, y);
    case OPERATOR_MOD:
        return modulo(g, x, y);
    default:
        return g_pow(g, x, y);
    }
}

const Value *arith_binary(Build *b, Operator op, const Value *l, const Value *r, const Spans *s)
{
    if (l->kind == VALUE_POISON || r->kind == VALUE_POISON)
        return &value_poison;
    bool tensor = l->kind == VALUE_TENSOR || r->kind == VALUE_TENSOR || l->kind == VALUE_FILL ||
                  r->kind == VALUE_FILL;
    if (value_is_items(l) && value_is_items(r) && op == OPERATOR_ADD)
        return fold_concat(b, l, r);
    if (!tensor)
        return fold_binary(b, op, l, r, s);
    if (op == OPERATOR_MATMUL)
        return matmul(b, l, r, s);
    bool logic = op == OPERATOR_AND || op == OPERATOR_OR;
    DType t = logic ? BOOL : F32;
    Ref x[2];
    const Value *const both[2] = {l, r};
    if (!unify(b, both, (Span[]){s->left, s->right}, 2, -1, &t, x, operator_spelling(op), s->op))
        return &value_poison;
    at(b, s->whole);
    Ref z = binary_node(b->g, op, x[0], x[1]);
    return made(b, z);
}

const Value *arith_unary(Build *b, Operator op, const Value *v, const Spans *s)
{
    if (v->kind == VALUE_POISON)
        return v;
    bool tensor = v->kind == VALUE_TENSOR || v->kind == VALUE_FILL;
    if (op == OPERATOR_NOT && v->kind == VALUE_BOOL)
        return value_bool(&b->arena, !v->b);
    if (op == OPERATOR_NEG && value_is_number(v))
        return fold_negated(b, v, s);
    if (op == OPERATOR_POS && (value_is_number(v) || tensor))
        return v;
    if (!tensor) {
        complain(b, E0209, s->op, "`%s` does not go with %s", operator_spelling(op),
                 value_kind_text(v));
        return &value_poison;
    }
    Ref x = want_tensor(b, v, s->right, op == OPERATOR_NOT ? BOOL : F32);
    at(b, s->whole);
    return x == NONE ? &value_poison
                     : made(b, g_unary(b->g, op == OPERATOR_NOT ? OP_not : OP_neg, x));
}
