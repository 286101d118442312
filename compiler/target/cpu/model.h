/* A Program as an object: entries, tables, header. */
#ifndef GRADC_TARGET_CPU_MODEL_H
#define GRADC_TARGET_CPU_MODEL_H

#include "../facts.h"
#include "object.h"
#include "panels.h"
#include "room.h"
#include "support.h"

typedef struct Model {
    Ctx *cx;
    Ir ir;
    const Program *p;     /* with matrices in panels: */
    const Panels *panels; /* by buffer */
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

/* Scratch of a call's lanes: from the start of the block, so many lanes, of so many bytes each. */
static inline int64_t model_scratch(const Model *m, const Call *call)
{
    return room_of(m->p, call).lo;
}
static inline int64_t model_lanes(const Model *m, const Call *call)
{
    return room_of(m->p, call).lanes;
}
static inline int64_t model_lane_bytes(const Model *m, const Call *call)
{
    return room_of(m->p, call).bytes;
}

/* grain.c: which of its kernels are shared out, once all are known. */
void model_grain(Model *m);
/* calls.c: what an entry runs, as  void (ptr g, ptr places)  functions. */
Lv model_calls(Model *m, const Entry *e);
/* entry.c: the checked entry  i32 (ptr g, ptr in, ptr out). */
Lv model_entry_fn(Model *m, const Entry *e);
/* tables.c: private constants; an array of none is NULL. */
Lv model_constant(Model *m, Lv value, const char *name);
Lv model_array(Model *m, Lv *row, int n, const char *name);
/* gradc_model and the tables it points to; exported functions. */
void model_tables(Model *m);
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
