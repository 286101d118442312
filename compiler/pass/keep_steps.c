/* Scans of which the last steps are kept and the first ones run again: what there is between a
 * scan that stacks what its reverse reads of all steps and one that is cut into runs.
 *
 * A scan F over T steps and its reverse B become four scans: F1 over the first steps, in `runs`
 * of `run` steps each, which stacks the carries at the beginning of each run and nothing else;
 * F2 over the `kept` others, which stacks what it did; B2, and then B1, which for each run goes
 * over F's body again, now with stacks, and back. When B1 begins, the stacks of F2 are gone: a
 * run may be as long as what is kept, and bytes are those of kept + runs steps, while each step
 * runs again at most once. With kept = run = sqrt(T) that is 2 sqrt(T), and up to sqrt(T) more
 * where runs of one length leave steps over.
 *
 * The graph is the joint one, so that all sums are made already: each step, forward and reverse,
 * is the same and reads the same values, cotangents of what is the same in every step are one
 * chain through B2 and B1, and no bit changes; T need not be divided by anything. */
#include "pass.h"

/* A scan as it was. */
typedef struct Whole {
    Ref at;
    Scan is;
    const Graph *body;
    int n_args, n_results;
} Whole;

typedef struct Pair {
    Whole f, b;
    KeptSteps steps;
    bool *residual; /* by result of F: nothing but B reads it, as a sequence */
    /* In the new graph, by when B is built: */
    Ref *first;  /* by operand of F: what F1 has in place of it */
    Ref *begins; /* by carry of F: what it was at the beginning of each run, stacked */
    Ref *stack;  /* by result of F: what F2 gives */
} Pair;

enum { BY_MANY = -1 };

typedef struct Keep {
    const Graph *g;
    Graph *to;
    int deepest;
    int64_t share;
    int64_t *reader; /* by node: the scan that alone reads it as a sequence, 0 or BY_MANY */
    Pair **pair;     /* by node: that F or B is of */
    Ref *map;
    Arena arena;
} Keep;

/* ---- which steps ---------------------------------------------------------------------- */

static int64_t root_of(int64_t n)
{
    int64_t r = 1;
    while ((r + 1) <= n / (r + 1))
        r++;
    return r;
}

/* Takes `runs` runs of `run` steps if they are better: as few rows as asked for and fewer steps
 * again, or fewer rows. A row is what is kept of one step. */
static void take_better(KeptSteps *best, int64_t count, int64_t rows, int64_t runs, int64_t run)
{
    KeptSteps s = {.kept = count - runs * run, .runs = runs, .run = run};
    int64_t need = s.kept + runs, had = best->kept + best->runs;
    if (run < 1 || run > s.kept || need >= count)
        return;
    bool fewer_again = need <= rows && had <= rows && s.kept > best->kept;
    if ((need < had && had > rows) || fewer_again)
        *best = s;
}

KeptSteps kept_steps(int64_t count, int64_t share)
{
    int64_t rows = count / KEEP_ALL * share + count % KEEP_ALL * share / KEEP_ALL;
    KeptSteps best = {.kept = count};
    const int64_t root = root_of(count);
    for (int64_t runs = 1; runs <= root && share < KEEP_ALL; runs++) {
        take_better(&best, count, rows, runs, count / (runs + 1));
        take_better(&best, count, rows, runs, (count - rows + runs - 1) / runs + 1);
    }
    return best;
}

/* ---- which scans ------------------------------------------------------------------------ */

static Whole whole_of(const Graph *g, Ref r)
{
    return (Whole){.at = r,
                   .is = scan_of(g, r),
                   .body = attr(g, r, SCAN_BODY)->body,
                   .n_args = node(g, r)->n_args,
                   .n_results = tuple_size(g, r)};
}

static bool is_sequence(const Whole *w, int i)
{
    return i >= w->is.carries && i < w->is.carries + w->is.sequences;
}

static void read_by(Keep *k, Ref x, int64_t who)
{
    k->reader[x] = k->reader[x] == 0 || k->reader[x] == who ? who : BY_MANY;
}

static void find_readers(Keep *k)
{
    const Graph *g = k->g;
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        bool scan = op_of(g, r) == OP_scan;
        Whole w = scan ? whole_of(g, r) : (Whole){0};
        for (int i = 0; i < node(g, r)->n_args; i++)
            read_by(k, arg(g, r, i), scan && is_sequence(&w, i) ? (int64_t)r : BY_MANY);
    }
    for (int i = 0; i < g->root.n; i++)
        read_by(k, g->root.at[i].ref, BY_MANY);
}

