/* What lies on the device beside the arena: inputs and literal tensors. */
#include "object.h"

enum { DEVICE_ALIGN = 256 };

/* The copy for calls that are short of rows, if the plan keeps one from call to call; -1: none. */
static int64_t kept_copy(const Program *p, int32_t input)
{
    for (int i = 0; i < p->buffer.n; i++)
        if (p->buffer.at[i].role == ROLE_STAGING && p->buffer.at[i].input == input &&
            fact_live(p, i))
            return p->buffer.at[i].offset;
    return -1;
}

static bool is_read(const Program *p, int32_t input, Use *use)
{
    bool read = false;
    for (int e = 0; e < p->entry.n; e++) {
        fact_uses(p, &p->entry.at[e], use);
        read |= use[input].reads > 0;
    }
    return read;
}

static void place_inputs(Behind *b, const Program *p, Arena *arena)
{
    Use *use = NEW_ARRAY(arena, Use, p->input.n);
    for (int i = 0; i < p->input.n; i++) {
        const Input *in = &p->input.at[i];
        b->slot[i] = kept_copy(p, i);
        if (b->slot[i] >= 0 || !is_read(p, i, use))
            continue;
        b->slot[i] = b->device_bytes;
        b->device_bytes += align_up(in->elems * dtype_bytes(in->dtype), DEVICE_ALIGN);
    }
}

Behind cu_place_behind(const Program *p, const bool *guarded, Arena *arena)
{
    Behind b = {.slot = NEW_ARRAY(arena, int64_t, p->input.n),
                .constant = NEW_ARRAY(arena, int64_t, p->buffer.n),
                .device_bytes = align_up(p->arena_bytes, DEVICE_ALIGN)};
    place_inputs(&b, p, arena);
    for (int i = 0; i < p->buffer.n; i++) {
        const Buffer *x = &p->buffer.at[i];
        b.constant[i] = -1;
        if (x->role != ROLE_CONSTANT)
            continue;
        b.constant[i] = b.constant_bytes;
        b.constant_bytes += align_up(x->elems * dtype_bytes(x->dtype), DEVICE_ALIGN);
    }
    b.always = cu_runs_both(p, guarded) ? b.constant_bytes : -1;
    b.constant_bytes += b.always >= 0 ? DEVICE_ALIGN : 0;
    b.constants = b.device_bytes;
    b.device_bytes += b.constant_bytes;
    return b;
}
