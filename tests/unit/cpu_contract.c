/* Contractions: the object's bits are the exact interpreter's. */
#include "cpu/check.h"
#include "cpu/contractions.h"
#include "target/cpu/con.h"
#include "target/cpu/panels.h"

static Arena arena;

/* Of those that are added one of so many, from the first on. */
static void check_each(int step, const char *cpu, void (*add)(Arena *, Kernels *),
                       Fill *const *fill)
{
    Kernels s = {0};
    add(&arena, &s);
    keep_each(&s, step);
    keep_some(&s);
    TargetOptions o = {.cpu = cpu};
    check_filled(&o, s.at, s.n, fill);
    arena_free(&arena);
}

static Fill *const ordinary[] = {fill_element, NULL};

static void check_all(const char *cpu, void (*add)(Arena *, Kernels *))
{
    check_each(1, cpu, add, ordinary);
}

/* As native; and every other one, all of them under GRADC_FULL, with vectors half as wide where
 * native has wider ones. */
static void check_both(void (*add)(Arena *, Kernels *))
{
    check_all("native", add);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_each(getenv("GRADC_FULL") != NULL ? 1 : 2, "x86-64-v3", add, ordinary);
#endif
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

START_TEST(many_rows)
{
    check_both(add_many_rows);
}
END_TEST

START_TEST(telling)
{
    check_both(add_telling);
}
END_TEST

START_TEST(adding)
{
    check_both(add_adding);
}
END_TEST

START_TEST(long_epilogues)
{
    check_all("native", add_long);
}
END_TEST

/* Of the kernels, those whose plan is so. */
static int count_plans(const char *cpu, void (*add)(Arena *, Kernels *),
                       bool (*is)(const ConPlan *))
{
    Ctx cx;
    ctx_init(&cx);
    Kernels s = {0};
    add(&arena, &s);
    TargetOptions o = {.cpu = cpu};
    const Machine *m = machine_find(&cx, &o, &cx.perm);
    int n = 0;
    for (int i = 0; i < s.n; i++) {
        ConPlan p;
        con_plan(&p, s.at[i], m, &cx.perm);
        n += is(&p);
    }
    arena_free(&arena);
    ctx_free(&cx);
    return n;
}

/* So many have such a plan, for an x86-64 processor, which need not be this one. */
static void expect_plans(int least, const char *cpu, void (*add)(Arena *, Kernels *),
                         bool (*is)(const ConPlan *))
{
#if defined(__x86_64__)
    int n = count_plans(cpu, add, is);
    ck_assert_msg(n >= least, "%s: %d plans, not %d", cpu, n, least);
#else
    (void)least, (void)cpu, (void)add, (void)is;
#endif
}

static bool finishes(const ConPlan *p)
{
    return p->finishes;
}

START_TEST(finishing)
{
    check_both(add_finishing);
    expect_plans(6, "sapphirerapids", add_finishing, finishes);
    expect_plans(8, "x86-64-v3", add_finishing, finishes);
}
END_TEST

static bool few_ask_for_columns(const ConPlan *p)
{
    return p->mc < 4 && p->ask[ASK_COLS].n > 0;
}

static bool asks_for_rows_in_place(const ConPlan *p)
{
    return p->rows.in_place && p->rows.ks == 1 && p->ask[ASK_ROWS].n > 0;
}

START_TEST(streams)
{
    check_both(add_streams);
    expect_plans(3, "sapphirerapids", add_streams, few_ask_for_columns);
    expect_plans(3, "sapphirerapids", add_streams, asks_for_rows_in_place);
}
END_TEST

static bool packs_once(const ConPlan *p)
{
    return p->cols_once && p->mc < p->row_panels;
}

static bool packs_blocks_once(const ConPlan *p)
{
    return packs_once(p) && p->kc < p->n_k;
}

static bool asks_for_blocks(const ConPlan *p)
{
    return p->ask[ASK_BLOCK].n > 0;
}

START_TEST(once)
{
    check_both(add_once);
    expect_plans(4, "sapphirerapids", add_once, packs_once);
    expect_plans(3, "sapphirerapids", add_once, packs_blocks_once);
    expect_plans(3, "sapphirerapids", add_once, asks_for_blocks);
}
END_TEST

static bool is_turned(const ConPlan *p)
{
    return p->turned;
}

/* Products whose columns are stored apart: some of them are to be turned. */
static void check_turned(const char *cpu)
{
    Kernels s = {0};
    add_turned(&arena, &s);
    int all = s.n;
    arena_free(&arena);
    ck_assert_int_ge(count_plans(cpu, add_turned, is_turned), all / 6);
    check_all(cpu, add_turned);
}

START_TEST(turned)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        check_turned("native");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_turned("x86-64-v3");
#else
    check_all("native", add_turned);
#endif
}
END_TEST

