/* f16 and bf16: conversions of kernel/dtype.c, lane by lane, in integer code
 * where the hardware has none (a call into a library would be a symbol to link). */
#include "gen.h"

static Lt same_shape(Gen *g, Lv x, Lt elem)
{
    (void)g;
    return ir_vec(elem, lanes_of(x));
}

static Lv bits32(Gen *g, Lv x)
{
    return LLVMBuildBitCast(g->ir->b, x, same_shape(g, x, g->ir->i32), "");
}

static Lv float32(Gen *g, Lv x)
{
    return LLVMBuildBitCast(g->ir->b, x, same_shape(g, x, g->ir->f32), "");
}

/* A constant of x's shape. */
static Lv k32(Gen *g, Lv x, uint32_t value)
{
    return ir_splat(g->ir, LLVMConstInt(g->ir->i32, value, 0), lanes_of(x));
}

#define B(fn, x, y)      LLVMBuild##fn(g->ir->b, x, y, "")
#define CMP(op, x, y)    LLVMBuildICmp(g->ir->b, LLVMInt##op, x, y, "")
#define PICK(cond, x, y) LLVMBuildSelect(g->ir->b, cond, x, y, "")

/* x's bits, of which the upper half is the nearest bf16, and the lower half anything. */
static Lv near_bf16(Gen *g, Lv x)
{
    Lv u = bits32(g, x), nan = LLVMBuildFCmp(g->ir->b, LLVMRealUNO, x, x, "");
    Lv odd = B(And, B(LShr, u, k32(g, u, 16)), k32(g, u, 1));
    Lv up = B(Add, B(Add, u, k32(g, u, 0x7fff)), odd);
    return PICK(nan, B(Or, u, k32(g, u, 0x400000)), up);
}

/* Bits of a bf16, in 32-bit lanes. */
static Lv to_bf16(Gen *g, Lv x)
{
    Lv u = near_bf16(g, x);
    return B(LShr, u, k32(g, u, 16));
}

/* A NaN stays as it is, signalling or not. */
static Lv from_bf16(Gen *g, Lv bits)
{
    return float32(g, B(Shl, bits, k32(g, bits, 16)));
}

static Lv round_bf16(Gen *g, Lv x)
{
    Lv u = near_bf16(g, x);
    return float32(g, B(And, u, k32(g, u, 0xffff0000)));
}

/* Bits of an f16, in 32-bit lanes. Below 2^-14, adding 0.5 rounds to a multiple
 * of 2^-24 just as the format does. */
static Lv to_f16(Gen *g, Lv x)
{
    Lv u = bits32(g, x), mag = B(And, u, k32(g, u, 0x7fffffff));
    Lv sign = B(And, B(LShr, u, k32(g, u, 16)), k32(g, u, 0x8000));
    Lv low = B(LShr, mag, k32(g, u, 13)), odd = B(And, low, k32(g, u, 1));
    Lv half = B(Add, B(Sub, mag, k32(g, u, UINT32_C(112) << 23)), k32(g, u, 0xfff));
    Lv normal = B(LShr, B(Add, half, odd), k32(g, u, 13));
    Lv shifted = bits32(g, B(FAdd, float32(g, mag), float32(g, k32(g, u, 0x3f000000))));
    Lv tiny = B(Sub, shifted, k32(g, u, 0x3f000000));
    Lv r = PICK(CMP(ULT, mag, k32(g, u, 0x38800000)), tiny, normal);
    r = PICK(CMP(UGE, mag, k32(g, u, 0x47800000)), k32(g, u, 0x7c00), r);
    Lv nan = B(Or, B(And, low, k32(g, u, 0x3ff)), k32(g, u, 0x7e00));
    r = PICK(CMP(UGT, mag, k32(g, u, 0x7f800000)), nan, r);
    return B(Or, sign, r);
}

static Lv from_f16(Gen *g, Lv bits)
{
    Lv sign = B(Shl, B(And, bits, k32(g, bits, 0x8000)), k32(g, bits, 16));
    Lv mag = B(And, bits, k32(g, bits, 0x7fff)), frac = B(And, bits, k32(g, bits, 0x3ff));
    Lv wide = B(Shl, mag, k32(g, bits, 13));
    Lv normal = B(Add, wide, k32(g, bits, UINT32_C(112) << 23));
    Lv tiny = LLVMBuildSIToFP(g->ir->b, frac, same_shape(g, bits, g->ir->f32), "");
    tiny = bits32(g, B(FMul, tiny, float32(g, k32(g, bits, 0x33800000)))); /* 2^-24 */
    Lv quiet =
        PICK(CMP(NE, frac, k32(g, bits, 0)), k32(g, bits, 0x7fc00000), k32(g, bits, 0x7f800000));
    Lv special = B(Or, wide, quiet);
    Lv r = PICK(CMP(ULT, mag, k32(g, bits, 0x400)), tiny, normal);
    r = PICK(CMP(UGE, mag, k32(g, bits, 0x7c00)), special, r);
    return float32(g, B(Or, sign, r));
}

Lv gen_half_bits(Gen *g, DType t, Lv x)
{
    Ir *ir = g->ir;
    if (t == F16 && ir->mach->f16c) {
        Lt half = same_shape(g, x, LLVMHalfTypeInContext(ir->c));
        Lv h = LLVMBuildFPTrunc(ir->b, x, half, "");
        return LLVMBuildBitCast(ir->b, h, same_shape(g, x, ir->i16), "");
    }
    Lv bits = t == F16 ? to_f16(g, x) : to_bf16(g, x);
    return LLVMBuildTrunc(ir->b, bits, same_shape(g, x, ir->i16), "");
}

Lv gen_half_float(Gen *g, DType t, Lv bits)
{
    Ir *ir = g->ir;
    if (t == F16 && ir->mach->f16c) {
        Lt half = same_shape(g, bits, LLVMHalfTypeInContext(ir->c));
        Lv h = LLVMBuildBitCast(ir->b, bits, half, "");
        return LLVMBuildFPExt(ir->b, h, same_shape(g, bits, ir->f32), "");
    }
    Lv wide = LLVMBuildZExt(ir->b, bits, same_shape(g, bits, ir->i32), "");
    return t == F16 ? from_f16(g, wide) : from_bf16(g, wide);
}

Lv gen_round_half(Gen *g, DType t, Lv x)
{
    if (t == F16)
        return gen_half_float(g, t, gen_half_bits(g, t, x));
    return t == BF16 ? round_bf16(g, x) : x;
}
