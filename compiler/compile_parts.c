/* `budget 8MiB { ... }` around a part of the model: of its values so much is kept from the forward
 * to the reverse pass, and the rest computed again.
 *
 * The plan with every step once says what is kept of a part. Where that is too much, some of it
 * is dropped, such that running again what makes it, and what that reads of the part, costs the
 * least; ask_parts() marks it in graphs that are built anew. What runs again there may read
 * other values of the part, or be fused otherwise, so that it is seen anew what is kept. */
#include "compile.h"
#include "pass/pass.h"

#include <stdlib.h>

/* Values of one origin are kept or dropped together. */
typedef struct Choice {
    const Origin *origin;
    int64_t bytes;
    bool fixed; /* `keep` asks for it */
    bool kept;
    double dear; /* what running its steps again costs for a byte */
} Choice;

typedef struct Choosing {
    Arena arena;
    const BudgetPart *part;
    const Plan *p;
    int32_t *writer; /* by value: the step that stores it first, or -1 */
    int32_t *choice; /* by value: into `all`, or -1: it is not kept */
    bool *inside;    /* by value: of the forward pass of the part */
    bool *wanted;    /* by value: the reverse pass reads it */
    VEC(Choice) all;
    int64_t bytes;
    bool *again; /* by step, in cost_of() */
} Choosing;

/* ---- what there is to choose from ---------------------------------------------------- */

static int32_t choice_of(Choosing *c, const PlanValue *v)
{
    for (int i = 0; i < c->all.n; i++)
        if (origin_same(c->all.at[i].origin, v->origin))
            return i;
    vec_push(&c->arena, &c->all, ((Choice){.origin = v->origin, .kept = true}));
    return c->all.n - 1;
}

static void find_choices(Choosing *c)
{
    const Plan *p = c->p;
    const bool *crossing = plan_crossing(p, &c->arena);
    for (int32_t r = 0; r < p->n_ranges; r++) {
        int32_t v = p->range[r].value;
        const PlanValue *value = &p->value[v];
        if (!crossing[r] || !part_has(c->part, value->origin->part) || c->choice[v] >= 0)
            continue;
        c->choice[v] = choice_of(c, value);
        Choice *to = &c->all.at[c->choice[v]];
        to->bytes += align_up(value->bytes, BLOCK_ALIGN);
        to->fixed = to->fixed || value->kept;
        c->bytes += align_up(value->bytes, BLOCK_ALIGN);
    }
}

static void look_at(Choosing *c)
{
    const Plan *p = c->p;
    c->writer = NEW_ARRAY(&c->arena, int32_t, p->n_values);
    c->choice = NEW_ARRAY(&c->arena, int32_t, p->n_values);
    c->inside = NEW_ARRAY(&c->arena, bool, p->n_values);
    c->wanted = NEW_ARRAY(&c->arena, bool, p->n_values);
    c->again = NEW_ARRAY(&c->arena, bool, p->n_steps);
    for (int32_t v = 0; v < p->n_values; v++)
        c->writer[v] = c->choice[v] = -1;
    for (int32_t s = p->n_steps; s-- > 0;) {
        for (int32_t i = 0; i < p->step[s].n_writes; i++)
            c->writer[p->step[s].write[i]] = s;
        for (int32_t i = 0; i < p->step[s].n_reads && p->step[s].reverse; i++)
            c->wanted[p->step[s].read[i]] = true;
    }
    for (int32_t v = 0; v < p->n_values; v++) {
        const PlanValue *value = &p->value[v];
        c->inside[v] = !value->pinned && value->origin != NULL && c->writer[v] >= 0 &&
                       !p->step[c->writer[v]].reverse && part_has(c->part, value->origin->part);
    }
    find_choices(c);
}

/* ---- what it costs --------------------------------------------------------------------- */

static bool is_kept(const Choosing *c, int32_t v)
{
    return c->choice[v] >= 0 && c->all.at[c->choice[v]].kept;
}

/* Of all steps that run again: backwards, for a step reads what earlier ones store. */
static int64_t cost_of(Choosing *c)
{
    const Plan *p = c->p;
    int64_t cost = 0;
    for (int32_t s = 0; s < p->n_steps; s++)
        c->again[s] = false;
    for (int32_t v = 0; v < p->n_values; v++)
        if (c->wanted[v] && c->inside[v] && !is_kept(c, v))
            c->again[c->writer[v]] = true;
    for (int32_t s = p->n_steps; s-- > 0;) {
        if (!c->again[s])
            continue;
        cost += plan_step_cost(p, &p->step[s]);
        for (int32_t i = 0; i < p->step[s].n_reads; i++) {
            int32_t v = p->step[s].read[i];
            if (c->inside[v] && !is_kept(c, v))
                c->again[c->writer[v]] = true;
        }
    }
    return cost;
}

static void price(Choosing *c, int i, int64_t now)
{
    Choice *x = &c->all.at[i];
    x->kept = !x->kept;
    x->dear = (double)llabs(cost_of(c) - now) / (double)(x->bytes > 0 ? x->bytes : 1);
    x->kept = !x->kept;
}

/* Of many, prices are found once, as if nothing else were dropped. */
enum { MANY = 200 };

