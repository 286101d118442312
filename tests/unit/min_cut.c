/* Minimum cuts of small networks, beside all cuts that there are. */
#include "base/min_cut.h"

#include <check.h>

#include "base/diag.h"

enum { MOST_NODES = 8, N_NETWORKS = 3000 };

typedef struct Network {
    int n;
    int64_t capacity[MOST_NODES][MOST_NODES];
} Network;

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Node 0 is the source, the last one the sink. */
static Network draw(uint64_t *state)
{
    Network w = {.n = 2 + (int)(next(state) % (MOST_NODES - 1))};
    for (int i = 0; i < w.n; i++)
        for (int j = 0; j < w.n; j++) {
            uint64_t kind = next(state) % 8;
            bool ends = i == 0 && j == w.n - 1;
            w.capacity[i][j] = i == j || kind < 4                     ? 0
                               : kind == 7 && i > 0 && j > i && !ends ? CUT_NEVER
                                                                      : (int64_t)(next(state) % 20);
        }
    return w;
}

/* What edges from the nodes that are not in the set to those that are carry. */
static int64_t carried(const Network *w, unsigned side)
{
    int64_t sum = 0;
    for (int i = 0; i < w->n; i++)
        for (int j = 0; j < w->n; j++)
            if ((side >> i & 1) == 0 && (side >> j & 1) != 0) {
                if (w->capacity[i][j] == CUT_NEVER)
                    return CUT_NEVER;
                sum += w->capacity[i][j];
            }
    return sum;
}

/* Of all cuts with the least, the nodes that each of them has on the sink's side. */
static unsigned nearest_side(const Network *w, int64_t *least)
{
    unsigned sink = 1u << (w->n - 1), both = 0;
    *least = CUT_NEVER;
    for (unsigned side = 0; side < 1u << w->n; side++) {
        if ((side & sink) == 0 || (side & 1) != 0)
            continue;
        int64_t sum = carried(w, side);
        both = sum < *least ? side : sum == *least ? both & side : both;
        *least = sum < *least ? sum : *least;
    }
    return both;
}

START_TEST(no_cut_is_less_or_nearer)
{
    uint64_t state = 11;
    int n_cut = 0;
    for (int i = 0; i < N_NETWORKS; i++) {
        Arena a = {0};
        Network w = draw(&state);
        int64_t least;
        unsigned want = nearest_side(&w, &least), got = 0;
        if (least < CUT_NEVER) {
            Cut c = cut_open(&a, w.n, 0, w.n - 1);
            for (int from = 0; from < w.n; from++)
                for (int to = 0; to < w.n; to++)
                    if (w.capacity[from][to] > 0)
                        cut_edge(&c, from, to, w.capacity[from][to]);
            const bool *side = cut_solve(&c);
            for (int v = 0; v < w.n; v++)
                got |= (unsigned)side[v] << v;
            ck_assert_msg(got == want, "network %d: %x, not %x", i, got, want);
            n_cut += least > 0;
        }
        arena_free(&a);
    }
    ck_assert_int_gt(n_cut, N_NETWORKS / 4);
}
END_TEST

/* A chain that no stack of calls would hold. */
START_TEST(long_chains_are_cut)
{
    enum { LENGTH = 300000 };
    Arena a = {0};
    Cut c = cut_open(&a, LENGTH, 0, LENGTH - 1);
    for (int32_t i = 0; i + 1 < LENGTH; i++)
        cut_edge(&c, i, i + 1, i == LENGTH / 3 || i == LENGTH / 2 ? 3 : 5);
    const bool *side = cut_solve(&c);
    for (int32_t i = 0; i < LENGTH; i++)
        ck_assert_int_eq(side[i], i > LENGTH / 2);
    arena_free(&a);
}
END_TEST

Suite *suite_min_cut(void);
Suite *suite_min_cut(void)
{
    Suite *s = suite_create("min_cut");
    TCase *t = tcase_create("cuts");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, no_cut_is_less_or_nearer);
    tcase_add_test(t, long_chains_are_cut);
    suite_add_tcase(s, t);
    return s;
}
