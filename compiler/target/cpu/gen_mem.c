/* Addresses, loads and stores: a vector where lanes are contiguous, a splat where
 * they are equal, single elements otherwise. A lane outside of its bounds reads
 * nothing: its address is replaced by one that is in the buffer, or masked. */
#include <math.h>
#include "gen.h"

#define PICK(cond, x, y) LLVMBuildSelect(g->ir->b, cond, x, y, "")

/* ---- affine expressions ------------------------------------------------------- */

static Lv to_i64(Gen *g, Lv x)
{
    Lt wide = ir_vec(g->ir->i64, lanes_of(x));
    return LLVMTypeOf(x) == wide ? x : LLVMBuildSExt(g->ir->b, x, wide, "");
}

Lv gen_affine(Gen *g, const KAff *x)
{
    Lv sum = ir_int(g->ir, x->base);
    for (int i = 0; i < x->n; i++)
        if (!g->vary[x->t[i].v])
            sum = ir_add(g->ir, sum, ir_mul(g->ir, to_i64(g, gen_get(g, x->t[i].v)), x->t[i].coef));
    return sum;
}

static int64_t coef_of(const KAff *x, Val v)
{
    for (int i = 0; i < x->n && v != 0; i++)
        if (x->t[i].v == v)
            return x->t[i].coef;
    return 0;
}

int64_t gen_stride(const Gen *g, const KAff *x)
{
    return coef_of(x, g->lane);
}

bool gen_irregular(const Gen *g, const KAff *x)
{
    for (int i = 0; i < x->n; i++)
        if (g->vary[x->t[i].v])
            return true;
    return false;
}

Lv gen_affine_lanes(Gen *g, const KAff *x, DType t)
{
    Ir *ir = g->ir;
    Lt elem = gen_type(g, t, 1), type = ir_vec(elem, g->width);
    Lv base = gen_affine(g, x);
    if (t == I32)
        base = LLVMBuildTrunc(ir->b, base, elem, "");
    Lv sum =
        ir_add(ir, ir_splat(ir, base, g->width), ir_iota(ir, elem, g->width, gen_stride(g, x)));
    for (int i = 0; i < x->n; i++) {
        if (!g->vary[x->t[i].v])
            continue;
        Lv v = gen_get(g, x->t[i].v);
        v = t == I32 ? LLVMBuildTrunc(ir->b, v, type, "") : to_i64(g, v);
        Lv coef = ir_splat(ir, LLVMConstInt(elem, (unsigned long long)x->t[i].coef, 1), g->width);
        sum = ir_add(ir, sum, LLVMBuildMul(ir->b, v, coef, ""));
    }
    return sum;
}

/* Lane l of an affine: scalar arithmetic; l < 0 in a scalar context. */
static Lv affine_of_lane(Gen *g, const KAff *x, Lv at_lane0, int l)
{
    Ir *ir = g->ir;
    Lv sum = ir_add(ir, at_lane0, ir_int(ir, gen_stride(g, x) * l));
    for (int i = 0; i < x->n; i++) {
        if (!g->vary[x->t[i].v])
            continue;
        Lv v = LLVMBuildExtractElement(ir->b, gen_get(g, x->t[i].v), ir_int32(ir, l), "");
        sum = ir_add(ir, sum, ir_mul(ir, to_i64(g, v), x->t[i].coef));
    }
    return sum;
}

/* ---- bounds ---------------------------------------------------------------------- */

/* Where an access is inside of its bounds; NULL: always. */
typedef struct Inside {
    Lv all;  /* i1, from bounds that are the same for each lane */
    Lv lane; /* <width x i1> */
} Inside;

static Lv both(Gen *g, Lv x, Lv y)
{
    if (x == NULL || y == NULL)
        return x == NULL ? y : x;
    return LLVMBuildAnd(g->ir->b, x, y, "");
}

