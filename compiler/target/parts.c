/* Threads that compile parts.
 *
 * The caller's thread builds and adds; the others take what has been added, the heaviest first, so
 * that none is left with much at the end. They call the maker, the cache and nothing else of
 * gradc: the arena is the caller's. */
#include "parts.h"

#include <pthread.h>
#include <string.h>

enum { MAX_JOBS = 64, STACK_BYTES = 8 << 20 };

struct Parts {
    PartMaker maker;
    Arena *arena;
    Cache cache;
    int n_threads;
    pthread_t thread[MAX_JOBS];
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t added;
    VEC(Part *) part;
    bool complete, compiled; /* nothing more is added; something had to be compiled */
};

static Part *take_heaviest(Parts *p)
{
    Part *best = NULL;
    for (int i = 0; i < p->part.n; i++) {
        Part *x = p->part.at[i];
        if (!x->taken && (best == NULL || x->weight > best->weight))
            best = x;
    }
    if (best != NULL)
        best->taken = true;
    return best;
}

static Part *next_part(Parts *p)
{
    pthread_mutex_lock(&p->lock);
    Part *part = take_heaviest(p);
    while (part == NULL && !p->complete) {
        pthread_cond_wait(&p->added, &p->lock);
        part = take_heaviest(p);
    }
    p->compiled |= part != NULL;
    pthread_mutex_unlock(&p->lock);
    return part;
}

static void *work(void *parts)
{
    Parts *p = parts;
    PartWorker own = {{NULL}};
    Part *part;
    while ((part = next_part(p)) != NULL) {
        p->maker.make(p->maker.of, &own, part);
        if (part->bytes != NULL)
            cache_write(&p->cache, part->key, part->bytes, part->n_bytes);
    }
    if (p->maker.end != NULL)
        p->maker.end(&own);
    return NULL;
}

/* As many as can be had: one alone, the caller's, does it all. */
static void start_threads(Parts *p, int32_t jobs)
{
    pthread_attr_t a;
    if (pthread_attr_init(&a) != 0)
        return;
    pthread_attr_setstacksize(&a, STACK_BYTES);
    int more = (jobs < MAX_JOBS ? jobs : MAX_JOBS) - 1;
    while (p->n_threads < more && pthread_create(&p->thread[p->n_threads], &a, work, p) == 0)
        p->n_threads++;
    pthread_attr_destroy(&a);
}

Parts *parts_open(const PartMaker *m, const char *cache, int32_t jobs, Arena *arena)
{
    Parts *p = NEW(arena, Parts);
    p->maker = *m;
    p->arena = arena;
    p->cache = cache_open(cache);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->added, NULL);
    start_threads(p, jobs);
    return p;
}

static int32_t find_same(const Parts *p, const Part *part)
{
    for (int i = 0; i < p->part.n; i++)
        if (memcmp(p->part.at[i]->key, part->key, DIGEST_BYTES) == 0)
            return i;
    return -1;
}

int32_t parts_add(Parts *p, Part *part)
{
    part->same = find_same(p, part);
    if (part->same < 0)
        part->bytes = cache_read(&p->cache, part->key, p->arena, &part->n_bytes);
    part->kept = part->bytes != NULL;
    part->taken = part->kept || part->same >= 0;
    pthread_mutex_lock(&p->lock);
    vec_push(p->arena, &p->part, part);
    pthread_cond_signal(&p->added);
    pthread_mutex_unlock(&p->lock);
    return p->part.n - 1;
}

int32_t parts_count(const Parts *p)
{
    return p->part.n;
}

Part *parts_at(const Parts *p, int32_t i)
{
    return p->part.at[i];
}

static void end_threads(Parts *p)
{
    pthread_mutex_lock(&p->lock);
    p->complete = true;
    pthread_cond_broadcast(&p->added);
    pthread_mutex_unlock(&p->lock);
    work(p);
    for (int i = 0; i < p->n_threads; i++)
        pthread_join(p->thread[i], NULL);
    p->n_threads = 0;
}

void parts_finish(Parts *p)
{
    end_threads(p);
    if (p->compiled)
        cache_trim(&p->cache);
    for (int i = 0; i < p->part.n; i++) {
        Part *x = p->part.at[i];
        if (x->same >= 0) {
            x->bytes = p->part.at[x->same]->bytes;
            x->n_bytes = p->part.at[x->same]->n_bytes;
        }
    }
}

void parts_close(Parts *p)
{
    if (!p->complete)
        end_threads(p);
    pthread_cond_destroy(&p->added);
    pthread_mutex_destroy(&p->lock);
    cache_close(&p->cache);
}
