/* Row chunks: where a contraction gives far more than it reads, and rows of what follows do not
 * read each other (scores and softmax of attention, logits and cross-entropy), some rows are
 * computed at a time, and the wide values never exist whole. Such a region becomes a scan over
 * chunks, `lean`: its reverse computes a chunk again rather than read it.
 * Scores are so cut wherever that is as fast: from 128 by 128 on, and three times as wide as a
 * head, into chunks of 64 rows, enough for the tiles of a product and few enough for the caches.
 * Columns that a causal mask hides are then not computed (tails.c). Logits are cut for their size
 * alone, into as many rows as memory bears: each chunk reads all weights and adds to all of their
 * gradient.
 *
 * source: Rabe & Staats, Self-attention Does Not Need O(n^2) Memory (2021).
 *
 * Sums over rows (gradients of keys, values and weights; a mean) are then sums of the chunks' sums,
 * which is another order. So what is chunked follows from shapes alone, and is the same at every
 * budget.
 *
 * Where each step of a scan is launches, and no cache holds a chunk (Target.wide_elems), chunks are
 * as large as that: scores of all heads of all sequences, some rows of each, so that few steps fill
 * the machine, and what a mask hides is left out still. A budget cuts only along axes over which
 * nothing is summed (batch, heads). */
#include "chunk.h"

/* Chunks of fewer rows along the last axis are dear: each packs what all rows share. */
enum { GOOD_ROWS = 64, FEW_ROWS = 16, MANY_ROWS = 256 };
/* Of 257, 514 or 577 rows of scores no good number is a part: the last chunk is filled up, or, of
 * fewer rows, matrices go one by one. */
enum { WHOLE_ROWS = 128 };
enum { WIDER = 6, WIDER_SCORES = 3, FREE_DEPTH = 32, SLICE_FROM = 64 };
enum { LOGITS_PART = 9, FEW_CHUNKS = 4 };
/* Elements of scores of several heads that a chunk may have: with what is made of them, a part of
 * the second cache. */
enum { TOGETHER = 1 << 16 };
/* Each chunk of logits reads all weights and adds to all of their gradient: few are enough. */
enum { WIDE_LOGITS = 4, LOGITS_CHUNKS = 8 };
/* What is computed again for each chunk is little beside what comes of it: scores and what they
 * weigh, but not layer after layer of a convolutional network. */
enum { MOST_PRODUCTS = 2 };

/* ---- the graph, looked at once --------------------------------------------------- */

static void find_users(Search *s)
{
    const Graph *g = s->g;
    s->first_user = NEW_ARRAY(s->a, uint32_t, g->node.n + 1);
    s->user = NEW_ARRAY(s->a, Ref, g->arg.n + 1);
    uint32_t *n = NEW_ARRAY(s->a, uint32_t, g->node.n + 1);
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        for (int i = 0; i < node(g, r)->n_args; i++)
            n[arg(g, r, i)]++;
    for (Ref r = 0; r < (Ref)g->node.n; r++) {
        s->first_user[r + 1] = s->first_user[r] + n[r];
        n[r] = s->first_user[r];
    }
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        for (int i = 0; i < node(g, r)->n_args; i++)
            s->user[n[arg(g, r, i)]++] = r;
}

/* Made of constants by ops on single elements: computed anew wherever it is read. Chains of
 * them are short, or they are values like others. */
static void find_free(Search *s)
{
    const Graph *g = s->g;
    int *depth = NEW_ARRAY(s->a, int, g->node.n);
    s->free = NEW_ARRAY(s->a, bool, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        OpKind kind = optab[op_of(g, r)]->kind;
        bool source = op_of(g, r) == OP_const || op_of(g, r) == OP_iota ||
                      (op_of(g, r) == OP_literal && rank(g, r) == 0); /* the key of a draw */
        s->free[r] =
            source || ((kind == OP_POINTWISE || kind == OP_VIEW) && node(g, r)->n_args > 0);
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref x = arg(g, r, i);
            depth[r] = depth[x] >= depth[r] ? depth[x] + 1 : depth[r];
            s->free[r] = s->free[r] && s->free[x] && depth[r] < FREE_DEPTH;
        }
    }
}

