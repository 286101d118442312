/* The calls of an entry: operands' addresses, then the kernel, straight-line. */
#include <assert.h>
#include <string.h>
#include "model.h"

/* A function gets no longer than this many calls: the code generator's time grows
 * faster than the length of a function. */
enum { PART = 64 };

typedef struct Calls {
    Model *m;
    const char *entry;
    int n_parts;
    /* of the function being built */
    Lv g, places, bufs, index[MAX_LOOP_DEPTH];
} Calls;

const Entry *model_entry(const Program *p, const char *name)
{
    for (int i = 0; i < p->entry.n; i++)
        if (strcmp(p->entry.at[i].name, name) == 0)
            return &p->entry.at[i];
    return NULL;
}

/* ---- what the entry reads ---------------------------------------------------------- */

static void find_reads(const Program *p, const Call *call, int32_t n, int depth,
                       const int64_t *last, Use *use)
{
    for (const Call *c = call; c < call + n; c++) {
        if (c->kind != CALL_KERNEL) {
            int64_t inner[MAX_LOOP_DEPTH];
            memcpy(inner, last, sizeof inner);
            if (c->kind == CALL_LOOP)
                inner[depth] = c->count - 1;
            find_reads(p, c->body, c->n_body, depth + (c->kind == CALL_LOOP), inner, use);
            continue;
        }
        const Kernel *k = p->kernel.at[c->kernel];
        for (int i = 0, o = 0; i < k->buf.n; i++) {
            if (k->buf.at[i].mode == K_LOCAL)
                continue;
            const Operand *x = &c->op[o++];
            const Buffer *b = &p->buffer.at[x->buffer];
            int64_t end = x->base + k->buf.at[i].elems;
            for (int d = 0; d < depth; d++)
                end += x->step[d] > 0 ? x->step[d] * last[d] : 0;
            if (b->role == ROLE_INPUT && end > use[b->input].reads)
                use[b->input].reads = end;
        }
    }
}

int64_t model_uses(const Program *p, const Entry *e, Use *use)
{
    const int64_t last[MAX_LOOP_DEPTH] = {0};
    int64_t rows = 0;
    for (int i = 0; i < p->input.n; i++)
        use[i] = (Use){0, -1};
    find_reads(p, e->call, e->n_calls, 0, last, use);
    for (int i = 0; i < p->input.n; i++) {
        const Input *in = &p->input.at[i];
        int64_t each = in->rows > 0 ? in->elems / in->rows : 0;
        int64_t n = each > 0 ? (use[i].reads + each - 1) / each : 0;
        rows = n > rows ? n : rows;
    }
    for (int i = 0; i < p->buffer.n; i++) {
        const Buffer *b = &p->buffer.at[i];
        if (b->role == ROLE_STAGING && b->offset >= 0 && b->elems >= use[b->input].reads)
            use[b->input].staging = b->offset;
    }
    return rows > 0 ? rows : p->batch_rows;
}

/* ---- addresses ------------------------------------------------------------------------ */

