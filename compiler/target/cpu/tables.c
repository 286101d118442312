/* gradc_model, the tables it points to, and the exported functions. */
#include <string.h>
#include "../../../runtime/abi.h"
#include "model.h"

/* ---- tables ----------------------------------------------------------------------------- */

/* Fields of a struct of the ABI, in order; padding is where C puts it. */
typedef struct Fields {
    Ir *ir;
    Lv at[40];
    int n;
} Fields;

static void put(Fields *f, Lv x)
{
    f->at[f->n++] = x;
}

static void put32(Fields *f, int64_t x)
{
    put(f, ir_int32(f->ir, x));
}

static void put64(Fields *f, int64_t x)
{
    put(f, ir_int(f->ir, x));
}

static void put_text(Fields *f, const char *s)
{
    put(f, ir_string(f->ir, s));
}

static Lv finish(Fields *f)
{
    return LLVMConstStructInContext(f->ir->c, f->at, (unsigned)f->n, 0);
}

Lv model_constant(Model *m, Lv value, const char *name)
{
    Lv g = LLVMAddGlobal(m->ir.m, LLVMTypeOf(value), name);
    LLVMSetInitializer(g, value);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(g, 1);
    return g;
}

Lv model_array(Model *m, Lv *row, int n, const char *name)
{
    if (n == 0)
        return LLVMConstNull(m->ir.ptr);
    return model_constant(m, LLVMConstArray(LLVMTypeOf(row[0]), row, (unsigned)n), name);
}

static void put_shape(Fields *f, int32_t rank, const int64_t *shape)
{
    put32(f, rank);
    put32(f, 0);
    Lv dim[8];
    for (int d = 0; d < 8; d++)
        dim[d] = ir_int(f->ir, d < rank ? shape[d] : 0);
    put(f, LLVMConstArray(f->ir->i64, dim, 8));
}

static Lv tensor_row(Model *m, const Tensor *t)
{
    const Buffer *b = &m->p->buffer.at[t->buffer];
    Fields f = {.ir = &m->ir};
    put_text(&f, t->name);
    put32(&f, b->dtype);
    put32(&f, fact_role(t->role));
    put_shape(&f, b->rank, b->shape);
    put64(&f, b->elems);
    put64(&f, b->elems * dtype_bytes(b->dtype));
    bool row_major = m->panels[t->buffer].width == 0;
    put64(&f, fact_live(m->p, t->buffer) && row_major ? b->offset : -1);
    put64(&f, t->of >= 0 ? t->of : t->of_input);
    put64(&f, 0);
    put64(&f, 0);
    return finish(&f);
}

static Lv tensors(Model *m)
{
    int n = m->p->tensor.n;
    Lv *row = NEW_ARRAY(m->arena, Lv, n);
    for (int i = 0; i < n; i++)
        row[i] = tensor_row(m, &m->p->tensor.at[i]);
    return model_array(m, row, n, "gradc.tensors");
}

static Lv inputs(Model *m)
{
    int n = m->p->input.n;
    Lv *row = NEW_ARRAY(m->arena, Lv, n);
    for (int i = 0; i < n; i++) {
        const Input *in = &m->p->input.at[i];
        Fields f = {.ir = &m->ir};
        put_text(&f, in->name);
        put32(&f, in->dtype);
        put32(&f, GRADC_INPUT);
        put_shape(&f, in->rank, in->shape);
        put64(&f, in->elems);
        put64(&f, in->elems * dtype_bytes(in->dtype));
        put64(&f, -1);
        put64(&f, -1);
        put64(&f, in->ranged ? in->lo : 0);
        put64(&f, in->ranged ? in->hi : 0);
        row[i] = finish(&f);
    }
    return model_array(m, row, n, "gradc.inputs");
}

static Lv outputs(Model *m)
{
    int n = m->p->result.n;
    Lv *row = NEW_ARRAY(m->arena, Lv, n);
    for (int i = 0; i < n; i++) {
        const Result *r = &m->p->result.at[i];
        const Buffer *b = &m->p->buffer.at[r->buffer];
        Fields f = {.ir = &m->ir};
        put_text(&f, r->name);
        put32(&f, b->dtype);
        put32(&f, fact_result_kind(m->p, i));
        put_shape(&f, b->rank, b->shape);
        put64(&f, b->elems);
        put64(&f, b->elems * dtype_bytes(b->dtype));
        put64(&f, -1);
        put64(&f, -1);
        put64(&f, 0);
        put64(&f, 0);
        row[i] = finish(&f);
    }
    return model_array(m, row, n, "gradc.outputs");
}

