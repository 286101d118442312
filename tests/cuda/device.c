/* Runs the kernels of cases.c on a device, and compares each buffer with what the exact interpreter
 * has left in it, bit for bit.
 *
 *   device FOLDER       with kernels.cu, list.inc and cases.bin of cases.c; the last line is
 *                       "passed=N failed=N skipped=0"
 *
 * The set `words` among them is all that prelude.cuh has words for, over values that are hard to
 * get right: a line of words.txt is what a kernel of it has to give. NVRTC compiles for the device
 * that is there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define Text RuntimeText /* the compiler has one, too */
#include "runtime/cuda_driver.h"
#undef Text
#include "target/cuda/nvrtc.h"

enum { MAX_BUFS = 64, MAX_TEXT = 1 << 26 };

typedef struct CaseBuffer {
    int32_t dtype, each;
    int64_t elems;
    unsigned char *start, *expected, *got;
    CuPointer at;
} CaseBuffer;

typedef struct Device {
    Driver d;
    Arena arena;
    CuContext context;
    CuModule module;
    CuDevice device;
    int arch, passed, failed;
} Device;

static void must(const Device *v, CuResult r, const char *what)
{
    char words[GR_CUDA_WORDS];
    if (r == CU_OK)
        return;
    printf("FAILED: %s: %s\n", what, gr_driver_words(&v->d, r, words, sizeof words));
    exit(1);
}

static FILE *open_in(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        printf("FAILED: %s cannot be read\n", path);
        exit(3);
    }
    return f;
}

static void read_bytes(FILE *f, void *to, size_t n)
{
    if (n > 0 && fread(to, 1, n, f) != n) {
        printf("FAILED: the file ends too early\n");
        exit(3);
    }
}

/* ---- the device
 * ------------------------------------------------------------------------------------ */

static void open_device(Device *v)
{
    gradc_error e;
    int major, minor;
    if (gr_driver_open(&v->d, &e) != GRADC_OK) {
        printf("FAILED: %s\n", e.text);
        exit(1);
    }
    must(v, v->d.cuDeviceGet(&v->device, 0), "cuDeviceGet");
    must(v, v->d.cuDeviceGetAttribute(&major, CU_ATTRIBUTE_MAJOR, v->device), "major");
    must(v, v->d.cuDeviceGetAttribute(&minor, CU_ATTRIBUTE_MINOR, v->device), "minor");
    must(v, v->d.cuDevicePrimaryCtxRetain(&v->context, v->device), "context");
    must(v, v->d.cuCtxPushCurrent_v2(v->context), "cuCtxPushCurrent");
    v->arch = 10 * major + minor;
}

static void close_device(Device *v)
{
    CuContext old;
    must(v, v->d.cuModuleUnload(v->module), "cuModuleUnload");
    must(v, v->d.cuCtxPopCurrent_v2(&old), "cuCtxPopCurrent");
    must(v, v->d.cuDevicePrimaryCtxRelease_v2(v->device), "release");
    gr_driver_close(&v->d);
}

static void load_kernels(Device *v, const char *folder)
{
    Nvrtc nvrtc;
    NvrtcMissing no;
    FILE *f = open_in(folder, "kernels.cu");
    char *text = calloc(1, MAX_TEXT);
    if (text == NULL || fread(text, 1, MAX_TEXT - 1, f) == 0 ||
        !nvrtc_open(&nvrtc, &v->arena, &no)) {
        printf("FAILED: no kernels, or no NVRTC\n");
        exit(1);
    }
    fclose(f);
    NvrtcResult r = nvrtc_compile(&nvrtc, text, IMAGE_CUBIN, v->arch, &v->arena);
    if (r.wrong != NULL) {
        printf("FAILED: %s\n%s\n", r.wrong, r.log);
        exit(1);
    }
    must(v, v->d.cuModuleLoadDataEx(&v->module, r.bytes, 0, NULL, NULL), "cuModuleLoadDataEx");
    nvrtc_close(&nvrtc);
    free(text);
}

/* ---- cases
 * -------------------------------------------------------------------------------------------- */

static int read_case(FILE *f, CaseBuffer *b)
{
    int32_t n;
    read_bytes(f, &n, sizeof n);
    for (int i = 0; i < n && i < MAX_BUFS; i++) {
        read_bytes(f, &b[i].dtype, sizeof b[i].dtype);
        read_bytes(f, &b[i].each, sizeof b[i].each);
        read_bytes(f, &b[i].elems, sizeof b[i].elems);
        size_t bytes = (size_t)(b[i].elems * b[i].each);
        b[i].start = malloc(bytes + 1);
        b[i].expected = malloc(bytes + 1);
        b[i].got = malloc(bytes + 1);
        read_bytes(f, b[i].start, bytes);
        read_bytes(f, b[i].expected, bytes);
    }
    return n;
}

