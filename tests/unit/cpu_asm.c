/* What the code looks like: no spill in a tile's loop, no division anywhere, wide
 * registers where there are some; and other machines' bits by an emulator. */
#include <ctype.h>
#include "cpu/foreign.h"
#include "cpu/loops.h"
#include "cpu/shapes.h"
#include "target/cpu/object.h"

enum {
    MOST = 30,
    SMALL = 16,
    PAIRS = 6
}; /* kernels; those of which an emulator makes short work */

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

/* ... and more that only their code is asked of: every height of a tile, functions before and after
 * the sum, blocks of k, leaves, what asks for memory ahead. */
static int list_all(Kernel **k, bool dots)
{
    static const Matmul m[] = {
        {1, 1024, 768, 768, TRANSPOSE_A, 0},
        {1, 768, 1024, 1024, TRANSPOSE_B | EPILOGUE, 0},
        {1, 2000, 640, 640, TRANSPOSE_A | PROLOGUE | EPILOGUE, 320},
        {1, 129, 1000, 100, PROLOGUE | TRANSPOSE_C, 0},
        {1, 5, 200, 64, EPILOGUE, 0},
        {1, 300, 7, 300, TRANSPOSE_B | EPILOGUE, 0},
    };
    int n = list(k);
    ck_assert_int_eq(n, SMALL);
    for (int i = 0; i < 6; i++)
        k[n++] = make_matmul(&arena, F32, &m[i]);
    k[n++] = make_matmul(&arena, F64, &m[0]);
    k[n++] = make_matmul(&arena, F64, &m[2]);
    /* ... and of bf16 in pairs, packed and as they lie. */
    static const Matmul halves[PAIRS] = {
        {1, 1024, 1024, 1024, 0, 0},      {1, 1024, 768, 1000, TRANSPOSE_A, 0},
        {1, 129, 1000, 101, PROLOGUE, 0}, {1, 768, 1024, 1024, TRANSPOSE_B | EPILOGUE, 0},
        {1, 14, 640, 300, 0, 0},          {1, 300, 7, 300, TRANSPOSE_B, 0},
    };
    for (int i = 0; i < PAIRS && dots; i++)
        k[n++] = make_matmul(&arena, BF16, &halves[i]);
    ck_assert_int_eq(n, dots ? MOST : MOST - PAIRS);
    return n;
}

/* Whether sums of bf16 go in pairs on this processor. */
static bool has_dots(const char *cpu)
{
    return strcmp(cpu, "znver4") == 0 || strcmp(cpu, "znver5") == 0;
}

