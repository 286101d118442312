/* What the object says of the model: gradc_model and gradc_cuda_program, as LLVM's text. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "../../../runtime/cuda_abi.h"
#include "object.h"

/* ---- text ---------------------------------------------------------------------------------- */

static void put_bytes(Text *to, const unsigned char *bytes, size_t n)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < n; i++) {
        unsigned char c = bytes[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            text_char(to, (char)c);
            continue;
        }
        const char escaped[] = {'\\', hex[c >> 4], hex[c & 15]};
        text_put(to, escaped, sizeof escaped);
    }
}

const char *cu_text_constant(Object *o, const char *s)
{
    const char *name = arena_printf(o->arena, "@gradc.text.%d", o->n_strings++);
    text_add(&o->strings, "%s = private unnamed_addr constant [%zu x i8] c\"", name, strlen(s) + 1);
    put_bytes(&o->strings, (const unsigned char *)s, strlen(s) + 1);
    text_add(&o->strings, "\"\n");
    return name;
}

void cu_table_begin(Object *o, const char *name, const char *row, int64_t n)
{
    o->row = row;
    o->rows = n;
    o->row_at = 0;
    if (n > 0)
        text_add(&o->to, "@%s = private constant [%" PRId64 " x { %s }] [\n", name, n, row);
}

void cu_table_row(Object *o, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const char *fields = arena_vprintf(o->arena, format, ap);
    va_end(ap);
    o->row_at++;
    text_add(&o->to, "  { %s } { %s }%s\n", o->row, fields, o->row_at < o->rows ? "," : "");
}

void cu_table_end(Object *o)
{
    if (o->rows > 0)
        text_add(&o->to, "]\n");
}

const char *cu_table_ref(Object *o, const char *name, int64_t n)
{
    return n > 0 ? arena_printf(o->arena, "@%s", name) : "null";
}

/* ---- gradc_tensor --------------------------------------------------------------------------- */

static const char tensor_row[] = "ptr, i32, i32, i32, i32, [8 x i64], i64, i64, i64, i64, i64, i64";

typedef struct Described {
    const char *name;
    int32_t dtype, role, rank; /* dtype: GRADC_ as DType */
    const int64_t *shape;
    int64_t elems, of, lo, hi;
} Described;

static void put_tensor(Object *o, const Described *d)
{
    Text shape;
    text_init(&shape, o->arena);
    for (int i = 0; i < 8; i++)
        text_add(&shape, "%si64 %" PRId64, i > 0 ? ", " : "", i < d->rank ? d->shape[i] : 0);
    cu_table_row(o,
                 "ptr %s, i32 %d, i32 %d, i32 %d, i32 0, [8 x i64] [%s], i64 %" PRId64
                 ", i64 %" PRId64 ", i64 -1, i64 %" PRId64 ", i64 %" PRId64 ", i64 %" PRId64,
                 cu_text_constant(o, d->name), d->dtype, d->role, d->rank, shape.at, d->elems,
                 d->elems * dtype_bytes((DType)d->dtype), d->of, d->lo, d->hi);
}

static Described of_buffer(const Buffer *b, const char *name, int32_t role)
{
    return (Described){.name = name,
                       .dtype = (int32_t)b->dtype,
                       .role = role,
                       .rank = b->rank,
                       .shape = b->shape,
                       .elems = b->elems,
                       .of = -1};
}

static void put_tensors(Object *o)
{
    const Program *p = o->p;
    cu_table_begin(o, "gradc.tensors", tensor_row, p->tensor.n);
    for (int i = 0; i < p->tensor.n; i++) {
        const Tensor *t = &p->tensor.at[i];
        Described d = of_buffer(&p->buffer.at[t->buffer], t->name, fact_role(t->role));
        d.of = t->of >= 0 ? t->of : t->of_input;
        put_tensor(o, &d);
    }
    cu_table_end(o);
    cu_table_begin(o, "gradc.inputs", tensor_row, p->input.n);
    for (int i = 0; i < p->input.n; i++) {
        const Input *in = &p->input.at[i];
        Described d = {.name = in->name,
                       .dtype = (int32_t)in->dtype,
                       .role = GRADC_INPUT,
                       .rank = in->rank,
                       .shape = in->shape,
                       .elems = in->elems,
                       .of = -1,
                       .lo = in->ranged ? in->lo : 0,
                       .hi = in->ranged ? in->hi : 0};
        put_tensor(o, &d);
    }
    cu_table_end(o);
    cu_table_begin(o, "gradc.outputs", tensor_row, p->result.n);
    for (int i = 0; i < p->result.n; i++) {
        const Result *r = &p->result.at[i];
        Described d = of_buffer(&p->buffer.at[r->buffer], r->name, fact_result_kind(p, i));
        put_tensor(o, &d);
    }
    cu_table_end(o);
}

