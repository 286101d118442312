/* Loop kernels: the grid, the team of an item, the loops that it shares out. */
#include <assert.h>
#include "cuda.h"

enum {
    POINT_THREADS = 256,     /* of a block whose items are threads */
    TEAM_THREADS = 128,      /* ... are teams of half a warp */
    BLOCK_TEAM = 256,        /* the largest team */
    SHARED_BYTES = 48 << 10, /* of a block, without asking for more */
    FEW_TURNS = 8,           /* a loop so short is not worth a team */
    LONG_TURNS = 256,        /* an item so long is worth a multiprocessor that has nothing to do */
    MANY_BLOCKS = 256,       /* as many as leave none of those */
    WARP = 32,
};

bool cu_is_loop(const Kernel *k, Val v)
{
    int op = k->inst.at[v].op;
    return op == KI_PAR || op == KI_SEQ || op == KI_RED;
}

static const KInst *inst(const LoopPlan *p, Val v)
{
    return &p->k->inst.at[v];
}

static bool is_red(const LoopPlan *p, Val v)
{
    return inst(p, v)->op == KI_RED;
}

/* ---- accumulators -------------------------------------------------------------------------- */

/* The innermost RED loop around `into` that lies inside of its accumulator's scope. */
static Val feeding_loop(const LoopPlan *p, Val into)
{
    Val acc = inst(p, into)->a, found = 0;
    for (Val v = acc + 1; v < into; v++)
        if (is_red(p, v) && p->end_of[v] > into)
            found = v;
    return found;
}

static void find_lanes(LoopPlan *p)
{
    for (Val v = 1; v < (Val)p->k->inst.n; v++) {
        if (inst(p, v)->op != KI_INTO)
            continue;
        Val red = p->red_of[v] = feeding_loop(p, v);
        if (red != 0)
            p->wide[inst(p, v)->a] = p->feeds[red] = true;
    }
}

int32_t cu_slots(const LoopPlan *plan, DType t, bool ours)
{
    return ours ? k_lanes(t) / plan->team : k_lanes(t);
}

/* ---- the grid ---------------------------------------------------------------------------------
 */

static void find_chain(LoopPlan *p)
{
    p->n_chain = kernel_grid(p->k, p->chain, CU_MAX_CHAIN);
    p->items = 1;
    for (int i = 0; i < p->n_chain; i++)
        p->items *= inst(p, p->chain[i])->imm.i;
}

/* What an item runs is [*from, *to). */
static void body(const LoopPlan *p, Val *from, Val *to)
{
    Val last = p->n_chain > 0 ? p->chain[p->n_chain - 1] : 0;
    *from = last + 1;
    *to = last > 0 ? p->end_of[last] : (Val)p->k->inst.n;
}

/* ---- loops that a team shares out
 * ---------------------------------------------------------------- */

/* No accumulator of the outside is fed by lanes of another loop inside of this one. */
static bool can_share(const LoopPlan *p, Val loop)
{
    if (inst(p, loop)->op == KI_SEQ)
        return false;
    for (Val v = loop + 1; v < p->end_of[loop]; v++)
        if (inst(p, v)->op == KI_INTO && inst(p, v)->a < loop && p->red_of[v] != loop)
            return false;
    return true;
}

static void find_shared(LoopPlan *p, Val from, Val to)
{
    for (Val v = from; v < to; v++) {
        if (inst(p, v)->op == KI_ACC)
            p->ours[v] = true;
        if (!cu_is_loop(p->k, v))
            continue;
        if (can_share(p, v)) {
            p->shared[v] = true;
            v = p->end_of[v];
        }
    }
}

/* How loads and stores lie in memory: `along` a shared loop side by side, or along the grid. */
static void count_strides(const LoopPlan *p, Val loop, int *along, int *across)
{
    Val last = p->n_chain > 0 ? p->chain[p->n_chain - 1] : 0;
    for (Val v = loop + 1; v < p->end_of[loop]; v++) {
        if (kop_class((KOp)inst(p, v)->op) != K_CLASS_MEM)
            continue;
        const KAff *at = &p->k->access.at[inst(p, v)->aux].at;
        for (int i = 0; i < at->n; i++) {
            bool unit = at->t[i].coef == 1 || at->t[i].coef == -1;
            *along += unit && at->t[i].v == loop;
            *across += unit && at->t[i].v == last;
        }
    }
}

