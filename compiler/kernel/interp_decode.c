/* From a kernel to the operations of interp.h: registers for values, strips for
 * innermost loops, affine expressions split by what changes along a strip. */
#include <assert.h>
#include <string.h>
#include "denormals.h"
#include "interp.h"

typedef struct Decoder {
    KCode *c;
    const Kernel *k;
    VEC(Val) open;     /* enclosing loops */
    Val strip;         /* the open strip loop, or 0 */
    int varying_role;  /* contraction: the role that moves along a strip, or -1 */
    bool *by_lanes;    /* by Val: accumulator fed inside a RED loop */
    const Val *end_of; /* by Val: a loop's END */
} Decoder;

DType interp_dtype(KMode mode, DType t)
{
    return mode != K_EXACT && dtype_is_float(t) ? F64 : t;
}

RegType interp_type(KMode mode, DType t)
{
    if (!dtype_is_float(t))
        return TI;
    return interp_dtype(mode, t) == F64 ? TD : TF;
}

static const KInst *inst(const Decoder *d, Val v)
{
    return &d->k->inst.at[v];
}

static bool is_loop(const KInst *i)
{
    return kop_class((KOp)i->op) == K_CLASS_LOOP && i->op != KI_END;
}

static const Val *find_ends(const Kernel *k, Arena *arena)
{
    Val *end = NEW_ARRAY(arena, Val, k->inst.n);
    for (int v = 1; v < k->inst.n; v++)
        if (k->inst.at[v].op == KI_END)
            end[k->inst.at[v].aux] = (Val)v;
    return end;
}

/* Whether the loop may run in strips: independent iterations, nothing nested,
 * no variable or lane 0 accumulator of the outside changed. */
static bool runs_in_strips(const Decoder *d, Val loop)
{
    KOp op = (KOp)inst(d, loop)->op;
    if (op == KI_SEQ)
        return false;
    for (Val v = loop + 1; v < d->end_of[loop]; v++) {
        const KInst *i = inst(d, v);
        if (is_loop(i) || (i->op == KI_SET && i->a < loop))
            return false;
        if (i->op == KI_INTO && i->a < loop && op != KI_RED)
            return false;
    }
    return true;
}

/* ---- affine expressions ------------------------------------------------------ */

static bool varies(const Decoder *d, Val v)
{
    const KInst *i = inst(d, v);
    if (d->k->kind == K_CONTRACT)
        return i->op == KI_DIM ? i->aux == d->varying_role : i->op != KI_CONST;
    return d->strip != 0 && v > d->strip;
}

static Affine decode_affine(Decoder *d, const KAff *x)
{
    Arena *arena = d->c->arena;
    Affine out = {.base = x->base,
                  .uniform = NEW_ARRAY(arena, Term, x->n),
                  .varying = NEW_ARRAY(arena, Term, x->n)};
    for (int i = 0; i < x->n; i++) {
        Term t = {d->c->reg_of[x->t[i].v], x->t[i].coef};
        if (varies(d, x->t[i].v)) {
            out.varying[out.n_varying++] = t;
            continue;
        }
        if (x->t[i].v == d->strip)
            out.step = t.coef;
        out.uniform[out.n_uniform++] = t;
    }
    return out;
}

static int32_t decode_access(Decoder *d, const KAccess *x)
{
    KCode *c = d->c;
    const KBuf *b = &d->k->buf.at[x->buf];
    Access a = {.buf = x->buf,
                .n_bounds = x->n_bounds,
                .dtype = b->dtype,
                .elems = b->elems,
                .at = decode_affine(d, &x->at),
                .bound = NEW_ARRAY(c->arena, Bound, x->n_bounds),
                .otherwise = x->otherwise};
    for (int i = 0; i < x->n_bounds; i++)
        a.bound[i] = (Bound){decode_affine(d, &x->bound[i].e), x->bound[i].lo, x->bound[i].hi};
    vec_push(c->arena, &c->access, a);
    return c->access.n - 1;
}

/* ---- loops --------------------------------------------------------------------- */

static void emit(Decoder *d, Op o)
{
    vec_push(d->c->arena, &d->c->op, o);
}

