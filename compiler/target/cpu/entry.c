/* The entries: arguments are checked before anything is written, then the calls
 * run in the default floating-point mode, then results are copied out. */
#include "../../../runtime/abi.h"
#include "model.h"

static Lv text(Model *m, const char *s)
{
    return ir_string(&m->ir, s);
}

static Lv table(Model *m, Lv *row, int n, int fields)
{
    Ir *ir = &m->ir;
    Lt field[8] = {ir->ptr};
    for (int i = 1; i < fields; i++)
        field[i] = ir->i64;
    Lt type = LLVMStructTypeInContext(ir->c, field, (unsigned)fields, 0);
    Lv rows = LLVMConstArray(type, row, (unsigned)n);
    Lv g = LLVMAddGlobal(ir->m, LLVMTypeOf(rows), "");
    LLVMSetInitializer(g, rows);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(g, 1);
    return g;
}

static Lv row_of(Model *m, const char *name, const int64_t *value, int n)
{
    Lv field[8] = {text(m, name)};
    for (int i = 0; i < n; i++)
        field[i + 1] = ir_int(&m->ir, value[i]);
    return LLVMConstStructInContext(m->ir.c, field, (unsigned)n + 1, 0);
}

static Lv input_table(Model *m, const Use *use)
{
    const Program *p = m->p;
    Lv *row = NEW_ARRAY(m->arena, Lv, p->input.n);
    for (int i = 0; i < p->input.n; i++) {
        const Input *in = &p->input.at[i];
        const int64_t v[] = {use[i].reads,
                             in->rows > 0 ? in->elems / in->rows : 0,
                             dtype_bytes(in->dtype),
                             in->ranged ? in->lo : 0,
                             in->ranged ? in->hi : 0,
                             use[i].staging,
                             in->by_row || p->rows < 0};
        row[i] = row_of(m, in->name, v, 7);
    }
    return table(m, row, p->input.n, 8);
}

static Lv output_table(Model *m, const Entry *e)
{
    const Program *p = m->p;
    Lv *row = NEW_ARRAY(m->arena, Lv, p->result.n);
    for (int i = 0; i < p->result.n; i++) {
        const Result *r = fact_own_result(p, e, i);
        const Buffer *b = r != NULL ? &p->buffer.at[r->buffer] : NULL;
        const int64_t v[] = {b != NULL ? b->offset : 0,
                             b != NULL ? b->elems * dtype_bytes(b->dtype) : 0,
                             b != NULL && b->offset >= 0};
        row[i] = row_of(m, p->result.at[i].name, v, 3);
    }
    return table(m, row, p->result.n, 4);
}

/* ---- what was not finite --------------------------------------------------------------- */

static int64_t exponent_mask(DType t)
{
    switch (t) {
    case F32:
        return 0x7f800000;
    case F64:
        return INT64_C(0x7ff0000000000000);
    case F16:
        return 0x7c00;
    default:
        return 0x7f80;
    }
}

static Lv suspect(Model *m, const char *name, const Buffer *b)
{
    const int64_t v[] = {b->offset, b->elems, dtype_bytes(b->dtype), exponent_mask(b->dtype)};
    return row_of(m, name, v, 4);
}

static bool is_suspect(const Buffer *b)
{
    return b->offset >= 0 && dtype_is_float(b->dtype);
}

static Lv suspect_loss(Model *m, const Entry *e, int *n)
{
    const Program *p = m->p;
    Lv row = NULL;
    *n = 0;
    const Result *loss = fact_loss(p) >= 0 ? fact_own_result(p, e, fact_loss(p)) : NULL;
    if (loss != NULL && is_suspect(&p->buffer.at[loss->buffer])) {
        row = suspect(m, "the loss", &p->buffer.at[loss->buffer]);
        *n = 1;
    }
    return table(m, &row, *n, 5);
}

/* Gradients where the entry `grad` leaves them. */
static Lv suspect_gradients(Model *m, int *n)
{
    const Program *p = m->p;
    Lv *row = NEW_ARRAY(m->arena, Lv, p->tensor.n + 1);
    *n = 0;
    for (int i = 0; i < p->tensor.n; i++) {
        const Tensor *t = &p->tensor.at[i];
        if (t->role != ROLE_GRADIENT || !is_suspect(&p->buffer.at[t->buffer]))
            continue;
        const char *name = arena_printf(m->arena, "the gradient %s", t->name);
        row[(*n)++] = suspect(m, name, &p->buffer.at[t->buffer]);
    }
    return table(m, row, *n, 5);
}

/* ---- the entry --------------------------------------------------------------------------- */

typedef struct Fn {
    Model *m;
    Lv g, in, out;
    Lb leave; /* gives back the handle, returns *status */
    Lv status;
} Fn;

