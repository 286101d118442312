/* Buffers of what is planned, and the calls of an entry and of bodies. */
#include "lower_level.h"

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
    r = memory_of(l->g, l->c->stored, r);
    assert(l->place[r].buffer >= 0);
    return l->place[r];
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
        int32_t b = lower_buffer(lo->p, v->name, v->role, type_of(l->g, r), at + rg->offset);
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
            Place pl = level_place(lo, l, o->ref);
            c.op[i] = operand_at(&pl);
        }
    }
    vec_push(lo->p->arena, &cs->at, c);
}

static void emit_step(Lowering *lo, Level *l, Calls *cs, int step);

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
        Place from = level_place(lo, l, arg(l->g, scan, (int)i));
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
        Place from = old ? swap[i] : level_place(lo, b, r);
        Place to = result_place(l, scan, pick, i, t);
        call_copy(lo, cs, &from, &to, t, node(l->g, scan)->origin);
    }
}

static void call_scan(Lowering *lo, Level *l, Calls *cs, const Group *gr, int step)
{
    const PlanStep *s = &l->plan->step[step];
    Level *b = l->body[s->group];
    const Attr *at = node(l->g, gr->anchor)->attr;
    int n = count_results(b->g);
    Place *pick = NEW_ARRAY(lo->arena, Place, n), *swap = NEW_ARRAY(lo->arena, Place, n);
    for (int i = 0; i < n; i++) {
        pick[i].buffer = swap[i].buffer = -1;
        if (i < at[SCAN_CARRIES].i && l->swap[s->group][i] >= 0)
            swap[i].buffer = l->buffer_of[l->swap[s->group][i]];
        Ref r = pick_of(gr, l->g, i);
        if (r != NONE)
            pick[i] = level_place(lo, l, r);
        else if (i < at[SCAN_CARRIES].i)
            pick[i] = (Place){.buffer = l->buffer_of[l->carry[s->group][i]]};
        if (i < at[SCAN_CARRIES].i) {
            Place init = level_place(lo, l, arg(l->g, gr->anchor, i));
            const Buffer *from = &lo->p->buffer.at[init.buffer];
            const Buffer *to = &lo->p->buffer.at[pick[i].buffer];
            if (from->offset < 0 || from->offset != to->offset || init.base != pick[i].base)
                call_copy(lo, cs, &init, &pick[i], type_of(l->g, arg(l->g, gr->anchor, i)),
                          s->origin);
        }
    }
    level_place_values(lo, b, s->workspace_offset + l->offset);
    level_place_sources(lo, b);
    place_body(lo, l, b, gr->anchor, pick);
    Calls body = {0};
    keep_carries(lo, l, b, gr->anchor, pick, swap, &body);
    for (int i = 0; i < b->plan->n_steps; i++)
        emit_step(lo, b, &body, i);
    copy_results(lo, l, b, gr->anchor, pick, swap, &body);
    Call c = {.kind = CALL_LOOP,
              .count = at[SCAN_COUNT].i,
              .n_body = body.at.n,
              .body = body.at.at,
              .origin = s->origin,
              .label = s->label};
    vec_push(lo->p->arena, &cs->at, c);
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
    const Group *gr = &l->c->group.at[s->group];
    if (gr->kind == GROUP_SCAN)
        call_scan(lo, l, cs, gr, step);
    else
        call_kernel(lo, l, cs, gr, s);
}

/* The guarded steps are the last ones: one branch around all of them. */
static void wrap_guarded(Lowering *lo, Level *l, Calls *cs, Ref finite, int first)
{
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

void level_emit(Lowering *lo, Level *l, Calls *cs, Ref finite)
{
    int first = -1;
    for (int i = 0; i < l->plan->n_steps; i++) {
        if (l->plan->step[i].guarded && first < 0)
            first = cs->at.n;
        emit_step(lo, l, cs, i);
    }
    if (first >= 0)
        wrap_guarded(lo, l, cs, finite, first);
}
