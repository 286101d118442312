/* Expressions: what each stands for. */
#include "eval.h"

#include <string.h>

static const Value *eval_number(Build *b, const Expr *e)
{
    if (e->number.is_integer)
        return value_int(&b->arena, e->number.integer);
    Value *v = NEW(&b->arena, Value);
    v->kind = VALUE_FLOAT;
    v->f = e->number.value;
    v->text = e->number.text;
    return v;
}

static const Value *eval_items(Build *b, const Expr *e)
{
    ArenaMark mark = arena_mark(&b->cx->scratch);
    const Value **item = NEW_ARRAY(&b->cx->scratch, const Value *, e->items.n);
    for (int i = 0; i < e->items.n; i++)
        item[i] = eval(b, e->items.at[i]);
    ValueKind kind = e->kind == EXPR_TUPLE ? VALUE_TUPLE : VALUE_LIST;
    const Value *v = value_items(&b->arena, kind, item, e->items.n);
    arena_reset(&b->cx->scratch, mark);
    return v;
}

/* The argument in the user's file that a name of the library stands for. */
static Span given_span(Build *b, const Expr *e)
{
    if (e->kind != EXPR_NAME || e->name.module.text != NULL || !b->frame->module->library)
        return e->span;
    const Binding *found = scope_find(b, e->name.name.text);
    if (found == NULL || found->kind != BIND_ARG || found->given.file < 0)
        return e->span;
    return found->given;
}

static const Value *eval_unary(Build *b, const Expr *e)
{
    const Value *v = eval(b, e->op.right);
    Spans s = {.whole = e->span, .op = e->op.at, .right = given_span(b, e->op.right)};
    return arith_unary(b, e->op.op, v, &s);
}

static const Value *eval_binary(Build *b, const Expr *e)
{
    Operator op = e->op.op;
    const Value *l = eval(b, e->op.left);
    bool decided =
        l->kind == VALUE_BOOL && ((op == OPERATOR_AND && !l->b) || (op == OPERATOR_OR && l->b));
    if (decided) /* the right side may make no sense then */
        return l;
    const Value *r = eval(b, e->op.right);
    Spans s = {e->span, e->op.at, given_span(b, e->op.left), given_span(b, e->op.right)};
    return arith_binary(b, op, l, r, &s);
}

static const Value *eval_any(Build *b, const Expr *e)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        return eval_number(b, e);
    case EXPR_STRING:
        return value_string(&b->arena, e->string);
    case EXPR_BOOL:
        return value_bool(&b->arena, e->boolean);
    case EXPR_NAME:
        return lookup(b, e);
    case EXPR_UNARY:
        return eval_unary(b, e);
    case EXPR_BINARY:
        return eval_binary(b, e);
    case EXPR_CALL:
        return eval_call(b, e);
    case EXPR_INDEX:
        return eval_subscript(b, e);
    case EXPR_TUPLE:
    case EXPR_LIST:
        return eval_items(b, e);
    case EXPR_SCAN:
        return eval_scan(b, e);
    }
    return &value_poison;
}

static bool list_fits(Build *b, const Value *v, Span span)
{
    if (!value_is_items(v) || (v->depth <= MAX_LIST_DEPTH && v->weight <= MAX_LIST_WEIGHT))
        return true;
    if (v->depth > MAX_LIST_DEPTH)
        complain(b, E0901, span, "lists are nested at most %d deep", MAX_LIST_DEPTH);
    else
        complain(b, E0912, span, "a list holds at most %d values", MAX_LIST_WEIGHT);
    b->stop = true;
    return false;
}

const Value *eval(Build *b, const Expr *e)
{
    b->steps++;
    if (too_large(b, e->span))
        return &value_poison;
    if (b->depth >= MAX_EVAL_DEPTH) {
        complain(b, E0901, e->span,
                 "nested too deep: more than %d calls and operators inside of "
                 "one another",
                 MAX_EVAL_DEPTH);
        b->stop = true;
        return &value_poison;
    }
    b->depth++;
    const Value *v = eval_any(b, e);
    b->depth--;
    return list_fits(b, v, e->span) ? v : &value_poison;
}
