/* w.h: written by gradc 0.1.0. Model hash
 * 5548e0eab3430c7f8645f829cf35f75862f77a268217691475d1ff41edc45e9b. */
#ifndef W_GRADC_H
#define W_GRADC_H

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
#error "w.h and another header are of different versions of gradc"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define W_ARENA_BYTES   1024u /* of the block on the host, for the handle alone */
#define W_ARENA_ALIGN   64u   /* of the block */
#define W_PARAM_COUNT   437u  /* numbers in all parameters */
#define W_PARAM_TENSORS 7u    /* parameters */
#define W_TENSORS       34u   /* entries of the table of tensors */
#define W_BATCH_ROWS    6u    /* rows of one full call of eval */
#define W_ACCUMULATE    4u    /* a step takes this many times as many rows */
#define W_THREADS_MAX   8u    /* lanes that the block has scratch for */
#define W_HASH                                                                                     \
    "5548e0eab3430c7f8645f829cf35f75862f77a268217691475d1ff41edc45e9b" /* graph, shapes, optimizer \
                                                                        */
#define W_DEVICE_BYTES 15104u /* all that init allocates on the device */
#define W_PLANNED_BYTES                                                                            \
    13312u /* of these, what --budget limits: parameters, state, activations                       \
            */
#define W_CUDA "cuda:sm_80,sm_90,compute_90,compute_121" /* what the object has code for */

/* Inputs: the caller's memory, aligned to its elements, outside of the block; read only. */
typedef struct w_inputs {
    int64_t rows;          /* valid rows of the batch; 0: all of them */
    const uint8_t *pixels; /* pixels: u8[24, 12] */
    const int64_t *code;   /* code: i64[24], -3 <= v < 4 */
    const float *extra;    /* extra: f32[24, 3] */
    const float *scale;    /* scale: f32[] */
    const int32_t *label;  /* label: i32[24], 0 <= v < 5 */
} w_inputs;

/* Outputs: where they are to be written; NULL is "not wanted". */
typedef struct w_outputs {
    int64_t reserved;
    float *loss;     /* loss loss: f32[] */
    float *accuracy; /* metric accuracy: f32[] */
    float *logits;   /* output logits: f32[24, 5] */
    float *h;        /* output h: f32[24, 16] */
} w_outputs;

/* Tensors, for read, write and set. A parameter that is frozen, or that the loss does not
 * use, has no gradient. */
enum {
    W_T_gradc_seed_ = 0,    /* gradc.seed: i64[], state */
    W_T_gradc_step_ = 1,    /* gradc.step: i64[], state */
    W_T_gradc_skipped_ = 2, /* gradc.skipped: i64[], state */
    W_T_table = 3,          /* table: f32[7, 8], parameters */
    W_T_seen = 4,           /* seen: f32[], state */
    W_T_enc_weight = 5,     /* enc.weight: f32[8, 12], parameters */
    W_T_enc_bias = 6,       /* enc.bias: f32[8], parameters */
    W_T_mid_weight = 7,     /* mid.weight: f32[16, 11], parameters */
    W_T_mid_bias = 8,       /* mid.bias: f32[16], parameters */
    W_T_head_weight = 9,    /* head.weight: f32[5, 16], parameters */
    W_T_head_bias = 10,     /* head.bias: f32[5], parameters */
    /* learning rate; NaN: that of the schedule */
    W_T_lr = 11,                  /* lr: f32[], scalars */
    W_T_adamw_m_table = 12,       /* adamw.m:table: f32[7, 8], optimizer */
    W_T_adamw_v_table = 13,       /* adamw.v:table: f32[7, 8], optimizer */
    W_T_adamw_m_enc_weight = 14,  /* adamw.m:enc.weight: f32[8, 12], optimizer */
    W_T_adamw_v_enc_weight = 15,  /* adamw.v:enc.weight: f32[8, 12], optimizer */
    W_T_adamw_m_enc_bias = 16,    /* adamw.m:enc.bias: f32[8], optimizer */
    W_T_adamw_v_enc_bias = 17,    /* adamw.v:enc.bias: f32[8], optimizer */
    W_T_adamw_m_mid_weight = 18,  /* adamw.m:mid.weight: f32[16, 11], optimizer */
    W_T_adamw_v_mid_weight = 19,  /* adamw.v:mid.weight: f32[16, 11], optimizer */
    W_T_adamw_m_mid_bias = 20,    /* adamw.m:mid.bias: f32[16], optimizer */
    W_T_adamw_v_mid_bias = 21,    /* adamw.v:mid.bias: f32[16], optimizer */
    W_T_adamw_m_head_weight = 22, /* adamw.m:head.weight: f32[5, 16], optimizer */
    W_T_adamw_v_head_weight = 23, /* adamw.v:head.weight: f32[5, 16], optimizer */
    W_T_adamw_m_head_bias = 24,   /* adamw.m:head.bias: f32[5], optimizer */
    W_T_adamw_v_head_bias = 25,   /* adamw.v:head.bias: f32[5], optimizer */
    W_T_grad_table = 26,          /* table: f32[7, 8], gradients */
    W_T_grad_enc_weight = 27,     /* enc.weight: f32[8, 12], gradients */
    W_T_grad_enc_bias = 28,       /* enc.bias: f32[8], gradients */
    W_T_grad_mid_weight = 29,     /* mid.weight: f32[16, 11], gradients */
    W_T_grad_mid_bias = 30,       /* mid.bias: f32[16], gradients */
    W_T_grad_head_weight = 31,    /* head.weight: f32[5, 16], gradients */
    W_T_grad_head_bias = 32,      /* head.bias: f32[5], gradients */
    W_T_grad_extra = 33,          /* extra: f32[24, 3], gradients */
};

