/* The calls of an entry. Long runs of kernels are tables that one function of the object
 * walks (gradc.walk): a model of many layers is many rows, not much code. Short ones, as
 * in the body of a scan, are code: addresses, then the kernel. */
#include <assert.h>
#include <stddef.h>
#include <string.h>
#include "chain.h"

enum { LONG_RUN = 8 };

/* A loop, and the function that runs turns of it. */
typedef struct Turns {
    const Call *loop;
    Lv fn;
} Turns;

typedef struct MadeChain {
    Chain of;
    Lv fn;
} MadeChain;

typedef struct Calls {
    Model *m;
    Lv g, places, bufs;
    Lv indices;               /* [MAX_LOOP_DEPTH x i64]: the loops' indices for gradc.walk */
    Lv index[MAX_LOOP_DEPTH]; /* ... and as values */
    Lv lap;                   /* the Lap, or NULL */
    int32_t steps;            /* made so far */
    VEC(Turns) turns;
    VEC(MadeChain) chains;
    Lv scratch, lane; /* where whole turns are run: the lane's, and its number; else NULL */
    VEC(Lv) step, at, strides, constants; /* rows of the run being made */
} Calls;

/* ---- addresses ------------------------------------------------------------------------ */

static Lv base_of(Calls *c, const Buffer *b, int32_t index)
{
    Ir *ir = &c->m->ir;
    if (b->role == ROLE_CONSTANT)
        return c->m->constant[index];
    if (fact_is_input(b))
        return ir_load(ir, ir->ptr, ir_off(ir, c->places, 8 * b->input), 8);
    assert(b->offset >= 0 && "a buffer has a place in the block");
    Lv p = ir_off(ir, c->g, b->offset);
    if (c->lane != NULL && b->turn_bytes > 0)
        return ir_at_byte(ir, p, ir_mul(ir, c->lane, b->turn_bytes));
    return p;
}

static Lv operand(Calls *c, const Operand *o)
{
    Ir *ir = &c->m->ir;
    const Buffer *b = &c->m->p->buffer.at[o->buffer];
    int64_t size = dtype_bytes(b->dtype);
    Lv p = ir_off(ir, base_of(c, b, o->buffer), o->base * size);
    for (int d = 0; d < MAX_LOOP_DEPTH; d++)
        if (o->step[d] != 0)
            p = ir_at_byte(ir, p, ir_mul(ir, c->index[d], o->step[d] * size));
    return p;
}

/* ---- calls ------------------------------------------------------------------------------ */

/* Some of the rows or columns, which lanes share, are beyond a limit. */
static bool is_uneven(const Kernel *k)
{
    for (int role = K_M; role <= K_N; role++)
        for (int i = 0; i < k->con.n[role]; i++)
            if (k->inst.at[k->con.dim[role][i]].reach != K_ALL)
                return true;
    return k->kind == K_LOOP;
}

/* Pieces for each lane. */
static int64_t pieces_each(const Model *m, const Call *call)
{
    return is_uneven(m->p->kernel.at[call->kernel]) ? 4 : 1;
}

static void emit_lap(Calls *c, int64_t step)
{
    if (c->lap == NULL)
        return;
    Ir *ir = &c->m->ir;
    Lv fn = ir_load(ir, ir->ptr, ir_off(ir, c->lap, offsetof(Lap, at)), 8);
    Lv arg[] = {ir_load(ir, ir->ptr, ir_off(ir, c->lap, offsetof(Lap, of)), 8), ir_int(ir, step)};
    Lt type = LLVMFunctionType(ir->none, (Lt[]){ir->ptr, ir->i64}, 2, 0);
    IrIf set = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntNE, fn, LLVMConstNull(ir->ptr), ""));
    LLVMBuildCall2(ir->b, type, fn, arg, 2, "");
    ir_end_if(ir, &set);
}

