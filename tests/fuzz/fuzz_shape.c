/* libFuzzer: what shapes, derivatives and updates make of models that nearly hold together.
 *
 * Bytes at random are hardly ever a model, so the inputs are the text of models, and a
 * mutator of our own edits them by tokens and lines: most edits leave a tree, and what is
 * looked for is what the evaluator, the shape rules, the vjp pass and the simplifier do
 * with it. Every eighth input goes on to kernels and a plan.
 * At the end stands how many of the inputs came as far as shapes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "front/eval.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *x, size_t n, const uint8_t *y, size_t m,
                                 uint8_t *out, size_t max, unsigned seed);
/* Not there where replay.c stands in for libFuzzer. */
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);

/* ---- the target ---------------------------------------------------------- */

static struct {
    long inputs, reached, fine;
} count;

static void print_count(void)
{
    fprintf(stderr, "shapes: %ld of %ld inputs, %ld of them models\n", count.reached, count.inputs,
            count.fine);
}

static void must(bool holds, const char *what, const char *text)
{
    if (holds)
        return;
    fprintf(stderr, "%s:\n%s\n", what, text);
    abort();
}

/* An error of shapes or of what comes behind them. */
static bool reached_shapes(const Ctx *cx)
{
    for (int i = 0; i < cx->diag.n; i++)
        if (!cx->diag.at[i]->warning && cx->diag.at[i]->code >= E0202 &&
            cx->diag.at[i]->code < E0901)
            return true;
    return false;
}

static void print_messages(Ctx *cx, bool json)
{
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere == NULL)
        return;
    cx->json = json;
    diag_print(cx, nowhere);
    fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    Ctx cx;
    Arena arena = {0};
    Output out = {.arena = &arena};
    uint64_t which = hash_bytes(HASH_START, data, bytes);
    bool all = which % 4 == 0; /* entries; the others are most of the work */
    Options o = {
        .entry = {[ENTRY_INIT] = all, [ENTRY_EVAL] = all, [ENTRY_GRAD] = true, [ENTRY_STEP] = true},
        .threads_max = 2,
        .chunk_from = which % 2 * 32,
        .form.slices = which % 3 == 0 ? 4 : 0};
    if (count.inputs++ == 0)
        atexit(print_count);
    o.target = (TargetOptions){.target = "cpu", .cpu = "baseline", .threads_max = 2};
    ctx_init(&cx);
    cx.verify = true;
    char *text = arena_strndup(&cx.perm, (const char *)data, bytes);
    int32_t source = source_add(&cx, "fuzz.model", text, bytes, false);
    bool fine = compile_graphs(&cx, source, &o, false, &out);
    must(fine == (cx.n_errors == 0), "a model and an error, or neither", text);
    bool reached = fine || reached_shapes(&cx);
    count.reached += reached;
    count.fine += fine;
    if (fine && which % 8 == 0) {
        fine = compile_program(&cx, &o, &out);
        must(fine == (cx.n_errors == 0), "a program and an error, or neither", text);
    }
    for (int i = 0; i < cx.diag.n; i++)
        must(cx.diag.at[i]->code != E0990, "a mistake in gradc", text);
    print_messages(&cx, bytes % 2 == 1);
    output_free_graphs(&out);
    arena_free(&arena);
    ctx_free(&cx);
    return reached ? 0 : -1; /* -1: nothing to go on from */
}

/* ---- the mutator --------------------------------------------------------- */

enum { MAX_TEXT = 4096, MAX_TOKENS = 2048 };

typedef enum Kind { WORD, NUMBER, SIGN, SPACE } Kind;

typedef struct Piece {
    Kind kind;
    int at, n;
} Piece;

typedef struct Edit {
    char text[2 * MAX_TEXT];
    int n, max;
    Piece piece[MAX_TOKENS];
    int n_pieces;
    uint64_t random;
} Edit;

static int below(Edit *e, int n)
{
    e->random = hash_mix(e->random + 1);
    return n <= 1 ? 0 : (int)(e->random >> 33) % n;
}

static Kind kind_of(char c)
{
    if (c >= '0' && c <= '9')
        return NUMBER;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return WORD;
    return c == ' ' || c == '\n' ? SPACE : SIGN;
}

