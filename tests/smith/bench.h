/* A compiled model on the bench: its object, the judge, inputs. */
#ifndef GRADC_SMITH_BENCH_H
#define GRADC_SMITH_BENCH_H

#include "compile.h"
#include "runtime/abi.h"
#include "smith.h"

typedef struct Bench {
    Ctx cx;
    Arena arena;
    Output out;
    Loaded *loaded;
    const gradc_model *m;
    const Program *p;
    Judge *judge;
    uint64_t seed;
    int64_t chunk_from; /* Options.chunk_from */
    bool offload;       /* Options.offload */
    bool has_slices;    /* of the graph without chunks */
    const void **in;    /* by input */
    gradc_block *in_block, *out_block;
    void *handle;          /* of the last run */
    int32_t lanes;         /* of it */
    bool as_built;         /* with the options of `gradc build`, not with drawn ones, ... */
    const char *cpu;       /* ... for this processor; NULL: native */
    const char *precision; /* Options.precision */
    int status;            /* of the object's last call */
    Verdict *v;
} Bench;

/* Notes the first fault; gives false. */
bool fault(Verdict *v, Fault f, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* `bytes` that end (but for `align`) where a page begins that nobody may touch; filled. */
void *guarded(int64_t bytes, int64_t align, int fill);

/* An array for each input, each of which ends where a page begins that nobody may touch. */
const void **draw_inputs(const Program *p, uint64_t seed, Arena *a);

/* store.c: of so many bytes, in `a`. */
const gradc_offload *late_store(int64_t bytes, Arena *a);

/* Options.chunk_from of the models of this seed: so small that it tells, or none. */
int64_t chunk_from(uint64_t seed);

/* check.c: compiles and loads the model, draws its inputs; false after noting a fault. */
bool bench_open(Bench *b, const char *text, bool loud);
/* ... the same inputs, another object. */
bool bench_open_again(Bench *b, const char *text, BudgetAsked budget);
/* A block between guard pages and a handle in it, for so many lanes; gives the status of init. */
int bench_start(Bench *b, int32_t lanes, char **block, void **handle);
/* What lies before the block is as it was; false after noting a fault. */
bool bench_edge(Bench *b, const char *block);
/* Calls the entry e of the handle g with so many rows (0: all), results cleared; gives its status.
 */
typedef int RunEntry(void *g, const gradc_block *in, gradc_block *out);
int bench_call(Bench *b, const Entry *e, void *g, RunEntry *call, int64_t rows);
/* The bytes of tensor i of the handle g, after a call of the entry; NULL after noting a fault. */
const void *bench_tensor(Bench *b, void *g, int i, const char *entry);
/* The number of an entry's result in the model's table. */
int bench_output(const Bench *b, const Result *r);

/* derive.c: the text with f64 in place of halves, and of f32 too where `all`; in `a`. */
const char *twin_text(Arena *a, const char *text, bool all);
/* step.c: a step of the judge, which is in the wide mode and past `init`, against the graph
 * of the step. The program is in double. `signs`: the optimizer takes signs of gradients. */
void check_step(const Program *p, const Graph *g, int n_slots, Judge *judge, const void **in,
                bool signs, Verdict *v);
/* derive.c: the gradients of the model by other means. */
void check_derivatives(const char *text, uint64_t seed, Verdict *v);

#endif