static bool has_scratch(const Calls *c, const Call *call)
{
    Room room = room_of(c->m->p, call);
    return room_holds(&room, &c->m->kernel[call->kernel], c->m->p->threads_max, c->scratch != NULL);
}

/* The operand that is true before the kernel runs (KContract.all; a contraction has no LOCAL
 * buffers), or -1. */
static int operand_of_all(const Model *m, const Call *call)
{
    const Kernel *k = m->p->kernel.at[call->kernel];
    return k->kind == K_CONTRACT && k->con.all != 0 ? k->con.all_buf : -1;
}

static void emit_kernel(Calls *c, const Call *call)
{
    Model *m = c->m;
    Ir *ir = &m->ir;
    const KernelFn *k = &m->kernel[call->kernel];
    lines_at(m->lines, call->origin);
    for (int i = 0; i < call->n_ops; i++)
        ir_store(ir, operand(c, &call->op[i]), ir_off(ir, c->bufs, 8 * i), 8);
    int all = operand_of_all(m, call);
    if (all >= 0) {
        Lv flag = ir_load(ir, ir->ptr, ir_off(ir, c->bufs, 8 * all), 8);
        ir_store(ir, LLVMConstInt(ir->i8, 1, 0), flag, 1);
    }
    if (k->n_units <= 0)
        return;
    assert(has_scratch(c, call));
    Lv scratch = c->scratch != NULL ? c->scratch : ir_off(ir, c->g, model_scratch(m, call));
    if (k->chunks > 1 && c->scratch == NULL) {
        Lv arg[] = {c->g,
                    k->fn,
                    c->bufs,
                    ir_int(ir, k->n_units),
                    ir_int(ir, k->chunks),
                    ir_int(ir, pieces_each(m, call)),
                    scratch,
                    ir_int(ir, model_lane_bytes(m, call)),
                    ir_int(ir, model_lanes(m, call))};
        ir_call(ir, support_fn(ir, "gradc.share"), arg, 9);
        return;
    }
    Lv arg[] = {c->bufs, scratch, ir_int(ir, 0), ir_int(ir, k->n_units)};
    ir_call(ir, k->fn, arg, 4);
}

/* After a failure the entry ends here; what it has changed is in no tensor. */
static void emit_transfer(Calls *c, const Call *call)
{
    Ir *ir = &c->m->ir;
    int64_t kind = call->kind == CALL_OUT ? 0 : call->kind == CALL_IN ? 1 : 2;
    lines_at(c->m->lines, call->origin);
    Lv arg[] = {c->g, ir_int32(ir, kind), ir_int(ir, call->store), operand(c, &call->op[0]),
                ir_int(ir, c->m->p->buffer.at[call->op[0].buffer].bytes)};
    Lv failed = ir_call(ir, support_fn(ir, "gradc.transfer"), arg, 5);
    Lb end = ir_block(ir, "failed"), go_on = ir_block(ir, "go_on");
    ir_cond(ir, LLVMBuildICmp(ir->b, LLVMIntEQ, failed, ir_int32(ir, 0), ""), go_on, end);
    ir_at(ir, end);
    LLVMBuildRetVoid(ir->b);
    ir_at(ir, go_on);
}

/* The turn's row of each input that the loop reads row by row: the last valid one where that one is
 * missing. given: by input, where its first row is; NULL: what is read otherwise. */
