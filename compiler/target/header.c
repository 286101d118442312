/* NAME.h: the typed interface of one model, C99 and C++. */
#include <string.h>
#include "../../runtime/abi.h"
#include "embedded.h"
#include "facts.h"

typedef struct Header {
    const Program *p;
    Arena *arena;
    const HeaderWords *w;
    Text t;
    const char *name, *upper;
} Header;

static const char *shape_text(Header *h, DType t, int32_t rank, const int64_t *shape)
{
    Text s;
    text_init(&s, h->arena);
    text_add(&s, "%s[", dtype_name(t));
    for (int d = 0; d < rank; d++)
        text_add(&s, "%s%lld", d > 0 ? ", " : "", (long long)shape[d]);
    text_char(&s, ']');
    return s.at;
}

static const char *comment(Header *h, const char *text)
{
    return name_in_comment(h->arena, text);
}

/* A comment block of the model's own words. */
static void put_doc(Header *h, const char *doc, const char *indent)
{
    if (doc == NULL || doc[0] == 0)
        return;
    text_add(&h->t, "%s/* ", indent);
    for (const char *p = comment(h, doc); *p != 0; p++) {
        if (*p == '\n')
            text_add(&h->t, "\n%s *%s", indent, p[1] == '\n' ? "" : " ");
        else
            text_char(&h->t, *p);
    }
    text_add(&h->t, " */\n");
}

static void put_size(Header *h, const char *what, int64_t value, const char *why)
{
    text_add(&h->t, "#define %s_%s %lld%s /* %s */\n", h->upper, what, (long long)value,
             value > UINT32_MAX ? "ull" : "u", why);
}

/* Only where values are offloaded: gradc_options.offload is needed then. */
static void put_offload(Header *h)
{
    static const char *const moved[][3] = {{"step", "OFFLOAD_STEP_OUT", "OFFLOAD_STEP_IN"},
                                           {"grad", "OFFLOAD_GRAD_OUT", "OFFLOAD_GRAD_IN"}};
    const Program *p = h->p;
    if (p->store_bytes == 0)
        return;
    put_size(h, "OFFLOAD_BYTES", p->store_bytes, "that gradc_options.offload has to hold");
    for (int i = 0; i < 2; i++) {
        const Entry *e = program_entry(p, moved[i][0]);
        if (e == NULL)
            continue;
        put_size(h, moved[i][1], e->out_bytes, "bytes that one call writes there");
        put_size(h, moved[i][2], e->in_bytes, "bytes that it reads there");
    }
}

static void put_constants(Header *h)
{
    const Program *p = h->p;
    int64_t elems = 0;
    int tensors = 0;
    for (int i = 0; i < p->tensor.n; i++) {
        if (p->tensor.at[i].role != ROLE_PARAM)
            continue;
        elems += p->buffer.at[p->tensor.at[i].buffer].elems;
        tensors++;
    }
    put_size(h, "ARENA_BYTES", h->w->block, h->w->what);
    put_size(h, "ARENA_ALIGN", BLOCK_ALIGN, "of the block");
    put_size(h, "PARAM_COUNT", elems, "numbers in all parameters");
    put_size(h, "PARAM_TENSORS", tensors, "parameters");
    put_size(h, "TENSORS", p->tensor.n, "entries of the table of tensors");
    put_size(h, "BATCH_ROWS", p->batch_rows, "rows of one full call of eval");
    put_size(h, "ACCUMULATE", p->accumulate > 0 ? p->accumulate : 1,
             "a step takes this many times as many rows");
    put_size(h, "THREADS_MAX", p->threads_max, "lanes that the block has scratch for");
    put_offload(h);
    if (p->precision != F32) {
        text_add(&h->t, "#define %s_PRECISION \"%s\" /* of stored values; not of tensors */\n",
                 h->upper, dtype_name(p->precision));
        text_add(&h->t, "#define %s_LOSS_SCALE %g /* inside: gradients are without it */\n",
                 h->upper, p->loss_scale);
    }
    text_add(&h->t, "#define %s_HASH \"%s\" /* graph, shapes, optimizer */\n", h->upper,
             name_in_string(h->arena, p->hash));
    text_add(&h->t, "%s\n", h->w->more);
}

