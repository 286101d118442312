/* A generator of random valid kernels: they verify, print and read back. */
#include <assert.h>
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel_random.h"

typedef struct Gen {
    Kernel *k;
    uint64_t state;
    RandomStyle style;
    VEC(Val) pool;      /* values in scope */
    VEC(Val) loop;      /* open loops (loop kernels), dims in sight (contractions) */
    VEC(int) index_buf; /* integer inputs */
    double runs;        /* iterations of the open loops together */
    int depth, left;    /* instructions still wanted */
    bool in_section;    /* of a contraction's operand */
} Gen;

/* ---- draws ------------------------------------------------------------------------ */

static uint64_t draw(Gen *g)
{
    g->state += 0x9e3779b97f4a7c15u;
    return hash_mix(g->state);
}

static int below(Gen *g, int n)
{
    return (int)(draw(g) % (uint64_t)n);
}

static bool chance(Gen *g, int percent)
{
    return below(g, 100) < percent;
}

static DType type_of(const Gen *g, Val v)
{
    return (DType)g->k->inst.at[v].dtype;
}

static int64_t extent(const Gen *g, Val loop)
{
    return g->k->inst.at[loop].imm.i;
}

static DType float_type(Gen *g)
{
    static const DType some[] = {F32, F32, F32, F64, F16, BF16};
    return g->style == RANDOM_SMOOTH ? F64 : some[below(g, 6)];
}

static DType any_type(Gen *g)
{
    static const DType some[] = {I32, I64, U8, BOOL};
    return g->style == RANDOM_SMOOTH || chance(g, 70) ? float_type(g) : some[below(g, 4)];
}

static void keep(Gen *g, Val v)
{
    vec_push(g->k->arena, &g->pool, v);
    g->left--;
}

/* ---- accesses ------------------------------------------------------------------------ */

/* Elements needed for indices up to the largest value of `at`. */
static int64_t span(const Gen *g, const KAff *at)
{
    int64_t n = at->base + 1;
    for (int i = 0; i < at->n; i++) {
        const KInst *v = &g->k->inst.at[at->t[i].v];
        bool index = v->op == KI_PAR || v->op == KI_SEQ || v->op == KI_RED || v->op == KI_DIM;
        int64_t last = index ? v->imm.i - 1 : RANDOM_INDICES - 1;
        n += at->t[i].coef > 0 && last > 0 ? at->t[i].coef * last : 0;
    }
    return n;
}

/* Lowest value of the negative terms, added to the base so that no index is below 0. */
static KAff lifted(const Gen *g, KAff at)
{
    for (int i = 0; i < at.n; i++) {
        int64_t last = extent(g, at.t[i].v) - 1;
        if (at.t[i].coef < 0 && last > 0)
            at.base -= at.t[i].coef * last;
    }
    return at;
}

/* A few of the loops with any strides, now and then backwards. */
static KAff random_affine(Gen *g)
{
    KAff at = k_aff(below(g, 4));
    int64_t stride = chance(g, 80) ? 1 : 2;
    for (int i = g->loop.n - 1; i >= 0; i--) {
        if (chance(g, 25))
            continue; /* broadcast */
        int64_t sign = chance(g, 10) ? -1 : 1;
        at = k_aff_add(at, k_aff_val(g->loop.at[i], sign * stride));
        if (chance(g, 85))
            stride *= extent(g, g->loop.at[i]) > 0 ? extent(g, g->loop.at[i]) : 1;
        if (stride > 4000)
            break;
    }
    return lifted(g, at);
}

static int new_input(Gen *g, DType t, int64_t elems)
{
    return k_buf(g->k, t, elems, chance(g, 95) ? K_IN : K_INOUT);
}

/* Like a convolution's row and column: s*i + j - pad inside of [0, size). */
static Val load_padded(Gen *g, DType t)
{
    KBound bound[2];
    KAff at = k_aff(0);
    int n = 1 + below(g, 2);
    int64_t stride = 1;
    for (int b = 0; b < n; b++) {
        Val i = g->loop.at[below(g, g->loop.n)], j = g->loop.at[below(g, g->loop.n)];
        KAff e = k_aff_val(i, 1 + below(g, 2));
        if (i != j)
            e = k_aff_add(e, k_aff_val(j, 1));
        e = k_aff_offset(e, -below(g, 4));
        int64_t size = 1 + below(g, 12);
        bound[b] = (KBound){e, 0, size};
        at = k_aff_add(at, k_aff_scale(e, stride));
        stride *= size;
    }
    double otherwise = t == BOOL ? below(g, 2) : below(g, 3) - (dtype_is_float(t) ? 1 : 0);
    if (t == F32 && chance(g, 20))
        otherwise = -INFINITY;
    return k_load_bounded(g->k, new_input(g, t, stride), at, bound, n, otherwise);
}

