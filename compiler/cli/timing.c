/* The file of --cost-file: which times it holds, and who asks for them. */
#include "timing.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "../../runtime/gradc.h"

enum { MOST_BYTES = 1 << 28 };
static const double most_ns = 1e15;

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

/* The times of one kernel, under the conditions of `like`. */
static const Timing *find(const Timings *t, const Timing *like)
{
    for (int i = 0; i < t->at.n; i++) {
        const Timing *x = &t->at.at[i];
        if (memcmp(x->key, like->key, TIMING_KEY) == 0 && x->threads == like->threads &&
            x->spread == like->spread && strcmp(x->target, like->target) == 0)
            return x;
    }
    return NULL;
}

static const WholeTiming *find_whole(const Timings *t, const WholeTiming *like)
{
    for (int i = 0; i < t->whole.n; i++) {
        const WholeTiming *x = &t->whole.at[i];
        if (memcmp(x->key, like->key, TIMING_KEY) == 0 && x->threads == like->threads &&
            strcmp(x->entry, like->entry) == 0 && strcmp(x->target, like->target) == 0)
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
        if (find_whole(t, &x) != NULL)
            return arena_printf(a, "entry %zu of the list is there twice: %s", i, x.key);
        vec_push(a, &t->whole, x);
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
        if (find(t, &x) != NULL)
            return arena_printf(a, "kernel %zu of the list is there twice: %s", i, x.key);
        vec_push(a, &t->at, x);
    }
    return read_entries(t, json_object_get(root, "entries"));
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
        text_pair(to, "model", x->key);
        text_add(to, ", ");
        text_pair(to, "entry", x->entry);
        text_add(to, ", ");
        text_pair(to, "target", x->target);
        write_time(to, x->threads, x->ns);
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
        text_pair(&to, "kernel", x->key);
        text_add(&to, ", ");
        text_pair(&to, "name", x->name);
        text_add(&to, ", ");
        text_pair(&to, "target", x->target);
        text_add(&to, ", \"spread\": %lld", (long long)x->spread);
        write_time(&to, x->threads, x->ns);
    }
    write_entries(t, &to);
    text_add(&to, "\n]}\n");
    Files *f = files_open(&t->c->cx->perm);
    files_add(f, t->path, to.at, to.n);
    return files_commit(f);
}

/* ---- asking -------------------------------------------------------------------------- */

static const char *target_of(const Cli *c)
{
    Arena *a = &c->cx->perm;
    const char *cpu = c->options.target.cpu;
    return arena_printf(a, "%s:%s", c->options.target.target,
                        strcmp(cpu, "native") == 0 ? cpu_host_name(a) : cpu);
}

static void make_key(const Text *text, char key[TIMING_KEY + 1])
{
    uint64_t h = hash_bytes(HASH_START, text->at, text->n);
    snprintf(key, TIMING_KEY + 1, "%016llx%016llx", (unsigned long long)h,
             (unsigned long long)hash_bytes(hash_mix(h), text->at, text->n));
}

static Timing timing_of(const Timings *t, const Kernel *k, int64_t spread)
{
    Cli *c = t->c;
    Timing x = {.name = arena_strdup(&c->cx->perm, k->name),
                .threads = c->timing_threads,
                .spread = spread,
                .target = target_of(c)};
    Arena scratch = {0};
    Text text;
    text_init(&text, &scratch);
    kernel_print(k, &text);
    make_key(&text, x.key);
    arena_free(&scratch);
    return x;
}

/* Of what is not known, each kernel once. */
typedef struct Unknown {
    VEC(Kernel *) kernel;
    VEC(Timing) timing;
} Unknown;

static bool is_among(const Unknown *u, const Timing *x)
{
    for (int i = 0; i < u->timing.n; i++)
        if (memcmp(u->timing.at[i].key, x->key, TIMING_KEY) == 0)
            return true;
    return false;
}

static bool may_measure(const Timings *t, Ctx *cx, int n)
{
    const char *here = cpu_model(&cx->perm);
    const char *triple = t->c->options.target.triple;
    Diag *d = NULL;
    if (triple != NULL)
        d = diag_error(cx, E0616, NO_SPAN, "kernels for the triple `%s` are not timed here",
                       triple);
    else if (strcmp(t->cpu, here) != 0)
        d = diag_error(cx, E0616, NO_SPAN, "%s: measured on %s, and this is %s", t->path, t->cpu,
                       here);
    if (d != NULL)
        diag_help(cx, d, "a --cost-file that has all kernels needs no machine; %s missing%s%s",
                  n == 0   ? "the model as a whole is"
                  : n == 1 ? "1 is"
                           : arena_printf(&cx->perm, "%d are", n),
                  t->path == NULL ? "" : " in ", t->path == NULL ? "" : t->path);
    return d == NULL;
}

