/* Threads for parallel_for.
 *
 * One word holds all that a worker must know to join a job:
 *
 *     state = job number << 32 | OPEN | lanes inside
 *
 * The caller fills in the job and sets OPEN under a new number; a worker enters by adding 1 with a
 * compare-and-swap that fails unless the job is open. When the indices are used up the caller
 * clears OPEN and waits only for those that entered: a worker that is slow to wake costs nothing.
 * The job's fields are written only while nobody can be inside, so they need no lock.
 *
 * Every lane begins with its own share of the indices, the same part of the whole in every job, and
 * then helps the others with theirs. Kernels that run one after the other have rows, or images, in
 * one order: what a lane reads is mostly what it wrote itself, in its own cache. (Fetching dirty
 * lines from the next core of a Xeon with a mesh goes at 16 GB/s, from the own second cache at 40
 * to 100.)
 *
 * Idle workers spin for about SPINS pauses and then sleep on a condition variable. */
#include "internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif
#ifdef __SSE__
#include <xmmintrin.h>
#endif

enum {
    SPINS = 4000,        /* some tens of microseconds */
    CHUNKS_PER_LANE = 8, /* enough to level out uneven work, few enough to be cheap */
    CACHE_LINE = 64,
    STACK_BYTES = 1 << 20
};

#define OPEN       (UINT64_C(1) << 31)
#define INSIDE     (OPEN - 1)
#define NEXT_JOB   (UINT64_C(1) << 32)
#define JOB_NUMBER (~(NEXT_JOB - 1))

typedef struct Share {
    _Alignas(CACHE_LINE) _Atomic int64_t next; /* first index that nobody took */
    int64_t end;
} Share;

typedef struct Worker {
    gradc_pool *pool;
    int32_t lane;
    pthread_t thread;
} Worker;

struct gradc_pool {
    _Alignas(CACHE_LINE) _Atomic uint64_t state;

    /* The job; constant while anybody is inside, but for `next` of the shares. */
    _Alignas(CACHE_LINE) gradc_body body;
    void *arg;
    int64_t chunk;
    Share *share; /* of each lane */

    _Alignas(CACHE_LINE) atomic_flag busy;
    _Atomic int32_t asleep;    /* workers in or before pthread_cond_wait */
    _Atomic bool caller_waits; /* on `left` */
    _Atomic bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t job, left;

