/* Scalar instructions as CUDA C++. Each gives the bits of interp_alu.c. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "../../kernel/ktext.h"
#include "cuda.h"

/* ---- lines -------------------------------------------------------------------------- */

static void line(Printer *p, const char *format, va_list ap, const char *end)
{
    text_add(p->to, "%*s%s%s\n", 4 * p->depth, "", arena_vprintf(p->arena, format, ap), end);
}

void cu_line(Printer *p, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    line(p, format, ap, "");
    va_end(ap);
}

void cu_open(Printer *p, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    line(p, format, ap, " {");
    va_end(ap);
    p->depth++;
}

void cu_close(Printer *p)
{
    p->depth--;
    cu_line(p, "}");
}

const char *cu_printf(Printer *p, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const char *s = arena_vprintf(p->arena, format, ap);
    va_end(ap);
    return s;
}

/* Loops and DIMs by letter, as in the text of kernels; other values by number. */
Printer cu_printer(Text *to, Arena *arena, const Kernel *k, Math *math)
{
    Printer p = {.to = to, .arena = arena, .k = k, .math = math, .wide = cu_needs_wide(k)};
    p.name = NEW_ARRAY(arena, const char *, k->inst.n);
    int order = 0;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        if (!cu_is_loop(k, v) && k->inst.at[v].op != KI_DIM) {
            p.name[v] = arena_printf(arena, "v%u", v);
            continue;
        }
        char letter = (char)('i' + order % KTEXT_LETTERS);
        p.name[v] = order < KTEXT_LETTERS
                        ? arena_printf(arena, "%c", letter)
                        : arena_printf(arena, "%c%d", letter, order / KTEXT_LETTERS);
        order++;
    }
    return p;
}

/* ---- types and literals ---------------------------------------------------------------- */

const char *cu_type(DType t)
{
    static const char *const name[] = {"float", "double", "float", "float",
                                       "int",   "i64",    "u8",    "bool"};
    return name[t];
}

const char *cu_memory_type(DType t)
{
    static const char *const name[] = {"float", "double", "u16", "u16", "int", "i64", "u8", "u8"};
    return name[t];
}

static const char *float_literal(Printer *p, DType t, double x)
{
    const char *suffix = t == F64 ? "" : "f";
    if (isnan(x))
        return t == F64 ? "(double)NO_NUMBER" : "NO_NUMBER";
    if (isinf(x))
        return cu_printf(p, "%s%sINFINITE", x < 0 ? "-" : "", t == F64 ? "(double)" : "");
    Text s;
    text_init(&s, p->arena);
    if (t == F64)
        text_double(&s, x);
    else
        text_float(&s, (float)x);
    bool whole = strpbrk(s.at, ".e") == NULL;
    return cu_printf(p, "%s%s%s", s.at, whole ? ".0" : "", suffix);
}

const char *cu_integer(Printer *p, DType t, int64_t x)
{
    switch (t) {
    case BOOL:
        return x != 0 ? "true" : "false";
    case U8:
        return cu_printf(p, "(u8)%d", (int)x);
    case I32:
        return x == INT32_MIN ? "(-2147483647 - 1)" : cu_printf(p, "%d", (int)x);
    default:
        return x == INT64_MIN ? "(-9223372036854775807ll - 1)"
                              : cu_printf(p, "%lldll", (long long)x);
    }
}

const char *cu_literal(Printer *p, DType t, double x)
{
    return dtype_is_float(t) ? float_literal(p, t, x) : cu_integer(p, t, (int64_t)x);
}

