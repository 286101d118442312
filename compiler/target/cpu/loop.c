/* Loop kernels: the tree, printed as nested loops. */
#include <assert.h>
#include "emit.h"
#include "gen_acc.h"
#include "tree.h"

typedef struct Emit {
    Gen g;
    Tree *t;
    /* Tree.across: */
    Lv row;          /* the unit's first one */
    Lv *tile;        /* by access: memory of a tile, or NULL */
    Lv *tile_row;    /* ... the row at hand of it */
    int32_t *staged; /* accesses that have one now */
} Emit;

Lv emit_kernel_begin(Ir *ir, const Kernel *k, const char *name, Lv *buf)
{
    const Lt arg[] = {ir->ptr, ir->ptr, ir->i64, ir->i64};
    Lv fn = ir_function(ir, name, ir->none, arg, 4);
    ir_use_target(ir, fn);
    int64_t n = 0;
    for (int i = 0; i < k->buf.n; i++)
        if (k->buf.at[i].mode != K_LOCAL)
            buf[i] = ir_load(ir, ir->ptr, ir_off(ir, LLVMGetParam(fn, 0), 8 * n++), 8);
    return fn;
}

/* A handover to another core costs a microsecond or two. */
int64_t emit_chunks(double cycles, int64_t n_units)
{
    double pieces = cycles / 10000;
    int64_t n = pieces > 64 ? 64 : (int64_t)pieces;
    n += n > 1 ? n % 2 : 0; /* of three pieces one lane of two has two */
    if (n > n_units)
        n = n_units;
    return n < 2 ? 1 : n;
}

static void emit_items(Emit *e, const Node *in);

static void emit_inst(Emit *e, Val v)
{
    Gen *g = &e->g;
    switch (g->k->inst.at[v].op) {
    case KI_ACC:
        gen_acc_open(g, v, e->t->wide[v]);
        break;
    case KI_INTO:
        gen_into(g, v, e->t->red_of[v]);
        break;
    case KI_FOLD:
        gen_fold(g, v);
        break;
    case KI_VAR:
    case KI_GET:
    case KI_SET:
        gen_variable(g, v);
        break;
    default:
        gen_inst(g, v);
        break;
    }
}

/* Pure values that stand between the loops of the chain. */
static void emit_beside(Emit *e, const Node *in)
{
    for (const Node *n = in->first; n != NULL; n = n->next)
        if (!n->loop)
            emit_inst(e, n->v);
}

/* ---- tiles ---------------------------------------------------------------------- */

/* The rows of a tile that lie along Tree.across are lines of memory, one for each lane: they are
 * transposed once, and each row then finds its lanes side by side. */
static void stage_tile(Emit *e, int32_t access, Lv to)
{
    Gen *g = &e->g;
    Ir *ir = g->ir;
    const KAccess *a = &g->k->access.at[access];
    int n = g->width, bytes = dtype_bytes(g->k->buf.at[a->buf].dtype);
    Lt type = gen_mem_type(g, g->k->buf.at[a->buf].dtype, n);
    Lv from[64], x[64];
    for (int l = 0; l < n; l++)
        from[l] = gen_line_of_lane(g, access, l);
    for (int r = 0; r < e->t->rows; r += n) {
        for (int l = 0; l < n; l++) {
            x[l] = ir_load(ir, type, ir_off(ir, from[l], r * bytes), bytes);
            gen_mark_operand(ir, x[l]);
        }
        ir_transpose(ir, x, n);
        for (int l = 0; l < n; l++) {
            int64_t row = (int64_t)(r + l) * n * bytes;
            gen_mark_scratch(ir, LLVMBuildStore(ir->b, x[l], ir_off(ir, to, row)));
        }
    }
}

static bool stages(const Emit *e, const Node *n)
{
    const KInst *i = &e->g.k->inst.at[n->v];
    return i->op == KI_LOAD && e->t->rows % e->g.width == 0 &&
           tree_is_tile(e->t, i, e->g.lane, e->t->chain[e->t->across]->v);
}

