/* Scalar operations. The table is kinst.def; each gives the bits of the exact
 * interpreter: no fast-math flag, no contraction, selects where a hardware min
 * or max would treat NaN and zeros otherwise. */
#include <assert.h>
#include <string.h>
#include "gen.h"

#define B(fn, x, y)      LLVMBuild##fn(g->ir->b, x, y, "")
#define ICMP(op, x, y)   LLVMBuildICmp(g->ir->b, LLVMInt##op, x, y, "")
#define FCMP(op, x, y)   LLVMBuildFCmp(g->ir->b, LLVMReal##op, x, y, "")
#define PICK(cond, x, y) LLVMBuildSelect(g->ir->b, cond, x, y, "")

static Lv like_int(Gen *g, Lv x, int64_t value)
{
    Lt t = LLVMTypeOf(x);
    int n = lanes_of(x);
    Lt elem = n > 1 ? LLVMGetElementType(t) : t;
    return ir_splat(g->ir, LLVMConstInt(elem, (unsigned long long)value, 1), n);
}

static Lv like_float(Gen *g, DType t, Lv x, double value)
{
    return ir_splat(g->ir, LLVMConstReal(gen_type(g, t, 1), value), lanes_of(x));
}

/* ---- floats ------------------------------------------------------------------- */

static Lv bits_of(Gen *g, Lv x, DType t)
{
    Lt i = ir_vec(t == F64 ? g->ir->i64 : g->ir->i32, lanes_of(x));
    return LLVMBuildBitCast(g->ir->b, x, i, "");
}

/* To nearest even without SSE4.1: adding 2^23 (2^52) pushes the fraction out.
 * LLVM would call a library. */
static Lv rint_plain(Gen *g, DType t, Lv x)
{
    double big = t == F64 ? 0x1p52 : 0x1p23;
    Lv magic = like_float(g, t, x, big), mag = ir_op1(g->ir, "llvm.fabs", x);
    Lv r = B(FSub, B(FAdd, mag, magic), magic);
    Lv sign = like_int(g, bits_of(g, x, t), t == F64 ? INT64_MIN : INT32_MIN);
    Lv signed_r = B(Or, bits_of(g, r, t), B(And, bits_of(g, x, t), sign));
    r = LLVMBuildBitCast(g->ir->b, signed_r, LLVMTypeOf(x), "");
    return PICK(FCMP(OLT, mag, magic), r, x);
}

static Lv rounding(Gen *g, KOp op, DType t, Lv x)
{
    const Machine *m = g->ir->mach;
    if (m->arch != ARCH_X86_64 || machine_has(m, FEATURE_SSE41))
        return ir_op1(g->ir, op == KI_FLOOR ? "llvm.floor" : "llvm.roundeven", x);
    Lv r = rint_plain(g, t, x);
    if (op == KI_RINT)
        return r;
    return PICK(FCMP(OGT, r, x), B(FSub, r, like_float(g, t, x, 1)), r);
}

static Lv fused(Gen *g, Lv x, Lv y, Lv z)
{
    if (!g->ir->mach->fma)
        return B(FAdd, B(FMul, x, y), z);
    Lt type = LLVMTypeOf(x);
    Lv arg[] = {x, y, z};
    return ir_intrinsic(g->ir, "llvm.fma", &type, 1, arg, 3);
}

static Lv text_operand(Gen *g, const char *text)
{
    LLVMContextRef c = g->ir->c;
    return LLVMMetadataAsValue(c, LLVMMDStringInContext2(c, text, strlen(text)));
}

/* For LLVM 19 a lane of a vector is 0 where both lanes of a division are (SelectionDAG,
 * SimplifyDemandedVectorElts), and a select that keeps 0/0 out is dropped. It does not look into
 * a constrained division, which is the same instruction. */
static Lv divided(Gen *g, Lv x, Lv y)
{
    Lt type = LLVMTypeOf(x);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return B(FDiv, x, y);
    Lv arg[] = {x, y, text_operand(g, "round.tonearest"), text_operand(g, "fpexcept.ignore")};
    return ir_intrinsic(g->ir, "llvm.experimental.constrained.fdiv", &type, 1, arg, 4);
}

