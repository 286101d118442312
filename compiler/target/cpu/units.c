/* The parts of an object, which LLVM compiles on several threads: contexts and target machines are
 * of one thread each. */
#include "units.h"

#include <string.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>

struct Units {
    const Machine *mach;
    Arena *arena;
    Parts *parts;
};

/* ---- one unit ------------------------------------------------------------------------- */

/* Target machines of the thread: own->at[0], and own->at[1] for what is made quickly. */
static void compile_unit(const void *units, PartWorker *own, Part *part)
{
    const Units *u = units;
    Unit *unit = (Unit *)part;
    if (own->at[unit->quick] == NULL)
        own->at[unit->quick] = object_machine(u->mach, unit->quick, &unit->refusal);
    LLVMTargetMachineRef tm = own->at[unit->quick];
    if (tm == NULL)
        return;

    LLVMContextRef c = LLVMContextCreate();
    LLVMModuleRef m;
    if (LLVMParseBitcodeInContext2(c, unit->bitcode, &m)) {
        unit->refusal = (Refusal){"its own bitcode", NULL};
    } else {
        if (object_prepare(m, u->mach, tm, &unit->refusal))
            unit->object = object_code(m, tm, LLVMObjectFile, &unit->refusal);
        LLVMDisposeModule(m);
    }
    LLVMContextDispose(c);
    if (unit->object == NULL)
        return;
    part->bytes = (const unsigned char *)LLVMGetBufferStart(unit->object);
    part->n_bytes = LLVMGetBufferSize(unit->object);
}

static void end_machines(PartWorker *own)
{
    for (int i = 0; i < 2; i++)
        if (own->at[i] != NULL)
            LLVMDisposeTargetMachine(own->at[i]);
}

/* ---- all of them ------------------------------------------------------------------------ */

Units *units_open(const Machine *mach, const TargetOptions *o, Arena *arena)
{
    Units *u = NEW(arena, Units);
    u->mach = mach;
    u->arena = arena;
    PartMaker maker = {.of = u, .make = compile_unit, .end = end_machines};
    u->parts = parts_open(&maker, o->cache, o->jobs, arena);
    return u;
}

bool units_has(const Units *u, const char *name)
{
    for (int32_t i = 0; i < units_count(u); i++)
        if (strcmp(units_at(u, i)->name, name) == 0)
            return true;
    return false;
}

static void add_text(Blake2b *b, const char *s)
{
    blake2b_add(b, s, strlen(s) + 1);
}

/* Of all that the code follows from. */
static void find_key(const Units *u, Unit *unit)
{
    Blake2b b;
    blake2b_start(&b);
    add_text(&b, "gradc " GRADC_VERSION);
    add_text(&b, u->mach->triple);
    object_recipe(&b, unit->quick);
    blake2b_add(&b, LLVMGetBufferStart(unit->bitcode), LLVMGetBufferSize(unit->bitcode));
    blake2b_end(&b, unit->part.key);
}

static int32_t add(Units *u, Ir *ir, const char *name, bool quick)
{
    Unit *unit = NEW(u->arena, Unit);
    unit->quick = quick;
    unit->name = name;
    unit->bitcode = LLVMWriteBitcodeToMemoryBuffer(ir->m);
    unit->part.weight = LLVMGetBufferSize(unit->bitcode);
    find_key(u, unit);
    return parts_add(u->parts, &unit->part);
}

int32_t units_add(Units *u, Ir *ir, const char *name)
{
    return add(u, ir, name, false);
}

int32_t units_add_quick(Units *u, Ir *ir, const char *name)
{
    return add(u, ir, name, true);
}

static Unit *unit_at(const Units *u, int32_t i)
{
    return (Unit *)parts_at(u->parts, i);
}

bool units_finish(Ctx *cx, Units *u)
{
    parts_finish(u->parts);
    for (int32_t i = 0; i < units_count(u); i++)
        if (unit_at(u, i)->part.bytes == NULL)
            return object_refuse(cx, &unit_at(u, i)->refusal);
    return true;
}

int32_t units_count(const Units *u)
{
    return parts_count(u->parts);
}

const Unit *units_at(const Units *u, int32_t i)
{
    return unit_at(u, i);
}

void units_close(Units *u)
{
    parts_close(u->parts);
    for (int32_t i = 0; i < units_count(u); i++) {
        const Unit *x = units_at(u, i);
        LLVMDisposeMemoryBuffer(x->bitcode);
        if (x->object != NULL)
            LLVMDisposeMemoryBuffer(x->object);
        if (x->refusal.message != NULL)
            LLVMDisposeMessage(x->refusal.message);
    }
}
