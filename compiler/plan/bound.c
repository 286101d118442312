#include "bound.h"

#include <stdlib.h>
#include <string.h>

#include "moment.h"

/* ---- cases -------------------------------------------------------------------------- */

/* A node of the tree of decisions; a leaf has no children. */
typedef struct Case {
    int32_t parent, child[2]; /* kept, not kept; 0: none */
    int32_t node;             /* that is decided below it, or would be; -1: none */
    bool closed;              /* its room is negative */
    MomentBound b;
} Case;

typedef struct Tree {
    Moment *m;
    VEC(Case) at;
    int64_t best; /* cost of the cheapest keep-set found */
    bool *kept;   /* that one, NULL */
} Tree;

/* Calls for every decision above case i. */
static void decide(Tree *t, int32_t i, bool back)
{
    Moment *m = t->m;
    for (int32_t child = i, at = t->at.at[i].parent; at >= 0;
         child = at, at = t->at.at[at].parent) {
        const Case *c = &t->at.at[at];
        bool kept = c->child[0] == child;
        m->decided[c->node] = back ? OPEN : kept ? KEPT : NOT_KEPT;
        if (kept)
            m->room += back ? m->p->node[c->node].bytes : -m->p->node[c->node].bytes;
    }
}

/* Of what the two cuts disagree about, the largest value. */
static int32_t branching(const Moment *m, const MomentBound *b)
{
    int32_t best = -1;
    for (int32_t i = 0; b->has_fit && i < m->n; i++) {
        int32_t v = m->cell[i];
        bool open = m->decided[v] == OPEN && !m->read[v];
        if (open && b->fits.kept[v] != b->over.kept[v] &&
            (best < 0 || m->p->node[v].bytes > m->p->node[best].bytes))
            best = v;
    }
    return best;
}

static void solve_case(Tree *t, int32_t i)
{
    Moment *m = t->m;
    Case *c = &t->at.at[i];
    decide(t, i, false);
    c->node = -1;
    c->closed = m->room < 0;
    if (!c->closed) {
        c->b = moment_bound(m, false);
        c->node = branching(m, &c->b);
        if (c->b.has_fit && c->b.fits.cost < t->best) {
            t->best = c->b.fits.cost;
            for (int32_t v = 0; v < m->p->n; v++)
                t->kept[v] = c->b.fits.kept[v] || m->decided[v] == KEPT;
        }
    }
    decide(t, i, true);
}

static int64_t bound_of_case(const Case *c)
{
    return c->closed || c->b.impossible ? INT64_MAX : c->b.bound;
}

/* The leaf with the lowest bound. */
static int32_t lowest(const Tree *t)
{
    int32_t best = -1;
    for (int32_t i = 0; i < t->at.n; i++)
        if (t->at.at[i].child[0] == 0 &&
            (best < 0 || bound_of_case(&t->at.at[i]) < bound_of_case(&t->at.at[best])))
            best = i;
    return best;
}

/* Splits the lowest leaf, again and again. */
static void grow(Tree *t, int32_t cases, int64_t enough)
{
    while (t->at.n < 2 * cases && *t->m->work >= 0) {
        int32_t i = lowest(t);
        int64_t bound = bound_of_case(&t->at.at[i]);
        if (t->at.at[i].node < 0 || bound >= enough || bound >= t->best)
            return;
        for (int k = 0; k < 2; k++) {
            Case c = {.parent = i, .node = -1};
            t->at.at[i].child[k] = t->at.n;
            vec_push(t->m->arena, &t->at, c);
        }
        solve_case(t, t->at.at[i].child[0]);
        solve_case(t, t->at.at[i].child[1]);
    }
}

/* ---- the proof ------------------------------------------------------------------------ */

/* The tree below case i, in preorder. Depth is that of decisions, which are few. */
static void write_tree(Tree *t, int32_t i, Certificate *to, Arena *out)
{
    const Case *c = &t->at.at[i];
    if (c->child[0] != 0) {
        int32_t second = c->child[1];
        vec_push(out, &to->tree, c->node);
        write_tree(t, c->child[0], to, out);
        write_tree(t, second, to, out);
    } else if (c->closed) {
        vec_push(out, &to->tree, PROOF_CLOSED);
    } else {
        vec_push(out, &to->tree, PROOF_CASE);
        decide(t, i, false);
        ProofCase proof = moment_proof(t->m, &c->b, out);
        decide(t, i, true);
        vec_push(out, &to->proof, proof);
    }
}

static Certificate proof_of(Tree *t, Arena *out)
{
    Certificate c = {
        .bound = bound_of_case(&t->at.at[lowest(t)]), .moment = t->m->node, .scale = t->m->scale};
    write_tree(t, 0, &c, out);
    return c;
}

static Tree tree_new(Moment *m)
{
    Tree t = {.m = m, .best = INT64_MAX};
    t.kept = NEW_ARRAY(m->arena, bool, m->p->n);
    vec_push(m->arena, &t.at, ((Case){.parent = -1, .node = -1}));
    solve_case(&t, 0);
    return t;
}

/* ---- which moments ---------------------------------------------------------------------- */

typedef struct Candidate {
    int32_t node;
    int64_t key;
} Candidate;

