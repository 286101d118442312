/* Offloaded values: a thread that copies them between the block and a store, one after another,
 * while the model computes. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hooks.h"

enum { QUEUE = 1024, STACK_BYTES = 1 << 18 }; /* transfers that have begun; bytes */

typedef struct Transfer {
    int64_t at, n;
    const void *from; /* out of the block, or NULL */
    void *to;         /* into it, or NULL */
} Transfer;

struct gradc_store {
    gradc_offload offload; /* what the model sees */
    gradc_store_calls calls;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t begun, over;
    Transfer queue[QUEUE];
    int64_t first, next; /* numbers of transfers: [first, next) are not over */
    int failed;          /* what a call returned; until a wait has said so */
    bool stop;
    gradc_store_counts counts;
    int fd; /* of a file, else -1 */
    int64_t bytes;
    char *memory;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the thread -------------------------------------------------------------------- */

static int move(gradc_store *s, const Transfer *t)
{
    return t->from != NULL ? s->calls.write(s->calls.context, t->at, t->from, t->n)
                           : s->calls.read(s->calls.context, t->at, t->to, t->n);
}

static void count(gradc_store *s, const Transfer *t, int status, double seconds)
{
    s->counts.transfer_s += seconds;
    if (status != 0 && s->failed == 0)
        s->failed = status;
    else if (status == 0)
        *(t->from != NULL ? &s->counts.written : &s->counts.read) += t->n;
}

static void *run(void *argument)
{
    gradc_store *s = argument;
    pthread_mutex_lock(&s->mutex);
    for (;;) {
        while (s->first == s->next && !s->stop)
            pthread_cond_wait(&s->begun, &s->mutex);
        if (s->first == s->next)
            break;
        Transfer t = s->queue[s->first % QUEUE];
        bool skip = s->failed != 0; /* what follows a failure is not wanted any more */
        pthread_mutex_unlock(&s->mutex);
        double start = now();
        int status = skip ? 0 : move(s, &t);
        double seconds = now() - start;
        pthread_mutex_lock(&s->mutex);
        if (!skip)
            count(s, &t, status, seconds);
        s->first++;
        pthread_cond_broadcast(&s->over);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* ---- what the model calls ------------------------------------------------------------- */

static int begin(gradc_store *s, Transfer t)
{
    pthread_mutex_lock(&s->mutex);
    while (s->next - s->first == QUEUE)
        pthread_cond_wait(&s->over, &s->mutex);
    s->queue[s->next++ % QUEUE] = t;
    pthread_cond_signal(&s->begun);
    pthread_mutex_unlock(&s->mutex);
    return 0;
}

static int begin_write(void *context, int64_t at, const void *bytes, int64_t n)
{
    return begin(context, (Transfer){.at = at, .n = n, .from = bytes});
}

static int begin_read(void *context, int64_t at, void *bytes, int64_t n)
{
    return begin(context, (Transfer){.at = at, .n = n, .to = bytes});
}

static bool under_way(const gradc_store *s, int64_t at)
{
    for (int64_t i = s->first; i < s->next; i++)
        if (at < 0 || s->queue[i % QUEUE].at == at)
            return true;
    return false;
}

/* A wait for all of them ends a call that has failed: the next one begins anew. */
static int await(void *context, int64_t at)
{
    gradc_store *s = context;
    pthread_mutex_lock(&s->mutex);
    if (under_way(s, at)) {
        double start = now();
        while (under_way(s, at))
            pthread_cond_wait(&s->over, &s->mutex);
        s->counts.waited_s += now() - start;
    }
    int status = s->failed;
    if (at < 0)
        s->failed = 0;
    pthread_mutex_unlock(&s->mutex);
    return status;
}

/* ---- opening and closing ---------------------------------------------------------------- */

static bool start_thread(gradc_store *s)
{
    pthread_attr_t attributes;
    sigset_t all, old;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* the program's handlers run in its own threads */
    bool started = pthread_create(&s->thread, &attributes, run, s) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static void release(gradc_store *s)
{
    if (s->fd >= 0)
        gr_file_ops.close(s->fd);
    gr_free(s->memory);
    gr_free(s);
}

/* Takes over `s`, be it that it fails. */
static int start(gradc_store *s, gradc_store **out, gradc_error *e)
{
    s->offload = (gradc_offload){.struct_size = sizeof s->offload,
                                 .context = s,
                                 .write = begin_write,
                                 .read = begin_read,
                                 .wait = await};
    if (pthread_mutex_init(&s->mutex, NULL) != 0) {
        release(s);
        return gr_fail(e, GRADC_MEMORY, "no lock for a store could be made");
    }
    pthread_cond_init(&s->begun, NULL); /* neither can fail with default attributes */
    pthread_cond_init(&s->over, NULL);
    if (!start_thread(s)) {
        pthread_cond_destroy(&s->over);
        pthread_cond_destroy(&s->begun);
        pthread_mutex_destroy(&s->mutex);
        release(s);
        return gr_fail(e, GRADC_MEMORY, "the thread of a store could not be started");
    }
    *out = s;
    return gr_ok(e);
}

static int make(int64_t bytes, gradc_store **s, gradc_store **out, gradc_error *e)
{
    if (out == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "no place for the store");
    *out = NULL;
    if (bytes < 0 || bytes > GRADC_MAX_TENSOR_BYTES)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "a store of %lld bytes", (long long)bytes);
    *s = gr_new(1, sizeof **s);
    if (*s == NULL)
        return gr_fail_memory(e, "a store", (int64_t)sizeof **s);
    (*s)->fd = -1;
    (*s)->bytes = bytes;
    return GRADC_OK;
}

int gradc_store_open(const gradc_store_calls *calls, gradc_store **out, gradc_error *e)
{
    gradc_store *s;
    if (calls == NULL || calls->read == NULL || calls->write == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "a store needs both read and write");
    int status = gr_check_size(calls->struct_size, sizeof *calls, "gradc_store_calls", e);
    if (status == GRADC_OK)
        status = make(0, &s, out, e);
    if (status != GRADC_OK)
        return status;
    s->calls = *calls;
    return start(s, out, e);
}

static bool is_inside(const gradc_store *s, int64_t at, int64_t n)
{
    return at >= 0 && n >= 0 && at <= s->bytes - n;
}

static int write_memory(void *context, int64_t at, const void *bytes, int64_t n)
{
    gradc_store *s = context;
    if (!is_inside(s, at, n))
        return ERANGE;
    memcpy(s->memory + at, bytes, (size_t)n);
    return 0;
}

static int read_memory(void *context, int64_t at, void *bytes, int64_t n)
{
    gradc_store *s = context;
    if (!is_inside(s, at, n))
        return ERANGE;
    memcpy(bytes, s->memory + at, (size_t)n);
    return 0;
}

int gradc_store_host(int64_t bytes, gradc_store **out, gradc_error *e)
{
    enum { LINE = 64 };
    gradc_store *s;
    int status = make(bytes, &s, out, e);
    if (status != GRADC_OK)
        return status;
    s->memory = gr_aligned(bytes > 0 ? bytes : 1, LINE);
    if (s->memory == NULL) {
        release(s);
        return gr_fail_memory(e, "offloaded values", bytes);
    }
    s->calls = (gradc_store_calls){.context = s, .read = read_memory, .write = write_memory};
    return start(s, out, e);
}

/* ---- files ---- */

enum { MOST = 1 << 30 }; /* Linux moves at most 2 GiB in one call */

/* Writes `from`, or reads to `to` where that is NULL. */
static int move_file(const gradc_store *s, int64_t at, const char *from, char *to, int64_t n)
{
    for (int64_t done = 0; done < n;) {
        size_t next = (size_t)(n - done < MOST ? n - done : MOST);
        off_t place = (off_t)(at + done);
        ssize_t k = from != NULL ? gr_file_ops.pwrite(s->fd, from + done, next, place)
                                 : gr_file_ops.pread(s->fd, to + done, next, place);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno;
        if (k == 0)
            return from != NULL ? ENOSPC : EIO;
        done += k;
    }
    return 0;
}

static int write_file(void *context, int64_t at, const void *bytes, int64_t n)
{
    return move_file(context, at, bytes, NULL, n);
}

static int read_file(void *context, int64_t at, void *bytes, int64_t n)
{
    return move_file(context, at, NULL, bytes, n);
}

int gradc_store_file(const char *path, int64_t bytes, gradc_store **out, gradc_error *e)
{
    gradc_store *s;
    if (path == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "no path given");
    int status = make(bytes, &s, out, e);
    if (status != GRADC_OK)
        return status;
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY;
    s->fd = gr_file_ops.open(path, flags, 0600);
    if (s->fd < 0)
        status = gr_fail_system(e, errno, "cannot make %s", path);
    else if (gr_file_ops.unlink(path) != 0)
        status = gr_fail_system(e, errno, "cannot take the name from %s", path);
    int full = status == GRADC_OK && bytes > 0 ? gr_file_ops.reserve(s->fd, 0, (off_t)bytes) : 0;
    if (full != 0)
        status = gr_fail_system(e, full, "cannot make %s %lld bytes long", path, (long long)bytes);
    if (status != GRADC_OK) {
        release(s);
        return status;
    }
    s->calls = (gradc_store_calls){.context = s, .read = read_file, .write = write_file};
    return start(s, out, e);
}

/* ---- */

void gradc_store_close(gradc_store *store)
{
    if (store == NULL)
        return;
    pthread_mutex_lock(&store->mutex);
    store->stop = true;
    pthread_cond_signal(&store->begun);
    pthread_mutex_unlock(&store->mutex);
    pthread_join(store->thread, NULL);
    pthread_cond_destroy(&store->over);
    pthread_cond_destroy(&store->begun);
    pthread_mutex_destroy(&store->mutex);
    release(store);
}

void gradc_store_use(gradc_store *store, gradc_options *o)
{
    o->offload = store == NULL ? NULL : &store->offload;
}

void gradc_store_count(gradc_store *store, gradc_store_counts *counts)
{
    pthread_mutex_lock(&store->mutex);
    *counts = store->counts;
    pthread_mutex_unlock(&store->mutex);
}
