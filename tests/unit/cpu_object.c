/* The object of a small hand-made Program: entries, checks, header, symbols. */
#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cpu/wide.h"
#include "kernel/denormals.h"

typedef struct Fixture {
    Ctx cx;
    Arena arena;
    TargetOptions o;
    Tiny tiny;
    ObjectFile object;
    Loaded *loaded;
    const gradc_model *model;
    void *block, *g;
} Fixture;

/* Names that C would choke on, were they not escaped. */
static void rename_all(Program *p)
{
    p->doc = "ends */ here? ?\?/\\\n/* \x01 caf\xc3\xa9";
    p->input.at[0].name = "int";
    p->input.at[1].name = "caf\xc3\xa9 */ \"q\" ?\?/";
    p->train_doc = "*/ \\\n? ?\?/\n/* \\";
    p->result.at[0].doc = "\n*/\n\n/ \\";
    p->tensor.at[0].doc = "*\\\n/ ? ?\?=";
    p->tensor.at[0].name = "h.0.\"w\" ?\?/\\";
    p->tensor.at[1].name = "h_0_ w _ ___";
    p->tensor.at[2].name = "2nd\n#error";
    memset(p->hash, '"', 3);
}

static void emit_for(Fixture *f, const char *name, const TargetOptions *o)
{
    memset(f, 0, sizeof *f);
    ctx_init(&f->cx);
    f->cx.verify = true;
    f->o = *o;
    const Caps *caps = target_cpu.caps(&f->cx, &f->o, &f->arena);
    ck_assert(caps != NULL);
    f->tiny = tiny_program(&f->arena, name, caps);
    if (strcmp(name, "class") == 0)
        rename_all(f->tiny.p);
    bool ok = target_emit(&f->cx, f->tiny.p, &f->o, &f->object);
    if (!ok)
        diag_print(&f->cx, stderr);
    ck_assert(ok);
}

static void emit(Fixture *f, const char *name, const char *cpu, const char *triple)
{
    TargetOptions o = {.cpu = cpu, .triple = triple, .threads_max = 4, .want_asm = true};
    emit_for(f, name, &o);
}

static int init(Fixture *f, const gradc_options *o)
{
    size_t bytes = (size_t)f->model->arena_bytes;
    free(f->block);
    f->block = aligned_alloc(64, bytes);
    memset(f->block, 0x77, bytes);
    return f->model->init(f->block, bytes, o, &f->g);
}

static void set_up_for(Fixture *f, bool flush)
{
    TargetOptions o = {.cpu = "native", .threads_max = 4, .flush = flush};
    emit_for(f, "tiny", &o);
    f->loaded = cpu_load(&f->cx, &f->object, "tiny");
    ck_assert(f->loaded != NULL);
    f->model = loaded_model(f->loaded);
    ck_assert_int_eq(init(f, NULL), GRADC_OK);
}

static void set_up(Fixture *f)
{
    set_up_for(f, false);
}

static void tear_down(Fixture *f)
{
    cpu_unload(f->loaded);
    free(f->block);
    ctx_free(&f->cx);
    arena_free(&f->arena);
}

static float x[TINY_ROWS * TINY_TIMES * TINY_IN], t[TINY_ROWS * TINY_TIMES * TINY_OUT];
static int32_t k[TINY_ROWS * TINY_TIMES];

static gradc_block *inputs(int64_t rows)
{
    static struct {
        int64_t rows;
        void *data[3];
    } in;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)i * 0.1f - 1;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        t[i] = (float)(i % 5) * 0.3f;
    for (size_t i = 0; i < sizeof k / sizeof *k; i++)
        k[i] = (int32_t)(i % TINY_KINDS);
    in.rows = rows;
    in.data[0] = x;
    in.data[1] = t;
    in.data[2] = k;
    return (gradc_block *)&in;
}

typedef struct Outputs {
    int64_t reserved;
    float *loss, *h;
} Outputs;

static void same_state(Fixture *f, Judge *j)
{
    for (int i = 0; i < f->tiny.p->tensor.n; i++) {
        const Buffer *b = &f->tiny.p->buffer.at[f->tiny.p->tensor.at[i].buffer];
        if (b->role == ROLE_GRADIENT)
            continue;
        const void *ours = (const char *)f->g + b->offset;
        ck_assert_msg(
            memcmp(ours, judge_data(j, f->tiny.p->tensor.at[i].buffer), (size_t)b->bytes) == 0,
            "%s differs", f->tiny.p->tensor.at[i].name);
    }
}