static void aim_rows(Calls *c, const Call *loop, Lv *given)
{
    const Program *p = c->m->p;
    Ir *ir = &c->m->ir;
    for (int32_t i = 0; i < p->input.n; i++) {
        if (given[i] == NULL)
            continue;
        bool up = program_row_loop(p, loop, i) > 0;
        Lv valid = ir_load(ir, ir->i64, ir_off(ir, c->g, p->buffer.at[p->rows].offset), 8);
        Lv row =
            up ? c->index[0] : LLVMBuildSub(ir->b, ir_int(ir, loop->count - 1), c->index[0], "");
        Lv last = LLVMBuildSub(ir->b, valid, ir_int(ir, 1), "");
        Lv past = LLVMBuildSub(ir->b, last, row, ""), none = ir_int(ir, 0);
        Lv missing = LLVMBuildICmp(ir->b, LLVMIntSLT, past, none, "");
        const Input *in = &p->input.at[i];
        int64_t bytes = in->elems / in->rows * dtype_bytes(in->dtype);
        Lv back = ir_mul(ir, LLVMBuildSelect(ir->b, missing, past, none, ""), bytes);
        ir_store(ir, ir_at_byte(ir, given[i], back), ir_off(ir, c->places, 8 * i), 8);
    }
}

/* Inputs that the outermost loop reads row by row, before it, and after it. */
static Lv *keep_places(Calls *c, const Call *loop, int depth)
{
    const Program *p = c->m->p;
    Ir *ir = &c->m->ir;
    Lv *given = NEW_ARRAY(c->m->arena, Lv, p->input.n);
    for (int32_t i = 0; i < p->input.n && depth == 0 && p->rows >= 0; i++)
        if (program_row_loop(p, loop, i) != 0)
            given[i] = ir_load(ir, ir->ptr, ir_off(ir, c->places, 8 * i), 8);
    return given;
}

static void restore_places(Calls *c, Lv *given)
{
    for (int32_t i = 0; i < c->m->p->input.n; i++)
        if (given[i] != NULL)
            ir_store(&c->m->ir, given[i], ir_off(&c->m->ir, c->places, 8 * i), 8);
}

static void emit_list(Calls *c, const Call *call, int32_t n, int depth);

static void emit_loop(Calls *c, const Call *call, int depth)
{
    Ir *ir = &c->m->ir;
    if (call->count <= 0) {
        c->steps += steps_count(call->body, call->n_body);
        return;
    }
    Lv *given = keep_places(c, call, depth);
    IrLoop l = ir_loop(ir, ir_int(ir, 0), ir_int(ir, call->count), 1, false);
    c->index[depth] = l.i;
    aim_rows(c, call, given);
    ir_store(ir, l.i, ir_off(ir, c->indices, 8 * depth), 8);
    emit_list(c, call->body, call->n_body, depth + 1);
    ir_store(ir, ir_int(ir, 0), ir_off(ir, c->indices, 8 * depth), 8);
    ir_loop_end(ir, &l);
    restore_places(c, given);
}

static Lv turns_of(const Calls *c, const Call *loop)
{
    for (int32_t i = 0; i < c->turns.n; i++)
        if (c->turns.at[i].loop == loop)
            return c->turns.at[i].fn;
    return NULL;
}

static void emit_turns(Calls *c, const Call *loop, Lv turns, int depth);

static void emit_call(Calls *c, const Call *call, int depth)
{
    Ir *ir = &c->m->ir;
    if (call->kind != CALL_LOOP && call->kind != CALL_GUARD) {
        if (call->kind == CALL_KERNEL)
            emit_kernel(c, call);
        else
            emit_transfer(c, call);
        emit_lap(c, c->steps++);
        return;
    }
    lines_at(c->m->lines, call->origin);
    if (call->kind == CALL_LOOP) {
        Lv turns = turns_of(c, call);
        if (turns != NULL)
            emit_turns(c, call, turns, depth);
        else
            emit_loop(c, call, depth);
        return;
    }
    Lv flag = ir_load(ir, ir->i8, operand(c, &call->flag), 1);
    Lv set = LLVMBuildICmp(ir->b, LLVMIntNE, flag, LLVMConstInt(ir->i8, 0, 0), "");
    IrIf f = ir_if(ir, set);
    emit_list(c, call->body, call->n_body, depth);
    ir_end_if(ir, &f);
}

/* ---- runs ------------------------------------------------------------------------------- */

