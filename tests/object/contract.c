/* The contract of an emitted object, held against any model by its table.
 *
 *   cc -DNAME=digits -DARENA=DIGITS_ARENA_BYTES -DSCRATCH=0 -DHEADER='"digits.h"' contract.c
 * digits.o
 *
 * SCRATCH: bytes at the end of the block that are scratch of lanes, and need not all be touched.
 * Options: SAME_EVAL: eval gives the outputs of step (no dropout, no batch norm).
 * Prints what fails and, last, "passed=N failed=N skipped=0". */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include HEADER

#define PASTE(a, b) a##b
#define JOIN(a, b)  PASTE(a, b)
#define TEXT(a)     #a
#define STRING(a)   TEXT(a)
#define MODEL       JOIN(NAME, _model)
#define FN(suffix)  JOIN(NAME, suffix)

enum { STEPS = 100, HANDLE = 1024, PATTERNS = 2 };

static const gradc_model *const m = &MODEL;
static int passed, failed;

static void expect(int truth, const char *what)
{
    if (truth) {
        passed++;
        return;
    }
    printf("FAILED: %s: %s\n", STRING(NAME), what);
    failed++;
}

/* ---- who asks for memory ---- */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

static long asked;

void *malloc(size_t n)
{
    asked++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
    asked++;
    return __libc_calloc(n, each);
}

void *realloc(void *p, size_t n)
{
    asked++;
    return __libc_realloc(p, n);
}

void free(void *p)
{
    asked++;
    __libc_free(p);
}

/* ---- blocks between pages that nobody may touch ---- */

typedef struct Block {
    char *at, *map;
    size_t mapped;
} Block;

static Block block_open(size_t bytes, int at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    Block b = {.mapped = body + 2 * page};
    b.map = mmap(NULL, b.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.map == MAP_FAILED || mprotect(b.map + page, body, PROT_READ | PROT_WRITE) != 0) {
        perror("mmap");
        exit(1);
    }
    b.at = b.map + page + (at_end ? body - bytes : 0);
    return b;
}

static void block_close(Block *b)
{
    munmap(b->map, b->mapped);
}

/* ---- inputs and outputs of any model ---- */

static gradc_block *in, *out;

