/* The set `words`: see words.h. */
#include "cuda/words.h"
#include <math.h>
#include "cpu/loops.h"
#include "cuda/teams.h"

enum { CORE = 10, CORE_OF_THREE = 6, CORE_OF_TYPES = 2, MIXED = 400, ROW = 37, COLUMNS = 96 };

/* ---- values -------------------------------------------------------------------------------- */

/* By bits; the first ones are put beside one another in all ways. */
static const uint64_t f32_values[] = {
    0,          0x80000000, 0x3f800000, 0xbfc00000, 0x7f800000,
    0x7fc00000,                                                  /* 0 -0 1 -1.5 inf nan */
    0x00000001, 0x7f7fffff, 0xff800000, 0xbf800000,              /* least, greatest, -inf, -1 */
    0x7fffffff, 0xffffffff, 0x7f800001,                          /* nan: all payload, signaling */
    0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,  /* denormals, least normal */
    0x3f800001, 0x3f7fffff, 0x3f000000, 0xbf000000, 0x3effffff,  /* beside 1; halves */
    0x3fc00000, 0x40200000, 0xc0200000, 0x40600000, 0x4b000001,  /* 1.5 2.5 -2.5 3.5 2^23+1 */
    0x3f801000, 0x3f803000, 0x3f801001, 0x477fefff, 0x477ff000,  /* f16: ties, 65520 */
    0x33000000, 0x33000001, 0x33c00000, 0x387fe000, 0x387fefff,  /* f16: denormals */
    0x38800000, 0x387ff000, 0xb3000000, 0xc7800000,              /* f16: least normal */
    0x3f808000, 0x3f818000, 0x3f808001, 0x7f7f7fff, 0x7f7f8000,  /* bf16: ties, to infinity */
    0x00008000, 0x00018000, 0x00007fff,                          /* bf16: denormals */
    0x437f0000, 0x437effff, 0x43800000, 0x4effffff, 0x4f000000,  /* 255 256 2^31 */
    0xcf000000, 0xcf000001, 0x5effffff, 0x5f000000, 0xdf000000,  /* 2^63 */
    0x42b17217, 0x42b17218, 0xc2cff1b4, 0xc2cff1b5, 0xc2aeac50,  /* ends of exp */
    0x41102d51, 0x40800000, 0x40490fdb, 0x3fc90fdb, 0x47c35000,  /* tanh, erf, pi, 1e5 */
    0x322bcc77, 0x3a83126f, 0xbf7fffff, 0x3f3504f3, 0xc0400000}; /* 1e-8 1e-3 -1+ sqrt(1/2) -3 */

static const uint64_t f64_values[] = {0,
                                      0x8000000000000000,
                                      0x3ff0000000000000,
                                      0xbff8000000000000,
                                      0x7ff0000000000000,
                                      0x7ff8000000000000,
                                      0x0000000000000001,
                                      0x7fefffffffffffff,
                                      0xfff0000000000000,
                                      0xbff0000000000000,
                                      0x7fffffffffffffff,
                                      0x7ff0000000000001,
                                      0x000fffffffffffff,
                                      0x0010000000000000,
                                      0x8010000000000000, /* denormal, least normal */
                                      0x3ff0000000000001,
                                      0x3fefffffffffffff,
                                      0x3fe0000000000000,
                                      0xbfe0000000000000,
                                      0x4004000000000000,
                                      0xc004000000000000,
                                      0x400c000000000000,
                                      0x4330000000000001,
                                      0x3ff0000010000000,
                                      0x3ff0000030000000,
                                      0x3ff0000010000001, /* f32: ties */
                                      0x47efffffefffffff,
                                      0x47effffff0000000,
                                      0x36a0000000000000, /* f32: to infinity, 2^-149 */
                                      0x3690000000000000,
                                      0x3690000000000001,
                                      0x380fffffc0000000, /* f32: 2^-150 */
                                      0x3ff0020000000000,
                                      0x3ff0020000000001,
                                      0x40effe0000000000, /* f16: ties, in two steps */
                                      0x3ff0100000000000,
                                      0x3ff0100000000001,
                                      0x3e60000000000000, /* bf16; 2^-25 */
                                      0x406fe00000000000,
                                      0x406fdfffffffffff,
                                      0x4070000000000000, /* 255 256 */
                                      0x41dfffffffc00000,
                                      0x41dfffffffffffff,
                                      0x41e0000000000000, /* 2^31 - 1 */
                                      0xc1e0000000000000,
                                      0xc1e00000001fffff,
                                      0x43dfffffffffffff, /* -2^31, 2^63 */
                                      0x43e0000000000000,
                                      0xc3e0000000000000,
                                      0xc3e0000000000001,
                                      0x40862e42fefa39ef,
                                      0x40862e42fefa39f0,
                                      0xc0874910d52d3051, /* ends of exp */
                                      0xc0874910d52d3052,
                                      0xc086232bdd7abcd2,
                                      0x4034000000000000,
                                      0x4018000000000000,
                                      0x400921fb54442d18,
                                      0x3ff921fb54442d18, /* 6, pi, pi/2 */
                                      0x40f86a0000000000,
                                      0x3e45798ee2308c3a,
                                      0x3f50624dd2f1a9fc,
                                      0xbfefffffffffffff,
                                      0x3fe6a09e667f3bcd,
                                      0xc008000000000000};

