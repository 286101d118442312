/* A Program as an object: entries, tables, header. */
#ifndef GRADC_TARGET_CPU_MODEL_H
#define GRADC_TARGET_CPU_MODEL_H

#include "object.h"
#include "support.h"

/* An input as one entry uses it. */
typedef struct Use {
    int64_t reads;   /* leading elements that its kernels reach; 0: not used */
    int64_t staging; /* offset of the copy for partial batches, or -1 */
} Use;

typedef struct Model {
    Ctx *cx;
    Ir ir;
    const Program *p;
    const TargetOptions *o;
    Arena *arena;
    ObjectFile *out;
    const char *name; /* C identifier of the model, prefix of all symbols */
    KernelFn *kernel;
    const Origin **origin; /* by kernel: its first call's */
    Lv *constant;          /* by buffer: ROLE_CONSTANT's bytes */
    Lv *calls;             /* by entry: what model_calls() has made */
    Lv cells;              /* table of tensors for read, write and set */
    struct Lines *lines;
} Model;

/* calls.c: what an entry runs, as  void (ptr g, ptr places)  functions. */
Lv model_calls(Model *m, const Entry *e);
/* How an entry uses the inputs, by input; gives the rows of a full call. */
int64_t model_uses(const Program *p, const Entry *e, Use *use);
/* entry.c: the checked entry  i32 (ptr g, ptr in, ptr out). */
Lv model_entry_fn(Model *m, const Entry *e);
/* tables.c: private constants; an array of none is NULL. */
Lv model_constant(Model *m, Lv value, const char *name);
Lv model_array(Model *m, Lv *row, int n, const char *name);
/* gradc_model and the tables it points to; exported functions. */
void model_tables(Model *m);
int32_t model_result(const Program *p, const char *name); /* index in p->result */
int32_t model_result_kind(const Program *p, int32_t result);
int32_t model_loss(const Program *p);              /* index in p->result, or -1 */
bool model_live(const Program *p, int32_t buffer); /* keeps its value between calls */
int32_t model_role(Role r);                        /* GRADC_ role of a tensor */
/* names.c: an identifier for any name; keywords and prefixes of others avoided. */
const char *name_identifier(Arena *arena, const char *name);
/* Unique identifiers for n names. */
const char **name_identifiers(Arena *arena, const char *const *name, int n);
/* Text that may stand in a C comment, and in a string literal. */
const char *name_in_comment(Arena *arena, const char *text);
const char *name_in_string(Arena *arena, const char *text);
/* header.c */
const char *model_header(Model *m);
/* lines.c: DWARF line tables into the .model. */
struct Lines *lines_open(Model *m);
/* Of a function just begun, or complete. */
void lines_function(struct Lines *l, Lv fn, const char *name, const Origin *origin);
void lines_at(struct Lines *l, const Origin *origin);
void lines_close(struct Lines *l);
bool lines_wanted(const Model *m);
/* Path and line of the .model that asks for it; NULL: there is no such place. */
const char *lines_place(const Model *m, const Origin *origin, int *line);
#define LINES_PRODUCER "gradc " GRADC_VERSION

#endif