static Lv row(Calls *c, Lv *field, unsigned n)
{
    return LLVMConstStructInContext(c->m->ir.c, field, n, 0);
}

/* Row of `strides` for an operand that the loops move, or -1. */
static int64_t stride_row(Calls *c, const Operand *o, int64_t size)
{
    Ir *ir = &c->m->ir;
    Lv by[MAX_LOOP_DEPTH];
    bool moves = false;
    for (int d = 0; d < MAX_LOOP_DEPTH; d++) {
        by[d] = ir_int(ir, o->step[d] * size);
        moves |= o->step[d] != 0;
    }
    if (!moves)
        return -1;
    Lv strides = LLVMConstArray(ir->i64, by, MAX_LOOP_DEPTH);
    vec_push(c->m->arena, &c->strides, strides);
    return c->strides.n - 1;
}

static void add_operand(Calls *c, const Operand *o)
{
    Ir *ir = &c->m->ir;
    const Buffer *b = &c->m->p->buffer.at[o->buffer];
    int64_t size = dtype_bytes(b->dtype), offset = o->base * size, base = -1;
    if (b->role == ROLE_CONSTANT) {
        vec_push(c->m->arena, &c->constants, c->m->constant[o->buffer]);
        base = -1 - c->constants.n;
    } else if (fact_is_input(b)) {
        base = b->input;
    } else {
        offset += b->offset;
    }
    Lv at[] = {ir_int(ir, offset), ir_int32(ir, base), ir_int32(ir, stride_row(c, o, size))};
    Lv made = row(c, at, 3);
    vec_push(c->m->arena, &c->at, made);
}

/* fn, which does the work of `fn_of` operands of calls that follow; scratch is where `of` has it.
 */
static void add_step(Calls *c, const KernelFn *fn, int64_t pieces, int32_t n_ops, const Call *of,
                     int all)
{
    Model *m = c->m;
    Ir *ir = &m->ir;
    assert(n_ops <= UINT16_MAX && fn->chunks <= INT32_MAX && model_lanes(m, of) <= INT32_MAX);
    Lv step[] = {fn->fn,
                 ir_int(ir, fn->n_units),
                 ir_int32(ir, fn->chunks),
                 LLVMConstInt(ir->i16, (unsigned)pieces, 0),
                 LLVMConstInt(ir->i16, (unsigned)n_ops, 0),
                 ir_int(ir, model_scratch(m, of)),
                 ir_int(ir, model_lane_bytes(m, of)),
                 ir_int32(ir, model_lanes(m, of)),
                 ir_int32(ir, all)};
    Lv made = row(c, step, 9);
    vec_push(m->arena, &c->step, made);
}

static void add_kernel(Calls *c, const Call *call)
{
    const KernelFn *fn = &c->m->kernel[call->kernel];
    int all = operand_of_all(c->m, call);
    if (fn->n_units <= 0 && all < 0)
        return;
    assert(has_scratch(c, call));
    add_step(c, fn, pieces_each(c->m, call), call->n_ops, call, all);
    for (int i = 0; i < call->n_ops; i++)
        add_operand(c, &call->op[i]);
}

static void add_chain(Calls *c, const MadeChain *x)
{
    KernelFn fn = {.fn = x->fn, .n_units = x->of.n_units, .chunks = x->of.chunks};
    add_step(c, &fn, 1, x->of.n_ops, x->of.scratch, -1);
    for (int i = 0; i < x->of.n; i++)
        for (int j = 0; j < x->of.call[i]->n_ops; j++)
            add_operand(c, &x->of.call[i]->op[j]);
}

/* The chain that the call is in, and whether it is its first; NULL: it is in none. */
static const MadeChain *chain_of(const Calls *c, const Call *call, bool *first)
{
    for (int32_t i = 0; i < c->chains.n; i++)
        for (int j = 0; j < c->chains.at[i].of.n; j++)
            if (c->chains.at[i].of.call[j] == call) {
                *first = j == 0;
                return &c->chains.at[i];
            }
    return NULL;
}

