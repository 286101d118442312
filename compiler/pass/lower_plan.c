/* Values and steps of a graph, for the planner: what each step reads, writes, and may
 * write over. */
#include <string.h>

#include "../plan/offload.h"
#include "../plan/order.h"
#include "../plan/place.h"
#include "lower_level.h"

static Level *level_new(Lowering *lo, Level *outer, const Clusters *c)
{
    Level *l = NEW(lo->arena, Level);
    int n = c->g->node.n;
    l->outer = outer;
    l->c = c;
    l->g = c->g;
    l->depth = outer == NULL ? 0 : outer->depth + 1;
    l->store = -1;
    l->place = NEW_ARRAY(lo->arena, Place, n);
    l->value = NEW_ARRAY(lo->arena, int32_t, n);
    l->result_of = NEW_ARRAY(lo->arena, Ref, n);
    l->body = NEW_ARRAY(lo->arena, Level *, c->group.n);
    l->carry = NEW_ARRAY(lo->arena, int32_t *, c->group.n);
    l->swap = NEW_ARRAY(lo->arena, int32_t *, c->group.n);
    l->stack = NEW_ARRAY(lo->arena, CarryStack *, c->group.n);
    l->within = NEW_ARRAY(lo->arena, Ref, n);
    l->shift = NEW_ARRAY(lo->arena, int64_t, n);
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

/* What is asked of the value; of what a scan stacks up, what is asked of it in the body. */
static const Origin *asked_of(const Level *l, Ref r)
{
    const Origin *o = node(l->g, r)->origin;
    if (op_of(l->g, r) != OP_pick || origin_is_kept(o))
        return o;
    const Graph *body = attr(l->g, arg(l->g, r, 0), SCAN_BODY)->body;
    const Root *root = result_root(body, (int)attr(l->g, r, 0)->i);
    return root == NULL ? o : node(body, root->ref)->origin;
}

/* A value in another's memory asks for what it asks for all of it. */
static void join_value(Level *l, PlanValue v, int32_t to)
{
    PlanValue *all = &l->values.at[to];
    all->to_end = all->to_end || v.to_end;
    all->kept = all->kept || v.kept;
    all->offload = all->offload || v.offload;
}

static void make_value(Lowering *lo, Level *l, Ref r)
{
    if (l->value[r] >= 0 || l->result_of[r] != 0)
        return;
    if (l->within[r] != NONE && l->within[r] != r)
        make_value(lo, l, l->within[r]);
    /* A body's results are read after its last step, too. */
    const Root *root = root_of(l->g, r);
    const Origin *o = node(l->g, r)->origin, *asked = asked_of(l, r);
    const Type t = level_type(l, r);
    PlanValue v = {.name = value_name(lo, l, r, root),
                   .role = role_of(root),
                   .bytes = type_bytes(&t),
                   .offset = -1,
                   .to_end = root != NULL,
                   .kept = origin_is_kept(asked),
                   .offload = asked != NULL && asked->memory == MEMORY_OFFLOAD,
                   .reverse = l->g->n_primal != 0 && r >= l->g->n_primal,
                   .node = r,
                   .origin = o};
    if (l->within[r] != NONE && l->within[r] != r)
        join_value(l, v, l->value[r] = l->value[l->within[r]]);
    else
        l->value[r] = add_value(lo, l, r, v);
}

/* Values for pinned storage; of an entry's level. */
static void level_slots(Lowering *lo, Level *l)
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
    r = level_memory(l, r);
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
    s->read = NEW_ARRAY(lo->arena, int32_t, n + 1);
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
    int64_t shift = level_shift(l, gr->operand.at[out].ref);
    for (int i = 0; i < gr->operand.n; i++)
        if (gr->operand.at[i].out < 0 && value_of(l, gr->operand.at[i].ref) == read &&
            (level_shift(l, gr->operand.at[i].ref) != shift || !kernel_inplace(gr->kernel, i, out)))
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

/* Carries over their first values, and what is stacked over sequences. */
static void scan_inplace(Lowering *lo, Level *l, const Group *gr, PlanStep *s)
{
    int64_t carries = attr(l->g, gr->anchor, SCAN_CARRIES)->i;
    s->inplace = NEW_ARRAY(lo->arena, PlanInPlace, gr->out.n + l->over.n);
    for (int i = 0; i < gr->out.n; i++) {
        Ref r = gr->out.at[i].ref;
        int64_t which = op_of(l->g, r) == OP_pick ? attr(l->g, r, 0)->i : carries;
        if (which >= carries)
            continue;
        Ref init = arg(l->g, gr->anchor, (int)which);
        bool all = type_elems(type_of(l->g, memory_of(l->g, l->c->stored, init))) ==
                   type_elems(type_of(l->g, init));
        int32_t v = all && level_shift(l, init) == 0 ? value_of(l, init) : -1;
        if (l->value[r] >= 0 && scan_may_overwrite(l, gr->anchor, carries, v))
            s->inplace[s->n_inplace++] = (PlanInPlace){v, l->value[r]};
    }
    for (int i = 0; i < l->over.n; i++) {
        const Over *o = &l->over.at[i];
        int32_t read = o->scan == gr->anchor ? value_of(l, o->sequence) : -1;
        if (read >= 0 && l->value[o->result] >= 0)
            s->inplace[s->n_inplace++] = (PlanInPlace){read, l->value[o->result]};
    }
}

/* Storage that is pinned is nobody else's: a pair that has some is no use to the planner, and
 * the update of a deep net has thousands by thousands of them. */
static void step_inplace(Lowering *lo, Level *l, const Group *gr, PlanStep *s)
{
    if (gr->kind == GROUP_SCAN) {
        scan_inplace(lo, l, gr, s);
        return;
    }
    s->inplace = NEW_ARRAY(lo->arena, PlanInPlace, gr->operand.n * gr->operand.n);
    for (int o = 0; o < gr->operand.n; o++) {
        if (gr->operand.at[o].out < 0)
            continue;
        int32_t w = out_value(l, &gr->out.at[gr->operand.at[o].out]);
        if (w < 0 || l->values.at[w].pinned)
            continue;
        for (int i = 0; i < s->n_reads; i++)
            if (s->read[i] != w && !l->values.at[s->read[i]].pinned &&
                all_allow(l, gr, s->read[i], o))
                s->inplace[s->n_inplace++] = (PlanInPlace){s->read[i], w};
    }
}

Ref pick_of(const Group *gr, const Graph *g, int64_t i)
{
    for (int j = 0; j < gr->out.n; j++)
        if (op_of(g, gr->out.at[j].ref) == OP_pick && attr(g, gr->out.at[j].ref, 0)->i == i)
            return gr->out.at[j].ref;
    return NONE;
}

const Root *result_root(const Graph *body, int i)
{
    int n = 0;
    for (int j = 0; j < body->root.n; j++)
        if (body->root.at[j].kind == ROOT_RESULT && n++ == i)
            return &body->root.at[j];
    return NULL;
}

int count_results(const Graph *body)
{
    int n = 0;
    while (result_root(body, n) != NULL)
        n++;
    return n;
}

/* The carry whose old value is result i, or -1. */
int64_t old_carry(const Graph *body, int i, int64_t carries)
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
        bool unread = pick_of(gr, l->g, i) == NONE && l->stack[at][i].before == NONE;
        l->carry[at][i] = unread ? scan_value(lo, l, gr->anchor, i, "carry") : -1;
        bool swaps = from >= 0 && from != i;
        l->swap[at][i] = swaps ? scan_value(lo, l, gr->anchor, i, "old carry") : -1;
    }
}

