/* The file of --cost-file: which times it holds. */
#include "timing.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "../../runtime/gradc.h"
#include "../pass/pass.h"

enum { MOST_BYTES = 1 << 28 };
static const double most_ns = 1e15, most_ratio = 1e6;

/* ---- reading ------------------------------------------------------------------------- */

static int refuse(const Timings *t, const char *what)
{
    Diag *d = diag_error(t->c->cx, E0615, NO_SPAN, "%s: %s", t->path, what);
    diag_help(t->c->cx, d,
              "`--cost measured --cost-file FILE` writes such a file; without it, "
              "kernels are measured anew");
    return finish(t->c, false);
}

static bool read_text_at(const Timings *t, const json_t *o, const char *key, const char **to)
{
    const char *s = json_string_value(json_object_get(o, key));
    if (s != NULL)
        *to = arena_strdup(&t->c->cx->perm, s);
    return s != NULL;
}

static bool read_whole(const json_t *o, const char *key, int64_t least, int64_t most, int64_t *to)
{
    const json_t *v = json_object_get(o, key);
    *to = json_integer_value(v);
    return json_is_integer(v) && *to >= least && *to <= most;
}

static bool read_key(const json_t *o, const char *name, char to[TIMING_KEY + 1])
{
    const char *s = json_string_value(json_object_get(o, name));
    if (s == NULL || strlen(s) != TIMING_KEY || strspn(s, "0123456789abcdef") != TIMING_KEY)
        return false;
    memcpy(to, s, TIMING_KEY + 1);
    return true;
}

static bool read_threads(const json_t *o, int32_t *to)
{
    int64_t threads;
    bool ok = read_whole(o, "threads", 1, GRADC_MAX_LANES, &threads);
    *to = (int32_t)threads;
    return ok;
}

static bool read_ns(const json_t *o, double *to)
{
    const json_t *ns = json_object_get(o, "ns");
    *to = json_number_value(ns);
    return json_is_number(ns) && *to > 0 && *to <= most_ns;
}

/* What is missing, or NULL. */
static const char *read_timing(const Timings *t, const json_t *o, Timing *to)
{
    if (!read_key(o, "kernel", to->key))
        return "a hash `kernel` of 32 hexadecimal digits";
    if (!read_text_at(t, o, "name", &to->name) || !read_text_at(t, o, "target", &to->target))
        return "a `name` or a `target`";
    if (!read_threads(o, &to->threads))
        return "a number of `threads`";
    if (!read_whole(o, "spread", 0, INT64_MAX, &to->spread))
        return "a number of bytes `spread`";
    return read_ns(o, &to->ns) ? NULL : "a time `ns`";
}

const Timing *timings_find(const Timings *t, const Timing *like)
{
    for (int i = 0; i < t->at.n; i++) {
        const Timing *x = &t->at.at[i];
        if (memcmp(x->key, like->key, TIMING_KEY) == 0 && x->threads == like->threads &&
            x->spread == like->spread && strcmp(x->target, like->target) == 0)
            return x;
    }
    return NULL;
}

const WholeTiming *timings_find_whole(const Timings *t, const WholeTiming *like)
{
    for (int i = 0; i < t->whole.n; i++) {
        const WholeTiming *x = &t->whole.at[i];
        if (memcmp(x->key, like->key, TIMING_KEY) == 0 && x->threads == like->threads &&
            strcmp(x->entry, like->entry) == 0 && strcmp(x->target, like->target) == 0)
            return x;
    }
    return NULL;
}

const PlanTiming *timings_find_plan(const Timings *t, const PlanTiming *like)
{
    for (int i = 0; i < t->plan.n; i++) {
        const PlanTiming *x = &t->plan.at[i];
        if (memcmp(x->key, like->key, TIMING_KEY) == 0 && x->threads == like->threads &&
            memcmp(x->plan.key, like->plan.key, TIMING_KEY) == 0 &&
            strcmp(x->target, like->target) == 0)
            return x;
    }
    return NULL;
}

