/* UTF-8, one code point at a time. */
#ifndef GRADC_BASE_UTF8_H
#define GRADC_BASE_UTF8_H

#include <stdint.h>

/* The code point at *p (before end), and *p moved past it. Bytes that are no
 * UTF-8 (too long forms, surrogates, cut short) give -1 and move by one. */
int32_t utf8_next(const char **p, const char *end);

/* Cells of a terminal that it takes: 0 (combining), 1 or 2 (wide). */
int utf8_width(int32_t code_point);

#endif
