/* Programs: role names, shared kernels, the listing of `--emit kernels`. */
#include <string.h>
#include "program.h"

static const char *const role_text[N_ROLES] = {
    [ROLE_PARAM] = "parameters",    [ROLE_OPTIMIZER] = "optimizer",
    [ROLE_STATE] = "state",         [ROLE_SCALAR] = "scalars",
    [ROLE_GRADIENT] = "gradients",  [ROLE_ACTIVATION] = "activations",
    [ROLE_CONSTANT] = "constants",  [ROLE_INPUT] = "inputs",
    [ROLE_STAGING] = "staging",     [ROLE_OUTPUT] = "outputs",
    [ROLE_WORKSPACE] = "workspace", [ROLE_LANES] = "lane scratch",
    [ROLE_HANDLE] = "handle",       [ROLE_PADDING] = "padding",
};

const char *role_name(Role r)
{
    return r < N_ROLES ? role_text[r] : "?";
}

/* Kernels are few hundred at most: a scan that compares sizes first is enough. */
int32_t program_kernel(Program *p, Kernel *k)
{
    for (int i = 0; i < p->kernel.n; i++)
        if (kernel_same(p->kernel.at[i], k))
            return i;
    vec_push(p->arena, &p->kernel, k);
    return p->kernel.n - 1;
}

const Operand **call_operands(const Program *p, const Call *c, Arena *arena)
{
    const Kernel *k = p->kernel.at[c->kernel];
    const Operand **x = NEW_ARRAY(arena, const Operand *, k->buf.n);
    for (int i = 0, o = 0; i < k->buf.n; i++)
        x[i] = k->buf.at[i].mode == K_LOCAL ? NULL : &c->op[o++];
    return x;
}

/* ---- where operands reach ---------------------------------------------------------------- */

typedef struct Reach {
    const Program *p;
    Arena *arena;
    int64_t last[MAX_LOOP_DEPTH]; /* turn of each loop around the call */
    bool *written;                /* by buffer: a call of the entry writes it */
    const char *wrong;
} Reach;

static void find_written(Reach *r, const Call *call, int32_t n)
{
    for (const Call *c = call; n-- > 0; c++) {
        const Kernel *k = c->kind == CALL_KERNEL ? r->p->kernel.at[c->kernel] : NULL;
        if (c->kind == CALL_IN)
            r->written[c->op[0].buffer] = true;
        for (int i = 0, o = 0; k != NULL && i < k->buf.n; i++)
            if (k->buf.at[i].mode != K_LOCAL && k->buf.at[i].mode != K_IN)
                r->written[c->op[o++].buffer] = true;
            else
                o += k->buf.at[i].mode != K_LOCAL;
        if (c->n_body > 0)
            find_written(r, c->body, c->n_body);
    }
}

/* Activations are nothing before a call makes them, itself or in memory that it shares. */
static bool is_made(const Reach *r, int32_t buffer)
{
    const Buffer *b = &r->p->buffer.at[buffer];
    if (b->role != ROLE_ACTIVATION || r->written[buffer])
        return true;
    for (int i = 0; i < r->p->buffer.n; i++)
        if (r->written[i] && b->storage >= 0 && r->p->buffer.at[i].storage == b->storage)
            return true;
    return false;
}

static void reach_operand(Reach *r, const Operand *o, int64_t elems, const char *label)
{
    const Buffer *b = &r->p->buffer.at[o->buffer];
    int64_t lo = o->base, hi = o->base + elems;
    for (int d = 0; d < MAX_LOOP_DEPTH; d++) {
        int64_t all = o->step[d] * r->last[d];
        *(all < 0 ? &lo : &hi) += all;
    }
    if (!is_made(r, o->buffer))
        r->wrong = arena_printf(r->arena, "%s reads %s, which nothing makes", label, b->name);
    if (lo < 0 || hi > b->elems)
        r->wrong = arena_printf(r->arena, "%s touches elements %lld to %lld of %s, which has %lld",
                                label, (long long)lo, (long long)hi, b->name, (long long)b->elems);
}

static void reach_calls(Reach *r, const Call *call, int32_t n, int depth)
{
    for (const Call *c = call; n-- > 0 && r->wrong == NULL; c++) {
        if (c->kind == CALL_LOOP && c->count > 0) {
            r->last[depth] = c->count - 1;
            reach_calls(r, c->body, c->n_body, depth + 1);
            r->last[depth] = 0;
        } else if (c->kind == CALL_GUARD) {
            reach_operand(r, &c->flag, 1, c->label);
            reach_calls(r, c->body, c->n_body, depth);
        } else if (c->kind == CALL_KERNEL) {
            const Kernel *k = r->p->kernel.at[c->kernel];
            const Operand **op = call_operands(r->p, c, r->arena);
            for (int i = 0; i < k->buf.n; i++)
                if (op[i] != NULL)
                    reach_operand(r, op[i], k->buf.at[i].elems, c->label);
        }
    }
}

const char *program_verify(const Program *p, Arena *arena)
{
    Reach r = {.p = p, .arena = arena, .written = NEW_ARRAY(arena, bool, p->buffer.n)};
    for (int i = 0; i < p->entry.n && r.wrong == NULL; i++) {
        memset(r.written, 0, (size_t)p->buffer.n * sizeof *r.written);
        find_written(&r, p->entry.at[i].call, p->entry.at[i].n_calls);
        reach_calls(&r, p->entry.at[i].call, p->entry.at[i].n_calls, 0);
    }
    return r.wrong;
}

/* ---- the steps ----------------------------------------------------------------------------- */

