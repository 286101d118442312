/* Tiles: large enough to read little, small enough that every multiprocessor has one. */
#include "tile.h"

enum {
    TILE_DEPTH = 16,
    FEWEST_THREADS = 32,
    MULTIPROCESSORS = 132,  /* of an H100 or H200; an A100 has 108 */
    PANEL_BYTES = 40 << 10, /* both, of the 48 KiB that a block has without asking for more */
    REGISTERS = 65536,      /* of a multiprocessor, since compute capability 7.0 */
    REGISTER_UNIT = 8,      /* of a thread */
    OTHER_REGISTERS = 32,   /* of a thread: addresses, indices, ends */
    AT_HAND = 16,           /* instructions of a section whose values a thread has at once */
    PLAIN_INSTS = 2,        /* of a section that loads its element, and casts it at most */
    MOST_TURNS = 8,
    MOST_THREADS = 1024, /* of blocks that share a multiprocessor, where that is asked for: ... */
    MOST_BLOCKS = 16,    /* ... as many as all have */
};

static int64_t extent_of(const Kernel *k, KRole role)
{
    int64_t n = 1;
    for (int i = 0; i < k->con.n[role]; i++)
        n *= k->inst.at[k->con.dim[role][i]].imm.i;
    return n;
}

/* Loads of the section that move by 1 with the last sub-index of the role. */
static int unit_loads(const Kernel *k, Val from, Val to, KRole role)
{
    int n = 0, of = k->con.n[role];
    for (Val v = from; v < to && of > 0; v++) {
        if (k->inst.at[v].op != KI_LOAD)
            continue;
        const KAff *at = &k->access.at[k->inst.at[v].aux].at;
        for (int i = 0; i < at->n; i++)
            n += at->t[i].v == k->con.dim[role][of - 1] && at->t[i].coef == 1;
    }
    return n;
}

/* Half of the threads would do. */
static bool is_wide(int32_t threads, int64_t extent)
{
    return threads > 1 && threads / 2 >= extent;
}

/* Threads by role: as many as there are rows, where these are few. */
static void share_threads(Tile *t)
{
    int64_t m = t->extent[K_M], n = t->extent[K_N];
    t->rows = t->cols = 16;
    while (is_wide(t->rows, m) && t->cols < n) {
        t->rows /= 2;
        t->cols *= 2;
    }
    while (is_wide(t->cols, n) && t->rows < m) {
        t->cols /= 2;
        t->rows *= 2;
    }
    while (t->rows * t->cols > FEWEST_THREADS && (is_wide(t->rows, m) || is_wide(t->cols, n)))
        *(is_wide(t->rows, m) ? &t->rows : &t->cols) /= 2;
}

