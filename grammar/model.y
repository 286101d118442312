/* The .model language. The grammar is the parser; grammar/language.md explains it.
 * Line ends come from compiler/front/lex.c only where they end a statement. */
%require "3.7"
%define api.pure full
%define api.prefix {model_}
%define api.token.prefix {T_}
%define api.location.type {Span}
%define parse.error custom
%define lr.type canonical-lr /* so that what is expected is exact */
%define lr.default-reduction consistent
%locations
%param {Parser *p}
%expect 0

%code requires {
#include "front/parse.h"
#include "front/tree.h"
}

%code {
#include <string.h>

/* The stack is not grown: brackets are limited, and deep operators end here. */
#define YYINITDEPTH 6000
#define YYMAXDEPTH  6000
#define YYLLOC_DEFAULT(all, rhs, n)                                                                \
    ((all) = (n) > 0 ? span_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n)) : behind(YYRHSLOC(rhs, 0)))

/* Where nothing is: the place behind what came before. */
static Span behind(Span s)
{
    return (Span){s.file, s.to, s.to};
}

static int model_lex(YYSTYPE *value, Span *at, Parser *p);
static void model_error(Span *at, Parser *p, const char *message);

#define LIST(T)           NEW(p->arena, T)
#define PUSH(list, value) vec_push(p->arena, (list), (value))
#define NAME(text, at)    ((Name){(text), (at)})
#define NO_NAME           ((Name){NULL, NO_SPAN})
#define UNARY(op, at, opat, r)     tree_op(p, at, OPERATOR_##op, opat, NULL, r)
#define BINARY(op, at, opat, l, r) tree_op(p, at, OPERATOR_##op, opat, l, r)
}

%union {
    const char *text;
    Expr *expr;
    Exprs *exprs;
    Args *args;
    Names *names;
    LeftSides *targets;
    Subscript *subscript;
    Subscripts *subscripts;
    Path *path;
    TypeExpr *type;
    Stmt *stmt;
    Stmts *stmts;
    Body *body;
    Settings *settings;
    Memory memory;
    Operator op;
    bool flag;
}

%token YYEOF 0    "the end of the file"
%token NEWLINE    "the end of the line"
%token <text> NAME "a name" NUMBER "a number" STRING "a string"
%token USE "`use`" CONST "`const`" MODEL "`model`" FN "`fn`" BLOCK "`block`" TRAIN "`train`"
%token VJP "`vjp`" INPUT "`input`" PARAM "`param`" STATE "`state`" KEEP "`keep`"
%token RECOMPUTE "`recompute`" OFFLOAD "`offload`" BUDGET "`budget`" LOSS "`loss`"
%token OUTPUT "`output`" METRIC "`metric`" RETURN "`return`" EMIT "`emit`" FOR "`for`"
%token IF "`if`" ELSE "`else`" IN "`in`" WITH "`with`" AS "`as`" SHARE "`share`" SCAN "`scan`"
%token AND "`and`" OR "`or`" NOT "`not`" TRUE "`true`" FALSE "`false`" INF "`inf`"
%token ARROW "`<-`" DOTDOT "`..`" ELLIPSIS "`...`" EQ "`==`" NE "`!=`" LE "`<=`" GE "`>=`"
%token FLOORDIV "`//`"
%token COMMENT OPEN_STRING BAD_NUMBER BAD /* these never leave the scanner */

%type <expr> rhs expr either both negated comparison sum term unary power named postfix primary
%type <expr> call scan from_opt
%type <exprs> exprs exprs_opt values indices
%type <args> args arg_list formals formal_list outputs inits
%type <names> names
%type <targets> targets
%type <subscript> subscript
%type <subscripts> subscripts
%type <path> path
%type <type> type
%type <stmt> stmt declaration if_chain
%type <stmts> stmts
%type <body> body
%type <settings> settings
%type <memory> memory
%type <op> compare
%type <flag> grad_opt

%%

/* ---- files ---------------------------------------------------------------- */

file: items ;

items: %empty | items item ;

