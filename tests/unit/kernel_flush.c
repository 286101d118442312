/* Denormals flushed: the mode of a thread, and what the interpreter gives in it. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "kernel/denormals.h"
#include "kernel/kernel.h"

static Arena arena;

enum { ROWS = 37 };

static bool can_flush(const char *what)
{
    if (!denormals_can_flush())
        printf("skipped: %s with denormals flushed: no x86-64 with fma\n", what);
    return denormals_can_flush();
}

START_TEST(numbers)
{
    ck_assert(flush_f32(0x1p-126F) == 0x1p-126F && flush_f32(-0x1p-127F) == 0);
    ck_assert(signbit(flush_f32(-0x1p-149F)) && !signbit(flush_f32(0x1p-149F)));
    ck_assert(flush_f64(-0x1p-1022) == -0x1p-1022 && signbit(flush_f64(-0x1p-1074)));
    ck_assert(isinf(flush_f32(INFINITY)) && isnan(flush_f64(NAN)));
    ck_assert(flush_const(F32, 0x1p-127) == 0 && signbit(flush_const(BF16, -0x1p-130)));
    ck_assert(flush_const(F32, 0x1p-126) == 0x1p-126 && flush_const(F64, 0x1p-127) == 0x1p-127);
    ck_assert(flush_const(F16, 0x1p-24) == 0x1p-24); /* f32 has the denormals of f16 */
}
END_TEST

/* The mode is that of the thread, and comes back. */
START_TEST(modes)
{
    if (!can_flush("the mode"))
        return;
    ck_assert(!denormals_flushed());
    uint32_t mode = denormals_begin(true), inner = denormals_begin(false);
    ck_assert(denormals_flushed());
    denormals_end(inner);
    ck_assert(denormals_flushed());
    denormals_end(mode);
    ck_assert(!denormals_flushed());
}
END_TEST

static Kernel *scaled(double by)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "scaled");
    int out = k_buf(k, F32, ROWS, K_OUT), x = k_buf(k, F32, ROWS, K_IN);
    Val i = k_par(k, ROWS), v = k_load(k, x, k_aff_val(i, 1));
    k_store(k, out, k_aff_val(i, 1), k_binary(k, KI_MUL, v, k_const(k, F32, by)));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Operands, results and constants, and only of K_EXACT. */
START_TEST(interpreter)
{
    if (!can_flush("the interpreter"))
        return;
    static const struct {
        float x;
        double by;
        float kept, flushed;
    } of[] = {{0x1p-127F, 4, 0x1p-125F, 0},       {-0x1p-126F, 0.5, -0x1p-127F, -0.0F},
              {0x1p20F, 0x1p-130, 0x1p-110F, 0},  {0x1p-126F, 1, 0x1p-126F, 0x1p-126F},
              {-0x1p-149F, 1, -0x1p-149F, -0.0F}, {-0x1p-100F, 0x1p-26, -0x1p-126F, -0x1p-126F}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        for (int flush = 0; flush < 2; flush++) {
            float x[ROWS] = {of[i].x}, y[ROWS];
            KMem mem[] = {{y, NULL}, {x, NULL}};
            uint32_t mode = denormals_begin(flush);
            kernel_run(scaled(of[i].by), K_EXACT, mem, &arena);
            denormals_end(mode);
            float want = flush ? of[i].flushed : of[i].kept;
            ck_assert_msg(memcmp(y, &want, sizeof want) == 0, "%zu: %a, not %a", i, y[0], want);
        }
    }
    arena_free(&arena);
}
END_TEST

Suite *suite_kernel_flush(void)
{
    Suite *s = suite_create("kernel_flush");
    TCase *t = tcase_create("bits");
    tcase_add_test(t, numbers);
    tcase_add_test(t, modes);
    tcase_add_test(t, interpreter);
    suite_add_tcase(s, t);
    return s;
}
