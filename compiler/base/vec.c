/* Growable arrays, and text that grows. Numbers as text: text_number.c. */
#include "vec.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

void *vec_grow(Arena *a, void *at, size_t size, int *cap)
{
    assert(*cap <= INT_MAX / 2);
    int more = *cap == 0 ? 8 : 2 * *cap;
    size_t old_bytes = (size_t)*cap * size;
    void *to = at;
    if (!arena_extend(a, at, old_bytes, (size_t)more * size)) {
        to = arena_array(a, (size_t)more, size);
        if (old_bytes > 0)
            memcpy(to, at, old_bytes);
    }
    *cap = more;
    return to;
}

void text_init(Text *t, Arena *arena)
{
    *t = (Text){.arena = arena, .cap = 64};
    t->at = arena_alloc(arena, t->cap);
}

/* Room for n more characters and the NUL. */
static void text_reserve(Text *t, size_t n)
{
    if (t->cap - t->n > n)
        return;
    size_t cap = 2 * t->cap > t->n + n + 1 ? 2 * t->cap : t->n + n + 1;
    if (!arena_extend(t->arena, t->at, t->cap, cap)) {
        char *to = arena_alloc(t->arena, cap);
        memcpy(to, t->at, t->n);
        t->at = to;
    }
    t->cap = cap;
}

void text_put(Text *t, const char *s, size_t n)
{
    if (n == 0)
        return;
    text_reserve(t, n);
    memcpy(t->at + t->n, s, n);
    t->n += n;
    t->at[t->n] = '\0';
}

void text_char(Text *t, char c)
{
    text_put(t, &c, 1);
}

void text_add(Text *t, const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    if (n > 0) {
        text_reserve(t, (size_t)n);
        vsnprintf(t->at + t->n, (size_t)n + 1, format, again);
        t->n += (size_t)n;
    }
    va_end(again);
}

/* The letter after the backslash, 0 when c needs no or another escape. */
static char short_escape(char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c == '\0' ? NULL : strchr(from, c);
    return at == NULL ? '\0' : to[at - from];
}

void text_json(Text *t, const char *s)
{
    const char *end = s + strlen(s);
    while (s < end) {
        const char *start = s;
        int32_t c = utf8_next(&s, end);
        char e = short_escape(*start);
        if (e != '\0')
            text_add(t, "\\%c", e);
        else if (c < 0)
            text_add(t, "\\ufffd");
        else if (c < 0x20)
            text_add(t, "\\u%04x", (unsigned)c);
        else
            text_put(t, start, (size_t)(s - start));
    }
}

void text_pair(Text *t, const char *key, const char *value)
{
    text_add(t, "\"%s\": ", key);
    if (value == NULL) {
        text_add(t, "null");
        return;
    }
    text_char(t, '"');
    text_json(t, value);
    text_char(t, '"');
}

void text_c(Text *t, const char *s)
{
    for (; *s != '\0'; s++) {
        char e = short_escape(*s);
        unsigned char c = (unsigned char)*s;
        if (e != '\0')
            text_add(t, "\\%c", e);
        else if (c < 0x20 || c == 0x7f || c == '?') /* "??/" is a trigraph in C99 */
            text_add(t, "\\%03o", c);
        else
            text_char(t, *s);
    }
}