static Search *look_at(const Graph *g, Arena *a)
{
    Search *s = NEW(a, Search);
    *s = (Search){.g = g, .a = a, .rooted = NEW_ARRAY(a, bool, g->node.n)};
    s->cut = NEW_ARRAY(a, bool, g->node.n);
    for (int i = 0; i < g->root.n; i++)
        s->rooted[g->root.at[i].ref] = true;
    s->before = NEW_ARRAY(a, bool, g->node.n);
    s->after = NEW_ARRAY(a, bool, g->node.n);
    find_users(s);
    find_free(s);
    return s;
}

/* ---- regions ----------------------------------------------------------------------- */

/* One of many products, as those of heads are: no factor is a weight that all of them read. */
static bool is_batched(const Graph *g, Ref r)
{
    int want[2];
    for (int a = 0; a < rank(g, r); a++)
        if (dim(g, r, a) > 1 && operand_axes(g, r, a, want) && want[0] >= 0 && want[1] >= 0)
            return true;
    return false;
}

/* So many times as large as what it reads a product has to be. Layers of a perceptron may be four
 * times as wide as their input, and are worth keeping. */
static int wider(const Graph *g, Ref seed, const Chunks *is)
{
    return is->wider > 0 ? is->wider : is_batched(g, seed) ? WIDER_SCORES : WIDER;
}

/* Nearly as large as the seed: it is not to exist whole. */
static bool is_wide(const Region *v, Ref r)
{
    return elems(v->g, r) > elems(v->g, v->seed) / v->wider;
}

static bool is_given(const Graph *g, Ref r)
{
    OpKind kind = optab[op_of(g, r)]->kind;
    return kind == OP_SOURCE || kind == OP_TUPLE;
}

static bool join(Search *s, Region *v, Ref r, int axis)
{
    if (axis < 0 || (is_in(v, r) && v->axis[r] != axis))
        return false;
    bool whole = is_wide(v, r) && origin_is_kept(node(s->g, r)->origin);
    if (is_in(v, r))
        return true;
    if (whole || dim(s->g, r, axis) != v->extent)
        return false;
    v->axis[r] = axis;
    vec_push(s->a, &s->pending, r);
    vec_push(s->a, &s->joined, r);
    return true;
}

/* Operands whose rows are wide are computed with r, row by row. */
static bool join_operands(Search *s, Region *v, Ref r)
{
    const Graph *g = s->g;
    int n = node(g, r)->n_args, *want = NEW_ARRAY(s->a, int, n);
    if (!operand_axes(g, r, v->axis[r], want))
        return false;
    for (int i = 0; i < n; i++) {
        Ref x = arg(g, r, i);
        bool large = want[i] != WHOLE && is_wide(v, x) && !is_given(g, x);
        bool joins = is_in(v, x) || large;
        if (joins && !s->free[x] && !join(s, v, x, want[i]))
            return false;
    }
    return true;
}

static bool join_user(Search *s, Region *v, Ref r, Ref user)
{
    for (int i = 0; i < node(s->g, user)->n_args; i++)
        if (arg(s->g, user, i) == r && !join(s, v, user, result_axis(s->g, user, i, v->axis[r])))
            return false;
    return true;
}

/* ... and so is whatever reads a wide value. */
static bool join_around(Search *s, Region *v, Ref r)
{
    if (!join_operands(s, v, r) || (is_wide(v, r) && s->rooted[r]))
        return false;
    for (uint32_t u = s->first_user[r]; is_wide(v, r) && u < s->first_user[r + 1]; u++)
        if (!join_user(s, v, r, s->user[u]))
            return false;
    return true;
}

static bool join_pending(Search *s, Region *v)
{
    while (s->pending.n > 0)
        if (!join_around(s, v, s->pending.at[--s->pending.n]))
            return false;
    return true;
}

