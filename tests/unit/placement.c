/* Placement problems as files: what is refused and why, answers that are known, and
 * tilings, whose height is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/placement.h"
#include "unit/pack_make.h"
#include "unit/tilings.h"

/* ---- reading --------------------------------------------------------------------------- */

/* The first message on `text`: "2:5: ...", or "". */
static const char *complaint(Ctx *cx, const char *text, size_t n)
{
    int32_t source = source_add(cx, "t.csv", text, n, false);
    Placement *p = placement_read(cx, source, &cx->perm);
    ck_assert((p == NULL) == (cx->n_errors > 0));
    if (p != NULL)
        return "";
    const Diag *d = cx->diag.at[0];
    ck_assert_int_eq(cx->n_errors, 1);
    ck_assert_int_eq(d->code, E0620);
    int line, column;
    source_position(cx->source.at[source], d->span.from, &line, &column);
    return arena_printf(&cx->perm, "%d:%d: %s", line, column, d->text);
}

#define HEAD "id,lower,upper,size\n"

static const struct {
    const char *text, *message;
} refused[] = {
    {"", "1:1: the file is empty"},
    {"\n \r\n", "1:1: the file is empty"},
    {"id,lower,upper\na,0,1\n", "1:1: the header has no column `size`"},
    {"a,0,1,4\n", "1:1: there is no column `a` in a placement problem"},
    {"id,lower,upper,size,sise\n", "1:21: there is no column `sise` in a placement problem"},
    {"id,lower,start,upper,size\n", "1:10: the column `lower` is there twice"},
    {HEAD, "1:1: there are no buffers below the header"},
    {HEAD "a,0,1,-4\n", "2:7: the size -4 is not positive"},
    {HEAD "a,0,1,0\n", "2:7: the size 0 is not positive"},
    {HEAD "a,0,1,\n", "2:7: there is no size"},
    {HEAD ",0,1,4\n", "2:1: there is no id"},
    {HEAD "a,2,2,4\n", "2:5: the buffer is never alive: it begins at 2 and ends at 2"},
    {HEAD "a,3,2,4\n", "2:5: the buffer is never alive: it begins at 3 and ends at 2"},
    {"id,start,end,size\na,3,2,4\n",
     "2:5: the buffer is never alive: it begins at 3 and ends at 2"},
    {HEAD "a,0,1,4\nb,0,x,4\n", "3:5: the upper `x` is not a whole number"},
    {HEAD "a,0,1.5,4\n", "2:5: the upper `1.5` is not a whole number"},
    {HEAD "a,-,1,4\n", "2:3: the lower `-` is not a whole number"},
    {HEAD "a,0,1,0x10\n", "2:7: the size `0x10` is not a whole number"},
    {HEAD "a,0,1,99999999999999999999\n",
     "2:7: the size 99999999999999999999 is out of range: the most is 2305843009213693951"},
    {HEAD "a,0,1,2000000000000000000\nb,0,1,2000000000000000000\n",
     "3:7: the sizes up to here add up to more than 2305843009213693951"},
    {HEAD "a,0,1,4\nb,0,1\n", "3:1: the line has 3 fields"},
    {HEAD "a,0,1,4,5\n", "2:1: the line has 5 fields"},
    {HEAD "a,0,1,4\n\nb,0,1,4\n", "3:1: the line has 1 field"},
    {HEAD "a,0,1,4\nb,0,1,4\na,2,3,4\n", "4:1: there are two buffers `a`"},
    {HEAD "a,0,1,4\rb,0,1,4\n", "2:1: the line has 7 fields"},
    {"id,lower,upper,size,gaps\na,0,9,4,2-3\n",
     "2:9: gaps are not supported: the buffer has `2-3`"},
    {"id,lower,upper,size,alignment\na,0,9,4,0\n",
     "2:9: the alignment 0 is not in 1 to 1073741824"},
    {"id,lower,upper,size,alignment\na,0,9,4,1000003\nb,0,9,4,1000033\n",
     "3:1: the alignments up to here have no common multiple below 1073741824"},
};

START_TEST(mistakes_are_named)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        Ctx cx;
        ctx_init(&cx);
        ck_assert_str_eq(complaint(&cx, refused[i].text, strlen(refused[i].text)),
                         refused[i].message);
        ctx_free(&cx);
    }
    Ctx cx;
    ctx_init(&cx);
    static const char nul[] = HEAD "a,0,1,4\0\n";
    ck_assert_str_eq(complaint(&cx, nul, sizeof nul - 1),
                     "2:8: the file has a NUL byte: it is no text");
    ctx_free(&cx);
}
END_TEST

