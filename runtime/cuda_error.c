/* What failed, in words that name the driver, the device and what is needed. */
#include <stdarg.h>
#include <string.h>

#include "cuda_state.h"

int gr_cuda_say(gradc_cuda_handle *g, int status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(g->text, sizeof g->text, format, ap);
    va_end(ap);
    g->says = NULL;
    return status;
}

static int status_of(CuResult r)
{
    switch (r) {
    case CU_OUT_OF_MEMORY:
        return GRADC_MEMORY;
    case CU_NO_DEVICE:
    case CU_NO_BINARY:
    case CU_UNSUPPORTED_PTX:
        return GRADC_NO_GPU;
    default:
        return GRADC_DEVICE;
    }
}

int gr_cuda_given(State *s, CuResult r, const void *gift, size_t size, const char *what)
{
    static const unsigned char nothing[sizeof(CuPointer)]; /* the largest */
    if (r != CU_OK || memcmp(gift, nothing, size) != 0)
        return gr_cuda_check(s, r, what);
    char words[GR_CUDA_WORDS];
    snprintf(words, sizeof words, "%.200s: it succeeded and gave nothing", what);
    return gr_cuda_check(s, CU_UNKNOWN, words);
}

int gr_cuda_check(State *s, CuResult r, const char *what)
{
    if (r == CU_OK)
        return GRADC_OK;
    if (s->lost) /* the first failure is the one to tell of */
        return s->lost_status;
    char words[GR_CUDA_WORDS];
    const gradc_cuda_device *d = &s->gpu->about;
    int needs = s->p->driver > CU_LEAST_DRIVER ? s->p->driver : CU_LEAST_DRIVER;
    s->lost = true;
    s->lost_status = status_of(r);
    return gr_cuda_say(s->g, s->lost_status,
                       "%s: %s; device %d (%s, sm_%d), driver for CUDA %d.%d, gradc %s; %s needs "
                       "a driver for CUDA %d.%d",
                       what, gr_driver_words(&s->gpu->driver, r, words, sizeof words), d->device,
                       d->name, d->arch, d->driver / 1000, d->driver % 1000 / 10, GRADC_VERSION,
                       s->p->ident, needs / 1000, needs % 1000 / 10);
}
