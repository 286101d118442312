/* Reading a placement problem. The first mistake ends it: a line that is cut short is
 * followed by others that make no sense. */
#include <string.h>

#include "placement.h"

typedef enum Column {
    COL_ID,
    COL_LOWER,
    COL_UPPER,
    COL_SIZE, /* the others may be missing */
    COL_ALIGNMENT,
    COL_GAPS,
    COL_IGNORED
} Column;

enum { MOST_COLUMNS = 16 };

static const struct {
    const char *name;
    Column column;
    bool last; /* the last instant, not the one after it */
} names[] = {
    {"id", COL_ID, false},        {"lower", COL_LOWER, false},
    {"upper", COL_UPPER, false},  {"size", COL_SIZE, false},
    {"buffer", COL_ID, false},    {"buffer_id", COL_ID, false},
    {"begin", COL_LOWER, false},  {"start", COL_LOWER, false},
    {"end", COL_UPPER, true},     {"alignment", COL_ALIGNMENT, false},
    {"gaps", COL_GAPS, false},    {"offset", COL_IGNORED, false},
    {"hint", COL_IGNORED, false},
};
enum { N_NAMES = sizeof names / sizeof *names };

/* Sums of two such are no overflow. */
static const int64_t most = INT64_MAX / 4;

typedef struct Reader {
    Ctx *cx;
    Arena *arena;
    const Source *source;
    int32_t file, at; /* the next byte */
    int32_t n_columns;
    Column column[MOST_COLUMNS];
    Span heading[MOST_COLUMNS];
    bool ends_inclusive;
    VEC(PlacedBuffer) buffer;
    int64_t total; /* bytes of all buffers, rounded up */
} Reader;

static Span span(const Reader *r, int32_t from, int32_t to)
{
    return (Span){r->file, from, to};
}

static int32_t length(Span s)
{
    return s.to - s.from;
}

static const char *text(const Reader *r, Span s)
{
    return r->source->text + s.from;
}

static const char *copy(const Reader *r, Span s)
{
    return arena_strndup(r->arena, text(r, s), (size_t)length(s));
}

/* ---- fields ---------------------------------------------------------------------------- */

/* The next field, without blanks around it; *more: another one follows on the line. A
 * carriage return is part of the end of a line only. */
static Span next_field(Reader *r, bool *more)
{
    const char *s = r->source->text;
    int32_t from = r->at, end = r->source->bytes;
    while (r->at < end && s[r->at] != ',' && s[r->at] != '\n')
        r->at++;
    int32_t to = r->at;
    *more = r->at < end && s[r->at] == ',';
    if (!*more && to > from && s[to - 1] == '\r')
        to--;
    r->at += r->at < end;
    while (from < to && (s[from] == ' ' || s[from] == '\t'))
        from++;
    while (from < to && (s[to - 1] == ' ' || s[to - 1] == '\t'))
        to--;
    return span(r, from, to);
}

/* The fields of the next line, `most_fields` at the most; returns how many there are. */
static int32_t next_line(Reader *r, Span *field, int32_t most_fields)
{
    int32_t n = 0;
    bool more = true;
    while (more) {
        Span s = next_field(r, &more);
        if (n < most_fields)
            field[n] = s;
        n++;
    }
    return n;
}

/* Decimal digits, a sign before them; nothing else. */
static bool read_integer(Reader *r, Span at, const char *what, int64_t *out)
{
    const char *s = text(r, at);
    int32_t n = length(at), i = n > 1 && (s[0] == '-' || s[0] == '+');
    int64_t value = 0;
    bool digits = i < n, fits = true;
    for (; i < n && digits; i++) {
        digits = s[i] >= '0' && s[i] <= '9';
        fits = fits && value <= (most - 9) / 10;
        value = fits && digits ? value * 10 + (s[i] - '0') : value;
    }
    if (n == 0)
        diag_error(r->cx, E0620, at, "there is no %s", what);
    else if (!digits)
        diag_error(r->cx, E0620, at, "the %s `%s` is not a whole number", what, copy(r, at));
    else if (!fits)
        diag_error(r->cx, E0620, at, "the %s %s is out of range: the most is %lld", what,
                   copy(r, at), (long long)most);
    *out = s[0] == '-' ? -value : value;
    return digits && fits && n > 0;
}

/* ---- header ------------------------------------------------------------------------------ */

