/* Buffers of what is planned, and the calls of an entry and of bodies. */
#include "lower_level.h"
#include "tails.h"

#include <assert.h>
#include <string.h>

/* The kernel's number in the program. Every build verifies it: what breaks a rule writes
 * where it should not, and to look takes less than a hundredth of the build. */
static int32_t add_kernel(Lowering *lo, Kernel *k)
{
    const char *wrong = kernel_verify(k, &lo->cx->scratch);
    if (wrong != NULL)
        diag_error(lo->cx, E0990, NO_SPAN, "kernel %s: %s", k->name, wrong);
    return program_kernel(lo->p, k);
}

static Operand operand_at(const Place *pl)
{
    Operand o = {.buffer = pl->buffer, .base = pl->base};
    memcpy(o.step, pl->step, sizeof o.step);
    return o;
}

Place level_place(const Lowering *lo, const Level *l, Ref r)
{
    (void)lo;
    Place at = l->place[level_memory(l, r)];
    assert(at.buffer >= 0);
    at.base += level_shift(l, r);
    return at;
}

static int32_t literal_buffer(Lowering *lo, const Level *l, Ref r)
{
    int32_t b = lower_buffer(lo->p, "literal", ROLE_CONSTANT, type_of(l->g, r), -1);
    lo->p->buffer.at[b].literal = attr(l->g, r, op_attr(&op_literal, "data"))->data;
    return b;
}

void level_place_sources(Lowering *lo, Level *l)
{
    for (Ref r = 1; r < (Ref)l->g->node.n; r++) {
        OpId op = op_of(l->g, r);
        if (op == OP_slot)
            l->place[r].buffer = (int32_t)attr(l->g, r, 0)->i;
        else if (op == OP_input)
            l->place[r].buffer = lower_input_buffer(lo->pin, attr(l->g, r, 0)->i);
        else if (op == OP_literal)
            l->place[r].buffer = literal_buffer(lo, l, r);
    }
}

/* Values without elements have no range, and are anywhere. */
static void place_empty(Lowering *lo, Level *l, int64_t at)
{
    for (int32_t v = 0; v < l->values.n; v++) {
        const PlanValue *value = &l->plan->value[v];
        Ref r = l->value_ref.at[v];
        if (r == NONE || value->bytes > 0 || value->pinned)
            continue;
        l->buffer_of[v] = lower_buffer(lo->p, value->name, value->role, type_of(l->g, r), at);
        if (l->value[r] == v)
            l->place[r].buffer = l->buffer_of[v];
    }
}

void level_place_values(Lowering *lo, Level *l, int64_t at)
{
    const Plan *p = l->plan;
    l->offset = at;
    l->next_range = 0;
    l->buffer_of = NEW_ARRAY(lo->arena, int32_t, l->values.n);
    l->range_buffer = NEW_ARRAY(lo->arena, int32_t, p->n_ranges);
    for (int i = 0; i < p->n_ranges; i++) {
        const PlanRange *rg = &p->range[i];
        const PlanValue *v = &p->value[rg->value];
        Ref r = l->value_ref.at[rg->value];
        l->range_buffer[i] = -1;
        if (r == NONE)
            continue;
        const Type t = l->value[r] == rg->value ? level_type(l, r) : *type_of(l->g, r);
        int32_t b = lower_buffer(lo->p, v->name, v->role, &t, at + rg->offset);
        lo->p->buffer.at[b].origin = v->origin;
        l->range_buffer[i] = b;
        if (l->range_buffer[rg->storage] >= 0) /* shared on purpose: one buffer is the owner */
            lo->p->buffer.at[b].storage = l->range_buffer[rg->storage];
    }
    place_empty(lo, l, at);
}