static void cut_pieces(Edit *e)
{
    e->n_pieces = 0;
    for (int i = 0; i < e->n && e->n_pieces < MAX_TOKENS;) {
        Kind k = kind_of(e->text[i]);
        int from = i++;
        while (i < e->n && k != SIGN &&
               (kind_of(e->text[i]) == k || (k == WORD && kind_of(e->text[i]) == NUMBER)))
            i++;
        e->piece[e->n_pieces++] = (Piece){k, from, i - from};
    }
}

/* Replaces `n` bytes at `at`, if there is room. */
static void put(Edit *e, int at, int n, const char *with, int m)
{
    if (e->n - n + m > e->max || e->n - n + m > MAX_TEXT)
        return;
    memmove(e->text + at + m, e->text + at + n, (size_t)(e->n - at - n));
    memcpy(e->text + at, with, (size_t)m);
    e->n += m - n;
}

/* One of the kind, from any place on; NULL: none. */
static const Piece *any(Edit *e, Kind k)
{
    int from = below(e, e->n_pieces);
    for (int i = 0; i < e->n_pieces; i++) {
        const Piece *p = &e->piece[(from + i) % e->n_pieces];
        if (p->kind == k)
            return p;
    }
    return NULL;
}

static void change_number(Edit *e)
{
    static const char *const some[] = {"0", "1",  "2",  "3",   "4",  "5",  "7",
                                       "8", "16", "-1", "0.5", "64", "-2", "1e30"};
    const Piece *p = any(e, NUMBER), *q = any(e, NUMBER);
    if (p == NULL)
        return;
    char other[64];
    snprintf(other, sizeof other, "%.*s", q->n < 60 ? q->n : 60, e->text + q->at);
    if (below(e, 3) > 0)
        snprintf(other, sizeof other, "%s", some[below(e, (int)(sizeof some / sizeof *some))]);
    put(e, p->at, p->n, other, (int)strlen(other));
}

