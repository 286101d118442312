/* The tile of lanes along a batch index: lines of results in registers, and a chain of terms for
 * each of them. See con_lanes.c. */
#include "con.h"

Lt con_vector_type(const Con *c)
{
    return ir_vec(c->p->type == F64 ? c->ir->f64 : c->ir->f32, c->p->vl);
}

enum { MAX_RESULTS = CON_LANES_MOST };

typedef struct Tile {
    Con *c;
    const Lanes *l;
    int lines, cols;
    Lv acc[MAX_RESULTS];
} Tile;

static int64_t result_bytes(const Tile *t, int i)
{
    const Lanes *l = t->l;
    int64_t vectors = i / t->cols * l->x.n_f + i % t->cols;
    return vectors * t->c->p->vl * t->c->p->es;
}

/* From result 0's element of `many` to that of result i, for the same term. */
static int64_t staged_bytes(const Tile *t, int i)
{
    const Lanes *l = t->l;
    int64_t vectors = i / t->cols * l->y.s * l->pitch + i % t->cols * l->x.s;
    return vectors * t->c->p->vl * t->c->p->es;
}

static void begin_sums(Tile *t, Lv out, Lv resume)
{
    Con *c = t->c;
    Ir *ir = c->ir;
    Lt vec = con_vector_type(c);
    Lv old[MAX_RESULTS], zero = LLVMConstNull(vec);
    Lb fresh = ir_here(ir), again = ir_block(ir, "again"), start = ir_block(ir, "start");
    ir_cond(ir, resume, again, start);
    ir_at(ir, again);
    for (int i = 0; i < t->lines * t->cols; i++)
        old[i] = ir_load(ir, vec, ir_off(ir, out, result_bytes(t, i)), c->p->es);
    ir_br(ir, start);
    ir_at(ir, start);
    for (int i = 0; i < t->lines * t->cols; i++) {
        t->acc[i] = LLVMBuildPhi(ir->b, vec, "");
        LLVMAddIncoming(t->acc[i], &zero, &fresh, 1);
        LLVMAddIncoming(t->acc[i], &old[i], &again, 1);
    }
}

static void add_term(Tile *t, Lv a, Lv b)
{
    Con *c = t->c;
    Ir *ir = c->ir;
    Lt vec = con_vector_type(c);
    Lv x = ir_load(ir, vec, a, c->p->es);
    for (int i = 0; i < t->lines * t->cols; i++) {
        Lv y = ir_load(ir, vec, ir_off(ir, b, staged_bytes(t, i)), c->p->es);
        Lv arg[] = {x, y, t->acc[i]};
        t->acc[i] = c->p->mach->fma
                        ? ir_intrinsic(ir, "llvm.fma", &vec, 1, arg, 3)
                        : LLVMBuildFAdd(ir->b, LLVMBuildFMul(ir->b, x, y, ""), t->acc[i], "");
    }
}

Lv con_handed_on(Ir *ir, Lv first, Lb before)
{
    Lv phi = LLVMBuildPhi(ir->b, LLVMTypeOf(first), "");
    LLVMAddIncoming(phi, &first, &before, 1);
    return phi;
}

ConChain con_open_chain(Ir *ir, Lv n, Lv a, Lv b, Lv *sum, int n_sums)
{
    ConChain h = {.head = ir_block(ir, "chain"), .sum = sum, .n_sums = n_sums};
    Lb before = ir_here(ir);
    ir_br(ir, h.head);
    ir_at(ir, h.head);
    h.left = con_handed_on(ir, n, before);
    h.at[0] = con_handed_on(ir, a, before);
    h.at[1] = con_handed_on(ir, b, before);
    for (int i = 0; i < n_sums; i++)
        sum[i] = h.first[i] = con_handed_on(ir, sum[i], before);
    return h;
}

void con_close_chain(Ir *ir, ConChain *h, Lv a, Lv b)
{
    Lb here = ir_here(ir), after = ir_block(ir, "after");
    Lv left = ir_add(ir, h->left, ir_int(ir, -1));
    LLVMAddIncoming(h->left, &left, &here, 1);
    LLVMAddIncoming(h->at[0], &a, &here, 1);
    LLVMAddIncoming(h->at[1], &b, &here, 1);
    for (int i = 0; i < h->n_sums; i++)
        LLVMAddIncoming(h->first[i], &h->sum[i], &here, 1);
    ir_cond(ir, LLVMBuildICmp(ir->b, LLVMIntNE, left, ir_int(ir, 0), ""), h->head, after);
    ir_at(ir, after);
}

Lv con_lanes_tile(Con *c, int lines, int cols)
{
    Ir *ir = c->ir;
    const ConPlan *p = c->p;
    const Lanes *l = p->lanes;
    const char *name =
        arena_printf(ir->arena, "gradc.lanes.%s.%dx%d.%lld.%lld.%lld.%lld.%lld.%lld.%d.%lld.%lld",
                     dtype_name(p->type), lines, cols, (long long)l->x.s, (long long)l->x.t,
                     (long long)l->y.s, (long long)l->y.t, (long long)l->pitch, (long long)l->x.n_f,
                     l->one_along, (long long)l->one_x, (long long)l->one_y);
    const Lt arg[] = {ir->ptr, ir->ptr, ir->ptr, ir->i64, ir->i64, ir->i1};
    IrShared s;
    if (!ir_shared_function(ir, name, ir->none, arg, 6, &s))
        return s.made;
    Lv fn = ir->fn;
    ir_use_target(ir, fn);
    Tile t = {.c = c, .l = l, .lines = lines, .cols = cols};
    Lv out = LLVMGetParam(fn, 2);
    int64_t vec = (int64_t)p->vl * p->es;
    begin_sums(&t, out, LLVMGetParam(fn, 5));
    int sums = lines * cols;
    ConChain y = con_open_chain(ir, LLVMGetParam(fn, 3), LLVMGetParam(fn, 0), LLVMGetParam(fn, 1),
                                t.acc, sums);
    ConChain x = con_open_chain(ir, LLVMGetParam(fn, 4), y.at[0], y.at[1], t.acc, sums);
    add_term(&t, x.at[0], x.at[1]);
    Lv next = ir_off(ir, x.at[0], l->one_along ? l->one_x * p->es : vec);
    con_close_chain(ir, &x, next, ir_off(ir, x.at[1], l->x.t * vec));
    if (l->one_along)
        next = ir_off(ir, y.at[0], l->one_y * p->es);
    con_close_chain(ir, &y, next, ir_off(ir, y.at[1], l->y.t * l->pitch * vec));
    for (int i = 0; i < sums; i++)
        ir_store(ir, t.acc[i], ir_off(ir, out, result_bytes(&t, i)), p->es);
    LLVMBuildRetVoid(ir->b);
    ir_shared_end(ir, &s);
    return s.made;
}
