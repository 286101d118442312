/* May an output take the memory of an input? Only from what the kernel shows: the
 * loops around the store say which elements a grid iteration writes, and every read of
 * the input has to come before its element is overwritten. */
#include "cluster.h"

#include <string.h>

/* For each instruction, the loop that directly holds it (0: none). */
static Val *parents(const Kernel *k, Arena *scratch)
{
    Val *up = NEW_ARRAY(scratch, Val, k->inst.n);
    Val now = 0;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *in = &k->inst.at[v];
        if (in->op == KI_END) {
            now = up[in->aux];
            up[v] = now;
            continue;
        }
        up[v] = now;
        if (in->op == KI_PAR || in->op == KI_SEQ || in->op == KI_RED)
            now = v;
    }
    return up;
}

static bool contains(const Val *up, Val loop, Val v)
{
    for (Val l = up[v]; l != 0; l = up[l])
        if (l == loop)
            return true;
    return false;
}

/* The part of an affine expression that moves with loops around both a and b. */
static KAff shared_part(const Kernel *k, const Val *up, const KAff *x, Val a, Val b)
{
    KAff y = k_aff(0);
    for (int i = 0; i < x->n; i++) {
        Val v = x->t[i].v;
        bool loop = k->inst.at[v].op == KI_PAR;
        if (loop && contains(up, v, a) && contains(up, v, b))
            y = k_aff_add(y, k_aff_val(v, x->t[i].coef));
    }
    return y;
}

/* The bound that is about v alone, or NULL. */
static const KBound *bound_of(const KAccess *a, Val v)
{
    for (int i = 0; i < a->n_bounds; i++) {
        const KAff *e = &a->bound[i].e;
        if (e->base == 0 && e->n == 1 && e->t[0].v == v && e->t[0].coef == 1)
            return &a->bound[i];
    }
    return NULL;
}

/* Range of what is left of x, a part of what the access goes to. An index that is loaded is within
 * its bounds, or there is no access. */
static bool rest_range(const Kernel *k, const KAccess *access, const KAff *x, const KAff *shared,
                       int64_t *lo, int64_t *hi)
{
    KAff minus = k_aff_scale(*shared, -1);
    KAff rest = k_aff_add(*x, minus), loops = k_aff(rest.base);
    int64_t least = 0, most = 0;
    for (int i = 0; i < rest.n; i++) {
        const KBound *b = bound_of(access, rest.t[i].v);
        int64_t coef = rest.t[i].coef;
        if (b == NULL) {
            loops = k_aff_add(loops, k_aff_val(rest.t[i].v, coef));
            continue;
        }
        least += coef * (coef > 0 ? b->lo : b->hi - 1);
        most += coef * (coef > 0 ? b->hi - 1 : b->lo);
    }
    bool known = k_aff_range(k, &loops, lo, hi);
    *lo += least;
    *hi += most;
    return known;
}

/* Without whole multiples of `pitch`. */
static KAff within_pitch(const KAff *x, int64_t pitch)
{
    KAff y = k_aff(((x->base % pitch) + pitch) % pitch);
    for (int i = 0; i < x->n; i++)
        if (x->t[i].coef % pitch != 0)
            y = k_aff_add(y, k_aff_val(x->t[i].v, x->t[i].coef));
    return y;
}

/* The least coefficient that is at least as large as that: rows of a matrix, or 0. */
static int64_t pitch_of(const KAff *x, int64_t least)
{
    int64_t pitch = 0;
    for (int i = 0; i < x->n; i++)
        if (x->t[i].coef >= least && (pitch == 0 || x->t[i].coef < pitch))
            pitch = x->t[i].coef;
    return pitch;
}

/* Both lie where the shared part says, in steps larger than what the rest can reach: in a row, or
 * in columns of a matrix, whichever its rows are. */
static bool same_part(const Kernel *k, const Val *up, const KAccess *load, Val at,
                      const KAccess *st, Val store)
{
    KAff a = shared_part(k, up, &load->at, at, store), b = shared_part(k, up, &st->at, at, store);
    int64_t lo_a, hi_a, lo_b, hi_b, step = INT64_MAX, lo, hi;
    if (!k_aff_equal(&a, &b))
        return false;
    for (int i = 0; i < a.n; i++)
        if (a.t[i].coef < step)
            step = a.t[i].coef;
    KAff x = load->at, y = st->at;
    int64_t pitch = a.n > 0 && k_aff_range(k, &a, &lo, &hi) ? pitch_of(&x, hi - lo + step) : 0;
    if (pitch > 0) {
        x = within_pitch(&x, pitch);
        y = within_pitch(&y, pitch);
    }
    if (!rest_range(k, load, &x, &a, &lo_a, &hi_a) || !rest_range(k, st, &y, &b, &lo_b, &hi_b))
        return false;
    return lo_a >= 0 && lo_b >= 0 && hi_a < step && hi_b < step;
}

