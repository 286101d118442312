/* The loops that a kernel is shared out by. */
#include "same_loop.h"

/* A value that depends on nothing that the kernel stores. */
static bool is_pure(const Kernel *k, const KInst *i)
{
    if (i->op != KI_LOAD)
        return kop_class((KOp)i->op) <= K_CLASS_MATH;
    int32_t buf = i->aux >= 0 && i->aux < k->access.n ? k->access.at[i->aux].buf : -1;
    return buf >= 0 && buf < k->buf.n && k->buf.at[buf].mode == K_IN;
}

/* The only loop of [from, end), a PAR, where all else is pure; or 0. */
static Val only_par(const Kernel *k, Val from, Val end)
{
    Val par = 0;
    for (Val v = from; v < end; v++) {
        const KInst *i = &k->inst.at[v];
        if (is_pure(k, i))
            continue;
        if (i->op != KI_PAR || par != 0)
            return 0;
        par = v;
        v = loop_end(k, v);
    }
    return par;
}

int kernel_grid(const Kernel *k, Val *par, int most)
{
    Val from = 1, end = (Val)k->inst.n;
    for (int n = 0; n < most; n++) {
        par[n] = only_par(k, from, end);
        if (par[n] == 0)
            return n;
        from = par[n] + 1;
        end = loop_end(k, par[n]);
    }
    return most;
}