const char *cu_operand(Printer *p, Val v)
{
    const KInst *i = &p->k->inst.at[v];
    if (i->op != KI_CONST)
        return p->name[v];
    DType t = (DType)i->dtype;
    return dtype_is_float(t) ? float_literal(p, t, i->imm.f) : cu_integer(p, t, i->imm.i);
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

static DType type_of(const Printer *p, Val v)
{
    return (DType)p->k->inst.at[v].dtype;
}

static const char *comparison(KOp op)
{
    return op == KI_EQ ? "==" : op == KI_NE ? "!=" : op == KI_LT ? "<" : "<=";
}

/* The nearest value of a half type. */
static const char *rounded(Printer *p, DType t, const char *x)
{
    return dtype_is_half(t) ? cu_printf(p, "%s_round(%s)", dtype_name(t), x) : x;
}

static const char *float_op(Printer *p, KOp op, DType t, const char *const x[3])
{
    const char *f = t == F64 ? "" : "f";
    switch (op) {
    case KI_ADD:
        return cu_printf(p, "%s + %s", x[0], x[1]);
    case KI_SUB:
        return cu_printf(p, "%s - %s", x[0], x[1]);
    case KI_MUL:
        return cu_printf(p, "%s * %s", x[0], x[1]);
    case KI_DIV:
        return cu_printf(p, "%s / %s", x[0], x[1]);
    case KI_MIN:
        return cu_printf(p, "%s < %s ? %s : %s", x[0], x[1], x[0], x[1]);
    case KI_MAX:
        return cu_printf(p, "%s > %s ? %s : %s", x[0], x[1], x[0], x[1]);
    case KI_FMA:
        return cu_printf(p, "fma%s(%s, %s, %s)", f, x[0], x[1], x[2]);
    case KI_NEG:
        return cu_printf(p, "-(%s)", x[0]);
    case KI_ABS:
        return cu_printf(p, "fabs%s(%s)", f, x[0]);
    case KI_SQRT:
        return cu_printf(p, "sqrt%s(%s)", f, x[0]);
    case KI_FLOOR:
        return cu_printf(p, "floor%s(%s)", f, x[0]);
    case KI_RINT:
        return cu_printf(p, "rint%s(%s)", f, x[0]);
    case KI_POW:
        return cu_printf(p, "%s(%s, %s)", cu_math(p->math, op, t == F64 ? F64 : F32), x[0], x[1]);
    default:
        assert(kop_class(op) == K_CLASS_MATH && op != KI_RANDOM);
        return cu_printf(p, "%s(%s)", cu_math(p->math, op, t == F64 ? F64 : F32), x[0]);
    }
}

/* What the functions of prelude.cuh are called. */
static const char *int_function(KOp op)
{
    switch (op) {
    case KI_ADD:
        return "add";
    case KI_SUB:
        return "sub";
    case KI_MUL:
        return "mul";
    case KI_DIV:
        return "quotient";
    case KI_REM:
        return "remains";
    case KI_SHL:
        return "shift_left";
    case KI_SHR:
        return "shift_right";
    case KI_SAR:
        return "shift_signed";
    default:
        assert(op == KI_MULHI);
        return "mulhi";
    }
}

static const char *int_op(Printer *p, KOp op, DType t, const char *const x[3])
{
    switch (op) {
    case KI_MIN:
        return cu_printf(p, "%s < %s ? %s : %s", x[0], x[1], x[0], x[1]);
    case KI_MAX:
        return cu_printf(p, "%s > %s ? %s : %s", x[0], x[1], x[0], x[1]);
    case KI_NEG:
        return cu_printf(p, "sub(%s, %s)", cu_integer(p, t, 0), x[0]);
    case KI_ABS:
        return cu_printf(p, "absolute(%s)", x[0]);
    case KI_AND:
        return cu_printf(p, "%s & %s", x[0], x[1]);
    case KI_OR:
        return cu_printf(p, "%s | %s", x[0], x[1]);
    case KI_XOR:
        return cu_printf(p, "%s ^ %s", x[0], x[1]);
    default:
        return cu_printf(p, "%s(%s, %s)", int_function(op), x[0], x[1]);
    }
}

/* ---- conversions
 * --------------------------------------------------------------------------------- */

static const char *cast(Printer *p, DType from, DType t, const char *x)
{
    if (from == t)
        return x;
    if (dtype_is_float(t)) {
        if (from != F64 && t != F64 && dtype_is_float(from))
            return rounded(p, t, x);
        if (t == F64)
            return cu_printf(p, "(double)(%s)", x);
        return rounded(p, t, cu_printf(p, "(float)(%s)", x));
    }
    if (t == BOOL) /* NaN differs from 0 */
        return cu_printf(p, "%s != 0", x);
    if (!dtype_is_float(from))
        return cu_printf(p, "(%s)(%s)", cu_type(t), x);
    return cu_printf(p, "to_%s(%s)", dtype_name(t), x);
}

static const char *bitcast(Printer *p, DType from, const char *x)
{
    switch (from) {
    case F32:
        return cu_printf(p, "__float_as_int(%s)", x);
    case I32:
        return cu_printf(p, "__int_as_float(%s)", x);
    case F64:
        return cu_printf(p, "__double_as_longlong(%s)", x);
    default:
        return cu_printf(p, "__longlong_as_double(%s)", x);
    }
}

/* ---- all of them
 * ------------------------------------------------------------------------------------ */

static const char *alu(Printer *p, KOp op, DType from, DType t, const char *const x[3])
{
    switch (op) {
    case KI_SELECT:
        return cu_printf(p, "%s ? %s : %s", x[0], x[1], x[2]);
    case KI_CAST:
        return cast(p, from, t, x[0]);
    case KI_BITCAST:
        return bitcast(p, from, x[0]);
    case KI_EQ:
    case KI_NE:
    case KI_LT:
    case KI_LE:
        return cu_printf(p, "%s %s %s", x[0], comparison(op), x[1]);
    case KI_RANDOM:
        return cu_printf(p, "%s(%s, %s, %s)", cu_math(p->math, op, I32), x[0], x[1], x[2]);
    default:
        break;
    }
    if (!dtype_is_float(t))
        return int_op(p, op, t, x);
    bool exact = op == KI_MIN || op == KI_MAX || op == KI_NEG || op == KI_ABS;
    const char *r = float_op(p, op, t, x);
    return exact ? r : rounded(p, t, r);
}

const char *cu_expression(Printer *p, Val v)
{
    const KInst *i = &p->k->inst.at[v];
    if (i->op == KI_LOAD)
        return cu_load(p, i->aux);
    if (i->op == KI_INDEX)
        return cu_printf(p, "(%s)(%s)", cu_type((DType)i->dtype),
                         cu_affine(p, &p->k->affine.at[i->aux]));
    const Val arg[] = {i->a, i->b, i->c};
    const char *x[3] = {NULL, NULL, NULL};
    for (int n = 0; n < kop_args((KOp)i->op); n++)
        x[n] = cu_operand(p, arg[n]);
    return alu(p, (KOp)i->op, type_of(p, i->a), (DType)i->dtype, x);
}

/* ---- accumulators
 * -------------------------------------------------------------------------------------- */

const char *cu_combine(Printer *p, KOp op, DType t, const char *x, const char *y)
{
    const char *const arg[3] = {x, y, NULL};
    return alu(p, op, t, t, arg);
}

const char *cu_identity(Printer *p, KOp op, DType t)
{
    if (dtype_is_float(t))
        return float_literal(p, t,
                             op == KI_MUL   ? 1
                             : op == KI_MIN ? INFINITY
                             : op == KI_MAX ? -INFINITY
                                            : 0);
    int64_t lowest = t == I32 ? INT32_MIN : t == I64 ? INT64_MIN : 0;
    int64_t highest = t == I32 ? INT32_MAX : t == I64 ? INT64_MAX : t == U8 ? 255 : 1;
    int64_t x = op == KI_MIN ? highest : op == KI_MAX ? lowest : op == KI_MUL || op == KI_AND;
    return cu_integer(p, t, x);
}

const char *cu_combiner(KOp op)
{
    switch (op) {
    case KI_MUL:
        return "Mul";
    case KI_MIN:
        return "Min";
    case KI_MAX:
        return "Max";
    case KI_AND:
        return "And";
    case KI_OR:
        return "Or";
    default:
        return "Add";
    }
}