/* Rows of the unit from e->row up to `end`, at the vector's place. */
static void emit_rows(Emit *e, const Node *in, Lv end, bool guard, bool staged)
{
    Gen *g = &e->g;
    Ir *ir = g->ir;
    const Tree *t = e->t;
    Val across = t->chain[t->across]->v;
    int32_t *at = e->staged, n = 0;
    g->value[across] = e->row;
    for (const Node *x = in->first; x != NULL && staged; x = x->next) {
        if (x->loop || !stages(e, x))
            continue;
        at[n] = g->k->inst.at[x->v].aux;
        stage_tile(e, at[n], e->tile[at[n]]);
        n++;
    }
    IrLoop l = ir_loop(ir, e->row, end, 1, guard);
    g->value[across] = l.i;
    Lv row = LLVMBuildSub(ir->b, l.i, e->row, "");
    for (int i = 0; i < n; i++)
        e->tile_row[at[i]] = ir_at_byte(ir, e->tile[at[i]], ir_mul(ir, row, 4 * g->width));
    g->tile = e->tile_row;
    for (int i = t->across; i < t->n_chain - 1; i++)
        emit_beside(e, t->chain[i]);
    emit_items(e, in);
    g->tile = NULL;
    for (int i = 0; i < n; i++)
        e->tile_row[at[i]] = NULL;
    ir_loop_end(ir, &l);
}

/* A vector's place of the chain; Tree.across: in each of the unit's rows. */
static void emit_place(Emit *e, const Node *n)
{
    Gen *g = &e->g;
    Ir *ir = g->ir;
    const Tree *t = e->t;
    if (t->across < 0 || n != tree_chain_vector(t)) {
        emit_items(e, n);
        return;
    }
    const KInst *across = &g->k->inst.at[t->chain[t->across]->v];
    bool guard = across->reach != K_ALL, even = across->imm.i % t->rows == 0;
    Lv whole = ir_add(ir, e->row, ir_int(ir, t->rows));
    Lv end = ir_min(ir, whole, gen_end(g, t->chain[t->across]->v));
    if (even) {
        emit_rows(e, n, end, guard, true);
        return;
    }
    Lv all = ir_int(ir, across->imm.i); /* what can be read, whatever the limit is */
    IrIf s = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntSLE, whole, all, ""));
    emit_rows(e, n, end, guard, true);
    ir_else(ir, &s);
    emit_rows(e, n, end, guard, false);
    ir_end_if(ir, &s);
}

/* ---- vectors -------------------------------------------------------------------- */

/* Iterations [from, to) along the lanes; whole vectors, then the rest by a mask. */
static void emit_vector(Emit *e, const Node *n, Lv from, Lv to, bool whole)
{
    Gen *g = &e->g;
    Ir *ir = g->ir;
    Lv count = LLVMBuildSub(ir->b, to, from, "");
    Lv rest = LLVMBuildAnd(ir->b, count, ir_int(ir, n->width - 1), "");
    Lv last = LLVMBuildSub(ir->b, to, rest, "");
    bool constant = LLVMIsConstant(count);
    int64_t n_count = constant ? LLVMConstIntGetSExtValue(count) : 0;
    if (!constant || n_count >= n->width) {
        IrLoop l = ir_loop(ir, from, last, n->width, !constant);
        gen_vector(g, n->width, n->v, NULL);
        g->value[n->v] = l.i;
        emit_place(e, n);
        ir_loop_end(ir, &l);
    }
    if (!whole && (!constant || n_count % n->width != 0)) {
        IrIf s = {NULL, NULL};
        if (!constant)
            s = ir_if(ir, LLVMBuildICmp(ir->b, LLVMIntSGT, rest, ir_int(ir, 0), ""));
        gen_vector(g, n->width, n->v, rest);
        g->value[n->v] = last;
        emit_place(e, n);
        if (!constant)
            ir_end_if(ir, &s);
    }
    gen_scalar(g);
}

