/* What the reverse body of a scan has of the body's values: which the forward scan stacks, which
 * are there in any case, and which are computed again. */
#include "scan_adjoint.h"

#include <string.h>

enum { ROW_VALUE_OF = 16 }; /* elements that one element of a row's value is made of */

/* By node: does it differ from one iteration to the next? */
static void find_varying(Reverse *v)
{
    const Graph *b = v->body;
    v->varies = NEW_ARRAY(v->scratch, bool, v->all);
    for (Ref r = 1; r < v->all; r++) {
        bool varies = false;
        if (op_of(b, r) == OP_arg) {
            int64_t i = attr(b, r, 0)->i;
            varies = i < v->is.carries + v->is.sequences || i >= v->n_args;
        }
        for (int i = 0; i < node(b, r)->n_args; i++)
            varies = varies || v->varies[arg(b, r, i)];
        v->varies[r] = varies;
    }
}

/* A view or a cast that is not smaller than what it is of is not worth keeping. */
static bool is_wide_view(const Graph *b, Ref r)
{
    bool cast = op_of(b, r) == OP_cast;
    return (cast || optab[op_of(b, r)]->kind == OP_VIEW) && node(b, r)->n_args == 1 &&
           type_bytes(type_of(b, arg(b, r, 0))) <= type_bytes(type_of(b, r));
}

static Place place_arg(const Reverse *v, Ref r)
{
    int i = (int)attr(v->body, r, 0)->i;
    if (i >= v->n_args)
        return (Place){CT, i - v->n_args};
    if (is_carry(v, i))
        return (Place){RESIDUAL, -1};
    return (Place){is_sequence(v, i) ? SEQUENCE : SAME, i};
}

/* In the reverse pass of training alone: a gradient that the model takes itself is part of the
 * forward pass, and has the same order of sums with the word as without. */
static bool is_asked_again(const Reverse *v, Ref r)
{
    const Origin *o = node(v->body, r)->origin;
    if (o == NULL || o->memory != MEMORY_RECOMPUTE)
        return false;
    if (op_of(v->body, r) == OP_pick && !is_asked_again(v, arg(v->body, r, 0)))
        return false; /* of a scan that does not run again */
    return !graph_is_primal(v->g);
}

/* The operand that the node is a cast of, or -1. */
static int cast_operand(const Graph *b, Ref r)
{
    if (op_of(b, r) != OP_cast || op_of(b, arg(b, r, 0)) != OP_arg)
        return -1;
    return (int)attr(b, arg(b, r, 0), 0)->i;
}

/* A smaller form of what is there in any case: a carry that is stacked, an input. */
static bool is_cast_of_kept(const Reverse *v, Ref r)
{
    int i = cast_operand(v->body, r);
    if (i < 0 || i >= v->n_args)
        return false;
    return is_carry(v, i) ? v->whole[i]
                          : is_sequence(v, i) && op_of(v->g, arg(v->g, v->n, i)) == OP_input;
}

/* This scan, and each around it, stacks the value along an axis of its own. */
static bool can_be_stacked(const Reverse *v, Ref r)
{
    int axes = rank(v->body, r);
    for (const Graph *at = v->g; at != NULL; at = at->outer)
        axes++;
    return axes <= MAX_RANK;
}

/* Independent steps, as chunks of rows are: of runs of a recurrence only the beginnings are kept.
 */
static bool is_chunks(const Graph *g, Ref scan)
{
    return scan_of(g, scan).lean && scan_of(g, scan).carries == 0;
}

/* Chunks keep what is far smaller than what it is made of: sums and maxima of rows, and what chunks
 * within them keep of theirs. */
static bool is_row_value(const Reverse *v, Ref r)
{
    const Graph *b = v->body;
    if (!is_chunks(v->g, v->n))
        return false;
    if (r >= v->own) /* the pick of what an inner scan stacks */
        return is_chunks(b, arg(b, r, 0));
    return optab[op_of(b, r)]->kind == OP_REDUCE && can_be_stacked(v, r) &&
           type_elems(type_of(b, arg(b, r, 0))) >= ROW_VALUE_OF * type_elems(type_of(b, r));
}