item
    : USE NAME NEWLINE                  { tree_item(p, @$, ITEM_USE, NAME($2, @2)); }
    | MODEL NAME body NEWLINE
        {
            Item *i = tree_item(p, span_join(@1, @3), ITEM_MODEL, NAME($2, @2));
            i->def.body = *$3;
        }
    | MODEL NAME formals body NEWLINE
        {
            Item *i = tree_item(p, span_join(@1, @4), ITEM_MODEL, NAME($2, @2));
            i->def.arg = *$3;
            i->def.body = *$4;
        }
    | BLOCK NAME formals body NEWLINE
        {
            Item *i = tree_item(p, span_join(@1, @4), ITEM_BLOCK, NAME($2, @2));
            i->def.arg = *$3;
            i->def.body = *$4;
        }
    | FN NAME formals body NEWLINE
        {
            Item *i = tree_item(p, span_join(@1, @4), ITEM_FN, NAME($2, @2));
            i->def.arg = *$3;
            i->def.body = *$4;
        }
    | FN NAME formals body VJP formals body NEWLINE
        {
            Item *i = tree_item(p, span_join(@1, @7), ITEM_FN, NAME($2, @2));
            i->def.arg = *$3;
            i->def.body = *$4;
            i->def.has_vjp = true;
            i->def.vjp_arg = *$6;
            i->def.vjp_body = *$7;
        }
    | TRAIN NAME '{' settings '}' NEWLINE
        {
            Item *i = tree_item(p, span_join(@1, @5), ITEM_TRAIN, NAME($2, @2));
            i->setting = *$4;
        }
    | stmt
        {
            if ($1 != NULL && $1->kind == STMT_CONST) {
                Item *i = tree_item(p, $1->span, ITEM_CONST, $1->named.name);
                i->value = $1->named.value;
            } else if ($1 != NULL) {
                syntax_stray(p, $1);
            }
        }
    | TRAIN error '{' settings '}' NEWLINE
    | TRAIN error NEWLINE
    ;

formals
    : '(' ')'                           { $$ = LIST(Args); }
    | '(' formal_list ')'               { $$ = $2; }
    | '(' formal_list ',' ')'           { $$ = $2; }
    ;

formal_list
    : NAME                              { $$ = LIST(Args); PUSH($$, ((Arg){NAME($1, @1), NULL, @1})); }
    | NAME '=' expr                     { $$ = LIST(Args); PUSH($$, ((Arg){NAME($1, @1), $3, @$})); }
    | formal_list ',' NAME              { $$ = $1; PUSH($$, ((Arg){NAME($3, @3), NULL, @3})); }
    | formal_list ',' NAME '=' expr
        { $$ = $1; PUSH($$, ((Arg){NAME($3, @3), $5, span_join(@3, @5)})); }
    ;

settings
    : %empty                            { $$ = LIST(Settings); }
    | settings NAME exprs NEWLINE
        { $$ = $1; tree_setting(p, $$, NAME($2, @2), $3, span_join(@2, @3)); }
    | settings error NEWLINE            { $$ = $1; yyerrok; }
    ;

/* ---- statements ----------------------------------------------------------- */

body
    : open stmts '}'                    { $$ = tree_body(p, @$, $2); }
    ;

open
    : '{'
    | NEWLINE                           { syntax_missing_brace(p, @1); }
    ;

stmts
    : %empty                            { $$ = LIST(Stmts); }
    | stmts stmt                        { $$ = $1; if ($2 != NULL) PUSH($$, $2); }
    ;

stmt
    : CONST NAME '=' rhs NEWLINE
        { $$ = tree_named(p, span_join(@1, @4), STMT_CONST, NAME($2, @2), $4); }
    | memory targets '=' rhs NEWLINE
        {
            $$ = tree_stmt(p, span_join(@1, @4), STMT_BIND);
            $$->bind.memory = $1;
            $$->bind.target = *$2;
            $$->bind.value = $4;
        }
    | targets '=' rhs NEWLINE
        {
            $$ = tree_stmt(p, span_join(@1, @3), STMT_BIND);
            $$->bind.target = *$1;
            $$->bind.value = $3;
        }
    | NAME ARROW expr NEWLINE
        { $$ = tree_named(p, span_join(@1, @3), STMT_UPDATE, NAME($1, @1), $3); }
    | declaration NEWLINE
    | FOR names IN expr body NEWLINE
        {
            $$ = tree_stmt(p, span_join(@1, @5), STMT_FOR);
            $$->loop.item = *$2;
            $$->loop.over = $4;
            $$->loop.body = *$5;
        }
    | FOR names IN expr DOTDOT expr body NEWLINE
        {
            $$ = tree_stmt(p, span_join(@1, @7), STMT_FOR);
            $$->loop.item = *$2;
            $$->loop.over = $4;
            $$->loop.to = $6;
            $$->loop.body = *$7;
        }
    | if_chain NEWLINE
    | BUDGET expr body NEWLINE
        {
            $$ = tree_stmt(p, span_join(@1, @3), STMT_BUDGET);
            $$->budget.bytes = $2;
            $$->budget.body = *$3;
        }
    | LOSS expr NEWLINE
        { $$ = tree_stmt(p, span_join(@1, @2), STMT_LOSS); $$->loss = $2; }
    | OUTPUT outputs NEWLINE
        { $$ = tree_stmt(p, span_join(@1, @2), STMT_OUTPUT); $$->output = *$2; }
    | METRIC NAME '=' expr NEWLINE
        { $$ = tree_named(p, span_join(@1, @4), STMT_METRIC, NAME($2, @2), $4); }
    | RETURN values NEWLINE
        { $$ = tree_stmt(p, span_join(@1, @2), STMT_RETURN); $$->values = *$2; }
    | EMIT values NEWLINE
        { $$ = tree_stmt(p, span_join(@1, @2), STMT_EMIT); $$->values = *$2; }
    | error rest                        { $$ = NULL; }
    ;

