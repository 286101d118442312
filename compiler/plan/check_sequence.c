/* Replays a plan of a bare problem, and compares all that is said of it with what is
 * found. An error of the planner must not be repeated here: nothing of it is used. */
#include "check_sequence.h"

#include <stdarg.h>

#include "bytemap.h"

typedef struct Replay {
    const Problem *p;
    const PlanClaim *c;
    Arena *arena;
    const char *error;
    int32_t *latest;  /* by node: its newest execution, -1 */
    ByteMap map;      /* writers: positions; scratch_of(position) */
    int64_t max_live; /* the largest */
    int64_t top;      /* end of the highest byte */
} Replay;

/* Writers below NOBODY are scratch. */
static int32_t scratch_of(int32_t t)
{
    return -2 - t;
}

static bool wrong(Replay *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(Replay *r, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (r->error == NULL)
        r->error = arena_vprintf(r->arena, format, ap);
    va_end(ap);
    return false;
}

static const char *name_at(const Replay *r, int32_t t)
{
    return r->p->node[r->c->node[t]].name;
}

/* ---- form ---------------------------------------------------------------------------- */

static bool in_order(Replay *r, int32_t t)
{
    const PlanClaim *c = r->c;
    if (c->node[t] < 0 || c->node[t] >= r->p->n)
        return wrong(r, "position %d runs node %d, which does not exist", t, c->node[t]);
    if (c->retain[t] < t || c->retain[t] >= c->n)
        return wrong(r, "position %d (`%s`) retains its output until position %d, of %d", t,
                     name_at(r, t), c->retain[t], c->n);
    return true;
}

static bool has_place(Replay *r, int32_t t, int64_t offset, int64_t bytes, const char *what)
{
    if (bytes == 0)
        return true;
    if (offset < r->p->pinned)
        return wrong(r, "position %d (`%s`) has its %s at byte %lld, below the pinned %lld", t,
                     name_at(r, t), what, (long long)offset, (long long)r->p->pinned);
    if (offset > INT64_MAX - bytes)
        return wrong(r, "position %d (`%s`) has its %s at byte %lld: that overflows", t,
                     name_at(r, t), what, (long long)offset);
    r->top = offset + bytes > r->top ? offset + bytes : r->top;
    return true;
}

static bool form(Replay *r)
{
    const PlanClaim *c = r->c;
    for (int32_t t = 0; t < c->n; t++) {
        if (!in_order(r, t))
            return false;
        const ProblemNode *node = &r->p->node[c->node[t]];
        if (!has_place(r, t, c->offset[t], node->bytes, "output") ||
            !has_place(r, t, c->scratch_offset[t], node->scratch, "scratch"))
            return false;
    }
    return true;
}

/* Each node has run, once if it is not pure; what is to be kept is there at the end. */
static bool complete(Replay *r)
{
    const Problem *p = r->p;
    int32_t *runs = NEW_ARRAY(r->arena, int32_t, p->n);
    bool *there = NEW_ARRAY(r->arena, bool, p->n);
    for (int32_t t = 0; t < r->c->n; t++) {
        int32_t v = r->c->node[t];
        runs[v]++;
        there[v] = there[v] || r->c->retain[t] == r->c->n - 1;
    }
    for (int32_t v = 0; v < p->n; v++) {
        if (runs[v] == 0)
            return wrong(r, "node %d (`%s`) never runs", v, p->node[v].name);
        if (runs[v] > 1 && !p->node[v].pure)
            return wrong(r, "node %d (`%s`) is not pure and runs %d times", v, p->node[v].name,
                         runs[v]);
        if (p->node[v].keep && !there[v])
            return wrong(r, "node %d (`%s`) is not there at the end", v, p->node[v].name);
    }
    return true;
}

/* ---- bytes ----------------------------------------------------------------------------- */

static bool alive(const Replay *r, int32_t writer, int32_t t)
{
    return writer >= 0 && r->c->retain[writer] >= t;
}

/* Bytes [from, from + bytes) lie over nothing that is there at t. */
static bool claim(Replay *r, int32_t t, int32_t writer, int64_t from, int64_t bytes)
{
    int32_t at = -1;
    if (bytes == 0)
        return true;
    do {
        int32_t old = bytemap_next(&r->map, from, from + bytes, &at);
        if (alive(r, old, t))
            return wrong(r,
                         "position %d (`%s`) writes over `%s` of position %d, which is there "
                         "until position %d",
                         t, name_at(r, t), name_at(r, old), old, r->c->retain[old]);
        if (old == scratch_of(t))
            return wrong(r, "position %d (`%s`) writes over its own scratch", t, name_at(r, t));
    } while (at >= 0);
    bytemap_write(&r->map, from, from + bytes, writer);
    return true;
}

static bool read_input(Replay *r, int32_t t, int32_t u)
{
    int32_t at = -1, of = r->latest[u];
    if (of < 0)
        return wrong(r, "position %d (`%s`) reads `%s`, which has not run", t, name_at(r, t),
                     r->p->node[u].name);
    if (r->c->retain[of] < t)
        return wrong(r,
                     "position %d (`%s`) reads `%s` of position %d, which is gone after "
                     "position %d",
                     t, name_at(r, t), r->p->node[u].name, of, r->c->retain[of]);
    int64_t from = r->c->offset[of], bytes = r->p->node[u].bytes;
    do {
        int32_t writer = bytes > 0 ? bytemap_next(&r->map, from, from + bytes, &at) : of;
        if (writer != of)
            return wrong(r, "position %d (`%s`) reads `%s` after its bytes were written over", t,
                         name_at(r, t), r->p->node[u].name);
    } while (at >= 0);
    return true;
}

/* Of several executions whose outputs are there, a reader means the one that is there
 * longest. */
static void note_latest(Replay *r, int32_t t)
{
    int32_t *latest = &r->latest[r->c->node[t]];
    if (*latest < 0 || r->c->retain[*latest] <= r->c->retain[t])
        *latest = t;
}

static bool run(Replay *r, int32_t t)
{
    const Problem *p = r->p;
    int32_t v = r->c->node[t];
    for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++)
        if (!read_input(r, t, p->input[i]))
            return false;
    if (!claim(r, t, scratch_of(t), r->c->scratch_offset[t], p->node[v].scratch) ||
        !claim(r, t, t, r->c->offset[t], p->node[v].bytes))
        return false;
    note_latest(r, t);
    return true;
}

