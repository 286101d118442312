/* A lowered program: storage, distinct kernels, and for each entry the list of
 * calls. Made by pass/lower.c; read by targets, the interpreter and reports. */
#ifndef GRADC_KERNEL_PROGRAM_H
#define GRADC_KERNEL_PROGRAM_H

#include "kernel.h"

/* What a buffer is for; also the rows of the memory report. */
typedef enum Role {
    ROLE_PARAM,
    ROLE_OPTIMIZER,
    ROLE_STATE,  /* state buffers, step counter, seed */
    ROLE_SCALAR, /* run-time scalars: lr */
    ROLE_GRADIENT,
    ROLE_ACTIVATION, /* any value between steps */
    ROLE_CONSTANT,   /* literal tensor: bytes in the object, not in the arena */
    ROLE_INPUT,      /* the caller's memory, or its staged copy */
    ROLE_STAGING,    /* copy of an input that is short of rows; beyond the pinned bytes: of one
                        that is missing, in the entry whose spare bytes it lies in */
    ROLE_OUTPUT,
    ROLE_WORKSPACE, /* scratch of a loop step's body */
    ROLE_LANES,     /* lane scratch, times threads_max */
    ROLE_HANDLE,    /* the handle at the start of the block */
    ROLE_PADDING,
    N_ROLES
} Role;
const char *role_name(Role r);

typedef struct Buffer {
    const char *name; /* path or value's name; shown to users */
    DType dtype;
    Role role;
    int32_t rank;
    int64_t shape[8];
    int64_t elems, bytes;
    int64_t offset;            /* bytes from the start of the block; -1: not in the block */
    int64_t turns, turn_bytes; /* > 1: so many turns of a loop may run at once (Call.turns), and
                                * lane i has its own so many bytes, i times, behind the offset */
    int32_t input;             /* ROLE_INPUT, ROLE_STAGING: index of the input, else -1 */
    int32_t storage; /* buffers that share memory on purpose (in place) name the same; -1: alone */
    const void *literal; /* ROLE_CONSTANT: elems of dtype */
    const Origin *origin;
} Buffer;

enum { MAX_LOOP_DEPTH = 4 };

/* Element base + sum of step[d] * (index of the enclosing loop at depth d). */
typedef struct Operand {
    int32_t buffer;
    int64_t base;
    int64_t step[MAX_LOOP_DEPTH];
} Operand;

typedef enum CallKind {
    CALL_KERNEL,
    CALL_LOOP,  /* body, count times; each Operand inside sees the index at this depth */
    CALL_GUARD, /* if element 0 of the flag buffer (bool) is false, the body is skipped */
    CALL_OUT,   /* begins to copy op[0]'s buffer to byte `store` of the store */
    CALL_IN,    /* begins to copy it from there */
    CALL_WAIT   /* until that is done; nobody else touches the buffer meanwhile */
} CallKind;

typedef struct Call Call;
struct Call {
    CallKind kind;
    int32_t kernel; /* CALL_KERNEL: index into Program.kernel */
    int32_t n_ops;  /* one for each buffer of the kernel that is not LOCAL, in order */
    Operand *op;
    int64_t count; /* CALL_LOOP */
    int64_t turns; /* ... of which so many may run at once, in any order; else 0 */
    /* CALL_KERNEL, CALL_LOOP: where scratch of lanes begins, for so many lanes at once so many
     * bytes each; of a loop, for all of its body. 0: at Program.lanes_offset, for all lanes */
    int64_t scratch, lane_bytes, lanes;
    Operand flag;  /* CALL_GUARD */
    int64_t store; /* CALL_OUT, CALL_IN, CALL_WAIT: where, which tells transfers apart */
    int32_t n_body;
    Call *body; /* NULL where there are none: nothing may be added to it then */
    const Origin *origin;
    const char *label; /* "h.3.attn: matmul" */
};

/* The roles of results, numbered as in runtime/abi.h. */
enum { RESULT_OUTPUT = 6, RESULT_METRIC = 7, RESULT_LOSS = 8 };

/* One value that the caller can read after an entry has run. */
typedef struct Result {
    const char *name;
    int32_t buffer;
    bool wanted;     /* built into this entry */
    int32_t kind;    /* RESULT_... */
    const char *doc; /* in Program.result: the comment above, or NULL */
} Result;

