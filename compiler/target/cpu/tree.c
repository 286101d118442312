/* From instructions to a tree: dependences, hoisting, the grid. */
#include <assert.h>
#include <math.h>
#include "tree.h"

static bool is_loop(KOp op)
{
    return op == KI_PAR || op == KI_SEQ || op == KI_RED;
}

/* ---- what depends on which loop -------------------------------------------- */

typedef struct Scan {
    Tree *t;
    Val open[64]; /* the loops around an instruction, outermost first */
    int n_open;
    Val *owner; /* by Val: ACC and VAR, the loop around */
} Scan;

bool tree_depends(const Tree *t, Val v, Val of)
{
    return (t->deps[v] & t->deps[of]) != 0;
}

static uint64_t around(const Scan *s)
{
    uint64_t all = 0;
    for (int i = 0; i < s->n_open; i++)
        all |= s->t->deps[s->open[i]];
    return all;
}

static uint64_t affine_deps(const Tree *t, const KAff *x)
{
    uint64_t d = 0;
    for (int i = 0; i < x->n; i++)
        d |= t->deps[x->t[i].v];
    return d;
}

static uint64_t load_deps(const Scan *s, const KInst *i)
{
    const KAccess *a = &s->t->k->access.at[i->aux];
    if (s->t->k->buf.at[a->buf].mode != K_IN) /* may be written on the way */
        return around(s);
    uint64_t d = affine_deps(s->t, &a->at);
    for (int b = 0; b < a->n_bounds; b++)
        d |= affine_deps(s->t, &a->bound[b].e);
    return d;
}

/* Innermost RED around, inside of the loop that the accumulator belongs to. */
static Val feeding_loop(const Scan *s, Val acc)
{
    const Tree *t = s->t;
    for (int i = s->n_open; i-- > 0;) {
        Val loop = s->open[i];
        if (loop == s->owner[acc])
            break;
        if (t->k->inst.at[loop].op == KI_RED)
            return loop;
    }
    return 0;
}

static void scan_inst(Scan *s, Val v)
{
    Tree *t = s->t;
    const KInst *i = &t->k->inst.at[v];
    const Val arg[] = {i->a, i->b, i->c};
    if (is_loop((KOp)i->op)) {
        t->deps[v] = UINT64_C(1) << s->n_open;
        s->open[s->n_open++] = v;
        return;
    }
    switch (kop_class((KOp)i->op)) {
    case K_CLASS_LOOP:
        s->n_open--;
        break;
    case K_CLASS_RED:
    case K_CLASS_VAR:
        if (i->op == KI_ACC || i->op == KI_VAR)
            s->owner[v] = s->n_open > 0 ? s->open[s->n_open - 1] : 0;
        if (i->op == KI_INTO) {
            t->red_of[v] = feeding_loop(s, i->a);
            t->wide[i->a] |= t->red_of[v] != 0;
        }
        t->deps[v] = around(s);
        break;
    case K_CLASS_MEM:
        t->deps[v] = i->op == KI_LOAD ? load_deps(s, i) : around(s);
        break;
    default:
        if (i->op == KI_INDEX)
            t->deps[v] = affine_deps(t, &t->k->affine.at[i->aux]);
        for (int a = 0; a < kop_args((KOp)i->op); a++)
            t->deps[v] |= t->deps[arg[a]];
        break;
    }
}

static void scan(Tree *t, Arena *arena)
{
    Scan s = {.t = t, .owner = NEW_ARRAY(arena, Val, t->k->inst.n)};
    for (Val v = 1; v < (Val)t->k->inst.n; v++)
        scan_inst(&s, v);
}

/* ---- the tree ------------------------------------------------------------------ */

/* Appends to `in`, or puts before its member `before`. */
static void insert(Node *in, Node *n, Node *before)
{
    n->parent = in;
    n->next = before;
    n->prev = before != NULL ? before->prev : in->last;
    *(n->prev != NULL ? &n->prev->next : &in->first) = n;
    *(before != NULL ? &before->prev : &in->last) = n;
}

static bool hoistable(const Tree *t, Val v)
{
    const KInst *i = &t->k->inst.at[v];
    if (i->op == KI_LOAD)
        return t->k->buf.at[t->k->access.at[i->aux].buf].mode == K_IN;
    KClass c = kop_class((KOp)i->op);
    return c != K_CLASS_RED && c != K_CLASS_VAR && i->op != KI_STORE;
}

