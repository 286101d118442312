#include "lower.h"

#include <assert.h>
#include <string.h>

/* Where a node's elements are. */
typedef struct Place {
    int32_t buffer; /* -1: not yet known */
    int64_t base;
    int64_t step[MAX_LOOP_DEPTH];
} Place;

/* One graph (an entry's or a body's) being lowered. */
typedef struct Level {
    struct Level *outer;
    const Clusters *c;
    const Graph *g;
    int depth;
    int64_t offset; /* of this level's values in the block: a body's workspace */
    Place *place;   /* by Ref */
    Plan *plan;
    int32_t *value;      /* by Ref: PlanValue, or -1 */
    int32_t *buffer_of;  /* by PlanValue */
    int32_t *slot_value; /* by slot, entry level only */
    VEC(PlanValue) values;
    VEC(Ref) value_ref;
    struct Level **body; /* by step */
    int32_t **carry; /* by step of a scan, by carry: the value of one that no pick reads, or -1 */
    int32_t **swap;  /* likewise: the value that keeps what another carry was, or -1 */
    Ref *result_of;  /* body, by Ref: nonzero if the node is written to result i: i + 1 */
} Level;

typedef struct Lowering {
    Ctx *cx;
    Program *p;
    const Pinned *pin;
    Arena *arena;
    const char *entry;
} Lowering;

/* ---- buffers ------------------------------------------------------------- */

static int32_t add_buffer(Program *p, const char *name, Role role, const Type *t, int64_t offset)
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

static void lower_input(Program *p, const GraphInput *in, int i)
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
        t.dim[0] *= p->accumulate;
        input.rows = t.dim[0];
    }
    memcpy(input.shape, t.dim, sizeof input.shape);
    input.elems = type_elems(&t);
    vec_push(p->arena, &p->input, input);
    int32_t b = add_buffer(p, in->name, ROLE_INPUT, &t, -1);
    p->buffer.at[b].input = i;
    b = add_buffer(p, in->name, ROLE_STAGING, &t, take(p, type_bytes(&t)));
    p->buffer.at[b].input = i;
}

/* Buffers: slots first, in order, then two for each input. */
static int32_t input_buffer(const Pinned *pin, int64_t i)
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

void lower_pinned(Program *p, const Pinned *pin)
{
    p->pinned_bytes = HANDLE_BYTES;
    for (int i = 0; i < pin->slot.n; i++) {
        const Slot *s = &pin->slot.at[i];
        int64_t at = take(p, type_bytes(&s->type));
        int32_t b = add_buffer(p, s->name, slot_role(s->kind), &s->type, at);
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
    for (int i = 0; i < pin->input.n; i++)
        lower_input(p, &pin->input.at[i], i);
    p->step_counter = pin->step_counter;
    p->skipped_counter = pin->skipped_counter;
    p->seed = pin->seed;
    p->rows = pin->rows;
    p->lanes_offset = p->pinned_bytes;
}

void lower_lanes(Program *p, int64_t lane_bytes, int32_t threads_max)
{
    p->lane_bytes = align_up(lane_bytes, BLOCK_ALIGN);
    p->threads_max = threads_max;
    p->lanes_offset = p->pinned_bytes;
}

static int64_t entry_base(const Program *p)
{
    return p->lanes_offset + p->lane_bytes * p->threads_max;
}

int64_t lower_lane_bytes(const Clusters *c, const Caps *caps)
{
    int64_t most = 0;
    for (int i = 0; i < c->group.n; i++) {
        const Group *gr = &c->group.at[i];
        int64_t n = 0;
        if (gr->kernel != NULL)
            n = caps->lane_scratch(caps->options, gr->kernel);
        if (gr->body != NULL)
            n = lower_lane_bytes(gr->body, caps);
        if (n > most)
            most = n;
    }
    return most;
}

/* ---- values and steps ------------------------------------------------------ */

static Level *level_new(Lowering *lo, Level *outer, const Clusters *c)
{
    Level *l = NEW(lo->arena, Level);
    int n = c->g->node.n;
    l->outer = outer;
    l->c = c;
    l->g = c->g;
    l->depth = outer == NULL ? 0 : outer->depth + 1;
    l->place = NEW_ARRAY(lo->arena, Place, n);
    l->value = NEW_ARRAY(lo->arena, int32_t, n);
    l->result_of = NEW_ARRAY(lo->arena, Ref, n);
    l->body = NEW_ARRAY(lo->arena, Level *, c->order.n);
    l->carry = NEW_ARRAY(lo->arena, int32_t *, c->order.n);
    l->swap = NEW_ARRAY(lo->arena, int32_t *, c->order.n);
    for (int i = 0; i < n; i++) {
        l->place[i].buffer = -1;
        l->value[i] = -1;
    }
    return l;
}

static int32_t add_value(Lowering *lo, Level *l, Ref r, PlanValue v)
{
    vec_push(lo->arena, &l->values, v);
    vec_push(lo->arena, &l->value_ref, r);
    return l->values.n - 1;
}

static const Root *root_of(const Graph *g, Ref r)
{
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].ref == r && g->root.at[i].kind != ROOT_ASSIGN)
            return &g->root.at[i];
    return NULL;
}