static void emit_run(Calls *c, const Call *call, int32_t n)
{
    Model *m = c->m;
    Ir *ir = &m->ir;
    c->step.n = c->at.n = c->strides.n = c->constants.n = 0;
    for (const Call *k = call; n-- > 0; k++) {
        bool first = false;
        const MadeChain *chain = chain_of(c, k, &first);
        if (chain == NULL)
            add_kernel(c, k);
        else if (first)
            add_chain(c, chain);
    }
    lines_at(m->lines, call->origin);
    Lv arg[] = {c->g,
                c->places,
                model_array(m, c->constants.at, c->constants.n, "gradc.constants"),
                model_array(m, c->step.at, c->step.n, "gradc.steps"),
                ir_int(ir, c->step.n),
                model_array(m, c->at.at, c->at.n, "gradc.operands"),
                model_array(m, c->strides.at, c->strides.n, "gradc.strides"),
                c->indices,
                c->bufs};
    ir_call(ir, support_fn(ir, "gradc.walk"), arg, 9);
}

/* How many kernels stand in a row. */
static int32_t run_length(const Call *call, int32_t n)
{
    int32_t length = 0;
    while (length < n && call[length].kind == CALL_KERNEL)
        length++;
    return length;
}

static void emit_list(Calls *c, const Call *call, int32_t n, int depth)
{
    for (int32_t i = 0; i < n;) {
        int32_t length = run_length(call + i, n - i);
        if (length >= LONG_RUN && c->lap == NULL && c->scratch == NULL) {
            emit_run(c, call + i, length);
            i += length;
        } else {
            emit_call(c, &call[i++], depth);
        }
    }
}

/* ---- chains ----------------------------------------------------------------------------- */

/* Where laps are asked for there are none, but they count. */
static void make_chain(Calls *c, const Entry *e, const Chain *chain)
{
    Model *m = c->m;
    m->out->n_chains++;
    if (c->lap != NULL)
        return;
    Ir *ir = &m->ir;
    const Lt arg[] = {ir->ptr, ir->ptr, ir->i64, ir->i64};
    const char *name = arena_printf(m->arena, "%s.%s.chain%d", m->name, e->name, c->chains.n);
    Lv fn = ir_function(ir, name, ir->none, arg, 4);
    lines_function(m->lines, fn, name, chain->call[0]->origin);
    lines_at(m->lines, chain->call[0]->origin);
    chain_emit(m, ir, chain, fn);
    MadeChain made = {*chain, fn};
    vec_push(m->arena, &c->chains, made);
}

/* Of all long runs of kernels. */
static void make_chains(Calls *c, const Entry *e, const Call *call, int32_t n)
{
    for (int32_t i = 0; i < n;) {
        int32_t length = run_length(call + i, n - i);
        if (length == 0 && (call[i].kind == CALL_LOOP || call[i].kind == CALL_GUARD))
            make_chains(c, e, call[i].body, call[i].n_body);
        bool *taken = NEW_ARRAY(c->m->arena, bool, length);
        for (int32_t j = 0; j < length && length >= LONG_RUN; j++) {
            Chain chain;
            if (taken[j] || !chain_find(c->m, call + i + j, length - j, taken + j, &chain))
                continue;
            for (int x = 0; x < chain.n; x++)
                taken[chain.call[x] - (call + i)] = true;
            make_chain(c, e, &chain);
        }
        i += length > 0 ? length : 1;
    }
}

static int widest_chain(const Calls *c)
{
    int most = 0;
    for (int32_t i = 0; i < c->chains.n; i++)
        most = c->chains.at[i].of.n_ops > most ? c->chains.at[i].of.n_ops : most;
    return most;
}

static int widest(const Call *call, int32_t n)
{
    int most = 1;
    for (const Call *c = call; n-- > 0; c++) {
        int w = c->kind == CALL_KERNEL ? c->n_ops : widest(c->body, c->n_body);
        most = w > most ? w : most;
    }
    return most;
}

