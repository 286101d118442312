/* Accumulators and variables: slots on the stack, which mem2reg turns into
 * registers wherever their lane is not a run-time value.
 *
 * An accumulator that a RED loop feeds has K_LANES virtual lanes. Opened in a
 * scalar context they are one vector, fed 16 (8) at a time by a RED loop that moves
 * along the lanes, or element by element; opened in a vector context each virtual
 * lane is itself a vector. bool is kept as an i32 of all bits or none: as wide as what is
 * compared, so that a comparison joins it in one instruction. */
#include "gen_acc.h"

static DType slot_dtype(DType t)
{
    return t == BOOL ? I32 : t;
}

static Lv pack(Gen *g, DType t, Lv x)
{
    return t == BOOL ? LLVMBuildSExt(g->ir->b, x, gen_type(g, I32, lanes_of(x)), "") : x;
}

static Lv unpack(Gen *g, DType t, Lv x)
{
    if (t != BOOL)
        return x;
    Lv zero = LLVMConstNull(LLVMTypeOf(x));
    return LLVMBuildICmp(g->ir->b, LLVMIntNE, x, zero, "");
}

/* What a slot holds after `old`, when it takes x. */
static Lv combine(Gen *g, KOp op, DType t, Lv old, Lv x)
{
    if (t == BOOL && op == KI_OR)
        return LLVMBuildOr(g->ir->b, old, pack(g, t, x), "");
    if (t == BOOL && op == KI_AND)
        return LLVMBuildAnd(g->ir->b, old, pack(g, t, x), "");
    return pack(g, t, gen_combine(g, op, t, unpack(g, t, old), x));
}

/* One virtual lane: a scalar, or a vector in a vector context. */
static Lt lane_type(const Gen *g, DType t)
{
    return gen_type(g, slot_dtype(t), g->width);
}

static int bytes_of(DType t)
{
    return t == F64 || t == I64 ? 8 : t == U8 ? 1 : 4;
}

void gen_acc_open(Gen *g, Val v, bool wide)
{
    const KInst *i = &g->k->inst.at[v];
    DType t = (DType)i->dtype;
    int lanes = wide ? k_lanes(t) : 1;
    Lv id = pack(g, t, gen_identity(g, (KOp)i->aux, t));
    Lt type = g->width == 1 ? ir_vec(gen_type(g, slot_dtype(t), 1), lanes)
                            : LLVMArrayType(lane_type(g, t), (unsigned)lanes);
    g->slot[v] = ir_slot(g->ir, type, 64);
    g->slot_wide[v] = wide;
    if (g->width == 1) {
        ir_store(g->ir, ir_splat(g->ir, id, lanes), g->slot[v], 64);
        return;
    }
    for (int l = 0; l < lanes; l++)
        ir_store(g->ir, ir_splat(g->ir, id, g->width),
                 ir_off(g->ir, g->slot[v], (int64_t)l * g->width * bytes_of(t)), bytes_of(t));
}

/* acc lane at p takes x; `live` lanes of it only. */
static void into_lane(Gen *g, const KInst *acc, Lv p, Lv x)
{
    DType t = (DType)acc->dtype;
    Lt type = gen_type(g, slot_dtype(t), lanes_of(x));
    Lv old = ir_load(g->ir, type, p, bytes_of(t));
    ir_store(g->ir, combine(g, (KOp)acc->aux, t, old, x), p, bytes_of(t));
}

static Lv part(Gen *g, Lv x, int from, int n)
{
    int lane[16];
    for (int i = 0; i < n; i++)
        lane[i] = from + i;
    return ir_shuffle(g->ir, x, x, lane, n);
}

/* `width` consecutive elements of a RED loop, in groups of K_LANES. */
static void into_lanes(Gen *g, const KInst *acc, Lv slot, Lv x)
{
    DType t = (DType)acc->dtype;
    int lanes = k_lanes(t);
    for (int from = 0; from < g->width; from += lanes) {
        Lv some = lanes == g->width ? x : part(g, x, from, lanes);
        Lt type = gen_type(g, slot_dtype(t), lanes);
        Lv old = ir_load(g->ir, type, slot, 64);
        Lv new = combine(g, (KOp)acc->aux, t, old, some);
        if (g->mask != NULL) {
            Lv live = lanes == g->width ? g->mask : part(g, g->mask, from, lanes);
            new = LLVMBuildSelect(g->ir->b, live, new, old, "");
        }
        ir_store(g->ir, new, slot, 64);
    }
}

