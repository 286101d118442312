/* cuda_abi.h: what an object of the target cuda says of itself, to runtime/cuda*.c.
 *
 * The object holds these tables and nothing that runs but calls of gradc_cuda's functions.
 * One block of `device_bytes` is all memory that it uses on the device: the arena of the plan, then
 * inputs that the plan has no place for, then literal tensors. Offsets are bytes from its start.
 * compiler/target/cuda/tables.c writes them; a change of any of it needs a new GRADC_CUDA_TABLES.
 */
#ifndef GRADC_CUDA_ABI_H
#define GRADC_CUDA_ABI_H

#include "abi.h"

#define GRADC_CUDA_TABLES 1

/* What stands at the start of the caller's block; the rest of its bytes are the message. */
typedef struct gradc_cuda_handle {
    uint64_t magic; /* of the model, or its complement: init has failed */
    int32_t busy, reserved;
    const gradc_cuda *cuda;         /* NULL: only the message is there */
    struct gradc_cuda_state *state; /* libgradc's; NULL: it has been closed */
    const char *says;               /* the message, if it is none of libgradc's */
    char unused[24];
    char text[960];
} gradc_cuda_handle;

enum { GRADC_CUDA_CUBIN, GRADC_CUDA_PTX };

/* A cubin runs on devices of its major version from its minor one on, PTX on all that are not
 * older. */
typedef struct gradc_cuda_image {
    const void *bytes; /* PTX ends with a zero byte */
    int64_t size;
    int32_t kind, arch, program; /* arch: 10 * major + minor */
    int32_t reserved;
} gradc_cuda_image;

/* Arguments are pointers, and `args` of them. */
typedef struct gradc_cuda_kernel {
    const char *name;
    int64_t blocks; /* 0: it is never launched */
    int32_t threads, program, args, reserved;
} gradc_cuda_kernel;

/* The address is offset + sum of step[d] * index of the enclosing loop at depth d. */
typedef struct gradc_cuda_operand {
    int64_t offset;
    int64_t moves; /* row of `steps`, or -1 */
} gradc_cuda_operand;

enum { GRADC_CUDA_DEPTH = 4 };
typedef struct gradc_cuda_steps {
    int64_t step[GRADC_CUDA_DEPTH];
} gradc_cuda_steps;

/* A launch; or a loop over the `body` ops that follow. */
typedef struct gradc_cuda_op {
    int64_t kernel;      /* -1: a loop */
    int64_t first;       /* operand */
    int64_t count, body; /* of a loop */
} gradc_cuda_op;

/* An input as an entry uses it. */
typedef struct gradc_cuda_input {
    int64_t reads;     /* leading elements that its kernels reach; 0: none */
    int64_t row_elems; /* 0: its first dimension is not the batch */
    int64_t slot;      /* offset */
    int64_t repeats;   /* a row that is missing is the last valid one, else zeros */
} gradc_cuda_input;

typedef struct gradc_cuda_output {
    int64_t offset, bytes;
    int64_t given; /* by this entry */
} gradc_cuda_output;

typedef struct gradc_cuda_entry {
    const char *name;
    const gradc_cuda_op *op;
    int64_t ops;
    const gradc_cuda_input *input;   /* by input of the model */
    const gradc_cuda_output *output; /* by output of the model */
    int64_t full;                    /* rows of a full call; 0: it reads none */
    int64_t finite;                  /* offset of the flag that it has updated anything, or -1 */
    int64_t lenient; /* inputs that only loss and metrics need may be missing: of `eval` */
} gradc_cuda_entry;

typedef struct gradc_cuda_cell {
    int64_t offset;
    int64_t scalar; /* set() may change it */
    int64_t late;   /* there is a value after grad() only */
} gradc_cuda_cell;

enum { GRADC_CUDA_INIT, GRADC_CUDA_EVAL, GRADC_CUDA_GRAD, GRADC_CUDA_STEP, GRADC_CUDA_ENTRIES };

typedef struct gradc_cuda_program {
    int32_t tables, driver; /* GRADC_CUDA_TABLES; oldest CUDA that takes the images: 13000 */
    const char *ident;      /* of the model in C */
    const gradc_model *model;
    uint64_t magic;
    int64_t device_bytes, arena_bytes, pinned_bytes; /* pinned: what init sets to zero */
    int64_t seed, rows;                              /* offsets of i64, or -1 */
    int64_t loss;                                    /* output, or -1 */
    int64_t constants, constant_bytes;               /* offset of literal tensors, in one piece */
    const void *constant;
    const gradc_cuda_image *image;
    const gradc_cuda_kernel *kernel;
    const gradc_cuda_operand *operand;
    const gradc_cuda_steps *steps;
    const gradc_cuda_cell *cell;                       /* by tensor of the model */
    const gradc_cuda_entry *entry[GRADC_CUDA_ENTRIES]; /* NULL: it has not been built */
    int64_t images, kernels, programs;
} gradc_cuda_program;

#endif