/* ---- gradc_model ---------------------------------------------------------------------------- */

/* The function of a model's table, by the end of its name. */
static const char *function_of(Object *o, const char *entry, const char *suffix)
{
    if (entry != NULL && program_entry(o->p, entry) == NULL)
        return "null";
    return arena_printf(o->arena, "@%s_%s", o->name, suffix);
}

static void put_model(Object *o)
{
    const Program *p = o->p;
    text_add(&o->to,
             "@%s_model = constant { i32, i32, ptr, ptr, ptr, ptr, i64, i64, i64, i64, i32, i32, "
             "i32, i32, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, [2 x i64], "
             "[2 x i64], i64, ptr, ptr } {\n  i32 %d, i32 %zu, ptr %s, ptr %s, ptr %s, ",
             o->name, GRADC_ABI, sizeof(gradc_model), cu_text_constant(o, p->name),
             cu_text_constant(o, GRADC_VERSION), cu_text_constant(o, p->hash));
    text_add(&o->to,
             "ptr %s, i64 %d, i64 %d, i64 %" PRId64 ", i64 %" PRId64 ",\n  i32 1, i32 %d, i32 %d, "
             "i32 %d, ptr %s, ptr %s, ptr %s,\n",
             cu_text_constant(o, o->about), HANDLE_BYTES, BLOCK_ALIGN, p->batch_rows,
             p->accumulate > 0 ? p->accumulate : 1, p->tensor.n, p->input.n, p->result.n,
             cu_table_ref(o, "gradc.tensors", p->tensor.n),
             cu_table_ref(o, "gradc.inputs", p->input.n),
             cu_table_ref(o, "gradc.outputs", p->result.n));
    static const char *const fn[][2] = {
        {NULL, "init"}, {"step", "step_outputs"}, {"grad", "grad_outputs"}, {"eval", "eval"},
        {NULL, "read"}, {NULL, "write"},          {NULL, "error"}};
    for (size_t i = 0; i < sizeof fn / sizeof *fn; i++)
        text_add(&o->to, "%sptr %s", i > 0 ? ", " : "  ", function_of(o, fn[i][0], fn[i][1]));
    text_add(&o->to,
             ",\n  i64 0, [2 x i64] zeroinitializer, [2 x i64] zeroinitializer, i64 %" PRId64
             ", ptr @%s_wait, ptr @%s_close\n}, align 16\n",
             o->behind.device_bytes, o->name, o->name);
}

/* ---- gradc_cuda_program -----------------------------------------------------------------------
 */

static void put_images(Object *o)
{
    const CudaImages *m = o->images;
    for (int i = 0; i < m->n; i++) {
        text_add(&o->to, "@gradc.image.%d = private constant [%zu x i8] c\"", i, m->items[i].size);
        put_bytes(&o->to, m->items[i].bytes, m->items[i].size);
        text_add(&o->to, "\", align 64\n");
    }
    cu_table_begin(o, "gradc.images", "ptr, i64, i32, i32, i32, i32", m->n);
    for (int i = 0; i < m->n; i++)
        cu_table_row(o, "ptr @gradc.image.%d, i64 %zu, i32 %d, i32 %d, i32 %d, i32 0", i,
                     m->items[i].size,
                     m->items[i].kind == IMAGE_PTX ? GRADC_CUDA_PTX : GRADC_CUDA_CUBIN,
                     m->items[i].arch, m->items[i].program);
    cu_table_end(o);
}

static int arguments(const Kernel *k, bool guarded)
{
    int n = guarded;
    for (int i = 0; i < k->buf.n; i++)
        n += k->buf.at[i].mode != K_LOCAL;
    return n;
}

static void put_kernels(Object *o)
{
    const CudaImages *m = o->images;
    int n = o->p->kernel.n;
    cu_table_begin(o, "gradc.kernels", "ptr, i64, i32, i32, i32, i32", n);
    for (int i = 0; i < n; i++)
        cu_table_row(o, "ptr %s, i64 %" PRId64 ", i32 %d, i32 %d, i32 %d, i32 0",
                     cu_text_constant(o, m->name[i]), m->launch[i].blocks, m->launch[i].threads,
                     m->program_of_kernel[i], arguments(o->p->kernel.at[i], m->guarded[i]));
    cu_table_end(o);
}

