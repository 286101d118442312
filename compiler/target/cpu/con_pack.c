/* Packing of a panel through the operand's access function. */
#include "con.h"

enum {
    MAX_WIDTH = 256,  /* of a panel */
    LONG_SECTION = 12 /* instructions */
};

Lv con_value(Con *c, Side *s)
{
    Gen *g = &c->g;
    for (Val v = s->from; v < s->to; v++)
        gen_inst(g, v);
    Lv x = g->width > 1 ? gen_vec(g, s->value) : gen_get(g, s->value);
    DType t = (DType)g->k->inst.at[s->value].dtype;
    bool same = t == c->p->type || (c->p->type == F32 && (t == F16 || t == BF16));
    return same ? x : gen_alu(g, KI_CAST, t, c->p->type, x, NULL, NULL);
}

static Lv offset(Con *c, Lv elems)
{
    return ir_mul(c->ir, elems, c->p->es);
}

void con_store_packed(Con *c, Lv x, Lv dst, Lv at)
{
    Lv p = ir_at_byte(c->ir, dst, offset(c, at));
    Lv store = LLVMBuildStore(c->ir->b, x, p);
    LLVMSetAlignment(store, (unsigned)c->p->es);
    gen_mark_scratch(c->ir, store);
}

/* ---- a loop over k with the sub-indices of k as its digits -------------------- */

typedef struct KLoop {
    IrLoop l;
    Lv phi[K_MAX_DIMS], digit[K_MAX_DIMS];
} KLoop;

static KLoop open_k(Con *c, const Walk *w, Lv k0, Lv kn)
{
    Ir *ir = c->ir;
    KLoop k;
    Lv start[K_MAX_DIMS];
    walk_decode(w, ir, k0, start);
    Lb before = ir_here(ir);
    k.l = ir_loop(ir, ir_int(ir, 0), kn, 1, false);
    LLVMPositionBuilderBefore(ir->b, k.l.hoist);
    for (int i = 0; i < w->n; i++) {
        k.phi[i] = k.digit[i] = LLVMBuildPhi(ir->b, ir->i64, "");
        LLVMAddIncoming(k.phi[i], &start[i], &before, 1);
    }
    ir_at(ir, LLVMGetSuccessor(k.l.hoist, 0));
    return k;
}

/* Closes a loop whose digits stand `rest` before the next turn's, which is `by` further on. */
static void close_k_by(Con *c, const Walk *w, KLoop *k, Lv rest, Lv by)
{
    Ir *ir = c->ir;
    walk_advance(w, ir, k->digit, rest);
    Lv next = ir_add(ir, k->l.i, by);
    Lb here = ir_here(ir);
    for (int i = 0; i < w->n; i++)
        LLVMAddIncoming(k->phi[i], &k->digit[i], &here, 1);
    LLVMAddIncoming(k->l.i, &next, &here, 1);
    Lv more = LLVMBuildICmp(ir->b, LLVMIntSLT, next, k->l.to, "");
    ir_cond(ir, more, k->l.head, k->l.exit);
    LLVMMoveBasicBlockAfter(k->l.exit, here);
    ir_at(ir, k->l.exit);
}

static void close_k(Con *c, const Walk *w, KLoop *k, Lv by)
{
    close_k_by(c, w, k, by, by);
}

/* Moves the digits to the partner of k, if there is one: i1, or NULL where there always is. */
static Lv to_partner(Con *c, const Walk *w, KLoop *k, Lv kn)
{
    Ir *ir = c->ir;
    Lv has = con_lacks_partner(c->p) ? con_has_partner(c, k->l.i, kn) : NULL;
    Lv by = has != NULL ? LLVMBuildZExt(ir->b, has, ir->i64, "") : ir_int(ir, 1);
    walk_advance(w, ir, k->digit, by);
    return has;
}

/* ---- element by element --------------------------------------------------------- */

