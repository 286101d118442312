/* Tokens for the grammar: line ends only where they end a statement, keywords only
 * where they can stand (`loss`, `state`, `keep` are names elsewhere), and, where a
 * bracket or brace is not closed, the token that brings the parser back into step. */
#include "parse.h"

#include <string.h>

#include "model.tab.h"

typedef struct Word {
    const char *text;
    int kind;
} Word;

/* Never names. */
static const Word reserved[] = {
    {"for", T_FOR},     {"if", T_IF},   {"else", T_ELSE},   {"in", T_IN},         {"with", T_WITH},
    {"as", T_AS},       {"and", T_AND}, {"or", T_OR},       {"not", T_NOT},       {"true", T_TRUE},
    {"false", T_FALSE}, {"inf", T_INF}, {"share", T_SHARE}, {"return", T_RETURN}, {"emit", T_EMIT},
};

/* Keywords at the start of a statement, unless something is bound to that name. */
static const Word leading[] = {
    {"use", T_USE},       {"const", T_CONST}, {"model", T_MODEL},         {"fn", T_FN},
    {"block", T_BLOCK},   {"train", T_TRAIN}, {"input", T_INPUT},         {"param", T_PARAM},
    {"state", T_STATE},   {"keep", T_KEEP},   {"recompute", T_RECOMPUTE}, {"offload", T_OFFLOAD},
    {"budget", T_BUDGET}, {"loss", T_LOSS},   {"output", T_OUTPUT},       {"metric", T_METRIC},
};

enum {
    N_RESERVED = sizeof reserved / sizeof *reserved,
    N_LEADING = sizeof leading / sizeof *leading,
    N_TOP = 6 /* of `leading`: what begins a definition */
};

static int word_kind(const Word *list, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].text, text) == 0)
            return list[i].kind;
    return T_NAME;
}

/* ---- looking at the text ------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9');
}

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

/* Text behind a token, on its line. */
static const char *behind(const Parser *p, Span at)
{
    return skip_blanks(p->text + at.to);
}

/* Columns of white space before the line that holds a byte. */
static int indent_of(const Parser *p, int32_t at)
{
    while (at > 0 && p->text[at - 1] != '\n')
        at--;
    return (int)strspn(p->text + at, " \t");
}

static bool first_on_line(const Parser *p, Span at)
{
    int32_t i = at.from;
    while (i > 0 && (p->text[i - 1] == ' ' || p->text[i - 1] == '\t'))
        i--;
    return i == 0 || p->text[i - 1] == '\n';
}

/* A word at the start of a statement that is bound: `loss = …`, `state[i] = …`. */
static bool is_bound(const Parser *p, Span word)
{
    const char *s = behind(p, word);
    return (s[0] == '=' && s[1] != '=') || s[0] == ',' || s[0] == '[' || s[0] == ':' ||
           (s[0] == '<' && s[1] == '-');
}

/* A word with blanks and then another word or an operand behind it. */
static bool leads(const Parser *p, Span word)
{
    const char *s = behind(p, word);
    return s > p->text + word.to && (is_word(*s) || *s == '(' || *s == '"' || *s == '-');
}

/* ---- brackets ------------------------------------------------------------ */

static Open *top(Parser *p)
{
    return p->open.n == 0 ? NULL : &p->open.at[p->open.n - 1];
}

static bool in_brackets(Parser *p)
{
    return p->open.n > 0 && top(p)->kind != '{';
}

static void push(Parser *p, char kind, Span at)
{
    if (p->open.n == MAX_NESTING) {
        syntax_too_deep(p, at);
        return;
    }
    Open o = {.kind = kind, .span = at, .suspect = NO_SPAN, .indent = indent_of(p, at.from)};
    if (kind == '{') {
        o.train = p->train_head;
        p->train_head = false;
    }
    vec_push(&p->cx->scratch, &p->open, o);
}

void lex_push_brace(Parser *p, Span at)
{
    push(p, '{', at);
    p->stmt_start = true;
}