/* Copies value v of the outside to all lanes, unless that has been done. */
static void splat(Decoder *d, Val v, int32_t *outside)
{
    KCode *c = d->c;
    const KInst *i = inst(d, v);
    if (v == 0 || v > d->strip || i->op == KI_CONST || outside[v] >= 0)
        return;
    uint8_t type = (uint8_t)interp_type(c->mode, (DType)i->dtype);
    outside[v] = c->reg_of[v];
    c->reg_of[v] = c->n_regs++;
    emit(d, (Op){.op = X_SPLAT,
                 .type = type,
                 .dtype = (uint8_t)interp_dtype(c->mode, (DType)i->dtype),
                 .r = c->reg_of[v],
                 .a = outside[v]});
}

/* SPLATs for all that the body of the strip loop takes from the outside. */
static void splat_operands(Decoder *d, Val loop, int32_t *outside)
{
    for (Val v = loop + 1; v < d->end_of[loop]; v++) {
        const KInst *i = inst(d, v);
        int args = kop_args((KOp)i->op);
        bool takes_acc = i->op == KI_INTO || i->op == KI_FOLD;
        if (args > 0 && !takes_acc)
            splat(d, i->a, outside);
        if (args > 1)
            splat(d, i->b, outside);
        if (args > 2)
            splat(d, i->c, outside);
    }
}

static void decode_range(Decoder *d, Val from, Val to);

static void decode_loop(Decoder *d, Val loop)
{
    KCode *c = d->c;
    const KInst *i = inst(d, loop);
    c->reg_of[loop] = c->n_regs++;
    int32_t head = c->op.n;
    Op o = {.op = i->op, .r = c->reg_of[loop], .extent = i->imm.i, .down = i->aux != 0};
    o.limited = i->reach != K_ALL;
    emit(d, o);
    int32_t *outside = NULL;
    if (runs_in_strips(d, loop)) {
        d->strip = loop;
        outside = NEW_ARRAY(c->arena, int32_t, loop);
        memset(outside, 0xff, loop * sizeof *outside);
        splat_operands(d, loop, outside);
    }
    Op *h = &c->op.at[head];
    h->strip = outside != NULL;
    h->aux = c->op.n;
    h->b = h->aux - head - 1;
    vec_push(c->arena, &d->open, loop);
    decode_range(d, loop + 1, d->end_of[loop]);
    d->open.n--;
    for (Val v = 0; outside != NULL && v < loop; v++)
        if (outside[v] >= 0)
            c->reg_of[v] = outside[v];
    if (outside != NULL)
        d->strip = 0;
    c->op.at[head].end = c->op.n;
}

/* The innermost RED loop that is open and lies inside the accumulator's scope. */
static Val feeding_loop(const Decoder *d, Val acc)
{
    for (int i = d->open.n - 1; i >= 0 && d->open.at[i] > acc; i--)
        if (inst(d, d->open.at[i])->op == KI_RED)
            return d->open.at[i];
    return 0;
}

/* ---- instructions ---------------------------------------------------------------- */

/* Fields of INTO and FOLD. */
static void decode_acc(Decoder *d, const KInst *i, Op *o)
{
    const KInst *acc = inst(d, i->a);
    o->aux = acc->aux;
    o->extent = k_lanes((DType)acc->dtype);
    if (i->op == KI_INTO) {
        Val red = feeding_loop(d, i->a);
        o->lanes = red != 0;
        o->c = red != 0 ? d->c->reg_of[red] : 0;
        d->by_lanes[i->a] = d->by_lanes[i->a] || red != 0;
    } else {
        o->lanes = d->by_lanes[i->a];
        o->splat = d->strip > i->a;
    }
}

/* The register type that selects the operation. */
static RegType type_of(const Decoder *d, const KInst *i)
{
    DType t = (DType)i->dtype;
    if (i->op == KI_RANDOM)
        return TI;
    if (i->op != KI_SELECT && kop_class((KOp)i->op) <= K_CLASS_MATH && kop_args((KOp)i->op) > 0)
        t = (DType)inst(d, i->a)->dtype;
    return interp_type(d->c->mode, t);
}