/* What is left of a statement with a mistake in it: to the end of its line, and
 * of its body if it has one. */
rest
    : NEWLINE                           { yyerrok; }
    | '{' { yyerrok; } stmts '}' more
    ;

more
    : NEWLINE
    | ELSE body more
    | ELSE IF expr body more
    | VJP formals body NEWLINE
    ;

memory
    : KEEP                              { $$ = MEMORY_KEEP; }
    | RECOMPUTE                         { $$ = MEMORY_RECOMPUTE; }
    | OFFLOAD                           { $$ = MEMORY_OFFLOAD; }
    ;

targets
    : NAME
        { $$ = LIST(LeftSides); PUSH($$, ((LeftSide){.name = NAME($1, @1), .span = @1})); }
    | NAME '[' exprs ']'
        { $$ = LIST(LeftSides); PUSH($$, ((LeftSide){NAME($1, @1), *$3, @$})); }
    | targets ',' NAME
        { $$ = $1; PUSH($$, ((LeftSide){.name = NAME($3, @3), .span = @3})); }
    | targets ',' NAME '[' exprs ']'
        { $$ = $1; PUSH($$, ((LeftSide){NAME($3, @3), *$5, span_join(@3, @6)})); }
    ;

declaration
    : INPUT names ':' type grad_opt
        {
            $$ = tree_declare(p, @$, STMT_INPUT, $2, $4);
            $$->declare.with_grad = $5;
        }
    | INPUT names ':' type IN expr DOTDOT expr grad_opt
        {
            $$ = tree_declare(p, @$, STMT_INPUT, $2, $4);
            $$->declare.low = $6;
            $$->declare.high = $8;
            $$->declare.with_grad = $9;
        }
    | PARAM names ':' type from_opt
        { $$ = tree_declare(p, @$, STMT_PARAM, $2, $4); $$->declare.init = $5; }
    | STATE names ':' type from_opt
        { $$ = tree_declare(p, @$, STMT_STATE, $2, $4); $$->declare.init = $5; }
    ;

grad_opt
    : %empty                            { $$ = false; }
    | WITH NAME
        {
            $$ = true;
            if (strcmp($2, "grad") != 0 && !p->stopped)
                diag_help(p->cx, diag_error(p->cx, E0101, @2, "expected `grad`, got `%s`", $2),
                          "`with grad` asks for the gradient of an input");
        }
    ;

from_opt
    : %empty                            { $$ = NULL; }
    | '=' expr                          { $$ = $2; }
    ;

type
    : NAME                              { $$ = tree_type(p, @$, NAME($1, @1), NULL, NULL); }
    | NAME '[' exprs_opt ']'            { $$ = tree_type(p, @$, NAME($1, @1), NULL, $3); }
    | NAME '(' expr ')'                 { $$ = tree_type(p, @$, NAME($1, @1), $3, NULL); }
    | NAME '(' expr ')' '[' exprs_opt ']'
        { $$ = tree_type(p, @$, NAME($1, @1), $3, $6); }
    ;

if_chain
    : IF expr body
        { $$ = tree_stmt(p, @$, STMT_IF); tree_arm(p, $$, $2, $3, @$); }
    | if_chain ELSE IF expr body
        { $$ = $1; $$->span = @$; tree_arm(p, $$, $4, $5, span_join(@2, @5)); }
    | if_chain ELSE body
        { $$ = $1; $$->span = @$; tree_arm(p, $$, NULL, $3, span_join(@2, @3)); }
    ;

