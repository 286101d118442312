/* Contractions: the object's bits are the exact interpreter's. */
#include "cpu/check.h"
#include "cpu/contractions.h"

static Arena arena;

static void check_all_of(const char *cpu, void (*add)(Arena *, Kernels *), Fill *fill)
{
    Kernels s = {0};
    add(&arena, &s);
    TargetOptions o = {.cpu = cpu};
    check_filled(&o, s.at, s.n, fill);
    arena_free(&arena);
}

static void check_all(const char *cpu, void (*add)(Arena *, Kernels *))
{
    check_all_of(cpu, add, fill_element);
}

START_TEST(sweep)
{
    check_all("native", add_sweep);
}
END_TEST

START_TEST(blocked)
{
    check_all("native", add_blocked);
}
END_TEST

START_TEST(streams)
{
    check_all("native", add_streams);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_all("x86-64-v3", add_streams);
#endif
}
END_TEST

START_TEST(convolutions)
{
    check_all("native", add_convolutions);
}
END_TEST

START_TEST(lines)
{
    check_all("native", add_lines);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_all("x86-64-v3", add_lines);
#endif
}
END_TEST

START_TEST(staged)
{
    check_all("native", add_staged);
}
END_TEST

START_TEST(direct)
{
    check_all("native", add_direct);
}
END_TEST

START_TEST(windows)
{
    check_all("native", add_windows);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_all("x86-64-v3", add_windows);
#endif
}
END_TEST

START_TEST(channels_last)
{
    check_all("native", add_channels_last);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_all("x86-64-v3", add_channels_last);
#endif
}
END_TEST

START_TEST(depthwise)
{
    check_all("native", add_depthwise);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_all("x86-64-v3", add_depthwise);
#endif
}
END_TEST

START_TEST(narrow)
{
    check_all("native", add_narrow);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_all("x86-64-v3", add_narrow); /* vectors half as wide, where native has wider ones */
#endif
}
END_TEST

static bool has_dots(const char *what)
{
    if (system("grep -q avx512_bf16 /proc/cpuinfo") == 0)
        return true;
    printf("skipped: %s: this processor has no dot products of bf16\n", what);
    return false;
}

START_TEST(pairs)
{
    if (has_dots("pairs of bf16"))
        check_all("znver4", add_pairs);
}
END_TEST

/* Denormals, results that are too small, zeros of both signs, infinities, NaN. */
START_TEST(pairs_of_edges)
{
    if (has_dots("pairs of the smallest halves")) {
        check_all_of("znver4", add_pairs, fill_edges);
        check_all_of("znver4", add_pairs_of_windows, fill_edges);
    }
}
END_TEST

START_TEST(pairs_of_windows)
{
    if (has_dots("pairs of bf16 in windows"))
        check_all("znver4", add_pairs_of_windows);
}
END_TEST

Suite *suite_cpu_contract(void)
{
    Suite *s = suite_create("cpu_contract");
    TCase *t = tcase_create("bits");
    tcase_set_timeout(t, 600);
    tcase_add_test(t, sweep);
    tcase_add_test(t, blocked);
    tcase_add_test(t, streams);
    tcase_add_test(t, convolutions);
    tcase_add_test(t, staged);
    tcase_add_test(t, lines);
    tcase_add_test(t, direct);
    tcase_add_test(t, windows);
    tcase_add_test(t, narrow);
    tcase_add_test(t, depthwise);
    tcase_add_test(t, channels_last);
    tcase_add_test(t, pairs);
    tcase_add_test(t, pairs_of_windows);
    tcase_add_test(t, pairs_of_edges);
    suite_add_tcase(s, t);
    return s;
}
