/* --cost measured: who asks for times, and which of them the file has. */
#include "timing.h"

#include <string.h>

#include "../../runtime/gradc.h"

/* ---- asking -------------------------------------------------------------------------- */

static const char *target_of(const Cli *c)
{
    Arena *a = &c->cx->perm;
    const char *cpu = c->options.target.cpu;
    return arena_printf(a, "%s:%s%s", c->options.target.target,
                        strcmp(cpu, "native") == 0 ? cpu_host_name(a) : cpu,
                        c->options.target.flush ? ", denormals flushed" : "");
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

static bool keep(const Timings *t, Ctx *cx)
{
    if (timings_write(t) == EXIT_OK)
        return true;
    diag_error(cx, E0616, NO_SPAN, "%s: what was measured could not be kept", t->path);
    return false;
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
    return keep(t, cx);
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
        if (timings_find(t, &like[i]) != NULL || is_among(&u, &like[i]))
            continue;
        vec_push(&cx->perm, &u.kernel, kernel[i]);
        vec_push(&cx->perm, &u.timing, like[i]);
    }
    if (!measure(t, cx, &u))
        return false;
    for (int i = 0; i < n; i++)
        ns[i] = timings_find(t, &like[i])->ns;
    return true;
}

/* ---- programs as a whole ---------------------------------------------------------------- */

static WholeTiming whole_of(const Timings *t, const TimedModel *m)
{
    Arena scratch = {0};
    Text text;
    const Options *o = m->o;
    WholeTiming x = {.threads = t->c->timing_threads, .target = target_of(t->c)};
    text_init(&text, &scratch);
    text_add(&text, "%s %s %lld %d", m->hash, o->precision != NULL ? o->precision : "-",
             (long long)o->chunk_from, o->threads_max);
    make_key(&text, x.key);
    arena_free(&scratch);
    return x;
}

/* What there is goes into ns; false: that is not all. */
static bool know_whole(const Timings *t, const TimedModel *m, double ns[4])
{
    WholeTiming x = whole_of(t, m);
    bool all = true;
    for (int e = 0; e < N_ENTRIES; e++) {
        x.entry = entry_name((EntryKind)e);
        const WholeTiming *found = timings_find_whole(t, &x);
        ns[e] = found != NULL ? found->ns : 0;
        all = all && (found != NULL || e == ENTRY_INIT || !m->o->entry[e]);
    }
    return all;
}

/* t->open, unless that needs too much memory. */
static bool open_whole(Timings *t, Ctx *cx, const TimedModel *m)
{
    return t->open != NULL || (may_measure(t, cx, 0) && whole_open(t->c, cx, m, &t->open));
}

static bool ask_whole(void *of, Ctx *cx, const TimedModel *m, double ns[4])
{
    Timings *t = of;
    if (know_whole(t, m, ns))
        return true;
    if (!open_whole(t, cx, m))
        return false;
    if (t->open == NULL)
        return true;
    if (!whole_time(t->open, cx, ns))
        return false;
    WholeTiming x = whole_of(t, m);
    for (int e = 0; e < N_ENTRIES; e++) {
        x.entry = entry_name((EntryKind)e);
        x.ns = ns[e];
        const WholeTiming *found = timings_find_whole(t, &x);
        if (found != NULL)
            ns[e] = found->ns;
        else if (ns[e] > 0)
            vec_push(&t->c->cx->perm, &t->whole, x);
    }
    return keep(t, cx);
}

/* Without what tells programs of one model apart. */
static PlanTiming plan_of(const Timings *t, const TimedModel *m)
{
    Arena scratch = {0};
    Text text;
    const Options *o = m->o;
    WholeTiming whole = whole_of(t, m);
    PlanTiming x = {.threads = whole.threads, .target = whole.target};
    text_init(&text, &scratch);
    text_add(&text, "%s %d", whole.key, (int)o->effort);
    for (int e = 0; e < N_ENTRIES; e++)
        text_add(&text, " %d", o->entry[e]);
    make_key(&text, x.key);
    arena_free(&scratch);
    return x;
}

