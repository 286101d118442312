/* The interpreter: loops and runs. Three modes over the same kernels; decoding
 * is in interp_decode.c, arithmetic in interp_alu.c, interp_dual.c, interp_acc.c,
 * memory in interp_mem.c, contractions in interp_contract.c. */
#include <assert.h>
#include <string.h>
#include "interp.h"

/* The index of `n` iterations from `first` on. */
static void set_index(Reg *r, int64_t first, int n)
{
    for (int l = 0; l < n; l++)
        r->i[l] = first + l;
}

static void run_loop(Machine *m, const Op *o)
{
    Reg *index = &m->code->reg[o->r];
    const int64_t extent = o->limited && m->limit < o->extent ? m->limit : o->extent;
    if (extent <= 0)
        return;
    if (o->strip) {
        int widest = extent < STRIP ? (int)extent : STRIP;
        interp_ops(m, o->aux - o->b, o->aux, widest); /* the SPLATs */
        for (int64_t i = 0; i < extent; i += STRIP) {
            int n = extent - i < STRIP ? (int)(extent - i) : STRIP;
            set_index(index, i, n);
            interp_ops(m, o->aux, o->end, n);
        }
        return;
    }
    for (int64_t i = 0; i < extent; i++) {
        index->i[0] = o->down ? extent - 1 - i : i;
        interp_ops(m, o->aux, o->end, 1);
    }
}

/* Variable a takes b. */
static void set_var(Machine *m, const Op *o, int n)
{
    Reg *r = m->code->reg, *t = m->code->tan;
    size_t each = o->type == TF ? sizeof(float) : sizeof(double);
    memcpy(&r[o->a], &r[o->b], (size_t)n * each);
    if (t != NULL)
        memcpy(&t[o->a], &t[o->b], (size_t)n * sizeof(double));
}

static void index_value(Machine *m, const Op *o, int n)
{
    KCode *c = m->code;
    int64_t *to = c->reg[o->r].i;
    interp_affine(&c->affine.at[o->aux], c->reg, n, to);
    for (int l = 0; l < n; l++)
        to[l] = interp_wrap((DType)o->dtype, to[l]);
}

void interp_ops(Machine *m, int32_t from, int32_t to, int n)
{
    KCode *c = m->code;
    for (int32_t pc = from; pc < to; pc++) {
        const Op *o = &c->op.at[pc];
        switch (o->op) {
        case KI_PAR:
        case KI_SEQ:
        case KI_RED:
            run_loop(m, o);
            pc = o->end - 1;
            break;
        case KI_LOAD:
            interp_load(m, o, n);
            break;
        case KI_STORE:
            interp_store(m, o, n);
            break;
        case KI_INDEX:
            index_value(m, o, n);
            break;
        case KI_ACC:
            interp_acc(m, o);
            break;
        case KI_INTO:
            interp_into(m, o, n);
            break;
        case KI_FOLD:
            interp_fold(m, o, n);
            break;
        case KI_SET:
            set_var(m, o, n);
            break;
        default:
            interp_alu(o, c->reg, n);
            if (c->flush && o->op == KI_BITCAST)
                interp_flush((DType)o->dtype, &c->reg[o->r], n);
            if (c->tan != NULL)
                interp_tangent(o, c->reg, c->tan, n);
            break;
        }
    }
}

/* Scratch for the LOCAL buffers, full of NaN: nobody may read what has not been
 * written. */
static void local_memory(Machine *m, Arena *scratch)
{
    const Kernel *k = m->code->k;
    KMode mode = m->code->mode;
    for (int i = 0; i < k->buf.n; i++) {
        const KBuf *b = &k->buf.at[i];
        if (b->mode != K_LOCAL)
            continue;
        int each = mode == K_EXACT ? dtype_bytes(b->dtype) : (int)sizeof(double);
        size_t bytes = (size_t)b->elems * (size_t)each;
        m->mem[i].data = memset(arena_alloc(scratch, bytes), 0xff, bytes);
        m->mem[i].tangent = mode == K_DUAL ? NEW_ARRAY(scratch, double, b->elems) : NULL;
    }
}

static int64_t limit_of(const Machine *m)
{
    const KLimit *l = &m->code->k->limit;
    const char *data = m->mem[l->buf].data;
    bool narrow = m->code->mode == K_EXACT && m->code->k->buf.at[l->buf].dtype == I32;
    int64_t wide = 0;
    int32_t x = 0;
    if (narrow)
        memcpy(&x, data + l->at * (int64_t)sizeof x, sizeof x);
    else
        memcpy(&wide, data + l->at * (int64_t)sizeof wide, sizeof wide);
    int64_t limit = (narrow ? x : wide) + l->plus;
    return limit < 1 ? 1 : limit;
}

void kcode_run(KCode *c, const KMem *mem, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    const Kernel *k = c->k;
    Machine m = {.code = c, .mem = NEW_ARRAY(scratch, KMem, k->buf.n)};
    for (int i = 0; i < k->buf.n; i++)
        m.mem[i] = mem[i];
    if (k->limit.is)
        m.limit = limit_of(&m);
    local_memory(&m, scratch);
    if (k->kind == K_LOOP)
        interp_ops(&m, 0, c->op.n, 1);
    else
        interp_contract(&m, scratch);
    arena_reset(scratch, mark);
}

void kernel_run(const Kernel *k, KMode mode, const KMem *mem, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    kcode_run(kcode_new(k, mode, scratch), mem, scratch);
    arena_reset(scratch, mark);
}