/* lo <= e < hi in one comparison. */
static Lv in_range(Gen *g, Lv e, int64_t lo, int64_t hi)
{
    Ir *ir = g->ir;
    int n = lanes_of(e);
    Lt t = n > 1 ? LLVMGetElementType(LLVMTypeOf(e)) : LLVMTypeOf(e);
    Lv from = ir_splat(ir, LLVMConstInt(t, (unsigned long long)lo, 1), n);
    Lv count = ir_splat(ir, LLVMConstInt(t, (unsigned long long)(hi > lo ? hi - lo : 0), 1), n);
    return LLVMBuildICmp(ir->b, LLVMIntULT, LLVMBuildSub(ir->b, e, from, ""), count, "");
}

static bool always_inside(const Gen *g, const KBound *b, bool *fits32)
{
    int64_t lo, hi;
    const int64_t limit = INT64_C(1) << 30;
    *fits32 = false;
    if (gen_is_sure(g, b))
        return true;
    if (!k_aff_range(g->k, &b->e, &lo, &hi))
        return false;
    *fits32 = lo > -limit && hi < limit && b->lo > -limit && b->hi < limit;
    return lo >= b->lo && hi < b->hi;
}

static Inside inside(Gen *g, const KAccess *a)
{
    Inside in = {NULL, NULL};
    for (int i = 0; i < a->n_bounds; i++) {
        const KBound *b = &a->bound[i];
        bool fits32;
        if (always_inside(g, b, &fits32))
            continue;
        if (gen_stride(g, &b->e) == 0 && !gen_irregular(g, &b->e)) {
            in.all = both(g, in.all, in_range(g, gen_affine(g, &b->e), b->lo, b->hi));
            continue;
        }
        Lv e = gen_affine_lanes(g, &b->e, fits32 ? I32 : I64);
        in.lane = both(g, in.lane, in_range(g, e, b->lo, b->hi));
    }
    return in;
}

/* The bounds that vary, on one lane, and whether the lane exists; NULL: yes. */
static Lv inside_lane(Gen *g, const KAccess *a, int l)
{
    Ir *ir = g->ir;
    Lv ok = NULL;
    bool fits32;
    for (int i = 0; i < a->n_bounds; i++) {
        const KBound *b = &a->bound[i];
        bool same = gen_stride(g, &b->e) == 0 && !gen_irregular(g, &b->e);
        if (same || always_inside(g, b, &fits32))
            continue;
        Lv e = affine_of_lane(g, &b->e, gen_affine(g, &b->e), l);
        ok = both(g, ok, in_range(g, e, b->lo, b->hi));
    }
    if (g->live != NULL && l > 0)
        ok = both(g, ok, LLVMBuildICmp(ir->b, LLVMIntSGT, g->live, ir_int(ir, l), ""));
    if (g->from != NULL)
        ok = both(g, ok, LLVMBuildICmp(ir->b, LLVMIntSLE, g->from, ir_int(ir, l), ""));
    return ok;
}

/* ---- formats ------------------------------------------------------------------------ */

Lv gen_from_mem(Gen *g, DType t, Lv x)
{
    if (t == F16 || t == BF16)
        return gen_half_float(g, t, x);
    if (t != BOOL)
        return x;
    return LLVMBuildICmp(g->ir->b, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)), "");
}

Lv gen_to_mem(Gen *g, DType t, Lv x)
{
    if (t == F16 || t == BF16)
        return gen_half_bits(g, t, x);
    if (t != BOOL)
        return x;
    return LLVMBuildZExt(g->ir->b, x, gen_mem_type(g, BOOL, lanes_of(x)), "");
}

static bool maskable(const Gen *g, DType t)
{
    const Machine *m = g->ir->mach;
    return dtype_bytes(t) >= 4 ? m->masked : m->masked_small;
}

/* A LOCAL buffer that each lane has for itself. */
static bool by_lane(const Gen *g, const KAccess *a)
{
    return g->local_by_lane[a->buf] && g->width > 1;
}

static Lv address(Gen *g, const KAccess *a, Lv elem)
{
    int64_t size = dtype_bytes(g->k->buf.at[a->buf].dtype);
    return ir_at_byte(g->ir, g->buf[a->buf], ir_mul(g->ir, elem, size));
}

