/* Reads the text that print.c writes. Values and loops may have any names and
 * numbers; the kernel read is numbered anew. What a kernel may do is left to
 * kernel_verify: here text becomes instructions. */
#include <stdlib.h>
#include <string.h>
#include "kernel.h"
#include "ktext.h"

enum { MAX_DEPTH = 32 };

typedef struct Name {
    const char *text; /* "%12" or "i", interned */
    Val v;
} Name;

typedef struct Reader {
    Ctx *cx;
    int32_t file;
    const char *text;
    int32_t from, to; /* the token: bytes [from, to); empty at the end */
    bool failed;      /* one diagnostic a kernel */
    Kernel *k;
    VEC(Name) name;
} Reader;

/* ---- tokens ------------------------------------------------------------------ */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '%';
}

static void next(Reader *r)
{
    int32_t at = r->to;
    const char *s = r->text;
    while (s[at] == ' ' || s[at] == '\n' || s[at] == '\t' || s[at] == '\r' || s[at] == '#') {
        if (s[at] == '#')
            while (s[at + 1] != '\0' && s[at + 1] != '\n')
                at++;
        at++;
    }
    r->from = r->to = at;
    if (is_word(s[at])) {
        bool number = s[at] >= '0' && s[at] <= '9'; /* 1e-05 is one word */
        while (is_word(s[r->to]) ||
               (number && (s[r->to] == '-' || s[r->to] == '+') && s[r->to - 1] == 'e'))
            r->to++;
    } else if (s[at] != '\0') {
        r->to += s[at] == '<' && s[at + 1] == '=' ? 2 : 1;
    }
}

static bool is(const Reader *r, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(r->to - r->from) == n && memcmp(r->text + r->from, word, n) == 0;
}

static const char *word(Reader *r)
{
    return intern_n(&r->cx->names, r->text + r->from, (size_t)(r->to - r->from));
}

static void fail(Reader *r, const char *wanted)
{
    if (r->failed)
        return;
    r->failed = true;
    Span at = {r->file, r->from, r->to};
    if (r->from == r->to)
        diag_error(r->cx, E0190, at, "the text ends where %s is expected", wanted);
    else
        diag_error(r->cx, E0190, at, "%s is expected, not `%s`", wanted, word(r));
}

/* Another complaint, about the bytes [from, to). */
static void refuse(Reader *r, int32_t from, int32_t to, const char *text)
{
    if (!r->failed)
        diag_error(r->cx, E0190, (Span){r->file, from, to}, "%s", text);
    r->failed = true;
}

static bool accept(Reader *r, const char *what)
{
    if (r->failed || !is(r, what))
        return false;
    next(r);
    return true;
}

static void expect(Reader *r, const char *what)
{
    if (!accept(r, what))
        fail(r, arena_printf(&r->cx->perm, "`%s`", what));
}

static bool at_digit(const Reader *r)
{
    return r->from < r->to && r->text[r->from] >= '0' && r->text[r->from] <= '9';
}

/* An integer without sign, at most `limit`. */
static uint64_t natural(Reader *r, uint64_t limit)
{
    uint64_t n = 0;
    if (r->failed || !at_digit(r)) {
        fail(r, "an integer");
        return 0;
    }
    for (int32_t i = r->from; i < r->to; i++) {
        uint64_t digit = (uint64_t)(r->text[i] - '0');
        if (digit > 9 || n > (limit - digit) / 10) {
            fail(r, digit > 9 ? "an integer" : "a smaller integer");
            return 0;
        }
        n = 10 * n + digit;
    }
    next(r);
    return n;
}

static int64_t size(Reader *r)
{
    return (int64_t)natural(r, INT64_MAX);
}

static int64_t signed_integer(Reader *r)
{
    bool minus = accept(r, "-");
    uint64_t n = natural(r, INT64_MAX + (uint64_t)minus);
    return (int64_t)(minus ? -n : n);
}

