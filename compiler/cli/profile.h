/* gradc bench --profile: where the time of an entry goes. */
#ifndef GRADC_CLI_PROFILE_H
#define GRADC_CLI_PROFILE_H

#include "../target/cuda/gpu.h"
#include "probe.h"
#include "values.h"

enum { LIMIT_FLOPS, LIMIT_MATH, LIMIT_BYTES, LIMIT_CALLS, N_LIMITS };

/* Where one event of a call began and ended. */
typedef struct Event {
    int32_t step;    /* into Profile.step */
    double from, to; /* ns since the entry began */
} Event;

/* Calls of one kernel from one line of the model. */
typedef struct ProfileRow {
    const Call *call;       /* the first of them */
    const char *line;       /* "mlp.model:7", or NULL */
    int64_t calls;          /* a call of the entry: those of loops are many */
    double ns;              /* of all in one call of the entry, of each the quickest */
    double flops, bytes;    /* likewise; 0: a transfer */
    double least[N_LIMITS]; /* ns that they take at best, by what limits them */
    double best;            /* the largest of these; on a GPU what its model says; -1: not known */
    const char *limit;      /* "flops"; NULL: not known */
} ProfileRow;

typedef struct Profile {
    const char *entry;
    int32_t n_steps;
    const Call **step;        /* NULL: none, a loop of a GPU's */
    int64_t n_calls, threads; /* calls of the entry that were timed */
    double ns;                /* a call of the entry, all in all: the quickest */
    Roof roof;
    bool on_gpu;
    const Gpu *gpu;       /* whose model is beside the times; NULL: none */
    const char *device;   /* of the GPU */
    const Launch *launch; /* likewise: by kernel */
    double apart;         /* ns between two events of the GPU with nothing between them */
    VEC(ProfileRow) row;  /* the longest first */
    VEC(Event) event;     /* of the last call */
    bool has_all;         /* events of it */
    int32_t n_chains;     /* of kernels that follow one another slab by slab there (cpu/chain.h) */
    bool in_order;        /* turns of loops, that are on a lane each where nobody looks */
} Profile;

/* Calls of an entry: the first ones, so many, don't count. */
typedef struct ProfileRun {
    const Values *in, *out;
    int64_t warmup, n_calls, threads;
} ProfileRun;

/* Calls the session's longest entry; the session is one that was compiled with `laps`. An exit
 * status, after a message unless EXIT_OK. */
int profile_session(const Cli *c, Session *s, const ProfileRun *run, Profile *to);
/* ... on a GPU: launch by launch, with events of the driver between them. */
int profile_launches(const Cli *c, Session *s, const ProfileRun *run, Profile *to);

/* What profile.c does for both: a step's times go to r->ns and r->calls while an entry runs. */
typedef struct Recorder {
    Profile *p;
    Arena *arena;
    double began, last;
    double *ns;     /* by step, of this call */
    int64_t *calls; /* likewise */
    double *least;  /* by step: of the quickest call */
} Recorder;
Recorder recorder_make(Profile *p, Arena *a);
void record(Recorder *r, int32_t step, double from, double to); /* ns since the entry began */
/* Calls of the longest entry; a status of the runtime's. */
int record_calls(Session *s, Recorder *r, const ProfileRun *run);
/* A row for each kernel and line, by time; `count` adds a step's work to its row. */
typedef void CountStep(const Profile *p, ProfileRow *row, const Program *program, int32_t step,
                       double calls);
void make_rows(const Ctx *cx, const Program *program, const Recorder *r, CountStep *count);
void profile_text(const Profile *p, Text *to);
void profile_json(const Profile *p, Text *to);
/* Of the last call, as Chrome's and Perfetto's viewers read it.
 * source: Trace Event Format, "JSON Object Format", complete events. */
void profile_trace(const Ctx *cx, const Profile *p, Text *to);

#endif
