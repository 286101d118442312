/* Denormals flushed: no value is denormal, as kernel/denormals.h says. The hardware sees to what it
 * computes; here, what a load or a bitcast gives. Where only arithmetic reads that, which takes a
 * denormal operand for zero, nothing has to be done.
 *
 * LLVM folds constants with denormals kept (IRBuilder, fma and fptrunc), or rounds them to the grid
 * of denormals before it flushes them, and makes x of x * 1. So arithmetic whose operands may all
 * be known to it gets one that it cannot know. */
#include "gen.h"

static bool computes(KOp op)
{
    return (op >= KI_ADD && op <= KI_DIV) || op == KI_FMA || op == KI_SCALE;
}

/* ---- what LLVM may know ------------------------------------------------------------ */

/* A constant, an index, and what is made of them or chosen, on one path at least. */
typedef struct Known {
    const Kernel *k;
    bool *val;  /* of variables: in what is set, too */
    bool *buf;  /* what is stored may be forwarded */
    bool *fed;  /* accumulators, by what is not known */
    bool empty; /* a loop has no turn */
    bool grown;
} Known;

static bool any_known(const Known *n, const KInst *i, int from)
{
    const Val arg[] = {i->a, i->b, i->c};
    for (int j = from; j < kop_args((KOp)i->op); j++)
        if (n->val[arg[j]])
            return true;
    return false;
}

static bool all_known(const bool *known, const KInst *i)
{
    const Val arg[] = {i->a, i->b, i->c};
    for (int j = 0; j < kop_args((KOp)i->op); j++)
        if (!known[arg[j]])
            return false;
    return true;
}

/* Whether a float may come out denormal of normal operands; those are hidden if all are known. */
static bool is_hidden(const Kernel *k, const KInst *i)
{
    if (!dtype_is_float((DType)i->dtype))
        return false;
    DType from = (DType)k->inst.at[i->a].dtype;
    return computes((KOp)i->op) || (i->op == KI_CAST && from == F64 && i->dtype != F64);
}

static bool load_known(const Known *n, const KInst *i)
{
    const KAccess *a = &n->k->access.at[i->aux];
    return a->n_bounds > 0 || n->buf[a->buf];
}

static bool may_know(Known *n, const KInst *i)
{
    switch (i->op) {
    case KI_LOAD:
        return load_known(n, i);
    case KI_SUM:
        return n->empty;
    case KI_FOLD:
        return n->empty || !n->fed[i->a];
    case KI_GET:
        return n->val[i->a];
    case KI_SELECT:
        return any_known(n, i, 1);
    case KI_MIN:
    case KI_MAX:
        return any_known(n, i, 0);
    default:
        return !is_hidden(n->k, i) && all_known(n->val, i);
    }
}

static void set_known(Known *n, bool *to)
{
    n->grown = n->grown || !*to;
    *to = true;
}

static void look_at(Known *n, Val v)
{
    const KInst *i = &n->k->inst.at[v];
    switch (i->op) {
    case KI_STORE:
        if (n->val[i->a])
            set_known(n, &n->buf[n->k->access.at[i->aux].buf]);
        break;
    case KI_SET:
        if (n->val[i->b])
            set_known(n, &n->val[i->a]);
        break;
    case KI_ACC:
        n->fed[v] = false;
        break;
    case KI_INTO:
        n->fed[i->a] = n->fed[i->a] || !n->val[i->b];
        break;
    default:
        if (may_know(n, i))
            set_known(n, &n->val[v]);
        break;
    }
}

static const bool *find_known(const Kernel *k, Arena *arena)
{
    Known n = {.k = k};
    n.val = NEW_ARRAY(arena, bool, k->inst.n);
    n.fed = NEW_ARRAY(arena, bool, k->inst.n);
    n.buf = NEW_ARRAY(arena, bool, k->buf.n);
    for (int v = 1; v < k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        bool turns = i->op == KI_PAR || i->op == KI_SEQ || i->op == KI_RED || i->op == KI_DIM;
        n.empty = n.empty || (turns && (i->imm.i == 0 || i->reach != K_ALL));
    }
    do {
        n.grown = false;
        for (int v = 1; v < k->inst.n; v++)
            look_at(&n, (Val)v);
    } while (n.grown);
    return n.val;
}

/* ---- what has to be flushed -------------------------------------------------------- */

/* The operation reads a denormal as zero, also when LLVM has simplified it: but for the operand at
 * hand it has none that may be known, so that no x * 1 becomes x. */