static void make_plan_key(const Program *p, char key[TIMING_KEY + 1])
{
    Arena scratch = {0};
    Text text;
    text_init(&text, &scratch);
    program_print(p, &text);
    make_key(&text, key);
    arena_free(&scratch);
}

static bool is_offloaded(const Options *o, const Program *p)
{
    bool stores = o->offload;
    for (int i = 0; i < p->entry.n; i++)
        stores = stores || p->entry.at[i].store_bytes > 0;
    return stores;
}

/* Calls that take longer are not made some ten times. */
static const double most_call_ns = 1e9;

/* Why entries whose calls take ns[e] without a budget are not timed with one, or NULL. */
static const char *why_untimed(const TimedModel *m, const Program *p, const double ns[4])
{
    double sum = 0;
    if (is_offloaded(m->o, p))
        return "what is offloaded is the caller's to move";
    for (int e = 0; e < N_ENTRIES; e++) {
        bool timed = m->o->entry[e] && e != ENTRY_INIT;
        if (timed && ns[e] <= 0)
            return "without a budget it takes more than half of the memory";
        sum += timed ? ns[e] : 0;
    }
    if (sum <= most_call_ns)
        return NULL;
    return arena_printf(
        p->arena, "a call of each entry takes %.1f s, and more than 1 s is too long", sum / 1e9);
}

static bool ask_plan(void *of, Ctx *cx, const TimedModel *m, const Output *out, TimedPlan *plan)
{
    Timings *t = of;
    double ns[N_ENTRIES], ratio[N_ENTRIES];
    PlanTiming x = plan_of(t, m);
    make_plan_key(out->program, plan->key);
    memcpy(x.plan.key, plan->key, sizeof x.plan.key);
    const PlanTiming *found = timings_find_plan(t, &x);
    if (found != NULL) {
        *plan = found->plan;
        return true;
    }
    know_whole(t, m, ns);
    plan->untimed = why_untimed(m, out->program, ns);
    if (plan->untimed != NULL)
        return true;
    if (!open_whole(t, cx, m))
        return false;
    for (int e = 0; e < N_ENTRIES; e++)
        ns[e] = plan->ratio[e] > 0 || e == ENTRY_INIT || !m->o->entry[e] ? 0 : ns[e];
    if (!whole_beside(t->open, cx, out->program, ns, ratio, &plan->untimed))
        return false;
    if (plan->untimed != NULL)
        return true;
    for (int e = 0; e < N_ENTRIES; e++)
        plan->ratio[e] = ns[e] > 0 ? ratio[e] : plan->ratio[e];
    x.plan = *plan;
    vec_push(&t->c->cx->perm, &t->plan, x);
    return keep(t, cx);
}

static const TimedPlan *known_plan(void *of, const TimedModel *m, int i)
{
    const Timings *t = of;
    const PlanTiming like = plan_of(t, m);
    for (int k = 0; k < t->plan.n; k++) {
        const PlanTiming *x = &t->plan.at[k];
        bool allowed = x->plan.form.split == 0 || m->o->allow_split;
        if (allowed && memcmp(x->key, like.key, TIMING_KEY) == 0 && x->threads == like.threads &&
            strcmp(x->target, like.target) == 0 && i-- == 0)
            return &x->plan;
    }
    return NULL;
}

static void close_whole(void *of)
{
    Timings *t = of;
    whole_close(t->open);
    t->open = NULL;
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
    t->timer = (KernelTimer){.of = t,
                             .time = ask,
                             .whole = ask_whole,
                             .plan = ask_plan,
                             .known = known_plan,
                             .close = close_whole};
    *m = cost_time;
    m->from = arena_printf(a, "measured on %s, %d %s%s%s", t->cpu, c->timing_threads,
                           threads == 1 ? "thread" : "threads", t->path == NULL ? "" : ", kept in ",
                           t->path == NULL ? "" : t->path);
    c->options.cost = m;
    c->options.timer = &t->timer;
    return status;
}
