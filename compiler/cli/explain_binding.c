/* gradc explain, of a name that the model binds: which values of it are stored. */
#include "explain.h"

#include "../kernel/program.h"
#include "../plan/report.h"

/* Computed by the statement, or by what it calls. */
static bool is_of(const Origin *o, const Bound *b)
{
    for (; o != NULL; o = o->parent)
        if (o->span.file == b->at.file && o->span.from >= b->at.from && o->span.to <= b->at.to)
            return true;
    return false;
}

static bool is_stored(const Plan *p, int32_t v, const Bound *b)
{
    const PlanValue *value = &p->value[v];
    return !value->pinned && value->bytes > 0 && is_of(value->origin, b);
}

typedef enum Where {
    WHERE_STORED,
    WHERE_WORKSPACE, /* of a step that is a loop */
    WHERE_INLINED
} Where;

/* Entries other than init; a micro-batch is the body of a loop. */
static Where where(const Output *out, const Plan *p, const Bound *b)
{
    bool in_loop = b->in_loop;
    for (int32_t v = 0; v < p->n_values; v++)
        if (is_stored(p, v, b))
            return WHERE_STORED;
    for (int e = 0; e < N_ENTRIES; e++)
        if (p == out->plan[e] && model_loops(out->model, (EntryKind)e) > 1)
            in_loop = true;
    return in_loop ? WHERE_WORKSPACE : WHERE_INLINED;
}

static const char *where_text(Where w)
{
    static const char *const text[] = {
        [WHERE_STORED] = "stored",
        [WHERE_WORKSPACE] = "in the body of a loop: in the workspace of its step, if it is stored",
        [WHERE_INLINED] = "inlined: it is computed where it is read"};
    return text[w];
}

void bound_text(Text *t, const Ctx *cx, const Output *out, const Bound *b)
{
    const Origin at = {.span = b->at};
    text_add(t, "%s: bound at %s\n", b->name, report_line(cx, &at, t->arena));
    for (int e = 0; e < N_ENTRIES; e++) {
        const Plan *p = out->plan[e];
        if (p == NULL || e == ENTRY_INIT)
            continue;
        Where w = where(out, p, b);
        const char *scans = plan_scans_text(p, t->arena);
        text_add(t, "  entry %s: %s%s%s\n", p->entry, where_text(w), scans != NULL ? "; " : "",
                 scans != NULL ? scans : "");
        for (int32_t v = 0; w == WHERE_STORED && v < p->n_values; v++) {
            if (!is_stored(p, v, b))
                continue;
            text_add(t, "    %s, %lld bytes%s\n", p->value[v].name, (long long)p->value[v].bytes,
                     p->value[v].reverse ? ", of the reverse pass" : "");
            ranges_text(t, t->arena, p, v, 6);
        }
    }
}

static void json_values(Text *t, const Plan *p, const Bound *b)
{
    bool first = true;
    text_add(t, "\"values\": [");
    for (int32_t v = 0; v < p->n_values; v++) {
        if (!is_stored(p, v, b))
            continue;
        text_add(t, first ? "{" : ", {");
        first = false;
        text_pair(t, "name", p->value[v].name);
        text_add(t, ", \"bytes\": %lld, \"reverse\": %s, ", (long long)p->value[v].bytes,
                 p->value[v].reverse ? "true" : "false");
        ranges_json(t, t->arena, p, v);
        text_char(t, '}');
    }
    text_char(t, ']');
}

void bound_json(Text *t, const Ctx *cx, const Output *out, const Bound *b)
{
    static const char *const word[] = {
        [WHERE_STORED] = "stored", [WHERE_WORKSPACE] = "workspace", [WHERE_INLINED] = "inlined"};
    const Origin at = {.span = b->at};
    bool first = true;
    text_char(t, '{');
    text_pair(t, "name", b->name);
    text_add(t, ", \"role\": \"binding\", ");
    text_pair(t, "line", report_line(cx, &at, t->arena));
    text_add(t, ", \"entries\": [");
    for (int e = 0; e < N_ENTRIES; e++) {
        const Plan *p = out->plan[e];
        if (p == NULL || e == ENTRY_INIT)
            continue;
        text_add(t, first ? "{" : ", {");
        first = false;
        text_pair(t, "entry", p->entry);
        text_add(t, ", ");
        text_pair(t, "storage", word[where(out, p, b)]);
        text_add(t, ", ");
        json_values(t, p, b);
        text_char(t, '}');
    }
    text_add(t, "]}");
}