/* The result of F that the node picks, if it is stacked; or -1. */
static int picks_stack(const Graph *g, const Whole *f, Ref r)
{
    if (op_of(g, r) != OP_pick || arg(g, r, 0) != f->at || attr(g, r, 0)->i < f->is.carries)
        return -1;
    return (int)attr(g, r, 0)->i;
}

/* The scan the other way that alone reads something that F stacks; or NONE. */
static Ref find_reverse(const Keep *k, const Whole *f)
{
    const Graph *g = k->g;
    for (Ref r = f->at + 1; r < (Ref)g->node.n; r++) {
        if (picks_stack(g, f, r) < 0 || k->reader[r] <= 0)
            continue;
        Ref b = (Ref)k->reader[r];
        Scan is = scan_of(g, b);
        if (is.count == f->is.count && is.down != f->is.down && k->pair[b] == NULL)
            return b;
    }
    return NONE;
}

static void find_residuals(Keep *k, Pair *p)
{
    p->residual = NEW_ARRAY(&k->arena, bool, p->f.n_results);
    bool *elsewhere = NEW_ARRAY(&k->arena, bool, p->f.n_results);
    for (Ref r = p->f.at + 1; r < (Ref)k->g->node.n; r++) {
        int i = picks_stack(k->g, &p->f, r);
        if (i < 0)
            continue;
        bool by_reverse = k->reader[r] == (int64_t)p->b.at;
        p->residual[i] = p->residual[i] || by_reverse;
        elsewhere[i] = elsewhere[i] || (k->reader[r] != 0 && !by_reverse);
    }
    for (int i = 0; i < p->f.n_results; i++)
        p->residual[i] = p->residual[i] && !elsewhere[i];
}

/* Room for one more axis in what it reads and stacks, and for one more loop. */
static bool has_room(const Keep *k, const Whole *w)
{
    for (int i = w->is.carries; i < w->is.carries + w->is.sequences; i++)
        if (type_of(k->g, arg(k->g, w->at, i))->rank >= MAX_RANK)
            return false;
    for (int i = 0; i < w->n_results; i++)
        if (tuple_type(k->g, w->at, i).rank >= MAX_RANK)
            return false;
    return g_loop_depth(w->body, NULL) + 2 <= k->deepest;
}

/* The pair that F is the first of, in k->pair; false: there is none. */
static bool find_pair(Keep *k, Ref r)
{
    if (op_of(k->g, r) != OP_scan || k->pair[r] != NULL)
        return false;
    Pair p = {.f = whole_of(k->g, r)};
    p.steps = kept_steps(p.f.is.count, k->share);
    /* what `keep` asks for is stacked over all steps */
    if (p.f.is.lean || p.steps.runs == 0 || g_kept_in(p.f.body) != NULL ||
        !has_fixed_order(p.f.body) || !has_room(k, &p.f))
        return false;
    Ref b = find_reverse(k, &p.f);
    if (b == NONE)
        return false;
    p.b = whole_of(k->g, b);
    find_residuals(k, &p);
    if (!has_room(k, &p.b))
        return false;
    Pair *made = NEW(&k->arena, Pair);
    *made = p;
    k->pair[r] = k->pair[b] = made;
    return true;
}

static int find_pairs(Keep *k)
{
    int n = 0;
    k->reader = NEW_ARRAY(&k->arena, int64_t, k->g->node.n);
    k->pair = NEW_ARRAY(&k->arena, Pair *, k->g->node.n);
    find_readers(k);
    for (Ref r = 1; r < (Ref)k->g->node.n; r++)
        n += find_pair(k, r);
    return n;
}

/* ---- parts of what all steps read or give ------------------------------------------------- */

/* Rows of the first steps of F, or of the others. */
static Ref rows_of(Graph *g, const Pair *p, Ref x, bool first)
{
    int64_t n_first = p->steps.runs * p->steps.run, kept = p->steps.kept;
    bool low = first != p->f.is.down; /* F begins with the lowest row, or the highest */
    int64_t n = first ? n_first : kept;
    return g_slice(g, x, 0, low ? 0 : p->f.is.count - n, n, 1);
}

/* ... of the first steps, as runs. */
static Ref rows_in_runs(Graph *g, const Pair *p, Ref x)
{
    Ref rows = rows_of(g, p, x, true);
    Type t = *type_of(g, rows);
    int64_t dim[MAX_RANK] = {p->steps.runs, p->steps.run};
    for (int a = 1; a < t.rank; a++)
        dim[a + 1] = t.dim[a];
    return g_reshape(g, rows, t.rank + 1, dim);
}

/* Both together again; of the first steps the rows are in runs. */
static Ref joined(Graph *g, const Pair *p, Ref runs, Ref kept)
{
    Type t = *type_of(g, kept);
    t.dim[0] = p->steps.runs * p->steps.run;
    Ref first = g_reshape(g, runs, t.rank, t.dim);
    Ref both[2] = {p->f.is.down ? kept : first, p->f.is.down ? first : kept};
    return g_concat(g, both, 2, 0);
}

