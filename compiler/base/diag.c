/* Sources, and the list of what has been reported. Printing: diag_print.c. */
#include "diag.h"

#include <string.h>

#include "utf8.h"

void ctx_init(Ctx *cx)
{
    *cx = (Ctx){.dump_to = stdout};
    cx->names.arena = &cx->perm;
}

void ctx_free(Ctx *cx)
{
    arena_free(&cx->scratch);
    arena_free(&cx->perm);
}

static void find_lines(Arena *a, Source *s)
{
    int32_t n = 1;
    for (int32_t i = 0; i < s->bytes; i++)
        n += s->text[i] == '\n';
    int32_t *start = NEW_ARRAY(a, int32_t, n);
    s->line_start = start;
    s->n_lines = n;
    n = 1;
    for (int32_t i = 0; i < s->bytes; i++)
        if (s->text[i] == '\n')
            start[n++] = i + 1;
}

int32_t source_add(Ctx *cx, const char *path, const char *text, size_t bytes, bool library)
{
    if (bytes > MAX_SOURCE_BYTES)
        bytes = MAX_SOURCE_BYTES + 1;
    Source *s = NEW(&cx->perm, Source);
    s->path = arena_strdup(&cx->perm, path);
    s->text = arena_strndup(&cx->perm, text, bytes);
    s->bytes = (int32_t)bytes;
    s->library = library;
    find_lines(&cx->perm, s);
    vec_push(&cx->perm, &cx->source, s);
    return cx->source.n - 1;
}

/* Index of the line that holds the byte: the last that starts at or before it. */
static int32_t line_of(const Source *s, int32_t byte)
{
    int32_t low = 0, high = s->n_lines;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (s->line_start[middle] <= byte)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void source_position(const Source *s, int32_t byte, int *line, int *column)
{
    if (byte > s->bytes)
        byte = s->bytes;
    int32_t l = line_of(s, byte);
    const char *p = s->text + s->line_start[l], *end = s->text + byte;
    *line = l + 1;
    *column = 1;
    while (p < end)
        *column += utf8_width(utf8_next(&p, end)) > 0;
}

Span span_join(Span a, Span b)
{
    if (a.file < 0)
        return b;
    if (b.file != a.file)
        return a;
    return (Span){a.file, a.from < b.from ? a.from : b.from, a.to > b.to ? a.to : b.to};
}

static bool same_span(Span a, Span b)
{
    return a.file == b.file && a.from == b.from && a.to == b.to;
}

static bool reported(const Ctx *cx, Code code, Span at, const char *text)
{
    for (int i = 0; i < cx->diag.n; i++) {
        const Diag *d = cx->diag.at[i];
        if (d->code == code && same_span(d->span, at) && strcmp(d->text, text) == 0)
            return true;
    }
    return false;
}

static Diag *dummy(Ctx *cx)
{
    if (cx->dummy == NULL)
        cx->dummy = NEW(&cx->perm, Diag);
    *cx->dummy = (Diag){.span = NO_SPAN};
    return cx->dummy;
}

static Diag *keep(Ctx *cx, Code code, Span at, const char *text, bool warning)
{
    Diag *d = NEW(&cx->perm, Diag);
    d->code = code;
    d->span = at;
    d->text = text;
    d->warning = warning;
    vec_push(&cx->perm, &cx->diag, d);
    return d;
}

static Diag *report(Ctx *cx, Code code, Span at, const char *text, bool warning)
{
    if (reported(cx, code, at, text))
        return dummy(cx);
    int n = warning ? ++cx->n_warnings : ++cx->n_errors;
    if (n <= MAX_ERRORS)
        return keep(cx, code, at, text, warning);
    if (n == MAX_ERRORS + 1 && !warning)
        keep(cx, E0000, NO_SPAN, "too many errors: only the first 20 are shown", false);
    return dummy(cx);
}

Diag *diag_error(Ctx *cx, Code code, Span at, const char *format, ...)
{
    if (cx->n_errors > MAX_ERRORS)
        return dummy(cx);
    va_list ap;
    va_start(ap, format);
    const char *text = arena_vprintf(&cx->perm, format, ap);
    va_end(ap);
    return report(cx, code, at, text, false);
}

Diag *diag_warning(Ctx *cx, Code code, Span at, const char *format, ...)
{
    if (cx->n_warnings > MAX_ERRORS)
        return dummy(cx);
    va_list ap;
    va_start(ap, format);
    const char *text = arena_vprintf(&cx->perm, format, ap);
    va_end(ap);
    return report(cx, code, at, text, true);
}

void diag_range(Diag *d, Span s)
{
    if (d->n_ranges < MAX_RANGES)
        d->range[d->n_ranges++] = s;
}

void diag_note(Ctx *cx, Diag *d, Span at, const char *format, ...)
{
    if (d == cx->dummy || d->n_notes == MAX_NOTES)
        return;
    va_list ap;
    va_start(ap, format);
    const char *text = arena_vprintf(&cx->perm, format, ap);
    va_end(ap);
    d->note[d->n_notes++] = (Note){at, text};
}

void diag_help(Ctx *cx, Diag *d, const char *format, ...)
{
    if (d == cx->dummy)
        return;
    va_list ap;
    va_start(ap, format);
    d->help = arena_vprintf(&cx->perm, format, ap);
    va_end(ap);
}

const Origin *origin_unkept(Ctx *cx, const Origin *o)
{
    if (!origin_is_kept(o))
        return o;
    Origin *plain = NEW(&cx->perm, Origin);
    *plain = *o;
    plain->memory = MEMORY_PLANNED;
    return plain;
}

bool origin_same(const Origin *x, const Origin *y)
{
    return x == y || (x->parent == y->parent && x->name == y->name && x->part == y->part &&
                      x->span.file == y->span.file && x->span.from == y->span.from &&
                      x->span.to == y->span.to);
}