outputs
    : NAME                              { $$ = LIST(Args); PUSH($$, ((Arg){NAME($1, @1), NULL, @1})); }
    | NAME '=' expr                     { $$ = LIST(Args); PUSH($$, ((Arg){NAME($1, @1), $3, @$})); }
    | outputs ',' NAME                  { $$ = $1; PUSH($$, ((Arg){NAME($3, @3), NULL, @3})); }
    | outputs ',' NAME '=' expr
        { $$ = $1; PUSH($$, ((Arg){NAME($3, @3), $5, span_join(@3, @5)})); }
    ;

names
    : NAME                              { $$ = LIST(Names); PUSH($$, NAME($1, @1)); }
    | names ',' NAME                    { $$ = $1; PUSH($$, NAME($3, @3)); }
    ;

values: exprs ;

/* ---- expressions, loosest first ------------------------------------------- */

rhs
    : expr
    | expr ',' exprs
        {
            Exprs *all = LIST(Exprs);
            PUSH(all, $1);
            for (int i = 0; i < $3->n; i++)
                PUSH(all, $3->at[i]);
            $$ = tree_items(p, @$, EXPR_TUPLE, all);
        }
    | scan
    ;

scan
    : SCAN names IN expr inits body     { $$ = tree_scan(p, @$, $2, $4, NULL, $5, $6); }
    | SCAN names IN expr DOTDOT expr inits body
        { $$ = tree_scan(p, @$, $2, $4, $6, $7, $8); }
    ;

inits
    : %empty                            { $$ = LIST(Args); }
    | inits ',' NAME '=' expr
        { $$ = $1; PUSH($$, ((Arg){NAME($3, @3), $5, span_join(@3, @5)})); }
    ;

expr: either ;

either
    : both
    | either OR both                    { $$ = BINARY(OR, @$, @2, $1, $3); }
    ;

both
    : negated
    | both AND negated                  { $$ = BINARY(AND, @$, @2, $1, $3); }
    ;

negated
    : comparison
    | NOT negated                       { $$ = UNARY(NOT, @$, @1, $2); }
    ;

comparison
    : sum
    | comparison compare sum            { $$ = tree_compare(p, @$, $2, @2, $1, $3); }
    ;

compare
    : EQ                                { $$ = OPERATOR_EQ; }
    | NE                                { $$ = OPERATOR_NE; }
    | '<'                               { $$ = OPERATOR_LT; }
    | LE                                { $$ = OPERATOR_LE; }
    | '>'                               { $$ = OPERATOR_GT; }
    | GE                                { $$ = OPERATOR_GE; }
    ;

sum
    : term
    | sum '+' term                      { $$ = BINARY(ADD, @$, @2, $1, $3); }
    | sum '-' term                      { $$ = BINARY(SUB, @$, @2, $1, $3); }
    ;

term
    : unary
    | term '*' unary                    { $$ = BINARY(MUL, @$, @2, $1, $3); }
    | term '/' unary                    { $$ = BINARY(DIV, @$, @2, $1, $3); }
    | term FLOORDIV unary               { $$ = BINARY(FLOORDIV, @$, @2, $1, $3); }
    | term '%' unary                    { $$ = BINARY(MOD, @$, @2, $1, $3); }
    | term '@' unary                    { $$ = BINARY(MATMUL, @$, @2, $1, $3); }
    ;

unary
    : power
    | '-' unary                         { $$ = UNARY(NEG, @$, @1, $2); }
    | '+' unary                         { $$ = UNARY(POS, @$, @1, $2); }
    ;

power
    : named
    | named '^' unary                   { $$ = BINARY(POW, @$, @2, $1, $3); }
    ;

named
    : postfix
    | call AS path                      { $$ = tree_as(p, @$, $1, $3, false); }
    | call SHARE path                   { $$ = tree_as(p, @$, $1, $3, true); }
    ;

path
    : NAME                              { $$ = tree_path(p, @$, NAME($1, @1)); }
    | NAME indices
        { $$ = tree_path(p, @$, NAME($1, @1)); $$->index = *$2; }
    ;

indices
    : '[' expr ']'                      { $$ = LIST(Exprs); PUSH($$, $2); }
    | indices '[' expr ']'              { $$ = $1; PUSH($$, $3); }
    ;

postfix
    : primary
    | postfix '[' subscripts ']'        { $$ = tree_index(p, @$, $1, $3); }
    ;

subscripts
    : subscript                         { $$ = LIST(Subscripts); PUSH($$, *$1); }
    | subscripts ',' subscript          { $$ = $1; PUSH($$, *$3); }
    ;