/* Goes to the end with s, unless it is GRADC_OK. */
static void check(Fn *f, Lv s)
{
    Ir *ir = &f->m->ir;
    Lb go_on = ir_block(ir, "ok");
    ir_store(ir, s, f->status, 4);
    Lv ok = LLVMBuildICmp(ir->b, LLVMIntEQ, s, ir_int32(ir, GRADC_OK), "");
    ir_cond(ir, ok, go_on, f->leave);
    ir_at(ir, go_on);
}

static Lv call(Fn *f, const char *name, const Lv *arg, int n)
{
    return ir_call(&f->m->ir, support_fn(&f->m->ir, name), arg, n);
}

static Lv enter(Fn *f)
{
    Ir *ir = &f->m->ir;
    Lv s = call(f, "gradc.enter", &f->g, 1);
    Lb refused = ir_block(ir, "refused"), in = ir_block(ir, "in");
    ir_cond(ir, LLVMBuildICmp(ir->b, LLVMIntEQ, s, ir_int32(ir, GRADC_OK), ""), in, refused);
    ir_at(ir, refused);
    LLVMBuildRet(ir->b, s);
    ir_at(ir, in);
    return s;
}

/* In eval inputs may be missing where neither loss nor metrics are asked for. */
static Lv may_lack_inputs(Fn *f, const Entry *e)
{
    Ir *ir = &f->m->ir;
    const Program *p = f->m->p;
    if (e->updates || e == program_entry(p, "grad") || fact_loss(p) < 0)
        return LLVMConstInt(ir->i1, 0, 0);
    Lv asked = LLVMConstInt(ir->i1, 0, 0);
    for (int i = 0; i < p->result.n; i++) {
        if (fact_result_kind(p, i) == GRADC_OUTPUT)
            continue;
        Lv arg[] = {f->out, ir_int(ir, i)};
        Lv q = call(f, "gradc.data", arg, 2);
        Lv set = LLVMBuildICmp(ir->b, LLVMIntNE, q, LLVMConstNull(ir->ptr), "");
        asked = LLVMBuildOr(ir->b, asked, set, "");
    }
    return LLVMBuildNot(ir->b, asked, "");
}

/* What an entry is called with. */
typedef struct Feed {
    Lv inputs, n_in; /* its %In table */
    int64_t full;    /* rows of a full call; 0: it reads none */
    Lv rows;         /* valid ones */
    Lv places;       /* by input: where its kernels find it */
} Feed;

static Feed feed_of(Fn *f, const Entry *e)
{
    Model *m = f->m;
    Use *use = NEW_ARRAY(m->arena, Use, m->p->input.n);
    Feed d = {.full = fact_uses(m->p, e, use), .n_in = ir_int(&m->ir, m->p->input.n)};
    d.inputs = input_table(m, use);
    return d;
}

/* Nothing is computed that could be asked for: the call is over, if inputs are missing. */
static void leave_without(Fn *f, const Feed *d, Lv lenient)
{
    Ir *ir = &f->m->ir;
    Lb over = ir_block(ir, "over"), go_on = ir_block(ir, "go_on");
    Lv arg[] = {f->in, d->inputs, d->n_in};
    Lv lacks = LLVMBuildAnd(ir->b, lenient, call(f, "gradc.lacks", arg, 3), "");
    ir_cond(ir, lacks, over, go_on);
    ir_at(ir, over);
    ir_store(ir, ir_int32(ir, GRADC_OK), f->status, 4);
    ir_br(ir, f->leave);
    ir_at(ir, go_on);
}

static void store_rows(Fn *f, Lv rows)
{
    const Program *p = f->m->p;
    if (p->rows < 0 || p->rows >= p->buffer.n)
        return;
    const Buffer *b = &p->buffer.at[p->rows];
    if (b->role == ROLE_STATE && b->dtype == I64 && b->offset >= 0)
        ir_store(&f->m->ir, rows, ir_off(&f->m->ir, f->g, b->offset), 8);
}

static void run(Fn *f, const Feed *d, Lv calls)
{
    ir_store(&f->m->ir, ir_int32(&f->m->ir, 0), ir_off(&f->m->ir, f->g, HANDLE_FAILED), 4);
    Lv place[] = {f->g, f->in, d->inputs, d->n_in, d->rows, d->places}, arg[] = {f->g, d->places};
    call(f, "gradc.place", place, 6);
    store_rows(f, d->rows);
    Lv mode = call(f, "gradc.fp_set", NULL, 0);
    ir_call(&f->m->ir, calls, arg, 2);
    call(f, "gradc.fp_restore", &mode, 1);
}

static Lv blame_loss(Fn *f, const Entry *e)
{
    int n;
    Lv rows = suspect_loss(f->m, e, &n), arg[] = {f->g, rows, ir_int(&f->m->ir, n)};
    return call(f, "gradc.blame", arg, 3);
}