/* Operands of a scan over one part of the steps. */
static Ref *operands(Keep *k, const Pair *p, const Whole *w, bool first)
{
    Ref *args = NEW_ARRAY(&k->arena, Ref, w->n_args);
    for (int i = 0; i < w->n_args; i++) {
        Ref x = k->map[arg(k->g, w->at, i)];
        if (!is_sequence(w, i))
            args[i] = x;
        else
            args[i] = first ? rows_in_runs(k->to, p, x) : rows_of(k->to, p, x, false);
    }
    return args;
}

static Ref scan_of_part(Graph *g, const Whole *w, const Ref *args, int64_t count)
{
    Scan is = w->is;
    is.count = count;
    return g_scan(g, g_copy_body(g, w->body), args, w->n_args, is);
}

/* An argument of a body that goes over runs: a slice of x if that is a sequence. */
static Ref run_arg(Graph *body, int i, const Graph *g, Ref x, bool sequence)
{
    Type t = *type_of(g, x);
    for (int a = 0; sequence && a + 1 < t.rank; a++)
        t.dim[a] = t.dim[a + 1];
    t.rank -= sequence;
    return g_body_arg(body, i, t);
}

static void result_of(Graph *body, Ref r)
{
    graph_root(body, ROOT_RESULT, NULL, r, -1, -1);
}

/* ---- forward -------------------------------------------------------------------------------- */

/* F1. Results: the carries, what others than B read, then the carries before the run. */
static Ref build_first(Keep *k, const Pair *p)
{
    const Whole *f = &p->f;
    Graph *body = g_body(k->to);
    Ref *in = NEW_ARRAY(&k->arena, Ref, f->n_args);
    for (int i = 0; i < f->n_args; i++)
        in[i] = run_arg(body, i, k->to, p->first[i], is_sequence(f, i));
    Ref scan = scan_of_part(body, f, in, p->steps.run);
    for (int i = 0; i < f->n_results; i++)
        if (!p->residual[i])
            result_of(body, g_pick(body, scan, i));
    for (int i = 0; i < f->is.carries; i++)
        result_of(body, in[i]);
    Scan is = f->is;
    is.count = p->steps.runs;
    is.lean = true;
    return g_scan(k->to, body, p->first, f->n_args, is);
}

static Ref build_forward(Keep *k, Pair *p)
{
    const Whole *f = &p->f;
    Ref *results = NEW_ARRAY(&k->arena, Ref, f->n_results);
    p->first = operands(k, p, f, true);
    p->begins = NEW_ARRAY(&k->arena, Ref, f->is.carries);
    p->stack = NEW_ARRAY(&k->arena, Ref, f->n_results);
    Ref *args = operands(k, p, f, false), first = build_first(k, p);
    for (int i = 0; i < f->is.carries; i++)
        args[i] = g_pick(k->to, first, i);
    Ref others = scan_of_part(k->to, f, args, p->steps.kept);
    int n = f->is.carries;
    for (int i = 0; i < f->n_results; i++) {
        results[i] = p->stack[i] = g_pick(k->to, others, i);
        if (i >= f->is.carries && !p->residual[i]) {
            Ref runs = g_pick(k->to, first, n++);
            results[i] = joined(k->to, p, runs, p->stack[i]);
        }
    }
    for (int i = 0; i < f->is.carries; i++)
        p->begins[i] = g_pick(k->to, first, n++);
    return g_tuple(k->to, results, f->n_results);
}

/* ---- reverse -------------------------------------------------------------------------------- */

/* The result of F that operand i of B reads and no other does; or -1. */
static int residual_of(const Keep *k, const Pair *p, int i)
{
    int result = is_sequence(&p->b, i) ? picks_stack(k->g, &p->f, arg(k->g, p->b.at, i)) : -1;
    return result >= 0 && p->residual[result] ? result : -1;
}

static Ref build_last(Keep *k, const Pair *p)
{
    const Whole *b = &p->b;
    Ref *args = NEW_ARRAY(&k->arena, Ref, b->n_args);
    for (int i = 0; i < b->n_args; i++) {
        int result = residual_of(k, p, i);
        Ref x = k->map[arg(k->g, b->at, i)];
        args[i] = result >= 0         ? p->stack[result]
                  : is_sequence(b, i) ? rows_of(k->to, p, x, false)
                                      : x;
    }
    return scan_of_part(k->to, b, args, p->steps.kept);
}

/* Operands of B1, and what its body has of them. */
typedef struct Runs {
    Graph *body;
    Ref *args;
    int n, carries, sequences;
    Ref *b, *f; /* by operand of B, of F: in the body */
} Runs;