START_TEST(steps_equal_the_judge)
{
    Fixture f;
    set_up(&f);
    Judge *j = judge_open(f.tiny.p, K_EXACT, &f.arena);
    ck_assert_int_eq(judge_run(j, "init", NULL, 0), GRADC_OK);
    same_state(&f, j);
    const int64_t rows[] = {0, 8, 5, 1, 0};
    for (int i = 0; i < 5; i++) {
        gradc_block *in = inputs(rows[i]);
        float loss = -1;
        Outputs out = {0, &loss, NULL};
        int s = f.model->step(f.g, in, (gradc_block *)&out);
        ck_assert_msg(s == GRADC_OK, "%s", f.model->error(f.g));
        const void *data[] = {x, t, k};
        ck_assert_int_eq(judge_run(j, "step", data, rows[i]), GRADC_OK);
        same_state(&f, j);
        ck_assert(memcmp(&loss, judge_data(j, f.tiny.loss), 4) == 0);
    }
    float h[TINY_ROWS * TINY_OUT];
    Outputs out = {0, NULL, h};
    ck_assert_int_eq(f.model->eval(f.g, inputs(3), (gradc_block *)&out), GRADC_OK);
    const void *data[] = {x, NULL, k};
    ck_assert_int_eq(judge_run(j, "eval", data, 3), GRADC_OK);
    ck_assert(memcmp(h, judge_data(j, f.tiny.h), sizeof h) == 0);
    tear_down(&f);
}
END_TEST

#define REFUSED(call, status, words)                                                               \
    do {                                                                                           \
        int s = (call);                                                                            \
        const char *e = f.model->error(f.g);                                                       \
        ck_assert_msg(s == (status) && strstr(e, words) != NULL, "%d: %s", s, e);                  \
    } while (0)

START_TEST(bad_arguments_change_nothing)
{
    Fixture f;
    set_up(&f);
    size_t n = (size_t)f.model->arena_bytes;
    char *before = malloc(n);
    memcpy(before, f.block, n);
    float loss;
    Outputs out = {0, &loss, NULL};
    gradc_block *o = (gradc_block *)&out;
    ck_assert_int_eq(f.model->step(NULL, inputs(0), o), GRADC_BAD_ARGUMENT);
    REFUSED(f.model->step(f.g, NULL, o), GRADC_BAD_ARGUMENT, "input x is NULL");
    REFUSED(f.model->step(f.g, inputs(9), o), GRADC_BAD_ARGUMENT, "rows is 9");
    REFUSED(f.model->step(f.g, inputs(-1), o), GRADC_BAD_ARGUMENT, "rows is -1");
    gradc_block *in = inputs(0);
    in->data[0] = (char *)x + 1;
    REFUSED(f.model->step(f.g, in, o), GRADC_BAD_ARGUMENT, "x is not aligned");
    in = inputs(0);
    k[5] = 3;
    REFUSED(f.model->step(f.g, in, o), GRADC_RANGE, "input class: element 5 is 3, outside of 0..3");
    in = inputs(4);
    k[5] = 3;
    ck_assert_int_eq(f.model->step(f.g, in, o), GRADC_OK);
    k[5] = -7;
    ck_assert_int_eq(init(&f, NULL), GRADC_OK);
    memcpy(before, f.block, n);
    in->rows = 0;
    REFUSED(f.model->step(f.g, in, o), GRADC_RANGE, "element 5 is -7");
    float h[8];
    out.h = h;
    REFUSED(f.model->step(f.g, inputs(0), o), GRADC_BAD_ARGUMENT, "output h is not computed");
    out.h = NULL;
    int32_t *busy = (int32_t *)((char *)f.g + 8);
    *busy = 1;
    ck_assert_int_eq(f.model->step(f.g, inputs(0), o), GRADC_BAD_STATE);
    *busy = 0;
    ck_assert(memcmp(before + HANDLE_BYTES, (char *)f.block + HANDLE_BYTES, n - HANDLE_BYTES) == 0);
    free(before);
    tear_down(&f);
}
END_TEST

static void serial_for(void *context, int64_t count, gradc_body body, void *arg)
{
    for (int64_t i = count; i-- > 0;)
        body(arg, i, (int32_t)(i % 4));
    (void)context;
}

