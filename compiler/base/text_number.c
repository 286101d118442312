/* Numbers as text and back, in a way that no locale changes.
 *
 * printf and strtod use the locale's decimal separator, but agree with each
 * other: digits are taken out of what printf wrote, and what strtod reads is
 * written with the separator that printf uses. */
#include "vec.h"

#include <assert.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIGITS = 17 };

/* 0.d1 d2 ... times 10^(exponent + 1), without trailing zeros */
typedef struct Decimal {
    char digit[MAX_DIGITS + 1];
    int n, exponent;
} Decimal;

static void decimal_trim(Decimal *d)
{
    while (d->n > 1 && d->digit[d->n - 1] == '0')
        d->n--;
}

/* x >= 0 and finite, rounded to n digits. */
static Decimal decimal_round(double x, int n)
{
    char buffer[MAX_DIGITS + 32];
    snprintf(buffer, sizeof buffer, "%.*e", n - 1, x);
    Decimal d = {.n = n};
    const char *s = buffer;
    for (int i = 0; *s != 'e'; s++)
        if (*s >= '0' && *s <= '9')
            d.digit[i++] = *s;
    d.exponent = atoi(s + 1);
    return d;
}

/* One unit more in the last digit. */
static void decimal_increment(Decimal *d)
{
    int i = d->n - 1;
    while (i >= 0 && d->digit[i] == '9')
        d->digit[i--] = '0';
    if (i >= 0) {
        d->digit[i]++;
    } else {
        d->digit[0] = '1';
        d->exponent++;
    }
}

static bool reads_as(const Decimal *d, double x, bool is_float)
{
    char buffer[MAX_DIGITS + 32];
    /* Digits as an integer: no separator to get wrong. */
    snprintf(buffer, sizeof buffer, "%.*se%d", d->n, d->digit, d->exponent - d->n + 1);
    return is_float ? strtof(buffer, NULL) == (float)x : strtod(buffer, NULL) == x;
}

/* The nearest decimal of n digits, or the next one up: below a power of two the
 * gap is half as wide, and the shortest decimal need not be the nearest. */
static bool decimal_try(Decimal *d, double x, int n, bool is_float)
{
    *d = decimal_round(x, n);
    if (reads_as(d, x, is_float))
        return true;
    decimal_increment(d);
    return reads_as(d, x, is_float);
}

static Decimal shortest(double x, bool is_float)
{
    int enough = is_float ? 9 : 17;
    /* A normal number that has a short decimal shows it at this many digits. */
    bool normal = x >= (is_float ? (double)FLT_MIN : DBL_MIN);
    int n = !normal ? 1 : is_float ? FLT_DIG : DBL_DIG;
    Decimal d;
    while (!decimal_try(&d, x, n, is_float) && n < enough)
        n++;
    decimal_trim(&d);
    return d;
}

static void put_decimal(Text *t, const Decimal *d)
{
    int e = d->exponent;
    if (e < -4 || e >= 16) {
        text_char(t, d->digit[0]);
        if (d->n > 1)
            text_add(t, ".%.*s", d->n - 1, d->digit + 1);
        text_add(t, "e%c%02d", e < 0 ? '-' : '+', e < 0 ? -e : e);
        return;
    }
    if (e < 0) {
        text_put(t, "0.", 2);
        for (int i = -1; i > e; i--)
            text_char(t, '0');
        text_put(t, d->digit, (size_t)d->n);
        return;
    }
    for (int i = 0; i <= e || i < d->n; i++) {
        if (i == e + 1)
            text_char(t, '.');
        text_char(t, i < d->n ? d->digit[i] : '0');
    }
}

static void put_number(Text *t, double x, bool is_float)
{
    if (isnan(x)) {
        text_put(t, "nan", 3);
        return;
    }
    if (signbit(x))
        text_char(t, '-');
    x = fabs(x);
    if (isinf(x)) {
        text_put(t, "inf", 3);
    } else if (x == 0) {
        text_char(t, '0');
    } else {
        Decimal d = shortest(x, is_float);
        put_decimal(t, &d);
    }
}

void text_double(Text *t, double x)
{
    put_number(t, x, false);
}

void text_float(Text *t, float x)
{
    put_number(t, (double)x, true);
}

/* The text with the locale's separator in place of '.'; NULL when it holds
 * anything that is not part of a decimal number. */
static const char *localized(Arena *a, const char *s, size_t n)
{
    char half[8];
    snprintf(half, sizeof half, "%.1f", 0.5);
    Text t;
    text_init(&t, a);
    for (size_t i = 0; i < n; i++) {
        if (strchr("0123456789.eE+-", s[i]) == NULL || s[i] == '\0')
            return NULL;
        if (s[i] == '.')
            text_put(&t, half + 1, strlen(half) - 2);
        else
            text_char(&t, s[i]);
    }
    return n > 0 ? t.at : NULL;
}

bool read_double(const char *s, size_t n, double *out)
{
    Arena a = {0};
    const char *text = localized(&a, s, n);
    char *end = NULL;
    if (text != NULL)
        *out = strtod(text, &end);
    bool ok = text != NULL && *end == '\0';
    arena_free(&a);
    return ok;
}

bool read_to_odd(const char *s, size_t n, double *out)
{
    double below, above;
    uint64_t bits;
    int mode = fegetround();
    fesetround(FE_DOWNWARD);
    bool ok = read_double(s, n, &below);
    fesetround(FE_UPWARD);
    ok = ok && read_double(s, n, &above);
    fesetround(mode);
    if (!ok)
        return false;
    memcpy(&bits, &below, sizeof bits);
    *out = (bits & 1) != 0 ? below : above;
    return true;
}

bool read_float(const char *s, size_t n, float *out)
{
    Arena a = {0};
    const char *text = localized(&a, s, n);
    char *end = NULL;
    if (text != NULL)
        *out = strtof(text, &end);
    bool ok = text != NULL && *end == '\0';
    arena_free(&a);
    return ok;
}
