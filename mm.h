/* mm.h: written by gradc 0.1.0. Model hash 45ed3cc021385a71deca0fe1ece03fabff465b4f6e19f6e0953fa94bbb20ad0a. */
#ifndef MM_GRADC_H
#define MM_GRADC_H

/* The binary interface between an emitted object, its caller and libgradc.
 *
 * This text is part of every header that gradc writes (the guard makes several
 * such headers agree in one program) and of <gradc.h>. It is C99 and C++.
 * Structures grow at the end only; `struct_size` or `abi` says how much of one
 * is there. A model is used through its typed header (NAME_step ...) or, as
 * libgradc does with any model, through the table `gradc_model`. */
#ifndef GRADC_ABI_H
#define GRADC_ABI_H
#define GRADC_ABI 1

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. Zero is success; NAME_error(g) gives the sentence. */
enum {
    GRADC_OK = 0,
    GRADC_BAD_ARGUMENT = 1, /* NULL, wrong index, wrong size; nothing was written */
    GRADC_BAD_ABI = 2,      /* header, object and library are of different versions */
    GRADC_TOO_SMALL = 3,    /* the block holds fewer than NAME_arena_bytes() bytes */
    GRADC_MISALIGNED = 4,   /* the block is not aligned to NAME_arena_align() */
    GRADC_CPU = 5,          /* this processor lacks an instruction set of the object */
    GRADC_RANGE = 6,        /* an integer input lies outside its declared range */
    GRADC_NONFINITE = 7,    /* NaN or infinity in loss or gradients: nothing changed */
    GRADC_BAD_STATE = 8,    /* calls out of order, or the handle is in use */
    GRADC_IO = 9,           /* a file operation failed */
    GRADC_FORMAT = 10,      /* a file is not what it should be */
    GRADC_MEMORY = 11,      /* no memory */
    GRADC_MISMATCH = 12,    /* a file and a model disagree: names, shapes, hash */
    GRADC_OFFLOAD = 13,     /* offloaded values: no place for them, or a transfer failed and
                               nothing was changed */
    GRADC_NO_GPU = 14,      /* no driver or too old a one, no device, or no code for it */
    GRADC_DEVICE = 15       /* the device or its driver failed: this handle can only be closed */
};

enum { GRADC_F32, GRADC_F64, GRADC_F16, GRADC_BF16, GRADC_I32, GRADC_I64, GRADC_U8, GRADC_BOOL };

enum {
    GRADC_PARAM,     /* trained (or frozen) parameter */
    GRADC_GRADIENT,  /* of a parameter or of an input declared `with grad` */
    GRADC_OPTIMIZER, /* moments and counters of the optimizer */
    GRADC_STATE,     /* buffers that a step updates, the step counter */
    GRADC_SCALAR,    /* a declared run-time scalar (lr, dropout rate) */
    GRADC_INPUT,
    GRADC_OUTPUT,
    GRADC_METRIC,
    GRADC_LOSS
};

enum { GRADC_MAX_RANK = 8 };

/* One named tensor, in its row-major logical shape. Sizes are in elements
 * unless the name says bytes. */
typedef struct gradc_tensor {
    const char *name; /* "h.0.attn.c_attn.weight"; a moment: "adam.m:NAME" */
    int32_t dtype, role;
    int32_t rank, reserved;
    int64_t shape[8];
    int64_t elems, bytes;
    int64_t offset; /* bytes from the start of the block where the layout there is
                       row-major and the value lives between calls, else -1 */
    int64_t of;     /* gradients, moments: index of their parameter or input; else -1 */
    int64_t lo, hi; /* integer inputs: declared range lo <= v < hi; else 0, 0 */
} gradc_tensor;

/* Runs body(arg, 0..count-1, lane), in any order, on lanes 0..threads-1, at most
 * one call per lane at a time, and returns when all are done. */
typedef void (*gradc_body)(void *arg, int64_t index, int32_t lane);
typedef void (*gradc_parallel_for)(void *context, int64_t count, gradc_body body, void *arg);

/* A store outside of the block, for an object that offloads values (NAME_OFFLOAD_BYTES): they are
 * there from the forward to the reverse pass of one call. `write` begins to copy n bytes to byte
 * `at` of the store, `read` begins to copy them from there, and both return at once: the bytes of
 * the block are left alone until `wait` with the same `at` has returned. Transfers take effect in
 * the order in which they begin; wait(context, -1) waits for all of them. Nonzero is a failure,
 * which ends the call with GRADC_OFFLOAD. All three are called by the thread that calls the
 * model. libgradc has this ready: gradc_store. */
