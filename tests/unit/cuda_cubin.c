/* Cubins: what they say is read, whatever is done to their bytes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/cubin_make.h"
#include "target/cuda/cubin.h"
#include "target/cuda/nvrtc.h"

static Arena arena;
static unsigned char bytes[MADE_BYTES];

static const MadeKernel made[] = {
    {"k0_add", 12, 0, 256, 3, 0, 0, 8},
    {"k1_contract", 127, 400, 0, 5, 7, 9, 100},
    {"k2_none", 8, 0, 4608, 0, 0, 0, 1},
};
enum { N_MADE = sizeof made / sizeof *made };

static void tear_down(void)
{
    arena_free(&arena);
}

/* ---- one that is whole ------------------------------------------------------------------- */

static void is_as_made(const Cubin *c, int arch)
{
    ck_assert_int_eq(c->arch, arch);
    ck_assert_int_eq(c->n, N_MADE);
    for (int i = 0; i < N_MADE; i++) {
        const CubinKernel *k = cubin_kernel(c, made[i].name);
        ck_assert(k != NULL);
        ck_assert_int_eq(k->registers, (int)made[i].registers);
        ck_assert_int_eq(k->frame_bytes, (int)made[i].frame_bytes);
        ck_assert_int_eq(k->shared_bytes, made[i].shared_bytes);
        ck_assert_int_eq(k->loads, (int)made[i].loads);
        ck_assert_int_eq(k->stores, (int)made[i].stores);
        ck_assert_int_eq(k->instructions, (int)(made[i].loads + made[i].stores + made[i].beside));
        ck_assert_int_eq(k->n_arguments, (int)made[i].n_arguments);
        ck_assert_int_eq(k->argument_bytes, 8 * (int)made[i].n_arguments);
        for (int a = 0; a < k->n_arguments; a++)
            ck_assert(k->argument[a].offset == 8 * a && k->argument[a].size == 8);
    }
    ck_assert(cubin_kernel(c, "k3") == NULL);
}

START_TEST(what_was_made_is_read)
{
    static const int arch[] = {75, 80, 90, 121};
    for (int i = 0; i < 4; i++) {
        Cubin c;
        size_t n = make_cubin(arch[i], made, N_MADE, bytes);
        const char *wrong = cubin_read(bytes, n, &arena, &c);
        ck_assert_msg(wrong == NULL, "sm_%d: %s", arch[i], wrong);
        is_as_made(&c, arch[i]);
    }
}
END_TEST

/* ---- damaged ones -------------------------------------------------------------------------------
 */

/* In memory of its own, so that a sanitizer sees a step over its end. */
static bool reads(const unsigned char *from, size_t n)
{
    Cubin c;
    Arena own = {0};
    unsigned char *copy = malloc(n + (n == 0));
    ck_assert(copy != NULL);
    memcpy(copy, from, n);
    const char *wrong = cubin_read(copy, n, &own, &c);
    for (int i = 0; wrong == NULL && i < c.n; i++)
        ck_assert(c.kernel[i].name != NULL && c.kernel[i].registers >= 0);
    free(copy);
    arena_free(&own);
    return wrong == NULL;
}

START_TEST(every_cut_is_seen)
{
    size_t n = make_cubin(90, made, N_MADE, bytes);
    for (size_t cut = 0; cut < n; cut++)
        ck_assert_msg(!reads(bytes, cut), "%zu of %zu bytes are taken for all", cut, n);
    ck_assert(reads(bytes, n));
}
END_TEST

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Values that offsets and sizes go wrong by. */
static void mutate(unsigned char *p, size_t n, uint64_t *seed)
{
    static const uint64_t value[] = {0,          1,          0xff,       0xffff,
                                     0x7fffffff, 0xffffffff, UINT64_MAX, UINT64_MAX - 63,
                                     INT64_MAX,  0x10000};
    size_t at = next_random(seed) % n, width = (size_t)1 << next_random(seed) % 4;
    uint64_t x = next_random(seed) % 3 == 0 ? next_random(seed) : value[next_random(seed) % 10];
    width = width < n - at ? width : n - at;
    memcpy(p + at, &x, width);
}

static void read_mutants(const unsigned char *whole, size_t n, int times)
{
    uint64_t seed = 88172645463325252u;
    unsigned char *bad = malloc(n);
    ck_assert(bad != NULL);
    for (int i = 0; i < times; i++) {
        memcpy(bad, whole, n);
        for (uint64_t k = 1 + next_random(&seed) % 4; k-- > 0;)
            mutate(bad, next_random(&seed) % 4 == 0 ? 64 : n, &seed);
        reads(bad, n);
    }
    free(bad);
}

