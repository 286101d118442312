/* The syntax tree of a .model file, as it was written: names are not resolved and
 * nothing is evaluated. Nodes are plain tagged structs that live in cx->perm; text
 * is interned, so names compare by pointer. Every node has the Span it was read
 * from. The language: grammar/language.md. */
#ifndef GRADC_FRONT_AST_H
#define GRADC_FRONT_AST_H

#include "base/diag.h"

typedef struct Expr Expr;
typedef struct Stmt Stmt;

/* text NULL: there is none. */
typedef struct Name {
    const char *text;
    Span span;
} Name;

typedef VEC(Name) Names;
typedef VEC(Expr *) Exprs;
typedef VEC(Stmt *) Stmts;

/* `value` or `name = value`. In a definition's head: `name` or `name = default`
 * (value NULL: it must be given). In `output`: `name` (value NULL) or both. */
typedef struct Arg {
    Name name;
    Expr *value;
    Span span;
} Arg;
typedef VEC(Arg) Args;

/* `{ … }`; the span has the braces. */
typedef struct Body {
    Stmts stmt;
    Span span;
} Body;

/* ---- expressions --------------------------------------------------------- */

typedef enum ExprKind {
    EXPR_NUMBER,
    EXPR_STRING,
    EXPR_BOOL,
    EXPR_NAME,
    EXPR_UNARY,
    EXPR_BINARY,
    EXPR_CALL,
    EXPR_INDEX,
    EXPR_TUPLE, /* (a, b), or a, b without parentheses on the right of a binding */
    EXPR_LIST,
    EXPR_SCAN
} ExprKind;

/* id, spelling, and how tightly it binds: grammar/language.md, "Operators". */
#define FOR_EACH_OPERATOR(X)                                                                       \
    X(OR, "or", 1)                                                                                 \
    X(AND, "and", 2)                                                                               \
    X(NOT, "not", 3)                                                                               \
    X(EQ, "==", 4)                                                                                 \
    X(NE, "!=", 4)                                                                                 \
    X(LT, "<", 4)                                                                                  \
    X(LE, "<=", 4)                                                                                 \
    X(GT, ">", 4)                                                                                  \
    X(GE, ">=", 4)                                                                                 \
    X(ADD, "+", 5)                                                                                 \
    X(SUB, "-", 5)                                                                                 \
    X(MUL, "*", 6)                                                                                 \
    X(DIV, "/", 6)                                                                                 \
    X(FLOORDIV, "//", 6)                                                                           \
    X(MOD, "%", 6)                                                                                 \
    X(MATMUL, "@", 6)                                                                              \
    X(NEG, "-", 7)                                                                                 \
    X(POS, "+", 7)                                                                                 \
    X(POW, "^", 8)

typedef enum Operator {
#define X(id, spelling, precedence) OPERATOR_##id,
    FOR_EACH_OPERATOR(X)
#undef X
        N_OPERATORS
} Operator;

const char *operator_spelling(Operator op);
int operator_precedence(Operator op);

/* What a call's parameters are named by: `as conv1`, `as h[i]`, `share h[i]`. */
typedef struct Path {
    Name name;
    Exprs index; /* constants */
    bool share;
    Span span;
} Path;

typedef enum SubscriptKind { SUBSCRIPT_AT, SUBSCRIPT_SLICE, SUBSCRIPT_ELLIPSIS } SubscriptKind;

typedef struct Subscript {
    SubscriptKind kind;
    Expr *at;               /* AT */
    Expr *from, *to, *step; /* SLICE: NULL where left out */
    Span span;
} Subscript;
typedef VEC(Subscript) Subscripts;

struct Expr {
    ExprKind kind;
    bool parens;   /* written with (redundant or needed) parentheses around it */
    int16_t depth; /* height of this tree, at most MAX_EXPR_DEPTH */
    Span span;
    union {
        struct {
            const char *text; /* "1e-3": round it once, to the dtype that is wanted */
            double value;
            int64_t integer; /* if is_integer, the suffix counted in */
            bool is_integer;
        } number;
        const char *string;
        bool boolean;
        struct {
            Name module; /* `nn` of nn.linear */
            Name name;
        } name;
        struct {
            Operator op;
            Span at;
            Expr *left; /* NULL for a unary one */
            Expr *right;
        } op;
        struct {
            Name module, name;
            Args args;
            Path *path; /* NULL: neither `as` nor `share` */
        } call;
        struct {
            Expr *base;
            Subscripts subscript;
        } index;
        Exprs items; /* TUPLE, LIST */
        struct {
            Names item; /* the elements of one step */
            Expr *over; /* a value, a tuple of values, or a range with `to` */
            Expr *to;
            Args init; /* `axis = 1`, and the carried names with their first values */
            Body body;
        } scan;
    };
};