static bool measure(Timings *t, Ctx *cx, Unknown *u)
{
    if (u->kernel.n == 0)
        return true;
    if (!may_measure(t, cx, u->kernel.n) ||
        !kernels_time(t->c, cx, u->kernel.at, u->timing.at, u->kernel.n))
        return false;
    for (int i = 0; i < u->timing.n; i++)
        vec_push(&t->c->cx->perm, &t->at, u->timing.at[i]);
    if (timings_write(t) == EXIT_OK)
        return true;
    diag_error(cx, E0616, NO_SPAN, "%s: what was measured could not be kept", t->path);
    return false;
}

static bool ask(void *of, Ctx *cx, Kernel *const *kernel, int n, int64_t spread, double *ns)
{
    Timings *t = of;
    Unknown u = {0};
    if (spread > 0)
        spread = t->spread = t->spread > 0 ? t->spread : spread; /* forms are compared */
    Timing *like = NEW_ARRAY(&cx->perm, Timing, n);
    for (int i = 0; i < n; i++) {
        like[i] = timing_of(t, kernel[i], spread);
        if (find(t, &like[i]) != NULL || is_among(&u, &like[i]))
            continue;
        vec_push(&cx->perm, &u.kernel, kernel[i]);
        vec_push(&cx->perm, &u.timing, like[i]);
    }
    if (!measure(t, cx, &u))
        return false;
    for (int i = 0; i < n; i++)
        ns[i] = find(t, &like[i])->ns;
    return true;
}

static WholeTiming whole_of(const Timings *t, const Options *o, const char *hash)
{
    Arena scratch = {0};
    Text text;
    WholeTiming x = {.threads = t->c->timing_threads, .target = target_of(t->c)};
    text_init(&text, &scratch);
    text_add(&text, "%s %s %lld %d", hash, o->precision != NULL ? o->precision : "-",
             (long long)o->chunk_from, o->threads_max);
    make_key(&text, x.key);
    arena_free(&scratch);
    return x;
}

static bool time_whole(Timings *t, Ctx *cx, int32_t source, const Options *o, WholeTiming x)
{
    double ns[N_ENTRIES] = {0};
    if (!may_measure(t, cx, 0) || !entries_time(t->c, cx, source, o, ns))
        return false;
    for (int e = 0; e < N_ENTRIES; e++) {
        x.entry = entry_name((EntryKind)e);
        x.ns = ns[e];
        if (ns[e] > 0 && find_whole(t, &x) == NULL)
            vec_push(&t->c->cx->perm, &t->whole, x);
    }
    if (timings_write(t) == EXIT_OK)
        return true;
    diag_error(cx, E0616, NO_SPAN, "%s: what was measured could not be kept", t->path);
    return false;
}

static bool ask_whole(void *of, Ctx *cx, int32_t source, const Options *o, const char *hash,
                      double ns[4])
{
    Timings *t = of;
    WholeTiming x = whole_of(t, o, hash);
    bool known = true;
    for (int round = 0; round < 2; round++) {
        for (int e = 0; e < N_ENTRIES; e++) {
            x.entry = entry_name((EntryKind)e);
            const WholeTiming *found = find_whole(t, &x);
            ns[e] = found != NULL ? found->ns : 0;
            known = known && (found != NULL || e == ENTRY_INIT || !o->entry[e]);
        }
        if (known || round > 0)
            break;
        if (!time_whole(t, cx, source, o, x))
            return false;
    }
    return true;
}

int cli_measured(Cli *c)
{
    Arena *a = &c->cx->perm;
    Timings *t = NEW(a, Timings);
    CostModel *m = NEW(a, CostModel);
    int64_t threads = 1;
    int status = cli_threads(c, &threads);
    *t = (Timings){.c = c, .path = cli_value(c, OPT_COST_FILE, NULL), .cpu = cpu_model(a)};
    if (status == EXIT_OK && t->path != NULL && strcmp(t->path, "-") == 0)
        status = usage_error(c, "--cost-file is read and written: `-` can't be both");
    if (status == EXIT_OK)
        status = timings_read(t);
    c->timing_threads = (int32_t)threads;
    t->timer = (KernelTimer){.of = t, .time = ask, .whole = ask_whole};
    *m = cost_time;
    m->from = arena_printf(a, "measured on %s, %d %s%s%s", t->cpu, c->timing_threads,
                           threads == 1 ? "thread" : "threads", t->path == NULL ? "" : ", kept in ",
                           t->path == NULL ? "" : t->path);
    c->options.cost = m;
    c->options.timer = &t->timer;
    return status;
}