static double number(Reader *r, DType t)
{
    bool minus = accept(r, "-");
    double x = 0;
    float f = 0;
    size_t n = (size_t)(r->to - r->from);
    if (is(r, "nan"))
        x = strtod("nan", NULL);
    else if (is(r, "inf"))
        x = strtod("inf", NULL);
    else if (!at_digit(r) || !(t == F64 ? read_double(r->text + r->from, n, &x)
                                        : read_float(r->text + r->from, n, &f)))
        fail(r, "a number");
    else if (t != F64)
        x = f;
    if (!r->failed)
        next(r);
    return minus ? -x : x;
}

static DType dtype(Reader *r)
{
    DType t = F32;
    if (r->failed || !dtype_find(word(r), &t))
        fail(r, "an element type");
    else
        next(r);
    return t;
}

/* Position of the word in a table, with what it is called in a message. */
static int choice(Reader *r, const char *const *table, int n, const char *wanted)
{
    for (int i = 0; i < n; i++)
        if (accept(r, table[i]))
            return i;
    fail(r, wanted);
    return 0;
}

/* ---- values --------------------------------------------------------------------- */

static Val push(Reader *r, KInst i)
{
    vec_push(r->k->arena, &r->k->inst, i);
    return (Val)r->k->inst.n - 1;
}

static void bind(Reader *r, const char *name, Val v)
{
    vec_push(&r->cx->scratch, &r->name, ((Name){name, v}));
}

/* The latest of that name; 0 after a report. */
static Val value(Reader *r)
{
    const char *name = r->failed ? "" : word(r);
    for (int i = r->name.n - 1; !r->failed && i >= 0; i--) {
        if (r->name.at[i].text == name) {
            next(r);
            return r->name.at[i].v;
        }
    }
    fail(r, "a value or index that has been made");
    return 0;
}

/* ["-"] [INT "*"] VALUE or INT, joined by + and -. */
static KAff affine(Reader *r)
{
    KAff x = {0};
    bool minus = accept(r, "-"), constant = false;
    do {
        uint64_t n = 1;
        bool counted = at_digit(r);
        if (counted)
            n = natural(r, INT64_MAX + (uint64_t)minus);
        int64_t coef = (int64_t)(minus ? -n : n);
        if (counted && !accept(r, "*")) {
            if (constant)
                fail(r, "an index (there is a constant already)");
            constant = true;
            x.base = coef;
        } else {
            int32_t from = r->from, to = r->to;
            Val v = value(r);
            for (int i = 0; i < x.n; i++)
                if (x.t[i].v == v)
                    refuse(r, from, to, "the index occurs twice in one expression");
            if (x.n == K_MAX_TERMS)
                refuse(r, from, to, "an expression has too many terms");
            if (!r->failed)
                x = k_aff_add(x, k_aff_val(v, coef));
        }
        minus = is(r, "-");
    } while (!r->failed && (accept(r, "+") || accept(r, "-")));
    return x;
}

/* bN[affine] [if INT <= affine < INT, ...] [else NUMBER] */
static int32_t access(Reader *r, bool load)
{
    Kernel *k = r->k;
    KAccess a = {0};
    VEC(KBound) bound = {0};
    const char *name = r->failed ? "" : word(r);
    for (a.buf = 0; a.buf < k->buf.n; a.buf++)
        if (strcmp(name, arena_printf(&r->cx->scratch, "b%d", a.buf)) == 0)
            break;
    if (a.buf == k->buf.n) {
        fail(r, "a buffer of this kernel");
        return 0;
    }
    next(r);
    expect(r, "[");
    a.at = affine(r);
    expect(r, "]");
    if (accept(r, "if")) {
        do {
            KBound b = {.lo = signed_integer(r)};
            expect(r, "<=");
            b.e = affine(r);
            expect(r, "<");
            b.hi = signed_integer(r);
            vec_push(k->arena, &bound, b);
        } while (!r->failed && is(r, ",") && r->text[r->to + 1] != '%' && accept(r, ","));
        if (load) {
            expect(r, "else");
            a.otherwise = number(r, F64);
        }
    }
    a.bound = bound.at;
    a.n_bounds = bound.n;
    vec_push(k->arena, &k->access, a);
    return k->access.n - 1;
}

