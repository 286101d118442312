/* Tables of numbers: CSV and its kin. */
#include "internal.h"

#include <string.h>

typedef struct Table {
    const char *name, *text;
    int64_t n, at;
    char separator;
    int64_t line;    /* of `at`, from 1 */
    int64_t columns; /* of the first line of numbers */
    gradc_array *out;
    int64_t room; /* elements allocated */
    gradc_error *e;
} Table;

static int bad(Table *t, int64_t column, const char *what, const char *field, int64_t n)
{
    char shown[32];
    if (n > (int64_t)sizeof shown - 1)
        n = (int64_t)sizeof shown - 1;
    memcpy(shown, field, (size_t)n);
    shown[n] = '\0';
    int status = gr_fail_at(t->e, GRADC_FORMAT, t->line, "%s: line %lld, column %lld: %s: '%s'",
                            t->name, (long long)t->line, (long long)column, what, shown);
    if (t->e != NULL)
        t->e->column = column;
    return status;
}

/* End of the line that begins at `at`, without CR and LF; *next is where the one after begins. */
static int64_t line_end(const Table *t, int64_t at, int64_t *next)
{
    const char *lf = memchr(t->text + at, '\n', (size_t)(t->n - at));
    int64_t end = lf == NULL ? t->n : lf - t->text;
    *next = lf == NULL ? t->n : end + 1;
    if (end > at && t->text[end - 1] == '\r')
        end--;
    return end;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool empty_line(const Table *t, int64_t at, int64_t end)
{
    while (at < end && is_blank(t->text[at]))
        at++;
    return at == end;
}

/* Skips empty lines; false at the end of the text. */
static bool next_line(Table *t, int64_t *end, int64_t *next)
{
    for (; t->at < t->n; t->at = *next, t->line++) {
        *end = line_end(t, t->at, next);
        if (!empty_line(t, t->at, *end))
            return true;
    }
    return false;
}

/* The field at `at` without blanks around it; `at` moves behind its separator. False if none. */
static bool next_field(const Table *t, int64_t *at, int64_t end, int64_t *from, int64_t *to)
{
    bool spaced = t->separator == ' ';
    int64_t i = *at;
    while (i < end && t->text[i] != t->separator && is_blank(t->text[i]))
        i++;
    while (spaced && i < end && is_blank(t->text[i]))
        i++;
    if (*at > end || (spaced && i == end))
        return false;
    *from = i;
    while (i < end && t->text[i] != t->separator && !(spaced && is_blank(t->text[i])))
        i++;
    *to = i;
    while (*to > *from && is_blank(t->text[*to - 1]))
        --*to;
    *at = i + 1; /* behind the separator, or beyond the end */
    return true;
}

/* A line with one of them is split there; tabs may be blanks too, so they come after commas. */
static char guess_separator(const Table *t, int64_t at, int64_t end)
{
    static const char order[] = {';', ',', '\t', ' '};
    while (at < end && is_blank(t->text[at]))
        at++;
    for (size_t i = 0; i < sizeof order; i++)
        if (memchr(t->text + at, order[i], (size_t)(end - at)) != NULL)
            return order[i];
    return ',';
}

static bool all_numbers(const Table *t, int64_t at, int64_t end)
{
    int64_t from, to;
    double v;
    while (next_field(t, &at, end, &from, &to))
        if (gr_parse_number(t->text + from, to - from, &v) != to - from || to == from)
            return false;
    return true;
}

static int64_t count_fields(const Table *t, int64_t at, int64_t end)
{
    int64_t n = 0, from, to;
    while (next_field(t, &at, end, &from, &to))
        n++;
    return n;
}

static int put(Table *t, int64_t index, int64_t column, int64_t from, int64_t to)
{
    double v;
    const char *field = t->text + from;
    int64_t used = gr_parse_number(field, to - from, &v);
    if (from == to)
        return bad(t, column, "nothing where a number should be", field, 0);
    if (used < 0)
        return bad(t, column, "a number beyond the range of a double", field, to - from);
    if (used != to - from)
        return bad(t, column, "not a number", field, to - from);
    if (t->out->dtype == GRADC_F64) {
        ((double *)t->out->data)[index] = v;
        return GRADC_OK;
    }
    float narrow = (float)v;
    if (gr_nonfinite(GRADC_F32, &narrow, 1) == 0)
        return bad(t, column, "a number beyond the range of f32", field, to - from);
    ((float *)t->out->data)[index] = narrow;
    return GRADC_OK;
}

static int read_line(Table *t, int64_t row, int64_t end)
{
    int64_t at = t->at, from, to, column = 0;
    while (next_field(t, &at, end, &from, &to)) {
        if (column == t->columns)
            return bad(t, column + 1, "more columns than the first line of numbers has",
                       t->text + from, to - from);
        int status = put(t, row * t->columns + column, column + 1, from, to);
        if (status != GRADC_OK)
            return status;
        column++;
    }
    if (column < t->columns)
        return bad(t, column + 1, "fewer columns than the first line of numbers has", "", 0);
    return GRADC_OK;
}

/* Lines from t->at on, but no more than the text can hold at two bytes a number: what is
 * allocated is bounded by the size of the file, whatever its lines look like. */
static int64_t most_rows(const Table *t)
{
    int64_t lines = 1, numbers = (t->n - t->at) / 2 + 1;
    for (int64_t i = t->at; i < t->n; i++)
        lines += t->text[i] == '\n';
    return lines < numbers / t->columns + 1 ? lines : numbers / t->columns + 1;
}

static int read_rows(Table *t, int32_t dtype)
{
    int64_t end = 0, next = 0, row = 0, shape[2] = {most_rows(t), t->columns};
    int status = gr_array_new(dtype, 2, shape, t->out, t->e);
    while (status == GRADC_OK && next_line(t, &end, &next)) {
        if (row == shape[0]) /* cannot be: a full row of fields took its bytes */
            return bad(t, 1, "more lines than the text has", "", 0);
        status = read_line(t, row++, end);
        t->at = next;
        t->line++;
    }
    if (status != GRADC_OK)
        return status;
    t->out->shape[0] = row;
    if (!gr_shape_size(dtype, 2, t->out->shape, &t->out->elems, &t->out->bytes))
        return gr_fail(t->e, GRADC_FORMAT, "%s: too large", t->name);
    return gr_ok(t->e);
}

/* The byte at `nul` is in this field of this line: what separates fields is guessed of the line. */
static int refuse_nul(Table *t, int64_t nul)
{
    int64_t begin = nul, next, from, to, column = 0;
    for (int64_t i = 0; i < nul; i++)
        t->line += t->text[i] == '\n';
    while (begin > 0 && t->text[begin - 1] != '\n')
        begin--;
    int64_t end = line_end(t, begin, &next);
    if (t->separator == 0)
        t->separator = guess_separator(t, begin, end);
    for (int64_t at = begin; at <= nul && next_field(t, &at, end, &from, &to);)
        column++;
    return bad(t, column, "a byte of value 0, which no text has", "", 0);
}

static int read_table(Table *t, const gradc_csv_options *o)
{
    int64_t end = 0, next = 0;
    const char *nul = memchr(t->text, '\0', (size_t)t->n);
    if (nul != NULL) {
        t->separator = (char)o->separator;
        return refuse_nul(t, nul - t->text);
    }
    if (t->n >= 3 && memcmp(t->text, "\xEF\xBB\xBF", 3) == 0)
        t->at = 3;
    if (!next_line(t, &end, &next))
        return gr_fail_at(t->e, GRADC_FORMAT, t->line, "%s: no line with anything in it", t->name);
    t->separator = o->separator != 0 ? (char)o->separator : guess_separator(t, t->at, end);
    if (o->header > 0 || (o->header == 0 && !all_numbers(t, t->at, end))) {
        t->at = next;
        t->line++;
        if (!next_line(t, &end, &next))
            return gr_fail_at(t->e, GRADC_FORMAT, t->line, "%s: nothing after the header line",
                              t->name);
        /* a header of one word says nothing of the separator */
        if (o->separator == 0)
            t->separator = guess_separator(t, t->at, end);
    }
    t->columns = count_fields(t, t->at, end);
    if (t->columns < 1 || t->columns > GRADC_MAX_COLUMNS)
        return gr_fail_at(t->e, GRADC_FORMAT, t->line, "%s: %lld columns; 1 to %d are read",
                          t->name, (long long)t->columns, GRADC_MAX_COLUMNS);
    return read_rows(t, o->dtype);
}

static int check_options(const gradc_csv_options *o, gradc_error *e)
{
    int status = gr_check_size(o->struct_size, sizeof *o, "gradc_csv_options", e);
    if (status != GRADC_OK)
        return status;
    if (o->dtype != GRADC_F32 && o->dtype != GRADC_F64)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "tables are read as f32 or f64");
    if (o->separator != 0 &&
        (o->separator < 0 || o->separator > 127 || strchr(",;\t ", o->separator) == NULL))
        return gr_fail(e, GRADC_BAD_ARGUMENT, "a separator is one of , ; tab space");
    if (o->header < -1 || o->header > 1)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "header is -1, 0 or 1");
    return GRADC_OK;
}

int gradc_csv_parse(const char *name, const void *bytes, size_t n, const gradc_csv_options *options,
                    gradc_array *out, gradc_error *e)
{
    gradc_csv_options o = {.struct_size = sizeof o, .dtype = GRADC_F32};
    if (out == NULL || name == NULL || (n > 0 && bytes == NULL) || n > INT64_MAX)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_csv_parse: an argument is missing");
    *out = (gradc_array){0};
    if (options != NULL)
        o = *options;
    int status = check_options(&o, e);
    if (status != GRADC_OK)
        return status;
    Table t = {.name = name, .text = bytes, .n = (int64_t)n, .line = 1, .out = out, .e = e};
    if (n == 0)
        return gr_fail_at(e, GRADC_FORMAT, 1, "%s: no line with anything in it", name);
    status = read_table(&t, &o);
    if (status != GRADC_OK)
        gradc_array_free(out);
    return status;
}
