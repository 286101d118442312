/* A smaller model that fails in the same way: statements go, or become constants, and
 * numbers shrink, for as long as the fault stays. */
#include "smith.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct Lines {
    Arena *arena;
    int n;
    const char *at[4000];
} Lines;

static void cut(Lines *l, const char *text)
{
    l->n = 0;
    while (*text != '\0' && l->n < 4000) {
        size_t k = strcspn(text, "\n");
        l->at[l->n++] = arena_strndup(l->arena, text, k);
        text += k + (text[k] == '\n');
    }
}

static const char *glue(const Lines *l)
{
    Text t;
    text_init(&t, l->arena);
    text_put(&t, "", 0);
    for (int i = 0; i < l->n; i++)
        if (l->at[i] != NULL)
            text_add(&t, "%s\n", l->at[i]);
    return t.at;
}

typedef struct Search {
    Check *check;
    uint64_t seed;
    Fault fault;
    Verdict *v;
    char text[500]; /* of a crash: what was said */
    int runs;
} Search;

static bool still_fails(Search *s, const char *text)
{
    memset(s->v, 0, sizeof *s->v);
    s->runs++;
    check_apart(s->check, text, s->seed, false, s->v);
    return s->v->fault == s->fault &&
           (s->fault != FAULT_CRASH || s->text[0] == '\0' || strcmp(s->text, s->v->text) == 0);
}

static bool opens(const char *line)
{
    size_t n = strlen(line);
    return n > 0 && line[n - 1] == '{';
}

/* Lines of the statement at i: up to its closing brace. */
static int extent(const Lines *l, int i)
{
    int depth = 0, k = i;
    do {
        const char *s = l->at[k] == NULL ? "" : l->at[k];
        depth += opens(s);
        depth -= s[strspn(s, " ")] == '}' && !opens(s);
        k++;
    } while (depth > 0 && k < l->n);
    return k - i;
}

static bool without(Search *s, Lines *l, int i)
{
    int n = extent(l, i);
    const char *keep[4000];
    memcpy(keep, l->at + i, sizeof *keep * (size_t)n);
    memset(l->at + i, 0, sizeof *keep * (size_t)n);
    if (still_fails(s, glue(l)))
        return true;
    memcpy(l->at + i, keep, sizeof *keep * (size_t)n);
    return false;
}

/* `    v7 = ...  # f32[2, 3]` as a constant of that type. */
static const char *as_constant(Arena *a, const char *line)
{
    const char *type = strstr(line, "  # "), *is = strstr(line, " = ");
    if (type == NULL || is == NULL || strstr(line, " = full(") != NULL || type[4] == 'b')
        return NULL;
    type += 4;
    size_t name = strcspn(type, "[");
    const char *shape = type[name] == '[' ? type + name : "[]";
    return arena_printf(a, "%.*s = full(%s, %s, %.*s)  # %s", (int)(is - line), line, shape,
                        type[0] == 'i' ? "1" : "0.4", (int)name, type, type);
}

static bool replaced(Search *s, Lines *l, int i, const char *by)
{
    const char *keep = l->at[i];
    if (by == NULL || strcmp(by, keep) == 0)
        return false;
    l->at[i] = by;
    if (still_fails(s, glue(l)))
        return true;
    l->at[i] = keep;
    return false;
}

/* `loss a + b + c` without one of its terms. */
static bool shorter_loss(Search *s, Lines *l, int i)
{
    bool any = false;
    for (int k = 0; k < 60; k++) {
        const char *line = l->at[i], *p = line;
        for (int j = 0; j < k && p != NULL; j++)
            p = strstr(p + 1, " + ");
        const char *next = p == NULL ? NULL : strstr(p + 1, " + ");
        if (p == NULL || (k == 0 && next == NULL))
            break;
        const char *rest = next == NULL ? "" : next;
        const char *by = k == 0 ? arena_printf(l->arena, "    loss %s", next + 3)
                                : arena_printf(l->arena, "%.*s%s", (int)(p - line), line, rest);
        if (replaced(s, l, i, by))
            any = true, k--;
    }
    return any;
}

/* Every number `from` of the model as `to`. */
static const char *renumbered(Arena *a, const char *text, long from, long to)
{
    Text t;
    text_init(&t, a);
    for (const char *p = text; *p != '\0';) {
        bool word = isalnum((unsigned char)*p) || *p == '_' || *p == '.';
        size_t n = 0;
        while (word && (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '.'))
            n++;
        char *end;
        long value = strtol(p, &end, 10);
        if (n > 0 && end == p + n && value == from && isdigit((unsigned char)*p))
            text_add(&t, "%ld", to);
        else
            text_put(&t, p, n > 0 ? n : 1);
        p += n > 0 ? n : 1;
    }
    return t.at;
}

static const char *smaller_numbers(Search *s, const char *text, Arena *a)
{
    static const long from[] = {33, 17, 8, 7, 6, 5, 4, 3, 2};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        for (long to = 1; to < from[i] && to < 4; to++) {
            const char *by = renumbered(a, text, from[i], to);
            if (strcmp(by, text) != 0 && still_fails(s, by)) {
                text = by;
                break;
            }
        }
    return text;
}

static bool pass(Search *s, Lines *l)
{
    bool any = false;
    for (int i = l->n - 1; i >= 0 && s->runs < 1500; i--) {
        const char *line = l->at[i];
        if (line == NULL || strncmp(line, "model ", 6) == 0)
            continue;
        if (strncmp(line, "    loss ", 9) == 0)
            any |= shorter_loss(s, l, i);
        else if (line[strspn(line, " ")] != '}')
            any |= without(s, l, i) || replaced(s, l, i, as_constant(l->arena, line));
    }
    return any;
}

const char *reduce(Check *check, const char *text, uint64_t seed, Fault fault, Arena *a)
{
    Search s = {.check = check, .seed = seed, .fault = fault};
    s.v = mmap(NULL, sizeof *s.v, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.v == MAP_FAILED || !still_fails(&s, text))
        return text;
    memcpy(s.text, s.v->text, sizeof s.text);
    Lines *l = NEW(a, Lines);
    l->arena = a;
    for (int round = 0; round < 4; round++) {
        cut(l, text);
        bool any = pass(&s, l);
        text = smaller_numbers(&s, glue(l), a);
        if (!any)
            break;
    }
    munmap(s.v, sizeof *s.v);
    return text;
}