static void put_cells(Object *o)
{
    const Program *p = o->p;
    cu_table_begin(o, "gradc.cells", "i64, i64, i64", p->tensor.n);
    for (int i = 0; i < p->tensor.n; i++) {
        const Tensor *t = &p->tensor.at[i];
        const Buffer *b = &p->buffer.at[t->buffer];
        cu_table_row(o, "i64 %" PRId64 ", i64 %d, i64 %d", b->offset,
                     t->role == ROLE_SCALAR && b->elems == 1, !fact_live(p, t->buffer));
    }
    cu_table_end(o);
}

static void put_constants(Object *o)
{
    const Program *p = o->p;
    const Behind *b = &o->behind;
    if (b->constant_bytes == 0)
        return;
    unsigned char *all = arena_alloc(o->arena, (size_t)b->constant_bytes);
    for (int i = 0; i < p->buffer.n; i++) {
        const Buffer *x = &p->buffer.at[i];
        if (b->constant[i] >= 0)
            memcpy(all + b->constant[i], x->literal, (size_t)(x->elems * dtype_bytes(x->dtype)));
    }
    if (b->always >= 0)
        all[b->always] = 1;
    text_add(&o->to, "@gradc.literals = private constant [%" PRId64 " x i8] c\"",
             b->constant_bytes);
    put_bytes(&o->to, all, (size_t)b->constant_bytes);
    text_add(&o->to, "\", align 64\n");
}

static int64_t offset_of(const Program *p, int32_t buffer)
{
    return buffer >= 0 && buffer < p->buffer.n ? p->buffer.at[buffer].offset : -1;
}

static void put_program(Object *o)
{
    const Program *p = o->p;
    const Behind *b = &o->behind;
    const CudaImages *m = o->images;
    text_add(&o->to,
             "@gradc.program = private constant { i32, i32, ptr, ptr, i64, i64, i64, i64, i64, "
             "i64, i64, i64, i64, ptr, ptr, ptr, ptr, ptr, ptr, [4 x ptr], i64, i64, i64 } {\n"
             "  i32 %d, i32 %d, ptr %s, ptr @%s_model, i64 %" PRId64 ", i64 %" PRId64
             ", i64 %" PRId64 ", i64 %" PRId64 ",\n",
             GRADC_CUDA_TABLES, m->driver, cu_text_constant(o, o->name), o->name, (int64_t)o->magic,
             b->device_bytes, p->arena_bytes, p->pinned_bytes);
    text_add(&o->to,
             "  i64 %" PRId64 ", i64 %" PRId64 ", i64 %d, i64 %" PRId64 ", i64 %" PRId64
             ", ptr %s,\n  ptr %s, ptr %s, ptr %s, ptr %s, ptr %s,\n  [4 x ptr] [",
             offset_of(p, p->seed), offset_of(p, p->rows), fact_loss(p), b->constants,
             b->constant_bytes, cu_table_ref(o, "gradc.literals", b->constant_bytes),
             cu_table_ref(o, "gradc.images", m->n), cu_table_ref(o, "gradc.kernels", p->kernel.n),
             cu_table_ref(o, "gradc.operands", o->operands),
             cu_table_ref(o, "gradc.strides", o->strides),
             cu_table_ref(o, "gradc.cells", p->tensor.n));
    static const char *const entry[GRADC_CUDA_ENTRIES] = {"init", "eval", "grad", "step"};
    for (int i = 0; i < GRADC_CUDA_ENTRIES; i++)
        text_add(&o->to, "%sptr %s%s", i > 0 ? ", " : "",
                 program_entry(p, entry[i]) != NULL ? "@gradc.entry." : "null",
                 program_entry(p, entry[i]) != NULL ? entry[i] : "");
    text_add(&o->to, "], i64 %d, i64 %d, i64 %d\n}\n", m->n, p->kernel.n, m->n_programs);
}

void cu_tables(Object *o)
{
    put_tensors(o);
    put_model(o);
    put_images(o);
    put_kernels(o);
    put_cells(o);
    put_constants(o);
    cu_entry_tables(o);
    put_program(o);
}