static const uint64_t f16_values[] = {
    0,      0x8000, 0x3c00, 0xbe00, 0x7c00, 0x7e00, 0x0001, 0x7bff, 0xfc00, 0xbc00,
    0x7fff, 0x7c01, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x3c01, 0x3bff, 0x3800,
    0xb800, 0x3e00, 0x4100, 0xc100, 0x4300, 0x6401, 0x0200, 0x0002, 0x0003, 0x5bf8,
    0x5c00, 0x498b, 0xc98c, 0x4248, 0x3e48, 0x1400, 0xbbff, 0x39a8, 0xc200, 0x2e66};

static const uint64_t bf16_values[] = {
    0,      0x8000, 0x3f80, 0xbfc0, 0x7f80, 0x7fc0, 0x0001, 0x7f7f, 0xff80, 0xbf80,
    0x7fff, 0x7f81, 0x8001, 0x007f, 0x807f, 0x0080, 0x8080, 0x3f81, 0x3f7f, 0x3f00,
    0xbf00, 0x3fc0, 0x4020, 0xc020, 0x4060, 0x4301, 0x0040, 0x0002, 0x0003, 0x437f,
    0x4380, 0x42b1, 0xc2d0, 0x4049, 0x3fc9, 0x3b00, 0xbf7f, 0x3f35, 0xc040, 0x3dcd};

static const uint64_t i32_values[] = {
    0,          1,          0xffffffff, 0x7fffffff, 0x80000000, 2,          7,      31,
    0xfffffffd, 0x10000,    8,          32,         33,         63,         64,     127,
    128,        255,        256,        0xffffff80, 0xffffff00, 0x80000001, 0xffff, 0x01000001,
    0x01000003, 0xfeffffff, 0x7fffff80, 0x7fffffbf, 0x7fffffc0, 2049,       2051,   65519,
    65520,      257,        259,        0xaaaaaaaa, 0xd2511f53};

static const uint64_t i64_values[] = {0,
                                      1,
                                      0xffffffffffffffff,
                                      0x7fffffffffffffff,
                                      0x8000000000000000,
                                      2,
                                      7,
                                      63,
                                      0xfffffffffffffffd,
                                      0x100000000,
                                      31,
                                      32,
                                      33,
                                      64,
                                      255,
                                      256,
                                      0xffffffffffffff80,
                                      0x7fffffff,
                                      0xffffffff80000000,
                                      0x80000000,
                                      0xffffffff7fffffff,
                                      0x8000000000000001,
                                      0x01000001,
                                      0x01000003,
                                      0x20000000000001,
                                      0x20000000000003,
                                      0x7fffffffffffffbf,
                                      0x7ffffffffffffe00,
                                      0x7fffffbfffffffff,
                                      0x7fffffc000000000,
                                      65520,
                                      2049,
                                      0xaaaaaaaaaaaaaaaa,
                                      0xd2511f53cd9e8d57};

