/* Names of a model in C: identifiers, comments, strings. */
#include <ctype.h>
#include <string.h>
#include "facts.h"

/* Words that C, C++ or a header of either has taken. */
static const char *const taken[] = {
    "alignas",     "alignof",   "and",       "and_eq",    "asm",          "assert",
    "auto",        "bitand",    "bitor",     "bool",      "break",        "case",
    "catch",       "char",      "char16_t",  "char32_t",  "char8_t",      "class",
    "co_await",    "co_return", "co_yield",  "compl",     "concept",      "const",
    "const_cast",  "consteval", "constexpr", "constinit", "continue",     "decltype",
    "default",     "delete",    "do",        "double",    "dynamic_cast", "else",
    "enum",        "errno",     "explicit",  "export",    "extern",       "false",
    "far",         "float",     "for",       "friend",    "goto",         "gradc",
    "huge",        "if",        "inline",    "int",       "interface",    "linux",
    "long",        "main",      "mutable",   "namespace", "near",         "new",
    "noexcept",    "not",       "not_eq",    "nullptr",   "operator",     "or",
    "or_eq",       "private",   "protected", "public",    "register",     "reinterpret_cast",
    "requires",    "reserved",  "restrict",  "return",    "rows",         "short",
    "signed",      "size_t",    "sizeof",    "small",     "static",       "static_assert",
    "static_cast", "struct",    "switch",    "template",  "this",         "thread_local",
    "throw",       "true",      "try",       "typedef",   "typeid",       "typename",
    "typeof",      "union",     "unix",      "unsigned",  "using",        "virtual",
    "void",        "volatile",  "wchar_t",   "while",     "xor",          "xor_eq",
};

static bool is_taken(const char *s)
{
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(taken[i], s) == 0)
            return true;
    return strncmp(s, "gradc_", 6) == 0;
}

const char *name_identifier(Arena *arena, const char *name)
{
    Text t;
    text_init(&t, arena);
    /* A leading digit needs a letter; a leading underscore is the implementation's. */
    if (!isalpha((unsigned char)name[0]) || (unsigned char)name[0] >= 0x80)
        text_char(&t, 'v');
    for (const char *p = name; *p != 0; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x80 && isalnum(c))
            text_char(&t, *p);
        else if (c < 0x80 || c >= 0xc0) /* one for a character, not for each of its bytes */
            text_char(&t, '_');
    }
    if (is_taken(t.at))
        text_char(&t, '_');
    return t.at;
}

const char *name_upper(Arena *arena, const char *s)
{
    char *u = arena_strdup(arena, s);
    for (char *p = u; *p != 0; p++)
        *p = (char)toupper((unsigned char)*p);
    return u;
}

const char **name_identifiers(Arena *arena, const char *const *name, int n)
{
    const char **id = NEW_ARRAY(arena, const char *, n);
    Interns seen = {.arena = arena};
    for (int i = 0; i < n; i++) {
        const char *base = name_identifier(arena, name[i]), *try = base;
        bool clash = true;
        for (int k = 2; clash; k++) {
            uint32_t before = seen.n;
            const char *s = intern(&seen, try);
            clash = seen.n == before;
            if (clash)
                try = arena_printf(arena, "%s_%d", base, k);
            else
                id[i] = s;
        }
    }
    return id;
}

const char *name_in_comment(Arena *arena, const char *text)
{
    Text t;
    text_init(&t, arena);
    for (const char *p = text; *p != 0; p++) {
        char last = t.n > 0 ? t.at[t.n - 1] : ' ';
        bool closes = (last == '*' && *p == '/') || (last == '/' && *p == '*');
        if (closes || (last == '?' && *p == '?') || (last == '\\' && *p == '\n'))
            text_char(&t, ' ');
        text_char(&t, (unsigned char)*p < 0x20 && *p != '\n' ? ' ' : *p);
    }
    return t.at;
}

const char *name_in_string(Arena *arena, const char *text)
{
    Text t;
    text_init(&t, arena);
    for (const char *p = text; *p != 0; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\' || c == '?')
            text_add(&t, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            text_add(&t, "\\%03o", c);
        else
            text_char(&t, *p);
    }
    return t.at;
}

const char *name_c_type(DType t)
{
    static const char *const name[N_DTYPES] = {"float",   "double",  "uint16_t", "uint16_t",
                                               "int32_t", "int64_t", "uint8_t",  "uint8_t"};
    return name[t];
}
