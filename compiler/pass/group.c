/* Kernels of groups: loops over the main node's shape, values at the outermost
 * level where their indices are known, then the stores. */
#include "tails.h"

#include <assert.h>
#include <string.h>

enum { MAX_RESTARTS = 24 };

/* The loops of a kernel under construction, as (axis, factor) in nesting order. */
typedef struct Nest {
    Axis axis[MAX_AXES];
    int n_axes;
    int n_loops;
    struct {
        int axis, factor;
    } loop[MAX_AXES * MAX_FACTORS];
} Nest;

static void nest_init(Nest *ns, const Type *t)
{
    memset(ns, 0, sizeof *ns);
    ns->n_axes = t->rank;
    for (int a = 0; a < t->rank; a++)
        axis_init(&ns->axis[a], t->dim[a]);
}

static void nest_number(Nest *ns)
{
    ns->n_loops = 0;
    for (int a = 0; a < ns->n_axes; a++)
        for (int f = 0; f < ns->axis[a].n; f++) {
            ns->axis[a].loop[f] = 0;
            if (ns->axis[a].factor[f] == 1 && ns->axis[a].extent == 1)
                continue;
            ns->loop[ns->n_loops].axis = a;
            ns->loop[ns->n_loops].factor = f;
            ns->n_loops++;
        }
}

static Val *nest_val(Nest *ns, int loop)
{
    return &ns->axis[ns->loop[loop].axis].loop[ns->loop[loop].factor];
}

static void nest_open(Nest *ns, Kernel *k, int loop)
{
    int64_t extent = ns->axis[ns->loop[loop].axis].factor[ns->loop[loop].factor];
    *nest_val(ns, loop) = k_par(k, extent);
}

/* The index of a member of shape t, seen from the main shape: its axes are the
 * leading ones of the main shape, or 1. */
static void nest_index(const Nest *ns, const Type *t, KAff *idx)
{
    for (int a = 0; a < t->rank; a++)
        idx[a] = t->dim[a] == 1 ? k_aff(0) : axis_index(&ns->axis[a]);
}

/* How many of the nest's loops an index needs: one more than the innermost one in it;
 * -1 if it holds anything that is not a loop of the nest. */
static int nest_level(Nest *ns, const KAff *idx, int n)
{
    int level = 0;
    for (int a = 0; a < n; a++)
        for (int i = 0; i < idx[a].n; i++) {
            int l = 0;
            while (l < ns->n_loops && *nest_val(ns, l) != idx[a].t[i].v)
                l++;
            if (l == ns->n_loops)
                return -1;
            if (l + 1 > level)
                level = l + 1;
        }
    return level;
}

/* ---- loop groups ------------------------------------------------------- */

/* A value that is known at an outer level, to be computed there. The index is in
 * the numbering of the traced kernel, whose loops are 1, 2, ... */
typedef struct Hoist {
    Ref ref;
    int level;
    KAff idx[MAX_RANK];
} Hoist;

typedef struct LoopBuild {
    Clusters *c;
    Group *gr;
    Nest nest;
    Elem e;
    VEC(Hoist) hoist;
    Val traced[MAX_AXES * MAX_FACTORS]; /* loop's Val in the traced kernel */
} LoopBuild;

static int out_level(LoopBuild *b, Ref r)
{
    const Type *t = type_of(b->c->g, r);
    int level = 0;
    for (int l = 0; l < b->nest.n_loops; l++) {
        int a = b->nest.loop[l].axis;
        if (a < t->rank && t->dim[a] != 1)
            level = l + 1;
    }
    return level;
}

/* What the group computes is not read from memory in its own kernel. */
static void set_here(const Clusters *c, const Group *gr, Elem *e)
{
    Ref *here = NEW_ARRAY(c->scratch, Ref, gr->out.n + gr->private.n);
    int n = 0;
    for (int i = 0; i < gr->out.n && !gr->copies; i++)
        here[n++] = gr->out.at[i].ref;
    for (int i = 0; i < gr->private.n; i++)
        here[n++] = gr->private.at[i];
    e->here = here;
    e->n_here = n;
}