/* ---- sums -------------------------------------------------------------------------------- */

static bool sums(Replay *r)
{
    const Problem *p = r->p;
    const PlanClaim *c = r->c;
    int64_t *change = NEW_ARRAY(r->arena, int64_t, c->n + 1);
    int64_t cost = 0, base = 0, bytes = p->pinned;
    r->max_live = bytes;
    for (int32_t v = 0; v < p->n; v++)
        base += p->node[v].cost;
    for (int32_t t = 0; t < c->n; t++) {
        const ProblemNode *node = &p->node[c->node[t]];
        if (!add_size(cost, node->cost, &cost) || !add_size(bytes, node->bytes, &bytes))
            return wrong(r, "position %d (`%s`): the sums overflow", t, name_at(r, t));
        change[c->retain[t] + 1] += node->bytes;
        bytes -= change[t];
        r->max_live = bytes + node->scratch > r->max_live ? bytes + node->scratch : r->max_live;
    }
    if (base != c->cost_base)
        return wrong(r, "cost_base is %lld, not %lld", (long long)base, (long long)c->cost_base);
    if (cost != c->cost_plan)
        return wrong(r, "cost_plan is %lld, not %lld", (long long)cost, (long long)c->cost_plan);
    return true;
}

static bool sizes(Replay *r)
{
    const PlanClaim *c = r->c;
    if (c->max_live != r->max_live)
        return wrong(r, "max_live is %lld, not %lld", (long long)r->max_live,
                     (long long)c->max_live);
    if (c->arena != r->top)
        return wrong(r, "arena is %lld, not %lld", (long long)r->top, (long long)c->arena);
    if (c->peak != r->max_live)
        return wrong(r, "peak is %lld, not %lld", (long long)r->max_live, (long long)c->peak);
    if (c->arena > c->budget)
        return wrong(r, "the arena of %lld bytes is above the budget of %lld", (long long)c->arena,
                     (long long)c->budget);
    return true;
}

static bool bounds(Replay *r)
{
    const PlanClaim *c = r->c;
    const char *error = NULL;
    int64_t proved = 0;
    if (c->proof != NULL)
        proved = check_proof(r->p, c->proof, c->budget, r->arena, &error);
    if (error != NULL)
        return wrong(r, "%s", error);
    if (c->bound < 0 || c->bound > proved)
        return wrong(r, "the lower bound is %lld, but only %lld is proved", (long long)c->bound,
                     (long long)proved);
    if (c->bound > c->cost_plan - c->cost_base)
        return wrong(r, "the lower bound %lld is above the extra cost %lld: the proof is wrong",
                     (long long)c->bound, (long long)(c->cost_plan - c->cost_base));
    return true;
}

const char *check_sequence(const Problem *p, const PlanClaim *claim, Arena *out)
{
    Replay r = {.p = p, .c = claim, .arena = out, .top = p->pinned};
    if (!form(&r) || !complete(&r))
        return r.error;
    bytemap_init(&r.map, out);
    r.latest = NEW_ARRAY(out, int32_t, p->n);
    for (int32_t v = 0; v < p->n; v++)
        r.latest[v] = -1;
    for (int32_t t = 0; t < claim->n; t++)
        if (!run(&r, t))
            return r.error;
    if (sums(&r) && sizes(&r) && bounds(&r))
        return NULL;
    return r.error;
}