/* In pairs: an element is half of a panel's. */
static void store_half(Con *c, Lv x, Lv dst, int width, Lv r, Lv k)
{
    Ir *ir = c->ir;
    Lv pair = ir_add(ir, ir_mul(ir, LLVMBuildLShr(ir->b, k, ir_int(ir, 1), ""), width), r);
    Lv at = ir_add(ir, ir_mul(ir, pair, 2), LLVMBuildAnd(ir->b, k, ir_int(ir, 1), ""));
    Lv top = LLVMBuildLShr(ir->b, LLVMBuildBitCast(ir->b, x, ir->i32, ""), ir_int32(ir, 16), "");
    Lv store = LLVMBuildStore(ir->b, LLVMBuildTrunc(ir->b, top, ir->i16, ""),
                              ir_at_byte(ir, dst, ir_mul(ir, at, 2)));
    LLVMSetAlignment(store, 2);
    gen_mark_scratch(ir, store);
}

/* What the last k of a row is paired with, where it has no partner. */
static void store_no_partner(Con *c, const Side *s, Lv dst, int width, Lv r, Lv kn)
{
    Ir *ir = c->ir;
    if (!c->p->pairs || !con_lacks_partner(c->p))
        return;
    Lv odd = LLVMBuildTrunc(ir->b, kn, ir->i1, ""), no = LLVMConstInt(ir->i1, 0, 0);
    IrIf f = ir_if(ir, odd);
    store_half(c, con_partner(c, s, no, LLVMConstReal(ir->f32, 0)), dst, width, r, kn);
    ir_end_if(ir, &f);
}

static void pack_scalar(Con *c, Side *s, int width, Lv r0, Lv count, Lv k0, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    IrLoop r = ir_loop(ir, ir_int(ir, 0), count, 1, false);
    Lv row[K_MAX_DIMS];
    walk_decode(&s->free, ir, ir_add(ir, r0, r.i), row);
    KLoop k = open_k(c, &s->k, k0, kn);
    gen_scalar(&c->g);
    walk_set(&s->free, &c->g, row);
    walk_set(&s->k, &c->g, k.digit);
    Lv at = ir_add(ir, ir_mul(ir, k.l.i, width), r.i);
    if (c->p->pairs)
        store_half(c, con_value(c, s), dst, width, r.i, k.l.i);
    else
        con_store_packed(c, con_value(c, s), dst, at);
    close_k(c, &s->k, &k, ir_int(ir, 1));
    store_no_partner(c, s, dst, width, r.i, kn);
    ir_loop_end(ir, &r);
}

/* ---- vectors along the panel's width ----------------------------------------------- */

/* A vector of the panel's width: lanes from `first` on, of which [0, split) lie in one run
 * and [split, live) in the next. */
typedef struct Strip {
    Lv here[K_MAX_DIMS], next[K_MAX_DIMS];
    Lv live, split;
    Lv sums, at, mask; /* of a side that is summed up: slot, where they are stored, which */
} Strip;

static Strip strip_at(Con *c, Side *s, Lv r0, Lv count, int at, bool partial)
{
    Ir *ir = c->ir;
    Strip t = {.sums = NULL};
    int n = s->free.n;
    Lv rest = LLVMBuildSub(ir->b, count, ir_int(ir, at), "");
    Lv last = ir_add(ir, count, ir_int(ir, -1)), first = ir_int(ir, at);
    if (partial && at > 0) /* lane 0 must exist */
        first = ir_min(ir, first, last);
    walk_decode(&s->free, ir, ir_add(ir, r0, first), t.here);
    t.live = ir_min(ir, rest, ir_int(ir, c->p->vl));
    t.split = t.live;
    if (n == 0)
        return t;
    t.split = LLVMBuildSub(ir->b, ir_int(ir, s->free.run), t.here[n - 1], "");
    /* Lane `split` is element 0 of the next run. */
    for (int i = 0; i < n; i++)
        t.next[i] = t.here[i];
    t.next[n - 1] = ir_int(ir, s->free.run - 1);
    walk_advance(&s->free, ir, t.next, ir_int(ir, 1));
    t.next[n - 1] = LLVMBuildNeg(ir->b, t.split, "");
    return t;
}

