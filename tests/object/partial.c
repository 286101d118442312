/* A call with fewer rows equals a smaller compile: BIG's eval with SMALL's rows gives
 * SMALL's bits, its grad the loss and the gradients within 1e-6. Or it is refused: a
 * model may mix its rows in ways that can't be told apart.
 *
 *   cc -DBIG=digits_model -DSMALL=digits_few_model partial.c digits.o digits_few.o */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "abi.h"

extern const gradc_model BIG, SMALL;

static int passed, failed;

static void expect(int truth, const char *what, const char *name)
{
    if (truth) {
        passed++;
        return;
    }
    printf("FAILED: %s: %s: %s\n", BIG.name, what, name);
    failed++;
}

static void *open_model(const gradc_model *m)
{
    void *g = NULL, *block = aligned_alloc((size_t)m->arena_align, (size_t)m->arena_bytes);
    if (block == NULL || m->init(block, (size_t)m->arena_bytes, NULL, &g) != GRADC_OK)
        exit(1);
    return g;
}

static void fill(const gradc_tensor *t, void *p)
{
    static uint32_t state = 7;
    for (int64_t i = 0; i < t->elems; i++) {
        uint32_t r = (state = state * 1664525u + 1013904223u) >> 8;
        int64_t v = t->lo < t->hi ? t->lo + r % (t->hi - t->lo) : r % 200;
        if (t->dtype == GRADC_F32)
            ((float *)p)[i] = (float)r / (float)(1 << 23) - 1;
        else if (t->dtype == GRADC_F64)
            ((double *)p)[i] = (double)r / (1 << 23) - 1;
        else if (t->dtype == GRADC_I32)
            ((int32_t *)p)[i] = (int32_t)v;
        else if (t->dtype == GRADC_I64)
            ((int64_t *)p)[i] = v;
        else
            ((char *)p)[i] = (char)v;
    }
}

static gradc_block *values(const gradc_tensor *t, int32_t n)
{
    gradc_block *b = calloc(1, sizeof *b + (size_t)n * sizeof(void *));
    for (int32_t i = 0; i < n; i++)
        b->data[i] = calloc(1, (size_t)t[i].bytes);
    return b;
}

/* Of an input in a call of a batch of the smaller model. */
static size_t given_bytes(int32_t input)
{
    int64_t all = BIG.inputs[input].bytes, some = SMALL.inputs[input].bytes;
    return (size_t)(some == all ? all : some / SMALL.accumulate);
}

/* A copy, and then memory that nobody may read. */
static void *fenced(const void *from, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    char *p = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + whole, page, PROT_NONE) != 0)
        exit(1);
    return memcpy(p + whole - bytes, from, bytes);
}

