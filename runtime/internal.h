/* internal.h: what the files of the runtime share. Not installed.
 *
 * Functions that are shared but not public start with gr_, so that a program which links the static
 * library keeps its names. */
#ifndef GRADC_INTERNAL_H
#define GRADC_INTERNAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checked.h"
#include "gradc.h"

/* ---- error.c: statuses with words ---- */

/* Fill *e (if any) and return `status`. Control characters of the text become '?'. */
int gr_fail(gradc_error *e, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with a place: byte offset, or line and column. */
int gr_fail_at(gradc_error *e, int status, int64_t position, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* GRADC_IO for a failed system call: the text ends with the meaning of `error_number`. */
int gr_fail_system(gradc_error *e, int error_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* GRADC_MEMORY for an allocation of `bytes` for `what`. */
int gr_fail_memory(gradc_error *e, const char *what, int64_t bytes);

/* GRADC_BAD_ABI unless the caller's structure `what` has as many bytes as this library's. */
int gr_check_size(size_t have, size_t want, const char *what, gradc_error *e);

/* Clears *e and returns GRADC_OK. */
int gr_ok(gradc_error *e);

/* ---- memory.c: allocation by the table of hooks.h ---- */

void *gr_alloc(int64_t bytes);                  /* uninitialised; NULL for 0 or failure */
void *gr_new(int64_t count, int64_t bytes);     /* zeroed, product checked */
void *gr_aligned(int64_t bytes, int64_t align); /* uninitialised */
void *gr_resize(void *old, int64_t bytes);
void gr_free(void *memory);

/* Text that grows. A failed allocation sticks: later additions do nothing and `failed` says so. */
typedef struct Text {
    char *bytes; /* ended with NUL unless NULL */
    int64_t n, room;
    bool failed;
} Text;

void gr_text_add(Text *t, const char *bytes, int64_t n);
void gr_text_puts(Text *t, const char *s);
void gr_text_int(Text *t, int64_t value);
void gr_text_json(Text *t, const char *s); /* quoted and escaped */
void gr_text_free(Text *t);

/* ---- array.c ---- */

/* elems and bytes of a shape; false where a limit of gradc.h is passed. */
bool gr_shape_size(int32_t dtype, int32_t rank, const int64_t *shape, int64_t *elems,
                   int64_t *bytes);

/* "f32[2,3]" into `out`, for messages. Returns out. */
char *gr_shape_text(char *out, size_t size, int32_t dtype, int32_t rank, const int64_t *shape);
enum { GR_SHAPE_TEXT = 192 };

/* An array without zeroing its data. */
int gr_array_new(int32_t dtype, int32_t rank, const int64_t *shape, gradc_array *out,
                 gradc_error *e);

/* ---- convert.c: elements of one dtype to another ---- */

uint16_t gr_f16_from_float(float v);
uint16_t gr_f16_from_double(double v);
float gr_float_from_f16(uint16_t h);
uint16_t gr_bf16_from_float(float v);
uint16_t gr_bf16_from_double(double v);
float gr_float_from_bf16(uint16_t h);

/* Converts `n` elements; returns n, or the index of the first one that does not fit. */
int64_t gr_convert(int32_t from, const void *in, int32_t to, void *out, int64_t n);

/* Index of the first NaN or infinity among n elements, or -1. Integers have none. */
int64_t gr_nonfinite(int32_t dtype, const void *data, int64_t n);

static inline bool gr_is_float(int32_t dtype)
{
    return dtype >= GRADC_F32 && dtype <= GRADC_BF16;
}

/* ---- crc32c.c ---- */

/* CRC32C (Castagnoli) of more bytes after `crc` (0 at first).
 * source: RFC 3720, appendix B.4 for the test vectors. */
uint32_t gr_crc32c(uint32_t crc, const void *bytes, int64_t n);

/* ---- random.c ---- */

/* A well-mixed word from a seed and two counters. */
uint64_t gr_mix(uint64_t seed, uint64_t a, uint64_t b);

/* ---- gzip.c ---- */

/* Unpacks all members of a gzip file in memory into *out (gr_free it), at most `limit` bytes and
 * `ratio` times n. `name` for messages. */
int gr_gunzip(const char *name, const uint8_t *packed, int64_t n, int64_t limit, int64_t ratio,
              uint8_t **out, int64_t *out_n, gradc_error *e);

/* ---- number.c ---- */

/* The finite decimal number at p[0..n): its length, or 0 if there is none; -1: out of range of a
 * double. Independent of the locale, rounded to nearest. */
int64_t gr_parse_number(const char *p, int64_t n, double *out);

/* ---- csv.c / idx.c / npy.c: whether the first bytes look like that ---- */
bool gr_looks_npy(const uint8_t *bytes, int64_t n);
bool gr_looks_idx(const uint8_t *bytes, int64_t n);

#endif
