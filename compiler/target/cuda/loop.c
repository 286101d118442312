/* Loop kernels as CUDA C++: an item's instructions, by its thread or by all of its team. */
#include <assert.h>
#include "cuda.h"

enum { UNROLL_INSTS = 64, MATH_INSTS = 20 }; /* a lane's share of a loop that is written out */

typedef struct Emit {
    Printer *p;
    const LoopPlan *plan;
    Touched touched;
    bool together; /* all of the team run this, and have the same values */
    bool *folded;  /* by Val: FOLDs that stand before the shared loop they are in */
} Emit;

static const KInst *inst(const Emit *e, Val v)
{
    return &e->plan->k->inst.at[v];
}

static bool is_team(const Emit *e)
{
    return e->plan->team > 1;
}

static void meet(Emit *e, Val from, Val to)
{
    if (!is_team(e) || !e->together || !cu_must_meet(&e->touched, from, to))
        return;
    cu_line(e->p, e->plan->team < 32 ? "__syncwarp(members);" : "__syncthreads();");
}

/* ---- accumulators and variables ------------------------------------------------------------- */

static void open_acc(Emit *e, Val v)
{
    const KInst *i = inst(e, v);
    DType t = (DType)i->dtype;
    const char *first = cu_identity(e->p, (KOp)i->aux, t);
    int slots = e->plan->wide[v] ? cu_slots(e->plan, t, e->plan->ours[v]) : 1;
    if (slots == 1) {
        cu_line(e->p, "%s acc%u = %s;", cu_type(t), v, first);
        return;
    }
    cu_line(e->p, "%s acc%u[%d];", cu_type(t), v, slots);
    cu_line(e->p, "fill(acc%u, %s);", v, first);
}

/* Where the lane of this INTO is kept: "acc2", "acc2[j_lane]". */
static const char *slot(Emit *e, Val v, int slots)
{
    Val acc = inst(e, v)->a, red = e->plan->red_of[v];
    if (slots == 1)
        return cu_printf(e->p, "acc%u", acc);
    if (red == 0)
        return cu_printf(e->p, "acc%u[0]", acc);
    const char *name = e->p->name[red];
    if (e->together)
        return cu_printf(e->p, "acc%u[%s / %d %% %d]", acc, name, e->plan->team, slots);
    int turn = e->plan->lanes / (e->plan->shared[red] ? e->plan->team : 1);
    return turn == slots ? cu_printf(e->p, "acc%u[%s_lane]", acc, name)
                         : cu_printf(e->p, "acc%u[%s_lane %% %d]", acc, name, slots);
}

static void into(Emit *e, Val v)
{
    const KInst *i = inst(e, v), *acc = inst(e, i->a);
    bool wide = e->plan->wide[i->a], ours = e->plan->ours[i->a];
    DType t = (DType)acc->dtype;
    const char *to = slot(e, v, wide ? cu_slots(e->plan, t, ours) : 1);
    const char *x = cu_combine(e->p, (KOp)acc->aux, t, to, cu_operand(e->p, i->b));
    if (!wide || !e->together) {
        cu_line(e->p, "%s = %s;", to, x);
        return;
    }
    Val red = e->plan->red_of[v]; /* one thread has the lane */
    const char *who = red == 0 ? "0" : cu_printf(e->p, "%s %% %d", e->p->name[red], e->plan->team);
    cu_line(e->p, "if (thread == %s)", who);
    cu_line(e->p, "    %s = %s;", to, x);
}

static void fold(Emit *e, Val v)
{
    Val acc = inst(e, v)->a;
    const KInst *i = inst(e, acc);
    const char *type = cu_type((DType)i->dtype), *op = cu_combiner((KOp)i->aux);
    if (e->folded[v])
        return;
    if (!e->plan->wide[acc])
        cu_line(e->p, "const %s v%u = acc%u;", type, v, acc);
    else if (e->plan->ours[acc])
        cu_line(e->p, "const %s v%u = team_fold<%s, %d>(members, acc%u);", type, v, op,
                e->plan->team, acc);
    else
        cu_line(e->p, "const %s v%u = fold<%s>(acc%u);", type, v, op, acc);
}

/* The team folds together: before the loop that it shares out. */
static void fold_before(Emit *e, Val loop)
{
    for (Val v = loop + 1; v < e->plan->end_of[loop]; v++) {
        if (inst(e, v)->op != KI_FOLD || inst(e, v)->a > loop)
            continue;
        fold(e, v);
        e->folded[v] = true;
    }
}

static void variable(Emit *e, Val v)
{
    const KInst *i = inst(e, v);
    const char *type = cu_type((DType)i->dtype);
    if (i->op == KI_VAR)
        cu_line(e->p, "%s var%u = %s;", type, v, cu_operand(e->p, i->a));
    else if (i->op == KI_SET)
        cu_line(e->p, "var%u = %s;", i->a, cu_operand(e->p, i->b));
    else
        cu_line(e->p, "const %s v%u = var%u;", type, v, i->a);
}

