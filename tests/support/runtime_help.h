/* What the tests and fuzzers of the runtime share: a model without a compiler, files, faults. */
#ifndef RUNTIME_HELP_H
#define RUNTIME_HELP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gradc.h"

/* ---- files ---- */

/* A fresh empty directory, and its removal with all that is in it. */
char *help_directory(void);
void help_remove(char *directory);

/* "directory/name" in one of a few static buffers. */
const char *help_path(const char *directory, const char *name);

void help_write(const char *path, const void *bytes, int64_t n);
uint8_t *help_read(const char *path, int64_t *n); /* free() it; NULL: no such file */
void help_write_gz(const char *path, const void *bytes, int64_t n);

/* Entries of the directory other than . and .. */
int help_entries(const char *directory);

/* ---- a model ---- */

enum { FAKE_TENSORS = 9 };

typedef struct Fake {
    uint8_t *value[FAKE_TENSORS];
    bool broken, read_only; /* reads and writes fail; writes fail */
    int reads;
    int change_at; /* the read of this number changes what it reads, 0: none */
} Fake;

/* Parameters in f32, f16 and bf16, state, a counter, a scalar, moments, a gradient. */
extern const gradc_model fake_model;

/* The same but for hash, or shape of the first tensor, or names. */
extern const gradc_model fake_other_hash, fake_other_shapes, fake_other_names;

Fake *fake_new(int seed); /* values depend on the seed, all finite */
void fake_free(Fake *f);
bool fake_same(const Fake *a, const Fake *b, bool weights_only); /* gradients aside */
float *fake_floats(Fake *f, int tensor);

/* ---- faults ---- */

/* From now on the n-th file operation (from 1; 0: none) fails with `error`; all after it too if
 * `always` (but unlink, so that cleaning up can be seen). */
void fault_files(int nth, int error, bool always);
enum { FAULT_DEATH = -1 }; /* as `error`: the process ends there */

/* The same for allocations, of zlib and jansson too. */
void fault_memory(int nth, bool always);

/* The system's functions again. Reports whether the n-th one was reached. */
bool fault_end(void);

/* Blocks allocated and not freed, files open, since fault_files or fault_memory. */
int fault_live(void);
int fault_open(void);

/* From now on every path is a file in memory that holds these bytes (those of others: ENOENT), so
 * that a fuzzer does without a disk. Until fault_end. */
void fault_memory_file(const char *path, const void *bytes, size_t n);

#endif
