/* cuda_state.h: a handle of an object of the target cuda, between its calls.
 *
 * A call copies inputs into one of two pinned stages, and launches the graph that was captured for
 * the entry and this stage: uploads, kernels, and the copy of loss and flag back into the stage. So
 * the host may be two calls ahead of the device. Before a stage is used again its event is waited
 * for, and what its call has left there is looked at. */
#ifndef GRADC_CUDA_STATE_H
#define GRADC_CUDA_STATE_H

#include "cuda_abi.h"
#include "cuda_driver.h"

enum { GR_STAGES = 2 };

typedef struct Gpu {
    gradc_cuda calls; /* first: it is what the options name */
    Driver driver;
    CuDevice device;
    CuStream stream; /* the caller's, or NULL */
    bool plain;      /* $GRADC_CUDA_SYNC: no graphs, and a wait after each launch */
    gradc_cuda_device about;
    gradc_cuda_lap lap; /* NULL: nobody watches */
    void *lap_of;
} Gpu;

/* What a call leaves in its stage; then come the inputs. */
typedef struct Left {
    unsigned char loss[8];
    unsigned char finite; /* 0: nothing was updated */
    unsigned char unused[7];
    int64_t rows; /* goes the other way */
    unsigned char unused_too[40];
} Left;

typedef struct Stage {
    Left *left; /* pinned */
    CuEvent done;
    bool used;     /* a call has been launched, and nobody has looked at what it left */
    int32_t entry; /* its */
} Stage;

/* Where a launch has ended. */
typedef struct Mark {
    CuEvent event;
    int64_t op; /* -1: of none */
} Mark;

typedef struct gradc_cuda_state {
    const Gpu *gpu;
    const gradc_cuda_program *p;
    gradc_cuda_handle *g;
    CuContext context;
    CuStream stream;      /* the caller's, or `own` */
    CuStream own;         /* graphs are captured on it */
    CuModule *module;     /* by program */
    CuFunction *function; /* by kernel */
    CuPointer memory;     /* the block on the device */
    void *pinned;
    int64_t *at;   /* by input: its bytes behind Left */
    bool *there;   /* by input: the call at hand has it on the device, and without a range */
    bool *brought; /* ... or has had it there: it is on the stage by now */
    Stage stage[GR_STAGES];
    CuGraphExec graph[GRADC_CUDA_ENTRIES][GR_STAGES];
    CuGraphExec bare[GRADC_CUDA_ENTRIES]; /* kernels alone; made when inputs are on the device */
    int32_t next;                         /* stage */
    int64_t refused;                      /* calls that changed nothing since anybody was told */
    int64_t calls;                        /* since then */
    int64_t first_refused;                /* of these */
    unsigned char loss[8];                /* of the last step or grad that has been looked at */
    bool has_loss, has_gradients;
    Mark *mark;                       /* behind launches that are watched */
    int64_t marks, events, mark_room; /* of this call; that have an event; of the array */
    const gradc_cuda_op *watched;     /* the entry's; NULL: what is launched is not watched */
    CuPointer *value;                 /* arguments of a launch */
    void **argument;
    bool lost;           /* after a failure: it can only be closed */
    int32_t lost_status; /* ... with this */
} gradc_cuda_state;
typedef struct gradc_cuda_state State;

/* ---- cuda_error.c ---- */

