/* What the code looks like: no spill in a tile's loop, no division anywhere, wide
 * registers where there are some; and other machines' bits by an emulator. */
#include <ctype.h>
#include "cpu/foreign.h"
#include "cpu/shapes.h"

enum { MOST = 16 }; /* kernels */

static Arena arena;

static int list(Kernel **k)
{
    static const Conv conv = {2, 5, 12, 14, 3, 1, 1, 1}, stride = {2, 4, 8, 15, 3, 2, 1, 1};
    static const Matmul m[] = {
        {1, 1024, 1024, 1024, 0, 0},
        {1, 64, 256, 784, TRANSPOSE_B, 0},
        {1, 64, 10, 256, TRANSPOSE_B | EPILOGUE, 0},
        {1, 1, 500, 300, 0, 0},
        {2, 33, 65, 70, TRANSPOSE_A | PROLOGUE, 20},
    };
    /* Rows of a window: of some lines, of a line's pieces; 27 places of one at a time. */
    static const Conv many[] = {
        {2, 32, 64, 13, 3, 1, 0, 1}, {2, 32, 32, 30, 3, 1, 1, 1}, {1, 16, 16, 32, 3, 1, 1, 1}};
    int n = 0;
    for (int i = 0; i < 5; i++)
        k[n++] = make_matmul(&arena, F32, &m[i]);
    k[n++] = make_matmul(&arena, F64, &m[1]);
    k[n++] = make_conv_forward(&arena, &conv, false);
    k[n++] = make_conv_forward(&arena, &stride, true);
    k[n++] = make_conv_data(&arena, &conv);
    k[n++] = make_conv_weight(&arena, &conv, 0);
    k[n++] = make_conv_weight(&arena, &stride, 100);
    k[n++] = make_conv_forward(&arena, &many[0], false);
    k[n++] = make_conv_data(&arena, &many[1]);
    for (int i = 0; i < 3; i++)
        k[n++] = make_conv_weight(&arena, &many[i], 0);
    return n;
}

static const char *assembly(Ctx *cx, const char *cpu, const char *triple)
{
    Kernel *k[MOST];
    KernelFn fn[MOST];
    ObjectFile object = {0};
    TargetOptions o = {.cpu = cpu, .triple = triple, .want_asm = true};
    ck_assert(cpu_emit_kernels(cx, &o, k, list(k), &cx->perm, fn, &object));
    return object.assembly;
}

/* The instruction of a line, without its indentation; "" for labels and directives. */
static const char *instruction(const char *line, size_t n)
{
    static char text[200];
    size_t from = 0;
    while (from < n && isspace((unsigned char)line[from]))
        from++;
    if (from == 0 || line[from] == '.' || line[from] == '#')
        return "";
    snprintf(text, sizeof text, "%.*s", (int)(n - from), line + from);
    return text;
}

static bool is_division(const char *i)
{
    static const char *const name[] = {"div", "idiv", "udiv", "sdiv"};
    size_t n = strcspn(i, " \t");
    for (int d = 0; d < 4; d++) {
        size_t m = strlen(name[d]);
        if (n >= m && n <= m + 1 && strncmp(i, name[d], m) == 0)
            return true;
    }
    return false;
}

