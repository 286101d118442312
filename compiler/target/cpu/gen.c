/* Contexts and instructions. */
#include <assert.h>
#include "../../kernel/denormals.h"
#include "gen.h"

void gen_init(Gen *g, Ir *ir, const Kernel *k, Arena *arena)
{
    *g = (Gen){.ir = ir, .k = k, .width = 1};
    g->buf = NEW_ARRAY(arena, Lv, k->buf.n);
    g->local_by_lane = NEW_ARRAY(arena, bool, k->buf.n);
    g->value = NEW_ARRAY(arena, Lv, k->inst.n);
    g->vary = NEW_ARRAY(arena, bool, k->inst.n);
    g->slot = NEW_ARRAY(arena, Lv, k->inst.n);
    g->slot_wide = NEW_ARRAY(arena, bool, k->inst.n);
    g->held = NEW_ARRAY(arena, Lv, k->access.n);
    g->careless = NEW_ARRAY(arena, bool, k->access.n);
    gen_find_careless(k, g->careless, arena);
    if (ir->mach->flush)
        gen_find_raw(g, arena);
}

void gen_vector(Gen *g, int width, Val lane, Lv live)
{
    Ir *ir = g->ir;
    g->width = width;
    g->lane = lane;
    g->live = live;
    g->from = g->mask = NULL;
    if (live != NULL) {
        Lv n = ir_splat(ir, LLVMBuildTrunc(ir->b, live, ir->i32, ""), width);
        g->mask = LLVMBuildICmp(ir->b, LLVMIntSLT, ir_iota(ir, ir->i32, width, 1), n, "");
    }
}

void gen_scalar(Gen *g)
{
    g->width = 1;
    g->lane = 0;
    g->live = g->from = g->mask = NULL;
}

void gen_limit(Gen *g)
{
    Ir *ir = g->ir;
    const KLimit *l = &g->k->limit;
    if (!l->is)
        return;
    bool narrow = g->k->buf.at[l->buf].dtype == I32;
    Lv at = ir_off(ir, g->buf[l->buf], l->at * (narrow ? 4 : 8));
    Lv x = ir_load(ir, narrow ? ir->i32 : ir->i64, at, narrow ? 4 : 8);
    x = narrow ? LLVMBuildSExt(ir->b, x, ir->i64, "") : x;
    x = ir_add(ir, x, ir_int(ir, l->plus));
    Lv one = ir_int(ir, 1), above = LLVMBuildICmp(ir->b, LLVMIntSGT, x, one, "");
    g->limit = LLVMBuildSelect(ir->b, above, x, one, "");
}

Lv gen_end(Gen *g, Val v)
{
    const KInst *i = &g->k->inst.at[v];
    Lv all = ir_int(g->ir, i->imm.i);
    return i->reach == K_ALL ? all : ir_min(g->ir, g->limit, all);
}

Lt gen_type(const Gen *g, DType t, int n)
{
    const Ir *ir = g->ir;
    const Lt of[] = {ir->f32, ir->f64, ir->f32, ir->f32, ir->i32, ir->i64, ir->i8, ir->i1};
    return ir_vec(of[t], n);
}

Lt gen_mem_type(const Gen *g, DType t, int n)
{
    const Ir *ir = g->ir;
    const Lt of[] = {ir->f32, ir->f64, ir->i16, ir->i16, ir->i32, ir->i64, ir->i8, ir->i8};
    return ir_vec(of[t], n);
}

Lv gen_const(const Gen *g, DType t, double f, int64_t i)
{
    Lt type = gen_type(g, t, 1);
    if (dtype_is_float(t))
        return LLVMConstReal(type, g->ir->mach->flush ? flush_const(t, f) : f);
    return LLVMConstInt(type, (unsigned long long)i, 1);
}

Lv gen_get(Gen *g, Val v)
{
    const KInst *i = &g->k->inst.at[v];
    if (i->op == KI_CONST)
        return gen_const(g, (DType)i->dtype, i->imm.f, i->imm.i);
    assert(g->value[v] != NULL);
    return g->value[v];
}

Lv gen_vec(Gen *g, Val v)
{
    Lv x = gen_get(g, v);
    return g->vary[v] ? x : ir_splat(g->ir, x, g->width);
}

