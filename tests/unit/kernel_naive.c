/* The exact interpreter against a naive one that follows kernel.h word by word:
 * one iteration after the other, lanes and chains spelled out. Only the scalar
 * arithmetic is shared (tests/unit/kernel.c has its own look at that). */
#include <assert.h>
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/interp.h"
#include "kernel_random.h"

typedef struct Lanes {
    double f[16];
    int64_t i[16];
    bool by_lanes;
} Lanes;

typedef struct Naive {
    const Kernel *k;
    KMem *mem;
    Reg *reg;     /* by Val, lane 0 */
    Lanes *acc;   /* by Val */
    Val open[32]; /* loops around */
    int depth;
} Naive;

static int64_t affine(const Naive *x, const KAff *e)
{
    int64_t sum = e->base;
    for (int i = 0; i < e->n; i++)
        sum += e->t[i].coef * x->reg[e->t[i].v].i[0];
    return sum;
}

static bool in_bounds(const Naive *x, const KAccess *a)
{
    for (int i = 0; i < a->n_bounds; i++) {
        int64_t e = affine(x, &a->bound[i].e);
        if (e < a->bound[i].lo || e >= a->bound[i].hi)
            return false;
    }
    return true;
}

static void load(Naive *x, Val v, const KAccess *a)
{
    Reg *r = &x->reg[v];
    DType t = x->k->buf.at[a->buf].dtype;
    bool inside = in_bounds(x, a);
    int64_t at = inside ? affine(x, &a->at) : 0;
    const void *p = x->mem[a->buf].data;
    assert(!inside || (at >= 0 && at < x->k->buf.at[a->buf].elems));
    if (t == F64)
        r->d[0] = inside ? ((const double *)p)[at] : a->otherwise;
    else if (t == F32)
        r->f[0] = inside ? ((const float *)p)[at] : (float)a->otherwise;
    else if (t == F16)
        r->f[0] = inside ? f16_to_f32(((const uint16_t *)p)[at]) : (float)a->otherwise;
    else if (t == BF16)
        r->f[0] = inside ? bf16_to_f32(((const uint16_t *)p)[at]) : (float)a->otherwise;
    else if (!inside)
        r->i[0] = (int64_t)a->otherwise;
    else
        r->i[0] = t == I32   ? ((const int32_t *)p)[at]
                  : t == I64 ? ((const int64_t *)p)[at]
                             : ((const uint8_t *)p)[at];
}

static void store(Naive *x, Val v, const KAccess *a)
{
    const Reg *r = &x->reg[v];
    DType t = x->k->buf.at[a->buf].dtype;
    void *p = x->mem[a->buf].data;
    if (!in_bounds(x, a))
        return;
    int64_t at = affine(x, &a->at);
    assert(at >= 0 && at < x->k->buf.at[a->buf].elems);
    if (t == F64)
        ((double *)p)[at] = r->d[0];
    else if (t == F32)
        ((float *)p)[at] = r->f[0];
    else if (t == F16)
        ((uint16_t *)p)[at] = f32_to_f16(r->f[0]);
    else if (t == BF16)
        ((uint16_t *)p)[at] = f32_to_bf16(r->f[0]);
    else if (t == I32)
        ((int32_t *)p)[at] = (int32_t)r->i[0];
    else if (t == I64)
        ((int64_t *)p)[at] = r->i[0];
    else
        ((uint8_t *)p)[at] = (uint8_t)r->i[0];
}

/* ---- accumulators -------------------------------------------------------------- */

static double float_op(int op, DType t, double x, double y)
{
    switch (op) {
    case KI_ADD:
        return t == F32 ? (double)((float)x + (float)y) : x + y;
    case KI_MUL:
        return t == F32 ? (double)((float)x * (float)y) : x * y;
    case KI_MIN:
        return x < y ? x : y;
    default:
        return x > y ? x : y;
    }
}

static int64_t int_op(int op, DType t, int64_t x, int64_t y)
{
    uint64_t r = op == KI_ADD ? (uint64_t)x + (uint64_t)y : (uint64_t)x * (uint64_t)y;
    switch (op) {
    case KI_MIN:
        return x < y ? x : y;
    case KI_MAX:
        return x > y ? x : y;
    case KI_AND:
        return x & y;
    case KI_OR:
        return x | y;
    default:
        return t == I32 ? (int64_t)(int32_t)r : t == U8 ? (int64_t)(uint8_t)r : (int64_t)r;
    }
}