/* A deep net has hundreds of regions: nothing is looked at outside of one. */
static void find_ends(const Search *s, Ref *first, Ref *last)
{
    *first = *last = s->joined.at[0];
    for (int i = 1; i < s->joined.n; i++) {
        *first = s->joined.at[i] < *first ? s->joined.at[i] : *first;
        *last = s->joined.at[i] > *last ? s->joined.at[i] : *last;
    }
}

/* Nodes between nodes of the region join, for it is computed in one piece. *more: some did. */
static bool join_between(Search *s, Region *v, bool *more)
{
    const Graph *g = s->g;
    bool *before = s->before, *after = s->after;
    Ref first, last;
    find_ends(s, &first, &last);
    for (Ref r = first; r <= last; r++)
        before[r] = after[r] = false;
    for (Ref r = last; r >= first; r--)
        for (int i = 0; (before[r] || is_in(v, r)) && i < node(g, r)->n_args; i++)
            if (arg(g, r, i) >= first)
                before[arg(g, r, i)] = true;
    *more = false;
    for (Ref r = first; r <= last; r++) {
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref x = arg(g, r, i);
            if (x < first)
                continue;
            after[r] = after[r] || after[x] || is_in(v, x);
            if (!before[r] || is_in(v, r) || !is_in(v, x))
                continue;
            *more = true;
            if (!join(s, v, r, result_axis(g, r, i, v->axis[x])))
                return false;
        }
        if (before[r] && after[r] && !is_in(v, r))
            return false;
    }
    return true;
}

/* Whatever joined since, each node reads the rows of the others that they have. */
static bool is_consistent(Search *s, const Region *v, Ref r)
{
    int n = node(s->g, r)->n_args, *want = NEW_ARRAY(s->a, int, n);
    bool fits = operand_axes(s->g, r, v->axis[r], want);
    for (int i = 0; fits && i < n; i++)
        fits = !is_in(v, arg(s->g, r, i)) || v->axis[arg(s->g, r, i)] == want[i];
    return fits;
}

/* What is kept is read from where it is kept, and not made again for those that read it. */
static bool is_read_inside(const Search *s, const Region *v, Ref r)
{
    for (uint32_t u = s->first_user[r]; u < s->first_user[r + 1]; u++)
        if (is_in(v, s->user[u]))
            return true;
    return false;
}

/* The region around v->seed, whose rows are along this axis. */
static bool grow(Search *s, Region *v, int axis)
{
    for (int i = 0; i < s->joined.n; i++)
        v->axis[s->joined.at[i]] = MIXED;
    s->pending.n = s->joined.n = 0;
    v->extent = dim(s->g, v->seed, axis);
    bool more = true;
    if (!join(s, v, v->seed, axis))
        return false;
    while (more)
        if (!join_pending(s, v) || !join_between(s, v, &more))
            return false;
    int products = 0;
    find_ends(s, &v->first, &v->last);
    for (Ref r = v->first; r <= v->last; r++) {
        if (!is_in(v, r))
            continue;
        bool kept = origin_is_kept(node(s->g, r)->origin);
        if (!is_consistent(s, v, r) || (kept && is_read_inside(s, v, r)))
            return false;
        products += op_of(s->g, r) == OP_contract;
    }
    v->scores = products == MOST_PRODUCTS;
    return products <= MOST_PRODUCTS;
}

/* ---- what to chunk, and how -------------------------------------------------------- */

/* Of n rows at most so many, and about as many in the last chunk as in others. */
static int64_t even_rows(int64_t n, int64_t most)
{
    int64_t chunks = (n + most - 1) / most;
    return (n + chunks - 1) / chunks;
}

/* Of n rows so many that a chunk of the seed has at most `most` elements, or one. Where no divisor
 * is half of what may be, the last chunk may be filled up if that is little. */
