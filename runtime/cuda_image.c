/* Choosing and loading images. */
#include "cuda_state.h"

#include <string.h>

enum { LOG_BYTES = 512 };

/* The image of the program that fits the device best: a cubin of its major version, the newest that
 * is not newer than the device; else PTX. */
static const gradc_cuda_image *choose(const State *s, int32_t program)
{
    const gradc_cuda_image *best = NULL;
    int arch = s->gpu->about.arch;
    for (int64_t i = 0; i < s->p->images; i++) {
        const gradc_cuda_image *x = &s->p->image[i];
        bool cubin = x->kind == GRADC_CUDA_CUBIN;
        if (x->program != program || x->arch > arch || (cubin && x->arch / 10 != arch / 10))
            continue;
        bool better = best == NULL || (cubin && best->kind != GRADC_CUDA_CUBIN) ||
                      (x->kind == best->kind && x->arch > best->arch);
        best = better ? x : best;
    }
    return best;
}

static int refuse_arch(State *s)
{
    const gradc_cuda_device *d = &s->gpu->about;
    return gr_cuda_say(
        s->g, GRADC_NO_GPU,
        "%s has code for %s, and device %d (%s) is sm_%d: `gradc build --arch sm_%d` "
        "makes some for it",
        s->p->ident, s->p->model->target, d->device, d->name, d->arch, d->arch);
}

/* PTX of a newer version than the driver's is refused, cubins only of a newer major one. */
static int check_driver(State *s, const gradc_cuda_image *x)
{
    int have = s->gpu->about.driver, need = s->p->driver;
    if (x->kind == GRADC_CUDA_CUBIN ? have / 1000 >= need / 1000 : have >= need)
        return GRADC_OK;
    return gr_cuda_say(
        s->g, GRADC_NO_GPU,
        "%s needs a driver for CUDA %d.%d; this one is for CUDA %d.%d (device %d, %s)", s->p->ident,
        need / 1000, need % 1000 / 10, have / 1000, have % 1000 / 10, s->gpu->about.device,
        s->gpu->about.name);
}

static int load_one(State *s, int32_t program)
{
    const gradc_cuda_image *x = choose(s, program);
    if (x == NULL)
        return refuse_arch(s);
    int status = check_driver(s, x);
    if (status != GRADC_OK)
        return status;
    char log[LOG_BYTES] = "", what[LOG_BYTES + 64];
    int option[] = {CU_JIT_LOG, CU_JIT_LOG_BYTES};
    void *value[] = {log, (void *)(uintptr_t)sizeof log};
    CuResult r = s->gpu->driver.cuModuleLoadDataEx(&s->module[program], x->bytes, 2, option, value);
    log[sizeof log - 1] = 0;
    log[strcspn(log, "\n")] = 0;
    snprintf(what, sizeof what, "cuModuleLoadDataEx of %s_%d%s%s",
             x->kind == GRADC_CUDA_CUBIN ? "sm" : "compute", x->arch, log[0] != 0 ? ": " : "", log);
    return gr_cuda_given(s, r, &s->module[program], sizeof s->module[program], what);
}

static int find_functions(State *s)
{
    int32_t most = 0;
    for (int64_t i = 0; i < s->p->kernels; i++) {
        const gradc_cuda_kernel *k = &s->p->kernel[i];
        most = k->args > most ? k->args : most;
        if (k->blocks == 0 || k->program < 0)
            continue;
        int status =
            CU_NEW(s, cuModuleGetFunction, &s->function[i], s->module[k->program], k->name);
        if (status != GRADC_OK)
            return status;
    }
    s->value = gr_new(most + 1, sizeof *s->value);
    s->argument = gr_new(most + 1, sizeof *s->argument);
    if (s->value == NULL || s->argument == NULL)
        return gr_cuda_say(s->g, GRADC_MEMORY, "no memory for the arguments of kernels");
    for (int32_t i = 0; i < most; i++)
        s->argument[i] = &s->value[i];
    return GRADC_OK;
}

int gr_cuda_load(State *s)
{
    s->module = gr_new(s->p->programs + 1, sizeof *s->module);
    s->function = gr_new(s->p->kernels + 1, sizeof *s->function);
    if (s->module == NULL || s->function == NULL)
        return gr_cuda_say(s->g, GRADC_MEMORY, "no memory for the table of kernels");
    for (int32_t i = 0; i < s->p->programs; i++) {
        int status = load_one(s, i);
        if (status != GRADC_OK)
            return status;
    }
    return find_functions(s);
}

void gr_cuda_unload(State *s)
{
    for (int64_t i = 0; s->module != NULL && i < s->p->programs; i++)
        if (s->module[i] != NULL)
            s->gpu->driver.cuModuleUnload(s->module[i]);
}
