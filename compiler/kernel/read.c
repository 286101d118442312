/* Reads the text that print.c writes. Values and loops may have any names and
 * numbers; the kernel read is numbered anew. What a kernel may do is left to
 * kernel_verify: here text becomes instructions. */
#include <string.h>
#include "ktext.h"
#include "read.h"

enum { MAX_DEPTH = 32 };

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
    const char *name = r->failed ? "" : ktoken_word(r);
    for (int i = r->name.n - 1; !r->failed && i >= 0; i--) {
        if (r->name.at[i].text == name) {
            ktoken_next(r);
            return r->name.at[i].v;
        }
    }
    ktoken_fail(r, "a value or index that has been made");
    return 0;
}

/* ["-"] [INT "*"] VALUE or INT, joined by + and -. */
static KAff affine(Reader *r)
{
    KAff x = {0};
    bool minus = ktoken_accept(r, "-"), constant = false;
    do {
        uint64_t n = 1;
        bool counted = ktoken_at_digit(r);
        if (counted)
            n = ktoken_natural(r, INT64_MAX + (uint64_t)minus);
        int64_t coef = (int64_t)(minus ? -n : n);
        if (counted && !ktoken_accept(r, "*")) {
            if (constant)
                ktoken_fail(r, "an index (there is a constant already)");
            constant = true;
            x.base = coef;
        } else {
            int32_t from = r->from, to = r->to;
            Val v = value(r);
            for (int i = 0; i < x.n; i++)
                if (x.t[i].v == v)
                    ktoken_refuse(r, from, to, "the index occurs twice in one expression");
            if (x.n == K_MAX_TERMS)
                ktoken_refuse(r, from, to, "an expression has too many terms");
            if (!r->failed)
                x = k_aff_add(x, k_aff_val(v, coef));
        }
        minus = ktoken_is(r, "-");
    } while (!r->failed && (ktoken_accept(r, "+") || ktoken_accept(r, "-")));
    return x;
}

/* bN; -1 after a report. */
static int32_t buffer(Reader *r)
{
    const char *name = r->failed ? "" : ktoken_word(r);
    for (int32_t i = 0; i < r->k->buf.n; i++)
        if (strcmp(name, arena_printf(&r->cx->scratch, "b%d", i)) == 0) {
            ktoken_next(r);
            return i;
        }
    ktoken_fail(r, "a buffer of this kernel");
    return -1;
}