static const uint64_t u8_values[] = {0, 1, 255, 128, 127, 2, 7, 8, 254, 16, 3, 31, 64, 100, 200};

static const uint64_t bool_values[] = {0, 1};

static const struct {
    const uint64_t *at;
    int n;
} values[] = {
#define VALUES(type)                                                                               \
    {                                                                                              \
        type##_values, sizeof type##_values / sizeof *type##_values                                \
    }
    VALUES(f32), VALUES(f64), VALUES(f16), VALUES(bf16),
    VALUES(i32), VALUES(i64), VALUES(u8),  VALUES(bool),
};

static uint64_t bits_of(double x, DType t)
{
    float f = (float)x;
    uint32_t u;
    uint64_t d;
    memcpy(&u, &f, sizeof u);
    memcpy(&d, &x, sizeof d);
    return t == F64 ? d : t == F16 ? f32_to_f16(f) : t == BF16 ? f32_to_bf16(f) : u;
}

/* Rows of what does not depend on most of its elements: some with one that it depends on. */
static uint64_t mixed_bool(int64_t e)
{
    int64_t row = e / ROW;
    bool other = row >= 2 && e % ROW == (5 * row + 9) % ROW;
    return (row % 2 != 0) != other;
}

/* What sums and products are made of: zeros below 0, numbers of several sizes, few that are none,
 * at the end of a lane and before; odd integers, whose product is not 0. */
static uint64_t mixed(DType t, int64_t e)
{
    uint64_t s = 1000 * (uint64_t)t + (uint64_t)(e % MIXED), any = draw(&s);
    e %= MIXED;
    if (t == BOOL)
        return mixed_bool(e);
    if (!dtype_is_float(t))
        return any >> (64 - 8 * dtype_bytes(t)) | 1;
    if (e == 2 * ROW + 10 || e == 3 * ROW + 31)
        return bits_of((double)NAN, t);
    if (e == 5 * ROW + 33 || e == 6 * ROW + 2)
        return bits_of(e % 2 == 0 ? (double)INFINITY : -(double)INFINITY, t);
    return e < 40 ? bits_of(-0.0, t) : bits_of(ldexp(draw_real(&s), (int)(any % 9) - 4), t);
}

/* Element e of buffer b. A chain of a contraction takes what is no number to the end of its row:
 * one is enough. */
static uint64_t mixed_operand(const Kernel *k, int b, int64_t e)
{
    int64_t at = b <= 1 ? e : 3 * e + 53 * b;
    if (k->kind == K_CONTRACT && at > 3 * ROW)
        at = 6 * ROW + 3 + at % (MIXED - 6 * ROW - 3);
    return mixed(k->buf.at[b].dtype, at);
}

void words_print_values(FILE *to)
{
    for (int kind = 0; kind < 2; kind++)
        for (int t = 0; t < N_DTYPES; t++) {
            int n = kind == 0 ? values[t].n : MIXED;
            int column =
                fprintf(to, "%s %s:", kind == 0 ? "values" : "mixed", dtype_name((DType)t));
            for (int i = 0; i < n; i++) {
                uint64_t x = kind == 0 ? values[t].at[i] : mixed((DType)t, i);
                if (column > COLUMNS - 17)
                    column = 0 * fprintf(to, "\n");
                column += fprintf(to, " %llx", (unsigned long long)x);
            }
            fprintf(to, "\n");
        }
}

/* ---- instructions, element by element -------------------------------------------------------- */

static int core_of(const Kernel *k, int n)
{
    DType first = k->buf.at[0].dtype;
    for (int b = 1; b < n; b++)
        if (k->buf.at[b].dtype != first)
            return CORE_OF_TYPES;
    return n == 3 ? CORE_OF_THREE : CORE;
}

