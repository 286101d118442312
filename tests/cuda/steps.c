/* Writes a model's kernels, what its entries launch, and what the exact interpreter has in memory
 * after each call, for run_steps.cpp.
 *
 *   steps MODEL FOLDER [OPTION...] [NAME=VALUE...]    writes kernels.cu, entries.inc, steps.bin
 *
 * OPTION: --precision=TYPE; --wide=N, as if chunks of so many elements were wide
 * (Target.wide_elems), for shapes that are small; --once: one step; --text: kernels.cu alone.
 *
 * Calls are init, then step twice, or grad where the model does not train; eval at last. */
#include <string.h>
#include "compile.h"
#include "cpu/fill.h"
#include "cuda/write.h"
#include "target/cuda/cuda.h"

enum { MAX_DEFINES = 16 };

typedef struct Wanted {
    Define define[MAX_DEFINES];
    int n_defines;
    const char *precision; /* NULL: the model's */
    int64_t wide;          /* 0: the target's */
    bool text, once;
} Wanted;

typedef struct Steps {
    Ctx cx;
    Arena arena;
    Output out;
    const Program *p;
    const char *to; /* folder */
    Launch *launch; /* by kernel */
    bool *guarded;
    const void **input; /* by input */
} Steps;

/* ---- the model -------------------------------------------------------------------------- */

static int32_t read_model(Steps *s, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(3);
    }
    char *text = arena_alloc(&s->arena, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    return source_add(&s->cx, path, text, n, false);
}

static Wanted read_options(Steps *s, char **option, int n)
{
    Wanted w = {0};
    for (int i = 0; i < n && w.n_defines < MAX_DEFINES; i++) {
        size_t name = strcspn(option[i], "=");
        const char *value = option[i] + name + (option[i][name] != 0);
        if (strncmp(option[i], "--precision", name) == 0)
            w.precision = value;
        else if (strncmp(option[i], "--wide", name) == 0)
            w.wide = atoll(value);
        else if (strcmp(option[i], "--text") == 0)
            w.text = true;
        else if (strcmp(option[i], "--once") == 0)
            w.once = true;
        else
            w.define[w.n_defines++] =
                (Define){.name = intern_n(&s->cx.names, option[i], name), .value = value};
    }
    return w;
}

static bool compile_model(Steps *s, const char *path, const Wanted *w)
{
    Options o = {.entry = {true, true, true, true},
                 .define = w->define,
                 .n_defines = w->n_defines,
                 .precision = w->precision,
                 .threads_max = 1,
                 .chunk_from = -1,
                 .chunk_wide = w->wide,
                 .target = {.target = "cuda", .want_cuda = true, .no_object = true}};
    s->out.arena = &s->arena;
    bool ok = compile(&s->cx, read_model(s, path), &o, &s->out);
    diag_print(&s->cx, stderr);
    s->p = s->out.program;
    return ok;
}

/* What launches need is no part of the text. */
static void plan_launches(Steps *s)
{
    int n = s->p->kernel.n;
    s->launch = NEW_ARRAY(&s->arena, Launch, n);
    s->guarded = NEW_ARRAY(&s->arena, bool, n);
    cu_find_guarded(s->p, s->guarded);
    Math math = {.arena = &s->arena};
    Text text;
    text_init(&math.text, &s->arena);
    text_init(&text, &s->arena);
    for (int i = 0; i < n; i++) {
        Naming as = {.name = "k", .guarded = s->guarded[i]};
        s->launch[i] = cu_kernel(&text, &s->arena, s->p->kernel.at[i], &as, &math);
    }
}

/* ---- entries as C++ ----------------------------------------------------------------------------
 */

static void put_operand(const Steps *s, FILE *f, const Operand *o, int depth)
{
    const Buffer *b = &s->p->buffer.at[o->buffer];
    long long each = dtype_bytes(b->dtype);
    if (b->offset >= 0)
        fprintf(f, "block + %lld", (long long)b->offset + o->base * each);
    else
        fprintf(f, "outside[%d] + %lld", o->buffer, o->base * each);
    for (int d = 0; d < depth; d++)
        fprintf(f, " + %lld * i%d", o->step[d] * each, d);
}

static void put_calls(const Steps *s, FILE *f, const Call *call, int32_t n, int depth,
                      const Operand *guard)
{
    for (const Call *c = call; c < call + n; c++) {
        if (c->kind == CALL_LOOP) {
            fprintf(f, "for (long i%d = 0; i%d < %lld; i%d++) {\n", depth, depth,
                    (long long)c->count, depth);
            put_calls(s, f, c->body, c->n_body, depth + 1, guard);
            fprintf(f, "}\n");
        } else if (c->kind == CALL_GUARD) {
            put_calls(s, f, c->body, c->n_body, depth, &c->flag);
        } else if (c->kind == CALL_KERNEL && s->launch[c->kernel].blocks > 0) {
            const char *name = s->p->kernel.at[c->kernel]->name;
            fprintf(f, "{ void *a[] = {");
            for (int i = 0; i < c->n_ops; i++, fprintf(f, ", "))
                put_operand(s, f, &c->op[i], depth);
            if (guard != NULL)
                put_operand(s, f, guard, depth);
            else
                fprintf(f, "always");
            fprintf(f, "}; emulator::launch(k%d_%s, %lld, %d, a); }\n", c->kernel, name,
                    (long long)s->launch[c->kernel].blocks, s->launch[c->kernel].threads);
        }
    }
}