void lex_stop(Parser *p)
{
    p->stopped = true;
    p->closing = 0;
    p->held.kind = 0;
}

/* Brackets that cannot be closed any more: the grammar is told by `unclosed`. */
static void drop_brackets(Parser *p)
{
    while (in_brackets(p)) {
        p->unclosed = top(p)->span;
        p->open.n--;
    }
}

/* Behind such a token an operand cannot follow. */
static bool ends_operand(int kind)
{
    return kind == T_NAME || kind == T_NUMBER || kind == T_STRING || kind == ')' || kind == ']' ||
           kind == T_TRUE || kind == T_FALSE || kind == T_INF;
}

/* Inside brackets, on a new line: does a new statement begin here, so that a
 * bracket was left open on a line before? */
static bool breaks_out(Parser *p, Token t)
{
    if (t.kind == '}')
        return true;
    if (t.kind != T_NAME)
        return false;
    int hard = word_kind(reserved, N_RESERVED, t.text);
    if (hard == T_FOR || hard == T_IF || hard == T_RETURN || hard == T_EMIT)
        return true;
    if (hard != T_NAME)
        return false;
    const char *s = behind(p, t.span);
    if (word_kind(leading, N_LEADING, t.text) != T_NAME && s > p->text + t.span.to && is_word(*s))
        return true;
    return ends_operand(p->last.kind);
}

/* ---- braces -------------------------------------------------------------- */

/* The end of the line behind the last token that was returned: a closing brace
 * that is missing may have stood there or on the line below. */
static Span missing_place(const Parser *p, int32_t before)
{
    int32_t at = p->last.span.to;
    while (at < before && p->text[at] != '\n')
        at++;
    if (at >= before)
        return (Span){p->file, p->last.span.to, p->last.span.to};
    at += 1 + (int32_t)strspn(p->text + at + 1, " \t");
    if (at > before)
        at = before;
    return (Span){p->file, at, at};
}

/* A line that is indented no more than the line of the brace it is in. */
static void suspect_indent(Parser *p, Token t)
{
    Open *o = top(p);
    if (o == NULL || o->kind != '{' || o->suspect.file >= 0 || !first_on_line(p, t.span))
        return;
    int indent = indent_of(p, t.span.from);
    if (indent < o->indent || (indent == o->indent && t.kind != '}'))
        o->suspect = missing_place(p, t.span.from);
}

static void report_missing_brace(Parser *p, int32_t before)
{
    Open o = p->missing.kind != 0 ? p->missing : *top(p);
    if (p->stopped || syntax_told_any(p))
        return;
    Span at = o.suspect.file >= 0 ? o.suspect : missing_place(p, before);
    Diag *d = diag_error(p->cx, E0103, at, "expected a `}` here");
    diag_note(p->cx, d, o.span, "the `{` it should close is here");
}

/* Another `}` stands before this one on its line. */
static bool follows_brace(const Parser *p, int32_t at)
{
    while (at > 0 && (p->text[at - 1] == ' ' || p->text[at - 1] == '\t'))
        at--;
    return at > 0 && p->text[at - 1] == '}';
}

/* Takes the innermost brace off. */
static void close_brace(Parser *p, Token t)
{
    Open o = *top(p);
    if (o.suspect.file >= 0 && p->missing.kind == 0)
        p->missing = o;
    bool deeper = first_on_line(p, t.span) && indent_of(p, t.span.from) > o.indent;
    bool twice = p->before_brace && follows_brace(p, t.span.from);
    if ((deeper || twice) && p->extra.file < 0)
        p->extra = t.span;
    p->open.n--;
    if (p->open.n == 0 && p->missing.kind != 0 && p->extra.file < 0)
        p->missing.kind = 0; /* it came out even, so the indentation was just odd */
}

/* What braces enclose is not known from here on, so this is the last report. */
static void report_stray_brace(Parser *p, Token t)
{
    Span at = p->extra.file >= 0 ? p->extra : t.span;
    if (!p->stopped && !syntax_told_any(p))
        diag_error(p->cx, E0104, at, "this `}` closes nothing");
    lex_stop(p);
}

