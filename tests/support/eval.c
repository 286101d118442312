#include "eval.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct Eval {
    const Graph *g;
    const Feed *feed;
    Arena *arena;
    Value *value;
} Eval;

Value value_new(const Type *t, Arena *a)
{
    Value v = {.n = type_elems(t)};
    v.x = NEW_ARRAY(a, double, v.n);
    return v;
}

/* ---- elements ----------------------------------------------------------------- */

static int64_t offset(const Type *t, const int64_t *idx)
{
    int64_t at = 0;
    for (int i = 0; i < t->rank; i++)
        at = at * t->dim[i] + idx[i];
    return at;
}

static bool inside(const Type *t, const int64_t *idx)
{
    for (int i = 0; i < t->rank; i++)
        if (idx[i] < 0 || idx[i] >= t->dim[i])
            return false;
    return true;
}

static void unravel(const Type *t, int64_t at, int64_t *idx)
{
    for (int i = t->rank - 1; i >= 0; i--) {
        idx[i] = at % t->dim[i];
        at /= t->dim[i];
    }
}

static double get(const Eval *e, Ref r, const int64_t *idx)
{
    return e->value[r].x[offset(type_of(e->g, r), idx)];
}

static double get_or(const Eval *e, Ref r, const int64_t *idx, double otherwise)
{
    return inside(type_of(e->g, r), idx) ? get(e, r, idx) : otherwise;
}

static int64_t int_attr(const Eval *e, Ref n, const char *name)
{
    return attr(e->g, n, op_attr(optab[op_of(e->g, n)], name))->i;
}

/* ---- sources -------------------------------------------------------------------- */

static double literal_element(const Attr *a, DType t, int64_t i)
{
    const char *p = (const char *)a->data + i * dtype_bytes(t);
    float f;
    double d;
    uint16_t h;
    int32_t s;
    int64_t l;
    switch (t) {
    case F32:
        memcpy(&f, p, 4);
        return f;
    case F64:
        memcpy(&d, p, 8);
        return d;
    case F16:
        memcpy(&h, p, 2);
        return f16_to_f32(h);
    case BF16:
        memcpy(&h, p, 2);
        return bf16_to_f32(h);
    case I32:
        memcpy(&s, p, 4);
        return s;
    case I64:
        memcpy(&l, p, 8);
        return (double)l;
    default:
        return (unsigned char)*p;
    }
}

static double const_element(const Attr *a)
{
    return a->kind == ATTR_INT ? (double)a->i : a->f;
}

/* philox4x32-10, first word. source: Salmon et al. (2011), table 2 and section 3.3. */
static uint32_t philox(uint64_t key, uint64_t lo, uint64_t hi)
{
    uint32_t c[4] = {(uint32_t)lo, (uint32_t)(lo >> 32), (uint32_t)hi, (uint32_t)(hi >> 32)};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t a = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, b = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[0] = a;
        c[1] = (uint32_t)p1;
        c[2] = b;
        c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c[0];
}

/* All 64 bits, where a double keeps 53. */
static uint64_t key_of(const Eval *e, Ref key)
{
    uint64_t x = 0;
    if (op_of(e->g, key) == OP_literal)
        memcpy(&x, attr(e->g, key, 2)->data, sizeof x);
    else
        x = (uint64_t)(int64_t)e->value[key].x[0];
    return x;
}

static uint32_t draw(const Eval *e, Ref n, int64_t element, uint64_t which)
{
    uint64_t seed = (uint64_t)(int64_t)e->value[arg(e->g, n, 0)].x[0];
    uint64_t step = (uint64_t)(int64_t)e->value[arg(e->g, n, 1)].x[0];
    uint64_t key = key_of(e, arg(e->g, n, 2)) ^ which * 0x9e3779b97f4a7c15u;
    return philox(seed ^ key, (uint64_t)element, step);
}

static double unit(uint32_t bits)
{
    return (double)(bits >> 8) * 0x1p-24;
}