typedef struct gradc_offload {
    size_t struct_size; /* sizeof(gradc_offload) of the caller */
    void *context;
    int (*write)(void *context, int64_t at, const void *bytes, int64_t n);
    int (*read)(void *context, int64_t at, void *bytes, int64_t n);
    int (*wait)(void *context, int64_t at);
} gradc_offload;

/* The GPU that an object of the target cuda computes on, and the functions that it does so by: the
 * object calls nothing else. libgradc's gradc_cuda_open() fills this. What an object hands over of
 * itself is of one version of gradc, whose number is `tables`. */
struct gradc_options;
struct gradc_block;
struct gradc_cuda_program;
typedef struct gradc_cuda {
    size_t struct_size;
    int32_t tables, device;
    void *context;
    int (*init)(const struct gradc_cuda *c, const struct gradc_cuda_program *p, void *block,
                const struct gradc_options *o);
    int (*call)(void *g, int32_t entry, const struct gradc_block *in, struct gradc_block *out);
    int (*wait)(void *g, void *loss);
    int (*read)(void *g, int32_t tensor, void *row_major, size_t bytes);
    int (*write)(void *g, int32_t tensor, const void *row_major, size_t bytes);
    int (*set)(void *g, int32_t tensor, double value);
    int (*close)(void *g);
} gradc_cuda;

typedef struct gradc_options {
    size_t struct_size;              /* sizeof(gradc_options) of the caller */
    uint32_t abi;                    /* GRADC_ABI of the caller */
    int32_t threads;                 /* lanes that parallel_for uses; 0 or 1: serial */
    uint64_t seed;                   /* initialisers and random draws */
    gradc_parallel_for parallel_for; /* NULL: serial */
    void *context;
    const gradc_offload *offload; /* lives as long as the handle; NULL: there is none */
    const gradc_cuda *cuda;       /* likewise; for objects of the target cuda */
} gradc_options;

/* Inputs and outputs of any model. The typed NAME_inputs and NAME_outputs have
 * this layout: `rows`, then one pointer per tensor in declaration order. */
typedef struct gradc_block {
    int64_t rows;  /* inputs: valid rows of the batch, 0 means all of them */
    void *data[1]; /* really one per tensor; outputs: NULL is "not wanted" */
} gradc_block;

/* What libgradc needs to load, save and train any model. `g` is the handle that
 * init gives; it is the start of the caller's block. Order of `tensors`:
 * parameters, state and scalars, optimizer, gradients; all with g's lifetime. */
typedef struct gradc_model {
    uint32_t abi;
    uint32_t struct_size;
    const char *name, *version; /* model's name, gradc's version */
    const char *hash;           /* 64 hex digits: the graph, shapes and optimizer */
    const char *target;         /* "cpu:znver3" */
    int64_t arena_bytes, arena_align;
    int64_t batch_rows; /* rows of one full call of eval; step takes batch_rows * accumulate */
    int64_t accumulate;
    int32_t threads_max;
    int32_t n_tensors, n_inputs, n_outputs; /* outputs: loss, outputs, metrics */
    const gradc_tensor *tensors, *inputs, *outputs;
    int (*init)(void *block, size_t bytes, const gradc_options *o, void **g);
    int (*step)(void *g, const gradc_block *in, gradc_block *out);
    int (*grad)(void *g, const gradc_block *in, gradc_block *out); /* NULL: not built */
    int (*eval)(void *g, const gradc_block *in, gradc_block *out);
    int (*read)(const void *g, int32_t tensor, void *row_major, size_t bytes);
    int (*write)(void *g, int32_t tensor, const void *row_major, size_t bytes);
    const char *(*error)(const void *g);
    int64_t offload_bytes;                 /* that the store must hold; 0: nothing is offloaded */
    int64_t offload_out[2], offload_in[2]; /* bytes that one call of step [0] and of grad [1]
                                              writes to it, and reads */
    /* Of the target cuda; else 0 and NULL. The block is then for the handle alone, and what the
     * plan counts is on the device. */
    int64_t device_bytes;
    int (*wait)(void *g, void *loss); /* for all calls so far; NULL: no loss is wanted */
    int (*close)(void *g);            /* gives back what the device has; also after a failure */
} gradc_model;