/* ---- instructions -------------------------------------------------------------------------------
 */

static void emit_inst(Emit *e, Val v)
{
    const KInst *i = inst(e, v);
    switch (i->op) {
    case KI_CONST:
    case KI_END:
        break;
    case KI_ACC:
        open_acc(e, v);
        break;
    case KI_INTO:
        into(e, v);
        break;
    case KI_FOLD:
        fold(e, v);
        break;
    case KI_VAR:
    case KI_GET:
    case KI_SET:
        variable(e, v);
        break;
    case KI_STORE:
        meet(e, v, v + 1);
        cu_store(e->p, i->aux, i->a, is_team(e) && e->together ? "thread == 0" : NULL);
        break;
    default:
        if (i->op == KI_LOAD)
            meet(e, v, v + 1);
        cu_line(e->p, "const %s v%u = %s;", cu_type((DType)i->dtype), v, cu_expression(e->p, v));
        break;
    }
}

static void emit_range(Emit *e, Val from, Val to);

/* ---- loops
 * ---------------------------------------------------------------------------------------- */

static const char *end_of_loop(Emit *e, Val v)
{
    const KInst *i = inst(e, v);
    const char *all = cu_printf(e->p, "%lld", (long long)i->imm.i);
    return i->reach == K_ALL ? all : cu_printf(e->p, "(limit < %s ? limit : %s)", all, all);
}

static int weight(const Emit *e, Val loop)
{
    int n = 0;
    for (Val v = loop + 1; v < e->plan->end_of[loop]; v++)
        n += kop_class((KOp)inst(e, v)->op) == K_CLASS_MATH ? MATH_INSTS : 1;
    return n;
}

/* The iterations of one thread in turns, of which each place has its lane of an accumulator:
 * j = j_from + j_lane * step + thread. */
static void open_turns(Emit *e, Val v, int lanes, int step)
{
    Printer *p = e->p;
    const char *j = p->name[v], *type = cu_index_type(p), *end = end_of_loop(e, v);
    bool shared = e->plan->shared[v], small = weight(e, v) <= UNROLL_INSTS;
    cu_open(p, "for (%s %s_from = 0; %s_from < %s; %s_from += %d)", type, j, j, end, j,
            lanes * step);
    cu_line(p, small ? "#pragma unroll" : "#pragma unroll 1");
    cu_open(p, "for (int %s_lane = 0; %s_lane < %d; %s_lane++)", j, j, lanes, j);
    if (shared)
        cu_line(p, "const %s %s = %s_from + %d * %s_lane + thread;", type, j, j, step, j);
    else
        cu_line(p, "const %s %s = %s_from + %s_lane;", type, j, j, j);
    cu_line(p, "if (%s >= %s)", j, end);
    cu_line(p, "    break;");
}

static void open_loop(Emit *e, Val v)
{
    Printer *p = e->p;
    const KInst *i = inst(e, v);
    const char *j = p->name[v], *type = cu_index_type(p), *end = end_of_loop(e, v);
    if (e->plan->shared[v])
        cu_open(p, "for (%s %s = thread; %s < %s; %s += %d)", type, j, j, end, j, e->plan->team);
    else if (i->op == KI_SEQ && i->aux == 1)
        cu_open(p, "for (%s %s = %lld; %s >= 0; %s--)", type, j, (long long)i->imm.i - 1, j, j);
    else
        cu_open(p, "for (%s %s = 0; %s < %s; %s++)", type, j, j, end, j);
}

/* A RED loop that feeds lanes is run by one thread, or shared out: never by all together, but
 * where it only holds another loop that is. */
static void emit_loop(Emit *e, Val v)
{
    const LoopPlan *plan = e->plan;
    bool shared = plan->shared[v], together = e->together;
    Val from = v + 1, to = plan->end_of[v];
    if (shared) {
        fold_before(e, v);
        meet(e, from, to);
        e->together = false;
    } else if (together && is_team(e)) {
        cu_touch(&e->touched, from, to);
    }
    int step = shared ? plan->team : 1, lanes = plan->lanes / step;
    bool turns = plan->feeds[v] && !e->together && lanes > 1;
    if (turns)
        open_turns(e, v, lanes, step);
    else
        open_loop(e, v);
    emit_range(e, from, to);
    cu_close(e->p);
    if (turns)
        cu_close(e->p);
    e->together = together;
}

static void emit_range(Emit *e, Val from, Val to)
{
    for (Val v = from; v < to; v++) {
        if (!cu_is_loop(e->plan->k, v)) {
            emit_inst(e, v);
            continue;
        }
        emit_loop(e, v);
        v = e->plan->end_of[v];
    }
}

/* ---- the item
 * ------------------------------------------------------------------------------------------ */

static bool is_chained(const LoopPlan *plan, Val v)
{
    for (int i = 0; i < plan->n_chain; i++)
        if (plan->chain[i] == v)
            return true;
    return false;
}