static void check_assembly(const char *cpu, const char *triple, const char *wide)
{
    Ctx cx;
    ctx_init(&cx);
    const char *text = assembly(&cx, cpu, triple);
    bool tile = false;
    int tiles = 0, windows = 0, used = 0;
    for (const char *p = text; *p != 0; p += strcspn(p, "\n") + (p[strcspn(p, "\n")] != 0)) {
        size_t n = strcspn(p, "\n");
        if (!isspace((unsigned char)*p) && n > 0 && p[0] != '.' && p[0] != '#') {
            tile = strncmp(p, "gradc.tile", 10) == 0;
            tiles += tile;
            windows += tile && strstr(p, ".window") != NULL && strstr(p, ".window") < p + n;
        }
        const char *i = instruction(p, n);
        ck_assert_msg(!is_division(i), "%s: %s", cpu, i);
        bool vector = strstr(i, "mm") != NULL;
        bool stack = strstr(i, "(%rsp") != NULL || strstr(i, "(%rbp") != NULL;
        ck_assert_msg(!(tile && vector && stack), "%s spills: %s", cpu, i);
        used += tile && strstr(i, wide) != NULL;
    }
    ck_assert_msg(tiles >= 5 && used > 10, "%s: %d tiles, %d of %s", cpu, tiles, used, wide);
    ck_assert_msg(windows >= 3, "%s: %d tiles of windows", cpu, windows);
    ctx_free(&cx);
    arena_free(&arena);
}

START_TEST(no_spill_no_division)
{
    check_assembly("x86-64-v3", "x86_64-linux-gnu", "%ymm12");
    check_assembly("znver3", "x86_64-linux-gnu", "%ymm12");
    check_assembly("skylake-avx512", "x86_64-linux-gnu", "%zmm29");
    check_assembly("sapphirerapids", "x86_64-linux-gnu", "%zmm29");
    check_assembly("baseline", "x86_64-linux-gnu", "%xmm12");
    check_assembly("baseline", "aarch64-linux-gnu", "v28.4s");
}
END_TEST

/* Is a forward convolution computed by tiles of windows? */
static bool has_windows(const Conv *conv)
{
    Ctx cx;
    KernelFn fn[1];
    ObjectFile object = {0};
    TargetOptions o = {.cpu = "x86-64-v3", .triple = "x86_64-linux-gnu", .want_asm = true};
    ctx_init(&cx);
    Kernel *k = make_conv_forward(&arena, conv, false);
    ck_assert(cpu_emit_kernels(&cx, &o, &k, 1, &cx.perm, fn, &object));
    bool has = strstr(object.assembly, ".window") != NULL;
    ctx_free(&cx);
    arena_free(&arena);
    return has;
}

/* A table has distances of 32 bits: channels of a gigabyte each lie too far apart. */
START_TEST(no_window_is_too_far)
{
    static const Conv near = {1, 32, 64, 1024, 3, 1, 0, 1}, far = {1, 32, 64, 16384, 3, 1, 0, 1};
    ck_assert(has_windows(&near));
    ck_assert(!has_windows(&far));
}
END_TEST

START_TEST(arm_bits)
{
    if (!has_arm("aarch64 contractions"))
        return;
    Kernel *k[MOST];
    KMem data[MOST][64];
    Buffers memory[MOST];
    int n = list(k);
    for (int i = 0; i < n; i++) {
        memory[i] = memory_new(k[i], 11 + (uint64_t)i);
        for (int b = 0; b < k[i]->buf.n; b++)
            data[i][b] = (KMem){memory[i].at[b], NULL};
    }
    check_foreign(&arm_machine, k + 1, n - 1, data + 1);
    for (int i = 0; i < n; i++)
        memory_free(&memory[i]);
    arena_free(&arena);
}
END_TEST

START_TEST(avx512_bits)
{
    if (system("grep -q avx512vl /proc/cpuinfo") != 0) {
        printf("skipped: AVX-512 kernels: this processor has none\n");
        return;
    }
    Kernel *k[MOST];
    int n = list(k);
    TargetOptions o = {.cpu = "x86-64-v4"};
    check_kernels(&o, k, n);
    arena_free(&arena);
}
END_TEST

Suite *suite_cpu_asm(void)
{
    Suite *s = suite_create("cpu_asm");
    TCase *t = tcase_create("code");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, no_spill_no_division);
    tcase_add_test(t, no_window_is_too_far);
    tcase_add_test(t, arm_bits);
    tcase_add_test(t, avx512_bits);
    suite_add_tcase(s, t);
    return s;
}
