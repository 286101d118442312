/* Kernels of another machine: the object is linked with a small driver, run by an
 * emulator, and its buffers are compared with the judge's. */
#ifndef GRADC_TESTS_CPU_FOREIGN_H
#define GRADC_TESTS_CPU_FOREIGN_H

#include "cpu/check.h"

typedef struct Foreign {
    const char *triple, *cpu;
    const char *compiler; /* "aarch64-linux-gnu-gcc -static" */
    const char *run;      /* "qemu-aarch64-static", or "" */
} Foreign;

/* The driver reads buffers one after the other, runs the kernel in two pieces, and
 * writes them back. */
static inline void write_driver(FILE *f, Kernel **k, const KernelFn *fn, int n)
{
    fprintf(f, "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n");
    for (int i = 0; i < n; i++)
        fprintf(f, "void k%d(void **, void *, int64_t, int64_t);\n", i);
    fprintf(f, "static void *take(FILE *in, size_t n)\n{\n"
               "    void *p = aligned_alloc(64, (n + 127) / 64 * 64);\n"
               "    if (fread(p, 1, n, in) != n)\n        exit(2);\n    return p;\n}\n"
               "int main(int argc, char **argv)\n{\n    FILE *in = fopen(argv[1], \"rb\");\n"
               "    FILE *out = fopen(argv[2], \"wb\");\n    void *b[64];\n    (void)argc;\n");
    for (int i = 0; i < n; i++) {
        int at = 0;
        for (int b = 0; b < k[i]->buf.n; b++)
            if (k[i]->buf.at[b].mode != K_LOCAL)
                fprintf(f, "    b[%d] = take(in, %lld);\n", at++,
                        (long long)k[i]->buf.at[b].elems * dtype_bytes(k[i]->buf.at[b].dtype));
        long long units = fn[i].n_units;
        fprintf(f, "    {\n        void *s = aligned_alloc(64, %lld);\n",
                (long long)(fn[i].scratch / 64 * 64 + 64));
        fprintf(f, "        k%d(b, s, %lld, %lld);\n        k%d(b, s, 0, %lld);\n    }\n", i,
                units / 2, units, i, units / 2);
        at = 0;
        for (int b = 0; b < k[i]->buf.n; b++)
            if (k[i]->buf.at[b].mode != K_LOCAL)
                fprintf(f, "    fwrite(b[%d], 1, %lld, out);\n", at++,
                        (long long)k[i]->buf.at[b].elems * dtype_bytes(k[i]->buf.at[b].dtype));
    }
    fprintf(f, "    return fclose(out) != 0;\n}\n");
}

static inline FILE *open_in(const char *dir, const char *name, const char *mode)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, mode);
    ck_assert_msg(f != NULL, "%s", path);
    return f;
}

static inline void compare_foreign(FILE *out, Kernel **k, int n, Arena *scratch)
{
    for (int i = 0; i < n; i++) {
        Memory judge = memory_new(k[i], 11 + (uint64_t)i), theirs = memory_new(k[i], 0);
        KMem mem[64];
        for (int b = 0; b < k[i]->buf.n; b++)
            mem[b] = (KMem){judge.at[b], NULL};
        kernel_run(k[i], K_EXACT, mem, scratch);
        for (int b = 0; b < k[i]->buf.n; b++) {
            if (k[i]->buf.at[b].mode == K_LOCAL)
                continue;
            ck_assert(fread(theirs.at[b], 1, theirs.bytes[b], out) == theirs.bytes[b]);
            int64_t at = first_difference(k[i], b, &judge, &theirs);
            ck_assert_msg(at < 0, "kernel %d (%s): buffer %d differs at %lld", i, k[i]->name, b,
                          (long long)at);
        }
        memory_free(&judge);
        memory_free(&theirs);
    }
}

static inline void check_foreign(const Foreign *m, Kernel **k, int n)
{
    Ctx cx;
    ctx_init(&cx);
    TargetOptions o = {.cpu = m->cpu, .triple = m->triple};
    KernelFn *fn = NEW_ARRAY(&cx.perm, KernelFn, n);
    ObjectFile object = {0};
    ck_assert(cpu_emit_kernels(&cx, &o, k, n, &cx.perm, fn, &object));
    char dir[] = "/tmp/gradc-test-XXXXXX", command[1000];
    ck_assert(mkdtemp(dir) != NULL);
    FILE *f = open_in(dir, "k.o", "wb");
    ck_assert(fwrite(object.bytes, 1, object.n_bytes, f) == object.n_bytes);
    fclose(f);
    f = open_in(dir, "driver.c", "w");
    write_driver(f, k, fn, n);
    fclose(f);
    f = open_in(dir, "in", "wb");
    for (int i = 0; i < n; i++) {
        Memory mem = memory_new(k[i], 11 + (uint64_t)i);
        for (int b = 0; b < k[i]->buf.n; b++)
            if (k[i]->buf.at[b].mode != K_LOCAL)
                fwrite(mem.at[b], 1, mem.bytes[b], f);
        memory_free(&mem);
    }
    fclose(f);
    snprintf(command, sizeof command,
             "cd %s && %s -O0 -o driver driver.c k.o && %s ./driver in out", dir, m->compiler,
             m->run);
    ck_assert_msg(system(command) == 0, "%s", command);
    f = open_in(dir, "out", "rb");
    compare_foreign(f, k, n, &cx.scratch);
    fclose(f);
    snprintf(command, sizeof command, "rm -r %s", dir);
    ck_assert(system(command) == 0);
    ctx_free(&cx);
}

static inline bool has_program(const char *name)
{
    char command[200];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
    return system(command) == 0;
}

#endif