#ifdef __cplusplus
}
#endif
#endif

#if GRADC_ABI != 1
#error "mm.h and another header are of different versions of gradc"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define MM_ARENA_BYTES 26398528u /* exact peak: parameters, state, gradients, activations, workspace */
#define MM_ARENA_ALIGN 64u /* of the block */
#define MM_PARAM_COUNT 1771776u /* numbers in all parameters */
#define MM_PARAM_TENSORS 2u /* parameters */
#define MM_TENSORS 8u /* entries of the table of tensors */
#define MM_BATCH_ROWS 0u /* rows of one full call of eval */
#define MM_ACCUMULATE 1u /* a step takes this many times as many rows */
#define MM_THREADS_MAX 8u /* lanes that the block has scratch for */
#define MM_HASH "45ed3cc021385a71deca0fe1ece03fabff465b4f6e19f6e0953fa94bbb20ad0a" /* graph, shapes, optimizer */
#define MM_CPU "rocketlake"
#define MM_NUMERICS "fma" /* objects of one class give the same bits */

/* Inputs: the caller's memory, aligned to its elements, outside of the block; read only. */
typedef struct mm_inputs {
    int64_t rows; /* valid rows of the batch; 0: all of them */
    const float *x; /* x: f32[256, 768] */
    const float *t; /* t: f32[256, 2304] */
} mm_inputs;

/* Outputs: where they are to be written; NULL is "not wanted". */
typedef struct mm_outputs {
    int64_t reserved;
    float *loss; /* loss loss: f32[] */
} mm_outputs;

/* Tensors, for read, write and set. A parameter that is frozen, or that the loss does not
 * use, has no gradient. */
enum {
    MM_T_gradc_seed_ = 0, /* gradc.seed: i64[], state */
    MM_T_gradc_step_ = 1, /* gradc.step: i64[], state */
    MM_T_gradc_skipped_ = 2, /* gradc.skipped: i64[], state */
    MM_T_fc_weight = 3, /* fc.weight: f32[2304, 768], parameters */
    MM_T_fc_bias = 4, /* fc.bias: f32[2304], parameters */
    /* learning rate; NaN: that of the schedule */
    MM_T_lr = 5, /* lr: f32[], scalars */
    MM_T_grad_fc_weight = 6, /* fc.weight: f32[2304, 768], gradients */
    MM_T_grad_fc_bias = 7, /* fc.bias: f32[2304], gradients */
};

/* The handle lives at the start of the caller's block. Handles are independent; one is
 * used by one thread at a time. Every call but the first two returns GRADC_OK (0) or
 * another GRADC_ status, and checks its arguments before it writes anything. */
typedef struct mm mm;

size_t mm_arena_bytes(void);
size_t mm_arena_align(void);
/* Sets all parameters from o->seed; o may be NULL (serial, seed 0). On failure *g is NULL,
 * and mm_error((const mm *)block) tells why if the block has 1024 bytes. */
int mm_init(void *block, size_t bytes, const gradc_options *o, mm **g);
/* Forward only. Inputs that only loss and metrics need may be NULL when those are
 * not wanted. */
int mm_eval(mm *g, const mm_inputs *in, mm_outputs *out);
/* Forward and backward, no update: gradients can be read afterwards. */
int mm_grad(mm *g, const mm_inputs *in, float *loss);
int mm_grad_outputs(mm *g, const mm_inputs *in, mm_outputs *out);
/* One training step: forward, backward, clipping, update. */
int mm_step(mm *g, const mm_inputs *in, float *loss);
int mm_step_outputs(mm *g, const mm_inputs *in, mm_outputs *out);
/* Tensors by index, in row-major order; `bytes` must be exact. */
const gradc_tensor *mm_tensors(const mm *g, size_t *count);
int mm_read(const mm *g, int32_t tensor, void *to, size_t bytes);
int mm_write(mm *g, int32_t tensor, const void *from, size_t bytes);
/* Changes a run-time scalar such as the learning rate. */
int mm_set(mm *g, int32_t tensor, double value);
/* Index of the tensor of this name, or -1. */
int32_t mm_find(const char *name);
/* What went wrong in the last call, in words. */
const char *mm_error(const mm *g);

/* The same for any model: what libgradc works with. */
extern const gradc_model mm_model;

#ifdef __cplusplus
}
#endif
#endif