/* A sentence of the handle. gives: status */
int gr_cuda_say(gradc_cuda_handle *g, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* `what` has failed: the sentence names it, the driver, the device and what is needed.
 * gives: GRADC_MEMORY, GRADC_NO_GPU or GRADC_DEVICE; GRADC_OK if r is CU_OK. */
int gr_cuda_check(State *s, CuResult r, const char *what);
/* ... which is to give a pointer or handle: a driver that says so, and gives none, is not trusted.
 * It is looked for at `gift` after the call, so that arguments may be evaluated in any order. */
int gr_cuda_given(State *s, CuResult r, const void *gift, size_t size, const char *what);
/* *to is NULL before. */
#define CU_NEW(s, function, to, ...)                                                               \
    gr_cuda_given((s), (s)->gpu->driver.function((to), __VA_ARGS__), (to), sizeof *(to), #function)
#define CU(s, function, ...) gr_cuda_check((s), (s)->gpu->driver.function(__VA_ARGS__), #function)

/* ---- cuda_image.c: modules ---- */
int gr_cuda_load(State *s);
void gr_cuda_unload(State *s);

/* ---- cuda_graph.c ---- */

/* Everything that the entry launches, on the stream. */
int gr_cuda_launch_all(State *s, const gradc_cuda_entry *e, CuStream stream);
/* Graphs of all entries, by stage. */
int gr_cuda_capture(State *s);
/* *graph: kernels of the entry, without uploads. */
int gr_cuda_capture_bare(State *s, int32_t entry, CuGraphExec *graph);
void gr_cuda_drop_graphs(State *s);
/* Loss and flag of the entry into the stage. */
int gr_cuda_fetch_left(State *s, const gradc_cuda_entry *e, const Stage *stage, CuStream stream);
/* Input i of the entry from the stage into its slot. */
int gr_cuda_upload_one(State *s, const gradc_cuda_entry *e, int32_t i, const Stage *stage,
                       CuStream stream);
int gr_cuda_upload_rows(State *s, const Stage *stage, CuStream stream);
static inline unsigned char *gr_cuda_staged(const State *s, const Stage *stage, int32_t i)
{
    return (unsigned char *)(stage->left + 1) + s->at[i];
}

/* ---- cuda_watch.c: times of launches ---- */

/* Everything that the entry launches, one by one; waits, and tells the GPU's `lap` of each. */
int gr_cuda_launch_watched(State *s, const gradc_cuda_entry *e, CuStream stream);
/* Behind the launch of `op`, or of nothing: NULL. */
int gr_cuda_mark(State *s, const gradc_cuda_op *op, CuStream stream);
void gr_cuda_drop_marks(State *s);

/* ---- cuda_feed.c: inputs ---- */

typedef struct Feed {
    const gradc_cuda_entry *e;
    const gradc_block *in;
    int64_t rows;
    bool lenient;   /* inputs may be missing */
    bool on_device; /* some are to be copied from there: State.there */
} Feed;
/* Checks the inputs; those on the device that have a range come into the stage for that. */
int gr_cuda_check_inputs(State *s, Feed *f, const Stage *stage);
/* Puts what is not on the device into the stage. */
void gr_cuda_fill(State *s, const Feed *f, const Stage *stage);
/* From the stage and from the device into the slots. */
int gr_cuda_upload(State *s, const Feed *f, const Stage *stage);
/* *there: the memory is on the device. */
int gr_cuda_where(State *s, const void *p, bool *there);
static inline void *gr_cuda_data(const gradc_block *b, int32_t i)
{
    return b == NULL ? NULL : ((void *const *)((const char *)b + offsetof(gradc_block, data)))[i];
}

/* ---- cuda_call.c, cuda_tensor.c, cuda_init.c: functions of gradc_cuda ---- */

int gr_cuda_enter(void *g, State **s); /* GRADC_OK: to be left again */
int gr_cuda_leave(State *s, int status);
/* After a failure: what has been queued still reads and writes memory that the caller, or closing,
 * takes back now. It is waited for, as far as that goes. */
void gr_cuda_drain(const State *s);
/* Waits for the stream, and looks at what calls have left. */
int gr_cuda_settle(State *s);
/* GRADC_NONFINITE where calls that have been looked at were refused, and nobody was told. */
int gr_cuda_tell(State *s);
/* What is not finite of a step that has just been refused, in words. gives: GRADC_NONFINITE */
int gr_cuda_blame(State *s, const Feed *f, const Stage *stage);
int gr_cuda_call(void *g, int32_t entry, const gradc_block *in, gradc_block *out);
int gr_cuda_wait(void *g, void *loss);
int gr_cuda_read(void *g, int32_t tensor, void *to, size_t bytes);
int gr_cuda_write(void *g, int32_t tensor, const void *from, size_t bytes);
int gr_cuda_set(void *g, int32_t tensor, double value);
int gr_cuda_init(const gradc_cuda *c, const gradc_cuda_program *p, void *block,
                 const gradc_options *o);
int gr_cuda_close(void *g);

#endif
