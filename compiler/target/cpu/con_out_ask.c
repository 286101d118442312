/* What an epilogue meets of far memory is asked for by its tile, a line after the other. */
#include "con.h"

/* Bytes from one of the tile's lines to the next, and along them: 0, where that differs. */
static int64_t stride_of(const ConPlan *p, const KAccess *a)
{
    const Walk *lines = p->turned ? &p->out_cols : &p->out_rows;
    if (lines->lane == 0 || lines->run != lines->total)
        return 0;
    return con_coef(&a->at, lines->lane) * dtype_bytes(p->k->buf.at[a->buf].dtype);
}

static bool side_by_side(const ConPlan *p, const KAccess *a)
{
    const Walk *lanes = p->turned ? &p->out_rows : &p->out_cols;
    return con_of_dims(p->k, &a->at) && lanes->lane != 0 && con_coef(&a->at, lanes->lane) == 1;
}

void con_out_plan(ConPlan *p)
{
    enum { LINE = 64, MOST = 4 }; /* times: beyond, sums are too short */
    const Kernel *k = p->k;
    int64_t lines = p->turned ? p->nr : p->mr, asks = p->kc / ASK_STEPS;
    int64_t times = asks > 0 ? (lines + asks - 1) / asks : MOST + 1;
    if (times > MOST)
        return;
    int n = 0;
    for (Val v = k->con.e_to; v-- > k->con.e_from && n < MAX_OUT_ASKS;) {
        const KInst *i = &k->inst.at[v];
        bool store = i->op == KI_STORE;
        if (!store && i->op != KI_LOAD)
            continue;
        const KAccess *a = &k->access.at[i->aux];
        const KBuf *b = &k->buf.at[a->buf];
        int bytes = dtype_bytes(b->dtype);
        if (!side_by_side(p, a) || stride_of(p, a) == 0 ||
            b->elems * bytes <= p->mach->l2_bytes / 4)
            continue;
        int64_t line = (p->turned ? p->mr : p->nr) * bytes;
        p->ask[ASK_OUT + n] = (Ask){(int)((line + LINE - 1) / LINE), (int)times, CACHE_1, store};
        p->out[n++] = v;
    }
}

ConStream con_stream_out(Con *c, int i, Lv row0, Lv col0)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const KAccess *a = &p->k->access.at[p->k->inst.at[p->out[i]].aux];
    Lv digit[K_MAX_DIMS], none;
    gen_scalar(&c->g);
    walk_decode(&p->out_rows, ir, row0, digit);
    walk_set(&p->out_rows, &c->g, digit);
    walk_decode(&p->out_cols, ir, p->direct ? con_line(c, col0, &none) : col0, digit);
    walk_set(&p->out_cols, &c->g, digit);
    Lv at = ir_mul(ir, gen_affine(&c->g, &a->at), dtype_bytes(p->k->buf.at[a->buf].dtype));
    return (ConStream){ir_at_byte(ir, c->g.buf[a->buf], at), ir_int(ir, stride_of(p, a)),
                       ir_int(ir, 64)};
}