/* Written out, so that accumulators by lane, which the index chooses, are registers. */
static bool is_short(const Node *loop, int64_t extent)
{
    enum { FEW_ITEMS = 24 };
    int items = 0;
    for (const Node *n = loop->first; n != NULL; n = n->next) {
        if (n->loop)
            return false;
        items++;
    }
    return extent <= FEW_TURNS && items <= FEW_ITEMS;
}

static void emit_loop(Emit *e, const Node *n)
{
    Gen *g = &e->g;
    Ir *ir = g->ir;
    const KInst *i = &g->k->inst.at[n->v];
    int64_t extent = i->imm.i;
    if (extent <= 0)
        return;
    if (n->width > 0) {
        emit_vector(e, n, ir_int(ir, 0), gen_end(g, n->v), false);
        return;
    }
    if (extent == 1) {
        g->value[n->v] = ir_int(ir, 0);
        emit_items(e, n);
        return;
    }
    bool down = i->op == KI_SEQ && i->aux == 1;
    bool in_vector = is_short(n, extent) && i->reach == K_ALL && g->width > 1;
    if (in_vector || tree_is_written_out(e->t, n)) {
        g->pair = in_vector && extent == 2 && i->op == KI_PAR ? n->v : 0;
        for (int64_t at = 0; at < extent; at++) {
            g->turn = (int)at;
            g->value[n->v] = ir_int(ir, down ? extent - 1 - at : at);
            emit_items(e, n);
        }
        g->pair = 0;
        return;
    }
    IrLoop l = ir_loop(ir, ir_int(ir, 0), gen_end(g, n->v), 1, false);
    g->value[n->v] = down ? LLVMBuildSub(ir->b, ir_int(ir, extent - 1), l.i, "") : l.i;
    emit_items(e, n);
    ir_loop_end(ir, &l);
}

static void emit_items(Emit *e, const Node *in)
{
    for (const Node *n = in->first; n != NULL; n = n->next) {
        if (n->loop)
            emit_loop(e, n);
        else
            emit_inst(e, n->v);
    }
}

/* ---- the grid ----------------------------------------------------------------- */

/* The indices of unit `begin`, by divisions that constants turn into products. */
static void decode(Emit *e, Lv unit, Lv *digit, const int64_t *extent, int n)
{
    Ir *ir = e->g.ir;
    for (int i = n; i-- > 0;) {
        if (i == 0) {
            digit[0] = unit;
            break;
        }
        Lv by = ir_int(ir, extent[i]);
        digit[i] = LLVMBuildURem(ir->b, unit, by, "");
        unit = LLVMBuildUDiv(ir->b, unit, by, "");
    }
}

/* The next unit's indices, as an odometer turns. */
static void advance(Emit *e, Lv *digit, const int64_t *extent, int n)
{
    Ir *ir = e->g.ir;
    Lv carry = ir_int(ir, 1);
    for (int i = n; i-- > 0;) {
        Lv next = ir_add(ir, digit[i], carry);
        if (i == 0) {
            digit[i] = next;
            break;
        }
        Lv full = LLVMBuildICmp(ir->b, LLVMIntEQ, next, ir_int(ir, extent[i]), "");
        carry = LLVMBuildZExt(ir->b, full, ir->i64, "");
        digit[i] = LLVMBuildSelect(ir->b, full, ir_int(ir, 0), next, "");
    }
}

/* [from, to) of the loop that moves along the lanes, as far as that goes. */
static void emit_lanes(Emit *e, const Node *vector, Lv from, Lv to)
{
    const KInst *i = &e->g.k->inst.at[vector->v];
    bool whole = i->reach == K_ALL && i->imm.i % vector->width == 0;
    to = ir_min(e->g.ir, to, gen_end(&e->g, vector->v));
    if (i->reach != K_ALL) /* the limit may be in a block before this one */
        from = ir_min(e->g.ir, from, to);
    emit_vector(e, vector, from, to, whole);
}