START_TEST(init_checks_its_block)
{
    Fixture f;
    set_up(&f);
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .threads = 4};
    o.parallel_for = serial_for;
    ck_assert_int_eq(init(&f, &o), GRADC_OK);
    o.threads = 5;
    ck_assert_int_eq(init(&f, &o), GRADC_BAD_ARGUMENT);
    ck_assert(f.g == NULL && strstr(f.model->error(f.block), "threads is 5") != NULL);
    o.threads = 1;
    o.abi = 99;
    ck_assert_int_eq(init(&f, &o), GRADC_BAD_ABI);
    o.abi = GRADC_ABI;
    o.struct_size = 8;
    ck_assert_int_eq(init(&f, &o), GRADC_BAD_ABI);
    size_t n = (size_t)f.model->arena_bytes;
    ck_assert_int_eq(f.model->init(f.block, n - 1, NULL, &f.g), GRADC_TOO_SMALL);
    ck_assert(strstr(f.model->error(f.block), "needs") != NULL);
    ck_assert_int_eq(f.model->init((char *)f.block + 8, n, NULL, &f.g), GRADC_MISALIGNED);
    ck_assert_int_eq(f.model->init(NULL, n, NULL, &f.g), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(f.model->init(f.block, n, NULL, NULL), GRADC_BAD_ARGUMENT);
    ck_assert(f.model->error(NULL) != NULL);
    tear_down(&f);
}
END_TEST

START_TEST(tensors_move)
{
    Fixture f;
    set_up(&f);
    const gradc_model *m = f.model;
    ck_assert_int_eq(m->n_tensors, 6);
    ck_assert_str_eq(m->tensors[0].name, "w");
    ck_assert_int_eq(m->tensors[5].role, GRADC_GRADIENT);
    ck_assert_int_eq((int)m->tensors[5].offset, -1);
    float w[6] = {1, 2, 3, 4, 5, 6}, back[6];
    ck_assert_int_eq(m->write(f.g, 0, w, sizeof w), GRADC_OK);
    ck_assert_int_eq(m->read(f.g, 0, back, sizeof back), GRADC_OK);
    ck_assert(memcmp(w, back, sizeof w) == 0);
    ck_assert(memcmp((char *)f.g + m->tensors[0].offset, w, sizeof w) == 0);
    REFUSED(m->read(f.g, 6, back, sizeof back), GRADC_BAD_ARGUMENT, "no tensor 6");
    REFUSED(m->read(f.g, 0, back, 8), GRADC_BAD_ARGUMENT, "24 bytes, not 8");
    REFUSED(m->read(f.g, 0, NULL, 24), GRADC_BAD_ARGUMENT, "NULL");
    REFUSED(m->read(f.g, 5, back, 24), GRADC_BAD_STATE, "after tiny_grad");
    float loss;
    Outputs out = {0, &loss, NULL};
    ck_assert_int_eq(m->grad(f.g, inputs(0), (gradc_block *)&out), GRADC_OK);
    ck_assert_int_eq(m->read(f.g, 5, back, 24), GRADC_OK);
    int (*set)(void *, int32_t, double) = NULL;
    int32_t (*find)(const char *) = NULL;
    *(void **)&set = loaded_symbol(f.loaded, "tiny_set");
    *(void **)&find = loaded_symbol(f.loaded, "tiny_find");
    ck_assert(set != NULL && find != NULL);
    ck_assert_int_eq(find("lr"), 4);
    ck_assert_int_eq(find("nothing"), -1);
    ck_assert_int_eq(set(f.g, 4, 0.5), GRADC_OK);
    float lr;
    ck_assert_int_eq(m->read(f.g, 4, &lr, 4), GRADC_OK);
    ck_assert(lr == 0.5f);
    REFUSED(set(f.g, 0, 0.5), GRADC_BAD_ARGUMENT, "not a scalar");
    tear_down(&f);
}
END_TEST