static Lv strip_value(Con *c, Side *s, Lv *digit, KLoop *k, Lv live)
{
    gen_vector(&c->g, c->p->vl, s->free.lane, live);
    walk_set(&s->free, &c->g, digit);
    walk_set(&s->k, &c->g, k->digit);
    return con_value(c, s);
}

/* Both runs of a strip, joined. */
static Lv strip_joined(Con *c, Side *s, Strip *t, KLoop *k)
{
    Ir *ir = c->ir;
    Lv near = strip_value(c, s, t->here, k, ir_min(ir, t->split, t->live));
    gen_vector(&c->g, c->p->vl, s->free.lane, t->split);
    Lv first = c->g.mask; /* lanes of the first run */
    gen_vector(&c->g, c->p->vl, s->free.lane, t->live);
    c->g.mask = LLVMBuildAnd(ir->b, c->g.mask, LLVMBuildNot(ir->b, first, ""), "");
    c->g.from = t->split;
    walk_set(&s->free, &c->g, t->next);
    walk_set(&s->k, &c->g, k->digit);
    Lv far = con_value(c, s);
    return LLVMBuildSelect(ir->b, first, near, far, "");
}

static Lv one_strip(Con *c, Side *s, Strip *t, bool partial, bool joined, KLoop *k)
{
    return joined ? strip_joined(c, s, t, k)
                  : strip_value(c, s, t->here, k, partial ? t->live : NULL);
}

/* ---- sums of what is packed (KContract.side_sum) -------------------------------------------- */

bool con_sums_side(const ConPlan *p, const Side *s)
{
    int side = p->k->con.side_sum;
    return side != 0 && s->is_row == ((side == 1) != p->swap);
}

/* Vectors lie along its free indices, and all of it is met by whoever has the first panel of the
 * other side. */
bool con_can_sum_side(const ConPlan *p)
{
    bool row = con_sums_side(p, &p->rows);
    const Side *s = row ? &p->rows : &p->cols;
    bool along = s->in_place ? s->plain && s->rs == 1 : s->pack == PACK_ROW;
    return p->lanes == NULL && p->n_units > 0 && p->n_batch == 1 && p->n_k > 0 && !p->pairs &&
           !p->window.is && p->type == F32 && p->mach->masked && p->row_reach == K_ALL &&
           p->col_reach == K_ALL && p->k_reach == K_ALL && along && (row || !p->direct) &&
           s->free.run == s->free.total;
}

/* Where they stand after the k before k0: they rest where they are stored. */
static void begin_sums(Con *c, Strip *strip, int width, Lv r0, Lv count, Lv k0)
{
    Ir *ir = c->ir;
    int lanes = c->p->vl;
    Lt f = ir_vec(ir->f32, lanes);
    for (int j = 0; j * lanes < width; j++) {
        Strip *t = &strip[j];
        gen_vector(&c->g, lanes, 0, LLVMBuildSub(ir->b, count, ir_int(ir, j * lanes), ""));
        t->mask = c->g.mask;
        t->at = ir_at_byte(ir, c->g.buf[c->p->k->con.side_sum_buf],
                           offset(c, ir_add(ir, r0, ir_int(ir, j * lanes))));
        t->sums = ir_slot(ir, f, 64);
        gen_scalar(&c->g);
        Lv begun = LLVMBuildICmp(ir->b, LLVMIntNE, k0, ir_int(ir, 0), "");
        Lv none = LLVMConstNull(LLVMTypeOf(t->mask));
        t->mask = LLVMBuildSelect(ir->b, c->leads, t->mask, none, "");
        Lv old = LLVMBuildSelect(ir->b, begun, t->mask, none, "");
        Lv arg[] = {t->at, ir_int32(ir, 4), old, LLVMConstNull(f)};
        Lt type[] = {f, ir->ptr};
        LLVMBuildStore(ir->b, ir_intrinsic(ir, "llvm.masked.load", type, 2, arg, 4), t->sums);
    }
}

