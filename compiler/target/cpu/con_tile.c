/* The register tile: rows * nv accumulators, one fma chain over k each. */
#include "con.h"

typedef struct Tile {
    Ir *ir;
    const ConPlan *p;
    int rows;
    ConStrides by;
    Lt vec, packed; /* of sums; of a panel */
    Lv a, b, c;     /* direct: b is the table, ... */
    Lv table;       /* of a window */
    bool asks;      /* for what `stream` says */
    ConStream stream;
    Lv base[16]; /* ... and these are the vectors' addresses */
    Lv acc[32][16];
} Tile;

static Lv c_at(Tile *t, int i, int v)
{
    const ConPlan *p = t->p;
    return ir_off(t->ir, t->c, ((int64_t)i * p->nr + v * p->vl) * p->es);
}

static void load_or_zero(Tile *t, Lv resume)
{
    Ir *ir = t->ir;
    Lb fresh = ir_here(ir), again = ir_block(ir, "again"), start = ir_block(ir, "start");
    ir_cond(ir, resume, again, start);
    ir_at(ir, again);
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < t->p->nv; v++)
            t->acc[i][v] = ir_load(ir, t->vec, c_at(t, i, v), t->p->es);
    ir_br(ir, start);
    ir_at(ir, start);
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < t->p->nv; v++) {
            Lv phi = LLVMBuildPhi(ir->b, t->vec, ""), zero = LLVMConstNull(t->vec);
            LLVMAddIncoming(phi, &zero, &fresh, 1);
            LLVMAddIncoming(phi, &t->acc[i][v], &again, 1);
            t->acc[i][v] = phi;
        }
}

/* The nv vectors of b of one k. */
static void load_columns(Tile *t, Lv b, Lv *row)
{
    Ir *ir = t->ir;
    const ConPlan *p = t->p;
    Lv distance = NULL;
    if (t->by.apart) {
        con_pair_columns(ir, p, b, t->by.b_k / 2, row);
        return;
    }
    if (p->direct)
        distance = LLVMBuildSExt(ir->b, ir_load(ir, ir->i32, b, 4), ir->i64, "");
    for (int v = 0; v < p->nv; v++) {
        Lv at = p->direct ? ir_at_byte(ir, t->base[v], distance)
                          : ir_off(ir, b, (int64_t)v * p->vl * p->es);
        row[v] = ir_load(ir, t->packed, at, p->es);
    }
}

/* One k: nv vectors of b, and each row's element of a in all lanes. */
static void step(Tile *t, Lv a, Lv b, Lv table)
{
    Ir *ir = t->ir;
    const ConPlan *p = t->p;
    Lv row[16];
    load_columns(t, b, row);
    Lt elem = p->pairs ? ir->i32 : p->type == F64 ? ir->f64 : ir->f32;
    int align = p->pairs ? 2 : p->es;
    if (p->window.is)
        a = ir_at_byte(ir, a, LLVMBuildSExt(ir->b, ir_load(ir, ir->i32, table, 4), ir->i64, ""));
    for (int i = 0; i < t->rows; i++) {
        int64_t at = p->window.is ? con_window_row(p, i) * p->es : i * t->by.a_row;
        Lv all = ir_splat(ir, ir_load(ir, elem, ir_off(ir, a, at), align), p->vl);
        for (int v = 0; v < p->nv; v++)
            t->acc[i][v] = con_dot(ir, p, all, row[v], t->acc[i][v]);
    }
}

