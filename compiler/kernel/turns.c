/* Which loops' turns have nothing to do with one another. */
#include "program.h"

#include <stdlib.h>

/* Bytes of the block that one operand reads or writes in the first turns of the loop and of those
 * around it; turn i of the one at depth d: i * step[d] further. */
typedef struct Touch {
    int64_t from, to, step[MAX_LOOP_DEPTH];
    int64_t first, end; /* of the buffer */
    bool writes;
} Touch;

typedef struct Touches {
    const Program *p;
    int depth;                            /* of the loop */
    int64_t turns, count[MAX_LOOP_DEPTH]; /* ... and of the loops within it, by depth */
    bool unknown;                         /* something else is done, too */
    VEC(Touch) at;
} Touches;

static void touch(Touches *t, Arena *a, const Operand *o, int64_t elems, bool writes)
{
    const Buffer *b = &t->p->buffer.at[o->buffer];
    if (b->offset < 0 || b->turn_bytes > 0 || elems == 0)
        return;
    const int64_t size = dtype_bytes(b->dtype);
    Touch is = {.from = b->offset + o->base * size,
                .first = b->offset,
                .end = b->offset + b->bytes,
                .writes = writes};
    is.to = is.from + elems * size;
    for (int d = 0; d < MAX_LOOP_DEPTH; d++) {
        int64_t step = o->step[d] * size, all = step * (t->count[d] - 1);
        is.step[d] = d <= t->depth ? step : 0;
        is.from += d > t->depth && all < 0 ? all : 0;
        is.to += d > t->depth && all > 0 ? all : 0;
    }
    vec_push(a, &t->at, is);
}

static void touch_calls(Touches *t, Arena *a, const Call *call, int32_t n, int depth)
{
    for (const Call *c = call; n-- > 0; c++) {
        if (c->kind == CALL_LOOP) {
            t->count[depth] = c->count;
            touch_calls(t, a, c->body, c->n_body, depth + 1);
            t->count[depth] = 1;
        } else if (c->kind == CALL_GUARD) {
            touch(t, a, &c->flag, 1, false);
            touch_calls(t, a, c->body, c->n_body, depth);
        } else if (c->kind == CALL_KERNEL) {
            const Kernel *k = t->p->kernel.at[c->kernel];
            for (int i = 0, o = 0; i < k->buf.n; i++)
                if (k->buf.at[i].mode != K_LOCAL)
                    touch(t, a, &c->op[o++], k->buf.at[i].elems, k->buf.at[i].mode != K_IN);
        } else {
            t->unknown = true;
        }
    }
}

/* Loops around it are in the same turn for both, and move both as far. */
static bool move_alike(const Touches *t, const Touch *w, const Touch *x)
{
    for (int d = 0; d < t->depth; d++)
        if (w->step[d] != x->step[d])
            return false;
    return true;
}

/* No turn writes by w what another one reads or writes by x. */
static bool keep_apart(const Touches *t, const Touch *w, const Touch *x)
{
    if (w->end <= x->first || x->end <= w->first)
        return true;
    if (!move_alike(t, w, x))
        return false;
    int64_t step = w->step[t->depth], all = step * (t->turns - 1);
    int64_t other = x->step[t->depth] * (t->turns - 1);
    if (w->to + (all > 0 ? all : 0) <= x->from + (other < 0 ? other : 0) ||
        x->to + (other > 0 ? other : 0) <= w->from + (all < 0 ? all : 0))
        return true;
    int64_t from = w->from < x->from ? w->from : x->from, to = w->to > x->to ? w->to : x->to;
    return x->step[t->depth] == step && to - from <= llabs(step);
}

bool program_turns_apart(const Program *p, const Call *loop, int depth)
{
    Arena scratch = {0};
    Touches t = {.p = p, .depth = depth, .turns = loop->count};
    for (int d = 0; d < MAX_LOOP_DEPTH; d++)
        t.count[d] = 1;
    touch_calls(&t, &scratch, loop->body, loop->n_body, depth + 1);
    bool apart = !t.unknown;
    for (int32_t i = 0; i < p->input.n && apart && depth == 0 && p->rows >= 0; i++)
        apart = program_row_loop(p, loop, i) == 0;
    for (int32_t i = 0; i < t.at.n && apart; i++)
        for (int32_t j = 0; j < t.at.n && apart && t.at.at[i].writes; j++)
            apart = keep_apart(&t, &t.at.at[i], &t.at.at[j]);
    arena_free(&scratch);
    return apart;
}
