/* What an expression of the language stands for while a graph is built. */
#ifndef GRADC_FRONT_VALUE_H
#define GRADC_FRONT_VALUE_H

#include "graph/graph.h"

typedef enum ValueKind {
    VALUE_POISON, /* a mistake was reported: whoever meets it is silent */
    VALUE_INT,    /* constants have no dtype until they meet a tensor */
    VALUE_FLOAT,
    VALUE_BOOL,
    VALUE_STRING,
    VALUE_DTYPE,
    VALUE_TUPLE,
    VALUE_LIST,
    VALUE_ALL_BUT, /* axes: all but the items */
    VALUE_FILL,    /* a number with a shape, but no dtype yet: zeros([2, 3]) */
    VALUE_INIT,    /* first values without a shape: normal(std = 0.02) */
    VALUE_TABLE,   /* name[i] = ...: values by constant index */
    VALUE_TENSOR
} ValueKind;

typedef enum InitKind {
    INIT_FILL,    /* a */
    INIT_UNIFORM, /* from a to b */
    INIT_NORMAL,  /* mean a, deviation b */
    INIT_LITERAL  /* items, nested */
} InitKind;

typedef struct Value Value;
typedef struct Table Table;

struct Value {
    ValueKind kind;
    union {
        struct {
            int64_t i;
            bool rows; /* it is how many rows a batch has: those of a short one are fewer */
        };
        bool b;
        const char *s;
        DType dtype;
        struct {
            double f;
            const char *text; /* as written, to be rounded once; NULL: computed */
        };
        struct { /* TUPLE, LIST, ALL_BUT */
            int n;
            int depth;      /* lists inside of one another */
            int64_t weight; /* values in it, lists counted too */
            const Value *const *item;
        };
        struct { /* FILL */
            const Value *number;
            int rank;
            const int64_t *dim;
        } fill;
        struct { /* INIT */
            InitKind kind;
            double a, b;
        } init;
        Table *table;
        struct { /* TENSOR */
            Ref ref;
            Graph *graph; /* that ref is of */
        };
    };
};

extern const Value value_poison;

const Value *value_int(Arena *a, int64_t i);
const Value *value_rows(Arena *a, int64_t i);
const Value *value_float(Arena *a, double f);
const Value *value_bool(Arena *a, bool b);
const Value *value_string(Arena *a, const char *s);
const Value *value_dtype(Arena *a, DType t);
const Value *value_items(Arena *a, ValueKind kind, const Value *const *item, int n);
const Value *value_ints(Arena *a, const int64_t *x, int n);
const Value *value_init(Arena *a, InitKind kind, double x, double y);
const Value *value_tensor(Arena *a, Graph *g, Ref r);

enum { MAX_LIST_DEPTH = 64, MAX_LIST_WEIGHT = 1000000 };

static inline bool value_is_items(const Value *v)
{
    return v->kind == VALUE_TUPLE || v->kind == VALUE_LIST;
}
static inline bool value_is_number(const Value *v)
{
    return v->kind == VALUE_INT || v->kind == VALUE_FLOAT;
}
/* A number as a double. */
double value_number(const Value *v);
/* Known when the model is compiled: no tensor in it. */
bool value_is_const(const Value *v);
/* Constants that are the same. */
bool value_equal(const Value *x, const Value *y);
/* "f32[64,128]", "3", "a list of 2": for messages. */
const char *value_text(Arena *a, const Value *v);
/* "a tensor", "an integer": what kind of thing it is. */
const char *value_kind_text(const Value *v);

#endif