static Role role_of(const Root *root)
{
    if (root == NULL)
        return ROLE_ACTIVATION;
    switch (root->kind) {
    case ROOT_GRADIENT:
        return ROLE_GRADIENT;
    case ROOT_LOSS:
    case ROOT_OUTPUT:
    case ROOT_METRIC:
        return ROLE_OUTPUT;
    default:
        return ROLE_ACTIVATION;
    }
}

static const char *value_name(Lowering *lo, const Level *l, Ref r, const Root *root)
{
    if (root != NULL && root->name != NULL)
        return root->name;
    const char *path = origin_path(lo->arena, node(l->g, r)->origin);
    const char *op = optab[op_of(l->g, r)]->name;
    return path[0] == 0 ? arena_printf(lo->arena, "%s.%u", op, r)
                        : arena_printf(lo->arena, "%s:%s.%u", path, op, r);
}

static void make_value(Lowering *lo, Level *l, Ref r)
{
    if (l->value[r] >= 0 || l->result_of[r] != 0)
        return;
    /* A body's results are read after its last step, too. */
    const Root *root = root_of(l->g, r);
    PlanValue v = {.name = value_name(lo, l, r, root),
                   .role = role_of(root),
                   .bytes = type_bytes(type_of(l->g, r)),
                   .offset = -1,
                   .to_end = root != NULL,
                   .origin = node(l->g, r)->origin};
    l->value[r] = add_value(lo, l, r, v);
}

static void slot_values(Lowering *lo, Level *l)
{
    l->slot_value = NEW_ARRAY(lo->arena, int32_t, lo->pin->slot.n);
    for (int i = 0; i < lo->pin->slot.n; i++) {
        const Buffer *b = &lo->p->buffer.at[i];
        PlanValue v = {.name = b->name,
                       .role = b->role,
                       .bytes = b->bytes,
                       .pinned = true,
                       .offset = b->offset,
                       .to_end = true,
                       .origin = b->origin};
        l->slot_value[i] = add_value(lo, l, NONE, v);
    }
}

/* The planned value that a node's memory belongs to, or -1 (inputs, literals, a
 * body's carries). */
static int32_t value_of(const Level *l, Ref r)
{
    r = memory_of(l->g, l->c->stored, r);
    if (op_of(l->g, r) == OP_slot)
        return l->slot_value == NULL ? -1 : l->slot_value[attr(l->g, r, 0)->i];
    return l->value[r];
}

static int32_t out_value(const Level *l, const GroupOut *o)
{
    return o->slot >= 0 ? l->slot_value[o->slot] : l->value[o->ref];
}

static void push_unique(int32_t *at, int32_t *n, int32_t v)
{
    for (int i = 0; i < *n; i++)
        if (at[i] == v)
            return;
    if (v >= 0)
        at[(*n)++] = v;
}

static void step_reads(Lowering *lo, Level *l, const Group *gr, PlanStep *s)
{
    int n = gr->kind == GROUP_SCAN ? node(l->g, gr->anchor)->n_args : gr->operand.n;
    s->read = NEW_ARRAY(lo->arena, int32_t, n);
    s->write = NEW_ARRAY(lo->arena, int32_t, gr->out.n + 2 * n);
    for (int i = 0; i < n; i++) {
        if (gr->kind == GROUP_SCAN)
            push_unique(s->read, &s->n_reads, value_of(l, arg(l->g, gr->anchor, i)));
        else if (gr->operand.at[i].out < 0)
            push_unique(s->read, &s->n_reads, value_of(l, gr->operand.at[i].ref));
    }
    for (int i = 0; i < gr->out.n; i++)
        push_unique(s->write, &s->n_writes, out_value(l, &gr->out.at[i]));
}