/* From step s on, values are where that step stores them. */
static void open_ranges(Level *l, int s)
{
    const Plan *p = l->plan;
    for (; l->next_range < p->n_ranges && p->range[l->next_range].from <= s; l->next_range++) {
        int32_t v = p->range[l->next_range].value, b = l->range_buffer[l->next_range];
        Ref r = l->value_ref.at[v];
        if (r == NONE)
            continue;
        l->buffer_of[v] = b;
        if (l->value[r] == v)
            l->place[r].buffer = b;
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

static bool same_memory(const Lowering *lo, const Operand *x, const Operand *y)
{
    const Buffer *a = &lo->p->buffer.at[x->buffer], *b = &lo->p->buffer.at[y->buffer];
    return a->offset >= 0 && a->offset == b->offset && x->base == y->base &&
           memcmp(x->step, y->step, sizeof x->step) == 0;
}

/* A carry that begins with 0, to which a step adds: sums are rounded to nearest, so it is never -0.
 */
static bool is_sum(const Level *l, Ref old, Ref new)
{
    const Tails *t = l->c->tails;
    if (t == NULL || op_of(l->g, old) != OP_arg || attr(l->g, old, 0)->i >= t->carries)
        return false;
    int64_t i = attr(l->g, old, 0)->i;
    return t->from_zero[i] && result_root(l->g, (int)i)->ref == new;
}

/* What is written over an operand need not be copied to itself before, nor must 0 be added to it.
 */
static Kernel *without_idle_stores(Lowering *lo, const Level *l, const Group *gr, const Operand *op)
{
    Arena *arena = lo->p->arena;
    Kernel *k = gr->kernel;
    for (int out = 0; out < gr->operand.n; out++)
        for (int in = 0; in < gr->operand.n && gr->operand.at[out].out >= 0; in++) {
            if (gr->operand.at[in].out >= 0 || !same_memory(lo, &op[in], &op[out]))
                continue;
            k = kernel_without_self_copies(arena, k, in, out);
            if (!lo->cx->flush &&
                is_sum(l, gr->operand.at[in].ref, gr->out.at[gr->operand.at[out].out].ref))
                k = kernel_without_zero_sums(arena, k, in, out);
        }
    return k;
}

/* Scratch that the plan has not foreseen is not there. */
static bool has_scratch(const Lowering *lo, const Kernel *k)
{
    const Caps *caps = lo->caps;
    int64_t lanes = lo->p->threads_max, bytes;
    if (lo->in_turns > 0)
        return caps->turn_scratch(caps->options, k) <= lo->lane_bytes;
    if (caps->lanes != NULL)
        lanes = caps->lanes(caps->options, k, &bytes);
    else
        bytes = caps->lane_scratch(caps->options, k);
    return lanes == 1 ? bytes <= lo->lane_bytes * lo->lanes
                      : bytes <= lo->lane_bytes && lanes <= lo->lanes;
}

static void call_kernel(Lowering *lo, Level *l, Calls *cs, const Group *gr, const PlanStep *s)
{
    Call c = {.kind = CALL_KERNEL, .n_ops = gr->operand.n, .origin = s->origin, .label = s->label};
    c.scratch = lo->scratch;
    c.lane_bytes = lo->lane_bytes;
    c.lanes = lo->lanes;
    c.op = NEW_ARRAY(lo->p->arena, Operand, gr->operand.n);
    for (int i = 0; i < gr->operand.n; i++) {
        const GroupOperand *o = &gr->operand.at[i];
        if (o->out >= 0 && gr->out.at[o->out].slot >= 0) {
            c.op[i] = (Operand){.buffer = gr->out.at[o->out].slot};
        } else {
            Place pl = level_place(lo, l, o->ref);
            c.op[i] = operand_at(&pl);
        }
    }
    Kernel *k = without_idle_stores(lo, l, gr, c.op);
    if (k->inst.n == 1) /* nothing is left to do */
        return;
    c.kernel = add_kernel(lo, k == gr->kernel || has_scratch(lo, k) ? k : gr->kernel);
    vec_push(lo->p->arena, &cs->at, c);
}

static void emit_step(Lowering *lo, Level *l, Calls *cs, int step);

/* Where a loop has what its steps hand on. */
typedef struct Loop {
    const Group *gr;
    Scan is;
    int n_results;
    const CarryStack *stack; /* by carry */
    Place *old;              /* by carry: read by a step */
    Place *result; /* by result; of carries in stacks and of what is not read, buffer -1 */
    Place *swap;   /* by result: what the carry was, as long as others ask for it, or -1 */
} Loop;

static Place slice_of(Place pl, int depth, int64_t elems, int64_t count, bool down)
{
    pl.step[depth] = down ? -elems : elems;
    pl.base += down ? (count - 1) * elems : 0;
    return pl;
}

static Place step_slice(const Loop *p, Place of, int depth, int64_t elems)
{
    return slice_of(of, depth, elems, p->is.count, p->is.down);
}

static Place result_place(const Loop *p, int depth, int i, const Type *t)
{
    return i < p->is.carries ? p->result[i] : step_slice(p, p->result[i], depth, type_elems(t));
}

static void place_body(Lowering *lo, Level *l, Level *b, const Loop *p)
{
    for (Ref r = 1; r < (Ref)b->g->node.n; r++) {
        if (op_of(b->g, r) != OP_arg)
            continue;
        int64_t i = attr(b->g, r, 0)->i, elems = type_elems(type_of(b->g, r));
        if (i < p->is.carries) {
            b->place[r] = p->old[i];
            continue;
        }
        Place from = level_place(lo, l, arg(l->g, p->gr->anchor, (int)i));
        bool sequence = i < p->is.carries + p->is.sequences;
        b->place[r] = sequence ? step_slice(p, from, l->depth, elems) : from;
    }
    for (Ref r = 1; r < (Ref)b->g->node.n; r++)
        if (b->result_of[r] != 0)
            b->place[r] = result_place(p, l->depth, (int)b->result_of[r] - 1, type_of(b->g, r));
}

/* Before an iteration overwrites the carries: old values that are results themselves. */
static void keep_carries(Lowering *lo, Level *l, Level *b, const Loop *p, Calls *cs)
{
    for (int i = 0; i < p->n_results; i++) {
        int64_t old = old_carry(b->g, i, p->is.carries);
        if (old < 0 || old == i || p->result[i].buffer < 0)
            continue;
        if (p->stack[old].before != NONE && p->stack[old].before == pick_of(p->gr, l->g, i))
            continue; /* it is there */
        const Type *t = type_of(b->g, result_root(b->g, i)->ref);
        Place to = i < p->is.carries ? p->swap[i] : result_place(p, l->depth, i, t);
        call_copy(lo, cs, &p->old[old], &to, t, node(l->g, p->gr->anchor)->origin);
    }
}

/* At the end of an iteration: results that were not written in place. */
static void copy_results(Lowering *lo, Level *l, Level *b, const Loop *p, Calls *cs)
{
    for (int i = 0; i < p->n_results; i++) {
        Ref r = result_root(b->g, i)->ref;
        bool old = old_carry(b->g, i, p->is.carries) >= 0;
        if (b->result_of[r] == (Ref)i + 1 || (old && p->swap[i].buffer < 0) ||
            p->result[i].buffer < 0)
            continue;
        const Type *t = type_of(b->g, r);
        Place from = old ? p->swap[i] : level_place(lo, b, r);
        Place to = result_place(p, l->depth, i, t);
        call_copy(lo, cs, &from, &to, t, node(l->g, p->gr->anchor)->origin);
    }
}

/* The carry begins where its first value is, or with a copy of it. */
static void begin_carry(Lowering *lo, Level *l, Calls *cs, const Loop *p, int i)
{
    Ref first = arg(l->g, p->gr->anchor, i);
    Place init = level_place(lo, l, first), to = p->old[i];
    memset(to.step, 0, sizeof to.step);
    memcpy(to.step, p->old[i].step, sizeof *to.step * (size_t)l->depth);
    const Buffer *a = &lo->p->buffer.at[init.buffer], *b = &lo->p->buffer.at[to.buffer];
    if (p->stack[i].before != NONE || a->offset < 0 || a->offset != b->offset ||
        init.base != to.base || memcmp(init.step, to.step, sizeof to.step) != 0)
        call_copy(lo, cs, &init, &to, type_of(l->g, first), node(l->g, p->gr->anchor)->origin);
}

static Loop find_places(Lowering *lo, Level *l, const Group *gr, int32_t group)
{
    Loop p = {.gr = gr, .is = scan_of(l->g, gr->anchor), .stack = l->stack[group]};
    p.n_results = count_results(gr->body->g);
    p.old = NEW_ARRAY(lo->arena, Place, p.is.carries);
    p.result = NEW_ARRAY(lo->arena, Place, p.n_results);
    p.swap = NEW_ARRAY(lo->arena, Place, p.n_results);
    for (int i = 0; i < p.n_results; i++) {
        bool carry = i < p.is.carries, stacked = carry && p.stack[i].before != NONE;
        Ref r = pick_of(gr, l->g, i);
        p.result[i].buffer = p.swap[i].buffer = -1;
        if (carry && l->swap[group][i] >= 0)
            p.swap[i].buffer = l->buffer_of[l->swap[group][i]];
        if (stacked) {
            int64_t elems = type_elems(type_of(l->g, arg(l->g, gr->anchor, i)));
            p.old[i] = step_slice(&p, level_place(lo, l, p.stack[i].before), l->depth, elems);
            continue;
        }
        if (r != NONE)
            p.result[i] = level_place(lo, l, r);
        else if (carry)
            p.result[i] = (Place){.buffer = l->buffer_of[l->carry[group][i]]};
        if (carry)
            p.old[i] = p.result[i];
    }
    return p;
}

/* The last value of a carry that is in a stack, to where it is read. */
static void end_carry(Lowering *lo, Level *l, Calls *cs, const Loop *p, int i)
{
    Ref last = pick_of(p->gr, l->g, i);
    if (p->stack[i].before == NONE || last == NONE)
        return;
    const Type *t = type_of(l->g, last);
    Place from = level_place(lo, l, p->stack[i].after), to = level_place(lo, l, last);
    from.base += p->is.down ? 0 : (p->is.count - 1) * type_elems(t);
    call_copy(lo, cs, &from, &to, t, node(l->g, p->gr->anchor)->origin);
}

/* What the body has of its own, in buffers from `first` on, is there once for each turn that may
 * run at once. */
static void set_turns(Program *p, const PlanStep *s, int64_t at, int32_t first, Call *loop,
                      int depth)
{
    const int64_t bytes = s->workspace / s->turns;
    for (int32_t i = first; i < p->buffer.n; i++) {
        Buffer *b = &p->buffer.at[i];
        if (b->offset >= at && b->offset < at + bytes) {
            b->turns = s->turns;
            b->turn_bytes = bytes;
        }
    }
    if (program_turns_apart(p, loop, depth)) {
        loop->turns = s->turns;
        return;
    }
    for (int32_t i = first; i < p->buffer.n; i++)
        p->buffer.at[i].turns = p->buffer.at[i].turn_bytes = 0;
}

static void call_scan(Lowering *lo, Level *l, Calls *cs, const Group *gr, int step)
{
    const PlanStep *s = &l->plan->step[step];
    Level *b = l->body[s->group];
    const Loop p = find_places(lo, l, gr, s->group);
    for (int i = 0; i < p.is.carries; i++)
        begin_carry(lo, l, cs, &p, i);
    const int32_t first = lo->p->buffer.n;
    level_place_values(lo, b, s->workspace_offset + l->offset);
    level_place_sources(lo, b);
    place_body(lo, l, b, &p);
    Calls body = {0};
    keep_carries(lo, l, b, &p, &body);
    lo->in_turns += s->turns > 1;
    for (int i = 0; i < b->plan->n_steps; i++)
        emit_step(lo, b, &body, i);
    lo->in_turns -= s->turns > 1;
    copy_results(lo, l, b, &p, &body);
    Call c = {.kind = CALL_LOOP,
              .count = p.is.count,
              .scratch = lo->scratch,
              .lane_bytes = lo->lane_bytes,
              .lanes = lo->lanes,
              .n_body = body.at.n,
              .body = body.at.at,
              .origin = s->origin,
              .label = s->label};
    if (s->turns > 1)
        set_turns(lo->p, s, b->offset, first, &c, l->depth);
    vec_push(lo->p->arena, &cs->at, c);
    for (int i = 0; i < p.is.carries; i++)
        end_carry(lo, l, cs, &p, i);
}

/* Each level has its own part of the store: what is around a loop may be there meanwhile. */
static void call_transfer(Lowering *lo, Level *l, Calls *cs, const PlanStep *s)
{
    static const CallKind kind[] = {
        [STEP_OUT] = CALL_OUT, [STEP_IN] = CALL_IN, [STEP_WAIT] = CALL_WAIT};
    int32_t v = s->kind == STEP_IN ? s->write[0] : s->read[0];
    if (l->store < 0) {
        l->store = lo->store_bytes;
        lo->store_bytes += l->plan->store_bytes;
    }
    Call c = {.kind = kind[s->kind], .n_ops = 1, .origin = s->origin, .label = s->label};
    c.op = NEW_ARRAY(lo->p->arena, Operand, 1);
    c.op[0].buffer = l->buffer_of[v];
    c.store = l->store + l->plan->value[v].store;
    vec_push(lo->p->arena, &cs->at, c);
}

static void emit_step(Lowering *lo, Level *l, Calls *cs, int step)
{
    const PlanStep *s = &l->plan->step[step];
    open_ranges(l, step);
    if (s->kind != STEP_RUN) {
        call_transfer(lo, l, cs, s);
        return;
    }
    if (l->outer == NULL) {
        lo->lane_bytes = align_up(s->lane_bytes, BLOCK_ALIGN);
        lo->lanes = s->lanes;
        lo->scratch = s->lane_bytes > 0 ? plan_lanes_offset(s) : 0;
    }
    const Group *gr = &l->c->group.at[s->group];
    if (gr->kind == GROUP_SCAN)
        call_scan(lo, l, cs, gr, step);
    else
        call_kernel(lo, l, cs, gr, s);
}

/* The calls from `first` on, under one branch. */
static void wrap_guarded(Lowering *lo, Level *l, Calls *cs, int first)
{
    Ref finite = level_finite(l);
    if (first == cs->at.n || finite == NONE)
        return;
    Arena *a = lo->p->arena;
    Place flag = level_place(lo, l, finite);
    Call g = {.kind = CALL_GUARD,
              .flag = operand_at(&flag),
              .n_body = cs->at.n - first,
              .label = "update"};
    g.body = NEW_ARRAY(a, Call, g.n_body);
    memcpy(g.body, &cs->at.at[first], sizeof(Call) * (size_t)g.n_body);
    cs->at.n = first;
    vec_push(a, &cs->at, g);
}

/* One branch around guarded steps that follow one another. Others between them, those of the
 * forward pass that run again, always run: what they give may be read in any case. */
void level_emit(Lowering *lo, Level *l, Calls *cs)
{
    int first = -1;
    for (int i = 0; i < l->plan->n_steps; i++) {
        bool guarded = l->plan->step[i].guarded;
        if (!guarded && first >= 0)
            wrap_guarded(lo, l, cs, first);
        first = !guarded ? -1 : first < 0 ? cs->at.n : first;
        emit_step(lo, l, cs, i);
    }
    if (first >= 0)
        wrap_guarded(lo, l, cs, first);
}
