/* Diagnostics as text with carets, or as JSON lines. What comes from a source is
 * made harmless on the way: control characters never reach a terminal. */
#include "diag.h"

#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* The part of a long line that is shown: this many bytes around the caret. */
enum { BEFORE_CARET = 100, AFTER_CARET = 100, MAX_CALLS = 16 };

typedef enum Style { PLAIN, BOLD, RED, YELLOW, BLUE } Style;

static const char *sgr(const Ctx *cx, Style s)
{
    static const char *const code[] = {"\33[0m", "\33[1m", "\33[1;31m", "\33[1;33m", "\33[1;34m"};
    return cx->color ? code[s] : "";
}

static const Source *source_of(const Ctx *cx, Span s)
{
    return s.file >= 0 && s.file < cx->source.n ? cx->source.at[s.file] : NULL;
}

/* One code point as a terminal may have it. Returns the cells it takes. */
static int put_char(Text *t, const char **p, const char *end)
{
    const char *start = *p;
    int32_t c = utf8_next(p, end);
    if (c == '\t') {
        text_char(t, ' ');
        return 1;
    }
    bool harmless = c >= 0x20 && !(c >= 0x7f && c < 0xa0) && !(c >= 0x202a && c <= 0x202e) &&
                    !(c >= 0x2066 && c <= 0x2069);
    if (!harmless) {
        text_put(t, "\xef\xbf\xbd", 3); /* U+FFFD */
        return 1;
    }
    text_put(t, start, (size_t)(*p - start));
    return utf8_width(c);
}

static void put_clean(Text *t, const char *s)
{
    const char *end = s + strlen(s);
    while (s < end)
        put_char(t, &s, end);
}

static void put_place(const Ctx *cx, Text *t, Span at)
{
    const Source *s = source_of(cx, at);
    if (s == NULL) {
        text_add(t, "gradc");
        return;
    }
    int line, column;
    source_position(s, at.from, &line, &column);
    put_clean(t, s->path);
    text_add(t, ":%d:%d", line, column);
}

/* Bytes [from, to) of the caret's line that are shown. */
typedef struct Window {
    const Source *s;
    int line;
    int32_t from, to;
    bool cut_left, cut_right;
} Window;

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static Window window_of(const Source *s, Span at)
{
    Window w = {.s = s};
    int column;
    source_position(s, at.from, &w.line, &column);
    int32_t start = s->line_start[w.line - 1], end = start;
    while (end < s->bytes && s->text[end] != '\n')
        end++;
    if (end > start && s->text[end - 1] == '\r')
        end--;
    w.from = at.from - BEFORE_CARET > start ? at.from - BEFORE_CARET : start;
    w.to = at.from + AFTER_CARET < end ? at.from + AFTER_CARET : end;
    while (w.from > start && continues(s->text[w.from]))
        w.from--;
    while (w.to < end && continues(s->text[w.to]))
        w.to++;
    w.cut_left = w.from > start;
    w.cut_right = w.to < end;
    return w;
}

static char mark_at(const Diag *d, int32_t byte)
{
    if (byte == d->span.from)
        return '^';
    bool marked = byte > d->span.from && byte < d->span.to;
    for (int i = 0; i < d->n_ranges; i++)
        marked |=
            d->range[i].file == d->span.file && byte >= d->range[i].from && byte < d->range[i].to;
    return marked ? '~' : ' ';
}

/* The marks under the line, with no spaces at the end. */
static void put_marks(Text *t, const Diag *d, const Window *w)
{
    Text row, ignored;
    text_init(&row, t->arena);
    text_init(&ignored, t->arena);
    if (w->cut_left)
        text_add(&row, "   ");
    const char *p = w->s->text + w->from, *end = w->s->text + w->to;
    while (p < end) {
        char c = mark_at(d, (int32_t)(p - w->s->text));
        int cells = put_char(&ignored, &p, end);
        for (int i = 0; i < cells; i++)
            text_char(&row, i > 0 && c == '^' ? '~' : c);
    }
    if (d->span.from >= w->to)
        text_char(&row, '^');
    while (row.n > 0 && row.at[row.n - 1] == ' ')
        row.n--;
    text_put(t, row.at, row.n);
}

static void put_line(const Ctx *cx, Text *t, const Diag *d)
{
    const Source *s = source_of(cx, d->span);
    if (s == NULL)
        return;
    Window w = window_of(s, d->span);
    text_add(t, "%5d | %s", w.line, w.cut_left ? "..." : "");
    for (const char *p = s->text + w.from, *end = s->text + w.to; p < end;)
        put_char(t, &p, end);
    text_add(t, "%s\n      | %s", w.cut_right ? "..." : "", sgr(cx, d->warning ? YELLOW : RED));
    put_marks(t, d, &w);
    text_add(t, "%s\n", sgr(cx, PLAIN));
}

/* What is called at the origin, from its text ("nn.linear("), else its name. */
static const char *callee(const Ctx *cx, Arena *a, const Origin *o)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
    const Source *s = source_of(cx, o->span);
    if (s != NULL && o->span.from < s->bytes) {
        const char *word = s->text + o->span.from;
        size_t n = strspn(word, letters);
        if (n > 0 && word[n] == '(')
            return arena_strndup(a, word, n);
    }
    return o->name;
}

static void put_calls(const Ctx *cx, Text *t, const Diag *d)
{
    int n = 0;
    const Origin *o = d->origin == NULL ? NULL : d->origin->parent;
    for (; o != NULL; o = o->parent) {
        const char *name = callee(cx, t->arena, o);
        if (name == NULL)
            continue;
        if (++n > MAX_CALLS) {
            text_add(t, "   ... and in further calls\n");
            return;
        }
        text_add(t, "   in ");
        put_clean(t, name);
        text_add(t, ", called at ");
        put_place(cx, t, o->span);
        text_char(t, '\n');
    }
}

