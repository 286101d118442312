/* --cost measured: what kernels take on this machine, and the file that keeps it. */
#ifndef GRADC_CLI_TIMING_H
#define GRADC_CLI_TIMING_H

#include "cli.h"

enum { TIMING_KEY = 32 };

/* A kernel, and where and how it ran. */
typedef struct Timing {
    char key[TIMING_KEY + 1]; /* hash of its text, in hexadecimal digits */
    const char *name;
    const char *target; /* "cpu:znver4" */
    int32_t threads;
    int64_t spread; /* bytes that its operands lie about in */
    double ns;      /* a multiple of 0.1, so that it is read back as it was */
} Timing;

/* An entry as a whole. */
typedef struct WholeTiming {
    char key[TIMING_KEY + 1]; /* hash of the model and of the options that change its code */
    const char *entry, *target;
    int32_t threads;
    double ns;
} WholeTiming;

typedef struct Timings {
    Cli *c;
    const char *path; /* NULL: not kept */
    const char *cpu;  /* the machine, as its system names it */
    VEC(Timing) at;
    VEC(WholeTiming) whole;
    int64_t spread; /* of all forms of a program: that of the first; 0: none yet */
    KernelTimer timer;
} Timings;

/* What the file holds; where there is none, one is made. An exit status after a message. */
int timings_read(Timings *t);
/* All of `at`, in place of what the file held. */
int timings_write(const Timings *t);

/* Builds one object of the n kernels, runs each alone, and fills in timing[i].ns: of several rounds
 * the quietest, in each of which the median of some calls counts, after one that does not. All are
 * of the same threads and spread.
 * fails: false, after reporting E0616, E0617. */
bool kernels_time(Cli *c, Ctx *cx, Kernel *const *kernel, Timing *timing, int n);

/* ns of a call of each entry that `o` asks for, of the program without a budget: the least of some
 * calls. 0, and a warning: it takes more than half of the machine's memory.
 * fails: false, after reporting E0616. */
bool entries_time(Cli *c, Ctx *cx, int32_t source, const Options *o, double ns[4]);

/* Of this thread where there is one, else of the clock on the wall. */
double timing_clock(bool one_thread);

#endif