static bool hoist_known(const LoopBuild *b, const Request *q, int n)
{
    for (int i = 0; i < b->hoist.n; i++) {
        const Hoist *h = &b->hoist.at[i];
        bool same = h->ref == q->ref;
        for (int a = 0; a < n && same; a++)
            same = k_aff_equal(&h->idx[a], &q->idx[a]);
        if (same)
            return true;
    }
    return false;
}

/* Operands before users: by Ref. */
static void hoist_add(LoopBuild *b, const Request *q, int level, int rank)
{
    Hoist h = {.ref = q->ref, .level = level};
    for (int a = 0; a < rank; a++)
        h.idx[a] = q->idx[a];
    vec_push(b->c->scratch, &b->hoist, h);
    for (int i = b->hoist.n - 1; i > 0 && b->hoist.at[i - 1].ref > b->hoist.at[i].ref; i--) {
        Hoist t = b->hoist.at[i];
        b->hoist.at[i] = b->hoist.at[i - 1];
        b->hoist.at[i - 1] = t;
    }
}

/* A reduction of the group that is asked for at the place of all loops of the nest. */
static bool is_innermost(LoopBuild *b, const Request *q)
{
    bool here = false;
    for (int i = 0; i < b->e.n_here; i++)
        here = here || b->e.here[i] == q->ref;
    return here && optab[op_of(b->c->g, q->ref)]->kind == OP_REDUCE &&
           nest_level(&b->nest, q->idx, rank(b->c->g, q->ref)) == b->nest.n_loops;
}

/* Innermost values are computed where they are first asked for. Is that within the loop of another
 * reduction, which would do so each time? Then they all come before that, operands first. */
static bool asks_within(LoopBuild *b)
{
    for (int i = 0; i < b->e.request.n; i++) {
        const Request *q = &b->e.request.at[i];
        if (q->depth == b->nest.n_loops || !is_innermost(b, q))
            continue;
        bool before = false;
        for (int j = 0; j < i && !before; j++) {
            const Request *p = &b->e.request.at[j];
            before = p->ref == q->ref && p->depth == b->nest.n_loops && is_innermost(b, p);
        }
        if (!before)
            return true;
    }
    return false;
}

/* First run: everything inside all loops, to see which values need only the outer ones. */
static Trouble loop_trace(LoopBuild *b)
{
    const Graph *g = b->c->g;
    Kernel *k = kernel_new(b->c->scratch, K_LOOP, "trace");
    elem_init(&b->e, k, g, b->c->scratch, b->c->stored);
    b->e.tails = b->c->tails;
    set_here(b->c, b->gr, &b->e);
    nest_number(&b->nest);
    for (int l = 0; l < b->nest.n_loops; l++) {
        nest_open(&b->nest, k, l);
        b->traced[l] = *nest_val(&b->nest, l);
    }
    elem_trace(&b->e);
    for (int i = 0; i < b->gr->out.n && b->e.trouble == FINE; i++) {
        KAff idx[MAX_RANK];
        Ref r = b->gr->out.at[i].ref;
        nest_index(&b->nest, type_of(g, r), idx);
        elem_at(&b->e, r, idx);
    }
    if (b->e.trouble != FINE)
        return b->e.trouble;
    b->hoist.n = 0;
    bool within = asks_within(b);
    for (int i = 0; i < b->e.request.n; i++) {
        Request *q = &b->e.request.at[i];
        int n = rank(g, q->ref);
        int level = nest_level(&b->nest, q->idx, n);
        bool outside =
            level < b->nest.n_loops ? op_of(g, q->ref) != OP_const : within && is_innermost(b, q);
        if (level < 0 || q->bounded || !outside)
            continue;
        if (!hoist_known(b, q, n))
            hoist_add(b, q, level, n);
    }
    return FINE;
}

static void translate(LoopBuild *b, const KAff *from, int n, KAff *to)
{
    for (int a = 0; a < n; a++) {
        to[a] = k_aff(from[a].base);
        for (int i = 0; i < from[a].n; i++) {
            int l = 0;
            while (b->traced[l] != from[a].t[i].v)
                l++;
            KAff term = k_aff_val(*nest_val(&b->nest, l), from[a].t[i].coef);
            to[a] = k_aff_add(to[a], term);
        }
    }
}

