/* Which matrices lie in panels: parameters that products read with lanes along their columns or
 * with sums along them, and what elementwise kernels make of those and into them. What a kernel
 * can't have in panels lies row by row, and so does what it moves along with. */
#include "panels.h"

#include <string.h>
#include "room.h"

typedef enum State { ROWS, WANTED, REFUSED } State; /* REFUSED: for good */

typedef struct Search {
    const Machine *m;
    const Program *p;
    int64_t width, least; /* columns of a panel; bytes of a parameter in panels, */
    int64_t least_often;  /* ... and of one that many turns of a loop multiply few rows by */
    Arena *arena;
    State *state; /* by buffer */
    Panels *of;   /* by buffer: how it would lie */
    bool *given;  /* by buffer: others than kernels read or write it: results, transfers */
    int in_turns; /* loops around, whose turns lanes may take whole */
    int in_loops; /* ... of many turns */
    bool changed; /* since the last look at all calls */
} Search;

/* ---- matrices ------------------------------------------------------------------------------ */

/* What a tile has in columns, where that is a cache line at least; 0: there are no panels. */
static int64_t panel_width(const Machine *m)
{
    enum { LINE = 64 };
    return 2 * m->vec_bytes < LINE ? 0 : 2 * m->vec_bytes / dtype_bytes(F32);
}

static bool has_place(const Buffer *b)
{
    return b->offset >= 0 && b->turns <= 1 && b->input < 0 && b->role != ROLE_CONSTANT &&
           b->role != ROLE_INPUT && b->role != ROLE_STAGING;
}

static Panels panels_of(const Search *s, const Buffer *b)
{
    Panels x = {.width = s->width};
    if (b->rank < 2 || !has_place(b) || x.width == 0)
        return (Panels){0};
    x.cols = b->shape[b->rank - 1];
    x.rows = b->shape[b->rank - 2];
    bool fits = x.rows > 1 && x.cols >= 2 * x.width && x.cols % x.width == 0 &&
                b->elems % (x.rows * x.cols) == 0;
    return fits ? x : (Panels){0};
}

static bool same_panels(const Panels *x, const Panels *y)
{
    return x->rows == y->rows && x->cols == y->cols && x->width == y->width;
}

static void set(Search *s, int32_t buffer, State to)
{
    State *x = &s->state[buffer];
    if (*x == to || *x == REFUSED)
        return;
    *x = s->given[buffer] || s->of[buffer].width == 0 ? REFUSED : to;
    s->changed = true;
}

static bool wanted(const Search *s, int32_t buffer)
{
    return s->state[buffer] == WANTED;
}

/* ---- calls ---------------------------------------------------------------------------------- */

enum { OFTEN = 8, FEW_ROWS = 64 }; /* turns; of a product, which do not make up for packing */

typedef void EachCall(Search *s, Call *c);

static void each_call(Search *s, Call *call, int32_t n, EachCall *f)
{
    for (Call *c = call; n-- > 0; c++) {
        bool turns = c->kind == CALL_LOOP && c->turns > 0;
        bool often = c->kind == CALL_LOOP && c->count >= OFTEN;
        if (c->kind == CALL_KERNEL || c->n_body == 0)
            f(s, c);
        s->in_turns += turns;
        s->in_loops += often;
        if (c->n_body > 0)
            each_call(s, c->body, c->n_body, f);
        s->in_turns -= turns;
        s->in_loops -= often;
    }
}

static void all_calls(Search *s, EachCall *f)
{
    for (int e = 0; e < s->p->entry.n; e++)
        each_call(s, s->p->entry.at[e].call, s->p->entry.at[e].n_calls, f);
}

/* It begins at a matrix, in every turn of the loops around. */
static bool at_matrix(const Search *s, const Operand *o)
{
    const Panels *x = &s->of[o->buffer];
    bool fine = o->base % (x->rows * x->cols) == 0;
    for (int d = 0; d < MAX_LOOP_DEPTH; d++)
        fine = fine && o->step[d] % (x->rows * x->cols) == 0;
    return fine;
}

static Panels *panels_of_call(const Search *s, const Kernel *k, const Operand **op)
{
    Panels *x = NEW_ARRAY(s->arena, Panels, k->buf.n);
    for (int i = 0; i < k->buf.n; i++)
        if (op[i] != NULL && wanted(s, op[i]->buffer))
            x[i] = s->of[op[i]->buffer];
    return x;
}

static bool share_memory(const Buffer *x, const Buffer *y)
{
    return x->offset >= 0 && y->offset >= 0 && x->offset < y->offset + y->bytes &&
           y->offset < x->offset + x->bytes;
}