static int by_key(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Half of them are those with the most bytes there, half lie evenly among the others
 * that are above the budget. Returns how many. */
static int32_t choose(const Sequence *order, int64_t budget, int32_t wanted, Candidate *c)
{
    int32_t n = 0;
    for (int32_t t = 0; t < order->n; t++)
        if (order->live[t] > budget)
            c[n++] = (Candidate){order->node[t], order->live[t]};
    if (n <= wanted)
        return n;
    int32_t half = wanted / 2;
    Candidate *even = c + order->n;
    for (int32_t i = 0; i < half; i++)
        even[i] = c[(int64_t)n * i / half];
    qsort(c, (size_t)n, sizeof *c, by_key);
    int32_t kept = wanted - half;
    for (int32_t i = 0; i < half; i++) {
        bool known = false;
        for (int32_t j = 0; j < kept; j++)
            known = known || c[j].node == even[i].node;
        if (!known)
            c[kept++] = even[i];
    }
    return kept;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool *copy_kept(const Problem *p, const bool *kept, Arena *out)
{
    bool *to = NEW_ARRAY(out, bool, p->n);
    memcpy(to, kept, (size_t)p->n * sizeof *kept);
    return to;
}

/* The cheapest keep-set of the case, if it has one. */
static void note_keep(Bound *b, const Problem *p, const Tree *t, Arena *out)
{
    if (t->best == INT64_MAX)
        return;
    KeepSet k = {.moment = t->m->node,
                 .kept = copy_kept(p, t->kept, out),
                 .bound = bound_of_case(&t->at.at[lowest(t)])};
    vec_push(out, &b->keep, k);
    for (int32_t i = b->keep.n - 1; i > 0 && b->keep.at[i].bound > b->keep.at[i - 1].bound; i--) {
        KeepSet other = b->keep.at[i];
        b->keep.at[i] = b->keep.at[i - 1];
        b->keep.at[i - 1] = other;
    }
}

typedef struct Finding {
    const Problem *p;
    int64_t budget, enough, work;
    Bound *b;
    Arena scratch;
    Arena *out;
} Finding;

/* Bounds of one moment; `cases` is 1 for a first look. Returns the bound. */
static int64_t look(Finding *f, int32_t node, int32_t cases, bool note)
{
    Moment m;
    ArenaMark mark = arena_mark(&f->scratch);
    moment_init(&m, f->p, node, f->budget, &f->work, &f->scratch);
    int64_t bound = 0;
    if (m.room >= 0) {
        Tree t = tree_new(&m);
        grow(&t, cases, f->enough);
        bound = bound_of_case(&t.at.at[lowest(&t)]);
        if (bound > f->b->bound) {
            f->b->proof = proof_of(&t, f->out);
            f->b->bound = bound;
            f->b->impossible = bound == INT64_MAX;
        }
        if (note)
            note_keep(f->b, f->p, &t, f->out);
    }
    arena_reset(&f->scratch, mark);
    return bound;
}

/* The nodes that run while there is room in this order may be moments all the same: they are
 * looked at where the others prove nothing. Returns how many have something to say. */
static int32_t look_elsewhere(Finding *f, Candidate *c)
{
    int32_t n = 0;
    for (int32_t v = 0; v < f->p->n && f->work >= 0 && f->b->bound < f->enough; v++) {
        int64_t bound = look(f, v, 1, true);
        if (bound > 0)
            c[n++] = (Candidate){v, bound};
    }
    return n;
}

enum { MOST_CLOSED = 4 }; /* moments with more than one case */

Bound *bound_find(const Problem *p, const Sequence *order, int64_t budget, int64_t enough,
                  BoundEffort effort, Arena *out)
{
    Bound *b = NEW(out, Bound);
    Finding f = {
        .p = p, .budget = budget, .enough = enough, .work = effort.work, .b = b, .out = out};
    b->proof.moment = -1;
    Candidate *c = NEW_ARRAY(&f.scratch, Candidate, order->n + effort.moments);
    int32_t n = choose(order, budget, effort.moments, c);
    for (int32_t i = 0; i < n && f.work >= 0 && b->bound < enough; i++)
        c[i].key = look(&f, c[i].node, 1, true);
    if (b->bound == 0 && effort.cases > 1)
        n = look_elsewhere(&f, c);
    qsort(c, (size_t)n, sizeof *c, by_key);
    for (int32_t i = 0;
         i < n && i < MOST_CLOSED && effort.cases > 1 && f.work >= 0 && b->bound < enough; i++)
        look(&f, c[i].node, effort.cases, true);
    arena_free(&f.scratch);
    return b;
}

Bound *bound_at(const Problem *p, int32_t moment, int64_t budget, int64_t enough,
                BoundEffort effort, Arena *out)
{
    Bound *b = NEW(out, Bound);
    Finding f = {
        .p = p, .budget = budget, .enough = enough, .work = effort.work, .b = b, .out = out};
    b->proof.moment = -1;
    look(&f, moment, effort.cases, false);
    arena_free(&f.scratch);
    return b;
}

const bool *bound_keep(const Problem *p, int32_t moment, int64_t budget, int64_t *work, Arena *out)
{
    Moment m;
    Arena scratch = {0};
    const bool *kept = NULL;
    moment_init(&m, p, moment, budget, work, &scratch);
    if (m.room >= 0) {
        MomentBound b = moment_bound(&m, true);
        if (b.has_fit)
            kept = copy_kept(p, b.fits.kept, out);
    }
    arena_free(&scratch);
    return kept;
}
