/* Numbers from text and to text, whatever the locale. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIGITS = 800, MAX_EXPONENT = 99999 };

typedef struct Decimal {
    char digits[MAX_DIGITS + 16]; /* without leading zeros, room for an exponent behind */
    int n;
    int64_t exponent; /* value = digits * 10^exponent */
    bool negative;
} Decimal;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits with an optional point; bytes used, or 0. */
static int64_t take_digits(const char *p, int64_t n, Decimal *d)
{
    int64_t i = 0, seen = 0;
    bool point = false;
    for (; i < n && (is_digit(p[i]) || (p[i] == '.' && !point)); i++) {
        if (p[i] == '.') {
            point = true;
            continue;
        }
        seen++;
        if (d->n == 0 && p[i] == '0') {
            d->exponent -= point;
            continue;
        }
        if (d->n < MAX_DIGITS) { /* more than any double or midpoint of two has (767) */
            d->digits[d->n++] = p[i];
            d->exponent -= point;
        } else {
            if (p[i] != '0')
                d->digits[MAX_DIGITS - 1] = '1'; /* sticky: not exactly half way */
            d->exponent += !point;
        }
    }
    return seen > 0 ? i : 0;
}

/* An optional exponent at p; bytes used. */
static int64_t take_exponent(const char *p, int64_t n, Decimal *d)
{
    if (n < 2 || (p[0] != 'e' && p[0] != 'E'))
        return 0;
    int64_t i = 1, value = 0;
    bool negative = p[i] == '-';
    if (p[i] == '-' || p[i] == '+')
        i++;
    if (i >= n || !is_digit(p[i]))
        return 0;
    for (; i < n && is_digit(p[i]); i++)
        if (value < MAX_EXPONENT)
            value = value * 10 + (p[i] - '0');
    d->exponent += negative ? -value : value;
    return i;
}

/* Clinger's case: both operands are exact doubles, so one operation rounds once.
 * source: Clinger, "How to Read Floating Point Numbers Accurately", PLDI 1990. */
static bool small_case(const Decimal *d, double *out)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (d->n > 15 || d->exponent < -22 || d->exponent > 22)
        return false;
    int64_t whole = 0;
    for (int i = 0; i < d->n; i++)
        whole = whole * 10 + (d->digits[i] - '0');
    double v = (double)whole;
    *out = d->exponent < 0 ? v / powers[-d->exponent] : v * powers[d->exponent];
    return true;
}

/* strtod on "digits e exponent": no decimal point, so no locale. */
static bool large_case(Decimal *d, double *out)
{
    int64_t exponent = d->exponent;
    if (exponent < -MAX_EXPONENT)
        exponent = -MAX_EXPONENT;
    if (exponent > MAX_EXPONENT)
        exponent = MAX_EXPONENT;
    snprintf(d->digits + d->n, 16, "e%d", (int)exponent);
    *out = strtod(d->digits, NULL);
    return isfinite(*out);
}

int64_t gr_parse_number(const char *p, int64_t n, double *out)
{
    Decimal d = {.n = 0};
    int64_t i = 0;
    if (n > 0 && (p[0] == '-' || p[0] == '+')) {
        d.negative = p[0] == '-';
        i = 1;
    }
    int64_t used = take_digits(p + i, n - i, &d);
    if (used == 0)
        return 0;
    i += used;
    i += take_exponent(p + i, n - i, &d);
    double v = 0;
    if (d.n > 0 && !small_case(&d, &v) && !large_case(&d, &v))
        return -1;
    *out = d.negative ? -v : v;
    return i;
}

/* ---- to text ---- */

/* What stands between the digits of "1.5e3" is the locale's decimal point, of any length. */
static void put_point(char *s)
{
    char *p = s;
    while (*p == '-' || is_digit(*p))
        p++;
    char *q = p;
    while (*q != '\0' && *q != 'e' && !is_digit(*q))
        q++;
    if (q == p)
        return;
    *p = '.';
    memmove(p + 1, q, strlen(q) + 1);
}

static bool reads_back(const char *s, double value, bool narrow)
{
    double v;
    if (gr_parse_number(s, (int64_t)strlen(s), &v) <= 0)
        return false;
    return narrow ? (float)v == (float)value : v == value;
}

/* "1e+02" as "100", "1.5e-05" as "0.000015": without exponent where that is readable. */
static void without_exponent(char *s, size_t size, double value, int digits)
{
    const char *e = strchr(s, 'e');
    if (e == NULL)
        return;
    int exponent = atoi(e + 1);
    if (exponent < -5 || exponent > 15) /* up to here every whole double prints exactly */
        return;
    int decimals = digits - 1 - exponent;
    snprintf(s, size, "%.*f", decimals > 0 ? decimals : 0, value);
    put_point(s);
}

static void shortest(char *s, size_t size, double value, bool narrow)
{
    int most = narrow ? 9 : 17, k = 1;
    for (; k <= most; k++) {
        snprintf(s, size, "%.*g", k, value);
        put_point(s);
        if (reads_back(s, value, narrow))
            break;
    }
    without_exponent(s, size, value, k);
}

char *gradc_format(char *out, size_t size, double value, int digits)
{
    char s[64];
    if (size == 0)
        return out;
    if (isnan(value)) {
        snprintf(s, sizeof s, "nan");
    } else if (isinf(value)) {
        snprintf(s, sizeof s, value < 0 ? "-inf" : "inf");
    } else if (digits <= 0) {
        shortest(s, sizeof s, value, digits < 0);
    } else {
        snprintf(s, sizeof s, "%.*g", digits < 17 ? digits : 17, value);
        put_point(s);
    }
    snprintf(out, size, "%s", s);
    return out;
}
