/* Functions and names that gradc knows: finding them, and their arguments. */
#include "eval.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *title;
    const Builtin *of;
} tables[] = {{"Sizes and lists", builtin_size_table},
              {"Views", builtin_shape_table},
              {"Values", builtin_value_table},
              {"Random numbers", builtin_draw_table}};
enum { N_TABLES = sizeof tables / sizeof *tables };

const Builtin *builtin_find(const char *name)
{
    for (int i = 0; i < N_TABLES; i++)
        for (const Builtin *f = tables[i].of; f->name != NULL; f++)
            if (strcmp(f->name, name) == 0)
                return f;
    return NULL;
}

int builtin_names(const char **out, int max)
{
    int n = 0;
    for (int i = 0; i < N_TABLES; i++)
        for (const Builtin *f = tables[i].of; f->name != NULL && n < max; f++)
            out[n++] = f->name;
    for (int i = OP_NONE + 1; i < N_OPS && n < max; i++)
        if (optab[i]->kind == OP_POINTWISE)
            out[n++] = optab[i]->name;
    return n;
}

const Value *builtin_name(Build *b, const char *name)
{
    DType t;
    if (strcmp(name, "training") == 0)
        return value_bool(&b->arena, b->training);
    if (dtype_find(name, &t))
        return value_dtype(&b->arena, t);
    if (b->in_init && strcmp(name, "zeros") == 0)
        return value_init(&b->arena, INIT_FILL, 0, 0);
    if (b->in_init && strcmp(name, "ones") == 0)
        return value_init(&b->arena, INIT_FILL, 1, 0);
    if (b->in_init && strcmp(name, "normal") == 0)
        return value_init(&b->arena, INIT_NORMAL, 0, 1);
    if (b->in_init && strcmp(name, "uniform") == 0)
        return value_init(&b->arena, INIT_UNIFORM, 0, 1);
    if (b->updating && strcmp(name, "step_number") == 0)
        return value_tensor(&b->arena, b->g, step_value(b));
    return NULL;
}

/* ---- arguments ----------------------------------------------------------- */

typedef struct Formal {
    char name[32];
    bool optional;
} Formal;

/* "x, axis?, keep?" */
static int read_head(const char *head, Formal *out)
{
    int n = 0;
    for (const char *p = head; *p != '\0' && n < MAX_CALL_ARGS; n++) {
        size_t length = strcspn(p, "?,");
        memcpy(out[n].name, p, length);
        out[n].name[length] = '\0';
        p += length;
        out[n].optional = *p == '?';
        p += strspn(p, "?, ");
    }
    return n;
}

static int formal_named(const Formal *f, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(f[i].name, name) == 0)
            return i;
    return -1;
}

static bool no_such_argument(Build *b, const Expr *e, const Arg *a, const Formal *f, int n)
{
    const char *known[MAX_CALL_ARGS];
    for (int i = 0; i < n; i++)
        known[i] = f[i].name;
    if (a->name.text == NULL) {
        complain(b, E0125, a->span, "`%s` takes %d argument%s, and this is one more",
                 e->call.name.text, n, n == 1 ? "" : "s");
        return false;
    }
    Diag *d = complain(b, E0125, a->name.span, "`%s` has no argument `%s`", e->call.name.text,
                       a->name.text);
    suggest(b, d, a->name.text, known, n);
    return false;
}

static bool any_number(Build *b, const Expr *e, CallArgs *c)
{
    for (int i = 0; i < e->call.args.n; i++) {
        const Arg *a = &e->call.args.at[i];
        if (a->name.text != NULL || i == MAX_CALL_ARGS)
            return no_such_argument(b, e, a, NULL, a->name.text == NULL ? MAX_CALL_ARGS : 0);
        c->value[i] = eval(b, a->value);
        c->at[i] = a->span;
        c->n++;
    }
    return true;
}

static bool place_args(Build *b, const Expr *e, const Formal *f, int n, CallArgs *c)
{
    for (int i = 0; i < e->call.args.n; i++) {
        const Arg *a = &e->call.args.at[i];
        int to = a->name.text == NULL ? i : formal_named(f, n, a->name.text);
        if (to < 0 || to >= n)
            return no_such_argument(b, e, a, f, n);
        if (c->value[to] != NULL) {
            Diag *d = complain(b, E0108, a->span, "the argument `%s` is given twice", f[to].name);
            diag_range(d, c->at[to]);
            bool lists = strcmp(c->name, "concat") == 0 || strcmp(c->name, "stack") == 0;
            if (lists && !value_is_items(c->value[0]))
                diag_help(b->cx, d, "several tensors are a list: `%s([x, y])`", c->name);
            return false;
        }
        c->value[to] = eval(b, a->value);
        c->at[to] = a->value->span;
    }
    return true;
}

