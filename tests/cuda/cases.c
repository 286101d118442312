/* Writes kernels as CUDA C++, and what the exact interpreter makes of random buffers, for run.cpp.
 *
 *   cases SET FOLDER
 *
 * SET: words (words.h), shapes, types, operations (loop kernels), matmuls, tiles, convolutions,
 * depthwise, few (one of each kind), ops (of each example of each op, for each element type), or
 * random:FROM:N (random kernels by seed); wide: before it stands for indices of 64 bits. FOLDER
 * gets kernels.cu, list.inc and cases.bin; of words, golden.txt, too.
 */
#include <string.h>
#include "cpu/contractions.h"
#include "cpu/loops.h"
#include "cuda/teams.h"
#include "cuda/words.h"
#include "cuda/write.h"
#include "support/op_kernel.h"
#include "target/cuda/cuda.h"
#include "unit/kernel_random.h"

enum { MOST_EXAMPLES = 16 }; /* of an op */

typedef struct Cases {
    Arena arena;
    Ctx cx; /* of ops */
    Kernels kernels;
    bool wide;      /* indices of 64 bits */
    bool random;    /* buffers are filled as random kernels ask for it */
    uint64_t seed;  /* of the first kernel's buffers */
    const char *to; /* folder */
    Words *words;   /* NULL: another set */
    FILE *golden;   /* of words */
} Cases;

/* ---- which kernels ------------------------------------------------------------------------- */

static void add_random(Cases *c, uint64_t from, int n)
{
    c->random = true;
    c->seed = from;
    for (int i = 0; i < n; i++) {
        uint64_t seed = from + (uint64_t)i;
        Kernel *k = kernel_random(&c->arena, seed, RANDOM_ANY);
        while (kernel_random_feeds_twice(k))
            k = kernel_random(&c->arena, seed += 1000000, RANDOM_ANY);
        k->con.all = 0; /* Caps.tells_from: this target's contractions tell nothing */
        add_kernel(&c->arena, &c->kernels, k);
    }
}

/* One of each kind, for bugs that are planted in their text. */
static void add_few(Arena *arena, Kernels *s)
{
    const Conv conv = {2, 3, 5, 9, 3, 1, 1, 1};
    add_kernel(arena, s, softmax(arena, F32, 7, 33));
    add_kernel(arena, s, total(arena, F32, 50, KI_ADD));
    add_kernel(arena, s, column_sums(arena, F32, 9, 21, true, KI_MAX));
    add_kernel(arena, s, padded(arena, BF16, 3, 17, 3, 1));
    add_kernel(arena, s, in_turns(arena, 5, 70));
    add_kernel(arena, s, read_back(arena, 5, 30));
    add_kernel(arena, s, binary_kernel(arena, KI_MUL, BF16, 37));
    add_kernel(arena, s, make_matmul(arena, F32, &(Matmul){2, 33, 40, 50, PROLOGUE | EPILOGUE, 0}));
    add_kernel(arena, s, make_matmul(arena, F64, &(Matmul){1, 5, 7, 40, TRANSPOSE_B, 18}));
    add_kernel(arena, s, make_conv_forward(arena, &conv, false));
}

/* Enough blocks that threads get as many elements as they may have. */
static void add_tiles(Arena *arena, Kernels *s)
{
    static const struct {
        DType type;
        Matmul shape;
    } tile[] = {
        {F32, {133, 65, 66, 18, PROLOGUE | EPILOGUE, 0}}, {F32, {133, 65, 40, 17, TRANSPOSE_B, 0}},
        {F32, {133, 40, 65, 17, TRANSPOSE_A, 0}},         {F32, {133, 40, 40, 17, 0, 7}},
        {F64, {133, 33, 34, 17, TRANSPOSE_A, 7}},         {F32, {133, 129, 9, 17, 0, 0}},
        {F32, {140, 6, 130, 17, TRANSPOSE_B, 0}},
    };
    for (size_t i = 0; i < sizeof tile / sizeof *tile; i++)
        add_kernel(arena, s, make_matmul(arena, tile[i].type, &tile[i].shape));
}