static bool is_name(const Edit *e, const Piece *p)
{
    static const char *const other[] = {
        "model", "input",  "param", "state", "loss",   "output", "metric", "train",
        "fn",    "return", "block", "const", "for",    "if",     "else",   "in",
        "use",   "scan",   "emit",  "as",    "with",   "grad",   "vjp",    "optimizer",
        "clip",  "true",   "false", "f32",   "freeze", "guard",  "carry",  "accumulate"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if ((size_t)p->n == strlen(other[i]) &&
            memcmp(e->text + p->at, other[i], (size_t)p->n) == 0)
            return false;
    return true;
}

/* Most probably the name of a value, of a function or of a type. */
static const Piece *any_name(Edit *e)
{
    const Piece *p = any(e, WORD);
    for (int i = 0; i < 8 && p != NULL && !is_name(e, p); i++)
        p = any(e, WORD);
    return p;
}

/* A name of gradc's own, or one of the text. */
static void change_word(Edit *e)
{
    const char *names[400];
    const Piece *p = any_name(e), *q = any_name(e);
    char other[64];
    if (p == NULL)
        return;
    snprintf(other, sizeof other, "%.*s", q->n < 60 ? q->n : 60, e->text + q->at);
    if (below(e, 3) == 0)
        snprintf(other, sizeof other, "%s", names[below(e, builtin_names(names, 400))]);
    put(e, p->at, p->n, other, (int)strlen(other));
}

static void change_sign(Edit *e)
{
    static const char signs[] = "+-*/@^<>";
    for (int tries = 0; tries < 20; tries++) {
        const Piece *p = any(e, SIGN);
        if (p == NULL || strchr(signs, e->text[p->at]) == NULL)
            continue;
        e->text[p->at] = signs[below(e, 8)];
        return;
    }
}

/* f(x), x[0], ... around a word. */
static void wrap_word(Edit *e)
{
    static const char *const form[] = {"sum(%s)",
                                       "mean(%s, axis = 0)",
                                       "transpose(%s)",
                                       "%s[0]",
                                       "%s[1:]",
                                       "(%s + 1)",
                                       "reshape(%s, [2, -1])",
                                       "cast(%s, f64)",
                                       "%s[..., 0]",
                                       "-%s",
                                       "softmax(%s)",
                                       "stop_gradient(%s)",
                                       "grad(sum(%s^2), %s)",
                                       "[%s, %s]",
                                       "(%s @ %s)",
                                       "concat([%s, %s])",
                                       "where(%s > 0, %s, 0)",
                                       "cumsum(%s)",
                                       "%s[:, 0]",
                                       "relu(%s)",
                                       "shape(%s)[0]",
                                       "max(%s, axis = -1)",
                                       "cast(%s, i32)",
                                       "argmax(%s)",
                                       "flip(%s, axis = 0)"};
    const Piece *p = any_name(e);
    if (p == NULL || p->n > 60)
        return;
    char word[64], whole[256];
    int n = 0;
    snprintf(word, sizeof word, "%.*s", p->n, e->text + p->at);
    for (const char *f = form[below(e, (int)(sizeof form / sizeof *form))]; *f != 0; f++) {
        if (*f == '%' && f[1] == 's') {
            n += snprintf(whole + n, sizeof whole - (size_t)n, "%s", word);
            f++;
        } else {
            whole[n++] = *f;
        }
    }
    put(e, p->at, p->n, whole, n);
}

/* The bounds of any line, its end included. */
static int any_line(Edit *e, int *n)
{
    int at = below(e, e->n);
    while (at > 0 && e->text[at - 1] != '\n')
        at--;
    int end = at;
    while (end < e->n && e->text[end++] != '\n')
        ;
    *n = end - at;
    return at;
}

static void change_lines(Edit *e)
{
    static const char *const more[] = {
        "    state seen : f32 = 0\n",
        "    param more : f32[3] = ones\n",
        "    loss 0\n",
        "    x = scan i in 0..2, x = x {\n        x = x * 2\n    }\n",
        "    for i in 0..2 {\n        x = x + i\n    }\n",
        "    output x\n",
        "    accumulate 2\n",
        "    clip global_norm(1)\n",
        "    precision bf16\n",
        "    freeze \"*\"\n"};
    char line[MAX_TEXT];
    int n, m, at = any_line(e, &n);
    memcpy(line, e->text + at, (size_t)n);
    switch (below(e, 4)) {
    case 0:
        put(e, at, n, "", 0);
        break;
    case 1:
        put(e, any_line(e, &m), 0, line, n);
        break;
    case 2:
        put(e, at, n, "", 0);
        put(e, e->n == 0 ? 0 : any_line(e, &m), 0, line, n);
        break;
    default: {
        const char *text = more[below(e, (int)(sizeof more / sizeof *more))];
        put(e, at, 0, text, (int)strlen(text));
    }
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned seed)
{
    static void (*const change[])(Edit *) = {change_number, change_word, change_sign,
                                             wrap_word,     wrap_word,   change_lines};
    static Edit e;
    if (n == 0 || n > MAX_TEXT || (seed % 64 == 0 && LLVMFuzzerMutate != NULL))
        return LLVMFuzzerMutate == NULL ? n : LLVMFuzzerMutate(data, n, max);
    e.random = seed;
    e.n = (int)n;
    e.max = max < MAX_TEXT ? (int)max : MAX_TEXT;
    memcpy(e.text, data, n);
    /* Mostly one: an edit in two leaves no model. */
    for (int i = 1 + (below(&e, 4) == 0); i > 0 && e.n > 0; i--) {
        cut_pieces(&e);
        change[below(&e, 6)](&e);
    }
    memcpy(data, e.text, (size_t)e.n);
    return (size_t)e.n;
}

/* A line of the other text in this one. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *x, size_t n, const uint8_t *y, size_t m,
                                 uint8_t *out, size_t max, unsigned seed)
{
    static Edit e, other;
    if (n == 0 || m == 0 || n > MAX_TEXT || m > MAX_TEXT || n > max)
        return 0;
    e.random = other.random = seed;
    e.n = (int)n, other.n = (int)m;
    e.max = max < MAX_TEXT ? (int)max : MAX_TEXT;
    memcpy(e.text, x, n);
    memcpy(other.text, y, m);
    int lines, taken, from = any_line(&other, &taken);
    put(&e, any_line(&e, &lines), 0, other.text + from, taken);
    memcpy(out, e.text, (size_t)e.n);
    return (size_t)e.n;
}