static const char *step_label(Lowering *lo, const Level *l, const Group *gr)
{
    const Origin *o = node(l->g, gr->anchor)->origin;
    const char *path = origin_path(lo->arena, o);
    const char *what = gr->kernel == NULL ? "scan" : gr->kernel->name;
    if (o != NULL && o->memory == MEMORY_AGAIN)
        what = arena_printf(lo->arena, "%s, again", what);
    return path[0] == 0 ? what : arena_printf(lo->arena, "%s: %s", path, what);
}

static Level *lower_body(Lowering *lo, Level *l, const Group *gr, const CarryStack *stack);

static void count_body(PlanStep *s, Plan *body, int64_t count)
{
    s->body = body;
    s->count = count;
    s->workspace = body->peak;
    for (int32_t i = 0; i < body->n_steps; i++) {
        s->flops += (double)count * body->step[i].flops;
        s->bytes_moved += (double)count * body->step[i].bytes_moved;
    }
}

/* Scratch of a lane that runs whole turns: a kernel that isn't shared out may have that of all
 * lanes elsewhere, where the others wait. */
static int64_t turn_bytes(const Lowering *lo, const Clusters *body)
{
    int64_t most = BLOCK_ALIGN; /* lanes are told apart by it */
    for (int i = 0; i < body->group.n; i++) {
        const Group *gr = &body->group.at[i];
        int64_t n = 0;
        if (gr->kernel != NULL)
            n = lo->caps->turn_scratch(lo->caps->options, gr->kernel);
        if (gr->body != NULL)
            n = turn_bytes(lo, gr->body);
        most = n > most ? n : most;
    }
    return most;
}

