/* Contractions of the interpreter, in tiles: a panel of A and one of B are
 * computed through their sections, then multiplied. The chain over k is
 * resumed from tile to tile, so tiles do not show in the result. */
#include <string.h>
#include "interp.h"

/* One tile's panels, of as many rows as the largest tile has. Elements are float or double by
 * `type`; tangents double. */
typedef struct Tile {
    RegType type;
    void *a, *b;     /* [m][TILE_K], [k][TILE_N] */
    void *acc, *sum; /* [m][TILE_N]: the open leaf, the finished ones */
    double *da, *db, *dacc, *dsum;
    int64_t b_at, m_at, n_at, k_at; /* first flat index of each role */
    int m, n, k;                    /* extents */
} Tile;

static int64_t extent_of(const Kernel *k, KRole role)
{
    int64_t n = 1;
    for (int i = 0; i < k->con.n[role]; i++)
        n *= k->inst.at[k->con.dim[role][i]].imm.i;
    return n;
}

/* The sub-indices of flat index at, at+1, ... in n lanes. */
static void set_dims(KCode *c, KRole role, int64_t at, int n)
{
    const KContract *con = &c->k->con;
    int64_t inner = 1;
    for (int i = con->n[role] - 1; i >= 0; i--) {
        Val v = con->dim[role][i];
        int64_t extent = c->k->inst.at[v].imm.i;
        int64_t *to = c->reg[c->reg_of[v]].i;
        for (int l = 0; l < n; l++)
            to[l] = (inner == 1 ? at + l : (at + l) / inner) % extent;
        inner *= extent;
    }
}

/* Where the role's dim ends, or where its sums are 0 from. */
static int64_t end_of(const Machine *m, KRole role, KReach reach)
{
    const Kernel *k = m->code->k;
    int64_t n = extent_of(k, role);
    bool limited = k->con.n[role] > 0 && k->inst.at[k->con.dim[role][0]].reach == (uint8_t)reach;
    return limited && m->limit < n ? m->limit : n;
}

static size_t elem_size(RegType t)
{
    return t == TF ? sizeof(float) : sizeof(double);
}

/* The first n lanes of a register to element `at` of a panel. */
static void copy_out(const Tile *t, void *panel, int at, const Reg *r, int n)
{
    size_t each = elem_size(t->type);
    memcpy((char *)panel + (size_t)at * each, r, (size_t)n * each);
}

static void panel_a(Machine *m, Tile *t)
{
    KCode *c = m->code;
    for (int k0 = 0; k0 < t->k; k0 += STRIP) {
        int n = t->k - k0 < STRIP ? t->k - k0 : STRIP;
        set_dims(c, K_K, t->k_at + k0, n);
        for (int i = 0; i < t->m; i++) {
            set_dims(c, K_M, t->m_at + i, 1);
            interp_ops(m, c->section[0], c->section[1], n);
            copy_out(t, t->a, i * TILE_K + k0, &c->reg[c->reg_a], n);
            if (t->da != NULL)
                memcpy(t->da + i * TILE_K + k0, &c->tan[c->reg_a], (size_t)n * sizeof(double));
        }
    }
}

static void panel_b(Machine *m, Tile *t)
{
    KCode *c = m->code;
    for (int n0 = 0; n0 < t->n; n0 += STRIP) {
        int n = t->n - n0 < STRIP ? t->n - n0 : STRIP;
        set_dims(c, K_N, t->n_at + n0, n);
        for (int p = 0; p < t->k; p++) {
            set_dims(c, K_K, t->k_at + p, 1);
            interp_ops(m, c->section[1], c->section[2], n);
            copy_out(t, t->b, p * TILE_N + n0, &c->reg[c->reg_b], n);
            if (t->db != NULL)
                memcpy(t->db + p * TILE_N + n0, &c->tan[c->reg_b], (size_t)n * sizeof(double));
        }
    }
}

static void multiply(Tile *t, bool pairs)
{
    if (t->type == TF && pairs)
        interp_chain_pairs(t->a, t->b, t->acc, t->m, t->n, t->k);
    else if (t->type == TF)
        interp_chain_f32(t->a, t->b, t->acc, t->m, t->n, t->k);
    else
        interp_chain_f64(t->a, t->b, t->acc, t->m, t->n, t->k);
    if (t->da != NULL) { /* d(a b) = da b + a db */
        interp_chain_f64(t->da, t->b, t->dacc, t->m, t->n, t->k);
        interp_chain_f64(t->a, t->db, t->dacc, t->m, t->n, t->k);
    }
}

static void clear(Tile *t, void *acc, double *dacc)
{
    memset(acc, 0, (size_t)t->m * TILE_N * elem_size(t->type));
    if (dacc != NULL)
        memset(dacc, 0, (size_t)t->m * TILE_N * sizeof(double));
}

/* Adds the finished leaf to the sum; the first leaf is the sum. */
static void close_leaf(Tile *t, bool first)
{
    float *sf = t->sum, *af = t->acc;
    double *sd = t->sum, *ad = t->acc;
    for (int i = 0; i < t->m * TILE_N; i++) {
        if (t->type == TF)
            sf[i] = first ? af[i] : sf[i] + af[i];
        else
            sd[i] = first ? ad[i] : sd[i] + ad[i];
        if (t->dsum != NULL)
            t->dsum[i] = first ? t->dacc[i] : t->dsum[i] + t->dacc[i];
    }
    clear(t, t->acc, t->dacc);
}

