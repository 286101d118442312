/* The verifier: structure, scopes, accumulators and variables. What the kernel
 * may do is told in kernel.h. Types: verify_type.c; memory: verify_access.c. */
#include <stdarg.h>
#include "verify.h"

const char *verify_complain(const Verifier *v, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const char *text = arena_vprintf(v->arena, format, ap);
    va_end(ap);
    if (v->at == 0)
        return text;
    int op = inst_of(v, v->at)->op;
    const char *name = op < N_KOPS ? kop_text((KOp)op) : "?";
    return arena_printf(v->arena, "%s %%%u: %s", name, v->at, text);
}

/* The section that instruction x lies in. */
static KSection section_of(const Kernel *k, Val x)
{
    const KContract *c = &k->con;
    if (k->kind == K_LOOP || x < c->a_from)
        return K_IN_DIMS;
    return x < c->b_from ? K_IN_A : x < c->e_from ? K_IN_B : K_IN_EPILOGUE;
}

bool verify_in_scope(const Verifier *v, Val x)
{
    if (x == 0 || x >= v->at)
        return false;
    KSection s = section_of(v->k, x);
    if (s != K_IN_DIMS && s != v->section)
        return false;
    Val loop = v->loop_of[x];
    if (loop == 0)
        return true;
    for (int i = 0; i < v->depth; i++)
        if (v->loop[i] == loop)
            return true;
    return false;
}

/* ---- operands ------------------------------------------------------------------- */

static bool makes_value(const KInst *i)
{
    switch (kop_class((KOp)i->op)) {
    case K_CLASS_LOOP:
        return false;
    case K_CLASS_MEM:
        return i->op == KI_LOAD;
    case K_CLASS_RED:
        return i->op == KI_FOLD;
    case K_CLASS_VAR:
        return i->op == KI_GET;
    default:
        return i->op != KI_NONE && i->op != KI_DIM;
    }
}

static const char *check_operand(const Verifier *v, Val x, KOp wanted)
{
    if (x == 0 || x >= v->at)
        return verify_complain(v, "operand %%%u is not made before it", x);
    if (!verify_in_scope(v, x))
        return verify_complain(v, "operand %%%u is not in scope here", x);
    const KInst *i = inst_of(v, x);
    if (wanted != KI_NONE && i->op != wanted)
        return verify_complain(v, "operand %%%u is no %s", x,
                               wanted == KI_ACC ? "accumulator" : "variable");
    if (wanted == KI_NONE && !makes_value(i))
        return verify_complain(v, "operand %%%u is no value", x);
    return NULL;
}

static const char *check_operands(const Verifier *v, const KInst *i)
{
    const Val operand[] = {i->a, i->b, i->c};
    KOp first = i->op == KI_INTO || i->op == KI_FOLD ? KI_ACC
                : i->op == KI_GET || i->op == KI_SET ? KI_VAR
                                                     : KI_NONE;
    for (int n = 0; n < kop_args((KOp)i->op); n++) {
        const char *bad = check_operand(v, operand[n], n == 0 ? first : KI_NONE);
        if (bad != NULL)
            return bad;
    }
    return NULL;
}

/* ---- accumulators and variables ----------------------------------------------------- */

/* A loop of one of these kinds between x's scope and here, or 0. */
static Val loop_between(const Verifier *v, Val x, KOp one, KOp other)
{
    for (int i = v->depth - 1; i >= 0 && v->loop[i] > x; i--) {
        KOp op = (KOp)inst_of(v, v->loop[i])->op;
        if (op == one || op == other)
            return v->loop[i];
    }
    return 0;
}

/* Whether a loop opened after acc is around both its last INTO and here. */
static bool fed_again(const Verifier *v, Val acc)
{
    Val into = v->into[acc];
    for (int i = 0; i < v->depth; i++)
        if (v->loop[i] > acc && into > v->loop[i])
            return true;
    return false;
}

static const char *check_state(Verifier *v, const KInst *i)
{
    Val par;
    switch (i->op) {
    case KI_INTO:
        par = loop_between(v, i->a, KI_PAR, KI_PAR);
        if (par != 0)
            return verify_complain(v, "the par loop %%%u lies between it and its accumulator", par);
        if (v->folded[i->a])
            return verify_complain(v, "accumulator %%%u is fed after its fold", i->a);
        v->into[i->a] = v->at;
        return NULL;
    case KI_FOLD:
        if (fed_again(v, i->a))
            return verify_complain(v, "a loop around it feeds accumulator %%%u", i->a);
        v->folded[i->a] = true;
        return NULL;
    case KI_ACC:
        v->folded[v->at] = false;
        return NULL;
    case KI_SET:
        par = loop_between(v, i->a, KI_PAR, KI_RED);
        if (par != 0)
            return verify_complain(v, "the loop %%%u between it and its variable is no seq", par);
        return NULL;
    default:
        return NULL;
    }
}

/* ---- loops ----------------------------------------------------------------------------- */

