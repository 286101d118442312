/* Denormals flushed: objects give the interpreter's bits where LLVM knows numbers beforehand, for
 * it folds and simplifies arithmetic with denormals kept; and in contractions. */
#include "cpu/check.h"
#include "cpu/contractions.h"

static Arena arena;

enum { ROWS = 37 };

/* Bits that are mostly denormal, of both signs. */
static void fill_denormal(DType t, void *p, int64_t i, uint64_t *s)
{
    fill_element(t, p, i, s);
    if (i % 4 == 0)
        return;
    if (t == F32)
        ((uint32_t *)p)[i] = (uint32_t)draw(s) & 0x807fffff;
    else if (t == F64)
        ((uint64_t *)p)[i] = draw(s) & UINT64_C(0x800fffffffffffff);
    else if (t == BF16)
        ((uint16_t *)p)[i] = (uint16_t)draw(s) & 0x807f;
}

static bool can_flush(const char *what)
{
    if (!denormals_can_flush())
        printf("skipped: %s with denormals flushed: no x86-64 with fma\n", what);
    return denormals_can_flush();
}

static void check_flushed(Kernels *s, const char *cpu, Fill *const *fill)
{
    TargetOptions o = {.cpu = cpu, .flush = true};
    check_filled(&o, s->at, s->n, fill);
}

/* `v` is made in the innermost of a row, and stored. */
typedef Val Make(Kernel *k, DType t, Val x, Val row);

static Val product(Kernel *k, DType t, Val x, Val row)
{
    (void)x, (void)row;
    double small = t == F64 ? 0x1.8p-520 : 0x1.8p-65;
    return k_binary(k, KI_MUL, k_const(k, t, small), k_const(k, t, -small));
}

static Val quotient(Kernel *k, DType t, Val x, Val row)
{
    (void)x, (void)row;
    return k_binary(k, KI_DIV, k_const(k, t, t == F64 ? 0x1p-600 : 0x1p-70),
                    k_const(k, t, t == F64 ? -0x1.8p500 : -0x1.8p60));
}

static Val difference(Kernel *k, DType t, Val x, Val row)
{
    (void)x, (void)row;
    double least = t == F64 ? 0x1p-1022 : 0x1p-126;
    return k_binary(k, KI_SUB, k_const(k, t, 1.5 * least), k_const(k, t, least));
}

static Val fused(Kernel *k, DType t, Val x, Val row)
{
    (void)x, (void)row;
    double a = t == F64 ? 0x1.8p-520 : 0x1.8p-65, least = t == F64 ? 0x1p-1022 : 0x1p-126;
    Val y = k_const(k, t, a), z = k_const(k, t, -least);
    return k_fma(k, y, y, z);
}

/* A product half a unit below the least number: it is tiny after rounding to 24 bits, and not
 * if it is rounded to the denormals' grid. */
static Val nearly(Kernel *k, DType t, Val x, Val row)
{
    (void)x, (void)row;
    double one = t == F64 ? 1 - 0x1p-53 : 1 - 0x1p-24;
    return k_binary(k, KI_MUL, k_const(k, t, one), k_const(k, t, t == F64 ? 0x1p-1022 : 0x1p-126));
}

static Val cast_down(Kernel *k, DType t, Val x, Val row)
{
    (void)x, (void)row;
    Val wide = k_cast(k, F32, k_const(k, F64, -0x1.8p-130));
    return k_cast(k, t, wide);
}

/* Of the index, which is known where a loop is short. */
static Val indexed(Kernel *k, DType t, Val x, Val row)
{
    (void)x;
    Val i = k_cast(k, t, k_index(k, I32, k_aff_val(row, 1)));
    double small = t == F64 ? 0x1p-520 : 0x1p-66;
    Val y = k_binary(k, KI_MUL, i, k_const(k, t, small));
    return k_fma(k, y, k_const(k, t, small), k_const(k, t, -small * small));
}

/* x as it is loaded, beside a number with which nothing has to be done. */
static Val times_one(Kernel *k, DType t, Val x, Val row)
{
    (void)row;
    return k_binary(k, KI_MUL, x, k_const(k, t, 1));
}

static Val plus_nothing(Kernel *k, DType t, Val x, Val row)
{
    (void)row;
    return k_binary(k, KI_ADD, x, k_const(k, t, -0.0));
}

static Val less_computed(Kernel *k, DType t, Val x, Val row)
{
    (void)row;
    Val zero = k_binary(k, KI_SUB, k_const(k, t, 3), k_const(k, t, 3));
    return k_binary(k, KI_SUB, x, zero);
}

