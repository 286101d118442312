#include "utf8.h"

#include <stdbool.h>
#include <stddef.h>

/* Length of the sequence that byte b begins; 0 when it begins none. */
static int sequence_bytes(unsigned char b)
{
    if (b < 0x80)
        return 1;
    if (b >= 0xc2 && b < 0xe0)
        return 2;
    if (b >= 0xe0 && b < 0xf0)
        return 3;
    return b >= 0xf0 && b < 0xf5 ? 4 : 0;
}

static bool is_scalar(int32_t c, int bytes)
{
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return c >= least[bytes] && c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000);
}

int32_t utf8_next(const char **p, const char *end)
{
    const unsigned char *s = (const unsigned char *)*p;
    int n = sequence_bytes(s[0]);
    *p += 1;
    if (n <= 1)
        return n == 1 ? s[0] : -1;
    if (end - (const char *)s < n)
        return -1;
    int32_t c = s[0] & (0xff >> (n + 1));
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return -1;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (!is_scalar(c, n))
        return -1;
    *p += n - 1;
    return c;
}

/* The blocks of Unicode 15 that matter in a line of program text; it decides
 * where a caret stands, nothing else. */
int utf8_width(int32_t c)
{
    static const struct {
        int32_t from, to;
        int width;
    } range[] = {
        {0x0300, 0x036f, 0}, {0x200b, 0x200f, 0}, {0x202a, 0x202e, 0},   {0x2060, 0x2064, 0},
        {0x20d0, 0x20ff, 0}, {0xfe00, 0xfe0f, 0}, {0xfeff, 0xfeff, 0},   {0x1100, 0x115f, 2},
        {0x2e80, 0x303e, 2}, {0x3041, 0xa4cf, 2}, {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},
        {0xfe30, 0xfe6f, 2}, {0xff00, 0xff60, 2}, {0x1f300, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (c >= range[i].from && c <= range[i].to)
            return range[i].width;
    return 1;
}