static int32_t find_name(const Reader *r, Span at)
{
    for (int32_t i = 0; i < N_NAMES; i++)
        if ((int32_t)strlen(names[i].name) == length(at) &&
            strncmp(names[i].name, text(r, at), (size_t)length(at)) == 0)
            return i;
    return -1;
}

static bool unknown_column(Reader *r, Span at)
{
    const char *known[N_NAMES];
    for (int32_t i = 0; i < N_NAMES; i++)
        known[i] = names[i].name;
    const char *near = nearest(copy(r, at), known, N_NAMES);
    Diag *d =
        diag_error(r->cx, E0620, at, "there is no column `%s` in a placement problem", copy(r, at));
    if (near != NULL)
        diag_help(r->cx, d, "did you mean `%s`?", near);
    return false;
}

static bool read_heading(Reader *r, int32_t c)
{
    int32_t name = find_name(r, r->heading[c]);
    if (name < 0)
        return unknown_column(r, r->heading[c]);
    r->column[c] = names[name].column;
    r->ends_inclusive |= names[name].last;
    for (int32_t i = 0; i < c; i++)
        if (r->column[i] == r->column[c] && r->column[c] != COL_IGNORED) {
            Diag *d = diag_error(r->cx, E0620, r->heading[c], "the column `%s` is there twice",
                                 names[r->column[c]].name);
            diag_note(r->cx, d, r->heading[i], "here it is first");
            return false;
        }
    return true;
}

static bool has_column(const Reader *r, Column column)
{
    for (int32_t i = 0; i < r->n_columns; i++)
        if (r->column[i] == column)
            return true;
    return false;
}

static bool read_header(Reader *r)
{
    if (r->source->bytes >= 3 && memcmp(r->source->text, "\xEF\xBB\xBF", 3) == 0)
        r->at = 3; /* a byte order mark */
    int32_t from = r->at;
    r->n_columns = next_line(r, r->heading, MOST_COLUMNS);
    if (r->n_columns > MOST_COLUMNS) {
        diag_error(r->cx, E0620, r->heading[MOST_COLUMNS - 1],
                   "the header has %d columns: the most is %d", r->n_columns, MOST_COLUMNS);
        return false;
    }
    for (int32_t c = 0; c < r->n_columns; c++)
        if (!read_heading(r, c))
            return false;
    for (int32_t c = COL_ID; c <= COL_SIZE; c++)
        if (!has_column(r, (Column)c)) {
            Diag *d = diag_error(r->cx, E0620, span(r, from, r->heading[r->n_columns - 1].to),
                                 "the header has no column `%s`", names[c].name);
            diag_help(r->cx, d, "the first line is `id,lower,upper,size`");
            return false;
        }
    return true;
}

/* ---- buffers ------------------------------------------------------------------------------ */

static bool read_cell(Reader *r, Column column, Span at, PlacedBuffer *b, Span where[])
{
    where[column] = at;
    switch (column) {
    case COL_ID:
        b->id = text(r, at);
        b->id_bytes = length(at);
        b->at = at;
        if (length(at) == 0)
            diag_error(r->cx, E0620, at, "there is no id");
        return length(at) > 0;
    case COL_LOWER:
        return read_integer(r, at, "lower", &b->lower);
    case COL_UPPER:
        return read_integer(r, at, "upper", &b->upper);
    case COL_SIZE:
        return read_integer(r, at, "size", &b->size);
    case COL_ALIGNMENT:
        return read_integer(r, at, "alignment", &b->alignment);
    case COL_GAPS:
        if (length(at) > 0)
            diag_error(r->cx, E0620, at, "gaps are not supported: the buffer has `%s`",
                       copy(r, at));
        return length(at) == 0;
    default:
        return true;
    }
}

/* What each number says alone, and with the others. */
static bool makes_sense(Reader *r, PlacedBuffer *b, const Span where[])
{
    if (b->size <= 0) {
        diag_error(r->cx, E0620, where[COL_SIZE], "the size %lld is not positive",
                   (long long)b->size);
        return false;
    }
    if (b->alignment <= 0 || b->alignment > 1 << 30) {
        diag_error(r->cx, E0620, where[COL_ALIGNMENT], "the alignment %lld is not in 1 to %d",
                   (long long)b->alignment, 1 << 30);
        return false;
    }
    if (b->lower >= b->upper + r->ends_inclusive) {
        Diag *d = diag_error(r->cx, E0620, where[COL_UPPER],
                             "the buffer is never alive: it begins at %lld and ends at %lld",
                             (long long)b->lower, (long long)b->upper);
        diag_range(d, where[COL_LOWER]);
        return false;
    }
    b->upper += r->ends_inclusive;
    if (!add_size(r->total, b->size, &r->total) || r->total > most) {
        diag_error(r->cx, E0620, where[COL_SIZE], "the sizes up to here add up to more than %lld",
                   (long long)most);
        return false;
    }
    return true;
}

