/* Models of square matrices, and what their kernels compute: some operations for each element, and
 * not some for each element of a row or a column, however sums and what reads them are mixed. All
 * axes are as long, so that a row can be taken for a column. */
#include "smith.h"

#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "kernel/program.h"

enum {
    SIDE = 512,
    MOST = 500, /* operations for each element; with a sum again for each of a row they are
                   thousands */
    MAX_NAMES = 16,
    NAME_BYTES = 16
};

/* Values by shape: [n, n], [n, 1], [1, n]. */
typedef enum Kind { FULL, ROWS, COLUMNS, N_KINDS } Kind;

typedef struct Work {
    uint64_t rng;
    Text text;
    int n[N_KINDS];
    char name[N_KINDS][MAX_NAMES][NAME_BYTES];
    int made;
} Work;

static const char *any(Work *w, Kind k)
{
    return w->name[k][random_below(&w->rng, w->n[k])];
}

/* Of what is there of both kinds of lines. */
static const char *any_line(Work *w)
{
    int64_t i = random_below(&w->rng, w->n[ROWS] + w->n[COLUMNS]);
    return i < w->n[ROWS] ? w->name[ROWS][i] : w->name[COLUMNS][i - w->n[ROWS]];
}

static bool has_lines(const Work *w)
{
    return w->n[ROWS] + w->n[COLUMNS] > 0;
}

static const char *new_name(Work *w, Kind k)
{
    char *name = w->name[k][w->n[k]++];
    snprintf(name, NAME_BYTES, "v%d", ++w->made);
    return name;
}

static const char *pick(Work *w, const char *const *from, int n)
{
    return from[random_below(&w->rng, n)];
}

static void add_reduction(Work *w)
{
    static const char *const op[] = {"sum", "mean", "max", "min"};
    static const char *const of[] = {"%s",      "%s^2",     "exp(%s * 0.1)",
                                     "abs(%s)", "tanh(%s)", "%s * x"};
    int64_t axis = random_below(&w->rng, 2);
    const char *a = any(w, FULL), *less = NULL;
    if (has_lines(w) && random_below(&w->rng, 3) == 0)
        less = any_line(w);
    bool squared = random_below(&w->rng, 2) > 0;
    const char *what = pick(w, of, 6), *name = new_name(w, axis == 0 ? COLUMNS : ROWS);
    text_add(&w->text, "    %s = %s(", name, pick(w, op, 4));
    for (const char *c = what; *c != '\0'; c++) {
        if (c[0] == '%') {
            text_add(&w->text, "%s", a);
            c++;
        } else {
            text_char(&w->text, *c);
        }
    }
    if (less != NULL)
        text_add(&w->text, " - %s%s", less, squared ? "^2" : "");
    text_add(&w->text, ", axis = %d, keep = true)\n", (int)axis);
}

static void add_line(Work *w)
{
    bool rows = w->n[COLUMNS] == 0 || (w->n[ROWS] > 0 && random_below(&w->rng, 2) > 0);
    Kind k = rows ? ROWS : COLUMNS;
    const char *a = any(w, k), *b = any(w, k), *name = new_name(w, k);
    switch (random_below(&w->rng, 4)) {
    case 0:
        text_add(&w->text, "    %s = rsqrt(%s^2 + 0.01)\n", name, a);
        break;
    case 1:
        text_add(&w->text, "    %s = exp(-abs(%s))\n", name, a);
        break;
    case 2:
        text_add(&w->text, "    %s = sigmoid(%s) * %s\n", name, a, b);
        break;
    default:
        text_add(&w->text, "    %s = %s / (1 + %s^2)\n", name, a, b);
    }
}

static void add_view(Work *w)
{
    static const char *const op[] = {"softmax", "log_softmax", "cumsum", "flip"};
    const char *a = any(w, FULL), *name = new_name(w, FULL);
    int axis = (int)random_below(&w->rng, 2);
    if (random_below(&w->rng, 5) == 0)
        text_add(&w->text, "    %s = transpose(%s)\n", name, a);
    else
        text_add(&w->text, "    %s = %s(%s, axis = %d)\n", name, pick(w, op, 4), a, axis);
}

static void add_normal(Work *w)
{
    const char *a = any(w, FULL), *name = new_name(w, FULL);
    int i = w->made;
    bool rows = random_below(&w->rng, 2) > 0;
    text_add(&w->text, "    m%d, s%d = moments(%s, axis = %d)\n", i, i, a, (int)rows);
    if (rows)
        text_add(&w->text,
                 "    %s = (%s - insert_axis(m%d, 1)) * rsqrt(insert_axis(s%d, 1) + 0.1)\n", name,
                 a, i, i);
    else
        text_add(&w->text, "    %s = (%s - m%d) * rsqrt(s%d + 0.1)\n", name, a, i, i);
}

