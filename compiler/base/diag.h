/* Source files, spans and diagnostics.
 *
 * Whoever finds an error reports it once, with a span, and returns NULL or
 * false. A diagnostic has a code (E0203) from codes.def, where each has its
 * one-line title and the text of `gradc explain`. */
#ifndef GRADC_BASE_DIAG_H
#define GRADC_BASE_DIAG_H

#include <stdio.h>
#include "arena.h"
#include "intern.h"
#include "vec.h"

typedef struct Source {
    const char *path; /* as shown to the user */
    const char *text; /* NUL-terminated, owned by cx->perm */
    int32_t bytes;
    int32_t n_lines;
    const int32_t *line_start; /* byte offset of each line */
    bool library;              /* part of gradc's own standard library */
} Source;

/* Bytes [from, to) of a source; file -1 is "nowhere". */
typedef struct Span {
    int32_t file, from, to;
} Span;
#define NO_SPAN ((Span){-1, 0, 0})

/* What the word before a binding asks of its values. */
typedef enum Memory {
    MEMORY_PLANNED,
    MEMORY_KEEP,      /* stored from the forward to the reverse pass */
    MEMORY_RECOMPUTE, /* all that the binding computes is computed again in the reverse pass */
    MEMORY_OFFLOAD,   /* as keep, and out of the block until the reverse pass reads it */
    /* By replay(): */
    MEMORY_AGAIN, /* the second computation */
    MEMORY_LATE,  /* what the reverse pass makes of it */
    MEMORY_STORED /* read by the reverse pass, and made of values that are not kept */
} Memory;

/* Of a reduction: whether the one of the same op that reads it goes on with its walk. */
typedef enum WalksOn {
    WALKS_IF_ALONE, /* where nothing else reads it */
    WALKS_ON,       /* By replay(): as it is without words, whoever reads it again; */
    WALKS_NOT       /* ... though fewer read each of its computations */
} WalksOn;

/* One run of the statements of `budget BYTES { ... }`: what is kept of their values from the
 * forward to the reverse pass is at most so much. The rest is what compile_parts() makes of it. */
typedef struct Origin Origin;
typedef struct BudgetPart BudgetPart;
struct BudgetPart {
    Span at; /* `budget BYTES` */
    int64_t bytes;
    const BudgetPart *outer; /* that it lies in, or NULL */
    const Origin *from;      /* the call that it is in, or NULL */
    int32_t id, build;       /* in the model, from 0; the last build that ran it, from 1 */
    bool less;               /* of its values, only `kept` are kept: others are computed again */
    VEC(const Origin *) kept;
    int32_t tries;
    int64_t least; /* bytes kept: the least that was found; INT64_MAX before */
};

/* Where something comes from: a place, and the call that led there; and what is asked of it. */
struct Origin {
    Span span;
    const Origin *parent; /* the call's origin, NULL at the top */
    const char *name;     /* path component of a block call ("h.3"), or NULL */
    Memory memory;
    WalksOn walks;
    BudgetPart *part; /* the innermost, or NULL */
};

/* The same but for what is asked of it. */
bool origin_same(const Origin *x, const Origin *y);

/* It is computed once, and stored from the forward to the reverse pass. */
static inline bool origin_is_kept(const Origin *o)
{
    return o != NULL && (o->memory == MEMORY_KEEP || o->memory == MEMORY_OFFLOAD);
}

typedef enum Code {
#define CODE(id, title) id,
#include "codes.def"
#undef CODE
    N_CODES
} Code;

enum { MAX_ERRORS = 20, MAX_RANGES = 4, MAX_NOTES = 4 };
enum { MAX_SOURCE_BYTES = 16 << 20 };

typedef struct Note {
    Span span;
    const char *text;
} Note;

typedef struct Diag {
    Code code;
    bool warning;
    Span span;        /* the caret */
    const char *text; /* lower case, no full stop */
    int n_ranges, n_notes;
    Span range[MAX_RANGES]; /* underlined with ~ on the caret's line */
    Note note[MAX_NOTES];
    const char *help;     /* or NULL */
    const Origin *origin; /* call path, printed as "in nn.linear, called at ..." */
} Diag;

typedef struct Ctx {
    Arena perm;    /* sources, strings, diagnostics: as long as the program */
    Arena scratch; /* one pass */
    Interns names;
    VEC(Source *) source;
    VEC(Diag *) diag;
    int n_errors, n_warnings;
    Diag *dummy;      /* what callers fill in when there are too many */
    bool json;        /* diagnostics as JSON lines */
    bool color;       /* SGR sequences; only on a terminal */
    bool flush;       /* constants are folded as objects that flush denormals compute */
    bool verify;      /* inspect() verifies every stage */
    const char *dump; /* inspect() prints the stage of this name ("all": every stage) */
    FILE *dump_to;    /* default stdout */
} Ctx;

void ctx_init(Ctx *cx);
void ctx_free(Ctx *cx);

/* Adds a source; `text` is copied. Returns its index. Of a text that is too
 * long, MAX_SOURCE_BYTES + 1 are kept, which the parser refuses. */
int32_t source_add(Ctx *cx, const char *path, const char *text, size_t bytes, bool library);
/* 1-based line, and column counted in displayed characters. */
void source_position(const Source *s, int32_t byte, int *line, int *column);

/* o, of which is not asked that it is kept. */
const Origin *origin_unkept(Ctx *cx, const Origin *o);

/* Opens a diagnostic; the caller may add to what it returns. Beyond MAX_ERRORS
 * errors a dummy is returned and one "too many errors" is kept. Exactly the
 * same complaint at the same place (a block called twice) is kept once. */
Diag *diag_error(Ctx *cx, Code code, Span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
Diag *diag_warning(Ctx *cx, Code code, Span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void diag_range(Diag *d, Span s);
void diag_note(Ctx *cx, Diag *d, Span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void diag_help(Ctx *cx, Diag *d, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prints what has been reported, in the order of the source for errors found in
 * one pass, as text with carets or as JSON lines. */
void diag_print(const Ctx *cx, FILE *to);

/* A message that is no diagnostic, with no code and no place: "gradc: TEXT", or as JSON with the
 * keys that a diagnostic has. help: or NULL. */
void diag_message(bool json, bool warning, const char *text, const char *help, FILE *to);

/* "E0203" of a code, its title; the code of "E0203" or N_CODES; its long text,
 * NULL if nobody wrote one. */
const char *code_id(Code code);
const char *code_title(Code code);
Code code_find(const char *id);
const char *code_explanation(Code code);

/* The candidate nearest to `word` (edit distance at most a third of its length,
 * at most 2), or NULL. */
const char *nearest(const char *word, const char *const *candidate, int n);

/* Span from the start of a to the end of b (same file). */
Span span_join(Span a, Span b);

#endif
