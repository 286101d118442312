/* How many cases a test takes: a sanitizer takes its time. */
#ifndef GRADC_TESTS_FEW_H
#define GRADC_TESTS_FEW_H

#include <stdint.h>
#include <stdlib.h>

/* A part of them under GRADC_SHORT, and at least one. */
static inline uint64_t few_of(uint64_t normal, uint64_t part)
{
    return getenv("GRADC_SHORT") != NULL ? (normal + part - 1) / part : normal;
}

#endif