static Ref add_operand(Keep *k, Runs *r, Ref x, bool sequence)
{
    r->args[r->n] = x;
    r->sequences += sequence;
    r->n++;
    return run_arg(r->body, r->n - 1, k->to, x, sequence);
}

/* Those that are the same in every run, or those that are not; carries are there already. */
static void add_operands(Keep *k, const Pair *p, Runs *r, bool sequences)
{
    const Whole *b = &p->b, *f = &p->f;
    for (int i = b->is.carries; i < b->n_args; i++) {
        if (is_sequence(b, i) != sequences || residual_of(k, p, i) >= 0)
            continue;
        Ref x = k->map[arg(k->g, b->at, i)];
        r->b[i] = add_operand(k, r, sequences ? rows_in_runs(k->to, p, x) : x, sequences);
    }
    for (int i = 0; i < f->n_args; i++) {
        bool carry = i < f->is.carries;
        if ((carry || is_sequence(f, i)) == sequences)
            r->f[i] = add_operand(k, r, carry ? p->begins[i] : p->first[i], sequences);
    }
}

/* B1: each run forward, with stacks, and back. */
static Ref build_again(Keep *k, const Pair *p, Ref last)
{
    const Whole *b = &p->b, *f = &p->f;
    Runs r = {.body = g_body(k->to)};
    r.args = NEW_ARRAY(&k->arena, Ref, b->n_args + f->n_args);
    r.b = NEW_ARRAY(&k->arena, Ref, b->n_args);
    r.f = NEW_ARRAY(&k->arena, Ref, f->n_args);
    for (int i = 0; i < b->is.carries; i++)
        r.b[i] = add_operand(k, &r, g_pick(k->to, last, i), false);
    add_operands(k, p, &r, true);
    add_operands(k, p, &r, false);
    r.body->origin = node(k->g, f->at)->origin;
    Ref again = scan_of_part(r.body, f, r.f, p->steps.run);
    for (int i = 0; i < b->n_args; i++) {
        int result = residual_of(k, p, i);
        if (result >= 0)
            r.b[i] = g_pick(r.body, again, result);
    }
    r.body->origin = node(k->g, b->at)->origin;
    Ref back = scan_of_part(r.body, b, r.b, p->steps.run);
    for (int i = 0; i < b->n_results; i++)
        result_of(r.body, g_pick(r.body, back, i));
    Scan is = {.carries = b->is.carries,
               .sequences = r.sequences,
               .count = p->steps.runs,
               .down = b->is.down};
    return g_scan(k->to, r.body, r.args, r.n, is);
}

static Ref build_reverse(Keep *k, const Pair *p)
{
    const Whole *b = &p->b;
    Ref last = build_last(k, p), again = build_again(k, p, last);
    Ref *results = NEW_ARRAY(&k->arena, Ref, b->n_results);
    for (int i = 0; i < b->n_results; i++) {
        results[i] = g_pick(k->to, again, i);
        if (i >= b->is.carries) {
            Ref kept = g_pick(k->to, last, i);
            results[i] = joined(k->to, p, results[i], kept);
        }
    }
    return g_tuple(k->to, results, b->n_results);
}

/* ---- all ------------------------------------------------------------------------------------- */

static Ref copy(Keep *k, Ref r, KeptSteps *all)
{
    Pair *p = k->pair[r];
    k->to->origin = node(k->g, r)->origin;
    if (p == NULL)
        return graph_copy_node(k->to, k->g, r, k->map);
    if (r == p->b.at)
        return build_reverse(k, p);
    all->kept += p->steps.kept;
    all->runs += p->steps.runs;
    all->run += p->steps.runs * p->steps.run;
    return build_forward(k, p);
}

bool can_keep_steps(const Graph *g, int deepest)
{
    Keep k = {.g = g, .deepest = deepest, .share = 1};
    int n = find_pairs(&k);
    arena_free(&k.arena);
    return n > 0;
}

Graph *keep_steps(const Graph *g, int64_t share, int deepest, KeptSteps *all)
{
    Keep k = {.g = g, .deepest = deepest, .share = share};
    *all = (KeptSteps){0};
    if (find_pairs(&k) > 0) {
        k.to = graph_new(g->cx, g->name);
        k.map = NEW_ARRAY(&k.arena, Ref, g->node.n);
        for (Ref r = 1; r < (Ref)g->node.n; r++) {
            if (r == g->n_primal)
                k.to->n_primal = (Ref)k.to->node.n;
            k.map[r] = copy(&k, r, all);
        }
        graph_copy_roots(k.to, g, k.map);
    }
    arena_free(&k.arena);
    return k.to;
}
