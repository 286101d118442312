#include "layout.h"

#include <string.h>

/* Code longer than this does not push the comments of its neighbours away. */
enum { LONGEST_ALIGNED = 72, CONTINUED = 2 * INDENT_WIDTH };

void layout_init(Layout *l, Arena *arena)
{
    *l = (Layout){.arena = arena};
    text_init(&l->cell, arena);
}

static Line *last_line(Layout *l)
{
    return &l->line.at[l->line.n - 1];
}

void layout_line(Layout *l, LineKind kind, int indent)
{
    Line line = {.kind = kind, .indent = indent};
    vec_push(l->arena, &l->line, line);
}

void layout_end_cell(Layout *l)
{
    Line *line = last_line(l);
    line->cell[line->n_cells++] = arena_strndup(l->arena, l->cell.at, l->cell.n);
    l->cell.n = 0;
    l->cell.at[0] = '\0';
}

void layout_break(Layout *l)
{
    Line *line = last_line(l);
    Break b = {line->n_cells, (int)l->cell.n, l->depth};
    if (l->depth > 0)
        vec_push(l->arena, &line->brk, b);
}

void layout_empty(Layout *l)
{
    if (l->line.n > 0 && (last_line(l)->n_cells > 0 || last_line(l)->comment != NULL))
        layout_line(l, LINE_PLAIN, 0);
}

void layout_comment(Layout *l, int indent, const char *text, size_t n)
{
    layout_line(l, LINE_PLAIN, indent);
    layout_comment_behind(l, text, n);
}

void layout_comment_behind(Layout *l, const char *text, size_t n)
{
    while (n > 1 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    last_line(l)->comment = arena_strndup(l->arena, text, n);
}

/* ---- columns ------------------------------------------------------------- */

static bool same_columns(const Line *a, const Line *b)
{
    return a->kind != LINE_PLAIN && a->kind == b->kind && a->indent == b->indent;
}

/* Widths of the cells in lines [from, to), but of no line's last one. */
static void cell_widths(const Layout *l, int from, int to, int width[MAX_CELLS])
{
    for (int c = 0; c < MAX_CELLS; c++)
        width[c] = 0;
    for (int i = from; i < to; i++)
        for (int c = 0; c + 1 < l->line.at[i].n_cells; c++) {
            int w = (int)strlen(l->line.at[i].cell[c]);
            width[c] = w > width[c] ? w : width[c];
        }
}

/* A line as one string, with the offsets of its breaks in it. */
typedef struct Joined {
    const char *text;
    int n;
} Joined;

static Joined join(Layout *l, Line *line, const int width[MAX_CELLS])
{
    Text t;
    text_init(&t, l->arena);
    int next = 0;
    for (int c = 0; c < line->n_cells; c++) {
        int start = (int)t.n;
        for (; next < line->brk.n && line->brk.at[next].cell == c; next++)
            line->brk.at[next].at += start;
        text_add(&t, "%s", line->cell[c]);
        for (int pad = (int)t.n - start; c + 1 < line->n_cells && pad <= width[c]; pad++)
            text_char(&t, ' ');
    }
    return (Joined){t.at, (int)t.n};
}

/* ---- long lines ---------------------------------------------------------- */

/* The break to cut at: within the fewest brackets of those that fit, and the last
 * of them; if none fits, the first there is; -1 if there is none. */
static int choose_break(const Line *line, int from, int room)
{
    int best = -1;
    for (int i = 0; i < line->brk.n; i++) {
        const Break *b = &line->brk.at[i];
        if (b->at <= from)
            continue;
        if (b->at - 1 - from > room)
            return best >= 0 ? best : i;
        if (best < 0 || b->depth <= line->brk.at[best].depth)
            best = i;
    }
    return best;
}

static void put_indent(Text *to, int columns)
{
    for (int i = 0; i < columns; i++)
        text_char(to, ' ');
}

/* Writes the code of a line. Returns the columns that its last line takes. */
static int put_code(Text *to, const Line *line, Joined j)
{
    int from = 0, column = line->indent * INDENT_WIDTH;
    put_indent(to, column);
    while (j.n - from > LINE_WIDTH - column) {
        int cut = choose_break(line, from, LINE_WIDTH - column);
        if (cut < 0)
            break;
        int at = line->brk.at[cut].at, end = at;
        while (end > from && j.text[end - 1] == ' ')
            end--;
        text_put(to, j.text + from, (size_t)(end - from));
        column = line->indent * INDENT_WIDTH + CONTINUED;
        text_char(to, '\n');
        put_indent(to, column);
        from = at;
    }
    text_put(to, j.text + from, (size_t)(j.n - from));
    return column + j.n - from;
}

/* ---- comments behind lines ----------------------------------------------- */

static bool has_aligned_comment(const Line *line, Joined j)
{
    return line->comment != NULL && line->n_cells > 0 &&
           line->indent * INDENT_WIDTH + j.n <= LONGEST_ALIGNED;
}

/* Column of the comments in the run of lines that holds line i. */
static int comment_column(const Layout *l, const Joined *j, int i)
{
    int from = i, to = i, column = 0;
    while (from > 0 && has_aligned_comment(&l->line.at[from - 1], j[from - 1]))
        from--;
    while (to < l->line.n && has_aligned_comment(&l->line.at[to], j[to]))
        to++;
    for (int k = from; k < to; k++) {
        int end = l->line.at[k].indent * INDENT_WIDTH + j[k].n;
        column = end > column ? end : column;
    }
    return column + 2;
}

static Joined *join_all(Layout *l)
{
    Joined *j = NEW_ARRAY(l->arena, Joined, l->line.n);
    for (int from = 0, to; from < l->line.n; from = to) {
        int width[MAX_CELLS];
        for (to = from + 1; to < l->line.n; to++)
            if (!same_columns(&l->line.at[from], &l->line.at[to]))
                break;
        cell_widths(l, from, to, width);
        for (int i = from; i < to; i++)
            j[i] = join(l, &l->line.at[i], width);
    }
    return j;
}

void layout_write(Layout *l, Text *to)
{
    Joined *j = join_all(l);
    int column = 0; /* of the comments in this run; 0: no run */
    for (int i = 0; i < l->line.n; i++) {
        const Line *line = &l->line.at[i];
        int end = 0;
        if (line->n_cells > 0)
            end = put_code(to, line, j[i]);
        else if (line->comment != NULL)
            put_indent(to, line->indent * INDENT_WIDTH);
        bool aligned = has_aligned_comment(line, j[i]);
        if (aligned && column == 0)
            column = comment_column(l, j, i);
        if (!aligned)
            column = 0;
        if (line->comment != NULL && line->n_cells > 0)
            put_indent(to, aligned ? column - end : 2);
        if (line->comment != NULL)
            text_add(to, "%s", line->comment);
        text_char(to, '\n');
    }
}