/* `f32`, `f32[64, n]`, `type(x)`, `type(x)[n]`. */
typedef struct TypeExpr {
    Name dtype; /* or */
    Expr *of;   /* the x of type(x) */
    bool has_dims;
    Exprs dim;
    Span span;
} TypeExpr;

/* ---- statements ---------------------------------------------------------- */

typedef enum StmtKind {
    STMT_CONST,
    STMT_BIND,
    STMT_UPDATE,
    STMT_INPUT,
    STMT_PARAM,
    STMT_STATE,
    STMT_FOR,
    STMT_IF,
    STMT_BUDGET,
    STMT_LOSS,
    STMT_OUTPUT,
    STMT_METRIC,
    STMT_RETURN,
    STMT_EMIT
} StmtKind;

/* `x` or `skip[i]` on the left of a binding. */
typedef struct LeftSide {
    Name name;
    Exprs index;
    Span span;
} LeftSide;
typedef VEC(LeftSide) LeftSides;

/* One arm of an `if`; condition NULL: `else`. */
typedef struct Arm {
    Expr *condition;
    Body body;
    Span span;
} Arm;
typedef VEC(Arm) Arms;

struct Stmt {
    StmtKind kind;
    Span span;
    const char *doc; /* the comment above, or NULL */
    union {
        struct {
            Memory memory;
            LeftSides target;
            Expr *value;
        } bind;
        struct {
            Name name;
            Expr *value;
        } named; /* CONST, UPDATE, METRIC */
        struct {
            Names name;
            TypeExpr type;
            Expr *init;       /* PARAM, STATE: or NULL */
            Expr *low, *high; /* INPUT `in low..high`: or NULL */
            bool with_grad;   /* INPUT */
        } declare;
        struct {
            Names item;
            Expr *over; /* a list, or the start of a range with `to` */
            Expr *to;
            Body body;
        } loop;
        Arms arm;
        struct {
            Expr *bytes;
            Body body;
        } budget;
        Args output;
        Expr *loss;
        Exprs values; /* RETURN, EMIT */
    };
};

/* ---- files --------------------------------------------------------------- */

typedef enum ItemKind {
    ITEM_USE,
    ITEM_CONST,
    ITEM_MODEL,
    ITEM_FN,
    ITEM_BLOCK,
    ITEM_TRAIN
} ItemKind;

/* `optimizer adamw(...)`, `freeze "enc.*", "dec.*"` */
typedef struct Setting {
    Name name;
    Exprs value;
    Span span;
} Setting;
typedef VEC(Setting) Settings;

typedef struct Item {
    ItemKind kind;
    Span span;
    Name name;       /* of the definition; of the model for TRAIN, of the file for USE */
    const char *doc; /* the comment above, or NULL */
    union {
        Expr *value; /* CONST */
        struct {
            Args arg;
            Body body;
            bool has_vjp; /* FN */
            Args vjp_arg;
            Body vjp_body;
        } def;            /* MODEL, FN, BLOCK */
        Settings setting; /* TRAIN */
    };
} Item;
typedef VEC(Item *) Items;

/* `# …`, without the line's end. */
typedef struct Comment {
    Span span;
    bool own_line; /* nothing stands before it */
} Comment;
typedef VEC(Comment) Comments;

typedef struct Ast {
    int32_t source;
    Items item;
    Comments comment; /* in the order of the text */
} Ast;

/* Reads a source into a tree.
 * fails: NULL, after reporting every mistake in it (at most MAX_ERRORS). */
Ast *parse(Ctx *cx, int32_t source);

/* The tree as S-expressions, one statement a line: for tests and --dump=ast. */
void ast_print(Text *to, const Ast *ast);

/* The tree in canonical layout with its comments: `gradc fmt`. What is printed
 * reads back as the same tree, and is its own canonical layout. */
void ast_format(const Ctx *cx, Text *to, const Ast *ast);

/* The first definition of this name, or NULL. */
const Item *ast_find(const Ast *ast, const char *name);

#endif