static void store_out(LoopBuild *b, int i)
{
    const Graph *g = b->c->g;
    Ref r = b->gr->out.at[i].ref;
    const Type *t = type_of(g, r);
    KAff idx[MAX_RANK];
    nest_index(&b->nest, t, idx);
    Val v = elem_at(&b->e, r, idx);
    if (b->e.trouble != FINE)
        return;
    int buf = elem_out_buffer(&b->e, r, i, t->dtype, type_elems(t));
    k_store(b->e.k, buf, elem_linear(t, idx), v);
}

static void at_level(LoopBuild *b, int level)
{
    for (int i = 0; i < b->hoist.n && b->e.trouble == FINE; i++) {
        const Hoist *h = &b->hoist.at[i];
        if (h->level != level)
            continue;
        KAff idx[MAX_RANK];
        translate(b, h->idx, rank(b->c->g, h->ref), idx);
        elem_at(&b->e, h->ref, idx);
    }
    for (int i = 0; i < b->gr->out.n && b->e.trouble == FINE; i++)
        if (out_level(b, b->gr->out.at[i].ref) == level)
            store_out(b, i);
}

static Trouble loop_build(LoopBuild *b, const char *name)
{
    Kernel *k = kernel_new(b->c->scratch, K_LOOP, name);
    elem_init(&b->e, k, b->c->g, b->c->scratch, b->c->stored);
    b->e.tails = b->c->tails;
    set_here(b->c, b->gr, &b->e);
    nest_number(&b->nest);
    for (int level = 0; level <= b->nest.n_loops; level++) {
        at_level(b, level);
        if (b->e.trouble != FINE)
            return b->e.trouble;
        if (level < b->nest.n_loops)
            nest_open(&b->nest, k, level);
    }
    if (b->nest.n_loops > 0)
        k_end(k, *nest_val(&b->nest, 0));
    k_finish(k);
    return FINE;
}

static void keep_operands(Group *gr, Arena *arena, const Elem *e)
{
    gr->operand.n = 0;
    for (int i = 0; i < e->operand.n; i++) {
        GroupOperand o = {.ref = e->operand.at[i], .out = e->operand_out.at[i]};
        vec_push(arena, &gr->operand, o);
    }
}

/* "sum_exp": the ops that matter most, for symbols and listings. */
static const char *group_name(const Clusters *c, const Group *gr)
{
    const char *first = optab[op_of(c->g, gr->anchor)]->name;
    Ref last = gr->out.n > 0 ? gr->out.at[gr->out.n - 1].ref : gr->anchor;
    const char *second = optab[op_of(c->g, last)]->name;
    if (last == gr->anchor)
        return first;
    return arena_printf(c->arena, "%s_%s", first, second);
}

static Trouble lower_loops(Clusters *c, Group *gr, Ref *store_first)
{
    LoopBuild b = {.c = c, .gr = gr};
    nest_init(&b.nest, type_of(c->g, gr->main));
    const char *name = group_name(c, gr);
    for (int i = 0; i < MAX_RESTARTS; i++) {
        Trouble t = loop_trace(&b);
        if (t == FINE)
            t = loop_build(&b, name);
        if (t == FINE) {
            keep_operands(gr, c->arena, &b.e);
            Kernel *k = kernel_coalesce(c->arena, c->scratch, b.e.k);
            k = kernel_join(c->arena, kernel_share_walks(c->arena, k));
            gr->kernel = kernel_hoist(c->arena, k);
            return FINE;
        }
        *store_first = b.e.store_first;
        if (t != WANTS_CUT || !axis_cut(b.nest.axis, b.nest.n_axes, b.e.cut_loop, b.e.cut_by))
            return WANTS_STORE;
    }
    return WANTS_STORE;
}

/* ---- contractions ------------------------------------------------------ */

enum { XMAP = 0, YMAP = 1, LEAF_MIN = 512, LEAVES = 16, LEAF_OUT_MAX = 65536, LEAF_K_MIN = 2048 };