static Lv float_op(Gen *g, KOp op, DType t, Lv x, Lv y, Lv z)
{
    switch (op) {
    case KI_ADD:
        return B(FAdd, x, y);
    case KI_SUB:
        return B(FSub, x, y);
    case KI_MUL:
        return B(FMul, x, y);
    case KI_DIV:
        return divided(g, x, y);
    case KI_MIN:
        return PICK(FCMP(OLT, x, y), x, y);
    case KI_MAX:
        return PICK(FCMP(OGT, x, y), x, y);
    case KI_FMA:
        return fused(g, x, y, z);
    case KI_NEG:
        return LLVMBuildFNeg(g->ir->b, x, "");
    case KI_ABS:
        return ir_op1(g->ir, "llvm.fabs", x);
    case KI_SQRT:
        return ir_op1(g->ir, "llvm.sqrt", x);
    case KI_FLOOR:
    case KI_RINT:
        return rounding(g, op, t, x);
    case KI_EXPONENT:
    case KI_FRACTION:
    case KI_SCALE:
        assert(g->ir->mach->exponents);
        return gen_exponent(g, op, x, y);
    default:
        assert(false && "an operation that floats do not have");
        return x;
    }
}

static Lv float_compare(Gen *g, KOp op, Lv x, Lv y)
{
    switch (op) {
    case KI_EQ:
        return FCMP(OEQ, x, y);
    case KI_NE:
        return FCMP(UNE, x, y);
    case KI_LT:
        return FCMP(OLT, x, y);
    default:
        return FCMP(OLE, x, y);
    }
}

/* ---- integers ------------------------------------------------------------------- */

/* x/0 = 0 and min/-1 wraps, without a trap on the way. */
static Lv int_div(Gen *g, DType t, Lv x, Lv y)
{
    Lv zero = like_int(g, x, 0), one = like_int(g, x, 1);
    Lv by_zero = ICMP(EQ, y, zero);
    if (t == U8 || t == BOOL)
        return PICK(by_zero, zero, B(UDiv, x, PICK(by_zero, one, y)));
    Lv by_minus = ICMP(EQ, y, like_int(g, x, -1));
    Lv q = B(SDiv, x, PICK(B(Or, by_zero, by_minus), one, y));
    return PICK(by_zero, zero, PICK(by_minus, B(Sub, zero, x), q));
}

static Lv int_rem(Gen *g, DType t, Lv x, Lv y)
{
    Lv r = B(Sub, x, B(Mul, y, int_div(g, t, x, y)));
    return PICK(ICMP(EQ, y, like_int(g, x, 0)), like_int(g, x, 0), r);
}

static Lv mul_high(Gen *g, Lv x, Lv y)
{
    int n = lanes_of(x);
    Lt wide = ir_vec(g->ir->i64, n), narrow = ir_vec(g->ir->i32, n);
    Lv a = LLVMBuildZExt(g->ir->b, x, wide, ""), b = LLVMBuildZExt(g->ir->b, y, wide, "");
    Lv high = B(LShr, B(Mul, a, b), like_int(g, a, 32));
    return LLVMBuildTrunc(g->ir->b, high, narrow, "");
}

static Lv int_compare(Gen *g, KOp op, DType t, Lv x, Lv y)
{
    bool is_signed = t == I32 || t == I64;
    switch (op) {
    case KI_EQ:
        return ICMP(EQ, x, y);
    case KI_NE:
        return ICMP(NE, x, y);
    case KI_LT:
        return is_signed ? ICMP(SLT, x, y) : ICMP(ULT, x, y);
    default:
        return is_signed ? ICMP(SLE, x, y) : ICMP(ULE, x, y);
    }
}

static Lv int_op(Gen *g, KOp op, DType t, Lv x, Lv y)
{
    switch (op) {
    case KI_ADD:
        return B(Add, x, y);
    case KI_SUB:
        return B(Sub, x, y);
    case KI_MUL:
        return B(Mul, x, y);
    case KI_DIV:
        return int_div(g, t, x, y);
    case KI_REM:
        return int_rem(g, t, x, y);
    case KI_MIN:
        return PICK(int_compare(g, KI_LT, t, x, y), x, y);
    case KI_MAX:
        return PICK(int_compare(g, KI_LT, t, y, x), x, y);
    case KI_NEG:
        return B(Sub, like_int(g, x, 0), x);
    case KI_ABS:
        if (t == U8 || t == BOOL)
            return x;
        return PICK(ICMP(SLT, x, like_int(g, x, 0)), B(Sub, like_int(g, x, 0), x), x);
    case KI_AND:
        return B(And, x, y);
    case KI_OR:
        return B(Or, x, y);
    case KI_XOR:
        return B(Xor, x, y);
    case KI_SHL:
        return B(Shl, x, y);
    case KI_SHR:
        return B(LShr, x, y);
    case KI_SAR: /* u8 has no sign */
        return t == U8 ? B(LShr, x, y) : B(AShr, x, y);
    case KI_MULHI:
        return mul_high(g, x, y);
    default:
        assert(false && "an operation that integers do not have");
        return x;
    }
}