/* All of k for the tile's rows and columns. */
static void sum_tile(Machine *m, Tile *t, int64_t k_extent, int64_t leaf)
{
    if (leaf <= 0)
        leaf = k_extent;
    clear(t, t->acc, t->dacc);
    clear(t, t->sum, t->dsum);
    for (int64_t from = 0; from < k_extent; from += leaf) {
        int64_t to = leaf < k_extent - from ? from + leaf : k_extent;
        for (t->k_at = from; t->k_at < to; t->k_at += t->k) {
            t->k = to - t->k_at < TILE_K ? (int)(to - t->k_at) : TILE_K;
            panel_a(m, t);
            panel_b(m, t);
            multiply(t, m->code->k->con.pairs);
        }
        close_leaf(t, from == 0);
    }
}

/* Sums from row m, or column n, on are of no terms. */
static void clear_from(Tile *t, int64_t m, int64_t n)
{
    size_t each = elem_size(t->type);
    for (int i = 0; i < t->m; i++) {
        int64_t from = t->m_at + i >= m ? 0 : n - t->n_at;
        from = from < 0 ? 0 : from;
        if (from >= t->n)
            continue;
        size_t at = (size_t)(i * TILE_N + from), count = (size_t)(t->n - from);
        memset((char *)t->sum + at * each, 0, count * each);
        if (t->dsum != NULL)
            memset(t->dsum + at, 0, count * sizeof(double));
    }
}

static void set_all(Machine *m, bool to)
{
    void *data = m->mem[m->code->k->con.all_buf].data;
    if (m->code->mode == K_EXACT)
        *(uint8_t *)data = to;
    else
        *(int64_t *)data = to;
}

static void epilogue(Machine *m, const Tile *t)
{
    KCode *c = m->code;
    size_t each = elem_size(t->type);
    for (int n0 = 0; n0 < t->n; n0 += STRIP) {
        int n = t->n - n0 < STRIP ? t->n - n0 : STRIP;
        set_dims(c, K_N, t->n_at + n0, n);
        for (int i = 0; i < t->m; i++) {
            size_t at = (size_t)(i * TILE_N + n0);
            set_dims(c, K_M, t->m_at + i, 1);
            if (c->reg_sum >= 0)
                memcpy(&c->reg[c->reg_sum], (char *)t->sum + at * each, (size_t)n * each);
            if (c->reg_sum >= 0 && t->dsum != NULL)
                memcpy(&c->tan[c->reg_sum], t->dsum + at, (size_t)n * sizeof(double));
            interp_ops(m, c->section[2], c->section[3], n);
            for (int l = 0; c->reg_all >= 0 && l < n; l++)
                if (c->reg[c->reg_all].i[l] == 0)
                    set_all(m, false);
        }
    }
}

/* For so many rows and terms: most contractions of tests are far smaller than a tile. */
static Tile new_tile(RegType type, bool dual, int64_t rows, int64_t terms, Arena *scratch)
{
    size_t each = elem_size(type);
    size_t m = rows < TILE_M ? (size_t)rows : TILE_M, k = terms < TILE_K ? (size_t)terms : TILE_K;
    Tile t = {.type = type,
              .a = arena_array(scratch, m * TILE_K, each),
              .b = arena_array(scratch, k * TILE_N, each),
              .acc = arena_array(scratch, m * TILE_N, each),
              .sum = arena_array(scratch, m * TILE_N, each)};
    if (dual) {
        t.da = NEW_ARRAY(scratch, double, m *TILE_K);
        t.db = NEW_ARRAY(scratch, double, k *TILE_N);
        t.dacc = NEW_ARRAY(scratch, double, m *TILE_N);
        t.dsum = NEW_ARRAY(scratch, double, m *TILE_N);
    }
    return t;
}

void interp_contract(Machine *m, Arena *scratch)
{
    KCode *c = m->code;
    const Kernel *k = c->k;
    int64_t B = extent_of(k, K_B), K = end_of(m, K_K, K_LIMITED);
    int64_t M = end_of(m, K_M, K_LIMITED), N = end_of(m, K_N, K_LIMITED);
    int64_t zero_m = end_of(m, K_M, K_ZERO), zero_n = end_of(m, K_N, K_ZERO);
    Tile t = new_tile(interp_type(c->mode, k->con.dtype), c->mode == K_DUAL, M, K, scratch);
    if (c->reg_all >= 0)
        set_all(m, true);
    for (t.b_at = 0; t.b_at < B; t.b_at++) {
        set_dims(c, K_B, t.b_at, 1);
        for (t.m_at = 0; t.m_at < M; t.m_at += TILE_M) {
            t.m = M - t.m_at < TILE_M ? (int)(M - t.m_at) : TILE_M;
            for (t.n_at = 0; t.n_at < N; t.n_at += TILE_N) {
                t.n = N - t.n_at < TILE_N ? (int)(N - t.n_at) : TILE_N;
                sum_tile(m, &t, K, k->con.leaf);
                clear_from(&t, zero_m, zero_n);
                epilogue(m, &t);
            }
        }
    }
}