/* Reads of one memory by several operands: all of them must allow the overwrite. */
static bool all_allow(const Level *l, const Group *gr, int32_t read, int out)
{
    for (int i = 0; i < gr->operand.n; i++)
        if (gr->operand.at[i].out < 0 && value_of(l, gr->operand.at[i].ref) == read &&
            !kernel_inplace(gr->kernel, i, out))
            return false;
    return true;
}

/* A carry may begin where its first value is, unless the body reads that value too. */
static bool scan_may_overwrite(const Level *l, Ref scan, int64_t carries, int32_t v)
{
    for (int i = (int)carries; i < node(l->g, scan)->n_args; i++)
        if (value_of(l, arg(l->g, scan, i)) == v)
            return false;
    return v >= 0;
}

static void step_inplace(Lowering *lo, Level *l, const Group *gr, PlanStep *s)
{
    s->inplace = NEW_ARRAY(lo->arena, PlanInPlace, gr->operand.n * gr->operand.n + gr->out.n);
    if (gr->kind == GROUP_SCAN) {
        int64_t carries = attr(l->g, gr->anchor, SCAN_CARRIES)->i;
        for (int i = 0; i < gr->out.n; i++) {
            Ref r = gr->out.at[i].ref;
            int64_t which = op_of(l->g, r) == OP_pick ? attr(l->g, r, 0)->i : carries;
            if (which < carries) {
                int32_t v = value_of(l, arg(l->g, gr->anchor, (int)which));
                if (scan_may_overwrite(l, gr->anchor, carries, v))
                    s->inplace[s->n_inplace++] = (PlanInPlace){v, l->value[r]};
            }
        }
        return;
    }
    for (int o = 0; o < gr->operand.n; o++) {
        if (gr->operand.at[o].out < 0)
            continue;
        int32_t w = out_value(l, &gr->out.at[gr->operand.at[o].out]);
        for (int i = 0; i < s->n_reads && w >= 0; i++)
            if (s->read[i] != w && all_allow(l, gr, s->read[i], o))
                s->inplace[s->n_inplace++] = (PlanInPlace){s->read[i], w};
    }
}

static Ref pick_of(const Group *gr, const Graph *g, int64_t i)
{
    for (int j = 0; j < gr->out.n; j++)
        if (op_of(g, gr->out.at[j].ref) == OP_pick && attr(g, gr->out.at[j].ref, 0)->i == i)
            return gr->out.at[j].ref;
    return NONE;
}

static const Root *result_root(const Graph *body, int i)
{
    int n = 0;
    for (int j = 0; j < body->root.n; j++)
        if (body->root.at[j].kind == ROOT_RESULT && n++ == i)
            return &body->root.at[j];
    return NULL;
}

static int count_results(const Graph *body)
{
    int n = 0;
    while (result_root(body, n) != NULL)
        n++;
    return n;
}

/* The carry whose old value is result i, or -1. */
static int64_t old_carry(const Graph *body, int i, int64_t carries)
{
    Ref r = result_root(body, i)->ref;
    if (op_of(body, r) != OP_arg || attr(body, r, 0)->i >= carries)
        return -1;
    return attr(body, r, 0)->i;
}

static int32_t scan_value(Lowering *lo, Level *l, Ref scan, int64_t i, const char *what)
{
    Ref init = arg(l->g, scan, (int)i);
    PlanValue v = {.name = arena_printf(lo->arena, "scan.%u %s %d", scan, what, (int)i),
                   .role = ROLE_ACTIVATION,
                   .offset = -1,
                   .bytes = type_bytes(type_of(l->g, init)),
                   .origin = node(l->g, scan)->origin};
    return add_value(lo, l, init, v);
}

/* A carry needs memory though nobody asks for its last value; one that takes another's
 * old value needs that kept through an iteration. */