static uint32_t drawn(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void draw(const gradc_tensor *t, char *p, uint32_t *state)
{
    for (int64_t i = 0; i < t->elems; i++) {
        uint32_t r = drawn(state);
        int64_t v = t->lo < t->hi ? t->lo + r % (t->hi - t->lo) : r % 200;
        if (t->dtype == GRADC_F32)
            ((float *)(void *)p)[i] = (float)r / (float)(1 << 24);
        else if (t->dtype == GRADC_F64)
            ((double *)(void *)p)[i] = (double)r / (1 << 24);
        else if (t->dtype == GRADC_I32)
            ((int32_t *)(void *)p)[i] = (int32_t)v;
        else if (t->dtype == GRADC_I64)
            ((int64_t *)(void *)p)[i] = v;
        else
            p[i] = (char)v;
    }
}

static gradc_block *values(const gradc_tensor *t, int32_t n, int filled)
{
    uint32_t state = 1;
    gradc_block *b = calloc(1, sizeof *b + (size_t)n * sizeof(void *));
    for (int32_t i = 0; i < n; i++) {
        b->data[i] = calloc(1, (size_t)t[i].bytes);
        if (filled)
            draw(&t[i], b->data[i], &state);
    }
    return b;
}

/* Outputs that are not wanted but for the first `n`. */
static gradc_block *only(int32_t n)
{
    gradc_block *b = calloc(1, sizeof *b + (size_t)m->n_outputs * sizeof(void *));
    memcpy(b->data, out->data, (size_t)n * sizeof(void *));
    return b;
}

static void *init(Block *b, const gradc_options *o)
{
    void *g = NULL;
    int s = m->init(b->at, (size_t)m->arena_bytes, o, &g);
    if (s != GRADC_OK) {
        printf("init: %s\n", m->error(b->at));
        exit(1);
    }
    return g;
}

static double loss_of(const gradc_block *b)
{
    return m->outputs[0].dtype == GRADC_F64 ? *(double *)b->data[0] : (double)*(float *)b->data[0];
}

static void refused(void *g, int got, int want, const char *words, const char *what)
{
    const char *e = m->error(g);
    char text[2000];
    snprintf(text, sizeof text, "%s: status %d instead of %d, \"%s\" without \"%s\"", what, got,
             want, e, words);
    expect(got == want && strstr(e, words) != NULL, text);
}

/* ---- the arena ---- */

/* Every lane in turn, on this thread. */
static void in_turn(void *lanes, int64_t count, gradc_body body, void *arg)
{
    for (int64_t i = 0; i < count; i++)
        body(arg, i, (int32_t)(i % *(int32_t *)lanes));
}

/* The last piece first, each on a lane that has little to do with its number. */
static void in_disorder(void *lanes, int64_t count, gradc_body body, void *arg)
{
    const int32_t n = *(int32_t *)lanes;
    for (int64_t i = count; i-- > 0;)
        body(arg, i, (int32_t)(i * 5 % 7) % n);
}

static size_t highest_changed(const Block *b, char pattern)
{
    size_t n = (size_t)m->arena_bytes;
    while (n > 0 && b->at[n - 1] == pattern)
        n--;
    return n;
}

/* All entries, with losses of `steps` steps; the highest byte that was touched. */
static size_t all_entries(int32_t lanes, int at_end, char pattern, int steps, double *loss)
{
    gradc_options o = {.struct_size = sizeof o,
                       .abi = GRADC_ABI,
                       .threads = lanes,
                       .seed = 1,
                       .parallel_for = in_turn,
                       .context = &lanes};
    Block b = block_open((size_t)m->arena_bytes, at_end);
    memset(b.at, pattern, (size_t)m->arena_bytes);
    void *g = init(&b, &o);
    long before = asked;
    int s = GRADC_OK;
    for (int i = 0; i < steps && s == GRADC_OK; i++) {
        s = m->step(g, in, out);
        loss[i] = loss_of(out);
    }
    if (s == GRADC_OK)
        s = m->eval(g, in, out);
    if (s == GRADC_OK && m->grad != NULL)
        s = m->grad(g, in, out);
    expect(asked == before, "nobody asks for memory");
    refused(g, s, GRADC_OK, "", "all entries between guard pages");
    size_t top = highest_changed(&b, pattern);
    block_close(&b);
    return top;
}

static void arena(void)
{
    static double first[STEPS], second[STEPS], serial;
    expect(m->arena_bytes == (int64_t)ARENA && FN(_arena_bytes)() == (size_t)ARENA,
           "the constant, the function and the table name one size");
    expect(m->arena_bytes % m->arena_align == 0, "the size is a multiple of the alignment");
    size_t top = all_entries(m->threads_max, 1, 0x55, STEPS, first);
    for (int32_t lanes = 1; lanes <= m->threads_max; lanes++) { /* some loops want so many */
        size_t touched = all_entries(lanes, 0, (char)0xaa, 3, second);
        top = touched > top ? touched : top;
        expect(memcmp(first, second, 3 * sizeof *first) == 0, "the same losses in another place");
    }
    printf("%s: %lld bytes planned, %zu touched, %d of scratch, loss %.6g to %.6g in %d steps\n",
           STRING(NAME), (long long)m->arena_bytes, top, SCRATCH, first[0], first[STEPS - 1],
           STEPS);
    expect(top <= (size_t)ARENA && top + 64 + SCRATCH > (size_t)ARENA,
           "the peak is the planned one");
    Block block = block_open((size_t)m->arena_bytes, 1);
    void *g =
        init(&block,
             &(gradc_options){.struct_size = sizeof(gradc_options), .abi = GRADC_ABI, .seed = 1});
    m->step(g, in, out);
    serial = loss_of(out);
    expect(serial == first[0], "one lane and all lanes give one loss");
    block_close(&block);
}

/* ---- what init refuses ---- */

static void init_refuses(void)
{
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .threads = 1};
    Block b = block_open((size_t)m->arena_bytes, 1), wide = block_open((size_t)ARENA + 64, 0);
    size_t n = (size_t)m->arena_bytes;
    void *g = b.at;
    expect(m->init(NULL, n, &o, &g) == GRADC_BAD_ARGUMENT && g == NULL, "no block");
    expect(m->init(b.at, n, &o, NULL) == GRADC_BAD_ARGUMENT, "no place for the handle");
    expect(m->init(wide.at + 1, n, &o, &g) == GRADC_MISALIGNED, "one byte off");
    expect(m->init(wide.at + m->arena_align / 2, n, &o, &g) == GRADC_MISALIGNED, "half off");
    expect(m->init(b.at, 0, &o, &g) == GRADC_TOO_SMALL, "no bytes");
    refused(b.at, m->init(b.at, n - 1, &o, &g), GRADC_TOO_SMALL, "needs", "one byte less");
    expect(g == NULL, "no handle after a failure");
    o.struct_size--;
    refused(b.at, m->init(b.at, n, &o, &g), GRADC_BAD_ABI, "struct_size", "a short structure");
    o.struct_size = offsetof(gradc_options, offload);
    expect(m->init(b.at, n, &o, &g) == GRADC_OK, "options from before there were stores");
    o.struct_size = sizeof o;
    o.abi++;
    refused(b.at, m->init(b.at, n, &o, &g), GRADC_BAD_ABI, "version", "another version");
    o.abi--;
    o.threads = m->threads_max + 1;
    o.parallel_for = in_turn;
    refused(b.at, m->init(b.at, n, &o, &g), GRADC_BAD_ARGUMENT, "scratch", "too many threads");
    o.threads = -1;
    expect(m->init(b.at, n, &o, &g) == GRADC_BAD_ARGUMENT, "fewer threads than none");
    o.threads = m->threads_max;
    o.context = &o.threads;
    o.struct_size += 64;
    expect(m->init(b.at, n, &o, &g) == GRADC_OK, "a structure that has grown");
    block_close(&b);
    block_close(&wide);
}

