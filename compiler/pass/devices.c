#include "devices.h"

#include <string.h>

#include "shard.h"

const char *hold_name(Hold h)
{
    static const char *const name[] = {"parameters", "gradients", "optimizer", "state",
                                       "kept",       "transient", "gathered",  "inputs"};
    return name[h];
}

const char *exchange_name(Exchange x)
{
    static const char *const name[] = {
        "data_all_reduce",   "data_reduce_scatter", "data_all_gather", "tensor_all_reduce",
        "tensor_all_gather", "pipe_send",           "tied_all_reduce"};
    return name[x];
}

/* A part of the model that stays on one stage: a layer. */
typedef struct Unit {
    const char *name;
    int64_t cost; /* ns */
    int32_t stage;
} Unit;

typedef struct Spreading {
    const Graph *g; /* of one micro-batch */
    const Plan *p;
    const CostModel *cost;
    const Pinned *pin;
    const Devices *d;
    Arena *a;
    Spread *to;
    int32_t *slot_of, *input_of; /* by Ref: what the node is the value of, or -1 */
    int32_t *unit_of;            /* by Ref; -1: none */
    VEC(Unit) unit;              /* in forward order */
    int32_t reverse;             /* the first step of the reverse pass */
    Shard *shard;
    uint64_t *slot_stages; /* by slot: a bit for each stage that reads it */
} Spreading;

/* ---- one micro-batch ------------------------------------------------------------------ */

static Ref find_loop(const Graph *g, int64_t loops)
{
    Ref best = NONE;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (op_of(g, r) != OP_scan || scan_of(g, r).count != loops)
            continue;
        int n = attr(g, r, SCAN_BODY)->body->node.n;
        if (best == NONE || n > attr(g, best, SCAN_BODY)->body->node.n)
            best = r;
    }
    return best;
}

/* The slot or input that r is (a reshape of), -1: neither. */
static int32_t source_of(const Graph *g, Ref r, OpId op)
{
    while (op_of(g, r) == OP_reshape)
        r = arg(g, r, 0);
    return op_of(g, r) == op ? (int32_t)attr(g, r, 0)->i : -1;
}

/* Into the loop over the micro-batches, if there is one. */
static void find_sources(Spreading *s, const Graph *outer, const Plan *p, int64_t loops)
{
    Ref loop = loops > 1 ? find_loop(outer, loops) : NONE;
    s->g = loop == NONE ? outer : attr(outer, loop, SCAN_BODY)->body;
    s->p = p;
    for (int32_t i = 0; loop != NONE && i < p->n_steps; i++)
        if (p->step[i].node == loop && p->step[i].body != NULL)
            s->p = p->step[i].body;
    s->slot_of = NEW_ARRAY(s->a, int32_t, s->g->node.n);
    s->input_of = NEW_ARRAY(s->a, int32_t, s->g->node.n);
    for (Ref r = 1; r < (Ref)s->g->node.n; r++) {
        const Graph *g = s->g;
        Ref at = r;
        if (loop != NONE && op_of(g, r) == OP_arg) {
            at = arg(outer, loop, (int)attr(g, r, 0)->i);
            g = outer;
        }
        bool source = optab[op_of(s->g, r)]->kind == OP_SOURCE;
        s->slot_of[r] = source ? source_of(g, at, OP_slot) : -1;
        s->input_of[r] = source ? source_of(g, at, OP_input) : -1;
    }
}

static bool is_reverse(const Spreading *s, Ref r)
{
    return s->g->n_primal != 0 && r >= s->g->n_primal;
}

/* ---- units ---------------------------------------------------------------------------- */

/* The path of the block calls down to this depth, "" outside of all. */
static const char *instance_name(Arena *a, const Origin *o, int depth)
{
    int deep = 0;
    o = origin_instance(o);
    for (const Origin *k = o; k != NULL; k = origin_instance(k->parent))
        deep++;
    for (; deep > depth; deep--)
        o = origin_instance(o->parent);
    return origin_path(a, o);
}

static int32_t find_unit(const Spreading *s, const char *name)
{
    for (int32_t i = s->unit.n - 1; i >= 0; i--)
        if (strcmp(s->unit.at[i].name, name) == 0)
            return i;
    return -1;
}

static int32_t add_unit(Spreading *s, const char *name)
{
    int32_t i = find_unit(s, name);
    if (i < 0)
        vec_push(s->a, &s->unit, ((Unit){.name = name}));
    return i < 0 ? s->unit.n - 1 : i;
}

