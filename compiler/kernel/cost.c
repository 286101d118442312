/* The cost of a kernel, counted from its instructions: operations times the
 * iterations of their loops, and for each buffer the distinct elements that its
 * accesses touch. */
#include <math.h>
#include "kernel.h"

/* Operations that one execution of an instruction is worth. */
static double ops_of(const KInst *i)
{
    if (!dtype_is_float((DType)i->dtype))
        return 0;
    switch (i->op) {
    case KI_ADD:
    case KI_SUB:
    case KI_MUL:
    case KI_DIV:
    case KI_SQRT:
    case KI_INTO:
        return 1;
    case KI_FMA:
        return 2;
    default:
        return 0;
    }
}

/* Instructions that compute, whatever their type: draws are integers, and masks comparisons. A
 * division is several. */
static double work_of(const KInst *i)
{
    switch (kop_class((KOp)i->op)) {
    case K_CLASS_UNARY:
    case K_CLASS_BINARY:
    case K_CLASS_TERNARY:
        return i->op == KI_DIV || i->op == KI_SQRT ? 4 : 1;
    default:
        return i->op == KI_INTO ? 1 : 0;
    }
}

static double extent_of(const Kernel *k, KRole role)
{
    double n = 1;
    for (int i = 0; i < k->con.n[role]; i++)
        n *= (double)k_steps(k, &k->inst.at[k->con.dim[role][i]]);
    return n;
}

/* ... with those whose sum is 0. */
static double stored_extent(const Kernel *k, KRole role)
{
    const KInst *i = k->con.n[role] > 0 ? &k->inst.at[k->con.dim[role][0]] : NULL;
    return i != NULL && i->reach == K_ZERO ? (double)i->imm.i : extent_of(k, role);
}

/* Executions of what lies in [from, to) of a contraction: an operand's section
 * counts once for each element, however often a target computes it again. */
static double section_runs(const Kernel *k, Val v)
{
    double b = extent_of(k, K_B), m = extent_of(k, K_M), n = extent_of(k, K_N);
    double kk = extent_of(k, K_K);
    if (v < k->con.a_from)
        return 1;
    if (v >= k->con.e_from)
        return b * stored_extent(k, K_M) * stored_extent(k, K_N);
    return v < k->con.b_from ? b * m * kk : b * kk * n;
}

static bool is_loop(int op)
{
    return op == KI_PAR || op == KI_SEQ || op == KI_RED;
}

/* ---- distinct elements ------------------------------------------------------------ */

typedef struct Stride {
    double step, extent;
} Stride;

/* Distinct values of sum of step * index over a box. Strides are taken from small to
 * large; while the values so far fill a range without gaps wider than one step,
 * overlaps are counted exactly. */
static double distinct(Stride *s, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && s[j].step < s[j - 1].step; j--) {
            Stride t = s[j];
            s[j] = s[j - 1];
            s[j - 1] = t;
        }
    double count = 1, reach = 0, unit = n > 0 ? s[0].step : 1;
    for (int i = 0; i < n; i++) {
        double all = count * s[i].extent, to = reach + s[i].step * (s[i].extent - 1);
        bool dense = count * unit > reach && fmod(s[i].step, unit) == 0;
        if (dense && s[i].step <= reach + unit)
            count = floor(to / unit) + 1; /* still without gaps */
        else
            count = all < to + 1 ? all : to + 1;
        reach = to;
    }
    return count;
}

/* Elements of a buffer that one access touches while it runs `runs` times. */
static double touched(const Kernel *k, const KAccess *a, double runs)
{
    Stride s[K_MAX_TERMS];
    int n = 0;
    double elems = (double)k->buf.at[a->buf].elems, count;
    bool direct = true;
    if (runs == 0)
        return 0;
    for (int i = 0; i < a->at.n; i++) {
        const KInst *t = &k->inst.at[a->at.t[i].v];
        direct = direct && (is_loop(t->op) || t->op == KI_DIM);
        bool loops = is_loop(t->op) || t->op == KI_DIM;
        s[n++] = (Stride){fabs((double)a->at.t[i].coef),
                          (double)(loops && t->reach != K_ZERO ? k_steps(k, t) : t->imm.i)};
    }
    count = direct ? distinct(s, n) : runs;
    count = count < runs ? count : runs;
    return count < elems ? count : elems;
}

