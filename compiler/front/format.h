/* The canonical layout of expressions, for that of statements. */
#ifndef GRADC_FRONT_FORMAT_H
#define GRADC_FRONT_FORMAT_H

#include "ast.h"
#include "layout.h"

typedef struct Format {
    const Ast *ast;
    const Source *source;
    Layout out;
    int indent;
    int next;   /* comment not yet written */
    bool first; /* nothing stands in this body yet */
} Format;

/* All of these write into the line that is open. */
void format_put(Format *f, const char *text);
void format_open(Format *f, const char *bracket);
void format_close(Format *f, const char *bracket);
void format_exprs(Format *f, const Exprs *list);
void format_names(Format *f, const Names *list);
void format_args(Format *f, const Args *list);
void format_expr(Format *f, const Expr *e);
void format_range(Format *f, const Expr *from, const Expr *to); /* to: or NULL */
void format_type(Format *f, const TypeExpr *t);

#endif