static const char *line_name(const Spreading *s, const Origin *o)
{
    const Ctx *cx = s->g->cx;
    int line, column;
    while (o != NULL && o->parent != NULL)
        o = o->parent;
    if (o == NULL || o->span.file < 0)
        return "model";
    source_position(cx->source.at[o->span.file], o->span.from, &line, &column);
    return arena_printf(s->a, "%s:%d", cx->source.at[o->span.file]->path, line);
}

static bool reads_param(const Spreading *s, Ref x)
{
    return s->slot_of[x] >= 0 && s->pin->slot.at[s->slot_of[x]].kind == SLOT_PARAM;
}

/* A node outside of every block call goes with what it reads: in the forward pass with the last
 * of that, in the reverse pass with the first. What reads only inputs and parameters is a unit
 * of its own. */
static int32_t unit_of_others(Spreading *s, Ref r)
{
    bool reverse = is_reverse(s, r), reads = false;
    int32_t unit = -1;
    for (int i = 0; i < node(s->g, r)->n_args; i++) {
        Ref x = arg(s->g, r, i);
        int32_t u = x == NONE ? -1 : s->unit_of[x];
        reads = reads || reads_param(s, x) || s->input_of[x] >= 0;
        if (u >= 0 && (unit < 0 || (reverse ? u < unit : u > unit)))
            unit = u;
    }
    if (unit >= 0 || reverse || !reads)
        return unit;
    return add_unit(s, line_name(s, node(s->g, r)->origin));
}

static void find_units(Spreading *s, int depth)
{
    s->unit.n = 0;
    s->unit_of = NEW_ARRAY(s->a, int32_t, s->g->node.n);
    for (Ref r = 0; r < (Ref)s->g->node.n; r++) {
        s->unit_of[r] = -1;
        if (r == NONE || optab[op_of(s->g, r)]->kind == OP_SOURCE)
            continue;
        const char *name = instance_name(s->a, node(s->g, r)->origin, depth);
        bool reverse = is_reverse(s, r);
        int32_t known = name[0] == 0 ? -1 : find_unit(s, name);
        if (name[0] != 0 && known < 0 && !reverse)
            known = add_unit(s, name);
        s->unit_of[r] = known >= 0 ? known : unit_of_others(s, r);
    }
}

/* ---- stages --------------------------------------------------------------------------- */

static void count_costs(Spreading *s)
{
    const Plan machine = {.cost = s->cost};
    for (int32_t i = 0; i < s->unit.n; i++)
        s->unit.at[i].cost = 0;
    for (int32_t i = 0; i < s->p->n_steps; i++) {
        int32_t u = s->unit_of[s->p->step[i].node];
        if (u >= 0)
            s->unit.at[u].cost += plan_step_cost(&machine, &s->p->step[i]);
    }
}

/* Cuts the units into stages so that the dearest is as cheap as can be: best[k][i] is the dearest
 * of k stages of the first i units. */
static void cut_stages(Spreading *s, int32_t n_stages)
{
    int32_t n = s->unit.n;
    int64_t *sum = NEW_ARRAY(s->a, int64_t, n + 1);
    int64_t *best = NEW_ARRAY(s->a, int64_t, (n_stages + 1) * (n + 1));
    int32_t *cut = NEW_ARRAY(s->a, int32_t, (n_stages + 1) * (n + 1));
    for (int32_t i = 0; i < n; i++)
        sum[i + 1] = sum[i] + s->unit.at[i].cost;
    for (int32_t k = 1; k <= n_stages; k++)
        for (int32_t i = k; i <= n; i++) {
            int64_t *to = &best[k * (n + 1) + i];
            *to = k == 1 ? sum[i] : INT64_MAX;
            for (int32_t j = k - 1; k > 1 && j < i; j++) {
                int64_t before = best[(k - 1) * (n + 1) + j], last = sum[i] - sum[j];
                int64_t dearest = before > last ? before : last;
                if (dearest < *to) {
                    *to = dearest;
                    cut[k * (n + 1) + i] = j;
                }
            }
        }
    for (int32_t k = n_stages, i = n; k > 0; k--) {
        int32_t from = k == 1 ? 0 : cut[k * (n + 1) + i];
        for (int32_t u = from; u < i; u++)
            s->unit.at[u].stage = k - 1;
        Stage *stage = &s->to->stage[k - 1];
        stage->first = s->unit.at[from].name;
        stage->last = s->unit.at[i - 1].name;
        stage->n_units = i - from;
        stage->share = sum[n] > 0 ? (double)(sum[i] - sum[from]) / (double)sum[n] : 0;
        i = from;
    }
}

