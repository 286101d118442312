/* Shape rules that several ops share, and what every rule is checked for. */
#include <math.h>
#include <string.h>
#include "op.h"

const Type *shape_arg(const Shape *s, int i)
{
    return type_of(s->g, s->args[i]);
}

const char *shape_text(const Shape *s, int i)
{
    return type_text(&s->g->cx->perm, shape_arg(s, i));
}

const Attr *shape_attr(const Shape *s, const char *name)
{
    return &s->attr[op_attr(s->op, name)];
}

bool shape_error(Shape *s, Code code, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    s->problem = arena_vprintf(&s->g->cx->perm, format, ap);
    va_end(ap);
    s->code = code;
    return false;
}

bool shape_same(Shape *s)
{
    for (int i = 1; i < s->n_args; i++)
        if (!type_same(shape_arg(s, 0), shape_arg(s, i)))
            return shape_error(s, E0220, "operands of `%s` are %s and %s", op_word(s->op),
                               shape_text(s, 0), shape_text(s, i));
    s->type = *shape_arg(s, 0);
    if (s->type.rank < 0)
        return shape_error(s, E0221, "`%s` takes no tuple", op_word(s->op));
    return true;
}

bool shape_float(Shape *s, int i)
{
    if (shape_arg(s, i)->rank >= 0 && dtype_is_float(shape_arg(s, i)->dtype))
        return true;
    return shape_error(s, E0221, "`%s` takes floats, and this is %s", op_word(s->op),
                       shape_text(s, i));
}

bool shape_same_float(Shape *s)
{
    return shape_same(s) && shape_float(s, 0);
}

bool shape_compare(Shape *s)
{
    if (!shape_same(s))
        return false;
    s->type.dtype = BOOL;
    return true;
}

static bool limits(Shape *s)
{
    if (s->type.rank <= MAX_RANK && type_fits(&s->type))
        return true;
    for (int i = 0; i < s->type.rank && i < MAX_RANK; i++)
        if (s->type.dim[i] < 0)
            return shape_error(s, E0223, "`%s` would have the size %lld", op_word(s->op),
                               (long long)s->type.dim[i]);
    if (s->type.rank > MAX_RANK)
        return shape_error(s, E0910, "`%s` would have %d axes, more than %d", op_word(s->op),
                           s->type.rank, MAX_RANK);
    return shape_error(s, E0911, "%s is more than 128 TiB, or has an axis of more than 2^40",
                       type_text(&s->g->cx->perm, &s->type));
}

bool shape_declared(Shape *s)
{
    const Attr *shape = shape_attr(s, "shape");
    if (shape->n > MAX_RANK) {
        s->type.rank = shape->n;
        return limits(s);
    }
    s->type = type_make((DType)shape_attr(s, "dtype")->i, shape->n, shape->ints);
    return true;
}

bool shape_axis(Shape *s, const char *attr_name, int n_axes)
{
    int64_t axis = shape_attr(s, attr_name)->i;
    if (axis >= 0 && axis < n_axes)
        return true;
    return shape_error(s, E0222, "%s has no axis %lld", shape_text(s, 0), (long long)axis);
}

bool shape_value(Shape *s, const char *attr_name)
{
    static const double least[N_DTYPES] = {[I32] = INT32_MIN, [I64] = -0x1p63};
    static const double end[N_DTYPES] = {[I32] = 0x1p31, [I64] = 0x1p63, [U8] = 256, [BOOL] = 2};
    DType t = s->type.dtype;
    double x = shape_attr(s, attr_name)->f;
    if (dtype_is_float(t) || (x >= least[t] && x < end[t] && x == floor(x)))
        return true;
    return shape_error(s, E0221, "the %s %g of `%s` is no %s", attr_name, x, op_word(s->op),
                       dtype_name(t));
}

bool shape_infer(Shape *s)
{
    if (s->op->n_args >= 0 && s->n_args != s->op->n_args)
        return shape_error(s, E0223, "`%s` takes %d operands, not %d", op_word(s->op),
                           s->op->n_args, s->n_args);
    return s->op->shape(s) && limits(s);
}