/* An index in [0, RANDOM_INDICES) from memory. */
static Val load_index(Gen *g)
{
    KAff at = random_affine(g);
    DType t = chance(g, 60) ? I32 : I64;
    int buf = k_buf(g->k, t, span(g, &at), K_IN);
    vec_push(g->k->arena, &g->index_buf, buf);
    return k_load(g->k, buf, at);
}

static Val load_indirect(Gen *g, DType t)
{
    Val index = load_index(g);
    KAff rest = random_affine(g);
    KAff at = k_aff_add(rest, k_aff_val(index, 1 + below(g, 5)));
    int buf = k_buf(g->k, t, span(g, &at), K_IN);
    if (chance(g, 70))
        return k_load(g->k, buf, at);
    KBound bound = {.e = k_aff_val(index, 1)};
    bound.lo = below(g, 4); /* the order of draws is the order of statements */
    bound.hi = 4 + below(g, 14);
    return k_load_bounded(g->k, buf, at, &bound, 1, 1);
}

static Val random_load(Gen *g, DType t)
{
    Val v;
    if (g->k->buf.n > RANDOM_MAX_BUFS - 12)
        return k_const(g->k, t, 1);
    if (g->loop.n > 0 && chance(g, 20)) {
        v = load_padded(g, t);
    } else if (chance(g, 15)) {
        v = load_indirect(g, t);
    } else {
        KAff at = random_affine(g);
        v = k_load(g->k, new_input(g, t, span(g, &at) + below(g, 3)), at);
    }
    keep(g, v);
    return v;
}

/* ---- expressions ------------------------------------------------------------------------ */

static Val random_const(Gen *g, DType t)
{
    static const double some[] = {0, 1, -1, 0.5, 2, 3.25, -0.125, 1e-3, 100};
    if (t == BOOL)
        return k_const_int(g->k, t, below(g, 2));
    if (!dtype_is_float(t))
        return k_const_int(g->k, t, below(g, 50) - (t == U8 ? 0 : 20));
    return k_const(g->k, t, some[below(g, g->style == RANDOM_SMOOTH ? 6 : 9)]);
}

/* A value of the type: from the pool if it has one, else from memory. */
static Val operand(Gen *g, DType t)
{
    int n = g->pool.n;
    for (int tries = 0; n > 0 && tries < 6; tries++) {
        int back = below(g, 8); /* mostly the latest */
        Val v = g->pool.at[back < n && chance(g, 80) ? n - 1 - back : below(g, n)];
        if (type_of(g, v) == t)
            return v;
    }
    for (int i = n - 1; i >= 0 && chance(g, 90); i--)
        if (type_of(g, g->pool.at[i]) == t)
            return g->pool.at[i];
    return chance(g, 20) ? random_const(g, t) : random_load(g, t);
}

static Val unary(Gen *g, KOp op, DType t)
{
    return k_unary(g->k, op, operand(g, t));
}

static Val binary(Gen *g, KOp op, DType t)
{
    Val a = operand(g, t), b = operand(g, t);
    return k_binary(g->k, op, a, b);
}

static Val comparison(Gen *g, DType t)
{
    static const KOp some[] = {KI_LT, KI_LE, KI_EQ, KI_NE};
    return binary(g, some[below(g, t == BOOL ? 2 : 4) + (t == BOOL ? 2 : 0)], t);
}

static Val selection(Gen *g, DType t)
{
    DType of = any_type(g);
    Val cond = comparison(g, of == BOOL ? F32 : of);
    if (g->style == RANDOM_SMOOTH)
        cond = binary(g, KI_LT, F64);
    Val a = operand(g, t), b = operand(g, t);
    return k_select(g->k, cond, a, b);
}