static void uninitialised(void)
{
    static const char fill[] = {0, (char)0xff, 0x41};
    Block b = block_open((size_t)m->arena_bytes, 1);
    char byte[8];
    for (int i = 0; i < 3; i++) {
        memset(b.at, fill[i], (size_t)m->arena_bytes);
        expect(m->step(b.at, in, out) == GRADC_BAD_STATE, "step of a block without init");
        expect(m->eval(b.at, in, out) == GRADC_BAD_STATE, "eval of a block without init");
        expect(m->read(b.at, 0, byte, sizeof byte) == GRADC_BAD_STATE, "read without init");
        expect(m->error(b.at)[0] != 0, "and a sentence for it");
        size_t n = 0;
        while (n < (size_t)m->arena_bytes && b.at[n] == fill[i])
            n++;
        expect(n == (size_t)m->arena_bytes, "a block without init is left alone");
    }
    expect(m->step(NULL, in, out) == GRADC_BAD_ARGUMENT, "step of no handle");
    expect(m->error(NULL) != NULL && m->error(NULL)[0] != 0, "no handle has a sentence too");
    block_close(&b);
}

/* ---- what calls refuse ---- */

static char *copy_of(const Block *b)
{
    char *c = malloc((size_t)m->arena_bytes);
    memcpy(c, b->at, (size_t)m->arena_bytes);
    return c;
}

