/* gradc explain: a diagnostic, a definition of the library, or a tensor of a model: what it is,
 * where it is stored, from which step to which, and why. What is said: explain_print.c. */
#include "explain.h"

#include <string.h>

#include "../plan/report.h"
#include "../target/facts.h"

/* ---- codes and definitions ------------------------------------------------------ */

static int explain_code(Cli *c, const char *id)
{
    Text t;
    text_init(&t, &c->cx->perm);
    Code code = code_find(id);
    const char *definition = code == N_CODES ? library_definition(c->cx, id) : NULL;
    if (code == N_CODES && definition == NULL)
        return usage_error(c, "there is no diagnostic and no definition of the library `%s`", id);
    if (!c->cx->json && definition != NULL) {
        text_add(&t, "%s\n", definition);
    } else if (!c->cx->json) {
        text_add(&t, "%s: %s\n\n%s", code_id(code), code_title(code), code_explanation(code));
    } else {
        text_add(&t, "{");
        text_pair(&t, definition != NULL ? "name" : "code",
                  definition != NULL ? id : code_id(code));
        text_add(&t, ", ");
        if (definition == NULL) {
            text_pair(&t, "title", code_title(code));
            text_add(&t, ", ");
        }
        text_pair(&t, "text", definition != NULL ? definition : code_explanation(code));
        text_add(&t, "}\n");
    }
    fputs(t.at, stdout);
    return EXIT_OK;
}

/* ---- what there is to say -------------------------------------------------------- */

typedef struct Explain {
    Cli *c;
    const Output *out;
    Arena *arena;
    const char *name;
    VEC(Subject) subject;
    VEC(Bound) bound;
    VEC(const char *) known; /* every name that could have been asked for */
} Explain;

/* Notes that the name is known; true if it is the one that is asked for. */
static bool asked(Explain *x, const char *name)
{
    for (int i = 0; i < x->known.n; i++)
        if (strcmp(x->known.at[i], name) == 0)
            return strcmp(name, x->name) == 0;
    vec_push(x->arena, &x->known, name);
    return strcmp(name, x->name) == 0;
}

static int32_t find_value(const Plan *p, const char *name, Role role)
{
    for (int32_t v = 0; v < p->n_values; v++)
        if (p->value[v].role == role && strcmp(p->value[v].name, name) == 0)
            return v;
    return -1;
}

static Type buffer_type(const Buffer *b)
{
    return type_make(b->dtype, b->rank, b->shape);
}

/* ---- parameters, state, the optimizer's ------------------------------------------- */

static const char *role_word(Role r)
{
    static const char *const word[N_ROLES] = {
        [ROLE_PARAM] = "parameter",   [ROLE_OPTIMIZER] = "state of the optimizer",
        [ROLE_STATE] = "state",       [ROLE_SCALAR] = "number that the caller may set",
        [ROLE_GRADIENT] = "gradient", [ROLE_ACTIVATION] = "value between steps",
        [ROLE_OUTPUT] = "output",
    };
    return word[r] != NULL ? word[r] : role_name(r);
}

static void pinned_lives(Explain *x, Subject *s, const char *name, Role role)
{
    for (int e = 0; e < N_ENTRIES; e++) {
        const Plan *p = x->out->plan[e];
        int32_t v = p != NULL ? find_value(p, name, role) : -1;
        if (v >= 0)
            vec_push(x->arena, &s->life, ((Life){.entry = p->entry, .plan = p, .value = v}));
    }
}

static void find_pinned(Explain *x)
{
    const Program *p = x->out->program;
    for (int i = 0; i < p->tensor.n; i++) {
        const Tensor *t = &p->tensor.at[i];
        const Buffer *b = &p->buffer.at[t->buffer];
        if (t->role == ROLE_GRADIENT || !asked(x, t->name))
            continue;
        Subject s = {.name = t->name,
                     .role = role_word(t->role),
                     .type = buffer_type(b),
                     .line = report_line(x->c->cx, b->origin, x->arena),
                     .storage = "pinned",
                     .offset = b->offset};
        pinned_lives(x, &s, t->name, t->role);
        vec_push(x->arena, &x->subject, s);
    }
}

/* ---- inputs ----------------------------------------------------------------------- */

