/* Groups become a Program: pinned storage, buffers, entries.
 *
 *   lower_plan.c    values and steps of a graph, and their plan
 *   lower_stacks.c  carries whose old and new values have one memory
 *   lower_over.c    results of scans that lie over what their steps read
 *   lower_calls.c   buffers of what is planned, and calls */
#include "lower_level.h"

#include <string.h>

/* ---- buffers ------------------------------------------------------------- */

int32_t lower_buffer(Program *p, const char *name, Role role, const Type *t, int64_t offset)
{
    Buffer b = {.name = name,
                .dtype = t->dtype,
                .role = role,
                .rank = t->rank,
                .offset = offset,
                .input = -1};
    memcpy(b.shape, t->dim, sizeof b.shape);
    b.elems = type_elems(t);
    b.bytes = type_bytes(t);
    b.storage = p->buffer.n;
    vec_push(p->arena, &p->buffer, b);
    return p->buffer.n - 1;
}

static Role slot_role(SlotKind k)
{
    static const Role role[] = {ROLE_PARAM, ROLE_OPTIMIZER, ROLE_STATE, ROLE_SCALAR};
    return role[k];
}

static int64_t take(Program *p, int64_t bytes)
{
    int64_t at = p->pinned_bytes;
    p->pinned_bytes = align_up(at + bytes, BLOCK_ALIGN);
    return at;
}

/* Operand `at` of the scan is all rows of input r, and a step reads one of them. */
static bool scans_rows(const Clusters *c, Ref scan, int at, Ref r)
{
    const Scan is = scan_of(c->g, scan);
    Ref a = arg(c->g, scan, at);
    return at >= is.carries && at < is.carries + is.sequences && is.count == dim(c->g, r, 0) &&
           type_elems(type_of(c->g, a)) == type_elems(type_of(c->g, r));
}

static bool reads_by_row(const Clusters *c, const Group *gr, Ref r)
{
    for (int i = 0; i < gr->operand.n; i++)
        if (gr->operand.at[i].ref == r)
            return false;
    for (int i = 0; gr->kind == GROUP_SCAN && i < node(c->g, gr->anchor)->n_args; i++)
        if (memory_of(c->g, c->stored, arg(c->g, gr->anchor, i)) == r &&
            !scans_rows(c, gr->anchor, i, r))
            return false;
    return true;
}

/* All that the entry reads of input i it reads in scans over its rows. */
static bool is_by_row(const Clusters *c, int i)
{
    for (Ref r = 1; r < (Ref)c->g->node.n; r++) {
        if (op_of(c->g, r) != OP_input || attr(c->g, r, 0)->i != i)
            continue;
        for (int j = 0; j < c->group.n; j++)
            if (!reads_by_row(c, &c->group.at[j], r))
                return false;
        for (int j = 0; j < c->g->root.n; j++)
            if (memory_of(c->g, c->stored, c->g->root.at[j].ref) == r)
                return false;
    }
    return true;
}

static void lower_input(Program *p, const GraphInput *in, int i, bool by_row, bool counted)
{
    Input input = {.name = in->name,
                   .dtype = in->type.dtype,
                   .rank = in->type.rank,
                   .ranged = in->ranged,
                   .lo = in->lo,
                   .hi = in->hi,
                   .doc = in->doc};
    Type t = in->type;
    if (in->batch_axis == 0) {
        t.dim[0] = input.rows = p->batch_rows * p->accumulate;
        input.by_row = by_row && p->accumulate == 1;
    }
    memcpy(input.shape, t.dim, sizeof input.shape);
    input.elems = type_elems(&t);
    vec_push(p->arena, &p->input, input);
    int32_t b = lower_buffer(p, in->name, ROLE_INPUT, &t, -1);
    p->buffer.at[b].input = i;
    bool partial = input.rows > 1 && counted && !input.by_row; /* one row is never short of some */
    b = lower_buffer(p, in->name, ROLE_STAGING, &t, partial ? take(p, type_bytes(&t)) : -1);
    p->buffer.at[b].input = i;
}

/* Buffers: slots first, in order, then two for each input. */
int32_t lower_input_buffer(const Pinned *pin, int64_t i)
{
    return pin->slot.n + 2 * (int32_t)i;
}

/* Slots are the first tensors, but for the number of rows, which is not the caller's. */
static int32_t tensor_of(const Pinned *pin, int32_t slot)
{
    if (slot < 0 || slot == pin->rows)
        return -1;
    return pin->rows >= 0 && slot > pin->rows ? slot - 1 : slot;
}

