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

/* A program that keeps to a budget, and what it was timed under. */
typedef struct PlanTiming {
    char key[TIMING_KEY + 1]; /* as of WholeTiming, and of what was asked of the planner */
    const char *target;
    int32_t threads;
    TimedPlan plan;
} PlanTiming;

typedef struct Whole Whole; /* a program without a budget, in this process */

typedef struct Timings {
    Cli *c;
    const char *path; /* NULL: not kept */
    const char *cpu;  /* the machine, as its system names it */
    VEC(Timing) at;
    VEC(WholeTiming) whole;
    VEC(PlanTiming) plan;
    int64_t spread; /* of all forms of a program: that of the first; 0: none yet */
    Whole *open;    /* or NULL: of what is being planned */
    KernelTimer timer;
} Timings;

/* What the file holds; where there is none, one is made. An exit status after a message. */
int timings_read(Timings *t);
/* All of them, in place of what the file held. */
int timings_write(const Timings *t);
/* What is known under the conditions of `like`, or NULL. */
const Timing *timings_find(const Timings *t, const Timing *like);
const WholeTiming *timings_find_whole(const Timings *t, const WholeTiming *like);
const PlanTiming *timings_find_plan(const Timings *t, const PlanTiming *like);

/* Builds one object of the n kernels, runs each alone, and fills in timing[i].ns: of several rounds
 * the quietest, in each of which the median of some calls counts, after one that does not. All are
 * of the same threads and spread.
 * fails: false, after reporting E0616, E0617. */
bool kernels_time(Cli *c, Ctx *cx, Kernel *const *kernel, Timing *timing, int n);

/* Builds and loads the program without a budget, apart from what is being compiled. *out is NULL
 * after a warning: it takes more than half of the machine's memory.
 * fails: false, after reporting E0616. */
bool whole_open(Cli *c, Ctx *cx, const TimedModel *m, Whole **out);
/* ns of a call of each of its entries: the least of some calls; 0: it is not there. */
bool whole_time(Whole *w, Ctx *cx, double ns[4]);
/* The ratio of calls of `p`, which is built and loaded for that, to its own, in turns: the median
 * of some pairs, for each entry whose `ns`, which a call of its own takes, is not 0. *untimed: why
 * there is none.   fails: false, after reporting E0616. */
bool whole_beside(Whole *w, Ctx *cx, const Program *p, const double ns[4], double ratio[4],
                  const char **untimed);
void whole_close(Whole *w); /* NULL too */

/* Of this thread where there is one, else of the clock on the wall. */
double timing_clock(bool one_thread);

#endif
