/* What the files of the evaluator share: one run over the tree that builds one graph.
 *
 *   model.c     files, arguments, constants of files, what is pinned
 *   scope.c     names, call paths, where a mistake is reported
 *   stmt.c      statements                  expr.c      expressions
 *   arith.c     operators                   convert.c   values as sizes, axes, tensors
 *   subscript.c x[i, a:b, index]            call.c      fn, block, arguments
 *   builtin*.c  functions that gradc knows  loop.c      scan
 *   param.c     parameters, state, inputs   init.c      first values
 *   rows.c      partial batches             update.c    optimizer, clipping, counters
 *   train.c     the `train` definition      accumulate.c  micro-batches
 *   build.c     an entry, from start to end     split.c  may a batch be taken in parts?
 *
 * Functions that give a Value give &value_poison after a report; functions that give a
 * Ref give NONE then. Whoever is handed poison says nothing. */
#ifndef GRADC_FRONT_EVAL_H
#define GRADC_FRONT_EVAL_H

#include "build.h"
#include "value.h"
#include "graph/op.h"

enum { MAX_CALL_ARGS = 16 };
enum { MAX_NODES = 1000000, MAX_STEPS = 2000000, MAX_EVAL_DEPTH = 2500, MAX_DEFINES = 256 };

/* ---- model --------------------------------------------------------------- */

typedef struct ConstDef {
    const Item *item;
    const Value *value; /* NULL: not yet computed */
    bool busy;          /* being computed: it depends on itself if asked for now */
} ConstDef;

typedef struct NameMap {
    const char **key; /* interned */
    int32_t *value;
    int n, cap;
} NameMap;

/* A file of definitions. */
typedef struct Module {
    const char *name; /* interned; "" for the model's own file */
    const Ast *ast;
    bool library;
    VEC(ConstDef) constant;
    NameMap item_at; /* what has a name to be called by, of ast */
} Module;

/* First value of a slot. */
typedef struct Init {
    InitKind kind;
    double a, b;
    int64_t i;          /* INIT_FILL: instead of a, for a slot of integers or bool */
    const Value *items; /* INIT_LITERAL */
    const char *text;   /* INIT_FILL: as written, or NULL */
} Init;

typedef enum Clip { CLIP_NONE, CLIP_NORM, CLIP_VALUE } Clip;
typedef enum Guard { GUARD_GRADIENTS, GUARD_LOSS, GUARD_OFF } Guard;

/* How a model is trained; what `train` does not say has its default. */
typedef struct Train {
    const Item *item; /* NULL: it is not trained */
    const Expr *optimizer;
    Clip clip;
    double clip_at;
    int64_t accumulate;
    Precision precision;
    Guard guard;
    VEC(const Expr *) freeze; /* strings */
    VEC(bool) freezes;        /* has matched a parameter */
} Train;

typedef struct Origins {
    const Origin **slot;
    int n, cap; /* cap: a power of two */
} Origins;

typedef struct ModelArg {
    const char *name;
    Span at;
    const Value *value;
} ModelArg;
typedef VEC(ModelArg) ModelArgs;

/* The comment above the loss, an output or a metric. */
typedef struct Documented {
    const char *name, *doc;
} Documented;

struct Model {
    Ctx *cx;
    Arena *arena;
    const Item *item;
    Module *own;          /* the file of the model */
    VEC(Module *) module; /* with own; others as they are used */
    Module *prelude, *train_library;
    ModelArgs arg;       /* of a micro-batch: `batch` is less where the batch is split */
    ModelArgs whole_arg; /* as they were given: what `train` reads */
    Train train;
    Pinned pinned;
    Origins origins;
    NameMap slots;          /* by name */
    VEC(Init) init;         /* by slot */
    int64_t batch;          /* the argument `batch` of arg, or 0 */
    int64_t split;          /* so many micro-batches are one batch of the caller's */
    bool apart;             /* to be compared: across() stands by itself, whatever split is */
    bool rows_lost;         /* a partial batch can't be told apart everywhere */
    bool built;             /* some entry was: pinned is complete */
    VEC(bool) inferred;     /* by input: its range was not declared */
    VEC(BudgetPart *) part; /* of all builds */
    int32_t builds;         /* begun */
    int32_t lr;             /* slot of the learning rate, or -1 */
    VEC(Documented) documented;
};