/* A kernel that writes where another operand lies meets its elements in step with it. */
static bool in_step(const Search *s, const Kernel *k, const Operand **op)
{
    for (int i = 0; i < k->buf.n; i++)
        for (int j = 0; j < i; j++) {
            if (op[i] == NULL || op[j] == NULL || op[i]->buffer == op[j]->buffer)
                continue;
            int32_t x = op[i]->buffer, y = op[j]->buffer;
            bool alike = wanted(s, x) == wanted(s, y) &&
                         (!wanted(s, x) || same_panels(&s->of[x], &s->of[y]));
            if (!alike && share_memory(&s->p->buffer.at[x], &s->p->buffer.at[y]))
                return false;
        }
    return true;
}

/* Scratch that the plan has not foreseen is not there. */
static bool has_scratch(const Search *s, const Call *c, const Kernel *k)
{
    Arena scratch = {0};
    const Kernel *x = kernel_expand(&scratch, k, s->m->exponents);
    KernelFn f = x->kind == K_LOOP ? plan_loop_kernel(s->m, x, &scratch)
                                   : plan_contraction(s->m, x, &scratch);
    arena_free(&scratch);
    Room room = room_of(s->p, c);
    return room_holds(&room, &f, s->p->threads_max, s->in_turns > 0);
}

/* ---- the search ------------------------------------------------------------------------------ */

static void find_given(Search *s, Call *c)
{
    if (c->kind == CALL_OUT || c->kind == CALL_IN)
        s->given[c->op[0].buffer] = true;
}

static int64_t indices_of(const Kernel *k, KRole role)
{
    int64_t n = 1;
    for (int d = 0; d < k->con.n[role]; d++)
        n *= k->inst.at[k->con.dim[role][d]].imm.i;
    return n;
}

static void want_parameters(Search *s, Call *c)
{
    if (c->kind != CALL_KERNEL)
        return;
    const Kernel *k = s->p->kernel.at[c->kernel];
    const Operand **op = call_operands(s->p, c, s->arena);
    if (k->kind != K_CONTRACT || k->con.pairs)
        return;
    const Val factor[] = {k->con.a, k->con.b};
    for (int f = 0; f < 2; f++) {
        const KInst *i = &k->inst.at[factor[f]];
        if (i->op != KI_LOAD)
            continue;
        const Operand *o = op[k->access.at[i->aux].buf];
        const Buffer *b = &s->p->buffer.at[o->buffer];
        bool often = s->in_loops > 0 && indices_of(k, f == 0 ? K_N : K_M) <= FEW_ROWS;
        if (b->role == ROLE_PARAM && b->bytes >= (often ? s->least_often : s->least))
            set(s, o->buffer, WANTED);
    }
}

/* What an elementwise kernel moves along with a matrix in panels lies so, too; false: it can't. */
static bool couple(Search *s, const Kernel *k, const Operand **op, const bool *which)
{
    const Panels *first = NULL;
    for (int i = 0; i < k->buf.n; i++)
        if (which[i] && wanted(s, op[i]->buffer))
            first = &s->of[op[i]->buffer];
    for (int i = 0; i < k->buf.n; i++) {
        if (!which[i])
            continue;
        if (!same_panels(&s->of[op[i]->buffer], first) || !at_matrix(s, op[i]) ||
            k->buf.at[i].elems % (first->rows * first->cols) != 0)
            return false;
        set(s, op[i]->buffer, WANTED);
        if (!wanted(s, op[i]->buffer))
            return false;
    }
    return true;
}

static bool can_be(Search *s, const Call *c, const Kernel *k, const Operand **op)
{
    bool *which = NEW_ARRAY(s->arena, bool, k->buf.n);
    if (panels_elementwise(k, which))
        return couple(s, k, op, which);
    for (int i = 0; i < k->buf.n; i++)
        if (op[i] != NULL && wanted(s, op[i]->buffer) && !at_matrix(s, op[i]))
            return false;
    const Kernel *n = panels_kernel(s->arena, k, panels_of_call(s, k, op));
    return n != NULL && in_step(s, k, op) && has_scratch(s, c, n);
}

static void look_at(Search *s, Call *c)
{
    if (c->kind != CALL_KERNEL)
        return;
    const Kernel *k = s->p->kernel.at[c->kernel];
    const Operand **op = call_operands(s->p, c, s->arena);
    bool some = false;
    for (int i = 0; i < k->buf.n; i++)
        some = some || (op[i] != NULL && wanted(s, op[i]->buffer));
    if (!some || can_be(s, c, k, op))
        return;
    for (int i = 0; i < k->buf.n; i++)
        if (op[i] != NULL && wanted(s, op[i]->buffer))
            set(s, op[i]->buffer, REFUSED);
}