typedef struct ConBuild {
    Clusters *c;
    Group *gr;
    Ref con;
    int n_out, n_index;
    Nest nest;            /* loops of the main node */
    Axis sum[MAX_AXES];   /* summed indices */
    KAff index[MAX_AXES]; /* each index of the contraction over the loops */
    int role[MAX_AXES * MAX_FACTORS];
    int a_map; /* which operand is A: XMAP or YMAP */
    Elem e;
} ConBuild;

static bool map_has(const Attr *map, int index)
{
    for (int d = 0; d < map->n; d++)
        for (int i = 0; i < map->map[d].n; i++)
            if (map->map[d].index[i] == index)
                return true;
    return false;
}

/* What an element of the result is made from. */
static Ref out_element(const GroupOut *o)
{
    return o->all != NONE ? o->all : o->ref;
}

/* Where the main node and all results want the sum: the contraction's indices over the loops,
 * the same for all, for an epilogue has one element. */
static Trouble con_trace(ConBuild *b)
{
    const Graph *g = b->c->g;
    Kernel *k = kernel_new(b->c->scratch, K_LOOP, "trace");
    elem_init(&b->e, k, g, b->c->scratch, b->c->stored);
    b->e.tails = b->c->tails;
    nest_number(&b->nest);
    for (int l = 0; l < b->nest.n_loops; l++)
        nest_open(&b->nest, k, l);
    set_here(b->c, b->gr, &b->e);
    elem_trace(&b->e);
    b->e.sum_of = b->con;
    b->e.sum = k_const(k, type_of(g, b->con)->dtype, 0);
    for (int i = -1; i < b->gr->out.n; i++) {
        KAff idx[MAX_RANK];
        Ref r = i < 0 ? b->gr->main : out_element(&b->gr->out.at[i]);
        if (i >= 0 && (r == b->con || r == b->gr->main))
            continue;
        nest_index(&b->nest, type_of(g, r), idx);
        elem_at(&b->e, r, idx);
    }
    if (b->e.trouble != FINE)
        return b->e.trouble;
    bool found = false;
    for (int i = 0; i < b->e.request.n; i++) {
        const Request *q = &b->e.request.at[i];
        if (q->ref != b->con)
            continue;
        for (int a = 0; a < b->n_out; a++) {
            if (found && !k_aff_equal(&b->index[a], &q->idx[a]))
                return WANTS_STORE;
            b->index[a] = q->idx[a];
        }
        found = true;
    }
    assert(found);
    return FINE;
}

/* The contraction's result index that a loop moves; -1 none, -2 several. */
static int index_of_loop(const ConBuild *b, Val v)
{
    int found = -1;
    for (int a = 0; a < b->n_out; a++)
        for (int i = 0; i < b->index[a].n; i++)
            if (b->index[a].t[i].v == v)
                found = found == -1 || found == a ? a : -2;
    return found;
}

/* B, M or N for every loop; the side with the fastest loop is N. */
static bool con_roles(ConBuild *b)
{
    const Attr *at = node(b->c->g, b->con)->attr;
    const Attr *x = &at[CONTRACT_X], *y = &at[CONTRACT_Y];
    int side[MAX_AXES * MAX_FACTORS];
    int fastest = -1;
    for (int l = 0; l < b->nest.n_loops; l++) {
        int i = index_of_loop(b, *nest_val(&b->nest, l));
        if (i < 0)
            return false;
        bool in_x = map_has(x, i), in_y = map_has(y, i);
        side[l] = in_x && in_y ? 2 : in_x ? XMAP : YMAP;
        if (side[l] != 2)
            fastest = side[l];
    }
    b->a_map = fastest == XMAP ? YMAP : XMAP;
    for (int l = 0; l < b->nest.n_loops; l++)
        b->role[l] = side[l] == 2 ? K_B : side[l] == b->a_map ? K_M : K_N;
    return true;
}

/* A kernel has so many loops of each role; with fewer cuts, or none, these are as many as axes. */
static bool con_fits(const ConBuild *b)
{
    int n[4] = {0};
    for (int l = 0; l < b->nest.n_loops; l++)
        n[b->role[l]]++;
    for (int s = 0; s < b->n_index - b->n_out; s++)
        n[K_K] += b->sum[s].extent == 1 ? 0 : b->sum[s].n;
    return n[K_B] <= K_MAX_DIMS && n[K_M] <= K_MAX_DIMS && n[K_N] <= K_MAX_DIMS &&
           n[K_K] <= K_MAX_DIMS;
}

