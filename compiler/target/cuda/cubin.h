/* What a cubin says of its kernels: registers, memory, arguments, and accesses to local memory,
 * which are spills or arrays of a thread. Read with no tool of CUDA.
 *
 * Cubins are ELF; their own sections are not documented. What stands here was found by compiling
 * kernels whose content is known, which tests/unit/cuda_cubin.c does again with the NVRTC at hand:
 *   .text.K      16 bytes an instruction, whose low 12 bits are its operation
 *   .nv.info     for each kernel, by symbol: registers and frame
 *   .nv.info.K   arguments: ordinal, offset, size
 *   .nv.shared.K as large as static shared memory is; from sm_90 on, 1 KiB that the system
 *                reserves in each block is counted, too */
#ifndef GRADC_TARGET_CUDA_CUBIN_H
#define GRADC_TARGET_CUDA_CUBIN_H

#include "../../base/arena.h"

typedef struct CubinArgument {
    int32_t offset, size; /* bytes, in the block of arguments */
} CubinArgument;

typedef struct CubinKernel {
    const char *name;
    int32_t registers;      /* of a thread */
    int32_t frame_bytes;    /* of a thread, in local memory */
    int32_t loads, stores;  /* instructions that access local memory */
    int32_t instructions;   /* with those that only fill up */
    int64_t shared_bytes;   /* static, of a block, without what the system reserves */
    int32_t n_arguments;    /* by ordinal */
    int32_t argument_bytes; /* of all */
    CubinArgument *argument;
} CubinKernel;

typedef struct Cubin {
    int arch; /* 10 * major + minor */
    int n;
    CubinKernel *kernel; /* as in the file */
} Cubin;

/* Reads a cubin, whatever it holds, into `arena`; NULL, or what is wrong with it. */
const char *cubin_read(const unsigned char *bytes, size_t size, Arena *arena, Cubin *c);
/* NULL: there is none of this name. */
const CubinKernel *cubin_kernel(const Cubin *c, const char *name);

#endif
