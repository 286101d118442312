/* What `gradc explain` says of a tensor, and how. */
#ifndef GRADC_CLI_EXPLAIN_H
#define GRADC_CLI_EXPLAIN_H

#include "cli.h"

/* In one entry: a value of its plan, or (plan is NULL) the kernels that read an input. */
typedef struct Life {
    const char *entry;
    const Plan *plan;
    int32_t value;
    const char *view_of; /* the value is another's, of this name; else NULL */
    bool given;          /* to the caller, when the entry has run */
    const char *label;   /* of the first kernel that reads an input */
    int readers;
} Life;

typedef struct Subject {
    const char *name, *role;
    Type type;
    const char *line;    /* "m.model:7", or NULL */
    const char *storage; /* what holds for all entries: pinned, caller; NULL: as each plan says */
    int64_t offset;      /* of pinned storage, of an input's copy; -1: none */
    VEC(Life) life;
} Subject;

/* `name = value` in the model's file. */
typedef struct Bound {
    const char *name;
    Span at;
    bool in_loop;
} Bound;

/* What becomes of its value in each entry. */
void bound_text(Text *t, const Ctx *cx, const Output *out, const Bound *b);
void bound_json(Text *t, const Ctx *cx, const Output *out, const Bound *b);

/* The ranges of a value of the plan: one line each, or a JSON array. */
void ranges_text(Text *t, Arena *a, const Plan *p, int32_t value, int indent);
void ranges_json(Text *t, Arena *a, const Plan *p, int32_t value);

/* A paragraph, or a JSON object. What is made on the way is in `a`. */
void subject_text(Text *t, Arena *a, const Subject *s);
void subject_json(Text *t, Arena *a, const Subject *s);

#endif