static void con_dims(ConBuild *b, Kernel *k)
{
    Val old[MAX_AXES * MAX_FACTORS], now[MAX_AXES * MAX_FACTORS];
    for (int l = 0; l < b->nest.n_loops; l++)
        old[l] = *nest_val(&b->nest, l);
    for (int r = K_B; r <= K_N; r++)
        for (int l = 0; l < b->nest.n_loops; l++)
            if (b->role[l] == r) {
                int a = b->nest.loop[l].axis, f = b->nest.loop[l].factor;
                now[l] = k_dim(k, (KRole)r, b->nest.axis[a].factor[f]);
            }
    for (int a = 0; a < b->n_out; a++) {
        KAff x = k_aff(b->index[a].base);
        for (int i = 0; i < b->index[a].n; i++)
            for (int l = 0; l < b->nest.n_loops; l++)
                if (old[l] == b->index[a].t[i].v)
                    x = k_aff_add(x, k_aff_val(now[l], b->index[a].t[i].coef));
        b->index[a] = x;
    }
    for (int l = 0; l < b->nest.n_loops; l++)
        *nest_val(&b->nest, l) = now[l];
    for (int s = 0; s < b->n_index - b->n_out; s++) {
        Axis *ax = &b->sum[s];
        for (int f = 0; f < ax->n; f++)
            ax->loop[f] = ax->extent == 1 ? 0 : k_dim(k, K_K, ax->factor[f]);
        b->index[b->n_out + s] = axis_index(ax);
    }
}

/* Halves are multiplied and added in f32, and the sum is rounded once. */
static DType chain_type(const ConBuild *b)
{
    return type_of(b->c->g, b->con)->dtype == F64 ? F64 : F32;
}

/* Is there an index that only this operand has? */
static bool con_is_matrix(const ConBuild *b, int map)
{
    const Attr *at = node(b->c->g, b->con)->attr;
    bool own = false;
    for (int i = 0; i < b->n_out; i++)
        own = own || !map_has(&at[map == XMAP ? CONTRACT_Y : CONTRACT_X], i);
    return own;
}

/* Whether the chain goes in pairs: from what the graph says alone, for bits depend on it, and not
 * from extents, which chunks and micro-batches change. Where an operand has no index of its own
 * (a vector, a window of one channel), each element of the other is met once: that is memory's
 * time, and no work for a tile. */
static bool con_pairs(const ConBuild *b)
{
    const Graph *g = b->c->g;
    bool halves = type_of(g, arg(g, b->con, 0))->dtype == BF16 &&
                  type_of(g, arg(g, b->con, 1))->dtype == BF16;
    return b->c->caps->bf16_pairs && halves && chain_type(b) == F32 && con_is_matrix(b, XMAP) &&
           con_is_matrix(b, YMAP);
}

static Val con_operand(ConBuild *b, int map)
{
    const Graph *g = b->c->g;
    const Attr *m = &node(g, b->con)->attr[CONTRACT_X + map];
    Ref r = arg(g, b->con, map);
    KAff idx[MAX_RANK];
    for (int d = 0; d < m->n; d++) {
        idx[d] = k_aff(m->map[d].base);
        for (int i = 0; i < m->map[d].n; i++) {
            KAff t = k_aff_scale(b->index[m->map[d].index[i]], m->map[d].coef[i]);
            idx[d] = k_aff_add(idx[d], t);
        }
    }
    elem_forget(&b->e, 0);
    Val v = elem_at_bounded(&b->e, r, idx, 0);
    return b->e.trouble != FINE ? 0 : con_pairs(b) ? v : k_cast(b->e.k, chain_type(b), v);
}

bool contract_in_leaves(int64_t results, int64_t terms)
{
    return results <= LEAF_OUT_MAX && terms >= LEAF_K_MIN;
}