static Val float_value(Gen *g, DType t)
{
    static const KOp one[] = {KI_NEG,   KI_ABS,   KI_SQRT, KI_FLOOR, KI_RINT, KI_EXP, KI_LOG,
                              KI_EXPM1, KI_LOG1P, KI_SIN,  KI_COS,   KI_TANH, KI_ERF};
    static const KOp two[] = {KI_ADD, KI_SUB, KI_MUL, KI_DIV, KI_MIN, KI_MAX, KI_ADD, KI_MUL};
    switch (below(g, 10)) {
    case 0:
        return unary(g, one[below(g, 5)], t);
    case 1:
        return unary(g, one[5 + below(g, 8)], t);
    case 2: {
        Val a = operand(g, t), b = operand(g, t), c = operand(g, t);
        return k_fma(g->k, a, b, c);
    }
    case 3:
        return selection(g, t);
    case 4: {
        DType from = any_type(g);
        return k_cast(g->k, t, operand(g, from));
    }
    case 5:
        return t == F32 && chance(g, 30)   ? binary(g, KI_POW, F32)
               : t == F32 && chance(g, 40) ? k_bitcast(g->k, F32, operand(g, I32))
                                           : binary(g, KI_MUL, t);
    default:
        return binary(g, two[below(g, 8)], t);
    }
}

/* A smooth function of moderate operands whose value is moderate. */
static Val smooth_value(Gen *g)
{
    Kernel *k = g->k;
    Val a = operand(g, F64), b = operand(g, F64), one = k_const(k, F64, 1);
    Val above = k_fma(k, a, a, one); /* at least 1 */
    switch (below(g, 16)) {
    case 0:
        return k_binary(k, KI_ADD, a, b);
    case 1:
        return k_binary(k, KI_SUB, a, b);
    case 2:
        return k_unary(k, KI_TANH, k_binary(k, KI_MUL, a, b));
    case 3:
        return k_binary(k, KI_DIV, b, above);
    case 4:
        return k_unary(k, KI_SQRT, above);
    case 5:
        return k_unary(k, KI_LOG, above);
    case 6:
        return k_unary(k, KI_EXP, k_unary(k, KI_TANH, a));
    case 7:
        return k_unary(k, KI_EXPM1, k_unary(k, KI_TANH, a));
    case 8:
        return k_unary(k, KI_LOG1P, k_binary(k, KI_MUL, a, a));
    case 9:
        return k_unary(k, KI_SIN, a);
    case 10:
        return k_unary(k, KI_COS, b);
    case 11:
        return k_unary(k, KI_ERF, a);
    case 12:
        return k_binary(k, KI_POW, above, k_unary(k, KI_TANH, b));
    case 13:
        return k_binary(k, chance(g, 50) ? KI_MIN : KI_MAX, a, b);
    case 14:
        return chance(g, 50) ? k_unary(k, KI_ABS, a) : k_unary(k, KI_NEG, b);
    default:
        return selection(g, F64);
    }
}

static Val int_value(Gen *g, DType t)
{
    static const KOp two[] = {KI_ADD, KI_SUB, KI_MUL, KI_DIV, KI_REM, KI_MIN, KI_MAX,
                              KI_AND, KI_OR,  KI_XOR, KI_SHL, KI_SHR, KI_SAR, KI_MULHI};
    KOp op = two[below(g, 14)];
    if (op == KI_MULHI && t != I32)
        op = KI_MUL;
    if ((op == KI_SHL || op == KI_SHR || op == KI_SAR) && t != U8) {
        Val a = operand(g, t), by = k_const_int(g->k, t, below(g, t == I32 ? 32 : 64));
        return k_binary(g->k, op, a, by);
    }
    switch (below(g, 8)) {
    case 0:
        return unary(g, chance(g, 50) ? KI_NEG : KI_ABS, t);
    case 1: {
        DType from = any_type(g);
        return k_cast(g->k, t, operand(g, from));
    }
    case 2:
        return selection(g, t);
    case 3:
        if (t == U8)
            return binary(g, KI_ADD, t);
        return k_index(g->k, t, random_affine(g));
    case 4:
        if (t == I32) { /* the bits of a NaN are nobody's business */
            Val x = operand(g, F32), zero = k_const(g->k, F32, 0);
            Val number = k_binary(g->k, KI_EQ, x, x);
            return k_bitcast(g->k, I32, k_select(g->k, number, x, zero));
        }
        return binary(g, KI_ADD, t);
    default:
        return binary(g, op == KI_SHL || op == KI_SHR || op == KI_SAR ? KI_ADD : op, t);
    }
}

