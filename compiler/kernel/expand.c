/* Transcendental functions as polynomials in kernel instructions: a copy of the
 * kernel in which no MATH instruction and no arithmetic in half types is left.
 * All is branch-free (SELECT), with explicit fma, and without tables, so that it
 * runs in vectors; one order of arithmetic for every target.
 *
 * Half types: an instruction on f16 or bf16 becomes the same one on f32 between
 * two CASTs (for + - * / and sqrt that is the correctly rounded result). Casts
 * between a half type and anything but f32 go through f32.
 *
 * Largest errors in ulp, measured by tests/unit/math.c: in f32 over all 2^32
 * floats (pow: 65 million pairs), in f64 over 65 million arguments (pow: 33
 * million pairs).
 *          exp   log   expm1  log1p  sin   cos   tanh  erf   pow
 *   f32    1.62  1.17  1.57   1.92   1.54  1.54  1.90  1.12  0.51
 *   f64    1.50  0.87  2.02   1.34   2.78  2.68  2.50  1.15  1.91
 * Instructions in f32, constants and bit casts not counted: exp 16 (15 by SCALE, one of them only a
 * mask), log 23 (18 by EXPONENT and FRACTION), expm1 22, log1p 31, tanh 23, erf 32, sin and cos 80,
 * pow 62. */
#include <math.h>
#include "expand.h"

/* ---- pieces --------------------------------------------------------------------- */

Val fn_poly(const Fn *f, Val x, const double *c, int n)
{
    Val p = num(f, c[n - 1]);
    for (int i = n - 2; i >= 0; i--) {
        Val ci = num(f, c[i]);
        p = fused(f, p, x, ci);
    }
    return p;
}

/* MIN and MAX give their second operand if either is NaN. */
Val fn_at_most(const Fn *f, Val x, double limit)
{
    Val c = num(f, limit);
    return k_binary(f->k, KI_MIN, c, x);
}

Val fn_at_least(const Fn *f, Val x, double limit)
{
    Val c = num(f, limit);
    return k_binary(f->k, KI_MAX, c, x);
}

double fn_magic(const Fn *f)
{
    return single(f) ? 0x1.8p23 + 127 : 0x1.8p52 + 1023;
}

Val fn_nearest_integer(const Fn *f, Val x_plus_magic, Val *field)
{
    Val c = num(f, fn_magic(f)), by = integer(f, fraction_bits(f));
    Val bits = bits_of(f, x_plus_magic);
    *field = k_binary(f->k, KI_SHL, bits, by);
    return sub(f, x_plus_magic, c);
}

Power fn_power_split(const Fn *f, Val x, int step)
{
    Val per = num(f, 0x1.71547652b82fep+0 / step), c = num(f, fn_magic(f));
    Val shifted = fused(f, x, per, c);
    Power p;
    Val n = fn_nearest_integer(f, shifted, &p.field);
    Val high = num(f, -ln2_high(f) * step), low = num(f, -ln2_low(f) * step);
    p.r = fused(f, n, high, x);
    p.r = fused(f, n, low, p.r);
    return p;
}

Val fn_with_sign_of(const Fn *f, Val y, Val x)
{
    Val mask = integer(f, sign_bits(f)), x_bits = bits_of(f, x);
    Val sign = both(f, x_bits, mask), y_bits = bits_of(f, y);
    Val r = flip(f, y_bits, sign);
    return float_of(f, r);
}

/* Subtracting the bits of the least m first makes the exponent field that of the
 * wanted e. What is scaled up to be normal gets its exponent back, below those of
 * normal numbers. */
