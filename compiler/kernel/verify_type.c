/* The verifier: which instruction takes and gives which types. */
#include <math.h>
#include "verify.h"

static DType type_of(const Verifier *v, Val x)
{
    return (DType)inst_of(v, x)->dtype;
}

static const char *wrong_type(const Verifier *v, DType t)
{
    return verify_complain(v, "not on %s", dtype_name(t));
}

/* Operands of scalar instructions: which types each has. */
static bool takes(KOp op, DType t)
{
    switch (op) {
    case KI_ADD:
    case KI_SUB:
    case KI_MUL:
    case KI_DIV:
    case KI_MIN:
    case KI_MAX:
    case KI_NEG:
    case KI_ABS:
    case KI_LT:
    case KI_LE:
        return t != BOOL;
    case KI_REM:
        return dtype_is_int(t);
    case KI_AND:
    case KI_OR:
    case KI_XOR:
        return !dtype_is_float(t);
    case KI_SHL:
    case KI_SHR:
    case KI_SAR:
        return t == I32 || t == I64;
    case KI_MULHI:
        return t == I32;
    case KI_EXPONENT:
    case KI_FRACTION:
    case KI_SCALE:
        return t == F32;
    case KI_EQ:
    case KI_NE:
    case KI_SELECT:
    case KI_CAST:
        return true;
    case KI_RANDOM:
        return t == I64;
    default: /* FMA, SQRT, FLOOR, RINT, transcendentals */
        return dtype_is_float(t);
    }
}

static const char *check_constant(const Verifier *v, const KInst *i)
{
    int64_t x = i->imm.i;
    switch (i->dtype) {
    case F32:
    case F16:
    case BF16:
        return isnan(i->imm.f) || i->imm.f == dtype_round((DType)i->dtype, i->imm.f)
                   ? NULL
                   : verify_complain(v, "the constant is not rounded to %s",
                                     dtype_name((DType)i->dtype));
    case I32:
        return x == (int32_t)x ? NULL : verify_complain(v, "the constant does not fit i32");
    case U8:
        return x >= 0 && x <= 255 ? NULL : verify_complain(v, "the constant does not fit u8");
    case BOOL:
        return x == 0 || x == 1 ? NULL : verify_complain(v, "the constant does not fit bool");
    default:
        return NULL;
    }
}

static const char *check_bitcast(const Verifier *v, DType from, DType to)
{
    bool fits = (from == F32 && to == I32) || (from == I32 && to == F32) ||
                (from == F64 && to == I64) || (from == I64 && to == F64);
    return fits ? NULL : verify_complain(v, "from %s to %s", dtype_name(from), dtype_name(to));
}

/* Two operands, or an operand and the result, that must agree. */
static const char *check_same(const Verifier *v, DType x, DType y)
{
    return x == y ? NULL : verify_complain(v, "%s and %s", dtype_name(x), dtype_name(y));
}

static const char *check_accumulator(const Verifier *v, const KInst *i)
{
    DType t = (DType)i->dtype;
    switch (i->aux) {
    case KI_ADD:
    case KI_MUL:
    case KI_MIN:
    case KI_MAX:
        return t == F32 || t == F64 || dtype_is_int(t) ? NULL : wrong_type(v, t);
    case KI_AND:
    case KI_OR:
        return t == BOOL ? NULL : wrong_type(v, t);
    default:
        return verify_complain(v, "no accumulator has this operation");
    }
}

static const char *check_scalar(const Verifier *v, const KInst *i)
{
    DType r = (DType)i->dtype, a = type_of(v, i->a);
    int args = kop_args((KOp)i->op);
    if (i->op == KI_BITCAST)
        return check_bitcast(v, a, r);
    if (i->op == KI_SELECT) {
        const char *bad =
            a == BOOL ? NULL : verify_complain(v, "the condition is %s", dtype_name(a));
        if (bad == NULL)
            bad = check_same(v, type_of(v, i->b), type_of(v, i->c));
        return bad != NULL ? bad : check_same(v, r, type_of(v, i->b));
    }
    if (!takes((KOp)i->op, a))
        return wrong_type(v, a);
    const char *bad = args > 1 ? check_same(v, a, type_of(v, i->b)) : NULL;
    if (bad == NULL && args > 2)
        bad = check_same(v, a, type_of(v, i->c));
    if (bad != NULL || i->op == KI_CAST)
        return bad;
    bool compares = i->op == KI_EQ || i->op == KI_NE || i->op == KI_LT || i->op == KI_LE;
    DType gives = compares ? BOOL : i->op == KI_RANDOM ? I32 : a;
    return r == gives ? NULL
                      : verify_complain(v, "gives %s, not %s", dtype_name(gives), dtype_name(r));
}

const char *verify_types(const Verifier *v, const KInst *i)
{
    DType t = (DType)i->dtype;
    switch (kop_class((KOp)i->op)) {
    case K_CLASS_UNARY:
    case K_CLASS_BINARY:
    case K_CLASS_TERNARY:
    case K_CLASS_MATH:
        return check_scalar(v, i);
    default:
        break;
    }
    switch (i->op) {
    case KI_CONST:
        return check_constant(v, i);
    case KI_INDEX:
        return t == I32 || t == I64 ? NULL : wrong_type(v, t);
    case KI_SUM:
        return check_same(v, t, v->k->con.dtype);
    case KI_ACC:
        return check_accumulator(v, i);
    case KI_STORE:
    case KI_VAR:
    case KI_GET:
    case KI_FOLD:
        return check_same(v, t, type_of(v, i->a));
    case KI_INTO:
    case KI_SET: {
        const char *bad = check_same(v, type_of(v, i->a), type_of(v, i->b));
        return bad != NULL ? bad : check_same(v, t, type_of(v, i->b));
    }
    default:
        return NULL;
    }
}