/* %Cell of support_text.c */
static Lv cells(Model *m)
{
    const Program *p = m->p;
    Lv *row = NEW_ARRAY(m->arena, Lv, p->tensor.n + 1);
    for (int i = 0; i < p->tensor.n; i++) {
        const Tensor *t = &p->tensor.at[i];
        const Buffer *b = &p->buffer.at[t->buffer];
        Fields f = {.ir = &m->ir};
        put_text(&f, t->name);
        put64(&f, b->offset);
        put64(&f, b->elems * dtype_bytes(b->dtype));
        put64(&f, b->dtype);
        put64(&f, t->role == ROLE_SCALAR && b->elems == 1);
        put64(&f, !fact_live(p, t->buffer));
        const Panels *x = &m->panels[t->buffer];
        put64(&f, x->rows);
        put64(&f, x->width > 0 ? x->cols / x->width : 0);
        put64(&f, x->width * dtype_bytes(b->dtype));
        row[i] = finish(&f);
    }
    return model_array(m, row, p->tensor.n, "gradc.cells");
}

/* ---- exported functions -------------------------------------------------------------------- */

static Lv export(Model *m, const char *suffix, Lt result, const Lt *arg, int n)
{
    Lv fn = ir_function(&m->ir, arena_printf(m->arena, "%s_%s", m->name, suffix), result, arg, n);
    LLVMSetLinkage(fn, LLVMExternalLinkage);
    return fn;
}

static Lv param(Lv fn, unsigned i)
{
    return LLVMGetParam(fn, i);
}

static void export_number(Model *m, const char *suffix, int64_t value)
{
    export(m, suffix, m->ir.i64, NULL, 0);
    LLVMBuildRet(m->ir.b, ir_int(&m->ir, value));
}

/* A function that hands its arguments, and those in `more`, to one of the support's. */
static Lv forward(Model *m, const char *suffix, Lv to, Lt result, const Lt *arg, int n,
                  const Lv *more, int n_more)
{
    Ir *ir = &m->ir;
    Lv fn = export(m, suffix, result, arg, n), all[8];
    for (int i = 0; i < n; i++)
        all[i] = param(fn, (unsigned)i);
    for (int i = 0; i < n_more; i++)
        all[n + i] = more[i];
    LLVMBuildRet(ir->b, ir_call(ir, to, all, n + n_more));
    return fn;
}

/* int NAME_step(g, in, T *loss): an outputs block with nothing else in it. */
static void export_loss_only(Model *m, const char *suffix, Lv entry)
{
    Ir *ir = &m->ir;
    const Lt arg[] = {ir->ptr, ir->ptr, ir->ptr};
    Lv fn = export(m, suffix, ir->i32, arg, 3);
    int n = m->p->result.n;
    Lv block = ir_slot(ir, LLVMArrayType(ir->i64, (unsigned)n + 1), 16);
    for (int i = 0; i <= n; i++)
        ir_store(ir, ir_int(ir, 0), ir_off(ir, block, 8 * i), 8);
    if (fact_loss(m->p) >= 0)
        ir_store(ir, param(fn, 2), ir_off(ir, block, 8 * (1 + fact_loss(m->p))), 8);
    Lv all[] = {param(fn, 0), param(fn, 1), block};
    LLVMBuildRet(ir->b, ir_call(ir, entry, all, 3));
}

static Lv export_entry(Model *m, const Entry *e)
{
    Ir *ir = &m->ir;
    const Lt arg[] = {ir->ptr, ir->ptr, ir->ptr};
    Lv fn = model_entry_fn(m, e);
    bool trains = strcmp(e->name, "step") == 0 || strcmp(e->name, "grad") == 0;
    if (trains)
        export_loss_only(m, e->name, fn);
    const char *suffix =
        trains ? arena_printf(m->arena, "%s_outputs", e->name) : name_identifier(m->arena, e->name);
    return forward(m, suffix, fn, ir->i32, arg, 3, NULL, 0);
}

static Lv export_tensors(Model *m, Lv table)
{
    Ir *ir = &m->ir;
    const Lt arg[] = {ir->ptr, ir->ptr};
    Lv fn = export(m, "tensors", ir->ptr, arg, 2);
    Lv asked = LLVMBuildICmp(ir->b, LLVMIntNE, param(fn, 1), LLVMConstNull(ir->ptr), "");
    IrIf f = ir_if(ir, asked);
    ir_store(ir, ir_int(ir, m->p->tensor.n), param(fn, 1), 8);
    ir_end_if(ir, &f);
    LLVMBuildRet(ir->b, table);
    return fn;
}

