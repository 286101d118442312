/* Schedules that keep what crosses between segments of the forward pass, and run a segment again
 * when the reverse pass comes to it (Chen et al., Training Deep Nets with Sublinear Memory Cost,
 * 2016): where little memory is left, good ones to begin with. */
#ifndef GRADC_PLAN_SEGMENTS_H
#define GRADC_PLAN_SEGMENTS_H

#include "sequence.h"

enum { MOST_SEGMENTED = 160 };

typedef struct Segmented {
    int32_t n;
    Sequence *at[MOST_SEGMENTED]; /* no other takes as little and is as cheap; placed by who asks */
} Segmented;

/* Between places at which little crosses: segments of as many bytes each, from 2 up to one for
 * every few nodes; those with segments of segments, of which the outer ones keep what crosses, and
 * the inner ones run a second time, each when the reverse pass comes to it; and segments that fill
 * what room there is when it comes to them, the first ones most, for what is kept between later
 * ones has gone. The forward pass ends where most is live in `base`. */
Segmented segmented(const Problem *p, const Sequence *base, Arena *out);

/* The cheapest of those whose bytes without holes are within the budget, or NULL. */
Sequence *segmented_within(const Segmented *s, int64_t budget);

#endif
