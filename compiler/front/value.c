/* Values: making, comparing, naming them. */
#include "value.h"

const Value value_poison = {.kind = VALUE_POISON};

static Value *make(Arena *a, ValueKind kind)
{
    Value *v = NEW(a, Value);
    v->kind = kind;
    return v;
}

const Value *value_int(Arena *a, int64_t i)
{
    Value *v = make(a, VALUE_INT);
    v->i = i;
    return v;
}

const Value *value_rows(Arena *a, int64_t i)
{
    Value *v = make(a, VALUE_INT);
    v->i = i;
    v->rows = true;
    return v;
}

const Value *value_float(Arena *a, double f)
{
    Value *v = make(a, VALUE_FLOAT);
    v->f = f;
    return v;
}

const Value *value_bool(Arena *a, bool b)
{
    Value *v = make(a, VALUE_BOOL);
    v->b = b;
    return v;
}

const Value *value_string(Arena *a, const char *s)
{
    Value *v = make(a, VALUE_STRING);
    v->s = s;
    return v;
}

const Value *value_dtype(Arena *a, DType t)
{
    Value *v = make(a, VALUE_DTYPE);
    v->dtype = t;
    return v;
}

/* Beyond the limits the depth and weight stay what they are: eval() reports them. */
static void weigh(Value *v)
{
    v->depth = 1;
    v->weight = 1;
    for (int i = 0; i < v->n; i++) {
        const Value *x = v->item[i];
        bool list = x->kind == VALUE_TUPLE || x->kind == VALUE_LIST;
        v->weight += list ? x->weight : 1;
        if (list && x->depth >= v->depth)
            v->depth = x->depth + 1;
        if (v->weight > MAX_LIST_WEIGHT)
            return;
    }
}

const Value *value_items(Arena *a, ValueKind kind, const Value *const *item, int n)
{
    const Value **copy = NEW_ARRAY(a, const Value *, n);
    for (int i = 0; i < n; i++) {
        if (item[i]->kind == VALUE_POISON)
            return &value_poison;
        copy[i] = item[i];
    }
    Value *v = make(a, kind);
    v->n = n;
    v->item = copy;
    weigh(v);
    return v;
}

const Value *value_ints(Arena *a, const int64_t *x, int n)
{
    const Value **item = NEW_ARRAY(a, const Value *, n);
    for (int i = 0; i < n; i++)
        item[i] = value_int(a, x[i]);
    Value *v = make(a, VALUE_LIST);
    v->n = n;
    v->item = item;
    weigh(v);
    return v;
}

const Value *value_init(Arena *a, InitKind kind, double x, double y)
{
    Value *v = make(a, VALUE_INIT);
    v->init.kind = kind;
    v->init.a = x;
    v->init.b = y;
    return v;
}

const Value *value_tensor(Arena *a, Graph *g, Ref r)
{
    if (r == NONE)
        return &value_poison;
    Value *v = make(a, VALUE_TENSOR);
    v->ref = r;
    v->graph = g;
    return v;
}

double value_number(const Value *v)
{
    return v->kind == VALUE_INT ? (double)v->i : v->f;
}

bool value_is_const(const Value *v)
{
    if (v->kind == VALUE_TENSOR || v->kind == VALUE_TABLE)
        return false;
    if (value_is_items(v))
        for (int i = 0; i < v->n; i++)
            if (!value_is_const(v->item[i]))
                return false;
    return true;
}

static bool items_equal(const Value *x, const Value *y)
{
    if (x->n != y->n)
        return false;
    for (int i = 0; i < x->n; i++)
        if (!value_equal(x->item[i], y->item[i]))
            return false;
    return true;
}

bool value_equal(const Value *x, const Value *y)
{
    if (value_is_items(x) && value_is_items(y))
        return items_equal(x, y);
    if (x->kind == VALUE_INT && y->kind == VALUE_INT)
        return x->i == y->i;
    if (value_is_number(x) && value_is_number(y))
        return value_number(x) == value_number(y);
    if (x->kind != y->kind)
        return false;
    switch (x->kind) {
    case VALUE_BOOL:
        return x->b == y->b;
    case VALUE_STRING:
        return x->s == y->s; /* interned */
    case VALUE_DTYPE:
        return x->dtype == y->dtype;
    default:
        return x == y;
    }
}

const char *value_kind_text(const Value *v)
{
    static const char *const text[] = {
        [VALUE_POISON] = "a mistake",      [VALUE_INT] = "an integer",
        [VALUE_FLOAT] = "a number",        [VALUE_BOOL] = "true or false",
        [VALUE_STRING] = "a string",       [VALUE_DTYPE] = "a type",
        [VALUE_TUPLE] = "a tuple",         [VALUE_LIST] = "a list",
        [VALUE_ALL_BUT] = "a set of axes", [VALUE_FILL] = "a tensor",
        [VALUE_INIT] = "an initialiser",   [VALUE_TABLE] = "a table of values",
        [VALUE_TENSOR] = "a tensor",
    };
    return text[v->kind];
}

enum { LONGEST_LIST = 8 };

static void put(Text *t, const Value *v);

static void put_items(Text *t, const Value *v)
{
    text_char(t, v->kind == VALUE_TUPLE ? '(' : '[');
    for (int i = 0; i < v->n && i < LONGEST_LIST; i++) {
        text_add(t, "%s", i > 0 ? ", " : "");
        put(t, v->item[i]);
    }
    text_add(t, "%s", v->n > LONGEST_LIST ? ", ..." : "");
    text_char(t, v->kind == VALUE_TUPLE ? ')' : ']');
}

static void put(Text *t, const Value *v)
{
    Type type;
    switch (v->kind) {
    case VALUE_INT:
        text_add(t, "%lld", (long long)v->i);
        break;
    case VALUE_FLOAT:
        text_double(t, v->f);
        break;
    case VALUE_BOOL:
        text_add(t, v->b ? "true" : "false");
        break;
    case VALUE_STRING:
        text_add(t, "\"%s\"", v->s);
        break;
    case VALUE_DTYPE:
        text_add(t, "%s", dtype_name(v->dtype));
        break;
    case VALUE_TUPLE:
    case VALUE_LIST:
        put_items(t, v);
        break;
    case VALUE_FILL:
        type = type_make(F32, v->fill.rank, v->fill.dim);
        text_add(t, "%s", type_text(t->arena, &type) + 3); /* the shape alone */
        break;
    case VALUE_TENSOR:
        text_add(t, "%s", type_text(t->arena, type_of(v->graph, v->ref)));
        break;
    default:
        text_add(t, "%s", value_kind_text(v));
        break;
    }
}

const char *value_text(Arena *a, const Value *v)
{
    Text t;
    text_init(&t, a);
    put(&t, v);
    return t.at;
}
