/* Schedules that keep what crosses between segments of the forward pass, and run a segment again
 * when the reverse pass comes to it (Chen et al., Training Deep Nets with Sublinear Memory Cost,
 * 2016): where little memory is left, good ones to begin with. */
#ifndef GRADC_PLAN_SEGMENTS_H
#define GRADC_PLAN_SEGMENTS_H

#include "sequence.h"

enum { MOST_SEGMENTED = 96 };

typedef struct Segmented {
    int32_t n;
    Sequence *at[MOST_SEGMENTED]; /* none is dearer than another that takes as much; not placed */
} Segmented;

/* From 2 segments up to one for every few nodes, between places at which little crosses; and with
 * segments of segments, of which the outer ones keep what crosses, and the inner ones run a second
 * time, each when the reverse pass comes to it. The forward pass ends where most is live in
 * `base`. */
Segmented segmented(const Problem *p, const Sequence *base, Arena *out);

#endif