static int64_t rows_of(int64_t n, int64_t all, int64_t most, bool fill)
{
    int64_t rows = 1, each = all / n, may = most / each;
    for (int64_t d = 1; d <= n / d; d++) {
        const int64_t pair[] = {d, n / d};
        for (int i = 0; i < 2 && n % d == 0; i++)
            if (pair[i] > rows && pair[i] * each <= most)
                rows = pair[i];
    }
    bool few = fill && may >= FEW_ROWS && may < n && rows < may / 2;
    return few ? even_rows(n, may) : rows;
}

/* Rows of the seed are much larger than the rows that they are made of. */
static bool widens(const Region *v, int axis)
{
    int want[2];
    if (!operand_axes(v->g, v->seed, axis, want))
        return false;
    for (int i = 0; i < 2; i++)
        if (want[i] != WHOLE &&
            elems(v->g, v->seed) / v->wider < elems(v->g, arg(v->g, v->seed, i)))
            return false;
    return true;
}

/* Axes along which rows do not read each other, ascending; how many. */
static int find_axes(Search *s, Region *v, const Chunks *is, int axis[])
{
    int n = 0;
    v->wider = wider(s->g, v->seed, is);
    for (int a = 0; a < rank(s->g, v->seed); a++)
        if (dim(s->g, v->seed, a) > 1 && widens(v, a) && grow(s, v, a) &&
            (is->slices == 0 || sums_nothing(s, v)))
            axis[n++] = a;
    return n;
}

/* Elements of one matrix of the seed: the last of these axes and what is behind it. */
static int64_t matrix_elems(const Graph *g, Ref seed, const int axis[], int n)
{
    int64_t size = 1;
    for (int a = axis[n - 1]; a < rank(g, seed); a++)
        size *= dim(g, seed, a);
    return size;
}

/* Of n rows as many as run best, of those that divide n, or fill it up; 0: none do. */
static int64_t best_rows(int64_t n)
{
    int64_t best = 0;
    for (int64_t rows = FEW_ROWS; rows <= GOOD_ROWS; rows++)
        best = n % rows == 0 ? rows : best;
    if (best == 0 && n > WHOLE_ROWS)
        return even_rows(n, GOOD_ROWS);
    for (int64_t rows = GOOD_ROWS + 1; best == 0 && rows <= WHOLE_ROWS; rows++)
        best = n % rows == 0 ? rows : best;
    return best;
}

/* Elements of a chunk of n rows of logits: weights and their gradient pass through the caches
 * once a chunk, which takes as long as the arithmetic of about 100 rows. */
static int64_t logits_elems(int64_t n, int64_t row, const Chunks *is)
{
    int64_t rows = is->from / LOGITS_PART / row;
    rows = rows < GOOD_ROWS ? GOOD_ROWS : rows > MANY_ROWS ? MANY_ROWS : rows;
    rows = rows > n / FEW_CHUNKS ? n / FEW_CHUNKS : rows;
    return rows * row > is->most ? rows * row : is->most;
}

/* ... where chunks are wide. A mask hides columns from chunks, not from a whole. */
static int64_t wide_elems(const Region *v, const Chunks *is)
{
    int64_t all = elems(v->g, v->seed), few = all / FEW_CHUNKS;
    if (!v->scores)
        return all / WIDE_LOGITS > is->wide ? all / LOGITS_CHUNKS : 0;
    return all <= is->wide / FEW_CHUNKS ? 0 : few < is->wide ? few : is->wide;
}

/* Some rows of one matrix, and of as many beside it as a cache holds together: they are read where
 * they lie, and not taken apart first. */
static int64_t side_by_side(const Region *v, const int axis[], int n, int64_t elems)
{
    for (int i = n - 2; i >= 0 && elems * dim(v->g, v->seed, axis[i]) <= TOGETHER; i--)
        elems *= dim(v->g, v->seed, axis[i]);
    return elems;
}

/* Matrices of the seed that cannot be taken apart, of all of which a chunk has some rows: those of
 * experts whose results are summed up, or of sequences that share their queries. */
static int64_t count_joined(const Region *v, const int axis[], int n)
{
    int64_t count = elems(v->g, v->seed) / matrix_elems(v->g, v->seed, axis, n);
    for (int i = 0; i < n - 1; i++)
        count /= dim(v->g, v->seed, axis[i]);
    return count;
}