/* Matrices in panels, as columns and as what is stored: of as many columns as a tile has or others,
 * read along them and across, from near and far memory. */
static void add_panels(Arena *arena, Kernels *s)
{
    static const Matmul of[] = {
        {1, 17, 64, 96, 0, 0},      {1, 90, 1024, 608, 0, 0},
        {1, 61, 96, 64, 0, 40},     {1, 17, 64, 96, TRANSPOSE_B, 0},
        {1, 37, 640, 832, 0, 0},    {1, 130, 640, 832, TRANSPOSE_B | EPILOGUE, 0},
        {3, 33, 64, 64, 0, 0},      {1, 101, 768, 800, TRANSPOSE_A | TRANSPOSE_B, 0},
        {1, 700, 96, 480, 0, 0},    {1, 523, 672, 480, TRANSPOSE_A, 0},
        {1, 1, 128, 128, 0, 0},     {1, 1, 128, 128, TRANSPOSE_B, 0},
        {1, 59, 256, 1536, 0, 512}, {1, 300, 64, 1600, TRANSPOSE_B, 0},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int64_t width = 16; width <= 32; width *= 2) {
            const Matmul *x = &of[i];
            bool turned = (x->form & TRANSPOSE_B) != 0;
            const Panels b = {turned ? x->n : x->k, turned ? x->k : x->n, width, 0};
            const Panels where[] = {{x->m, x->n, width, 0}, {0}, b, {0}};
            const Kernel *k = panels_kernel(arena, make_matmul(arena, F32, x), where);
            ck_assert(k != NULL);
            add_kernel(arena, s, (Kernel *)k);
        }
}

START_TEST(panels)
{
    check_both(add_panels);
}
END_TEST

START_TEST(convolutions)
{
    check_all("native", add_convolutions);
}
END_TEST