static double random_element(const Eval *e, Ref n, int64_t i)
{
    if (node(e->g, n)->n_args > 3) /* the elements have other numbers */
        i = (int64_t)e->value[arg(e->g, n, 3)].x[i];
    uint32_t bits = draw(e, n, i, 0);
    switch (op_of(e->g, n)) {
    case OP_random_bits:
        return (int32_t)bits;
    case OP_uniform:
        return unit(bits);
    default:
        return sqrt(-2 * log(1 - unit(bits))) * cos(2 * acos(-1) * unit(draw(e, n, i, 1)));
    }
}

/* ---- pointwise ------------------------------------------------------------------- */

static double cast_element(DType to, double x)
{
    if (dtype_is_float(to))
        return x;
    if (to == BOOL)
        return x != 0;
    if (isnan(x))
        return 0;
    double lo = to == I32 ? INT32_MIN : to == I64 ? -0x1p63 : 0;
    double hi = to == I32 ? INT32_MAX : to == I64 ? 0x1p63 : 255;
    return trunc(fmin(fmax(x, lo), hi));
}

static double divide(bool is_float, double x, double y)
{
    if (is_float)
        return x / y;
    return y == 0 ? 0 : trunc(x / y);
}

static double unary(const Eval *e, Ref n, double x)
{
    switch (op_of(e->g, n)) {
    case OP_neg:
        return -x;
    case OP_abs:
        return fabs(x);
    case OP_sign:
        return x > 0 ? 1 : x < 0 ? -1 : x;
    case OP_sqrt:
        return sqrt(x);
    case OP_rsqrt:
        return 1 / sqrt(x);
    case OP_exp:
        return exp(x);
    case OP_log:
        return log(x);
    case OP_log1p:
        return log1p(x);
    case OP_expm1:
        return expm1(x);
    case OP_sin:
        return sin(x);
    case OP_cos:
        return cos(x);
    case OP_tanh:
        return tanh(x);
    case OP_sigmoid:
        return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
    case OP_erf:
        return erf(x);
    case OP_relu:
        return 0 > x ? 0 : x;
    case OP_floor:
        return floor(x);
    case OP_ceil:
        return ceil(x);
    case OP_round:
        return nearbyint(x);
    case OP_not:
        return x == 0;
    case OP_is_finite:
        return isfinite(x) != 0;
    case OP_cast:
        return cast_element(type_of(e->g, n)->dtype, x);
    case OP_stop_gradient:
        return x;
    default:
        break;
    }
    assert(false); /* an op that this file does not know */
    return NAN;
}

static double binary(const Eval *e, Ref n, double x, double y)
{
    bool is_float = dtype_is_float(type_of(e->g, n)->dtype);
    switch (op_of(e->g, n)) {
    case OP_add:
        return x + y;
    case OP_sub:
        return x - y;
    case OP_mul:
        return x * y;
    case OP_div:
        return divide(is_float, x, y);
    case OP_rem:
        return y == 0 ? 0 : fmod(x, y);
    case OP_pow:
        return pow(x, y);
    case OP_min:
        return isnan(x) ? x : x < y ? x : y;
    case OP_max:
        return isnan(x) ? x : x > y ? x : y;
    case OP_eq:
        return x == y;
    case OP_ne:
        return x != y;
    case OP_lt:
        return x < y;
    case OP_le:
        return x <= y;
    case OP_and:
        return x != 0 && y != 0;
    case OP_or:
        return x != 0 || y != 0;
    default:
        break;
    }
    assert(false); /* an op that this file does not know */
    return NAN;
}

static double pointwise_element(const Eval *e, Ref n, int64_t i)
{
    double x = e->value[arg(e->g, n, 0)].x[i];
    switch (node(e->g, n)->n_args) {
    case 1:
        return unary(e, n, x);
    case 2:
        return binary(e, n, x, e->value[arg(e->g, n, 1)].x[i]);
    default: /* where */
        return e->value[arg(e->g, n, x != 0 ? 1 : 2)].x[i];
    }
}

/* ---- reductions --------------------------------------------------------------------- */

static double combine(OpId op, double sum, double x)
{
    switch (op) {
    case OP_sum:
        return sum + x;
    case OP_prod:
        return sum * x;
    case OP_reduce_max:
        return isnan(sum) || sum > x ? sum : x;
    case OP_reduce_min:
        return isnan(sum) || sum < x ? sum : x;
    default:
        return sum != 0 && x != 0;
    }
}