static Val bool_value(Gen *g)
{
    static const KOp two[] = {KI_AND, KI_OR, KI_XOR};
    switch (below(g, 4)) {
    case 0:
        return binary(g, two[below(g, 3)], BOOL);
    case 1: {
        DType from = any_type(g);
        return k_cast(g->k, BOOL, operand(g, from));
    }
    default:
        return comparison(g, any_type(g));
    }
}

static Val random_value(Gen *g, DType t)
{
    Val v;
    if (g->style == RANDOM_SMOOTH)
        v = smooth_value(g);
    else if (t == BOOL)
        v = bool_value(g);
    else if (t == I32 && chance(g, 8)) {
        Val key = operand(g, I64), lo = operand(g, I64), hi = operand(g, I64);
        v = k_random(g->k, key, lo, hi);
    } else
        v = dtype_is_float(t) ? float_value(g, t) : int_value(g, t);
    keep(g, v);
    return v;
}

static void some_values(Gen *g, int n)
{
    for (int i = 0; i < n && g->left > 0; i++)
        random_value(g, any_type(g));
}

/* ---- stores ------------------------------------------------------------------------------ */

/* Every open loop in some order, each with a stride that keeps elements apart. */
static KAff own_element(Gen *g)
{
    KAff at = k_aff(below(g, 3));
    int64_t stride = 1 + below(g, 2);
    int start = g->loop.n > 0 ? below(g, g->loop.n) : 0;
    for (int i = g->loop.n - 1; i >= 0; i--) {
        Val l = g->loop.at[(i + start) % g->loop.n];
        at = k_aff_add(at, k_aff_val(l, chance(g, 10) ? -stride : stride));
        stride *= extent(g, l) > 0 ? extent(g, l) : 1;
    }
    return lifted(g, at);
}

static void random_store(Gen *g, Val v)
{
    if (g->k->buf.n > RANDOM_MAX_BUFS - 4)
        return;
    KAff at = own_element(g);
    int64_t elems = span(g, &at) + below(g, 3);
    if (chance(g, 25)) { /* in place */
        DType t = type_of(g, v);
        int buf = k_buf(g->k, t, elems, K_INOUT);
        Val old = k_load(g->k, buf, at);
        if (t != BOOL)
            v = k_binary(g->k, chance(g, 50) ? KI_ADD : KI_MAX, old, v);
        k_store(g->k, buf, at, v);
    } else if (g->loop.n > 0 && chance(g, 15)) {
        KBound bound = {.e = k_aff_val(g->loop.at[below(g, g->loop.n)], 1)};
        bound.lo = below(g, 2);
        bound.hi = 1 + below(g, 9);
        k_store_bounded(g->k, k_buf(g->k, type_of(g, v), elems, K_INOUT), at, &bound, 1, v);
    } else {
        k_store(g->k, k_buf(g->k, type_of(g, v), elems, K_OUT), at, v);
    }
}

/* ---- loops --------------------------------------------------------------------------------- */

static void body(Gen *g);

static int64_t random_extent(Gen *g)
{
    static const int some[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 32, 33, 40, 64, 100};
    int64_t n = some[below(g, 15)];
    if (chance(g, 1))
        return 0;
    while (n > 1 && g->runs * (double)n > 3000)
        n /= 2;
    return n;
}

static int open_loop(Gen *g, Val loop)
{
    vec_push(g->k->arena, &g->loop, loop);
    g->runs *= (double)extent(g, loop);
    g->depth++;
    return g->pool.n;
}

static void close_loop(Gen *g, Val loop, int pool, double runs)
{
    k_end(g->k, loop);
    g->loop.n--;
    g->pool.n = pool;
    g->runs = runs;
    g->depth--;
}

static void par_loop(Gen *g)
{
    double runs = g->runs;
    Val loop = k_par(g->k, random_extent(g));
    int pool = open_loop(g, loop);
    body(g);
    DType t = any_type(g);
    random_store(g, operand(g, t));
    close_loop(g, loop, pool, runs);
}

static Val random_acc(Gen *g, DType *t)
{
    static const KOp some[] = {KI_ADD, KI_ADD, KI_MUL, KI_MIN, KI_MAX};
    *t = any_type(g);
    if (*t == F16 || *t == BF16)
        *t = F32;
    if (*t == BOOL)
        return k_acc(g->k, BOOL, chance(g, 50) ? KI_AND : KI_OR);
    int n = g->style == RANDOM_SMOOTH ? below(g, 2) : below(g, 5);
    return k_acc(g->k, *t, some[n]);
}

