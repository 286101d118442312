/* Reads the text of a graph (grammar/gir.md). Attributes and their values: read_attr.c.
 * The first mistake is reported, and ends the reading. */
#include "read.h"

#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 32, MAX_LABEL = 1 << 24 };

/* ---- tokens -------------------------------------------------------------------------- */

static void skip_space(Reader *r)
{
    for (;;) {
        while (r->at < r->end && strchr(" \t\r\n", r->text[r->at]) != NULL &&
               r->text[r->at] != '\0')
            r->at++;
        if (r->at >= r->end || r->text[r->at] != '#')
            return;
        while (r->at < r->end && r->text[r->at] != '\n')
            r->at++;
    }
}

bool read_error(Reader *r, const char *expected)
{
    if (!r->failed) {
        skip_space(r);
        Span at = {r->source, r->at, r->at < r->end ? r->at + 1 : r->at};
        diag_error(r->cx, E0190, at, "expected %s", expected);
    }
    r->failed = true;
    return false;
}

bool read_token(Reader *r, const char *token)
{
    skip_space(r);
    int32_t n = (int32_t)strlen(token);
    if (r->failed || r->end - r->at < n || memcmp(r->text + r->at, token, (size_t)n) != 0)
        return false;
    r->at += n;
    return true;
}

bool read_expect(Reader *r, const char *token)
{
    return read_token(r, token) || read_error(r, token);
}

const char *read_word(Reader *r)
{
    skip_space(r);
    int32_t from = r->at;
    while (r->at < r->end && (isalnum((unsigned char)r->text[r->at]) || r->text[r->at] == '_'))
        r->at++;
    return intern_n(&r->cx->names, r->text + from, (size_t)(r->at - from));
}

bool read_int(Reader *r, int64_t *out)
{
    skip_space(r);
    bool minus = read_token(r, "-");
    int64_t x = 0;
    int32_t from = r->at;
    for (; r->at < r->end && isdigit((unsigned char)r->text[r->at]); r->at++) {
        int digit = r->text[r->at] - '0';
        if (x < (INT64_MIN + digit) / 10)
            return read_error(r, "a smaller integer");
        x = 10 * x - digit; /* downwards: the smallest integer has no positive */
    }
    if (r->at == from || (!minus && x == INT64_MIN))
        return read_error(r, "an integer");
    *out = minus ? x : -x;
    return true;
}

const char *read_string(Reader *r)
{
    if (!read_expect(r, "\""))
        return "";
    Text s;
    text_init(&s, &r->cx->perm);
    while (r->at < r->end && r->text[r->at] != '"' && r->text[r->at] != '\n') {
        bool escaped = r->text[r->at] == '\\' && r->at + 1 < r->end;
        r->at += escaped;
        text_char(&s, r->text[r->at++]);
    }
    read_expect(r, "\"");
    return intern(&r->cx->names, s.at);
}

/* ---- operands ------------------------------------------------------------------------- */

static Ref read_label(Reader *r)
{
    int64_t label = 0;
    if (!read_int(r, &label))
        return NONE;
    Ref ref = label > 0 && label < r->label.n ? r->label.at[label] : NONE;
    if (ref == NONE)
        read_error(r, "a value that has been defined above");
    return ref;
}

static bool set_label(Reader *r, int64_t label, Ref ref)
{
    if (label <= 0 || label >= MAX_LABEL)
        return read_error(r, "a label from 1 to 16777215");
    while (r->label.n <= label)
        vec_push(&r->cx->perm, &r->label, NONE);
    if (r->label.at[label] != NONE)
        return read_error(r, "a label that is not taken");
    r->label.at[label] = ref;
    return true;
}

bool read_type(Reader *r, DType dtype, Type *t)
{
    *t = type_scalar(dtype);
    if (!read_token(r, "["))
        return true;
    while (!read_token(r, "]")) {
        if (t->rank > 0)
            read_expect(r, ",");
        if (t->rank == MAX_RANK)
            return read_error(r, "at most 8 axes");
        if (!read_int(r, &t->dim[t->rank]))
            return false;
        t->rank++;
    }
    return true;
}

/* A type stands for a new input. */
static Ref read_input(Reader *r, DType dtype)
{
    Type t;
    if (!read_type(r, dtype, &t))
        return NONE;
    Ref made = g_input(r->g, r->n_inputs++, t);
    r->failed = r->failed || made == NONE;
    return made;
}

static Ref read_call(Reader *r, const char *name);

/* %3, a type, or a call */
static Ref read_operand(Reader *r)
{
    DType dtype;
    if (read_token(r, "%"))
        return read_label(r);
    if (read_token(r, "_"))
        return NONE;
    const char *word = read_word(r);
    if (dtype_find(word, &dtype))
        return read_input(r, dtype);
    return read_call(r, word);
}

/* An operand begins with % or _, or is a word that no = follows. */
static bool is_attr(Reader *r)
{
    skip_space(r);
    int32_t from = r->at;
    const char *word = read_word(r);
    bool is = *word != '\0' && strcmp(word, "_") != 0 && read_token(r, "=");
    r->at = from;
    return is;
}

typedef struct Call {
    const Op *op;
    OpId id;
    VEC(Ref) arg;
    Attr attr[MAX_ATTRS];
} Call;

static void read_argument(Reader *r, Call *c)
{
    if (!is_attr(r)) {
        vec_push(&r->cx->perm, &c->arg, read_operand(r));
        return;
    }
    const char *name = read_word(r);
    int i = op_attr(c->op, name);
    read_expect(r, "=");
    if (i < 0)
        read_error(r, "an attribute of this op before `=`");
    else
        read_attr(r, c->op, i, c->attr);
}

