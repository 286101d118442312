/* The builder: every kernel is made by these calls, one instruction after the
 * other. They check nothing that kernel_verify checks. */
#include <assert.h>
#include <string.h>
#include "kernel.h"

#define KI(name, text, args, class) {text, args, K_CLASS_##class},
static const struct {
    const char *text;
    int args;
    KClass class;
} table[N_KOPS] = {
#include "kinst.def"
};
#undef KI

const char *kop_text(KOp op)
{
    return table[op].text;
}

int kop_args(KOp op)
{
    return table[op].args;
}

KClass kop_class(KOp op)
{
    return table[op].class;
}

Kernel *kernel_new(Arena *arena, KKind kind, const char *name)
{
    Kernel *k = NEW(arena, Kernel);
    k->arena = arena;
    k->kind = kind;
    k->name = arena_strdup(arena, name);
    vec_push(arena, &k->inst, (KInst){.op = KI_NONE});
    return k;
}

int k_buf(Kernel *k, DType t, int64_t elems, KBufMode mode)
{
    vec_push(k->arena, &k->buf, ((KBuf){t, mode, elems}));
    return k->buf.n - 1;
}

static Val push(Kernel *k, KInst i)
{
    vec_push(k->arena, &k->inst, i);
    return (Val)(k->inst.n - 1);
}

static DType dtype_of(const Kernel *k, Val v)
{
    return (DType)k->inst.at[v].dtype;
}

/* ---- constants, indices, memory ----------------------------------------- */

static int32_t *bucket_of(KKnown *k, const KInst *c)
{
    uint64_t h = ((uint64_t)c->imm.i ^ c->dtype) * 0x9e3779b97f4a7c15u;
    return &k->bucket[h >> 58];
}

/* Instructions that were added since: others than the functions here do so, too. */
static void look_on(Kernel *k)
{
    KKnown *known = &k->known;
    for (; known->seen < (Val)k->inst.n; known->seen++) {
        const KInst *i = &k->inst.at[known->seen];
        if (i->op == KI_CONST) {
            int32_t *last = bucket_of(known, i);
            vec_push(k->arena, &known->at, ((KConstAt){known->seen, *last}));
            *last = known->at.n;
        }
        for (; i->op == KI_END && known->at.n > 0; known->at.n--) { /* the scope is closed */
            const KConstAt *at = &known->at.at[known->at.n - 1];
            if (at->v < (Val)i->aux)
                break;
            *bucket_of(known, &k->inst.at[at->v]) = at->before;
        }
    }
}

/* The last equal constant in [from, to) whose scope is still open, or 0. */
static Val find_const(Kernel *k, const KInst *c, Val from, Val to)
{
    look_on(k);
    const KKnown *known = &k->known;
    for (int32_t n = *bucket_of(&k->known, c); n > 0; n = known->at.at[n - 1].before) {
        Val v = known->at.at[n - 1].v;
        const KInst *i = &k->inst.at[v];
        if (v >= from && v < to && i->dtype == c->dtype && i->imm.i == c->imm.i)
            return v;
    }
    return 0;
}

/* A section of a contraction sees its own constants and those of the head. */
static Val constant(Kernel *k, KInst c)
{
    const KContract *con = &k->con;
    const Val from[] = {1, con->a_from, con->b_from, con->e_from};
    Val v = find_const(k, &c, from[k->section], (Val)k->inst.n);
    if (v == 0 && k->section != K_IN_DIMS)
        v = find_const(k, &c, 1, con->a_from);
    return v != 0 ? v : push(k, c);
}

Val k_const(Kernel *k, DType t, double x)
{
    if (!dtype_is_float(t))
        return k_const_int(k, t, (int64_t)x);
    return constant(k, (KInst){.op = KI_CONST, .dtype = (uint8_t)t, .imm.f = dtype_round(t, x)});
}

Val k_const_int(Kernel *k, DType t, int64_t x)
{
    assert(!dtype_is_float(t));
    switch (t) {
    case I32:
        x = (int32_t)x;
        break;
    case U8:
        x = (uint8_t)x;
        break;
    case BOOL:
        x = x != 0;
        break;
    default:
        break;
    }
    return constant(k, (KInst){.op = KI_CONST, .dtype = (uint8_t)t, .imm.i = x});
}