/* ---- names --------------------------------------------------------------- */

typedef enum BindKind {
    BIND_LOCAL,
    BIND_CONST,
    BIND_ARG,
    BIND_INPUT,
    BIND_PARAM,
    BIND_STATE
} BindKind;

typedef struct Binding {
    const char *name;
    Span at; /* where it was bound */
    const Value *value;
    BindKind kind;
    Span given;   /* ARG: the argument in the call */
    int32_t slot; /* PARAM, STATE */
} Binding;

typedef struct Scope Scope;
struct Scope {
    Scope *outer; /* of a scan's body; NULL: module level is next */
    VEC(Binding) binding;
    NameMap at; /* binding, by name */
};

/* A call of a block: what its parameters are named by. */
typedef struct Instance Instance;
struct Instance {
    const char *name;   /* "h.0", NULL for the model */
    const char *prefix; /* "h.0.attn.", "" for the model */
    const Item *item;
    Span at;
    bool shared; /* its parameters were declared before, by `first` */
    const Instance *first;
    VEC(Instance *) child;
    NameMap child_at;      /* by name */
    int32_t numbered;      /* the last number of a name that is this one's and a number */
    VEC(const char *) own; /* names of slots it declared: once each */
    const Stmt *suspect;   /* a shared parameter of another shape, and the shapes */
    Type was, is;
    int32_t draws;  /* random draws so far: the occurrence in their keys */
    int32_t shares; /* later uses by `share` */
    int32_t use;    /* which use this is: 0 is the first */
};

typedef struct Frame Frame;
struct Frame {
    Frame *caller;
    Module *module;
    const Item *item;
    Span call;
    Scope *scope;
    Instance *instance;
    const Origin *origin; /* the call path */
    const Value *result;
};

/* ---- the run ------------------------------------------------------------- */

/* A body under construction. */
typedef struct Level Level;
struct Level {
    Level *outer;
    Graph *body, *around; /* around: the graph that the scan node is put into */
    int fixed;            /* carries and sequences: captured values come behind */
    int carries;
    const Ref *given;  /* of `around`: what the fixed arguments are */
    VEC(Ref) captured; /* of `around`, by argument number - fixed */
    VEC(Ref) arg;      /* of `body` */
    VEC(const Value *) emitted;
    VEC(const Expr *) emitted_by;
    Ref index, draw_step; /* of `body`: which step it is; what its draws are keyed by */
};

/* An assignment of state, at the end of the step. */
typedef struct Update {
    int32_t slot;
    Ref ref;
    Span at;
} Update;

/* across(s) is, until build_accumulate(), an input of this number less which one it is; s
 * itself is a root of this name. */
enum { ACROSS_INPUT = INT32_MAX };
#define ACROSS_ROOT "across"

typedef struct Declared {
    const char *name; /* interned */
    Span at;
    Type type;
    const Value *value;
} Declared;

typedef struct Rows Rows;

typedef struct Build {
    Ctx *cx;
    Model *m;
    Arena arena; /* values and names: until the graph is built */
    EntryKind entry;
    Graph *g; /* where nodes go: of the entry, or a body */
    Graph *top;
    Frame *frame;
    Level *level; /* innermost scan; NULL outside */
    bool training;
    bool in_init;     /* first values are wanted: normal(std = ..) */
    bool updating;    /* in build_update: optimizer state may be declared */
    Memory memory;    /* asked for by the statement that is done, or one around it */
    BudgetPart *part; /* that is run, or NULL */
    int depth;
    int64_t steps;
    bool stop;    /* too large: nothing more is built or reported */
    int n_errors; /* of cx at the start */
    VEC(Declared) declared;
    NameMap declared_at;
    VEC(Update) update;
    VEC(Ref) across; /* s of across(s) */
    Ref loss, step_number, seed, rows_value;
    Span loss_at;
    Rows *rows; /* NULL: every row counts */
    /* updating: */
    int32_t of;            /* the parameter */
    const char *optimizer; /* its name */
} Build;