/* Accumulators, the loops that feed them, their folds. */
static void reduction(Gen *g)
{
    DType t[2];
    Val acc[2];
    int n = 1 + below(g, 2), pool = g->pool.n;
    double runs = g->runs;
    for (int i = 0; i < n; i++)
        acc[i] = random_acc(g, &t[i]);
    Val outer = chance(g, 80) ? k_red(g->k, random_extent(g)) : k_seq(g->k, random_extent(g));
    open_loop(g, outer);
    Val inner = 0;
    if (g->depth < 4 && chance(g, 30)) {
        inner = chance(g, 60) ? k_red(g->k, random_extent(g)) : k_seq(g->k, random_extent(g));
        open_loop(g, inner);
    }
    body(g);
    for (int i = 0; i < n; i++)
        for (int times = chance(g, 85) ? 1 : 2; times > 0; times--)
            k_into(g->k, acc[i], operand(g, t[i]));
    if (chance(g, 20))
        random_store(g, operand(g, any_type(g)));
    if (inner != 0)
        close_loop(g, inner, pool, runs);
    close_loop(g, outer, pool, runs);
    for (int i = 0; i < n; i++)
        keep(g, k_fold(g->k, acc[i]));
}

/* A variable that a sequential loop carries. */
static void recurrence(Gen *g)
{
    DType t = any_type(g);
    double runs = g->runs;
    Val var = k_var(g->k, operand(g, t));
    Val loop = chance(g, 70) ? k_seq(g->k, random_extent(g)) : k_seq_down(g->k, random_extent(g));
    int pool = open_loop(g, loop);
    Val old = k_get(g->k, var);
    keep(g, old);
    body(g);
    Val v = operand(g, t);
    if (g->style == RANDOM_SMOOTH)
        v = k_unary(g->k, KI_TANH, v);
    k_set(g->k, var, v);
    if (chance(g, 50))
        random_store(g, v);
    close_loop(g, loop, pool, runs);
    keep(g, k_get(g->k, var));
}

/* Indirect stores in order: a scattered sum. */
static void scatter(Gen *g)
{
    DType t = chance(g, 70) || g->style == RANDOM_SMOOTH ? float_type(g) : I32;
    double runs = g->runs;
    KAff row = own_element(g);
    int64_t size = span(g, &row);
    int buf = k_buf(g->k, t, size * RANDOM_INDICES, K_INOUT);
    Val loop = k_seq(g->k, random_extent(g));
    int pool = open_loop(g, loop);
    Val index = load_index(g);
    KAff at = k_aff_add(row, k_aff_val(index, size));
    Val v = operand(g, t), old = k_load(g->k, buf, at);
    k_store(g->k, buf, at, k_binary(g->k, KI_ADD, old, v));
    close_loop(g, loop, pool, runs);
}

/* A row kept on chip: stored and reduced in one pass, read in the next. */
static void row_passes(Gen *g)
{
    DType t = float_type(g), sum_t = t == F64 ? F64 : F32;
    int64_t n = random_extent(g);
    double runs = g->runs;
    int row = k_buf(g->k, t, n, K_LOCAL);
    Val acc = k_acc(g->k, sum_t, chance(g, 60) || g->style == RANDOM_SMOOTH ? KI_ADD : KI_MAX);
    Val first = k_red(g->k, n);
    int pool = open_loop(g, first);
    body(g);
    Val v = operand(g, t);
    k_store(g->k, row, k_aff_val(first, 1), v);
    k_into(g->k, acc, k_cast(g->k, sum_t, v));
    close_loop(g, first, pool, runs);
    keep(g, k_fold(g->k, acc));
    pool = g->pool.n;
    Val second = k_par(g->k, n);
    open_loop(g, second);
    KAff at = chance(g, 80) ? k_aff_val(second, 1) : k_aff_offset(k_aff_val(second, -1), n - 1);
    keep(g, k_load(g->k, row, at));
    some_values(g, 3);
    random_store(g, g->pool.at[g->pool.n - 1]);
    close_loop(g, second, pool, runs);
}

