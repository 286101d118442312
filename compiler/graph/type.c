/* Types: sizes, equality, text. */
#include <string.h>
#include "graph.h"

enum { MAX_DIM_LOG2 = 40, MAX_BYTES_LOG2 = 47 };

Type type_make(DType t, int rank, const int64_t *dim)
{
    Type type = {.dtype = t, .rank = rank};
    for (int i = 0; i < rank && i < MAX_RANK; i++)
        type.dim[i] = dim[i];
    return type;
}

Type type_scalar(DType t)
{
    return type_make(t, 0, NULL);
}

/* How many entries of dim count. */
static int n_dims(const Type *t)
{
    return t->rank < 0 ? 1 : t->rank;
}

bool type_same(const Type *x, const Type *y)
{
    if (x->dtype != y->dtype || x->rank != y->rank)
        return false;
    for (int i = 0; i < n_dims(x); i++)
        if (x->dim[i] != y->dim[i])
            return false;
    return true;
}

int64_t type_elems(const Type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

static int64_t elems_of_axes(const Type *t, int from, int to)
{
    int64_t n = 1;
    for (int a = from; a < to; a++)
        n *= t->dim[a];
    return n;
}

int64_t type_elems_before(const Type *t, int axis)
{
    return elems_of_axes(t, 0, axis);
}

int64_t type_elems_behind(const Type *t, int axis)
{
    return elems_of_axes(t, axis + 1, t->rank);
}

int64_t type_bytes(const Type *t)
{
    return type_elems(t) * dtype_bytes(t->dtype);
}

bool type_fits(const Type *t)
{
    if (t->rank > MAX_RANK)
        return false;
    /* The product of the extents that are not 0, so that a 0 hides no overflow. */
    int64_t bytes = dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++) {
        int64_t d = t->dim[i];
        if (d < 0 || d > (int64_t)1 << MAX_DIM_LOG2)
            return false;
        if (d > 0 && (!mul_size(bytes, d, &bytes) || bytes > (int64_t)1 << MAX_BYTES_LOG2))
            return false;
    }
    return true;
}

const char *type_text(Arena *a, const Type *t)
{
    Text s;
    text_init(&s, a);
    if (t->rank < 0) {
        text_add(&s, "tuple of %lld", (long long)t->dim[0]);
        return s.at;
    }
    text_add(&s, "%s", dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        text_add(&s, "%s%lld", i == 0 ? "[" : ",", (long long)t->dim[i]);
    if (t->rank > 0)
        text_char(&s, ']');
    return s.at;
}