static int32_t stage_of(const Spreading *s, Ref r)
{
    return s->unit_of[r] < 0 ? -1 : s->unit.at[s->unit_of[r]].stage;
}

static uint64_t bit(int32_t stage)
{
    return stage < 0 ? 0 : UINT64_C(1) << stage;
}

/* A bit for each stage whose forward pass reads a source. */
static void find_readers(Spreading *s, const int32_t *of, int n, uint64_t *stages)
{
    memset(stages, 0, sizeof *stages * (size_t)n);
    for (Ref r = 1; r < (Ref)s->g->node.n; r++)
        for (int i = 0; i < node(s->g, r)->n_args && (s->g->n_primal == 0 || r < s->g->n_primal);
             i++)
            if (of[arg(s->g, r, i)] >= 0)
                stages[of[arg(s->g, r, i)]] |= bit(stage_of(s, r));
    for (int i = 0; i < n; i++) /* read by nobody: of the first */
        stages[i] |= stages[i] == 0;
}

/* ---- bytes that are there all the time -------------------------------------------------- */

static int64_t part_of(int64_t bytes, int64_t ways)
{
    return (bytes + ways - 1) / ways;
}

static int64_t slot_bytes(const Spreading *s, const Slot *slot, int32_t i)
{
    int64_t bytes = type_bytes(&slot->type);
    int32_t of = slot->kind == SLOT_OPTIMIZER ? slot->of : i;
    bool like = of == i || type_same(&slot->type, &s->pin->slot.at[of].type);
    return like && s->shard->slot_axis[of] != WHOLE ? bytes / s->d->tensor : bytes;
}

static bool is_tied(const Spreading *s, int32_t slot)
{
    uint64_t stages = s->slot_stages[slot];
    const Slot *at = &s->pin->slot.at[slot];
    return at->kind == SLOT_PARAM && !at->frozen && (stages & (stages - 1)) != 0;
}

static void hold_slots(Spreading *s, Stage *stage, int32_t k)
{
    int64_t largest = 0, sum[N_HOLDS] = {0};
    for (int32_t i = 0; i < s->pin->slot.n; i++) {
        const Slot *slot = &s->pin->slot.at[i];
        int32_t of = slot->kind == SLOT_OPTIMIZER ? slot->of : i;
        int64_t bytes = slot_bytes(s, slot, i);
        bool counter = slot->kind == SLOT_STATE || slot->kind == SLOT_SCALAR;
        if (!(s->slot_stages[of] & bit(k)) && !(counter && slot->type.rank == 0))
            continue;
        bool trained = slot->kind == SLOT_PARAM && !slot->frozen;
        sum[counter                    ? HOLD_STATE
            : slot->kind == SLOT_PARAM ? HOLD_PARAMETERS
                                       : HOLD_OPTIMIZER] += bytes;
        sum[HOLD_GRADIENTS] += trained ? bytes : 0;
        largest = trained && bytes > largest ? bytes : largest;
        if (is_tied(s, i))
            stage->sent[TIED_ALL_REDUCE] += bytes;
    }
    int64_t data = s->d->data, zero = s->d->zero;
    stage->held[HOLD_STATE] = sum[HOLD_STATE];
    stage->held[HOLD_OPTIMIZER] = part_of(sum[HOLD_OPTIMIZER], zero >= 1 ? data : 1);
    stage->held[HOLD_GRADIENTS] = part_of(sum[HOLD_GRADIENTS], zero >= 2 ? data : 1);
    stage->held[HOLD_PARAMETERS] = part_of(sum[HOLD_PARAMETERS], zero >= 3 ? data : 1);
    stage->held[HOLD_GATHERED] = zero >= 2 && data > 1 ? largest : 0;
    if (data == 1)
        return;
    int64_t times = zero >= 2 ? s->to->micro_batches : 1;
    if (zero == 0)
        stage->sent[DATA_ALL_REDUCE] = sum[HOLD_GRADIENTS];
    else
        stage->sent[DATA_REDUCE_SCATTER] = times * sum[HOLD_GRADIENTS];
    if (zero == 1 || zero == 2)
        stage->sent[DATA_ALL_GATHER] = sum[HOLD_GRADIENTS];
    if (zero == 3)
        stage->sent[DATA_ALL_GATHER] = 2 * times * sum[HOLD_PARAMETERS];
}