/* Element index of lane l, or of lane 0 of a vector. */
static Lv element(Gen *g, const KAccess *a, Lv at_lane0, int l)
{
    Ir *ir = g->ir;
    Lv e = affine_of_lane(g, &a->at, at_lane0, l);
    return by_lane(g, a) ? ir_add(ir, ir_mul(ir, e, g->width), ir_int(ir, l)) : e;
}

/* ---- what never shares memory --------------------------------------------------------- */

/* A one-element list of the scope of lane scratch. source: LLVM LangRef, noalias and
 * alias.scope metadata. */
static Lv scratch_scope(Ir *ir)
{
    Lv text = LLVMMDStringInContext(ir->c, "gradc", 5);
    Lv domain = LLVMMDNodeInContext(ir->c, &text, 1);
    Lv pair[] = {LLVMMDStringInContext(ir->c, "scratch", 7), domain};
    Lv scope = LLVMMDNodeInContext(ir->c, pair, 2);
    return LLVMMDNodeInContext(ir->c, &scope, 1);
}

void gen_mark_scratch(Ir *ir, Lv inst)
{
    LLVMSetMetadata(inst, LLVMGetMDKindIDInContext(ir->c, "alias.scope", 11), scratch_scope(ir));
}

void gen_mark_operand(Ir *ir, Lv inst)
{
    LLVMSetMetadata(inst, LLVMGetMDKindIDInContext(ir->c, "noalias", 7), scratch_scope(ir));
}

/* x, the load of an access, marked; through a call of a masked load too. */
static Lv marked(Gen *g, const KAccess *a, Lv x)
{
    if (g->k->buf.at[a->buf].mode == K_LOCAL)
        gen_mark_scratch(g->ir, x);
    else
        gen_mark_operand(g->ir, x);
    return x;
}

/* ---- loads ---------------------------------------------------------------------------- */

static bool plus_zero(double x)
{
    return x == 0 && !signbit(x);
}

/* Memory of zeros, as long as any vector: what an access reads where it is outside. */
static Lv zeros(Gen *g)
{
    Ir *ir = g->ir;
    Lt type = LLVMArrayType(ir->i8, 256);
    IrShared s;
    if (ir_shared_data(ir, "gradc.zeros", type, &s)) {
        Lv z = LLVMGetNamedGlobal(ir->m, "gradc.zeros");
        LLVMSetInitializer(z, LLVMConstNull(type));
        ir_shared_end(ir, &s);
    }
    return s.made;
}

/* Where to read: the element, or zeros. */
static Lv safe_address(Gen *g, const KAccess *a, Lv ok, Lv elem)
{
    Lv p = address(g, a, elem);
    return ok == NULL ? p : PICK(ok, p, zeros(g));
}

static Lv otherwise(Gen *g, const KAccess *a, DType t, int n)
{
    int64_t whole = dtype_is_float(t) ? 0 : (int64_t)a->otherwise;
    return ir_splat(g->ir, gen_const(g, t, a->otherwise, whole), n);
}

/* x where `ok`, a scalar or lanes; a lane that read zeros is right where that is what the
 * access is otherwise. */
static Lv choose(Gen *g, const KAccess *a, DType t, Lv ok, Lv x, bool read_zeros)
{
    int n = lanes_of(x);
    bool careless = g->careless[a - g->k->access.at];
    if (ok == NULL || careless || (read_zeros && plus_zero(a->otherwise)))
        return x;
    if (lanes_of(ok) != n)
        ok = ir_splat(g->ir, ok, n);
    return PICK(ok, x, otherwise(g, a, t, n));
}

/* Whether the address is in the buffer whatever the bounds say. */
static bool always_valid(const Gen *g, const KAccess *a)
{
    int64_t lo, hi;
    return k_aff_range(g->k, &a->at, &lo, &hi) && lo >= 0 && hi < g->k->buf.at[a->buf].elems;
}

