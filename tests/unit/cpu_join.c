/* Objects from parts: however they are compiled the bytes are the same, and a part that is none is
 * named. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/wide.h"
#include "target/cpu/join.h"
#include "target/cpu/units.h"
#include "target/elf.h"

/* ---- parts that are made by hand --------------------------------------------------------- */

typedef struct Maker {
    Ctx cx;
    TargetOptions o;
    const Machine *mach;
    LLVMTargetMachineRef tm;
} Maker;

static void set_up(Maker *m, const char *triple)
{
    memset(m, 0, sizeof *m);
    ctx_init(&m->cx);
    m->o = (TargetOptions){.triple = triple, .cpu = triple == NULL ? "native" : "baseline"};
    object_start();
    m->mach = machine_find(&m->cx, &m->o, &m->cx.perm);
    Refusal r = {0};
    ck_assert(m->mach != NULL);
    m->tm = object_machine(m->mach, false, &r);
    ck_assert(m->tm != NULL);
}

static void tear_down(Maker *m)
{
    LLVMDisposeTargetMachine(m->tm);
    ctx_free(&m->cx);
}

static JoinPart finish(Maker *m, Ir *ir, const char *defines)
{
    Refusal r = {0};
    lines_frames(ir);
    ck_assert(object_prepare(ir->m, m->mach, m->tm, &r));
    LLVMMemoryBufferRef code = object_code(ir->m, m->tm, LLVMObjectFile, &r);
    ck_assert(code != NULL);
    size_t n = LLVMGetBufferSize(code);
    unsigned char *bytes = arena_alloc(&m->cx.perm, n);
    memcpy(bytes, LLVMGetBufferStart(code), n);
    LLVMDisposeMemoryBuffer(code);
    ir_close(ir);
    return (JoinPart){.bytes = bytes, .n = n, .defines = defines};
}

/* int NAME(void) { return CALLEE() + add + table[1]; }   and the same with no callee */
static JoinPart make(Maker *m, const char *name, const char *callee, int add, bool exported)
{
    Ir ir;
    ir_open(&ir, UNIT_SOURCE, m->mach, &m->cx.perm);
    Lv fn = ir_function(&ir, name, ir.i32, NULL, 0);
    ir_in_object(fn);
    if (exported)
        LLVMSetVisibility(fn, LLVMDefaultVisibility);
    Lv x = ir_int32(&ir, add);
    if (callee != NULL) {
        Lv to = LLVMAddFunction(ir.m, callee, ir_type_of(&ir, ir.i32, NULL, 0));
        ir_in_object(to);
        x = ir_add(&ir, x, ir_call(&ir, to, NULL, 0));
    }
    Lv text = ir_string(&ir, "a constant, whose place the code must find");
    Lv at = LLVMBuildZExt(ir.b, x, ir.i64, "");
    at = LLVMBuildURem(ir.b, at, ir_int(&ir, 8), "");
    Lv byte = ir_load(&ir, ir.i8, ir_at_byte(&ir, text, at), 1);
    LLVMBuildRet(ir.b, ir_add(&ir, x, LLVMBuildZExt(ir.b, byte, ir.i32, "")));
    return finish(m, &ir, name);
}

static int told(int x)
{
    return x + "a constant, whose place the code must find"[x % 8];
}

START_TEST(parts_call_one_another)
{
    static const JoinLines lines = {.path = "a/b.model", .producer = "test"};
    Maker m;
    set_up(&m, NULL);
    JoinPart part[3] = {make(&m, "outer", "middle", 1000, true),
                        make(&m, "made", "inner", 20, false), make(&m, "inner", NULL, 3, false)};
    part[1].as = "middle"; /* no name that the part itself knows */
    part[1].path = "a/b.model";
    part[1].line = 7;
    part[2].path = "elsewhere/c.model";
    part[2].line = 300;
    for (int i = 0; i < 2; i++) {
        ObjectFile o = {0};
        const char *wrong =
            join_parts(part, 3, i == 0 ? NULL : &lines, &m.cx.perm, &o.bytes, &o.n_bytes);
        ck_assert_msg(wrong == NULL, "%s", wrong);
        Loaded *l = cpu_load(&m.cx, &o, NULL);
        ck_assert(l != NULL);
        int (*outer)(void);
        void *at = loaded_symbol(l, "outer");
        ck_assert(at != NULL && loaded_symbol(l, "middle") == NULL);
        memcpy(&outer, &at, sizeof at);
        ck_assert_int_eq(outer(), told(1000 + told(20 + told(3))));
        cpu_unload(l);
    }
    tear_down(&m);
}
END_TEST

