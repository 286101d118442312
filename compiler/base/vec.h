/* Growable arrays in an arena:  VEC(int) v = {0};  vec_push(&arena, &v, 3);
 * v.at[i], v.n. Elements move when the array grows: hold indices. */
#ifndef GRADC_BASE_VEC_H
#define GRADC_BASE_VEC_H

#include "arena.h"

#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *at;                                                                                     \
        int n, cap;                                                                                \
    }

#define vec_push(arena, v, x)                                                                      \
    do {                                                                                           \
        if ((v)->n == (v)->cap)                                                                    \
            (v)->at = vec_grow((arena), (v)->at, sizeof *(v)->at, &(v)->cap);                      \
        (v)->at[(v)->n++] = (x);                                                                   \
    } while (0)

void *vec_grow(Arena *a, void *at, size_t size, int *cap);

/* Text that grows: a NUL always follows the last character. */
typedef struct Text {
    Arena *arena;
    char *at;
    size_t n, cap;
} Text;

void text_init(Text *t, Arena *arena);
void text_add(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_put(Text *t, const char *s, size_t n);
void text_char(Text *t, char c);
/* Shortest decimal that reads back as the same double (float), whatever the
 * locale: "0.1", "1e-05", "inf", "nan". */
void text_double(Text *t, double x);
void text_float(Text *t, float x);
/* `s` as the inside of a JSON string literal; it is a C string literal too if
 * `s` holds no control characters (other than \b \f \n \r \t) and no "??".
 * Bytes that are no UTF-8 become U+FFFD. */
void text_json(Text *t, const char *s);
/* "key": "value", escaped; NULL: null. */
void text_pair(Text *t, const char *key, const char *value);
/* `s` as the inside of a C string literal, whatever it holds. */
void text_c(Text *t, const char *s);

/* The decimal or exponent form at s (n bytes, all of them), rounded once to the
 * nearest double (float), whatever the locale. Out of range: inf or 0. */
bool read_double(const char *s, size_t n, double *out);
bool read_float(const char *s, size_t n, float *out);
/* ... to the one of the two doubles around it that is odd, unless it is a double: what is rounded
 * to a narrower type next is rounded as the text itself would be. */
bool read_to_odd(const char *s, size_t n, double *out);

#endif