static void put_inputs(Header *h)
{
    const Program *p = h->p;
    const char **name = NEW_ARRAY(h->arena, const char *, p->input.n);
    for (int i = 0; i < p->input.n; i++)
        name[i] = p->input.at[i].name;
    const char **id = name_identifiers(h->arena, name, p->input.n);
    text_add(&h->t,
             "/* Inputs: the caller's memory, aligned to its elements, outside of the block; "
             "read only. */\ntypedef struct %s_inputs {\n"
             "    int64_t rows; /* valid rows of the batch; 0: all of them */\n",
             h->name);
    for (int i = 0; i < p->input.n; i++) {
        const Input *in = &p->input.at[i];
        put_doc(h, in->doc, "    ");
        text_add(&h->t, "    const %s *%s; /* %s: %s", name_c_type(in->dtype), id[i],
                 comment(h, in->name), shape_text(h, in->dtype, in->rank, in->shape));
        if (in->ranged)
            text_add(&h->t, ", %lld <= v < %lld", (long long)in->lo, (long long)in->hi);
        text_add(&h->t, " */\n");
    }
    text_add(&h->t, "} %s_inputs;\n\n", h->name);
}

static void put_outputs(Header *h)
{
    static const char *const kind[] = {
        [GRADC_OUTPUT] = "output", [GRADC_METRIC] = "metric", [GRADC_LOSS] = "loss"};
    const Program *p = h->p;
    const char **name = NEW_ARRAY(h->arena, const char *, p->result.n);
    for (int i = 0; i < p->result.n; i++)
        name[i] = p->result.at[i].name;
    const char **id = name_identifiers(h->arena, name, p->result.n);
    text_add(&h->t,
             "/* Outputs: where they are to be written; NULL is \"not wanted\". */\n"
             "typedef struct %s_outputs {\n    int64_t reserved;\n",
             h->name);
    for (int i = 0; i < p->result.n; i++) {
        const Buffer *b = &p->buffer.at[p->result.at[i].buffer];
        put_doc(h, p->result.at[i].doc, "    ");
        text_add(&h->t, "    %s *%s; /* %s %s: %s */\n", name_c_type(b->dtype), id[i],
                 kind[fact_result_kind(p, i)], comment(h, name[i]),
                 shape_text(h, b->dtype, b->rank, b->shape));
    }
    text_add(&h->t, "} %s_outputs;\n\n", h->name);
}

static void put_tensors(Header *h)
{
    const Program *p = h->p;
    if (p->tensor.n == 0)
        return;
    const char **name = NEW_ARRAY(h->arena, const char *, p->tensor.n);
    for (int i = 0; i < p->tensor.n; i++) {
        const Tensor *t = &p->tensor.at[i];
        name[i] = t->role == ROLE_GRADIENT ? arena_printf(h->arena, "grad_%s", t->name) : t->name;
    }
    const char **id = name_identifiers(h->arena, name, p->tensor.n);
    text_add(&h->t, "/* Tensors, for read, write and set. A parameter that is frozen, or that the "
                    "loss does not\n"
                    " * use, has no gradient. */\nenum {\n");
    for (int i = 0; i < p->tensor.n; i++) {
        const Tensor *t = &p->tensor.at[i];
        const Buffer *b = &p->buffer.at[t->buffer];
        if (t->role != ROLE_GRADIENT && t->role != ROLE_OPTIMIZER)
            put_doc(h, t->doc, "    ");
        text_add(&h->t, "    %s_T_%s = %d, /* %s: %s, %s */\n", h->upper, id[i], i,
                 comment(h, t->name), shape_text(h, b->dtype, b->rank, b->shape),
                 role_name(t->role));
    }
    text_add(&h->t, "};\n\n");
}

