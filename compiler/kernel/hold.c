/* What several loops over a row compute of the same elements, if that is long, is computed by the
 * first of them, and held in a LOCAL buffer for the others. Else each loop of a chain of softmaxes
 * computes all links before it again, which takes the square of their number. */
#include "same_loop.h"

enum {
    MOST_ELEMS = 1 << 14, /* of a row in the caches */
    LONG = 16,            /* of so many instructions a value is held; ... */
    SHORT_ROW = 16,       /* ... of a row of so few elements, which registers may hold, */
    VERY_LONG = 64,       /* ... of so many. */
    MATH = 16,            /* One of these functions counts for so many, ... */
    SLOW = 4              /* ... and a division or a root for so many */
};

typedef struct Hold {
    LoopPair p;     /* red: the first loop, of any kind; as: by Val of a later one */
    Val *loop;      /* by Val of a later loop: that loop */
    bool *again;    /* by Val of the first loop: a later one computes it, too */
    bool *stored;   /* by buffer: between the first loop and where one looks */
    Val end;        /* of the last loop that computes something again */
    int64_t extent; /* of the loops */
} Hold;

static const KInst *inst(const Hold *h, Val v)
{
    return &h->p.k->inst.at[v];
}

static void note_stores(Hold *h, Val from, Val to)
{
    for (Val v = from; v < to; v++)
        if (inst(h, v)->op == KI_STORE)
            h->stored[h->p.k->access.at[inst(h, v)->aux].buf] = true;
}

static bool is_row(const Hold *h, Val loop, Val end)
{
    const KInst *i = inst(h, loop), *first = inst(h, h->p.red);
    return i->op != KI_SEQ && i->imm.i == first->imm.i && i->reach == K_ALL &&
           !loop_holds_one(h->p.k, loop, end);
}

/* What it reads may be something else by now. */
static bool may_differ(const Hold *h, Val v)
{
    return inst(h, v)->op == KI_LOAD && h->stored[h->p.k->access.at[inst(h, v)->aux].buf];
}

static void look_at(Hold *h, Val loop, Val end)
{
    h->p.as[loop] = h->p.red;
    for (Val v = loop + 1; v < end; v++) {
        note_stores(h, v, v + 1);
        if (may_differ(h, v) || !loop_plain(inst(h, v)) || !loop_same(&h->p, v))
            continue;
        h->loop[v] = loop;
        h->again[h->p.as[v]] = true;
        h->end = end;
    }
}

/* The loops behind the first one, in the loop that holds it. */
static void look_around(Hold *h)
{
    const Kernel *k = h->p.k;
    note_stores(h, h->p.red, h->p.red_end);
    for (Val v = h->p.red_end + 1; v < (Val)k->inst.n && inst(h, v)->op != KI_END; v++) {
        bool loop = kop_class((KOp)inst(h, v)->op) == K_CLASS_LOOP;
        Val end = loop ? loop_end(k, v) : v + 1;
        if (loop && is_row(h, v, end))
            look_at(h, v, end);
        else
            note_stores(h, v, end);
        v = loop ? end : v;
    }
}

static int length_of(const KInst *i)
{
    if (kop_class((KOp)i->op) == K_CLASS_MATH)
        return MATH;
    return i->op == KI_CONST ? 0 : i->op == KI_DIV || i->op == KI_SQRT ? SLOW : 1;
}

/* What of the first loop the value is made of is long. */
static bool is_long(const Hold *h, bool *used, Val value)
{
    int length = 0, most = h->extent <= SHORT_ROW ? VERY_LONG : LONG;
    for (Val v = h->p.red; v <= value; v++)
        used[v] = v == value;
    for (Val v = value; v > h->p.red && length < most; v--)
        if (used[v]) {
            length += length_of(inst(h, v));
            k_use_operands(h->p.k, inst(h, v), used);
        }
    return length >= most;
}

/* The last one that is long and computed again, for those before it are part of it; or 0. */
static Val find_value(const Hold *h, Arena *scratch)
{
    bool *used = NEW_ARRAY(scratch, bool, h->p.k->inst.n);
    for (Val v = h->p.red_end; v-- > h->p.red + 1;)
        if (h->again[v] && dtype_is_float((DType)inst(h, v)->dtype) && is_long(h, used, v))
            return v;
    return 0;
}

/* A LOCAL buffer that nothing of the loops from the first one on touches, made if there is none.
 * fails: -1, if there is no room. */