START_TEST(files_cut_short_are_read_or_refused)
{
    static const char whole[] = "id,lower,upper,size,alignment\r\na,0,3,4,2\r\nb,1,5,6,1\r\n";
    for (size_t n = 0; n < sizeof whole; n++) {
        Ctx cx;
        ctx_init(&cx);
        complaint(&cx, whole, n);
        ctx_free(&cx);
    }
}
END_TEST

/* ---- answers that are known -------------------------------------------------------------- */

static Placement *read_text(Ctx *cx, const char *text)
{
    Placement *p =
        placement_read(cx, source_add(cx, "t.csv", text, strlen(text), false), &cx->perm);
    ck_assert(p != NULL);
    return p;
}

static const struct {
    const char *rows;
    int64_t capacity, max_live, height;
    PlacementAnswer answer;
    bool proved;
} known[] = {
    {"b1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n", 0, 12, 12, PLACEMENT_FOUND, true},
    {"b1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n", 11, 12, 12, PLACEMENT_IMPOSSIBLE,
     true},
    {"a,0,1,5", 5, 5, 5, PLACEMENT_FOUND, true},
    {"a,-9,-8,5\nb,-8,0,7\r\nc,0,1,2\n\n", 0, 7, 7, PLACEMENT_FOUND, true},
    /* b and d meet in the middle; a under the one and e over the other leave no room. */
    {"a,0,2,1\nb,1,4,2\nc,3,6,2\nd,5,8,2\ne,7,9,1\nf,0,1,3\ng,8,9,3\nh,2,3,2\ni,6,7,2\n", 0, 4, 4,
     PLACEMENT_FOUND, true},
};

START_TEST(small_ones_are_answered)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        Ctx cx;
        ctx_init(&cx);
        Placement *p = read_text(&cx, arena_printf(&cx.perm, HEAD "%s", known[i].rows));
        Placed r = placement_solve(p, known[i].capacity, 1000000, &cx.perm);
        ck_assert_int_eq(p->max_live, known[i].max_live);
        ck_assert_int_eq(r.height, known[i].height);
        ck_assert_int_eq(r.answer, known[i].answer);
        ck_assert_int_eq(r.proved, known[i].proved);
        ck_assert_ptr_null(placement_check(p, r.height, &cx.perm));
        ctx_free(&cx);
    }
}
END_TEST

START_TEST(alignments_are_kept_to)
{
    Ctx cx;
    ctx_init(&cx);
    Placement *p = read_text(&cx, "size,id,end,alignment,start\n3,a,4,4,0\n5,b,6,8,2\n1,c,9,1,4\n");
    ck_assert_int_eq(p->alignment, 8);
    Placed r = placement_solve(p, 0, 1000000, &cx.perm);
    ck_assert_ptr_null(placement_check(p, r.height, &cx.perm));
    ck_assert_int_eq(p->max_live, 9);
    ck_assert(!r.proved);
    Text t;
    text_init(&t, &cx.perm);
    placement_write(p, &t);
    ck_assert_ptr_nonnull(strstr(t.at, "id,lower,upper,size,alignment,offset\na,0,5,3,4,"));
    ctx_free(&cx);
}
END_TEST

START_TEST(the_check_sees_mistakes)
{
    Ctx cx;
    ctx_init(&cx);
    Placement *p = read_text(&cx, HEAD "a,0,4,3\nb,2,6,5\nc,4,9,1\n");
    Placed r = placement_solve(p, 0, 1000, &cx.perm);
    ck_assert_ptr_null(placement_check(p, r.height, &cx.perm));
    ck_assert_ptr_nonnull(placement_check(p, r.height - 1, &cx.perm));
    int64_t right = p->buffer[0].offset;
    p->buffer[0].offset = p->buffer[1].offset;
    ck_assert_str_eq(placement_check(p, 100, &cx.perm), "`a` and `b` overlap");
    p->buffer[0].offset = -1;
    ck_assert_str_eq(placement_check(p, 100, &cx.perm), "`a` lies at -1");
    p->buffer[0].offset = right;
    ck_assert_ptr_null(placement_check(p, r.height, &cx.perm));
    ctx_free(&cx);
}
END_TEST

/* ---- against all packings ------------------------------------------------------------------ */

