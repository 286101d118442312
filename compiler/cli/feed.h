/* Data for `gradc train`: arrays for each input, or windows of a text. */
#ifndef GRADC_CLI_FEED_H
#define GRADC_CLI_FEED_H

#include "values.h"

typedef struct Feed {
    const gradc_model *model;
    gradc_array array[64]; /* by input, cast to its dtype */
    gradc_array text;      /* tokens, for models of tokens and next tokens */
    bool windows;
    int64_t begin, end; /* the part of rows or tokens that is used */
    gradc_batches *batches;
    gradc_windows *cut;
} Feed;

/* Reads every value of the option (--data or --valid). EXIT_OK, or a status after a message. */
int feed_read(Cli *c, const gradc_model *m, OptionId option, Feed *f);
/* The last `fraction` of `from`'s rows becomes `tail`, which shares its memory. */
void feed_split(Feed *from, Feed *tail, double fraction);
/* Batches of `rows`, shuffled (training) or in order (validation). */
int feed_open(Feed *f, int64_t rows, uint64_t seed, bool shuffle);
/* Fills the inputs; false at the end of an epoch. */
bool feed_next(Feed *f, Values *in);
int64_t feed_batches(const Feed *f); /* of an epoch */
void feed_position(const Feed *f, gradc_position *at);
int feed_seek(Feed *f, const gradc_position *at);
void feed_close(Feed *f, bool owns_data);

#endif