static void make_carries(Lowering *lo, Level *l, const Group *gr, int at)
{
    int64_t carries = attr(l->g, gr->anchor, SCAN_CARRIES)->i;
    l->carry[at] = NEW_ARRAY(lo->arena, int32_t, carries);
    l->swap[at] = NEW_ARRAY(lo->arena, int32_t, carries);
    for (int64_t i = 0; i < carries; i++) {
        int64_t from = old_carry(gr->body->g, (int)i, carries);
        bool unread = pick_of(gr, l->g, i) == NONE;
        l->carry[at][i] = unread ? scan_value(lo, l, gr->anchor, i, "carry") : -1;
        bool swaps = from >= 0 && from != i;
        l->swap[at][i] = swaps ? scan_value(lo, l, gr->anchor, i, "old carry") : -1;
    }
}

static const char *step_label(Lowering *lo, const Level *l, const Group *gr)
{
    const char *path = origin_path(lo->arena, node(l->g, gr->anchor)->origin);
    const char *what = gr->kernel == NULL ? "scan" : gr->kernel->name;
    return path[0] == 0 ? what : arena_printf(lo->arena, "%s: %s", path, what);
}

static Level *lower_body(Lowering *lo, Level *l, const Group *gr);

static void make_step(Lowering *lo, Level *l, int at)
{
    const Group *gr = &l->c->group.at[l->c->order.at[at]];
    PlanStep *s = &l->plan->step[at];
    s->label = step_label(lo, l, gr);
    s->group = l->c->order.at[at];
    s->guarded = gr->guarded;
    s->origin = node(l->g, gr->anchor)->origin;
    step_reads(lo, l, gr, s);
    step_inplace(lo, l, gr, s);
    if (gr->kernel != NULL) {
        KCost c = kernel_cost(gr->kernel);
        s->flops = c.flops;
        s->bytes_moved = c.bytes_read + c.bytes_written;
    }
    if (gr->kind == GROUP_SCAN) {
        for (int64_t i = 0; i < attr(l->g, gr->anchor, SCAN_CARRIES)->i; i++) {
            push_unique(s->write, &s->n_writes, l->carry[at][i]);
            push_unique(s->write, &s->n_writes, l->swap[at][i]);
        }
        l->body[at] = lower_body(lo, l, gr);
        s->workspace = l->body[at]->plan->peak;
    }
}

static bool check(Lowering *lo, const Plan *p, const char *what)
{
    if (!lo->cx->verify)
        return true;
    Arena scratch = {0};
    const char *wrong = plan_check(p, &scratch);
    if (wrong != NULL)
        diag_error(lo->cx, E0990, NO_SPAN, "plan of %s: %s", what, wrong);
    arena_free(&scratch);
    return wrong == NULL;
}

/* The kernel's number in the program; verified where asked. */
static int32_t add_kernel(Lowering *lo, Kernel *k)
{
    if (lo->cx->verify) {
        const char *wrong = kernel_verify(k, &lo->cx->scratch);
        if (wrong != NULL)
            diag_error(lo->cx, E0990, NO_SPAN, "kernel %s: %s", k->name, wrong);
    }
    return program_kernel(lo->p, k);
}

static void make_plan(Lowering *lo, Level *l, int64_t base)
{
    Plan *p = NEW(lo->arena, Plan);
    l->plan = p;
    p->arena = lo->arena;
    p->entry = lo->entry;
    p->base = base;
    p->threads_max = lo->p->threads_max;
    p->n_steps = l->c->order.n;
    p->step = NEW_ARRAY(lo->arena, PlanStep, p->n_steps);
    for (int i = 0; i < p->n_steps; i++) {
        const Group *gr = &l->c->group.at[l->c->order.at[i]];
        for (int j = 0; j < gr->out.n; j++)
            if (gr->out.at[j].slot < 0)
                make_value(lo, l, gr->out.at[j].ref);
        if (gr->kind == GROUP_SCAN)
            make_carries(lo, l, gr, i);
    }
    for (int i = 0; i < p->n_steps; i++)
        make_step(lo, l, i);
    p->n_values = l->values.n;
    p->value = l->values.at;
    plan_liveness(p);
    plan_place(p);
    check(lo, p, lo->entry);
}

/* ---- bodies of scans -------------------------------------------------------- */