/* What an accumulator takes; where denormals are flushed, LLVM is not to fold it. */
static Lv taken(Gen *g, Val v, bool vector)
{
    Lv x = vector ? gen_vec(g, v) : gen_get(g, v);
    bool fold = g->known != NULL && g->known[v] && dtype_is_float((DType)g->k->inst.at[v].dtype);
    return fold ? gen_hidden(g, x) : x;
}

void gen_into(Gen *g, Val v, Val red)
{
    const KInst *i = &g->k->inst.at[v], *acc = &g->k->inst.at[i->a];
    Lv slot = g->slot[i->a];
    DType t = (DType)acc->dtype;
    if (red != 0 && red == g->lane) {
        into_lanes(g, acc, slot, taken(g, i->b, true));
        return;
    }
    Lv x = taken(g, i->b, g->width > 1);
    if (red != 0) {
        Lv lane = LLVMBuildAnd(g->ir->b, gen_get(g, red), ir_int(g->ir, k_lanes(t) - 1), "");
        slot = ir_at_byte(g->ir, slot, ir_mul(g->ir, lane, (int64_t)g->width * bytes_of(t)));
    }
    into_lane(g, acc, slot, x);
}

/* Any of the lanes, or all of them, in whatever order. */
static Lv fold_bits(Gen *g, KOp op, Lv x)
{
    Lv bits =
        LLVMBuildBitCast(g->ir->b, x, LLVMIntTypeInContext(g->ir->c, (unsigned)lanes_of(x)), "");
    Lt type = LLVMTypeOf(bits);
    return op == KI_OR ? LLVMBuildICmp(g->ir->b, LLVMIntNE, bits, LLVMConstNull(type), "")
                       : LLVMBuildICmp(g->ir->b, LLVMIntEQ, bits, LLVMConstAllOnes(type), "");
}

/* The tree l[i] = op(l[i], l[i+w]) over a vector of virtual lanes. */
static Lv fold_vector(Gen *g, KOp op, DType t, Lv x)
{
    if (t == BOOL && (op == KI_OR || op == KI_AND))
        return fold_bits(g, op, x);
    for (int w = k_lanes(t) / 2; w > 1; w /= 2) {
        Lv low = part(g, x, 0, w), high = part(g, x, w, w);
        x = gen_combine(g, op, t, low, high);
    }
    Lv even = LLVMBuildExtractElement(g->ir->b, x, ir_int32(g->ir, 0), "");
    Lv odd = LLVMBuildExtractElement(g->ir->b, x, ir_int32(g->ir, 1), "");
    return gen_combine(g, op, t, even, odd);
}

static Lv fold_slots(Gen *g, KOp op, DType t, Lv slot)
{
    Lv lane[16];
    int n = k_lanes(t);
    for (int l = 0; l < n; l++) {
        Lv p = ir_off(g->ir, slot, (int64_t)l * g->width * bytes_of(t));
        lane[l] = unpack(g, t, ir_load(g->ir, lane_type(g, t), p, bytes_of(t)));
    }
    for (int w = n / 2; w >= 1; w /= 2)
        for (int l = 0; l < w; l++)
            lane[l] = gen_combine(g, op, t, lane[l], lane[l + w]);
    return lane[0];
}

void gen_fold(Gen *g, Val v)
{
    const KInst *acc = &g->k->inst.at[g->k->inst.at[v].a];
    Val a = g->k->inst.at[v].a;
    DType t = (DType)acc->dtype;
    KOp op = (KOp)acc->aux;
    g->vary[v] = g->width > 1;
    if (!g->slot_wide[a]) {
        g->value[v] = unpack(g, t, ir_load(g->ir, lane_type(g, t), g->slot[a], 64));
    } else if (g->width > 1) {
        g->value[v] = fold_slots(g, op, t, g->slot[a]);
    } else {
        Lt type = gen_type(g, slot_dtype(t), k_lanes(t));
        g->value[v] = fold_vector(g, op, t, unpack(g, t, ir_load(g->ir, type, g->slot[a], 64)));
    }
}

void gen_variable(Gen *g, Val v)
{
    const KInst *i = &g->k->inst.at[v];
    DType t = (DType)i->dtype;
    Val var = i->op == KI_VAR ? v : i->a;
    if (i->op == KI_VAR)
        g->slot[v] = ir_slot(g->ir, lane_type(g, t), 64);
    if (i->op == KI_GET) {
        g->vary[v] = g->width > 1;
        g->value[v] = unpack(g, t, ir_load(g->ir, lane_type(g, t), g->slot[var], 64));
        return;
    }
    Val from = i->op == KI_VAR ? i->a : i->b;
    Lv x = g->width > 1 ? gen_vec(g, from) : gen_get(g, from);
    ir_store(g->ir, pack(g, t, x), g->slot[var], 64);
}
