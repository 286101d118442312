/* gradc.h: what a program that trains needs from its operating system.
 *
 * The object that gradc emits opens no file and starts no thread. This library does:
 *
 *   pool         threads for gradc_options.parallel_for
 *   store        memory, a file or functions of yours for gradc_options.offload
 *   cuda         a GPU for gradc_options.cuda
 *   safetensors  files of named tensors, in and out
 *   weights      a model's parameters, by name, in and out
 *   checkpoint   a whole training state in one file: complete or absent
 *   arrays       npy, IDX, CSV and raw bytes (.gz too) into memory; casts, columns, rows
 *   batches      seeded shuffling, partial batches, windows of a token text; resumable
 *   progress     one line on a terminal, plain lines or JSON lines elsewhere
 *
 * Rules that hold for every function here:
 *
 * - It returns a status of abi.h (GRADC_OK is 0) and, if the caller passes a gradc_error, says what
 *   was wrong, where and why in words. `e` may be NULL. After a success `e->text` is empty, or a
 *   remark where the function's comment says so. After a failure the outputs are as before the
 *   call, or zeroed where the comment says so; nothing needs to be freed.
 * - It never prints (but to a FILE that the caller hands over), aborts, exits, or changes locale,
 *   signal handlers, floating-point mode or working directory. There are no globals that change.
 * - Text is bytes; names are UTF-8. Paths are given to the system as they are. Files are read from
 *   regular files only; what a file says about sizes is checked before anything is allocated.
 * - One object (pool, batches, progress…) belongs to one thread at a time, different objects are
 *   independent. gradc_pool_parallel_for alone may be called from anywhere.
 * - Structures with `struct_size` are set by the caller: zero all, then struct_size = sizeof.
 *   Zero is the default of every field.
 *
 * Machines are little-endian; sizes are bytes where the name says so, else elements. */
#ifndef GRADC_H
#define GRADC_H

#include <stdio.h>

#include "abi.h"

#if defined(__GNUC__)
#define GRADC_API __attribute__((visibility("default")))
#else
#define GRADC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GRADC_VERSION "0.1.0"

/* Limits; each is refused at one more. Sizes of dimensions and products: 2^40, 2^47 bytes. */
#define GRADC_MAX_LANES        256
#define GRADC_MAX_HEADER_BYTES (16 << 20) /* safetensors header (the format allows 100 MB) */
#define GRADC_MAX_TENSORS      1000000    /* per file; few headers of 16 MiB name so many */
#define GRADC_MAX_NAME_BYTES   512        /* of a tensor in a file */
#define GRADC_MAX_STRING_BYTES 65536      /* of a metadata key or value */
#define GRADC_MAX_NPY_HEADER   10000      /* bytes, as numpy's own limit */
#define GRADC_MAX_DIM          (INT64_C(1) << 40)
#define GRADC_MAX_TENSOR_BYTES (INT64_C(1) << 47)
#define GRADC_MAX_UNPACKED     (INT64_C(16) << 30) /* bytes out of one .gz */
#define GRADC_MAX_UNPACK_RATIO 1000                /* unpacked bytes per packed byte */
#define GRADC_MAX_COLUMNS      1000000             /* of a CSV file */
#define GRADC_MAX_ARRAYS       64                  /* of one gradc_batches */

/* ------------------------------------------------------------------------------------------------
 * Errors
 */

typedef struct gradc_error {
    int32_t status;   /* what the call returned */
    int32_t system;   /* errno of the operation that failed, else 0 */
    int64_t position; /* byte offset in the file, or line of a CSV file; -1: none */
    int64_t column;   /* of a CSV file, from 1; else 0 */
    char text[1000];  /* "w.safetensors: tensor 'a': 24 bytes for f32[2,4], which needs 32" */
} gradc_error;

/* A few words for a status: "a file is not what it should be". Never NULL. */
GRADC_API const char *gradc_strerror(int status);

