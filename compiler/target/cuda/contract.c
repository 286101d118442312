/* Contractions as CUDA C++: panels in shared memory, a part of the tile in each thread. */
#include <assert.h>
#include "cuda.h"
#include "tile.h"

enum { SHORT_UNROLL = 8 };

typedef struct Emit {
    Printer *p;
    const KContract *con;
    Tile t;
    const char *type; /* of the sum */
} Emit;

static bool has_leaves(const Emit *e)
{
    return e->t.leaf < e->t.extent[K_K];
}

/* The only sub-index of a role that has this reach, or 0. */
static Val reaching(const Emit *e, KRole role, KReach reach)
{
    if (e->con->n[role] != 1)
        return 0;
    Val v = e->con->dim[role][0];
    return e->p->k->inst.at[v].reach == (uint8_t)reach ? v : 0;
}

/* Where the role ends. */
static const char *end_of(Emit *e, KRole role)
{
    long long n = (long long)e->t.extent[role];
    return reaching(e, role, K_LIMITED) != 0
               ? cu_printf(e->p, "(limit < %lld ? limit : %lld)", n, n)
               : cu_printf(e->p, "%lld", n);
}

/* ---- indices ------------------------------------------------------------------------------- */

/* The sub-indices of the role from the flat index `at`. */
static void decode(Emit *e, KRole role, const char *at)
{
    int64_t inner = 1;
    const char *text[K_MAX_DIMS];
    int n = e->con->n[role];
    for (int i = n; i-- > 0;) {
        int64_t extent = e->p->k->inst.at[e->con->dim[role][i]].imm.i;
        const char *by = inner > 1 ? cu_printf(e->p, " / %lld", (long long)inner) : "";
        const char *of =
            i > 0 ? cu_printf(e->p, " %% %lld", (long long)(extent > 0 ? extent : 1)) : "";
        text[i] = cu_printf(e->p, "%s%s%s", at, by, of);
        inner *= extent > 0 ? extent : 1;
    }
    for (int i = 0; i < n; i++)
        cu_line(e->p, "const %s %s = %s;", cu_index_type(e->p), e->p->name[e->con->dim[role][i]],
                text[i]);
}

/* The block's tile: where it begins, and its b. */
static void emit_tile(Emit *e)
{
    const Tile *t = &e->t;
    Printer *p = e->p;
    const char *index = cu_index_type(p), *by_n = "", *by_m = "";
    cu_line(p, "const int row_thread = threadIdx.x / %d, col_thread = threadIdx.x %% %d;", t->cols,
            t->cols);
    if (t->tiles_n > 1)
        by_n = cu_printf(p, " / %lld", (long long)t->tiles_n);
    cu_line(p, "const %s tile = blockIdx.x;", index);
    if (t->tiles_n > 1)
        cu_line(p, "const %s n_from = tile %% %lld * %d;", index, (long long)t->tiles_n, t->n);
    else
        cu_line(p, "const %s n_from = 0;", index);
    if (t->tiles_m > 1)
        cu_line(p, "const %s m_from = tile%s %% %lld * %d;", index, by_n, (long long)t->tiles_m,
                t->m);
    else
        cu_line(p, "const %s m_from = 0;", index);
    int64_t tiles = t->tiles_m * t->tiles_n;
    by_m = tiles > 1 ? cu_printf(p, "tile / %lld", (long long)tiles) : "tile";
    decode(e, K_B, by_m);
}

/* ---- sections ----------------------------------------------------------------------------------
 */

static void emit_section(Emit *e, Val from, Val to)
{
    for (Val v = from; v < to; v++) {
        const KInst *i = &e->p->k->inst.at[v];
        if (i->op == KI_STORE)
            cu_store(e->p, i->aux, i->a, NULL);
        else if (i->op != KI_CONST && i->op != KI_SUM)
            cu_line(e->p, "const %s v%u = %s;", cu_type((DType)i->dtype), v,
                    cu_expression(e->p, v));
    }
}

/* One operand's panel: `wide` elements by t.k, all of them computed by all of the threads. */
static void emit_panel(Emit *e, bool a)
{
    const Tile *t = &e->t;
    const KContract *c = e->con;
    Printer *p = e->p;
    int wide = a ? t->m : t->n, turns = a ? t->a_turns : t->b_turns, inner;
    bool along_k = a ? t->a_along_k : t->b_along_k;
    const char *role = a ? "m" : "n", *index = cu_index_type(p);
    inner = along_k ? t->k : wide;
    if (turns > 0)
        cu_line(p, "#pragma unroll %d", turns);
    cu_open(p, "for (int e = threadIdx.x; e < %d; e += %d)", wide * t->k, t->rows * t->cols);
    cu_line(p,
            along_k ? "const int at = e / %d, depth = e %% %d;"
                    : "const int at = e %% %d, depth = e / %d;",
            inner, inner);
    cu_line(p, "const %s %s_at = %s_from + at, k_at = k_from + depth;", index, role, role);
    cu_open(p, "if (%s_at < %s && k_at < k_end)", role, end_of(e, a ? K_M : K_N));
    decode(e, a ? K_M : K_N, a ? "m_at" : "n_at");
    decode(e, K_K, "k_at");
    emit_section(e, a ? c->a_from : c->b_from, a ? c->a_to : c->b_to);
    cu_line(p, "%s[depth][at] = %s;", a ? "left" : "right", cu_operand(p, a ? c->a : c->b));
    cu_close(p);
    cu_close(p);
}

/* The chain of all k of a panel: as many as there are, no more. A panel that is the only one is no
 * loop when it is written out, and ptxas would load all of it before the first product. */
