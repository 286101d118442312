/* Packing: filling gaps against a plain loop, and cores of deep nets. */
#include <stdio.h>

#include "plan/fill.h"
#include "unit/pack_make.h"
#include "unit/tilings.h"

/* ---- gaps ------------------------------------------------------------------------ */

static PackMake random_items(Arena *a, uint64_t seed, int32_t n)
{
    PackMake m = {.arena = a, .seed = seed};
    int32_t sections = 1 + draw(&m, 2 * n);
    for (int32_t i = 0; i < n; i++) {
        int32_t from = draw(&m, sections);
        PackItem *it = add_item(&m, from, from + draw(&m, sections - from), 1 + draw(&m, 50));
        if (draw(&m, 3) == 0)
            add_parts(&m, it);
    }
    return m;
}

static bool in_the_way(const PackItem *x, int64_t at, const PackItem *y)
{
    int32_t from = x->from > y->from ? x->from : y->from;
    return x->from <= y->to && y->from <= x->to && at < y->offset + pack_size(y, from) &&
           y->offset < at + x->size;
}

static bool lies_free(const Pack *k, const int32_t *order, int32_t n, int64_t at)
{
    for (int32_t i = 0; i < n; i++)
        if (in_the_way(&k->item[order[n]], at, &k->item[order[i]]))
            return false;
    return true;
}

/* Bytes that are free above `at`, where the n-th of the order fits. */
static int64_t room(const Pack *k, const int32_t *order, int32_t n, int64_t at, int64_t top)
{
    int64_t size = k->item[order[n]].size;
    while (at + size < top && lies_free(k, order, n, at + 1)) {
        at++;
        size = k->item[order[n]].size;
    }
    return at + size;
}

/* The n-th of the order by trial of every byte. */
static int64_t best_gap(const Pack *k, const int32_t *order, int32_t n)
{
    int64_t top = 0, best = -1, least = INT64_MAX;
    const PackItem *it = &k->item[order[n]];
    for (int32_t i = 0; i < n; i++) {
        const PackItem *y = &k->item[order[i]];
        int32_t from = it->from > y->from ? it->from : y->from;
        if (it->from <= y->to && y->from <= it->to && y->offset + pack_size(y, from) > top)
            top = y->offset + pack_size(y, from);
    }
    for (int64_t at = 0; at + it->size <= top; at++) {
        if (!lies_free(k, order, n, at))
            continue;
        int64_t end = room(k, order, n, at, top);
        if (end - at < least) {
            least = end - at;
            best = at;
        }
        at = end - it->size;
    }
    return best >= 0 ? best : top;
}

START_TEST(gaps_are_those_of_a_plain_loop)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        Arena a = {0};
        PackMake m = random_items(&a, seed, 2 + (int32_t)seed);
        Pack k = make_pack(&m);
        int32_t *order = NEW_ARRAY(&a, int32_t, k.n);
        int64_t *wish = NEW_ARRAY(&a, int64_t, k.n);
        for (int32_t i = 0; i < k.n; i++) {
            int32_t j = draw(&m, i + 1);
            order[i] = order[j];
            order[j] = i;
            wish[i] = draw(&m, 4) == 0 ? draw(&m, 300) : -1;
        }
        Fill f = fill_new(&k);
        k.height = fill_gaps(&f, order, wish, INT64_MAX);
        for (int32_t i = 0; i < k.n; i++) {
            int64_t wished = wish[order[i]];
            bool granted = wished >= 0 && lies_free(&k, order, i, wished);
            k.item[order[i]].offset = granted ? wished : best_gap(&k, order, i);
            ck_assert_int_eq(f.offset[order[i]], k.item[order[i]].offset);
        }
        must_be_packed(&k, "gaps");
        arena_free(&a);
    }
}
END_TEST

/* ---- cores ------------------------------------------------------------------------- */

START_TEST(deep_nets_have_no_holes)
{
    int by_core = 0, nets = 0, exact = 0;
    for (uint64_t seed = 1; seed <= 120; seed++, nets++) {
        Arena a = {0};
        PackMake m = {.arena = &a, .seed = seed};
        make_deep_net(&m, 4 + (int32_t)seed / 4, 3 + draw(&m, 5));
        Pack k = make_pack(&m);
        pack_quick(&k);
        must_be_packed(&k, "quick");
        bool holes = k.height > k.bound;
        pack_core(&k, 500000);
        must_be_packed(&k, "core");
        by_core += holes && k.height == k.bound;
        exact += k.height == k.bound;
        arena_free(&a);
    }
    printf("pack: %d of %d deep nets without holes, %d of them by their cores\n", exact, nets,
           by_core);
    ck_assert_int_gt(by_core, 0);
    ck_assert_int_ge(exact * 20, nets * 19);
}
END_TEST

START_TEST(cores_with_parts_are_packings)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        Arena a = {0};
        PackMake m = random_items(&a, seed, 60);
        Pack k = make_pack(&m);
        pack_quick(&k);
        pack_core(&k, 100000);
        must_be_packed(&k, "core");
        arena_free(&a);
    }
}
END_TEST

/* ---- skylines ---------------------------------------------------------------------- */

START_TEST(skylines_are_packings)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        Arena a = {0};
        PackMake m = random_items(&a, seed, 1 + (int32_t)seed / 2);
        Pack k = make_pack(&m);
        pack_skyline(&k, 1000000);
        must_be_packed(&k, "skyline");
        arena_free(&a);
    }
}
END_TEST

START_TEST(many_tiles_are_packed)
{
    Arena a = {0};
    PackMake m = {.arena = &a, .seed = 1};
    make_tiling(&m, TILING_MIXED, 10000, 1 << 20);
    Pack k = make_pack(&m);
    pack_skyline(&k, 200000000);
    must_be_packed(&k, "many tiles");
    double ratio = (double)k.height / (double)k.bound;
    printf("pack: %d tiles, height / live %.4f along the skyline\n", k.n, ratio);
    ck_assert_double_lt(ratio, 1.5);
    arena_free(&a);
}
END_TEST

Suite *suite_pack(void);
Suite *suite_pack(void)
{
    Suite *s = suite_create("pack");
    TCase *c = tcase_create("pack");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, gaps_are_those_of_a_plain_loop);
    tcase_add_test(c, deep_nets_have_no_holes);
    tcase_add_test(c, cores_with_parts_are_packings);
    tcase_add_test(c, skylines_are_packings);
    tcase_add_test(c, many_tiles_are_packed);
    suite_add_tcase(s, c);
    return s;
}