/* Of the parameters that the unit reads. */
static int64_t unit_bytes(const Spreading *s, int32_t unit)
{
    bool *read = NEW_ARRAY(s->a, bool, s->pin->slot.n);
    int64_t bytes = 0;
    for (Ref r = 1; r < (Ref)s->g->node.n; r++)
        for (int i = 0; s->unit_of[r] == unit && i < node(s->g, r)->n_args; i++)
            if (s->slot_of[arg(s->g, r, i)] >= 0)
                read[s->slot_of[arg(s->g, r, i)]] = true;
    for (int32_t i = 0; i < s->pin->slot.n; i++)
        if (read[i] && s->pin->slot.at[i].kind == SLOT_PARAM)
            bytes += slot_bytes(s, &s->pin->slot.at[i], i);
    return bytes;
}

/* ZeRO 3: the parameters of one unit at a time are whole. */
static void hold_gathered(Spreading *s)
{
    int64_t most[MAX_STAGES] = {0};
    if (s->d->zero < 3 || s->d->data == 1)
        return;
    for (int32_t u = 0; u < s->unit.n; u++) {
        int64_t bytes = unit_bytes(s, u), *to = &most[s->unit.at[u].stage];
        *to = bytes > *to ? bytes : *to;
    }
    for (int32_t k = 0; k < s->to->n_stages; k++)
        s->to->stage[k].held[HOLD_GATHERED] += most[k];
}

/* A rank has the rows of all its micro-batches. */
static void hold_inputs(Spreading *s)
{
    int n = s->pin->input.n;
    uint64_t *stages = NEW_ARRAY(s->a, uint64_t, n + 1);
    find_readers(s, s->input_of, n, stages);
    for (int32_t k = 0; k < s->to->n_stages; k++)
        for (int i = 0; i < n; i++) {
            const GraphInput *in = &s->pin->input.at[i];
            int64_t times = in->batch_axis == 0 ? s->to->micro_batches : 1;
            if (stages[i] & bit(k))
                s->to->stage[k].held[HOLD_INPUTS] += times * type_bytes(&in->type);
        }
}

/* ---- activations -------------------------------------------------------------------------- */

static void find_reverse(Spreading *s)
{
    s->reverse = 0;
    while (s->reverse < s->p->n_steps && !is_reverse(s, s->p->step[s->reverse].node))
        s->reverse++;
}

static int32_t stage_of_step(const Spreading *s, int32_t i)
{
    return stage_of(s, s->p->step[i].node);
}

static int64_t value_bytes(const Spreading *s, const PlanValue *v)
{
    return v->node != NONE && s->shard->axis[v->node] != WHOLE ? v->bytes / s->d->tensor : v->bytes;
}

static bool reads(const PlanStep *step, int32_t value)
{
    for (int32_t i = 0; i < step->n_reads; i++)
        if (step->read[i] == value)
            return true;
    return false;
}

/* Part of the gradient of a parameter on several stages: they have one each, and add them. */
static bool is_tied_gradient(const Spreading *s, const PlanValue *v)
{
    for (int32_t i = 0; v->node != NONE && is_reverse(s, v->node) && i < s->pin->slot.n; i++)
        if (is_tied(s, i) && type_same(type_of(s->g, v->node), &s->pin->slot.at[i].type))
            return true;
    return false;
}

/* One range on the stages that need it: the one that writes it, and those that read it, until they
 * have read it last. `live`: by step, of the stage of the step. */
static void hold_range(Spreading *s, const PlanRange *range, int32_t id, int64_t *live)
{
    const PlanValue *v = &s->p->value[range->value];
    int64_t bytes = value_bytes(s, v);
    int32_t writer = stage_of_step(s, range->from);
    bool reverse = is_reverse(s, s->p->step[range->from].node);
    bool gradient = v->role == ROLE_GRADIENT || (reverse && v->to_end);
    int32_t last[MAX_STAGES];
    for (int32_t k = 0; k < s->to->n_stages; k++)
        last[k] = k == writer || (writer < 0 && k == 0) ? range->from : -1;
    for (int32_t i = range->from; i <= range->to && i < s->p->n_steps; i++)
        if (reads(&s->p->step[i], range->value) && stage_of_step(s, i) >= 0)
            last[stage_of_step(s, i)] = i;
    bool apart = is_tied_gradient(s, v);
    for (int32_t k = 0; k < s->to->n_stages; k++) {
        if (last[k] < 0 || (apart && k != writer))
            continue;
        if (k != writer && writer >= 0)
            s->to->stage[writer].sent[PIPE_SEND] += s->to->micro_batches * bytes;
        bool kept = !reverse && range->from < s->reverse && last[k] >= s->reverse;
        if (kept)
            s->to->stage[k].kept_each += bytes;
        int32_t from = range->from + (range->storage != id);
        for (int32_t i = from; i <= last[k] && !gradient; i++)
            live[i] += stage_of_step(s, i) == k ? bytes : 0;
    }
}