static bool read_buffer(Reader *r)
{
    Span field[MOST_COLUMNS], where[COL_IGNORED + 1];
    int32_t from = r->at, n = next_line(r, field, MOST_COLUMNS);
    if (n != r->n_columns) {
        int32_t to = n <= MOST_COLUMNS ? field[n - 1].to : field[MOST_COLUMNS - 1].to;
        Diag *d = diag_error(r->cx, E0620, span(r, from, to), "the line has %d field%s", n,
                             n == 1 ? "" : "s");
        diag_note(r->cx, d, span(r, r->heading[0].from, r->heading[r->n_columns - 1].to),
                  "the header has %d", r->n_columns);
        return false;
    }
    PlacedBuffer b = {.alignment = 1};
    for (int32_t c = 0; c < n; c++)
        if (!read_cell(r, r->column[c], field[c], &b, where))
            return false;
    if (!makes_sense(r, &b, where))
        return false;
    vec_push(r->arena, &r->buffer, b);
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Ids go into a table of at least twice as many places. */
static bool ids_differ(Reader *r)
{
    int32_t places = 2;
    while (places < 2 * r->buffer.n)
        places *= 2;
    int32_t *table = NEW_ARRAY(r->arena, int32_t, places); /* index + 1 */
    for (int32_t i = 0; i < r->buffer.n; i++) {
        const PlacedBuffer *b = &r->buffer.at[i];
        uint64_t h = hash_bytes(HASH_START, b->id, (size_t)b->id_bytes);
        int32_t at = (int32_t)(h & (uint64_t)(places - 1));
        for (; table[at] != 0; at = (at + 1) & (places - 1)) {
            const PlacedBuffer *other = &r->buffer.at[table[at] - 1];
            if (other->id_bytes != b->id_bytes ||
                memcmp(other->id, b->id, (size_t)b->id_bytes) != 0)
                continue;
            Diag *d = diag_error(r->cx, E0620, b->at, "there are two buffers `%s`", copy(r, b->at));
            diag_note(r->cx, d, other->at, "here is the other");
            return false;
        }
        table[at] = i + 1;
    }
    return true;
}

static bool only_blank(const Reader *r)
{
    for (int32_t i = r->at; i < r->source->bytes; i++)
        if (strchr(" \t\r\n", r->source->text[i]) == NULL || r->source->text[i] == 0)
            return false;
    return true;
}

static bool read_all(Reader *r)
{
    const char *nul = memchr(r->source->text, 0, (size_t)r->source->bytes);
    if (nul != NULL) {
        int32_t at = (int32_t)(nul - r->source->text);
        diag_error(r->cx, E0620, span(r, at, at), "the file has a NUL byte: it is no text");
        return false;
    }
    if (r->source->bytes > MAX_SOURCE_BYTES) {
        diag_error(r->cx, E0620, span(r, 0, 0), "the file is larger than %d MiB",
                   MAX_SOURCE_BYTES >> 20);
        return false;
    }
    if (only_blank(r)) {
        diag_error(r->cx, E0620, span(r, 0, 0), "the file is empty");
        return false;
    }
    if (!read_header(r))
        return false;
    while (!only_blank(r))
        if (!read_buffer(r))
            return false;
    if (r->buffer.n == 0) {
        diag_error(r->cx, E0620, r->heading[0], "there are no buffers below the header");
        return false;
    }
    return ids_differ(r);
}

Placement *placement_read(Ctx *cx, int32_t source, Arena *a)
{
    Reader r = {.cx = cx, .arena = a, .source = cx->source.at[source], .file = source};
    if (!read_all(&r))
        return NULL;
    Placement *p = NEW(a, Placement);
    p->n = r.buffer.n;
    p->buffer = r.buffer.at;
    p->alignment = 1;
    for (int32_t i = 0; i < p->n; i++) {
        int64_t x = p->buffer[i].alignment, y = p->alignment;
        if (!mul_size(x / common_divisor(x, y), y, &p->alignment) || p->alignment > 1 << 30) {
            diag_error(cx, E0620, p->buffer[i].at,
                       "the alignments up to here have no common multiple below %d", 1 << 30);
            return NULL;
        }
    }
    return p;
}
