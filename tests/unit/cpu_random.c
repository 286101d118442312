/* Random kernels: the object's bits are the exact interpreter's, however its units are cut
 * and in whatever order they run. */
#include "cpu/foreign.h"
#include "kernel/denormals.h"
#include "unit/kernel_random.h"

enum { BATCH = 40 };

typedef struct Batch {
    Ctx cx;
    Kernel *k[BATCH];
    KernelFn fn[BATCH];
    uint64_t seed[BATCH];
    int n;
    RandomStyle style;
    bool flush;
} Batch;

/* Two of three numbers become denormal, or 0 by their bits. */
static void make_denormal(const KBuf *b, void *data)
{
    for (int64_t i = 0; i < b->elems; i++) {
        if (i % 3 == 0)
            continue;
        if (b->dtype == F32)
            ((uint32_t *)data)[i] &= 0x807fffff;
        else if (b->dtype == F64)
            ((uint64_t *)data)[i] &= UINT64_C(0x800fffffffffffff);
        else if (b->dtype == BF16)
            ((uint16_t *)data)[i] &= 0x807f;
    }
}

static void *copied(Arena *arena, const Kernel *k, const KMem *from, KMem *to)
{
    for (int i = 0; i < k->buf.n; i++) {
        size_t bytes = (size_t)(k->buf.at[i].elems * dtype_bytes(k->buf.at[i].dtype));
        to[i] = (KMem){arena_alloc(arena, bytes + 64), NULL};
        if (from[i].data != NULL)
            memcpy(to[i].data, from[i].data, bytes);
    }
    return to;
}

/* Units in `pieces` chunks, in a random order, two lanes in turn. */
static void run(KernelCode code, const Kernel *k, const KernelFn *fn, const KMem *mem, int pieces,
                uint64_t *seed, Arena *arena)
{
    void *bufs[RANDOM_MAX_BUFS];
    int n = 0, order[16];
    for (int i = 0; i < k->buf.n; i++)
        if (k->buf.at[i].mode != K_LOCAL)
            bufs[n++] = mem[i].data;
    size_t size = (size_t)align_up(fn->scratch + 64, 64);
    char *raw = arena_alloc(arena, 2 * size + 64);
    char *lane = raw + (64 - (uintptr_t)raw % 64) % 64;
    memset(lane, 0xff, 2 * size);
    for (int p = 0; p < pieces; p++) {
        int at = (int)(draw(seed) % (uint64_t)(p + 1));
        order[p] = order[at];
        order[at] = p;
    }
    kernel_random_set_all(k, mem);
    for (int p = 0; p < pieces; p++) {
        int64_t from = fn->n_units * order[p] / pieces, to = fn->n_units * (order[p] + 1) / pieces;
        code(bufs, lane + (p & 1 ? size : 0), from, to);
    }
}

static void check_kernel(Batch *b, int i, KernelCode code)
{
    static const int pieces[] = {1, 2, 3, 8};
    const Kernel *k = b->k[i];
    Arena *arena = &b->cx.scratch;
    KMem start[RANDOM_MAX_BUFS], judge[RANDOM_MAX_BUFS], ours[RANDOM_MAX_BUFS];
    kernel_random_data(k, b->seed[i], b->style, arena, start);
    for (int j = 0; j < k->buf.n && b->flush; j++)
        if (start[j].data != NULL)
            make_denormal(&k->buf.at[j], start[j].data);
    copied(arena, k, start, judge);
    uint32_t mode = denormals_begin(b->flush); /* of a call, it is the entry's business */
    kernel_run(k, K_EXACT, judge, arena);
    uint64_t order = b->seed[i];
    for (int p = 0; p < 4; p++) {
        char where[160];
        copied(arena, k, start, ours);
        run(code, k, &b->fn[i], ours, pieces[p], &order, arena);
        if (kernel_random_equal(k, judge, ours, where))
            continue;
        Text t;
        text_init(&t, arena);
        kernel_print(k, &t);
        fprintf(stderr, "%s\n", t.at); /* too long for a message */
        ck_abort_msg("seed %llu, %d pieces: %s", (unsigned long long)b->seed[i], pieces[p], where);
    }
    denormals_end(mode);
}