static bool has_body(const Call *c)
{
    return c->kind == CALL_LOOP || c->kind == CALL_GUARD;
}

int32_t steps_count(const Call *call, int32_t n)
{
    int32_t sum = 0;
    for (const Call *c = call; n-- > 0; c++)
        sum += has_body(c) ? steps_count(c->body, c->n_body) : 1;
    return sum;
}

const Call **steps_list(const Call *call, int32_t n, const Call **to)
{
    for (const Call *c = call; n-- > 0; c++)
        if (has_body(c))
            to = steps_list(c->body, c->n_body, to);
        else
            *to++ = c;
    return to;
}

/* ---- listing ------------------------------------------------------------------ */

const Entry *program_entry(const Program *p, const char *name)
{
    for (int i = 0; i < p->entry.n; i++)
        if (strcmp(p->entry.at[i].name, name) == 0)
            return &p->entry.at[i];
    return NULL;
}

int64_t program_rows(const Program *p, const Entry *e)
{
    bool all = strcmp(e->name, "grad") == 0 || strcmp(e->name, "step") == 0;
    return all && p->accumulate > 1 ? p->batch_rows * p->accumulate : p->batch_rows;
}

static int row_step(const Program *p, const Call *call, int32_t n, int32_t input)
{
    int found = 0;
    for (int j = 0; j < n && found == 0; j++) {
        const Call *c = &call[j];
        for (int i = 0; i < c->n_ops && found == 0; i++) {
            const Buffer *b = &p->buffer.at[c->op[i].buffer];
            int64_t step = c->op[i].step[0];
            if (b->role == ROLE_INPUT && b->input == input)
                found = (step > 0) - (step < 0);
        }
        found = found == 0 ? row_step(p, c->body, c->n_body, input) : found;
    }
    return found;
}

int program_row_loop(const Program *p, const Call *loop, int32_t input)
{
    return p->input.at[input].by_row ? row_step(p, loop->body, loop->n_body, input) : 0;
}

static void print_buffer(const Program *p, int32_t i, Text *to)
{
    const Buffer *b = &p->buffer.at[i];
    text_add(to, "  #%d %s: %s[", i, b->name != NULL ? b->name : "", dtype_name(b->dtype));
    for (int d = 0; d < b->rank; d++)
        text_add(to, "%s%lld", d > 0 ? "," : "", (long long)b->shape[d]);
    text_add(to, "] %s", role_name(b->role));
    if (b->offset >= 0)
        text_add(to, " at %lld, %lld bytes", (long long)b->offset, (long long)b->bytes);
    text_char(to, '\n');
}

/* "#12 + 640 + 32*t0", t0 being the index of the outermost loop call. */
static void print_operand(const Program *p, const Operand *o, Text *to)
{
    text_add(to, "%s#%d", p->buffer.at[o->buffer].name, o->buffer);
    if (o->base != 0)
        text_add(to, " + %lld", (long long)o->base);
    for (int d = 0; d < MAX_LOOP_DEPTH; d++)
        if (o->step[d] != 0)
            text_add(to, " + %lld*t%d", (long long)o->step[d], d);
}

static void print_calls(const Program *p, const Call *call, int32_t n, int indent, int loops,
                        Text *to)
{
    for (int32_t i = 0; i < n; i++) {
        const Call *c = &call[i];
        text_add(to, "%*s", 2 * indent, "");
        if (c->kind == CALL_KERNEL) {
            text_add(to, "%s(", p->kernel.at[c->kernel]->name);
            for (int32_t o = 0; o < c->n_ops; o++) {
                text_add(to, o > 0 ? ", " : "");
                print_operand(p, &c->op[o], to);
            }
            text_add(to, ") kernel %d%s%s\n", c->kernel, c->label != NULL ? " # " : "",
                     c->label != NULL ? c->label : "");
            continue;
        }
        if (c->kind == CALL_OUT || c->kind == CALL_IN || c->kind == CALL_WAIT) {
            text_add(to, "%s ", c->kind == CALL_OUT ? "out" : c->kind == CALL_IN ? "in" : "wait");
            print_operand(p, &c->op[0], to);
            text_add(to, " at %lld of the store\n", (long long)c->store);
            continue;
        }
        if (c->kind == CALL_LOOP) {
            text_add(to, "loop t%d < %lld", loops, (long long)c->count);
            if (c->turns > 1)
                text_add(to, ", %lld at once", (long long)c->turns);
            text_add(to, " {\n");
        } else {
            text_add(to, "guard ");
            print_operand(p, &c->flag, to);
            text_add(to, " {\n");
        }
        print_calls(p, c->body, c->n_body, indent + 1, loops + (c->kind == CALL_LOOP), to);
        text_add(to, "%*s}\n", 2 * indent, "");
    }
}

void program_print(const Program *p, Text *to)
{
    text_add(to, "program %s, %lld bytes, %lld of them pinned\n\nbuffers\n", p->name,
             (long long)p->arena_bytes, (long long)p->pinned_bytes);
    for (int i = 0; i < p->buffer.n; i++)
        print_buffer(p, i, to);
    for (int i = 0; i < p->entry.n; i++) {
        const Entry *e = &p->entry.at[i];
        text_add(to, "\nentry %s, peak %lld bytes\n", e->name, (long long)e->peak_bytes);
        print_calls(p, e->call, e->n_calls, 1, 0, to);
    }
    for (int i = 0; i < p->kernel.n; i++) {
        text_add(to, "\n# kernel %d\n", i);
        kernel_print(p->kernel.at[i], to);
    }
}
