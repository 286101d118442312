/* Runs the kernels of cases.c under the emulator, in three orders of threads and blocks, and
 * compares each buffer with what the exact interpreter has left in it, bit for bit.
 *
 *   run CASES        the last line is "passed=N failed=N skipped=0"
 *
 * KERNELS is the text of the kernels; CASE_LIST has a CASE for each. */
#include "emulator.hpp"
#include "read.hpp"
#include KERNELS

enum { MAX_BUFS = 64 };

struct Buffer {
    int32_t dtype, bytes_each;
    int64_t elems;
    unsigned char *start, *expected, *at;
};

struct Case {
    const char *kernel, *name;
    unsigned blocks, threads;
    void (*run)(unsigned blocks, unsigned threads, void **argument);
};

static const Case list[] = {
#define CASE(kernel, name, blocks, threads)                                                        \
    {#kernel, name, blocks, threads,                                                               \
     [](unsigned b, unsigned t, void **argument) { emulator::launch(kernel, b, t, argument); }},
#include CASE_LIST
};

static int read_case(FILE *f, Buffer *b)
{
    int32_t n;
    read_bytes(f, &n, sizeof n);
    for (int i = 0; i < n; i++) {
        read_bytes(f, &b[i].dtype, sizeof b[i].dtype);
        read_bytes(f, &b[i].bytes_each, sizeof b[i].bytes_each);
        read_bytes(f, &b[i].elems, sizeof b[i].elems);
        int64_t bytes = b[i].elems * b[i].bytes_each;
        b[i].start = room(bytes);
        b[i].expected = room(bytes);
        b[i].at = room(bytes);
        read_bytes(f, b[i].start, (size_t)bytes);
        read_bytes(f, b[i].expected, (size_t)bytes);
    }
    return n;
}

static bool passes(const Case *c, Buffer *b, int n, emulator::Order order)
{
    void *argument[MAX_BUFS];
    for (int i = 0; i < n; i++) {
        memcpy(b[i].at, b[i].start, (size_t)(b[i].elems * b[i].bytes_each));
        argument[i] = b[i].at;
    }
    emulator::order = order;
    c->run(c->blocks, c->threads, argument);
    for (int i = 0; i < n; i++) {
        int64_t at = first_difference(b[i].dtype, b[i].bytes_each, b[i].elems, b[i].at,
                                      b[i].expected);
        if (at < 0)
            continue;
        printf("FAILED: %s (%s), order %d: buffer %d differs at %lld of %lld\n", c->kernel,
               c->name, (int)order, i, (long long)at, (long long)b[i].elems);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : nullptr;
    int passed = 0, failed = 0;
    if (f == nullptr)
        return 2;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    for (const Case &c : list) {
        Buffer b[MAX_BUFS];
        int n = read_case(f, b);
        bool fine = true;
        for (int o = 0; o < emulator::N_ORDERS && fine; o++)
            fine = passes(&c, b, n, (emulator::Order)o);
        fine ? passed++ : failed++;
        for (int i = 0; i < n; i++) {
            free(b[i].start);
            free(b[i].expected);
            free(b[i].at);
        }
    }
    fclose(f);
    printf("passed=%d failed=%d skipped=0\n", passed, failed);
    return failed != 0;
}
