/* Data for random kernels: drawn, widened, compared. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "kernel_random.h"

static uint64_t draw(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return hash_mix(*state);
}

double kernel_random_float(uint64_t *state)
{
    return ((double)(draw(state) >> 11) * 0x1p-53 - 0.5) * 4;
}

/* Mostly moderate; now and then large, special, or at an edge. */
static double wild_float(uint64_t *state)
{
    static const double special[] = {0.0,    -0.0, INFINITY, -INFINITY, NAN,      1e-40,
                                     -1e-43, 1e30, -3e38,    1.0,       16777217, 0.5};
    uint64_t kind = draw(state) % 100;
    if (kind < 2)
        return special[draw(state) % 12];
    return kernel_random_float(state) * (kind < 10 ? 50 : 1);
}

static void put(DType t, void *to, int64_t i, double f, int64_t n)
{
    switch (t) {
    case F32:
        ((float *)to)[i] = (float)f;
        break;
    case F64:
        ((double *)to)[i] = f;
        break;
    case F16:
        ((uint16_t *)to)[i] = f32_to_f16((float)f);
        break;
    case BF16:
        ((uint16_t *)to)[i] = f32_to_bf16((float)f);
        break;
    case I32:
        ((int32_t *)to)[i] = (int32_t)n;
        break;
    case I64:
        ((int64_t *)to)[i] = n;
        break;
    default:
        ((uint8_t *)to)[i] = (uint8_t)(t == BOOL ? n % 2 : n);
        break;
    }
}

void kernel_random_data(const Kernel *k, uint64_t seed, RandomStyle style, Arena *arena,
                        KMem mem[RANDOM_MAX_BUFS])
{
    uint64_t state = hash_mix(~seed);
    for (int b = 0; b < k->buf.n; b++) {
        const KBuf *buf = &k->buf.at[b];
        mem[b] = (KMem){NULL, NULL};
        if (buf->mode == K_LOCAL)
            continue;
        mem[b].data = arena_array(arena, (size_t)buf->elems, (size_t)dtype_bytes(buf->dtype));
        for (int64_t i = 0; i < buf->elems; i++) {
            double f = style != RANDOM_SMOOTH ? wild_float(&state) : kernel_random_float(&state);
            put(buf->dtype, mem[b].data, i, f, (int64_t)(draw(&state) % RANDOM_INDICES));
        }
    }
}

bool kernel_random_feeds_twice(const Kernel *k)
{
    for (int i = 1; i < k->inst.n; i++)
        for (int j = 1; j < i; j++)
            if (k->inst.at[i].op == KI_INTO && k->inst.at[j].op == KI_INTO &&
                k->inst.at[i].a == k->inst.at[j].a && k->inst.at[i].dtype <= F64)
                return true;
    return false;
}

void kernel_random_set_all(const Kernel *k, const KMem *exact)
{
    if (k->kind == K_CONTRACT && k->con.all != 0)
        *(uint8_t *)exact[k->con.all_buf].data = 1;
}

/* Element i as a double (floats) or an int64_t. */
static void get(DType t, const void *from, int64_t i, double *f, int64_t *n)
{
    switch (t) {
    case F32:
        *f = ((const float *)from)[i];
        break;
    case F64:
        *f = ((const double *)from)[i];
        break;
    case F16:
        *f = f16_to_f32(((const uint16_t *)from)[i]);
        break;
    case BF16:
        *f = bf16_to_f32(((const uint16_t *)from)[i]);
        break;
    case I32:
        *n = ((const int32_t *)from)[i];
        break;
    case I64:
        *n = ((const int64_t *)from)[i];
        break;
    default:
        *n = ((const uint8_t *)from)[i];
        break;
    }
}

void kernel_random_widen(const Kernel *k, const KMem *exact, Arena *arena,
                         KMem wide[RANDOM_MAX_BUFS])
{
    for (int b = 0; b < k->buf.n; b++) {
        const KBuf *buf = &k->buf.at[b];
        wide[b] = (KMem){NULL, NULL};
        if (buf->mode == K_LOCAL)
            continue;
        double *to = NEW_ARRAY(arena, double, buf->elems);
        wide[b] = (KMem){to, NEW_ARRAY(arena, double, buf->elems)};
        for (int64_t i = 0; i < buf->elems; i++) {
            int64_t n = 0;
            get(buf->dtype, exact[b].data, i, &to[i], &n);
            if (!dtype_is_float(buf->dtype))
                ((int64_t *)wide[b].data)[i] = n;
        }
    }
}

bool kernel_random_equal(const Kernel *k, const KMem *x, const KMem *y, char where[160])
{
    for (int b = 0; b < k->buf.n; b++) {
        const KBuf *buf = &k->buf.at[b];
        size_t each = (size_t)dtype_bytes(buf->dtype);
        if (buf->mode == K_LOCAL)
            continue;
        for (int64_t i = 0; i < buf->elems; i++) {
            const char *p = x[b].data, *q = y[b].data;
            double f = 0, h = 0;
            int64_t n = 0, m = 0;
            if (memcmp(p + (size_t)i * each, q + (size_t)i * each, each) == 0)
                continue;
            get(buf->dtype, p, i, &f, &n);
            get(buf->dtype, q, i, &h, &m);
            if (isnan(f) && isnan(h))
                continue;
            snprintf(where, 160, "b%d[%lld] (%s): %a or %lld, and %a or %lld", b, (long long)i,
                     dtype_name(buf->dtype), f, (long long)n, h, (long long)m);
            return false;
        }
    }
    return true;
}

START_TEST(widened_and_compared)
{
    Arena a = {0};
    for (uint64_t seed = 0; seed < 40; seed++) {
        Kernel *k = kernel_random(&a, seed, RANDOM_ANY);
        KMem x[RANDOM_MAX_BUFS], y[RANDOM_MAX_BUFS], wide[RANDOM_MAX_BUFS];
        char where[160];
        kernel_random_data(k, seed, RANDOM_ANY, &a, x);
        kernel_random_data(k, seed, RANDOM_ANY, &a, y);
        kernel_random_widen(k, x, &a, wide);
        ck_assert(kernel_random_equal(k, x, y, where));
        for (int b = 0; b < k->buf.n; b++) {
            if (k->buf.at[b].mode == K_LOCAL || k->buf.at[b].elems == 0)
                continue;
            double f = 0;
            int64_t n = 0, last = k->buf.at[b].elems - 1;
            get(k->buf.at[b].dtype, x[b].data, last, &f, &n);
            if (dtype_is_float(k->buf.at[b].dtype))
                ck_assert(memcmp(&((double *)wide[b].data)[last], &f, sizeof f) == 0);
            else
                ck_assert(((int64_t *)wide[b].data)[last] == n && n < RANDOM_INDICES);
            put(k->buf.at[b].dtype, y[b].data, last, f == 3 ? 4 : 3, n == 0);
            ck_assert(!kernel_random_equal(k, x, y, where) && strlen(where) > 10);
            put(k->buf.at[b].dtype, y[b].data, last, f, n);
        }
    }
    arena_free(&a);
}
END_TEST

Suite *suite_kernel_data(void)
{
    Suite *s = suite_create("kernel_data");
    TCase *t = tcase_create("all");
    tcase_add_test(t, widened_and_compared);
    suite_add_tcase(s, t);
    return s;
}