/* Before each turn the addresses of such inputs are set, for all lanes. */
static bool reads_rows(const Lowering *lo, const Level *l, Ref scan)
{
    for (int i = 0; l->outer == NULL && lo->p->rows >= 0 && i < node(l->g, scan)->n_args; i++) {
        Ref r = level_memory(l, arg(l->g, scan, i));
        if (op_of(l->g, r) == OP_input && lo->p->input.at[attr(l->g, r, 0)->i].by_row)
            return true;
    }
    return false;
}

/* Lanes could take whole turns of the scan. */
static bool has_turns(const Lowering *lo, const Level *l, const Group *gr)
{
    return lo->caps->turn_scratch != NULL && attr(l->g, gr->anchor, SCAN_CARRIES)->i == 0 &&
           !reads_rows(lo, l, gr->anchor) && turn_bytes(lo, gr->body) <= lo->turn_bytes;
}

/* Scratch of one lane: for each kernel, or for whole turns of the outermost loops that lanes could
 * take. */
static int64_t lane_bytes_of(const Lowering *lo, const Level *l, const PlanStep *s)
{
    if (s->group < 0) /* a transfer */
        return 0;
    const Group *gr = &l->c->group.at[s->group];
    int64_t most = gr->lane_bytes, n = s->apart ? turn_bytes(lo, gr->body) : 0;
    most = n > most ? n : most;
    for (int32_t i = 0; s->body != NULL && !s->apart && i < s->body->n_steps; i++) {
        n = lane_bytes_of(lo, l->body[s->group], &s->body->step[i]);
        most = n > most ? n : most;
    }
    return align_up(most, BLOCK_ALIGN);
}

static void make_step(Lowering *lo, Level *l, int at)
{
    const Group *gr = &l->c->group.at[l->c->order.at[at]];
    PlanStep *s = &l->plan->step[at];
    s->label = step_label(lo, l, gr);
    s->group = l->c->order.at[at];
    s->node = gr->anchor;
    s->guarded = gr->guarded;
    s->reverse = l->g->n_primal != 0 && gr->anchor >= l->g->n_primal;
    s->origin = node(l->g, gr->anchor)->origin;
    step_reads(lo, l, gr, s);
    step_inplace(lo, l, gr, s);
    if (gr->guarded && level_finite(l) != NONE) /* by its branch */
        push_unique(s->read, &s->n_reads, value_of(l, level_finite(l)));
    if (gr->kernel != NULL) {
        KCost c = kernel_cost(gr->kernel);
        s->flops = c.flops;
        s->chain = c.contract_flops;
        s->work = c.work;
        s->bytes_moved = c.bytes_read + c.bytes_written;
        s->ns = gr->ns;
        l->plan->pairs = l->plan->pairs || gr->kernel->con.pairs;
    }
    if (gr->kind == GROUP_SCAN) {
        for (int64_t i = 0; i < attr(l->g, gr->anchor, SCAN_CARRIES)->i; i++) {
            push_unique(s->write, &s->n_writes, l->carry[s->group][i]);
            push_unique(s->write, &s->n_writes, l->swap[s->group][i]);
        }
        Plan *body = (l->body[s->group] = lower_body(lo, l, gr, l->stack[s->group]))->plan;
        l->plan->pairs = l->plan->pairs || body->pairs;
        count_body(s, body, attr(l->g, gr->anchor, SCAN_COUNT)->i);
        s->apart = has_turns(lo, l, gr);
    }
    if (l->outer != NULL) /* the step around has scratch */
        return;
    s->lanes = gr->lanes > 0 ? gr->lanes : lo->p->threads_max;
    s->lane_bytes = gr->lanes > 0 ? gr->own_bytes : lane_bytes_of(lo, l, s);
}

