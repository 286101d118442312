/* The command line: one table of commands, one of options, one function a command.
 *
 * Data goes to stdout, messages to stderr. A command returns its exit status; only
 * main.c leaves the program. */
#ifndef GRADC_CLI_CLI_H
#define GRADC_CLI_CLI_H

#include "../compile.h"

struct gradc_store; /* of libgradc */
struct Gpu;         /* target/cuda/gpu.h */

/* Exit status. */
enum {
    EXIT_OK = 0,
    EXIT_INPUT = 1, /* errors in the model or its data */
    EXIT_USAGE = 2,
    EXIT_FILE = 3,   /* a file operation failed, or a file is damaged */
    EXIT_MEMORY = 4, /* out of memory, or the budget is infeasible */
    EXIT_NO_GPU = 5,
    EXIT_INTERNAL = 70 /* a mistake in gradc */
};

typedef enum OptionId {
#define OPTION(id, name, letter, value, commands, help) OPT_##id,
#include "options.def"
#undef OPTION
    N_OPTIONS
} OptionId;

typedef struct Given {
    OptionId id;
    const char *value; /* NULL for a switch */
} Given;

typedef struct Cli {
    Ctx *cx;
    const struct Command *command;
    VEC(Given) given;
    VEC(const char *) operand; /* what is not an option */
    Options options;           /* of the pipeline, from the above */
    int32_t timing_threads;    /* lanes that --cost measured runs kernels on */
    bool laps;                 /* entries look at the clock after each step: TargetOptions.laps */
} Cli;

typedef struct Command {
    const char *name;
    const char *operands; /* "M.model" */
    const char *summary;
    int (*run)(Cli *c);
    int min_operands, max_operands;
    const char *examples;
} Command;

extern const Command commands[];
extern const int n_commands;

/* Parses argv[1..]; EXIT_OK, or EXIT_USAGE after a message. `*done` is set when help or
 * the version has been printed. */
int cli_parse(Cli *c, int argc, char **argv, bool *done);
bool cli_has(const Cli *c, OptionId id);
/* The value given, or `otherwise`. */
const char *cli_value(const Cli *c, OptionId id, const char *otherwise);
/* The n-th value of an option that may be given several times, or NULL. */
const char *cli_nth(const Cli *c, OptionId id, int n);
/* A number in [lo, hi]; EXIT_USAGE after a message. */
int cli_integer(const Cli *c, OptionId id, int64_t otherwise, int64_t lo, int64_t hi, int64_t *out);
/* "512MiB", "1.5GiB", "4096". */
bool parse_bytes(const char *s, int64_t *bytes);

/* --cost: time, flops, measured, or a file of `doctor --calibrate`; an exit status after a
 * message. */
int cli_cost(Cli *c);
int cli_measured(Cli *c); /* --cost measured, with --cost-file */
/* --threads, by default as many as there are cores, and at most 8; scratch for as many. */
int cli_threads(Cli *c, int64_t *threads);

/* --gpu, or `otherwise`, which may be NULL; *gpu is NULL of another target, or where there is no
 * name. EXIT_USAGE after a message. */
int cli_gpu(const Cli *c, const char *otherwise, const struct Gpu **gpu);

/* --jobs, by default as many as there are cores. */
int cli_jobs(Cli *c, int32_t *jobs);
int usable_cores(void);
/* The folder of the cache; NULL: there is none, or --no-cache. */
const char *cli_cache(const Cli *c);
/* A remark, where that can't be written. */
void say_cache(const Cli *c);
/* doctor: where the cache is, and what is in it; with --clear-cache, what was. */
void print_cache(const Cli *c);

/* --offload and --offload-rate, which is part of the cost; an exit status after a message.
 * requires: cli_cost(). */
int cli_offload(Cli *c);
bool offload_is_host(const Cli *c);
/* The store that --offload asks for; an exit status after a message. */
int offload_open(const Cli *c, int64_t bytes, struct gradc_store **out);

/* --budget ("min", "80%", "512MiB"; BUDGET_NONE if it is not given) and --plan-effort;
 * EXIT_USAGE after a message. */