/* Elements of a chunk of the region with these axes, if it is large enough to be cut; or 0. */
static int64_t chunk_elems(const Region *v, const int axis[], int n, const Chunks *is)
{
    int64_t all = matrix_elems(v->g, v->seed, axis, n), n_rows = dim(v->g, v->seed, axis[n - 1]);
    int64_t row = all / n_rows, rows = best_rows(n_rows) * row, joined = count_joined(v, axis, n);
    bool together = joined == 1 ? rows <= is->most : rows * joined <= TOGETHER;
    if (v->scores && is->scores_from > 0 && all >= is->scores_from && rows > 0 && together)
        return side_by_side(v, axis, n, rows * joined);
    return all * joined < is->from ? 0 : v->scores ? is->most : logits_elems(n_rows, row, is);
}

/* Fewest loops, then most rows: one axis if that is enough, else the first one alone, a row at
 * a time, and the body is chunked in turn. Wide chunks of scores have rows that masks hide columns
 * from, if those are enough. */
static bool choose(Search *s, Region *v, const int axis[], int n, const Chunks *is)
{
    int64_t all = elems(s->g, v->seed);
    int best = is->levels > 1 ? axis[0] : axis[n - 1];
    bool fits = false, by_rows = is->by_rows && v->scores;
    for (int i = n - 1; i >= 0 && !(fits && by_rows); i--) {
        int64_t extent = dim(s->g, v->seed, axis[i]);
        int64_t rows = rows_of(extent, all, v->most, is->slices == 0 && i == n - 1);
        int64_t good = i < n - 1 || is->slices > 0 ? 1 : GOOD_ROWS;
        fits = rows >= good && rows * (all / extent) <= v->most;
        if (fits)
            best = axis[i];
    }
    if (!grow(s, v, best))
        return false;
    v->rows = rows_of(v->extent, all, v->most, is->slices == 0 && best == axis[n - 1]);
    if (best == axis[n - 1] && !v->scores && v->rows < is->fewest)
        return false;
    return v->rows < v->extent && (is->slices == 0 || keeps_bits(s, v));
}

/* May widen(): an operand is much smaller than what comes of it. */
static bool is_seed(const Graph *g, Ref r, int64_t from, const Chunks *is)
{
    return op_of(g, r) == OP_contract && elems(g, r) >= from &&
           (elems(g, r) / wider(g, r, is) >= elems(g, arg(g, r, 0)) ||
            elems(g, r) / wider(g, r, is) >= elems(g, arg(g, r, 1)));
}

/* Elements of the least value that may be cut. */
static int64_t least_seed(const Chunks *is)
{
    if (is->wide > 0)
        return is->wide / FEW_CHUNKS;
    return is->scores_from > 0 && is->scores_from < is->from ? is->scores_from : is->from;
}

static Region no_region(Search *s)
{
    Region v = {.g = s->g, .free = s->free, .axis = NEW_ARRAY(s->a, int32_t, s->g->node.n)};
    for (int r = 0; r < s->g->node.n; r++)
        v.axis[r] = MIXED;
    return v;
}

/* The next region to chunk; that of a body is known. */
static bool find_region(Search *s, Region *v, bool is_body, const Chunks *is)
{
    const Graph *g = s->g;
    const int64_t from = is_body ? is->most + 1 : least_seed(is);
    for (v->seed++; v->seed < (Ref)g->node.n; v->seed++) {
        int axis[MAX_RANK], n = is_seed(g, v->seed, from, is) ? find_axes(s, v, is, axis) : 0;
        if (n == 0)
            continue;
        v->most = is_body           ? is->most
                  : is->wide > 0    ? wide_elems(v, is)
                  : is->slices == 0 ? chunk_elems(v, axis, n, is)
                                    : elems(g, v->seed) / is->slices;
        if ((v->most > 0 || is->slices > 0) && choose(s, v, axis, n, is))
            return true;
    }
    return false;
}