void lower_pinned(Program *p, const Pinned *pin, const Clusters *const *c, int n)
{
    p->pinned_bytes = HANDLE_BYTES;
    for (int i = 0; i < pin->slot.n; i++) {
        const Slot *s = &pin->slot.at[i];
        int64_t at = take(p, type_bytes(&s->type));
        int32_t b = lower_buffer(p, s->name, slot_role(s->kind), &s->type, at);
        p->buffer.at[b].origin = s->origin;
        Tensor t = {.name = s->name,
                    .role = slot_role(s->kind),
                    .buffer = b,
                    .of = tensor_of(pin, s->of),
                    .of_input = -1,
                    .doc = s->doc};
        if (i != pin->rows)
            vec_push(p->arena, &p->tensor, t);
    }
    for (int i = 0; i < pin->input.n; i++) {
        bool by_row = true;
        for (int e = 0; e < n; e++)
            by_row = by_row && (c[e] == NULL || is_by_row(c[e], i));
        lower_input(p, &pin->input.at[i], i, by_row, pin->rows >= 0);
    }
    p->step_counter = pin->step_counter;
    p->skipped_counter = pin->skipped_counter;
    p->seed = pin->seed;
    p->rows = pin->rows;
    p->lanes_offset = p->pinned_bytes;
}

/* Inputs that loss and metrics alone need may be missing in eval: what is not staged anyway is
 * read behind the pinned bytes then. Zeros serve all such inputs, for they are read alone; what may
 * not be zero has its own bytes.   gives: bytes taken. */
static int64_t spare_inputs(Program *p, const Pinned *pin, int64_t base)
{
    int64_t zeros = 0, at = base;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < p->input.n; i++) {
            const Input *in = &p->input.at[i];
            Buffer *b = &p->buffer.at[lower_input_buffer(pin, i) + 1];
            bool zero = !in->ranged || (in->lo <= 0 && in->hi > 0);
            if ((b->offset >= 0 && b->offset < base) || zero != (pass == 0))
                continue;
            int64_t bytes = align_up(b->bytes, BLOCK_ALIGN);
            b->offset = zero ? base : at;
            zeros = zero && bytes > zeros ? bytes : zeros;
            at = zero ? base + zeros : at + bytes;
        }
    return at - base;
}

/* Where there is nothing but loss and metrics, a call that asks for neither does nothing. */
static bool may_lack_inputs(const char *entry, const Graph *g)
{
    bool may_lack = false, gives = false;
    for (int i = 0; i < g->root.n; i++) {
        may_lack |= g->root.at[i].kind == ROOT_LOSS || g->root.at[i].kind == ROOT_METRIC;
        gives |= g->root.at[i].kind == ROOT_OUTPUT;
    }
    return may_lack && gives && strcmp(entry, "eval") == 0;
}

int64_t lower_lane_bytes(Clusters *c, const Caps *caps, int64_t threads_max)
{
    int64_t most = 0;
    for (int i = 0; i < c->group.n; i++) {
        Group *gr = &c->group.at[i];
        if (gr->kernel != NULL && caps->lanes != NULL)
            gr->lanes = caps->lanes(caps->options, gr->kernel, &gr->own_bytes);
        else if (gr->kernel != NULL)
            gr->lane_bytes = align_up(caps->lane_scratch(caps->options, gr->kernel), BLOCK_ALIGN);
        if (gr->lanes > 0) /* a kernel that runs alone has the scratch of all lanes */
            gr->lane_bytes = align_up(
                gr->lanes > 1 ? gr->own_bytes : (gr->own_bytes + threads_max - 1) / threads_max,
                BLOCK_ALIGN);
        if (gr->body != NULL)
            gr->lane_bytes = lower_lane_bytes(gr->body, caps, threads_max);
        most = gr->lane_bytes > most ? gr->lane_bytes : most;
    }
    return most;
}

/* ---- entries ------------------------------------------------------------------ */

static int find_result(Program *p, const char *name)
{
    for (int i = 0; i < p->result.n; i++)
        if (strcmp(p->result.at[i].name, name) == 0)
            return i;
    Result r = {.name = name, .buffer = -1, .wanted = false};
    vec_push(p->arena, &p->result, r);
    return p->result.n - 1;
}

/* What the caller must have room for, whichever entry runs: where micro-batches are
 * accumulated, `step` gives the outputs of all of them. */
static void keep_larger(const Program *p, Result *r, int32_t buffer)
{
    if (r->buffer < 0 || p->buffer.at[buffer].bytes > p->buffer.at[r->buffer].bytes)
        r->buffer = buffer;
}

static int32_t result_kind(RootKind k)
{
    return k == ROOT_LOSS ? RESULT_LOSS : k == ROOT_METRIC ? RESULT_METRIC : RESULT_OUTPUT;
}