static int64_t pieces(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

static int64_t count_tiles(const Tile *t, int m, int n)
{
    return t->extent[K_B] * pieces(t->extent[K_M], (int64_t)t->rows * m) *
           pieces(t->extent[K_N], (int64_t)t->cols * n);
}

static bool panels_fit(const Tile *t, DType type, int m, int n)
{
    return (int64_t)t->k * (t->rows * m + t->cols * n) * dtype_bytes(type) <= PANEL_BYTES;
}

/* Elements of a thread: up to 8 by 8 of f32, 4 by 4 of f64, while there are tiles for all. */
static void share_elements(Tile *t, DType type)
{
    int most = type == F64 ? 4 : 8, m = 1, n = 1;
    for (;;) {
        bool more_m = 2 * m <= most && t->extent[K_M] > (int64_t)t->rows * m;
        bool more_n = 2 * n <= most && t->extent[K_N] > (int64_t)t->cols * n;
        bool take_m = more_m && (m <= n || !more_n);
        if (!more_m && !more_n)
            break;
        int next_m = take_m ? 2 * m : m, next_n = take_m ? n : 2 * n;
        if (count_tiles(t, next_m, next_n) < MULTIPROCESSORS && m * n >= 4)
            break;
        if (!panels_fit(t, type, next_m, next_n))
            break;
        m = next_m;
        n = next_n;
    }
    t->each_m = m;
    t->each_n = n;
}

/* Instructions for an element of a panel: those that find its indices, too, and its bounds. */
static int count_insts(const Kernel *k, bool a)
{
    const KContract *c = &k->con;
    int insts = c->n[a ? K_M : K_N] + c->n[K_K] - 2;
    for (Val v = a ? c->a_from : c->b_from; v < (a ? c->a_to : c->b_to); v++) {
        const KInst *i = &k->inst.at[v];
        insts += i->op != KI_CONST;
        insts += i->op == KI_LOAD ? k->access.at[i->aux].n_bounds : 0;
    }
    return insts;
}

/* Quotients and roots of panels' elements are calls, which the sums have to outlast. */
static bool has_calls(const Kernel *k, Val from, Val to)
{
    for (Val v = from; v < to; v++)
        if (k->inst.at[v].op == KI_DIV || k->inst.at[v].op == KI_SQRT)
            return true;
    return false;
}

static bool has_leaves(const Tile *t)
{
    return t->leaf < t->extent[K_K];
}

/* Registers of a block. A thread needs its sums, the elements of this k and of the next, and
 * OTHER_REGISTERS. */
static int64_t count_registers(const Tile *t, const Kernel *k)
{
    int words = k->con.dtype == F64 ? 2 : 1, totals = has_leaves(t) ? 2 : 1;
    int values = totals * t->each_m * t->each_n + 2 * (t->each_m + t->each_n) + AT_HAND;
    int64_t need = words * values + OTHER_REGISTERS;
    return t->rows * t->cols * align_up(need, REGISTER_UNIT);
}

/* Left to itself, ptxas takes 32, 64 or 128 registers and spills a few for it. Told how many blocks
 * share a multiprocessor, it takes what is there for each. Two blocks at least, of which one
 * computes while the other one waits for its panels; sums of leaves beside their total, or calls,
 * leave room for one. */
static int32_t count_blocks(const Tile *t, const Kernel *k)
{
    const KContract *c = &k->con;
    int32_t threads = t->rows * t->cols, blocks = (int32_t)(REGISTERS / count_registers(t, k));
    int32_t most = MOST_THREADS / threads < MOST_BLOCKS ? MOST_THREADS / threads : MOST_BLOCKS;
    bool calls = has_calls(k, c->a_from, c->a_to) || has_calls(k, c->b_from, c->b_to);
    int32_t least = !has_leaves(t) && !calls ? 2 : 1;
    return blocks > most ? most : blocks < least ? least : blocks;
}

/* A multiprocessor has not what its blocks would need. */
static bool is_tight(const Tile *t, const Kernel *k)
{
    return t->blocks * count_registers(t, k) > REGISTERS;
}

/* Turns of a panel's loop that are written out: more hide more of memory's latency, and take
 * registers that the sums need. Where the blocks leave too few of them, half as many. */
static int32_t count_turns(const Tile *t, const Kernel *k, bool a)
{
    int turns = MOST_TURNS, insts = count_insts(k, a);
    int most = is_tight(t, k) && insts > PLAIN_INSTS ? AT_HAND / 2 : AT_HAND;
    while (turns > 1 && turns * insts > most)
        turns /= 2;
    return turns < MOST_TURNS ? turns : 0;
}

Tile cu_plan_tile(const Kernel *k)
{
    Tile t = {.k = TILE_DEPTH, .leaf = k->con.leaf};
    for (int r = 0; r < 4; r++)
        t.extent[r] = extent_of(k, (KRole)r);
    share_threads(&t);
    share_elements(&t, k->con.dtype);
    t.m = t.rows * t.each_m;
    t.n = t.cols * t.each_n;
    t.tiles_m = pieces(t.extent[K_M], t.m);
    t.tiles_n = pieces(t.extent[K_N], t.n);
    if (t.leaf <= 0 || t.leaf > t.extent[K_K])
        t.leaf = t.extent[K_K];
    const KContract *c = &k->con;
    t.a_along_k = unit_loads(k, c->a_from, c->a_to, K_K) >= unit_loads(k, c->a_from, c->a_to, K_M);
    t.b_along_k = unit_loads(k, c->b_from, c->b_to, K_K) > unit_loads(k, c->b_from, c->b_to, K_N);
    t.blocks = count_blocks(&t, k);
    t.a_turns = count_turns(&t, k, true);
    t.b_turns = count_turns(&t, k, false);
    return t;
}