static const char *check_nest(Verifier *v)
{
    const Kernel *k = v->k;
    for (Val x = 1; x < (Val)k->inst.n; x++) {
        const KInst *i = inst_of(v, x);
        v->at = x;
        if (i->op == KI_NONE || i->op >= N_KOPS || i->dtype >= N_DTYPES)
            return verify_complain(v, "no such instruction or type");
        v->loop_of[x] = v->depth > 0 ? v->loop[v->depth - 1] : 0;
        if (is_loop_op(i->op)) {
            if (v->depth == MAX_NEST)
                return verify_complain(v, "more than %d loops are nested", MAX_NEST);
            v->loop[v->depth++] = x;
        } else if (i->op == KI_END) {
            if (v->depth == 0 || v->loop[v->depth - 1] != (Val)i->aux)
                return verify_complain(v, "the loop it closes is not the innermost one");
            v->depth--;
        }
    }
    v->at = v->depth > 0 ? v->loop[v->depth - 1] : 0;
    return v->depth > 0 ? verify_complain(v, "the loop is not closed") : NULL;
}

static const char *check_loop(Verifier *v, const KInst *i)
{
    if (i->op == KI_END) {
        v->depth--;
        return NULL;
    }
    if (i->reach != K_ALL && (i->reach != K_LIMITED || i->op == KI_SEQ || !v->k->limit.is))
        return verify_complain(v, "it cannot have this limit");
    if (i->imm.i < 0)
        return verify_complain(v, "its extent is negative");
    v->loop[v->depth++] = v->at;
    return NULL;
}

/* ---- contractions ------------------------------------------------------------------------ */

static const char *check_dims(const Verifier *v)
{
    const KContract *c = &v->k->con;
    int seen[4] = {0};
    for (Val x = 1; x < c->a_from; x++) {
        const KInst *i = inst_of(v, x);
        if (i->op == KI_CONST)
            continue;
        if (i->op != KI_DIM)
            return verify_complain(v, "%s before section a", kop_text((KOp)i->op));
        if (i->aux < 0 || i->aux > K_K || i->imm.i < 0)
            return verify_complain(v, "dim %%%u has no such role, or a negative extent", x);
        bool limits = v->k->limit.is && c->n[i->aux] == 1 && i->aux != K_B &&
                      (i->reach == K_LIMITED || (i->reach == K_ZERO && i->aux != K_K));
        if (i->reach != K_ALL && !limits)
            return verify_complain(v, "dim %%%u cannot have this limit", x);
        if (seen[i->aux] >= c->n[i->aux] || c->dim[i->aux][seen[i->aux]] != x)
            return verify_complain(v, "dim %%%u is not listed under its role", x);
        seen[i->aux]++;
    }
    for (int r = 0; r < 4; r++)
        if (seen[r] != c->n[r])
            return verify_complain(v, "a listed dim is missing");
    return NULL;
}

/* The value that section [from, to) gives. */
static const char *check_given(const Verifier *v, const char *name, Val x, Val from, Val to)
{
    const KContract *c = &v->k->con;
    bool head = x > 0 && x < c->a_from;
    if (!head && (x < from || x >= to))
        return verify_complain(v, "section %s gives %%%u, which it does not make", name, x);
    if (!makes_value(inst_of(v, x)))
        return verify_complain(v, "section %s gives %%%u, which is no value", name, x);
    DType given = (DType)inst_of(v, x)->dtype;
    if (c->pairs && given != BF16)
        return verify_complain(v, "section %s gives %s, but pairs are bf16", name,
                               dtype_name(given));
    if (!c->pairs && given != c->dtype)
        return verify_complain(v, "section %s gives %s, but the sum is %s", name, dtype_name(given),
                               dtype_name(c->dtype));
    return NULL;
}

/* What tells whether a value of the epilogue was true everywhere. */
static const char *check_all(const Verifier *v)
{
    const Kernel *k = v->k;
    const KContract *c = &k->con;
    if (c->all == 0)
        return NULL;
    if (c->all_buf < 0 || c->all_buf >= k->buf.n)
        return verify_complain(v, "no buffer b%d", c->all_buf);
    const KBuf *b = &k->buf.at[c->all_buf];
    if (b->dtype != BOOL || b->mode != K_OUT || b->elems < 1)
        return verify_complain(v, "b%d of `all` is no output of bool", c->all_buf);
    for (int i = 0; i < k->access.n; i++)
        if (k->access.at[i].buf == c->all_buf)
            return verify_complain(v, "b%d of `all` is touched otherwise, too", c->all_buf);
    if (c->all < c->e_from || c->all >= c->e_to || !makes_value(inst_of(v, c->all)) ||
        inst_of(v, c->all)->dtype != BOOL)
        return verify_complain(v, "`all` of %%%u, which is no bool of the epilogue", c->all);
    return NULL;
}

