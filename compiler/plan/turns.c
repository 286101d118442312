/* Turns of loops side by side.
 *
 * Where no turn carries anything to another, as over the heads of attention, lanes that take whole
 * turns each have all that a turn needs in their own caches, and meet once; lanes that share out
 * each kernel of the body meet at every one. It takes a workspace for each lane. */
#include "../kernel/program.h"
#include "plan.h"

/* What the peak may grow by: a sixth; and ns of a loop that is worth waking lanes for. */
enum { GROWS = 6, WORTH_NS = 20000 };

static int64_t body_bytes(const PlanStep *s)
{
    return align_up(s->body->peak, BLOCK_ALIGN);
}

static void set_turns(PlanStep *s, int64_t turns)
{
    s->turns = turns;
    s->workspace = turns > 1 ? turns * body_bytes(s) : s->body->peak;
}

/* As many as there are lanes for, and room, if so many take turns at all. */
static int64_t turns_within(const Plan *p, const PlanStep *s, int64_t room)
{
    int64_t turns = p->threads_max < s->count ? p->threads_max : s->count;
    int64_t fit = s->body->peak > 0 ? 1 + room / body_bytes(s) : turns;
    turns = fit < turns ? fit : turns;
    while (turns > 1 && !share_turns(s->count, turns))
        turns--;
    return turns;
}

/* In loops that have no room for it, of the loops within. False: nothing has changed. */
static bool find_turns(Plan *p, int64_t limit)
{
    ArenaMark mark = arena_mark(p->arena);
    const int64_t *live = plan_live(p, p->arena);
    bool any = false;
    for (int32_t s = 0; s < p->n_steps; s++) {
        PlanStep *step = &p->step[s];
        if (step->body == NULL)
            continue;
        int64_t room = limit - live[s];
        bool worth = step->apart && plan_step_cost(p, step) >= WORTH_NS;
        int64_t turns = worth ? turns_within(p, step, room) : 1;
        if (turns > 1)
            set_turns(step, turns);
        else if (find_turns(step->body, step->body->peak + room))
            set_turns(step, 1);
        else
            continue;
        any = true;
    }
    arena_reset(p->arena, mark);
    if (any)
        plan_place(p);
    plan_find_peak(p);
    return any;
}

static void forget_turns(Plan *p)
{
    for (int32_t s = 0; s < p->n_steps; s++)
        if (p->step[s].body != NULL) {
            forget_turns(p->step[s].body);
            set_turns(&p->step[s], 1);
        }
    plan_place(p);
    plan_find_peak(p);
}

void plan_turns(Plan *p)
{
    const int64_t limit = p->peak + p->peak / GROWS;
    if (find_turns(p, limit) && p->peak > limit) /* for holes between values */
        forget_turns(p);
}