void check_plan(Lowering *lo, const Plan *p)
{
    if (!lo->cx->verify)
        return;
    Arena scratch = {0};
    const char *wrong = plan_check(p, &scratch);
    if (wrong != NULL)
        diag_error(lo->cx, E0990, NO_SPAN, "plan of %s: %s", lo->entry, wrong);
    arena_free(&scratch);
}

/* Of inputs that may be short of rows, in every entry. */
static int64_t staging_bytes(const Program *p)
{
    int64_t sum = 0;
    for (int32_t b = 0; b < p->buffer.n; b++) {
        const Buffer *x = &p->buffer.at[b];
        bool pinned = x->offset >= 0 && x->offset < p->pinned_bytes;
        sum += x->role == ROLE_STAGING && pinned ? x->bytes : 0;
    }
    return sum;
}

/* gives: l->plan, in the block from `base` on; of the bodies, too. */
static void level_plan(Lowering *lo, Level *l, int64_t base)
{
    Plan *p = NEW(lo->arena, Plan);
    l->plan = p;
    p->arena = lo->arena;
    p->entry = lo->entry;
    p->cost = lo->cost;
    p->base = base;
    if (l->outer == NULL) {
        p->base_staging = staging_bytes(lo->p) + lo->spare_bytes;
    }
    p->threads_max = lo->p->threads_max;
    level_share(lo, l);
    p->n_steps = l->c->order.n;
    p->step = NEW_ARRAY(lo->arena, PlanStep, p->n_steps);
    for (int i = 0; i < p->n_steps; i++) {
        const Group *gr = &l->c->group.at[l->c->order.at[i]];
        for (int j = 0; j < gr->out.n; j++)
            if (gr->out.at[j].slot < 0)
                make_value(lo, l, gr->out.at[j].ref);
        if (gr->kind == GROUP_SCAN)
            make_carries(lo, l, gr, l->c->order.at[i]);
    }
    for (int i = 0; i < p->n_steps; i++)
        make_step(lo, l, i);
    p->n_values = l->values.n;
    p->value = l->values.at;
    p->plain = p->step;
    p->n_plain = p->n_steps;
    if (offload_asked(p)) {
        offload_place(p, 0, PLACE_WORK);
    } else {
        plan_liveness(p);
        plan_place(p);
    }
    if (l->outer != NULL)
        check_plan(lo, p);
}

/* ---- bodies of scans -------------------------------------------------------- */

static Level *body_level(Lowering *lo, Level *outer, const Group *gr, const CarryStack *stack,
                         bool apart)
{
    Level *l = level_new(lo, outer, gr->body);
    l->apart = apart;
    int64_t carries = attr(outer->g, gr->anchor, SCAN_CARRIES)->i;
    int n = count_results(l->g);
    for (int i = 0; i < n; i++) {
        Ref r = result_root(l->g, i)->ref;
        bool wanted = i < carries ? stack[i].before == NONE : pick_of(gr, outer->g, i) != NONE;
        if (l->result_of[r] != 0 || !wanted || !body_writes_direct(l->c, r, i, carries))
            continue;
        const Group *own = &l->c->group.at[l->c->group_of[r]];
        if (own->kind == GROUP_SCAN && level_stacks(l, own, r)) /* fewer bytes */
            continue;
        l->result_of[r] = (Ref)i + 1;
        Ref first = i < carries ? NONE : body_begins_direct(l->c, r);
        if (first != NONE && l->result_of[first] == 0)
            l->result_of[first] = (Ref)i + 1;
    }
    level_plan(lo, l, 0);
    return l;
}

/* ---- other orders of steps ----------------------------------------------------- */

