/* What a Program's parts are to those who call the object. */
#include "facts.h"

#include <string.h>
#include "../../runtime/abi.h"

int32_t fact_result(const Program *p, const char *name)
{
    for (int i = 0; i < p->result.n; i++)
        if (strcmp(p->result.at[i].name, name) == 0)
            return i;
    return -1;
}

int32_t fact_result_kind(const Program *p, int32_t result)
{
    const Result *r = &p->result.at[result];
    if (r->kind != 0)
        return r->kind;
    return strcmp(r->name, "loss") == 0 ? GRADC_LOSS : GRADC_OUTPUT;
}

int32_t fact_loss(const Program *p)
{
    for (int i = 0; i < p->result.n; i++)
        if (fact_result_kind(p, i) == GRADC_LOSS)
            return i;
    return -1;
}

bool fact_live(const Program *p, int32_t buffer)
{
    const Buffer *b = &p->buffer.at[buffer];
    return b->offset >= 0 && b->offset + b->elems * dtype_bytes(b->dtype) <= p->pinned_bytes;
}

bool fact_has_copy(const Program *p, const Entry *e, const Buffer *b)
{
    int64_t spare = p->lanes_offset + p->lane_bytes * p->threads_max, end = b->offset + b->bytes;
    if (b->role != ROLE_STAGING || b->offset < 0)
        return false;
    return end <= p->pinned_bytes || (b->offset >= spare && end <= spare + e->spare_bytes);
}

int32_t fact_role(Role r)
{
    switch (r) {
    case ROLE_PARAM:
        return GRADC_PARAM;
    case ROLE_OPTIMIZER:
        return GRADC_OPTIMIZER;
    case ROLE_SCALAR:
        return GRADC_SCALAR;
    case ROLE_GRADIENT:
        return GRADC_GRADIENT;
    default:
        return GRADC_STATE;
    }
}

/* The entry's own buffer of result i, or NULL. */
const Result *fact_own_result(const Program *p, const Entry *e, int i)
{
    for (int r = 0; r < e->n_results; r++)
        if (e->result[r].wanted && fact_result(p, e->result[r].name) == i)
            return &e->result[r];
    return NULL;
}

bool fact_gives_outputs(const Program *p)
{
    for (int i = 0; i < p->result.n; i++)
        if (fact_result_kind(p, i) == GRADC_OUTPUT)
            return true;
    return false;
}

/* ---- what the entry reads ---------------------------------------------------------- */

static void find_reads(const Program *p, const Call *call, int32_t n, int depth,
                       const int64_t *last, Use *use)
{
    for (const Call *c = call; n-- > 0; c++) {
        if (c->kind != CALL_KERNEL) {
            int64_t inner[MAX_LOOP_DEPTH];
            memcpy(inner, last, sizeof inner);
            if (c->kind == CALL_LOOP)
                inner[depth] = c->count - 1;
            find_reads(p, c->body, c->n_body, depth + (c->kind == CALL_LOOP), inner, use);
            continue;
        }
        const Kernel *k = p->kernel.at[c->kernel];
        for (int i = 0, o = 0; i < k->buf.n; i++) {
            if (k->buf.at[i].mode == K_LOCAL)
                continue;
            const Operand *x = &c->op[o++];
            const Buffer *b = &p->buffer.at[x->buffer];
            int64_t end = x->base + k->buf.at[i].elems;
            for (int d = 0; d < depth; d++)
                end += x->step[d] > 0 ? x->step[d] * last[d] : 0;
            if (b->role == ROLE_INPUT && end > use[b->input].reads)
                use[b->input].reads = end;
        }
    }
}

int64_t fact_uses(const Program *p, const Entry *e, Use *use)
{
    const int64_t last[MAX_LOOP_DEPTH] = {0};
    int64_t rows = 0;
    for (int i = 0; i < p->input.n; i++)
        use[i] = (Use){0, -1};
    find_reads(p, e->call, e->n_calls, 0, last, use);
    for (int i = 0; i < p->input.n; i++) {
        const Input *in = &p->input.at[i];
        int64_t each = in->rows > 0 ? in->elems / in->rows : 0;
        int64_t n = each > 0 ? (use[i].reads + each - 1) / each : 0;
        rows = n > rows ? n : rows;
    }
    for (int i = 0; i < p->buffer.n; i++) {
        const Buffer *b = &p->buffer.at[i];
        if (fact_has_copy(p, e, b) && b->elems >= use[b->input].reads)
            use[b->input].staging = b->offset;
    }
    int64_t full = program_rows(p, e); /* however few of them it reads */
    return rows > full ? rows : full;
}

bool fact_is_input(const Buffer *b)
{
    return (b->role == ROLE_INPUT || b->role == ROLE_STAGING) && b->input >= 0;
}
