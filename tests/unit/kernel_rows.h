/* Changes of kernels that go over rows, several times: they leave a verified kernel, and the bits.
 */
#ifndef GRADC_TESTS_KERNEL_ROWS_H
#define GRADC_TESTS_KERNEL_ROWS_H

#include <check.h>
#include <string.h>

#include "kernel/kernel.h"

enum { N_ROWS = 8, N_COLUMNS = 20, N_ELEMS = N_ROWS * N_COLUMNS };

/* b0, b3: rows of so many elements, read; b1: as many, written; b2: a sum of each. */
#define ROWS_BUFFERS "loop t { b0: in f32[160] b1: out f32[160] b2: out f32[8] b3: in f32[160] "
#define ROWS(body)   ROWS_BUFFERS "par i < 8 { " body " } }"

typedef struct RowsBytes {
    float in[N_ELEMS], out[N_ELEMS], sum[N_ROWS], by[N_ELEMS];
} RowsBytes;

static inline void run_rows(const Kernel *k, RowsBytes *m, Arena *scratch)
{
    KMem mem[8] = {{m->in, NULL}, {m->out, NULL}, {m->sum, NULL}, {m->by, NULL}};
    memset(m, 0, sizeof *m);
    for (int i = 0; i < N_ELEMS; i++) {
        m->in[i] = (float)((i * 37) % 101) / 17 - 3;
        m->by[i] = (float)((i * 53) % 89) / 13 - 2;
    }
    kernel_run(k, K_EXACT, mem, scratch);
}

/* The kernel of the text, and what `change` makes of it; both live in cx. */
static inline Kernel *change_rows(Ctx *cx, const char *what, const char *text,
                                  Kernel *(*change)(Arena *, Kernel *), Kernel **before)
{
    Arena scratch = {0};
    RowsBytes whole, changed;
    Kernel *k = kernel_read(cx, &cx->perm, source_add(cx, "test", text, strlen(text), false));
    ck_assert_msg(k != NULL, "%s: can't be read", what);
    const char *wrong = kernel_verify(k, &scratch);
    ck_assert_msg(wrong == NULL, "%s: %s", what, wrong);
    Kernel *c = change(&cx->perm, k);
    wrong = kernel_verify(c, &scratch);
    ck_assert_msg(wrong == NULL, "%s, changed: %s", what, wrong);
    run_rows(k, &whole, &scratch);
    run_rows(c, &changed, &scratch);
    ck_assert_msg(memcmp(&whole, &changed, sizeof whole) == 0, "%s: other bits", what);
    arena_free(&scratch);
    *before = k;
    return c;
}

#endif
