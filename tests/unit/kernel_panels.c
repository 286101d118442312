/* Rows further apart: the kernel leaves the bits that it leaves where they follow one another, and
 * nothing between them; which kernels can't; and that scores of attention lie so. */
#include <check.h>
#include <string.h>

#include "compile.h"
#include "kernel/panels.h"
#include "pass/pass.h"

enum { ROWS = 12, COLS = 64, PITCH = COLS + 48, ELEMS = ROWS * COLS };

/* b0 is read, b1 is written: both are ROWS by COLS, and lie apart where the case says so. */
static const struct {
    const char *what;
    bool in, out, can;
    const char *text;
} cases[] = {
    {"rows by columns", true, true, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: f32 = load b0[64*i + j] %4: f32 = mul %3, %3 store b1[64*i + j], %4 } } }"},
    {"one of the two", true, false, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: f32 = load b0[64*i + j] %4: f32 = mul %3, %3 store b1[64*i + j], %4 } } }"},
    {"all in one loop", true, true, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 768 { "
     "%2: f32 = load b0[i] %3: f32 = mul %2, %2 store b1[i], %3 } }"},
    {"backwards", true, true, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: f32 = load b0[-64*i - j + 767] store b1[64*i + j], %3 } } }"},
    {"four rows at a time", true, true, true,
     "loop t { b0: in f32[768] b1: out f32[768] par h < 3 { par i < 256 { "
     "%3: f32 = load b0[256*h + i] store b1[256*h + i], %3 } } }"},
    {"a row's sum", true, true, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { %2: f32 = acc add red j < 64 { "
     "%4: f32 = load b0[64*i + j] into %2, %4 } %7: f32 = fold %2 par l < 64 { "
     "store b1[64*i + l], %7 } } }"},
    {"a product of rows", true, true, true,
     "contract t { b0: in f32[768] b1: out f32[768] dim m i < 12 dim n j < 64 dim k k < 64 "
     "a { %4: f32 = load b0[64*i + k] give %4 } b { %5: f32 = load b0[k] give %5 } "
     "epilogue { %6: f32 = sum store b1[64*i + j], %6 } }"},
    {"a sum over rows", true, true, true,
     "contract t { b0: in f32[768] b1: out f32[768] dim m i < 12 dim n j < 64 dim k k < 12 "
     "a { %4: f32 = load b0[64*k + i] give %4 } b { %5: f32 = load b0[64*k + j] give %5 } "
     "epilogue { %6: f32 = sum store b1[64*i + j], %6 } }"},
    {"a diagonal over the end of a row", true, false, false,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 11 { par j < 64 { "
     "%3: f32 = load b0[65*i + j] store b1[64*i + j], %3 } } }"},
    {"what is not there", true, false, false,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: f32 = load b0[64*i + j - 1] if 0 <= j - 1 < 64 else 0 store b1[64*i + j], %3 } } }"},
    {"the next one, where there is one", true, false, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: f32 = load b0[64*i + j + 1] if 0 <= j + 1 < 64 else 0 store b1[64*i + j], %3 } } }"},
    {"the next one, in a row that is there", true, false, false,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: f32 = load b0[64*i + j + 1] if 0 <= i < 11 else 0 store b1[64*i + j], %3 } } }"},
    {"two rows further, where there is one", true, false, true,
     "loop t { b0: in f32[768] b1: out f32[768] par i < 12 { par j < 64 { "
     "%3: f32 = load b0[64*i + j + 128] if 0 <= i < 10 else 0 store b1[64*i + j], %3 } } }"},
    {"a sum whose lanes would be others", true, false, false,
     "loop t { b0: in f32[720] b1: out f32[720] %1: f32 = acc add red i < 720 { "
     "%3: f32 = load b0[i] into %1, %3 } %6: f32 = fold %1 store b1[0], %6 }"},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void run(const Kernel *k, bool in_apart, float *in, float *out, Arena *scratch)
{
    const KMem mem[] = {{in, NULL}, {out, NULL}};
    for (int i = 0; i < ROWS * PITCH; i++)
        out[i] = in[i] = -1;
    for (int i = 0; i < ELEMS; i++)
        in[in_apart ? i / COLS * PITCH + i % COLS : i] = (float)((i * 37) % 101) / 17 - 3;
    kernel_run(k, K_EXACT, mem, scratch);
}

