/* Finding the driver. */
#include "cuda_driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char *library_path(void)
{
    const char *path = getenv("GRADC_LIBCUDA");
    return path != NULL && *path != 0 ? path : "libcuda.so.1";
}

/* Data as a function: ISO C has no cast for it. */
static bool find(void *library, const char *name, void *to)
{
    void *at = dlsym(library, name);
    memcpy(to, &at, sizeof at);
    return at != NULL;
}

static const char *missing_function(Driver *d)
{
#define F(name, arguments)                                                                         \
    if (!find(d->library, #name, &d->name))                                                        \
        return #name;
    CU_FUNCTIONS(F)
#undef F
    return NULL;
}

static int start(Driver *d, gradc_error *e)
{
    char words[GR_CUDA_WORDS];
    const char *missing = missing_function(d);
    if (missing != NULL)
        return gr_fail(
            e, GRADC_NO_GPU, "%s has no %s: it is too old, gradc %s needs a driver for CUDA %d.%d",
            d->path, missing, GRADC_VERSION, CU_LEAST_DRIVER / 1000, CU_LEAST_DRIVER % 1000 / 10);
    CuResult r = d->cuInit(0);
    if (r == CU_OK)
        r = d->cuDriverGetVersion(&d->version);
    if (r != CU_OK)
        return gr_fail(e, GRADC_NO_GPU, "%s does not start: %s", d->path,
                       gr_driver_words(d, r, words, sizeof words));
    if (d->version < CU_LEAST_DRIVER)
        return gr_fail(e, GRADC_NO_GPU,
                       "the driver is for CUDA %d.%d, and gradc %s needs one for CUDA %d.%d",
                       d->version / 1000, d->version % 1000 / 10, GRADC_VERSION,
                       CU_LEAST_DRIVER / 1000, CU_LEAST_DRIVER % 1000 / 10);
    return GRADC_OK;
}

int gr_driver_open(Driver *d, gradc_error *e)
{
    *d = (Driver){.path = library_path()};
    d->library = dlopen(d->path, RTLD_NOW | RTLD_LOCAL);
    if (d->library == NULL) {
        const char *why = dlerror();
        return gr_fail(e, GRADC_NO_GPU, "there is no CUDA driver: %s",
                       why != NULL ? why : "it can't be loaded");
    }
    int status = start(d, e);
    if (status != GRADC_OK)
        gr_driver_close(d);
    return status;
}

void gr_driver_close(Driver *d)
{
    if (d->library != NULL)
        dlclose(d->library);
    *d = (Driver){0};
}

char *gr_driver_words(const Driver *d, CuResult r, char *out, size_t room)
{
    const char *name = NULL, *text = NULL;
    if (d->cuGetErrorName(r, &name) != CU_OK || name == NULL)
        name = "an error without a name";
    if (d->cuGetErrorString(r, &text) != CU_OK || text == NULL)
        text = "the driver does not say why";
    snprintf(out, room, "%s (%s, %d)", text, name, r);
    return out;
}