static int cheapest(Choosing *c, bool first)
{
    int64_t now = cost_of(c);
    int best = -1;
    for (int i = 0; i < c->all.n; i++) {
        if (c->all.at[i].fixed || !c->all.at[i].kept)
            continue;
        if (first || c->all.n <= MANY)
            price(c, i, now);
        if (best < 0 || c->all.at[i].dear < c->all.at[best].dear)
            best = i;
    }
    return best;
}

/* What still fits, the dearest first. */
static void fill_up(Choosing *c, int64_t bytes)
{
    for (int best = 0; best >= 0 && c->all.n <= MANY;) {
        int64_t now = cost_of(c);
        best = -1;
        for (int i = 0; i < c->all.n; i++) {
            if (c->all.at[i].kept || c->all.at[i].bytes > bytes - c->bytes)
                continue;
            price(c, i, now);
            if (c->all.at[i].dear > 0 && (best < 0 || c->all.at[i].dear > c->all.at[best].dear))
                best = i;
        }
        if (best < 0)
            break;
        c->all.at[best].kept = true;
        c->bytes += c->all.at[best].bytes;
    }
}

static void choose(Choosing *c, int64_t bytes)
{
    bool first = true;
    while (c->bytes > bytes) {
        int i = cheapest(c, first);
        if (i < 0)
            return; /* what `keep` asks for */
        first = false;
        c->all.at[i].kept = false;
        c->bytes -= c->all.at[i].bytes;
    }
    fill_up(c, bytes);
}

/* ---- parts ------------------------------------------------------------------------------- */

/* The plan of the entry or of a body in which most is kept of the part. */
static const Plan *fullest(const Plan *p, const BudgetPart *part, int64_t *most)
{
    const Plan *found = NULL;
    Choosing c = {.part = part, .p = p};
    look_at(&c);
    if (c.bytes > *most) {
        *most = c.bytes;
        found = p;
    }
    arena_free(&c.arena);
    for (int32_t s = 0; s < p->n_steps; s++) {
        const Plan *inside = p->step[s].body == NULL ? NULL : fullest(p->step[s].body, part, most);
        found = inside != NULL ? inside : found;
    }
    return found;
}

enum { MOST_TRIES = 5 };

/* How much a part that keeps `kept` bytes is to choose: first what it may, then as much less as was
 * too much, at last nothing. */
static int64_t to_choose(const BudgetPart *x, int64_t kept, int64_t chosen)
{
    int64_t less = chosen - (kept - x->bytes);
    return x->tries == 0 ? x->bytes : x->tries + 1 < MOST_TRIES && less > 0 ? less : 0;
}

static bool keep_less(Ctx *cx, const Plan *p, BudgetPart *x, int64_t kept)
{
    int64_t most = 0;
    Choosing c = {.part = x, .p = fullest(p, x, &most)};
    if (x->tries >= MOST_TRIES || c.p == NULL)
        return false;
    int64_t chosen = 0;
    look_at(&c);
    for (int i = 0; i < c.all.n; i++)
        chosen += c.all.at[i].bytes;
    choose(&c, to_choose(x, kept, chosen));
    x->tries++;
    x->less = true;
    x->kept.n = 0;
    for (int i = 0; i < c.all.n; i++)
        if (c.all.at[i].kept)
            vec_push(&cx->perm, &x->kept, c.all.at[i].origin);
    arena_free(&c.arena);
    return true;
}

static bool refuse(Ctx *cx, const Plan *p, const BudgetPart *x, int64_t kept)
{
    int64_t asked = 0;
    Diag *d = diag_error(cx, E0603, x->at,
                         "a part of entry `%s` is to keep at most %lld bytes, and keeps %lld",
                         p->entry, (long long)x->bytes, (long long)kept);
    for (int32_t v = 0; v < p->n_values; v++) {
        const PlanValue *value = &p->value[v];
        if (value->kept && !value->offload && value->origin != NULL &&
            part_has(x, value->origin->part))
            asked += align_up(value->bytes, BLOCK_ALIGN);
    }
    diag_help(cx, d, "the least that was found to work is %lld bytes%s", (long long)x->least,
              asked > 0 ? arena_printf(&cx->perm, "; `keep` in it asks for %lld", (long long)asked)
                        : "");
    return false;
}

/* The entry in which most is kept of the part. */
static const Plan *worst_of(const Output *out, const BudgetPart *x, int64_t *kept)
{
    const Plan *worst = NULL;
    for (int e = 0; e < N_ENTRIES; e++)
        for (int32_t i = 0; out->plan[e] != NULL && i < out->plan[e]->n_parts; i++) {
            const PlanPart *part = &out->plan[e]->part[i];
            if (part->part != x || (worst != NULL && part->kept <= *kept))
                continue;
            worst = out->plan[e];
            *kept = part->kept;
        }
    return worst;
}

bool compile_parts(Ctx *cx, Output *out, bool *changed)
{
    *changed = false;
    if (out->fixed)
        return true;
    for (int e = 0; e < N_ENTRIES; e++)
        if (out->plan[e] != NULL)
            plan_parts(out->plan[e]);
    for (int i = 0; i < model_n_parts(out->model); i++) {
        BudgetPart *x = model_part(out->model, i);
        int64_t kept = 0;
        const Plan *p = worst_of(out, x, &kept);
        x->least = p != NULL && kept < x->least ? kept : x->least;
        if (p == NULL || kept <= x->bytes)
            continue;
        *changed = true;
        if (!keep_less(cx, p, x, kept))
            return refuse(cx, p, x, kept);
    }
    return true;
}