static void add_to_sum(Con *c, const Strip *t, Lv x)
{
    Lv sum = LLVMBuildLoad2(c->ir->b, LLVMTypeOf(x), t->sums, "");
    LLVMBuildStore(c->ir->b, gen_alu(&c->g, KI_ADD, F32, F32, sum, x, NULL), t->sums);
}

static void end_sums(Con *c, const Strip *strip, int width)
{
    Ir *ir = c->ir;
    Lt f = ir_vec(ir->f32, c->p->vl), type[] = {f, ir->ptr};
    for (int j = 0; j * c->p->vl < width; j++) {
        Lv arg[] = {LLVMBuildLoad2(ir->b, f, strip[j].sums, ""), strip[j].at, ir_int32(ir, 4),
                    strip[j].mask};
        ir_intrinsic(ir, "llvm.masked.store", type, 2, arg, 4);
    }
}

/* The next panel's elements of this k, which nothing else asks for in time. */
static void prefetch(Con *c, int width, Lv at)
{
    int64_t bytes = (int64_t)width * (c->p->pairs ? 2 : c->p->es);
    for (int64_t b = 0; b < bytes; b += 64)
        con_prefetch(c->ir, ir_off(c->ir, at, b), CACHE_2, false);
}

/* Vectors are stored whole; what they write beyond the panel's row is the next row's,
 * written after it. dst NULL: they are only summed up. */
static void pack_strips(Con *c, Side *s, int width, Strip *strip, bool partial, bool joined, Lv k0,
                        Lv kn, Lv dst, Lv ahead)
{
    Ir *ir = c->ir;
    int lanes = c->p->vl, step = c->p->pairs ? 2 : 1;
    Lv x[MAX_WIDTH];
    KLoop k = open_k(c, &s->k, k0, kn);
    for (int i = 0; i < step && ahead != NULL; i++) {
        Lv at = ir_mul(ir, ir_add(ir, k.l.i, ir_int(ir, i)), s->ks * s->es);
        prefetch(c, width, ir_at_byte(ir, ahead, at));
    }
    for (int j = 0; j * lanes < width; j++) {
        x[j] = one_strip(c, s, &strip[j], partial, joined, &k);
        if (strip[j].sums != NULL)
            add_to_sum(c, &strip[j], x[j]);
    }
    if (c->p->pairs) {
        Lv has = to_partner(c, &s->k, &k, kn);
        for (int j = 0; j * lanes < width; j++) {
            Lv y = one_strip(c, s, &strip[j], partial, joined, &k);
            x[j] = con_pair(c, x[j], has == NULL ? y : con_partner(c, s, has, y));
        }
    }
    Lv row = c->p->pairs ? LLVMBuildLShr(ir->b, k.l.i, ir_int(ir, 1), "") : k.l.i;
    for (int j = 0; j * lanes < width && dst != NULL; j++)
        con_store_packed(c, x[j], dst, ir_add(ir, ir_mul(ir, row, width), ir_int(ir, j * lanes)));
    close_k_by(c, &s->k, &k, ir_int(ir, 1), ir_int(ir, step));
    gen_scalar(&c->g);
}

static void pack_row(Con *c, Side *s, int width, Lv r0, Lv count, Lv k0, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    int lanes = c->p->vl;
    bool partial = width % lanes != 0 || s->free.total % width != 0 || dst == NULL;
    Strip strip[MAX_WIDTH];
    for (int j = 0; j * lanes < width; j++)
        strip[j] = strip_at(c, s, r0, count, j * lanes, partial);
    if (s->free.run == s->free.total) {
        bool asked =
            s->is_row ? c->p->ask[ASK_ROWS].n > 0 : c->p->ask[ASK_COLS].n > 0 && !c->p->cols_once;
        bool far = dst != NULL && con_wide_steps(c->p, s) && !asked;
        Lv ahead = far ? con_address(c, s, ir_add(ir, r0, ir_int(ir, width)), k0) : NULL;
        bool sums = con_sums_side(c->p, s) && (dst == NULL || !s->in_place);
        if (sums)
            begin_sums(c, strip, width, r0, count, k0);
        pack_strips(c, s, width, strip, partial, false, k0, kn, dst, ahead);
        if (sums)
            end_sums(c, strip, width);
        return;
    }
    Lv crossing = LLVMConstInt(ir->i1, 0, 0);
    for (int j = 0; j * lanes < width; j++) {
        Lv over = LLVMBuildICmp(ir->b, LLVMIntSGT, strip[j].live, strip[j].split, "");
        crossing = LLVMBuildOr(ir->b, crossing, over, "");
    }
    IrIf f = ir_if(ir, crossing);
    pack_strips(c, s, width, strip, partial, true, k0, kn, dst, NULL);
    ir_else(ir, &f);
    pack_strips(c, s, width, strip, partial, false, k0, kn, dst, NULL);
    ir_end_if(ir, &f);
}

