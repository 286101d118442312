/* Lines of canonical layout: cells in columns, comments behind, long lines cut. */
#ifndef GRADC_FRONT_LAYOUT_H
#define GRADC_FRONT_LAYOUT_H

#include "base/vec.h"

enum { MAX_CELLS = 3, LINE_WIDTH = 100, INDENT_WIDTH = 4 };

/* Lines that follow one another and are of the same kind have their cells one
 * below the other. */
typedef enum LineKind {
    LINE_PLAIN,
    LINE_INPUT,
    LINE_PARAM,
    LINE_STATE,
    LINE_RESULT,
    LINE_SETTING
} LineKind;

/* A new line may begin at this byte of a cell, inside this many brackets. */
typedef struct Break {
    int cell, at, depth;
} Break;

typedef struct Line {
    LineKind kind;
    int indent;
    int n_cells; /* 0: an empty line, or a comment alone */
    const char *cell[MAX_CELLS];
    VEC(Break) brk;
    const char *comment; /* "# …" or NULL */
} Line;

typedef struct Layout {
    Arena *arena;
    VEC(Line) line;
    Text cell; /* being written */
    int depth; /* of brackets in it */
} Layout;

void layout_init(Layout *l, Arena *arena);
/* Opens a line; text then goes into l->cell, and a cell ends with its call. */
void layout_line(Layout *l, LineKind kind, int indent);
void layout_end_cell(Layout *l);
/* The line that is being written may be cut here. */
void layout_break(Layout *l);
void layout_empty(Layout *l);
void layout_comment(Layout *l, int indent, const char *text, size_t n);
/* A comment behind the last line. */
void layout_comment_behind(Layout *l, const char *text, size_t n);
void layout_write(Layout *l, Text *to);

#endif