static void emit_multiply(Emit *e, const char *head, bool whole)
{
    if (e->t.extent[K_K] <= e->t.k)
        cu_line(e->p, "#pragma unroll %d", SHORT_UNROLL);
    else if (whole)
        cu_line(e->p, "#pragma unroll");
    cu_line(e->p, "%s", head);
    cu_line(e->p,
            "    multiply(chain, &left[depth][row_thread * %d], &right[depth][col_thread * %d]);",
            e->t.each_m, e->t.each_n);
}

static void emit_panels(Emit *e, const char *from, const char *end, bool whole)
{
    Printer *p = e->p;
    const char *index = cu_index_type(p);
    cu_open(p, "for (%s k_from = %s; k_from < %s; k_from += %d)", index, from, end, e->t.k);
    cu_line(p, "const %s k_end = %s;", index, end);
    emit_panel(e, true);
    emit_panel(e, false);
    cu_line(p, "__syncthreads();");
    const char *full = cu_printf(p, "for (int depth = 0; depth < %d; depth++)", e->t.k);
    if (!whole)
        cu_line(p, "if (k_from + %d <= k_end)", e->t.k);
    p->depth += !whole;
    emit_multiply(e, full, true);
    p->depth -= !whole;
    if (!whole) {
        cu_line(p, "else");
        p->depth++;
        emit_multiply(e, "for (int depth = 0; depth < k_end - k_from; depth++)", false);
        p->depth--;
    }
    cu_line(p, "__syncthreads();");
    cu_close(p);
}

static void emit_leaves(Emit *e)
{
    Printer *p = e->p;
    const Tile *t = &e->t;
    const char *index = cu_index_type(p), *end = end_of(e, K_K);
    cu_open(p, "for (%s leaf = 0; leaf < %s; leaf += %lld)", index, end, (long long)t->leaf);
    cu_line(p, "const %s leaf_end = leaf + %lld < %s ? leaf + %lld : %s;", index,
            (long long)t->leaf, end, (long long)t->leaf, end);
    emit_panels(e, "leaf", "leaf_end", false);
    cu_line(p, "end_leaf(total, chain, leaf == 0);");
    cu_close(p);
}

/* ---- the epilogue
 * -------------------------------------------------------------------------------- */

static void emit_sum(Emit *e)
{
    const char *sum = has_leaves(e) ? "total[row][col]" : "chain[row][col]";
    if (reaching(e, K_M, K_ZERO) != 0)
        sum = cu_printf(e->p, "m_at >= limit ? 0 : %s", sum);
    if (reaching(e, K_N, K_ZERO) != 0)
        sum = cu_printf(e->p, "n_at >= limit ? 0 : %s", sum);
    cu_line(e->p, "const %s v%u = %s;", e->type, e->con->e_from, sum);
}

static void emit_epilogue(Emit *e)
{
    const Tile *t = &e->t;
    Printer *p = e->p;
    const char *index = cu_index_type(p);
    assert(e->con->all == 0 && "Caps.tells_from");
    cu_line(p, "#pragma unroll");
    cu_open(p, "for (int row = 0; row < %d; row++)", t->each_m);
    cu_line(p, "#pragma unroll");
    cu_open(p, "for (int col = 0; col < %d; col++)", t->each_n);
    cu_line(p, "const %s m_at = m_from + row_thread * %d + row;", index, t->each_m);
    cu_line(p, "const %s n_at = n_from + col_thread * %d + col;", index, t->each_n);
    cu_line(p, "if (m_at >= %s || n_at >= %s)", end_of(e, K_M), end_of(e, K_N));
    cu_line(p, "    continue;");
    decode(e, K_M, "m_at");
    decode(e, K_N, "n_at");
    emit_sum(e);
    emit_section(e, e->con->e_from, e->con->e_to);
    cu_close(p);
    cu_close(p);
}

Launch cu_contraction(Printer *p, const char *name, bool guarded)
{
    Emit e = {.p = p, .con = &p->k->con, .t = cu_plan_tile(p->k)};
    const Tile *t = &e.t;
    e.type = cu_type(e.con->dtype);
    int threads = t->rows * t->cols, left = t->m + 4, right = t->n + 4;
    cu_line(
        p, "/* %lld of %lld x %lld, sums of %lld; a block has %d x %d of them, a thread %d x %d */",
        (long long)t->extent[K_B], (long long)t->extent[K_M], (long long)t->extent[K_N],
        (long long)t->extent[K_K], t->m, t->n, t->each_m, t->each_n);
    cu_kernel_head(p, name, cu_printf(p, "%d, %d", threads, t->blocks), guarded);
    cu_line(p, "SHARED(%s, left, [%d][%d]);", e.type, t->k, left);
    cu_line(p, "SHARED(%s, right, [%d][%d]);", e.type, t->k, right);
    cu_kernel_begin(p, guarded);
    emit_tile(&e);
    cu_line(p, "%s chain[%d][%d] = {};", e.type, t->each_m, t->each_n);
    if (has_leaves(&e)) {
        cu_line(p, "%s total[%d][%d] = {};", e.type, t->each_m, t->each_n);
        emit_leaves(&e);
    } else {
        bool whole = t->extent[K_K] % t->k == 0 && reaching(&e, K_K, K_LIMITED) == 0;
        emit_panels(&e, "0", end_of(&e, K_K), whole);
    }
    emit_epilogue(&e);
    cu_close(p);
    return (Launch){.blocks = t->extent[K_B] * t->tiles_m * t->tiles_n,
                    .threads = threads,
                    .shared_bytes = (int64_t)t->k * (left + right) * dtype_bytes(e.con->dtype),
                    .resident = t->blocks};
}