Split fn_split(const Fn *f, Val x, bool denormals)
{
    Kernel *k = f->k;
    Val bits = bits_of(f, x);
    if (denormals) {
        int64_t by = single(f) ? 25 : 54;
        Val lowest = num(f, single(f) ? 0x1p-126 : 0x1p-1022), up = num(f, ldexp(1, (int)by));
        Val scaled = mul(f, x, up), far = integer(f, by << fraction_bits(f));
        Val is_tiny = less(f, x, lowest), scaled_bits = bits_of(f, scaled);
        Val low_bits = sub(f, scaled_bits, far);
        bits = choose(f, is_tiny, low_bits, bits);
    }
    Val least = integer(f, single(f) ? INT64_C(0x3f2aaaab) : INT64_C(0x3fe6a09e667f3bcd));
    Val mask = integer(f, -(INT64_C(1) << fraction_bits(f)));
    Val above = sub(f, bits, least);
    Val field = both(f, above, mask);
    Val m_bits = sub(f, bits, field);
    Split s = {.m = float_of(f, m_bits), .field = field};
    if (single(f)) {
        s.e = k_cast(k, F32, field);
    } else { /* no vector conversion of i64 before AVX-512: by the bits of 1.5 * 2^52 */
        Val shift = integer(f, fraction_bits(f));
        Val e = k_binary(k, KI_SAR, above, shift);
        Val base = integer(f, INT64_C(0x4338000000000000)), c = num(f, 0x1.8p52);
        Val sum = add(f, e, base);
        Val moved = float_of(f, sum);
        s.e = sub(f, moved, c);
    }
    return s;
}

/* ---- the copy --------------------------------------------------------------------- */

typedef struct Copy {
    Arena *arena;
    const Kernel *from;
    Kernel *to;
    Val *map; /* by Val of `from` */
    bool exponents;
} Copy;

static KAff map_affine(const Copy *c, const KAff *x)
{
    KAff y = *x;
    for (int i = 0; i < y.n; i++)
        y.t[i].v = c->map[y.t[i].v]; /* order is kept: copies follow one another too */
    return y;
}

static int32_t map_access(const Copy *c, int32_t i)
{
    KAccess a = c->from->access.at[i];
    KBound *bound = NEW_ARRAY(c->arena, KBound, a.n_bounds);
    for (int b = 0; b < a.n_bounds; b++) {
        bound[b] = a.bound[b];
        bound[b].e = map_affine(c, &a.bound[b].e);
    }
    a.at = map_affine(c, &a.at);
    a.bound = bound;
    vec_push(c->arena, &c->to->access, a);
    return c->to->access.n - 1;
}

static Val copy_inst(const Copy *c, const KInst *i)
{
    KInst x = *i;
    int args = kop_args((KOp)i->op);
    x.a = args > 0 ? c->map[i->a] : 0;
    x.b = args > 1 ? c->map[i->b] : 0;
    x.c = args > 2 ? c->map[i->c] : 0;
    if (i->op == KI_LOAD || i->op == KI_STORE) {
        x.aux = map_access(c, i->aux);
    } else if (i->op == KI_INDEX) {
        KAff e = map_affine(c, &c->from->affine.at[i->aux]);
        vec_push(c->arena, &c->to->affine, e);
        x.aux = c->to->affine.n - 1;
    } else if (i->op == KI_END) {
        x.aux = (int32_t)c->map[i->aux];
    }
    vec_push(c->arena, &c->to->inst, x);
    return (Val)c->to->inst.n - 1;
}

static Val expand_math(const Copy *of, KOp op, Val a, Val b, Val c)
{
    Kernel *k = of->to;
    DType t = (DType)k->inst.at[a].dtype;
    Fn f = {k, t, t == F64 ? I64 : I32, t == F32 && of->exponents};
    switch (op) {
    case KI_EXP:
        return expand_exp(&f, a);
    case KI_LOG:
        return expand_log(&f, a);
    case KI_EXPM1:
        return expand_expm1(&f, a);
    case KI_LOG1P:
        return expand_log1p(&f, a);
    case KI_SIN:
        return expand_sin(&f, a);
    case KI_COS:
        return expand_cos(&f, a);
    case KI_TANH:
        return expand_tanh(&f, a);
    case KI_ERF:
        return expand_erf(&f, a);
    case KI_POW:
        return expand_pow(&f, a, b);
    default:
        return expand_random(k, a, b, c);
    }
}

/* ---- half types ----------------------------------------------------------------------- */

static bool is_half(DType t)
{
    return t == F16 || t == BF16;
}