/* ---- model.c ------------------------------------------------------------- */

Module *module_find(Model *m, const Module *from, const char *name); /* by `use`; or NULL */
const Item *module_item(const Module *in, const char *name);
/* A constant of a file. */
const Value *module_constant(Build *b, Module *in, const Item *item);
int32_t model_slot(Model *m, const char *name, SlotKind kind, const Type *t, const Origin *o);
int32_t map_get(const NameMap *map, const char *key); /* -1: none */
void map_set(Arena *a, NameMap *map, const char *key, int32_t value);
/* The one origin of these parts. */
const Origin *origin_find(Model *m, Origin o);
/* ... of which nothing is asked. */
const Origin *origin_at(Model *m, Span span, const Origin *parent, const char *name);

/* ---- scope.c ------------------------------------------------------------- */

void at(Build *b, Span span); /* nodes come from here now */
/* Reports at the span, or (a span of the library) at the call of it in the user's file. */
Diag *complain(Build *b, Code code, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* ... a warning. */
Diag *caution(Build *b, Code code, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* An operand as it is written, if it is short and the user's; else "x". */
const char *short_text(const Build *b, Span span);
/* Underlines an operand, unless it is written in the library. */
void mark_range(Build *b, Diag *d, Span span);
/* A node as a value: after a graph function that gave NONE, poison. */
const Value *made(Build *b, Ref r);
/* What was reported last by a graph function, moved out of the library. */
void move_report(Build *b);
/* The place in the user's file. */
Span user_span(const Build *b, Span s);
const char *copy_text(Build *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
const Binding *scope_find(const Build *b, const char *name);
void bind(Build *b, Name name, const Value *v, BindKind kind);
void bind_argument(Build *b, Name name, const Value *v, Span given);
void bind_slot(Build *b, Name name, const Value *v, BindKind kind, int32_t slot);
const Value *lookup(Build *b, const Expr *e); /* EXPR_NAME */
/* Reports `module.member`, where nothing is used by that name; the poison. */
const Value *unknown_module(Build *b, Name module, const char *member);
/* The value in the graph that is being built: captured by the bodies in between. */
Ref use(Build *b, const Value *v);
Build build_begin(Model *m, EntryKind e, Graph *g);
void build_end(Build *b);
bool too_large(Build *b, Span at);
/* help: "did you mean ...", if there is a near one. */
void suggest(Build *b, Diag *d, const char *word, const char *const *candidate, int n);

/* ---- stmt.c, result.c, expr.c, call.c ------------------------------------- */

bool exec(Build *b, const Body *body); /* true: a `return` was met */
const Value *eval(Build *b, const Expr *e);
const Value *eval_call(Build *b, const Expr *e);
const Value *eval_scan(Build *b, const Expr *e);
/* If `name` is a word that a scan takes as an option, the help is that no carry can have it. */
void help_scan_option(Build *b, Diag *d, const char *name);
/* A block that this one has called so far, by name, or NULL. */
Instance *child_named(const Instance *in, const char *name);
const Value *call_custom(Build *b, Module *in, const Item *item, const Expr *e); /* with a vjp */
const Value *eval_subscript(Build *b, const Expr *e);
/* Of result.c. */
void exec_loss(Build *b, const Stmt *s);
void exec_output(Build *b, const Stmt *s);
void exec_metric(Build *b, const Stmt *s);
/* `x = v`, `x, y = v`, `x[i] = v` */
void assign(Build *b, const LeftSides *t, const Value *v, Span at);
/* What the slot is set to for the next step, so far, or NULL. */
Update *pending_update(Build *b, int32_t slot);
/* What a table keeps under a key (a tuple); `name` is for the message. */
const Value *table_get(Build *b, const Table *t, const Value *key, Span at, const char *name);
/* Binds the names to the parts of v; false after a report. */
bool unpack(Build *b, const Names *names, const Value *v, Span at);
/* Runs the body of a fn or block on these arguments; NULL: the default, which then stands there. */
const Value *run_item(Build *b, Module *in, const Item *item, const Value **value, const Span *span,
                      Span call, Instance *instance);
/* Puts the arguments of the call in the order of the definition, `skip` ones left out. */
bool eval_arguments(Build *b, const Item *item, int skip, const Expr *e, const Value **value,
                    Span *span);

/* Arguments of a call, in the order of what is called. */
typedef struct CallArgs {
    const Expr *call;
    const char *name;                  /* as written */
    const Value *value[MAX_CALL_ARGS]; /* NULL: not given */
    Span at[MAX_CALL_ARGS];
    int n; /* how many a call of any number has */
} CallArgs;

/* ---- arith.c ------------------------------------------------------------- */

typedef struct Spans {
    Span whole, op, left, right;
} Spans;
const Value *arith_binary(Build *b, Operator op, const Value *l, const Value *r, const Spans *s);
const Value *arith_unary(Build *b, Operator op, const Value *v, const Spans *s);
/* Brings values to one shape and one dtype: *dtype if all are constants. `other`: the one
 * whose dtype is not looked at (the condition of `where`), or -1. */
bool unify(Build *b, const Value *const *v, const Span *span, int n, int other, DType *dtype,
           Ref *out, const char *what, Span at);

/* ---- constant.c ---------------------------------------------------------- */

/* An operator on constants; poison after a report. */
const Value *fold_binary(Build *b, Operator op, const Value *l, const Value *r, const Spans *s);
const Value *fold_negated(Build *b, const Value *v, const Spans *s); /* a number */
const Value *fold_concat(Build *b, const Value *l, const Value *r);  /* lists or tuples */
/* Reports that the operator is none of these two. */
const Value *fold_refused(Build *b, Operator op, const Value *l, const Value *r, const Spans *s);
/* An op of one operand on a constant, in double; false: it has no such form. */
bool fold_unary(OpId op, double x, double *y);
/* z as a value; poison after a report that it is not a number, or that it is infinite though it
 * comes of finite numbers. */
const Value *fold_result(Build *b, double z, bool of_finite, Span at);

/* ---- convert.c: false, after a report, unless it is what is wanted ------- */

bool want_int(Build *b, const Value *v, Span at, const char *what, int64_t *out);
bool want_number(Build *b, const Value *v, Span at, const char *what, double *out);
bool want_bool(Build *b, const Value *v, Span at, const char *what, bool *out);
bool want_string(Build *b, const Value *v, Span at, const char *what, const char **out);
bool want_dtype(Build *b, const Value *v, Span at, DType *out);
/* An integer or a list of them; *n is how many. */
bool want_ints(Build *b, const Value *v, Span at, const char *what, int64_t *out, int max, int *n);
bool want_shape(Build *b, const Value *v, Span at, int64_t *dim, int *rank);
/* An integer for each of n axes, or one for all. */
bool want_each(Build *b, const Value *v, Span at, const char *what, int64_t *out, int n);
bool want_axis(Build *b, const Value *v, Span at, int rank, int *axis);
/* Axes to reduce: NULL is all. */
bool want_axes(Build *b, const Value *v, Span at, int rank, bool *axes);
/* A tensor; a constant becomes one of this dtype. */
Ref want_tensor(Build *b, const Value *v, Span at, DType if_constant);
Ref want_float(Build *b, const Value *v, Span at, const char *what);
/* A constant as a node of dtype t: numbers, fills, nested lists. */
Ref constant(Build *b, const Value *v, DType t, Span at);
/* The number as dtype t has it; false after a report. */
bool number_as(Build *b, const Value *v, DType t, Span at, double *f, int64_t *i);
/* The shape of a value; rank 0 for a number; -1 if it has none. */
int shape_of(const Value *v, int64_t *dim);
/* Elements of nested lists, in memory as t has them. */
bool literal_data(Build *b, const Value *v, DType t, Span at, Type *type, void **data);

/* ---- builtin.c ----------------------------------------------------------- */

typedef struct Builtin Builtin;
const Builtin *builtin_find(const char *name);
const Value *builtin_call(Build *b, const Builtin *f, const Expr *e);
const Value *op_call(Build *b, OpId op, const Expr *e);
/* A bare name that gradc knows: training, zeros, ones, f32, step_number. */
const Value *builtin_name(Build *b, const char *name);
int builtin_names(const char **out, int max);
typedef const Value *BuiltinFn(Build *b, const CallArgs *c);
/* The table of builtin.c: `head` names the arguments, "x, axis?, keep?"; those with `?`
 * may be left out; "..." takes any number without names. */
struct Builtin {
    const char *name, *head;
    BuiltinFn *call;
    const char *doc;
    const char *example; /* of x : f32[2,3,4] and i : i32[2,3] */
};
extern const Builtin builtin_size_table[], builtin_shape_table[], builtin_value_table[],
    builtin_draw_table[];

/* ---- subscript.c --------------------------------------------------------- */

/* An index tensor reads a table of `rows`: an input that has no range gets this one. */
bool index_range(Build *b, Ref index, int64_t rows, Span at, Span table);

/* ---- param.c, init.c ----------------------------------------------------- */

void declare_input(Build *b, const Stmt *s);
void declare_slot(Build *b, const Stmt *s);
/* A shared parameter would have another shape: reported if nothing else was. */
void report_shared(Build *b, const Instance *in);
bool eval_type(Build *b, const TypeExpr *t, Type *out);
/* Assigns the first value of every slot. */
void build_init(Build *b);
/* A value of graph `from` in the body of l: captured by all bodies in between. */
Ref capture(Build *b, Level *l, Graph *from, Ref r);
/* `uniform` or `normal`, of this call's own key. */
Ref draw(Build *b, OpId op, Type t, Span at);
/* Every draw is a number of the type: INIT_UNIFORM, from x to y, or INIT_NORMAL, around x with
 * deviation y.   fails: false, after a report. */
bool draws_fit(Build *b, DType t, InitKind kind, double x, double y, Span span);
/* The slots that the caller and the counters use; made when they are first needed. */
Ref seed_value(Build *b);
Ref step_value(Build *b);
/* The frame of the model itself: its arguments are bound; for `train`, those of a whole batch. */
void enter_model(Build *b, Frame *frame, Scope *scope, Instance *top);
void enter_train(Build *b, Frame *frame, Scope *scope, Instance *top);

/* ---- rows.c -------------------------------------------------------------- */

Rows *rows_new(Build *b);
/* What takes the place of elements that are not there. */
typedef struct Missing {
    double f;  /* of floats */
    int64_t i; /* of integers and bool */
} Missing;

/* x with what lies beyond the valid rows of `axis` replaced. */
Ref rows_mask(Build *b, Ref x, int axis, Missing by);
/* Row count along the axis as a node, or NONE: all of it counts. */
Ref rows_valid(Build *b, Ref x, int axis);
bool rows_varies(Build *b, Ref x, int axis);
/* Is each index of the axis a row of the batch? x may be of a graph around this one. */
bool rows_along(Build *b, const Value *x, int axis);
/* The first axis of x, which is made of nothing, is that of the batch. */
void rows_begin(Build *b, Ref x);
/* At the end: does anything that is given or kept depend on lost rows? */
void rows_check(Build *b);

/* ---- unused.c ------------------------------------------------------------ */

/* Warns of values in a file that nothing reads. */
void warn_unused(Ctx *cx, const Ast *ast);

/* ---- train.c ------------------------------------------------------------- */

/* The block that the setting `optimizer` calls; NULL after a report. */
const Item *find_optimizer(Build *b, const Expr *call, Module **in);
/* Reads the `train` definition; false after a report. */
bool train_open(Model *m);
/* Marks a new parameter that a pattern of `freeze` matches. */
void train_freeze(Model *m, int32_t slot);
/* Reports patterns that match none of the model's parameters. */
bool train_unmatched(Model *m);

#endif