static void put_text(const Ctx *cx, Text *t, const Diag *d)
{
    text_add(t, "%s", sgr(cx, BOLD));
    put_place(cx, t, d->span);
    text_add(t, ": %s%s[%s]:%s ", sgr(cx, d->warning ? YELLOW : RED),
             d->warning ? "warning" : "error", code_id(d->code), sgr(cx, PLAIN));
    put_clean(t, d->text);
    text_char(t, '\n');
    put_line(cx, t, d);
    for (int i = 0; i < d->n_notes; i++) {
        put_place(cx, t, d->note[i].span);
        text_add(t, ": %snote:%s ", sgr(cx, BLUE), sgr(cx, PLAIN));
        put_clean(t, d->note[i].text);
        text_char(t, '\n');
    }
    put_calls(cx, t, d);
    if (d->code == E0000)
        return;
    text_add(t, "   help: ");
    if (d->help != NULL)
        put_clean(t, d->help);
    else
        text_add(t, "`gradc explain %s`", code_id(d->code));
    text_char(t, '\n');
}

static void json_string(Text *t, const char *key, const char *value)
{
    text_add(t, "\"%s\":\"", key);
    text_json(t, value);
    text_char(t, '"');
}

static void json_place(const Ctx *cx, Text *t, Span at)
{
    const Source *s = source_of(cx, at);
    if (s == NULL) {
        text_add(t, "\"file\":null");
        return;
    }
    int line, column, end_line, end_column;
    source_position(s, at.from, &line, &column);
    source_position(s, at.to, &end_line, &end_column);
    json_string(t, "file", s->path);
    text_add(t, ",\"line\":%d,\"column\":%d,\"end_line\":%d,\"end_column\":%d", line, column,
             end_line, end_column);
}

static void json_calls(const Ctx *cx, Text *t, const Diag *d)
{
    int n = 0;
    const Origin *o = d->origin == NULL ? NULL : d->origin->parent;
    for (; o != NULL; o = o->parent) {
        const char *name = callee(cx, t->arena, o);
        if (name == NULL)
            continue;
        text_add(t, "%s{", n++ > 0 ? "," : "");
        json_string(t, "in", name);
        text_char(t, ',');
        json_place(cx, t, o->span);
        text_char(t, '}');
    }
}

static void put_json(const Ctx *cx, Text *t, const Diag *d)
{
    text_char(t, '{');
    json_string(t, "severity", d->warning ? "warning" : "error");
    if (d->code == N_CODES)
        text_add(t, ",\"code\":null,");
    else
        text_add(t, ",\"code\":\"%s\",", code_id(d->code));
    json_place(cx, t, d->span);
    text_char(t, ',');
    json_string(t, "message", d->text);
    text_add(t, ",\"ranges\":[");
    for (int i = 0; i < d->n_ranges; i++) {
        text_add(t, "%s{", i > 0 ? "," : "");
        json_place(cx, t, d->range[i]);
        text_char(t, '}');
    }
    text_add(t, "],\"notes\":[");
    for (int i = 0; i < d->n_notes; i++) {
        text_add(t, "%s{", i > 0 ? "," : "");
        json_place(cx, t, d->note[i].span);
        text_char(t, ',');
        json_string(t, "message", d->note[i].text);
        text_char(t, '}');
    }
    text_add(t, "],\"calls\":[");
    json_calls(cx, t, d);
    text_add(t, "],\"help\":");
    if (d->help != NULL) {
        text_char(t, '"');
        text_json(t, d->help);
        text_add(t, "\"}\n");
    } else {
        text_add(t, "null}\n");
    }
}

typedef struct Ordered {
    const Diag *d;
    int index;
} Ordered;

/* By place in the source; "too many errors" and what has no place come last. */
static int compare(const void *pa, const void *pb)
{
    const Ordered *a = pa, *b = pb;
    uint32_t fa = (uint32_t)a->d->span.file, fb = (uint32_t)b->d->span.file;
    if (fa != fb)
        return fa < fb ? -1 : 1;
    if (a->d->span.from != b->d->span.from)
        return a->d->span.from < b->d->span.from ? -1 : 1;
    return a->index - b->index;
}

void diag_print(const Ctx *cx, FILE *to)
{
    Arena arena = {0};
    Ordered *list = NEW_ARRAY(&arena, Ordered, cx->diag.n);
    for (int i = 0; i < cx->diag.n; i++)
        list[i] = (Ordered){cx->diag.at[i], i};
    if (cx->diag.n > 0)
        qsort(list, (size_t)cx->diag.n, sizeof *list, compare);
    for (int i = 0; i < cx->diag.n; i++) {
        Text t;
        text_init(&t, &arena);
        if (cx->json)
            put_json(cx, &t, list[i].d);
        else
            put_text(cx, &t, list[i].d);
        fwrite(t.at, 1, t.n, to);
    }
    arena_free(&arena);
}

void diag_message(bool json, bool warning, const char *text, const char *help, FILE *to)
{
    Arena arena = {0};
    Text t;
    text_init(&t, &arena);
    Diag d = {.code = N_CODES, .warning = warning, .span = NO_SPAN, .text = text, .help = help};
    if (json) {
        put_json(NULL, &t, &d);
    } else {
        text_add(&t, "gradc: %s\n", text);
        if (help != NULL)
            text_add(&t, "  help: %s\n", help);
    }
    fwrite(t.at, 1, t.n, to);
    arena_free(&arena);
}
