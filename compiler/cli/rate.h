/* The learning rate of a step, for the lines of `gradc train`. */
#ifndef GRADC_CLI_RATE_H
#define GRADC_CLI_RATE_H

#include "cli.h"

typedef struct Rate Rate;

/* requires: an open session of a model that trains. Lives in s->arena. */
Rate *rate_open(Cli *c, Session *s);
/* What the next step takes for it, or NaN if the optimizer has none. */
double rate_next(Rate *r);
void rate_close(Rate *r);

#endif