/* bN[affine] [if INT <= affine < INT, ...] [else NUMBER] */
static int32_t access(Reader *r, bool load)
{
    Kernel *k = r->k;
    KAccess a = {0};
    VEC(KBound) bound = {0};
    a.buf = buffer(r);
    if (r->failed)
        return 0;
    ktoken_expect(r, "[");
    a.at = affine(r);
    ktoken_expect(r, "]");
    if (ktoken_accept(r, "if")) {
        do {
            KBound b = {.lo = ktoken_integer(r)};
            ktoken_expect(r, "<=");
            b.e = affine(r);
            ktoken_expect(r, "<");
            b.hi = ktoken_integer(r);
            vec_push(k->arena, &bound, b);
        } while (!r->failed && ktoken_is(r, ",") && r->text[r->to + 1] != '%' &&
                 ktoken_accept(r, ","));
        if (load) {
            ktoken_expect(r, "else");
            a.otherwise = ktoken_number(r, F64);
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
        if (kop_class((KOp)op) != K_CLASS_LOOP && ktoken_accept(r, kop_text((KOp)op)))
            return (KOp)op;
    ktoken_fail(r, "an instruction");
    return KI_NONE;
}

static void operands(Reader *r, KInst *i)
{
    Val *operand[] = {&i->a, &i->b, &i->c};
    for (int n = 0; n < kop_args((KOp)i->op); n++) {
        if (n > 0)
            ktoken_expect(r, ",");
        *operand[n] = value(r);
    }
}

/* NAME ":" dtype "=" op ... */
static void definition(Reader *r)
{
    const char *name = ktoken_word(r);
    ktoken_next(r);
    ktoken_expect(r, ":");
    KInst i = {.dtype = (uint8_t)ktoken_dtype(r)};
    ktoken_expect(r, "=");
    i.op = (uint8_t)operation(r);
    switch (i.op) {
    case KI_CONST:
        if (dtype_is_float((DType)i.dtype))
            i.imm.f = ktoken_number(r, (DType)i.dtype);
        else
            i.imm.i = ktoken_integer(r);
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
        ktoken_fail(r, "an instruction that makes a value");
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
        ktoken_expect(r, ",");
    }
    operands(r, &i);
    Val last = i.b != 0 ? i.b : i.a;
    if (r->failed)
        return;
    i.dtype = r->k->inst.at[last].dtype;
    push(r, i);
}

/* ", limit", ", zero from limit" or nothing */
static uint8_t reach(Reader *r)
{
    if (!ktoken_accept(r, ","))
        return K_ALL;
    bool zero = ktoken_accept(r, "zero");
    if (zero)
        ktoken_expect(r, "from");
    ktoken_expect(r, "limit");
    return zero ? K_ZERO : K_LIMITED;
}

static void block(Reader *r, int depth);

/* par|seq|red NAME "<" INT ["down"] "{" ... "}" */
static void loop(Reader *r, KOp op, int depth)
{
    const char *name = ktoken_word(r);
    if (depth == MAX_DEPTH)
        ktoken_refuse(r, r->from, r->to, "too many loops are nested");
    ktoken_next(r);
    ktoken_expect(r, "<");
    KInst i = {.op = (uint8_t)op, .dtype = I64, .imm.i = ktoken_size(r)};
    i.reach = reach(r);
    i.aux = op == KI_SEQ && ktoken_accept(r, "down");
    ktoken_expect(r, "{");
    if (r->failed)
        return;
    Val v = push(r, i);
    bind(r, name, v);
    block(r, depth + 1);
    ktoken_expect(r, "}");
    push(r, (KInst){.op = KI_END, .aux = (int32_t)v});
}

static void dim(Reader *r)
{
    int32_t from = r->from, to = r->to;
    KRole role = (KRole)ktoken_choice(r, krole_text, 4, "b, m, n or k");
    const char *name = r->failed ? "" : ktoken_word(r);
    ktoken_next(r);
    ktoken_expect(r, "<");
    int64_t extent = ktoken_size(r);
    if (r->k->kind != K_CONTRACT || r->k->section != K_IN_DIMS || r->k->con.n[role] == K_MAX_DIMS)
        ktoken_refuse(r, from, to,
                      "a dim that is not at the head of a contraction, or one too many");
    uint8_t far = reach(r);
    if (r->failed)
        return;
    Val v = k_dim(r->k, role, extent);
    r->k->inst.at[v].reach = far;
    bind(r, name, v);
}

/* Statements up to a closing brace, or up to `give` or a section's name. */
static void block(Reader *r, int depth)
{
    const bool head = r->k->kind == K_CONTRACT && r->k->section == K_IN_DIMS;
    while (!r->failed && !ktoken_is(r, "}") && !ktoken_is(r, "give")) {
        if (head && (ktoken_is(r, "a") || ktoken_is(r, "b") || ktoken_is(r, "epilogue")))
            return;
        if (r->text[r->from] == '%')
            definition(r);
        else if (ktoken_accept(r, "par"))
            loop(r, KI_PAR, depth);
        else if (ktoken_accept(r, "seq"))
            loop(r, KI_SEQ, depth);
        else if (ktoken_accept(r, "red"))
            loop(r, KI_RED, depth);
        else if (ktoken_accept(r, "store"))
            statement(r, KI_STORE);
        else if (ktoken_accept(r, "into"))
            statement(r, KI_INTO);
        else if (ktoken_accept(r, "set"))
            statement(r, KI_SET);
        else if (ktoken_accept(r, "dim"))
            dim(r);
        else
            ktoken_fail(r, "a statement");
    }
}

/* ---- kernels ------------------------------------------------------------------------- */

static void buffers(Reader *r)
{
    while (!r->failed && r->text[r->from] == 'b' && r->to - r->from > 1) {
        if (!ktoken_is(r, arena_printf(&r->cx->scratch, "b%d", r->k->buf.n)))
            ktoken_fail(r, arena_printf(&r->cx->perm, "b%d", r->k->buf.n));
        ktoken_next(r);
        ktoken_expect(r, ":");
        KBufMode mode = (KBufMode)ktoken_choice(r, kmode_text, 4, "in, out, inout or local");
        DType t = ktoken_dtype(r);
        ktoken_expect(r, "[");
        int64_t elems = ktoken_size(r);
        ktoken_expect(r, "]");
        k_buf(r->k, t, elems, mode);
    }
}

/* bN[INT] + INT mean INT */
static void limit(Reader *r)
{
    KLimit *l = &r->k->limit;
    l->is = true;
    l->buf = buffer(r);
    ktoken_expect(r, "[");
    l->at = ktoken_integer(r);
    ktoken_expect(r, "]");
    ktoken_expect(r, "+");
    l->plus = ktoken_integer(r);
    ktoken_expect(r, "mean");
    l->mean = ktoken_size(r);
}

/* NAME "{" ... ["give" VALUE] "}"; gives the value, or 0 without `give`. */
static Val section(Reader *r, const char *name, bool gives)
{
    Val v = 0;
    ktoken_expect(r, name);
    ktoken_expect(r, "{");
    block(r, 0);
    if (gives) {
        ktoken_expect(r, "give");
        v = value(r);
    }
    ktoken_expect(r, "}");
    return v;
}

static void contraction(Reader *r)
{
    Kernel *k = r->k;
    KContract *c = &k->con;
    if (ktoken_accept(r, "leaf"))
        c->leaf = ktoken_size(r);
    c->pairs = ktoken_accept(r, "pairs");
    block(r, 0);
    k_section_a(k);
    c->a = section(r, "a", true);
    k_section_b(k, c->a);
    c->b = section(r, "b", true);
    c->b_to = c->e_from = (Val)k->inst.n;
    k->section = K_IN_EPILOGUE;
    int32_t from = r->from, to = r->to;
    section(r, "epilogue", false);
    if (ktoken_accept(r, "all")) {
        c->all_buf = buffer(r);
        ktoken_expect(r, ",");
        c->all = value(r);
    }
    bool has_sum = (int)c->e_from < k->inst.n && k->inst.at[c->e_from].op == KI_SUM;
    if (!r->failed && !has_sum)
        ktoken_refuse(r, from, to, "the epilogue does not begin with its sum");
    if (has_sum)
        c->dtype = (DType)k->inst.at[c->e_from].dtype;
}

Kernel *kernel_read(Ctx *cx, Arena *arena, int32_t source)
{
    ArenaMark mark = arena_mark(&cx->scratch);
    Reader r = {.cx = cx, .file = source, .text = cx->source.at[source]->text};
    ktoken_next(&r);
    static const char *const kind[] = {[K_LOOP] = "loop", [K_CONTRACT] = "contract"};
    KKind which = (KKind)ktoken_choice(&r, kind, 2, "loop or contract");
    r.k = kernel_new(arena, which, r.failed ? "" : ktoken_word(&r));
    ktoken_next(&r);
    ktoken_expect(&r, "{");
    buffers(&r);
    if (ktoken_accept(&r, "limit"))
        limit(&r);
    if (which == K_CONTRACT)
        contraction(&r);
    else
        block(&r, 0);
    ktoken_expect(&r, "}");
    if (!r.failed && r.from < r.to)
        ktoken_fail(&r, "the end");
    if (!r.failed)
        k_finish(r.k);
    arena_reset(&cx->scratch, mark);
    return r.failed ? NULL : r.k;
}
