/* The operands of a contraction: how their indices move, whether they are a matrix in memory, and
 * what packing them takes. */
#include "con.h"

enum { LINE = 64 }; /* bytes of a cache line */

static bool within_bounds(const Kernel *k, const KAccess *a)
{
    for (int b = 0; b < a->n_bounds; b++) {
        int64_t lo, hi;
        if (!k_aff_range(k, &a->bound[b].e, &lo, &hi) || lo < a->bound[b].lo ||
            hi >= a->bound[b].hi)
            return false;
    }
    return true;
}

static bool indirect(const Kernel *k, const KAff *x)
{
    for (int i = 0; i < x->n; i++)
        if (k->inst.at[x->t[i].v].op != KI_DIM)
            return true;
    return false;
}

/* Runs of few whole lines that are all as far from the next one. */
static bool is_panels(const Side *s, const Walk *w, const KAff *at, int64_t *jump)
{
    enum { MOST = 4 * LINE };
    if (w->n < 2 || w->run * s->es % LINE != 0 || w->run * s->es > MOST)
        return false;
    *jump = con_coef(at, w->dim[w->n - 2]);
    for (int i = w->n - 2; i > 0; i--)
        if (con_coef(at, w->dim[i - 1]) != con_coef(at, w->dim[i]) * w->extent[i])
            return false;
    return true;
}

static void find_plain(const Kernel *k, Side *s)
{
    const KInst *i = &k->inst.at[s->value];
    DType type = k->con.pairs ? BF16 : k->con.dtype;
    s->es = dtype_bytes(type);
    if (i->op != KI_LOAD || i->dtype != type)
        return;
    const KAccess *a = &k->access.at[i->aux];
    s->regular = !indirect(k, &a->at) && within_bounds(k, a);
    bool all_free = s->free.run == s->free.total, all_k = s->k.run == s->k.total;
    s->plain = s->regular && all_free && all_k;
    s->access = i->aux;
    s->rs = s->free.lane != 0 ? con_coef(&a->at, s->free.lane) : 0;
    s->ks = s->k.lane != 0 ? con_coef(&a->at, s->k.lane) : 0;
    if (s->regular && all_k && s->rs == 1 && s->ks == s->free.run &&
        is_panels(s, &s->free, &a->at, &s->jump))
        s->panel = s->free.run;
    if (s->regular && all_free && s->ks == 1 && s->rs == s->k.run &&
        is_panels(s, &s->k, &a->at, &s->k_jump))
        s->k_panel = s->k.run;
}

double con_vector_cycles(const ConPlan *p, const Side *s, Val lane)
{
    const Kernel *k = p->k;
    double sum = 0;
    for (Val v = s->from; v < s->to; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op != KI_LOAD) {
            sum += i->op == KI_CONST ? 0 : 1;
            continue;
        }
        const KAccess *a = &k->access.at[i->aux];
        const KAff *x = &a->at;
        int64_t c = con_coef(x, lane);
        bool pairs = c == 2 && a->n_bounds == 0 && dtype_bytes((DType)i->dtype) >= 4;
        sum += c == 0 || c == 1 ? 1 : pairs ? 4 : 2 * p->vl;
        for (int t = 0; t < x->n; t++) {
            const KInst *j = &k->inst.at[x->t[t].v];
            if (j->op == KI_LOAD && con_coef(&k->access.at[j->aux].at, lane) != 0)
                return -1;
        }
    }
    return sum;
}

int con_open_bounds(const Kernel *k, const Side *s)
{
    int n = 0;
    for (Val v = s->from; v < s->to; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op != KI_LOAD || within_bounds(k, &k->access.at[i->aux]))
            continue;
        n += k->access.at[i->aux].n_bounds;
    }
    return n;
}

/* Per element: a load and a store for each vector along the width, twice where it
 * reaches over the end of a run. A vector of pairs is stored for two loads, a shift and an or. */
static double row_cycles(const ConPlan *p, const Side *s, int width, double load)
{
    int64_t run = s->free.run;
    double vectors = (double)((width + p->vl - 1) / p->vl);
    double one = vectors * (p->pairs ? 1.2 + load : 1.5 + load), crossing = 0;
    if (run < s->free.total)
        crossing = (double)(width - 1) / (double)run;
    return (2 + one * (1 + (crossing > 1 ? 1 : crossing))) / width;
}

/* Instructions of a panel's rows along k, all of them in one block: beyond, LLVM takes seconds. */
static const double most_of_rows = 4096;

/* A load for each row, three shuffles, a store for each k, or pair of it. */
static double k_cycles(const ConPlan *p, const Side *s, int width, double load)
{
    int64_t each = p->pairs ? 2 : 1, along = p->vl * each;
    double groups = (double)((width + p->vl - 1) / p->vl), lanes = p->vl;
    double used = (double)s->k.run / (double)align_up(s->k.run, along);
    double one = width * (0.5 + load) * (double)each + groups * lanes * 4;
    return one / (width * (double)along * used);
}

/* Vectors of pairs along k begin at even k. */
static bool along_k(const ConPlan *p, const Side *s)
{
    return s->k.lane != 0 && s->k.run >= p->vl / 2 &&
           (!p->pairs || s->k.run % 2 == 0 || s->k.run == s->k.total);
}

void con_choose_pack(const ConPlan *p, Side *s, int width)
{
    int bounds = con_open_bounds(p->k, s);
    s->pack = PACK_SCALAR;
    s->pack_cycles = 2 + bounds + con_vector_cycles(p, s, 0);
    bool long_run = s->free.run == s->free.total || s->free.run >= p->vl;
    double load = con_vector_cycles(p, s, s->free.lane);
    if (s->free.lane != 0 && load >= 0 && long_run) {
        double cycles = row_cycles(p, s, width, load + bounds);
        if (cycles < s->pack_cycles) {
            s->pack = PACK_ROW;
            s->pack_cycles = cycles;
        }
    }
    load = con_vector_cycles(p, s, s->k.lane);
    if (along_k(p, s) && load >= 0 && width * load <= most_of_rows) {
        double cycles = k_cycles(p, s, width, load + 2 * bounds);
        if (cycles < s->pack_cycles) {
            s->pack = PACK_K;
            s->pack_cycles = cycles;
        }
    }
}

void con_sides(const Kernel *k, Side *a, Side *b)
{
    const KContract *c = &k->con;
    *a = (Side){.from = c->a_from, .to = c->a_to, .value = c->a};
    *b = (Side){.from = c->b_from, .to = c->b_to, .value = c->b};
    a->free = walk_of(k, K_M, a->from, a->to);
    a->k = walk_of(k, K_K, a->from, a->to);
    b->free = walk_of(k, K_N, b->from, b->to);
    b->k = walk_of(k, K_K, b->from, b->to);
    find_plain(k, a);
    find_plain(k, b);
}
