/* The register tile: rows * nv accumulators, one fma chain over k each. */
#include "con.h"

enum { MOST_ROWS = 32, MOST_VECTORS = 16 };

typedef struct Tile {
    Ir *ir;
    const ConPlan *p;
    int rows, nv; /* vectors, of columns */
    ConStrides by;
    Lt vec, packed;      /* of sums; of a panel */
    Lv a, b, c;          /* direct: b is the table, ... */
    Lv pitch;            /* of c's rows; NULL: they follow one another */
    Lv plus, plus_pitch; /* what is added to c's, or NULL */
    Lv table;            /* of a window */
    ConStream stream[MAX_ASKS];
    Lv base[16]; /* ... and these are the vectors' addresses */
    Lv acc[MOST_ROWS][MOST_VECTORS];
} Tile;

static Lv c_at(Tile *t, int i, int v)
{
    const ConPlan *p = t->p;
    Lv row = t->pitch != NULL ? ir_at_byte(t->ir, t->c, ir_mul(t->ir, t->pitch, i))
                              : ir_off(t->ir, t->c, (int64_t)i * p->nr * p->es);
    return ir_off(t->ir, row, (int64_t)v * p->vl * p->es);
}

static void load_or_zero(Tile *t, Lv resume)
{
    Ir *ir = t->ir;
    Lb fresh = ir_here(ir), again = ir_block(ir, "again"), start = ir_block(ir, "start");
    ir_cond(ir, resume, again, start);
    ir_at(ir, again);
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < t->nv; v++)
            t->acc[i][v] = ir_load(ir, t->vec, c_at(t, i, v), t->p->es);
    ir_br(ir, start);
    ir_at(ir, start);
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < t->nv; v++) {
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
    for (int v = 0; v < t->nv; v++) {
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
        for (int v = 0; v < t->nv; v++)
            t->acc[i][v] = con_dot(ir, p, all, row[v], t->acc[i][v]);
    }
}

/* Asks for what is due next. */
static void ask(Tile *t)
{
    for (int s = 0; s < MAX_ASKS; s++) {
        const Ask *a = &t->p->ask[s];
        ConStream *x = &t->stream[s];
        for (int i = 0; i < a->times; i++) {
            Lv at = x->at;
            for (int j = 0; j < a->n; j++) {
                con_prefetch(t->ir, at, a->cache, a->write);
                at = ir_at_byte(t->ir, at, x->gap);
            }
            x->at = ir_at_byte(t->ir, x->at, x->step);
        }
    }
}

/* What goes from step to step: where the operands are, the sums. */
typedef struct Run {
    Lb before, head;
    Lv left, a, b, table;
    Lv acc[MOST_ROWS][MOST_VECTORS], at[MAX_ASKS];
} Run;

static Lv run_phi(Ir *ir, Lt type, Lv first, Run *r)
{
    Lv phi = LLVMBuildPhi(ir->b, type, "");
    LLVMAddIncoming(phi, &first, &r->before, 1);
    return phi;
}

/* A loop of `n` steps. */
static void begin_run(Tile *t, Run *r, Lv n, const char *name)
{
    Ir *ir = t->ir;
    r->before = ir_here(ir);
    r->head = ir_block(ir, name);
    ir_br(ir, r->head);
    ir_at(ir, r->head);
    r->left = run_phi(ir, ir->i64, n, r);
    t->a = r->a = run_phi(ir, ir->ptr, t->a, r);
    t->b = r->b = run_phi(ir, ir->ptr, t->b, r);
    t->table = r->table = run_phi(ir, ir->ptr, t->table, r);
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < t->nv; v++)
            t->acc[i][v] = r->acc[i][v] = run_phi(ir, t->vec, t->acc[i][v], r);
}

/* ... of which so many are done. */
static void end_run(Tile *t, Run *r, Lv done)
{
    Ir *ir = t->ir;
    Lb here = ir_here(ir), after = ir_block(ir, "after");
    Lv left = LLVMBuildSub(ir->b, r->left, done, "");
    LLVMAddIncoming(r->left, &left, &here, 1);
    LLVMAddIncoming(r->a, &t->a, &here, 1);
    LLVMAddIncoming(r->b, &t->b, &here, 1);
    LLVMAddIncoming(r->table, &t->table, &here, 1);
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < t->nv; v++)
            LLVMAddIncoming(r->acc[i][v], &t->acc[i][v], &here, 1);
    ir_cond(ir, LLVMBuildICmp(ir->b, LLVMIntNE, left, ir_int(ir, 0), ""), r->head, after);
    ir_at(ir, after);
}

static void steps(Tile *t, Lv n)
{
    Ir *ir = t->ir;
    Run r;
    begin_run(t, &r, n, "k");
    step(t, t->a, t->b, t->table);
    t->a = ir_off(ir, t->a, t->by.a_k);
    t->b = ir_off(ir, t->b, t->p->direct ? 4 : t->by.b_k);
    t->table = ir_off(ir, t->table, 4);
    end_run(t, &r, ir_int(ir, 1));
}

