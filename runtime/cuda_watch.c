/* Times of launches, by events of the driver between them. What lies between two events is a launch
 * and, where the device has nothing else to do, what the host needs to queue it. */
#include <string.h>

#include "cuda_state.h"

/* Room for one mark more. */
static int grow(State *s)
{
    if (s->marks < s->mark_room)
        return GRADC_OK;
    int64_t room = s->mark_room > 0 ? 2 * s->mark_room : 256;
    Mark *more = gr_new(room, sizeof *more);
    if (more == NULL) {
        s->lost = true; /* some launches are queued, and the others will not be */
        s->lost_status = GRADC_MEMORY;
        return gr_cuda_say(s->g, GRADC_MEMORY, "no memory for the times of %lld launches",
                           (long long)room);
    }
    if (s->mark != NULL)
        memcpy(more, s->mark, (size_t)s->marks * sizeof *more);
    gr_free(s->mark);
    s->mark = more;
    s->mark_room = room;
    return GRADC_OK;
}

int gr_cuda_mark(State *s, const gradc_cuda_op *op, CuStream stream)
{
    int status = grow(s);
    if (status != GRADC_OK)
        return status;
    Mark *m = &s->mark[s->marks];
    if (s->marks == s->events) {
        status = CU_NEW(s, cuEventCreate, &m->event, CU_EVENT_TIMING);
        s->events += status == GRADC_OK;
    }
    m->op = op != NULL ? op - s->watched : -1;
    if (status == GRADC_OK)
        status = CU(s, cuEventRecord, m->event, stream);
    s->marks += status == GRADC_OK;
    return status;
}

/* The second mark is behind nothing: it tells what is of the marks themselves. */
static int tell(State *s)
{
    double from = 0;
    int status = CU(s, cuEventSynchronize, s->mark[s->marks - 1].event);
    for (int64_t i = 1; i < s->marks && status == GRADC_OK; i++) {
        float ms = -1;
        const Mark *m = &s->mark[i];
        CuResult r = s->gpu->driver.cuEventElapsedTime(&ms, m[-1].event, m->event);
        status = gr_cuda_check(s, r == CU_OK && !(ms >= 0) ? CU_UNKNOWN : r, "cuEventElapsedTime");
        if (status != GRADC_OK)
            break;
        double to = from + 1e6 * (double)ms;
        s->gpu->lap(s->gpu->lap_of, m->op, from, to);
        from = m->op < 0 ? 0 : to;
    }
    return status;
}

int gr_cuda_launch_watched(State *s, const gradc_cuda_entry *e, CuStream stream)
{
    s->marks = 0;
    s->watched = e->op;
    int status = gr_cuda_mark(s, NULL, stream);
    if (status == GRADC_OK)
        status = gr_cuda_mark(s, NULL, stream);
    if (status == GRADC_OK && e->ops > 0)
        status = gr_cuda_launch_all(s, e, stream);
    s->watched = NULL;
    return status == GRADC_OK ? tell(s) : status;
}

void gr_cuda_drop_marks(State *s)
{
    for (int64_t i = 0; i < s->events; i++)
        s->gpu->driver.cuEventDestroy_v2(s->mark[i].event);
    s->events = 0;
}
