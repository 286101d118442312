/* One kernel for many that are the same but for where in their operands they begin: those of a loop
 * over slices that a model writes out, x[:, i, :]. Where each begins is then in its call. */
#include <string.h>

#include "lower.h"

/* Fewer kernels are not worth that slices are no whole buffers any more to what looks at those,
 * such as slabs of two kernels in turn. */
enum { OFTEN = 8 };

/* A kernel whose accesses of what it takes begin at the first element that it touches. */
typedef struct Form {
    Kernel *is;     /* the kernel itself, or a copy */
    int64_t *shift; /* by buffer: elements by which its operands begin later */
    uint64_t hash;
    int32_t shared; /* its number among the shared ones, or -1 */
} Form;

enum { FREE = 0, NEVER = -1 };

typedef struct Sharing {
    Program *p;
    const Caps *caps;
    Arena *arena;
    int64_t **unit; /* by kernel, by buffer: what is touched must be one of so many elements, from
                       a multiple of them on; FREE; NEVER */
    Form *form;     /* by kernel */
    int32_t *now;   /* by kernel: its new number */
} Sharing;

typedef void EachKernel(Sharing *s, Call *c);

static void each_kernel(Sharing *s, Call *call, int32_t n, EachKernel *f)
{
    for (Call *c = call; n-- > 0; c++) {
        if (c->kind == CALL_KERNEL)
            f(s, c);
        if (c->n_body > 0)
            each_kernel(s, c->body, c->n_body, f);
    }
}

static void all_kernels(Sharing *s, EachKernel *f)
{
    for (int e = 0; e < s->p->entry.n; e++)
        each_kernel(s, s->p->entry.at[e].call, s->p->entry.at[e].n_calls, f);
}

/* Matrices of parameters, gradients and moments may be laid out otherwise, each as a whole: what
 * lies along the first axis is moved by. Literals are no memory. */
static int64_t unit_of(const Buffer *b)
{
    switch (b->role) {
    case ROLE_ACTIVATION:
    case ROLE_INPUT:
        return FREE;
    case ROLE_PARAM:
    case ROLE_GRADIENT:
    case ROLE_OPTIMIZER:
        return b->rank > 1 && b->elems > 0 ? b->elems / b->shape[0] : NEVER;
    default:
        return NEVER;
    }
}

static void find_units(Sharing *s, Call *c)
{
    const Kernel *k = s->p->kernel.at[c->kernel];
    for (int i = 0, o = 0; i < k->buf.n; i++) {
        if (k->buf.at[i].mode == K_LOCAL)
            continue;
        int64_t *unit = &s->unit[c->kernel][i], u = unit_of(&s->p->buffer.at[c->op[o++].buffer]);
        *unit = *unit == FREE || *unit == u ? u : u == FREE ? *unit : NEVER;
    }
}

/* Elements [lo, hi] of the buffer are what the kernel touches. */
static bool find_touched(const Kernel *k, int buf, int64_t *lo, int64_t *hi)
{
    const KContract *c = &k->con;
    bool named = (k->limit.is && k->limit.buf == buf) ||
                 (k->kind == K_CONTRACT && ((c->all != 0 && c->all_buf == buf) ||
                                            (c->side_sum != 0 && c->side_sum_buf == buf)));
    *lo = INT64_MAX;
    *hi = INT64_MIN;
    for (int i = 0; i < k->access.n && !named; i++) {
        const KAccess *a = &k->access.at[i];
        int64_t from, to;
        if (a->buf != buf)
            continue;
        if (a->n_bounds > 0 || !k_aff_range(k, &a->at, &from, &to))
            return false;
        *lo = from < *lo ? from : *lo;
        *hi = to > *hi ? to : *hi;
    }
    return !named && *lo <= *hi;
}