/* An i64 index or constant as 32-bit lanes, if it fits: half of the registers. */
static Lv narrow(Gen *g, Val v)
{
    const KInst *i = &g->k->inst.at[v];
    const int64_t limit = INT64_C(1) << 30;
    if (i->dtype != I64)
        return NULL;
    if (i->op == KI_CONST)
        return i->imm.i > -limit && i->imm.i < limit ? ir_int32(g->ir, i->imm.i) : NULL;
    int64_t lo, hi;
    if (i->op != KI_INDEX)
        return NULL;
    const KAff *x = &g->k->affine.at[i->aux];
    if (!k_aff_range(g->k, x, &lo, &hi) || lo < -limit || hi > limit)
        return NULL;
    if (g->vary[v])
        return gen_affine_lanes(g, x, I32);
    return LLVMBuildTrunc(g->ir->b, gen_get(g, v), g->ir->i32, "");
}

/* A comparison of indices in 32 bits. */
static bool gen_narrow_compare(Gen *g, Val v)
{
    const KInst *i = &g->k->inst.at[v];
    bool compares = i->op == KI_EQ || i->op == KI_NE || i->op == KI_LT || i->op == KI_LE;
    if (!compares || !(g->vary[i->a] || g->vary[i->b]))
        return false;
    Lv x = narrow(g, i->a), y = narrow(g, i->b);
    if (x == NULL || y == NULL)
        return false;
    x = lanes_of(x) > 1 ? x : ir_splat(g->ir, x, g->width);
    y = lanes_of(y) > 1 ? y : ir_splat(g->ir, y, g->width);
    g->value[v] = gen_alu(g, (KOp)i->op, I32, BOOL, x, y, NULL);
    g->vary[v] = true;
    return true;
}

static void gen_scalar_op(Gen *g, Val v)
{
    if (gen_surely(g, v)) {
        g->value[v] = LLVMConstInt(g->ir->i1, 1, 0);
        g->vary[v] = false;
        return;
    }
    if (gen_narrow_compare(g, v))
        return;
    const KInst *i = &g->k->inst.at[v];
    const Val arg[] = {i->a, i->b, i->c};
    int n = kop_args((KOp)i->op);
    bool vary = false;
    for (int j = 0; j < n; j++)
        vary |= g->vary[arg[j]];
    Lv x[3] = {NULL, NULL, NULL};
    for (int j = 0; j < n; j++)
        x[j] = vary ? gen_vec(g, arg[j]) : gen_get(g, arg[j]);
    if (gen_hides(g, v))
        x[0] = gen_hidden(g, x[0]);
    DType from = (DType)g->k->inst.at[i->op == KI_SELECT ? i->b : i->a].dtype;
    g->value[v] = gen_alu(g, (KOp)i->op, from, (DType)i->dtype, x[0], x[1], x[2]);
    g->vary[v] = vary;
}

static void gen_index(Gen *g, Val v)
{
    const KInst *i = &g->k->inst.at[v];
    const KAff *x = &g->k->affine.at[i->aux];
    g->vary[v] = gen_stride(g, x) != 0 || gen_irregular(g, x);
    if (g->vary[v]) {
        g->value[v] = gen_affine_lanes(g, x, (DType)i->dtype);
        return;
    }
    Lv at = gen_affine(g, x);
    g->value[v] = i->dtype == I32 ? LLVMBuildTrunc(g->ir->b, at, g->ir->i32, "") : at;
}

void gen_inst(Gen *g, Val v)
{
    const KInst *i = &g->k->inst.at[v];
    switch (i->op) {
    case KI_CONST:
        g->vary[v] = false;
        break;
    case KI_INDEX:
        gen_index(g, v);
        break;
    case KI_LOAD:
        g->value[v] = gen_load(g, i->aux);
        g->vary[v] = lanes_of(g->value[v]) > 1;
        break;
    case KI_STORE:
        gen_store(g, i->aux, gen_get(g, i->a), g->vary[i->a]);
        break;
    default:
        gen_scalar_op(g, v);
        break;
    }
    if (g->raw != NULL && g->raw[v])
        g->value[v] = gen_flushed(g, (DType)i->dtype, g->value[v]);
}