/* Long sums with few results are cut, so that lanes can share them. From shapes alone. */
static int64_t con_leaf(const ConBuild *b)
{
    int64_t k = 1, out = type_elems(type_of(b->c->g, b->con));
    for (int s = 0; s < b->n_index - b->n_out; s++)
        k *= b->sum[s].extent;
    if (!contract_in_leaves(out, k))
        return 0;
    int64_t leaf = (k + LEAVES - 1) / LEAVES;
    leaf = (leaf + 15) / 16 * 16;
    return leaf < LEAF_MIN ? LEAF_MIN : leaf;
}

static void con_store(ConBuild *b, int i)
{
    const Graph *g = b->c->g;
    const GroupOut *o = &b->gr->out.at[i];
    Ref r = out_element(o);
    const Type *t = type_of(g, r);
    KAff idx[MAX_RANK];
    if (r == b->con)
        memcpy(idx, b->index, sizeof(KAff) * (size_t)b->n_out);
    else
        nest_index(&b->nest, t, idx);
    Val v = elem_at(&b->e, r, idx);
    if (b->e.trouble != FINE)
        return;
    int64_t elems = type_elems(type_of(g, o->ref));
    int buf = elem_out_buffer(&b->e, o->ref, i, t->dtype, elems);
    if (o->all != NONE)
        k_all(b->e.k, buf, v);
    else
        k_store(b->e.k, buf, elem_linear(t, idx), v);
}

/* The one DIM of its role that index i is, or 0. */
static Val con_dim(const ConBuild *b, int i, int64_t extent)
{
    const KAff *x = &b->index[i];
    const Kernel *k = b->e.k;
    if (x->n != 1 || x->base != 0 || x->t[0].coef != 1)
        return 0;
    const KInst *d = &k->inst.at[x->t[0].v];
    return k->con.n[d->aux] == 1 && d->imm.i == extent && d->aux != K_B ? x->t[0].v : 0;
}

/* Where columns of an operand are hidden: no terms from them, and where they are rows or columns
 * of the result, sums of no terms. */
static void con_limit(ConBuild *b)
{
    const Graph *g = b->c->g;
    for (int map = 0; map < 2 && b->c->tails != NULL; map++) {
        const Attr *m = &node(g, b->con)->attr[CONTRACT_X + map];
        const MapDim *last = m->n > 0 ? &m->map[m->n - 1] : NULL;
        bool plain = last != NULL && last->n == 1 && last->base == 0 && last->coef[0] == 1;
        if (!plain || !tail_is(b->c->tails, arg(g, b->con, map), 0))
            continue;
        Val d = con_dim(b, last->index[0], b->c->tails->extent);
        if (d != 0)
            elem_limit(&b->e, d, last->index[0] < b->n_out ? K_ZERO : K_LIMITED);
    }
}

static Trouble con_build(ConBuild *b, const char *name)
{
    const Graph *g = b->c->g;
    if (!con_roles(b) || !con_fits(b))
        return WANTS_STORE;
    Kernel *k = kernel_new(b->c->scratch, K_CONTRACT, name);
    elem_init(&b->e, k, g, b->c->scratch, b->c->stored);
    b->e.tails = b->c->tails;
    con_dims(b, k);
    k_section_a(k);
    Val va = con_operand(b, b->a_map);
    if (b->e.trouble != FINE)
        return b->e.trouble;
    k_section_b(k, va);
    Val vb = con_operand(b, 1 - b->a_map);
    if (b->e.trouble != FINE)
        return b->e.trouble;
    elem_forget(&b->e, 0);
    Val sum = k_epilogue(k, vb, chain_type(b), con_leaf(b));
    if (con_pairs(b))
        k_in_pairs(k);
    b->e.sum = k_cast(k, type_of(g, b->con)->dtype, sum);
    b->e.sum_of = b->con;
    set_here(b->c, b->gr, &b->e);
    for (int i = 0; i < b->gr->out.n && b->e.trouble == FINE; i++)
        con_store(b, i);
    if (b->e.trouble != FINE)
        return b->e.trouble;
    con_limit(b);
    k_finish(k);
    return FINE;
}

static bool con_cut(ConBuild *b)
{
    return axis_cut(b->nest.axis, b->nest.n_axes, b->e.cut_loop, b->e.cut_by) ||
           axis_cut(b->sum, b->n_index - b->n_out, b->e.cut_loop, b->e.cut_by);
}