/* Everything after the handle, which has the message. */
static void unchanged(const Block *b, const char *c, const char *what)
{
    expect(memcmp(b->at + HANDLE, c + HANDLE, (size_t)m->arena_bytes - HANDLE) == 0, what);
}

/* Element `at` of a ranged input is set to values outside; eval reads it as step does. */
static void set_outside(void *g, const Block *b, const char *c, int32_t i, int64_t at)
{
    const gradc_tensor *t = &m->inputs[i];
    int32_t *one = (int32_t *)in->data[i] + at, kept = *one;
    const int64_t bad[] = {t->lo - 1, t->hi, INT32_MIN, INT32_MAX};
    for (int k = 0; k < 4; k++) {
        char words[300];
        *one = (int32_t)bad[k];
        snprintf(words, sizeof words, "input %s: element %lld is %lld", t->name, (long long)at,
                 (long long)bad[k]);
        refused(g, m->step(g, in, out), GRADC_RANGE, words, "step out of range");
        if (at < t->elems / m->accumulate)
            refused(g, m->eval(g, in, out), GRADC_RANGE, words, "eval out of range");
        unchanged(b, c, "a value out of range changes nothing");
    }
    *one = kept;
}

static void out_of_range(void *g, const Block *b, const char *c, int32_t i)
{
    const gradc_tensor *t = &m->inputs[i];
    if (t->dtype != GRADC_I32 || t->lo >= t->hi)
        return;
    set_outside(g, b, c, i, 0);
    set_outside(g, b, c, i, t->elems / m->accumulate - 1);
    set_outside(g, b, c, i, t->elems - 1);
}

static void calls_refuse(void)
{
    Block b = block_open((size_t)m->arena_bytes, 1);
    void *g = init(&b, NULL);
    m->step(g, in, out);
    char *c = copy_of(&b);
    refused(g, m->step(g, NULL, out), GRADC_BAD_ARGUMENT, "is NULL", "no inputs");
    for (int32_t i = 0; i < m->n_inputs; i++) {
        void *kept = in->data[i];
        in->data[i] = NULL;
        refused(g, m->step(g, in, out), GRADC_BAD_ARGUMENT, m->inputs[i].name, "a NULL input");
        in->data[i] = (char *)kept + 1;
        if (m->inputs[i].bytes > m->inputs[i].elems)
            refused(g, m->step(g, in, out), GRADC_BAD_ARGUMENT, "aligned", "a misaligned input");
        in->data[i] = kept;
        out_of_range(g, &b, c, i);
    }
    const int64_t rows[] = {-1, m->batch_rows * m->accumulate + 1, INT64_MIN, INT64_MAX};
    for (int i = 0; i < 4; i++) {
        in->rows = rows[i];
        refused(g, m->step(g, in, out), GRADC_BAD_ARGUMENT, "rows is", "rows of step");
    }
    in->rows = m->batch_rows + 1;
    refused(g, m->eval(g, in, out), GRADC_BAD_ARGUMENT, "rows is", "rows of eval");
    in->rows = 0;
    unchanged(&b, c, "bad arguments change nothing");
    refused(g, m->read(g, -1, in, 4), GRADC_BAD_ARGUMENT, "no tensor", "tensor -1");
    refused(g, m->read(g, m->n_tensors, in, 4), GRADC_BAD_ARGUMENT, "no tensor", "one too many");
    free(c);
    block_close(&b);
}

/* ---- tensors ---- */

static char **all_tensors(void *g)
{
    char **t = calloc((size_t)m->n_tensors, sizeof *t);
    for (int32_t i = 0; i < m->n_tensors; i++) {
        t[i] = calloc(1, (size_t)m->tensors[i].bytes + 1);
        if (m->tensors[i].role != GRADC_GRADIENT)
            expect(m->read(g, i, t[i], (size_t)m->tensors[i].bytes) == GRADC_OK,
                   m->tensors[i].name);
    }
    return t;
}

