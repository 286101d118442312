/* Where the threads of a team have to meet: between two accesses of one memory by different
 * threads, of which one is a store. What a thread does in a shared loop stays in it, as iterations
 * are independent; what lies between, all threads read, and the first one writes. */
#include "cuda.h"

Touched cu_touched(const Kernel *k, Arena *arena)
{
    return (Touched){k, NEW_ARRAY(arena, bool, k->buf.n), NEW_ARRAY(arena, bool, k->buf.n)};
}

/* A store to buffer b comes after a read of it, or of an input whose memory it may have. */
static bool overwrites(const Touched *t, int b)
{
    if (t->read[b] || t->written[b])
        return true;
    for (int i = 0; i < t->k->buf.n; i++)
        if (t->read[i] && t->k->buf.at[i].mode == K_IN && t->k->buf.at[b].mode != K_LOCAL)
            return true;
    return false;
}

static bool conflicts(const Touched *t, Val from, Val to)
{
    for (Val v = from; v < to; v++) {
        const KInst *i = &t->k->inst.at[v];
        if (i->op == KI_LOAD && t->written[t->k->access.at[i->aux].buf])
            return true;
        if (i->op == KI_STORE && overwrites(t, t->k->access.at[i->aux].buf))
            return true;
    }
    return false;
}

void cu_touch(Touched *t, Val from, Val to)
{
    for (Val v = from; v < to; v++) {
        const KInst *i = &t->k->inst.at[v];
        if (i->op == KI_LOAD)
            t->read[t->k->access.at[i->aux].buf] = true;
        if (i->op == KI_STORE)
            t->written[t->k->access.at[i->aux].buf] = true;
    }
}

bool cu_must_meet(Touched *t, Val from, Val to)
{
    bool meet = conflicts(t, from, to);
    for (int b = 0; b < t->k->buf.n && meet; b++)
        t->read[b] = t->written[b] = false;
    cu_touch(t, from, to);
    return meet;
}