/* The grid's indices, and ends for those beyond a limit. */
static void emit_indices(Emit *e)
{
    const LoopPlan *plan = e->plan;
    int64_t inner = 1;
    const char *text[CU_MAX_CHAIN];
    for (int i = plan->n_chain; i-- > 0;) {
        int64_t extent = inst(e, plan->chain[i])->imm.i;
        const char *by = inner > 1 ? cu_printf(e->p, " / %lld", (long long)inner) : "";
        const char *of =
            i > 0 ? cu_printf(e->p, " %% %lld", (long long)(extent > 0 ? extent : 1)) : "";
        text[i] = plan->items > 1 ? cu_printf(e->p, "item%s%s", by, of) : "0";
        inner *= extent > 0 ? extent : 1;
    }
    for (int i = 0; i < plan->n_chain; i++) {
        Val v = plan->chain[i];
        cu_line(e->p, "const %s %s = %s;", cu_index_type(e->p), e->p->name[v], text[i]);
        if (inst(e, v)->reach != K_ALL) {
            cu_line(e->p, "if (%s >= limit)", e->p->name[v]);
            cu_line(e->p, "    return;");
        }
    }
}

/* LOCAL buffers: of the thread, or of the team in shared memory. */
static void emit_locals(Emit *e)
{
    const LoopPlan *plan = e->plan;
    for (int b = 0; b < plan->k->buf.n; b++) {
        const KBuf *buf = &plan->k->buf.at[b];
        const char *type = cu_memory_type(buf->dtype);
        long long n = buf->elems > 0 ? (long long)buf->elems : 1;
        if (buf->mode != K_LOCAL)
            continue;
        if (plan->team == 1) {
            cu_line(e->p, "%s b%d[%lld];", type, b, n);
        } else if (plan->teams == 1) {
            cu_line(e->p, "SHARED(%s, b%d, [%lld]);", type, b, n);
        } else {
            cu_line(e->p, "SHARED(%s, rows%d, [%d][%lld]);", type, b, plan->teams, n);
            cu_line(e->p, "%s *const b%d = rows%d[team];", type, b, b);
        }
    }
}

/* Which item is the thread's, and which thread of the team it is. */
static void emit_team(Emit *e)
{
    const LoopPlan *plan = e->plan;
    Printer *p = e->p;
    const char *type = p->wide ? "u64" : "u32", *item = "blockIdx.x";
    if (plan->team > 1 && plan->teams > 1)
        cu_line(p, "const int team = threadIdx.x / %d, thread = threadIdx.x %% %d;", plan->team,
                plan->team);
    else if (plan->team > 1)
        cu_line(p, "const int thread = threadIdx.x;");
    if (plan->team > 1 && plan->team < 32)
        cu_line(p, "const u32 members = 0x%xu << (threadIdx.x & %d);", (1u << plan->team) - 1,
                32 - plan->team);
    emit_locals(e);
    if (plan->items <= 1)
        return;
    if (plan->teams > 1)
        item = cu_printf(p, "(%s)blockIdx.x * %d + %s", type, plan->teams,
                         plan->team > 1 ? "team" : "threadIdx.x");
    cu_line(p, "const %s item = %s;", type, item);
    if (plan->items % plan->teams != 0) {
        cu_line(p, "if (item >= %lld)", (long long)plan->items);
        cu_line(p, "    return;");
    }
}

/* Pure values beside the loops of the grid. */
static void emit_beside(Emit *e)
{
    const LoopPlan *plan = e->plan;
    Val last = plan->n_chain > 0 ? plan->chain[plan->n_chain - 1] : 0;
    for (Val v = 1; v < last; v++)
        if (!is_chained(plan, v))
            emit_inst(e, v);
}

Launch cu_loop_kernel(Printer *p, const char *name, bool guarded)
{
    const Kernel *k = p->k;
    const LoopPlan *plan = p->plan = cu_plan_loop(k, p->arena);
    Emit e = {.p = p, .plan = plan, .touched = cu_touched(k, p->arena), .together = true};
    e.folded = NEW_ARRAY(p->arena, bool, k->inst.n);
    const char *who = plan->team == 1 ? "a thread" : cu_printf(p, "%d threads", plan->team);
    cu_line(p, "/* %lld item%s, %s each */", (long long)plan->items, plan->items == 1 ? "" : "s",
            who);
    cu_kernel_head(p, name, cu_printf(p, "%d", plan->threads), guarded);
    emit_team(&e);
    cu_kernel_begin(p, guarded);
    emit_indices(&e);
    e.together = is_team(&e);
    emit_beside(&e);
    Val last = plan->n_chain > 0 ? plan->chain[plan->n_chain - 1] : 0;
    emit_range(&e, last + 1, last > 0 ? plan->end_of[last] : (Val)k->inst.n);
    cu_close(p);
    return (Launch){.blocks = (plan->items + plan->teams - 1) / plan->teams,
                    .threads = plan->threads,
                    .shared_bytes = plan->teams * plan->local_bytes};
}