/* GRADC_ABI and GRADC_VERSION that the library was built with. */
GRADC_API uint32_t gradc_abi_version(void);
GRADC_API const char *gradc_version(void);

/* "f32"… for GRADC_F32…; NULL for anything else. */
GRADC_API const char *gradc_dtype_name(int32_t dtype);

/* Bytes of one element; 0 for anything else than a dtype. */
GRADC_API int64_t gradc_dtype_bytes(int32_t dtype);

/* Zeroed memory for a model's block: `bytes` at a multiple of `align` (a power of two; less than 64
 * counts as 64). From 4 MiB on it asks the system for large pages, which a step runs faster in.
 * NULL: no memory, or bytes < 0. Free it with gradc_free. */
GRADC_API void *gradc_alloc(int64_t bytes, int64_t align);
GRADC_API void gradc_free(void *memory);

/* ------------------------------------------------------------------------------------------------
 * Threads
 *
 *     gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 1};
 *     gradc_pool *pool;
 *     if (gradc_pool_open(0, 0, &pool, &err) != GRADC_OK) ...
 *     gradc_pool_use(pool, &o);
 */

typedef struct gradc_pool gradc_pool;

enum {
    GRADC_POOL_FLOATING = 1, /* do not pin the workers to cores */
    GRADC_POOL_SLEEPY = 2 /* workers sleep at once and never spin: for laptops, shared machines */
};

/* Starts lanes - 1 workers; the thread that calls parallel_for is lane 0 and is not pinned.
 * lanes:   0 is the number of cores that this process may run on (sched_getaffinity), at most 256.
 *          More lanes than cores are allowed; then nothing is pinned and nobody spins.
 * threads: workers have every signal blocked and the default floating-point mode.
 * fails:   GRADC_BAD_ARGUMENT, GRADC_MEMORY (also: no thread to be had); *out is NULL then. */
GRADC_API int gradc_pool_open(int32_t lanes, uint32_t flags, gradc_pool **out, gradc_error *e);

/* Stops and joins the workers. NULL is allowed. Not from within a body. In a child made by fork()
 * it only frees the memory. */
GRADC_API void gradc_pool_close(gradc_pool *pool);

GRADC_API int32_t gradc_pool_lanes(const gradc_pool *pool);

/* Sets threads, parallel_for and context of `o` to this pool. NULL pool: serial. */
GRADC_API void gradc_pool_use(gradc_pool *pool, gradc_options *o);

/* A gradc_parallel_for whose context is a gradc_pool. Runs body(arg, i, lane) for i = 0..count-1 in
 * any order and returns when all are done; everything written before is seen by the bodies,
 * everything they wrote is seen after. Each lane begins with its own share, the lane-th of count
 * indices, and then takes what is left of the others': what one job has written is mostly where
 * the next one reads it.
 * A call while the pool is busy (from inside a body, or by another thread) and a call in a child
 * after fork() run all of it at once on the calling thread, as lane 0. count <= 0 does nothing. */
GRADC_API void gradc_pool_parallel_for(void *pool, int64_t count, gradc_body body, void *arg);

/* ------------------------------------------------------------------------------------------------
 * Offloaded values
 *
 * Where the header of a model has a NAME_OFFLOAD_BYTES, its init needs a store: values wait there
 * from the forward to the reverse pass. A thread of the store copies them, one after another, while
 * the model computes.
 *
 *     gradc_store *store;
 *     if (gradc_store_host(NAME_OFFLOAD_BYTES, &store, &err) != GRADC_OK) ...
 *     gradc_store_use(store, &o);
 *     ... init, steps; then, when no handle uses it any more:
 *     gradc_store_close(store);
 */

typedef struct gradc_store gradc_store;

/* A store of your own. Both are called by one thread, which is not yours, return when all n bytes
 * are moved, and give 0, or another number, which ends the step with GRADC_OFFLOAD and is named in
 * NAME_error. What is read has been written before; there is no order beyond that, and `at` is a
 * multiple of 64 below NAME_OFFLOAD_BYTES. */
