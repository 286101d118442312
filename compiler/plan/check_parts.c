/* The checker: what is kept of parts of the model is what the plan says, and no more than the
 * model allows. It is added up anew, moment by moment, from what the replay has seen. */
#include "check.h"

/* Bytes of ranges that lie across the moment after step s, in the part or in one inside. */
static int64_t bytes_at(const Check *c, const BudgetPart *part, int32_t s)
{
    const Plan *p = c->p;
    int64_t sum = 0;
    for (int32_t r = 0; r < p->n_ranges; r++) {
        const PlanValue *v = &p->value[p->range[r].value];
        const BudgetPart *x = v->origin == NULL ? NULL : v->origin->part;
        while (x != NULL && x != part)
            x = x->outer;
        if (x != NULL && c->track[r].late && p->range[r].from <= s && p->range[r].to > s)
            sum += check_whole_blocks(v->bytes);
    }
    return sum;
}

/* From the first step of the reverse pass on the forward pass may still go on: so long it is the
 * most of all moments. */
static int64_t most_bytes(const Check *c, const BudgetPart *part)
{
    const Plan *p = c->p;
    int64_t most = 0;
    int32_t forward = -1, reverse = -1;
    for (int32_t s = 0; s < p->n_steps; s++) {
        if (p->step[s].reverse && reverse < 0)
            reverse = s;
        if (p->step[s].kind == STEP_RUN && !p->step[s].reverse && !p->step[s].guarded &&
            p->step[s].run == 0)
            forward = s;
    }
    if (reverse < 0)
        return 0;
    int32_t low = forward < reverse - 1 ? forward : reverse - 1;
    int32_t high = forward < reverse - 1 ? reverse - 1 : forward;
    for (int32_t s = low; s <= high; s++) {
        int64_t here = bytes_at(c, part, s);
        most = here > most ? here : most;
    }
    return most;
}

/* The most of the bodies of the plan's steps, each replayed. -1: one does not hold. */
static int64_t most_in_bodies(Check *c, const Plan *p, const BudgetPart *part)
{
    int64_t most = 0;
    for (int32_t s = 0; s < p->n_steps; s++) {
        const Plan *body = p->step[s].body;
        if (body == NULL || p->step[s].run > 0)
            continue;
        const char *error;
        Plan inside = *body;
        inside.n_parts = 0;
        int64_t here = plan_check_part(&inside, part, c->arena, &error);
        if (error != NULL) {
            check_fail(c, "in step %d: %s", s, error);
            return -1;
        }
        most = here > most ? here : most;
    }
    return most;
}

int64_t check_part_bytes(Check *c, const BudgetPart *part)
{
    int64_t here = most_bytes(c, part), inside = most_in_bodies(c, c->p, part);
    return inside < 0 ? -1 : inside > here ? inside : here;
}

bool check_parts(Check *c)
{
    for (int32_t i = 0; i < c->p->n_parts; i++) {
        const PlanPart *x = &c->p->part[i];
        int64_t kept = check_part_bytes(c, x->part);
        if (kept < 0)
            return false;
        if (kept != x->kept)
            return check_fail(c, "part %d is said to keep %lld bytes, and keeps %lld", x->part->id,
                              (long long)x->kept, (long long)kept);
        if (kept > x->part->bytes)
            return check_fail(c, "part %d keeps %lld bytes, and may keep %lld", x->part->id,
                              (long long)kept, (long long)x->part->bytes);
    }
    return true;
}
