/* An object that offloads values, beside the same model with nothing offloaded.
 *
 *   cc -DHEADER='"offload.h"' offload.c offload.o whole.o libgradc.a ...
 *
 * The model is `offload`, the other one `whole`. The store of these tests is as late as it may be:
 * it copies when it is waited for, and spoils at once what is to come in. Prints what fails and,
 * last, "passed=N failed=N skipped=0". */
#define _GNU_SOURCE
#include <gradc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "offload.h"
#include "whole.h"

enum { STEPS = 3, MOST = 64, SEED = 7, FAILURE = 77 };

static int passed, failed;

static void expect(int truth, const char *what)
{
    passed += truth != 0;
    failed += truth == 0;
    if (!truth)
        printf("FAILED: %s\n", what);
}

/* ---- the store ---- */

typedef struct Pending {
    int64_t at, n;
    const void *from;
    void *to;
} Pending;

typedef struct Late {
    char bytes[OFFLOAD_OFFLOAD_BYTES];
    Pending pending[MOST];
    int n, calls, fail_at; /* the call that fails, from 1; 0: none */
    int64_t out, in;
    int outside; /* transfers beyond the store */
    int drained; /* waits for everything */
} Late;

static int fails(Late *s)
{
    return ++s->calls == s->fail_at ? FAILURE : 0;
}

static int begin(Late *s, Pending p)
{
    if (p.at < 0 || p.at % 64 != 0 || p.n > OFFLOAD_OFFLOAD_BYTES - p.at || s->n == MOST)
        s->outside++;
    else if (fails(s))
        return FAILURE;
    else
        s->pending[s->n++] = p;
    return 0;
}

static int late_write(void *context, int64_t at, const void *bytes, int64_t n)
{
    return begin(context, (Pending){.at = at, .n = n, .from = bytes});
}

static int late_read(void *context, int64_t at, void *bytes, int64_t n)
{
    memset(bytes, 0xff, (size_t)n);
    return begin(context, (Pending){.at = at, .n = n, .to = bytes});
}

static void move(Late *s, const Pending *p)
{
    memcpy(p->from != NULL ? s->bytes + p->at : p->to, p->from != NULL ? p->from : s->bytes + p->at,
           (size_t)p->n);
    *(p->from != NULL ? &s->out : &s->in) += p->n;
}

static int late_wait(void *context, int64_t at)
{
    Late *s = context;
    int left = 0;
    if (at < 0) {
        s->drained++;
        s->n = 0;
        return 0;
    }
    if (fails(s))
        return FAILURE;
    for (int i = 0; i < s->n; i++) {
        if (s->pending[i].at == at)
            move(s, &s->pending[i]);
        else
            s->pending[left++] = s->pending[i];
    }
    s->n = left;
    return 0;
}

/* ---- models ---- */

typedef struct Net {
    const gradc_model *m;
    void *block, *g;
    int status;
} Net;

static Net open_net(const gradc_model *m, gradc_options o)
{
    Net net = {.m = m, .block = gradc_alloc(m->arena_bytes, m->arena_align)};
    o.struct_size = sizeof o;
    o.abi = GRADC_ABI;
    o.seed = SEED;
    memset(net.block, 0xa5, (size_t)m->arena_bytes);
    net.status = m->init(net.block, (size_t)m->arena_bytes, &o, &net.g);
    return net;
}

static void close_net(Net *net)
{
    gradc_free(net->block);
}

static float *draws(int64_t n)
{
    float *x = gradc_alloc(n * (int64_t)sizeof *x, 64);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)gradc_draw(5, i, 2000) / 1000 - 1;
    return x;
}

static int call(const Net *net, int step, const float *x, const float *y, float *loss)
{
    struct {
        int64_t rows;
        const void *data[2];
    } in = {0, {x, y}};
    struct {
        int64_t reserved;
        void *data[1];
    } out = {0, {loss}};
    int (*entry)(void *, const gradc_block *, gradc_block *) = step ? net->m->step : net->m->grad;
    return entry(net->g, (const gradc_block *)&in, (gradc_block *)&out);
}

/* All tensors that live between calls, and the gradients where they are there. */
static int same(const Net *a, const Net *b, int gradients)
{
    int equal = a->m->n_tensors == b->m->n_tensors;
    for (int32_t i = 0; i < a->m->n_tensors && equal; i++) {
        const gradc_tensor *t = &a->m->tensors[i];
        if (!gradients && t->role == GRADC_GRADIENT)
            continue;
        void *x = gradc_alloc(t->bytes, 64), *y = gradc_alloc(t->bytes, 64);
        equal = a->m->read(a->g, i, x, (size_t)t->bytes) == GRADC_OK &&
                b->m->read(b->g, i, y, (size_t)t->bytes) == GRADC_OK &&
                memcmp(x, y, (size_t)t->bytes) == 0;
        gradc_free(x);
        gradc_free(y);
    }
    return equal;
}

/* ---- tests ---- */