typedef struct gradc_store_calls {
    size_t struct_size;
    void *context;
    int (*read)(void *context, int64_t at, void *bytes, int64_t n);
    int (*write)(void *context, int64_t at, const void *bytes, int64_t n);
} gradc_store_calls;

/* A store serves one handle, as long as that is in use. `bytes` is NAME_OFFLOAD_BYTES. *out is NULL
 * on failure.
 * file:  `path` is made, with no more rights than the owner's, and loses its name at once: its
 * bytes are gone with the store, however the program ends. A file that is there is refused. fails:
 * GRADC_BAD_ARGUMENT, GRADC_BAD_ABI, GRADC_MEMORY (also: no thread), GRADC_IO. */
GRADC_API int gradc_store_open(const gradc_store_calls *calls, gradc_store **out, gradc_error *e);
GRADC_API int gradc_store_host(int64_t bytes, gradc_store **out, gradc_error *e);
GRADC_API int gradc_store_file(const char *path, int64_t bytes, gradc_store **out, gradc_error *e);

/* Ends the thread, and frees everything. NULL is allowed. */
GRADC_API void gradc_store_close(gradc_store *store);

/* Sets `offload` of `o` to this store. NULL store: none. */
GRADC_API void gradc_store_use(gradc_store *store, gradc_options *o);

/* Since the store was opened. After a step `written` and `read` have grown by the figures of the
 * plan, gradc_model.offload_out and .offload_in; of transfer_s, waited_s could not be hidden. */
typedef struct gradc_store_counts {
    int64_t written, read;       /* bytes moved without a failure */
    double transfer_s, waited_s; /* within read and write; by the model, for them */
} gradc_store_counts;
GRADC_API void gradc_store_count(gradc_store *store, gradc_store_counts *counts);

/* ------------------------------------------------------------------------------------------------
 * GPUs, for objects of the target cuda: `gradc build --target cuda`
 *
 *     gradc_cuda *gpu;
 *     if (gradc_cuda_open(NULL, &gpu, &err) != GRADC_OK) ...
 *     gradc_cuda_use(gpu, &o);
 *     ... init, steps, NAME_close(); then, when no handle uses it any more:
 *     gradc_cuda_close(gpu);
 *
 * Nothing is linked against CUDA: the driver is what $GRADC_LIBCUDA names, else libcuda.so.1.
 */

typedef struct gradc_cuda_options {
    size_t struct_size;
    int32_t device; /* number, as the driver counts them */
    int32_t reserved;
    void *stream; /* a CUstream of the device's primary context, on which handles work; it outlives
                     them. NULL: each handle has one of its own */
} gradc_cuda_options;

/* options: NULL is all defaults. *out is NULL on failure.
 * fails: GRADC_NO_GPU: no driver, one that is too old, no such device; GRADC_MEMORY. */
GRADC_API int gradc_cuda_open(const gradc_cuda_options *options, gradc_cuda **out, gradc_error *e);
GRADC_API void gradc_cuda_close(gradc_cuda *gpu); /* NULL is allowed */

/* Sets `cuda` of `o`. NULL gpu: none; NULL o: nothing happens. */
GRADC_API void gradc_cuda_use(const gradc_cuda *gpu, gradc_options *o);

typedef struct gradc_cuda_device {
    int32_t driver;       /* CUDA that it is for: 13000 is 13.0 */
    int32_t devices;      /* that the driver has */
    int32_t device, arch; /* its number; 90: compute capability 9.0 */
    int64_t memory_bytes;
    char name[128];
} gradc_cuda_device;
/* NULL gpu: all zero. */
GRADC_API void gradc_cuda_about(const gradc_cuda *gpu, gradc_cuda_device *about);

/* For profiles. A launch of a call: its row in the object's table of what the entry launches (rows
 * of loops count, and those in them come again and again), and from when to when it ran, in ns of
 * the device's clock since the call's first launch. op -1 comes first: nothing, between two events.
 */