static Val over_computed(Kernel *k, DType t, Val x, Val row)
{
    (void)row;
    Val one = k_unary(k, KI_SQRT, k_binary(k, KI_MUL, k_const(k, t, 0.5), k_const(k, t, 2)));
    return k_binary(k, KI_DIV, x, one);
}

/* A sum of no terms is known. */
static Val less_sum_of_none(Kernel *k, DType t, Val x, Val row)
{
    (void)row;
    Val acc = k_acc(k, t, KI_ADD), i = k_red(k, 0);
    k_into(k, acc, x);
    k_end(k, i);
    return k_binary(k, KI_SUB, x, k_fold(k, acc));
}

/* Accumulators of what is known, and a variable. */
static Val product_of_few(Kernel *k, DType t, Val x, Val row)
{
    (void)x, (void)row;
    Val acc = k_acc(k, t, KI_MUL), i = k_seq(k, 3);
    k_into(k, acc, k_const(k, t, t == F64 ? -0x1.1p-341 : -0x1.1p-43));
    k_end(k, i);
    return k_fold(k, acc);
}

static Val variable(Kernel *k, DType t, Val x, Val row)
{
    (void)row;
    Val var = k_var(k, k_const(k, t, 1)), i = k_seq(k, 2);
    k_set(k, var, k_binary(k, KI_MUL, k_get(k, var), k_const(k, t, t == F64 ? 0x1p-520 : 0x1p-65)));
    k_end(k, i);
    return k_binary(k, KI_MUL, k_get(k, var), k_binary(k, KI_MAX, x, k_const(k, t, 1)));
}

static Val as_it_is(Kernel *k, DType t, Val x, Val row)
{
    (void)k, (void)t, (void)row;
    return x;
}

static Val lesser(Kernel *k, DType t, Val x, Val row)
{
    (void)row;
    return k_binary(k, KI_MIN, k_unary(k, KI_ABS, x), k_const(k, t, 0x1p-20));
}

static Make *const make[] = {product,      quotient,      difference,       fused,
                             nearly,       cast_down,     indexed,          times_one,
                             plus_nothing, less_computed, over_computed,    as_it_is,
                             lesser,       variable,      less_sum_of_none, product_of_few};
enum { N_MAKE = sizeof make / sizeof *make, N_SUMS = 2 }; /* the last ones, not of bf16 */

/* y[i] = the value and a select on whether it is zero, in a loop of n. */
static Kernel *row_of(Make *of, DType t, int64_t n)
{
    Kernel *k = kernel_new(&arena, K_LOOP, "row");
    int out = k_buf(k, t, n, K_OUT), is = k_buf(k, BOOL, n, K_OUT), x = k_buf(k, t, n, K_IN);
    Val i = k_par(k, n), v = of(k, t, k_load(k, x, k_aff_val(i, 1)), i);
    k_store(k, out, k_aff_val(i, 1), v);
    k_store(k, is, k_aff_val(i, 1), k_binary(k, KI_EQ, v, k_const(k, t, 0)));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Whatever LLVM makes of it, on any level. */
START_TEST(known)
{
    if (!can_flush("known numbers"))
        return;
    static const char *const cpu[] = {"native", "x86-64-v3"};
    static const DType type[] = {F32, F64, BF16};
    static const int64_t rows[] = {1, 3, ROWS};
    Kernels s = {0};
    for (int m = 0; m < N_MAKE; m++)
        for (int t = 0; t < (m < N_MAKE - N_SUMS ? 3 : 2); t++)
            for (int n = 0; n < 3; n++)
                add_kernel(&arena, &s, row_of(make[m], type[t], rows[n]));
    check_flushed(&s, cpu[_i], (Fill *const[]){fill_denormal, NULL});
    arena_free(&arena);
}
END_TEST

static void (*const contractions[])(Arena *, Kernels *) = {add_sweep, add_windows, add_narrow};
enum { N_CONTRACTIONS = sizeof contractions / sizeof *contractions };

/* Sums that come and go below the least number. */
START_TEST(contracted)
{
    if (!can_flush("contractions"))
        return;
    Kernels s = {0};
    contractions[_i](&arena, &s);
    keep_some(&s);
    check_flushed(&s, "native", (Fill *const[]){fill_edges, fill_denormal, NULL});
    arena_free(&arena);
}
END_TEST

Suite *suite_cpu_flush(void)
{
    Suite *s = suite_create("cpu_flush");
    TCase *t = tcase_create("bits");
    tcase_set_timeout(t, 600);
    tcase_add_loop_test(t, known, 0, 2);
    tcase_add_loop_test(t, contracted, 0, N_CONTRACTIONS);
    suite_add_tcase(s, t);
    return s;
}