START_TEST(nonfinite_changes_nothing)
{
    Fixture f;
    set_up(&f);
    float w[6], after[6], loss;
    int64_t skipped;
    Outputs out = {0, &loss, NULL};
    ck_assert_int_eq(f.model->read(f.g, 0, w, sizeof w), GRADC_OK);
    gradc_block *in = inputs(0);
    t[3] = 1e30f;
    REFUSED(f.model->step(f.g, in, (gradc_block *)&out), GRADC_NONFINITE, "the loss is infinite");
    ck_assert_int_eq(f.model->read(f.g, 0, after, sizeof after), GRADC_OK);
    ck_assert(memcmp(w, after, sizeof w) == 0);
    ck_assert_int_eq(f.model->read(f.g, 3, &skipped, 8), GRADC_OK);
    ck_assert_int_eq((int)skipped, 1);
    tear_down(&f);
}
END_TEST

/* Inputs that the output does not depend on may be missing, in eval only. */
START_TEST(missing_labels)
{
    Fixture f;
    set_up(&f);
    float h[TINY_ROWS * TINY_OUT], again[TINY_ROWS * TINY_OUT];
    Outputs out = {0, NULL, h};
    gradc_block *in = inputs(0);
    ck_assert_int_eq(f.model->eval(f.g, in, (gradc_block *)&out), GRADC_OK);
    memset(k, 0, sizeof k);
    ck_assert_int_eq(f.model->eval(f.g, in, (gradc_block *)&out), GRADC_OK);
    in->data[1] = NULL; /* eval does not read t at all */
    in->data[2] = NULL; /* staged as zeros */
    out.h = again;
    ck_assert_int_eq(f.model->eval(f.g, in, (gradc_block *)&out), GRADC_OK);
    ck_assert(memcmp(h, again, sizeof h) == 0);
    REFUSED(f.model->eval(f.g, in, NULL), GRADC_OK, "");
    tear_down(&f);
}
END_TEST

#if defined(__x86_64__)
/* The caller's floating-point mode neither matters nor changes. */
START_TEST(floating_point_mode) /* _i: of an object that flushes denormals, too */
{
    Fixture f;
    set_up_for(&f, _i == 1);
    float loss[2];
    for (int i = 0; i < 2; i++) {
        unsigned mode = i == 0 ? 0x1f80 : 0xffc0 | 0x8000, after = 0; /* toward zero, FTZ, DAZ */
        Outputs out = {0, &loss[i], NULL};
        ck_assert_int_eq(init(&f, NULL), GRADC_OK);
        gradc_block *in = inputs(0);
        for (size_t e = 0; e < sizeof t / sizeof *t; e++)
            t[e] = 1e-20f * (float)e;
        __asm__ volatile("ldmxcsr %0" : : "m"(mode));
        int s = f.model->step(f.g, in, (gradc_block *)&out);
        __asm__ volatile("stmxcsr %0" : "=m"(after));
        unsigned usual = 0x1f80;
        __asm__ volatile("ldmxcsr %0" : : "m"(usual));
        ck_assert_int_eq(s, GRADC_OK);
        ck_assert_msg((after & ~0x3fu) == (mode & ~0x3fu), "%x became %x", mode, after);
    }
    ck_assert(memcmp(&loss[0], &loss[1], 4) == 0);
    tear_down(&f);
}
END_TEST
#endif

/* Bodies in an order, and on lanes, that no pool would choose. */
static void strange_for(void *context, int64_t count, gradc_body body, void *arg)
{
    int lanes = *(int *)context;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = (i * 5 + 3) % count;
        if (count % 5 == 0)
            at = count - 1 - i;
        body(arg, at, (int32_t)(i % lanes));
    }
    *((int *)context + 1) += 1;
}