/* ---- words --------------------------------------------------------------- */

/* A word that must be a keyword, for another word follows it, but is not: taken
 * for the nearest one, so that one slip of the pen is one error. */
static int misspelt(Parser *p, Token t, const Word *list, int n)
{
    const char *candidate[N_RESERVED + N_LEADING];
    for (int i = 0; i < n; i++)
        candidate[i] = list[i].text;
    const char *near = nearest(t.text, candidate, n);
    if (near == NULL)
        return T_NAME;
    if (!p->stopped) {
        Diag *d = diag_error(p->cx, E0102, t.span, "`%s` is no word of the language", t.text);
        diag_help(p->cx, d, "did you mean `%s`?", near);
    }
    return word_kind(list, n, near);
}

static int misspelt_statement(Parser *p, Token t)
{
    static const Word hard[] = {
        {"for", T_FOR}, {"if", T_IF}, {"return", T_RETURN}, {"emit", T_EMIT}};
    if (p->open.n == 0)
        return misspelt(p, t, leading, N_TOP);
    enum { N_HARD = sizeof hard / sizeof *hard };
    Word all[N_HARD + N_LEADING];
    memcpy(all, hard, sizeof hard);
    memcpy(all + N_HARD, leading + 1, (N_LEADING - 1) * sizeof *leading);
    return misspelt(p, t, all, N_HARD + N_LEADING - 1);
}

/* `scan` on the right of a binding, before the names of one step. */
static bool begins_scan(const Parser *p, Token t)
{
    const char *s = behind(p, t.span);
    return strcmp(t.text, "scan") == 0 && p->last.kind == '=' && is_letter(*s);
}

static int word_after_brace(Parser *p, Token t)
{
    static const Word after[] = {{"else", T_ELSE}, {"vjp", T_VJP}};
    int kind = word_kind(after, 2, t.text);
    return kind != T_NAME ? kind : misspelt(p, t, after, 2);
}

/* What a word is where it stands. */
static int keyword(Parser *p, Token t)
{
    if (p->last.kind == '}')
        return word_after_brace(p, t);
    int kind = word_kind(reserved, N_RESERVED, t.text);
    if (kind != T_NAME)
        return kind;
    if (begins_scan(p, t))
        return T_SCAN;
    bool setting = p->open.n > 0 && top(p)->train;
    if (!p->stmt_start || setting || is_bound(p, t.span))
        return T_NAME;
    kind = word_kind(leading, N_LEADING, t.text);
    if (kind == T_NAME && leads(p, t.span))
        kind = misspelt_statement(p, t);
    return kind;
}

/* A definition that begins at the very left while braces are open. */
static bool begins_definition(Parser *p, Token t)
{
    if (t.kind != T_NAME || !p->stmt_start || p->open.n == 0)
        return false;
    int kind = word_kind(leading, N_TOP, t.text);
    const char *s = behind(p, t.span);
    return kind != T_NAME && kind != T_CONST && first_on_line(p, t.span) &&
           indent_of(p, t.span.from) == 0 && s > p->text + t.span.to && is_letter(*s);
}

/* ---- the next token ------------------------------------------------------ */

static void keep_comment(Parser *p, Token t)
{
    if (t.span.to > t.span.from && p->text[t.span.to - 1] == '\r')
        t.span.to--;
    Comment c = {t.span, first_on_line(p, t.span)};
    vec_push(p->arena, &p->ast->comment, c);
}

static Token line_end(const Parser *p)
{
    int32_t at = p->last.span.to;
    return (Token){T_NEWLINE, {p->file, at, at}, NULL};
}

static bool wants_line_end(const Parser *p)
{
    return p->last.kind != 0 && p->last.kind != T_NEWLINE && p->last.kind != '{';
}

/* Ends the line before `t`, which is looked at again afterwards. */
static Token end_line_before(Parser *p, Token t)
{
    p->held = t;
    p->before_brace = t.kind == '}';
    return line_end(p);
}