static void open_acc(Naive *x, Val v, int op, DType t)
{
    Lanes *a = &x->acc[v];
    for (int l = 0; l < 16; l++) {
        a->f[l] = op == KI_MUL ? 1 : op == KI_MIN ? INFINITY : op == KI_MAX ? -INFINITY : 0;
        if (op == KI_MIN)
            a->i[l] = t == I32 ? INT32_MAX : t == I64 ? INT64_MAX : 255;
        else if (op == KI_MAX)
            a->i[l] = t == I32 ? INT32_MIN : t == I64 ? INT64_MIN : 0;
        else
            a->i[l] = op == KI_MUL || op == KI_AND ? 1 : 0;
    }
}

/* The RED loop whose index says the lane, or 0. */
static Val lane_loop(const Naive *x, Val acc)
{
    for (int d = x->depth - 1; d >= 0 && x->open[d] > acc; d--)
        if (x->k->inst.at[x->open[d]].op == KI_RED)
            return x->open[d];
    return 0;
}

static double as_float(const Naive *x, Val v, DType t)
{
    return t == F32 ? (double)x->reg[v].f[0] : x->reg[v].d[0];
}

static void feed(Naive *x, const KInst *i)
{
    const KInst *acc = &x->k->inst.at[i->a];
    DType t = (DType)acc->dtype;
    Lanes *a = &x->acc[i->a];
    Val red = lane_loop(x, i->a);
    int64_t lane = red != 0 ? x->reg[red].i[0] % (t == F64 || t == I64 ? 8 : 16) : 0;
    if (t == F32 || t == F64)
        a->f[lane] = float_op(acc->aux, t, a->f[lane], as_float(x, i->b, t));
    else
        a->i[lane] = int_op(acc->aux, t, a->i[lane], x->reg[i->b].i[0]);
}

/* Whether any INTO of the accumulator lies in a RED loop inside of its scope. */
static bool fed_by_red(const Kernel *k, Val acc)
{
    Val open[32];
    int depth = 0;
    for (Val v = acc + 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op == KI_PAR || i->op == KI_SEQ || i->op == KI_RED)
            open[depth++] = v;
        if (i->op == KI_END && --depth < 0)
            return false;
        if (i->op == KI_INTO && i->a == acc)
            for (int d = 0; d < depth; d++)
                if (k->inst.at[open[d]].op == KI_RED)
                    return true;
    }
    return false;
}

static void fold(Naive *x, Val v, const KInst *i)
{
    const KInst *acc = &x->k->inst.at[i->a];
    DType t = (DType)acc->dtype;
    Lanes a = x->acc[i->a];
    int w = fed_by_red(x->k, i->a) ? (t == F64 || t == I64 ? 4 : 8) : 0;
    for (; w >= 1; w /= 2) {
        for (int l = 0; l < w; l++) {
            a.f[l] = float_op(acc->aux, t, a.f[l], a.f[l + w]);
            a.i[l] = int_op(acc->aux, t, a.i[l], a.i[l + w]);
        }
    }
    if (t == F32)
        x->reg[v].f[0] = (float)a.f[0];
    else if (t == F64)
        x->reg[v].d[0] = a.f[0];
    else
        x->reg[v].i[0] = a.i[0];
}

/* ---- instructions ----------------------------------------------------------------- */

static void scalar(Naive *x, Val v, const KInst *i)
{
    DType first = (DType)x->k->inst.at[i->op == KI_SELECT ? i->b : i->a].dtype;
    Op o = {.op = i->op,
            .type = (uint8_t)interp_type(K_EXACT, first),
            .dtype = i->dtype,
            .from = x->k->inst.at[i->a].dtype,
            .r = (int32_t)v,
            .a = (int32_t)i->a,
            .b = (int32_t)i->b,
            .c = (int32_t)i->c};
    interp_alu(&o, x->reg, 1);
}

static void run(Naive *x, Val from, Val to);

static int64_t limit_of(const Naive *x)
{
    const KLimit *l = &x->k->limit;
    const void *p = x->mem[l->buf].data;
    int64_t at = x->k->buf.at[l->buf].dtype == I32 ? ((const int32_t *)p)[l->at]
                                                   : ((const int64_t *)p)[l->at];
    return at + l->plus < 1 ? 1 : at + l->plus;
}