/* Threads of an item: 1 where none of its loops is worth sharing. */
static int32_t choose_team(const LoopPlan *p)
{
    int along = 0, across = 0;
    int64_t longest = 0;
    bool lanes = false, eight = false;
    for (Val v = 1; v < (Val)p->k->inst.n; v++) {
        if (p->shared[v]) {
            count_strides(p, v, &along, &across);
            longest = inst(p, v)->imm.i > longest ? inst(p, v)->imm.i : longest;
        }
        bool wide = p->wide[v] && p->ours[v];
        lanes |= wide;
        eight |= wide && k_lanes((DType)inst(p, v)->dtype) == 8;
    }
    if (longest < FEW_TURNS || (across > along && p->items >= 2 * BLOCK_TEAM))
        return 1;
    if (lanes)
        return eight ? 8 : 16;
    return longest > BLOCK_TEAM ? BLOCK_TEAM : (int32_t)align_up(longest, 32);
}

/* ---- blocks
 * ------------------------------------------------------------------------------------------ */

static int64_t local_bytes(const Kernel *k)
{
    int64_t bytes = 0;
    for (int i = 0; i < k->buf.n; i++)
        if (k->buf.at[i].mode == K_LOCAL)
            bytes += align_up(k->buf.at[i].elems * dtype_bytes(k->buf.at[i].dtype), 16);
    return bytes;
}

static void find_lane_turns(LoopPlan *p)
{
    p->lanes = 8;
    for (Val v = 1; v < (Val)p->k->inst.n; v++)
        if (p->wide[v] && k_lanes((DType)inst(p, v)->dtype) == CU_LANES)
            p->lanes = CU_LANES;
}

/* What a team has on chip must fit there; a thread's own is not. */
static bool locals_fit(const Kernel *k)
{
    return local_bytes(k) <= SHARED_BYTES;
}

static int64_t extent_of(const LoopPlan *p, Val loop)
{
    int64_t n = inst(p, loop)->imm.i;
    return n > 0 ? n : 1;
}

/* Whether a thread of an item turns in its loops for long. */
static bool is_long(const LoopPlan *p)
{
    Val from, to;
    int64_t turns = 1, most = (int64_t)LONG_TURNS * p->team;
    body(p, &from, &to);
    for (Val v = from; v < to && turns < most; v++)
        if (cu_is_loop(p->k, v))
            turns *= extent_of(p, v);
        else if (inst(p, v)->op == KI_END)
            turns /= extent_of(p, (Val)inst(p, v)->aux);
    return turns >= most;
}

/* A block runs on one multiprocessor: few items that take long are put into small blocks. */
static void spread(LoopPlan *p)
{
    int32_t least = p->team < WARP ? WARP / p->team : 1;
    if (!is_long(p))
        return;
    while (p->teams > least && p->items <= (int64_t)p->teams / 2 * MANY_BLOCKS)
        p->teams /= 2;
}

static void choose_blocks(LoopPlan *p)
{
    p->teams = p->team == 1 ? POINT_THREADS : p->team < 32 ? TEAM_THREADS / p->team : 1;
    p->local_bytes = p->team == 1 ? 0 : local_bytes(p->k);
    while (p->teams > 1 && p->teams * p->local_bytes > SHARED_BYTES)
        p->teams /= 2;
    spread(p);
    if (p->teams > p->items)
        p->teams = p->items > 0 ? (int32_t)p->items : 1;
    p->threads = p->teams * p->team;
}

LoopPlan *cu_plan_loop(const Kernel *k, Arena *arena)
{
    LoopPlan *p = NEW(arena, LoopPlan);
    p->k = k;
    p->end_of = NEW_ARRAY(arena, Val, k->inst.n);
    p->red_of = NEW_ARRAY(arena, Val, k->inst.n);
    p->wide = NEW_ARRAY(arena, bool, k->inst.n);
    p->feeds = NEW_ARRAY(arena, bool, k->inst.n);
    p->shared = NEW_ARRAY(arena, bool, k->inst.n);
    p->ours = NEW_ARRAY(arena, bool, k->inst.n);
    for (Val v = 1; v < (Val)k->inst.n; v++)
        if (inst(p, v)->op == KI_END)
            p->end_of[inst(p, v)->aux] = v;
    find_lanes(p);
    find_chain(p);
    Val from, to;
    body(p, &from, &to);
    find_shared(p, from, to);
    p->team = locals_fit(k) ? choose_team(p) : 1;
    if (p->team == 1)
        for (Val v = 1; v < (Val)k->inst.n; v++)
            p->shared[v] = p->ours[v] = false;
    find_lane_turns(p);
    choose_blocks(p);
    return p;
}