static Lv load_one(Gen *g, const KAccess *a, DType t, Inside in)
{
    bool valid = always_valid(g, a), careless = g->careless[a - g->k->access.at];
    Lv ok = valid ? NULL : in.all;
    if (in.lane != NULL && !valid) {
        /* A lane that is not there, beyond its run, may be inside of the bounds. */
        Lv lanes = both(g, g->mask, in.lane);
        Lt type = LLVMTypeOf(lanes);
        Lv any = ir_intrinsic(g->ir, "llvm.vector.reduce.or", &type, 1, &lanes, 1);
        ok = both(g, ok, any);
    }
    if (g->from != NULL) /* there may be no lane, and then the loops' indices are not in range */
        ok = both(g, ok, LLVMBuildICmp(g->ir->b, LLVMIntSLT, g->from, g->live, ""));
    Lv p = safe_address(g, a, ok, gen_affine(g, &a->at));
    Lv x = ir_load(g->ir, gen_mem_type(g, t, 1), p, dtype_bytes(t));
    x = gen_from_mem(g, t, marked(g, a, x));
    x = choose(g, a, t, in.all, x, !valid);
    if (in.lane == NULL || careless)
        return x;
    return choose(g, a, t, in.lane, ir_splat(g->ir, x, g->width), false);
}

static Lv load_masked(Gen *g, Lt type, Lv p, int align, Lv mask)
{
    Lt types[] = {type, g->ir->ptr};
    Lv arg[] = {p, ir_int32(g->ir, align), mask, LLVMConstNull(type)};
    return ir_intrinsic(g->ir, "llvm.masked.load", types, 2, arg, 4);
}

/* Contiguous lanes; `in.lane` and g->mask can be masks of the hardware. */
static Lv load_run(Gen *g, const KAccess *a, DType t, Inside in)
{
    Lt mem = gen_mem_type(g, t, g->width);
    Lv mask = both(g, g->mask, in.lane), x;
    Lv p = safe_address(g, a, in.all, element(g, a, gen_affine(g, &a->at), 0));
    if (mask == NULL)
        x = ir_load(g->ir, mem, p, dtype_bytes(t));
    else
        x = load_masked(g, mem, p, dtype_bytes(t), mask);
    marked(g, a, x);
    x = choose(g, a, t, in.lane, gen_from_mem(g, t, x), true);
    return choose(g, a, t, in.all, x, true);
}

/* Every second element, of lanes that are all there: two loads that meet, the first from the
 * first element, the other up to the last one, and nothing beyond is read. (One masked load of
 * twice the lanes would do, but LLVM 19 loads lanes that nobody wants, mask or not.) */
static Lv load_pairs(Gen *g, const KAccess *a, DType t, Inside in)
{
    Ir *ir = g->ir;
    int n = g->width, even[32];
    for (int l = 0; l < n; l++)
        even[l] = 2 * l < n ? 2 * l : 2 * l + 1;
    Lt mem = gen_mem_type(g, t, n);
    Lv p = safe_address(g, a, in.all, gen_affine(g, &a->at));
    Lv q = ir_off(ir, p, (n - 1) * dtype_bytes(t));
    Lv low = marked(g, a, ir_load(ir, mem, p, dtype_bytes(t)));
    Lv high = marked(g, a, ir_load(ir, mem, q, dtype_bytes(t)));
    Lv x = gen_from_mem(g, t, ir_shuffle(ir, low, high, even, n));
    return choose(g, a, t, in.all, x, true);
}

/* Of every second element from one that is `first` on (0 or n), the lanes that `mask` has; the
 * elements between are off. */
static Lv spread_mask(Gen *g, Lv mask, int first)
{
    int n = g->width, pick[64];
    for (int l = 0; l < n; l++)
        pick[l] = l % 2 == 0 ? (first + l) / 2 : n;
    Lv none = LLVMConstNull(LLVMTypeOf(mask));
    return ir_shuffle(g->ir, mask, none, pick, n);
}

/* Every second element where some lanes are dead: two masked loads, each of n elements. */
static Lv load_pairs_masked(Gen *g, const KAccess *a, DType t, Inside in)
{
    Ir *ir = g->ir;
    int n = g->width, even[32];
    for (int l = 0; l < n; l++)
        even[l] = 2 * l;
    Lt mem = gen_mem_type(g, t, n);
    Lv mask = both(g, g->mask, in.lane), part[2];
    Lv p = safe_address(g, a, in.all, gen_affine(g, &a->at));
    for (int h = 0; h < 2; h++) {
        Lv q = ir_off(ir, p, h * n * dtype_bytes(t));
        part[h] = marked(g, a, load_masked(g, mem, q, dtype_bytes(t), spread_mask(g, mask, h * n)));
    }
    Lv x = gen_from_mem(g, t, ir_shuffle(ir, part[0], part[1], even, n));
    x = choose(g, a, t, in.lane, x, true);
    return choose(g, a, t, in.all, x, true);
}

