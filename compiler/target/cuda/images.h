/* What a Program's kernels are compiled to: cubins, and PTX for devices that are newer.
 *
 * Kernels are put into programs of NVRTC's, some of them each, as a program costs about 30 ms
 * whatever is in it. Each program is compiled for each architecture by itself: several threads
 * compile at once, and what has not changed comes from the cache. Names, launches and text do not
 * depend on how kernels are put together. */
#ifndef GRADC_TARGET_CUDA_IMAGES_H
#define GRADC_TARGET_CUDA_IMAGES_H

#include "cuda.h"

typedef enum ImageKind { IMAGE_CUBIN, IMAGE_PTX } ImageKind;

/* One program for one architecture. A cubin is for devices of its major version from its minor one
 * on; PTX, which the driver compiles, for all devices that are not older. PTX ends with a zero
 * byte, which `size` counts. */
typedef struct CudaImage {
    ImageKind kind;
    int arch; /* compute capability: 10 * major + minor */
    int program;
    const unsigned char *bytes;
    size_t size;
} CudaImage;

typedef struct CudaImages {
    CudaImage *items; /* by program, then as in --arch */
    int n;
    int n_programs;
    int driver; /* the oldest version of CUDA whose driver takes them: 1000 * major + 10 * minor */
    int32_t *program_of_kernel; /* by index into Program.kernel; -1: nothing is to be launched */
    const char **name;          /* likewise: what the kernel is called in its images */
    Launch *launch;
    bool *guarded;             /* the pointer to a flag (u8) is its last argument */
    const char *log;           /* what NVRTC said of those that it compiled; "": nothing */
    int32_t n_parts, n_cached; /* images compiled by themselves; of these, from the cache */
} CudaImages;

/* Compiles p's kernels for each architecture of `o`, on o->jobs threads, with the cache o->cache.
 * Arguments of a kernel: a pointer for each buffer that is not LOCAL, in their order, then that of
 * `guarded`. Images are in `arena`; their bytes do not depend on jobs or cache.
 * fails: false, after one report: NVRTC is missing (E0703), too old, or has not what is needed
 * (E0704), is not for an architecture (E0705), or refuses the text (E0706). */
bool cuda_compile(Ctx *cx, const Program *p, const TargetOptions *o, Arena *arena, CudaImages *out);

#endif
