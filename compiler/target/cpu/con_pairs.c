/* Pairs of bf16: what differs where a tile's step is two of k. The kernel's order (kernel.h) is the
 * instruction's. A last k without a partner has (-0) * (+0) for one: t + -0 is t for every t that a
 * chain can hold, zeros and NaN among them, where +0 would turn -0 into +0.
 *
 * Tiles of matrices (AMX, TDPBF16PS) are not used: they add up even and odd k by themselves, 16 of
 * each, and then both to the result, an order that no vector instruction has.
 * source: Intel SDM volume 2, VDPBF16PS and TDPBF16PS. */
#include "con.h"

static Lv bits(Con *c, Lv x)
{
    return LLVMBuildBitCast(c->ir->b, x, ir_vec(c->ir->i32, lanes_of(x)), "");
}

static Lv half_bits(Con *c)
{
    return ir_int32(c->ir, 16);
}

Lv con_pair(Con *c, Lv x, Lv y)
{
    LLVMBuilderRef b = c->ir->b;
    Lv by = ir_splat(c->ir, half_bits(c), lanes_of(x));
    return LLVMBuildOr(b, LLVMBuildLShr(b, bits(c, x), by, ""), bits(c, y), "");
}

Lv con_pairs_along(Con *c, Lv x)
{
    Ir *ir = c->ir;
    int n = lanes_of(x);
    Lv top = LLVMBuildLShr(ir->b, bits(c, x), ir_splat(ir, half_bits(c), n), "");
    Lv halves = LLVMBuildTrunc(ir->b, top, ir_vec(ir->i16, n), "");
    return LLVMBuildBitCast(ir->b, halves, ir_vec(ir->i32, n / 2), "");
}

bool con_lacks_partner(const ConPlan *p)
{
    return p->n_k % 2 != 0 || p->k_reach != K_ALL;
}

Lv con_has_partner(Con *c, Lv k, Lv kn)
{
    return con_less(c, ir_add(c->ir, k, ir_int(c->ir, 1)), kn);
}

Lv con_partner(Con *c, const Side *s, Lv has, Lv y)
{
    Ir *ir = c->ir;
    Lv none = ir_splat(ir, LLVMConstReal(ir->f32, s->is_row ? -0.0 : 0.0), lanes_of(y));
    return LLVMBuildSelect(ir->b, has, y, none, "");
}

int64_t con_steps(const ConPlan *p, int64_t k)
{
    return p->pairs ? (k + 1) / 2 : k;
}

Lv con_steps_of(Con *c, Lv k)
{
    Ir *ir = c->ir;
    if (!c->p->pairs)
        return k;
    return LLVMBuildLShr(ir->b, ir_add(ir, k, ir_int(ir, 1)), ir_int(ir, 1), "");
}

Lv con_dot(Ir *ir, const ConPlan *p, Lv a, Lv b, Lv s)
{
    Lt sums = LLVMTypeOf(s);
    if (p->pairs) {
        Lt halves = ir_vec(LLVMBFloatTypeInContext(ir->c), 2 * p->vl);
        const char *name =
            arena_printf(ir->arena, "llvm.x86.avx512bf16.dpbf16ps.%d", p->vl * p->es * 8);
        Lv arg[] = {s, LLVMBuildBitCast(ir->b, a, halves, ""),
                    LLVMBuildBitCast(ir->b, b, halves, "")};
        return ir_intrinsic(ir, name, NULL, 0, arg, 3);
    }
    if (!p->mach->fma)
        return LLVMBuildFAdd(ir->b, LLVMBuildFMul(ir->b, a, b, ""), s, "");
    Lv arg[] = {a, b, s};
    return ir_intrinsic(ir, "llvm.fma", &sums, 1, arg, 3);
}

void con_pair_columns(Ir *ir, const ConPlan *p, Lv b, int64_t line, Lv *row)
{
    Lt halves = ir_vec(ir->i16, p->vl), pairs = ir_vec(ir->i32, p->vl);
    Lv by = ir_splat(ir, ir_int32(ir, 16), p->vl);
    for (int v = 0; v < p->nv; v++) {
        Lv at = ir_off(ir, b, (int64_t)v * p->vl * 2);
        Lv low = LLVMBuildZExt(ir->b, ir_load(ir, halves, at, 2), pairs, "");
        Lv high = LLVMBuildZExt(ir->b, ir_load(ir, halves, ir_off(ir, at, line), 2), pairs, "");
        row[v] = LLVMBuildOr(ir->b, low, LLVMBuildShl(ir->b, high, by, ""), "");
    }
}