/* ---- instructions ----------------------------------------------------------------- */

static KOp operation(Reader *r)
{
    for (int op = KI_CONST; op < N_KOPS && !r->failed; op++)
        if (kop_class((KOp)op) != K_CLASS_LOOP && accept(r, kop_text((KOp)op)))
            return (KOp)op;
    fail(r, "an instruction");
    return KI_NONE;
}

static void operands(Reader *r, KInst *i)
{
    Val *operand[] = {&i->a, &i->b, &i->c};
    for (int n = 0; n < kop_args((KOp)i->op); n++) {
        if (n > 0)
            expect(r, ",");
        *operand[n] = value(r);
    }
}

/* NAME ":" dtype "=" op ... */
static void definition(Reader *r)
{
    const char *name = word(r);
    next(r);
    expect(r, ":");
    KInst i = {.dtype = (uint8_t)dtype(r)};
    expect(r, "=");
    i.op = (uint8_t)operation(r);
    switch (i.op) {
    case KI_CONST:
        if (dtype_is_float((DType)i.dtype))
            i.imm.f = number(r, (DType)i.dtype);
        else
            i.imm.i = signed_integer(r);
        break;
    case KI_INDEX:
        vec_push(r->k->arena, &r->k->affine, affine(r));
        i.aux = r->k->affine.n - 1;
        break;
    case KI_LOAD:
        i.aux = access(r, true);
        break;
    case KI_ACC:
        i.aux = (int32_t)operation(r);
        break;
    case KI_STORE:
    case KI_INTO:
    case KI_SET:
    case KI_DIM:
        fail(r, "an instruction that makes a value");
        break;
    default:
        operands(r, &i);
        break;
    }
    if (!r->failed)
        bind(r, name, push(r, i));
}

/* The dtype of a statement is that of its last operand. */
static void statement(Reader *r, KOp op)
{
    KInst i = {.op = (uint8_t)op};
    if (op == KI_STORE) {
        i.aux = access(r, false);
        expect(r, ",");
    }
    operands(r, &i);
    Val last = i.b != 0 ? i.b : i.a;
    if (r->failed)
        return;
    i.dtype = r->k->inst.at[last].dtype;
    push(r, i);
}

static void block(Reader *r, int depth);

/* par|seq|red NAME "<" INT ["down"] "{" ... "}" */
static void loop(Reader *r, KOp op, int depth)
{
    const char *name = word(r);
    if (depth == MAX_DEPTH)
        refuse(r, r->from, r->to, "too many loops are nested");
    next(r);
    expect(r, "<");
    KInst i = {.op = (uint8_t)op, .dtype = I64, .imm.i = size(r)};
    i.aux = op == KI_SEQ && accept(r, "down");
    expect(r, "{");
    if (r->failed)
        return;
    Val v = push(r, i);
    bind(r, name, v);
    block(r, depth + 1);
    expect(r, "}");
    push(r, (KInst){.op = KI_END, .aux = (int32_t)v});
}

static void dim(Reader *r)
{
    int32_t from = r->from, to = r->to;
    KRole role = (KRole)choice(r, krole_text, 4, "b, m, n or k");
    const char *name = r->failed ? "" : word(r);
    next(r);
    expect(r, "<");
    int64_t extent = size(r);
    if (r->k->kind != K_CONTRACT || r->k->section != K_IN_DIMS || r->k->con.n[role] == K_MAX_DIMS)
        refuse(r, from, to, "a dim that is not at the head of a contraction, or one too many");
    if (!r->failed)
        bind(r, name, k_dim(r->k, role, extent));
}