static void check_batch(Batch *b, const char *cpu)
{
    TargetOptions o = {.cpu = cpu, .flush = b->flush};
    ObjectFile object = {0};
    bool ok = cpu_emit_kernels(&b->cx, &o, b->k, b->n, &b->cx.perm, b->fn, &object);
    if (!ok)
        diag_print(&b->cx, stderr);
    ck_assert_msg(ok, "seeds from %llu", (unsigned long long)b->seed[0]);
    Loaded *l = cpu_load(&b->cx, &object, NULL);
    ck_assert(l != NULL);
    for (int i = 0; i < b->n; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        KernelCode code = NULL;
        *(void **)&code = loaded_symbol(l, name);
        ck_assert(code != NULL);
        check_kernel(b, i, code);
    }
    cpu_unload(l);
}

static void fill(Batch *b, uint64_t first, int n)
{
    ctx_init(&b->cx);
    b->n = n;
    for (int i = 0; i < n; i++) {
        b->seed[i] = first + (uint64_t)i;
        b->k[i] = kernel_random(&b->cx.perm, b->seed[i], b->style);
        while (kernel_random_feeds_twice(b->k[i])) {
            b->seed[i] += 1000000;
            b->k[i] = kernel_random(&b->cx.perm, b->seed[i], b->style);
        }
    }
}

static void check_seeds(uint64_t first, int n, const char *cpu, RandomStyle style, bool flush)
{
    for (int from = 0; from < n; from += BATCH) {
        Batch *b = calloc(1, sizeof *b);
        b->style = style;
        b->flush = flush;
        fill(b, first + (uint64_t)from, n - from < BATCH ? n - from : BATCH);
        check_batch(b, cpu);
        ctx_free(&b->cx);
        free(b);
    }
}

START_TEST(native)
{
    check_seeds(1, kernel_random_seeds(340), "native", RANDOM_ANY, false);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        check_seeds(50000, kernel_random_seeds(60), "x86-64-v3", RANDOM_ANY, false);
#endif
}
END_TEST

static bool host_has_pairs(void)
{
    return system("grep -q avx512_bf16 /proc/cpuinfo") == 0;
}

START_TEST(pairs)
{
    if (!host_has_pairs()) {
        printf("skipped: random pairs of bf16: this processor has no dot products of them\n");
        return;
    }
    check_seeds(1, kernel_random_seeds(300), "znver4", RANDOM_PAIRS, false);
}
END_TEST

/* Denormals everywhere, and flushed: by whatever instructions LLVM has chosen. */
START_TEST(flushed)
{
    if (!denormals_can_flush()) {
        printf("skipped: random kernels with denormals flushed: no x86-64 with fma\n");
        return;
    }
    check_seeds(20000, kernel_random_seeds(400), "native", RANDOM_ANY, true);
    check_seeds(30000, kernel_random_seeds(80), "x86-64-v3", RANDOM_ANY, true);
    if (host_has_pairs())
        check_seeds(40000, kernel_random_seeds(80), "znver4", RANDOM_PAIRS, true);
}
END_TEST

START_TEST(arm)
{
    if (!has_arm("random kernels on aarch64"))
        return;
    Batch *b = calloc(1, sizeof *b);
    KMem(*data)[64] = calloc(BATCH, sizeof *data);
    fill(b, 5000, kernel_random_seeds(BATCH) < BATCH ? BATCH / 2 : BATCH);
    for (int i = 0; i < b->n; i++)
        kernel_random_data(b->k[i], b->seed[i], b->style, &b->cx.perm, data[i]);
    check_foreign(&arm_machine, b->k, b->n, data);
    ctx_free(&b->cx);
    free(data);
    free(b);
}
END_TEST

Suite *suite_cpu_random(void)
{
    Suite *s = suite_create("cpu_random");
    TCase *t = tcase_create("bits");
    tcase_set_timeout(t, 1200);
    tcase_add_test(t, native);
    tcase_add_test(t, pairs);
    tcase_add_test(t, flushed);
    tcase_add_test(t, arm);
    suite_add_tcase(s, t);
    return s;
}
