/* A model's object for CPUs and that for GPUs, on the mock driver, side by side: STEPS training
 * steps on the same random inputs, some of them with fewer rows and some of them queued, if it
 * trains, then the gradients and what the model makes of inputs. Every loss, every tensor and every
 * output has the same bits; a NaN equals any other, as IEEE 754 leaves its sign and payload open.
 *
 *   same            the last line is "passed=N failed=N skipped=0"
 *
 * NAME is the model's; it is linked with NAME.o and NAME.cuda.o. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gradc.h"

#define GLUE(a, b)  a##b
#define GLUE2(a, b) GLUE(a, b)
extern const gradc_model GLUE2(NAME, _model), GLUE2(NAME, _cuda_model);

#ifndef STEPS
#define STEPS 20
#endif
enum { MOST = 64 };

typedef struct Side {
    const gradc_model *m;
    void *memory, *g;
    gradc_block *out; /* all of them */
} Side;

static int passed, failed;

static void expect(bool ok, const char *what, int step)
{
    if (ok) {
        passed++;
        return;
    }
    failed++;
    printf("FAILED: %s, step %d\n", what, step);
}

static void must(int status, const Side *s, const char *what)
{
    if (status == GRADC_OK)
        return;
    printf("FAILED: %s of %s: %d: %s\n", what, s->m->target, status,
           s->m->error(s->g != NULL ? s->g : s->memory));
    exit(1);
}

/* Both calls did what they are for; or neither, as the loss is not finite on either side. */
static bool agree(const Side *cpu, int x, const Side *gpu, int y, const char *what, int step)
{
    if (x == GRADC_NONFINITE) {
        expect(y == x, what, step);
        return false;
    }
    must(x, cpu, what);
    must(y, gpu, what);
    return true;
}

static gradc_block *block_of(const gradc_tensor *t, int32_t n)
{
    gradc_block *b = calloc(1, sizeof *b + sizeof(void *) * (size_t)n);
    for (int32_t i = 0; i < n; i++)
        b->data[i] = gradc_alloc(t[i].bytes, 64);
    return b;
}

static void open_side(Side *s, const gradc_model *m, const gradc_cuda *gpu)
{
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 11};
    gradc_cuda_use(gpu, &o);
    *s = (Side){.m = m, .memory = gradc_alloc(m->arena_bytes, m->arena_align)};
    must(m->init(s->memory, (size_t)m->arena_bytes, &o, &s->g), s, "init");
    s->out = block_of(m->outputs, m->n_outputs);
}

static void close_side(Side *s)
{
    if (s->m->close != NULL)
        must(s->m->close(s->g), s, "close");
    for (int32_t i = 0; i < s->m->n_outputs; i++)
        gradc_free(s->out->data[i]);
    free(s->out);
    gradc_free(s->memory);
}

/* ---- inputs -------------------------------------------------------------------------------------
 */

static uint64_t state = 1;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static void fill(const gradc_tensor *t, void *data)
{
    for (int64_t i = 0; i < t->elems; i++) {
        int64_t k = t->hi > t->lo ? t->lo + (int64_t)(draw() % (uint64_t)(t->hi - t->lo)) : 0;
        float f = (float)draw() / 2147483648.0f - 0.5f;
        double d = f;
        uint16_t bits = 0x3c00; /* of the halves, one number will do */
        switch (t->dtype) {
        case GRADC_F32:
            memcpy((char *)data + 4 * i, &f, 4);
            break;
        case GRADC_F64:
            memcpy((char *)data + 8 * i, &d, 8);
            break;
        case GRADC_I32:
            memcpy((char *)data + 4 * i, &k, 4);
            break;
        case GRADC_I64:
            memcpy((char *)data + 8 * i, &k, 8);
            break;
        case GRADC_U8:
        case GRADC_BOOL:
            ((char *)data)[i] = (char)(draw() & 1);
            break;
        default:
            memcpy((char *)data + 2 * i, &bits, 2);
        }
    }
}

/* ---- comparing
 * -------------------------------------------------------------------------------------- */

static bool is_nan(int32_t dtype, const char *p)
{
    uint16_t half;
    float f;
    double d;
    switch (dtype) {
    case GRADC_F32:
        memcpy(&f, p, sizeof f);
        return f != f;
    case GRADC_F64:
        memcpy(&d, p, sizeof d);
        return d != d;
    case GRADC_F16:
    case GRADC_BF16:
        memcpy(&half, p, sizeof half);
        return (half & 0x7fff) > (dtype == GRADC_F16 ? 0x7c00 : 0x7f80);
    default:
        return false;
    }
}

static bool same(const gradc_tensor *t, const char *x, const char *y, int64_t bytes)
{
    int64_t each = t->elems > 0 ? t->bytes / t->elems : 1;
    for (int64_t i = 0; i < bytes; i += each)
        if (memcmp(x + i, y + i, (size_t)each) != 0 &&
            !(is_nan(t->dtype, x + i) && is_nan(t->dtype, y + i)))
            return false;
    return true;
}

static void compare_tensors(const Side *cpu, const Side *gpu, bool gradients, int step)
{
    for (int32_t i = 0; i < cpu->m->n_tensors; i++) {
        const gradc_tensor *t = &cpu->m->tensors[i];
        if ((t->role == GRADC_GRADIENT) != gradients)
            continue;
        void *x = gradc_alloc(t->bytes, 64), *y = gradc_alloc(t->bytes, 64);
        must(cpu->m->read(cpu->g, i, x, (size_t)t->bytes), cpu, "read");
        must(gpu->m->read(gpu->g, i, y, (size_t)t->bytes), gpu, "read");
        expect(same(t, x, y, t->bytes), t->name, step);
        gradc_free(x);
        gradc_free(y);
    }
}