static void wait_for_ref(Lowering *lo, const Clusters *c, const int32_t *place, Ref r, int32_t to,
                         OrderWaits *w)
{
    int from = c->group_of[memory_of(c->g, c->stored, r)];
    if (from < 0 || place[from] == to)
        return;
    vec_push(lo->arena, &w->from, place[from]);
    vec_push(lo->arena, &w->to, to);
}

/* By places in the order: whoever reads what a group computes, a body's results too, which are no
 * values of its plan. */
static OrderWaits find_waits(Lowering *lo, const Clusters *c)
{
    OrderWaits w = {0};
    int32_t *place = NEW_ARRAY(lo->arena, int32_t, c->group.n);
    for (int32_t i = 0; i < c->order.n; i++)
        place[c->order.at[i]] = i;
    for (int32_t i = 0; i < c->order.n; i++) {
        const Group *gr = &c->group.at[c->order.at[i]];
        for (int j = 0; j < gr->operand.n; j++)
            if (gr->operand.at[j].out < 0)
                wait_for_ref(lo, c, place, gr->operand.at[j].ref, i, &w);
        for (int j = 0; gr->kind == GROUP_SCAN && j < node(c->g, gr->anchor)->n_args; j++)
            wait_for_ref(lo, c, place, arg(c->g, gr->anchor, j), i, &w);
    }
    return w;
}

/* Puts the groups into another order, if there is one with fewer bytes, and notes the old one. */
static bool reorder(Lowering *lo, Clusters *c, const Plan *p)
{
    if (!lo->moves)
        return false;
    const OrderWaits waits = find_waits(lo, c);
    const int32_t *order = plan_order(p, &waits, lo->arena);
    if (order == NULL)
        return false;
    OldOrder old = {.c = c, .order = NEW_ARRAY(lo->arena, int32_t, c->order.n)};
    memcpy(old.order, c->order.at, sizeof *old.order * (size_t)c->order.n);
    for (int i = 0; i < c->order.n; i++)
        c->order.at[i] = old.order[order[i]];
    vec_push(lo->arena, &lo->moved, old);
    return true;
}

static void take_back(Lowering *lo, int from)
{
    while (lo->moved.n > from) {
        const OldOrder *old = &lo->moved.at[--lo->moved.n];
        memcpy(old->c->order.at, old->order, sizeof *old->order * (size_t)old->c->order.n);
    }
}

static Level *lower_of(Level *l, Level *other)
{
    return other->plan->peak < l->plan->peak ? other : l;
}

static Level *lower_body(Lowering *lo, Level *outer, const Group *gr, const CarryStack *stack)
{
    int moved = lo->moved.n;
    Level *l = body_level(lo, outer, gr, stack, false);
    if (l->has_stacks)
        l = lower_of(l, body_level(lo, outer, gr, stack, true));
    if (!reorder(lo, gr->body, l->plan))
        return l;
    Level *other = body_level(lo, outer, gr, stack, l->apart);
    if (other->plan->peak < l->plan->peak)
        return other;
    take_back(lo, moved);
    return l;
}

static Level *entry_level(Lowering *lo, const Clusters *c, int64_t base, bool apart)
{
    Level *l = level_new(lo, NULL, c);
    l->apart = apart;
    level_slots(lo, l);
    level_plan(lo, l, base);
    return l;
}

static Level *entry_as_ordered(Lowering *lo, const Clusters *c, int64_t base)
{
    Level *l = entry_level(lo, c, base, false);
    return l->has_stacks ? lower_of(l, entry_level(lo, c, base, true)) : l;
}

/* Orders of bodies change what loops may write over, which is asked before there are bodies: so all
 * is planned anew in the orders that are found. */
Level *level_of_entry(Lowering *lo, Clusters *c, int64_t base)
{
    Level *l = entry_as_ordered(lo, c, base);
    lo->moves = true;
    reorder(lo, c, entry_as_ordered(lo, c, base)->plan);
    lo->moves = false;
    if (lo->moved.n == 0)
        return l;
    Level *other = entry_as_ordered(lo, c, base);
    if (other->plan->peak < l->plan->peak)
        return other;
    take_back(lo, 0);
    return l;
}
