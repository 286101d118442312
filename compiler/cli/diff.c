/* gradc plan --diff A.json B.json: what is different in the second of two plans, as
 * `gradc plan --json` prints them. */
#include "cli.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../kernel/program.h"

enum { MOST_BYTES = 1 << 30, MOST_ROWS = 40 };

/* ---- reading ---------------------------------------------------------------------- */

/* What becomes of a value: one or more ranges of steps. */
typedef struct Fate {
    const char *name, *role;
    int64_t bytes;
    bool pinned, offloaded;
    VEC(int64_t) step; /* from, to, from, to, ... */
    int32_t other;     /* in the other plan; -1: it is not there */
} Fate;

typedef struct EntryPlan {
    const char *entry;
    int64_t peak, cost;
    int32_t steps, again; /* of the steps those that ran before */
    int64_t role[N_ROLES];
    VEC(Fate) fate;
} EntryPlan;

typedef struct Plans {
    Cli *c;
    const char *path;
    Arena *arena;
    VEC(EntryPlan) plan;
} Plans;

static bool fault(const Plans *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fault(const Plans *p, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const char *text = arena_vprintf(&p->c->cx->perm, format, ap);
    va_end(ap);
    Diag *d = diag_error(p->c->cx, E0614, NO_SPAN, "%s: %s", p->path, text);
    diag_help(p->c->cx, d, "`gradc plan M.model --json` prints a plan");
    return false;
}

static bool read_number(const Plans *p, const json_t *object, const char *key, int64_t most,
                        int64_t *out)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > most)
        return fault(p, "a plan needs a number `%s`", key);
    *out = (int64_t)json_integer_value(v);
    return true;
}

static bool read_name(const Plans *p, const json_t *object, const char *key, const char **out)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_string(v))
        return fault(p, "a plan needs a text `%s`", key);
    *out = arena_printf(p->arena, "%s", json_string_value(v));
    return true;
}

static bool read_array(const Plans *p, const json_t *object, const char *key, const json_t **out)
{
    *out = json_object_get(object, key);
    if (!json_is_array(*out) || json_array_size(*out) > INT32_MAX / 16)
        return fault(p, "a plan needs an array `%s`", key);
    return true;
}

static bool read_values(const Plans *p, const json_t *object, EntryPlan *to)
{
    const json_t *list, *item;
    size_t i;
    if (!read_array(p, object, "values", &list))
        return false;
    json_array_foreach(list, i, item)
    {
        Fate f = {.other = -1};
        if (!read_name(p, item, "name", &f.name) || !read_name(p, item, "role", &f.role) ||
            !read_number(p, item, "bytes", INT64_MAX, &f.bytes))
            return false;
        f.pinned = json_is_true(json_object_get(item, "pinned"));
        f.offloaded = json_object_get(item, "store") != NULL;
        vec_push(p->arena, &to->fate, f);
    }
    return true;
}

static bool read_ranges(const Plans *p, const json_t *object, EntryPlan *to)
{
    const json_t *list, *item;
    size_t i;
    if (!read_array(p, object, "ranges", &list))
        return false;
    json_array_foreach(list, i, item)
    {
        int64_t value, from, end;
        if (!read_number(p, item, "value", (int64_t)to->fate.n - 1, &value) ||
            !read_number(p, item, "from", INT32_MAX, &from) ||
            !read_number(p, item, "to", INT32_MAX, &end))
            return false;
        vec_push(p->arena, &to->fate.at[value].step, from);
        vec_push(p->arena, &to->fate.at[value].step, end);
    }
    return true;
}

static bool read_steps(const Plans *p, const json_t *object, EntryPlan *to)
{
    const json_t *list, *item;
    size_t i;
    if (!read_array(p, object, "steps", &list))
        return false;
    to->steps = (int32_t)json_array_size(list);
    json_array_foreach(list, i, item)
    {
        int64_t run;
        if (!read_number(p, item, "run", INT32_MAX, &run))
            return false;
        to->again += run > 0;
    }
    return true;
}