subscript
    : expr
        {
            $$ = LIST(Subscript);
            *$$ = (Subscript){.kind = SUBSCRIPT_AT, .at = $1, .span = @$};
        }
    | ELLIPSIS
        {
            $$ = LIST(Subscript);
            *$$ = (Subscript){.kind = SUBSCRIPT_ELLIPSIS, .span = @$};
        }
    | ':'                               { $$ = LIST(Subscript); *$$ = tree_slice(@$, NULL, NULL, NULL); }
    | expr ':'                          { $$ = LIST(Subscript); *$$ = tree_slice(@$, $1, NULL, NULL); }
    | ':' expr                          { $$ = LIST(Subscript); *$$ = tree_slice(@$, NULL, $2, NULL); }
    | expr ':' expr                     { $$ = LIST(Subscript); *$$ = tree_slice(@$, $1, $3, NULL); }
    | ':' ':' expr                      { $$ = LIST(Subscript); *$$ = tree_slice(@$, NULL, NULL, $3); }
    | expr ':' ':' expr                 { $$ = LIST(Subscript); *$$ = tree_slice(@$, $1, NULL, $4); }
    | ':' expr ':' expr                 { $$ = LIST(Subscript); *$$ = tree_slice(@$, NULL, $2, $4); }
    | expr ':' expr ':' expr            { $$ = LIST(Subscript); *$$ = tree_slice(@$, $1, $3, $5); }
    ;

primary
    : NUMBER                            { $$ = tree_number(p, @$, $1); }
    | INF                               { $$ = tree_number(p, @$, "inf"); }
    | STRING                            { $$ = tree_string(p, @$, $1); }
    | TRUE                              { $$ = tree_bool(p, @$, true); }
    | FALSE                             { $$ = tree_bool(p, @$, false); }
    | NAME                              { $$ = tree_name(p, @$, NO_NAME, NAME($1, @1)); }
    | NAME '.' NAME                     { $$ = tree_name(p, @$, NAME($1, @1), NAME($3, @3)); }
    | call
    | '(' expr ')'                      { $$ = tree_parens($2, @$); }
    | '(' expr ',' exprs ')'
        {
            Exprs *all = LIST(Exprs);
            PUSH(all, $2);
            for (int i = 0; i < $4->n; i++)
                PUSH(all, $4->at[i]);
            $$ = tree_parens(tree_items(p, @$, EXPR_TUPLE, all), @$);
        }
    | '[' exprs_opt ']'                 { $$ = tree_items(p, @$, EXPR_LIST, $2); }
    ;

call
    : NAME '(' args ')'                 { $$ = tree_call(p, @$, NO_NAME, NAME($1, @1), $3); }
    | NAME '.' NAME '(' args ')'
        { $$ = tree_call(p, @$, NAME($1, @1), NAME($3, @3), $5); }
    ;

args
    : %empty                            { $$ = LIST(Args); }
    | arg_list
    | arg_list ','
    ;

arg_list
    : expr                              { $$ = LIST(Args); PUSH($$, ((Arg){NO_NAME, $1, @1})); }
    | NAME '=' expr                     { $$ = LIST(Args); PUSH($$, ((Arg){NAME($1, @1), $3, @$})); }
    | arg_list ',' expr                 { $$ = $1; PUSH($$, ((Arg){NO_NAME, $3, @3})); }
    | arg_list ',' NAME '=' expr
        { $$ = $1; PUSH($$, ((Arg){NAME($3, @3), $5, span_join(@3, @5)})); }
    ;

exprs
    : expr                              { $$ = LIST(Exprs); PUSH($$, $1); }
    | exprs ',' expr                    { $$ = $1; PUSH($$, $3); }
    ;

exprs_opt
    : %empty                            { $$ = LIST(Exprs); }
    | exprs
    | exprs ','
    ;

%%

static int model_lex(YYSTYPE *value, Span *at, Parser *p)
{
    Token t = lex(p);
    value->text = t.text;
    *at = t.span;
    return t.kind;
}

/* Bison calls this when its stack is full. */
static void model_error(Span *at, Parser *p, const char *message)
{
    (void)message;
    syntax_too_deep(p, *at);
}

static int yyreport_syntax_error(const yypcontext_t *context, Parser *p)
{
    enum { MOST = 80 };
    yysymbol_kind_t kind[MOST];
    const char *expected[MOST];
    int n = yypcontext_expected_tokens(context, kind, MOST);
    for (int i = 0; i < n; i++)
        expected[i] = yysymbol_name(kind[i]);
    Token got = p->last;
    got.span = *yypcontext_location(context);
    syntax_error(p, got, yysymbol_name(yypcontext_token(context)), expected, n);
    return 0;
}
