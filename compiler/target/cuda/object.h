/* The object of the target cuda: tables and images for runtime/cuda*.c (cuda_abi.h), and functions
 * of the model's names that hand their arguments over. All of it is printed as LLVM's text. */
#ifndef GRADC_TARGET_CUDA_OBJECT_H
#define GRADC_TARGET_CUDA_OBJECT_H

#include "../facts.h"
#include "images.h"

/* Where things that the plan has no place for lie, behind the arena. */
typedef struct Behind {
    int64_t *slot;     /* by input, in the arena or behind it; -1: nobody reads it */
    int64_t *constant; /* by buffer: offset within the literal tensors, -1 for others */
    int64_t constants, constant_bytes;
    int64_t always; /* among the literals: the flag of guarded kernels that no guard is around;
                     * or -1 */
    int64_t device_bytes; /* of all */
} Behind;

typedef struct Object {
    Ctx *cx;
    const Program *p;
    const CudaImages *images;
    Arena *arena;
    const char *name;  /* prefix of all symbols */
    const char *about; /* "cuda:80,90,ptx120" */
    uint64_t magic;    /* of handles */
    Behind behind;
    Text to, strings;
    int n_strings;
    const char *row; /* of the table being printed: its type, how many, how many there are */
    int64_t rows, row_at;
    int64_t operands, strides; /* rows of these tables */
    LaunchedCalls *launched;   /* by entry */
} Object;

/* behind.c */
Behind cu_place_behind(const Program *p, const bool *guarded, Arena *arena);

/* tables.c: @gradc.program, and what it points to; the model's functions are named by it. */
void cu_tables(Object *o);
/* "@gradc.text.3": a constant of this text. */
const char *cu_text_constant(Object *o, const char *s);
/* Rows of a table: begin, then a row each, then end. Of none there is no table: cu_table_ref() */
void cu_table_begin(Object *o, const char *name, const char *row, int64_t n);
void cu_table_row(Object *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cu_table_end(Object *o);
const char *cu_table_ref(Object *o, const char *name, int64_t n);

/* entries.c: @gradc.entry.NAME for each entry, with operands and steps. */
void cu_entry_tables(Object *o);

/* functions.c: the exported functions. */
void cu_functions(Object *o);

/* object.c: tables, functions and images as an object; its header. fails: false, after a report. */
bool cu_object(Ctx *cx, const Program *p, const TargetOptions *options, Arena *arena,
               const CudaImages *images, ObjectFile *out);

#endif