int cli_budget(const Cli *c, BudgetAsked *b, PlanEffort *effort);

/* One sentence on stderr: "gradc: ..."; with --json an object of the keys of a diagnostic, whose
 * code and file are null. A remark is a warning. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
int usage_error(const Cli *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void messages_as_json(bool json);
/* For arena_on_exhaustion(): says so, and removes temporary files. */
void say_exhausted(size_t bytes);

/* From options to those of the pipeline; EXIT_USAGE after a message. */
int read_options(Cli *c);
/* Reads the model's source: EXIT_OK and its index, or EXIT_FILE after a message. "-" is
 * standard input. */
int read_source(Cli *c, const char *path, int32_t *source);
/* Appends the file's bytes, at most `most` and one; statuses and "-" likewise. */
int read_text(const char *path, size_t most, Text *t);
/* Exit status for what has been reported; prints the diagnostics. */
int finish(Cli *c, bool ok);

/* "mlp.model" as "mlp.o"; without the old suffix the new one is put behind. */
const char *replace_suffix(Arena *a, const char *path, const char *old, const char *with);
/* Where what is made of the model operand goes: into the current folder, named as the file, or as
 * the model where that is read from standard input. */
const char *output_path(const Cli *c, Arena *a, const char *model, const char *suffix);

/* Files are written under a temporary name beside the final one, and renamed when
 * all of them are there: nothing is half written. */
typedef struct Files Files;
Files *files_open(Arena *a);
void files_add(Files *f, const char *path, const void *bytes, size_t n); /* "-": stdout */
/* EXIT_OK, or after a message EXIT_FILE, EXIT_USAGE: one path for two files. */
int files_commit(Files *f);
void files_abandon(void); /* removes temporary files, at exhaustion of memory too */

/* Under --allow-split, on stderr: how the batch is taken, or why it is not split. */
void say_split(const Cli *c, const Output *out);

/* Compiles as far as `stage`: 0 graphs of the forward pass, 1 all graphs, 2 plans. Gives an exit
 * status, after messages. */
int compile_to(Cli *c, int stage, Output *out);

/* A compiled model in this process: the very bytes that `build` writes. */
typedef struct Session {
    Output out;
    int32_t source;
    Arena arena;
    Loaded *loaded;
    const struct gradc_model *model;
    struct gradc_pool *pool;
    struct gradc_store *store; /* of offloaded values; NULL: there are none */
    struct gradc_cuda *gpu;    /* of the target cuda; else NULL */
    void *block, *handle;
    double compile_ms;
} Session;

/* Compiles operand 0, loads it and initialises a handle with --seed and --threads.
 * Returns an exit status, after a message unless EXIT_OK. */
int session_open(Cli *c, Session *s, bool wants_grad);
/* The same of a text. */
int session_open_text(Cli *c, Session *s, const char *name, const char *text, int64_t threads);
/* Makes a handle of what has been loaded, with --seed, and a pool unless there is one. */
int session_start(const Cli *c, Session *s, int64_t threads);
void session_close(Session *s);
/* A message for a status of the model's entries. */
int session_failed(const Session *s, const char *what, int status);

/* --format, one of those known; EXIT_USAGE after a message. */
int show_format(const Cli *c, const char *const *known, int n, const char **format);
const char *text_of_plans(const Cli *c, Output *out, bool json);

const char *cpu_model(Arena *a); /* as the system names the processor */
double now_ms(void);
int64_t peak_rss_bytes(void);

int command_build(Cli *c);
int command_check(Cli *c);
int command_show(Cli *c);
int command_plan(Cli *c);
int plan_problem(Cli *c);   /* plan --problem */
int plan_placement(Cli *c); /* plan --placement */
int plan_diff(Cli *c);      /* plan --diff */
int plan_devices(Cli *c);   /* plan --devices */
int command_explain(Cli *c);
int command_run(Cli *c);
int command_train(Cli *c);
int command_test(Cli *c);
int command_bench(Cli *c);
int command_inspect(Cli *c);
int command_doctor(Cli *c);
int doctor_calibrate(Cli *c); /* doctor --calibrate */
int command_fmt(Cli *c);

#endif
