/* Inputs and results of a loaded model, for run, train, test and bench. */
#ifndef GRADC_CLI_VALUES_H
#define GRADC_CLI_VALUES_H

#include "cli.h"
#include "../../runtime/gradc.h"

/* Buffers in the layout of gradc_block: rows, then one pointer for each tensor. */
typedef struct Values {
    const gradc_tensor *tensor;
    int32_t n;
    gradc_block *block;
} Values;

/* Memory for every input; drawn from `seed`: floats are normal, integers uniform in
 * their range (0..1 without one, bytes 0..255). */
Values inputs_make(Arena *a, const gradc_model *m, uint64_t seed, int64_t rows_factor);
/* Memory for every result. */
Values results_make(Arena *a, const gradc_model *m);
/* Fills input `name` from "FILE.npy" or "1,2,3". EXIT_OK, or a status after a message. */
int inputs_fill(Values *v, const char *name, const char *from);
int32_t values_find(const Values *v, const char *name);

/* Element i of an array: the shortest number that is this one, of f32 where it is a half. */
void add_element(Text *t, DType dtype, const void *data, int64_t i);

/* What runs an entry: with the rows and pointers of its inputs, and of results or NULL for each. */
typedef int EntryFn(void *g, const gradc_block *in, gradc_block *out);

/* The function of an ENTRY_... but init; NULL: the model lacks it. */
EntryFn *entry_fn(const gradc_model *m, int entry);
/* That which does most of what is there: a model without a `train` has gradients but no step. */
int longest_entry(const gradc_model *m);

#endif