static bool reads_arg(const Clusters *c, const Group *gr, int64_t i)
{
    for (int j = 0; j < gr->operand.n; j++) {
        Ref r = gr->operand.at[j].ref;
        if (gr->operand.at[j].out < 0 && op_of(c->g, r) == OP_arg && attr(c->g, r, 0)->i == i)
            return true;
    }
    if (gr->kind == GROUP_SCAN)
        for (int j = 0; j < node(c->g, gr->anchor)->n_args; j++) {
            Ref r = memory_of(c->g, c->stored, arg(c->g, gr->anchor, j));
            if (op_of(c->g, r) == OP_arg && attr(c->g, r, 0)->i == i)
                return true;
        }
    return false;
}

/* May the group write the new carry over the old one? */
static bool overwrites_carry(const Clusters *c, const Group *gr, Ref r, int64_t carry)
{
    int out = -1;
    for (int j = 0; j < gr->operand.n; j++)
        if (gr->operand.at[j].out >= 0 && gr->out.at[gr->operand.at[j].out].ref == r)
            out = j;
    if (out < 0)
        return false;
    for (int j = 0; j < gr->operand.n; j++) {
        Ref a = gr->operand.at[j].ref;
        if (gr->operand.at[j].out < 0 && op_of(c->g, a) == OP_arg && attr(c->g, a, 0)->i == carry &&
            !kernel_inplace(gr->kernel, j, out))
            return false;
    }
    return true;
}

/* Result i can be written straight to its final place: an emitted slice always, a carry
 * if nobody reads the old one from then on. */
static bool writes_direct(const Clusters *c, Ref r, int i, int64_t carries)
{
    if (ref_is_source(c->g, r) || !c->stored[r] || c->group_of[r] < 0)
        return false;
    const Group *own = &c->group.at[c->group_of[r]];
    if (own->kind == GROUP_SCAN)
        return false;
    if (i >= carries)
        return true;
    bool after = false;
    for (int j = 0; j < c->order.n; j++) {
        const Group *gr = &c->group.at[c->order.at[j]];
        if (after && reads_arg(c, gr, i))
            return false;
        after |= gr == own;
    }
    return overwrites_carry(c, own, r, i);
}

static Level *lower_body(Lowering *lo, Level *outer, const Group *gr)
{
    Level *l = level_new(lo, outer, gr->body);
    int64_t carries = attr(outer->g, gr->anchor, SCAN_CARRIES)->i;
    int n = count_results(l->g);
    for (int i = 0; i < n; i++) {
        Ref r = result_root(l->g, i)->ref;
        bool wanted = i < carries || pick_of(gr, outer->g, i) != NONE;
        if (l->result_of[r] == 0 && wanted && writes_direct(l->c, r, i, carries))
            l->result_of[r] = (Ref)i + 1;
    }
    make_plan(lo, l, 0);
    return l;
}

/* ---- calls ------------------------------------------------------------------ */

typedef struct Calls {
    VEC(Call) at;
} Calls;

static Operand operand_at(const Place *pl)
{
    Operand o = {.buffer = pl->buffer, .base = pl->base};
    memcpy(o.step, pl->step, sizeof o.step);
    return o;
}

static Place place_of(const Lowering *lo, const Level *l, Ref r)
{
    (void)lo;
    r = memory_of(l->g, l->c->stored, r);
    assert(l->place[r].buffer >= 0);
    return l->place[r];
}

static int32_t literal_buffer(Lowering *lo, const Level *l, Ref r)
{
    int32_t b = add_buffer(lo->p, "literal", ROLE_CONSTANT, type_of(l->g, r), -1);
    lo->p->buffer.at[b].literal = attr(l->g, r, op_attr(&op_literal, "data"))->data;
    return b;
}

static void place_sources(Lowering *lo, Level *l)
{
    for (Ref r = 1; r < (Ref)l->g->node.n; r++) {
        OpId op = op_of(l->g, r);
        if (op == OP_slot)
            l->place[r].buffer = (int32_t)attr(l->g, r, 0)->i;
        else if (op == OP_input)
            l->place[r].buffer = input_buffer(lo->pin, attr(l->g, r, 0)->i);
        else if (op == OP_literal)
            l->place[r].buffer = literal_buffer(lo, l, r);
    }
}

