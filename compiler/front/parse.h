/* What the scanner, the grammar and their helpers share: one run of the parser.
 *
 *   scan.c + grammar/model.l   text -> tokens as they are written
 *   lex.c                      line ends that matter, keywords by their place
 *   grammar/model.y            tokens -> calls of tree.c
 *   syntax.c                   what is said about a mistake
 *   check.c                    rules that the grammar does not state */
#ifndef GRADC_FRONT_PARSE_H
#define GRADC_FRONT_PARSE_H

#include "ast.h"

enum {
    MAX_NESTING = 256,     /* open brackets and braces */
    MAX_EXPR_DEPTH = 1000, /* operators and brackets on one path of a tree */
    MAX_NAME_BYTES = 256,
    MAX_STRING_BYTES = 64 << 10
};

/* The value of a token is the text of a name, number or string; else NULL. */
typedef struct Token {
    int kind;
    Span span;
    const char *text;
} Token;

/* A bracket or brace that is open. */
typedef struct Open {
    char kind; /* ( [ { */
    bool train;
    int indent; /* of the line it stands on */
    Span span;
    Span suspect; /* where its closing brace seems to be missing */
} Open;

typedef struct Parser {
    Ctx *cx;
    Arena *arena; /* of the tree */
    int32_t file;
    const char *text;
    int32_t bytes;
    Ast *ast;

    void *scanner; /* flex's, over a copy of the text in cx->scratch */
    int32_t at;    /* end of what has been scanned */

    VEC(Open) open;
    Token last;        /* what was returned last */
    Token held;        /* to be looked at again; kind 0: nothing */
    int closing;       /* made-up tokens still to return: `}` and line end in turn */
    bool stmt_start;   /* a statement may begin here */
    bool crossed;      /* a line end inside brackets came just before */
    bool train_head;   /* the next `{` begins settings */
    bool before_brace; /* the last line end stands for the `}` that follows */
    bool stopped;      /* nothing more is read or reported */
    int told_before;   /* errors reported before this run */
    Span unclosed;     /* bracket that a made-up line end has cut short */
    Span extra;        /* a `}` that seems to be one too many */
    Open missing;      /* a brace whose closing one seems to be missing; kind 0: none */
} Parser;

/* ---- scan.c ---------------------------------------------------------------- */

/* False, after one diagnostic, when this is not text: too long, NUL bytes, no
 * UTF-8, control characters. */
bool scan_check(Parser *p);
void scan_begin(Parser *p);
void scan_end(Parser *p);
/* The next token as it is written, comments and line ends among them. */
Token scan_token(Parser *p);

/* ---- lex.c ----------------------------------------------------------------- */

Token lex(Parser *p);
/* The grammar has taken a `{` as read. */
void lex_push_brace(Parser *p, Span at);
/* Give up: what was found is enough, or too deep to go on. */
void lex_stop(Parser *p);

/* ---- syntax.c -------------------------------------------------------------- */

/* Tokens in the grammar's words: "a name", "'('", "`for`". */
void syntax_error(Parser *p, Token got, const char *got_name, const char *const *expected, int n);
/* An error has been reported on the line of this place; on any line. One error a line
 * is enough, and after any, the braces may be out of step because of it. */
bool syntax_told(const Parser *p, Span at);
bool syntax_told_any(const Parser *p);
void syntax_too_deep(Parser *p, Span at);
void syntax_missing_brace(Parser *p, Span line_end);
void syntax_stray(Parser *p, const Stmt *s);

/* ---- check.c --------------------------------------------------------------- */

/* Statements where they may not stand, arguments given twice and the like. */
void check_tree(Ctx *cx, const Ast *ast);

#endif
