/* What is said of a tensor: where it is, from when to when, and why. */
#include "explain.h"

#include <string.h>

#include "../plan/report.h"

/* ---- why ---------------------------------------------------------------------------------- */

static const char *pinned_reason(Arena *a, const Life *l)
{
    Text t;
    text_init(&t, a);
    if (l->given)
        text_add(&t, "the caller reads it after the entry has run; ");
    text_add(&t, "%s", report_pinned_reason(l->plan, l->value, a));
    return t.at;
}

static const char *input_reason(Arena *a, const Life *l)
{
    if (l->readers == 0)
        return "no kernel reads it";
    if (l->readers == 1)
        return arena_printf(a, "one kernel reads it (%s)", l->label);
    return arena_printf(a, "%d kernels read it, the first is %s", l->readers, l->label);
}

static const char *life_reason(Arena *a, const Life *l)
{
    if (l->plan == NULL)
        return input_reason(a, l);
    return l->plan->value[l->value].pinned ? pinned_reason(a, l) : NULL;
}

/* ---- text ------------------------------------------------------------------------------------ */

void ranges_text(Text *t, Arena *a, const Plan *p, int32_t value, int indent)
{
    const int32_t *taken = report_taken(p, a);
    for (int32_t i = 0; i < p->n_ranges; i++) {
        const PlanRange *r = &p->range[i];
        if (r->value != value)
            continue;
        text_add(t, "%*sfrom step %d (%s) to step %d (%s), at byte %lld", indent, "", r->from,
                 p->step[r->from].label, r->to, p->step[r->to].label, (long long)r->offset);
        if (taken[i] >= 0)
            text_add(t, ", in place of %s", p->value[p->range[taken[i]].value].name);
        text_add(t, "\n%*sbecause %s\n", indent, "", report_reason(p, r, a));
    }
}

/* "the parameter ", where it is one. */
static const char *role_of_view(const Life *l)
{
    const PlanValue *v = &l->plan->value[l->value];
    return v->role == ROLE_PARAM ? "the parameter " : v->role == ROLE_STATE ? "the state " : "";
}

static void text_life(Text *t, Arena *a, const Life *l)
{
    text_add(t, "  entry %s: ", l->entry);
    if (l->view_of != NULL)
        text_add(t, "a view of %s%s; ", role_of_view(l), l->view_of);
    const char *reason = life_reason(a, l);
    if (reason != NULL) {
        text_add(t, "%s\n", reason);
        return;
    }
    const PlanValue *val = &l->plan->value[l->value];
    text_add(t, val->bytes == 0 ? "it has no bytes\n" : "kept\n");
    ranges_text(t, a, l->plan, l->value, 4);
}

void subject_text(Text *t, Arena *a, const Subject *s)
{
    Type type = s->type;
    int64_t bytes = type_bytes(&type);
    text_add(t, "%s: %s, %s, %lld byte%s", s->name, s->role, type_text(a, &type), (long long)bytes,
             bytes == 1 ? "" : "s");
    text_add(t, s->line != NULL ? ", %s\n" : "\n", s->line);
    if (s->storage != NULL && strcmp(s->storage, "pinned") == 0)
        text_add(t, "  pinned at byte %lld of the block, because it lives between calls\n",
                 (long long)s->offset);
    if (s->storage != NULL && strcmp(s->storage, "caller") == 0) {
        text_add(t, "  the caller's memory");
        if (s->offset >= 0)
            text_add(t, "; a call of fewer rows is copied to byte %lld of the block",
                     (long long)s->offset);
        text_char(t, '\n');
    }
    for (int i = 0; i < s->life.n; i++)
        text_life(t, a, &s->life.at[i]);
}

/* ---- JSON -------------------------------------------------------------------------------------
 */

void ranges_json(Text *t, Arena *a, const Plan *p, int32_t value)
{
    const int32_t *taken = report_taken(p, a);
    bool first = true;
    text_add(t, "\"ranges\": [");
    for (int32_t i = 0; i < p->n_ranges; i++) {
        const PlanRange *r = &p->range[i];
        if (r->value != value)
            continue;
        text_add(t, "%s{\"from\": %d, ", first ? "" : ", ", r->from);
        text_pair(t, "from_label", p->step[r->from].label);
        text_add(t, ", \"to\": %d, ", r->to);
        text_pair(t, "to_label", p->step[r->to].label);
        text_add(t, ", \"offset\": %lld, ", (long long)r->offset);
        text_pair(t, "in_place_of", taken[i] >= 0 ? p->value[p->range[taken[i]].value].name : NULL);
        text_add(t, ", ");
        text_pair(t, "reason", report_reason(p, r, a));
        text_char(t, '}');
        first = false;
    }
    text_char(t, ']');
}

static void json_life(Text *t, Arena *a, const Life *l)
{
    text_char(t, '{');
    text_pair(t, "entry", l->entry);
    text_add(t, ", ");
    text_pair(t, "view_of", l->view_of);
    text_add(t, ", ");
    text_pair(t, "reason", life_reason(a, l));
    text_add(t, ", ");
    if (l->plan != NULL)
        ranges_json(t, a, l->plan, l->value);
    else
        text_add(t, "\"ranges\": []");
    text_char(t, '}');
}

void subject_json(Text *t, Arena *a, const Subject *s)
{
    Type type = s->type;
    text_char(t, '{');
    text_pair(t, "name", s->name);
    text_add(t, ", ");
    text_pair(t, "role", s->role);
    text_add(t, ", ");
    text_pair(t, "dtype", dtype_name(type.dtype));
    text_add(t, ", \"shape\": [");
    for (int i = 0; i < type.rank; i++)
        text_add(t, "%s%lld", i > 0 ? ", " : "", (long long)type.dim[i]);
    text_add(t, "], \"bytes\": %lld, ", (long long)type_bytes(&type));
    text_pair(t, "line", s->line);
    text_add(t, ", ");
    text_pair(t, "storage", s->storage != NULL ? s->storage : "planned");
    text_add(t, ", \"offset\": ");
    text_add(t, s->offset >= 0 ? "%lld" : "null", (long long)s->offset);
    text_add(t, ", \"entries\": [");
    for (int i = 0; i < s->life.n; i++) {
        text_add(t, i > 0 ? ", " : "");
        json_life(t, a, &s->life.at[i]);
    }
    text_add(t, "]}");
}