static void put_entry(Header *h, const Entry *e)
{
    const char *n = h->name;
    int32_t loss = fact_loss(h->p);
    const char *type =
        loss >= 0 ? name_c_type(h->p->buffer.at[h->p->result.at[loss].buffer].dtype) : "void";
    if (strcmp(e->name, "step") == 0 || strcmp(e->name, "grad") == 0) {
        bool step = e->name[0] == 's';
        put_doc(h, step ? h->p->train_doc : NULL, "");
        text_add(
            &h->t,
            step ? "/* One training step: forward, backward, clipping, update. */\n"
                 : "/* Forward and backward, no update: gradients can be read afterwards. */\n");
        text_add(&h->t,
                 "int %s_%s(%s *g, const %s_inputs *in, %s *loss);\n"
                 "int %s_%s_outputs(%s *g, const %s_inputs *in, %s_outputs *out);\n",
                 n, e->name, n, n, type, n, e->name, n, n, n);
        return;
    }
    if (strcmp(e->name, "eval") == 0)
        text_add(&h->t, "/* Forward only. Inputs that only loss and metrics need may be NULL when "
                        "those are\n * not wanted. */\n");
    text_add(&h->t, "int %s_%s(%s *g, const %s_inputs *in, %s_outputs *out);\n", n,
             name_identifier(h->arena, e->name), n, n, n);
}

static void put_functions(Header *h)
{
    const char *n = h->name;
    const Program *p = h->p;
    text_add(
        &h->t,
        "/* The handle lives at the start of the caller's block. Handles are independent; one is\n"
        " * used by one thread at a time. Every call but the first two returns GRADC_OK (0) or\n"
        " * another GRADC_ status, and checks its arguments before it writes anything. */\n"
        "typedef struct %s %s;\n\n"
        "size_t %s_arena_bytes(void);\nsize_t %s_arena_align(void);\n"
        "/* Sets all parameters from o->seed; o may be NULL (serial, seed 0). On failure *g is "
        "NULL,\n * and %s_error((const %s *)block) tells why if the block has 1024 bytes. */\n"
        "int %s_init(void *block, size_t bytes, const gradc_options *o, %s **g);\n",
        n, n, n, n, n, n, n, n);
    for (int i = 0; i < p->entry.n; i++)
        if (strcmp(p->entry.at[i].name, "init") != 0)
            put_entry(h, &p->entry.at[i]);
    text_add(&h->t,
             "/* Tensors by index, in row-major order; `bytes` must be exact. */\n"
             "const gradc_tensor *%s_tensors(const %s *g, size_t *count);\n"
             "int %s_read(const %s *g, int32_t tensor, void *to, size_t bytes);\n"
             "int %s_write(%s *g, int32_t tensor, const void *from, size_t bytes);\n"
             "/* Changes a run-time scalar such as the learning rate. */\n"
             "int %s_set(%s *g, int32_t tensor, double value);\n"
             "/* Index of the tensor of this name, or -1. */\n"
             "int32_t %s_find(const char *name);\n"
             "/* What went wrong in the last call, in words. */\n"
             "const char *%s_error(const %s *g);\n\n"
             "/* The same for any model: what libgradc works with. */\n"
             "extern const gradc_model %s_model;\n",
             n, n, n, n, n, n, n, n, n, n, n, n);
}

const char *header_text(const Program *p, const HeaderWords *w, Arena *arena)
{
    Header h = {.p = p, .arena = arena, .w = w, .name = w->name};
    h.upper = name_upper(arena, w->name);
    Text *t = &h.t;
    text_init(t, arena);
    text_add(t, "/* %s.h: written by gradc %s. Model hash %s. */\n", h.name, GRADC_VERSION,
             comment(&h, p->hash));
    text_add(t, "#ifndef %s_GRADC_H\n#define %s_GRADC_H\n\n", h.upper, h.upper);
    text_put(t, abi_text, abi_text_bytes);
    text_add(t,
             "\n#if GRADC_ABI != %d\n#error \"%s.h and another header are of different versions "
             "of gradc\"\n#endif\n\n",
             GRADC_ABI, h.name);
    text_add(t, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    put_doc(&h, p->doc, "");
    put_constants(&h);
    put_inputs(&h);
    put_outputs(&h);
    put_tensors(&h);
    if (w->usage != NULL)
        text_add(t, "%s\n", w->usage);
    put_functions(&h);
    if (w->functions != NULL)
        text_add(t, "\n%s", w->functions);
    if (w->extra != NULL)
        text_add(t, "\n%s\n", w->extra);
    text_add(t, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
    return t->at;
}