/* This model computes on an NVIDIA GPU. The driver is found when gradc_cuda_open() of libgradc
 * looks for it; nothing is linked against CUDA.
 *
 *     gradc_cuda *gpu;   // <gradc.h>, libgradc
 *     gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 1};
 *     if (gradc_cuda_open(NULL, &gpu, &error) != GRADC_OK) ... error.text
 *     gradc_cuda_use(gpu, &o);
 *     w *g;
 *     if (w_init(block, sizeof block, &o, &g) != GRADC_OK) ... w_error((w *)block)
 *     while (more)
 *         w_step(g, &inputs, NULL);   // queued; inputs are copied before it returns
 *     w_wait(g, &loss);               // of the last step
 *     w_close(g);
 *     gradc_cuda_close(gpu);
 *
 * Inputs and outputs may lie on the device: they are then copied there. Integers with a range
 * that lie there are copied to the host and back, as they are checked; `eval` and calls that
 * want results wait for them. After GRADC_DEVICE a handle can only be closed. */

/* The handle lives at the start of the caller's block. Handles are independent; one is
 * used by one thread at a time. Every call but the first two returns GRADC_OK (0) or
 * another GRADC_ status, and checks its arguments before it writes anything. */
typedef struct w w;

size_t w_arena_bytes(void);
size_t w_arena_align(void);
/* Sets all parameters from o->seed; o may be NULL (serial, seed 0). On failure *g is NULL,
 * and w_error((const w *)block) tells why if the block has 1024 bytes. */
int w_init(void *block, size_t bytes, const gradc_options *o, w **g);
/* Forward only. Inputs that only loss and metrics need may be NULL when those are
 * not wanted. */
int w_eval(w *g, const w_inputs *in, w_outputs *out);
/* Forward and backward, no update: gradients can be read afterwards. */
int w_grad(w *g, const w_inputs *in, float *loss);
int w_grad_outputs(w *g, const w_inputs *in, w_outputs *out);
/* One training step: forward, backward, clipping, update. */
int w_step(w *g, const w_inputs *in, float *loss);
int w_step_outputs(w *g, const w_inputs *in, w_outputs *out);
/* Tensors by index, in row-major order; `bytes` must be exact. */
const gradc_tensor *w_tensors(const w *g, size_t *count);
int w_read(const w *g, int32_t tensor, void *to, size_t bytes);
int w_write(w *g, int32_t tensor, const void *from, size_t bytes);
/* Changes a run-time scalar such as the learning rate. */
int w_set(w *g, int32_t tensor, double value);
/* Index of the tensor of this name, or -1. */
int32_t w_find(const char *name);
/* What went wrong in the last call, in words. */
const char *w_error(const w *g);

/* The same for any model: what libgradc works with. */
extern const gradc_model w_model;

/* Waits for all calls so far; *loss, if it is not NULL, is that of the last step or grad. What
 * those that nobody waited for would have returned comes from here. */
int w_wait(w *g, float *loss);
/* Gives back what the device has, whatever happened before. The block can be used again. */
int w_close(w *g);

#ifdef __cplusplus
}
#endif
#endif