/* Of entries as a whole. What is missing, or NULL. */
static const char *read_entries(Timings *t, const json_t *list)
{
    Arena *a = &t->c->cx->perm;
    const json_t *o;
    size_t i;
    if (list != NULL && !json_is_array(list))
        return "`entries` is no list";
    json_array_foreach(list, i, o)
    {
        WholeTiming x = {0};
        if (!read_key(o, "model", x.key) || !read_text_at(t, o, "entry", &x.entry) ||
            !read_text_at(t, o, "target", &x.target) || !read_threads(o, &x.threads) ||
            !read_ns(o, &x.ns))
            return arena_printf(a,
                                "entry %zu of the list has not a hash `model` of 32 hexadecimal "
                                "digits, `entry`, `target`, `threads` and `ns`",
                                i);
        if (timings_find_whole(t, &x) != NULL)
            return arena_printf(a, "entry %zu of the list is there twice: %s", i, x.key);
        vec_push(a, &t->whole, x);
    }
    return NULL;
}

/* By the names of the entries. */
static bool read_ratios(const json_t *o, double ratio[N_ENTRIES])
{
    const json_t *of = json_object_get(o, "ratio");
    size_t known = 0;
    for (int e = 0; e < N_ENTRIES; e++) {
        const json_t *v = json_object_get(of, entry_name((EntryKind)e));
        ratio[e] = json_number_value(v);
        known += v != NULL;
        if (v != NULL &&
            (e == ENTRY_INIT || !json_is_number(v) || ratio[e] <= 0 || ratio[e] > most_ratio))
            return false;
    }
    return known > 0 && known == json_object_size(of);
}

/* Files of before have none: there were no such forms. */
static bool read_light(const json_t *o, int32_t *to)
{
    int64_t entries = 0;
    bool ok = json_object_get(o, "keeps_light") == NULL ||
              read_whole(o, "keeps_light", 0, KEEPS_LIGHT, &entries);
    *to = (int32_t)entries;
    return ok && (entries & ~(int64_t)KEEPS_LIGHT) == 0;
}

/* What is missing, or NULL. */
static const char *read_plan(const Timings *t, const json_t *o, PlanTiming *to)
{
    int64_t levels, kept, slices;
    TimedPlan *p = &to->plan;
    if (!read_key(o, "plan", p->key) || !read_key(o, "model", to->key))
        return "hashes `plan` and `model` of 32 hexadecimal digits";
    if (!read_text_at(t, o, "target", &to->target) || !read_threads(o, &to->threads))
        return "a `target` or a number of `threads`";
    if (!read_whole(o, "budget", 1, INT64_MAX, &p->budget) ||
        !read_whole(o, "peak", 1, INT64_MAX, &p->peak))
        return "bytes `budget` and `peak`";
    if (!read_whole(o, "scan_levels", 0, MAX_LOOP_DEPTH, &levels) ||
        !read_whole(o, "kept", 0, KEEP_ALL, &kept) ||
        !read_whole(o, "slices", 0, MANY_SLICES, &slices) ||
        !read_whole(o, "micro_batches", 0, INT64_MAX, &p->form.split) ||
        !read_light(o, &p->form.keeps_light))
        return "numbers `scan_levels`, `kept`, `slices`, `micro_batches` and `keeps_light`";
    p->form.scan_levels = (int32_t)levels;
    p->form.kept = (int32_t)kept;
    p->form.slices = (int32_t)slices;
    return read_ratios(o, p->ratio) ? NULL : "a positive `ratio` of each entry";
}

/* Of programs within budgets. What is missing, or NULL. */
static const char *read_plans(Timings *t, const json_t *list)
{
    Arena *a = &t->c->cx->perm;
    const json_t *o;
    size_t i;
    if (list != NULL && !json_is_array(list))
        return "`plans` is no list";
    json_array_foreach(list, i, o)
    {
        PlanTiming x = {0};
        const char *missing = read_plan(t, o, &x);
        if (missing != NULL)
            return arena_printf(a, "plan %zu of the list has not %s", i, missing);
        if (timings_find_plan(t, &x) != NULL)
            return arena_printf(a, "plan %zu of the list is there twice: %s", i, x.plan.key);
        vec_push(a, &t->plan, x);
    }
    return NULL;
}

static const char *read_all(Timings *t, const json_t *root)
{
    Arena *a = &t->c->cx->perm;
    const json_t *list = json_object_get(root, "kernels"), *o;
    if (!read_text_at(t, root, "measured_on", &t->cpu))
        return "the machine `measured_on` is missing";
    if (!json_is_array(list))
        return "a list `kernels` is missing";
    size_t i;
    json_array_foreach(list, i, o)
    {
        Timing x = {0};
        const char *missing = read_timing(t, o, &x);
        if (missing != NULL)
            return arena_printf(a, "kernel %zu of the list has not %s", i, missing);
        if (timings_find(t, &x) != NULL)
            return arena_printf(a, "kernel %zu of the list is there twice: %s", i, x.key);
        vec_push(a, &t->at, x);
    }
    const char *wrong = read_entries(t, json_object_get(root, "entries"));
    return wrong != NULL ? wrong : read_plans(t, json_object_get(root, "plans"));
}