static void entry_results(Lowering *lo, Level *l, Entry *e)
{
    const Graph *g = l->g;
    VEC(Result) all = {0};
    for (int i = 0; i < g->root.n; i++) {
        const Root *r = &g->root.at[i];
        if (r->kind == ROOT_LOSS || r->kind == ROOT_OUTPUT || r->kind == ROOT_METRIC) {
            Place pl = level_place(lo, l, r->ref);
            int at = find_result(lo->p, r->name);
            lo->p->result.at[at].kind = result_kind(r->kind);
            keep_larger(lo->p, &lo->p->result.at[at], pl.buffer);
            Result res = {
                .name = r->name, .buffer = pl.buffer, .wanted = true, .kind = result_kind(r->kind)};
            vec_push(lo->p->arena, &all, res);
        } else if (r->kind == ROOT_GRADIENT) {
            Place pl = level_place(lo, l, r->ref);
            Tensor t = {.name = r->name,
                        .role = ROLE_GRADIENT,
                        .buffer = pl.buffer,
                        .of = tensor_of(lo->pin, r->slot),
                        .of_input = r->input};
            vec_push(lo->p->arena, &lo->p->tensor, t);
        }
    }
    e->result = all.at;
    e->n_results = all.n;
}

Ref level_finite(const Level *l)
{
    const Graph *g = l->g;

    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind == ROOT_FINITE)
            return g->root.at[i].ref;
    return NONE;
}

/* Adds up what goes out of the block, and what comes in. */
static void count_moved(const Program *p, const Call *call, int32_t n, int64_t times, Entry *e)
{
    for (int32_t i = 0; i < n; i++) {
        const Call *c = &call[i];
        if (c->kind == CALL_OUT || c->kind == CALL_IN)
            *(c->kind == CALL_OUT ? &e->out_bytes : &e->in_bytes) +=
                times * p->buffer.at[c->op[0].buffer].bytes;
        count_moved(p, c->body, c->n_body, times * (c->kind == CALL_LOOP ? c->count : 1), e);
    }
}

struct Lowered {
    Lowering lo;
    Level *level;
};

Lowered *lower_plan(Ctx *cx, Program *p, Clusters *c, const Pinned *pin, const char *entry,
                    const CostModel *cost, int64_t lane_bytes)
{
    Lowered *l = NEW(p->arena, Lowered);
    l->lo = (Lowering){.cx = cx,
                       .p = p,
                       .pin = pin,
                       .arena = p->arena,
                       .entry = entry,
                       .cost = cost,
                       .caps = c->caps,
                       .turn_bytes = lane_bytes};
    int64_t base = p->pinned_bytes;
    if (may_lack_inputs(entry, c->g))
        l->lo.spare_bytes = spare_inputs(p, pin, base);
    l->level = level_of_entry(&l->lo, c, base + l->lo.spare_bytes);
    return l;
}

Plan *lower_plan_of(const Lowered *l)
{
    return l->level->plan;
}

/* Some of its steps could run slab by slab: Caps.chains_from. Not beside transfers, which need the
 * places that were planned for them. */
static bool hands_on_much(const Plan *p, int64_t least)
{
    bool much = false;
    for (int32_t r = 0; r < p->n_ranges; r++)
        much |= p->value[p->range[r].value].bytes >= least;
    return much && least > 0 && p->store_bytes == 0;
}

void lower_calls(Lowered *lowered)
{
    Lowering *lo = &lowered->lo;
    Level *l = lowered->level;
    Program *p = lo->p;
    if (hands_on_much(l->plan, lo->caps->chains_from))
        plan_part_small(l->plan);
    check_plan(lo, l->plan);
    level_place_values(lo, l, 0);
    level_place_sources(lo, l);
    Entry e = {.name = lo->entry,
               .finite = -1,
               .peak_bytes = l->plan->peak,
               .spare_bytes = lo->spare_bytes};
    Calls cs = {0};
    level_emit(lo, l, &cs);
    e.call = cs.at.at;
    e.n_calls = cs.at.n;
    e.store_bytes = lo->store_bytes;
    count_moved(p, e.call, e.n_calls, 1, &e);
    if (level_finite(l) != NONE) {
        e.updates = true;
        e.finite = level_place(lo, l, level_finite(l)).buffer;
    }
    entry_results(lo, l, &e);
    vec_push(p->arena, &p->entry, e);
}

void lower_finish(Program *p)
{
    p->arena_bytes = p->pinned_bytes;
    for (int i = 0; i < p->entry.n; i++)
        if (p->entry.at[i].peak_bytes > p->arena_bytes)
            p->arena_bytes = p->entry.at[i].peak_bytes;
    for (int i = 0; i < p->entry.n; i++)
        if (p->entry.at[i].store_bytes > p->store_bytes)
            p->store_bytes = p->entry.at[i].store_bytes;
}