/* Kernels that read the input, in the order of the calls. */
static void count_readers(const Program *p, const Call *call, int n, int32_t input, Life *l)
{
    for (int i = 0; i < n; i++) {
        bool reads = false;
        for (int j = 0; j < call[i].n_ops; j++)
            reads |= p->buffer.at[call[i].op[j].buffer].input == input;
        if (reads && l->readers++ == 0)
            l->label = call[i].label;
        count_readers(p, call[i].body, call[i].n_body, input, l);
    }
}

static void find_inputs(Explain *x)
{
    const Program *p = x->out->program;
    for (int32_t i = 0; i < p->input.n; i++) {
        const Input *in = &p->input.at[i];
        if (!asked(x, in->name))
            continue;
        const Origin *o = model_pinned(x->out->model)->input.at[i].origin;
        Subject s = {.name = in->name,
                     .role = "input",
                     .type = type_make(in->dtype, in->rank, in->shape),
                     .line = report_line(x->c->cx, o, x->arena),
                     .storage = "caller",
                     .offset = -1};
        for (int b = 0; b < p->buffer.n; b++)
            if (p->buffer.at[b].input == i && p->buffer.at[b].role == ROLE_STAGING &&
                fact_live(p, b))
                s.offset = p->buffer.at[b].offset;
        for (int e = 0; e < p->entry.n; e++) {
            Life l = {.entry = p->entry.at[e].name, .value = -1};
            count_readers(p, p->entry.at[e].call, p->entry.at[e].n_calls, i, &l);
            if (strcmp(l.entry, "init") != 0)
                vec_push(x->arena, &s.life, l);
        }
        vec_push(x->arena, &x->subject, s);
    }
}

/* ---- results, gradients ------------------------------------------------------------- */

static const Root *find_root(const Graph *g, const char *name, bool gradient)
{
    for (int i = 0; g != NULL && i < g->root.n; i++) {
        const Root *r = &g->root.at[i];
        bool result = r->kind == ROOT_LOSS || r->kind == ROOT_OUTPUT || r->kind == ROOT_METRIC;
        if ((gradient ? r->kind == ROOT_GRADIENT : result) && strcmp(r->name, name) == 0)
            return r;
    }
    return NULL;
}

static const char *result_word(int32_t kind)
{
    return kind == RESULT_LOSS ? "loss" : kind == RESULT_METRIC ? "metric" : "output";
}

/* The subject of this name and role, made if it is new. */
static Subject *subject_of(Explain *x, const char *name, const char *role, Type type,
                           const Origin *origin)
{
    for (int i = 0; i < x->subject.n; i++)
        if (strcmp(x->subject.at[i].role, role) == 0)
            return &x->subject.at[i];
    Subject s = {.name = name,
                 .role = role,
                 .type = type,
                 .line = report_line(x->c->cx, origin, x->arena),
                 .offset = -1};
    vec_push(x->arena, &x->subject, s);
    return &x->subject.at[x->subject.n - 1];
}

/* What the entry gives in this buffer, which may be another value's. */
static void add_given(Explain *x, int e, const char *name, const char *role, int32_t buffer,
                      bool gradient)
{
    const Plan *p = x->out->plan[e];
    const Graph *g = x->out->graph[e];
    const Root *root = find_root(g, name, gradient);
    const Buffer *b = &x->out->program->buffer.at[buffer];
    int32_t v = find_value(p, b->name, b->role);
    if (!asked(x, name) || root == NULL || v < 0)
        return;
    Subject *s = subject_of(x, name, role, *type_of(g, root->ref), node(g, root->ref)->origin);
    Life l = {.entry = p->entry, .plan = p, .value = v, .given = true};
    l.view_of = p->value[v].pinned || strcmp(b->name, name) != 0 ? b->name : NULL;
    vec_push(x->arena, &s->life, l);
}

static void find_given(Explain *x)
{
    const Program *p = x->out->program;
    for (int e = 0; e < N_ENTRIES; e++) {
        const Entry *entry = program_entry(p, entry_name((EntryKind)e));
        if (x->out->plan[e] == NULL || entry == NULL)
            continue;
        for (int i = 0; i < entry->n_results; i++)
            add_given(x, e, entry->result[i].name, result_word(entry->result[i].kind),
                      entry->result[i].buffer, false);
        for (int i = 0; e == ENTRY_GRAD && i < p->tensor.n; i++)
            if (p->tensor.at[i].role == ROLE_GRADIENT)
                add_given(x, e, p->tensor.at[i].name, "gradient", p->tensor.at[i].buffer, true);
    }
}

