/* The chain of bf16 pairs: the interpreter's formula, in its portable form, in its fast one, and
 * the instruction's. */
#include "kernel_run.h"
#include "kernel/interp.h"

enum { LANES = 16, ROUNDS = 200000 };

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

static bool has_instruction(void)
{
    return system("grep -q avx512_bf16 /proc/cpuinfo") == 0;
}

/* Under a given MXCSR, which the instruction is to ignore. */
__attribute__((target("avx512f,avx512bf16"))) static void
instruction(float *s, const uint32_t *a, const uint32_t *b, unsigned mode)
{
    unsigned before = _mm_getcsr();
    _mm_setcsr(mode);
    __m512 r = _mm512_loadu_ps(s);
    __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
    __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(r) : "v"(x), "v"(y));
    _mm512_storeu_ps(s, r);
    _mm_setcsr(before);
}
#else
static bool has_instruction(void)
{
    return false;
}

static void instruction(float *s, const uint32_t *a, const uint32_t *b, unsigned mode)
{
    (void)s, (void)a, (void)b, (void)mode;
}
#endif

static uint64_t state = 1;

static uint32_t draw(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* What is drawn: any halves, numbers of ordinary size, sums that get as small as numbers can and as
 * large, what is special. */
typedef enum Kind { ANY, ORDINARY, SMALL, LEAST, LARGE, SPECIAL, N_KINDS } Kind;

static uint16_t half(Kind kind)
{
    static const uint16_t special[] = {0,      0x8000, 1,      0x8001, 0x7f,   0x80,   0x8080,
                                       0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffc1, 0x3f80, 0xbf80,
                                       0x7f7f, 0xff7f, 0x0040, 0x1f80, 0x9f80};
    static const uint32_t exponent[N_KINDS][2] = {
        [ORDINARY] = {120, 16}, [SMALL] = {50, 16}, [LEAST] = {48, 8}, [LARGE] = {185, 12}};
    if (kind == ANY)
        return (uint16_t)draw(65536);
    if (kind == SPECIAL)
        return special[draw(sizeof special / sizeof *special)];
    if (kind == LEAST && draw(4) == 0)
        return draw(2) == 0 ? 0 : 0x8000;
    uint32_t e = exponent[kind][0] + draw(exponent[kind][1]);
    uint32_t fraction = kind == LEAST && draw(2) == 0 ? 0 : draw(128);
    return (uint16_t)(draw(2) << 15 | e << 7 | fraction);
}

static float sum(Kind kind)
{
    static const uint32_t special[] = {0,          0x80000000, 1,          0x80000001, 0x7fffff,
                                       0x800000,   0x80800000, 0x807fffff, 0x7f800000, 0xff800000,
                                       0x7fc00000, 0x7f800001, 0x3f800000, 0x7f7fffff, 0xff7fffff};
    static const uint32_t exponent[N_KINDS][2] = {
        [ORDINARY] = {115, 24}, [SMALL] = {0, 4}, [LEAST] = {0, 4}, [LARGE] = {245, 10}};
    uint32_t u = draw(65536) << 16 | draw(65536);
    if (kind == SPECIAL)
        u = special[draw(sizeof special / sizeof *special)];
    else if (kind != ANY)
        u = draw(2) << 31 | (exponent[kind][0] + draw(exponent[kind][1])) << 23 |
            (kind != LEAST  ? draw(1 << 23)
             : draw(3) == 0 ? draw(4)
             : draw(2) == 0 ? 0x7fffff - draw(4)
                            : 0);
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static float low(uint32_t pair)
{
    return bf16_to_f32((uint16_t)pair);
}

static float high(uint32_t pair)
{
    return bf16_to_f32((uint16_t)(pair >> 16));
}

static void differs(Kind kind, const char *who, float s, uint32_t a, uint32_t b, float got,
                    float want)
{
    if (!same(got, want))
        ck_abort_msg("%s of kind %d: %a + pairs %08x * %08x is %a, not %a", who, (int)kind,
                     (double)s, a, b, (double)got, (double)want);
}

START_TEST(formula)
{
    Kind kind = (Kind)_i;
    static const unsigned mode[] = {0x1f80, 0x1f80 | 0x8040 | 0x6000, 0x1f80 | 0x2000};
    static float x[TILE_K], y[2 * TILE_N], chain[TILE_N];
    bool here = has_instruction();
    if (!here)
        printf("skipped: VDPBF16PS: this processor has none\n");
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t a[LANES], b[LANES];
        float from[LANES], s[LANES];
        for (int l = 0; l < LANES; l++) {
            a[l] = (uint32_t)half(kind) << 16 | half(kind);
            b[l] = (uint32_t)half(kind) << 16 | half(kind);
            from[l] = s[l] = sum(kind);
        }
        if (here)
            instruction(s, a, b, mode[i % 3]);
        x[0] = low(a[0]);
        x[1] = high(a[0]);
        y[0] = low(b[0]);
        y[TILE_N] = high(b[0]);
        chain[0] = from[0];
        interp_chain_pairs(x, y, chain, 1, 1, 2);
        for (int l = 0; l < LANES; l++) {
            float t = interp_fmz(high(a[l]), high(b[l]), from[l]);
            float want = interp_fmz(low(a[l]), low(b[l]), t);
            if (here)
                differs(kind, "the instruction", from[l], a[l], b[l], s[l], want);
            if (l == 0)
                differs(kind, "the interpreter", from[l], a[l], b[l], chain[0], want);
        }
    }
}
END_TEST

/* 1, 3 and 4 products; what is added first shows, and a last one is alone. */
START_TEST(order)
{
    static const char text[] =
        "contract t { b0: in bf16[%d] b1: in bf16[%d] b2: out f32[1] pairs "
        "dim k p < %d a { %%2: bf16 = load b0[p] give %%2 } b { %%3: bf16 "
        "= load b1[p] give %%3 } epilogue { %%4: f32 = sum store b2[0], %%4 } }";
    static const float x[] = {1, 0x1p30F, 1, -0x1p30F}, y[] = {1, 1, 1, 1};
    uint16_t a[4], b[4];
    float r = 0;
    for (int i = 0; i < 4; i++) {
        a[i] = f32_to_bf16(x[i]);
        b[i] = f32_to_bf16(y[i]);
    }
    static const float want[] = {1, 0x1p30F, 0x1p30F, 1};
    for (int n = 1; n <= 4; n++) {
        Kernel *k = kernel_of(arena_printf(&cx.perm, text, n, n, n));
        kernel_run(k, K_EXACT, MEM(DATA(a), DATA(b), DATA(&r)), &cx.scratch);
        ck_assert_msg(r == want[n - 1], "%d products: %a", n, (double)r);
    }
    a[0] =
        0x8001; /* a denormal is a zero of its sign, and -0 has no partner that would change it */
    Kernel *k = kernel_of(arena_printf(&cx.perm, text, 1, 1, 1));
    kernel_run(k, K_EXACT, MEM(DATA(a), DATA(b), DATA(&r)), &cx.scratch);
    ck_assert(same(r, 0));
}
END_TEST

static void refused(const char *text, const char *why)
{
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    ck_assert(k != NULL);
    const char *bad = kernel_verify(k, &cx.scratch);
    ck_assert_msg(bad != NULL && strstr(bad, why) != NULL, "%s", bad);
}

START_TEST(verified)
{
    refused("contract t { b0: in f32[4] b1: out f32[1] pairs dim k p < 4 a { %2: f32 = load "
            "b0[p] give %2 } b { %3: f32 = load b0[p] give %3 } epilogue { %4: f32 = sum store "
            "b1[0], %4 } }",
            "pairs are bf16");
    refused("contract t { b0: in bf16[4] b1: out f32[1] leaf 3 pairs dim k p < 4 a { %2: bf16 = "
            "load b0[p] give %2 } b { %3: bf16 = load b0[p] give %3 } epilogue { %4: f32 = sum "
            "store b1[0], %4 } }",
            "even leaves");
}
END_TEST

Suite *suite_kernel_pairs(void);
Suite *suite_kernel_pairs(void)
{
    Suite *s = suite_create("kernel_pairs");
    TCase *t = tcase_create("pairs");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, formula, 0, N_KINDS);
    tcase_add_test(t, order);
    tcase_add_test(t, verified);
    suite_add_tcase(s, t);
    return s;
}