static void refused(Maker *m, const JoinPart *part, int n, const char *why)
{
    const unsigned char *bytes;
    size_t n_bytes;
    const char *wrong = join_parts(part, n, NULL, &m->cx.perm, &bytes, &n_bytes);
    ck_assert_msg(wrong != NULL && strstr(wrong, why) != NULL, "%s, not %s", wrong, why);
}

START_TEST(what_does_not_fit_is_named)
{
    Maker m, arm;
    set_up(&m, "x86_64-linux-gnu");
    set_up(&arm, "aarch64-linux-gnu");
    JoinPart f = make(&m, "f", NULL, 1, true), g = make(&m, "g", "h", 1, false);
    JoinPart foreign = make(&arm, "k", NULL, 1, false);
    refused(&m, (JoinPart[]){f, f}, 2, "part 1, f: it defines what another part defines");
    refused(&m, (JoinPart[]){f, g}, 2, "no part defines h");
    refused(&m, (JoinPart[]){f, foreign}, 2, "part 1, k: it is for another machine");
    refused(&m, (JoinPart[]){f, {.bytes = f.bytes, .n = 63, .defines = "x"}}, 2, "it is cut short");
    tear_down(&arm);
    tear_down(&m);
}
END_TEST

/* Whatever it holds: the cache's digest stands before this, and here nothing does. */
START_TEST(damaged_parts_are_survived)
{
    static const JoinLines lines = {.path = "b.model", .producer = "test"};
    Maker m;
    set_up(&m, _i == 0 ? "x86_64-linux-gnu" : "aarch64-linux-gnu");
    JoinPart part[2] = {make(&m, "f", NULL, 1, true), make(&m, "g", "f", 1, true)};
    part[1].path = "b.model";
    part[1].line = 1;
    JoinPart whole = part[1];
    Arena a = {0};
    int refusals = 0;
    const unsigned char *bytes;
    size_t n;
    for (size_t bit = 0; bit < 8 * whole.n; bit++) {
        unsigned char *bad = arena_alloc(&a, whole.n);
        memcpy(bad, whole.bytes, whole.n);
        bad[bit / 8] ^= (unsigned char)(1 << bit % 8);
        part[1].bytes = bad;
        refusals += join_parts(part, 2, &lines, &a, &bytes, &n) != NULL;
        arena_free(&a);
    }
    ck_assert_int_gt(refusals, 500);
    for (part[1].n = 0; part[1].n < whole.n; part[1].n++) {
        unsigned char *cut = arena_alloc(&a, part[1].n);
        memcpy(cut, whole.bytes, part[1].n);
        part[1].bytes = cut;
        ck_assert_msg(join_parts(part, 2, &lines, &a, &bytes, &n) != NULL, "%zu bytes of %zu",
                      part[1].n, whole.n);
        arena_free(&a);
    }
    tear_down(&m);
}
END_TEST

/* ---- programs ------------------------------------------------------------------------------ */

static ObjectFile emit(Ctx *cx, const TargetOptions *o)
{
    ObjectFile object;
    const Caps *caps = target_cpu.caps(cx, o, &cx->perm);
    ck_assert(target_emit(cx, wide_program(&cx->perm, caps, 8).p, o, &object));
    return object;
}

