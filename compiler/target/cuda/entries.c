/* Tables of the entries: what each launches, on which bytes of the device. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include "../../../runtime/cuda_abi.h"
#include "object.h"

typedef struct Entries {
    Object *o;
    const Use *use; /* of the entry at hand */
    VEC(gradc_cuda_op) op;
    VEC(const Call *) call;          /* likewise: what is launched; NULL: a loop */
    VEC(gradc_cuda_operand) operand; /* of all entries */
    VEC(gradc_cuda_steps) steps;
} Entries;

/* ---- launches ---------------------------------------------------------------------------- */

static int64_t base_of(const Entries *x, int32_t buffer)
{
    const Behind *behind = &x->o->behind;
    const Buffer *b = &x->o->p->buffer.at[buffer];
    if (b->role == ROLE_CONSTANT)
        return behind->constants + behind->constant[buffer];
    if (!fact_is_input(b)) {
        assert(b->offset >= 0 && "a buffer has a place in the arena");
        return b->offset;
    }
    assert(behind->slot[b->input] >= 0 && "an input that is read has a place");
    return behind->slot[b->input];
}

static void add_operand(Entries *x, const Operand *o)
{
    int64_t size = dtype_bytes(x->o->p->buffer.at[o->buffer].dtype);
    gradc_cuda_operand at = {.offset = base_of(x, o->buffer) + o->base * size, .moves = -1};
    gradc_cuda_steps by = {{0}};
    bool moves = false;
    for (int d = 0; d < GRADC_CUDA_DEPTH; d++) {
        by.step[d] = o->step[d] * size;
        moves |= by.step[d] != 0;
    }
    if (moves) {
        at.moves = x->steps.n;
        vec_push(x->o->arena, &x->steps, by);
    }
    vec_push(x->o->arena, &x->operand, at);
}

static void add_op(Entries *x, const Call *launched, gradc_cuda_op op)
{
    vec_push(x->o->arena, &x->op, op);
    vec_push(x->o->arena, &x->call, launched);
}

static void add_launch(Entries *x, const Call *c, const Operand *guard)
{
    if (x->o->images->launch[c->kernel].blocks == 0)
        return;
    add_op(x, c, (gradc_cuda_op){.kernel = c->kernel, .first = x->operand.n});
    for (int i = 0; i < c->n_ops; i++)
        add_operand(x, &c->op[i]);
    if (!x->o->images->guarded[c->kernel])
        return;
    if (guard != NULL) {
        add_operand(x, guard);
        return;
    }
    const Behind *behind = &x->o->behind;
    assert(behind->always >= 0 && "there is a flag for this call");
    vec_push(x->o->arena, &x->operand,
             ((gradc_cuda_operand){.offset = behind->constants + behind->always, .moves = -1}));
}

static void add_calls(Entries *x, const Call *call, int32_t n, const Operand *guard)
{
    for (const Call *c = call; n-- > 0; c++) {
        if (c->kind == CALL_KERNEL) {
            add_launch(x, c, guard);
        } else if (c->kind == CALL_GUARD) {
            add_calls(x, c->body, c->n_body, &c->flag);
        } else if (c->count > 0) {
            assert(c->kind == CALL_LOOP && "nothing is offloaded here");
            int32_t at = x->op.n;
            add_op(x, NULL, (gradc_cuda_op){.kernel = -1, .count = c->count});
            add_calls(x, c->body, c->n_body, guard);
            x->op.at[at].body = x->op.n - at - 1;
        }
    }
}

static void put_ops(Entries *x, const char *name)
{
    cu_table_begin(x->o, name, "i64, i64, i64, i64", x->op.n);
    for (int i = 0; i < x->op.n; i++) {
        const gradc_cuda_op *op = &x->op.at[i];
        cu_table_row(x->o, "i64 %" PRId64 ", i64 %" PRId64 ", i64 %" PRId64 ", i64 %" PRId64,
                     op->kernel, op->first, op->count, op->body);
    }
    cu_table_end(x->o);
}

/* ---- inputs and outputs ------------------------------------------------------------------- */