typedef void (*gradc_cuda_lap)(void *of, int64_t op, double from, double to);
/* From now on handles of `gpu` launch kernels one by one, with an event of the driver behind each,
 * and a call tells `lap` of its launches, in their order, before it returns; `lap` calls no handle.
 * NULL lap: no more; NULL gpu: nothing. Not while a call is under way. */
GRADC_API void gradc_cuda_watch(gradc_cuda *gpu, gradc_cuda_lap lap, void *of);

/* ------------------------------------------------------------------------------------------------
 * Arrays in memory
 */

/* A packed row-major array that owns its data. All zero is "no array", which gradc_array_free
 * takes. A scalar has rank 0 and one element; arrays with a dimension of 0 have data == NULL. */
typedef struct gradc_array {
    int32_t dtype, rank;
    int64_t shape[GRADC_MAX_RANK];
    int64_t elems, bytes;
    void *data; /* aligned to 64 bytes */
} gradc_array;

/* Frees the data and zeroes *a. NULL is allowed. */
GRADC_API void gradc_array_free(gradc_array *a);

/* A zeroed array. In all functions below *out is overwritten, not freed, and zeroed on failure. */
GRADC_API int gradc_array_make(int32_t dtype, int32_t rank, const int64_t *shape, gradc_array *out,
                               gradc_error *e);

/* Copy of a[first .. first+count-1] along the first axis, as in a split into training and test. */
GRADC_API int gradc_array_rows(const gradc_array *a, int64_t first, int64_t count, gradc_array *out,
                               gradc_error *e);

/* Copy of columns of a[N,C] as [N,count]; count < 0 means "the single column `first`" as [N]. */
GRADC_API int gradc_array_columns(const gradc_array *a, int64_t first, int64_t count,
                                  gradc_array *out, gradc_error *e);

/* Copy in another dtype. Float to integer fails with GRADC_RANGE, naming the element, where the
 * value is not whole or does not fit; integer to integer the same; to bool is != 0;
 * to narrower floats rounds to nearest even. */
GRADC_API int gradc_array_cast(const gradc_array *a, int32_t dtype, gradc_array *out,
                               gradc_error *e);

/* Gives *a another shape of as many elements, in place. One dimension may be -1. */
GRADC_API int gradc_array_reshape(gradc_array *a, int32_t rank, const int64_t *shape,
                                  gradc_error *e);

/* ------------------------------------------------------------------------------------------------
 * Readers and writers of arrays
 *
 * The _read functions take a path, and unpack gzip (known by its first two bytes) within
 * GRADC_MAX_UNPACKED and GRADC_MAX_UNPACK_RATIO. The _parse functions take bytes that are not
 * packed; `name` is for messages only. All fail with GRADC_IO, GRADC_FORMAT (position: byte offset
 * in the unpacked bytes) or GRADC_MEMORY.
 */

/* npy, versions 1.0, 2.0, 3.0; little-endian f2 f4 f8 i4 i8 u1 b1 (no pickles, no records).
 * Fortran-ordered files are transposed into row-major order.
 * source: numpy.lib.format, "NPY format". */
GRADC_API int gradc_npy_read(const char *path, gradc_array *out, gradc_error *e);
GRADC_API int gradc_npy_parse(const char *name, const void *bytes, size_t n, gradc_array *out,
                              gradc_error *e);

/* Version 1.0, data aligned to 64 bytes, replaced atomically. There is no bf16 in the format: it is
 * refused with GRADC_BAD_ARGUMENT, cast it first. */
GRADC_API int gradc_npy_write(const char *path, const gradc_array *a, gradc_error *e);

/* IDX as in MNIST: big-endian, types u8 (0x08), i32 (0x0C), f32 (0x0D), f64 (0x0E); also i8 (0x09)
 * and i16 (0x0B), which become i32. source: LeCun, Cortes, Burges, "The MNIST database". */