/* All combinations of the first values, then all values beside others. */
static uint64_t operand(const Kernel *k, int n, int b, int64_t e)
{
    DType t = k->buf.at[b].dtype;
    int core = core_of(k, n);
    int64_t all = n == 1 ? 0 : n == 2 ? core * core : core * core * core;
    if (e >= all)
        return values[t].at[((e - all) * (2 * b + 1) + 3 * b) % values[t].n];
    for (int i = b; i < n - 1; i++)
        e /= core;
    return values[t].at[e % core % values[t].n];
}

static int64_t count_elements(const DType *in, int n)
{
    Kernel k = {0};
    KBuf buf[3] = {{in[0], K_IN, 0}, {in[1], K_IN, 0}, {in[2], K_IN, 0}};
    k.buf.at = buf;
    int core = core_of(&k, n), most = values[in[n - 1]].n;
    return most + (n == 1 ? 0 : n == 2 ? core * core : core * core * core);
}

static Val instruction(Kernel *k, KOp op, DType to, const Val x[3])
{
    if (op == KI_CAST)
        return k_cast(k, to, x[0]);
    if (op == KI_BITCAST)
        return k_bitcast(k, to, x[0]);
    switch (kop_args(op)) {
    case 1:
        return k_unary(k, op, x[0]);
    case 2:
        return k_binary(k, op, x[0], x[1]);
    default:
        return op == KI_FMA      ? k_fma(k, x[0], x[1], x[2])
               : op == KI_SELECT ? k_select(k, x[0], x[1], x[2])
                                 : k_random(k, x[0], x[1], x[2]);
    }
}

/* The instruction on operands of type `from`, if the verifier lets it have them. */
static void add_instruction(Arena *arena, Words *w, KOp op, DType from, DType to)
{
    bool converts = op == KI_CAST || op == KI_BITCAST;
    const DType in[3] = {op == KI_SELECT ? BOOL : from, from, from};
    const char *name = arena_printf(arena, "%s_%s", kop_text(op), dtype_name(from));
    if (converts)
        name = arena_printf(arena, "%s_%s", name, dtype_name(to));
    Kernel *k = kernel_new(arena, K_LOOP, name);
    int n = kop_args(op);
    int64_t elems = count_elements(in, n);
    Val x[3] = {0}, i = k_par(k, elems);
    for (int b = 0; b < n; b++) {
        int buf = k_buf(k, in[b], elems, K_IN);
        x[b] = k_load(k, buf, k_aff_val(i, 1));
    }
    Val y = instruction(k, op, to, x);
    int out = k_buf(k, (DType)k->inst.at[y].dtype, elems, K_OUT);
    k_store(k, out, k_aff_val(i, 1), y);
    k_end(k, i);
    k_finish(k);
    if (y != x[0] && kernel_verify(k, arena) == NULL)
        vec_push(arena, &w->kernels, k);
}

/* kernel_expand() makes these for targets that have them as instructions, not for this one. */
static bool is_of_others(KOp op)
{
    return op == KI_EXPONENT || op == KI_FRACTION || op == KI_SCALE;
}

static void add_instructions(Arena *arena, Words *w)
{
    for (int op = 0; op < N_KOPS; op++) {
        KClass class = kop_class((KOp)op);
        bool converts = op == KI_CAST || op == KI_BITCAST;
        if (class < K_CLASS_UNARY || class > K_CLASS_MATH || is_of_others((KOp)op))
            continue;
        for (int from = 0; from < N_DTYPES; from++)
            for (int to = 0; to < (converts ? N_DTYPES : 1); to++)
                add_instruction(arena, w, (KOp)op, (DType)from, (DType)to);
    }
    w->each = w->kernels.n;
}

/* ---- accumulators -------------------------------------------------------------------------------
 */