/* ---- values between steps ------------------------------------------------------------- */

/* Buffers have the types: the one of this name at the place of the value's first range. */
static const Buffer *buffer_of(const Program *p, const Plan *plan, int32_t v)
{
    const PlanValue *val = &plan->value[v];
    for (int i = 0; i < p->buffer.n; i++) {
        const Buffer *b = &p->buffer.at[i];
        if (b->role == val->role && b->bytes == val->bytes && b->name != NULL &&
            strcmp(b->name, val->name) == 0)
            return b;
    }
    return NULL;
}

static void find_values(Explain *x)
{
    for (int e = 0; e < N_ENTRIES; e++)
        for (int32_t v = 0; x->out->plan[e] != NULL && v < x->out->plan[e]->n_values; v++) {
            const Plan *p = x->out->plan[e];
            const PlanValue *val = &p->value[v];
            if (val->role != ROLE_ACTIVATION || !asked(x, val->name))
                continue;
            const Buffer *b = buffer_of(x->out->program, p, v);
            if (b == NULL) /* a carry of a scan has none of its own */
                continue;
            Subject *s =
                subject_of(x, val->name, role_word(val->role), buffer_type(b), val->origin);
            vec_push(x->arena, &s->life, ((Life){.entry = p->entry, .plan = p, .value = v}));
        }
}

/* ---- bindings --------------------------------------------------------------------------- */

static void note_binding(void *of, const char *name, Span statement, bool in_loop)
{
    Explain *x = of;
    if (asked(x, name))
        vec_push(x->arena, &x->bound, ((Bound){name, statement, in_loop}));
}

/* ---- all ---------------------------------------------------------------------------------------
 */

/* The nearest names, then those that contain what was asked for: three at most. */
static void put_near(Explain *x, Text *t)
{
    int shown = 0;
    while (shown < 3) {
        const char *near = nearest(x->name, x->known.at, x->known.n);
        for (int i = 0; near == NULL && strlen(x->name) > 1 && i < x->known.n; i++)
            if (strstr(x->known.at[i], x->name) != NULL)
                near = x->known.at[i];
        if (near == NULL)
            break;
        text_add(t, "%s`%s`", shown++ == 0 ? "; did you mean " : ", ", near);
        for (int i = 0; i < x->known.n; i++)
            if (x->known.at[i] == near)
                x->known.at[i--] = x->known.at[--x->known.n];
    }
    text_add(t, shown > 0 ? "?" : "; `gradc plan` lists the names");
}

static int explain_tensor(Cli *c, const Output *out, const char *name)
{
    Explain x = {.c = c, .out = out, .arena = out->arena, .name = name};
    Text t;
    text_init(&t, x.arena);
    find_inputs(&x);
    find_pinned(&x);
    find_given(&x);
    find_values(&x);
    model_bindings(out->model, note_binding, &x);
    if (x.subject.n == 0 && x.bound.n == 0) {
        put_near(&x, &t);
        say("the model has no tensor `%s`%s", name, t.at);
        return EXIT_INPUT;
    }
    text_add(&t, c->cx->json ? "[" : "");
    for (int i = 0; i < x.subject.n; i++) {
        if (c->cx->json && i > 0)
            text_add(&t, ", ");
        (c->cx->json ? subject_json : subject_text)(&t, x.arena, &x.subject.at[i]);
    }
    for (int i = 0; i < x.bound.n; i++) {
        if (c->cx->json && x.subject.n + i > 0)
            text_add(&t, ", ");
        (c->cx->json ? bound_json : bound_text)(&t, c->cx, out, &x.bound.at[i]);
    }
    text_add(&t, c->cx->json ? "]\n" : "");
    fputs(t.at, stdout);
    return EXIT_OK;
}

int command_explain(Cli *c)
{
    if (c->operand.n == 1)
        return explain_code(c, c->operand.at[0]);
    Arena arena = {0};
    Output out = {.arena = &arena};
    int status = compile_to(c, 2, &out);
    if (status == EXIT_OK)
        status = explain_tensor(c, &out, c->operand.at[1]);
    output_free(&out);
    return status;
}