static void define_initialise(Model *m)
{
    Ir *ir = &m->ir;
    const Entry *init = program_entry(m->p, "init");
    Lv calls = init != NULL ? model_calls(m, init) : NULL;
    Lv fn = support_fn(ir, "gradc.initialise");
    ir_begin(ir, fn);
    if (calls != NULL) {
        Lv arg[] = {LLVMGetParam(fn, 0), LLVMConstNull(ir->ptr)};
        ir_call(ir, calls, arg, 2);
    }
    LLVMBuildRetVoid(ir->b);
}

typedef struct Exports {
    Lv init, read, write, error, step, grad, eval;
} Exports;

static Exports export_all(Model *m, Lv table)
{
    Ir *ir = &m->ir;
    const Program *p = m->p;
    Lv null = LLVMConstNull(ir->ptr);
    Exports x = {.step = null, .grad = null, .eval = null};
    Lv cell[] = {m->cells, ir_int32(ir, p->tensor.n)};
    define_initialise(m);
    export_number(m, "arena_bytes", p->arena_bytes);
    export_number(m, "arena_align", BLOCK_ALIGN);
    const Lt a_init[] = {ir->ptr, ir->i64, ir->ptr, ir->ptr};
    x.init = forward(m, "init", support_fn(ir, "gradc.init"), ir->i32, a_init, 4, NULL, 0);
    for (int i = 0; i < p->entry.n; i++) {
        const Entry *e = &p->entry.at[i];
        if (strcmp(e->name, "init") == 0)
            continue;
        Lv fn = export_entry(m, e);
        x.step = strcmp(e->name, "step") == 0 ? fn : x.step;
        x.grad = strcmp(e->name, "grad") == 0 ? fn : x.grad;
        x.eval = strcmp(e->name, "eval") == 0 ? fn : x.eval;
    }
    const Lt a_move[] = {ir->ptr, ir->i32, ir->ptr, ir->i64};
    x.read = forward(m, "read", support_fn(ir, "gradc.read"), ir->i32, a_move, 4, cell, 2);
    x.write = forward(m, "write", support_fn(ir, "gradc.write"), ir->i32, a_move, 4, cell, 2);
    const Lt a_set[] = {ir->ptr, ir->i32, ir->f64}, a_one[] = {ir->ptr};
    forward(m, "set", support_fn(ir, "gradc.set"), ir->i32, a_set, 3, cell, 2);
    forward(m, "find", support_fn(ir, "gradc.find"), ir->i32, a_one, 1, cell, 2);
    x.error = forward(m, "error", support_fn(ir, "gradc.error"), ir->ptr, a_one, 1, NULL, 0);
    export_tensors(m, table);
    return x;
}

static Lv moved(Ir *ir, const Entry *e, bool in)
{
    return ir_int(ir, e == NULL ? 0 : in ? e->in_bytes : e->out_bytes);
}

void model_tables(Model *m)
{
    const Program *p = m->p;
    Ir *ir = &m->ir;
    m->cells = cells(m);
    Lv table = tensors(m);
    Exports x = export_all(m, table);
    Fields f = {.ir = ir};
    put32(&f, GRADC_ABI);
    put32(&f, (int64_t)sizeof(gradc_model));
    put_text(&f, p->name);
    put_text(&f, GRADC_VERSION);
    put_text(&f, p->hash);
    put_text(&f, arena_printf(m->arena, "cpu:%s", ir->mach->cpu));
    put64(&f, p->arena_bytes);
    put64(&f, BLOCK_ALIGN);
    put64(&f, p->batch_rows);
    put64(&f, p->accumulate > 0 ? p->accumulate : 1);
    put32(&f, p->threads_max);
    put32(&f, p->tensor.n);
    put32(&f, p->input.n);
    put32(&f, p->result.n);
    Lv pointers[] = {table,  inputs(m), outputs(m), x.init,  x.step,
                     x.grad, x.eval,    x.read,     x.write, x.error};
    for (int i = 0; i < 10; i++)
        put(&f, pointers[i]);
    const Entry *step = program_entry(p, "step"), *grad = program_entry(p, "grad");
    put64(&f, p->store_bytes);
    Lv out[] = {moved(ir, step, false), moved(ir, grad, false)};
    Lv in[] = {moved(ir, step, true), moved(ir, grad, true)};
    put(&f, LLVMConstArray(ir->i64, out, 2));
    put(&f, LLVMConstArray(ir->i64, in, 2));
    put64(&f, 0); /* what only other targets have */
    put(&f, LLVMConstNull(ir->ptr));
    put(&f, LLVMConstNull(ir->ptr));
    Lv model = model_constant(m, finish(&f), arena_printf(m->arena, "%s_model", m->name));
    LLVMSetLinkage(model, LLVMExternalLinkage);
    LLVMSetAlignment(model, 16);
}