/* Whether x and y step alike, whatever the loops, from bases so near that they
 * touch about the same elements. */
static bool alike(const Kernel *k, const KAff *x, const KAff *y)
{
    double span = 1, apart = fabs((double)x->base - (double)y->base);
    if (x->n != y->n)
        return false;
    for (int t = 0; t < x->n; t++) {
        const KInst *i = &k->inst.at[x->t[t].v], *j = &k->inst.at[y->t[t].v];
        if (x->t[t].coef != y->t[t].coef || i->imm.i != j->imm.i)
            return false;
        span += fabs((double)x->t[t].coef) * ((double)i->imm.i - 1);
    }
    return apart < span;
}

/* Whether an earlier access of the kind touches about the same elements. */
static bool counted_before(const Kernel *k, Val v)
{
    const KInst *i = &k->inst.at[v];
    const KAccess *a = &k->access.at[i->aux];
    for (Val u = 1; u < v; u++) {
        const KInst *j = &k->inst.at[u];
        if (j->op != i->op || k->access.at[j->aux].buf != a->buf)
            continue;
        if (alike(k, &a->at, &k->access.at[j->aux].at))
            return true;
    }
    return false;
}

/* Elements of buffer b that instructions of kind op touch. */
static double buffer_elems(const Kernel *k, int b, KOp op, const double *runs)
{
    double sum = 0, elems = (double)k->buf.at[b].elems;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op == op && k->access.at[i->aux].buf == b && !counted_before(k, v))
            sum += touched(k, &k->access.at[i->aux], runs[v]);
    }
    return sum < elems ? sum : elems;
}

/* ---- the count ----------------------------------------------------------------------- */

/* How often each instruction runs. */
static void count_runs(const Kernel *k, double *runs)
{
    double now[64] = {1};
    int depth = 0;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op == KI_END)
            depth--;
        runs[v] = k->kind == K_CONTRACT ? section_runs(k, v) : now[depth];
        if (is_loop(i->op) && depth < 63) {
            now[depth + 1] = now[depth] * (double)k_steps(k, i);
            depth++;
        }
    }
}

static double sum_of(const Kernel *k, const double *runs, double (*of)(const KInst *i))
{
    double sum = 0;
    for (Val v = 1; v < (Val)k->inst.n; v++)
        sum += runs[v] == 0 ? 0 : runs[v] * of(&k->inst.at[v]);
    return sum;
}

KCost kernel_cost(const Kernel *k)
{
    ArenaMark mark = arena_mark(k->arena); /* scratch of this call alone */
    const Kernel *x = kernel_expand(k->arena, k, false);
    double *runs = NEW_ARRAY(k->arena, double, x->inst.n);
    count_runs(x, runs);
    KCost c = {.flops = sum_of(x, runs, ops_of), .work = sum_of(x, runs, work_of)};
    for (int b = 0; b < x->buf.n; b++) {
        double bytes = dtype_bytes(x->buf.at[b].dtype);
        if (x->buf.at[b].mode == K_LOCAL)
            continue;
        c.bytes_read += bytes * buffer_elems(x, b, KI_LOAD, runs);
        c.bytes_written += bytes * buffer_elems(x, b, KI_STORE, runs);
    }
    if (k->kind == K_CONTRACT) {
        c.contract_flops =
            2 * extent_of(k, K_B) * extent_of(k, K_M) * extent_of(k, K_N) * extent_of(k, K_K);
        c.flops += c.contract_flops;
        c.bytes_written += k->con.all != 0;
        if (k->con.side_sum != 0) {
            double sums = extent_of(k, k->con.side_sum == 1 ? K_M : K_N);
            c.flops += sums * extent_of(k, K_K);
            c.bytes_written += sums * dtype_bytes(k->con.dtype);
        }
    }
    arena_reset(k->arena, mark);
    return c;
}
