/* cuda_driver.h: the functions of NVIDIA's driver that the runtime uses, found when it runs.
 *
 * The library is $GRADC_LIBCUDA, else libcuda.so.1; never libcuda.so, which may be a toolkit's
 * stub. Declarations are our own; a name with _v2 or _v3 is what cuda.h has of that name since that
 * version. source: CUDA Driver API reference manual. */
#ifndef GRADC_CUDA_DRIVER_H
#define GRADC_CUDA_DRIVER_H

#include "internal.h"

typedef int CuResult;
typedef int CuDevice;
typedef uint64_t CuPointer; /* on the device */
typedef struct CuContext_ *CuContext;
typedef struct CuModule_ *CuModule;
typedef struct CuFunction_ *CuFunction;
typedef struct CuStream_ *CuStream;
typedef struct CuEvent_ *CuEvent;
typedef struct CuGraph_ *CuGraph;
typedef struct CuGraphExec_ *CuGraphExec;

enum {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NO_DEVICE = 100,
    CU_MISALIGNED = 716,
    CU_NO_BINARY = 209,
    CU_UNSUPPORTED_PTX = 222,
    CU_ATTRIBUTE_MAJOR = 75, /* of a device: its compute capability */
    CU_ATTRIBUTE_MINOR = 76,
    CU_UNKNOWN = 999,
    CU_POINTER_MEMORY_TYPE = 2,
    CU_MEMORY_OF_DEVICE = 2,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_TIMING = 0,
    CU_EVENT_NO_TIMING = 2,
    CU_CAPTURE_THREAD = 1, /* other threads may do as they like meanwhile */
    CU_HOST_PORTABLE = 1,
    CU_JIT_LOG = 5, /* of errors; then its size */
    CU_JIT_LOG_BYTES = 6
};

/* The oldest driver that has all of them: CUDA 11.4. */
enum { CU_LEAST_DRIVER = 11040 };

#define CU_FUNCTIONS(F)                                                                            \
    F(cuInit, (unsigned flags))                                                                    \
    F(cuDriverGetVersion, (int *version))                                                          \
    F(cuGetErrorName, (CuResult r, const char **name))                                             \
    F(cuGetErrorString, (CuResult r, const char **text))                                           \
    F(cuDeviceGetCount, (int *n))                                                                  \
    F(cuDeviceGet, (CuDevice * d, int ordinal))                                                    \
    F(cuDeviceGetName, (char *name, int room, CuDevice d))                                         \
    F(cuDeviceGetAttribute, (int *value, int attribute, CuDevice d))                               \
    F(cuDeviceTotalMem_v2, (size_t * bytes, CuDevice d))                                           \
    F(cuDevicePrimaryCtxRetain, (CuContext * c, CuDevice d))                                       \
    F(cuDevicePrimaryCtxRelease_v2, (CuDevice d))                                                  \
    F(cuCtxPushCurrent_v2, (CuContext c))                                                          \
    F(cuCtxPopCurrent_v2, (CuContext * c))                                                         \
    F(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total))                                      \
    F(cuMemAlloc_v2, (CuPointer * p, size_t bytes))                                                \
    F(cuMemFree_v2, (CuPointer p))                                                                 \
    F(cuMemHostAlloc, (void **p, size_t bytes, unsigned flags))                                    \
    F(cuMemFreeHost, (void *p))                                                                    \
    F(cuMemcpyHtoDAsync_v2, (CuPointer to, const void *from, size_t n, CuStream s))                \
    F(cuMemcpyDtoHAsync_v2, (void *to, CuPointer from, size_t n, CuStream s))                      \
    F(cuMemcpyDtoDAsync_v2, (CuPointer to, CuPointer from, size_t n, CuStream s))                  \
    F(cuMemsetD8Async, (CuPointer to, unsigned char x, size_t n, CuStream s))                      \
    F(cuMemsetD32Async, (CuPointer to, unsigned x, size_t n, CuStream s))                          \
    F(cuPointerGetAttribute, (void *value, int attribute, CuPointer p))                            \
    F(cuModuleLoadDataEx,                                                                          \
      (CuModule * m, const void *image, unsigned n, int *options, void **values))                  \
    F(cuModuleUnload, (CuModule m))                                                                \
    F(cuModuleGetFunction, (CuFunction * f, CuModule m, const char *name))                         \
    F(cuLaunchKernel,                                                                              \
      (CuFunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
       unsigned shared, CuStream s, void **arguments, void **extra))                               \
    F(cuStreamCreate, (CuStream * s, unsigned flags))                                              \
    F(cuStreamDestroy_v2, (CuStream s))                                                            \
    F(cuStreamSynchronize, (CuStream s))                                                           \
    F(cuStreamBeginCapture_v2, (CuStream s, int mode))                                             \
    F(cuStreamEndCapture, (CuStream s, CuGraph * g))                                               \
    F(cuGraphInstantiateWithFlags, (CuGraphExec * e, CuGraph g, unsigned long long flags))         \
    F(cuGraphLaunch, (CuGraphExec e, CuStream s))                                                  \
    F(cuGraphDestroy, (CuGraph g))                                                                 \
    F(cuGraphExecDestroy, (CuGraphExec e))                                                         \
    F(cuEventCreate, (CuEvent * e, unsigned flags))                                                \
    F(cuEventRecord, (CuEvent e, CuStream s))                                                      \
    F(cuEventSynchronize, (CuEvent e))                                                             \
    F(cuEventElapsedTime, (float *ms, CuEvent from, CuEvent to))                                   \
    F(cuEventDestroy_v2, (CuEvent e))

typedef struct Driver {
    void *library;
    const char *path;
    int version; /* of CUDA: 13000 */
#define F(name, arguments) CuResult(*name) arguments;
    CU_FUNCTIONS(F)
#undef F
} Driver;

/* fails: GRADC_NO_GPU: there is no such library, it lacks a function, or it is too old. */
int gr_driver_open(Driver *d, gradc_error *e);
void gr_driver_close(Driver *d);

/* "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700)" */
enum { GR_CUDA_WORDS = 256 };
char *gr_driver_words(const Driver *d, CuResult r, char *out, size_t room);

#endif