static bool read_plan(Plans *p, const json_t *object)
{
    EntryPlan e = {0};
    const json_t *roles = json_object_get(object, "by_role");
    if (!read_name(p, object, "entry", &e.entry) ||
        !read_number(p, object, "peak", INT64_MAX, &e.peak) ||
        !read_number(p, object, "cost_ns", INT64_MAX, &e.cost))
        return false;
    for (int r = 0; r < N_ROLES; r++)
        if (!read_number(p, roles, role_name((Role)r), INT64_MAX, &e.role[r]))
            return false;
    if (!read_steps(p, object, &e) || !read_values(p, object, &e) || !read_ranges(p, object, &e))
        return false;
    vec_push(p->arena, &p->plan, e);
    return true;
}

static bool parse_plans(Plans *p, const Text *t)
{
    json_error_t error;
    json_t *root = json_loadb(t->at, t->n, JSON_REJECT_DUPLICATES, &error), *item;
    size_t i;
    bool fine = true;
    if (root == NULL)
        return fault(p, "line %d, column %d: %s", error.line, error.column, error.text);
    if (!json_is_array(root) || json_array_size(root) == 0)
        fine = fault(p, "this is no list of plans");
    json_array_foreach(root, i, item)
    {
        fine = fine &&
               (json_is_object(item) ? read_plan(p, item) : fault(p, "plan %zu is no object", i));
    }
    json_decref(root);
    return fine;
}

static int read_plans(Plans *p)
{
    Text t;
    text_init(&t, p->arena);
    int status = read_text(p->path, MOST_BYTES, &t);
    if (status != EXIT_OK)
        return status;
    if (t.n > MOST_BYTES)
        return finish(p->c, fault(p, "the file is larger than 1 GiB"));
    return parse_plans(p, &t) ? EXIT_OK : finish(p->c, false);
}

/* ---- pairs ---------------------------------------------------------------------------- */

static int by_name(const void *x, const void *y)
{
    const Fate *const *a = x, *const *b = y;
    int order = strcmp((*a)->name, (*b)->name);
    order = order != 0 ? order : strcmp((*a)->role, (*b)->role);
    return order != 0 ? order : *a < *b ? -1 : *a > *b;
}

static const Fate **sorted(const EntryPlan *e, Arena *arena)
{
    const Fate **list = NEW_ARRAY(arena, const Fate *, e->fate.n + 1);
    for (int i = 0; i < e->fate.n; i++)
        list[i] = &e->fate.at[i];
    qsort(list, (size_t)e->fate.n, sizeof *list, by_name);
    return list;
}

/* Values of one name and role are pairs, in their order. */
static void pair_up(EntryPlan *x, EntryPlan *y, Arena *arena)
{
    const Fate **a = sorted(x, arena), **b = sorted(y, arena);
    for (int i = 0, j = 0; i < x->fate.n && j < y->fate.n;) {
        int order = strcmp(a[i]->name, b[j]->name);
        order = order != 0 ? order : strcmp(a[i]->role, b[j]->role);
        if (order == 0) {
            x->fate.at[a[i] - x->fate.at].other = (int32_t)(b[j] - y->fate.at);
            y->fate.at[b[j] - y->fate.at].other = (int32_t)(a[i] - x->fate.at);
        }
        i += order <= 0;
        j += order >= 0;
    }
}

/* ---- text ------------------------------------------------------------------------------- */

static void put_change(Text *t, const char *what, int64_t from, int64_t to)
{
    text_add(t, "  %-16s %15lld", what, (long long)from);
    if (from == to)
        text_add(t, "    the same");
    else
        text_add(t, " -> %lld", (long long)to);
    if (from != to && from > 0)
        text_add(t, ", %+.2f %%", 100 * (double)(to - from) / (double)from);
    text_char(t, '\n');
}