static Trouble lower_contract(Clusters *c, Group *gr, Ref *store_first)
{
    ConBuild b = {.c = c, .gr = gr, .con = gr->anchor};
    const Attr *at = node(c->g, gr->anchor)->attr;
    b.n_out = rank(c->g, gr->anchor);
    b.n_index = at[CONTRACT_EXTENT].n;
    for (int s = b.n_out; s < b.n_index; s++)
        axis_init(&b.sum[s - b.n_out], at[CONTRACT_EXTENT].ints[s]);
    nest_init(&b.nest, type_of(c->g, gr->main));
    const char *name = group_name(c, gr);
    for (int i = 0; i < MAX_RESTARTS; i++) {
        Trouble t = con_trace(&b);
        if (t == FINE)
            t = con_build(&b, name);
        if (t == FINE) {
            keep_operands(gr, c->arena, &b.e);
            gr->kernel = kernel_coalesce(c->arena, c->scratch, b.e.k);
            return FINE;
        }
        *store_first = b.e.store_first;
        if (t != WANTS_CUT || !con_cut(&b))
            return WANTS_STORE;
    }
    return WANTS_STORE;
}

/* ---- opaque ops -------------------------------------------------------- */

static Trouble lower_opaque(Clusters *c, Group *gr, Ref *store_first)
{
    Elem e;
    const Op *op = optab[op_of(c->g, gr->anchor)];
    Kernel *k = kernel_new(c->arena, K_LOOP, op->name);
    elem_init(&e, k, c->g, c->scratch, c->stored);
    e.tails = c->tails;
    e.here = &gr->anchor;
    e.n_here = 1;
    int out[8];
    assert(gr->out.n <= 8);
    for (int i = 0; i < gr->out.n; i++) {
        const Type *t = type_of(c->g, gr->out.at[i].ref);
        out[i] = elem_out_buffer(&e, gr->out.at[i].ref, i, t->dtype, type_elems(t));
    }
    op->kernel(&e, gr->anchor, out);
    *store_first = e.store_first;
    if (e.trouble != FINE)
        return WANTS_STORE;
    k_finish(k);
    keep_operands(gr, c->arena, &e);
    gr->kernel = k;
    return FINE;
}

static Trouble lower(Clusters *c, Group *gr, Ref *store_first)
{
    *store_first = NONE;
    switch (gr->kind) {
    case GROUP_LOOP:
        return lower_loops(c, gr, store_first);
    case GROUP_CONTRACT:
        return lower_contract(c, gr, store_first);
    case GROUP_OPAQUE:
        return lower_opaque(c, gr, store_first);
    case GROUP_SCAN:
        break;
    }
    return FINE;
}

Trouble group_lower(Clusters *c, Group *gr, Ref *store_first)
{
    ArenaMark mark = arena_mark(c->scratch);
    Trouble t = lower(c, gr, store_first);
    arena_reset(c->scratch, mark);
    return t;
}

void trace_node(const Clusters *c, Ref r, const Ref *here, int n_here, Trace *t)
{
    Nest ns;
    nest_init(&ns, type_of(c->g, r));
    memset(t, 0, sizeof *t);
    for (int i = 0; i < MAX_RESTARTS; i++) {
        Elem e;
        Kernel *k = kernel_new(c->scratch, K_LOOP, "trace");
        elem_init(&e, k, c->g, c->scratch, c->stored);
        e.here = here;
        e.n_here = n_here;
        nest_number(&ns);
        for (int l = 0; l < ns.n_loops; l++)
            nest_open(&ns, k, l);
        elem_trace(&e);
        KAff idx[MAX_RANK];
        nest_index(&ns, type_of(c->g, r), idx);
        elem_at(&e, r, idx);
        t->trouble = e.trouble;
        t->store_first = e.store_first;
        t->kernel = k;
        t->n_axes = ns.n_axes;
        t->n_loops = ns.n_loops;
        memcpy(t->axis, ns.axis, sizeof ns.axis);
        t->request.at = e.request.at;
        t->request.n = e.request.n;
        if (e.trouble != WANTS_CUT || !axis_cut(ns.axis, ns.n_axes, e.cut_loop, e.cut_by))
            return;
    }
}