START_TEST(lanes_give_the_same_bits) /* _i: denormals are flushed */
{
    const bool flush = _i == 1;
    if (flush && !denormals_can_flush()) {
        puts("skipped: cpu_object: no x86-64 with fma to flush denormals on");
        return;
    }
    Ctx cx;
    ctx_init(&cx);
    TargetOptions o = {.threads_max = 8, .flush = flush};
    const Caps *caps = target_cpu.caps(&cx, &o, &cx.perm);
    Tiny w = wide_program(&cx.perm, caps, 8);
    w.p->flush = flush;
    ObjectFile object;
    ck_assert(target_emit(&cx, w.p, &o, &object));
    Loaded *l = cpu_load(&cx, &object, "wide");
    ck_assert(l != NULL);
    const gradc_model *m = loaded_model(l);
    float *in = NEW_ARRAY(&cx.perm, float, WIDE_ROWS *WIDE_IN);
    for (int i = 0; i < WIDE_ROWS * WIDE_IN; i++)
        in[i] = (float)(i % 101) * (flush ? 1e-37F : 0.01F);
    Judge *j = judge_open(w.p, K_EXACT, &cx.perm);
    const void *data[] = {in};
    ck_assert_int_eq(judge_run(j, "init", NULL, 0), GRADC_OK);
    ck_assert_int_eq(judge_run(j, "eval", data, 0), GRADC_OK);
    static const int lanes[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++) {
        int context[2] = {lanes[i], 0};
        gradc_options init = {.struct_size = sizeof init,
                              .abi = GRADC_ABI,
                              .threads = lanes[i],
                              .parallel_for = strange_for,
                              .context = context};
        void *block = aligned_alloc(64, (size_t)m->arena_bytes), *g;
        memset(block, 0xff, (size_t)m->arena_bytes);
        ck_assert_int_eq(m->init(block, (size_t)m->arena_bytes, &init, &g), GRADC_OK);
        struct {
            int64_t rows;
            void *data[1];
        } x = {0, {in}}, y = {0, {NEW_ARRAY(&cx.perm, float, WIDE_ROWS)}};
        ck_assert_int_eq(m->eval(g, (gradc_block *)&x, (gradc_block *)&y), GRADC_OK);
        ck_assert(memcmp(y.data[0], judge_data(j, w.h), WIDE_ROWS * sizeof(float)) == 0);
        ck_assert_int_eq(context[1] >= 2, lanes[i] > 1);
        free(block);
    }
    cpu_unload(l);
    ctx_free(&cx);
}
END_TEST

/* ---- the files ---------------------------------------------------------------------- */

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    ck_assert(file != NULL && fwrite(bytes, 1, n, file) == n);
    fclose(file);
}

static int shell(const char *format, const char *dir)
{
    char command[2000];
    snprintf(command, sizeof command, format, dir, dir, dir, dir, dir);
    return system(command);
}

static const char *temporary(void)
{
    static char dir[] = "/tmp/gradc-test-XXXXXX";
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert(mkdtemp(dir) != NULL);
    return dir;
}

static const char *in_folder(const char *dir, const char *name)
{
    static char path[2][300];
    static int n;
    n = !n;
    snprintf(path[n], sizeof path[n], "%s/%s", dir, name);
    return path[n];
}

START_TEST(header_compiles_everywhere)
{
    Fixture f;
    emit(&f, "class", "native", NULL); /* a keyword of C++ */
    const char *dir = temporary(), *h = f.object.header;
    write_file(in_folder(dir, "m.h"), h, strlen(h));
    const char *plain =
        "#include \"m.h\"\n#include \"m.h\"\nint f(void);\nint f(void)\n{\n"
        "    class__inputs in;\n    class__outputs o;\n    in.rows = 0;\n"
        "    o.loss = 0;\n    in.class_ = 0;\n    in.int_ = 0;\n"
        "    return (int)in.rows + (o.loss != 0) + CLASS__T_lr + (in.int_ != 0);\n}\n";
    write_file(in_folder(dir, "m.c"), plain, strlen(plain));
    const char *strict = "-Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only";
    const char *c[] = {"gcc -std=c99",
                       "gcc -std=c11",
                       "clang -std=c99",
                       "clang -std=c11",
                       "g++ -x c++ -std=c++11",
                       "g++ -x c++ -std=c++20",
                       "clang++ -x c++ -std=c++11",
                       "clang++ -x c++ -std=c++20"};
    for (int i = 0; i < 8; i++) {
        char command[600];
        snprintf(command, sizeof command, "command -v %.*s >/dev/null 2>&1",
                 (int)strcspn(c[i], " "), c[i]);
        if (system(command) != 0) {
            printf("skipped: header with %s: not installed\n", c[i]);
            continue;
        }
        snprintf(command, sizeof command, "%s %s %s/m.c", c[i], strict, dir);
        ck_assert_msg(system(command) == 0, "%s", command);
    }
    shell("rm -r %s", dir);
    tear_down(&f);
}
END_TEST