static void free_tensors(char **t)
{
    for (int32_t i = 0; i < m->n_tensors; i++)
        free(t[i]);
    free(t);
}

/* Nothing that lives between calls differs, but for the counter of skipped steps. */
static void only_skipped(void *g, char **before, int64_t more, const char *what)
{
    char **after = all_tensors(g);
    int same = 1;
    int64_t skipped = -1;
    for (int32_t i = 0; i < m->n_tensors; i++) {
        int64_t a, b;
        if (m->tensors[i].role == GRADC_GRADIENT)
            continue;
        memcpy(&a, before[i], sizeof a * (m->tensors[i].bytes >= 8));
        if (m->tensors[i].dtype == GRADC_I64 && strstr(m->tensors[i].name, "skipped") != NULL) {
            memcpy(&b, after[i], sizeof b);
            skipped = b - a;
        } else if (memcmp(before[i], after[i], (size_t)m->tensors[i].bytes) != 0) {
            printf("%s: %s has changed\n", STRING(NAME), m->tensors[i].name);
            same = 0;
        }
    }
    expect(same, what);
    expect(skipped == more, "a step that is refused counts as skipped");
    free_tensors(after);
}

static size_t each_of(const gradc_tensor *t)
{
    return (size_t)(t->bytes / t->elems);
}

static void put_float(const gradc_tensor *t, void *to, double x)
{
    if (t->dtype == GRADC_F32)
        *(float *)to = (float)x;
    else
        *(double *)to = x;
}

static void nonfinite_step(void *g, const char *what)
{
    char **before = all_tensors(g);
    int s = m->step(g, in, out);
    refused(g, s, GRADC_NONFINITE, "nothing was changed", what);
    only_skipped(g, before, s == GRADC_NONFINITE, what);
    free_tensors(before);
}

static void nonfinite(void)
{
    Block b = block_open((size_t)m->arena_bytes, 1);
    void *g = init(&b, NULL);
    m->step(g, in, out);
    for (int32_t i = 0; i < m->n_inputs; i++) {
        const gradc_tensor *t = &m->inputs[i];
        if (t->dtype > GRADC_F64)
            continue;
        char kept[8];
        memcpy(kept, in->data[i], each_of(t));
        put_float(t, in->data[i], (double)NAN);
        nonfinite_step(g, "NaN in the data");
        put_float(t, in->data[i], (double)INFINITY);
        nonfinite_step(g, "infinity in the data");
        memcpy(in->data[i], kept, each_of(t));
    }
    for (int32_t i = 0; i < m->n_tensors; i++) {
        const gradc_tensor *t = &m->tensors[i];
        if (t->role != GRADC_PARAM || t->dtype > GRADC_F64 || (i > 0 && i + 1 < m->n_tensors / 4))
            continue;
        char *w = calloc(1, (size_t)t->bytes), *kept = calloc(1, (size_t)t->bytes);
        m->read(g, i, w, (size_t)t->bytes);
        memcpy(kept, w, (size_t)t->bytes);
        for (int64_t k = 0; k < t->elems; k++)
            put_float(t, w + (size_t)k * each_of(t), (double)NAN);
        m->write(g, i, w, (size_t)t->bytes);
        nonfinite_step(g, "NaN in a parameter");
        m->write(g, i, kept, (size_t)t->bytes);
        free(w);
        free(kept);
    }
    refused(g, m->step(g, in, out), GRADC_OK, "", "and goes on");
    block_close(&b);
}