typedef struct Entry {
    const char *name; /* "init", "step", "grad", "eval" */
    int32_t n_calls;
    Call *call;
    int32_t n_results; /* loss, outputs, metrics, in the order of Program.result */
    Result *result;
    int64_t peak_bytes;  /* highest end of any live byte, over the whole block */
    int64_t spare_bytes; /* behind the pinned bytes: copies of inputs that the call may lack */
    int64_t store_bytes; /* outside of the block, for what is offloaded */
    int64_t out_bytes, in_bytes; /* that one call writes there, and reads */
    bool updates;                /* writes parameters: has a finite flag */
    int32_t finite;              /* buffer of that flag, or -1 */
} Entry;

typedef struct Input {
    const char *name;
    DType dtype;
    int32_t rank;
    int64_t shape[8]; /* of one call of step: accumulate * batch first */
    int64_t elems;
    int64_t rows; /* leading extent when it is the batch, else 0 */
    bool by_row;  /* read by loops over all rows alone, the outermost ones, a row in each turn */
    bool ranged;  /* integer input with lo <= v < hi */
    int64_t lo, hi;
    const char *doc;
} Input;

/* A tensor that the caller can name (gradc_tensor of the ABI). */
typedef struct Tensor {
    const char *name;
    Role role;
    int32_t buffer;
    int32_t of;       /* index of the tensor it belongs to, or -1 */
    int32_t of_input; /* gradient of an input: its index, or -1 */
    const char *doc;
} Tensor;

typedef struct Program {
    Arena *arena;
    const char *name;            /* the model's */
    const char *doc, *train_doc; /* the comments above the two, or NULL */
    char hash[65];
    VEC(Buffer) buffer;
    VEC(Kernel *) kernel; /* distinct, not expanded */
    VEC(Entry) entry;
    VEC(Input) input;
    VEC(Tensor) tensor;   /* parameters, state, scalars, optimizer, gradients */
    VEC(Result) result;   /* loss, outputs, metrics: all that some entry gives */
    int64_t pinned_bytes; /* handle and pinned storage: [0, pinned_bytes) */
    int64_t arena_bytes;  /* maximum of the entries' peaks */
    int64_t store_bytes;  /* ... and of what they need outside of the block */
    int64_t accumulate;   /* batches of a step */
    DType precision;      /* what f32 values that can be are stored as */
    double loss_scale;    /* of F16 */
    bool flush;           /* denormals are flushed: denormals.h */
    int64_t batch_rows;   /* of a batch, which may be taken as micro-batches */
    int32_t threads_max;
    /* Scratch of lanes for calls that have none of their own; lane i at + i * lane_bytes. */
    int64_t lanes_offset, lane_bytes;
    int32_t step_counter, skipped_counter, seed; /* buffers: i64 */
    int32_t rows; /* buffer, i64: valid rows of this call, written before the calls */
} Program;

/* Bytes that the handle itself takes at offset 0. */
enum { HANDLE_BYTES = 1024, BLOCK_ALIGN = 64 };

/* What a target can do; read by cluster and plan, filled by the target. */
typedef struct Caps {
    int64_t local_bytes; /* LOCAL buffers of one kernel: what stays on chip */
    bool bf16_pairs;     /* contractions of bf16 go in pairs: KContract.pairs */
    bool rests; /* a row is in the caches: what several loops over it compute is kept there */
    int64_t set_bytes; /* lines so far apart lie in the same set of the nearest cache, as do those
                        * of multiples; 0: no matter */
    int32_t prologue_insts; /* longest pointwise chain worth fusing into a contraction's operand */
    int32_t epilogue_insts;
    bool joins_again;    /* what is computed again may join the contraction whose result it meets */
    int64_t tells_from;  /* of so many bytes of results a contraction tells whether all of them are
                          * as they should be: KContract.all; 0: never */
    int64_t chains_from; /* of so many bytes that one kernel hands on to the next one both may run
                          * slab by slab, where memory allows it: plan_part_small(); 0: never */
    int64_t few_results; /* fewer of a reduction leave the machine idle: one of several axes is then
                          * several kernels, where that changes no bit; 0: never */
    int64_t (*lane_scratch)(const void *options, const Kernel *k); /* bytes of one lane */
    /* ... where a lane runs all of the kernel, in a turn of a loop; NULL: lanes take no turns */
    int64_t (*turn_scratch)(const void *options, const Kernel *k);
    /* So many lanes at most share out the kernel, and each has so many bytes. NULL: any number. */
    int64_t (*lanes)(const void *options, const Kernel *k, int64_t *bytes);
    const void *options;
} Caps;

