/* The table of diagnostics, and the nearest word. */
#include "diag.h"

#include <string.h>

static const struct {
    const char *id, *title;
} codes[N_CODES] = {
#define CODE(id, title) [id] = {#id, title},
#include "codes.def"
#undef CODE
};

static const char *const explanation[N_CODES] = {
#define CODE_TEXT(id, text) [id] = text,
#include "codes_text.def"
#undef CODE_TEXT
};

const char *code_id(Code code)
{
    return codes[code].id;
}

const char *code_title(Code code)
{
    return codes[code].title;
}

Code code_find(const char *id)
{
    int c = 0;
    while (c < N_CODES && strcmp(codes[c].id, id) != 0)
        c++;
    return (Code)c;
}

const char *code_explanation(Code code)
{
    return explanation[code];
}

enum { LONGEST_WORD = 64 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Edit distance where a swap of neighbours is one edit. Both words are at most
 * LONGEST_WORD long. source: Damerau (1964), in its restricted form. */
static int edit_distance(const char *a, int na, const char *b, int nb)
{
    int d[LONGEST_WORD + 1][LONGEST_WORD + 1];
    for (int i = 0; i <= na; i++)
        d[i][0] = i;
    for (int j = 0; j <= nb; j++)
        d[0][j] = j;
    for (int i = 1; i <= na; i++)
        for (int j = 1; j <= nb; j++) {
            int change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least(change, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[na][nb];
}

const char *nearest(const char *word, const char *const *candidate, int n)
{
    size_t length = strlen(word);
    if (length > LONGEST_WORD)
        return NULL;
    int limit = least(2, (int)length / 3);
    const char *best = NULL;
    for (int i = 0; i < n; i++) {
        size_t other = strlen(candidate[i]);
        if (other > length + 2 || length > other + 2 || other > LONGEST_WORD)
            continue;
        int d = edit_distance(word, (int)length, candidate[i], (int)other);
        if (d > 0 && d <= limit) {
            best = candidate[i];
            limit = d - 1;
        }
    }
    return best;
}