static void chain(Tile *t, Lv k)
{
    Ir *ir = t->ir;
    if (!con_streams(t->p)) {
        steps(t, k);
        return;
    }
    Run r;
    begin_run(t, &r, k, "some");
    for (int s = 0; s < MAX_ASKS; s++)
        if (t->p->ask[s].n > 0)
            t->stream[s].at = r.at[s] = run_phi(ir, ir->ptr, t->stream[s].at, &r);
    ask(t);
    Lv n = ir_min(ir, r.left, ir_int(ir, ASK_STEPS));
    steps(t, n);
    Lb here = ir_here(ir);
    for (int s = 0; s < MAX_ASKS; s++)
        if (t->p->ask[s].n > 0)
            LLVMAddIncoming(r.at[s], &t->stream[s].at, &here, 1);
    end_run(t, &r, n);
}

/* The sums go where they are stored. */
static void put_rows(Tile *t)
{
    Ir *ir = t->ir;
    for (int i = 0; i < t->rows; i++)
        for (int v = 0; v < t->nv; v++) {
            Lv x = t->acc[i][v];
            if (t->plus != NULL) {
                Lv row = ir_at_byte(ir, t->plus, ir_mul(ir, t->plus_pitch, i));
                Lv at = ir_off(ir, row, (int64_t)v * t->p->vl * t->p->es);
                x = LLVMBuildFAdd(ir->b, ir_load(ir, t->vec, at, t->p->es), x, "");
            }
            ir_store(ir, x, c_at(t, i, v), t->p->es);
        }
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

/* ... and what it asks for. */
static const char *asks_name(Ir *ir, const ConPlan *p)
{
    const char *name = "";
    for (int s = 0; s < MAX_ASKS; s++) {
        const Ask *a = &p->ask[s];
        if (a->n > 0)
            name = arena_printf(ir->arena, "%s.asks%d.%d%s%s", name, a->n, a->times,
                                a->cache == CACHE_2 ? ".far" : "", a->write ? ".out" : "");
    }
    return name;
}

static int args_of(const ConPlan *p, ConStrides by)
{
    int n = (p->direct || p->window.is ? 6 : 5) + by.c_apart + (by.plus ? 2 : 0);
    for (int s = 0; s < MAX_ASKS; s++)
        n += p->ask[s].n > 0 ? 3 : 0;
    return n;
}

Lv con_tile(Ir *ir, const ConPlan *p, int rows, int vectors, ConStrides by)
{
    const char *cols = p->direct ? "direct" : by.apart ? "apart" : "b";
    const char *name = arena_printf(ir->arena, "gradc.tile.%s.%dx%d.a%lld.%lld.%s%lld%s%s%s%s",
                                    dtype_name(p->pairs ? BF16 : p->type), rows, vectors * p->vl,
                                    (long long)by.a_row, (long long)by.a_k, cols, (long long)by.b_k,
                                    by.c_apart ? ".c" : "", by.plus ? ".plus" : "",
                                    window_name(ir, p, rows), asks_name(ir, p));
    Lt arg[CON_TILE_ARGS] = {ir->ptr, ir->ptr, ir->ptr, ir->i64, ir->i1};
    int args = args_of(p, by), n = 5;
    if (p->direct || p->window.is)
        arg[n++] = ir->ptr;
    if (by.c_apart)
        arg[n++] = ir->i64;
    if (by.plus) {
        arg[n++] = ir->ptr;
        arg[n++] = ir->i64;
    }
    for (int first = n; n < args; n++)
        arg[n] = (n - first) % 3 == 0 ? ir->ptr : ir->i64;
    IrShared s;
    if (!ir_shared_function(ir, name, ir->none, arg, args, &s))
        return s.made;
    Lv fn = ir->fn;
    ir_use_target(ir, fn);
    Tile t = {.ir = ir,
              .p = p,
              .rows = rows,
              .nv = vectors,
              .by = by,
              .vec = ir_vec(p->type == F64 ? ir->f64 : ir->f32, p->vl),
              .a = LLVMGetParam(fn, 0),
              .b = LLVMGetParam(fn, p->direct ? 5 : 1),
              .c = LLVMGetParam(fn, 2)};
    t.packed = p->pairs ? ir_vec(ir->i32, p->vl) : t.vec;
    unsigned from = p->direct || p->window.is ? 6 : 5;
    t.pitch = by.c_apart ? LLVMGetParam(fn, from++) : NULL;
    t.plus = by.plus ? LLVMGetParam(fn, from++) : NULL;
    t.plus_pitch = by.plus ? LLVMGetParam(fn, from++) : NULL;
    for (int i = 0; i < MAX_ASKS; i++) {
        if (p->ask[i].n == 0)
            continue;
        t.stream[i] = (ConStream){LLVMGetParam(fn, from), LLVMGetParam(fn, from + 1),
                                  LLVMGetParam(fn, from + 2)};
        from += 3;
    }
    t.table = p->window.is ? LLVMGetParam(fn, 5) : LLVMConstNull(ir->ptr);
    for (int v = 0; p->direct && v < p->nv; v++)
        t.base[v] = ir_load(ir, ir->ptr, ir_off(ir, LLVMGetParam(fn, 1), v * 8), 8);
    load_or_zero(&t, LLVMGetParam(fn, 4));
    chain(&t, LLVMGetParam(fn, 3));
    put_rows(&t);
    LLVMBuildRetVoid(ir->b);
    ir_shared_end(ir, &s);
    return s.made;
}