static void place(Tree *t, Arena *arena, Node *top, Val v)
{
    Node *n = NEW(arena, Node), *at = top, *before = NULL;
    n->v = v;
    while (hoistable(t, v) && at->v != 0 && !tree_depends(t, v, at->v)) {
        before = at;
        at = at->parent;
    }
    insert(at, n, before);
}

static Node *open_loop(Arena *arena, Node *top, Val v)
{
    Node *n = NEW(arena, Node);
    *n = (Node){.loop = true, .v = v, .depth = top->depth + 1};
    insert(top, n, NULL);
    return n;
}

static int position(const Val *order, int n, Val v)
{
    for (int i = 0; i < n; i++)
        if (order[i] == v)
            return i;
    return -1;
}

/* `order`: loops of a chain, to be nested in this order. They are opened together
 * where the outermost of them stands: between them there are only pure values. */
static void grow(Tree *t, Arena *arena, const Val *order, int n_order)
{
    Node *top = t->root = NEW(arena, Node);
    top->loop = true;
    Val first = 0;
    for (Val v = 1; v < (Val)t->k->inst.n; v++) {
        const KInst *i = &t->k->inst.at[v];
        bool chained = position(order, n_order, i->op == KI_END ? (Val)i->aux : v) >= 0;
        if (chained && i->op == KI_END) {
            for (int c = 0; c < n_order && (Val)i->aux == first; c++)
                top = top->parent;
        } else if (chained) {
            for (int c = 0; c < n_order && first == 0; c++)
                top = open_loop(arena, top, order[c]);
            first = first == 0 ? v : first;
        } else if (i->op == KI_END) {
            top = top->parent;
        } else if (is_loop((KOp)i->op)) {
            top = open_loop(arena, top, v);
        } else if (i->op != KI_CONST) {
            place(t, arena, top, v);
        }
    }
}

/* The only loop in `in`, if nothing beside it has an effect. */
static Node *only_loop(const Tree *t, const Node *in)
{
    Node *found = NULL;
    for (Node *n = in->first; n != NULL; n = n->next) {
        if (n->loop ? found != NULL : !hoistable(t, n->v))
            return NULL;
        found = n->loop ? n : found;
    }
    return found;
}

static bool has_term(const KAff *x, Val v)
{
    for (int i = 0; i < x->n; i++)
        if (x->t[i].v == v)
            return true;
    return false;
}

/* What is done for an iteration depends on its number. */
static bool is_asked(const Kernel *k, Val loop)
{
    for (Val v = loop + 1; v < (Val)k->inst.n; v++) {
        const KInst *i = &k->inst.at[v];
        if (i->op == KI_INDEX && has_term(&k->affine.at[i->aux], loop))
            return true;
        const KAccess *a = i->op == KI_LOAD ? &k->access.at[i->aux] : NULL;
        for (int b = 0; a != NULL && b < a->n_bounds; b++)
            if (has_term(&a->bound[b].e, loop))
                return true;
    }
    return false;
}

bool tree_is_written_out(const Tree *t, const Node *loop)
{
    const KInst *i = &t->k->inst.at[loop->v];
    return i->op == KI_PAR && i->imm.i <= FEW_TURNS && i->imm.i > 1 && i->reach == K_ALL &&
           is_asked(t->k, loop->v);
}

static void find_chain(Tree *t)
{
    t->n_chain = 0;
    for (Node *n = only_loop(t, t->root); n != NULL; n = only_loop(t, n)) {
        if (t->k->inst.at[n->v].op != KI_PAR || t->n_chain == MAX_CHAIN)
            break;
        if (t->n_chain > 0 && tree_is_written_out(t, n))
            break;
        t->chain[t->n_chain++] = n;
    }
}

/* ---- lines that columns share ----------------------------------------------------- */

static bool is_link(const Tree *t, Val v)
{
    for (int i = 0; i < t->n_chain; i++)
        if (t->chain[i]->v == v)
            return true;
    return false;
}

static bool is_of_links(const Tree *t, const KAff *x)
{
    for (int i = 0; i < x->n; i++)
        if (!is_link(t, x->t[i].v))
            return false;
    return true;
}

bool tree_is_tile(const Tree *t, const KInst *load, Val lane, Val across)
{
    if (load->op != KI_LOAD)
        return false;
    const KAccess *a = &t->k->access.at[load->aux];
    const KBuf *b = &t->k->buf.at[a->buf];
    bool zeros = a->otherwise == 0 && !signbit(a->otherwise);
    if (b->mode != K_IN || dtype_bytes(b->dtype) != 4 || (a->n_bounds > 0 && !zeros))
        return false;
    for (int i = 0; i < a->n_bounds; i++)
        if (!is_of_links(t, &a->bound[i].e) || tree_coef(&a->bound[i].e, across) != 0)
            return false;
    return is_of_links(t, &a->at) && tree_coef(&a->at, across) == 1 && tree_coef(&a->at, lane) > 1;
}