static Lv base_of(Calls *c, const Buffer *b, int32_t index)
{
    Ir *ir = &c->m->ir;
    if (b->role == ROLE_CONSTANT)
        return c->m->constant[index];
    if ((b->role == ROLE_INPUT || b->role == ROLE_STAGING) && b->input >= 0)
        return ir_load(ir, ir->ptr, ir_off(ir, c->places, 8 * b->input), 8);
    assert(b->offset >= 0 && "a buffer has a place in the block");
    return ir_off(ir, c->g, b->offset);
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

static void emit_kernel(Calls *c, const Call *call)
{
    Model *m = c->m;
    Ir *ir = &m->ir;
    const KernelFn *k = &m->kernel[call->kernel];
    lines_at(m->lines, call->origin);
    for (int i = 0; i < call->n_ops; i++)
        ir_store(ir, operand(c, &call->op[i]), ir_off(ir, c->bufs, 8 * i), 8);
    if (k->n_units <= 0)
        return;
    if (k->chunks > 1) {
        bool contract = m->p->kernel.at[call->kernel]->kind == K_CONTRACT;
        Lv arg[] = {c->g,
                    k->fn,
                    c->bufs,
                    ir_int(ir, k->n_units),
                    ir_int(ir, k->chunks),
                    ir_int(ir, contract ? 1 : 4)};
        ir_call(ir, support_fn(ir, "gradc.share"), arg, 6);
        return;
    }
    Lv scratch = ir_off(ir, c->g, m->p->lanes_offset);
    Lv arg[] = {c->bufs, scratch, ir_int(ir, 0), ir_int(ir, k->n_units)};
    ir_call(ir, k->fn, arg, 4);
}

static void emit_list(Calls *c, const Call *call, int32_t n, int depth);

static void emit_call(Calls *c, const Call *call, int depth)
{
    Ir *ir = &c->m->ir;
    if (call->kind == CALL_KERNEL) {
        emit_kernel(c, call);
        return;
    }
    lines_at(c->m->lines, call->origin);
    if (call->kind == CALL_LOOP) {
        if (call->count <= 0)
            return;
        IrLoop l = ir_loop(ir, ir_int(ir, 0), ir_int(ir, call->count), 1, false);
        c->index[depth] = l.i;
        emit_list(c, call->body, call->n_body, depth + 1);
        c->index[depth] = ir_int(ir, 0);
        ir_loop_end(ir, &l);
        return;
    }
    Lv flag = ir_load(ir, ir->i8, operand(c, &call->flag), 1);
    Lv set = LLVMBuildICmp(ir->b, LLVMIntNE, flag, LLVMConstInt(ir->i8, 0, 0), "");
    IrIf f = ir_if(ir, set);
    emit_list(c, call->body, call->n_body, depth);
    ir_end_if(ir, &f);
}

static int widest(const Model *m, const Call *call, int32_t n)
{
    int most = 1;
    (void)m;
    for (const Call *c = call; c < call + n; c++) {
        int w = c->kind == CALL_KERNEL ? c->n_ops : widest(m, c->body, c->n_body);
        most = w > most ? w : most;
    }
    return most;
}

static Lv begin_part(Calls *c, const char *name, const Call *call, int32_t n)
{
    Ir *ir = &c->m->ir;
    const Lt arg[] = {ir->ptr, ir->ptr, ir->i64, ir->i64, ir->i64, ir->i64};
    Lv fn = ir_function(ir, name, ir->none, arg, 2 + MAX_LOOP_DEPTH);
    c->g = LLVMGetParam(fn, 0);
    c->places = LLVMGetParam(fn, 1);
    for (int d = 0; d < MAX_LOOP_DEPTH; d++)
        c->index[d] = LLVMGetParam(fn, 2u + (unsigned)d);
    Lt array = LLVMArrayType(ir->ptr, (unsigned)widest(c->m, call, n));
    c->bufs = ir_slot(ir, array, 16);
    lines_function(c->m->lines, fn, name, n > 0 ? call[0].origin : NULL);
    return fn;
}

/* n calls as a function of their own, called from here. */
static void emit_part(Calls *c, const Call *call, int32_t n, int depth)
{
    Ir *ir = &c->m->ir;
    Calls outer = *c;
    Lb here = ir_here(ir);
    Lv outer_fn = ir->fn;
    const char *name =
        arena_printf(c->m->arena, "%s.%s.part%d", c->m->name, c->entry, c->n_parts++);
    Lv fn = begin_part(c, name, call, n);
    for (int32_t i = 0; i < n; i++)
        emit_call(c, &call[i], depth);
    LLVMBuildRetVoid(ir->b);
    int parts = c->n_parts;
    *c = outer;
    c->n_parts = parts;
    ir->fn = outer_fn;
    ir_at(ir, here);
    lines_at(c->m->lines, n > 0 ? call[0].origin : NULL);
    Lv arg[2 + MAX_LOOP_DEPTH] = {c->g, c->places};
    for (int d = 0; d < MAX_LOOP_DEPTH; d++)
        arg[2 + d] = c->index[d];
    ir_call(ir, fn, arg, 2 + MAX_LOOP_DEPTH);
}

static void emit_list(Calls *c, const Call *call, int32_t n, int depth)
{
    if (n <= PART) {
        for (int32_t i = 0; i < n; i++)
            emit_call(c, &call[i], depth);
        return;
    }
    for (int32_t i = 0; i < n; i += PART)
        emit_part(c, call + i, n - i < PART ? n - i : PART, depth);
}

Lv model_calls(Model *m, const Entry *e)
{
    Ir *ir = &m->ir;
    Calls c = {.m = m, .entry = e->name};
    Lv fn = begin_part(&c, arena_printf(m->arena, "%s.%s.calls", m->name, e->name), e->call,
                       e->n_calls);
    emit_list(&c, e->call, e->n_calls, 0);
    LLVMBuildRetVoid(ir->b);
    return fn;
}
