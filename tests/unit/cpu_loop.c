/* Loop kernels: the object's bits are the exact interpreter's. */
#include "cpu/check.h"
#include "cpu/loops.h"

static Arena arena;

static void check_all(const char *cpu, void (*fill)(Arena *, Kernels *))
{
    Kernels s = {0};
    fill(&arena, &s);
    TargetOptions o = {.cpu = cpu};
    check_kernels(&o, s.at, s.n);
    arena_free(&arena);
}

START_TEST(shapes_native)
{
    check_all("native", add_shapes);
}
END_TEST

/* With vectors of 64 bytes, of 32 and of 16: other tiles. */
START_TEST(crossed_natively)
{
    check_all("native", add_crossed);
}
END_TEST

START_TEST(crossed_avx2)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_all("x86-64-v3", add_crossed);
#endif
}
END_TEST

START_TEST(crossed_baseline)
{
    check_all("baseline", add_crossed);
}
END_TEST

START_TEST(types_native)
{
    check_all("native", add_types);
}
END_TEST

START_TEST(operations_native)
{
    check_all("native", add_operations);
}
END_TEST

/* What exp takes, and a little more: every fourth at one of its ends, or no number. */
static void fill_exponents(DType t, void *p, int64_t i, uint64_t *s)
{
    static const float special[] = {
        0,       -0.0F,     INFINITY, -INFINITY, NAN, -104,  -103.973F, -103.972F, -103.9F,
        -87.34F, -87.3365F, 88.7228F, 88.7229F,  89,  1e30F, -1e30F,    0x1p-149F, -0x1p-130F};
    enum { N = sizeof special / sizeof *special };
    uint64_t x = draw(s);
    float any = (float)(x >> 40) * 0x1p-16F - 128;
    (void)t;
    ((float *)p)[i] = x % 4 == 0 ? special[(x >> 8) % N] : any;
}

/* By instructions for exponents where the processor has them, in vectors of every width: also of
 * zeros, denormals, negative numbers, infinities and NaN. */
static void check_by_exponents(bool flush)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 33, 100, 9000};
    Kernels s = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        add_kernel(&arena, &s, unary_kernel(&arena, KI_LOG, F32, sizes[i]));
        add_kernel(&arena, &s, unary_kernel(&arena, KI_EXP, F32, sizes[i]));
    }
    TargetOptions o = {.cpu = "native", .flush = flush};
    check_filled(&o, s.at, s.n, (Fill *const[]){fill_element, fill_edges, fill_exponents, NULL});
    arena_free(&arena);
}

START_TEST(functions_by_exponents)
{
    check_by_exponents(false);
    if (denormals_can_flush())
        check_by_exponents(true);
}
END_TEST

/* Baseline has no fma: another class of numerics where a kernel uses it. */
START_TEST(types_baseline)
{
    check_all("baseline", add_types);
}
END_TEST

Suite *suite_cpu_loop(void)
{
    Suite *s = suite_create("cpu_loop");
    TCase *t = tcase_create("bits");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, shapes_native);
    tcase_add_test(t, crossed_natively);
    tcase_add_test(t, crossed_avx2);
    tcase_add_test(t, crossed_baseline);
    tcase_add_test(t, types_native);
    tcase_add_test(t, operations_native);
    tcase_add_test(t, functions_by_exponents);
    tcase_add_test(t, types_baseline);
    suite_add_tcase(s, t);
    return s;
}