static int refused(const gradc_offload *store, size_t size)
{
    gradc_options o = {.struct_size = size, .abi = GRADC_ABI, .offload = store};
    void *block = gradc_alloc(offload_model.arena_bytes, 64), *g = block;
    int status = offload_model.init(block, (size_t)offload_model.arena_bytes, &o, &g);
    int told = strstr(offload_model.error(block), "gradc_options.offload") != NULL;
    gradc_free(block);
    return status == GRADC_OFFLOAD && g == NULL && told;
}

static void test_refusals(const gradc_offload *whole)
{
    void *block = gradc_alloc(offload_model.arena_bytes, 64), *g = block;
    expect(offload_model.init(block, (size_t)offload_model.arena_bytes, NULL, &g) == GRADC_OFFLOAD,
           "no options, no store");
    gradc_free(block);
    expect(refused(NULL, sizeof(gradc_options)), "no store");
    expect(refused(whole, offsetof(gradc_options, offload)),
           "options from before there were stores");
    for (int missing = 0; missing < 4; missing++) {
        gradc_offload part = *whole;
        part.struct_size -= missing == 0 ? sizeof part.wait : 0;
        part.write = missing == 1 ? NULL : part.write;
        part.read = missing == 2 ? NULL : part.read;
        part.wait = missing == 3 ? NULL : part.wait;
        expect(refused(&part, sizeof(gradc_options)), "a store that is not whole");
    }
}

/* The highest byte that changes when the block is filled with one pattern or another. */
static int64_t highest(const gradc_offload *store, const float *x, const float *y)
{
    int64_t bytes = offload_model.arena_bytes, top = 0;
    for (int pattern = 0; pattern < 2; pattern++) {
        gradc_options o = {.offload = store};
        Net net = open_net(&offload_model, o);
        const unsigned char fill = pattern ? 0x5a : 0xc3;
        for (int64_t i = 0; i < bytes; i++)
            if (i >= 1024 && ((unsigned char *)net.block)[i] == 0xa5)
                ((unsigned char *)net.block)[i] = fill;
        float loss;
        call(&net, 0, x, y, &loss);
        call(&net, 1, x, y, &loss);
        for (int64_t i = bytes; i-- > top;)
            if (((unsigned char *)net.block)[i] != fill)
                top = i + 1;
        close_net(&net);
    }
    return top;
}

static void test_bits(Late *late, const gradc_offload *store, int32_t threads, const float *x,
                      const float *y)
{
    gradc_pool *pool;
    gradc_options o = {.offload = store};
    gradc_pool_open(threads, GRADC_POOL_SLEEPY, &pool, NULL);
    gradc_pool_use(pool, &o);
    Net a = open_net(&offload_model, o);
    o.offload = NULL;
    Net b = open_net(&whole_model, o);
    expect(a.status == GRADC_OK && b.status == GRADC_OK, "both models open");
    int equal = 1, exact = 1;
    for (int i = 0; i < STEPS; i++) {
        for (int step = 0; step < 2; step++) {
            float p = 0, q = 1;
            late->out = late->in = 0;
            equal &= call(&a, step, x, y, &p) == GRADC_OK && call(&b, step, x, y, &q) == GRADC_OK;
            equal &= memcmp(&p, &q, sizeof p) == 0 && same(&a, &b, !step);
            exact &= late->out == offload_model.offload_out[!step] &&
                     late->in == offload_model.offload_in[!step] && late->out > 0;
        }
    }
    expect(equal, "the same bits as with nothing offloaded");
    expect(exact, "as many bytes as the plan says");
    expect(late->outside == 0 && late->n == 0 && late->drained == 0, "transfers are in order");
    close_net(&a);
    close_net(&b);
    gradc_pool_close(pool);
}

/* The k-th call of the store fails, for each k: nothing is changed, and the next step is as if
 * nothing had been. */
static void test_failures(Late *late, const gradc_offload *store, const float *x, const float *y)
{
    gradc_options o = {.offload = store};
    float p, q;
    int good = 1, k = 1;
    Net b = open_net(&whole_model, (gradc_options){0});
    Net before = open_net(&whole_model, (gradc_options){0});
    call(&b, 1, x, y, &q);
    for (int step = 0; step < 2; step++)
        for (k = 1;; k++) {
            Net a = open_net(&offload_model, o);
            late->calls = late->drained = 0;
            late->fail_at = k;
            int status = call(&a, step, x, y, &p);
            late->fail_at = 0;
            if (status == GRADC_OK)
                break;
            good &= status == GRADC_OFFLOAD && late->drained == 1 && late->n == 0;
            good &= strstr(a.m->error(a.g), "77") != NULL && same(&a, &before, 0);
            good &= call(&a, 1, x, y, &p) == GRADC_OK && memcmp(&p, &q, sizeof p) == 0;
            good &= same(&a, &b, 0);
            close_net(&a);
        }
    expect(good, "a failing transfer changes nothing");
    expect(k > 8, "transfers can fail");
    close_net(&b);
    close_net(&before);
}

/* ---- libgradc's stores ---- */

