/* npy: what is taken has as many bytes as its shape says, and no more than the file. */
#include <stdint.h>
#include <stdlib.h>

#include "runtime/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    gradc_array a;
    gradc_error e;
    int64_t elems, bytes;
    int status = gradc_npy_parse("fuzz", data, n, &a, &e);
    if (status != GRADC_OK) {
        if (status != GRADC_FORMAT || a.data != NULL || e.text[0] == '\0')
            abort();
        return 0;
    }
    if (!gr_shape_size(a.dtype, a.rank, a.shape, &elems, &bytes) || elems != a.elems ||
        bytes != a.bytes || (size_t)bytes >= n)
        abort();
    gr_crc32c(0, a.data, a.bytes);
    gradc_array_free(&a);
    return 0;
}