Val k_index(Kernel *k, DType t, KAff x)
{
    vec_push(k->arena, &k->affine, x);
    return push(k, (KInst){.op = KI_INDEX, .dtype = (uint8_t)t, .aux = k->affine.n - 1});
}

static int32_t new_access(Kernel *k, int buf, KAff at, const KBound *bound, int n, double otherwise)
{
    KAccess a = {.buf = buf, .n_bounds = n, .at = at};
    a.otherwise = dtype_round(k->buf.at[buf].dtype, otherwise);
    if (n > 0) {
        a.bound = NEW_ARRAY(k->arena, KBound, n);
        memcpy(a.bound, bound, (size_t)n * sizeof *bound);
    }
    vec_push(k->arena, &k->access, a);
    return k->access.n - 1;
}

Val k_load(Kernel *k, int buf, KAff at)
{
    return k_load_bounded(k, buf, at, NULL, 0, 0);
}

Val k_load_bounded(Kernel *k, int buf, KAff at, const KBound *bound, int n, double otherwise)
{
    int32_t aux = new_access(k, buf, at, bound, n, otherwise);
    return push(k, (KInst){.op = KI_LOAD, .dtype = (uint8_t)k->buf.at[buf].dtype, .aux = aux});
}

void k_store(Kernel *k, int buf, KAff at, Val v)
{
    k_store_bounded(k, buf, at, NULL, 0, v);
}

void k_store_bounded(Kernel *k, int buf, KAff at, const KBound *bound, int n, Val v)
{
    int32_t aux = new_access(k, buf, at, bound, n, 0);
    push(k, (KInst){.op = KI_STORE, .dtype = (uint8_t)dtype_of(k, v), .aux = aux, .a = v});
}

/* ---- scalars -------------------------------------------------------------- */

Val k_unary(Kernel *k, KOp op, Val a)
{
    assert(kop_args(op) == 1);
    return push(k, (KInst){.op = (uint8_t)op, .dtype = (uint8_t)dtype_of(k, a), .a = a});
}

Val k_binary(Kernel *k, KOp op, Val a, Val b)
{
    assert(kop_args(op) == 2);
    bool compares = op == KI_EQ || op == KI_NE || op == KI_LT || op == KI_LE;
    DType t = compares ? BOOL : dtype_of(k, a);
    return push(k, (KInst){.op = (uint8_t)op, .dtype = (uint8_t)t, .a = a, .b = b});
}

Val k_fma(Kernel *k, Val a, Val b, Val c)
{
    uint8_t t = (uint8_t)dtype_of(k, a);
    return push(k, (KInst){.op = KI_FMA, .dtype = t, .a = a, .b = b, .c = c});
}

Val k_select(Kernel *k, Val cond, Val a, Val b)
{
    uint8_t t = (uint8_t)dtype_of(k, a);
    return push(k, (KInst){.op = KI_SELECT, .dtype = t, .a = cond, .b = a, .c = b});
}

Val k_cast(Kernel *k, DType t, Val a)
{
    if (dtype_of(k, a) == t)
        return a;
    return push(k, (KInst){.op = KI_CAST, .dtype = (uint8_t)t, .a = a});
}

Val k_bitcast(Kernel *k, DType t, Val a)
{
    return push(k, (KInst){.op = KI_BITCAST, .dtype = (uint8_t)t, .a = a});
}

Val k_random(Kernel *k, Val key, Val counter_lo, Val counter_hi)
{
    return push(k,
                (KInst){.op = KI_RANDOM, .dtype = I32, .a = key, .b = counter_lo, .c = counter_hi});
}

/* ---- loops, accumulators, variables ---------------------------------------- */

static Val open_loop(Kernel *k, KOp op, int64_t extent, int32_t down)
{
    Val v = push(k, (KInst){.op = (uint8_t)op, .dtype = I64, .aux = down, .imm.i = extent});
    vec_push(k->arena, &k->open, v);
    return v;
}

