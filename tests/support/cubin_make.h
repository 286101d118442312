/* Cubins as NVRTC's are, with no NVRTC: for tests of who reads them. */
#ifndef TESTS_SUPPORT_CUBIN_MAKE_H
#define TESTS_SUPPORT_CUBIN_MAKE_H

#include <stddef.h>

typedef struct MadeKernel {
    const char *name;
    unsigned registers, frame_bytes, shared_bytes;
    unsigned n_arguments;           /* pointers */
    unsigned loads, stores, beside; /* instructions: of local memory, others */
} MadeKernel;

enum { MADE_BYTES = 1 << 18, MADE_KERNELS = 320 };

/* Writes it to `to`, of MADE_BYTES; gives its size. */
size_t make_cubin(int arch, const MadeKernel *k, int n, unsigned char *to);

#endif