/* requires: the reverse body reads r. A node of the reverse is moved; so is the pick
 * of a value that an inner scan has stacked since, unless the scan is the body's own. */
static Place find_place(const Reverse *v, Ref r)
{
    const Graph *b = v->body;
    if (op_of(b, r) == OP_arg)
        return place_arg(v, r);
    bool picks_primal = op_of(b, r) == OP_pick && arg(b, r, 0) < v->own;
    if (!v->varies[r] || (r >= v->own && !picks_primal))
        return (Place){COPIED, 0};
    for (int i = 0; i < v->is.carries; i++)
        if (v->whole[i] && result(b, i) == r)
            return (Place){RESIDUAL, -1};
    bool again =
        (v->is.lean && !is_row_value(v, r)) || is_asked_again(v, r) || is_cast_of_kept(v, r);
    return (Place){again || is_wide_view(b, r) ? COPIED : RESIDUAL, -1};
}

static void need(Reverse *v, Ref r)
{
    if (r != NONE && r != REF_ZERO && v->place[r].part == UNUSED)
        v->place[r] = find_place(v, r);
}

static void place_all(Reverse *v)
{
    memset(v->place, 0, sizeof *v->place * (size_t)v->all);
    for (int i = 0; i < v->n_args; i++)
        need(v, v->d[i]);
    for (Ref r = v->all - 1; r >= 1; r--)
        if (v->place[r].part == COPIED)
            for (int i = 0; i < node(v->body, r)->n_args; i++)
                need(v, arg(v->body, r, i));
}

static bool is_residual(const Reverse *v, Ref r)
{
    return r != NONE && v->place[r].part == RESIDUAL;
}

/* What is stacked for each step. The old values of a carry and the new ones have one stack:
 * pass/lower_stacks.c. */
static int64_t residual_bytes(const Reverse *v)
{
    int64_t bytes = 0;
    for (Ref r = 1; r < v->all; r++)
        bytes += is_residual(v, r) ? type_bytes(type_of(v->body, r)) : 0;
    for (int i = 0; i < v->is.carries; i++)
        if (is_residual(v, v->arg[i]) && is_residual(v, result(v->body, i)))
            bytes -= type_bytes(type_of(v->body, v->arg[i]));
    return bytes;
}

/* A scan around this one stacks what this one stacks, and each stack by itself. */
static bool is_stacked_again(const Reverse *v)
{
    const Graph *outer = v->g->outer;
    for (Ref r = 1; outer != NULL && r < (Ref)outer->node.n; r++)
        if (op_of(outer, r) == OP_scan && attr(outer, r, SCAN_BODY)->body == v->g)
            return !scan_of(outer, r).lean;
    return false;
}

/* The carry is stacked in some form, and what comes back is computed again from other values or
 * stacked, too. */
static bool may_be_whole(const Reverse *v, int carry)
{
    Ref new = result(v->body, carry);
    bool stacked = is_residual(v, v->arg[carry]), again = v->place[new].part == COPIED;
    if (!v->varies[new] || !(again || (is_residual(v, new) && !stacked)))
        return false;
    for (Ref r = 1; r < v->own; r++)
        stacked = stacked || (is_residual(v, r) && cast_operand(v->body, r) == carry);
    return stacked;
}

/* Carries are stacked as they are where this takes fewer bytes. */
static void choose_whole(Reverse *v)
{
    for (int i = 0; i < v->is.carries && !is_stacked_again(v); i++) {
        int64_t before = residual_bytes(v);
        if (!may_be_whole(v, i))
            continue;
        v->whole[i] = true;
        place_all(v);
        if (residual_bytes(v) < before)
            continue;
        v->whole[i] = false;
        place_all(v);
    }
}

void find_places(Reverse *v)
{
    v->place = NEW_ARRAY(v->scratch, Place, v->all);
    v->whole = NEW_ARRAY(v->scratch, bool, v->is.carries);
    find_varying(v);
    place_all(v);
    choose_whole(v);
}