static void chain(Tile *t, Lv k)
{
    Ir *ir = t->ir;
    int nv = t->p->nv;
    Lb before = ir_here(ir), head = ir_block(ir, "k"), after = ir_block(ir, "after");
    ir_br(ir, head);
    ir_at(ir, head);
    Lv phi[32][16], a = LLVMBuildPhi(ir->b, ir->ptr, ""), b = LLVMBuildPhi(ir->b, ir->ptr, "");
    Lv left = LLVMBuildPhi(ir->b, ir->i64, ""), table = LLVMBuildPhi(ir->b, ir->ptr, "");
    LLVMAddIncoming(table, &t->table, &before, 1);
    LLVMAddIncoming(a, &t->a, &before, 1);
    LLVMAddIncoming(b, &t->b, &before, 1);
    LLVMAddIncoming(left, &k, &before, 1);
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < nv; v++) {
            phi[i][v] = LLVMBuildPhi(ir->b, t->vec, "");
            LLVMAddIncoming(phi[i][v], &t->acc[i][v], &before, 1);
            t->acc[i][v] = phi[i][v];
        }
    step(t, a, b, table);
    if (t->asks)
        con_stream_ask(ir, &t->stream, ir_add(ir, left, ir_int(ir, -1)));
    int64_t b_step = t->p->direct ? 4 : t->by.b_k;
    Lv next_table = ir_off(ir, table, 4);
    LLVMAddIncoming(table, &next_table, &head, 1);
    Lv next_a = ir_off(ir, a, t->by.a_k), next_b = ir_off(ir, b, b_step);
    Lv next = ir_add(ir, left, ir_int(ir, -1));
    LLVMAddIncoming(a, &next_a, &head, 1);
    LLVMAddIncoming(b, &next_b, &head, 1);
    LLVMAddIncoming(left, &next, &head, 1);
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < nv; v++)
            LLVMAddIncoming(phi[i][v], &t->acc[i][v], &head, 1);
    ir_cond(ir, LLVMBuildICmp(ir->b, LLVMIntNE, next, ir_int(ir, 0), ""), head, after);
    ir_at(ir, after);
}

/* Of a window: the distances between the rows. */
static const char *window_name(Ir *ir, const ConPlan *p, int rows)
{
    const char *name = p->window.is ? ".window" : "";
    for (int i = 1; p->window.is && i < rows; i++)
        name = arena_printf(ir->arena, "%s.%lld", name,
                            (long long)(con_window_row(p, i) - con_window_row(p, i - 1)));
    return name;
}

int con_tile_args(const ConPlan *p)
{
    return con_streams(p) ? 8 : p->direct || p->window.is ? 6 : 5;
}

Lv con_tile(Ir *ir, const ConPlan *p, int rows, ConStrides by)
{
    const char *cols = p->direct ? "direct" : by.apart ? "apart" : "b";
    const char *name = arena_printf(ir->arena, "gradc.tile.%s.%dx%d.a%lld.%lld.%s%lld%s%s",
                                    dtype_name(p->pairs ? BF16 : p->type), rows, p->nr,
                                    (long long)by.a_row, (long long)by.a_k, cols, (long long)by.b_k,
                                    window_name(ir, p, rows), con_streams(p) ? ".asks" : "");
    const Lt arg[] = {ir->ptr, ir->ptr, ir->ptr, ir->i64, ir->i1, ir->ptr, ir->i64, ir->i64};
    IrShared s;
    if (!ir_shared_function(ir, name, ir->none, arg, con_tile_args(p), &s))
        return s.made;
    Lv fn = ir->fn;
    ir_use_target(ir, fn);
    Tile t = {.ir = ir,
              .p = p,
              .rows = rows,
              .by = by,
              .vec = ir_vec(p->type == F64 ? ir->f64 : ir->f32, p->vl),
              .a = LLVMGetParam(fn, 0),
              .b = LLVMGetParam(fn, p->direct ? 5 : 1),
              .c = LLVMGetParam(fn, 2)};
    t.packed = p->pairs ? ir_vec(ir->i32, p->vl) : t.vec;
    t.asks = con_streams(p);
    if (t.asks)
        t.stream = (ConStream){LLVMGetParam(fn, 5), LLVMGetParam(fn, 6), LLVMGetParam(fn, 7)};
    t.table = p->window.is ? LLVMGetParam(fn, 5) : LLVMConstNull(ir->ptr);
    for (int v = 0; p->direct && v < p->nv; v++)
        t.base[v] = ir_load(ir, ir->ptr, ir_off(ir, LLVMGetParam(fn, 1), v * 8), 8);
    load_or_zero(&t, LLVMGetParam(fn, 4));
    chain(&t, LLVMGetParam(fn, 3));
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < p->nv; v++)
            ir_store(ir, t.acc[i][v], c_at(&t, i, v), p->es);
    LLVMBuildRetVoid(ir->b);
    ir_shared_end(ir, &s);
    return s.made;
}
