/* From bytes to tokens as they are written: what is no text at all, flex's
 * scanner, and tokens that are wrong in themselves. */
#include "parse.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "model.lex.h"
#include "model.tab.h"
#include "tree.h"

/* ---- is it text? --------------------------------------------------------- */

static bool refuse(Parser *p, Code code, int32_t at, const char *why, const char *help)
{
    Diag *d = diag_error(p->cx, code, (Span){p->file, at, at + 1}, "%s", why);
    if (help != NULL)
        diag_help(p->cx, d, "%s", help);
    return false;
}

/* Characters that change the order in which text is shown. */
static bool is_bidi_control(int32_t c)
{
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static bool check_character(Parser *p, int32_t c, int32_t at)
{
    if (c == 0)
        return refuse(p, E0002, at, "a byte of value 0: this is not a text file", NULL);
    if (c < 0)
        return refuse(p, E0003, at, "bytes that are not UTF-8", "save the file as UTF-8");
    bool line_end = c == '\r' && p->text[at + 1] == '\n';
    bool control = (c < 0x20 && c != '\t' && c != '\n' && !line_end) || (c >= 0x7f && c < 0xa0);
    if (control || is_bidi_control(c)) {
        const char *what = arena_printf(p->arena, "the control character U+%04X", (unsigned)c);
        return refuse(p, E0004, at, what, "delete it: only tabs and line ends may be in a model");
    }
    return true;
}

bool scan_check(Parser *p)
{
    if (p->bytes > MAX_SOURCE_BYTES)
        return refuse(p, E0001, 0, "the file is larger than 16 MiB", NULL);
    const char *at = p->text, *end = p->text + p->bytes;
    if (p->bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (at < end) {
        int32_t from = (int32_t)(at - p->text);
        if (!check_character(p, utf8_next(&at, end), from))
            return false;
    }
    return true;
}

/* ---- flex ---------------------------------------------------------------- */

void scan_begin(Parser *p)
{
    int32_t skip = p->bytes >= 3 && memcmp(p->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    size_t n = (size_t)(p->bytes - skip);
    yyscan_t scanner;
    model_scan_lex_init_extra(p, &scanner);
    p->scanner = scanner;
    p->at = skip;
    /* flex writes into its buffer, and wants two NULs behind it */
    char *copy = arena_alloc(&p->cx->scratch, n + 2);
    memcpy(copy, p->text + skip, n);
    model_scan__scan_buffer(copy, n + 2, p->scanner);
}

void scan_end(Parser *p)
{
    model_scan_lex_destroy(p->scanner);
}

/* ---- tokens that are wrong in themselves --------------------------------- */

static void say(Parser *p, Code code, Span at, const char *text, const char *help)
{
    if (p->stopped || syntax_told(p, at))
        return;
    Diag *d = diag_error(p->cx, code, at, "%s", text);
    if (help != NULL)
        diag_help(p->cx, d, "%s", help);
}

/* What people write who know another language. */
static const char *advice(const char *text, size_t n)
{
    static const struct {
        const char *bad, *help;
    } known[] = {
        {";", "a statement ends with its line"},
        {"!", "write `not`"},
        {"&", "write `and`"},
        {"|", "write `or`"},
        {"$", NULL},
        {"'", "strings stand between double quotes"},
        {"\xc3\x97", "write `*`"},
        {"\xc2\xb7", "write `*`"},
        {"\xe2\x88\x92", "this is not the `-` of the keyboard"},
        {"\xe2\x80\x93", "this is not the `-` of the keyboard"},
        {"\xe2\x80\x9c", "strings stand between straight quotes"},
        {"\xe2\x80\x9d", "strings stand between straight quotes"},
        {"\xe2\x89\xa4", "write `<=`"},
        {"\xe2\x89\xa5", "write `>=`"},
        {"\xe2\x86\x90", "write `<-`"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].bad) <= n && memcmp(known[i].bad, text, strlen(known[i].bad)) == 0)
            return known[i].help;
    return (unsigned char)*text >= 0x80 ? "names are made of the letters a to z, digits and `_`"
                                        : NULL;
}

static void say_bad_character(Parser *p, Token *t)
{
    const char *at = p->text + t->span.from, *end = p->text + t->span.to, *next = at;
    utf8_next(&next, end);
    const char *text = arena_printf(p->arena, "the character `%.*s` has no place in a model",
                                    (int)(next - at), at);
    say(p, E0005, t->span, text, advice(at, (size_t)(end - at)));
}

/* A `;` at the end of a line disturbs nothing. */
static bool ends_line(const Parser *p, const Token *t)
{
    const char *next = p->text + t->span.to;
    next += strspn(next, " \t\r");
    return p->text[t->span.from] == ';' && (*next == '\n' || *next == '#' || *next == '\0');
}

/* `1.` and `.5`: the number that was meant goes on. */
static void say_bad_number(Parser *p, Token *t)
{
    int n = t->span.to - t->span.from;
    const char *text = p->text + t->span.from;
    bool dot_first = *text == '.';
    t->text = arena_printf(p->arena, dot_first ? "0%.*s" : "%.*s0", n, text);
    const char *help = arena_printf(p->arena, "write `%s`", t->text);
    say(p, E0006, t->span,
        dot_first ? "a number begins with a digit" : "a digit must follow the point", help);
    t->kind = T_NUMBER;
}

static void finish_name(Parser *p, Token *t)
{
    int n = t->span.to - t->span.from;
    if (n > MAX_NAME_BYTES) {
        const char *text = arena_printf(p->arena, "a name of %d letters: at most %d are allowed", n,
                                        MAX_NAME_BYTES);
        say(p, E0010, t->span, text, NULL);
        n = MAX_NAME_BYTES;
    }
    t->text = intern_n(&p->cx->names, p->text + t->span.from, (size_t)n);
}

/* Inside of the quotes; \" and \\ stand for " and \. */
static void finish_string(Parser *p, Token *t, bool open)
{
    int32_t to = open ? t->span.to : t->span.to - 1;
    Text s;
    text_init(&s, p->arena);
    for (int32_t i = t->span.from + 1; i < to; i++) {
        if (p->text[i] == '\\' && i + 1 < to) {
            i++;
            if (strchr("\"\\", p->text[i]) == NULL)
                say(p, E0007, (Span){p->file, i - 1, i + 1}, "an unknown escape in a string",
                    "only \\\" and \\\\ are escapes");
        }
        text_char(&s, p->text[i]);
    }
    if (open)
        say(p, E0007, t->span, "the string has no closing quote on this line", NULL);
    if (s.n > MAX_STRING_BYTES)
        say(p, E0010, t->span, "a string longer than 64 KiB", NULL);
    t->text = intern_n(&p->cx->names, s.at, s.n);
    t->kind = T_STRING;
}

/* ---- numbers ------------------------------------------------------------- */

/* Splits "1e-3", "8MiB" after the number proper. */
static size_t number_bytes(const char *s)
{
    size_t n = strspn(s, "0123456789");
    if (s[n] == '.')
        n += 1 + strspn(s + n + 1, "0123456789");
    if (s[n] == 'e' || s[n] == 'E') {
        size_t sign = s[n + 1] == '+' || s[n + 1] == '-';
        size_t digits = strspn(s + n + 1 + sign, "0123456789");
        if (digits > 0)
            n += 1 + sign + digits;
    }
    return n;
}

/* 2^10, 2^20 ... for KiB, MiB ...; 1 for nothing; 0 for anything else */
static int64_t suffix_value(const char *s)
{
    static const char letters[] = "KMGT";
    const char *at = *s == '\0' ? NULL : strchr(letters, *s);
    if (*s == '\0')
        return 1;
    if (at == NULL || strcmp(s + 1, "iB") != 0)
        return 0;
    return (int64_t)1 << (10 * (at - letters + 1));
}

static bool read_integer(const char *s, size_t n, int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n; i++)
        if (!mul_size(*out, 10, out) || !add_size(*out, s[i] - '0', out))
            return false;
    return true;
}

static void say_bad_suffix(Parser *p, const Token *t, const char *suffix)
{
    const char *text = arena_printf(p->arena, "`%s` cannot follow a number", suffix);
    const char *help = "the suffixes are KiB, MiB, GiB and TiB";
    if (strchr("kKmMgGtT", *suffix) == NULL)
        help = "a name does not begin with a digit";
    if (*suffix == 'e' || *suffix == 'E')
        help = "an exponent has digits, as in `1e-3`";
    if (strcmp(suffix, "f") == 0)
        help = "numbers take the type of what they are used with";
    say(p, E0006, t->span, text, help);
}

static void finish_number(Parser *p, Token *t)
{
    const char *s =
        arena_strndup(p->arena, p->text + t->span.from, (size_t)(t->span.to - t->span.from));
    size_t n = number_bytes(s);
    int64_t unit = suffix_value(s + n), value = 0;
    double real = 0;
    t->text = s;
    if (unit == 0) {
        say_bad_suffix(p, t, s + n);
        t->text = arena_strndup(p->arena, s, n);
    } else if (strspn(s, "0123456789") == n) {
        if (!read_integer(s, n, &value) || !mul_size(value, unit, &value)) {
            say(p, E0008, t->span, "an integer beyond 2^63 - 1", NULL);
            t->text = "0";
        }
    } else if (read_double(s, n, &real) && isinf(real)) {
        say(p, E0008, t->span, "a number beyond all types", "what is beyond every number is `inf`");
    }
}

Expr *tree_number(Parser *p, Span at, const char *text)
{
    Expr *e = tree_bool(p, at, false);
    size_t n = number_bytes(text);
    int64_t unit = suffix_value(text + n);
    e->kind = EXPR_NUMBER;
    e->number.text = text;
    if (strcmp(text, "inf") == 0) {
        e->number.value = (double)INFINITY;
        return e;
    }
    e->number.is_integer = strspn(text, "0123456789") == n;
    read_double(text, n, &e->number.value);
    e->number.value *= (double)unit;
    if (e->number.is_integer && read_integer(text, n, &e->number.integer))
        mul_size(e->number.integer, unit, &e->number.integer);
    return e;
}

/* ---- the next token ------------------------------------------------------ */

Token scan_token(Parser *p)
{
    for (;;) {
        int kind = model_scan_lex(p->scanner);
        int length = kind == 0 ? 0 : (int)model_scan_get_leng(p->scanner);
        Token t = {kind, {p->file, p->at - length, p->at}, NULL};
        switch (kind) {
        case T_NAME:
            finish_name(p, &t);
            return t;
        case T_NUMBER:
            finish_number(p, &t);
            return t;
        case T_BAD_NUMBER:
            say_bad_number(p, &t);
            return t;
        case T_STRING:
        case T_OPEN_STRING:
            finish_string(p, &t, kind == T_OPEN_STRING);
            return t;
        case T_BAD:
            say_bad_character(p, &t);
            if (ends_line(p, &t))
                continue; /* as if it were not there */
            return t;
        default:
            return t;
        }
    }
}