/* A definition, loop or choice with a mistake in its first line, which ends without
 * a `{`, while what follows is indented as its body: the brace is made up. */
static bool lost_brace(const Parser *p, Token end)
{
    static const char *const heads[] = {"model", "block", "fn", "train", "for", "if", "budget"};
    if (!syntax_told(p, p->last.span))
        return false;
    int32_t line = p->last.span.from;
    while (line > 0 && p->text[line - 1] != '\n')
        line--;
    int indent = indent_of(p, line), next = indent_of(p, end.span.to);
    const char *word = p->text + line + indent;
    size_t n = strcspn(word, " \t(\n");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (strlen(heads[i]) == n && memcmp(heads[i], word, n) == 0)
            return next > indent;
    return false;
}

static Token made_up_brace(Parser *p)
{
    Token t = line_end(p);
    t.kind = '{';
    push(p, '{', t.span);
    return t;
}

/* Makes up closing braces for all that are open, and the line ends behind. */
static void close_all(Parser *p, Token t)
{
    report_missing_brace(p, t.span.from);
    p->held = t;
    p->closing = 2 * p->open.n;
    p->open.n = 0;
    p->missing.kind = 0;
}

static Token made_up(Parser *p)
{
    bool brace = p->closing-- % 2 == 0;
    Span at = {p->file, p->last.span.to, p->last.span.to};
    return (Token){brace ? '}' : T_NEWLINE, at, NULL};
}

static const Token no_token = {.kind = -1};

static Token consider_line_end(Parser *p, Token t)
{
    p->crossed = in_brackets(p);
    p->before_brace = false;
    if (in_brackets(p) || !wants_line_end(p))
        return no_token;
    return lost_brace(p, t) ? made_up_brace(p) : line_end(p);
}

/* A word, or a sign of one character. */
static Token consider_sign(Parser *p, Token t)
{
    if (t.kind == T_NAME) {
        t.kind = keyword(p, t);
    } else if (t.kind == '{' || t.kind == '(' || t.kind == '[') {
        push(p, (char)t.kind, t.span);
    } else if (t.kind == ')' || t.kind == ']') {
        p->open.n -= in_brackets(p);
    } else if (t.kind == '}' && p->open.n == 0) {
        report_stray_brace(p, t);
        return no_token;
    } else if (t.kind == '}') {
        close_brace(p, t);
    }
    return t;
}

/* The token for what was scanned; kind -1: none, go on. */
static Token consider(Parser *p, Token t)
{
    if (t.kind == T_COMMENT) {
        keep_comment(p, t);
        return no_token;
    }
    if (t.kind == T_NEWLINE)
        return consider_line_end(p, t);
    bool crossed = p->crossed;
    p->crossed = false;
    if (in_brackets(p) && (t.kind == 0 || t.kind == '{' || (crossed && breaks_out(p, t)))) {
        drop_brackets(p);
        if (t.kind != '{')
            return end_line_before(p, t);
    }
    if ((t.kind == 0 || t.kind == '}') && wants_line_end(p))
        return end_line_before(p, t);
    if (p->stmt_start)
        suspect_indent(p, t);
    if ((t.kind == 0 && p->open.n > 0) || begins_definition(p, t)) {
        close_all(p, t);
        return no_token;
    }
    return consider_sign(p, t);
}

static Token next(Parser *p)
{
    for (;;) {
        if (p->stopped)
            return (Token){0, {p->file, p->at, p->at}, NULL};
        if (p->closing > 0)
            return made_up(p);
        Token t = p->held;
        p->held.kind = 0;
        t = consider(p, t.kind != 0 ? t : scan_token(p));
        if (t.kind >= 0)
            return t;
    }
}

Token lex(Parser *p)
{
    p->unclosed = NO_SPAN; /* the grammar has complained by now */
    Token t = next(p);
    if (t.kind == T_TRAIN)
        p->train_head = true;
    p->stmt_start = t.kind == T_NEWLINE || t.kind == '{';
    if (t.kind == T_NEWLINE && p->train_head)
        p->train_head = false;
    p->last = t;
    return t;
}