static Lv load_each(Gen *g, const KAccess *a, DType t, Inside in)
{
    Ir *ir = g->ir;
    Lv at = gen_affine(g, &a->at), x = LLVMGetPoison(gen_mem_type(g, t, g->width));
    for (int l = 0; l < g->width; l++) {
        Lv ok = both(g, in.all, inside_lane(g, a, l));
        Lv p = safe_address(g, a, ok, element(g, a, at, l));
        Lv one = marked(g, a, ir_load(ir, gen_mem_type(g, t, 1), p, dtype_bytes(t)));
        x = LLVMBuildInsertElement(ir->b, x, one, ir_int32(ir, l), "");
    }
    x = choose(g, a, t, in.lane, gen_from_mem(g, t, x), true);
    return choose(g, a, t, in.all, x, true);
}

Lv gen_line_of_lane(Gen *g, int32_t access, int l)
{
    Ir *ir = g->ir;
    const KAccess *a = &g->k->access.at[access];
    Lv lane = ir_int(ir, l), ok = NULL;
    if (g->live != NULL)
        lane = ir_min(ir, lane, LLVMBuildSub(ir->b, g->live, ir_int(ir, 1), ""));
    for (int i = 0; i < a->n_bounds; i++) {
        const KBound *b = &a->bound[i];
        bool fits32;
        if (always_inside(g, b, &fits32))
            continue;
        Lv e = ir_add(ir, gen_affine(g, &b->e), ir_mul(ir, lane, gen_stride(g, &b->e)));
        ok = both(g, ok, in_range(g, e, b->lo, b->hi));
    }
    Lv at = ir_add(ir, gen_affine(g, &a->at), ir_mul(ir, lane, gen_stride(g, &a->at)));
    return safe_address(g, a, ok, at);
}

/* A row of a tile: dead lanes are there, too. */
static Lv load_tile(Gen *g, DType t, Lv at)
{
    Lv x = ir_load(g->ir, gen_mem_type(g, t, g->width), at, dtype_bytes(t));
    gen_mark_scratch(g->ir, x);
    return gen_from_mem(g, t, x);
}

Lv gen_load(Gen *g, int32_t access)
{
    const KAccess *a = &g->k->access.at[access];
    DType t = g->k->buf.at[a->buf].dtype;
    if (g->tile != NULL && g->tile[access] != NULL)
        return load_tile(g, t, g->tile[access]);
    Inside in = inside(g, a);
    bool irregular = gen_irregular(g, &a->at);
    int64_t stride = gen_stride(g, &a->at);
    if (by_lane(g, a))
        stride = stride == 0 && !irregular ? 1 : 3;
    if (g->width == 1 || (stride == 0 && !irregular))
        return load_one(g, a, t, in);
    bool masked = g->mask != NULL || in.lane != NULL;
    if (stride == 1 && !irregular && (!masked || maskable(g, t)))
        return load_run(g, a, t, in);
    if (stride == 2 && !irregular && !masked && dtype_bytes(t) >= 4 && g->width <= 16)
        return load_pairs(g, a, t, in);
    if (stride == 2 && !irregular && machine_masks_pairs(g->ir->mach, t, g->width))
        return load_pairs_masked(g, a, t, in);
    return load_each(g, a, t, in);
}

/* ---- stores ---------------------------------------------------------------------------- */

static void store_one(Gen *g, const KAccess *a, DType t, Lv x)
{
    Lv p = address(g, a, gen_affine(g, &a->at));
    ir_store(g->ir, gen_to_mem(g, t, x), p, dtype_bytes(t));
}