/* ---- conversions ---------------------------------------------------------------- */

static Lv float_to_int(Gen *g, DType from, DType t, Lv x)
{
    Lt to = gen_type(g, t, lanes_of(x));
    if (t == BOOL) /* NaN differs from 0 */
        return FCMP(UNE, x, like_float(g, from, x, 0));
    Lt types[] = {to, LLVMTypeOf(x)};
    return ir_intrinsic(g->ir, t == U8 ? "llvm.fptoui.sat" : "llvm.fptosi.sat", types, 2, &x, 1);
}

static Lv int_to_float(Gen *g, DType from, DType t, Lv x)
{
    Lt to = gen_type(g, t, lanes_of(x));
    if (from == U8 || from == BOOL)
        return LLVMBuildUIToFP(g->ir->b, x, to, "");
    return gen_round_half(g, t, LLVMBuildSIToFP(g->ir->b, x, to, ""));
}

static Lv int_to_int(Gen *g, DType from, DType t, Lv x)
{
    Lt to = gen_type(g, t, lanes_of(x));
    if (t == BOOL)
        return ICMP(NE, x, like_int(g, x, 0));
    if (dtype_bytes(t) > dtype_bytes(from) || from == BOOL)
        return from == I32 ? LLVMBuildSExt(g->ir->b, x, to, "")
                           : LLVMBuildZExt(g->ir->b, x, to, "");
    return LLVMBuildTrunc(g->ir->b, x, to, "");
}

static Lv float_to_float(Gen *g, DType from, DType t, Lv x)
{
    Lt to = gen_type(g, t, lanes_of(x));
    if (from == F64)
        return gen_round_half(g, t, LLVMBuildFPTrunc(g->ir->b, x, to, ""));
    return t == F64 ? LLVMBuildFPExt(g->ir->b, x, to, "") : gen_round_half(g, t, x);
}

static Lv cast(Gen *g, DType from, DType t, Lv x)
{
    if (from == t)
        return x;
    if (dtype_is_float(from))
        return dtype_is_float(t) ? float_to_float(g, from, t, x) : float_to_int(g, from, t, x);
    return dtype_is_float(t) ? int_to_float(g, from, t, x) : int_to_int(g, from, t, x);
}

/* ---- all of them ------------------------------------------------------------------ */

Lv gen_alu(Gen *g, KOp op, DType from, DType t, Lv x, Lv y, Lv z)
{
    switch (op) {
    case KI_SELECT:
        return PICK(x, y, z);
    case KI_CAST:
        return cast(g, from, t, x);
    case KI_BITCAST:
        return LLVMBuildBitCast(g->ir->b, x, gen_type(g, t, lanes_of(x)), "");
    case KI_EQ:
    case KI_NE:
    case KI_LT:
    case KI_LE:
        return dtype_is_float(from) ? float_compare(g, op, x, y) : int_compare(g, op, from, x, y);
    default:
        break;
    }
    if (!dtype_is_float(t))
        return int_op(g, op, t, x, y);
    return gen_round_half(g, t, float_op(g, op, t, x, y, z));
}

Lv gen_combine(Gen *g, KOp op, DType t, Lv acc, Lv x)
{
    return gen_alu(g, op, t, t, acc, x, NULL);
}

static int64_t int_limit(DType t, bool largest)
{
    switch (t) {
    case I32:
        return largest ? INT32_MAX : INT32_MIN;
    case I64:
        return largest ? INT64_MAX : INT64_MIN;
    case U8:
        return largest ? UINT8_MAX : 0;
    default:
        return largest;
    }
}

Lv gen_identity(Gen *g, KOp op, DType t)
{
    bool is_float = dtype_is_float(t);
    switch (op) {
    case KI_MUL:
    case KI_AND:
        return op == KI_AND && t != BOOL ? gen_const(g, t, 0, -1) : gen_const(g, t, 1, 1);
    case KI_MIN:
    case KI_MAX:
        if (is_float) {
            Lv inf = LLVMConstReal(gen_type(g, t, 1), __builtin_inf());
            return op == KI_MIN ? inf : LLVMConstReal(gen_type(g, t, 1), -__builtin_inf());
        }
        return gen_const(g, t, 0, int_limit(t, op == KI_MIN));
    default:
        return gen_const(g, t, 0, 0);
    }
}