static void tensors(void)
{
    Block b = block_open((size_t)m->arena_bytes, 0);
    gradc_block *loss = only(1);
    void *g = init(&b, NULL);
    size_t count;
    expect(FN(_tensors)((const NAME *)g, &count) == m->tensors && (int32_t)count == m->n_tensors,
           "NAME_tensors is the table");
    for (int32_t i = 0; i < m->n_tensors; i++) {
        const gradc_tensor *t = &m->tensors[i];
        size_t n = (size_t)t->bytes;
        char *w = calloc(1, n + 1), *back = calloc(1, n + 1);
        if (t->role == GRADC_GRADIENT) {
            expect(m->read(g, i, w, n) == GRADC_BAD_STATE, "no gradient before grad");
        } else {
            for (size_t k = 0; k < n; k++)
                w[k] = (char)(k * 7 + (size_t)i);
            expect(FN(_find)(t->name) == i, "found by its name");
            expect(m->write(g, i, w, n) == GRADC_OK && m->read(g, i, back, n) == GRADC_OK &&
                       memcmp(w, back, n) == 0,
                   t->name);
            expect(m->read(g, i, back, n - 1) == GRADC_BAD_ARGUMENT, "a byte less");
            expect(m->write(g, i, NULL, n) == GRADC_BAD_ARGUMENT, "from NULL");
            expect(FN(_set)((NAME *)g, i, 0.5) ==
                       (t->role == GRADC_SCALAR ? GRADC_OK : GRADC_BAD_ARGUMENT),
                   "set takes scalars only");
        }
        free(w);
        free(back);
    }
    expect(FN(_find)("no such tensor") == -1 && FN(_find)(NULL) == -1, "no such name");
    g = init(&b, NULL);
    expect(m->grad(g, in, loss) == GRADC_OK, "grad");
    for (int32_t i = 0; i < m->n_tensors; i++) {
        const gradc_tensor *t = &m->tensors[i];
        char *w = calloc(1, (size_t)t->bytes);
        if (t->role == GRADC_GRADIENT)
            expect(m->read(g, i, w, (size_t)t->bytes) == GRADC_OK, "a gradient after grad");
        free(w);
    }
    expect(m->step(g, in, loss) == GRADC_OK, "a step after it");
    free(loss);
    block_close(&b);
}

/* ---- outputs ---- */

static void outputs(void)
{
    Block b[2] = {block_open((size_t)m->arena_bytes, 0), block_open((size_t)m->arena_bytes, 1)};
    void *g = init(&b[0], NULL), *h = init(&b[1], NULL);
    gradc_block *loss = only(1);
    for (int i = 0; i < 3; i++) {
        expect(m->step(g, in, loss) == GRADC_OK, "a step with the loss alone");
        double alone = loss_of(loss);
#ifdef SAME_EVAL
        gradc_block *seen = values(m->outputs, m->n_outputs, 0);
        expect(m->eval(h, in, seen) == GRADC_OK, "eval");
#endif
        expect(m->step(h, in, out) == GRADC_OK, "a step with all outputs");
        expect(loss_of(out) == alone, "the same loss with outputs and without");
#ifdef SAME_EVAL
        for (int32_t k = 0; k < m->n_outputs; k++)
            expect(memcmp(seen->data[k], out->data[k], (size_t)m->outputs[k].bytes) == 0,
                   "step gives what eval gave before it");
#endif
    }
    expect(m->step(g, in, NULL) == GRADC_OK, "a step with no outputs");
    expect(m->eval(g, in, NULL) == GRADC_OK, "eval with no outputs");
    block_close(&b[0]);
    block_close(&b[1]);
}

/* ---- inputs that eval may lack, where neither loss nor metrics are wanted ---- */

static gradc_block *copied(const gradc_block *b, int32_t n)
{
    size_t bytes = sizeof *b + (size_t)n * sizeof(void *);
    return memcpy(malloc(bytes), b, bytes);
}

/* What an input that is missing is taken for: zeros, or the lowest of a range without zero. */
static void *stand_in(const gradc_tensor *t)
{
    char *p = calloc(1, (size_t)t->bytes);
    int zero = t->lo >= t->hi || (t->lo <= 0 && t->hi > 0);
    for (int64_t i = 0; i < t->elems && !zero; i++)
        if (t->dtype == GRADC_I64)
            ((int64_t *)(void *)p)[i] = t->lo;
        else
            ((int32_t *)(void *)p)[i] = (int32_t)t->lo;
    return p;
}