/* Buffers of the planned values, `at` bytes up. */
static void place_values(Lowering *lo, Level *l, int64_t at)
{
    l->offset = at;
    l->buffer_of = NEW_ARRAY(lo->arena, int32_t, l->values.n);
    for (int i = 0; i < l->plan->n_ranges; i++) {
        const PlanRange *rg = &l->plan->range[i];
        Ref r = l->value_ref.at[rg->value];
        if (r == NONE)
            continue;
        const PlanValue *v = &l->plan->value[rg->value];
        int32_t b = add_buffer(lo->p, v->name, v->role, type_of(l->g, r), at + rg->offset);
        lo->p->buffer.at[b].origin = v->origin;
        l->buffer_of[rg->value] = b;
        if (l->value[r] == rg->value)
            l->place[r].buffer = b;
    }
    /* Values that share storage on purpose name one buffer as its owner. */
    for (int i = 0; i < l->plan->n_ranges; i++) {
        const PlanRange *rg = &l->plan->range[i];
        Ref r = l->value_ref.at[rg->value];
        int32_t s = l->plan->range[rg->storage].value;
        if (r != NONE && l->value_ref.at[s] != NONE)
            lo->p->buffer.at[l->buffer_of[rg->value]].storage = l->buffer_of[s];
    }
}

static Kernel *copy_kernel(Arena *arena, DType t, int64_t elems)
{
    Kernel *k = kernel_new(arena, K_LOOP, "copy");
    int in = k_buf(k, t, elems, K_IN), out = k_buf(k, t, elems, K_OUT);
    Val i = k_par(k, elems);
    KAff at = k_aff_val(i, 1);
    Val v = k_load(k, in, at);
    k_store(k, out, at, v);
    k_end(k, i);
    k_finish(k);
    return k;
}

static void call_copy(Lowering *lo, Calls *cs, const Place *from, const Place *to, const Type *t,
                      const Origin *o)
{
    if (type_elems(t) == 0)
        return;
    Call c = {.kind = CALL_KERNEL, .n_ops = 2, .origin = o, .label = "copy"};
    c.kernel = add_kernel(lo, copy_kernel(lo->p->arena, t->dtype, type_elems(t)));
    c.op = NEW_ARRAY(lo->p->arena, Operand, 2);
    c.op[0] = operand_at(from);
    c.op[1] = operand_at(to);
    vec_push(lo->p->arena, &cs->at, c);
}

static void call_kernel(Lowering *lo, Level *l, Calls *cs, const Group *gr, const PlanStep *s)
{
    Call c = {.kind = CALL_KERNEL, .n_ops = gr->operand.n, .origin = s->origin, .label = s->label};
    c.kernel = add_kernel(lo, gr->kernel);
    c.op = NEW_ARRAY(lo->p->arena, Operand, gr->operand.n);
    for (int i = 0; i < gr->operand.n; i++) {
        const GroupOperand *o = &gr->operand.at[i];
        if (o->out >= 0 && gr->out.at[o->out].slot >= 0) {
            c.op[i] = (Operand){.buffer = gr->out.at[o->out].slot};
        } else {
            Place pl = place_of(lo, l, o->ref);
            c.op[i] = operand_at(&pl);
        }
    }
    vec_push(lo->p->arena, &cs->at, c);
}

static void emit_level(Lowering *lo, Level *l, Calls *cs);

static Place slice_of(Place pl, int depth, int64_t elems, int64_t count, bool down)
{
    pl.step[depth] = down ? -elems : elems;
    pl.base += down ? (count - 1) * elems : 0;
    return pl;
}

static void place_body(Lowering *lo, Level *l, Level *b, Ref scan, const Place *pick)
{
    const Attr *at = node(l->g, scan)->attr;
    int64_t carries = at[SCAN_CARRIES].i, seqs = at[SCAN_SEQUENCES].i, count = at[SCAN_COUNT].i;
    bool down = at[SCAN_DOWN].i != 0;
    for (Ref r = 1; r < (Ref)b->g->node.n; r++) {
        if (op_of(b->g, r) != OP_arg)
            continue;
        int64_t i = attr(b->g, r, 0)->i;
        if (i < carries) {
            b->place[r] = pick[i];
            continue;
        }
        Place from = place_of(lo, l, arg(l->g, scan, (int)i));
        int64_t elems = type_elems(type_of(b->g, r));
        b->place[r] = i < carries + seqs ? slice_of(from, l->depth, elems, count, down) : from;
    }
    for (Ref r = 1; r < (Ref)b->g->node.n; r++) {
        if (b->result_of[r] == 0)
            continue;
        int64_t i = b->result_of[r] - 1, elems = type_elems(type_of(b->g, r));
        b->place[r] = i < carries ? pick[i] : slice_of(pick[i], l->depth, elems, count, down);
    }
}