static double at(const gradc_tensor *t, const void *p, int64_t i)
{
    return t->dtype == GRADC_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

/* What lives between calls, from g to h. */
static void copy_state(void *g, void *h)
{
    for (int32_t i = 0; i < BIG.n_tensors; i++) {
        const gradc_tensor *t = &BIG.tensors[i];
        if (t->role == GRADC_GRADIENT)
            continue;
        void *p = malloc((size_t)t->bytes);
        expect(BIG.read(g, i, p, (size_t)t->bytes) == GRADC_OK &&
                   SMALL.write(h, i, p, (size_t)t->bytes) == GRADC_OK,
               "moves to the smaller model", t->name);
        free(p);
    }
}

/* Of eval: where steps accumulate, outputs have room for several batches. */
static void same_outputs(const gradc_block *a, const gradc_block *b, const char *what)
{
    for (int32_t i = 0; i < BIG.n_outputs; i++) {
        const gradc_tensor *t = &SMALL.outputs[i];
        int64_t bytes = t->bytes / (t->rank > 0 ? SMALL.accumulate : 1);
        expect(memcmp(a->data[i], b->data[i], (size_t)bytes) == 0, what, t->name);
    }
}

/* The largest difference of gradients, against their global norm. */
static double gradients_apart(void *g, void *h)
{
    double norm = 0, apart = 0;
    for (int32_t i = 0; i < BIG.n_tensors; i++) {
        const gradc_tensor *t = &BIG.tensors[i];
        if (t->role != GRADC_GRADIENT || SMALL.tensors[i].bytes != t->bytes)
            continue;
        void *p = malloc((size_t)t->bytes), *q = malloc((size_t)t->bytes);
        expect(BIG.read(g, i, p, (size_t)t->bytes) == GRADC_OK &&
                   SMALL.read(h, i, q, (size_t)t->bytes) == GRADC_OK,
               "gradient can be read", t->name);
        for (int64_t k = 0; k < t->elems; k++) {
            norm += at(t, q, k) * at(t, q, k);
            apart = fmax(apart, fabs(at(t, p, k) - at(t, q, k)));
        }
        free(p);
        free(q);
    }
    return apart / sqrt(norm);
}

/* Gradients and a step of as many rows as `in` says. */
static void compare(void *g, void *h, gradc_block *in, gradc_block *a, gradc_block *b)
{
    expect(BIG.grad(g, in, a) == GRADC_OK, "grad", BIG.error(g));
    expect(SMALL.grad(h, in, b) == GRADC_OK, "grad", SMALL.error(h));
    double loss = at(&BIG.outputs[0], a->data[0], 0), other = at(&BIG.outputs[0], b->data[0], 0);
    double apart = gradients_apart(g, h);
    printf("%s, %lld of %lld rows: losses %.9g and %.9g, gradients apart by %.1e of their norm\n",
           BIG.name, (long long)in->rows, (long long)(BIG.batch_rows * BIG.accumulate), loss, other,
           apart);
    expect(fabs(loss - other) <= 1e-6 * fabs(other), "loss with fewer rows", "grad");
    expect(apart <= 1e-6, "gradients with fewer rows", "grad");

    expect(BIG.step(g, in, a) == GRADC_OK && SMALL.step(h, in, b) == GRADC_OK, "step", "rows");
    loss = at(&BIG.outputs[0], a->data[0], 0), other = at(&BIG.outputs[0], b->data[0], 0);
    expect(fabs(loss - other) <= 1e-6 * fabs(other), "loss with fewer rows", "step");
}

int main(void)
{
    void *g = open_model(&BIG), *h = open_model(&SMALL);
    gradc_block *in = values(BIG.inputs, BIG.n_inputs);
    gradc_block *a = values(BIG.outputs, BIG.n_outputs), *b = values(BIG.outputs, BIG.n_outputs);
    for (int32_t i = 0; i < BIG.n_inputs; i++)
        fill(&BIG.inputs[i], in->data[i]);
    expect(BIG.step(g, in, NULL) == GRADC_OK, "step", "all rows");

    in->rows = SMALL.batch_rows;
    copy_state(g, h);
    expect(BIG.eval(g, in, a) == GRADC_OK, "eval", BIG.error(g));
    expect(SMALL.eval(h, in, b) == GRADC_OK, "eval", SMALL.error(h));
    same_outputs(a, b, "eval with fewer rows differs from a smaller compile");

    gradc_block *few = calloc(1, sizeof *few + (size_t)BIG.n_inputs * sizeof(void *));
    few->rows = in->rows;
    for (int32_t i = 0; i < BIG.n_inputs; i++)
        few->data[i] = fenced(in->data[i], given_bytes(i));
    expect(BIG.eval(g, few, a) == GRADC_OK, "eval", BIG.error(g));
    same_outputs(a, b, "eval reads rows that are not there");
    compare(g, h, few, a, b);
    if (BIG.accumulate > 1) { /* full micro-batches, one that is short, empty ones */
        in->rows = 2 * BIG.batch_rows + 1;
        compare(g, h, in, a, b);
    }
    printf("passed=%d failed=%d skipped=0\n", passed, failed);
    return failed > 0;
}