static Lv lap_of(Model *m)
{
    const char *name = arena_printf(m->arena, "%s_lap", m->name);
    Lt type = LLVMArrayType(m->ir.ptr, sizeof(Lap) / 8);
    Lv lap = LLVMGetNamedGlobal(m->ir.m, name);
    if (lap == NULL) {
        lap = LLVMAddGlobal(m->ir.m, type, name);
        LLVMSetInitializer(lap, LLVMConstNull(type));
    }
    return lap;
}

/* What the calls of a function share. */
static void open_frame(Calls *c, int width)
{
    Ir *ir = &c->m->ir;
    c->indices = ir_slot(ir, LLVMArrayType(ir->i64, MAX_LOOP_DEPTH), 16);
    c->bufs = ir_slot(ir, LLVMArrayType(ir->ptr, (unsigned)width), 16);
    for (int d = 0; d < MAX_LOOP_DEPTH; d++) {
        c->index[d] = ir_int(ir, 0);
        ir_store(ir, c->index[d], ir_off(ir, c->indices, 8 * d), 8);
    }
}

/* ---- turns at once ---------------------------------------------------------------------- */

enum { FRAME_PLACES = 8, FRAME_INDEX = 16, FRAME_WORDS = 2 + MAX_LOOP_DEPTH };

/* Turns [begin, end) of the loop, as  void (ptr frame, ptr scratch, i64, i64), which is what
 * kernels are; the frame: g, places, and indices of the loops around it. */
static Lv make_turns(const Calls *of, const Entry *e, const Call *loop, int depth)
{
    Model *m = of->m;
    Ir *ir = &m->ir;
    Calls c = {.m = m};
    const Lt arg[] = {ir->ptr, ir->ptr, ir->i64, ir->i64};
    const char *name = arena_printf(m->arena, "%s.%s.turns.%d", m->name, e->name, of->turns.n);
    Lv fn = ir_function(ir, name, ir->none, arg, 4);
    lines_function(m->lines, fn, name, loop->origin);
    lines_at(m->lines, loop->origin);
    Lv frame = LLVMGetParam(fn, 0);
    c.g = ir_load(ir, ir->ptr, frame, 8);
    c.places = ir_load(ir, ir->ptr, ir_off(ir, frame, FRAME_PLACES), 8);
    c.scratch = LLVMGetParam(fn, 1);
    Lv at = LLVMBuildPtrToInt(ir->b, c.scratch, ir->i64, "");
    Lv lanes = LLVMBuildPtrToInt(ir->b, ir_off(ir, c.g, model_scratch(m, loop)), ir->i64, "");
    Lv bytes = ir_int(ir, model_lane_bytes(m, loop));
    c.lane = LLVMBuildUDiv(ir->b, LLVMBuildSub(ir->b, at, lanes, ""), bytes, "");
    open_frame(&c, widest(loop->body, loop->n_body));
    for (int d = 0; d < depth; d++)
        c.index[d] = ir_load(ir, ir->i64, ir_off(ir, frame, FRAME_INDEX + 8 * d), 8);
    IrLoop l = ir_loop(ir, LLVMGetParam(fn, 2), LLVMGetParam(fn, 3), 1, true);
    c.index[depth] = l.i;
    emit_list(&c, loop->body, loop->n_body, depth + 1);
    ir_loop_end(ir, &l);
    LLVMBuildRetVoid(ir->b);
    return fn;
}

/* Of all loops whose turns may run at once. */
static void make_all_turns(Calls *c, const Entry *e, const Call *call, int32_t n, int depth)
{
    const Model *m = c->m;
    for (const Call *x = call; n-- > 0; x++) {
        if (x->kind == CALL_LOOP && x->turns > 1) {
            Turns made = {x, make_turns(c, e, x, depth)};
            vec_push(m->arena, &c->turns, made);
        } else if (x->kind == CALL_LOOP || x->kind == CALL_GUARD) {
            make_all_turns(c, e, x->body, x->n_body, depth + (x->kind == CALL_LOOP));
        }
    }
}