/* The lowest height of all orders in which each item is put on what lies there. */
static int64_t lowest(const Pack *k, uint32_t used, int64_t *top, int64_t height, int64_t best)
{
    if (height >= best || used == (1u << k->n) - 1)
        return height < best ? height : best;
    for (int32_t i = 0; i < k->n; i++) {
        const PackItem *it = &k->item[i];
        int64_t at = 0, saved[16];
        if ((used >> i & 1) != 0)
            continue;
        memcpy(saved, top, sizeof saved);
        for (int32_t s = it->from; s <= it->to; s++)
            at = top[s] > at ? top[s] : at;
        for (int32_t s = it->from; s <= it->to; s++)
            top[s] = at + pack_size(it, s);
        int64_t end = at + it->size;
        best = lowest(k, used | 1u << i, top, end > height ? end : height, best);
        memcpy(top, saved, sizeof saved);
    }
    return best;
}

START_TEST(proofs_agree_with_all_packings)
{
    int above = 0;
    enum { PROBLEMS = 1500 };
    for (uint64_t seed = 1; seed <= PROBLEMS; seed++) {
        Arena a = {0};
        PackMake m = {.arena = &a, .seed = seed};
        int32_t n = 8 + draw(&m, 3), sections = 7 + draw(&m, 4);
        for (int32_t i = 0; i < n; i++) {
            int32_t from = draw(&m, sections), life = 1 + draw(&m, 3);
            int32_t to = from + life < sections ? from + life : sections - 1;
            PackItem *it = add_item(&m, from, to, 1 + draw(&m, 4));
            if (draw(&m, 3) == 0)
                add_parts(&m, it);
        }
        Pack k = make_pack(&m);
        pack_lowest(&k, 4000000, 1);
        must_be_packed(&k, "small");
        if (k.height > k.bound) {
            int64_t top[16] = {0};
            ck_assert_int_eq(lowest(&k, 0, top, 0, INT64_MAX), k.height);
            ck_assert_int_eq(k.least, k.height);
            above++;
        }
        arena_free(&a);
    }
    printf("placement: %d small problems as low as can be, %d of them above what is alive\n",
           PROBLEMS, above);
    ck_assert_int_gt(above, 0);
}
END_TEST

/* ---- tilings -------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const struct {
    TilingKind kind;
    int32_t tiles, grid; /* instants, and 64 times as many bytes */
} tiling[] = {
    {TILING_STRAIGHT, 10, 1 << 20},   {TILING_PINWHEEL, 10, 1 << 20},
    {TILING_STRAIGHT, 100, 1 << 20},  {TILING_PINWHEEL, 100, 1 << 20},
    {TILING_MIXED, 100, 1 << 20},     {TILING_STRAIGHT, 100, 40},
    {TILING_PINWHEEL, 100, 40},       {TILING_MIXED, 100, 40},
    {TILING_STRAIGHT, 1000, 1 << 20}, {TILING_PINWHEEL, 1000, 1 << 20},
    {TILING_MIXED, 1000, 1 << 20},
};

START_TEST(tilings_have_no_holes)
{
    Arena a = {0};
    PackMake m = {.arena = &a, .seed = (uint64_t)_i};
    int64_t height = make_tiling(&m, tiling[_i].kind, tiling[_i].tiles, tiling[_i].grid);
    Pack k = make_pack(&m);
    ck_assert_int_eq(k.bound, height);
    double from = cpu_seconds();
    pack_quick(&k);
    pack_greedy(&k);
    double greedy = cpu_seconds();
    ck_assert_double_lt(greedy - from, 5); /* a second, if no sanitizer is there */
    pack_lowest(&k, 1500000000, 1);
    must_be_packed(&k, "tiling");
    printf("placement: %5d tiles, height / live %.4f, %.2f s\n", k.n,
           (double)k.height / (double)k.bound, cpu_seconds() - greedy);
    ck_assert_int_eq(k.height, k.bound);
    arena_free(&a);
}
END_TEST

Suite *suite_placement(void);
Suite *suite_placement(void)
{
    Suite *s = suite_create("placement");
    TCase *c = tcase_create("placement");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, mistakes_are_named);
    tcase_add_test(c, files_cut_short_are_read_or_refused);
    tcase_add_test(c, small_ones_are_answered);
    tcase_add_test(c, alignments_are_kept_to);
    tcase_add_test(c, the_check_sees_mistakes);
    tcase_add_test(c, proofs_agree_with_all_packings);
    tcase_add_loop_test(c, tilings_have_no_holes, 0, (int)(sizeof tiling / sizeof *tiling));
    suite_add_tcase(s, c);
    return s;
}