static void compare_outputs(const Side *cpu, const Side *gpu, int64_t rows, int step)
{
    for (int32_t i = 0; i < cpu->m->n_outputs; i++) {
        const gradc_tensor *t = &cpu->m->outputs[i];
        int64_t n = t->bytes;
        int64_t batch = cpu->m->batch_rows;
        bool batched = t->rank > 0 && t->shape[0] > 0 && batch > 0 && t->shape[0] % batch == 0;
        if (batched && rows > 0) /* beyond the valid rows nothing is said */
            n = n / t->shape[0] * rows;
        expect(same(t, cpu->out->data[i], gpu->out->data[i], n), t->name, step);
    }
}

/* ---- training
 * ------------------------------------------------------------------------------------------ */

static gradc_block *only_loss(const Side *s, void *loss)
{
    static gradc_block *b;
    b = b != NULL ? b : calloc(1, sizeof *b + sizeof(void *) * MOST);
    for (int32_t i = 0; i < s->m->n_outputs && i < MOST; i++)
        b->data[i] = s->m->outputs[i].role == GRADC_LOSS ? loss : NULL;
    return b;
}

/* Every third step is queued; every fifth has a row less. */
static void train(Side *cpu, Side *gpu, gradc_block *in)
{
    double a = 0, b = 0;
    for (int s = 0; s < STEPS; s++) {
        for (int32_t i = 0; i < cpu->m->n_inputs; i++)
            fill(&cpu->m->inputs[i], in->data[i]);
        int64_t full = cpu->m->batch_rows * cpu->m->accumulate;
        in->rows = s % 5 == 4 && full > 1 ? full - 1 : 0;
        int status = cpu->m->step(cpu->g, in, only_loss(cpu, &a));
        if (status == GRADC_BAD_ARGUMENT && in->rows > 0) { /* it takes no partial batch */
            expect(gpu->m->step(gpu->g, in, only_loss(gpu, &b)) == status, "the same refusal", s);
            in->rows = 0;
            status = cpu->m->step(cpu->g, in, only_loss(cpu, &a));
        }
        int got = gpu->m->step(gpu->g, in, s % 3 == 1 ? NULL : only_loss(gpu, &b));
        if (s % 3 == 1 && got == GRADC_OK)
            got = gpu->m->wait(gpu->g, &b);
        if (agree(cpu, status, gpu, got, "step", s))
            expect(memcmp(&a, &b, sizeof a) == 0, "loss", s);
    }
    float f;
    memcpy(&f, &a, sizeof f);
    printf("%s: %s, %lld bytes on the device, loss after %d steps %.9g\n", cpu->m->name,
           gpu->m->target, (long long)gpu->m->device_bytes, STEPS, f);
}

/* Where the driver is the mock: so many calls have been made. */
static void check_counts(int calls)
{
    const char *path = getenv("GRADC_LIBCUDA");
    void (*counts)(long *, long *, long *);
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    void *at = dlsym(library, "mock_counts");
    if (at == NULL) {
        dlclose(library);
        return;
    }
    long bytes, launches, graphs;
    memcpy(&counts, &at, sizeof at);
    counts(&bytes, &launches, &graphs);
    expect(bytes == GLUE2(NAME, _cuda_model).device_bytes, "planned bytes are those allocated", 0);
    expect(graphs == calls, "a call is one graph", 0);
    dlclose(library);
}

int main(void)
{
    Side cpu, gpu;
    gradc_cuda *device;
    gradc_error e;
    if (gradc_cuda_open(NULL, &device, &e) != GRADC_OK) {
        printf("FAILED: %s\n", e.text);
        return 1;
    }
    open_side(&cpu, &GLUE2(NAME, _model), NULL);
    open_side(&gpu, &GLUE2(NAME, _cuda_model), device);
    gradc_block *in = block_of(cpu.m->inputs, cpu.m->n_inputs);
    bool trains = cpu.m->step != NULL;
    if (trains)
        train(&cpu, &gpu, in);
    for (int32_t i = 0; i < cpu.m->n_inputs && !trains; i++)
        fill(&cpu.m->inputs[i], in->data[i]);
    compare_tensors(&cpu, &gpu, false, STEPS);
    if (cpu.m->grad != NULL) {
        int x = cpu.m->grad(cpu.g, in, cpu.out), y = gpu.m->grad(gpu.g, in, gpu.out);
        if (agree(&cpu, x, &gpu, y, "grad", STEPS)) {
            compare_outputs(&cpu, &gpu, in->rows, STEPS);
            compare_tensors(&cpu, &gpu, true, STEPS);
        }
    }
    in->rows = 0;
    int x = cpu.m->eval(cpu.g, in, cpu.out), y = gpu.m->eval(gpu.g, in, gpu.out);
    if (agree(&cpu, x, &gpu, y, "eval", STEPS))
        compare_outputs(&cpu, &gpu, 0, STEPS);
    check_counts((trains ? STEPS : 0) + (cpu.m->grad != NULL) + 1);
    for (int32_t i = 0; i < cpu.m->n_inputs; i++)
        gradc_free(in->data[i]);
    free(in);
    close_side(&cpu);
    close_side(&gpu);
    gradc_cuda_close(device);
    printf("passed=%d failed=%d skipped=0\n", passed, failed);
    return failed != 0;
}
