/* The `train` definition. */
#include "eval.h"

#include <math.h>
#include <string.h>

/* Of f16. Micikevicius et al., Mixed Precision Training (2018), section 3.2: "8 to 32K" served
 * all their models. At 1024 the smallest cotangent that is not lost is 2^-34, the largest is 63. */
enum { LOSS_SCALE = 1024 };

typedef struct Reader {
    Build *b;
    Train *t;
    const Setting *seen[16]; /* settings that may stand once */
    int n_seen;
} Reader;

/* "*" is any text, "?" any one character. */
static bool glob(const char *pattern, const char *s)
{
    const char *star = NULL, *back = NULL;
    while (*s != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            back = s;
        } else if (*pattern == *s || *pattern == '?') {
            pattern++;
            s++;
        } else if (star != NULL) {
            pattern = star + 1;
            s = ++back;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

void train_freeze(Model *m, int32_t slot)
{
    Train *t = &m->train;
    Slot *s = &m->pinned.slot.at[slot];
    for (int i = 0; i < t->freeze.n; i++)
        if (glob(t->freeze.at[i]->string, s->name)) {
            s->frozen = true;
            t->freezes.at[i] = true;
        }
}

bool train_unmatched(Model *m)
{
    bool all = true;
    for (int i = 0; i < m->train.freeze.n; i++) {
        if (m->train.freezes.at[i])
            continue;
        const Expr *e = m->train.freeze.at[i];
        Diag *d = diag_error(m->cx, E0506, e->span, "\"%s\" matches no parameter", e->string);
        const char **name = NEW_ARRAY(&m->cx->perm, const char *, m->pinned.slot.n);
        int n = 0;
        for (int j = 0; j < m->pinned.slot.n; j++)
            if (m->pinned.slot.at[j].kind == SLOT_PARAM)
                name[n++] = m->pinned.slot.at[j].name;
        const char *near = nearest(e->string, name, n);
        if (near != NULL)
            diag_help(m->cx, d, "did you mean \"%s\"?", near);
        else if (n > 0)
            diag_help(m->cx, d, "the first parameter is \"%s\"; `*` stands for any text", name[0]);
        all = false;
    }
    return all;
}

/* The word of `guard loss`, `precision f32`. */
static const char *word(const Setting *s)
{
    const Expr *e = s->value.n == 1 ? s->value.at[0] : NULL;
    return e != NULL && e->kind == EXPR_NAME && e->name.module.text == NULL ? e->name.name.text
                                                                            : "";
}

static int optimizers(const Module *in, const char **name, int max)
{
    int n = 0;
    for (int i = 0; i < in->ast->item.n && n < max; i++) {
        const Item *item = in->ast->item.at[i];
        if (item->kind == ITEM_BLOCK && item->def.arg.n >= 2)
            name[n++] = item->name.text;
    }
    return n;
}

const Item *find_optimizer(Build *b, const Expr *call, Module **in)
{
    const char *name = call->call.name.text, *module = call->call.module.text;
    Module *const where[] = {
        module == NULL ? b->m->own : module_find(b->m, b->m->own, module),
        module == NULL ? b->m->train_library : NULL,
    };
    for (int i = 0; i < 2; i++) {
        const Item *item = where[i] == NULL ? NULL : module_item(where[i], name);
        if (item != NULL && item->kind == ITEM_BLOCK && item->def.arg.n >= 2) {
            *in = where[i];
            return item;
        }
    }
    const char *known[128];
    Diag *d = complain(b, E0502, call->span, "there is no optimizer `%s`", name);
    int n = optimizers(b->m->train_library, known, 128);
    suggest(b, d, name, known, n);
    if (d->help == NULL)
        diag_help(b->cx, d,
                  "the optimizers are sgd, adam, adamw, lion, rmsprop and adagrad; a "
                  "block (p, g, lr, ...) in this file is one, too");
    return NULL;
}

static void read_optimizer(Reader *r, const Setting *s)
{
    const Expr *e = s->value.at[0];
    if (s->value.n != 1 || e->kind != EXPR_CALL) {
        Diag *d = complain(r->b, E0502, s->span, "an optimizer is written as a call");
        diag_help(r->b->cx, d, "as in `optimizer adamw(lr = 1e-3)`");
        return;
    }
    Module *in;
    r->t->optimizer = e;
    find_optimizer(r->b, e, &in);
}

static void read_clip(Reader *r, const Setting *s)
{
    const Expr *e = s->value.at[0];
    bool call = s->value.n == 1 && e->kind == EXPR_CALL && e->call.args.n == 1;
    const char *name = call ? e->call.name.text : "";
    r->t->clip = strcmp(name, "global_norm") == 0 ? CLIP_NORM
                 : strcmp(name, "value") == 0     ? CLIP_VALUE
                                                  : CLIP_NONE;
    if (r->t->clip == CLIP_NONE) {
        Diag *d = complain(r->b, E0503, s->span,
                           "gradients are clipped by `global_norm(x)` or "
                           "`value(x)`");
        diag_help(r->b->cx, d, "as in `clip global_norm(1.0)`");
        return;
    }
    const Value *v = eval(r->b, e->call.args.at[0].value);
    if (want_number(r->b, v, e->call.args.at[0].span, "the limit", &r->t->clip_at) &&
        !(r->t->clip_at > 0))
        complain(r->b, E0503, e->call.args.at[0].span, "the limit is above 0, and this is %s",
                 value_text(&r->b->cx->perm, v));
}

static void read_accumulate(Reader *r, const Setting *s)
{
    enum { MOST = 65536 };
    const Value *v = eval(r->b, s->value.at[0]);
    if (s->value.n != 1) {
        complain(r->b, E0504, s->span, "`accumulate` takes one integer");
        return;
    }
    int64_t n = 1;
    if (want_int(r->b, v, s->value.at[0]->span, "the number of micro-batches", &n) &&
        (n < 1 || n > MOST))
        complain(r->b, E0504, s->value.at[0]->span,
                 "a step has 1 to %d micro-batches, and this is "
                 "%lld",
                 MOST, (long long)n);
    else if (n > 1 && r->b->m->batch == 0)
        diag_help(r->b->cx,
                  complain(r->b, E0504, s->span,
                           "micro-batches are parts of a batch, and `%s` has no argument `batch`",
                           r->b->m->item->name.text),
                  "write `model %s(batch = 4)`, with `batch` as the first size of its inputs",
                  r->b->m->item->name.text);
    else
        r->t->accumulate = n;
}

bool precision_find(const char *name, Precision *p)
{
    static const Precision known[] = {{F32, 1}, {BF16, 1}, {F16, LOSS_SCALE}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(dtype_name(known[i].type), name) == 0) {
            *p = known[i];
            return true;
        }
    return false;
}

static void read_loss_scale(Reader *r, const Expr *call)
{
    enum { MOST_LOG2 = 24 };
    const Args *given = &call->call.args;
    int exponent;
    double scale;
    if (r->t->precision.type != F16) {
        complain(r->b, E0505, call->span,
                 "`%s` has the range of f32, and takes no scale of the loss", call->call.name.text);
        return;
    }
    if (given->n != 1 ||
        (given->at[0].name.text != NULL && strcmp(given->at[0].name.text, "scale") != 0)) {
        Diag *d = complain(r->b, E0505, call->span, "`f16` takes one number, the loss scale");
        diag_help(r->b->cx, d, "as in `precision f16(scale = %d)`", LOSS_SCALE);
        return;
    }
    Span at = given->at[0].value->span;
    const Value *v = eval(r->b, given->at[0].value);
    if (!want_number(r->b, v, at, "the loss scale", &scale))
        return;
    if (scale >= 1 && frexp(scale, &exponent) == 0.5 && exponent - 1 <= MOST_LOG2)
        r->t->precision.loss_scale = scale;
    else
        complain(r->b, E0505, at, "a loss scale is a power of two from 1 to 2^%d, and this is %s",
                 MOST_LOG2, value_text(&r->b->cx->perm, v));
}

static void read_precision(Reader *r, const Setting *s)
{
    const Expr *e = s->value.n == 1 ? s->value.at[0] : NULL;
    bool call = e != NULL && e->kind == EXPR_CALL && e->call.module.text == NULL;
    const char *name = call ? e->call.name.text : word(s);
    if (!precision_find(name, &r->t->precision)) {
        Diag *d = complain(r->b, E0505, s->span, "there is no precision `%s`", name);
        diag_help(r->b->cx, d, "the precisions are f32, bf16 and f16(scale = %d)", LOSS_SCALE);
    } else if (call) {
        read_loss_scale(r, e);
    }
}

static void read_freeze(Reader *r, const Setting *s)
{
    for (int i = 0; i < s->value.n; i++) {
        const Expr *e = s->value.at[i];
        if (e->kind != EXPR_STRING) {
            Diag *d = complain(r->b, E0506, e->span, "`freeze` takes patterns in quotes");
            diag_help(r->b->cx, d, "as in `freeze \"enc.*\"`");
            continue;
        }
        vec_push(r->b->m->arena, &r->t->freeze, e);
        vec_push(r->b->m->arena, &r->t->freezes, false);
    }
}

static void read_guard(Reader *r, const Setting *s)
{
    const char *how = word(s);
    if (strcmp(how, "loss") == 0)
        r->t->guard = GUARD_LOSS;
    else if (strcmp(how, "off") == 0)
        r->t->guard = GUARD_OFF;
    else if (strcmp(how, "gradients") != 0)
        complain(r->b, E0507, s->span, "`guard` is gradients (if left out), loss or off");
}

static bool given_twice(Reader *r, const Setting *s)
{
    for (int i = 0; i < r->n_seen; i++)
        if (r->seen[i]->name.text == s->name.text) {
            Diag *d =
                complain(r->b, E0108, s->span, "the setting `%s` is given twice", s->name.text);
            diag_note(r->b->cx, d, r->seen[i]->span, "the first is here");
            return true;
        }
    if (r->n_seen < 16)
        r->seen[r->n_seen++] = s;
    return false;
}

static void read_setting(Reader *r, const Setting *s)
{
    const char *name = s->name.text;
    if (strcmp(name, "freeze") == 0) {
        read_freeze(r, s);
        return;
    }
    if (given_twice(r, s) || s->value.n == 0)
        return;
    if (strcmp(name, "optimizer") == 0)
        read_optimizer(r, s);
    else if (strcmp(name, "clip") == 0)
        read_clip(r, s);
    else if (strcmp(name, "accumulate") == 0)
        read_accumulate(r, s);
    else if (strcmp(name, "guard") == 0)
        read_guard(r, s);
    else
        read_precision(r, s);
}

/* A `train` for a model that the file does not have. */
static void check_names(Model *m)
{
    const Ast *ast = m->own->ast;
    for (int i = 0; i < ast->item.n; i++) {
        const Item *item = ast->item.at[i];
        const Item *of = module_item(m->own, item->name.text);
        if (item->kind != ITEM_TRAIN)
            continue;
        if (item->name.text == m->item->name.text)
            m->train.item = item;
        if (of != NULL && of->kind == ITEM_MODEL)
            continue;
        Diag *d = diag_error(m->cx, E0509, item->name.span, "there is no model `%s` to train",
                             item->name.text);
        diag_note(m->cx, d, m->item->name.span, "the model here is `%s`", m->item->name.text);
    }
}

bool train_open(Model *m)
{
    int errors = m->cx->n_errors;
    m->train.accumulate = 1;
    m->train.precision = (Precision){F32, 1};
    check_names(m);
    if (m->train.item == NULL)
        return m->cx->n_errors == errors;
    Graph *g = graph_new(m->cx, "train");
    Build b = build_begin(m, ENTRY_STEP, g);
    Frame frame;
    Scope scope;
    Instance top;
    enter_train(&b, &frame, &scope, &top);
    Reader r = {.b = &b, .t = &m->train};
    for (int i = 0; i < m->train.item->setting.n; i++)
        read_setting(&r, &m->train.item->setting.at[i]);
    if (m->train.optimizer == NULL && m->cx->n_errors == errors) {
        Diag *d = complain(&b, E0502, m->train.item->name.span,
                           "the training of `%s` has no "
                           "optimizer",
                           m->item->name.text);
        diag_help(m->cx, d, "as in `optimizer adamw(lr = 1e-3)`");
    }
    build_end(&b);
    graph_free(g);
    return m->cx->n_errors == errors;
}