static void run_loop(Naive *x, Val v, Val end)
{
    const KInst *i = &x->k->inst.at[v];
    x->open[x->depth++] = v;
    for (int64_t n = 0; n < i->imm.i; n++) {
        if (i->reach != K_ALL && n >= limit_of(x))
            break;
        x->reg[v].i[0] = i->aux ? i->imm.i - 1 - n : n;
        run(x, v + 1, end);
    }
    x->depth--;
}

static void constant(Reg *r, const KInst *i)
{
    if (i->dtype == F64)
        r->d[0] = i->imm.f;
    else if (dtype_is_float((DType)i->dtype))
        r->f[0] = (float)i->imm.f;
    else
        r->i[0] = i->imm.i;
}

static void run(Naive *x, Val from, Val to)
{
    for (Val v = from; v < to; v++) {
        const KInst *i = &x->k->inst.at[v];
        switch (i->op) {
        case KI_CONST:
            constant(&x->reg[v], i);
            break;
        case KI_INDEX: {
            int64_t e = affine(x, &x->k->affine.at[i->aux]);
            x->reg[v].i[0] = i->dtype == I32 ? (int32_t)e : e;
            break;
        }
        case KI_LOAD:
            load(x, v, &x->k->access.at[i->aux]);
            break;
        case KI_STORE:
            store(x, i->a, &x->k->access.at[i->aux]);
            break;
        case KI_PAR:
        case KI_SEQ:
        case KI_RED: {
            Val end = v;
            while (x->k->inst.at[end].op != KI_END || (Val)x->k->inst.at[end].aux != v)
                end++;
            run_loop(x, v, end);
            v = end;
            break;
        }
        case KI_ACC:
            open_acc(x, v, i->aux, (DType)i->dtype);
            break;
        case KI_INTO:
            feed(x, i);
            break;
        case KI_FOLD:
            fold(x, v, i);
            break;
        case KI_SET:
            x->reg[i->a] = x->reg[i->b];
            break;
        case KI_DIM:
        case KI_SUM:
            break;
        default:
            scalar(x, v, i);
            break;
        }
    }
}

/* ---- contractions --------------------------------------------------------------------- */

static int64_t flat_extent(const Kernel *k, KRole role)
{
    int64_t n = 1;
    for (int i = 0; i < k->con.n[role]; i++)
        n *= k->inst.at[k->con.dim[role][i]].imm.i;
    return n;
}

static void set_flat(Naive *x, KRole role, int64_t at)
{
    for (int i = x->k->con.n[role] - 1; i >= 0; i--) {
        Val d = x->k->con.dim[role][i];
        x->reg[d].i[0] = at % x->k->inst.at[d].imm.i;
        at /= x->k->inst.at[d].imm.i;
    }
}

/* Is index `at` of the role, which is then its only dim, one from the limit on? */
static bool is_beyond(const Naive *x, KRole role, KReach reach, int64_t at)
{
    return x->k->limit.is && x->k->con.n[role] == 1 &&
           x->k->inst.at[x->k->con.dim[role][0]].reach == (uint8_t)reach && at >= limit_of(x);
}

