/* Walking over the sub-indices of a role. */
#include "con.h"

int64_t con_coef(const KAff *x, Val v)
{
    for (int i = 0; i < x->n; i++)
        if (x->t[i].v == v)
            return x->t[i].coef;
    return 0;
}

bool con_of_dims(const Kernel *k, const KAff *x)
{
    for (int t = 0; t < x->n; t++)
        if (k->inst.at[x->t[t].v].op != KI_DIM)
            return false;
    return true;
}

const KAff *con_affine(const Kernel *k, Val from, Val to, int index)
{
    for (Val v = from; v < to; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op == KI_INDEX && index-- == 0)
            return &k->affine.at[i->aux];
        if (i->op != KI_LOAD && i->op != KI_STORE)
            continue;
        const KAccess *a = &k->access.at[i->aux];
        if (index-- == 0)
            return &a->at;
        if (index < a->n_bounds)
            return &a->bound[index].e;
        index -= a->n_bounds;
    }
    return NULL;
}

const KBound *con_bound(const Kernel *k, Val from, Val to, int index)
{
    for (Val v = from; v < to; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op != KI_LOAD)
            continue;
        const KAccess *a = &k->access.at[i->aux];
        if (index < a->n_bounds)
            return &a->bound[index];
        index -= a->n_bounds;
    }
    return NULL;
}

/* Whether index `slow`, before a run of `run` with `lane`, continues it. */
static bool continues(const Kernel *k, Val from, Val to, Val slow, Val lane, int64_t run)
{
    const KAff *x;
    for (int i = 0; (x = con_affine(k, from, to, i)) != NULL; i++)
        if (con_coef(x, slow) != con_coef(x, lane) * run)
            return false;
    return true;
}

Walk walk_of(const Kernel *k, KRole role, Val from, Val to)
{
    Walk w = {.k = k, .role = role, .run = 1, .total = 1};
    Val digit[K_MAX_DIMS];
    int64_t extent[K_MAX_DIMS];
    int n = 0; /* fastest first */
    for (int d = k->con.n[role]; d-- > 0;) {
        Val v = k->con.dim[role][d];
        int64_t e = k->inst.at[v].imm.i;
        w.total *= e;
        if (e == 1)
            continue;
        if (n == 1 && continues(k, from, to, v, digit[0], extent[0])) {
            extent[0] *= e;
            continue;
        }
        digit[n] = v;
        extent[n++] = e;
    }
    w.n = n;
    for (int i = 0; i < n; i++) {
        w.dim[i] = digit[n - 1 - i];
        w.extent[i] = extent[n - 1 - i];
    }
    if (n > 0) {
        w.run = extent[0];
        w.lane = digit[0];
    }
    return w;
}

void walk_decode(const Walk *w, Ir *ir, Lv flat, Lv *digit)
{
    for (int i = w->n; i-- > 0;) {
        if (i == 0) {
            digit[0] = flat;
            break;
        }
        Lv by = ir_int(ir, w->extent[i]);
        digit[i] = LLVMBuildURem(ir->b, flat, by, "");
        flat = LLVMBuildUDiv(ir->b, flat, by, "");
    }
}

void walk_set(const Walk *w, Gen *g, Lv *digit)
{
    for (int d = 0; d < w->k->con.n[w->role]; d++) {
        Val v = w->k->con.dim[w->role][d];
        g->value[v] = ir_int(g->ir, 0);
        g->vary[v] = false;
    }
    for (int i = 0; i < w->n; i++)
        g->value[w->dim[i]] = digit[i];
}

void walk_advance(const Walk *w, Ir *ir, Lv *digit, Lv by)
{
    Lv carry = by;
    for (int i = w->n; i-- > 0;) {
        Lv next = ir_add(ir, digit[i], carry);
        if (i == 0) {
            digit[i] = next;
            break;
        }
        Lv full = LLVMBuildICmp(ir->b, LLVMIntEQ, next, ir_int(ir, w->extent[i]), "");
        carry = LLVMBuildZExt(ir->b, full, ir->i64, "");
        digit[i] = LLVMBuildSelect(ir->b, full, ir_int(ir, 0), next, "");
    }
}