/* The loop directly in `outer` that holds v. */
static Val loop_below(const Val *up, Val outer, Val v)
{
    while (up[v] != outer)
        v = up[v];
    return v;
}

/* Some loop stands beside `one` in the same loop, so that neither belongs to the grid. */
static bool has_other_loop(const Kernel *k, const Val *up, Val one)
{
    for (Val v = up[one] + 1; v < (Val)k->inst.n; v++)
        if (v != one && up[v] == up[one] && kop_class((KOp)k->inst.at[v].op) == K_CLASS_LOOP &&
            k->inst.at[v].op != KI_END)
            return true;
    return false;
}

/* All of the reads come first. A value that stands beside a PAR loop of the grid is read anew
 * for each piece of that loop, after other pieces have written. */
static bool before(const Kernel *k, const Val *up, Val load, Val store)
{
    Val l = load;
    while (up[l] != 0 && !contains(up, up[l], store))
        l = up[l];
    if (l >= store || up[load] == up[store])
        return false;
    Val below = loop_below(up, up[l], store);
    const KInst *beside = &k->inst.at[below];
    return l != load || beside->op != KI_PAR || beside->imm.i == 1 || has_other_loop(k, up, below);
}

/* No loop around the load reads the same element again. */
static bool moves_with_all(const Kernel *k, const Val *up, const KAff *x, Val load)
{
    for (Val l = up[load]; l != 0; l = up[l]) {
        bool moves = k->inst.at[l].imm.i == 1;
        for (int i = 0; i < x->n; i++)
            moves |= x->t[i].v == l;
        if (!moves)
            return false;
    }
    return true;
}

static bool read_is_safe(const Kernel *k, const Val *up, Val load, Val store)
{
    const KAccess *a = &k->access.at[k->inst.at[load].aux];
    const KAccess *b = &k->access.at[k->inst.at[store].aux];
    if (a->n_bounds == 0 && b->n_bounds == 0 && k_aff_equal(&a->at, &b->at) && load < store &&
        moves_with_all(k, up, &a->at, load))
        return true;
    return before(k, up, load, store) && same_part(k, up, a, load, b, store);
}

static bool loop_inplace(const Kernel *k, int in, int out)
{
    Arena scratch = {0};
    Val *up = parents(k, &scratch);
    bool ok = true;
    for (Val s = 1; s < (Val)k->inst.n && ok; s++) {
        if (k->inst.at[s].op != KI_STORE || k->access.at[k->inst.at[s].aux].buf != out)
            continue;
        for (Val l = 1; l < (Val)k->inst.n && ok; l++)
            if (k->inst.at[l].op == KI_LOAD && k->access.at[k->inst.at[l].aux].buf == in)
                ok = read_is_safe(k, up, l, s);
    }
    arena_free(&scratch);
    return ok;
}

/* Only the epilogue may read what it overwrites: the operands are read again for
 * other results. */
static bool contract_inplace(const Kernel *k, int in, int out)
{
    const KContract *c = &k->con;
    for (Val v = 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op != KI_LOAD || k->access.at[i->aux].buf != in)
            continue;
        if (v < c->e_from)
            return false;
        for (Val s = c->e_from; s < c->e_to; s++) {
            const KInst *t = &k->inst.at[s];
            if (t->op != KI_STORE || k->access.at[t->aux].buf != out)
                continue;
            const KAccess *a = &k->access.at[i->aux], *b = &k->access.at[t->aux];
            if (a->n_bounds > 0 || b->n_bounds > 0 || !k_aff_equal(&a->at, &b->at) || v > s)
                return false;
        }
    }
    return true;
}

bool kernel_inplace(const Kernel *k, int in, int out)
{
    bool limits = k->limit.is && k->limit.buf == in;
    bool all = k->kind == K_CONTRACT && k->con.all != 0 && k->con.all_buf == out;
    if (limits || all || dtype_bytes(k->buf.at[in].dtype) != dtype_bytes(k->buf.at[out].dtype))
        return false;
    return k->kind == K_LOOP ? loop_inplace(k, in, out) : contract_inplace(k, in, out);
}