/* Rows, by half of a warp or by 8 threads. */
static Kernel *fold_rows(Arena *arena, KOp op, DType t)
{
    enum { M = 8, N = ROW };
    Kernel *k =
        kernel_new(arena, K_LOOP, arena_printf(arena, "rows_%s_%s", kop_text(op), dtype_name(t)));
    int out = k_buf(k, t, M, K_OUT), x = k_buf(k, t, M * N, K_IN);
    Val i = k_par(k, M), acc = k_acc(k, t, op), j = k_red(k, N);
    k_into(k, acc, k_load(k, x, at2(i, N, j, 1)));
    k_end(k, j);
    k_store(k, out, k_aff_val(i, 1), k_fold(k, acc));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Columns, each by one thread: enough of them for that, of which the first ones are kept. */
static Kernel *fold_columns(Arena *arena, KOp op, DType t)
{
    enum { M = 19, N = 520, KEPT = 12 };
    Kernel *k = kernel_new(arena, K_LOOP,
                           arena_printf(arena, "columns_%s_%s", kop_text(op), dtype_name(t)));
    int out = k_buf(k, t, KEPT, K_OUT), x = k_buf(k, t, M * N, K_IN);
    Val j = k_par(k, N), acc = k_acc(k, t, op), i = k_red(k, M);
    KBound kept = {k_aff_val(j, 1), 0, KEPT};
    k_into(k, acc, k_load(k, x, at2(i, N, j, 1)));
    k_end(k, i);
    k_store_bounded(k, out, k_aff_val(j, 1), &kept, 1, k_fold(k, acc));
    k_end(k, j);
    k_finish(k);
    return k;
}

/* Two accumulators of one loop, of which one has 16 lanes and one has 8: a team of 8. */
static Kernel *fold_both(Arena *arena)
{
    enum { M = 6, N = 45 };
    Kernel *k = kernel_new(arena, K_LOOP, "rows_both");
    int y = k_buf(k, F32, M, K_OUT), z = k_buf(k, F64, M, K_OUT), x = k_buf(k, F32, M * N, K_IN);
    Val i = k_par(k, M), top = k_acc(k, F32, KI_MAX), sum = k_acc(k, F64, KI_ADD);
    Val j = k_red(k, N), v = k_load(k, x, at2(i, N, j, 1));
    k_into(k, top, v);
    k_into(k, sum, k_cast(k, F64, v));
    k_end(k, j);
    k_store(k, y, k_aff_val(i, 1), k_fold(k, top));
    k_store(k, z, k_aff_val(i, 1), k_fold(k, sum));
    k_end(k, i);
    k_finish(k);
    return k;
}

/* Each operation on each type that the verifier lets it have. */
static void add_accumulators(Arena *arena, Kernels *s)
{
    for (int op = 0; op < N_KOPS; op++)
        for (int t = 0; t < N_DTYPES; t++) {
            Kernel *rows = fold_rows(arena, (KOp)op, (DType)t);
            if (kernel_verify(rows, arena) != NULL)
                continue;
            add_kernel(arena, s, rows);
            add_kernel(arena, s, fold_columns(arena, (KOp)op, (DType)t));
        }
    add_kernel(arena, s, fold_both(arena));
    add_kernel(arena, s, nested(arena, 5, 20));
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

/* x[index[i]] where that is in x: bounds of an i32 and an i64 that may be anything. */
static Kernel *choose(Arena *arena, DType index)
{
    enum { M = 40, N = 33 };
    Kernel *k = kernel_new(arena, K_LOOP, arena_printf(arena, "choose_%s", dtype_name(index)));
    int out = k_buf(k, I64, M, K_OUT), x = k_buf(k, I64, N, K_IN), at = k_buf(k, index, M, K_IN);
    Val i = k_par(k, M), r = k_load(k, at, k_aff_val(i, 1));
    KBound inside = {k_aff_val(r, 1), 0, N};
    k_store(k, out, k_aff_val(i, 1), k_load_bounded(k, x, k_aff_val(r, 1), &inside, 1, -1));
    k_end(k, i);
    k_finish(k);
    return k;
}

static Kernel *indices(Arena *arena)
{
    Kernel *k = kernel_new(arena, K_LOOP, "indices");
    int x = k_buf(k, I32, 20, K_OUT), y = k_buf(k, I64, 20, K_OUT);
    Val i = k_par(k, 20);
    k_store(k, x, k_aff_val(i, 1), k_index(k, I32, k_aff_offset(k_aff_val(i, 3), -5)));
    k_store(k, y, k_aff_val(i, 1), k_index(k, I64, k_aff_offset(k_aff_val(i, -1), 5)));
    k_end(k, i);
    k_finish(k);
    return k;
}

static void add_others(Arena *arena, Kernels *s)
{
    add_kernel(arena, s, in_turns(arena, 3, 70));
    add_kernel(arena, s, read_back(arena, 5, 30));
    add_kernel(arena, s, softmax(arena, F32, 5, 33));
    add_kernel(arena, s, argmax(arena, 5, 30));
    add_kernel(arena, s, cumulative(arena, 5, 30));
    add_kernel(arena, s, padded(arena, BF16, 3, 17, 3, 1));
    add_kernel(arena, s, choose(arena, I32));
    add_kernel(arena, s, choose(arena, I64));
    add_kernel(arena, s, indices(arena));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){1, 9, 11, 40, PROLOGUE | EPILOGUE, 0}));
    Kernel *leaves = make_matmul(arena, F32, &(Matmul){2, 5, 3, 40, TRANSPOSE_B, 18});
    leaves->name = "matmul_leaves";
    add_kernel(arena, s, leaves);
    add_kernel(arena, s, make_matmul(arena, F64, &(Matmul){1, 5, 7, 40, TRANSPOSE_A, 18}));
}