void con_sum_in_place(Con *c, Side *s, Lv from, Lv to, Lv k0, Lv kn)
{
    Ir *ir = c->ir;
    int width = 4 * c->p->vl;
    IrIf f = ir_if(ir, c->leads);
    IrLoop l = ir_loop(ir, from, to, width, true);
    Lv count = ir_min(ir, LLVMBuildSub(ir->b, to, l.i, ""), ir_int(ir, width));
    pack_row(c, s, width, l.i, count, k0, kn, NULL);
    ir_loop_end(ir, &l);
    ir_end_if(ir, &f);
}

/* ---- vectors along k, transposed ------------------------------------------------------ */

/* Rows [from, to) of a panel that is packed along k; NULL for `live`: all lanes. */
typedef struct RowsOfK {
    Con *c;
    Side *s;
    int width, from, to;
    Lv (*row)[K_MAX_DIMS]; /* of the panel */
    KLoop *k;
} RowsOfK;

static void load_rows(const RowsOfK *r, Lv live, Lv *x)
{
    Con *c = r->c;
    const ConPlan *p = c->p;
    gen_vector(&c->g, p->pairs ? 2 * p->vl : p->vl, r->s->k.lane, live);
    for (int j = r->from; j < r->to; j++) {
        walk_set(&r->s->free, &c->g, r->row[j]);
        walk_set(&r->s->k, &c->g, r->k->digit);
        Lv y = con_value(c, r->s);
        if (p->pairs && live != NULL && con_lacks_partner(p))
            y = con_partner(c, r->s, c->g.mask, y);
        x[j - r->from] = p->pairs ? con_pairs_along(c, y) : y;
    }
    gen_scalar(&c->g);
}

/* Whole vectors where all lanes live. What is done with them is code that both share. */
static void load_rows_either(const RowsOfK *r, Lv whole, Lv live, Lv *x)
{
    Ir *ir = r->c->ir;
    Lv part[MAX_WIDTH];
    int n = r->to - r->from;
    IrIf f = ir_if(ir, whole);
    load_rows(r, NULL, x);
    Lb from_whole = ir_here(ir);
    ir_else(ir, &f);
    load_rows(r, live, part);
    Lb from_part = ir_here(ir);
    ir_end_if(ir, &f);
    for (int j = 0; j < n; j++) {
        Lv both = LLVMBuildPhi(ir->b, LLVMTypeOf(x[j]), "");
        LLVMAddIncoming(both, &x[j], &from_whole, 1);
        LLVMAddIncoming(both, &part[j], &from_part, 1);
        x[j] = both;
    }
}

/* `live` consecutive k of the rows; those beyond `count` repeat the last. Stored k after k, for a
 * vector may reach into the next one. */