static void add_pointwise(Work *w)
{
    const char *a = any(w, FULL);
    const char *b = has_lines(w) && random_below(&w->rng, 2) > 0 ? any_line(w) : any(w, FULL);
    const char *name = new_name(w, FULL);
    switch (random_below(&w->rng, 4)) {
    case 0:
        text_add(&w->text, "    %s = %s * %s\n", name, a, b);
        break;
    case 1:
        text_add(&w->text, "    %s = relu(%s + %s)\n", name, a, b);
        break;
    case 2:
        text_add(&w->text, "    %s = tanh(%s) - %s\n", name, a, b);
        break;
    default:
        text_add(&w->text, "    %s = where(%s > %s, %s, 0.1 * %s)\n", name, a, b, a, b);
    }
}

static void add_term(Work *w, const char *of)
{
    int axis = (int)random_below(&w->rng, 2);
    switch (random_below(&w->rng, 5)) {
    case 0:
        text_add(&w->text, "mean(%s)", of);
        break;
    case 1:
        text_add(&w->text, "sum(%s * %s)", of, of);
        break;
    case 2:
        text_add(&w->text, "max(%s)", of);
        break;
    case 3:
        text_add(&w->text, "mean(sum(abs(%s), axis = %d))", of, axis);
        break;
    default:
        text_add(&w->text, "mean(max(%s, axis = %d))", of, axis);
    }
}

static const char *work_model(uint64_t seed, Arena *a)
{
    Work w = {.rng = seed, .n = {[FULL] = 3}, .name = {[FULL] = {"x", "h", "t"}}};
    text_init(&w.text, a);
    text_add(
        &w.text,
        "use nn\n\nmodel m(n = %d) {\n    input x : f32[n, n]\n    param g : f32[n, n] = ones\n"
        "    h = x * g\n    t = x + g * 0.5\n",
        SIDE);
    for (int64_t i = 2 + random_below(&w.rng, 6); i > 0; i--) {
        int64_t what = random_below(&w.rng, 100);
        if (what < 35)
            add_reduction(&w);
        else if (what < 50 && has_lines(&w))
            add_line(&w);
        else if (what < 62)
            add_view(&w);
        else if (what < 70)
            add_normal(&w);
        else
            add_pointwise(&w);
    }
    text_add(&w.text, "    loss ");
    add_term(&w, w.name[FULL][w.n[FULL] - 1]);
    for (int64_t i = random_below(&w.rng, 3); i > 0; i--) {
        text_add(&w.text, " + ");
        add_term(&w, has_lines(&w) && i == 1 ? any_line(&w) : any(&w, FULL));
    }
    text_add(&w.text, "\n}\n\ntrain m {\n    optimizer sgd(lr = 0.1)\n}\n");
    return w.text.at;
}

/* Operations of the entry that has the most, for each element of a matrix; negative: refused. */
static double most_work(const char *text, Arena *a)
{
    Ctx cx;
    ctx_init(&cx);
    int32_t source = source_add(&cx, "work.model", text, strlen(text), false);
    Options o = {.entry = {[ENTRY_EVAL] = true, [ENTRY_STEP] = true}, .threads_max = 8};
    o.target = (TargetOptions){.target = "cpu", .threads_max = 8, .no_lines = true};
    Output out = {.arena = a};
    double most = -1;
    if (compile_planned(&cx, source, &o, &out)) {
        const Program *p = out.program;
        for (int e = 0; e < p->entry.n; e++) {
            const Entry *at = &p->entry.at[e];
            int32_t n = steps_count(at->call, at->n_calls);
            const Call **step = NEW_ARRAY(a, const Call *, n + 1);
            steps_list(at->call, at->n_calls, step);
            double flops = 0;
            for (int32_t i = 0; i < n; i++)
                if (step[i] != NULL && step[i]->kind == CALL_KERNEL)
                    flops += kernel_cost(p->kernel.at[step[i]->kernel]).flops;
            flops /= (double)SIDE * (double)SIDE;
            most = flops > most ? flops : most;
        }
    } else {
        diag_print(&cx, stderr);
    }
    output_free_graphs(&out);
    ctx_free(&cx);
    return most;
}

int work(uint64_t seed, int count)
{
    int failed = 0;
    for (int i = 0; i < count; i++) {
        Arena a = {0};
        const char *text = work_model(seed + (uint64_t)i, &a);
        double most = most_work(text, &a);
        if (most < 1 || most > (double)MOST) {
            printf("FAILED: seed %llu: %.0f operations for each element\n%s",
                   (unsigned long long)(seed + (uint64_t)i), most, text);
            failed++;
        }
        arena_free(&a);
    }
    printf("passed=%d failed=%d skipped=0\n", count - failed, failed);
    return failed > 0;
}