/* Chunks regions that follow one another, as far as they do. NULL: there is none. */
static Graph *chunk_some(const Graph *g, Graph *outer, const Chunks *is)
{
    Arena scratch = {0};
    Search *s = look_at(g, &scratch);
    Region v = no_region(s);
    Graph *to = NULL;
    Chunker *c = NULL;
    for (Ref done = 0; find_region(s, &v, outer != NULL, is) && v.first > done; done = v.last) {
        if (c == NULL) {
            to = outer != NULL ? g_body(outer) : graph_new(g->cx, g->name);
            c = chunks_open(to, g, is, &scratch);
        }
        chunks_add(c, &v);
        mark_cut(s, &v);
    }
    if (c != NULL)
        chunks_close(c);
    arena_free(&scratch);
    return to;
}

bool chunk_graph(Graph **g, Graph *outer, const Chunks *is)
{
    bool changed = false;
    while (is->levels > 0) {
        Graph *to = chunk_some(*g, outer, is);
        if (to == NULL)
            break;
        if (outer == NULL)
            graph_free(*g);
        *g = to;
        changed = true;
    }
    return changed;
}

/* A copy in which elements of draws are numbered, so that parts of them can be drawn; NULL: there
 * is no draw. */
static Graph *number_draws(const Graph *g)
{
    bool any = false;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        any = any || is_draw(g, r);
    if (!any)
        return NULL;
    Arena scratch = {0};
    Graph *to = graph_new(g->cx, g->name);
    Ref *map = NEW_ARRAY(&scratch, Ref, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        map[r] = is_draw(g, r) ? number_draw(to, g, r, map) : graph_copy_node(to, g, r, map);
    graph_copy_roots(to, g, map);
    arena_free(&scratch);
    return to;
}

static bool chunk_all(Graph **g, const Chunks *is)
{
    bool any = false;
    for (Ref r = 1; r < (Ref)(*g)->node.n; r++)
        any = any || is_seed(*g, r, least_seed(is), is);
    if (!any)
        return false;
    Graph *numbered = number_draws(*g), *to = numbered != NULL ? numbered : *g;
    bool changed = chunk_graph(&to, NULL, is); /* frees `to` where it does */
    if (!changed && numbered != NULL)
        graph_free(numbered);
    if (changed && numbered != NULL)
        graph_free(*g);
    *g = changed ? to : *g;
    return changed;
}

bool chunk_rows(Graph **g, int64_t from, int64_t wide, int levels)
{
    bool given = from >= 0;
    if (!given && wide > 0)
        return chunk_all(
            g, &(Chunks){.wide = wide, .fewest = FEW_ROWS, .levels = levels, .by_rows = true});
    from = given ? from : CHUNK_FROM;
    Chunks is = {.from = from, .most = from / CHUNKS_OF_LEAST, .levels = levels};
    is.scores_from = given ? 0 : CHUNK_SCORES_FROM;
    is.by_rows = !given;
    is.fewest = given ? 1 : FEW_ROWS;
    return from > 0 && chunk_all(g, &is);
}

/* Slices of what is hardly wider than its operands save little. */
static Chunks slices_of(int64_t slices, int levels)
{
    return (Chunks){.from = SLICE_FROM, .slices = slices, .levels = levels, .wider = WIDER};
}

bool chunk_slices(Graph **g, int64_t slices, int levels)
{
    Chunks is = slices_of(slices, levels);
    return slices > 1 && chunk_all(g, &is);
}

bool can_chunk_slices(const Graph *g, int64_t slices, int levels)
{
    Arena scratch = {0};
    Chunks is = slices_of(slices, levels);
    Graph *numbered = number_draws(g);
    Search *s = look_at(numbered != NULL ? numbered : g, &scratch);
    Region v = no_region(s);
    bool can = levels > 0 && find_region(s, &v, false, &is);
    if (numbered != NULL)
        graph_free(numbered);
    arena_free(&scratch);
    return can;
}
