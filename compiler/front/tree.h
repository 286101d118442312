/* Nodes of the tree, as the grammar makes them. All live in p->arena. */
#ifndef GRADC_FRONT_TREE_H
#define GRADC_FRONT_TREE_H

#include "parse.h"

Expr *tree_number(Parser *p, Span at, const char *text);
Expr *tree_string(Parser *p, Span at, const char *text);
Expr *tree_bool(Parser *p, Span at, bool value);
Expr *tree_name(Parser *p, Span at, Name module, Name name);
/* left NULL: unary */
Expr *tree_op(Parser *p, Span at, Operator op, Span op_at, Expr *left, Expr *right);
/* Comparisons do not chain: reported here, where both are known. */
Expr *tree_compare(Parser *p, Span at, Operator op, Span op_at, Expr *left, Expr *right);
Expr *tree_call(Parser *p, Span at, Name module, Name name, const Args *args);
Expr *tree_as(Parser *p, Span at, Expr *call, Path *path, bool share);
Expr *tree_index(Parser *p, Span at, Expr *base, const Subscripts *subscripts);
Expr *tree_items(Parser *p, Span at, ExprKind kind, const Exprs *items);
Expr *tree_parens(Expr *e, Span at);
Expr *tree_scan(Parser *p, Span at, const Names *item, Expr *over, Expr *to, const Args *init,
                const Body *body);
Path *tree_path(Parser *p, Span at, Name name);
Subscript tree_slice(Span at, Expr *from, Expr *to, Expr *step);
TypeExpr *tree_type(Parser *p, Span at, Name name, Expr *of, const Exprs *dims);

/* A statement with its kind, span and the comment above it. */
Stmt *tree_stmt(Parser *p, Span at, StmtKind kind);
Stmt *tree_named(Parser *p, Span at, StmtKind kind, Name name, Expr *value);
Stmt *tree_declare(Parser *p, Span at, StmtKind kind, const Names *names, const TypeExpr *type);
Body *tree_body(Parser *p, Span at, const Stmts *stmts);
void tree_arm(Parser *p, Stmt *s, Expr *condition, const Body *body, Span at);

/* Adds a definition to the file. */
Item *tree_item(Parser *p, Span at, ItemKind kind, Name name);
void tree_setting(Parser *p, Settings *to, Name name, const Exprs *value, Span at);

#endif
