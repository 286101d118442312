/* Kernels whose threads wait for one another. */
#ifndef GRADC_TESTS_CUDA_TEAMS_H
#define GRADC_TESTS_CUDA_TEAMS_H

#include "cpu/shapes.h"

/* Row i of a table is the one before it, turned by one, plus 1: a PAR loop in a SEQ loop, whose
 * turns read what other threads have written. */
static inline Kernel *in_turns(Arena *arena, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "in_turns");
    int out = k_buf(k, F32, m * n, K_INOUT);
    Val i = k_seq(k, m - 1), j = k_par(k, n);
    KBound inside = {k_aff_val(j, 1), 1, n};
    KAff from = k_aff_offset(at2(i, n, j, 1), -1);
    Val x = k_load_bounded(k, out, from, &inside, 1, 0);
    k_store(k, out, k_aff_offset(at2(i, n, j, 1), n), k_binary(k, KI_ADD, x, k_const(k, F32, 1)));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* y = x + its row's sum, which is read back from where it has been stored. */
static inline Kernel *read_back(Arena *arena, int64_t m, int64_t n)
{
    Kernel *k = kernel_new(arena, K_LOOP, "read_back");
    int y = k_buf(k, F32, m * n, K_OUT), x = k_buf(k, F32, m * n, K_IN);
    int sums = k_buf(k, F32, m, K_OUT);
    Val i = k_par(k, m), sum = k_acc(k, F32, KI_ADD), j = k_red(k, n);
    k_into(k, sum, k_load(k, x, at2(i, n, j, 1)));
    k_end(k, j);
    k_store(k, sums, k_aff_val(i, 1), k_fold(k, sum));
    j = k_par(k, n);
    Val v = k_load(k, x, at2(i, n, j, 1)), s = k_load(k, sums, k_aff_val(i, 1));
    k_store(k, y, at2(i, n, j, 1), k_binary(k, KI_ADD, v, s));
    k_end(k, i);
    k_finish(k);
    return k;
}

#endif