static void emit_unit(Emit *e, Lv *digit, int n_digits)
{
    Tree *t = e->t;
    const Node *vector = tree_chain_vector(t);
    int n = t->n_chain - (vector != NULL);
    for (int i = 0; i < n; i++) {
        if (i == t->across)
            e->row = ir_mul(e->g.ir, digit[i], t->rows);
        else
            e->g.value[t->chain[i]->v] = digit[i];
        if (i < t->n_chain - 1 && (t->across < 0 || i < t->across))
            emit_beside(e, t->chain[i]);
    }
    if (vector == NULL) {
        emit_items(e, t->chain[n - 1]);
        return;
    }
    Ir *ir = e->g.ir;
    if (t->n_blocks == 1) {
        emit_vector(e, vector, ir_int(ir, 0), gen_end(&e->g, vector->v), false);
        return;
    }
    Lv from = ir_mul(ir, digit[n_digits - 1], t->block);
    emit_lanes(e, vector, from, ir_add(ir, from, ir_int(ir, t->block)));
}

/* Indices of the unit are below the limit; NULL: none of them has one. */
static Lv units_within(Emit *e, Lv *digit)
{
    Ir *ir = e->g.ir;
    const Tree *t = e->t;
    Lv all = NULL;
    for (int i = 0; i < t->n_chain - (tree_chain_vector(t) != NULL); i++) {
        if (t->k->inst.at[t->chain[i]->v].reach == K_ALL || i == t->across)
            continue;
        Lv below = LLVMBuildICmp(ir->b, LLVMIntSLT, digit[i], e->g.limit, "");
        all = all == NULL ? below : LLVMBuildAnd(ir->b, all, below, "");
    }
    return all;
}

/* A grid of one loop cut into blocks needs no odometer: its units are a range. */
static void emit_range(Emit *e, Lv begin, Lv end)
{
    Ir *ir = e->g.ir;
    const Node *vector = tree_chain_vector(e->t);
    Lv from = ir_mul(ir, begin, e->t->block);
    emit_lanes(e, vector, from, ir_mul(ir, end, e->t->block));
}

static void emit_grid(Emit *e, Lv begin, Lv end)
{
    Ir *ir = e->g.ir;
    Tree *t = e->t;
    const Node *vector = tree_chain_vector(t);
    int n = t->n_chain - (vector != NULL);
    if (n == 0) {
        emit_range(e, begin, end);
        return;
    }
    int64_t extent[MAX_CHAIN + 1];
    Lv digit[MAX_CHAIN + 1], phi[MAX_CHAIN + 1];
    for (int i = 0; i < n; i++)
        extent[i] = tree_units_of(t, i);
    if (t->n_blocks > 1)
        extent[n++] = t->n_blocks;
    decode(e, begin, digit, extent, n);
    Lb before = ir_here(ir);
    IrLoop l = ir_loop(ir, begin, end, 1, true);
    LLVMPositionBuilderBefore(ir->b, l.hoist);
    for (int i = 0; i < n; i++) {
        phi[i] = LLVMBuildPhi(ir->b, ir->i64, "");
        LLVMAddIncoming(phi[i], &digit[i], &before, 1);
        digit[i] = phi[i];
    }
    ir_at(ir, LLVMGetSuccessor(l.hoist, 0));
    IrIf f = {NULL, NULL};
    Lv within = units_within(e, digit);
    if (within != NULL)
        f = ir_if(ir, within);
    emit_unit(e, digit, n);
    if (within != NULL)
        ir_end_if(ir, &f);
    advance(e, digit, extent, n);
    Lb here = ir_here(ir);
    for (int i = 0; i < n; i++)
        LLVMAddIncoming(phi[i], &digit[i], &here, 1);
    ir_loop_end(ir, &l);
}