static float no_denormal(float x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

/* Of pairs: whether a result is too small is seen where there is room below it, 64 powers of two
 * up. (Of a sum of large numbers it is exact.) */
static float flushing_fma(float a, float b, float c)
{
    a = no_denormal(a);
    b = no_denormal(b);
    c = no_denormal(c);
    float r = fmaf(a, b, c);
    if (!(fabsf(r) <= 0x1p-126F) || fabsf(c) > 1)
        return r;
    *(fabsf(a) < fabsf(b) ? &a : &b) *= 0x1p64F;
    float up = fmaf(a, b, c * 0x1p64F);
    return fabsf(up) < 0x1p-62F ? copysignf(0, up) : r;
}

static double add_term(Naive *x, int64_t p, double chain)
{
    const KContract *c = &x->k->con;
    set_flat(x, K_K, p);
    run(x, c->a_from, c->a_to);
    run(x, c->b_from, c->b_to);
    double a = as_float(x, c->a, c->dtype), b = as_float(x, c->b, c->dtype);
    if (c->pairs)
        return (double)flushing_fma((float)a, (float)b, (float)chain);
    return c->dtype == F32 ? (double)fmaf((float)a, (float)b, (float)chain) : fma(a, b, chain);
}

/* The chain over k, cut into leaves. */
static double sum_of(Naive *x, int64_t n_k)
{
    const KContract *c = &x->k->con;
    int64_t leaf = c->leaf > 0 ? c->leaf : n_k;
    double total = 0, chain = 0;
    for (int64_t p = 0; p < n_k; p++) {
        bool alone = p % 2 == 0 && (p + 1 == n_k || p + 1 == (p / leaf + 1) * leaf);
        chain = add_term(x, c->pairs && !alone ? p ^ 1 : p, chain);
        if ((p + 1) % leaf != 0 && p + 1 < n_k)
            continue;
        if (p < leaf)
            total = chain;
        else
            total = c->dtype == F32 ? (double)((float)total + (float)chain) : total + chain;
        chain = 0;
    }
    return total;
}

static void run_contraction(Naive *x)
{
    const KContract *c = &x->k->con;
    int64_t n_b = flat_extent(x->k, K_B), n_m = flat_extent(x->k, K_M);
    int64_t n_n = flat_extent(x->k, K_N), n_k = flat_extent(x->k, K_K);
    while (n_k > 0 && is_beyond(x, K_K, K_LIMITED, n_k - 1))
        n_k--;
    run(x, 1, c->a_from);
    if (c->all != 0)
        *(uint8_t *)x->mem[c->all_buf].data = 1;
    for (int64_t b = 0; b < n_b; b++) {
        for (int64_t m = 0; m < n_m; m++) {
            for (int64_t n = 0; n < n_n; n++) {
                if (is_beyond(x, K_M, K_LIMITED, m) || is_beyond(x, K_N, K_LIMITED, n))
                    continue;
                bool zero = is_beyond(x, K_M, K_ZERO, m) || is_beyond(x, K_N, K_ZERO, n);
                set_flat(x, K_B, b);
                set_flat(x, K_M, m);
                set_flat(x, K_N, n);
                double s = zero ? 0 : sum_of(x, n_k);
                if (c->dtype == F32)
                    x->reg[c->e_from].f[0] = (float)s;
                else
                    x->reg[c->e_from].d[0] = s;
                run(x, c->e_from, c->e_to);
                if (c->all != 0 && x->reg[c->all].i[0] == 0)
                    *(uint8_t *)x->mem[c->all_buf].data = 0;
            }
        }
    }
}

static void naive_run(const Kernel *k, KMem *mem, Arena *a)
{
    Naive x = {.k = kernel_expand(a, k, false), .mem = mem};
    x.reg = NEW_ARRAY(a, Reg, x.k->inst.n);
    x.acc = NEW_ARRAY(a, Lanes, x.k->inst.n);
    for (int b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].mode == K_LOCAL)
            mem[b].data = NEW_ARRAY(a, double, k->buf.at[b].elems);
    if (k->kind == K_LOOP)
        run(&x, 1, (Val)x.k->inst.n);
    else
        run_contraction(&x);
}

START_TEST(agrees_with_the_naive_one)
{
    for (int s = 0; s < kernel_random_seeds(40); s++) {
        Arena a = {0};
        uint64_t seed = (uint64_t)_i * 424243 + (uint64_t)s;
        RandomStyle style = s % 4 == 3 ? RANDOM_PAIRS : RANDOM_ANY;
        Kernel *k = kernel_random(&a, seed, style);
        KMem one[RANDOM_MAX_BUFS], two[RANDOM_MAX_BUFS];
        char where[160];
        kernel_random_data(k, seed, style, &a, one);
        kernel_random_data(k, seed, style, &a, two);
        kernel_run(k, K_EXACT, one, &a);
        naive_run(k, two, &a);
        if (!kernel_random_equal(k, one, two, where)) {
            Text t;
            text_init(&t, &a);
            kernel_print(k, &t);
            ck_abort_msg("seed %llu: %s\n%s", (unsigned long long)seed, where, t.at);
        }
        arena_free(&a);
    }
}
END_TEST

Suite *suite_kernel_naive(void)
{
    Suite *s = suite_create("kernel_naive");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, agrees_with_the_naive_one, 0, 16);
    suite_add_tcase(s, t);
    return s;
}