static void same(const ObjectFile *x, const ObjectFile *y)
{
    ck_assert_uint_eq(x->n_bytes, y->n_bytes);
    ck_assert(memcmp(x->bytes, y->bytes, x->n_bytes) == 0);
    ck_assert_int_eq(x->n_parts, y->n_parts);
}

START_TEST(threads_and_caches_give_the_same_bytes)
{
    static const char *const triple[] = {NULL, "aarch64-linux-gnu"};
    char folder[] = "/tmp/gradc-join-XXXXXX", command[100];
    Ctx cx;
    ctx_init(&cx);
    ck_assert(mkdtemp(folder) != NULL);
    TargetOptions o = {.threads_max = 8, .triple = triple[_i]};
    ObjectFile one = emit(&cx, &o);
    ck_assert_int_gt(one.n_parts, one.n_kernels);
    for (o.jobs = 2; o.jobs < 100; o.jobs = o.jobs * 3 + 1) {
        ObjectFile more = emit(&cx, &o);
        same(&one, &more);
    }
    o.cache = folder;
    for (int round = 0; round < 3; round++) {
        ObjectFile again = emit(&cx, &o);
        same(&one, &again);
        ck_assert_int_eq(again.n_cached, round == 0 ? 0 : again.n_parts);
    }
    o.cpu = _i == 0 ? "baseline" : "apple-m1"; /* other code: it is not mixed up */
    ck_assert_int_lt(emit(&cx, &o).n_cached, one.n_parts);
    ctx_free(&cx);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

static ElfSection section_of(const ObjectFile *o, uint64_t i)
{
    ElfHeader head;
    ElfSection s;
    memcpy(&head, o->bytes, sizeof head);
    memcpy(&s, o->bytes + head.shoff + i * sizeof s, sizeof s);
    return s;
}

/* The labels of local symbols, which is what a name that begins with .L is. */
static int labels(const ObjectFile *o, const char **name, int most)
{
    ElfHeader head;
    memcpy(&head, o->bytes, sizeof head);
    ElfSection table = {0};
    for (uint64_t i = 0; i < head.shnum && table.type != ELF_SYMTAB; i++)
        table = section_of(o, i);
    ck_assert_int_eq(table.type, ELF_SYMTAB);
    const char *names = (const char *)o->bytes + section_of(o, table.link).offset;
    int n = 0;
    for (uint64_t at = 0; at < table.size; at += sizeof(ElfSymbol)) {
        ElfSymbol s;
        memcpy(&s, o->bytes + table.offset + at, sizeof s);
        if (strncmp(names + s.name, ".L", 2) == 0) {
            ck_assert_int_eq(s.info >> 4, ELF_LOCAL);
            ck_assert_int_lt(n, most);
            name[n++] = names + s.name;
        }
    }
    return n;
}

static int by_name(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Each part has names of its own for its constants, and LLVM 16 links by names. */
START_TEST(labels_are_told_apart)
{
    static const char *name[4096];
    Ctx cx;
    ctx_init(&cx);
    TargetOptions o = {.threads_max = 8, .triple = "x86_64-linux-gnu", .cpu = "baseline"};
    ObjectFile object = emit(&cx, &o);
    int n = labels(&object, name, sizeof name / sizeof *name);
    ck_assert_int_gt(n, 20);
    qsort(name, (size_t)n, sizeof *name, by_name);
    for (int i = 1; i < n; i++)
        ck_assert_str_ne(name[i - 1], name[i]);
    ctx_free(&cx);
}
END_TEST

Suite *suite_cpu_join(void);
Suite *suite_cpu_join(void)
{
    Suite *s = suite_create("cpu_join");
    TCase *t = tcase_create("parts");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, parts_call_one_another);
    tcase_add_test(t, what_does_not_fit_is_named);
    tcase_add_loop_test(t, damaged_parts_are_survived, 0, 2);
    tcase_add_loop_test(t, threads_and_caches_give_the_same_bytes, 0, 2);
    tcase_add_test(t, labels_are_told_apart);
    suite_add_tcase(s, t);
    return s;
}
