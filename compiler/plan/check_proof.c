/* Adds up a proof of a lower bound: capacities, conservation and the sum of the flow of
 * every case, from the problem alone. See certificate.h for what it means. */
#include "check_sequence.h"

__extension__ typedef __int128 Wide;

typedef struct Adding {
    const Problem *p;
    const Certificate *c;
    Arena *arena;
    const char *error;
    int32_t at_tree, at_proof;
    bool *before, *inside; /* by node: ancestor of the moment; in V */
    bool *needed, *read;   /* has a reader among the descendants; is read by the moment */
    int8_t *decided;       /* 0 open, 1 kept, 2 not kept */
    int64_t *excess_in, *excess_out;
    int64_t divisor; /* of all costs */
} Adding;

static int64_t wrong(Adding *a, const char *what, int32_t at)
{
    if (a->error == NULL)
        a->error = arena_printf(a->arena, "the proof of the bound: %s (%d)", what, at);
    return -1;
}

/* ---- sets ------------------------------------------------------------------------------ */

static void find_sets(Adding *a)
{
    const Problem *p = a->p;
    int32_t b = a->c->moment;
    bool *after = NEW_ARRAY(a->arena, bool, p->n);
    a->before[b] = after[b] = true;
    for (int32_t v = b; v >= 0; v--)
        for (int32_t i = p->input_at[v]; a->before[v] && i < p->input_at[v + 1]; i++)
            a->before[p->input[i]] = true;
    for (int32_t v = b + 1; v < p->n; v++)
        for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++)
            after[v] = after[v] || after[p->input[i]];
    a->before[b] = false;
    for (int32_t v = 0; v < p->n; v++)
        a->inside[v] = !after[v];
    for (int32_t v = 0; v < p->n; v++) {
        a->needed[v] = a->needed[v] || p->node[v].keep;
        for (int32_t i = p->input_at[v]; i < p->input_at[v + 1]; i++) {
            a->needed[p->input[i]] |= after[v] && v != b;
            a->read[p->input[i]] |= v == b;
        }
    }
}