GRADC_API int gradc_idx_read(const char *path, gradc_array *out, gradc_error *e);
GRADC_API int gradc_idx_parse(const char *name, const void *bytes, size_t n, gradc_array *out,
                              gradc_error *e);

typedef struct gradc_csv_options {
    size_t struct_size;
    int32_t dtype;  /* GRADC_F32 (the default) or GRADC_F64 */
    int32_t header; /* 0: a first line with anything but numbers is a header; 1: it is; -1: not */
    int32_t separator; /* 0: found out; else one of , ; tab space (a run of spaces is one) */
    int32_t reserved;
} gradc_csv_options;

/* A table of finite decimal numbers as [lines, columns]; '.' is the decimal point whatever the
 * locale; empty lines are skipped, LF or CRLF, a byte order mark is allowed. Errors name line and
 * column (1 is the first) in position and column. options: NULL is all defaults. */
GRADC_API int gradc_csv_read(const char *path, const gradc_csv_options *options, gradc_array *out,
                             gradc_error *e);
GRADC_API int gradc_csv_parse(const char *name, const void *bytes, size_t n,
                              const gradc_csv_options *options, gradc_array *out, gradc_error *e);

/* 1: gradc_array_read takes a file of this name for CSV; 0: not, or there is no name (NULL). */
GRADC_API int gradc_is_table(const char *path);

/* The bytes of a file as u8[n]: text for language models. */
GRADC_API int gradc_bytes_read(const char *path, gradc_array *out, gradc_error *e);

/* Any of the above: npy and IDX by their first bytes, CSV by its name (.csv .tsv .dat, also with
 * .gz behind), anything else as bytes. An archive (.npz, .zip) is none of them: GRADC_FORMAT. */
GRADC_API int gradc_array_read(const char *path, gradc_array *out, gradc_error *e);

/* ------------------------------------------------------------------------------------------------
 * safetensors
 *
 * source: github.com/huggingface/safetensors, README, "Format". Read strictly: the header starts
 * with '{' and is at most GRADC_MAX_HEADER_BYTES, no key twice, the tensors cover the data without
 * hole or overlap, shape times dtype is the byte range, __metadata__ maps strings to strings.
 * Dtypes: F32 F64 F16 BF16 I32 I64 U8 BOOL.
 */

/* One named tensor; when reading, everything belongs to the gradc_tensors. */
typedef struct gradc_named {
    const char *name;
    int32_t dtype, rank;
    int64_t shape[GRADC_MAX_RANK];
    int64_t elems, bytes;
    const void *data; /* row-major, aligned to 64 bytes when read; any alignment when written */
} gradc_named;

typedef struct gradc_pair {
    const char *key, *value;
} gradc_pair;

typedef struct gradc_tensors gradc_tensors; /* a file in memory */

/* Reads the whole file into memory of its own (a later change of the file changes nothing).
 * *out is NULL on failure. fails: GRADC_IO, GRADC_FORMAT, GRADC_MEMORY. */
GRADC_API int gradc_tensors_read(const char *path, gradc_tensors **out, gradc_error *e);
GRADC_API int gradc_tensors_parse(const char *name, const void *bytes, size_t n,
                                  gradc_tensors **out, gradc_error *e);
GRADC_API void gradc_tensors_free(gradc_tensors *t);

/* Tensors in the order of their data; NULL for an index out of range or a name that is not there.
 */
GRADC_API int64_t gradc_tensors_count(const gradc_tensors *t);
GRADC_API const gradc_named *gradc_tensors_at(const gradc_tensors *t, int64_t index);
GRADC_API const gradc_named *gradc_tensors_find(const gradc_tensors *t, const char *name);

/* __metadata__, in the file's order. */
GRADC_API int64_t gradc_tensors_pairs(const gradc_tensors *t);
GRADC_API const gradc_pair *gradc_tensors_pair(const gradc_tensors *t, int64_t index);
GRADC_API const char *gradc_tensors_value(const gradc_tensors *t, const char *key);