START_TEST(mutants_do_no_harm)
{
    size_t n = make_cubin(80, made, N_MADE, bytes);
    read_mutants(bytes, n, getenv("GRADC_SHORT") != NULL ? 20000 : 100000);
    for (size_t at = 0; at < n; at++)
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1 << bit);
            reads(bytes, n);
            bytes[at] ^= (unsigned char)(1 << bit);
        }
    ck_assert(reads(bytes, n));
}
END_TEST

/* Sections that all lie over the whole file would take a time that grows with its square. */
START_TEST(sections_over_one_another)
{
    MadeKernel k[MADE_KERNELS];
    char name[MADE_KERNELS][8];
    for (int i = 0; i < MADE_KERNELS; i++) {
        snprintf(name[i], sizeof name[i], "k%d", i);
        k[i] = (MadeKernel){name[i], 1, 0, 0, 1, 0, 0, 1};
    }
    size_t n = make_cubin(80, k, MADE_KERNELS, bytes);
    ck_assert(reads(bytes, n));
    uint64_t sections, zero = 0, size = n;
    memcpy(&sections, bytes + 40, sizeof sections);
    for (int i = 4; i < 4 + 3 * MADE_KERNELS; i += 3) {
        memcpy(bytes + sections + (size_t)i * 64 + 24, &zero, sizeof zero);
        memcpy(bytes + sections + (size_t)i * 64 + 32, &size, sizeof size);
    }
    ck_assert(!reads(bytes, n));
}
END_TEST

/* ---- of NVRTC itself
 * ------------------------------------------------------------------------------ */

static const char source[] =
    "extern \"C\" __global__ void staged(float *x, const int *y, unsigned char z)\n"
    "{\n"
    "    __shared__ float s[64];\n"
    "    s[threadIdx.x] = x[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    x[threadIdx.x] += s[63 - threadIdx.x] + y[z];\n"
    "}\n"
    "extern \"C\" __global__ void spilled(float *x, int n)\n"
    "{\n"
    "    float a[100];\n"
    "    for (int i = 0; i < 100; i++)\n"
    "        a[i] = x[i * 7];\n"
    "    for (int i = 0; i < n; i++)\n"
    "        a[i * i % 100] += a[i % 100];\n"
    "    x[n] = a[n % 100];\n"
    "}\n";

static void check_known(const Cubin *c, int arch)
{
    const CubinKernel *k = cubin_kernel(c, "staged"), *s = cubin_kernel(c, "spilled");
    ck_assert_int_eq(c->arch, arch);
    ck_assert(c->n == 2 && k != NULL && s != NULL);
    ck_assert_int_eq(k->shared_bytes, 256);
    ck_assert_int_eq(k->frame_bytes + k->loads + k->stores, 0);
    ck_assert(k->registers >= 8 && k->registers <= 32);
    ck_assert_int_eq(k->n_arguments, 3);
    ck_assert(k->argument[1].offset == 8 && k->argument[2].offset == 16);
    ck_assert(k->argument[1].size == 8 && k->argument[2].size == 1);
    ck_assert_int_eq(k->argument_bytes, 17);
    ck_assert_int_eq(s->shared_bytes, 0);
    ck_assert_int_eq(s->frame_bytes, 400);
    ck_assert(s->loads > 0 && s->stores > 0);
}

/* What the reader knows of the format holds for all that this NVRTC makes. */
START_TEST(kernels_whose_content_is_known)
{
    Nvrtc n;
    NvrtcMissing no;
    if (!nvrtc_open(&n, &arena, &no)) {
        printf("skipped: cubins of NVRTC: %s\n", no.text);
        return;
    }
    for (int i = 0; i < n.n_archs; i++) {
        Cubin c;
        NvrtcResult r = nvrtc_compile(&n, source, IMAGE_CUBIN, n.arch[i], &arena);
        ck_assert_msg(r.wrong == NULL, "sm_%d: %s: %s", n.arch[i], r.wrong, r.log);
        const char *wrong = cubin_read(r.bytes, r.size, &arena, &c);
        ck_assert_msg(wrong == NULL, "sm_%d: %s", n.arch[i], wrong);
        check_known(&c, n.arch[i]);
        for (size_t cut = 0; cut < r.size; cut++)
            reads(r.bytes, cut);
        read_mutants(r.bytes, r.size, 2000);
    }
    nvrtc_close(&n);
}
END_TEST

Suite *suite_cuda_cubin(void);
Suite *suite_cuda_cubin(void)
{
    Suite *s = suite_create("cuda_cubin");
    TCase *t = tcase_create("cubins");
    tcase_add_checked_fixture(t, NULL, tear_down);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_was_made_is_read);
    tcase_add_test(t, every_cut_is_seen);
    tcase_add_test(t, mutants_do_no_harm);
    tcase_add_test(t, sections_over_one_another);
    tcase_add_test(t, kernels_whose_content_is_known);
    suite_add_tcase(s, t);
    return s;
}