static void store_at(Gen *g, Lv x, Lv p, int bytes, Lv mask)
{
    if (mask == NULL) {
        ir_store(g->ir, x, p, bytes);
        return;
    }
    Lt types[] = {LLVMTypeOf(x), g->ir->ptr};
    Lv arg[] = {x, p, ir_int32(g->ir, bytes), mask};
    ir_intrinsic(g->ir, "llvm.masked.store", types, 2, arg, 4);
}

/* How many lanes a mask has, if they are the first ones and that is a constant; else 0. */
static int first_lanes(const Gen *g, Lv mask)
{
    bool first = mask != NULL && mask == g->mask && g->from == NULL && LLVMIsAConstantInt(g->live);
    return first ? (int)LLVMConstIntGetSExtValue(g->live) : 0;
}

/* The first n lanes, in vectors of a half, a quarter, ...: a masked store would hold up loads of
 * what it leaves as it is, as of the next row, until it is done. (An Intel Xeon does so for what
 * lies 4096 bytes apart, too: a softmax of 24 places took 140 cycles a row, of 32 places 50.) */
static void store_first(Gen *g, Lv x, Lv p, int bytes, int n)
{
    int lane[64], many = g->width;
    for (int at = 0; at < n; at += many) {
        while (many > n - at)
            many /= 2;
        for (int i = 0; i < many; i++)
            lane[i] = at + i;
        Lv part = many > 1 ? ir_shuffle(g->ir, x, x, lane, many)
                           : LLVMBuildExtractElement(g->ir->b, x, ir_int32(g->ir, at), "");
        store_at(g, part, ir_off(g->ir, p, (int64_t)at * bytes), bytes, NULL);
    }
}

/* Lanes that are masked off lie behind a LOCAL buffer, in what pads it, or are those of no row. */
static bool is_padded(const Gen *g, const KAccess *a)
{
    const KBuf *b = &g->k->buf.at[a->buf];
    if (b->mode != K_LOCAL || a->n_bounds > 0)
        return false;
    if (by_lane(g, a))
        return true;
    const KTerm *t = &a->at.t[0];
    return g->from == NULL && a->at.base == 0 && a->at.n == 1 && t->v == g->lane && t->coef == 1 &&
           g->k->inst.at[t->v].imm.i == b->elems && dtype_bytes(b->dtype) * g->width <= LOCAL_PAD;
}

static void store_run(Gen *g, const KAccess *a, DType t, Lv x, Lv mask)
{
    Lv p = address(g, a, element(g, a, gen_affine(g, &a->at), 0));
    mask = is_padded(g, a) ? NULL : mask;
    int bytes = dtype_bytes(t), first = first_lanes(g, mask);
    x = gen_to_mem(g, t, x);
    /* Smaller elements keep the mask: of bytes the pieces, which are more, took longer. */
    if (first > 0 && first < g->width && bytes >= 4)
        store_first(g, x, p, bytes, first);
    else
        store_at(g, x, p, bytes, mask);
}

/* Every second element: two masked stores, which leave what lies between as it is. */
static void store_pairs(Gen *g, const KAccess *a, DType t, Lv x, Lv mask)
{
    Ir *ir = g->ir;
    int n = g->width, pick[64];
    x = gen_to_mem(g, t, x);
    if (mask == NULL)
        mask = LLVMConstAllOnes(LLVMVectorType(ir->i1, (unsigned)n));
    Lv p = address(g, a, gen_affine(g, &a->at));
    for (int h = 0; h < 2; h++) {
        for (int l = 0; l < n; l++)
            pick[l] = (h * n + l) / 2;
        store_at(g, ir_shuffle(ir, x, x, pick, n), ir_off(ir, p, h * n * dtype_bytes(t)),
                 dtype_bytes(t), spread_mask(g, mask, h * n));
    }
}

/* Every second element, and with the loop's other turn those between: one run. Stored turn by turn,
 * they would be on the way to memory when the second turn reads what lies between, in place. */
