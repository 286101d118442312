/* Tokens: words, numbers and single signs; `#` begins a comment. */
#include <stdlib.h>
#include <string.h>
#include "read.h"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '%';
}

void ktoken_next(Reader *r)
{
    int32_t at = r->to;
    const char *s = r->text;
    while (s[at] == ' ' || s[at] == '\n' || s[at] == '\t' || s[at] == '\r' || s[at] == '#') {
        if (s[at] == '#')
            while (s[at + 1] != '\0' && s[at + 1] != '\n')
                at++;
        at++;
    }
    r->from = r->to = at;
    if (is_word(s[at])) {
        bool number = s[at] >= '0' && s[at] <= '9'; /* 1e-05 is one word */
        while (is_word(s[r->to]) ||
               (number && (s[r->to] == '-' || s[r->to] == '+') && s[r->to - 1] == 'e'))
            r->to++;
    } else if (s[at] != '\0') {
        r->to += s[at] == '<' && s[at + 1] == '=' ? 2 : 1;
    }
}

bool ktoken_is(const Reader *r, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(r->to - r->from) == n && memcmp(r->text + r->from, word, n) == 0;
}

const char *ktoken_word(Reader *r)
{
    return intern_n(&r->cx->names, r->text + r->from, (size_t)(r->to - r->from));
}

void ktoken_fail(Reader *r, const char *wanted)
{
    if (r->failed)
        return;
    r->failed = true;
    Span at = {r->file, r->from, r->to};
    if (r->from == r->to)
        diag_error(r->cx, E0190, at, "the text ends where %s is expected", wanted);
    else
        diag_error(r->cx, E0190, at, "%s is expected, not `%s`", wanted, ktoken_word(r));
}

void ktoken_refuse(Reader *r, int32_t from, int32_t to, const char *text)
{
    if (!r->failed)
        diag_error(r->cx, E0190, (Span){r->file, from, to}, "%s", text);
    r->failed = true;
}

bool ktoken_accept(Reader *r, const char *what)
{
    if (r->failed || !ktoken_is(r, what))
        return false;
    ktoken_next(r);
    return true;
}

void ktoken_expect(Reader *r, const char *what)
{
    if (!ktoken_accept(r, what))
        ktoken_fail(r, arena_printf(&r->cx->perm, "`%s`", what));
}

bool ktoken_at_digit(const Reader *r)
{
    return r->from < r->to && r->text[r->from] >= '0' && r->text[r->from] <= '9';
}

uint64_t ktoken_natural(Reader *r, uint64_t limit)
{
    uint64_t n = 0;
    if (r->failed || !ktoken_at_digit(r)) {
        ktoken_fail(r, "an integer");
        return 0;
    }
    for (int32_t i = r->from; i < r->to; i++) {
        uint64_t digit = (uint64_t)(r->text[i] - '0');
        if (digit > 9 || n > (limit - digit) / 10) {
            ktoken_fail(r, digit > 9 ? "an integer" : "a smaller integer");
            return 0;
        }
        n = 10 * n + digit;
    }
    ktoken_next(r);
    return n;
}

int64_t ktoken_size(Reader *r)
{
    return (int64_t)ktoken_natural(r, INT64_MAX);
}

int64_t ktoken_integer(Reader *r)
{
    bool minus = ktoken_accept(r, "-");
    uint64_t n = ktoken_natural(r, INT64_MAX + (uint64_t)minus);
    return (int64_t)(minus ? -n : n);
}

double ktoken_number(Reader *r, DType t)
{
    bool minus = ktoken_accept(r, "-");
    double x = 0;
    float f = 0;
    size_t n = (size_t)(r->to - r->from);
    if (ktoken_is(r, "nan"))
        x = strtod("nan", NULL);
    else if (ktoken_is(r, "inf"))
        x = strtod("inf", NULL);
    else if (!ktoken_at_digit(r) || !(t == F64 ? read_double(r->text + r->from, n, &x)
                                               : read_float(r->text + r->from, n, &f)))
        ktoken_fail(r, "a number");
    else if (t != F64)
        x = f;
    if (!r->failed)
        ktoken_next(r);
    return minus ? -x : x;
}

DType ktoken_dtype(Reader *r)
{
    DType t = F32;
    if (r->failed || !dtype_find(ktoken_word(r), &t))
        ktoken_fail(r, "an element type");
    else
        ktoken_next(r);
    return t;
}

int ktoken_choice(Reader *r, const char *const *table, int n, const char *wanted)
{
    for (int i = 0; i < n; i++)
        if (ktoken_accept(r, table[i]))
            return i;
    ktoken_fail(r, wanted);
    return 0;
}