static void decode_scalar(Decoder *d, Val v)
{
    KCode *c = d->c;
    const KInst *i = inst(d, v);
    int args = kop_args((KOp)i->op);
    Op o = {.op = i->op,
            .type = (uint8_t)type_of(d, i),
            .dtype = (uint8_t)interp_dtype(c->mode, (DType)i->dtype),
            .r = c->reg_of[v] = c->n_regs++,
            .a = args > 0 ? c->reg_of[i->a] : 0,
            .b = args > 1 ? c->reg_of[i->b] : 0,
            .c = args > 2 ? c->reg_of[i->c] : 0,
            .aux = i->aux};
    if (i->op == KI_CAST || i->op == KI_BITCAST)
        o.from = inst(d, i->a)->dtype;
    if (i->op == KI_LOAD || i->op == KI_STORE)
        o.aux = decode_access(d, &d->k->access.at[i->aux]);
    if (i->op == KI_INTO || i->op == KI_FOLD)
        decode_acc(d, i, &o);
    if (i->op == KI_INDEX) {
        vec_push(c->arena, &c->affine, decode_affine(d, &d->k->affine.at[i->aux]));
        o.aux = c->affine.n - 1;
    }
    emit(d, o);
}

static void decode_range(Decoder *d, Val from, Val to)
{
    KCode *c = d->c;
    for (Val v = from; v < to; v++) {
        const KInst *i = inst(d, v);
        if (is_loop(i)) {
            decode_loop(d, v);
            v = d->end_of[v];
        } else if (i->op == KI_CONST) {
            c->reg_of[v] = c->n_regs++;
            vec_push(c->arena, &c->fill, ((Fill){c->reg_of[v], *i}));
        } else if (i->op == KI_DIM || i->op == KI_SUM) {
            c->reg_of[v] = c->n_regs++;
            if (i->op == KI_SUM)
                c->reg_sum = c->reg_of[v];
        } else {
            decode_scalar(d, v);
        }
    }
}

static void decode_contraction(Decoder *d)
{
    KCode *c = d->c;
    const KContract *con = &d->k->con;
    const Val from[] = {con->a_from, con->b_from, con->e_from};
    const Val to[] = {con->a_to, con->b_to, con->e_to};
    const KRole moves[] = {K_K, K_N, K_N};
    decode_range(d, 1, con->a_from);
    for (int s = 0; s < 3; s++) {
        d->varying_role = (int)moves[s];
        c->section[s] = c->op.n;
        decode_range(d, from[s], to[s]);
    }
    c->section[3] = c->op.n;
    c->reg_a = c->reg_of[con->a];
    c->reg_b = c->reg_of[con->b];
    if (con->all != 0)
        c->reg_all = c->reg_of[con->all];
}

static void fill_constants(KCode *c)
{
    for (int i = 0; i < c->fill.n; i++) {
        Reg *r = &c->reg[c->fill.at[i].reg];
        const KInst *k = &c->fill.at[i].inst;
        RegType type = interp_type(c->mode, (DType)k->dtype);
        const double x = c->flush ? flush_const((DType)k->dtype, k->imm.f) : k->imm.f;
        for (int l = 0; l < STRIP; l++) {
            if (type == TF)
                r->f[l] = (float)x;
            else if (type == TD)
                r->d[l] = x;
            else
                r->i[l] = k->imm.i;
        }
    }
}

KCode *kcode_new(const Kernel *k, KMode mode, Arena *arena)
{
    KCode *c = NEW(arena, KCode);
    *c = (KCode){.mode = mode, .arena = arena, .n_regs = 1, .reg_sum = -1, .reg_all = -1};
    c->flush = mode == K_EXACT && denormals_flushed();
    c->k = k = mode == K_EXACT ? kernel_expand(arena, k, false) : k;
    c->reg_of = NEW_ARRAY(arena, int32_t, k->inst.n);
    Decoder d = {.c = c, .k = k, .varying_role = -1};
    d.by_lanes = NEW_ARRAY(arena, bool, k->inst.n);
    d.end_of = find_ends(k, arena);
    if (k->kind == K_LOOP)
        decode_range(&d, 1, (Val)k->inst.n);
    else
        decode_contraction(&d);
    c->reg = NEW_ARRAY(arena, Reg, c->n_regs);
    c->tan = mode == K_DUAL ? NEW_ARRAY(arena, Reg, c->n_regs) : NULL;
    fill_constants(c);
    return c;
}
