/* Runs the entries of a model under the emulator, in three orders of threads and blocks, and
 * compares parameters, state and results after each call with those of the exact interpreter.
 *
 *   run_steps STEPS [--once]     --once: in the last of the orders alone
 *
 * The last line is "passed=N failed=N skipped=0".
 * KERNELS is the text of the kernels, ENTRIES what the entries launch (steps.c writes both). */
#include "emulator.hpp"
#include "read.hpp"
#include KERNELS

static unsigned char always[] = {1};
#include ENTRIES

enum { MAX_OUTSIDE = 1 << 16 };
static unsigned char *outside[MAX_OUTSIDE];

static int64_t read64(FILE *f)
{
    int64_t x;
    read_bytes(f, &x, sizeof x);
    return x;
}

static void read_outside(FILE *f)
{
    for (int64_t i = read64(f); i >= 0; i = read64(f)) {
        int64_t bytes = read64(f);
        if (i >= MAX_OUTSIDE)
            exit(3);
        outside[i] = room(bytes);
        read_bytes(f, outside[i], (size_t)bytes);
    }
}

/* Of a call: everything that lasts or is a result. */
static bool compare(FILE *f, const unsigned char *block, const char *entry)
{
    bool same = true;
    for (int64_t offset = read64(f); offset >= 0; offset = read64(f)) {
        int64_t dtype = read64(f), each = read64(f), bytes = read64(f);
        unsigned char *expected = room(bytes);
        read_bytes(f, expected, (size_t)bytes);
        int64_t at = first_difference(dtype, each, bytes / each, block + offset, expected);
        if (at >= 0 && same)
            printf("FAILED: %s, order %d: element %lld of %lld at byte %lld differs\n", entry,
                   (int)emulator::order, (long long)at, (long long)(bytes / each),
                   (long long)offset);
        same = same && at < 0;
        free(expected);
    }
    return same;
}

/* All calls in one order; the number of those after which something differs. */
static int run_calls(FILE *f, int64_t block_bytes, int64_t pinned_bytes, int *calls)
{
    unsigned char *block = room(block_bytes);
    int failed = 0;
    memset(block, 0xff, (size_t)block_bytes);
    memset(block, 0, (size_t)pinned_bytes);
    for (int64_t e = read64(f); e >= 0; e = read64(f)) {
        int64_t rows_at = read64(f), rows = read64(f);
        if (rows_at >= 0)
            memcpy(block + rows_at, &rows, sizeof rows);
        entries[e].run(block, outside);
        failed += !compare(f, block, entries[e].name);
        (*calls)++;
    }
    free(block);
    return failed;
}

int main(int argc, char **argv)
{
    FILE *f = argc == 2 || argc == 3 ? fopen(argv[1], "rb") : nullptr;
    if (f == nullptr)
        return 2;
    int64_t block_bytes = read64(f), pinned_bytes = read64(f);
    read_outside(f);
    long calls_from = ftell(f);
    int failed = 0, calls = 0;
    for (int o = argc == 3 ? emulator::RANDOM : 0; o < emulator::N_ORDERS; o++) {
        emulator::order = (emulator::Order)o;
        fseek(f, calls_from, SEEK_SET);
        failed += run_calls(f, block_bytes, pinned_bytes, &calls);
    }
    fclose(f);
    printf("passed=%d failed=%d skipped=0\n", calls - failed, failed);
    return failed != 0;
}
