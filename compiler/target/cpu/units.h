/* The parts of an object, each compiled by itself: a kernel, a function that kernels share, the
 * entries with their tables. A part is LLVM's bitcode, from which alone its code follows: so it may
 * be compiled by any thread, in any order, or be taken from the cache. */
#ifndef GRADC_TARGET_CPU_UNITS_H
#define GRADC_TARGET_CPU_UNITS_H

#include "../parts.h"
#include "object.h"

/* What debug information and symbol tables call the source of a part. */
#define UNIT_SOURCE "gradc"
/* The function of a kernel's part: the object has it under another name. */
#define UNIT_KERNEL "gradc.kernel"

typedef struct Unit {
    Part part;        /* first: its bytes are an object */
    const char *name; /* of what it defines */
    LLVMMemoryBufferRef bitcode, object;
    bool quick; /* the code is to be made quickly, not to be quick */
    Refusal refusal;
} Unit;

/* lines.c: for a part, which has no lines: how its frames are unwound is in its object. */
void lines_frames(Ir *ir);

typedef struct Units Units;

/* Begins to compile what is added, on o->jobs threads with the caller's, beside the cache that o
 * names. All is kept in `arena`, which only the caller's thread uses. */
Units *units_open(const Machine *mach, const TargetOptions *o, Arena *arena);
bool units_has(const Units *u, const char *name);
/* Adds ir->m, which stays the caller's; gives its index. */
int32_t units_add(Units *u, Ir *ir, const char *name);
int32_t units_add_quick(Units *u, Ir *ir, const char *name);
/* Waits until all is compiled.   fails: false, after a report. */
bool units_finish(Ctx *cx, Units *u);
int32_t units_count(const Units *u);
const Unit *units_at(const Units *u, int32_t i);
void units_close(Units *u);

#endif