static void body(Gen *g)
{
    for (int n = below(g, 3); n > 0; n--)
        random_load(g, any_type(g));
    some_values(g, 1 + below(g, 4));
    while (g->left > 0 && g->depth < 4 && chance(g, g->depth == 0 ? 60 : 35)) {
        switch (below(g, 5)) {
        case 0:
            par_loop(g);
            break;
        case 1:
        case 2:
            reduction(g);
            break;
        case 3:
            recurrence(g);
            break;
        default:
            if (chance(g, 50))
                scatter(g);
            break;
        }
        some_values(g, below(g, 4));
    }
    if (chance(g, 30))
        random_store(g, operand(g, any_type(g)));
}

static void loop_kernel(Gen *g)
{
    int grid = below(g, 3);
    Val first = 0;
    for (int i = 0; i < grid; i++) {
        Val l = k_par(g->k, random_extent(g));
        first = first == 0 ? l : first;
        open_loop(g, l);
    }
    if (chance(g, 30))
        row_passes(g);
    body(g);
    DType t = any_type(g);
    random_store(g, operand(g, t));
    random_store(g, g->pool.at[g->pool.n - 1]);
    if (first != 0)
        k_end(g->k, first);
}

/* ---- contractions --------------------------------------------------------------------------- */

/* The dims of three roles are in sight. */
static void see(Gen *g, KRole x, KRole y, KRole z)
{
    const KRole role[] = {x, y, z};
    g->loop.n = g->pool.n = 0;
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < g->k->con.n[role[r]]; i++)
            vec_push(g->k->arena, &g->loop, g->k->con.dim[role[r]][i]);
}

static Val operand_section(Gen *g, DType t)
{
    if (chance(g, 50)) {
        random_load(g, g->style == RANDOM_PAIRS && t == F32 ? BF16 : t);
    } else {
        random_load(g, chance(g, 70) ? t : float_type(g));
        some_values(g, 1 + below(g, 3));
    }
    Val v = g->pool.at[g->pool.n - 1];
    if (g->style == RANDOM_SMOOTH)
        return v;
    t = g->style == RANDOM_PAIRS && t == F32 ? BF16 : t;
    return type_of(g, v) == t ? v : k_cast(g->k, t, v);
}

static void contraction(Gen *g)
{
    static const int64_t size[4][6] = {
        {1, 2, 1, 3, 1, 1}, {1, 3, 7, 16, 20, 130}, {1, 4, 9, 33, 16, 140}, {1, 5, 8, 17, 40, 70}};
    DType t = g->style == RANDOM_SMOOTH || chance(g, 25) ? F64 : F32;
    double work = 1;
    for (int r = 0; r < 4; r++) {
        for (int i = below(g, r == K_B ? 2 : 3); i >= (r == K_B); i--) {
            int64_t n = chance(g, 2) ? 0 : size[r][below(g, 6)];
            while (n > 2 && work * (double)n > 150000)
                n /= 3;
            work *= n > 0 ? (double)n : 1;
            k_dim(g->k, (KRole)r, n);
        }
    }
    k_section_a(g->k);
    see(g, K_B, K_M, K_K);
    Val a = operand_section(g, t);
    k_section_b(g->k, a);
    see(g, K_B, K_K, K_N);
    Val b = operand_section(g, t);
    bool pairs = g->style == RANDOM_PAIRS && t == F32;
    int leaf = chance(g, 40) ? 1 + below(g, 12) : 0;
    Val sum = k_epilogue(g->k, b, t, pairs ? leaf / 2 * 2 : leaf);
    if (pairs)
        k_in_pairs(g->k);
    see(g, K_B, K_M, K_N);
    keep(g, sum);
    some_values(g, below(g, 5));
    random_store(g, sum);
    for (int n = below(g, 3); n > 0; n--) {
        DType other = any_type(g);
        random_store(g, operand(g, other));
    }
}

/* ---- limits -----------------------------------------------------------------------------------
 */

static bool has_local(const Kernel *k)
{
    for (int i = 0; i < k->buf.n; i++)
        if (k->buf.at[i].mode == K_LOCAL)
            return true;
    return false;
}