/* "steps 3-9, 20-24" */
static const char *steps_of(const Fate *f, Arena *arena)
{
    Text t;
    text_init(&t, arena);
    for (int i = 0; i + 1 < f->step.n; i += 2)
        text_add(&t, "%s%lld-%lld", i > 0 ? ", " : "steps ", (long long)f->step.at[i],
                 (long long)f->step.at[i + 1]);
    return f->pinned ? "always" : f->step.n == 0 ? "never" : t.at;
}

/* One row for each value that is not in both, or is stored in more or fewer pieces, or has
 * another size; false for others. */
static bool put_fate(Text *t, const Fate *x, const Fate *y, Arena *arena)
{
    const Fate *f = x != NULL ? x : y;
    if (y == NULL) {
        text_add(t, "  - %s, %s, %lld bytes: %s\n", f->name, f->role, (long long)f->bytes,
                 steps_of(f, arena));
    } else if (x == NULL) {
        text_add(t, "  + %s, %s, %lld bytes: %s\n", f->name, f->role, (long long)f->bytes,
                 steps_of(f, arena));
    } else if (x->bytes != y->bytes) {
        text_add(t, "  ~ %s, %s: %lld -> %lld bytes\n", f->name, f->role, (long long)x->bytes,
                 (long long)y->bytes);
    } else if (x->step.n != y->step.n || x->pinned != y->pinned) {
        const char *what = y->offloaded && !x->offloaded ? "offloaded"
                           : y->step.n > x->step.n       ? "computed again"
                           : y->step.n < x->step.n       ? "kept"
                                                         : "stored elsewhere";
        text_add(t, "  ~ %s, %s, %lld bytes: %s; %s -> %s\n", f->name, f->role, (long long)f->bytes,
                 what, steps_of(x, arena), steps_of(y, arena));
    } else {
        return false;
    }
    return true;
}

static void put_fates(Text *t, const EntryPlan *x, const EntryPlan *y, Arena *arena)
{
    int rows = 0, same = 0;
    for (int i = 0; i < x->fate.n + y->fate.n; i++) {
        bool second = i >= x->fate.n;
        const Fate *f = second ? &y->fate.at[i - x->fate.n] : &x->fate.at[i];
        if (second && f->other >= 0)
            continue;
        const Fate *other = f->other >= 0 ? &y->fate.at[f->other] : NULL;
        size_t before = t->n;
        bool differs = put_fate(t, second ? NULL : f, second ? f : other, arena);
        rows += differs;
        same += !differs;
        if (rows > MOST_ROWS) { /* counted, not shown */
            t->n = before;
            t->at[before] = '\0';
        }
    }
    if (rows > MOST_ROWS)
        text_add(t, "  ... and %d more; --json has all\n", rows - MOST_ROWS);
    text_add(t, "  %d values as before\n", same);
}