static double identity(OpId op)
{
    switch (op) {
    case OP_sum:
        return 0;
    case OP_reduce_max:
        return -INFINITY;
    case OP_reduce_min:
        return INFINITY;
    default:
        return 1;
    }
}

bool eval_near_tie;

static bool is_near(double x, double y)
{
    return (x != 0 || y != 0) && fabs(x - y) <= 1e-6 * (fabs(x) + fabs(y));
}

static bool better(OpId op, double x, double best)
{
    if (isnan(best))
        return false;
    return isnan(x) || (op == OP_argmax ? x > best : x < best);
}

/* idx: of the result, whose axis is gone or 1. */
static double reduce_element(const Eval *e, Ref n, const int64_t *idx)
{
    Ref x = arg(e->g, n, 0);
    OpId op = op_of(e->g, n);
    int axis = (int)int_attr(e, n, "axis");
    bool same_rank = rank(e->g, n) == rank(e->g, x);
    int64_t at[MAX_RANK];
    for (int i = 0; i < rank(e->g, x); i++)
        at[i] = i == axis ? 0 : idx[i - (i > axis && !same_rank)];
    bool chooses = op == OP_argmax || op == OP_argmin;
    double result = chooses ? 0 : identity(op), best = chooses ? get(e, x, at) : 0;
    for (int64_t i = 0; i < dim(e->g, x, axis); i++) {
        at[axis] = i;
        double v = get(e, x, at);
        eval_near_tie |= chooses && i > 0 && is_near(v, best);
        if (!chooses)
            result = combine(op, result, v);
        else if (better(op, v, best)) {
            best = v;
            result = (double)i;
        }
    }
    return result;
}

/* ---- views, indexing ------------------------------------------------------------------ */

static double concat_element(const Eval *e, Ref n, int64_t *at, int axis)
{
    for (int i = 0;; i++) {
        Ref x = arg(e->g, n, i);
        if (at[axis] < dim(e->g, x, axis))
            return get(e, x, at);
        at[axis] -= dim(e->g, x, axis);
    }
}

static double window_element(const Eval *e, Ref n, const int64_t *idx)
{
    int axis = (int)int_attr(e, n, "axis");
    int64_t at[MAX_RANK];
    for (int i = 0; i < rank(e->g, n) - 1; i++)
        at[i] = idx[i + (i > axis)];
    at[axis] = idx[axis] * int_attr(e, n, "stride") + idx[axis + 1] * int_attr(e, n, "dilation") -
               int_attr(e, n, "lo");
    return get_or(e, arg(e->g, n, 0), at, attr(e->g, n, 6)->f);
}

static double indexed_element(const Eval *e, Ref n, const int64_t *idx)
{
    Ref x = arg(e->g, n, 0), index = arg(e->g, n, 1);
    int64_t at[MAX_RANK];
    if (op_of(e->g, n) == OP_gather) {
        at[0] = (int64_t)get(e, index, idx);
        for (int i = 1; i < rank(e->g, x); i++)
            at[i] = idx[rank(e->g, index) + i - 1];
    } else {
        int axis = (int)int_attr(e, n, "axis");
        for (int i = 0; i < rank(e->g, x); i++)
            at[i] = i == axis ? (int64_t)get(e, index, idx) : idx[i - (i > axis)];
    }
    return get_or(e, x, at, 0);
}

static double view_element(const Eval *e, Ref n, const int64_t *idx)
{
    const Graph *g = e->g;
    Ref x = arg(g, n, 0);
    int64_t at[MAX_RANK];
    int more = rank(g, n) - rank(g, x);
    memcpy(at, idx, sizeof at);
    switch (op_of(g, n)) {
    case OP_reshape:
        return e->value[x].x[offset(type_of(g, n), idx)];
    case OP_transpose:
        for (int i = 0; i < rank(g, n); i++)
            at[attr(g, n, 0)->ints[i]] = idx[i];
        return get(e, x, at);
    case OP_broadcast:
        for (int i = 0; i < rank(g, x); i++)
            at[i] = dim(g, x, i) == 1 ? 0 : idx[i + more];
        return get(e, x, at);
    case OP_slice:
        at[int_attr(e, n, "axis")] *= int_attr(e, n, "step");
        at[int_attr(e, n, "axis")] += int_attr(e, n, "start");
        return get(e, x, at);
    case OP_pad:
        at[int_attr(e, n, "axis")] -= int_attr(e, n, "lo");
        return get_or(e, x, at, attr(g, n, 3)->f);
    case OP_concat:
        return concat_element(e, n, at, (int)int_attr(e, n, "axis"));
    case OP_window:
        return window_element(e, n, idx);
    default:
        return indexed_element(e, n, idx);
    }
}