static int64_t common(int64_t x, int64_t y)
{
    while (y != 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

/* ---- one case ---------------------------------------------------------------------------- */

static bool may_flow_in(const Adding *a, int32_t v, int64_t amount)
{
    const ProblemNode *node = &a->p->node[v];
    if (!a->inside[v] || !a->before[v] || amount < 0)
        return false;
    return !node->pure || (Wide)amount <= (Wide)a->c->scale * node->cost;
}

/* Sums stay far below 64 bits: a flow of more than 2^60 is refused. */
static const int64_t most = INT64_C(1) << 60;

static bool may_keep(const Adding *a, const ProofCase *k, int32_t v, int64_t amount)
{
    if (!a->inside[v] || amount < -most)
        return false;
    if (amount <= 0 || a->decided[v] == 2)
        return true;
    if (a->read[v] || a->decided[v] == 1)
        return false;
    return ((Wide)amount << k->shift) <= (Wide)k->price * a->p->node[v].bytes;
}

static bool add_to(int64_t *sum, int64_t amount)
{
    if (amount > most || amount < -most || *sum > 4 * most || *sum < -4 * most)
        return false;
    *sum += amount;
    return true;
}

static bool add_nodes(Adding *a, const ProofCase *k, int64_t *flow, bool *paid)
{
    for (int32_t i = 0; i < k->in.n; i++) {
        FlowOn f = k->in.at[i];
        *paid = *paid || (f.at >= 0 && f.at < a->p->n && a->p->node[f.at].pure);
        if (f.at < 0 || f.at >= a->p->n || !may_flow_in(a, f.at, f.amount) ||
            !add_to(&a->excess_in[f.at], f.amount))
            return wrong(a, "too much flows in", f.at) >= 0;
    }
    for (int32_t i = 0; i < k->keep.n; i++) {
        FlowOn f = k->keep.at[i];
        if (f.at < 0 || f.at >= a->p->n || !may_keep(a, k, f.at, f.amount) ||
            !add_to(&a->excess_in[f.at], -f.amount) || !add_to(&a->excess_out[f.at], f.amount))
            return wrong(a, "too much is kept", f.at) >= 0;
    }
    for (int32_t i = 0; i < k->need.n; i++) {
        FlowOn f = k->need.at[i];
        bool fits = f.at >= 0 && f.at < a->p->n && a->inside[f.at] && a->needed[f.at];
        if (!fits || f.amount < 0 || !add_to(&a->excess_out[f.at], -f.amount) ||
            !add_to(flow, f.amount))
            return wrong(a, "flow goes out where nothing is needed", f.at) >= 0;
    }
    return true;
}

/* Who reads input number i of all. */
static int32_t reader_of(const Problem *p, int32_t i)
{
    int32_t low = 0, high = p->n;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (p->input_at[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool add_edges(Adding *a, const ProofCase *k)
{
    const Problem *p = a->p;
    for (int32_t i = 0; i < k->edge.n; i++) {
        FlowOn f = k->edge.at[i];
        if (f.at < 0 || f.at >= p->input_at[p->n] || f.amount < 0)
            return wrong(a, "flow on an edge that does not exist", f.at) >= 0;
        int32_t u = p->input[f.at], v = reader_of(p, f.at);
        if (!a->inside[u] || !a->inside[v] || !add_to(&a->excess_out[u], -f.amount) ||
            !add_to(&a->excess_in[v], f.amount))
            return wrong(a, "flow on an edge that leads outside", f.at) >= 0;
    }
    return true;
}

/* Bytes that are left at the moment; negative: too few. */
static int64_t room_of(const Adding *a, int64_t budget)
{
    const Problem *p = a->p;
    const ProblemNode *b = &p->node[a->c->moment];
    int64_t room = budget - p->pinned - b->bytes - b->scratch;
    for (int32_t v = 0; v < p->n; v++)
        if (a->read[v] || a->decided[v] == 1)
            room -= p->node[v].bytes;
    return room;
}

static int64_t case_bound(Adding *a, int64_t budget)
{
    if (a->at_proof >= a->c->proof.n)
        return wrong(a, "a case has no flow", a->at_proof);
    const ProofCase *k = &a->c->proof.at[a->at_proof++];
    if (k->price < 0 || k->shift < 0 || k->shift > 60)
        return wrong(a, "a price that is none", a->at_proof - 1);
    int64_t flow = 0, room = room_of(a, budget);
    bool paid = false;
    for (int32_t v = 0; v < a->p->n; v++)
        a->excess_in[v] = a->excess_out[v] = 0;
    if (!add_nodes(a, k, &flow, &paid) || !add_edges(a, k))
        return -1;
    for (int32_t v = 0; v < a->p->n; v++)
        if (a->excess_in[v] != 0 || a->excess_out[v] != 0)
            return wrong(a, "what flows in does not flow out", v);
    Wide over = ((Wide)flow << k->shift) - (Wide)k->price * room;
    Wide unit = ((Wide)a->c->scale << k->shift) * (a->divisor > 0 ? a->divisor : 1);
    if (over <= 0)
        return 0;
    if (!paid) /* nothing of it is cost: any multiple of it is a proof too */
        return INT64_MAX;
    Wide units = (over + unit - 1) / unit;
    Wide bound = units * (a->divisor > 0 ? a->divisor : 1);
    return bound > most ? INT64_MAX : (int64_t)bound;
}

/* ---- the tree ------------------------------------------------------------------------------ */

/* The tree is as deep as it has decisions; they are few. */
enum { MOST_DEPTH = 1000 };

static int64_t tree_bound(Adding *a, int64_t budget, int32_t depth)
{
    if (a->at_tree >= a->c->tree.n || depth > MOST_DEPTH)
        return wrong(a, "the tree is cut short", a->at_tree);
    int32_t v = a->c->tree.at[a->at_tree++];
    if (v == PROOF_CASE)
        return case_bound(a, budget);
    if (v == PROOF_CLOSED)
        return room_of(a, budget) < 0 ? INT64_MAX : wrong(a, "a closed case has room", v);
    if (v < 0 || v >= a->p->n || !a->inside[v] || a->read[v] || a->decided[v] != 0)
        return wrong(a, "a decision that is none", v);
    a->decided[v] = 1;
    int64_t kept = tree_bound(a, budget, depth + 1);
    a->decided[v] = 2;
    int64_t other = kept < 0 ? -1 : tree_bound(a, budget, depth + 1);
    a->decided[v] = 0;
    if (kept < 0 || other < 0)
        return -1;
    return kept < other ? kept : other;
}

int64_t check_proof(const Problem *p, const Certificate *proof, int64_t budget, Arena *out,
                    const char **error)
{
    Adding a = {.p = p, .c = proof, .arena = out};
    *error = NULL;
    if (proof->moment < 0)
        return 0;
    if (proof->moment >= p->n || proof->scale < 1) {
        *error = "the proof of the bound: a moment or a scale that is none";
        return -1;
    }
    a.before = NEW_ARRAY(out, bool, p->n);
    a.inside = NEW_ARRAY(out, bool, p->n);
    a.needed = NEW_ARRAY(out, bool, p->n);
    a.read = NEW_ARRAY(out, bool, p->n);
    a.decided = NEW_ARRAY(out, int8_t, p->n);
    a.excess_in = NEW_ARRAY(out, int64_t, p->n);
    a.excess_out = NEW_ARRAY(out, int64_t, p->n);
    find_sets(&a);
    for (int32_t v = 0; v < p->n; v++)
        a.divisor = common(a.divisor, p->node[v].cost);
    int64_t bound = tree_bound(&a, budget, 0);
    if (bound >= 0 && a.at_tree != proof->tree.n)
        bound = wrong(&a, "there is more of the tree than is used", a.at_tree);
    *error = a.error;
    return bound;
}