static void store_both(Gen *g, int32_t access, DType t, Lv x)
{
    Ir *ir = g->ir;
    const KAccess *a = &g->k->access.at[access];
    int n = g->width, lane[64], twice[64];
    x = gen_to_mem(g, t, x);
    if (g->turn == 0) {
        g->held[access] = x;
        return;
    }
    for (int l = 0; l < 2 * n; l++)
        lane[l] = l % 2 * n + l / 2;
    Lv all = ir_shuffle(ir, g->held[access], x, lane, 2 * n), mask = NULL;
    Lv p = ir_off(ir, address(g, a, gen_affine(g, &a->at)), -dtype_bytes(t));
    for (int l = 0; l < 2 * n; l++)
        twice[l] = l / 2;
    if (g->mask != NULL)
        mask = ir_shuffle(ir, g->mask, g->mask, twice, 2 * n);
    store_at(g, all, p, dtype_bytes(t), mask);
}

static bool has_partner(const Gen *g, const KAccess *a, DType t)
{
    return g->pair != 0 && a->n_bounds == 0 && coef_of(&a->at, g->pair) == 1 &&
           dtype_bytes(t) >= 4 && (g->mask == NULL || maskable(g, t));
}

/* Where a lane that is masked off writes: nobody looks there. */
static Lv nowhere(Gen *g)
{
    if (g->nowhere == NULL || g->nowhere_fn != g->ir->fn) {
        g->nowhere = ir_slot(g->ir, g->ir->i64, 8);
        g->nowhere_fn = g->ir->fn;
    }
    return g->nowhere;
}

static void store_each(Gen *g, const KAccess *a, DType t, Lv x)
{
    Ir *ir = g->ir;
    Lv at = gen_affine(g, &a->at);
    x = gen_to_mem(g, t, x);
    for (int l = 0; l < g->width; l++) {
        Lv ok = inside_lane(g, a, l);
        Lv one = LLVMBuildExtractElement(ir->b, x, ir_int32(ir, l), "");
        Lv p = address(g, a, element(g, a, at, l));
        ir_store(ir, one, ok != NULL ? PICK(ok, p, nowhere(g)) : p, dtype_bytes(t));
    }
}

void gen_store(Gen *g, int32_t access, Lv x, bool vary)
{
    const KAccess *a = &g->k->access.at[access];
    DType t = g->k->buf.at[a->buf].dtype;
    Inside in = inside(g, a);
    bool irregular = gen_irregular(g, &a->at);
    int64_t stride = gen_stride(g, &a->at);
    if (by_lane(g, a))
        stride = stride == 0 && !irregular ? 1 : 3;
    IrIf s = {NULL, NULL};
    if (in.all != NULL)
        s = ir_if(g->ir, in.all);
    if (g->width == 1 || (stride == 0 && !irregular && !vary && in.lane == NULL)) {
        store_one(g, a, t, x);
    } else {
        x = vary ? x : ir_splat(g->ir, x, g->width);
        if (stride == 1 && !irregular)
            store_run(g, a, t, x, both(g, g->mask, in.lane));
        else if (stride == 2 && !irregular && has_partner(g, a, t))
            store_both(g, access, t, x);
        else if (stride == 2 && !irregular && machine_masks_pairs(g->ir->mach, t, g->width))
            store_pairs(g, a, t, x, both(g, g->mask, in.lane));
        else
            store_each(g, a, t, x);
    }
    if (in.all != NULL)
        ir_end_if(g->ir, &s);
}

/* Lanes of the machine that share out a kernel may store it at once, all the same value. */
void gen_all(Gen *g, int32_t buf, Val v)
{
    Ir *ir = g->ir;
    Lv x = gen_get(g, v);
    if (g->vary[v]) {
        if (g->mask != NULL)
            x = LLVMBuildOr(ir->b, x, LLVMBuildNot(ir->b, g->mask, ""), "");
        Lt type = LLVMTypeOf(x);
        x = ir_intrinsic(ir, "llvm.vector.reduce.and", &type, 1, &x, 1);
    }
    IrIf f = ir_if(ir, LLVMBuildNot(ir->b, x, ""));
    Lv stored = LLVMBuildStore(ir->b, LLVMConstInt(ir->i8, 0, 0), g->buf[buf]);
    LLVMSetOrdering(stored, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(stored, 1);
    gen_mark_operand(ir, stored);
    ir_end_if(ir, &f);
}