static void eval_scatter(const Eval *e, Ref n)
{
    Ref base = arg(e->g, n, 0), index = arg(e->g, n, 1), update = arg(e->g, n, 2);
    Value *out = &e->value[n];
    int64_t rows = dim(e->g, base, 0), width = rows == 0 ? 0 : out->n / rows;
    memcpy(out->x, e->value[base].x, (size_t)out->n * sizeof *out->x);
    int64_t n_updates = type_elems(type_of(e->g, index)); /* an input may have more rows */
    for (int64_t i = 0; i < n_updates; i++) {
        double row = e->value[index].x[i];
        for (int64_t j = 0; row >= 0 && row < (double)rows && j < width; j++)
            out->x[(int64_t)row * width + j] += e->value[update].x[i * width + j];
    }
}

static double cumsum_element(const Eval *e, Ref n, const int64_t *idx)
{
    int axis = (int)int_attr(e, n, "axis");
    bool down = int_attr(e, n, "down") != 0;
    int64_t at[MAX_RANK], extent = dim(e->g, n, axis);
    double sum = 0;
    memcpy(at, idx, sizeof at);
    for (at[axis] = down ? extent - 1 : 0; at[axis] != idx[axis]; at[axis] += down ? -1 : 1)
        sum += get(e, arg(e->g, n, 0), at);
    return sum + get(e, arg(e->g, n, 0), idx);
}

/* ---- contraction ------------------------------------------------------------------------- */

static double mapped(const Eval *e, Ref x, const Attr *map, const int64_t *index)
{
    int64_t at[MAX_RANK];
    for (int d = 0; d < map->n; d++) {
        at[d] = map->map[d].base;
        for (int t = 0; t < map->map[d].n; t++)
            at[d] += map->map[d].coef[t] * index[map->map[d].index[t]];
    }
    return get_or(e, x, at, 0);
}

static double contract_element(const Eval *e, Ref n, const int64_t *idx)
{
    const Attr *a = node(e->g, n)->attr;
    int64_t index[MAX_INDICES] = {0};
    int n_out = (int)a[1].i;
    double sum = 0;
    memcpy(index, idx, (size_t)n_out * sizeof *index);
    for (int i = n_out; i < a[0].n; i++)
        if (a[0].ints[i] == 0)
            return 0;
    for (bool more = true; more;) {
        sum += mapped(e, arg(e->g, n, 0), &a[2], index) * mapped(e, arg(e->g, n, 1), &a[3], index);
        more = false;
        for (int i = a[0].n - 1; i >= n_out && !more; i--) { /* the next index, like a clock */
            more = ++index[i] < a[0].ints[i];
            if (!more)
                index[i] = 0;
        }
    }
    return sum;
}

/* ---- scan ----------------------------------------------------------------------------------- */

static Value slice_of(const Value *v, int64_t i, int64_t count)
{
    int64_t n = v->n / count;
    return (Value){.n = n, .x = v->x + i * n};
}