static void write_entries(const Steps *s)
{
    FILE *f = create(s->to, "entries.inc");
    for (int e = 0; e < s->p->entry.n; e++) {
        const Entry *x = &s->p->entry.at[e];
        fprintf(f, "static void entry_%s(unsigned char *block, unsigned char **outside)\n{\n",
                x->name);
        put_calls(s, f, x->call, x->n_calls, 0, NULL);
        fprintf(f, "}\n");
    }
    fprintf(f, "static const struct { const char *name; "
               "void (*run)(unsigned char *, unsigned char **); } entries[] = {\n");
    for (int e = 0; e < s->p->entry.n; e++)
        fprintf(f, "{\"%s\", entry_%s},\n", s->p->entry.at[e].name, s->p->entry.at[e].name);
    fprintf(f, "};\n");
    fclose(f);
}

static void write_text(const Steps *s)
{
    FILE *f = create(s->to, "kernels.cu");
    fputs(s->out.object.cuda, f);
    fclose(f);
}

/* ---- what is in memory
 * ------------------------------------------------------------------------------ */

static void put64(FILE *f, int64_t x)
{
    fwrite(&x, sizeof x, 1, f);
}

static size_t bytes_of(const Buffer *b)
{
    return (size_t)(b->elems * dtype_bytes(b->dtype));
}

static void fill_inputs(Steps *s)
{
    uint64_t seed = 5;
    s->input = NEW_ARRAY(&s->arena, const void *, s->p->input.n);
    for (int i = 0; i < s->p->input.n; i++) {
        const Input *in = &s->p->input.at[i];
        void *data = arena_alloc(&s->arena, (size_t)(in->elems * dtype_bytes(in->dtype)));
        for (int64_t e = 0; e < in->elems; e++) {
            fill_element(in->dtype, data, e, &seed);
            int64_t in_range =
                in->ranged ? in->lo + (int64_t)(draw(&seed) % (uint64_t)(in->hi - in->lo)) : 0;
            if (in->ranged && in->dtype == I32)
                ((int32_t *)data)[e] = (int32_t)in_range;
            else if (in->ranged && in->dtype == I64)
                ((int64_t *)data)[e] = in_range;
        }
        s->input[i] = data;
    }
}

/* Inputs and constants: number of the buffer, bytes, content; -1 after the last. */
static void write_outside(const Steps *s, FILE *f)
{
    for (int i = 0; i < s->p->buffer.n; i++) {
        const Buffer *b = &s->p->buffer.at[i];
        const void *data = b->role == ROLE_INPUT ? s->input[b->input] : b->literal;
        if (b->offset >= 0 || data == NULL)
            continue;
        put64(f, i);
        put64(f, (int64_t)bytes_of(b));
        fwrite(data, 1, bytes_of(b), f);
    }
    put64(f, -1);
}

static bool is_compared(const Steps *s, const Entry *e, int i)
{
    const Buffer *b = &s->p->buffer.at[i];
    if (b->offset < 0)
        return false;
    if (b->offset + (int64_t)bytes_of(b) <= s->p->pinned_bytes && b->role != ROLE_STAGING)
        return true;
    for (int r = 0; r < e->n_results; r++)
        if (e->result[r].wanted && e->result[r].buffer == i)
            return true;
    return false;
}

/* A call: the entry, the valid rows and their place; then each buffer that lasts, or is a result:
 * offset, bytes of an element, of all, content; -1 after the last. */
static void write_call(const Steps *s, Judge *j, const char *entry, FILE *f)
{
    const Entry *e = program_entry(s->p, entry);
    if (e == NULL)
        return;
    if (judge_run(j, entry, s->input, 0) != RUN_OK) {
        fprintf(stderr, "the interpreter refuses to run %s\n", entry);
        exit(1);
    }
    int32_t rows = s->p->rows;
    put64(f, e - s->p->entry.at);
    put64(f, rows >= 0 ? s->p->buffer.at[rows].offset : -1);
    put64(f, rows >= 0 ? *(int64_t *)judge_data(j, rows) : 0);
    for (int i = 0; i < s->p->buffer.n; i++) {
        const Buffer *b = &s->p->buffer.at[i];
        if (!is_compared(s, e, i))
            continue;
        put64(f, b->offset);
        put64(f, b->dtype);
        put64(f, dtype_bytes(b->dtype));
        put64(f, (int64_t)bytes_of(b));
        fwrite(judge_data(j, i), 1, bytes_of(b), f);
    }
    put64(f, -1);
}

static void write_steps(Steps *s, bool once)
{
    FILE *f = create(s->to, "steps.bin");
    put64(f, s->p->arena_bytes);
    put64(f, s->p->pinned_bytes);
    write_outside(s, f);
    Judge *j = judge_open(s->p, K_EXACT, &s->arena);
    write_call(s, j, "init", f);
    bool trains = program_entry(s->p, "step") != NULL;
    for (int i = 0; i < (once ? 1 : 2); i++)
        write_call(s, j, trains ? "step" : "grad", f);
    write_call(s, j, "eval", f);
    put64(f, -1);
    fclose(f);
}

int main(int argc, char **argv)
{
    Steps s = {.to = argc > 2 ? argv[2] : NULL};
    if (argc < 3)
        return 2;
    ctx_init(&s.cx);
    Wanted w = read_options(&s, argv + 3, argc - 3);
    if (!compile_model(&s, argv[1], &w))
        return 1;
    if (s.p->store_bytes > 0) {
        fprintf(stderr, "%s offloads values, which nothing here would copy\n", argv[1]);
        return 1;
    }
    write_text(&s);
    if (!w.text) {
        plan_launches(&s);
        fill_inputs(&s);
        write_entries(&s);
        write_steps(&s, w.once);
    }
    printf("%d kernels\n", s.p->kernel.n);
    return 0;
}