/* Eval of `given`, after a step in a block that was full of `pattern`, and then a step.
 * gives: what eval gives in `seen`, and the step's loss. */
static double eval_between(gradc_block *given, char pattern, gradc_block *seen)
{
    Block b = block_open((size_t)m->arena_bytes, 1);
    memset(b.at, pattern, (size_t)m->arena_bytes);
    void *g = init(&b, NULL);
    expect(m->step(g, in, NULL) == GRADC_OK, "a step before eval");
    char **before = all_tensors(g);
    refused(g, m->eval(g, given, seen), GRADC_OK, "", "eval without an input");
    only_skipped(g, before, 0, "eval without an input changes nothing that lasts");
    free_tensors(before);
    refused(g, m->step(g, in, out), GRADC_OK, "", "a step after that");
    block_close(&b);
    return loss_of(out);
}

/* Eval without the inputs that `given` lacks gives what it gives with their stand-ins, whatever
 * was in the block. */
static void eval_lacks(gradc_block *given, double next)
{
    gradc_block *whole = copied(given, m->n_inputs);
    gradc_block *seen[3];
    for (int k = 0; k < 3; k++)
        seen[k] = values(m->outputs, m->n_outputs, 0);
    for (int32_t i = 0; i < m->n_inputs; i++)
        whole->data[i] = given->data[i] == NULL ? stand_in(&m->inputs[i]) : given->data[i];
    for (int32_t k = 0; k < m->n_outputs; k++)
        for (int run = 0; run < 3 && m->outputs[k].role != GRADC_OUTPUT; run++)
            seen[run]->data[k] = NULL;
    const double loss[] = {eval_between(whole, 0x55, seen[0]), eval_between(given, 0x55, seen[1]),
                           eval_between(given, (char)0xaa, seen[2])};
    for (int run = 0; run < 3; run++)
        expect(loss[run] == next, "the next step is the same, whatever eval lacked");
    for (int32_t k = 0; k < m->n_outputs; k++)
        for (int run = 1; run < 3 && m->outputs[k].role == GRADC_OUTPUT; run++)
            expect(memcmp(seen[0]->data[k], seen[run]->data[k], (size_t)m->outputs[k].bytes) == 0,
                   "an input that is missing is zeros");
}

static void missing_inputs(void)
{
    Block b = block_open((size_t)m->arena_bytes, 1);
    void *g = init(&b, NULL);
    gradc_block *seen = copied(out, m->n_outputs), *given = copied(in, m->n_inputs);
    for (int32_t k = 0; k < m->n_outputs; k++)
        if (m->outputs[k].role != GRADC_OUTPUT)
            seen->data[k] = NULL;
    for (int step = 0; step < 2; step++)
        expect(m->step(g, in, out) == GRADC_OK, "steps with no eval between them");
    const double next = loss_of(out);
    const int64_t most = m->batch_rows > 1 ? m->batch_rows : 1;
    for (int64_t rows = 0; rows < most; rows += rows == 0 || most < 4 ? 1 : most - 2) {
        given->rows = rows;
        for (int32_t i = 0; i < m->n_inputs; i++) {
            const char *name = m->inputs[i].name;
            given->data[i] = NULL;
            eval_lacks(given, next);
            refused(g, m->eval(g, given, out), GRADC_BAD_ARGUMENT, name, "a loss without an input");
            refused(g, m->grad(g, given, seen), GRADC_BAD_ARGUMENT, name,
                    "gradients without an input");
            refused(g, m->step(g, given, seen), GRADC_BAD_ARGUMENT, name,
                    "a step without an input");
            given->data[i] = in->data[i];
        }
        memset(given->data, 0, (size_t)m->n_inputs * sizeof(void *));
        eval_lacks(given, next);
        memcpy(given->data, in->data, (size_t)m->n_inputs * sizeof(void *));
    }
    expect(m->step(g, in, out) == GRADC_OK, "a step after that");
    block_close(&b);
}