static Ref read_call(Reader *r, const char *name)
{
    Call c = {.id = op_find(name)};
    if (c.id == OP_NONE || ++r->depth > MAX_DEPTH) {
        read_error(r, c.id == OP_NONE ? "the name of an op before this" : "less nesting");
        return NONE;
    }
    c.op = optab[c.id];
    for (int i = 0; i < op_attrs(c.op); i++)
        c.attr[i].kind = c.op->attrs[i].kind;
    read_expect(r, "(");
    while (!r->failed && !read_token(r, ")")) {
        read_argument(r, &c);
        if (!read_token(r, ",") && (r->at >= r->end || r->text[r->at] != ')'))
            read_error(r, ", or )");
    }
    r->depth--;
    for (int i = 0; i < op_attrs(c.op); i++)
        if (c.attr[i].kind == ATTR_BODY && c.attr[i].body == NULL)
            read_error(r, "a body in front of this");
    if (r->failed)
        return NONE;
    Ref made = g_node(r->g, c.id, c.arg.at, c.arg.n, c.attr);
    r->failed = made == NONE;
    return made;
}

/* ---- statements ------------------------------------------------------------------------ */

/* ": f32[2,3]", which must be what the op's rule gives. */
static void check_type(Reader *r, Ref made)
{
    DType dtype;
    Type t;
    if (!read_token(r, ":") || read_token(r, "tuple"))
        return;
    const char *word = read_word(r);
    if (!dtype_find(word, &dtype)) {
        read_error(r, "a type before this");
        return;
    }
    if (read_type(r, dtype, &t) && made != NONE && !type_same(&t, type_of(r->g, made)))
        read_error(r, type_text(&r->cx->perm, type_of(r->g, made)));
}

static void place(Reader *r)
{
    skip_space(r);
    Origin *o = NEW(&r->cx->perm, Origin);
    o->span = (Span){r->source, r->at, r->at + 1};
    r->g->origin = o;
}

static void read_definition(Reader *r)
{
    int64_t label;
    if (!read_int(r, &label) || !read_expect(r, "="))
        return;
    Ref made = read_call(r, read_word(r));
    check_type(r, made);
    if (!r->failed)
        set_label(r, label, made);
}

static void read_root(Reader *r, RootKind kind)
{
    skip_space(r);
    bool named = r->at < r->end && r->text[r->at] == '"';
    const char *name = named ? read_string(r) : NULL;
    read_expect(r, "%");
    Ref ref = read_label(r);
    int64_t slot = -1, input = -1;
    if (read_token(r, "slot"))
        read_int(r, &slot);
    if (read_token(r, "input"))
        read_int(r, &input);
    if (slot < -1 || slot > INT32_MAX || input < -1 || input > INT32_MAX)
        read_error(r, "the number of a slot or an input before this");
    if (r->failed)
        return;
    graph_root(r->g, kind, name, ref, (int32_t)slot, (int32_t)input);
    r->g->root.at[r->g->root.n - 1].guarded = read_token(r, "guarded");
}

static void read_statement(Reader *r)
{
    place(r);
    if (read_token(r, "%")) {
        read_definition(r);
        return;
    }
    const char *word = read_word(r);
    if (strcmp(word, "reverse") == 0) {
        r->g->n_primal = (Ref)r->g->node.n;
        return;
    }
    for (int k = ROOT_LOSS; k <= ROOT_OTHER; k++)
        if (strcmp(word, root_kind_name((RootKind)k)) == 0) {
            read_root(r, (RootKind)k);
            return;
        }
    read_error(r, "`%1 = op(...)`, a root or `}`");
}

Graph *read_body(Reader *r)
{
    Reader inner = *r;
    if (++inner.depth > MAX_DEPTH) {
        read_error(r, "less nesting");
        return NULL;
    }
    inner.g = g_body(r->g);
    memset(&inner.label, 0, sizeof inner.label);
    read_expect(&inner, "{");
    while (!inner.failed && !read_token(&inner, "}"))
        read_statement(&inner);
    r->at = inner.at;
    r->failed = inner.failed;
    return inner.g;
}

Graph *graph_read(Ctx *cx, int32_t source)
{
    const Source *s = cx->source.at[source];
    Reader r = {.cx = cx, .text = s->text, .end = s->bytes, .source = source};
    read_expect(&r, "graph");
    const char *name = read_string(&r);
    r.g = graph_new(cx, name);
    read_expect(&r, "{");
    while (!r.failed && !read_token(&r, "}"))
        read_statement(&r);
    skip_space(&r);
    if (!r.failed && r.at < r.end)
        read_error(&r, "nothing more");
    r.g->origin = NULL;
    if (!r.failed)
        return r.g;
    graph_free(r.g);
    return NULL;
}

Graph *graph_read_example(Ctx *cx, const char *example, size_t bytes)
{
    int32_t source = source_add(cx, "example", example, bytes, true);
    const Source *s = cx->source.at[source];
    Reader r = {.cx = cx, .text = s->text, .end = s->bytes, .source = source};
    r.g = graph_new(cx, "example");
    place(&r);
    Ref made = read_call(&r, read_word(&r));
    r.g->origin = NULL;
    if (!r.failed) {
        graph_root(r.g, ROOT_OTHER, "example", made, -1, -1);
        return r.g;
    }
    graph_free(r.g);
    return NULL;
}