static const char *check_contraction(const Verifier *v)
{
    const KContract *c = &v->k->con;
    Val n = (Val)v->k->inst.n;
    if (c->a_from < 1 || c->a_to < c->a_from || c->b_from != c->a_to || c->b_to < c->b_from ||
        c->e_from != c->b_to || c->e_to < c->e_from || c->e_to != n)
        return verify_complain(v, "the sections do not follow one another");
    if (c->dtype != F32 && c->dtype != F64)
        return verify_complain(v, "the sum is %s, not f32 or f64", dtype_name(c->dtype));
    if (c->leaf < 0)
        return verify_complain(v, "the leaf is negative");
    if (c->pairs && (c->dtype != F32 || c->leaf % 2 != 0))
        return verify_complain(v, "pairs have even leaves and a sum in f32");
    if (c->e_from == n || inst_of(v, c->e_from)->op != KI_SUM)
        return verify_complain(v, "the epilogue does not begin with the sum");
    const char *bad = check_dims(v);
    if (bad == NULL)
        bad = check_all(v);
    if (bad == NULL)
        bad = check_given(v, "a", c->a, c->a_from, c->a_to);
    return bad != NULL ? bad : check_given(v, "b", c->b, c->b_from, c->b_to);
}

/* Instructions that this kind of kernel, or this section, does not have. */
static const char *check_place(const Verifier *v, const KInst *i)
{
    KClass class = kop_class((KOp)i->op);
    if (v->k->kind == K_LOOP)
        return i->op == KI_DIM || i->op == KI_SUM ? verify_complain(v, "only in a contraction")
                                                  : NULL;
    if (class == K_CLASS_LOOP || class == K_CLASS_RED || class == K_CLASS_VAR)
        return verify_complain(v, "not in a contraction");
    if (i->op == KI_SUM && v->at != v->k->con.e_from)
        return verify_complain(v, "only at the start of the epilogue");
    if (i->op == KI_DIM && v->section != K_IN_DIMS)
        return verify_complain(v, "only before section a");
    if (i->op == KI_STORE && v->section != K_IN_EPILOGUE)
        return verify_complain(v, "only in the epilogue");
    return NULL;
}

/* ---- the walk ---------------------------------------------------------------------------------
 */

static const char *check_buffers(const Verifier *v)
{
    for (int i = 0; i < v->k->buf.n; i++) {
        const KBuf *b = &v->k->buf.at[i];
        if ((unsigned)b->dtype >= N_DTYPES || (unsigned)b->mode > K_LOCAL || b->elems < 0)
            return verify_complain(v, "buffer b%d has no such type, mode or size", i);
        if (b->mode == K_LOCAL && v->k->kind == K_CONTRACT)
            return verify_complain(v, "buffer b%d: a contraction has no local buffers", i);
    }
    return NULL;
}

static const char *check_limit(const Verifier *v)
{
    const KLimit *l = &v->k->limit;
    if (!l->is)
        return NULL;
    const KBuf *b = l->buf >= 0 && l->buf < v->k->buf.n ? &v->k->buf.at[l->buf] : NULL;
    bool fine = b != NULL && b->mode == K_IN && (b->dtype == I32 || b->dtype == I64) &&
                l->at >= 0 && l->at < b->elems && l->mean >= 1;
    return fine ? NULL : verify_complain(v, "the limit is no element of an integer input");
}

static const char *check_inst(Verifier *v)
{
    const KInst *i = inst_of(v, v->at);
    const char *bad = check_place(v, i);
    if (bad == NULL)
        bad = check_operands(v, i);
    if (bad == NULL)
        bad = verify_types(v, i);
    if (bad == NULL && i->op == KI_INDEX) {
        bool there = i->aux >= 0 && i->aux < v->k->affine.n;
        bad = there ? verify_affine(v, &v->k->affine.at[i->aux])
                    : verify_complain(v, "no expression");
    }
    if (bad == NULL && kop_class((KOp)i->op) == K_CLASS_MEM)
        bad = verify_access(v, i);
    if (bad == NULL && kop_class((KOp)i->op) == K_CLASS_LOOP)
        bad = check_loop(v, i);
    return bad != NULL ? bad : check_state(v, i);
}

const char *kernel_verify(const Kernel *k, Arena *scratch)
{
    size_t n = (size_t)k->inst.n;
    Verifier v = {.k = k,
                  .arena = scratch,
                  .loop_of = NEW_ARRAY(scratch, Val, n),
                  .into = NEW_ARRAY(scratch, Val, n),
                  .folded = NEW_ARRAY(scratch, bool, n),
                  .written = NEW_ARRAY(scratch, bool, k->buf.n)};
    const char *bad = check_buffers(&v);
    if (bad == NULL)
        bad = check_limit(&v);
    if (bad == NULL && k->kind == K_CONTRACT)
        bad = check_contraction(&v);
    if (bad == NULL)
        bad = check_nest(&v);
    if (bad != NULL)
        return bad;
    Val par[MAX_NEST];
    v.grid = kernel_grid(k, par, MAX_NEST);
    for (v.at = 1; v.at < n; v.at++) {
        v.section = section_of(k, v.at);
        bad = check_inst(&v);
        if (bad != NULL)
            return bad;
    }
    return NULL;
}
