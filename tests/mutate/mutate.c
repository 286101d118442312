/* Single edits of good models: `gradc check` must answer each wrong one with exactly one
 * error, on the edited line, and must never crash or hang.
 *
 *   mutate GRADC COUNT SEED FOLDER MODEL...
 *
 * An edit that leaves a valid model (another rate, a smaller size) says nothing and is
 * drawn again. FOLDER takes the edited model; the ones that miss stay there. */
#include <ctype.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum Kind {
    DELETE_TOKEN,
    DOUBLE_TOKEN,
    OTHER_TOKEN,
    MISSPELL,
    NUMBER,
    DROP_BRACKET,
    DROP_COMMA,
    INSERT_SIGN,
    N_KINDS
} Kind;
static const char *const kind_name[] = {
    "token deleted",  "token doubled",   "token replaced", "name misspelt",
    "number changed", "bracket dropped", "comma dropped",  "sign inserted",
};

enum { MAX_TOKENS = 20000, MOST_MODELS = 64 };

typedef struct Token {
    int at, n, line;
} Token;

typedef struct Source {
    char *text;
    int n, n_tokens;
    Token token[MAX_TOKENS];
    const char *path;
} Source;

typedef struct Tally {
    int tried, one, none, more, elsewhere, broken;
} Tally;

static uint64_t rng;

static int below(int n)
{
    uint64_t z = rng += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int)((z ^ (z >> 31)) % (uint64_t)n);
}

/* ---- tokens ------------------------------------------------------------------------ */

static int token_length(const char *p)
{
    int n = 1;
    if (isalnum((unsigned char)*p) || *p == '_')
        while (isalnum((unsigned char)p[n]) || p[n] == '_' ||
               (p[n] == '.' && isdigit((unsigned char)*p) && p[n + 1] != '.'))
            n++;
    else if (strncmp(p, "<-", 2) == 0 || strncmp(p, "..", 2) == 0 || strncmp(p, "==", 2) == 0)
        n = 2;
    else if (*p == '"')
        while (p[n - 1] != '"' || n == 1)
            n++;
    return n;
}

static void cut(Source *s)
{
    int line = 1;
    for (int i = 0; i < s->n && s->n_tokens < MAX_TOKENS;) {
        if (s->text[i] == '#') {
            while (i < s->n && s->text[i] != '\n')
                i++;
        } else if (isspace((unsigned char)s->text[i])) {
            line += s->text[i++] == '\n';
        } else {
            int n = token_length(s->text + i);
            s->token[s->n_tokens++] = (Token){i, n, line};
            i += n;
        }
    }
}

static Source *source_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    Source *s = calloc(1, sizeof *s);
    if (f == NULL || s == NULL || (s->text = calloc(1, 1 << 20)) == NULL) {
        perror(path);
        exit(3);
    }
    s->n = (int)fread(s->text, 1, (1 << 20) - 1, f);
    s->path = path;
    fclose(f);
    cut(s);
    return s;
}

/* ---- edits ------------------------------------------------------------------------- */

static bool is_name(const Source *s, Token t)
{
    return isalpha((unsigned char)s->text[t.at]) && t.n > 2;
}

static bool fits(const Source *s, Kind k, Token t)
{
    char c = s->text[t.at];
    switch (k) {
    case MISSPELL:
        return is_name(s, t);
    case NUMBER:
        return isdigit((unsigned char)c);
    case DROP_BRACKET:
        return strchr("()[]{}", c) != NULL;
    case DROP_COMMA:
        return c == ',';
    default:
        return true;
    }
}

/* The text that stands for the token now. */
static void edit(const Source *s, Kind k, Token t, char *to, size_t n)
{
    static const char *const signs[] = {"+", ")", "]", "=", ",", "@", "}", ".", "5", "(", "in"};
    const char *old = s->text + t.at;
    switch (k) {
    case DOUBLE_TOKEN:
        snprintf(to, n, "%.*s %.*s", t.n, old, t.n, old);
        break;
    case OTHER_TOKEN: {
        Token u = s->token[below(s->n_tokens)];
        snprintf(to, n, "%.*s", u.n, s->text + u.at);
        break;
    }
    case MISSPELL: {
        int i = below(t.n - 1);
        snprintf(to, n, "%.*s%c%c%.*s", i, old, old[i + 1], old[i], t.n - i - 2, old + i + 2);
        if (old[i] == old[i + 1])
            snprintf(to, n, "%.*sx", t.n, old);
        break;
    }
    case NUMBER:
        snprintf(to, n, "%d", below(3) == 0 ? 0 : below(90) - 9);
        break;
    case INSERT_SIGN:
        snprintf(to, n, "%.*s %s", t.n, old, signs[below((int)(sizeof signs / sizeof *signs))]);
        break;
    default:
        to[0] = '\0';
    }
}