/* Writes tensors and metadata, in the byte order that the reference implementation writes (dtype,
 * then name; header padded to 8 bytes), and replaces `path` atomically: on failure the old file is
 * untouched and nothing is left behind. name, dtype, rank, shape and data are read; bytes and elems
 * are computed. fails: GRADC_BAD_ARGUMENT (names not UTF-8, twice, too long; bad shapes), GRADC_IO,
 * GRADC_MEMORY. */
GRADC_API int gradc_tensors_write(const char *path, const gradc_named *tensors, int64_t count,
                                  const gradc_pair *pairs, int64_t n_pairs, gradc_error *e);

/* ------------------------------------------------------------------------------------------------
 * A model's weights
 *
 * Weights are the parameters and the floating-point state (running statistics) of a model, under
 * the names of gradc_model.tensors. Counters and optimizer state are no weights: see checkpoints.
 */

enum {
    GRADC_ALLOW_MISSING = 1,  /* tensors that the file lacks keep their value */
    GRADC_ALLOW_EXTRA = 2,    /* tensors that the model lacks are skipped */
    GRADC_ALLOW_CAST = 4,     /* other floating-point dtypes are converted */
    GRADC_ALLOW_NONFINITE = 8 /* gradc_checkpoint_save: save NaN and infinity too */
};

/* Loads a safetensors file, or the weights of a checkpoint (whose checksums are verified and whose
 * other tensors are skipped). Either every tensor is loaded or none: all missing, extra and
 * different ones are reported together with GRADC_MISMATCH. The handle `g` must come from m->init.
 */
GRADC_API int gradc_weights_load(const gradc_model *m, void *g, const char *path, uint32_t flags,
                                 gradc_error *e);

/* Writes them, with the model's name and hash and gradc's version as metadata. */
GRADC_API int gradc_weights_save(const gradc_model *m, const void *g, const char *path,
                                 gradc_error *e);

/* ------------------------------------------------------------------------------------------------
 * Checkpoints (.gck)
 *
 * A safetensors file that any tool reads, with all that a run needs to go on as if it had never
 * stopped: parameters, state, scalars, optimizer, step, place in the data; a CRC32C of each tensor
 * and of the header. It is written beside `path` under a random name, synced, and renamed; the file
 * that was there before stays as `path`.prev. A kill or a power cut at any moment leaves the old
 * file or the new one. source of the protocol: Pillai et al., "All File Systems Are Not Created
 * Equal", OSDI 2014.
 */

/* A place in the data: see gradc_batches. */
typedef struct gradc_position {
    uint64_t seed;
    int64_t epoch;
    int64_t row; /* rows (windows: batches) already given out in this epoch */
} gradc_position;

typedef struct gradc_checkpoint {
    size_t struct_size;
    int64_t step;  /* steps done */
    uint64_t seed; /* gradc_options.seed of the run */
    gradc_position position;
    /* Filled by load and peek, ignored by save: */
    int32_t format;        /* of the file; 1 */
    int32_t from_previous; /* 1: `path` was missing or damaged and `path`.prev was taken */
    char model[256];       /* cut if longer */
    char hash[65];
    char version[32]; /* of gradc */
} gradc_checkpoint;

/* Refuses state with NaN or infinity (GRADC_NONFINITE, naming tensor and element, nothing written)
 * unless flags has GRADC_ALLOW_NONFINITE. Removes temporary files that dead processes left of this
 * path. The file keeps the mode of the one it replaces, else it follows the umask. */
GRADC_API int gradc_checkpoint_save(const gradc_model *m, const void *g, const char *path,
                                    const gradc_checkpoint *info, uint32_t flags, gradc_error *e);

/* Loads everything or nothing. A missing or damaged file gives way to `path`.prev; then e->text is
 * a remark that says why, and info->from_previous is 1. A file of another model (hash, names,
 * shapes) is GRADC_MISMATCH. */
