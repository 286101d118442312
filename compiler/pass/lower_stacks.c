/* Carries in stacks.
 *
 * Where the reverse of a scan reads what a carry was before each step and what it was after it,
 * the scan stacks both, and these are the same values, one row apart. They have one memory, with
 * a row more than there are steps: a step reads the carry in its row and writes the new one to
 * the next, and nothing is copied. The last value has memory of its own, if it is read, for it
 * may be there for long when the stack is not. */
#include "lower_level.h"

/* The pick of result i, if it can be a part of another value; else NONE. */
static Ref part_of_value(const Level *l, const Group *gr, int i)
{
    Ref r = pick_of(gr, l->g, i);
    for (int j = 0; j < gr->out.n; j++)
        if (gr->out.at[j].ref == r && gr->out.at[j].slot >= 0)
            return NONE;
    for (int j = 0; j < l->g->root.n; j++) /* a result of a body may be copied from where it is */
        if (l->g->root.at[j].ref == r && l->g->root.at[j].kind != ROOT_RESULT)
            return NONE;
    return r != NONE && l->result_of[r] == 0 && l->within[r] == NONE ? r : NONE;
}

/* Where the old values of a carry are stacked, and where the new ones are. */
static CarryStack find_stack(const Level *l, const Group *gr, int carry, int64_t carries)
{
    const Graph *body = gr->body->g;
    CarryStack s = {NONE, NONE};
    Ref next = result_root(body, carry)->ref;
    for (int i = (int)carries, n = count_results(body); i < n; i++) {
        bool is_old = old_carry(body, i, carries) == carry;
        bool is_new = result_root(body, i)->ref == next && op_of(body, next) != OP_arg;
        Ref *to = is_old ? &s.before : &s.after;
        if ((is_old || is_new) && *to == NONE)
            *to = part_of_value(l, gr, i);
    }
    return s;
}

bool level_stacks(const Level *l, const Group *gr, Ref pick)
{
    const Scan is = scan_of(l->g, gr->anchor);
    for (int i = 0; i < is.carries && is.count > 1 && !l->apart; i++) {
        CarryStack s = find_stack(l, gr, i, is.carries);
        if (s.before != NONE && s.after != NONE && (s.before == pick || s.after == pick))
            return true;
    }
    return false;
}

static void find_stacks(Lowering *lo, Level *l, const Group *gr, int at)
{
    const Scan is = scan_of(l->g, gr->anchor);
    l->stack[at] = NEW_ARRAY(lo->arena, CarryStack, is.carries);
    for (int i = 0; i < is.carries && is.count > 1 && !l->apart; i++) {
        CarryStack s = find_stack(l, gr, i, is.carries);
        if (s.before == NONE || s.after == NONE)
            continue;
        l->stack[at][i] = s;
        l->has_stacks = true;
        Ref low = is.down ? s.after : s.before, high = is.down ? s.before : s.after;
        l->within[low] = l->within[high] = low;
        l->shift[high] = type_elems(type_of(l->g, high)) / is.count;
    }
}

void level_share(Lowering *lo, Level *l)
{
    for (int over = 0; over < 2; over++)
        for (int i = 0; i < l->c->order.n; i++) {
            int at = l->c->order.at[i];
            const Group *gr = &l->c->group.at[at];
            if (gr->kind == GROUP_SCAN && over == 0)
                find_stacks(lo, l, gr, at);
            else if (gr->kind == GROUP_SCAN)
                level_over(lo, l, gr, at);
        }
}

Ref level_memory(const Level *l, Ref r)
{
    r = memory_of(l->g, l->c->stored, r);
    return l->within[r] != NONE ? l->within[r] : r;
}

int64_t level_shift(const Level *l, Ref r)
{
    const bool *stored = l->c->stored;
    return l->shift[memory_of(l->g, stored, r)] + memory_shift(l->g, stored, r);
}

Type level_type(const Level *l, Ref r)
{
    Type t = *type_of(l->g, r);
    t.dim[0] += l->within[r] != NONE;
    if (l->c->pitch != NULL && l->c->pitch[r] > 0)
        t.dim[t.rank - 1] = l->c->pitch[r];
    return t;
}
