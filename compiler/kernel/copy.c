/* Copies of kernels, with or without some of their instructions. */
#include "kernel.h"

#include <string.h>

static void rename_aff(KAff *x, const Val *to)
{
    KAff y = k_aff(x->base);
    for (int i = 0; i < x->n; i++)
        if (to[x->t[i].v] != 0)
            y = k_aff_add(y, k_aff_val(to[x->t[i].v], x->t[i].coef));
    *x = y;
}

static Kernel *copy_renamed(Arena *arena, const Kernel *k, const Val *to)
{
    Kernel *n = kernel_new(arena, k->kind, k->name);
    for (int i = 0; i < k->buf.n; i++)
        k_buf(n, k->buf.at[i].dtype, k->buf.at[i].elems, k->buf.at[i].mode);
    n->limit = k->limit;
    for (int i = 0; i < k->affine.n; i++) {
        KAff x = k->affine.at[i];
        rename_aff(&x, to);
        vec_push(arena, &n->affine, x);
    }
    for (int i = 0; i < k->access.n; i++) {
        KAccess a = k->access.at[i];
        rename_aff(&a.at, to);
        a.bound = NEW_ARRAY(arena, KBound, a.n_bounds);
        for (int j = 0; j < a.n_bounds; j++) {
            a.bound[j] = k->access.at[i].bound[j];
            rename_aff(&a.bound[j].e, to);
        }
        vec_push(arena, &n->access, a);
    }
    for (Val v = 1; v < (Val)k->inst.n; v++)
        if (to[v] != 0)
            vec_push(arena, &n->inst, k->inst.at[v]);
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        KInst in = k->inst.at[v];
        if (to[v] == 0)
            continue;
        in.a = to[in.a];
        in.b = to[in.b];
        in.c = to[in.c];
        if (in.op == KI_END)
            in.aux = (int32_t)to[in.aux];
        n->inst.at[to[v]] = in;
    }
    return n;
}

static Val next_kept(const Kernel *k, const Val *to, Val v, Val end)
{
    while (v < (Val)k->inst.n && to[v] == 0)
        v++;
    return v < (Val)k->inst.n ? to[v] : end;
}

static void copy_contraction(const Kernel *k, Kernel *n, const Val *to)
{
    const KContract *c = &k->con;
    KContract *m = &n->con;
    Val end = (Val)n->inst.n;
    m->dtype = c->dtype;
    m->leaf = c->leaf;
    m->pairs = c->pairs;
    m->a_from = next_kept(k, to, c->a_from, end);
    m->b_from = m->a_to = next_kept(k, to, c->b_from, end);
    m->e_from = m->b_to = next_kept(k, to, c->e_from, end);
    m->e_to = end;
    m->a = to[c->a];
    m->b = to[c->b];
    m->all = to[c->all];
    m->all_buf = c->all_buf;
    m->side_sum = c->side_sum;
    m->side_sum_buf = c->side_sum_buf;
    for (int r = K_B; r <= K_K; r++)
        for (int i = 0; i < c->n[r]; i++)
            if (to[c->dim[r][i]] != 0)
                m->dim[r][m->n[r]++] = to[c->dim[r][i]];
}

Kernel *kernel_copy(Arena *arena, const Kernel *k, const Val *to)
{
    Val *all = NULL;
    if (to == NULL) {
        all = NEW_ARRAY(arena, Val, k->inst.n);
        for (Val v = 1; v < (Val)k->inst.n; v++)
            all[v] = v;
        to = all;
    }
    Kernel *n = copy_renamed(arena, k, to);
    if (k->kind == K_CONTRACT)
        copy_contraction(k, n, to);
    return n;
}

/* ---- what is stored where it is --------------------------------------------------------- */

static bool is_self_copy(const Kernel *k, const KInst *store, int in, int out)
{
    const KInst *load = &k->inst.at[store->a];
    if (store->op != KI_STORE || load->op != KI_LOAD)
        return false;
    const KAccess *to = &k->access.at[store->aux], *from = &k->access.at[load->aux];
    return to->buf == out && from->buf == in && to->n_bounds == 0 && from->n_bounds == 0 &&
           k->buf.at[in].dtype == k->buf.at[out].dtype && k_aff_equal(&to->at, &from->at);
}