static Form form_of(Sharing *s, int32_t kernel)
{
    Kernel *k = s->p->kernel.at[kernel];
    Form f = {.is = k, .shift = NEW_ARRAY(s->arena, int64_t, k->buf.n), .shared = -1};
    for (int i = 0; i < k->buf.n; i++) {
        int64_t lo, hi, unit = s->unit[kernel][i];
        if (k->buf.at[i].mode == K_LOCAL || unit == NEVER || !find_touched(k, i, &lo, &hi))
            continue;
        int64_t n = hi - lo + 1;
        if (n == k->buf.at[i].elems || (unit != FREE && (n != unit || lo % unit != 0)))
            continue;
        if (f.is == k)
            f.is = kernel_copy(s->p->arena, k, NULL);
        f.shift[i] = lo;
        f.is->buf.at[i].elems = n;
        for (int a = 0; a < k->access.n; a++)
            if (k->access.at[a].buf == i)
                f.is->access.at[a].at.base -= lo;
    }
    f.hash = kernel_hash(f.is);
    return f;
}

/* What the plan has foreseen for the one does for the other. */
static bool same_scratch(const Caps *c, const Kernel *x, const Kernel *y)
{
    int64_t of_x = 0, of_y = 0;
    if (c->lane_scratch(c->options, x) != c->lane_scratch(c->options, y))
        return false;
    if (c->turn_scratch != NULL && c->turn_scratch(c->options, x) != c->turn_scratch(c->options, y))
        return false;
    return c->lanes == NULL ||
           (c->lanes(c->options, x, &of_x) == c->lanes(c->options, y, &of_y) && of_x == of_y);
}

/* Kernels from `first` on whose form is that one's: they get its number where they are many. */
static void share_form(Sharing *s, int32_t first)
{
    const Program *p = s->p;
    const Form *f = &s->form[first];
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = first; i < p->kernel.n && (pass == 0 || n >= OFTEN); i++) {
            Form *g = &s->form[i];
            bool same = g->hash == f->hash && kernel_same(g->is, f->is);
            if (same && pass == 0)
                n++;
            else if (same && same_scratch(s->caps, p->kernel.at[i], f->is))
                g->shared = first;
        }
}

static void move_operands(Sharing *s, Call *c)
{
    const Form *f = &s->form[c->kernel];
    const Kernel *k = s->p->kernel.at[c->kernel];
    for (int i = 0, o = 0; i < k->buf.n && f->shared >= 0; i++)
        if (k->buf.at[i].mode != K_LOCAL)
            c->op[o++].base += f->shift[i];
    c->kernel = s->now[c->kernel];
}

/* The kernels in the order of the first of those that became one. */
static void renumber(Sharing *s)
{
    Program *p = s->p;
    int32_t n = 0, all = p->kernel.n;
    int32_t *number = NEW_ARRAY(s->arena, int32_t, all); /* by first kernel: of the shared, + 1 */
    Kernel **kept = NEW_ARRAY(s->arena, Kernel *, all);
    for (int32_t i = 0; i < all; i++) {
        int32_t f = s->form[i].shared;
        if (f >= 0 && number[f] > 0) {
            s->now[i] = number[f] - 1;
            continue;
        }
        kept[n] = f >= 0 ? s->form[f].is : p->kernel.at[i];
        s->now[i] = n++;
        if (f >= 0)
            number[f] = n;
    }
    all_kernels(s, move_operands);
    memcpy(p->kernel.at, kept, sizeof *kept * (size_t)n);
    p->kernel.n = n;
}

void share_kernels(Program *p, const Caps *caps)
{
    Arena scratch = {0};
    int32_t n = p->kernel.n;
    Sharing s = {.p = p, .caps = caps, .arena = &scratch};
    if (n < OFTEN)
        return;
    s.unit = NEW_ARRAY(&scratch, int64_t *, n);
    s.form = NEW_ARRAY(&scratch, Form, n);
    s.now = NEW_ARRAY(&scratch, int32_t, n);
    for (int32_t i = 0; i < n; i++)
        s.unit[i] = NEW_ARRAY(&scratch, int64_t, p->kernel.at[i]->buf.n);
    all_kernels(&s, find_units);
    for (int32_t i = 0; i < n; i++)
        s.form[i] = form_of(&s, i);
    for (int32_t i = 0; i < n; i++)
        if (s.form[i].shared < 0)
            share_form(&s, i);
    renumber(&s);
    arena_free(&scratch);
}