static void put_entry(Text *t, EntryPlan *x, EntryPlan *y, Arena *arena)
{
    pair_up(x, y, arena);
    text_add(t, "entry %s\n", x->entry);
    put_change(t, "peak, bytes", x->peak, y->peak);
    put_change(t, "predicted, ns", x->cost, y->cost);
    put_change(t, "steps", x->steps, y->steps);
    put_change(t, "run again", x->again, y->again);
    for (int r = 0; r < N_ROLES; r++)
        if (x->role[r] != y->role[r])
            put_change(t, role_name((Role)r), x->role[r], y->role[r]);
    put_fates(t, x, y, arena);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void json_fate(Text *t, const Fate *f)
{
    if (f == NULL) {
        text_add(t, "null");
        return;
    }
    text_add(t, "{\"bytes\": %lld, \"pinned\": %s, \"steps\": [", (long long)f->bytes,
             f->pinned ? "true" : "false");
    for (int i = 0; i + 1 < f->step.n; i += 2)
        text_add(t, "%s[%lld, %lld]", i > 0 ? ", " : "", (long long)f->step.at[i],
                 (long long)f->step.at[i + 1]);
    text_add(t, "]}");
}

static void json_plan(Text *t, const char *key, const EntryPlan *e)
{
    text_add(t,
             ", \"%s\": {\"peak\": %lld, \"cost_ns\": %lld, \"steps\": %d, \"again\": %d, "
             "\"by_role\": {",
             key, (long long)e->peak, (long long)e->cost, e->steps, e->again);
    for (int r = 0; r < N_ROLES; r++)
        text_add(t, "%s\"%s\": %lld", r > 0 ? ", " : "", role_name((Role)r), (long long)e->role[r]);
    text_add(t, "}}");
}

static void json_values(Text *t, const EntryPlan *x, const EntryPlan *y)
{
    bool first = true;
    text_add(t, ", \"values\": [");
    for (int i = 0; i < x->fate.n + y->fate.n; i++) {
        bool second = i >= x->fate.n;
        const Fate *f = second ? &y->fate.at[i - x->fate.n] : &x->fate.at[i];
        const Fate *other = second || f->other < 0 ? NULL : &y->fate.at[f->other];
        if (second && f->other >= 0)
            continue;
        text_add(t, first ? "\n{" : ",\n{");
        first = false;
        text_pair(t, "name", f->name);
        text_add(t, ", ");
        text_pair(t, "role", f->role);
        text_add(t, ", \"before\": ");
        json_fate(t, second ? NULL : f);
        text_add(t, ", \"after\": ");
        json_fate(t, second ? f : other);
        text_add(t, "}");
    }
    text_add(t, "]");
}

static void json_entry(Text *t, EntryPlan *x, EntryPlan *y, Arena *arena)
{
    pair_up(x, y, arena);
    text_add(t, "{");
    text_pair(t, "entry", x->entry);
    json_plan(t, "before", x);
    json_plan(t, "after", y);
    json_values(t, x, y);
    text_add(t, "}");
}

/* ---- all ------------------------------------------------------------------------------------ */

static EntryPlan *find_entry(const Plans *p, const char *entry)
{
    for (int i = 0; i < p->plan.n; i++)
        if (strcmp(p->plan.at[i].entry, entry) == 0)
            return &p->plan.at[i];
    return NULL;
}

static void put_diff(Text *t, const Plans *x, const Plans *y, bool json)
{
    int n = 0;
    text_add(t, json ? "[" : "");
    for (int i = 0; i < x->plan.n; i++) {
        EntryPlan *a = &x->plan.at[i], *b = find_entry(y, a->entry);
        if (b == NULL)
            continue;
        text_add(t, n++ == 0 ? "" : json ? ",\n" : "\n");
        (json ? json_entry : put_entry)(t, a, b, x->arena);
    }
    text_add(t, json ? "]\n" : "");
    for (int i = 0; !json && i < x->plan.n; i++)
        if (find_entry(y, x->plan.at[i].entry) == NULL)
            text_add(t, "entry %s is in %s alone\n", x->plan.at[i].entry, x->path);
    for (int i = 0; !json && i < y->plan.n; i++)
        if (find_entry(x, y->plan.at[i].entry) == NULL)
            text_add(t, "entry %s is in %s alone\n", y->plan.at[i].entry, y->path);
}

int plan_diff(Cli *c)
{
    Arena arena = {0};
    Plans x = {.c = c, .path = c->operand.at[0], .arena = &arena};
    Plans y = {.c = c, .path = c->operand.at[1], .arena = &arena};
    int status = read_plans(&x);
    if (status == EXIT_OK)
        status = read_plans(&y);
    if (status == EXIT_OK) {
        Text t;
        text_init(&t, &arena);
        put_diff(&t, &x, &y, c->cx->json);
        fputs(t.at, stdout);
    }
    arena_free(&arena);
    return status;
}