static void hold_values(Spreading *s)
{
    int64_t *live = NEW_ARRAY(s->a, int64_t, s->p->n_steps + 1);
    for (int32_t r = 0; r < s->p->n_ranges; r++)
        if (!s->p->value[s->p->range[r].value].pinned && s->p->range[r].from >= 0)
            hold_range(s, &s->p->range[r], r, live);
    for (int32_t i = 0; i < s->p->n_steps; i++) {
        int32_t k = stage_of_step(s, i);
        int64_t bytes = live[i] + s->p->step[i].workspace;
        if (k >= 0 && bytes > s->to->stage[k].held[HOLD_TRANSIENT])
            s->to->stage[k].held[HOLD_TRANSIENT] = bytes;
    }
    for (int32_t k = 0; k < s->to->n_stages; k++) {
        Stage *stage = &s->to->stage[k];
        int64_t *more = &stage->held[HOLD_TRANSIENT]; /* so far: with what is kept */
        *more = *more > stage->kept_each ? *more - stage->kept_each : 0;
        int64_t behind = s->to->n_stages - k;
        stage->in_flight = behind < s->to->micro_batches ? behind : s->to->micro_batches;
        stage->held[HOLD_KEPT] = stage->in_flight * stage->kept_each;
    }
}

static void tell_ranks(Spreading *s)
{
    for (Ref r = 1; r < (Ref)s->g->node.n; r++) {
        int32_t k = stage_of(s, r) < 0 ? 0 : stage_of(s, r);
        s->to->stage[k].sent[TENSOR_ALL_REDUCE] += s->to->micro_batches * s->shard->reduced[r];
        s->to->stage[k].sent[TENSOR_ALL_GATHER] += s->to->micro_batches * s->shard->gathered[r];
    }
}

static void name_whole(Spreading *s)
{
    s->to->whole = NEW_ARRAY(s->a, WholeParam, s->pin->slot.n);
    for (int32_t i = 0; i < s->pin->slot.n; i++)
        if (s->shard->why[i] != NULL)
            s->to->whole[s->to->n_whole++] =
                (WholeParam){s->pin->slot.at[i].name, s->shard->why[i]};
}

Spread *devices_spread(const Graph *g, const Plan *p, const Pinned *pin, int64_t loops,
                       const Devices *d, Arena *a)
{
    enum { DEEPEST = 8 };
    Spread *to = NEW(a, Spread);
    *to = (Spread){.devices = *d, .micro_batches = loops, .n_stages = (int32_t)d->pipe};
    to->stage = NEW_ARRAY(a, Stage, to->n_stages);
    Spreading s = {.pin = pin, .d = d, .a = a, .to = to, .cost = p->cost};
    find_sources(&s, g, p, loops);
    for (int depth = 1; depth <= DEEPEST && s.unit.n < to->n_stages; depth++)
        find_units(&s, depth);
    if (s.unit.n < to->n_stages) {
        to->too_short = arena_printf(a, "the model has %d parts in a row, too few for %d stages",
                                     s.unit.n, to->n_stages);
        return to;
    }
    count_costs(&s);
    cut_stages(&s, to->n_stages);
    s.shard = shard(s.g, s.slot_of, pin, d->tensor, a);
    s.slot_stages = NEW_ARRAY(a, uint64_t, pin->slot.n);
    find_readers(&s, s.slot_of, pin->slot.n, s.slot_stages);
    for (int32_t k = 0; k < to->n_stages; k++)
        hold_slots(&s, &to->stage[k], k);
    hold_gathered(&s);
    hold_inputs(&s);
    find_reverse(&s);
    hold_values(&s);
    tell_ranks(&s);
    name_whole(&s);
    return to;
}
