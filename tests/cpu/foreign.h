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

static inline void put_buffers(FILE *f, const Kernel *k, const KMem *data)
{
    for (int b = 0; b < k->buf.n; b++) {
        size_t n = (size_t)(k->buf.at[b].elems * dtype_bytes(k->buf.at[b].dtype));
        if (k->buf.at[b].mode != K_LOCAL)
            ck_assert(fwrite(data[b].data, 1, n, f) == n);
    }
}

/* What the driver wrote, against `judge`. */
static inline void compare_foreign(FILE *out, const Kernel *k, int i, const KMem *judge)
{
    Buffers mine = {.n = k->buf.n}, theirs = {.n = k->buf.n};
    for (int b = 0; b < k->buf.n; b++) {
        size_t n = (size_t)(k->buf.at[b].elems * dtype_bytes(k->buf.at[b].dtype));
        if (k->buf.at[b].mode == K_LOCAL)
            continue;
        mine.at[b] = judge[b].data;
        theirs.at[b] = malloc(n + 1);
        ck_assert(fread(theirs.at[b], 1, n, out) == n);
        int64_t at = first_difference(k, b, &mine, &theirs);
        ck_assert_msg(at < 0, "kernel %d (%s): buffer %d differs at %lld", i, k->name, b,
                      (long long)at);
        free(theirs.at[b]);
    }
}

/* data[i]: memory of kernel i's buffers at the start; it holds the judge's results in the
 * end. */
static inline void check_foreign(const Foreign *m, Kernel **k, int n, KMem (*data)[64])
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
    for (int i = 0; i < n; i++)
        put_buffers(f, k[i], data[i]);
    fclose(f);
    snprintf(command, sizeof command,
             "cd %s && %s -O0 -o driver driver.c k.o && %s ./driver in out", dir, m->compiler,
             m->run);
    ck_assert_msg(system(command) == 0, "%s", command);
    f = open_in(dir, "out", "rb");
    for (int i = 0; i < n; i++) {
        kernel_run(k[i], K_EXACT, data[i], &cx.scratch);
        compare_foreign(f, k[i], i, data[i]);
    }
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

static inline bool has_arm(const char *what)
{
    if (has_program("qemu-aarch64-static") && has_program("aarch64-linux-gnu-gcc"))
        return true;
    printf("skipped: %s: no qemu-aarch64-static or no aarch64-linux-gnu-gcc\n", what);
    return false;
}

static const Foreign arm_machine = {"aarch64-linux-gnu", "baseline",
                                    "aarch64-linux-gnu-gcc -static", "qemu-aarch64-static"};

#endif
