/* Dual mode against differences of wide mode, on random smooth kernels. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include "kernel_random.h"

static const char *listing(const Kernel *k, Arena *a)
{
    Text t;
    text_init(&t, a);
    kernel_print(k, &t);
    return t.at;
}

/* Inputs moved along their tangents by h, then run wide. */
static void run_moved(const Kernel *k, const KMem *data, const KMem *dual, double h, Arena *a,
                      KMem out[RANDOM_MAX_BUFS])
{
    kernel_random_widen(k, data, a, out);
    for (int b = 0; b < k->buf.n; b++)
        for (int64_t i = 0; i < k->buf.at[b].elems; i++)
            if (k->buf.at[b].mode != K_LOCAL && dtype_is_float(k->buf.at[b].dtype))
                ((double *)out[b].data)[i] += h * dual[b].tangent[i];
    kernel_run(k, K_WIDE, out, a);
}

/* Elements whose tangent neither the central difference nor either one-sided one
 * confirms; *kinks: where those disagree with one another. */
static int64_t count_wrong(const Kernel *k, const KMem *dual, const KMem *plus, const KMem *minus,
                           const KMem *here, double h, int64_t *kinks)
{
    int64_t wrong = 0;
    for (int b = 0; b < k->buf.n; b++) {
        if (k->buf.at[b].mode == K_LOCAL || !dtype_is_float(k->buf.at[b].dtype))
            continue;
        for (int64_t i = 0; i < k->buf.at[b].elems; i++) {
            double p = ((double *)plus[b].data)[i], m = ((double *)minus[b].data)[i];
            double c = ((double *)here[b].data)[i], t = dual[b].tangent[i];
            double central = (p - m) / (2 * h), scale = 1e-5 * (1 + fabs(t) + fabs(c));
            if (isnan(c) || fabs(t) > 1e6 || fabs(central - t) <= scale)
                continue;
            if (fabs((p - c) / h - (c - m) / h) > 1e-3 * (1 + fabs(t)))
                ++*kinks;
            else
                wrong++;
        }
    }
    return wrong;
}

START_TEST(tangents_agree_with_differences)
{
    int64_t kinks = 0;
    for (int s = 0; s < kernel_random_seeds(30); s++) {
        Arena a = {0};
        uint64_t seed = (uint64_t)_i * 7777777 + (uint64_t)s;
        Kernel *k = kernel_random(&a, seed, RANDOM_SMOOTH);
        KMem data[RANDOM_MAX_BUFS], dual[RANDOM_MAX_BUFS], moved[3][RANDOM_MAX_BUFS];
        KMem direction[RANDOM_MAX_BUFS];
        kernel_random_data(k, seed, RANDOM_SMOOTH, &a, data);
        kernel_random_widen(k, data, &a, dual);
        kernel_random_widen(k, data, &a, direction);
        uint64_t state = seed;
        for (int b = 0; b < k->buf.n; b++)
            for (int64_t i = 0; dual[b].tangent != NULL && i < k->buf.at[b].elems; i++)
                direction[b].tangent[i] = dual[b].tangent[i] = kernel_random_float(&state);
        const double h = 1e-6;
        kernel_run(k, K_DUAL, dual, &a);
        for (int i = 0; i < 3; i++)
            run_moved(k, data, direction, (i - 1) * h, &a, moved[i]);
        int64_t wrong = count_wrong(k, dual, moved[2], moved[0], moved[1], h, &kinks);
        ck_assert_msg(wrong == 0, "seed %llu: %lld tangents\n%s", (unsigned long long)seed,
                      (long long)wrong, listing(k, &a));
        arena_free(&a);
    }
}
END_TEST

Suite *suite_kernel_dual(void)
{
    Suite *s = suite_create("kernel_dual");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, tangents_agree_with_differences, 0, 16);
    suite_add_tcase(s, t);
    return s;
}