START_TEST(lines)
{
    check_both(add_lines);
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

static bool asks_for_block(const ConPlan *p)
{
    return p->ask[ASK_NEXT].n > 0 && p->kc < p->n_k;
}

static bool asks_for_lines(const ConPlan *p)
{
    return p->ask[ASK_NEXT].n > 0 && p->kc == p->n_k;
}

START_TEST(windows)
{
    check_both(add_windows);
    expect_plans(3, "sapphirerapids", add_next, asks_for_block);
    expect_plans(3, "x86-64-v3", add_next, asks_for_block);
    expect_plans(4, "sapphirerapids", add_next, asks_for_lines);
    expect_plans(2, "x86-64-v3", add_next, asks_for_lines);
}
END_TEST

static bool goes_past_lines(const ConPlan *p)
{
    const Walk *w = &p->out_rows;
    return p->turned && w->run != w->total && w->run % p->vl == 0 && p->mr % p->vl != 0;
}

START_TEST(folded)
{
    check_both(add_folded);
    expect_plans(2, "sapphirerapids", add_folded, goes_past_lines);
    expect_plans(2, "x86-64-v3", add_folded, goes_past_lines);
}
END_TEST

/* A phase of a strided convolution's data gradient: weights 3 i + 2 n apart, of which no two meet,
 * and windows over places, which do. */
START_TEST(weights_that_do_not_meet)
{
#if defined(__x86_64__)
    static const char phase[] =
        "contract c {\n  b0: in f32[1179648]\n  b1: in f32[100352]\n  b2: out f32[50176]\n"
        "  dim m i < 256\n  dim n j < 4\n  dim n k < 7\n  dim n l < 7\n"
        "  dim k m < 512\n  dim k n < 2\n"
        "  a {\n    %7: f32 = load b0[9*i + 2304*m + 6*n + 1]\n    give %7\n  }\n"
        "  b {\n    %8: f32 = load b1[25088*j + 7*k + l + 49*m - 7*n + 7]"
        " if 0 <= k - n + 1 < 7 else 0\n    give %8\n  }\n"
        "  epilogue {\n    %9: f32 = sum\n    store b2[49*i + 12544*j + 7*k + l], %9\n  }\n}\n";
    Ctx cx;
    ctx_init(&cx);
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", phase, strlen(phase), false));
    ck_assert_ptr_nonnull(k);
    TargetOptions o = {.cpu = "x86-64-v3"};
    ConPlan p;
    con_plan(&p, k, machine_find(&cx, &o, &cx.perm), &cx.perm);
    ck_assert(!p.window.is || p.n_rows == 4 * 7 * 7);
    ctx_free(&cx);
#endif
}
END_TEST

static bool leaves_out_edges(const ConPlan *p)
{
    return p->window.edges.is;
}

/* In place of five, of which one of two threads would have three. */
static bool has_six_panels(const ConPlan *p)
{
    return p->window.more == 1 && p->row_panels == 6;
}

/* Also sums that terms which are left out would have changed, as those of images. */
START_TEST(edges)
{
    check_both(add_edges);
    check_each(1, "native", add_edges, (Fill *const[]){fill_edges, fill_vanishing, NULL});
    expect_plans(24, "sapphirerapids", add_edges, leaves_out_edges);
    expect_plans(24, "x86-64-v3", add_edges, leaves_out_edges);
    expect_plans(2, "sapphirerapids", add_edges, has_six_panels);
}
END_TEST

START_TEST(channels_last)
{
    check_both(add_channels_last);
}
END_TEST

/* A lane's units are of the same staged lines. */
static bool stages_once(const ConPlan *p)
{
    return p->lanes != NULL && p->lanes->room > p->lanes->each_n;
}

static bool stages_groups_once(const ConPlan *p)
{
    return stages_once(p) && p->lanes->groups > 1;
}

static bool has_large_tiles(const ConPlan *p)
{
    return p->lanes != NULL && p->lanes->tile_lines * p->lanes->tile_cols > 16;
}

START_TEST(depthwise)
{
    check_both(add_depthwise);
    expect_plans(4, "sapphirerapids", add_depthwise, stages_once);
    expect_plans(2, "sapphirerapids", add_depthwise, stages_groups_once);
    expect_plans(4, "sapphirerapids", add_depthwise, has_large_tiles);
}
END_TEST

static bool lies_along_images(const ConPlan *p)
{
    return p->lanes != NULL && p->lanes->images;
}

static bool leaves_terms_out(const ConPlan *p)
{
    return lies_along_images(p) && p->lanes->leaves_out;
}

/* Also sums that terms which are left out would have changed: of infinities and NaN, and -0. */
START_TEST(images)
{
    check_both(add_images);
    check_each(1, "native", add_images, (Fill *const[]){fill_edges, fill_vanishing, NULL});
    expect_plans(8, "sapphirerapids", add_images, lies_along_images);
    expect_plans(8, "x86-64-v3", add_images, lies_along_images);
    expect_plans(4, "sapphirerapids", add_images, leaves_terms_out);
    expect_plans(4, "x86-64-v3", add_images, leaves_terms_out);
}
END_TEST

START_TEST(interleaved)
{
    check_both(add_interleaved);
}
END_TEST

START_TEST(narrow)
{
    check_both(add_narrow);
}
END_TEST

static bool has_dots(const char *what)
{
    if (system("grep -q avx512_bf16 /proc/cpuinfo") == 0)
        return true;
    printf("skipped: %s: this processor has no dot products of bf16\n", what);
    return false;
}

/* Also denormals, results that are too small, zeros of both signs, infinities, NaN. */
static void check_pairs(const char *what, void (*add)(Arena *, Kernels *))
{
    if (has_dots(what))
        check_each(1, "znver4", add, (Fill *const[]){fill_element, fill_edges, NULL});
}

START_TEST(pairs)
{
    check_pairs("pairs of bf16", add_pairs);
}
END_TEST

START_TEST(pairs_of_windows)
{
    check_pairs("pairs of bf16 in windows", add_pairs_of_windows);
}
END_TEST

Suite *suite_cpu_contract(void)
{
    Suite *s = suite_create("cpu_contract");
    TCase *t = tcase_create("bits");
    tcase_set_timeout(t, 600);
    tcase_add_test(t, sweep);
    tcase_add_test(t, blocked);
    tcase_add_test(t, many_rows);
    tcase_add_test(t, telling);
    tcase_add_test(t, adding);
    tcase_add_test(t, turned);
    tcase_add_test(t, once);
    tcase_add_test(t, long_epilogues);
    tcase_add_test(t, streams);
    tcase_add_test(t, finishing);
    tcase_add_test(t, panels);
    tcase_add_test(t, convolutions);
    tcase_add_test(t, staged);
    tcase_add_test(t, lines);
    tcase_add_test(t, direct);
    tcase_add_test(t, windows);
    tcase_add_test(t, folded);
    tcase_add_test(t, weights_that_do_not_meet);
    tcase_add_test(t, edges);
    tcase_add_test(t, interleaved);
    tcase_add_test(t, narrow);
    tcase_add_test(t, images);
    tcase_add_test(t, depthwise);
    tcase_add_test(t, channels_last);
    tcase_add_test(t, pairs);
    tcase_add_test(t, pairs_of_windows);
    suite_add_tcase(s, t);
    return s;
}