/* A step keeps no gradients. As it has changed nothing, `grad` gives the same ones. */
static void blame_gradient(Fn *f, Lv rows, Lv places)
{
    Model *m = f->m;
    Ir *ir = &m->ir;
    const Entry *grad = program_entry(m->p, "grad");
    if (grad == NULL || grad->store_bytes > 0) { /* whose transfers might fail */
        Lv say[] = {f->g, text(m, "a gradient is NaN or infinite: nothing was changed")};
        call(f, "gradc.say", say, 2);
        return;
    }
    Feed d = feed_of(f, grad);
    d.rows = rows;
    d.places = places;
    run(f, &d, model_calls(m, grad));
    int n;
    Lv suspects = suspect_gradients(m, &n), arg[] = {f->g, suspects, ir_int(ir, n)};
    Lv known = call(f, "gradc.blame", arg, 3);
    IrIf s = ir_if(ir, LLVMBuildNot(ir->b, known, ""));
    Lv say[] = {f->g, text(m, "the norm of all gradients is infinite: nothing was changed")};
    call(f, "gradc.say", say, 2);
    ir_end_if(ir, &s);
}

static void check_finite(Fn *f, const Entry *e, const Feed *d)
{
    Model *m = f->m;
    Ir *ir = &m->ir;
    if (!e->updates || e->finite < 0)
        return;
    Lv flag = ir_load(ir, ir->i8, ir_off(ir, f->g, m->p->buffer.at[e->finite].offset), 1);
    Lv bad = LLVMBuildICmp(ir->b, LLVMIntEQ, flag, LLVMConstInt(ir->i8, 0, 0), "");
    IrIf s = ir_if(ir, bad);
    ir_store(ir, ir_int32(ir, GRADC_NONFINITE), f->status, 4);
    Lv known = blame_loss(f, e);
    IrIf unknown = ir_if(ir, LLVMBuildNot(ir->b, known, ""));
    blame_gradient(f, d->rows, d->places);
    ir_end_if(ir, &unknown);
    ir_end_if(ir, &s);
}

static void emit_body(Fn *f, const Entry *e, Lv calls)
{
    Model *m = f->m;
    Ir *ir = &m->ir;
    const Program *p = m->p;
    Feed d = feed_of(f, e);
    Lv outputs = output_table(m, e), n_out = ir_int(ir, p->result.n), full = ir_int(ir, d.full);
    Lv rows = ir_slot(ir, ir->i64, 8);
    d.places = ir_slot(ir, LLVMArrayType(ir->ptr, (unsigned)p->input.n + 1), 16);
    Lv lenient = may_lack_inputs(f, e);
    if (!fact_gives_outputs(p))
        leave_without(f, &d, lenient);
    Lv a1[] = {f->g, f->in, d.inputs, d.n_in, full, rows, lenient};
    check(f, call(f, "gradc.check", a1, 7));
    Lv a2[] = {f->g, f->out, outputs, n_out};
    check(f, call(f, "gradc.check_out", a2, 4));
    d.rows = ir_load(ir, ir->i64, rows, 8);
    if (p->rows < 0 && d.full > 0) { /* nothing in this program counts the valid rows */
        Lv whole[] = {f->g, d.rows, full};
        check(f, call(f, "gradc.whole", whole, 3));
    }
    Lv last = ir_off(ir, f->g, HANDLE_LAST);
    ir_store(ir, ir_int(ir, 0), last, 8);
    run(f, &d, calls);
    if (e->store_bytes > 0)
        check(f, call(f, "gradc.transferred", &f->g, 1));
    call(f, "gradc.copy_out", a2, 4);
    check_finite(f, e, &d);
    if (program_entry(p, "grad") == e)
        ir_store(ir, ir_int(ir, 1), last, 8);
}

Lv model_entry_fn(Model *m, const Entry *e)
{
    Ir *ir = &m->ir;
    const Entry *grad = program_entry(m->p, "grad");
    Lv calls = model_calls(m, e);
    if (e->updates && grad != NULL && grad->store_bytes == 0)
        model_calls(m, grad); /* before this function is begun: check_finite() calls it */
    const Lt arg[] = {ir->ptr, ir->ptr, ir->ptr};
    const char *name = arena_printf(m->arena, "%s.%s.entry", m->name, e->name);
    Lv fn = ir_function(ir, name, ir->i32, arg, 3);
    lines_function(m->lines, fn, name, NULL);
    Fn f = {.m = m, .g = LLVMGetParam(fn, 0), .in = LLVMGetParam(fn, 1)};
    f.out = LLVMGetParam(fn, 2);
    f.status = ir_slot(ir, ir->i32, 4);
    f.leave = ir_block(ir, "leave");
    enter(&f);
    emit_body(&f, e, calls);
    ir_br(ir, f.leave);
    ir_at(ir, f.leave);
    call(&f, "gradc.leave", &f.g, 1);
    LLVMBuildRet(ir->b, ir_load(ir, ir->i32, f.status, 4));
    return fn;
}
