/* What the entries launch, for the reader of the text. */
#include "cuda.h"

static void find_guarded(const Call *call, int32_t n, bool inside, bool *guarded)
{
    for (const Call *c = call; n-- > 0; c++) {
        if (c->kind == CALL_KERNEL)
            guarded[c->kernel] |= inside;
        else
            find_guarded(c->body, c->n_body, inside || c->kind == CALL_GUARD, guarded);
    }
}

void cu_find_guarded(const Program *p, bool *guarded)
{
    for (int e = 0; e < p->entry.n; e++)
        find_guarded(p->entry.at[e].call, p->entry.at[e].n_calls, false, guarded);
}

static bool runs_both(const Call *call, int32_t n, const bool *guarded)
{
    bool found = false;
    for (const Call *c = call; n-- > 0 && !found; c++)
        if (c->kind == CALL_KERNEL)
            found = guarded[c->kernel];
        else if (c->kind != CALL_GUARD)
            found = runs_both(c->body, c->n_body, guarded);
    return found;
}

bool cu_runs_both(const Program *p, const bool *guarded)
{
    bool found = false;
    for (int e = 0; e < p->entry.n && !found; e++)
        found = runs_both(p->entry.at[e].call, p->entry.at[e].n_calls, guarded);
    return found;
}

typedef struct List {
    const Program *p;
    const char *const *name;
    const Launch *launch;
    const bool *guarded;
    Text *to;
} List;

/* Text of the model, which must not end the comment. */
static void put_name(List *l, const char *name)
{
    for (const char *c = name; *c != 0; c++)
        text_char(l->to, *c == '/' || *c == '\\' || (unsigned char)*c < 0x20 ? '.' : *c);
}

/* Name and bytes from the start of the arena; inputs and constants lie elsewhere. */
static void put_operand(List *l, const Operand *o, int depth)
{
    static const char *const index[MAX_LOOP_DEPTH] = {"i", "j", "k", "l"};
    const Buffer *b = &l->p->buffer.at[o->buffer];
    int64_t size = dtype_bytes(b->dtype);
    int64_t at = b->offset < 0 ? o->base * size : b->offset + o->base * size;
    put_name(l, b->name);
    text_add(l->to, b->offset < 0 ? " + %lld" : " at %lld", (long long)at);
    for (int d = 0; d < depth && d < MAX_LOOP_DEPTH; d++)
        if (o->step[d] != 0)
            text_add(l->to, " + %lld %s", (long long)(o->step[d] * size), index[d]);
}

static void put_kernel(List *l, const Call *c, int depth, const Operand *guard)
{
    const Launch *launch = &l->launch[c->kernel];
    text_add(l->to, "%s<<<%lld, %d>>>(", l->name[c->kernel], (long long)launch->blocks,
             launch->threads);
    for (int i = 0; i < c->n_ops; i++) {
        text_add(l->to, i > 0 ? ", " : "");
        put_operand(l, &c->op[i], depth);
    }
    if (l->guarded[c->kernel])
        text_add(l->to, c->n_ops > 0 ? ", " : "");
    if (l->guarded[c->kernel] && guard != NULL)
        put_operand(l, guard, depth);
    else if (l->guarded[c->kernel])
        text_add(l->to, "always");
    text_add(l->to, ")\n");
}

static void put_transfer(List *l, const Call *c)
{
    const char *what = c->kind == CALL_OUT  ? "copy out"
                       : c->kind == CALL_IN ? "copy in"
                                            : "wait for";
    text_add(l->to, "%s ", what);
    if (c->n_ops > 0)
        put_name(l, l->p->buffer.at[c->op[0].buffer].name);
    text_add(l->to, ", byte %lld of the store\n", (long long)c->store);
}

static void put_calls(List *l, const Call *call, int32_t n, int depth, int indent,
                      const Operand *guard)
{
    for (const Call *c = call; n-- > 0; c++) {
        if (c->kind == CALL_KERNEL && l->launch[c->kernel].blocks == 0)
            continue;
        text_add(l->to, "%*s", 2 * indent, "");
        switch (c->kind) {
        case CALL_KERNEL:
            put_kernel(l, c, depth, guard);
            break;
        case CALL_LOOP:
            text_add(l->to, "%lld times:\n", (long long)c->count);
            put_calls(l, c->body, c->n_body, depth + 1, indent + 1, guard);
            break;
        case CALL_GUARD:
            text_add(l->to, "guarded:\n");
            put_calls(l, c->body, c->n_body, depth, indent + 1, &c->flag);
            break;
        default:
            put_transfer(l, c);
            break;
        }
    }
}

void cu_launches(const CudaText *t, Text *to)
{
    const Program *p = t->p;
    List l = {.p = p, .name = t->name, .launch = t->launch, .guarded = t->guarded, .to = to};
    text_add(to, "/* ---- launches: kernel<<<blocks, threads>>>(bytes of the arena) ----\n");
    for (int e = 0; e < p->entry.n; e++) {
        const Entry *x = &p->entry.at[e];
        text_add(to, "\nentry %s, %lld bytes:\n", x->name, (long long)x->peak_bytes);
        put_calls(&l, x->call, x->n_calls, 0, 1, NULL);
    }
    text_add(to, "*/\n");
}
