/* Scratch that a block has for a call. It is laid out for the kernels of the program as it was
 * lowered; what the target makes of them afterwards has to do with that (panels.c, side_sums.c). */
#ifndef GRADC_TARGET_CPU_ROOM_H
#define GRADC_TARGET_CPU_ROOM_H

#include "emit.h"

/* Of so many lanes, so many bytes each, from the start of the block plus `lo` on. */
typedef struct Room {
    int64_t lo, lanes, bytes;
} Room;

static inline Room room_of(const Program *p, const Call *call)
{
    return call->scratch > 0 ? (Room){call->scratch, call->lanes, call->lane_bytes}
                             : (Room){p->lanes_offset, p->threads_max, p->lane_bytes};
}

/* A kernel that is planned so has room. in_turns: of a loop whose turns lanes may take whole; else
 * one that runs alone has the scratch of all lanes. */
static inline bool room_holds(const Room *r, const KernelFn *f, int64_t threads_max, bool in_turns)
{
    bool alone = f->chunks <= 1 && !in_turns;
    int64_t most = f->chunks < threads_max ? f->chunks : threads_max;
    return alone ? f->scratch <= r->bytes * r->lanes
                 : f->scratch <= r->bytes && (most <= r->lanes || in_turns);
}

#endif