static int find_room(Kernel *x, const Hold *h, DType t, int64_t most)
{
    int64_t bytes = h->extent * dtype_bytes(t);
    for (int b = 0; b < x->buf.n; b++) {
        const KBuf *local = &x->buf.at[b];
        if (local->mode != K_LOCAL)
            continue;
        bool is_free = local->dtype == t && local->elems == h->extent;
        for (Val v = h->p.red; v < (Val)x->inst.n && is_free; v++) {
            const KInst *i = &x->inst.at[v];
            is_free = kop_class((KOp)i->op) != K_CLASS_MEM || x->access.at[i->aux].buf != b;
        }
        if (is_free)
            return b;
        bytes += local->elems * dtype_bytes(local->dtype);
    }
    return bytes <= most ? k_buf(x, t, h->extent, K_LOCAL) : -1;
}

static int32_t place(Kernel *x, Arena *arena, int buf, Val loop)
{
    KAccess a = {.buf = buf, .at = k_aff_val(loop, 1)};
    vec_push(arena, &x->access, a);
    return x->access.n - 1;
}

/* A copy in which the first loop stores the value, and the others load it.   fails: NULL, if there
 * is no room. */
static Kernel *hold(Arena *arena, const Hold *h, Val value, int64_t most)
{
    Kernel *x = kernel_copy(arena, h->p.k, NULL);
    DType t = (DType)inst(h, value)->dtype;
    int buf = find_room(x, h, t, most);
    if (buf < 0)
        return NULL;
    for (Val v = h->p.red_end; v < h->end; v++)
        if (h->p.as[v] == value && h->loop[v] != 0)
            x->inst.at[v] = (KInst){
                .op = KI_LOAD, .dtype = (uint8_t)t, .aux = place(x, arena, buf, h->loop[v])};
    KInst put = {
        .op = KI_STORE, .dtype = (uint8_t)t, .aux = place(x, arena, buf, h->p.red), .a = value};
    vec_push(arena, &x->inst, put);
    return loop_put(arena, arena, x, h->p.red_end);
}

/* One value more of the loop, if there is one. */
static Kernel *hold_one(Arena *arena, Kernel *k, Val loop, int64_t most)
{
    Hold h = {.p = {.k = k, .red = loop, .red_end = loop_end(k, loop)},
              .extent = k->inst.at[loop].imm.i};
    if (h.extent > MOST_ELEMS || !is_row(&h, loop, h.p.red_end))
        return k;
    h.p.as = NEW_ARRAY(arena, Val, k->inst.n);
    h.loop = NEW_ARRAY(arena, Val, k->inst.n);
    h.again = NEW_ARRAY(arena, bool, k->inst.n);
    h.stored = NEW_ARRAY(arena, bool, k->buf.n);
    look_around(&h);
    Val value = find_value(&h, arena);
    Kernel *held = value != 0 ? hold(arena, &h, value, most) : NULL;
    return held != NULL ? held : k;
}

/* The kernel at hand lies in one arena, and what the next one takes in the other. */
static Kernel *hold_all(Arena two[2], Kernel *k, Val loop, int64_t most)
{
    for (Kernel *from = NULL; from != k;) {
        Arena *other = k->arena == &two[0] ? &two[1] : &two[0];
        arena_reset(other, (ArenaMark){0});
        from = k;
        k = hold_one(other, from, loop, most);
    }
    return k;
}

Kernel *kernel_hold(Arena *arena, Kernel *k, int64_t bytes)
{
    enum { MOST_GRID = 16 };
    Val grid[MOST_GRID];
    int n = k->kind == K_LOOP ? kernel_grid(k, grid, MOST_GRID) : 0;
    Kernel *first = k;
    Arena two[2] = {{0}};
    int others = 0; /* PAR loops around that are not of the grid: one LOCAL buffer is not enough */
    for (Val v = 1, g = 0; k->kind == K_LOOP && v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        if (g < (Val)n && grid[g] == v) {
            g++;
        } else if (i->op == KI_RED || i->op == KI_PAR) {
            bool par = i->op == KI_PAR;
            k = others == 0 ? hold_all(two, k, v, bytes) : k;
            others += par;
        } else if (i->op == KI_END) {
            bool of_grid = k->inst.at[i->aux].op != KI_PAR;
            for (int x = 0; x < n; x++)
                of_grid = of_grid || grid[x] == (Val)i->aux;
            others -= !of_grid;
        }
    }
    k = k != first ? kernel_copy(arena, k, NULL) : k;
    arena_free(&two[0]);
    arena_free(&two[1]);
    return k;
}