    int32_t lanes, spins;
    pid_t owner; /* the process that has the workers */
    Worker *workers;
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Workers compute with the default rounding and with denormals, whatever mode the thread that
 * opened the pool was in. */
static void default_float_mode(void)
{
#ifdef __SSE__
    _mm_setcsr(0x1F80);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
#endif
}

/* Takes chunks of a share until none is left. */
static void work_on(gradc_pool *p, Share *s, int32_t lane)
{
    for (;;) {
        int64_t first = atomic_fetch_add_explicit(&s->next, p->chunk, memory_order_relaxed);
        if (first >= s->end)
            return;
        int64_t end = s->end - first < p->chunk ? s->end : first + p->chunk;
        for (int64_t i = first; i < end; i++)
            p->body(p->arg, i, lane);
    }
}

static void work(gradc_pool *p, int32_t lane)
{
    for (int32_t i = lane; i < p->lanes; i++)
        work_on(p, &p->share[i], lane);
    for (int32_t i = 0; i < lane; i++)
        work_on(p, &p->share[i], lane);
}

/* The state once it shows an open job other than `seen`, or anything at all when stopping. */
static uint64_t await_job(gradc_pool *p, uint64_t seen)
{
    uint64_t s;
    for (int32_t i = 0; i < p->spins; i++) {
        s = atomic_load_explicit(&p->state, memory_order_acquire);
        if (((s & OPEN) != 0 && (s & JOB_NUMBER) != seen) || atomic_load(&p->stop))
            return s;
        relax();
    }
    pthread_mutex_lock(&p->mutex);
    atomic_fetch_add(&p->asleep, 1); /* before the load of state: the caller does it in reverse */
    for (;;) {
        s = atomic_load(&p->state);
        if (((s & OPEN) != 0 && (s & JOB_NUMBER) != seen) || atomic_load(&p->stop))
            break;
        pthread_cond_wait(&p->job, &p->mutex);
    }
    atomic_fetch_sub(&p->asleep, 1);
    pthread_mutex_unlock(&p->mutex);
    return s;
}

static void leave(gradc_pool *p)
{
    uint64_t before = atomic_fetch_sub(&p->state, 1);
    if ((before & (OPEN | INSIDE)) != 1 || !atomic_load(&p->caller_waits))
        return;
    pthread_mutex_lock(&p->mutex);
    pthread_cond_signal(&p->left);
    pthread_mutex_unlock(&p->mutex);
}

static void *worker_main(void *argument)
{
    Worker *w = argument;
    gradc_pool *p = w->pool;
    uint64_t seen = 0;
    default_float_mode();
    for (;;) {
        uint64_t s = await_job(p, seen);
        if (atomic_load(&p->stop))
            return NULL;
        bool entered = false;
        while ((s & OPEN) != 0 && !entered)
            entered = atomic_compare_exchange_weak_explicit(
                &p->state, &s, s + 1, memory_order_acquire, memory_order_relaxed);
        seen = s & JOB_NUMBER;
        if (!entered)
            continue;
        work(p, w->lane);
        leave(p);
    }
}

static void wake(gradc_pool *p, int64_t helpers)
{
    int32_t asleep = atomic_load(&p->asleep);
    if (asleep == 0)
        return;
    pthread_mutex_lock(&p->mutex);
    if (helpers >= asleep)
        pthread_cond_broadcast(&p->job);
    else
        for (int64_t i = 0; i < helpers; i++)
            pthread_cond_signal(&p->job);
    pthread_mutex_unlock(&p->mutex);
}

/* Until everybody who entered has left. */
static void await_left(gradc_pool *p)
{
    for (int32_t i = 0; i < p->spins; i++) {
        if ((atomic_load_explicit(&p->state, memory_order_acquire) & INSIDE) == 0)
            return;
        relax();
    }
    pthread_mutex_lock(&p->mutex);
    atomic_store(&p->caller_waits, true);
    while ((atomic_load(&p->state) & INSIDE) != 0)
        pthread_cond_wait(&p->left, &p->mutex);
    atomic_store(&p->caller_waits, false);
    pthread_mutex_unlock(&p->mutex);
}

static void run_job(gradc_pool *p, int64_t count, gradc_body body, void *arg)
{
    int64_t chunk = count / ((int64_t)p->lanes * CHUNKS_PER_LANE);
    p->body = body;
    p->arg = arg;
    p->chunk = chunk > 0 ? chunk : 1;
    int64_t each = count / p->lanes, more = count % p->lanes, first = 0;
    for (int32_t i = 0; i < p->lanes; i++) {
        atomic_store_explicit(&p->share[i].next, first, memory_order_relaxed);
        first += each + (i < more ? 1 : 0);
        p->share[i].end = first;
    }
    uint64_t job = (atomic_load_explicit(&p->state, memory_order_relaxed) & JOB_NUMBER) + NEXT_JOB;
    atomic_store(&p->state, job | OPEN);
    wake(p, count - 1);
    work(p, 0);
    if ((atomic_fetch_and(&p->state, ~OPEN) & INSIDE) != 0)
        await_left(p);
}

void gradc_pool_parallel_for(void *pool, int64_t count, gradc_body body, void *arg)
{
    gradc_pool *p = pool;
    bool alone = p == NULL || p->lanes == 1 || count <= 1 || getpid() != p->owner ||
                 atomic_flag_test_and_set_explicit(&p->busy, memory_order_acquire);
    if (alone) {
        for (int64_t i = 0; i < count; i++)
            body(arg, i, 0);
        return;
    }
    run_job(p, count, body, arg);
    atomic_flag_clear_explicit(&p->busy, memory_order_release);
}

/* ---- opening and closing ---- */

#ifdef __linux__

/* Cores that this process may run on, into set. */
static int32_t allowed_cores(cpu_set_t *set)
{
    CPU_ZERO(set);
    if (sched_getaffinity(0, sizeof *set, set) == 0 && CPU_COUNT(set) > 0)
        return (int32_t)CPU_COUNT(set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

static void pin(pthread_t thread, size_t core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(thread, sizeof one, &one); /* only a wish: failure changes nothing */
}

/* Worker i goes to the i-th allowed core, counting on from the one that the caller is on. */
static void pin_workers(gradc_pool *p, const cpu_set_t *allowed)
{
    int here = sched_getcpu();
    size_t core = here < 0 ? 0 : (size_t)here;
    for (int32_t i = 0; i < p->lanes - 1; i++) {
        for (int tries = 0; tries < CPU_SETSIZE; tries++) {
            core = (core + 1) % CPU_SETSIZE;
            if (CPU_ISSET(core, allowed))
                break;
        }
        pin(p->workers[i].thread, core);
    }
}

#else

typedef int cpu_set_t;

static int32_t allowed_cores(cpu_set_t *set)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    *set = 0;
    return n > 0 ? (int32_t)n : 1;
}

static void pin_workers(gradc_pool *p, const cpu_set_t *allowed)
{
    (void)p;
    (void)allowed;
}

#endif

static void pool_free(gradc_pool *p)
{
    gr_free(p->share);
    gr_free(p->workers);
    gr_free(p);
}

static void stop(gradc_pool *p, int32_t started)
{
    pthread_mutex_lock(&p->mutex);
    atomic_store(&p->stop, true);
    pthread_cond_broadcast(&p->job);
    pthread_mutex_unlock(&p->mutex);
    for (int32_t i = 0; i < started; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->left);
    pthread_cond_destroy(&p->job);
    pthread_mutex_destroy(&p->mutex);
    pool_free(p);
}

static int32_t start_workers(gradc_pool *p)
{
    sigset_t all, old;
    pthread_attr_t attributes;
    int32_t started = 0;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);   /* workers inherit: the program's handlers run in */
    for (; started < p->lanes - 1; started++) { /* the program's threads */
        Worker *w = &p->workers[started];
        *w = (Worker){.pool = p, .lane = started + 1};
        if (pthread_create(&w->thread, &attributes, worker_main, w) != 0)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static gradc_pool *pool_new(int32_t lanes)
{
    gradc_pool *p = gr_aligned((int64_t)sizeof *p, CACHE_LINE);
    if (p == NULL)
        return NULL;
    memset(p, 0, sizeof *p);
    p->lanes = lanes;
    p->owner = getpid();
    atomic_flag_clear(&p->busy);
    p->workers = lanes > 1 ? gr_new(lanes - 1, sizeof *p->workers) : NULL;
    p->share = gr_aligned(lanes * (int64_t)sizeof *p->share, CACHE_LINE);
    if ((lanes > 1 && p->workers == NULL) || p->share == NULL ||
        pthread_mutex_init(&p->mutex, NULL) != 0) {
        pool_free(p);
        return NULL;
    }
    pthread_cond_init(&p->job, NULL); /* neither can fail with default attributes */
    pthread_cond_init(&p->left, NULL);
    return p;
}

int gradc_pool_open(int32_t lanes, uint32_t flags, gradc_pool **out, gradc_error *e)
{
    cpu_set_t allowed;
    int32_t cores = allowed_cores(&allowed);
    if (out == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_pool_open: no place for the pool");
    *out = NULL;
    if (lanes < 0 || lanes > GRADC_MAX_LANES)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "a pool of %d lanes; 1 to %d are possible",
                       (int)lanes, GRADC_MAX_LANES);
    if (lanes == 0)
        lanes = cores < GRADC_MAX_LANES ? cores : GRADC_MAX_LANES;
    gradc_pool *p = pool_new(lanes);
    if (p == NULL)
        return gr_fail_memory(e, "a thread pool", (int64_t)sizeof *p);
    bool crowded = lanes > cores;
    p->spins = crowded || (flags & GRADC_POOL_SLEEPY) != 0 ? 0 : SPINS;
    int32_t started = start_workers(p);
    if (started < lanes - 1) {
        stop(p, started);
        return gr_fail(e, GRADC_MEMORY, "only %d of %d threads could be started", (int)started,
                       (int)lanes - 1);
    }
    if (!crowded && (flags & GRADC_POOL_FLOATING) == 0)
        pin_workers(p, &allowed);
    *out = p;
    return gr_ok(e);
}

void gradc_pool_close(gradc_pool *pool)
{
    if (pool == NULL)
        return;
    if (getpid() != pool->owner) { /* the workers and their locks stayed with the parent */
        pool_free(pool);
        return;
    }
    stop(pool, pool->lanes - 1);
}

int32_t gradc_pool_lanes(const gradc_pool *pool)
{
    return pool == NULL ? 1 : pool->lanes;
}

void gradc_pool_use(gradc_pool *pool, gradc_options *o)
{
    o->threads = gradc_pool_lanes(pool);
    o->parallel_for = pool == NULL ? NULL : gradc_pool_parallel_for;
    o->context = pool;
}