GRADC_API int gradc_checkpoint_load(const gradc_model *m, void *g, const char *path,
                                    gradc_checkpoint *info, gradc_error *e);

/* Reads and verifies `path` alone, with no model. GRADC_FORMAT if it is no checkpoint. */
GRADC_API int gradc_checkpoint_peek(const char *path, gradc_checkpoint *info, gradc_error *e);

/* ------------------------------------------------------------------------------------------------
 * Batches
 *
 *     const gradc_array *data[] = {&image, &label};
 *     gradc_batch_options o = {.struct_size = sizeof o, .rows = 64, .seed = 1, .shuffle = 1};
 *     gradc_batches_open(data, 2, &o, &b, &err);
 *     while (gradc_batches_next(b, buffers, &rows) == GRADC_OK && rows > 0)
 *         ... one step with in.rows = rows ...
 */

typedef struct gradc_batches gradc_batches;

typedef struct gradc_batch_options {
    size_t struct_size;
    int64_t rows; /* of a full batch: batch_rows * accumulate of the model */
    uint64_t seed;
    int32_t shuffle;   /* a new order every epoch, a function of (seed, epoch) alone */
    int32_t drop_last; /* a last batch that is not full is left out */
} gradc_batch_options;

/* Batches of rows (first axis) of several arrays of equally many rows. The arrays stay the caller's
 * and must live as long. Needs no memory that grows with the data: the order is a keyed permutation
 * of the row numbers, the same on every machine.
 * fails: GRADC_BAD_ARGUMENT (no rows, different numbers of rows, rows < 1), GRADC_MEMORY. */
GRADC_API int gradc_batches_open(const gradc_array *const *arrays, int32_t n,
                                 const gradc_batch_options *o, gradc_batches **out, gradc_error *e);
GRADC_API void gradc_batches_close(gradc_batches *b);

/* Copies the next batch: buffers[i] gets options.rows rows of arrays[i], packed. *rows is how many
 * of them are new; 0 says that the epoch is over (nothing is copied; the next call begins the next
 * epoch, which behind INT64_MAX is 0). The rest of a partial batch is filled with its own rows
 * again, so that every value is a possible one; hand *rows to the model (gradc_block.rows). A NULL
 * buffer is skipped. */
GRADC_API int gradc_batches_next(gradc_batches *b, void *const *buffers, int64_t *rows);

/* Batches of one epoch. */
GRADC_API int64_t gradc_batches_count(const gradc_batches *b);

/* Where the next batch begins, and going there: after seek the same batches follow as then.
 * fails: GRADC_BAD_ARGUMENT (an epoch or row that cannot be). */
GRADC_API void gradc_batches_position(const gradc_batches *b, gradc_position *at);
GRADC_API int gradc_batches_seek(gradc_batches *b, const gradc_position *at);

/* The row at place `index` of the order of `count` rows in that epoch, and a draw from 0..count-1,
 * uniform, for any index; both are functions of their arguments alone. count >= 1, index as said
 * (order: 0 <= index < count), else -1. sources: Feistel order with cycle walking as in Mitchell et
 * al., "Bandwidth-Optimal Random Shuffling for GPUs" (2022); mixing of SplitMix64, Steele, Lea,
 * Flood (2014). */
GRADC_API int64_t gradc_shuffled(uint64_t seed, int64_t epoch, int64_t count, int64_t index);
GRADC_API int64_t gradc_draw(uint64_t seed, int64_t index, int64_t count);

/* Windows of a token text: tokens[r] = text[p .. p+context-1], next[r] = text[p+1 .. p+context]. */
typedef struct gradc_windows gradc_windows;

typedef struct gradc_window_options {
    size_t struct_size;
    int64_t rows;       /* of a batch */
    int64_t context;    /* tokens of a window */
    int64_t begin, end; /* the part of the text to use, begin <= i < end; both 0: all of it */
    uint64_t seed;
    int32_t in_order; /* 0: p uniform, for ever; 1: p = begin, begin + context, … to the end */
    int32_t reserved;
} gradc_window_options;