static void pack_rows(const RowsOfK *r, Lv whole, Lv live, Lv dst)
{
    Con *c = r->c;
    Ir *ir = c->ir;
    int lanes = c->p->vl, n = r->to - r->from, groups = (n + lanes - 1) / lanes;
    Lv x[MAX_WIDTH + 16];
    if (whole != NULL)
        load_rows_either(r, whole, live, x);
    else
        load_rows(r, live, x);
    for (int j = n; j < groups * lanes; j++)
        x[j] = LLVMGetPoison(LLVMTypeOf(x[0]));
    for (int g = 0; g < groups; g++)
        ir_transpose(c->ir, x + g * lanes, lanes);
    for (int j = 0; j < lanes; j++)
        for (int g = 0; g < groups; g++) {
            Lv k = r->k->l.i;
            if (c->p->pairs)
                k = LLVMBuildLShr(ir->b, k, ir_int(ir, 1), "");
            Lv at = ir_mul(ir, k, r->width);
            at = ir_add(ir, at, ir_int(ir, j * r->width + r->from + g * lanes));
            con_store_packed(c, x[g * lanes + j], dst, at);
        }
}

static void pack_k(Con *c, Side *s, int width, Lv r0, Lv count, Lv k0, Lv kn, Lv dst)
{
    Ir *ir = c->ir;
    Lv row[MAX_WIDTH][K_MAX_DIMS], last = ir_add(ir, count, ir_int(ir, -1));
    for (int j = 0; j < width; j++)
        walk_decode(&s->free, ir, ir_add(ir, r0, ir_min(ir, ir_int(ir, j), last)), row[j]);
    KLoop k = open_k(c, &s->k, k0, kn);
    Lv lanes = ir_int(ir, c->p->pairs ? 2 * c->p->vl : c->p->vl);
    Lv live = ir_min(ir, LLVMBuildSub(ir->b, kn, k.l.i, ""), lanes);
    if (s->k.n > 0) {
        Lv digit = k.digit[s->k.n - 1];
        live = ir_min(ir, live, LLVMBuildSub(ir->b, ir_int(ir, s->k.run), digit, ""));
    }
    Lv whole = NULL; /* long sections have one copy of the code */
    if (s->to - s->from <= LONG_SECTION)
        whole = LLVMBuildICmp(ir->b, LLVMIntEQ, live, lanes, "");
    /* No more at a time than registers hold, unless vectors reach into the next k. */
    int each = width % c->p->vl == 0 ? c->p->vl : width;
    for (int from = 0; from < width; from += each) {
        RowsOfK r = {c, s, width, from, from + each, row, &k};
        pack_rows(&r, whole, live, dst);
    }
    close_k(c, &s->k, &k, live);
}

void con_pack(Con *c, Side *s, int width, Lv r0, Lv count, Lv k0, Lv kn, Lv dst)
{
    switch (s->pack) {
    case PACK_ROW:
        pack_row(c, s, width, r0, count, k0, kn, dst);
        break;
    case PACK_STAGE:
        con_stage_pack(c, s, width, r0, count, k0, kn, dst);
        break;
    case PACK_K:
        pack_k(c, s, width, r0, count, k0, kn, dst);
        break;
    default:
        pack_scalar(c, s, width, r0, count, k0, kn, dst);
        break;
    }
}

static Lv along(Ir *ir, Lv i, int64_t step, int64_t panel, int64_t jump)
{
    if (panel == 0)
        return ir_mul(ir, i, step);
    Lv n = ir_int(ir, panel), in_it = LLVMBuildURem(ir->b, i, n, "");
    Lv before = LLVMBuildUDiv(ir->b, i, n, "");
    return ir_add(ir, ir_mul(ir, before, jump), ir_mul(ir, in_it, step));
}

Lv con_address(Con *c, Side *s, Lv r, Lv k)
{
    Ir *ir = c->ir;
    Lv zero[K_MAX_DIMS];
    for (int i = 0; i < K_MAX_DIMS; i++)
        zero[i] = ir_int(ir, 0);
    gen_scalar(&c->g);
    walk_set(&s->free, &c->g, zero);
    walk_set(&s->k, &c->g, zero);
    const KAccess *a = &c->g.k->access.at[s->access];
    Lv at = gen_affine(&c->g, &a->at);
    at = ir_add(ir, at, along(ir, r, s->rs, s->panel, s->jump));
    at = ir_add(ir, at, along(ir, k, s->ks, s->k_panel, s->k_jump));
    return ir_at_byte(ir, c->g.buf[a->buf], ir_mul(ir, at, s->es));
}