static Place result_place(const Level *l, Ref scan, const Place *pick, int i, const Type *t)
{
    const Attr *at = node(l->g, scan)->attr;
    if (i < at[SCAN_CARRIES].i)
        return pick[i];
    return slice_of(pick[i], l->depth, type_elems(t), at[SCAN_COUNT].i, at[SCAN_DOWN].i != 0);
}

/* Before an iteration overwrites the carries: old values that are results themselves. */
static void keep_carries(Lowering *lo, Level *l, Level *b, Ref scan, const Place *pick,
                         const Place *swap, Calls *cs)
{
    int64_t carries = node(l->g, scan)->attr[SCAN_CARRIES].i;
    int n = count_results(b->g);
    for (int i = 0; i < n; i++) {
        int64_t old = old_carry(b->g, i, carries);
        if (old < 0 || old == i || pick[i].buffer < 0)
            continue;
        const Type *t = type_of(b->g, result_root(b->g, i)->ref);
        Place to = result_place(l, scan, pick, i, t);
        if (i < carries)
            to = swap[i];
        call_copy(lo, cs, &pick[old], &to, t, node(l->g, scan)->origin);
    }
}

/* At the end of an iteration: results that were not written in place. */
static void copy_results(Lowering *lo, Level *l, Level *b, Ref scan, const Place *pick,
                         const Place *swap, Calls *cs)
{
    int64_t carries = node(l->g, scan)->attr[SCAN_CARRIES].i;
    int n = count_results(b->g);
    for (int i = 0; i < n; i++) {
        Ref r = result_root(b->g, i)->ref;
        bool old = old_carry(b->g, i, carries) >= 0;
        if (b->result_of[r] == (Ref)i + 1 || (old && swap[i].buffer < 0) || pick[i].buffer < 0)
            continue;
        const Type *t = type_of(b->g, r);
        Place from = old ? swap[i] : place_of(lo, b, r);
        Place to = result_place(l, scan, pick, i, t);
        call_copy(lo, cs, &from, &to, t, node(l->g, scan)->origin);
    }
}

static void call_scan(Lowering *lo, Level *l, Calls *cs, const Group *gr, int step)
{
    Level *b = l->body[step];
    const PlanStep *s = &l->plan->step[step];
    const Attr *at = node(l->g, gr->anchor)->attr;
    int n = count_results(b->g);
    Place *pick = NEW_ARRAY(lo->arena, Place, n), *swap = NEW_ARRAY(lo->arena, Place, n);
    for (int i = 0; i < n; i++) {
        pick[i].buffer = swap[i].buffer = -1;
        if (i < at[SCAN_CARRIES].i && l->swap[step][i] >= 0)
            swap[i].buffer = l->buffer_of[l->swap[step][i]];
        Ref r = pick_of(gr, l->g, i);
        if (r != NONE)
            pick[i] = place_of(lo, l, r);
        else if (i < at[SCAN_CARRIES].i)
            pick[i] = (Place){.buffer = l->buffer_of[l->carry[step][i]]};
        if (i < at[SCAN_CARRIES].i) {
            Place init = place_of(lo, l, arg(l->g, gr->anchor, i));
            const Buffer *from = &lo->p->buffer.at[init.buffer];
            const Buffer *to = &lo->p->buffer.at[pick[i].buffer];
            if (from->offset < 0 || from->offset != to->offset || init.base != pick[i].base)
                call_copy(lo, cs, &init, &pick[i], type_of(l->g, arg(l->g, gr->anchor, i)),
                          s->origin);
        }
    }
    place_values(lo, b, s->workspace_offset + l->offset);
    place_sources(lo, b);
    place_body(lo, l, b, gr->anchor, pick);
    Calls body = {0};
    keep_carries(lo, l, b, gr->anchor, pick, swap, &body);
    emit_level(lo, b, &body);
    copy_results(lo, l, b, gr->anchor, pick, swap, &body);
    Call c = {.kind = CALL_LOOP,
              .count = at[SCAN_COUNT].i,
              .n_body = body.at.n,
              .body = body.at.at,
              .origin = s->origin,
              .label = s->label};
    vec_push(lo->p->arena, &cs->at, c);
}