/* What nvrtc.c compiles under this name. */
static void add_ops(Cases *c)
{
    static const char *const type[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"};
    ctx_init(&c->cx);
    for (size_t t = 0; t < sizeof type / sizeof *type; t++)
        for (int op = OP_NONE + 1; op < N_OPS; op++)
            for (int example = 0; example < MOST_EXAMPLES; example++) {
                OpKernel b;
                Graph *g = op_example(&c->cx, optab[op], example, type[t]);
                if (g == NULL || !op_kernel(&c->cx, &b, g, g->root.at[0].ref))
                    continue;
                b.k->name = arena_printf(&c->arena, "%s_%s", optab[op]->name, type[t]);
                add_kernel(&c->arena, &c->kernels, b.k);
            }
}

static bool add_set(Cases *c, const char *set)
{
    static const struct {
        const char *name;
        void (*add)(Arena *, Kernels *);
    } known[] = {
        {"shapes", add_shapes},       {"types", add_types}, {"operations", add_operations},
        {"matmuls", add_sweep},       {"few", add_few},     {"convolutions", add_convolutions},
        {"depthwise", add_depthwise}, {"tiles", add_tiles}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(set, known[i].name) == 0) {
            known[i].add(&c->arena, &c->kernels);
            return true;
        }
    if (strcmp(set, "words") == 0) {
        c->words = NEW(&c->arena, Words);
        words_add(&c->arena, c->words);
        c->kernels = c->words->kernels;
        return true;
    }
    if (strcmp(set, "ops") == 0) {
        add_ops(c);
        return true;
    }
    unsigned long long from;
    int n;
    if (sscanf(set, "random:%llu:%d", &from, &n) != 2)
        return false;
    add_random(c, from, n);
    return true;
}

/* ---- files --------------------------------------------------------------------------------------
 */

static size_t bytes_of(const KBuf *b)
{
    return (size_t)(b->elems * dtype_bytes(b->dtype));
}

/* Where a buffer has a quantity that limits the kernel, and so has a few values. */
static void fill_buffers(const Cases *c, int i, const Kernel *k, Arena *arena, KMem *mem)
{
    uint64_t seed = c->seed + (uint64_t)i;
    if (c->random) {
        kernel_random_data(k, seed, RANDOM_ANY, arena, mem);
        return;
    }
    for (int b = 0; b < k->buf.n; b++) {
        mem[b] = (KMem){arena_alloc(arena, bytes_of(&k->buf.at[b])), NULL};
        if (c->words != NULL)
            words_fill(c->words, i, b, mem[b].data);
        for (int64_t e = 0; e < k->buf.at[b].elems && c->words == NULL; e++)
            fill_element(k->buf.at[b].dtype, mem[b].data, e, &seed);
    }
}

/* Each buffer that is no LOCAL one: dtype, bytes of an element, elements; before, and after. */
static void write_case(const Cases *c, int i, FILE *to)
{
    Arena scratch = {0};
    const Kernel *k = c->kernels.at[i];
    KMem before[RANDOM_MAX_BUFS], after[RANDOM_MAX_BUFS];
    fill_buffers(c, i, k, &scratch, before);
    int32_t n = 0;
    for (int b = 0; b < k->buf.n; b++) {
        if (k->buf.at[b].mode == K_LOCAL)
            continue;
        n++;
        after[b].data = arena_alloc(&scratch, bytes_of(&k->buf.at[b]));
        memcpy(after[b].data, before[b].data, bytes_of(&k->buf.at[b]));
    }
    kernel_run(k, K_EXACT, after, &scratch);
    fwrite(&n, sizeof n, 1, to);
    for (int b = 0; b < k->buf.n; b++) {
        const KBuf *x = &k->buf.at[b];
        if (x->mode == K_LOCAL)
            continue;
        int32_t type[] = {(int32_t)x->dtype, dtype_bytes(x->dtype)};
        fwrite(type, sizeof type, 1, to);
        fwrite(&x->elems, sizeof x->elems, 1, to);
        fwrite(before[b].data, 1, bytes_of(x), to);
        fwrite(after[b].data, 1, bytes_of(x), to);
        if (c->words != NULL && x->mode != K_IN)
            words_print(c->words, i, x, after[b].data, c->golden);
    }
    arena_free(&scratch);
}

static void write_text(Cases *c)
{
    Text text;
    text_init(&text, &c->arena);
    int n = c->kernels.n;
    Launch *launch = NEW_ARRAY(&c->arena, Launch, n);
    cuda_kernels_text(c->kernels.at, n, c->wide, &c->arena, &text, launch);
    FILE *f = create(c->to, "kernels.cu");
    fwrite(text.at, 1, text.n, f);
    fclose(f);
    f = create(c->to, "list.inc");
    for (int i = 0; i < n; i++)
        fprintf(f, "CASE(k%d, \"%s\", %lld, %d)\n", i, c->kernels.at[i]->name,
                (long long)launch[i].blocks, launch[i].threads);
    fclose(f);
}

int main(int argc, char **argv)
{
    Cases c = {.seed = 7};
    const char *set = argc == 3 ? argv[1] : "";
    c.wide = strncmp(set, "wide:", 5) == 0;
    if (!add_set(&c, set + (c.wide ? 5 : 0))) {
        fprintf(stderr, "cases SET FOLDER\n");
        return 2;
    }
    c.to = argv[2];
    write_text(&c);
    if (c.words != NULL) {
        c.golden = create(c.to, "golden.txt");
        words_print_values(c.golden);
    }
    FILE *f = create(c.to, "cases.bin");
    for (int i = 0; i < c.kernels.n; i++)
        write_case(&c, i, f);
    bool ok = fclose(f) == 0 && (c.golden == NULL || fclose(c.golden) == 0);
    printf("%d kernels\n", c.kernels.n);
    arena_free(&c.arena);
    return ok ? 0 : 3;
}
