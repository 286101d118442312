/* A GPU: the driver, one of its devices, and the functions that objects call. */
#include <stdlib.h>
#include <string.h>

#include "cuda_state.h"

enum { MOST_MAJOR = 999 };

static int read_device(Gpu *u, int32_t device, gradc_error *e)
{
    const Driver *d = &u->driver;
    gradc_cuda_device *a = &u->about;
    char words[GR_CUDA_WORDS];
    int count = 0, major = 0, minor = 0;
    size_t bytes = 0;
    a->driver = d->version;
    CuResult r = d->cuDeviceGetCount(&count);
    a->devices = count;
    if (r == CU_OK && (device < 0 || device >= count))
        return gr_fail(e, GRADC_NO_GPU, "there is no device %d: the driver (CUDA %d.%d) has %d",
                       (int)device, d->version / 1000, d->version % 1000 / 10, count);
    if (r == CU_OK)
        r = d->cuDeviceGet(&u->device, device);
    if (r == CU_OK)
        r = d->cuDeviceGetName(a->name, sizeof a->name, u->device);
    if (r == CU_OK)
        r = d->cuDeviceGetAttribute(&major, CU_ATTRIBUTE_MAJOR, u->device);
    if (r == CU_OK)
        r = d->cuDeviceGetAttribute(&minor, CU_ATTRIBUTE_MINOR, u->device);
    if (r == CU_OK)
        r = d->cuDeviceTotalMem_v2(&bytes, u->device);
    if (r != CU_OK)
        return gr_fail(e, GRADC_NO_GPU, "device %d can't be asked: %s; driver for CUDA %d.%d",
                       (int)device, gr_driver_words(d, r, words, sizeof words), d->version / 1000,
                       d->version % 1000 / 10);
    a->name[sizeof a->name - 1] = 0;
    if (major < 1 || major > MOST_MAJOR || minor < 0 || minor > 9 || bytes > INT64_MAX)
        return gr_fail(e, GRADC_NO_GPU,
                       "device %d (%s) is of compute capability %d.%d, with %zu bytes: this is no "
                       "driver of CUDA",
                       (int)device, a->name, major, minor, bytes);
    a->device = device;
    a->arch = 10 * major + minor;
    a->memory_bytes = (int64_t)bytes;
    return GRADC_OK;
}

static bool is_plain(void)
{
    const char *s = getenv("GRADC_CUDA_SYNC");
    return s != NULL && strcmp(s, "1") == 0;
}

static int open_gpu(Gpu *u, const gradc_cuda_options *o, gradc_error *e)
{
    int status = gr_driver_open(&u->driver, e);
    if (status != GRADC_OK)
        return status;
    status = read_device(u, o != NULL ? o->device : 0, e);
    if (status != GRADC_OK) {
        gr_driver_close(&u->driver);
        return status;
    }
    u->stream = o != NULL ? (CuStream)o->stream : NULL;
    u->plain = is_plain();
    u->calls = (gradc_cuda){.struct_size = sizeof u->calls,
                            .tables = GRADC_CUDA_TABLES,
                            .device = u->about.device,
                            .context = u,
                            .init = gr_cuda_init,
                            .call = gr_cuda_call,
                            .wait = gr_cuda_wait,
                            .read = gr_cuda_read,
                            .write = gr_cuda_write,
                            .set = gr_cuda_set,
                            .close = gr_cuda_close};
    return GRADC_OK;
}

int gradc_cuda_open(const gradc_cuda_options *options, gradc_cuda **out, gradc_error *e)
{
    if (out == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "there is no place for the GPU");
    *out = NULL;
    if (options != NULL) {
        int status = gr_check_size(options->struct_size, sizeof *options, "gradc_cuda_options", e);
        if (status != GRADC_OK)
            return status;
    }
    Gpu *u = gr_new(1, sizeof *u);
    if (u == NULL)
        return gr_fail_memory(e, "a GPU", (int64_t)sizeof *u);
    int status = open_gpu(u, options, e);
    if (status != GRADC_OK) {
        gr_free(u);
        return status;
    }
    *out = &u->calls;
    return gr_ok(e);
}

void gradc_cuda_close(gradc_cuda *gpu)
{
    Gpu *u = (Gpu *)(void *)gpu;
    if (u == NULL)
        return;
    gr_driver_close(&u->driver);
    gr_free(u);
}

void gradc_cuda_use(const gradc_cuda *gpu, gradc_options *o)
{
    if (o != NULL)
        o->cuda = gpu;
}

void gradc_cuda_watch(gradc_cuda *gpu, gradc_cuda_lap lap, void *of)
{
    Gpu *u = (Gpu *)(void *)gpu;
    if (u != NULL) {
        u->lap = lap;
        u->lap_of = of;
    }
}

void gradc_cuda_about(const gradc_cuda *gpu, gradc_cuda_device *about)
{
    if (about != NULL)
        *about = gpu != NULL ? ((const Gpu *)(const void *)gpu)->about : (gradc_cuda_device){0};
}