/* Accesses that are apart along the lanes and, along link i, side by side. */
static int count_across(const Tree *t, const Node *in, int link)
{
    const Node *vector = tree_chain_vector(t);
    int n = 0;
    for (const Node *x = in->first; x != NULL; x = x->next) {
        const KInst *i = &t->k->inst.at[x->v];
        if (x->loop)
            n += count_across(t, x, link);
        if (i->op != KI_LOAD && i->op != KI_STORE)
            continue;
        const KAff *at = &t->k->access.at[i->aux].at;
        int64_t apart = tree_coef(at, vector->v);
        n += apart != 0 && apart != 1 && tree_coef(at, t->chain[link]->v) == 1;
    }
    return n;
}

static void find_across(Tree *t)
{
    enum { FEWEST = 4 };
    int most = 0;
    t->across = -1;
    t->rows = 1;
    for (int i = 0; tree_chain_vector(t) != NULL && i < t->n_chain - 1; i++) {
        int n = count_across(t, t->chain[t->n_chain - 1], i);
        if (n > most && t->k->inst.at[t->chain[i]->v].imm.i >= FEWEST) {
            most = n;
            t->across = i;
            t->rows = TILE_ROWS;
        }
    }
}

/* ---- the share of a thread -------------------------------------------------------- */

/* Units enough for any number of lanes to be balanced. */
enum { WANTED_UNITS = 64 };

int64_t tree_units_of(const Tree *t, int link)
{
    int64_t extent = t->k->inst.at[t->chain[link]->v].imm.i;
    return link == t->across ? (extent + t->rows - 1) / t->rows : extent;
}

static void divide(Tree *t)
{
    int64_t outer = 1;
    const Node *v = tree_chain_vector(t);
    for (int i = 0; i < t->n_chain - (v != NULL); i++)
        outer *= tree_units_of(t, i);
    t->n_blocks = t->block = 1;
    if (v != NULL) {
        int64_t extent = t->k->inst.at[v->v].imm.i;
        int64_t vectors = (extent + v->width - 1) / v->width;
        int64_t wanted = outer >= WANTED_UNITS || outer == 0 ? 1 : WANTED_UNITS / outer;
        if (wanted > vectors)
            wanted = vectors;
        if (wanted > 0) {
            t->block = (vectors + wanted - 1) / wanted * v->width;
            t->n_blocks = (extent + t->block - 1) / t->block;
        } else {
            t->n_blocks = 0;
        }
    }
    t->n_units = outer * t->n_blocks;
}

int64_t tree_locals(const Tree *t, int64_t *offset)
{
    const Node *v = tree_chain_vector(t);
    int64_t bytes = 0;
    for (int i = 0; i < t->k->buf.n; i++) {
        const KBuf *b = &t->k->buf.at[i];
        if (b->mode != K_LOCAL)
            continue;
        if (offset != NULL)
            offset[i] = bytes;
        bytes += align_up(b->elems * dtype_bytes(b->dtype) * (v != NULL ? v->width : 1), LOCAL_PAD);
    }
    return bytes;
}

Tree *tree_build(const Kernel *k, const Machine *m, Arena *arena)
{
    Tree *t = NEW(arena, Tree);
    t->k = tree_merge(k, arena);
    t->deps = NEW_ARRAY(arena, uint64_t, k->inst.n);
    t->red_of = NEW_ARRAY(arena, Val, k->inst.n);
    t->wide = NEW_ARRAY(arena, bool, k->inst.n);
    scan(t, arena);
    grow(t, arena, NULL, 0);
    find_chain(t);
    tree_choose_vectors(t, m);
    Val order[MAX_CHAIN];
    int n = 0, vector = -1;
    for (int i = 0; i < t->n_chain; i++) {
        if (t->chain[i]->width > 0)
            vector = i;
        else
            order[n++] = t->chain[i]->v;
    }
    if (vector >= 0 && vector != t->n_chain - 1) {
        int width = t->chain[vector]->width;
        order[n++] = t->chain[vector]->v;
        grow(t, arena, order, n);
        Node *c = t->root;
        for (int i = 0; i < n; i++) {
            for (c = c->first; c->v != order[i];)
                c = c->next;
            t->chain[i] = c;
        }
        c->width = width; /* no other loop moves along lanes inside of it */
    }
    find_across(t);
    divide(t);
    return t;
}
