/* Kernels that are written as text, for tests that run them. */
#ifndef GRADC_TESTS_KERNEL_RUN_H
#define GRADC_TESTS_KERNEL_RUN_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kernel.h"

static Ctx cx;

static inline void setup(void)
{
    ctx_init(&cx);
}

static inline void teardown(void)
{
    ctx_free(&cx);
}

/* The kernel that a text says, verified. */
static inline Kernel *kernel_of(const char *text)
{
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    if (k == NULL)
        diag_print(&cx, stdout);
    ck_assert_msg(k != NULL, "%s", text);
    const char *bad = kernel_verify(k, &cx.scratch);
    ck_assert_msg(bad == NULL, "%s\n%s", bad, text);
    return k;
}

#define MEM(...) ((const KMem[]){__VA_ARGS__})
#define DATA(p)                                                                                    \
    {                                                                                              \
        .data = (p)                                                                                \
    }
#define RUN(text, ...) kernel_run(kernel_of(text), K_EXACT, MEM(__VA_ARGS__), &cx.scratch)

static inline bool same(double x, double y)
{
    return isnan(x) ? isnan(y) : x == y && !signbit(x) == !signbit(y);
}

/* n values of very different size, so that the order of additions shows. */
static inline void ragged(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = ldexpf((float)(i * 37 % 101) - 50.5f, i * 7 % 23 - 11);
}

#endif