/* ---- the set ----------------------------------------------------------------------------------
 */

static void check_all_are_there(const Kernels *s)
{
    bool seen[N_KOPS] = {[KI_NONE] = true};
    for (int i = 0; i < s->n; i++)
        for (Val v = 1; v < (Val)s->at[i]->inst.n; v++)
            seen[s->at[i]->inst.at[v].op] = true;
    for (int op = 0; op < N_KOPS; op++)
        if (!seen[op] && !is_of_others((KOp)op)) {
            fprintf(stderr, "no kernel of the set `words` has the instruction %s\n",
                    kop_text((KOp)op));
            exit(3);
        }
}

void words_add(Arena *arena, Words *w)
{
    add_instructions(arena, w);
    add_accumulators(arena, &w->kernels);
    add_others(arena, &w->kernels);
    check_all_are_there(&w->kernels);
}

static void put(DType t, void *to, int64_t e, uint64_t bits)
{
    int bytes = dtype_bytes(t);
    memcpy((char *)to + e * bytes, &bits, (size_t)bytes); /* the first bytes are the low ones */
}

void words_fill(const Words *w, int i, int b, void *to)
{
    const Kernel *k = w->kernels.at[i];
    const KBuf *x = &k->buf.at[b];
    bool chooses = strncmp(k->name, "choose", 6) == 0 && b == k->buf.n - 1;
    for (int64_t e = 0; e < x->elems; e++) {
        uint64_t bits = mixed_operand(k, b, e);
        if (i < w->each && b < k->buf.n - 1)
            bits = operand(k, k->buf.n - 1, b, e);
        else if (chooses)
            bits = values[x->dtype].at[e % values[x->dtype].n];
        put(x->dtype, to, e, bits);
    }
}

static bool is_nan(DType t, uint64_t x)
{
    static const uint64_t infinity[] = {0x7f800000, 0x7ff0000000000000, 0x7c00, 0x7f80};
    uint64_t sign = 1ull << (8 * dtype_bytes(t) - 1);
    return dtype_is_float(t) && (x & (sign - 1)) > infinity[t];
}

void words_print(const Words *w, int i, const KBuf *b, const void *data, FILE *to)
{
    int bytes = dtype_bytes(b->dtype);
    int column = fprintf(to, "k%d %s, %s:", i, w->kernels.at[i]->name, dtype_name(b->dtype));
    for (int64_t e = 0; e < b->elems; e++) {
        uint64_t x = 0;
        memcpy(&x, (const char *)data + e * bytes, (size_t)bytes);
        if (column > COLUMNS - 17)
            column = 0 * fprintf(to, "\n");
        column +=
            is_nan(b->dtype, x) ? fprintf(to, " nan") : fprintf(to, " %llx", (unsigned long long)x);
    }
    fprintf(to, "\n");
}
