/* Threads that compile the parts of an object.
 *
 * The caller's thread builds and adds; the others take what has been added, the largest first, so
 * that none is left with much at the end. They call LLVM, the cache and nothing else of gradc:
 * arenas and diagnostics are the caller's. */
#include <pthread.h>
#include <string.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include "../cache.h"
#include "units.h"

enum { MAX_JOBS = 64, STACK_BYTES = 8 << 20 };

struct Units {
    const Machine *mach;
    Arena *arena;
    Cache cache;
    int n_threads;
    pthread_t thread[MAX_JOBS];
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t added;
    VEC(Unit *) unit;
    bool complete, compiled; /* nothing more is added; something had to be compiled */
};

/* ---- one unit ------------------------------------------------------------------------- */

/* Of one thread, by Unit.quick; NULL: not asked for yet. */
typedef struct Machines {
    LLVMTargetMachineRef tm[2];
} Machines;

static void compile_unit(const Units *u, Unit *unit, Machines *own)
{
    LLVMTargetMachineRef *tm = &own->tm[unit->quick];
    if (*tm == NULL)
        *tm = object_machine(u->mach, unit->quick, &unit->refusal);
    if (*tm == NULL)
        return;

    LLVMContextRef c = LLVMContextCreate();
    LLVMModuleRef m;
    if (LLVMParseBitcodeInContext2(c, unit->bitcode, &m)) {
        unit->refusal = (Refusal){"its own bitcode", NULL};
    } else {
        if (object_prepare(m, u->mach, *tm, &unit->refusal))
            unit->object = object_code(m, *tm, LLVMObjectFile, &unit->refusal);
        LLVMDisposeModule(m);
    }
    LLVMContextDispose(c);
    if (unit->object == NULL)
        return;
    unit->bytes = (const unsigned char *)LLVMGetBufferStart(unit->object);
    unit->n_bytes = LLVMGetBufferSize(unit->object);
    cache_write(&u->cache, unit->key, unit->bytes, unit->n_bytes);
}

static Unit *take_largest(Units *u)
{
    Unit *best = NULL;
    for (int i = 0; i < u->unit.n; i++) {
        Unit *x = u->unit.at[i];
        if (!x->taken &&
            (best == NULL || LLVMGetBufferSize(x->bitcode) > LLVMGetBufferSize(best->bitcode)))
            best = x;
    }
    if (best != NULL)
        best->taken = true;
    return best;
}

static Unit *next_unit(Units *u)
{
    pthread_mutex_lock(&u->lock);
    Unit *unit = take_largest(u);
    while (unit == NULL && !u->complete) {
        pthread_cond_wait(&u->added, &u->lock);
        unit = take_largest(u);
    }
    u->compiled |= unit != NULL;
    pthread_mutex_unlock(&u->lock);
    return unit;
}

static void *work(void *units)
{
    Units *u = units;
    Machines own = {0};
    Unit *unit;
    while ((unit = next_unit(u)) != NULL)
        compile_unit(u, unit, &own);
    for (int i = 0; i < 2; i++)
        if (own.tm[i] != NULL)
            LLVMDisposeTargetMachine(own.tm[i]);
    return NULL;
}

/* ---- all of them ------------------------------------------------------------------------ */

/* As many as can be had: one alone, the caller's, does it all. */
static void start_threads(Units *u, int32_t jobs)
{
    pthread_attr_t a;
    if (pthread_attr_init(&a) != 0)
        return;
    pthread_attr_setstacksize(&a, STACK_BYTES);
    int more = (jobs < MAX_JOBS ? jobs : MAX_JOBS) - 1;
    while (u->n_threads < more && pthread_create(&u->thread[u->n_threads], &a, work, u) == 0)
        u->n_threads++;
    pthread_attr_destroy(&a);
}

Units *units_open(const Machine *mach, const TargetOptions *o, Arena *arena)
{
    Units *u = NEW(arena, Units);
    u->mach = mach;
    u->arena = arena;
    u->cache = cache_open(o->cache);
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->added, NULL);
    start_threads(u, o->jobs);
    return u;
}

bool units_has(const Units *u, const char *name)
{
    for (int i = 0; i < u->unit.n; i++)
        if (strcmp(u->unit.at[i]->name, name) == 0)
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
    blake2b_end(&b, unit->key);
}

static int32_t find_same(const Units *u, const Unit *unit)
{
    for (int i = 0; i < u->unit.n; i++)
        if (memcmp(u->unit.at[i]->key, unit->key, DIGEST_BYTES) == 0)
            return i;
    return -1;
}

static int32_t add(Units *u, Ir *ir, const char *name, bool quick)
{
    Unit *unit = NEW(u->arena, Unit);
    unit->quick = quick;
    unit->name = name;
    unit->bitcode = LLVMWriteBitcodeToMemoryBuffer(ir->m);
    find_key(u, unit);
    unit->same = find_same(u, unit);
    if (unit->same < 0)
        unit->bytes = cache_read(&u->cache, unit->key, u->arena, &unit->n_bytes);
    unit->kept = unit->bytes != NULL;
    unit->taken = unit->kept || unit->same >= 0;
    pthread_mutex_lock(&u->lock);
    vec_push(u->arena, &u->unit, unit);
    pthread_cond_signal(&u->added);
    pthread_mutex_unlock(&u->lock);
    return u->unit.n - 1;
}

int32_t units_add(Units *u, Ir *ir, const char *name)
{
    return add(u, ir, name, false);
}

int32_t units_add_quick(Units *u, Ir *ir, const char *name)
{
    return add(u, ir, name, true);
}

static void end_threads(Units *u)
{
    pthread_mutex_lock(&u->lock);
    u->complete = true;
    pthread_cond_broadcast(&u->added);
    pthread_mutex_unlock(&u->lock);
    work(u);
    for (int i = 0; i < u->n_threads; i++)
        pthread_join(u->thread[i], NULL);
    u->n_threads = 0;
}

bool units_finish(Ctx *cx, Units *u)
{
    end_threads(u);
    if (u->compiled)
        cache_trim(&u->cache);
    for (int i = 0; i < u->unit.n; i++) {
        Unit *x = u->unit.at[i];
        if (x->same >= 0) {
            x->bytes = u->unit.at[x->same]->bytes;
            x->n_bytes = u->unit.at[x->same]->n_bytes;
        }
        if (x->bytes == NULL)
            return object_refuse(cx, &x->refusal);
    }
    return true;
}

int32_t units_count(const Units *u)
{
    return u->unit.n;
}

const Unit *units_at(const Units *u, int32_t i)
{
    return u->unit.at[i];
}

void units_close(Units *u)
{
    if (!u->complete)
        end_threads(u);
    for (int i = 0; i < u->unit.n; i++) {
        Unit *x = u->unit.at[i];
        LLVMDisposeMemoryBuffer(x->bitcode);
        if (x->object != NULL)
            LLVMDisposeMemoryBuffer(x->object);
        if (x->refusal.message != NULL)
            LLVMDisposeMessage(x->refusal.message);
    }
    pthread_cond_destroy(&u->added);
    pthread_mutex_destroy(&u->lock);
    cache_close(&u->cache);
}
