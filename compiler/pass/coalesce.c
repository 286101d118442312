/* Loops that move together are one loop. A nest made from a shape has one loop for
 * each dimension; where every access steps through two of them as through one,
 * the pair becomes one long loop: more to put in vectors, less to count. */
#include "cluster.h"

#include <string.h>

static int64_t coef_of(const KAff *x, Val v)
{
    for (int i = 0; i < x->n; i++)
        if (x->t[i].v == v)
            return x->t[i].coef;
    return 0;
}

typedef bool AffTest(const KAff *x, Val outer, Val inner, int64_t extent);

static bool moves_together(const KAff *x, Val outer, Val inner, int64_t extent)
{
    return coef_of(x, outer) == extent * coef_of(x, inner);
}

static bool all_affine(const Kernel *k, AffTest *test, Val outer, Val inner, int64_t extent)
{
    if (k->inst.at[outer].reach != K_ALL || k->inst.at[inner].reach != K_ALL)
        return false;
    for (int i = 0; i < k->affine.n; i++)
        if (!test(&k->affine.at[i], outer, inner, extent))
            return false;
    for (int i = 0; i < k->access.n; i++) {
        const KAccess *a = &k->access.at[i];
        if (!test(&a->at, outer, inner, extent))
            return false;
        for (int j = 0; j < a->n_bounds; j++)
            if (!test(&a->bound[j].e, outer, inner, extent))
                return false;
    }
    return true;
}

/* The loop directly inside `outer`, with nothing else beside it, or 0. */
static Val only_inner(const Kernel *k, Val outer)
{
    Val inner = outer + 1;
    if (inner >= (Val)k->inst.n || k->inst.at[inner].op != KI_PAR)
        return 0;
    for (Val v = inner + 1; v + 1 < (Val)k->inst.n; v++)
        if (k->inst.at[v].op == KI_END && k->inst.at[v].aux == (int32_t)inner)
            return k->inst.at[v + 1].op == KI_END && k->inst.at[v + 1].aux == (int32_t)outer ? inner
                                                                                             : 0;
    return 0;
}

static Kernel *without(Arena *arena, const Kernel *k, Val outer, Val inner)
{
    int64_t extent = k->inst.at[outer].imm.i * k->inst.at[inner].imm.i;
    Val *to = NEW_ARRAY(arena, Val, k->inst.n);
    Val next = 1;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        bool ends = k->inst.at[v].op == KI_END && k->inst.at[v].aux == (int32_t)outer;
        to[v] = v == outer || ends ? 0 : next++;
    }
    Kernel *n = kernel_copy(arena, k, to);
    n->inst.at[to[inner]].imm.i = extent;
    return n;
}

static bool find_loops(const Kernel *k, Val *outer, Val *inner)
{
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        if (k->inst.at[v].op != KI_PAR)
            continue;
        Val in = only_inner(k, v);
        if (in != 0 && all_affine(k, moves_together, v, in, k->inst.at[in].imm.i)) {
            *outer = v;
            *inner = in;
            return true;
        }
    }
    return false;
}

static bool find_dims(const Kernel *k, Val *outer, Val *inner)
{
    for (int r = K_B; r <= K_K; r++)
        for (int i = 0; i + 1 < k->con.n[r]; i++) {
            Val o = k->con.dim[r][i], in = k->con.dim[r][i + 1];
            if (all_affine(k, moves_together, o, in, k->inst.at[in].imm.i)) {
                *outer = o;
                *inner = in;
                return true;
            }
        }
    return false;
}

Kernel *kernel_coalesce(Arena *arena, Arena *scratch, const Kernel *k)
{
    Val outer, inner;
    const Kernel *n = k;
    while (n->kind == K_LOOP ? find_loops(n, &outer, &inner) : find_dims(n, &outer, &inner))
        n = without(scratch, n, outer, inner);
    return kernel_copy(arena, n, NULL);
}