static void put_inputs(Entries *x, const char *name)
{
    const Program *p = x->o->p;
    cu_table_begin(x->o, name, "i64, i64, i64, i64", p->input.n);
    for (int i = 0; i < p->input.n; i++) {
        const Input *in = &p->input.at[i];
        int64_t slot = x->o->behind.slot[i];
        cu_table_row(x->o, "i64 %" PRId64 ", i64 %" PRId64 ", i64 %" PRId64 ", i64 %d",
                     x->use[i].reads, in->rows > 0 ? in->elems / in->rows : 0, slot, in->rows > 0);
    }
    cu_table_end(x->o);
}

static void put_outputs(Entries *x, const char *name, const Entry *e)
{
    const Program *p = x->o->p;
    cu_table_begin(x->o, name, "i64, i64, i64", p->result.n);
    for (int i = 0; i < p->result.n; i++) {
        const Result *r = fact_own_result(p, e, i);
        const Buffer *b = r != NULL ? &p->buffer.at[r->buffer] : NULL;
        bool given = b != NULL && b->offset >= 0;
        cu_table_row(x->o, "i64 %" PRId64 ", i64 %" PRId64 ", i64 %d", given ? b->offset : 0,
                     given ? b->elems * dtype_bytes(b->dtype) : 0, given);
    }
    cu_table_end(x->o);
}

static bool is_lenient(const Program *p, const Entry *e)
{
    return !e->updates && e != program_entry(p, "grad") && fact_loss(p) >= 0;
}

static void put_entry(Entries *x, int entry)
{
    Object *o = x->o;
    const Entry *e = &o->p->entry.at[entry];
    const Program *p = o->p;
    Use *use = NEW_ARRAY(o->arena, Use, p->input.n + 1);
    int64_t full = fact_uses(p, e, use);
    x->use = use;
    x->op.n = 0;
    memset(&x->call, 0, sizeof x->call);
    add_calls(x, e->call, e->n_calls, NULL);
    o->launched[entry] = (LaunchedCalls){x->call.n, x->call.at};
    const char *ops = arena_printf(o->arena, "gradc.%s.ops", e->name);
    const char *inputs = arena_printf(o->arena, "gradc.%s.inputs", e->name);
    const char *outputs = arena_printf(o->arena, "gradc.%s.outputs", e->name);
    put_ops(x, ops);
    put_inputs(x, inputs);
    put_outputs(x, outputs, e);
    int64_t finite = e->updates && e->finite >= 0 ? p->buffer.at[e->finite].offset : -1;
    text_add(&o->to,
             "@gradc.entry.%s = private constant { ptr, ptr, i64, ptr, ptr, i64, i64, i64 } "
             "{ ptr %s, ptr %s, i64 %d, ptr %s, ptr %s, i64 %" PRId64 ", i64 %" PRId64
             ", i64 %d }\n",
             e->name, cu_text_constant(o, e->name), cu_table_ref(o, ops, x->op.n), x->op.n,
             cu_table_ref(o, inputs, p->input.n), cu_table_ref(o, outputs, p->result.n), full,
             finite, is_lenient(p, e));
}

void cu_entry_tables(Object *o)
{
    Entries x = {.o = o};
    o->launched = NEW_ARRAY(o->arena, LaunchedCalls, o->p->entry.n);
    for (int e = 0; e < o->p->entry.n; e++)
        put_entry(&x, e);
    cu_table_begin(o, "gradc.operands", "i64, i64", x.operand.n);
    for (int i = 0; i < x.operand.n; i++)
        cu_table_row(o, "i64 %" PRId64 ", i64 %" PRId64, x.operand.at[i].offset,
                     x.operand.at[i].moves);
    cu_table_end(o);
    cu_table_begin(o, "gradc.strides", "i64, i64, i64, i64", x.steps.n);
    for (int i = 0; i < x.steps.n; i++) {
        const int64_t *by = x.steps.at[i].step;
        cu_table_row(o, "i64 %" PRId64 ", i64 %" PRId64 ", i64 %" PRId64 ", i64 %" PRId64, by[0],
                     by[1], by[2], by[3]);
    }
    cu_table_end(o);
    o->operands = x.operand.n;
    o->strides = x.steps.n;
}