/* text: u8[n], i32[n] or i64[n], the caller's, must live as long.
 * fails: GRADC_BAD_ARGUMENT (fewer than context + 1 tokens in the part), GRADC_MEMORY. */
GRADC_API int gradc_windows_open(const gradc_array *text, const gradc_window_options *o,
                                 gradc_windows **out, gradc_error *e);
GRADC_API void gradc_windows_close(gradc_windows *w);

/* tokens, next: i32[rows, context] of the caller; `next` may be NULL. *rows as for batches: always
 * full when random; in order a last one may be partial, and 0 ends an epoch. GRADC_RANGE: an i64
 * token does not fit into i32. */
GRADC_API int gradc_windows_next(gradc_windows *w, int32_t *tokens, int32_t *next, int64_t *rows);

/* Batches of one epoch: in order those of one pass; random those that draw as many tokens as the
 * part has, at least 1 (a figure to plan with: random windows have no epochs). */
GRADC_API int64_t gradc_windows_count(const gradc_windows *w);
GRADC_API void gradc_windows_position(const gradc_windows *w, gradc_position *at);
GRADC_API int gradc_windows_seek(gradc_windows *w, const gradc_position *at);

/* ------------------------------------------------------------------------------------------------
 * Progress
 */

typedef struct gradc_progress gradc_progress;

enum {
    GRADC_PROGRESS_AUTO,     /* a line that changes if `out` is a terminal, else plain lines */
    GRADC_PROGRESS_TERMINAL, /* that line, whatever `out` is */
    GRADC_PROGRESS_LINES,    /* a full line every period_s seconds and at the end of an epoch */
    GRADC_PROGRESS_JSON,     /* one JSON object a line, every step that is shown */
    GRADC_PROGRESS_QUIET
};

typedef struct gradc_progress_options {
    size_t struct_size;
    FILE *out; /* the caller's; NULL is quiet */
    int32_t mode;
    int32_t every;         /* JSON: every n-th step, 0 or 1: all */
    int64_t steps, epochs; /* in all, for "time left"; 0: not known */
    double period_s;       /* of plain lines; 0: 10 */
    const char *metric;    /* its name, kept by the caller; NULL: none */
} gradc_progress_options;

/* What is known after a step. NAN: not known. */
typedef struct gradc_progress_values {
    int64_t epoch, step; /* epochs from 1; steps done */
    int64_t samples;     /* seen by this run since it was opened, for samples/s */
    double loss, metric, lr;
} gradc_progress_values;

GRADC_API int gradc_progress_open(const gradc_progress_options *o, gradc_progress **out,
                                  gradc_error *e);

/* Shows the values: at most ten times a second on a terminal, the first and the last step always.
 * A failing `out` is ignored. NULL progress is allowed everywhere. */
GRADC_API void gradc_progress_step(gradc_progress *p, const gradc_progress_values *v);

/* One line of text of its own (validation results, "saved run.gck"), above the changing line;
 * in JSON {"event":"message","text":…}. */
GRADC_API void gradc_progress_say(gradc_progress *p, const char *text);

/* Named figures as a line of their own: "validation: loss 0.231, accuracy 0.912", in JSON
 * {"event":"validation","loss":0.231,"accuracy":0.912}; figures that are not finite are null. */
GRADC_API void gradc_progress_report(gradc_progress *p, const char *event, const char *const *names,
                                     const double *figures, int32_t n);

/* Ends the line and frees. */
GRADC_API void gradc_progress_close(gradc_progress *p);

/* `value` as text with '.' as decimal point whatever the locale: `digits` significant digits (1 to
 * 17, without trailing zeros), or 0: the fewest that read back to the same double, -1: … to the
 * same float. Infinities are inf and -inf, NaN is nan. Returns `out`, always ended; 32 bytes do. */
GRADC_API char *gradc_format(char *out, size_t size, double value, int digits);

#ifdef __cplusplus
}
#endif
#endif