static void emit_level(Lowering *lo, Level *l, Calls *cs)
{
    for (int i = 0; i < l->plan->n_steps; i++) {
        const Group *gr = &l->c->group.at[l->plan->step[i].group];
        if (gr->kind == GROUP_SCAN)
            call_scan(lo, l, cs, gr, i);
        else
            call_kernel(lo, l, cs, gr, &l->plan->step[i]);
    }
}

/* ---- entries ------------------------------------------------------------------ */

/* The guarded steps are the last ones: one branch around all of them. */
static void wrap_guarded(Lowering *lo, Level *l, Calls *cs, Ref finite, int first)
{
    if (first == cs->at.n || finite == NONE)
        return;
    Arena *a = lo->p->arena;
    Place flag = place_of(lo, l, finite);
    Call g = {.kind = CALL_GUARD,
              .flag = operand_at(&flag),
              .n_body = cs->at.n - first,
              .label = "update"};
    g.body = NEW_ARRAY(a, Call, g.n_body);
    memcpy(g.body, &cs->at.at[first], sizeof(Call) * (size_t)g.n_body);
    cs->at.n = first;
    vec_push(a, &cs->at, g);
}

static void emit_entry(Lowering *lo, Level *l, Calls *cs, Ref finite)
{
    int first = -1;
    for (int i = 0; i < l->plan->n_steps; i++) {
        const Group *gr = &l->c->group.at[l->plan->step[i].group];
        if (gr->guarded && first < 0)
            first = cs->at.n;
        if (gr->kind == GROUP_SCAN)
            call_scan(lo, l, cs, gr, i);
        else
            call_kernel(lo, l, cs, gr, &l->plan->step[i]);
    }
    if (first >= 0)
        wrap_guarded(lo, l, cs, finite, first);
}

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
            Place pl = place_of(lo, l, r->ref);
            int at = find_result(lo->p, r->name);
            lo->p->result.at[at].kind = result_kind(r->kind);
            keep_larger(lo->p, &lo->p->result.at[at], pl.buffer);
            Result res = {
                .name = r->name, .buffer = pl.buffer, .wanted = true, .kind = result_kind(r->kind)};
            vec_push(lo->p->arena, &all, res);
        } else if (r->kind == ROOT_GRADIENT) {
            Place pl = place_of(lo, l, r->ref);
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

static Ref finite_ref(const Graph *g)
{
    for (int i = 0; i < g->root.n; i++)
        if (g->root.at[i].kind == ROOT_FINITE)
            return g->root.at[i].ref;
    return NONE;
}

Plan *lower_entry(Ctx *cx, Program *p, const Clusters *c, const Pinned *pin, const char *entry)
{
    Lowering lo = {.cx = cx, .p = p, .pin = pin, .arena = p->arena, .entry = entry};
    Level *l = level_new(&lo, NULL, c);
    slot_values(&lo, l);
    make_plan(&lo, l, entry_base(p));
    place_values(&lo, l, 0);
    place_sources(&lo, l);
    Entry e = {
        .name = entry, .finite = -1, .peak_bytes = l->plan->peak, .lane_bytes = p->lane_bytes};
    Calls cs = {0};
    Ref finite = finite_ref(c->g);
    emit_entry(&lo, l, &cs, finite);
    e.call = cs.at.at;
    e.n_calls = cs.at.n;
    if (finite != NONE) {
        e.updates = true;
        e.finite = place_of(&lo, l, finite).buffer;
    }
    entry_results(&lo, l, &e);
    vec_push(p->arena, &p->entry, e);
    return l->plan;
}

void lower_finish(Program *p)
{
    p->arena_bytes = entry_base(p);
    for (int i = 0; i < p->entry.n; i++)
        if (p->entry.at[i].peak_bytes > p->arena_bytes)
            p->arena_bytes = p->entry.at[i].peak_bytes;
}
