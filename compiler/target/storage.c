/* Whether what is written while an entry runs has storage of its own.
 *
 * The plan's checker knows the values of one entry. This one looks at the Program that came of
 * all plans, where an offset that is right in one entry may be another's activation. */
#include "facts.h"

typedef struct Check {
    const Program *p;
    Arena *arena;
    const Entry *e;
    Use *use;          /* of the entry's inputs */
    const char *error; /* the first */
} Check;

static void fail(Check *c, const char *name, const char *does, const char *other)
{
    if (c->error == NULL)
        c->error = arena_printf(c->arena, "%s: `%s` %s `%s`", c->e->name, name, does, other);
}

/* Bytes of the block. */
typedef struct Bytes {
    int64_t from, to;
} Bytes;

/* ... that the buffer has, with those of other lanes. */
static Bytes bytes_of(const Buffer *b)
{
    int64_t more = b->turns > 1 ? (b->turns - 1) * b->turn_bytes : 0;
    return (Bytes){b->offset, b->offset + more + b->bytes};
}

static bool overlap(Bytes a, Bytes b)
{
    return a.from < a.to && b.from < b.to && a.from < b.to && b.from < a.to;
}

/* ---- copies of inputs ----------------------------------------------------------------- */

static Bytes copy_of(const Check *c, int input)
{
    int64_t from = c->use[input].staging;
    return (Bytes){from, from + c->use[input].reads * dtype_bytes(c->p->input.at[input].dtype)};
}

static bool is_copied(const Check *c, int input)
{
    return c->use[input].staging >= 0 && c->use[input].reads > 0;
}

/* Where the caller gives it, it is read in place; where not, it is zeros. */
static bool is_nought(const Program *p, int input)
{
    const Input *in = &p->input.at[input];
    bool whole = in->rows <= 1 || in->by_row || p->rows < 0;
    return whole && (!in->ranged || (in->lo <= 0 && in->hi > 0));
}

static void apart_from(Check *c, Bytes other, const char *name)
{
    for (int i = 0; i < c->p->input.n; i++)
        if (is_copied(c, i) && overlap(copy_of(c, i), other))
            fail(c, c->p->input.at[i].name, "is copied over", name);
}

static void apart_from_buffer(Check *c, int32_t buffer)
{
    const Buffer *b = &c->p->buffer.at[buffer];
    if (b->offset >= 0 && b->role != ROLE_STAGING)
        apart_from(c, bytes_of(b), b->name);
}

static void apart_from_copies(Check *c)
{
    const Program *p = c->p;
    for (int i = 0; i < p->input.n; i++)
        for (int k = 0; k < i; k++)
            if (is_copied(c, i) && is_copied(c, k) && overlap(copy_of(c, i), copy_of(c, k)) &&
                !(is_nought(p, i) && is_nought(p, k)))
                fail(c, p->input.at[i].name, "is copied over the copy of", p->input.at[k].name);
}

/* What there is in every entry. */
static void apart_from_pinned(Check *c)
{
    const Program *p = c->p;
    const int64_t lanes = p->lanes_offset;
    apart_from(c, (Bytes){0, HANDLE_BYTES}, "the handle");
    apart_from(c, (Bytes){lanes, lanes + p->lane_bytes * p->threads_max}, "the scratch of lanes");
    for (int32_t i = 0; i < p->buffer.n; i++)
        if (fact_live(p, i))
            apart_from_buffer(c, i);
}

/* ---- what the entry's calls read and write ----------------------------------------------- */

static void written(Check *c, int32_t buffer, const char *by)
{
    const Buffer *b = &c->p->buffer.at[buffer];
    bool has = b->bytes == 0 || (!fact_is_input(b) && b->role != ROLE_CONSTANT &&
                                 b->offset >= HANDLE_BYTES && bytes_of(b).to <= c->p->arena_bytes);
    if (!has)
        fail(c, by, "writes, where it has no storage,", b->name);
}

/* Where the call has scratch of lanes of its own. */
static void check_scratch(Check *c, const Call *call, const char *by)
{
    Bytes lanes = {call->scratch, call->scratch + call->lane_bytes * call->lanes};
    if (lanes.from < c->p->pinned_bytes || lanes.to > c->p->arena_bytes)
        fail(c, by, "has no room for", "the scratch of lanes");
    for (int i = 0; i < call->n_ops; i++) {
        const Buffer *b = &c->p->buffer.at[call->op[i].buffer];
        if (b->offset >= 0 && b->role != ROLE_STAGING && overlap(bytes_of(b), lanes))
            fail(c, by, "has scratch of lanes over", b->name);
    }
    apart_from(c, lanes, "the scratch of lanes");
}

static void check_kernel(Check *c, const Call *call)
{
    const Kernel *k = c->p->kernel.at[call->kernel];
    if (call->scratch > 0)
        check_scratch(c, call, k->name);
    for (int i = 0, o = 0; i < k->buf.n; i++) {
        if (k->buf.at[i].mode == K_LOCAL)
            continue;
        int32_t buffer = call->op[o++].buffer;
        if (k->buf.at[i].mode != K_IN)
            written(c, buffer, k->name);
        apart_from_buffer(c, buffer);
    }
}

static void check_calls(Check *c, const Call *call, int32_t n)
{
    for (const Call *x = call; n-- > 0; x++) {
        if (x->kind == CALL_KERNEL)
            check_kernel(c, x);
        else if (x->kind == CALL_GUARD)
            apart_from_buffer(c, x->flag.buffer);
        else if (x->kind != CALL_LOOP)
            apart_from_buffer(c, x->op[0].buffer);
        if (x->kind == CALL_IN)
            written(c, x->op[0].buffer, "a transfer");
        check_calls(c, x->body, x->n_body);
    }
}

static void check_entry(Check *c, const Entry *e)
{
    c->e = e;
    fact_uses(c->p, e, c->use);
    apart_from_pinned(c);
    apart_from_copies(c);
    check_calls(c, e->call, e->n_calls);
    for (int r = 0; r < e->n_results; r++)
        apart_from_buffer(c, e->result[r].buffer);
}

/* A step that was not finite runs `grad` on inputs that it alone has checked. */
static void check_grad(Check *c)
{
    const Program *p = c->p;
    const Entry *grad = program_entry(p, "grad"), *step = program_entry(p, "step");
    if (grad == NULL || step == NULL)
        return;
    Use *seen = NEW_ARRAY(c->arena, Use, p->input.n);
    fact_uses(p, step, seen);
    fact_uses(p, grad, c->use);
    c->e = grad;
    for (int i = 0; i < p->input.n; i++)
        if (c->use[i].reads > seen[i].reads)
            fail(c, "grad", "reads more than `step` of", p->input.at[i].name);
}

const char *storage_check(const Program *p, Arena *scratch)
{
    Check c = {.p = p, .arena = scratch, .use = NEW_ARRAY(scratch, Use, p->input.n)};
    for (int i = 0; i < p->entry.n; i++)
        check_entry(&c, &p->entry.at[i]);
    check_grad(&c);
    return c.error;
}