static KernelFn plan_of(const Tree *t)
{
    KernelFn f = {.n_units = t->n_chain > 0 ? t->n_units : 1, .scratch = tree_locals(t, NULL)};
    f.chunks = emit_chunks(t->cost, f.n_units);
    f.cycles = t->cost;
    return f;
}

static Slabs *slabs_of_tree(const Tree *t, Arena *arena)
{
    if (t->n_chain == 0 || t->n_units == 0 || t->k->limit.is)
        return NULL;
    Val v = t->chain[0]->v;
    int64_t units = t->n_units / tree_units_of(t, 0), each = t->across == 0 ? t->rows : 1;
    if (t->n_chain == 1 && tree_chain_vector(t) != NULL) {
        units = 1;
        each = t->block;
    }
    return slabs_of(t->k, v, units, each, arena);
}

KernelFn plan_loop_kernel(const Machine *m, const Kernel *k, Arena *arena)
{
    return plan_of(tree_build(k, m, arena));
}

static void place_locals(Emit *e, Lv scratch, Arena *arena)
{
    Gen *g = &e->g;
    int64_t *offset = NEW_ARRAY(arena, int64_t, g->k->buf.n);
    tree_locals(e->t, offset);
    for (int i = 0; i < g->k->buf.n; i++) {
        if (g->k->buf.at[i].mode != K_LOCAL)
            continue;
        g->buf[i] = ir_off(g->ir, scratch, offset[i]);
        g->local_by_lane[i] = tree_chain_vector(e->t) != NULL;
    }
}

/* Memory of tiles, on the stack. */
static void place_tiles(Emit *e, Arena *arena)
{
    const Kernel *k = e->g.k;
    const Tree *t = e->t;
    const Node *vector = tree_chain_vector(t);
    e->tile = NEW_ARRAY(arena, Lv, k->access.n);
    e->tile_row = NEW_ARRAY(arena, Lv, k->access.n);
    e->staged = NEW_ARRAY(arena, int32_t, k->access.n);
    for (const Node *n = t->across < 0 ? NULL : vector->first; n != NULL; n = n->next) {
        const KInst *i = &k->inst.at[n->v];
        if (n->loop || !tree_is_tile(t, i, vector->v, t->chain[t->across]->v))
            continue;
        Lt row = ir_vec(e->g.ir->i32, vector->width);
        e->tile[i->aux] = ir_slot(e->g.ir, LLVMArrayType(row, (unsigned)t->rows), 64);
    }
}

KernelFn emit_loop_kernel(Ir *ir, const Kernel *k, const char *name, Arena *arena)
{
    Emit e = {.t = tree_build(k, ir->mach, arena)};
    Tree *t = e.t;
    gen_init(&e.g, ir, t->k, arena);
    KernelFn out = plan_of(t);
    out.slabs = slabs_of_tree(t, arena);
    out.fn = emit_kernel_begin(ir, k, name, e.g.buf);
    place_locals(&e, LLVMGetParam(out.fn, 1), arena);
    place_tiles(&e, arena);
    gen_limit(&e.g);
    if (t->n_chain > 0 && t->n_units > 0) {
        emit_beside(&e, t->root);
        emit_grid(&e, LLVMGetParam(out.fn, 2), LLVMGetParam(out.fn, 3));
    } else if (t->n_chain == 0) { /* one unit, which may be in another piece */
        Lv some =
            LLVMBuildICmp(ir->b, LLVMIntSLT, LLVMGetParam(out.fn, 2), LLVMGetParam(out.fn, 3), "");
        IrIf f = ir_if(ir, some);
        emit_items(&e, t->root);
        ir_end_if(ir, &f);
    }
    LLVMBuildRetVoid(ir->b);
    return out;
}
