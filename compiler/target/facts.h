/* What a Program is to those who call its object, whatever the target: facts for tables, and the
 * typed header. */
#ifndef GRADC_TARGET_FACTS_H
#define GRADC_TARGET_FACTS_H

#include "target.h"

/* ---- facts.c ------------------------------------------------------------------------- */

int32_t fact_result(const Program *p, const char *name); /* index in p->result, or -1 */
int32_t fact_result_kind(const Program *p, int32_t result);
int32_t fact_loss(const Program *p);              /* index in p->result, or -1 */
bool fact_live(const Program *p, int32_t buffer); /* keeps its value between calls */
int32_t fact_role(Role r);                        /* GRADC_ role of a tensor */
/* The entry's own buffer of result i, or NULL. */
const Result *fact_own_result(const Program *p, const Entry *e, int i);
bool fact_gives_outputs(const Program *p); /* beside loss and metrics */
/* An input, or its copy for a call that is short of rows. */
bool fact_is_input(const Buffer *b);

/* Whether the entry may write buffer b, a copy of an input: one that lasts, or that lies in bytes
 * which the entry has spare. Elsewhere its offset is no room: other values are there. */
bool fact_has_copy(const Program *p, const Entry *e, const Buffer *b);

/* An input as one entry uses it. */
typedef struct Use {
    int64_t reads;   /* leading elements that its kernels reach; 0: not used */
    int64_t staging; /* offset of the copy for rows that are missing, or -1 */
} Use;
/* How an entry uses the inputs, by input; gives the rows of a full call. */
int64_t fact_uses(const Program *p, const Entry *e, Use *use);

/* ---- storage.c ---------------------------------------------------------------------- */

/* Whether all that is written while an entry runs has storage: what kernels write, and copies of
 * inputs, which lie over nothing else that the entry has. Also that `grad` reads no more than
 * `step` has checked.   gives: NULL, or what is wrong, in scratch. */
const char *storage_check(const Program *p, Arena *scratch);

/* ---- names.c ------------------------------------------------------------------------- */

/* An identifier for any name; keywords and prefixes of others avoided. */
const char *name_identifier(Arena *arena, const char *name);
/* In upper case, for macros. */
const char *name_upper(Arena *arena, const char *s);
/* Unique identifiers for n names. */
const char **name_identifiers(Arena *arena, const char *const *name, int n);
/* The C type of an element: "float". */
const char *name_c_type(DType t);
/* Text that may stand in a C comment, and in a string literal. */
const char *name_in_comment(Arena *arena, const char *text);
const char *name_in_string(Arena *arena, const char *text);

/* ---- header.c ------------------------------------------------------------------------ */

/* What a target says of its objects in NAME.h. */
typedef struct HeaderWords {
    const char *name;      /* C identifier of the model */
    int64_t block;         /* bytes of the caller's block, ... */
    const char *what;      /* ... and what they are */
    const char *more;      /* #defines of the target's own, a line each */
    const char *usage;     /* a comment before the functions, or NULL */
    const char *functions; /* declarations of its own, or NULL */
    const char *extra;     /* C text put before the last line, or NULL */
} HeaderWords;
const char *header_text(const Program *p, const HeaderWords *w, Arena *arena);

#endif
