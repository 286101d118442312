/* safetensors.h: what the reader and the writer share with weights and checkpoints.
 *
 * Files that gradc itself makes of a model ("sealed" files) carry checksums in their metadata:
 *
 *     gradc.header_crc32c   8 hex digits, first key of all; the CRC32C of everything before the
 *                           data, with these digits as "00000000"
 *     gradc.crc32c:NAME     8 hex digits: of the tensor's bytes
 *     gradc.kind            "weights" or "checkpoint"
 *     gradc.format          "1"
 *     gradc.model, gradc.hash, gradc.version
 *     gradc.step, gradc.seed, gradc.data.seed, gradc.data.epoch, gradc.data.row (checkpoints)
 *
 * Any file with a key that starts with "gradc." must be sealed, and is verified when it is read. */
#ifndef GRADC_SAFETENSORS_H
#define GRADC_SAFETENSORS_H

#include "file.h"

#define GR_RESERVED     "gradc."
#define GR_HEADER_CRC   "gradc.header_crc32c"
#define GR_TENSOR_CRC   "gradc.crc32c:"
#define GR_KIND         "gradc.kind"
#define GR_FORMAT       "gradc.format"
#define GR_SEALED_BEGIN "{\"__metadata__\":{\"" GR_HEADER_CRC "\":\""
enum { GR_CRC_DIGITS = 8, GR_FORMAT_VERSION = 1 };

struct gradc_tensors {
    const char *path; /* for messages, while reading */
    gradc_named *list;
    int64_t *begin; /* of each tensor in the data of the file */
    int64_t n;
    int64_t *by_name; /* indices into list, sorted */
    gradc_pair *pairs;
    int64_t n_pairs;
    int64_t *by_key; /* indices into pairs, sorted */
    char *strings;   /* names, keys, values */
    void *data;
    bool sealed;
};

/* The text before the data of a file to be written. */
typedef struct Layout {
    const gradc_named *list;
    int64_t n;
    const gradc_pair *pairs;
    int64_t n_pairs;
    int64_t *order; /* of the data */
    int64_t *bytes; /* by index into list */
    Text head;      /* 8 bytes of length, JSON, padding */
} Layout;

/* Checks everything and builds `head`. The caller calls gr_layout_free in any case. */
int gr_layout_make(Layout *l, gradc_error *e);
void gr_layout_free(Layout *l);

/* Puts the header's checksum into its place; head must begin as a sealed one. */
void gr_layout_seal(Layout *l);

/* CRC as 8 lower-case hex digits, with NUL. */
void gr_crc_text(char out[GR_CRC_DIGITS + 1], uint32_t crc);

/* head[0..n) with the digits of the header's checksum as zeros. */
uint32_t gr_header_crc(const char *head, int64_t n);

/* Parses the JSON of a header for `data_bytes` bytes of data into t, all but t->data. */
int gr_header_parse(gradc_tensors *t, const char *json, int64_t n, int64_t data_bytes,
                    gradc_error *e);

/* The value of a metadata key as an integer; false if it is missing or anything else. */
bool gr_value_int(const gradc_tensors *t, const char *key, int64_t *out);
bool gr_value_word(const gradc_tensors *t, const char *key, uint64_t *out);

/* Whether the file is sealed and of this kind. */
bool gr_is_kind(const gradc_tensors *t, const char *kind);

#endif