static bool write_edited(const Source *s, Token t, const char *by, const char *path)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL)
        return false;
    fwrite(s->text, 1, (size_t)t.at, f);
    fputs(by, f);
    fwrite(s->text + t.at + t.n, 1, (size_t)(s->n - t.at - t.n), f);
    return fclose(f) == 0;
}

/* ---- the answer -------------------------------------------------------------------- */

typedef struct Answer {
    int status, errors, line;
    bool broken;
} Answer;

static long field(const char *text, const char *name)
{
    const char *p = strstr(text, name);
    return p == NULL ? -1 : strtol(p + strlen(name), NULL, 10);
}

static Answer ask(const char *gradc, const char *path)
{
    static char line[1 << 16];
    Answer a = {.line = -1};
    char command[9000];
    snprintf(command, sizeof command, "timeout 20 '%s' check --json '%s' 2>&1", gradc, path);
    FILE *f = popen(command, "r");
    if (f == NULL) {
        perror(gradc);
        exit(3);
    }
    while (fgets(line, sizeof line, f) != NULL) {
        if (strstr(line, "\"severity\":\"error\"") == NULL)
            continue;
        if (a.errors++ == 0)
            a.line = (int)field(line, "\"line\":");
    }
    int status = pclose(f);
    a.status = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
    a.broken = a.status > 4;
    return a;
}

/* ---- counting ---------------------------------------------------------------------- */

typedef struct Run {
    const char *gradc, *folder;
    Source *source[MOST_MODELS];
    int n_sources, n;
    Tally tally[N_KINDS];
} Run;

/* How the answer misses, or NULL. */
static const char *verdict(Tally *t, const Answer *a, int line)
{
    t->tried++;
    if (a->broken)
        return t->broken++, "crash or hang";
    if (a->errors != 1)
        return t->more++, a->errors == 0 ? "refused without an error" : "several errors";
    if (a->line != line)
        return t->elsewhere++, "on another line";
    t->one++;
    return NULL;
}

static void one_edit(Run *r)
{
    const Source *s = r->source[below(r->n_sources)];
    Kind k = (Kind)below(N_KINDS);
    Token t = s->token[below(s->n_tokens)];
    char by[600], path[4096];
    for (int i = 0; i < 100 && !fits(s, k, t); i++)
        t = s->token[below(s->n_tokens)];
    if (!fits(s, k, t))
        return;
    edit(s, k, t, by, sizeof by);
    if (strlen(by) == (size_t)t.n && strncmp(by, s->text + t.at, (size_t)t.n) == 0)
        return;
    snprintf(path, sizeof path, "%s/edit.model", r->folder);
    if (!write_edited(s, t, by, path)) {
        perror(path);
        exit(3);
    }
    Answer a = ask(r->gradc, path);
    if (a.status == 0) { /* still valid */
        r->tally[k].none++;
        return;
    }
    const char *missed = verdict(&r->tally[k], &a, t.line);
    if (missed != NULL) {
        printf("%s:%d: %s, `%.*s` now `%s`: %s (%d errors, line %d, status %d)\n", s->path, t.line,
               kind_name[k], t.n, s->text + t.at, by, missed, a.errors, a.line, a.status);
        char keep[4200];
        snprintf(keep, sizeof keep, "%s/missed-%d.model", r->folder, r->n);
        rename(path, keep);
    }
    r->n++;
}

static int summary(const Run *r)
{
    Tally all = {0};
    for (int i = 0; i < N_KINDS; i++) {
        const Tally *t = &r->tally[i];
        printf("%-16s %4d edits, %4d right, %3d with several, %3d elsewhere, %d broken; %d valid\n",
               kind_name[i], t->tried, t->one, t->more, t->elsewhere, t->broken, t->none);
        all.tried += t->tried;
        all.one += t->one;
        all.broken += t->broken;
    }
    double rate = all.tried > 0 ? 100.0 * all.one / all.tried : 0;
    printf("%d edits: exactly one error, on the edited line, in %.1f %%\n", all.tried, rate);
    int failed = (rate < 90) + (all.broken > 0);
    printf("passed=%d failed=%d skipped=0\n", 2 - failed, failed);
    return failed > 0;
}

int main(int argc, char **argv)
{
    if (argc < 6 || argc - 5 > MOST_MODELS) {
        fprintf(stderr, "mutate GRADC COUNT SEED FOLDER MODEL...\n");
        return 2;
    }
    Run *r = calloc(1, sizeof *r);
    if (r == NULL)
        return 4;
    r->gradc = argv[1];
    r->folder = argv[4];
    int count = atoi(argv[2]);
    rng = strtoull(argv[3], NULL, 10) * 7919;
    for (int i = 5; i < argc; i++)
        r->source[r->n_sources++] = source_read(argv[i]);
    for (int tries = 0; r->n < count && tries < 50 * count; tries++)
        one_edit(r);
    return summary(r);
}
