/* A model and what its object gives, as one line of JSON, for a judge that is no part of
 * gradc (jax_check.py): the twin in f64, so that the two agree to rounding. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_text(const char *s)
{
    putchar('"');
    for (; *s != '\0'; s++) {
        if (*s == '\n')
            fputs("\\n", stdout);
        else if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else
            putchar(*s);
    }
    putchar('"');
}

static void put_element(DType t, const void *x, int64_t i)
{
    double d = 0;
    switch (t) {
    case F64:
        d = ((const double *)x)[i];
        printf(isnan(d) ? "NaN" : isinf(d) ? d > 0 ? "Infinity" : "-Infinity" : "%.17g", d);
        break;
    case I32:
        printf("%d", ((const int32_t *)x)[i]);
        break;
    case I64:
        printf("%lld", (long long)((const int64_t *)x)[i]);
        break;
    default:
        printf("%d", ((const uint8_t *)x)[i]);
    }
}

/* "name": ["f64", [2, 3], [elements]] */
static void put_tensor(const char *name, const gradc_tensor *t, DType type, const void *x,
                       bool *any)
{
    int64_t n = 1;
    fputs(*any ? ", " : "", stdout);
    put_text(name);
    printf(": [\"%s\", [", dtype_name(type));
    for (int i = 0; i < t->rank; i++, n *= t->shape[i - 1])
        printf("%s%lld", i > 0 ? ", " : "", (long long)t->shape[i]);
    printf("], [");
    for (int64_t i = 0; i < n; i++) {
        fputs(i > 0 ? ", " : "", stdout);
        put_element(type, x, i);
    }
    printf("]]");
    *any = true;
}

static void *read_tensor(Bench *b, void *g, int32_t i)
{
    int64_t bytes = b->m->tensors[i].bytes;
    void *to = arena_alloc(&b->arena, (size_t)bytes + 1);
    if (b->m->read(g, i, to, (size_t)bytes) != GRADC_OK)
        abort();
    return to;
}

/* Zeros lie on kinks: floats of parameters and state move a little. */
static void move_tensor(Bench *b, void *g, int32_t i, uint64_t *rng)
{
    int64_t n = b->m->tensors[i].bytes / 8;
    double *x = read_tensor(b, g, i);
    for (int64_t k = 0; k < n; k++)
        x[k] += random_real(rng, -0.05, 0.05);
    if (b->m->write(g, i, x, (size_t)n * 8) != GRADC_OK)
        abort();
}

static bool is_kept(const Program *p, int32_t i)
{
    Role role = p->tensor.at[i].role;
    return role == ROLE_PARAM || role == ROLE_STATE;
}

static DType type_of_tensor(const Program *p, int32_t i)
{
    return p->buffer.at[p->tensor.at[i].buffer].dtype;
}

static void put_values(Bench *b, void *g)
{
    const Program *p = b->p;
    bool any = false;
    uint64_t rng = b->seed + 11;
    printf(", \"values\": {");
    for (int32_t i = 0; i < p->tensor.n; i++) {
        if (!is_kept(p, i) || type_of_tensor(p, i) != F64)
            continue;
        move_tensor(b, g, i, &rng);
        put_tensor(p->tensor.at[i].name, &b->m->tensors[i], F64, read_tensor(b, g, i), &any);
    }
    for (int i = 0; i < p->input.n; i++)
        put_tensor(p->input.at[i].name, &b->m->inputs[i], p->input.at[i].dtype, b->in[i], &any);
    printf("}");
}

static void put_gradients(Bench *b, void *g)
{
    const Program *p = b->p;
    bool any = false;
    printf(", \"gradients\": {");
    for (int32_t i = 0; i < p->tensor.n; i++) {
        const Tensor *t = &p->tensor.at[i];
        if (t->role != ROLE_GRADIENT || (t->of < 0 && t->of_input < 0))
            continue;
        const char *of = t->of >= 0 ? p->tensor.at[t->of].name : p->input.at[t->of_input].name;
        put_tensor(of, &b->m->tensors[i], F64, read_tensor(b, g, i), &any);
    }
    printf("}");
}

static void put_results(Bench *b)
{
    bool any = false;
    printf(", \"results\": {");
    for (int i = 0; i < b->p->result.n; i++)
        put_tensor(b->m->outputs[i].name, &b->m->outputs[i],
                   b->p->buffer.at[b->p->result.at[i].buffer].dtype, b->out_block->data[i], &any);
    printf("}");
}

void export_model(const char *text, uint64_t seed, Verdict *v)
{
    Bench *b = calloc(1, sizeof *b);
    if (b == NULL)
        abort();
    b->v = v;
    b->seed = seed;
    text = twin_text(&b->arena, text, true);
    if (!bench_open(b, text, false))
        return;
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = seed};
    o.offload = late_store(b->m->offload_bytes, &b->arena);
    void *g, *block = guarded(b->m->arena_bytes, b->m->arena_align, 0x77);
    if (b->m->init(block, (size_t)b->m->arena_bytes, &o, &g) != GRADC_OK)
        abort();
    printf("{\"seed\": %llu, \"batch\": %lld, \"text\": ", (unsigned long long)seed,
           (long long)b->p->batch_rows);
    put_text(text);
    put_values(b, g);
    if (b->m->grad(g, b->in_block, b->out_block) != GRADC_OK)
        abort();
    put_gradients(b, g);
    put_results(b);
    printf("}\n");
}