static bool is_nan(int32_t dtype, const unsigned char *p, int32_t bytes)
{
    uint64_t u = 0;
    memcpy(&u, p, (size_t)bytes);
    switch (dtype) {
    case GRADC_F32:
        return (u & 0x7fffffff) > 0x7f800000;
    case GRADC_F64:
        return (u & 0x7fffffffffffffff) > 0x7ff0000000000000;
    case GRADC_F16:
        return (u & 0x7fff) > 0x7c00;
    case GRADC_BF16:
        return (u & 0x7fff) > 0x7f80;
    default:
        return false;
    }
}

/* A NaN equals any other. */
static int64_t first_difference(const CaseBuffer *b)
{
    for (int64_t i = 0; i < b->elems; i++) {
        const unsigned char *x = b->got + i * b->each, *y = b->expected + i * b->each;
        bool nan = is_nan(b->dtype, x, b->each) && is_nan(b->dtype, y, b->each);
        if (memcmp(x, y, (size_t)b->each) != 0 && !nan)
            return i;
    }
    return -1;
}

static unsigned long long bits_at(const unsigned char *p, int32_t each, int64_t i)
{
    unsigned long long u = 0;
    memcpy(&u, p + i * each, (size_t)each);
    return u;
}

/* Element `at` of buffer i, and those beside it of buffers that are as long. */
static void tell(const CaseBuffer *b, int n, int i, int64_t at)
{
    printf(" buffer %d differs at %lld of %lld: %llx, not %llx;", i, (long long)at,
           (long long)b[i].elems, bits_at(b[i].got, b[i].each, at),
           bits_at(b[i].expected, b[i].each, at));
    for (int j = 0; j < n; j++)
        if (j != i && b[j].elems == b[i].elems)
            printf(" buffer %d has %llx", j, bits_at(b[j].start, b[j].each, at));
    printf("\n");
}

typedef struct Case {
    char kernel[64], name[200];
    long long blocks;
    int threads;
} Case;

static void run_case(Device *v, const Case *c, CaseBuffer *b, int n)
{
    CuFunction f;
    CuStream s;
    void *argument[MAX_BUFS];
    must(v, v->d.cuModuleGetFunction(&f, v->module, c->kernel), c->kernel);
    must(v, v->d.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (int i = 0; i < n; i++) {
        size_t bytes = (size_t)(b[i].elems * b[i].each);
        must(v, v->d.cuMemAlloc_v2(&b[i].at, bytes + 16), "cuMemAlloc");
        must(v, v->d.cuMemcpyHtoDAsync_v2(b[i].at, b[i].start, bytes, s), "to the device");
        argument[i] = &b[i].at;
    }
    if (c->blocks > 0)
        must(v,
             v->d.cuLaunchKernel(f, (unsigned)c->blocks, 1, 1, (unsigned)c->threads, 1, 1, 0, s,
                                 argument, NULL),
             c->kernel);
    bool same = true;
    for (int i = 0; i < n; i++) {
        size_t bytes = (size_t)(b[i].elems * b[i].each);
        must(v, v->d.cuMemcpyDtoHAsync_v2(b[i].got, b[i].at, bytes, s), "from the device");
        must(v, v->d.cuStreamSynchronize(s), c->kernel);
        int64_t at = first_difference(&b[i]);
        if (at >= 0 && same) {
            printf("FAILED: %s (%s):", c->kernel, c->name);
            tell(b, n, i, at);
        }
        same &= at < 0;
        must(v, v->d.cuMemFree_v2(b[i].at), "cuMemFree");
    }
    must(v, v->d.cuStreamDestroy_v2(s), "cuStreamDestroy");
    same ? v->passed++ : v->failed++;
}

static void free_case(CaseBuffer *b, int n)
{
    for (int i = 0; i < n; i++) {
        free(b[i].start);
        free(b[i].expected);
        free(b[i].got);
    }
}

int main(int argc, char **argv)
{
    Device v = {0};
    Case c;
    char line[512];
    if (argc != 2)
        return 2;
    open_device(&v);
    load_kernels(&v, argv[1]);
    FILE *list = open_in(argv[1], "list.inc"), *cases = open_in(argv[1], "cases.bin");
    while (fgets(line, sizeof line, list) != NULL) {
        CaseBuffer b[MAX_BUFS] = {{0}};
        if (sscanf(line, "CASE(%63[^,], \"%199[^\"]\", %lld, %d)", c.kernel, c.name, &c.blocks,
                   &c.threads) != 4)
            continue;
        int n = read_case(cases, b);
        run_case(&v, &c, b, n);
        free_case(b, n);
    }
    fclose(list);
    fclose(cases);
    close_device(&v);
    arena_free(&v.arena);
    printf("passed=%d failed=%d skipped=0\n", v.passed, v.failed);
    return v.failed != 0;
}