/* share_turns(), where there is room for so many, but for 0 threads, which are one. */
static void emit_turns(Calls *c, const Call *loop, Lv turns, int depth)
{
    Ir *ir = &c->m->ir;
    Lv threads = ir_load(ir, ir->i32, ir_off(ir, c->g, HANDLE_THREADS), 4);
    threads = LLVMBuildSExt(ir->b, threads, ir->i64, "");
    Lv n = ir_int(ir, loop->count), one = ir_int(ir, 1);
    Lv more = LLVMBuildICmp(ir->b, LLVMIntSGT, threads, one, "");
    Lv room = LLVMBuildICmp(ir->b, LLVMIntSLE, threads, ir_int(ir, loop->turns), "");
    Lv rest = LLVMBuildURem(ir->b, n, LLVMBuildSelect(ir->b, more, threads, one, ""), "");
    Lv even = LLVMBuildICmp(ir->b, LLVMIntEQ, rest, ir_int(ir, 0), "");
    Lv many = LLVMBuildICmp(ir->b, LLVMIntSLE, ir_mul(ir, threads, MANY_TURNS), n, "");
    Lv is = LLVMBuildAnd(ir->b, LLVMBuildOr(ir->b, even, many, ""),
                         LLVMBuildAnd(ir->b, room, more, ""), "");
    Lv frame = ir_slot(ir, LLVMArrayType(ir->i64, FRAME_WORDS), 16);
    IrIf s = ir_if(ir, is);
    ir_store(ir, c->g, frame, 8);
    ir_store(ir, c->places, ir_off(ir, frame, FRAME_PLACES), 8);
    for (int d = 0; d < depth; d++)
        ir_store(ir, c->index[d], ir_off(ir, frame, FRAME_INDEX + 8 * d), 8);
    Lv scratch = ir_off(ir, c->g, model_scratch(c->m, loop));
    Lv bytes = ir_int(ir, model_lane_bytes(c->m, loop)),
       lanes = ir_int(ir, model_lanes(c->m, loop));
    Lv arg[] = {c->g, turns, frame, n, n, one, scratch, bytes, lanes};
    ir_call(ir, support_fn(ir, "gradc.share"), arg, 9);
    ir_else(ir, &s);
    emit_loop(c, loop, depth);
    ir_end_if(ir, &s);
}

static Lv make_calls(Model *m, const Entry *e)
{
    Ir *ir = &m->ir;
    Calls c = {.m = m, .lap = m->o->laps ? lap_of(m) : NULL};
    if (c.lap == NULL)
        make_all_turns(&c, e, e->call, e->n_calls, 0);
    make_chains(&c, e, e->call, e->n_calls);
    const Lt arg[] = {ir->ptr, ir->ptr};
    const char *name = arena_printf(m->arena, "%s.%s.calls", m->name, e->name);
    Lv fn = ir_function(ir, name, ir->none, arg, 2);
    lines_function(m->lines, fn, name, e->n_calls > 0 ? e->call[0].origin : NULL);
    c.g = LLVMGetParam(fn, 0);
    c.places = LLVMGetParam(fn, 1);
    int width = widest(e->call, e->n_calls), chain = widest_chain(&c);
    open_frame(&c, width > chain ? width : chain);
    emit_lap(&c, -1);
    emit_list(&c, e->call, e->n_calls, 0);
    LLVMBuildRetVoid(ir->b);
    return fn;
}

Lv model_calls(Model *m, const Entry *e)
{
    Lv *made = &m->calls[e - m->p->entry.at];
    if (*made == NULL)
        *made = make_calls(m, e);
    return *made;
}