static bool reads_zero(const Gen *g, const KInst *i, Val v)
{
    const Val arg[] = {i->a, i->b, i->c};
    switch (i->op) {
    case KI_EQ:
    case KI_NE:
    case KI_LT:
    case KI_LE:
    case KI_SQRT:
        return true;
    case KI_INTO:
        return g->k->inst.at[i->a].aux == KI_ADD;
    default:
        break;
    }
    if (!computes((KOp)i->op))
        return false;
    for (int j = 0; j < kop_args((KOp)i->op); j++)
        if (arg[j] != v && g->known[arg[j]])
            return false;
    return true;
}

static bool gives_bits(const KInst *i)
{
    DType t = (DType)i->dtype;
    return (i->op == KI_LOAD || i->op == KI_BITCAST) && (t == F32 || t == F64 || t == BF16);
}

void gen_find_raw(Gen *g, Arena *arena)
{
    const Kernel *k = g->k;
    g->known = find_known(k, arena);
    g->raw = NEW_ARRAY(arena, bool, k->inst.n);
    for (int v = 1; v < k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        const Val arg[] = {i->a, i->b, i->c};
        for (int j = 0; j < kop_args((KOp)i->op); j++)
            if (gives_bits(&k->inst.at[arg[j]]) && !reads_zero(g, i, arg[j]))
                g->raw[arg[j]] = true;
    } /* what a contraction multiplies is read by fma, or by mul and add */
}

Lv gen_flushed(Gen *g, DType t, Lv x)
{
    Ir *ir = g->ir;
    int n = lanes_of(x);
    Lt elem = t == F64 ? ir->i64 : ir->i32, bits = ir_vec(elem, n);
    const unsigned long long exponent = t == F64 ? 0x7ff0000000000000 : 0x7f800000;
    const unsigned long long sign = t == F64 ? 0x8000000000000000 : 0x80000000;
    Lv u = LLVMBuildBitCast(ir->b, x, bits, "");
    Lv some = LLVMBuildAnd(ir->b, u, ir_splat(ir, LLVMConstInt(elem, exponent, 0), n), "");
    Lv none = LLVMBuildICmp(ir->b, LLVMIntEQ, some, LLVMConstNull(bits), "");
    Lv zero = LLVMBuildAnd(ir->b, u, ir_splat(ir, LLVMConstInt(elem, sign, 0), n), "");
    return LLVMBuildBitCast(ir->b, LLVMBuildSelect(ir->b, none, zero, u, ""), LLVMTypeOf(x), "");
}

/* ---- what is hidden ---------------------------------------------------------------- */

/* An i64 that is 0, of which LLVM cannot know it; read once, where the function begins. */
static Lv unknown_zero(Gen *g)
{
    Ir *ir = g->ir;
    if (g->zero != NULL && g->zero_of == ir->fn)
        return g->zero;
    Lb here = ir_here(ir);
    LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(ir->b);
    Lv slot = ir_slot(ir, ir->i64, 8), next = LLVMGetNextInstruction(slot);
    if (next != NULL)
        LLVMPositionBuilderBefore(ir->b, next);
    else
        ir_at(ir, LLVMGetEntryBasicBlock(ir->fn));
    ir_store(ir, ir_int(ir, 0), slot, 8);
    g->zero = ir_load(ir, ir->i64, slot, 8);
    LLVMSetVolatile(g->zero, 1);
    g->zero_of = ir->fn;
    ir_at(ir, here);
    LLVMSetCurrentDebugLocation2(ir->b, line);
    return g->zero;
}

Lv gen_hidden(Gen *g, Lv x)
{
    Ir *ir = g->ir;
    int n = lanes_of(x);
    Lt type = LLVMTypeOf(x), elem = n > 1 ? LLVMGetElementType(type) : type;
    bool wide = elem == ir->f64;
    Lv zero = unknown_zero(g);
    zero = wide ? zero : LLVMBuildTrunc(ir->b, zero, ir->i32, "");
    Lv bits = LLVMBuildBitCast(ir->b, x, ir_vec(wide ? ir->i64 : ir->i32, n), "");
    return LLVMBuildBitCast(ir->b, LLVMBuildXor(ir->b, bits, ir_splat(ir, zero, n), ""), type, "");
}

bool gen_hides(const Gen *g, Val v)
{
    const KInst *i = &g->k->inst.at[v];
    return g->known != NULL && is_hidden(g->k, i) && all_known(g->known, i);
}