/* Buffers of one storage lie alike. */
static void agree(Search *s)
{
    const Program *p = s->p;
    int32_t most = -1;
    for (int32_t b = 0; b < p->buffer.n; b++)
        most = p->buffer.at[b].storage > most ? p->buffer.at[b].storage : most;
    int32_t *first = NEW_ARRAY(s->arena, int32_t, most + 1);
    for (int32_t b = 0; b < p->buffer.n; b++) {
        int32_t *x = p->buffer.at[b].storage >= 0 ? &first[p->buffer.at[b].storage] : NULL;
        if (x == NULL)
            continue;
        if (*x == 0)
            *x = b + 1;
        int32_t other = *x - 1;
        if (!wanted(s, b) && !wanted(s, other))
            continue;
        State both = same_panels(&s->of[b], &s->of[other]) ? WANTED : REFUSED;
        set(s, b, both);
        set(s, other, both);
        if (wanted(s, b) == wanted(s, other))
            continue;
        set(s, b, REFUSED);
        set(s, other, REFUSED);
    }
}

static void find(Search *s)
{
    const Program *p = s->p;
    for (int e = 0; e < p->entry.n; e++)
        for (int r = 0; r < p->entry.at[e].n_results; r++)
            s->given[p->entry.at[e].result[r].buffer] = true;
    for (int32_t b = 0; b < p->buffer.n; b++)
        s->of[b] = panels_of(s, &p->buffer.at[b]);
    all_calls(s, find_given);
    all_calls(s, want_parameters);
    do {
        s->changed = false;
        all_calls(s, look_at);
        agree(s);
    } while (s->changed);
}

/* ---- the program ----------------------------------------------------------------------------- */

typedef struct Rewrite {
    const Search *s;
    Program *to;
} Rewrite;

static int32_t rewritten(const Rewrite *r, const Call *c)
{
    const Search *s = r->s;
    Kernel *k = s->p->kernel.at[c->kernel];
    const Operand **op = call_operands(s->p, c, s->arena);
    bool *which = NEW_ARRAY(s->arena, bool, k->buf.n), alike = panels_elementwise(k, which);
    for (int i = 0; i < k->buf.n; i++)
        alike = alike && (!which[i] || wanted(s, op[i]->buffer));
    if (!alike)
        k = (Kernel *)panels_kernel(s->arena, k, panels_of_call(s, k, op));
    return program_kernel(r->to, k);
}

static Call *copy_calls(const Rewrite *r, const Call *call, int32_t n)
{
    Call *to = NEW_ARRAY(r->s->arena, Call, n);
    for (int32_t i = 0; i < n; i++) {
        to[i] = call[i];
        if (call[i].kind == CALL_KERNEL)
            to[i].kernel = rewritten(r, &call[i]);
        else if (call[i].n_body > 0)
            to[i].body = copy_calls(r, call[i].body, call[i].n_body);
    }
    return to;
}

static const Program *rewrite(const Search *s)
{
    Program *to = NEW(s->arena, Program);
    *to = *s->p;
    to->arena = s->arena;
    memset(&to->kernel, 0, sizeof to->kernel);
    memset(&to->entry, 0, sizeof to->entry);
    Rewrite r = {s, to};
    for (int e = 0; e < s->p->entry.n; e++) {
        Entry x = s->p->entry.at[e];
        x.call = copy_calls(&r, x.call, x.n_calls);
        vec_push(s->arena, &to->entry, x);
    }
    return to;
}

const Program *panels_program(const Machine *m, const TargetOptions *o, const Program *p,
                              Arena *arena, const Panels **of)
{
    Search s = {.m = m, .p = p, .arena = arena};
    s.width = o->panel_width > 0 ? o->panel_width : panel_width(m);
    s.least = o->panels_from > 0 ? o->panels_from : m->l2_bytes / 2;
    s.least_often = o->panels_from > 0 ? o->panels_from : m->l1_bytes;
    s.state = NEW_ARRAY(arena, State, p->buffer.n);
    s.of = NEW_ARRAY(arena, Panels, p->buffer.n);
    s.given = NEW_ARRAY(arena, bool, p->buffer.n);
    find(&s);
    bool any = false;
    for (int32_t b = 0; b < p->buffer.n; b++) {
        any = any || wanted(&s, b);
        if (!wanted(&s, b))
            s.of[b] = (Panels){0};
    }
    *of = s.of;
    return any ? rewrite(&s) : p;
}