static const char *assembly(Ctx *cx, const char *cpu, const char *triple)
{
    Kernel *k[MOST];
    KernelFn fn[MOST];
    ObjectFile object = {0};
    TargetOptions o = {.cpu = cpu, .triple = triple, .want_asm = true};
    int n = list_all(k, has_dots(cpu));
    ck_assert(cpu_emit_kernels(cx, &o, k, n, &cx->perm, fn, &object));
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

/* A vector that is kept in the stack. On aarch64 that is a whole register, q or a list of v: low
 * halves, d, are saved for the caller. */
static bool is_spill(const char *i, bool arm)
{
    if (!arm)
        return strstr(i, "mm") != NULL &&
               (strstr(i, "(%rsp") != NULL || strstr(i, "(%rbp") != NULL);
    size_t name = strcspn(i, " \t"), blank = strspn(i + name, " \t");
    bool memory = strncmp(i, "ld", 2) == 0 || strncmp(i, "st", 2) == 0;
    bool stack = strstr(i, "[sp") != NULL || strstr(i, "[x29") != NULL;
    return memory && stack && strchr("q{", i[name + blank]) != NULL;
}

typedef struct Found {
    int tiles, windows, asking;
    int sums; /* multiply-adds, or multiplications, of this tile */
    int dots; /* products of bf16 in pairs */
    int wide; /* mentions of the register that only wide tiles need */
} Found;

static bool is_dot(const char *i)
{
    return strncmp(i, "vdpbf16ps", 9) == 0;
}

static bool is_sum(const char *i, bool arm)
{
    return arm ? strncmp(i, "fmla", 4) == 0
               : strncmp(i, "vfmadd", 6) == 0 || strncmp(i, "mulp", 4) == 0 || is_dot(i);
}

static bool named(const char *p, size_t n, const char *part)
{
    const char *at = strstr(p, part);
    return at != NULL && at < p + n;
}

/* All of a tile is its loop over k, and the loads and stores before and after it. */
static void check_assembly(const char *cpu, const char *triple, const char *wide)
{
    bool arm = triple[0] == 'a', tile = false;
    Ctx cx;
    ctx_init(&cx);
    const char *text = assembly(&cx, cpu, triple);
    Found f = {.sums = 1};
    char name[200] = "";
    for (const char *p = text; *p != 0; p += strcspn(p, "\n") + (p[strcspn(p, "\n")] != 0)) {
        size_t n = strcspn(p, "\n");
        if (n > 0 && !isspace((unsigned char)*p) && strchr(".#/", p[0]) == NULL) {
            ck_assert_msg(f.sums > 0, "%s: a tile multiplies nothing", cpu);
            tile = strncmp(p, "gradc.tile", 10) == 0;
            snprintf(name, sizeof name, "%.*s", (int)n, p);
            f.tiles += tile;
            f.windows += tile && named(p, n, ".window");
            f.asking += tile && named(p, n, ".asks");
            f.sums = !tile;
        }
        const char *i = instruction(p, n);
        ck_assert_msg(!is_division(i), "%s: %s", cpu, i);
        ck_assert_msg(!(tile && is_spill(i, arm)), "%s: %s spills: %s", cpu, name, i);
        f.sums += is_sum(i, arm);
        f.dots += is_dot(i);
        f.wide += tile && strstr(i, wide) != NULL;
    }
    ck_assert_msg(f.tiles >= 12 && f.wide > 10, "%s: %d tiles, %d of %s", cpu, f.tiles, f.wide,
                  wide);
    ck_assert_msg(f.windows >= 3, "%s: %d tiles of windows", cpu, f.windows);
    ck_assert_msg(arm ? f.asking == 0 : f.asking >= 4, "%s: %d tiles ask for memory", cpu,
                  f.asking);
    ck_assert_msg((f.dots > 100) == has_dots(cpu), "%s: %d dot products", cpu, f.dots);
    ctx_free(&cx);
    arena_free(&arena);
}

/* What finds spills finds them. */
START_TEST(spills_are_seen)
{
    static const char *const spill[] = {"vmovups\t%zmm3, 64(%rsp)", "vmovaps\t-32(%rbp), %ymm0",
                                        "movaps\t%xmm1, (%rsp)"};
    static const char *const arm[] = {"str\tq0, [sp, #16]", "ldp\tq1, q2, [sp]",
                                      "ldr\tq8, [x29, #-16]", "st1\t{ v9.4s }, [sp]"};
    static const char *const other[] = {"vmovups\t64(%rdi), %zmm3", "movq\t%rax, 8(%rsp)"};
    static const char *const other_arm[] = {"ldr\tq0, [x1]", "stp\td9, d8, [sp, #-16]!",
                                            "fmla\tv0.4s, v1.4s, v2.s[0]"};
    for (int i = 0; i < 3; i++)
        ck_assert_msg(is_spill(spill[i], false), "%s", spill[i]);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(is_spill(arm[i], true), "%s", arm[i]);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(!is_spill(other[i], false), "%s", other[i]);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(!is_spill(other_arm[i], true), "%s", other_arm[i]);
}
END_TEST

/* Under GRADC_SHORT, three that have all of gradc's own code between them. */
START_TEST(no_spill_no_division)
{
    check_assembly("x86-64-v3", "x86_64-linux-gnu", "%ymm12");
    check_assembly("znver4", "x86_64-linux-gnu", "%zmm29");
    check_assembly("neoverse-n1", "aarch64-linux-gnu", "v28.4s");
    if (getenv("GRADC_SHORT") != NULL)
        return;
    check_assembly("znver3", "x86_64-linux-gnu", "%ymm12");
    check_assembly("x86-64-v4", "x86_64-linux-gnu", "%zmm29");
    check_assembly("znver5", "x86_64-linux-gnu", "%zmm29");
    check_assembly("skylake-avx512", "x86_64-linux-gnu", "%zmm29");
    check_assembly("sapphirerapids", "x86_64-linux-gnu", "%zmm29");
    check_assembly("baseline", "x86_64-linux-gnu", "%xmm12");
    check_assembly("baseline", "aarch64-linux-gnu", "v28.4s");
    check_assembly("apple-m1", "aarch64-linux-gnu", "v28.4s");
}
END_TEST

/* What lies across the lanes is transposed in registers, and no element is read alone. */
START_TEST(tiles_of_loops)
{
    static const char *const cpu[] = {"x86-64-v3", "x86-64-v4"};
    for (int c = 0; c < 2; c++) {
        Ctx cx;
        KernelFn fn[1];
        ObjectFile object = {0};
        TargetOptions o = {.cpu = cpu[c], .triple = "x86_64-linux-gnu", .want_asm = true};
        ctx_init(&cx);
        Kernel *k = transpose(&arena, F32, 64, 48);
        ck_assert(cpu_emit_kernels(&cx, &o, &k, 1, &cx.perm, fn, &object));
        static const char *const alone[] = {"insertps", "vpinsr", "gather", "movss", "vmovd\t"};
        for (int i = 0; i < 5; i++)
            ck_assert_msg(strstr(object.assembly, alone[i]) == NULL, "%s: %s", cpu[c], alone[i]);
        ctx_free(&cx);
        arena_free(&arena);
    }
}
END_TEST

/* Is that in its code? */
static bool has_tiles(Kernel *k, const char *cpu, const char *kind)
{
    Ctx cx;
    KernelFn fn[1];
    ObjectFile object = {0};
    TargetOptions o = {.cpu = cpu, .triple = "x86_64-linux-gnu", .want_asm = true};
    ctx_init(&cx);
    ck_assert(cpu_emit_kernels(&cx, &o, &k, 1, &cx.perm, fn, &object));
    bool has = strstr(object.assembly, kind) != NULL;
    ctx_free(&cx);
    arena_free(&arena);
    return has;
}

static bool has_windows(const Conv *conv)
{
    return has_tiles(make_conv_forward(&arena, conv, false), "x86-64-v3", ".window");
}

/* Columns lie along the lanes; rows do not, whose lines are as many as there are lanes. */
START_TEST(running_sums_row_by_row)
{
    ck_assert(!has_tiles(running_sums(&arena, 64, 256, false), "x86-64-v4", "insertps"));
    ck_assert(!has_tiles(running_sums(&arena, 64, 256, false), "x86-64-v4", "%zmm"));
    ck_assert(has_tiles(running_sums(&arena, 64, 256, true), "x86-64-v4", "%zmm"));
}
END_TEST

/* Some store of a softmax over so many places leaves lanes out by a mask. */
static bool stores_by_mask(const char *cpu, int64_t places)
{
    Ctx cx;
    KernelFn fn[1];
    ObjectFile object = {0};
    TargetOptions o = {.cpu = cpu, .triple = "x86_64-linux-gnu", .want_asm = true};
    ctx_init(&cx);
    Kernel *k = softmax(&arena, F32, 100, places);
    ck_assert(cpu_emit_kernels(&cx, &o, &k, 1, &cx.perm, fn, &object));
    bool is = false;
    for (const char *at = object.assembly; *at != '\0' && !is;) {
        size_t n = strcspn(at, "\n");
        const char *i = instruction(at, n), *to = strstr(i, "), %");
        bool masked = strstr(i, ") {%k") != NULL || strncmp(i, "vmaskmov", 8) == 0;
        is = masked && to == NULL;
        at += n + (at[n] == '\n');
    }
    ctx_free(&cx);
    arena_free(&arena);
    return is;
}

/* Those would hold up the next row's loads: a row's last vector is stored in pieces. */
START_TEST(rows_are_stored_without_masks)
{
    static const int64_t places[] = {10, 24, 31, 40, 197};
    for (int i = 0; i < 5; i++) {
        ck_assert(!stores_by_mask("x86-64-v3", places[i]));
        ck_assert(!stores_by_mask("x86-64-v4", places[i]));
    }
}
END_TEST

/* Channels that have several results each, or whose weights have, lie along the lanes as those of
 * one do. */
START_TEST(few_results_of_channels)
{
    static const Conv conv = {2, 64, 2, 32, 3, 1, 1, 1};
    static const char *const cpu[] = {"x86-64-v3", "x86-64-v4"};
    static const int what[] = {DEPTHWISE_FORWARD, DEPTHWISE_WEIGHT};
    for (int c = 0; c < 2; c++)
        for (int w = 0; w < 2; w++)
            for (int first = 0; first < 2; first++) {
                Kernel *k = make_depthwise(&arena, what[w] | CHANNELS_LAST, &conv, 0, first == 1);
                ck_assert_msg(has_tiles(k, cpu[c], "gradc.lanes."), "%s, %d", cpu[c], what[w]);
            }
}
END_TEST

/* A table has distances of 32 bits: channels of a gigabyte each lie too far apart. */
START_TEST(no_window_is_too_far)
{
    static const Conv near = {1, 32, 64, 1024, 3, 1, 0, 1}, far = {1, 32, 64, 16384, 3, 1, 0, 1};
    ck_assert(has_windows(&near));
    ck_assert(!has_windows(&far));
}
END_TEST

/* x' y, where x is values side by side, of which none lies along k. */
static const char side_by_side[] =
    "contract c {\n  b0: in f32[792]\n  b1: in f32[792]\n  b2: in f32[792]\n"
    "  b3: in f32[792]\n  b4: in f32[792]\n  b5: in f32[792]\n  b6: out f32[576]\n"
    "  dim m i < 12\n  dim m j < 4\n  dim n k < 12\n  dim k l < 2\n  dim k m < 33\n  a {\n"
    "    %6: f32 = load b0[4*i + j + 12*l + 24*m - 36] if 0 <= 4*i + j - 36 < 12 else 0\n"
    "    %7: f32 = load b1[132*i + j + 396*l + 4*m - 1188] if 0 <= 4*i + j - 36 < 12 else 0\n"
    "    %8: f32 = const 1\n    %9: f32 = sub %8, %7\n    %10: f32 = mul %7, %9\n"
    "    %11: f32 = mul %6, %10\n    %12: i64 = index 4*i + j - 36\n"
    "    %13: i64 = const 0\n    %14: i64 = const 12\n    %15: bool = le %13, %12\n"
    "    %16: bool = lt %12, %14\n    %17: bool = and %15, %16\n    %18: f32 = const 0\n"
    "    %19: f32 = select %17, %11, %18\n"
    "    %20: f32 = load b2[4*i + j + 12*l + 24*m - 24] if 0 <= 4*i + j - 24 < 12 else 0\n"
    "    %21: i64 = index 4*i + j\n    %22: i64 = const 36\n    %23: bool = lt %21, %22\n"
    "    %24: f32 = select %23, %20, %19\n"
    "    %25: f32 = load b3[4*i + j + 12*l + 24*m - 12] if 0 <= 4*i + j - 12 < 12 else 0\n"
    "    %26: i64 = index 4*i + j\n    %27: i64 = const 24\n    %28: bool = lt %26, %27\n"
    "    %29: f32 = select %28, %25, %24\n"
    "    %30: f32 = load b4[4*i + j + 12*l + 24*m] if 0 <= 4*i + j < 12 else 0\n"
    "    %31: i64 = index 4*i + j\n    %32: bool = lt %31, %14\n"
    "    %33: f32 = select %32, %30, %29\n    give %33\n  }\n  b {\n"
    "    %34: f32 = load b5[k + 396*l + 12*m]\n    give %34\n  }\n  epilogue {\n"
    "    %35: f32 = sum\n    store b6[48*i + 12*j + k], %35\n  }\n}\n";

/* Vectors along k, of which each is gathered element by element for every row of a panel, were code
 * that took LLVM half a minute. */
START_TEST(gathered_vectors_are_not_unrolled)
{
    Ctx cx;
    KernelFn fn[1];
    ObjectFile object = {0};
    TargetOptions o = {.cpu = "x86-64-v4", .triple = "x86_64-linux-gnu", .want_asm = true};
    ctx_init(&cx);
    int32_t source = source_add(&cx, "test", side_by_side, strlen(side_by_side), false);
    Kernel *k = kernel_read(&cx, &cx.perm, source);
    ck_assert_ptr_nonnull(k);
    ck_assert(cpu_emit_kernels(&cx, &o, &k, 1, &cx.perm, fn, &object));
    ck_assert_uint_lt(strlen(object.assembly), 400000);
    ctx_free(&cx);
}
END_TEST

START_TEST(arm_bits)
{
    if (!has_arm("aarch64 contractions"))
        return;
    Kernel *k[SMALL];
    KMem data[SMALL][64];
    Buffers memory[SMALL];
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
    Kernel *k[SMALL];
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
    tcase_add_test(t, spills_are_seen);
    tcase_add_test(t, no_spill_no_division);
    tcase_add_test(t, tiles_of_loops);
    tcase_add_test(t, running_sums_row_by_row);
    tcase_add_test(t, rows_are_stored_without_masks);
    tcase_add_test(t, few_results_of_channels);
    tcase_add_test(t, no_window_is_too_far);
    tcase_add_test(t, gathered_vectors_are_not_unrolled);
    tcase_add_test(t, arm_bits);
    tcase_add_test(t, avx512_bits);
    suite_add_tcase(s, t);
    return s;
}
