/* Shared by the CPU target's tests: kernels run as an object and by the judge. */
#ifndef GRADC_TESTS_CPU_CHECK_H
#define GRADC_TESTS_CPU_CHECK_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cpu/fill.h"
#include "kernel/denormals.h"
#include "target/cpu/object.h"

typedef void (*KernelCode)(void **bufs, void *scratch, int64_t begin, int64_t end);

/* Memory of a kernel's buffers, with a margin that must stay untouched. */
enum { MARGIN = 64 };
typedef struct Buffers {
    int n;
    unsigned char *base[64];
    void *at[64];
    size_t bytes[64];
} Buffers;

static inline Buffers memory_filled(const Kernel *k, uint64_t seed, Fill *fill)
{
    Buffers m = {.n = k->buf.n};
    for (int i = 0; i < k->buf.n; i++) {
        const KBuf *b = &k->buf.at[i];
        m.bytes[i] = (size_t)(b->elems * dtype_bytes(b->dtype));
        m.base[i] = malloc(m.bytes[i] + 2 * MARGIN);
        memset(m.base[i], 0x5a, m.bytes[i] + 2 * MARGIN);
        m.at[i] = m.base[i] + MARGIN;
        for (int64_t e = 0; e < b->elems; e++)
            fill(b->dtype, m.at[i], e, &seed);
    }
    return m;
}

static inline Buffers memory_new(const Kernel *k, uint64_t seed)
{
    return memory_filled(k, seed, fill_element);
}

static inline void memory_free(Buffers *m)
{
    for (int i = 0; i < m->n; i++)
        free(m->base[i]);
}

static inline bool is_nan(DType t, const void *p, int64_t i)
{
    switch (t) {
    case F32:
        return isnan(((const float *)p)[i]);
    case F64:
        return isnan(((const double *)p)[i]);
    case F16:
        return isnan(f16_to_f32(((const uint16_t *)p)[i]));
    case BF16:
        return isnan(bf16_to_f32(((const uint16_t *)p)[i]));
    default:
        return false;
    }
}

/* NaNs are equal whatever their sign and payload, which IEEE 754 leaves open. */
static inline int64_t first_difference(const Kernel *k, int b, const Buffers *x, const Buffers *y)
{
    DType t = k->buf.at[b].dtype;
    size_t size = (size_t)dtype_bytes(t);
    for (int64_t i = 0; i < k->buf.at[b].elems; i++) {
        const char *p = (const char *)x->at[b] + (size_t)i * size;
        const char *q = (const char *)y->at[b] + (size_t)i * size;
        if (memcmp(p, q, size) != 0 && !(is_nan(t, x->at[b], i) && is_nan(t, y->at[b], i)))
            return i;
    }
    return -1;
}

static inline bool margins_kept(const Buffers *m)
{
    for (int i = 0; i < m->n; i++)
        for (int j = 0; j < MARGIN; j++)
            if (m->base[i][j] != 0x5a || m->base[i][MARGIN + m->bytes[i] + (size_t)j] != 0x5a)
                return false;
    return true;
}

/* Runs units in `pieces` chunks, the last first, with a scratch for each of two lanes. */
static inline void run_code(KernelCode code, const Kernel *k, const KernelFn *fn, Buffers *m,
                            int64_t pieces)
{
    void *bufs[64];
    int n = 0;
    for (int i = 0; i < k->buf.n; i++)
        if (k->buf.at[i].mode != K_LOCAL)
            bufs[n++] = m->at[i];
    size_t size = ((size_t)fn->scratch + 63) / 64 * 64 + 64;
    unsigned char *lane[2];
    for (int l = 0; l < 2; l++) {
        lane[l] = aligned_alloc(64, size);
        memset(lane[l], 0xff, size);
    }
    if (k->kind == K_CONTRACT && k->con.all != 0)
        *(unsigned char *)m->at[k->con.all_buf] = 1;
    for (int64_t p = pieces; p-- > 0;) {
        int64_t from = fn->n_units * p / pieces, to = fn->n_units * (p + 1) / pieces;
        code(bufs, lane[p & 1], from, to);
    }
    for (int l = 0; l < 2; l++) {
        for (size_t i = (size_t)fn->scratch; i < size; i++)
            ck_assert_msg(lane[l][i] == 0xff, "%s writes beyond its scratch", k->name);
        free(lane[l]);
    }
}

/* The code of kernel i gives the judge's bits, in 1, 2, 3 and 8 pieces. */
static inline void check_code(Ctx *cx, const TargetOptions *o, KernelCode code, const Kernel *k,
                              const KernelFn *fn, int i, Fill *fill)
{
    Buffers judge = memory_filled(k, 7 + (uint64_t)i, fill);
    KMem mem[64];
    for (int b = 0; b < k->buf.n; b++)
        mem[b] = (KMem){judge.at[b], NULL};
    uint32_t mode = denormals_begin(o->flush); /* of a call, it is the entry's business */
    kernel_run(k, K_EXACT, mem, &cx->scratch);
    denormals_end(mode);
    static const int64_t pieces[] = {1, 2, 3, 8};
    for (int p = 0; p < 4; p++) {
        Buffers m = memory_filled(k, 7 + (uint64_t)i, fill);
        mode = denormals_begin(o->flush);
        run_code(code, k, fn, &m, pieces[p]);
        denormals_end(mode);
        ck_assert_msg(margins_kept(&m), "%s writes beside a buffer", k->name);
        for (int b = 0; b < k->buf.n; b++) {
            if (k->buf.at[b].mode == K_LOCAL)
                continue;
            int64_t at = first_difference(k, b, &judge, &m);
            if (at >= 0) {
                Text t;
                text_init(&t, &cx->scratch);
                kernel_print(k, &t);
                ck_abort_msg("kernel %d (%s) in %d pieces: buffer %d differs at %lld\n%s", i,
                             k->name, (int)pieces[p], b, (long long)at, t.at);
            }
        }
        memory_free(&m);
    }
    memory_free(&judge);
}

/* The object's kernels give the judge's bits, of elements by each of the NULL-ended fills. */
static inline void check_filled(const TargetOptions *o, Kernel **k, int n, Fill *const *fill)
{
    Ctx cx;
    ctx_init(&cx);
    KernelFn *fn = NEW_ARRAY(&cx.perm, KernelFn, n);
    ObjectFile object = {0};
    bool ok = cpu_emit_kernels(&cx, o, k, n, &cx.perm, fn, &object);
    if (!ok)
        diag_print(&cx, stderr);
    ck_assert(ok);
    Loaded *l = cpu_load(&cx, &object, NULL);
    ck_assert(l != NULL);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        KernelCode code = NULL;
        *(void **)&code = loaded_symbol(l, name);
        ck_assert(code != NULL);
        for (Fill *const *f = fill; *f != NULL; f++)
            check_code(&cx, o, code, k[i], &fn[i], i, *f);
    }
    cpu_unload(l);
    ctx_free(&cx);
}

static inline void check_kernels(const TargetOptions *o, Kernel **k, int n)
{
    check_filled(o, k, n, (Fill *const[]){fill_element, NULL});
}

#endif