START_TEST(apart)
{
    Ctx cx;
    ctx_init(&cx);
    const char *text = cases[_i].text;
    Kernel *k = kernel_read(&cx, &cx.perm, source_add(&cx, "test", text, strlen(text), false));
    diag_print(&cx, stdout);
    ck_assert_msg(k != NULL, "%s: can't be read", cases[_i].what);
    const int64_t cols = k->buf.at[0].elems / ROWS;
    const Panels as = {ROWS, cols, cols, PITCH};
    const Panels of[] = {cases[_i].in ? as : (Panels){0}, cases[_i].out ? as : (Panels){0}};
    const Kernel *n = panels_kernel(&cx.perm, k, of);
    ck_assert_msg((n != NULL) == cases[_i].can, "%s", cases[_i].what);
    if (n != NULL) {
        static float in[ROWS * PITCH], out[ROWS * PITCH], far_out[ROWS * PITCH];
        ck_assert_ptr_null(kernel_verify(n, &cx.scratch));
        run(k, false, in, out, &cx.scratch);
        run(n, cases[_i].in, in, far_out, &cx.scratch);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < PITCH; j++) {
                bool between = cases[_i].out ? j >= COLS : i * PITCH + j >= ELEMS;
                int at = cases[_i].out ? i * COLS + j : i * PITCH + j;
                float want = between ? -1 : out[at];
                ck_assert_msg(memcmp(&far_out[i * PITCH + j], &want, sizeof want) == 0,
                              "%s: row %d, column %d", cases[_i].what, i, j);
            }
    }
    ctx_free(&cx);
}
END_TEST

/* ---- a model ------------------------------------------------------------------------------ */

#define ATTENTION(how)                                                                             \
    "use nn\nmodel m {\n    input q, k, v : f32[2, 2, 128, 16] with grad\n"                        \
    "    loss sum(nn.attend(q, k, v, causal = " how ")^2)\n}\n"

/* How many buffers of attention over 128 places have rows of `cols`. */
static int count_rows(const char *text, int64_t set_bytes, int64_t cols)
{
    Ctx cx;
    Arena arena = {0};
    Output out = {.arena = &arena};
    Options o = {.entry = {[ENTRY_GRAD] = true}, .threads_max = 2, .chunk_from = CHUNK_DEFAULT};
    o.target = (TargetOptions){.target = "cpu", .threads_max = 2, .set_bytes = set_bytes};
    ctx_init(&cx);
    cx.verify = true;
    bool ok = compile(&cx, source_add(&cx, "m.model", text, strlen(text), false), &o, &out);
    diag_print(&cx, stderr);
    ck_assert(ok);
    int n = 0;
    for (int i = 0; i < out.program->buffer.n; i++) {
        const Buffer *b = &out.program->buffer.at[i];
        n += b->rank > 1 && b->shape[b->rank - 1] == cols;
    }
    output_free_graphs(&out);
    arena_free(&arena);
    ctx_free(&cx);
    return n;
}

START_TEST(scores)
{
    static const char *const text[] = {ATTENTION("true"), ATTENTION("false")};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_gt(count_rows(text[i], 512, 128 + 48), 1);
        ck_assert_int_eq(count_rows(text[i], 1024, 128 + 48), 0);
        ck_assert_int_gt(count_rows(text[i], 1024, 128), 1);
    }
}
END_TEST

Suite *suite_kernel_panels(void);
Suite *suite_kernel_panels(void)
{
    Suite *s = suite_create("kernel_panels");
    TCase *t = tcase_create("rows");
    tcase_add_loop_test(t, apart, 0, N_CASES);
    tcase_add_test(t, scores);
    suite_add_tcase(s, t);
    return s;
}