static int read_disk(void *context, int64_t at, void *bytes, int64_t n)
{
    struct timespec t = {0, 2000000};
    nanosleep(&t, NULL);
    memcpy(bytes, (char *)context + at, (size_t)n);
    return 0;
}

static int write_disk(void *context, int64_t at, const void *bytes, int64_t n)
{
    struct timespec t = {0, 2000000};
    nanosleep(&t, NULL);
    memcpy((char *)context + at, bytes, (size_t)n);
    return 0;
}

static int broken(void *context, int64_t at, const void *bytes, int64_t n)
{
    (void)at;
    (void)bytes;
    (void)n;
    return *(int *)context;
}

static void test_store(gradc_store *store, const char *what, const float *x, const float *y)
{
    gradc_options o = {0};
    gradc_store_counts n;
    float p, q;
    gradc_store_use(store, &o);
    Net a = open_net(&offload_model, o), b = open_net(&whole_model, (gradc_options){0});
    int good = a.status == GRADC_OK;
    for (int i = 0; i < STEPS && good; i++)
        good = call(&a, 1, x, y, &p) == GRADC_OK && call(&b, 1, x, y, &q) == GRADC_OK &&
               memcmp(&p, &q, sizeof p) == 0 && same(&a, &b, 0);
    gradc_store_count(store, &n);
    expect(good, what);
    expect(n.written == STEPS * offload_model.offload_out[0] &&
               n.read == STEPS * offload_model.offload_in[0],
           "the store has moved what the plan says");
    close_net(&a);
    close_net(&b);
    gradc_store_close(store);
}

static void test_broken(char *disk, const float *x, const float *y)
{
    int status = 42;
    (void)disk;
    gradc_store_calls calls = {sizeof calls, &status, read_disk, broken};
    gradc_store *store;
    gradc_options o = {0};
    float p;
    expect(gradc_store_open(&calls, &store, NULL) == GRADC_OK, "a store of one's own opens");
    gradc_store_use(store, &o);
    Net a = open_net(&offload_model, o), b = open_net(&whole_model, (gradc_options){0});
    expect(call(&a, 1, x, y, &p) == GRADC_OFFLOAD && strstr(a.m->error(a.g), "42") != NULL &&
               same(&a, &b, 0),
           "a store that can't write");
    expect(call(&a, 0, x, y, &p) == GRADC_OFFLOAD, "... nor at the next call");
    close_net(&a);
    close_net(&b);
    gradc_store_close(store);
}

static void test_stores(const char *path, const float *x, const float *y)
{
    static char disk[OFFLOAD_OFFLOAD_BYTES];
    gradc_store *store;
    gradc_error e;
    gradc_store_calls calls = {sizeof calls, disk, read_disk, write_disk};
    expect(gradc_store_open(&calls, &store, &e) == GRADC_OK, "a slow store opens");
    test_store(store, "the same bits through a slow store", x, y);
    expect(gradc_store_host(OFFLOAD_OFFLOAD_BYTES, &store, &e) == GRADC_OK, "memory opens");
    test_store(store, "the same bits through memory", x, y);
    expect(gradc_store_file(path, OFFLOAD_OFFLOAD_BYTES, &store, &e) == GRADC_OK, "a file opens");
    FILE *f = fopen(path, "r");
    expect(f == NULL, "a file has no name");
    test_store(store, "the same bits through a file", x, y);
    f = fopen(path, "w");
    expect(f != NULL && gradc_store_file(path, 64, &store, &e) == GRADC_IO && store == NULL &&
               strstr(e.text, path) != NULL,
           "a file that is there is refused");
    if (f != NULL)
        fclose(f);
    remove(path);
    test_broken(disk, x, y);
    expect(gradc_store_open(NULL, &store, &e) == GRADC_BAD_ARGUMENT, "no functions");
    expect(gradc_store_host(-1, &store, &e) == GRADC_BAD_ARGUMENT, "a negative size");
    expect(gradc_store_file(NULL, 64, &store, &e) == GRADC_BAD_ARGUMENT, "no path");
    gradc_store_close(NULL);
}

int main(int argc, char **argv)
{
    static Late late;
    const gradc_offload store = {sizeof store, &late, late_write, late_read, late_wait};
    float *x = draws(offload_model.inputs[0].elems), *y = draws(offload_model.inputs[1].elems);
    test_refusals(&store);
    test_bits(&late, &store, 1, x, y);
    test_bits(&late, &store, 2, x, y);
    test_bits(&late, &store, 3, x, y);
    test_failures(&late, &store, x, y);
    int64_t top = highest(&store, x, y);
    expect(top <= offload_model.arena_bytes && top > offload_model.arena_bytes - 64,
           "the block is used to its last byte");
    expect(offload_model.offload_bytes == OFFLOAD_OFFLOAD_BYTES && whole_model.offload_bytes == 0,
           "table and header agree");
    test_stores(argc > 1 ? argv[1] : "offload.tmp", x, y);
    gradc_free(x);
    gradc_free(y);
    printf("passed=%d failed=%d skipped=0\n", passed, failed);
    return failed > 0;
}