int timings_read(Timings *t)
{
    Text text;
    json_error_t e;
    text_init(&text, &t->c->cx->perm);
    if (t->path == NULL)
        return EXIT_OK;
    if (access(t->path, F_OK) != 0)
        return timings_write(t); /* an empty list: better now than when all is measured */
    int status = read_text(t->path, MOST_BYTES, &text);
    if (status != EXIT_OK)
        return status;
    json_t *root = json_loadb(text.at, text.n, JSON_REJECT_DUPLICATES, &e);
    if (root == NULL)
        return refuse(
            t, arena_printf(&t->c->cx->perm, "line %d, column %d: %s", e.line, e.column, e.text));
    const char *wrong = read_all(t, root);
    json_decref(root);
    return wrong == NULL ? EXIT_OK : refuse(t, wrong);
}

/* ---- writing ------------------------------------------------------------------------- */

static void write_pair(Text *to, const char *key, const char *text)
{
    text_pair(to, key, text);
    text_add(to, ", ");
}

/* What was measured, and how: the end of an object. */
static void write_time(Text *to, int32_t threads, double ns)
{
    text_add(to, ", \"threads\": %d, \"ns\": ", threads);
    text_double(to, ns);
    text_char(to, '}');
}

static void write_entries(const Timings *t, Text *to)
{
    text_add(to, "],\n\"entries\": [");
    for (int i = 0; i < t->whole.n; i++) {
        const WholeTiming *x = &t->whole.at[i];
        text_add(to, "%s\n  {", i > 0 ? "," : "");
        write_pair(to, "model", x->key);
        write_pair(to, "entry", x->entry);
        text_pair(to, "target", x->target);
        write_time(to, x->threads, x->ns);
    }
}

static void write_plans(const Timings *t, Text *to)
{
    text_add(to, "\n],\n\"plans\": [");
    for (int i = 0; i < t->plan.n; i++) {
        const PlanTiming *x = &t->plan.at[i];
        const TimedPlan *p = &x->plan;
        const char *comma = "";
        text_add(to, "%s\n  {", i > 0 ? "," : "");
        write_pair(to, "plan", p->key);
        write_pair(to, "model", x->key);
        write_pair(to, "target", x->target);
        text_add(to, "\"threads\": %d, \"budget\": %lld, \"peak\": %lld, \"scan_levels\": %d, ",
                 x->threads, (long long)p->budget, (long long)p->peak, p->form.scan_levels);
        text_add(to, "\"kept\": %d, \"slices\": %d, \"micro_batches\": %lld, \"keeps_light\": %d, ",
                 p->form.kept, p->form.slices, (long long)p->form.split, p->form.keeps_light);
        text_add(to, "\"ratio\": {");
        for (int e = 0; e < N_ENTRIES; e++) {
            if (p->ratio[e] <= 0)
                continue;
            text_add(to, "%s\"%s\": ", comma, entry_name((EntryKind)e));
            text_double(to, p->ratio[e]);
            comma = ", ";
        }
        text_add(to, "}}");
    }
}

int timings_write(const Timings *t)
{
    Text to;
    text_init(&to, &t->c->cx->perm);
    if (t->path == NULL)
        return EXIT_OK;
    text_add(&to, "{");
    text_pair(&to, "measured_on", t->cpu);
    text_add(&to, ", \"kernels\": [");
    for (int i = 0; i < t->at.n; i++) {
        const Timing *x = &t->at.at[i];
        text_add(&to, "%s\n  {", i > 0 ? "," : "");
        write_pair(&to, "kernel", x->key);
        write_pair(&to, "name", x->name);
        text_pair(&to, "target", x->target);
        text_add(&to, ", \"spread\": %lld", (long long)x->spread);
        write_time(&to, x->threads, x->ns);
    }
    write_entries(t, &to);
    write_plans(t, &to);
    text_add(&to, "\n]}\n");
    Files *f = files_open(&t->c->cx->perm);
    files_add(f, t->path, to.at, to.n);
    return files_commit(f);
}