/* Operands of a kernel's call by KBuf, in `arena`; NULL of a LOCAL one. */
const Operand **call_operands(const Program *p, const Call *c, Arena *arena);
/* NULL, or what a call touches beyond its buffer, or reads that nothing makes: every build looks,
 * for the object would compute with, or write over, other values. */
const char *program_verify(const Program *p, Arena *arena);
/* Kernels and transfers of calls, the bodies' among them, in the order of the program's text. */
int32_t steps_count(const Call *call, int32_t n);
const Call **steps_list(const Call *call, int32_t n, const Call **to); /* the end of what is set */
/* Finds or adds a kernel that is the same but for its name. */
int32_t program_kernel(Program *p, Kernel *k);
/* Whether the outermost loop reads the rows of the input, one in each turn: 1, from the first on,
 * -1, from the last; 0: it reads none, or the input is not by_row. Where there are fewer valid
 * rows, a turn for one that is missing reads the last valid one. */
int program_row_loop(const Program *p, const Call *loop, int32_t input);
/* "init", "eval", "grad" or "step"; NULL: the program has none. */
const Entry *program_entry(const Program *p, const char *name);
/* Rows of a full call: those of a batch, or of all micro-batches. 0: there is no batch. */
int64_t program_rows(const Program *p, const Entry *e);

/* Buffers, entries with their calls, then the kernels: `--emit kernels`. */
void program_print(const Program *p, Text *to);

/* So many lanes take whole turns of a loop, which all have as many of, or each so many that one
 * more matters little; else they share out each kernel. */
enum { MANY_TURNS = 4 };
static inline bool share_turns(int64_t count, int64_t lanes)
{
    return lanes > 1 && (count % lanes == 0 || count >= MANY_TURNS * lanes);
}
/* turns.c: whether turns of the loop, inside of `depth` others, may run in any order and at once:
 * what one writes, but for buffers with turn_bytes, no other one reads or writes. */
bool program_turns_apart(const Program *p, const Call *loop, int depth);

/* Runs entries with the interpreter. K_EXACT runs in one block of arena_bytes at the
 * planned offsets, with inputs and constants outside of it, so that a wrong
 * placement shows; beyond the pinned bytes the block starts full of NaN. K_WIDE and
 * K_DUAL give each storage an array of its own. What is pinned lasts from run to
 * run. `arena` must outlive the Judge. */
typedef struct Judge Judge;
Judge *judge_open(const Program *p, KMode mode, Arena *arena);
/* Elements of a buffer between runs: exact bytes, or doubles / int64_t. In
 * K_EXACT an input is what the last run was given (NULL before). */
void *judge_data(Judge *j, int32_t buffer);
/* K_DUAL: tangents of a float buffer (NULL for others), zero at first. Those of inputs and
 * pinned buffers are set by the caller before a run, and last. */
double *judge_tangent(Judge *j, int32_t buffer);
/* From now on the inputs are what judge_data() of their buffers holds, not what judge_run()
 * is given: so that they can be moved by less than their type's precision. Not for exact. */
void judge_hold_inputs(Judge *j);

/* The statuses of runtime/abi.h that judge_run can return, under the same numbers. */
enum { RUN_OK = 0, RUN_BAD_ARGUMENT = 1, RUN_RANGE = 6 };

/* in: one pointer for each input, in the ABI's dtypes (floats of the wide modes are
 * widened from them); only what the entry reads need be there. rows: valid rows, 0
 * is all. Nothing runs unless RUN_OK: RUN_BAD_ARGUMENT for an unknown entry, an input
 * that is NULL, too many rows, or fewer where the program does not count them; RUN_RANGE
 * for an integer outside of its range. */
int judge_run(Judge *j, const char *entry, const void *const *in, int64_t rows);

#endif