/* ---- the floating-point mode ---- */

#if defined(__x86_64__)
static unsigned mode(void)
{
    unsigned x;
    __asm__ volatile("stmxcsr %0" : "=m"(x));
    return x & ~0x3fu; /* without the flags of what has happened */
}

static void set_mode(unsigned x)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(x));
}

/* Lanes on threads in another mode than the caller's. */
static void strangely(void *bad, int64_t count, gradc_body body, void *arg)
{
    unsigned before = mode();
    for (int64_t i = 0; i < count; i++) {
        set_mode(i % 2 == 0 ? 0xffc0 : 0x3f80); /* toward zero and flushing; down */
        unsigned given = mode();
        body(arg, i, 0);
        *(int *)bad += mode() != given;
    }
    set_mode(before);
}

/* Neither the caller's mode nor that of its lanes matters, and both are given back. */
static void modes(void)
{
    static const unsigned of[] = {0x1f80, 0xffc0, 0x3f80, 0x9fc0};
    int bad = 0;
    double loss[4];
    gradc_options o = {.struct_size = sizeof o,
                       .abi = GRADC_ABI,
                       .threads = 1,
                       .seed = 1,
                       .parallel_for = strangely,
                       .context = &bad};
    for (int i = 0; i < 4; i++) {
        Block b = block_open((size_t)m->arena_bytes, 1);
        set_mode(of[i]);
        void *g =
            init(&b, i == 0 ? &(gradc_options){.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 1}
                            : &o);
        bad += mode() != of[i];
        int s = m->step(g, in, out);
        bad += mode() != of[i];
        s = s == GRADC_OK ? m->eval(g, in, out) : s;
        bad += mode() != of[i];
        set_mode(0x1f80);
        loss[i] = loss_of(out);
        refused(g, s, GRADC_OK, "", "entries in a strange mode");
        expect(loss[i] == loss[0], "the same loss in whatever mode");
        block_close(&b);
    }
    expect(bad == 0, "the mode is what it was before each call");
}
#else
static void modes(void)
{
}
#endif

/* ---- lanes ---- */

/* However many there are, and in whatever order they run; none is one. */
static void lanes(void)
{
    double loss[2] = {0, 0};
    for (int32_t n = 0; n <= m->threads_max; n++) {
        int32_t context = n > 0 ? n : 1;
        gradc_options o = {.struct_size = sizeof o,
                           .abi = GRADC_ABI,
                           .threads = n,
                           .seed = 1,
                           .parallel_for = in_disorder,
                           .context = &context};
        Block b = block_open((size_t)m->arena_bytes, 1);
        void *g = init(&b, &o);
        int s = m->step(g, in, out);
        s = s == GRADC_OK ? m->step(g, in, out) : s;
        loss[n > 0] = loss_of(out);
        refused(g, s, GRADC_OK, "", "steps on so many lanes");
        expect(loss[n > 0] == loss[0], "the same loss on however many lanes");
        block_close(&b);
    }
}

int main(void)
{
    in = values(m->inputs, m->n_inputs, 1);
    out = values(m->outputs, m->n_outputs, 0);
    expect(strcmp(m->name, STRING(NAME)) == 0 && m->abi == GRADC_ABI &&
               m->struct_size == sizeof *m && strlen(m->hash) == 64,
           "the table says who it is");
    arena();
    init_refuses();
    uninitialised();
    calls_refuse();
    nonfinite();
    tensors();
    outputs();
    missing_inputs();
    modes();
    lanes();
    printf("passed=%d failed=%d skipped=0\n", passed, failed);
    return failed > 0;
}
