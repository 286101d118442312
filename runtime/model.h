/* model.h: moving a model's tensors between its handle and sealed files (safetensors.h). */
#ifndef GRADC_MODEL_H
#define GRADC_MODEL_H

#include "safetensors.h"

/* Whether a tensor of the model belongs into the file. */
typedef bool (*Wanted)(const gradc_tensor *x);

/* GRADC_BAD_ARGUMENT or GRADC_BAD_ABI if table or handle cannot be used. */
int gr_model_check(const gradc_model *m, const void *g, gradc_error *e);

/* Tensors of the model that are wanted, as list[k] with model index index[k]; data are NULL. */
typedef struct Selection {
    const gradc_model *m;
    gradc_named *list;
    int32_t *index;
    int64_t n;
    int64_t most_bytes; /* of one tensor */
} Selection;

int gr_select(Selection *s, const gradc_model *m, Wanted wanted, gradc_error *e);
void gr_select_free(Selection *s);

typedef struct Sealing {
    const char *path, *kind;
    const gradc_pair *pairs; /* after kind, format, model, hash, version */
    int64_t n_pairs;
    uint32_t flags; /* GRADC_ALLOW_NONFINITE */
    bool keep_previous;
} Sealing;

/* Writes the selected tensors of g as a sealed file. */
int gr_seal(const Selection *s, const void *g, const Sealing *how, gradc_error *e);

/* Puts the tensors of a file into g: all or none; `flags` as of gradc_weights_load. Names all that
 * do not fit in one message. */
int gr_unseal(const Selection *s, void *g, const char *path, const gradc_tensors *t, uint32_t flags,
              gradc_error *e);

#endif