static void eval_scan(const Eval *e, Ref n)
{
    const Graph *g = e->g, *body = attr(g, n, SCAN_BODY)->body;
    int carries = (int)int_attr(e, n, "carries"), sequences = (int)int_attr(e, n, "sequences");
    int n_args = node(g, n)->n_args, n_results = tuple_size(g, n);
    int64_t count = int_attr(e, n, "count");
    Value *args = NEW_ARRAY(e->arena, Value, n_args), *out = NEW_ARRAY(e->arena, Value, n_results);
    for (int i = 0; i < n_args; i++)
        args[i] = e->value[arg(g, n, i)];
    for (int i = 0; i < n_results; i++) {
        Type t = tuple_type(g, n, i);
        out[i] = i < carries ? args[i] : value_new(&t, e->arena);
    }
    for (int64_t k = 0; k < count; k++) {
        int64_t at = int_attr(e, n, "down") != 0 ? count - 1 - k : k;
        for (int i = 0; i < carries; i++)
            args[i] = out[i];
        for (int i = carries; i < carries + sequences; i++)
            args[i] = slice_of(&e->value[arg(g, n, i)], at, count);
        Feed feed = *e->feed;
        feed.arg = args;
        Value *inner = eval_graph(body, &feed, e->arena);
        int result = 0;
        for (int r = 0; r < body->root.n; r++) {
            if (body->root.at[r].kind != ROOT_RESULT)
                continue;
            Value v = inner[body->root.at[r].ref];
            if (result < carries)
                out[result] = v;
            else if (v.n > 0)
                memcpy(out[result].x + at * v.n, v.x, (size_t)v.n * sizeof *v.x);
            result++;
        }
    }
    e->value[n] = (Value){.n_members = n_results, .member = out};
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void eval_tuple(const Eval *e, Ref n)
{
    int size = node(e->g, n)->n_args;
    Value *member = NEW_ARRAY(e->arena, Value, size);
    for (int i = 0; i < size; i++)
        member[i] = e->value[arg(e->g, n, i)];
    e->value[n] = (Value){.n_members = size, .member = member};
}

/* Values that are not made element by element; false for the others. */
static bool eval_whole(const Eval *e, Ref n)
{
    const Graph *g = e->g;
    switch (op_of(g, n)) {
    case OP_input:
        e->value[n] = e->feed->input[attr(g, n, 0)->i];
        return true;
    case OP_slot:
        e->value[n] = e->feed->slot[attr(g, n, 0)->i];
        return true;
    case OP_arg:
        e->value[n] = e->feed->arg[attr(g, n, 0)->i];
        return true;
    case OP_tuple:
        eval_tuple(e, n);
        return true;
    case OP_pick:
        e->value[n] = e->value[arg(g, n, 0)].member[attr(g, n, 0)->i];
        return true;
    case OP_scan:
        eval_scan(e, n);
        return true;
    case OP_custom_vjp:
    case OP_adjoint:
        e->value[n] = e->value[arg(g, n, 0)];
        return true;
    default:
        return false;
    }
}

static double element(const Eval *e, Ref n, int64_t i, const int64_t *idx)
{
    const Graph *g = e->g;
    switch (op_of(g, n)) {
    case OP_const:
        return const_element(attr(g, n, 1));
    case OP_literal:
        return literal_element(attr(g, n, 2), type_of(g, n)->dtype, i);
    case OP_iota:
        return (double)idx[int_attr(e, n, "axis")];
    case OP_random_bits:
    case OP_uniform:
    case OP_normal:
        return random_element(e, n, i);
    case OP_cumsum:
        return cumsum_element(e, n, idx);
    case OP_contract:
        return contract_element(e, n, idx);
    default:
        break;
    }
    switch (optab[op_of(g, n)]->kind) {
    case OP_POINTWISE:
        return pointwise_element(e, n, i);
    case OP_REDUCE:
        return reduce_element(e, n, idx);
    default:
        return view_element(e, n, idx);
    }
}

Value *eval_graph(const Graph *g, const Feed *feed, Arena *a)
{
    Eval e = {.g = g, .feed = feed, .arena = a, .value = NEW_ARRAY(a, Value, g->node.n)};
    for (Ref n = 1; n < (Ref)g->node.n; n++) {
        int64_t idx[MAX_RANK] = {0};
        if (eval_whole(&e, n))
            continue;
        e.value[n] = value_new(type_of(g, n), a);
        if (op_of(g, n) == OP_scatter_add) {
            eval_scatter(&e, n);
            continue;
        }
        for (int64_t i = 0; i < e.value[n].n; i++) {
            unravel(type_of(g, n), i, idx);
            e.value[n].x[i] = element(&e, n, i, idx);
        }
    }
    return e.value;
}