Val k_par(Kernel *k, int64_t extent)
{
    return open_loop(k, KI_PAR, extent, 0);
}

Val k_seq(Kernel *k, int64_t extent)
{
    return open_loop(k, KI_SEQ, extent, 0);
}

Val k_seq_down(Kernel *k, int64_t extent)
{
    return open_loop(k, KI_SEQ, extent, 1);
}

Val k_red(Kernel *k, int64_t extent)
{
    return open_loop(k, KI_RED, extent, 0);
}

void k_end(Kernel *k, Val loop)
{
    for (Val last = 0; last != loop;) {
        assert(k->open.n > 0);
        last = k->open.at[--k->open.n];
        push(k, (KInst){.op = KI_END, .aux = (int32_t)last});
    }
}

Val k_acc(Kernel *k, DType t, KOp op)
{
    return push(k, (KInst){.op = KI_ACC, .dtype = (uint8_t)t, .aux = (int32_t)op});
}

void k_into(Kernel *k, Val acc, Val v)
{
    push(k, (KInst){.op = KI_INTO, .dtype = (uint8_t)dtype_of(k, v), .a = acc, .b = v});
}

Val k_fold(Kernel *k, Val acc)
{
    return k_unary(k, KI_FOLD, acc);
}

Val k_var(Kernel *k, Val init)
{
    return k_unary(k, KI_VAR, init);
}

Val k_get(Kernel *k, Val var)
{
    return k_unary(k, KI_GET, var);
}

void k_set(Kernel *k, Val var, Val v)
{
    push(k, (KInst){.op = KI_SET, .dtype = (uint8_t)dtype_of(k, v), .a = var, .b = v});
}

/* ---- contractions ------------------------------------------------------------ */

Val k_dim(Kernel *k, KRole role, int64_t extent)
{
    assert(k->section == K_IN_DIMS && k->con.n[role] < K_MAX_DIMS);
    Val v = push(k, (KInst){.op = KI_DIM, .dtype = I64, .aux = (int32_t)role, .imm.i = extent});
    k->con.dim[role][k->con.n[role]++] = v;
    return v;
}

void k_section_a(Kernel *k)
{
    assert(k->kind == K_CONTRACT && k->section == K_IN_DIMS);
    k->section = K_IN_A;
    k->con.a_from = (Val)k->inst.n;
}

void k_section_b(Kernel *k, Val a_value)
{
    assert(k->section == K_IN_A);
    k->section = K_IN_B;
    k->con.a = a_value;
    k->con.a_to = k->con.b_from = (Val)k->inst.n;
}

Val k_epilogue(Kernel *k, Val b_value, DType sum, int64_t leaf)
{
    assert(k->section == K_IN_B);
    k->section = K_IN_EPILOGUE;
    k->con.b = b_value;
    k->con.b_to = k->con.e_from = (Val)k->inst.n;
    k->con.dtype = sum;
    k->con.leaf = leaf;
    return push(k, (KInst){.op = KI_SUM, .dtype = (uint8_t)sum});
}

void k_all(Kernel *k, int buf, Val v)
{
    assert(k->section == K_IN_EPILOGUE && k->con.all == 0 && dtype_of(k, v) == BOOL);
    k->con.all = v;
    k->con.all_buf = buf;
}

void k_in_pairs(Kernel *k)
{
    KContract *c = &k->con;
    assert(k->section == K_IN_EPILOGUE && c->dtype == F32 && c->leaf % 2 == 0);
    assert(k->inst.at[c->a].dtype == BF16 && k->inst.at[c->b].dtype == BF16);
    c->pairs = true;
}

void k_reach(Kernel *k, Val v, KReach reach)
{
    assert(k->limit.is);
    k->inst.at[v].reach = (uint8_t)reach;
}

void k_finish(Kernel *k)
{
    assert(k->open.n == 0);
    if (k->kind == K_CONTRACT) {
        assert(k->section == K_IN_EPILOGUE);
        k->con.e_to = (Val)k->inst.n;
    }
}