/* Statements up to a closing brace, or up to `give` or a section's name. */
static void block(Reader *r, int depth)
{
    const bool head = r->k->kind == K_CONTRACT && r->k->section == K_IN_DIMS;
    while (!r->failed && !is(r, "}") && !is(r, "give")) {
        if (head && (is(r, "a") || is(r, "b") || is(r, "epilogue")))
            return;
        if (r->text[r->from] == '%')
            definition(r);
        else if (accept(r, "par"))
            loop(r, KI_PAR, depth);
        else if (accept(r, "seq"))
            loop(r, KI_SEQ, depth);
        else if (accept(r, "red"))
            loop(r, KI_RED, depth);
        else if (accept(r, "store"))
            statement(r, KI_STORE);
        else if (accept(r, "into"))
            statement(r, KI_INTO);
        else if (accept(r, "set"))
            statement(r, KI_SET);
        else if (accept(r, "dim"))
            dim(r);
        else
            fail(r, "a statement");
    }
}

/* ---- kernels ------------------------------------------------------------------------- */

static void buffers(Reader *r)
{
    while (!r->failed && r->text[r->from] == 'b' && r->to - r->from > 1) {
        if (!is(r, arena_printf(&r->cx->scratch, "b%d", r->k->buf.n)))
            fail(r, arena_printf(&r->cx->perm, "b%d", r->k->buf.n));
        next(r);
        expect(r, ":");
        KBufMode mode = (KBufMode)choice(r, kmode_text, 4, "in, out, inout or local");
        DType t = dtype(r);
        expect(r, "[");
        int64_t elems = size(r);
        expect(r, "]");
        k_buf(r->k, t, elems, mode);
    }
}

/* NAME "{" ... ["give" VALUE] "}"; gives the value, or 0 without `give`. */
static Val section(Reader *r, const char *name, bool gives)
{
    Val v = 0;
    expect(r, name);
    expect(r, "{");
    block(r, 0);
    if (gives) {
        expect(r, "give");
        v = value(r);
    }
    expect(r, "}");
    return v;
}

static void contraction(Reader *r)
{
    Kernel *k = r->k;
    KContract *c = &k->con;
    if (accept(r, "leaf"))
        c->leaf = size(r);
    block(r, 0);
    k_section_a(k);
    c->a = section(r, "a", true);
    k_section_b(k, c->a);
    c->b = section(r, "b", true);
    c->b_to = c->e_from = (Val)k->inst.n;
    k->section = K_IN_EPILOGUE;
    int32_t from = r->from, to = r->to;
    section(r, "epilogue", false);
    bool has_sum = (int)c->e_from < k->inst.n && k->inst.at[c->e_from].op == KI_SUM;
    if (!r->failed && !has_sum)
        refuse(r, from, to, "the epilogue does not begin with its sum");
    if (has_sum)
        c->dtype = (DType)k->inst.at[c->e_from].dtype;
}

Kernel *kernel_read(Ctx *cx, Arena *arena, int32_t source)
{
    ArenaMark mark = arena_mark(&cx->scratch);
    Reader r = {.cx = cx, .file = source, .text = cx->source.at[source]->text};
    next(&r);
    static const char *const kind[] = {[K_LOOP] = "loop", [K_CONTRACT] = "contract"};
    KKind which = (KKind)choice(&r, kind, 2, "loop or contract");
    r.k = kernel_new(arena, which, r.failed ? "" : word(&r));
    next(&r);
    expect(&r, "{");
    buffers(&r);
    if (which == K_CONTRACT)
        contraction(&r);
    else
        block(&r, 0);
    expect(&r, "}");
    if (!r.failed && r.from < r.to)
        fail(&r, "the end");
    if (!r.failed)
        k_finish(r.k);
    arena_reset(&cx->scratch, mark);
    return r.failed ? NULL : r.k;
}