bool bind_args(Build *b, const Expr *e, const char *head, CallArgs *c)
{
    Formal f[MAX_CALL_ARGS];
    *c = (CallArgs){.call = e, .name = e->call.name.text};
    if (e->call.path != NULL) {
        complain(b, E0304, e->call.path->span, "`%s` has no parameters to name", c->name);
        return false;
    }
    if (strcmp(head, "...") == 0)
        return any_number(b, e, c);
    int n = read_head(head, f);
    if (!place_args(b, e, f, n, c))
        return false;
    for (int i = 0; i < n; i++)
        if (c->value[i] == NULL && !f[i].optional) {
            complain(b, E0112, e->span, "`%s` is not given its argument `%s`", c->name, f[i].name);
            return false;
        }
    return true;
}

static bool poisoned(const CallArgs *c)
{
    for (int i = 0; i < MAX_CALL_ARGS; i++)
        if (c->value[i] != NULL && c->value[i]->kind == VALUE_POISON)
            return true;
    return false;
}

/* First values have their parameter's shape and type. */
static const char *head_of(const Build *b, const Builtin *f)
{
    if (b->in_init && strcmp(f->name, "uniform") == 0)
        return "low?, high?";
    if (b->in_init && strcmp(f->name, "normal") == 0)
        return "mean?, std?";
    return f->head;
}

const Value *builtin_call(Build *b, const Builtin *f, const Expr *e)
{
    CallArgs c;
    if (!bind_args(b, e, head_of(b, f), &c) || poisoned(&c))
        return &value_poison;
    return f->call(b, &c);
}

/* ---- ops by name: relu(x), pow(x, y) ------------------------------------- */

static const char *op_head(OpId op)
{
    return optab[op]->n_args == 1 ? "x" : optab[op]->n_args == 2 ? "x, y" : "x, y, z";
}

static const Value *fold_op(Build *b, OpId op, const CallArgs *c)
{
    double y, x = value_number(c->value[0]);
    bool to_whole = op == OP_floor || op == OP_ceil || op == OP_round;
    if (c->value[0]->kind == VALUE_INT && (to_whole || (op == OP_relu && c->value[0]->i >= 0)))
        return c->value[0];
    if (to_whole) {
        y = op == OP_floor ? floor(x) : op == OP_ceil ? ceil(x) : nearbyint(x);
        if (y >= -9e18 && y <= 9e18)
            return value_int(&b->arena, (int64_t)y);
    }
    if (op == OP_abs && c->value[0]->kind == VALUE_INT && c->value[0]->i > INT64_MIN)
        return value_int(&b->arena, c->value[0]->i < 0 ? -c->value[0]->i : c->value[0]->i);
    if (!fold_unary(op, x, &y)) {
        complain(b, E0209, c->at[0], "`%s` takes a tensor, and this is %s", c->name,
                 value_kind_text(c->value[0]));
        return &value_poison;
    }
    bool to_infinity = x == 0 && (op == OP_log || op == OP_rsqrt);
    return fold_result(b, y, isfinite(x) && !to_infinity, c->at[0]);
}

const Value *op_call(Build *b, OpId op, const Expr *e)
{
    CallArgs c;
    if (!bind_args(b, e, op_head(op), &c) || poisoned(&c))
        return &value_poison;
    int n = optab[op]->n_args;
    if (n == 1 && value_is_number(c.value[0]))
        return fold_op(b, op, &c);
    DType t = F32;
    Ref x[3];
    if (!unify(b, c.value, c.at, n, -1, &t, x, c.name, e->span))
        return &value_poison;
    at(b, e->span);
    return made(b, n == 2 ? g_binary(b->g, op, x[0], x[1]) : g_node(b->g, op, x, n, NULL));
}

/* ---- grammar/functions.md ------------------------------------------------ */

static void manual_entry(Text *to, const Builtin *f)
{
    text_add(to, "| `%s(%s)` | %s | `%s` |\n", f->name, f->head, f->doc, f->example);
}

/* Ops that are called by their names: an operand, an element of the result. */
static void manual_pointwise(Text *to)
{
    text_add(to, "\n## Element by element\n\n| function | |\n| --- | --- |\n");
    for (int i = OP_NONE + 1; i < N_OPS; i++) {
        const Op *op = optab[i];
        bool named = op->kind == OP_POINTWISE && builtin_find(op->name) == NULL;
        if (named && (op->infix == NULL || i == OP_pow))
            text_add(to, "| `%s(%s)` | %s |\n", op->name, op_head((OpId)i), op->doc);
    }
}

void functions_manual(Text *to)
{
    text_add(
        to,
        "# Functions\n\n"
        "What a model can call without `use`, printed from the tables in `compiler/front/`; a\n"
        "test compiles every example, with `x : f32[2,3,4]` and `i : i32[2,3]`, and fails when\n"
        "this page is stale. Arguments with `?` may be left out. Besides these there are the\n"
        "functions of `compiler/lib/prelude.model`, written in the language.\n");
    for (int i = 0; i < N_TABLES; i++) {
        text_add(to, "\n## %s\n\n| function | | example |\n| --- | --- | --- |\n", tables[i].title);
        for (const Builtin *f = tables[i].of; f->name != NULL; f++)
            manual_entry(to, f);
    }
    manual_pointwise(to);
}