/* Whether instruction i computes in a half type. */
static bool computes_in_half(const Kernel *k, const KInst *i)
{
    KClass class = kop_class((KOp)i->op);
    bool scalar = class >= K_CLASS_UNARY && class <= K_CLASS_MATH;
    if (!scalar || i->op == KI_SELECT || i->op == KI_CAST || i->op == KI_BITCAST)
        return false;
    return is_half((DType)k->inst.at[i->a].dtype);
}

/* The instruction on f32 copies of its operands, rounded back. */
static Val through_f32(const Copy *c, const KInst *i)
{
    Kernel *k = c->to;
    KOp op = (KOp)i->op;
    int args = kop_args(op);
    Val a = k_cast(k, F32, c->map[i->a]);
    Val b = args > 1 ? k_cast(k, F32, c->map[i->b]) : 0;
    Val d = args > 2 ? k_cast(k, F32, c->map[i->c]) : 0;
    Val r;
    if (kop_class(op) == K_CLASS_MATH)
        r = expand_math(c, op, a, b, d);
    else if (args == 3)
        r = k_fma(k, a, b, d);
    else
        r = args == 2 ? k_binary(k, op, a, b) : k_unary(k, op, a);
    return k_cast(k, (DType)i->dtype, r);
}

static Val copy_cast(const Copy *c, const KInst *i)
{
    DType from = (DType)c->from->inst.at[i->a].dtype, to = (DType)i->dtype;
    if ((is_half(from) && to != F32) || (is_half(to) && from != F32)) {
        Val wide = k_cast(c->to, F32, c->map[i->a]);
        return k_cast(c->to, to, wide);
    }
    return copy_inst(c, i);
}

static Val copy_one(const Copy *c, Val v)
{
    const KInst *i = &c->from->inst.at[v];
    if (computes_in_half(c->from, i))
        return through_f32(c, i);
    if (kop_class((KOp)i->op) == K_CLASS_MATH) {
        int args = kop_args((KOp)i->op);
        Val b = args > 1 ? c->map[i->b] : 0, d = args > 2 ? c->map[i->c] : 0;
        return expand_math(c, (KOp)i->op, c->map[i->a], b, d);
    }
    return i->op == KI_CAST ? copy_cast(c, i) : copy_inst(c, i);
}

/* Opens in the copy the section that begins at v. */
static void copy_section(const Copy *c, Val v)
{
    const KContract *con = &c->from->con;
    Kernel *to = c->to;
    if (to->section == K_IN_DIMS && v == con->a_from)
        k_section_a(to);
    if (to->section == K_IN_A && v == con->b_from)
        k_section_b(to, c->map[con->a]);
    if (to->section == K_IN_B && v == con->e_from) {
        to->section = K_IN_EPILOGUE;
        to->con.b = c->map[con->b];
        to->con.b_to = to->con.e_from = (Val)to->inst.n;
        to->con.dtype = con->dtype;
        to->con.leaf = con->leaf;
        to->con.pairs = con->pairs;
    }
}

Kernel *kernel_expand(Arena *arena, const Kernel *k, bool exponents)
{
    Copy c = {arena, k, kernel_new(arena, k->kind, k->name), NEW_ARRAY(arena, Val, k->inst.n),
              exponents};
    for (int i = 0; i < k->buf.n; i++)
        vec_push(arena, &c.to->buf, k->buf.at[i]);
    c.to->limit = k->limit;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        if (k->kind == K_CONTRACT)
            copy_section(&c, v);
        c.map[v] = copy_one(&c, v);
    }
    if (k->kind == K_CONTRACT) {
        copy_section(&c, (Val)k->inst.n); /* sections may be empty at the end */
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < k->con.n[r]; i++)
                c.to->con.dim[r][c.to->con.n[r]++] = c.map[k->con.dim[r][i]];
        c.to->con.all = c.map[k->con.all];
        c.to->con.all_buf = k->con.all_buf;
        c.to->con.side_sum = k->con.side_sum;
        c.to->con.side_sum_buf = k->con.side_sum_buf;
    }
    k_finish(c.to);
    return c.to;
}