/* Nothing to link but memory functions, and those are not needed either. */
START_TEST(object_stands_alone)
{
    Fixture f;
    emit(&f, "tiny", "native", NULL);
    const char *dir = temporary();
    write_file(in_folder(dir, "m.o"), f.object.bytes, f.object.n_bytes);
    ck_assert_msg(shell("! nm -u %s/m.o | grep -v -E 'mem(cpy|set|move)'", dir) == 0, "undefined");
    ck_assert_msg(shell("nm %s/m.o | grep -q 't tiny.k[0-9]*_matmul_relu'", dir) == 0, "names");
    ck_assert(shell("readelf -SW %s/m.o | grep -q 'note.GNU-stack.* 0 *0 *1$'", dir) == 0);
    ck_assert(shell("! readelf -SW %s/m.o | grep -E ' \\.(data|bss) ' | grep -v ' 000000 00 '",
                    dir) == 0);
    ck_assert(shell("gcc -shared -o %s/m.so %s/m.o -Wl,-z,text,-z,defs -nostdlib", dir) == 0);
    void *so = dlopen(in_folder(dir, "m.so"), RTLD_NOW);
    ck_assert(so != NULL);
    const gradc_model *m = dlsym(so, "tiny_model");
    ck_assert(m != NULL && m->abi == GRADC_ABI);
    void *block = aligned_alloc(64, (size_t)m->arena_bytes), *g;
    ck_assert_int_eq(m->init(block, (size_t)m->arena_bytes, NULL, &g), GRADC_OK);
    free(block);
    dlclose(so);
    shell("rm -r %s", dir);
    tear_down(&f);
}
END_TEST

START_TEST(same_bytes_every_time)
{
    Fixture a, b;
    emit(&a, "tiny", "native", NULL);
    emit(&b, "tiny", "native", NULL);
    ck_assert_uint_eq(a.object.n_bytes, b.object.n_bytes);
    ck_assert(memcmp(a.object.bytes, b.object.bytes, a.object.n_bytes) == 0);
    ck_assert_str_eq(a.object.header, b.object.header);
    tear_down(&a);
    tear_down(&b);
}
END_TEST

START_TEST(other_machines)
{
    static const char *const triple[] = {"aarch64-linux-gnu",       "arm64-apple-macosx12.0",
                                         "x86_64-pc-windows-msvc",  "x86_64-apple-macosx12.0",
                                         "aarch64-pc-windows-msvc", "x86_64-linux-gnu"};
    static const char *const magic[] = {"\x7f"
                                        "ELF",
                                        "\xcf\xfa\xed\xfe",
                                        "\x64\x86",
                                        "\xcf\xfa\xed\xfe",
                                        "\x64\xaa",
                                        "\x7f"
                                        "ELF"};
    for (int i = 0; i < 6; i++) {
        Fixture f;
        emit(&f, "tiny", "baseline", triple[i]);
        ck_assert_msg(memcmp(f.object.bytes, magic[i], strlen(magic[i])) == 0, "%s", triple[i]);
        tear_down(&f);
    }
}
END_TEST

START_TEST(unknown_names_are_reported)
{
    static const char *const cpu[] = {"znver33", NULL, "apple-m1"};
    static const char *const triple[] = {NULL, "sparc-sun-solaris", "x86_64-linux-gnu"};
    for (int i = 0; i < 3; i++) {
        Ctx cx;
        ctx_init(&cx);
        TargetOptions o = {.cpu = cpu[i], .triple = triple[i]};
        ck_assert(target_cpu.caps(&cx, &o, &cx.perm) == NULL);
        ck_assert_int_eq(cx.n_errors, 1);
        ck_assert_int_eq((int)cx.diag.at[0]->code, E0701);
        ctx_free(&cx);
    }
}
END_TEST

Suite *suite_cpu_object(void)
{
    Suite *s = suite_create("cpu_object");
    TCase *c = tcase_create("object");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, steps_equal_the_judge);
    tcase_add_test(c, bad_arguments_change_nothing);
    tcase_add_test(c, init_checks_its_block);
    tcase_add_test(c, tensors_move);
    tcase_add_test(c, nonfinite_changes_nothing);
    tcase_add_test(c, missing_labels);
#if defined(__x86_64__)
    tcase_add_loop_test(c, floating_point_mode, 0, 2);
#endif
    tcase_add_loop_test(c, lanes_give_the_same_bits, 0, 2);
    tcase_add_test(c, header_compiles_everywhere);
    tcase_add_test(c, object_stands_alone);
    tcase_add_test(c, same_bytes_every_time);
    tcase_add_test(c, other_machines);
    tcase_add_test(c, unknown_names_are_reported);
    suite_add_tcase(s, c);
    return s;
}