/* Some loops and dims end at a limit. Not where a row is kept: all of it is read. */
static void add_limit(Gen *g)
{
    Kernel *k = g->k;
    if (has_local(k) || !chance(g, 40))
        return;
    int64_t n = 1 + below(g, 5);
    int buf = k_buf(k, chance(g, 50) ? I32 : I64, n, K_IN);
    k->limit = (KLimit){true, buf, below(g, (int)n), below(g, 24) - 6, 1 + below(g, 30)};
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        bool loop = i->op == KI_PAR || i->op == KI_RED;
        bool dim = i->op == KI_DIM && i->aux != K_B && k->con.n[i->aux] == 1;
        if ((loop || dim) && chance(g, 50))
            k_reach(k, v, dim && i->aux != K_K && chance(g, 50) ? K_ZERO : K_LIMITED);
    }
}

/* Most often, as of a gradient: whether all sums are small, of an epilogue that may do no more than
 * store them. */
static void add_all(Gen *g)
{
    Kernel *k = g->k;
    if (k->buf.n >= RANDOM_MAX_BUFS || !chance(g, 30))
        return;
    Val v = 0;
    for (int i = 0; i < g->pool.n && chance(g, 40); i++)
        if (type_of(g, g->pool.at[i]) == BOOL && g->pool.at[i] > k->con.e_from)
            v = g->pool.at[i];
    if (v == 0) {
        static const double most[] = {0.5, 100, INFINITY};
        Val size = k_unary(k, KI_ABS, k->con.e_from);
        v = k_binary(k, KI_LT, size, k_const(k, type_of(g, size), most[below(g, 3)]));
    }
    k_all(k, k_buf(k, BOOL, 1 + below(g, 3), K_OUT), v);
}

Kernel *kernel_random(Arena *arena, uint64_t seed, RandomStyle style)
{
    Gen g = {.state = hash_mix(seed + 1), .style = style, .runs = 1, .left = 90};
    bool contract = hash_mix(seed) % 8 < (seed % 2 != 0 ? 4 : 1);
    g.k = kernel_new(arena, contract ? K_CONTRACT : K_LOOP, contract ? "contraction" : "loops");
    if (contract)
        contraction(&g);
    else
        loop_kernel(&g);
    add_limit(&g);
    if (contract)
        add_all(&g);
    k_finish(g.k);
    return g.k;
}

/* ---- what holds for all of them ------------------------------------------------------------ */

enum { LOOP_SEEDS = 16 };

int kernel_random_seeds(int n)
{
    if (getenv("GRADC_FULL") != NULL)
        return 40 * n;
    return getenv("GRADC_SHORT") != NULL ? n / 5 : n;
}

static const char *listing(const Kernel *k, Arena *a)
{
    Text t;
    text_init(&t, a);
    kernel_print(k, &t);
    return t.at;
}

START_TEST(verifies_and_reads_back)
{
    for (int s = 0; s < kernel_random_seeds(60); s++) {
        Ctx cx;
        ctx_init(&cx);
        uint64_t seed = (uint64_t)_i * 1000003 + (uint64_t)s;
        Kernel *k = kernel_random(&cx.perm, seed, RANDOM_ANY);
        const char *text = listing(k, &cx.perm), *bad = kernel_verify(k, &cx.scratch);
        ck_assert_msg(bad == NULL, "seed %llu: %s\n%s", (unsigned long long)seed, bad, text);
        int32_t source = source_add(&cx, "random", text, strlen(text), false);
        Kernel *again = kernel_read(&cx, &cx.perm, source);
        if (again == NULL)
            diag_print(&cx, stdout);
        ck_assert_msg(again != NULL, "seed %llu", (unsigned long long)seed);
        ck_assert_str_eq(listing(again, &cx.perm), text);
        ck_assert(kernel_same(k, again) && kernel_hash(k) == kernel_hash(again));
        for (int exponents = 0; exponents < 2; exponents++) {
            Kernel *wide = kernel_expand(&cx.perm, k, exponents == 1);
            bad = kernel_verify(wide, &cx.scratch);
            ck_assert_msg(bad == NULL, "seed %llu, expanded: %s", (unsigned long long)seed, bad);
        }
        KCost c = kernel_cost(k);
        ck_assert(c.flops >= c.contract_flops && c.bytes_read >= 0 && c.bytes_written >= 0);
        ctx_free(&cx);
    }
}
END_TEST

Suite *suite_kernel_random(void)
{
    Suite *s = suite_create("kernel_random");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, verifies_and_reads_back, 0, LOOP_SEEDS);
    suite_add_tcase(s, t);
    return s;
}