static void use_aff(const KAff *x, bool *used)
{
    for (int i = 0; i < x->n; i++)
        used[x->t[i].v] = true;
}

void k_use_operands(const Kernel *k, const KInst *in, bool *used)
{
    used[in->a] = used[in->b] = used[in->c] = true;
    if (in->op == KI_INDEX)
        use_aff(&k->affine.at[in->aux], used);
    if (in->op != KI_LOAD && in->op != KI_STORE)
        return;
    const KAccess *a = &k->access.at[in->aux];
    use_aff(&a->at, used);
    for (int i = 0; i < a->n_bounds; i++)
        use_aff(&a->bound[i].e, used);
}

/* Backwards: an instruction stays if it has an effect or what stays needs it, a loop if something
 * in it stays. */
static bool mark_kept(const Kernel *k, int in, int out, bool *kept)
{
    Arena scratch = {0};
    bool *used = NEW_ARRAY(&scratch, bool, k->inst.n), any = false;
    Val *end = NEW_ARRAY(&scratch, Val, k->inst.n);                /* by loop */
    int *inside = NEW_ARRAY(&scratch, int, k->inst.n), n_kept = 0; /* by loop: kept at its end */
    for (Val v = (Val)k->inst.n; v-- > 1;) {
        const KInst *i = &k->inst.at[v];
        KClass is = kop_class((KOp)i->op);
        if (i->op == KI_END) {
            end[i->aux] = v;
            inside[i->aux] = n_kept;
            continue;
        }
        bool dropped = is_self_copy(k, i, in, out);
        any = any || dropped;
        if (is == K_CLASS_LOOP)
            kept[v] = kept[end[v]] = n_kept > inside[v] || used[v];
        else
            kept[v] = !dropped &&
                      (i->op == KI_STORE || is == K_CLASS_RED || is == K_CLASS_VAR || used[v]);
        n_kept += kept[v];
        if (kept[v])
            k_use_operands(k, i, used);
    }
    arena_free(&scratch);
    return any;
}

Kernel *kernel_without_self_copies(Arena *arena, Kernel *k, int in, int out)
{
    if (k->kind != K_LOOP)
        return k;
    Arena scratch = {0};
    bool *kept = NEW_ARRAY(&scratch, bool, k->inst.n);
    Val *to = NEW_ARRAY(&scratch, Val, k->inst.n), next = 1;
    bool any = mark_kept(k, in, out, kept);
    for (Val v = 1; v < (Val)k->inst.n; v++)
        to[v] = kept[v] ? next++ : 0;
    Kernel *n = any ? kernel_copy(arena, k, to) : k;
    arena_free(&scratch);
    return n;
}

/* ---- sums of no terms -------------------------------------------------------------------- */

/* The value is the sum, added to what buffer `in` has where it is stored. */
static bool adds_sum(const Kernel *k, const KInst *store, int in, int out)
{
    const KInst *add = &k->inst.at[store->a];
    const KInst *x = &k->inst.at[add->a], *y = &k->inst.at[add->b];
    if (add->op != KI_ADD || (x->op == KI_SUM) == (y->op == KI_SUM))
        return false;
    const KInst copy = {.op = KI_STORE, .a = x->op == KI_SUM ? add->b : add->a, .aux = store->aux};
    return is_self_copy(k, &copy, in, out);
}

static bool only_adds_sums(const Kernel *k, int in, int out)
{
    int stores = 0;
    for (Val v = k->con.e_from; v < k->con.e_to; v++) {
        const KInst *i = &k->inst.at[v];
        stores += i->op == KI_STORE;
        if (i->op == KI_STORE && !adds_sum(k, i, in, out))
            return false;
    }
    return stores == 1;
}

Kernel *kernel_without_zero_sums(Arena *arena, Kernel *k, int in, int out)
{
    bool exact = dtype_bytes(k->buf.at[out].dtype) >= 4; /* halves round to -0 */
    if (k->kind != K_CONTRACT || !k->limit.is || !exact || !only_adds_sums(k, in, out))
        return k;
    Kernel *n = kernel_copy(arena, k, NULL);
    for (Val v = 1; v < (Val)n->inst.n; v++)
        if (n->inst.at[v].op == KI_DIM && n->inst.at[v].reach == K_ZERO)
            k_reach(n, v, K_LIMITED);
    return n;
}
