/* Reports of a plan: bytes by role, text, and the answer to a budget. What is
 * made on the way is scratch in the arena of the text. */
#include "report.h"

#include "offload.h"

#include <stdlib.h>
#include <string.h>

static int64_t block_bytes(int64_t bytes)
{
    return align_up(bytes, BLOCK_ALIGN);
}

static int64_t range_bytes(const Plan *p, int32_t r)
{
    return p->value[p->range[r].value].bytes;
}

/* The first step at which the range has bytes of its own: one that is written over
 * another range shares them in the step of the write. */
static int32_t counted_from(const Plan *p, int32_t r)
{
    return p->range[r].from + (p->range[r].storage != r);
}

int32_t *report_taken(const Plan *p, Arena *arena)
{
    int32_t *taken = NEW_ARRAY(arena, int32_t, p->n_ranges);
    int32_t *last = NEW_ARRAY(arena, int32_t, p->n_ranges);
    for (int32_t r = 0; r < p->n_ranges; r++) {
        int32_t storage = p->range[r].storage;
        taken[r] = storage == r ? -1 : last[storage];
        last[storage] = r;
    }
    return taken;
}

/* ---- by role ------------------------------------------------------------------ */

typedef struct Pin {
    int64_t offset, bytes;
    int32_t value;
} Pin;

static int by_offset(const void *a, const void *b)
{
    const Pin *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* Pinned storage: what lies before the first value is the handle (HANDLE_BYTES at
 * most); two values in one place count once. */
static void pinned_by_role(const Plan *p, int64_t bytes[N_ROLES])
{
    ArenaMark mark = arena_mark(p->arena);
    Pin *pin = NEW_ARRAY(p->arena, Pin, p->n_values);
    int32_t n = 0;
    for (int32_t v = 0; v < p->n_values; v++)
        if (p->value[v].pinned && p->value[v].bytes > 0)
            pin[n++] = (Pin){p->value[v].offset, p->value[v].bytes, v};
    qsort(pin, (size_t)n, sizeof *pin, by_offset);
    int64_t first = n > 0 ? pin[0].offset : p->base;
    int64_t rest = block_bytes(p->base);
    bytes[ROLE_HANDLE] = first < HANDLE_BYTES ? first : HANDLE_BYTES;
    bytes[ROLE_STAGING] += p->base_staging;
    rest -= bytes[ROLE_HANDLE] + p->base_staging;
    for (int32_t i = 0; i < n; i++)
        if (i == 0 || pin[i].offset != pin[i - 1].offset) {
            bytes[p->value[pin[i].value].role] += pin[i].bytes;
            rest -= pin[i].bytes;
        }
    bytes[ROLE_PADDING] += rest;
    arena_reset(p->arena, mark);
}

static void add_role(int64_t bytes[N_ROLES], Role role, int64_t n)
{
    bytes[role] += n;
    bytes[ROLE_PADDING] += block_bytes(n) - n;
}

void plan_by_role(const Plan *p, int32_t step, int64_t bytes[N_ROLES])
{
    memset(bytes, 0, N_ROLES * sizeof *bytes);
    pinned_by_role(p, bytes);
    int32_t s = step < 0 ? p->peak_step : step;
    if (s >= p->n_steps)
        return;
    add_role(bytes, ROLE_WORKSPACE, p->step[s].workspace);
    bytes[ROLE_LANES] += plan_lanes_bytes(p, &p->step[s]);
    for (int32_t r = 0; r < p->n_ranges; r++)
        if (counted_from(p, r) <= s && s <= p->range[r].to)
            add_role(bytes, p->value[p->range[r].value].role, range_bytes(p, r));
}

/* ---- pieces of text -------------------------------------------------------------- */

const char *report_line(const Ctx *cx, const Origin *o, Arena *arena)
{
    for (; cx != NULL && o != NULL; o = o->parent) {
        if (o->span.file < 0 || o->span.file >= cx->source.n)
            continue;
        const Source *s = cx->source.at[o->span.file];
        if (s->library)
            continue;
        int line, column;
        source_position(s, o->span.from, &line, &column);
        return arena_printf(arena, "%s:%d", s->path, line);
    }
    return NULL;
}

const char *report_exact(Arena *a, int64_t n)
{
    char *digits = arena_printf(a, "%lld", (long long)n);
    size_t length = strlen(digits);
    char *out = arena_alloc(a, length + length / 3 + 1);
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    return out;
}

/* 13002752 as "12.4 MiB": three digits, by integers alone, for one text anywhere. */
static const char *human(Arena *a, int64_t n)
{
    static const char unit[] = "KMGTP";
    if (n < 1024)
        return arena_printf(a, "%lld B", (long long)n);
    int u = 0;
    while (u < 4 && n >= (int64_t)1000 << (10 * (u + 1)))
        u++;
    int64_t one = (int64_t)1 << (10 * (u + 1)), whole = n / one;
    int places = whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
    int64_t scale = places == 0 ? 1 : places == 1 ? 10 : 100;
    int64_t digits = whole * scale + (n % one * scale + one / 2) / one;
    if (places == 0)
        return arena_printf(a, "%lld %ciB", (long long)digits, unit[u]);
    return arena_printf(a, "%lld.%0*lld %ciB", (long long)(digits / scale), places,
                        (long long)(digits % scale), unit[u]);
}

/* Thousandths of the whole as "12.3 %". */
static const char *share(Arena *a, int64_t part, int64_t whole)
{
    int64_t tenths = whole <= 0 ? 0 : (int64_t)((double)part * 1000 / (double)whole + 0.5);
    return arena_printf(a, "%lld.%lld %%", (long long)(tenths / 10), (long long)(tenths % 10));
}

static const char *text_or(const char *s, const char *otherwise)
{
    return s == NULL ? otherwise : s;
}

/* ---- schedule and lifetimes -------------------------------------------------------- */

enum { BAR = 32, LARGEST = 10 };

/* '=' pinned storage, '#' values, workspace and lanes; the peak is BAR long. */
static void put_bar(Text *to, int64_t fixed, int64_t live, int64_t peak)
{
    for (int i = 0; i < BAR; i++) {
        double at = ((double)i + 0.5) * (double)peak / (double)BAR;
        text_char(to, at < (double)fixed ? '=' : at < (double)live ? '#' : ' ');
    }
}

static void put_schedule(const Plan *p, Text *to)
{
    Arena *a = to->arena;
    const int64_t *live = plan_live(p, a);
    int64_t fixed = block_bytes(p->base);
    text_add(to, "\nschedule (= pinned storage, # values, workspace and lanes)\n");
    text_add(to, "  %5s  %10s\n", "step", "live");
    for (int32_t s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->step[s];
        text_add(to, "%c %5d  %10s  ", s == p->peak_step ? '>' : ' ', s, human(a, live[s]));
        put_bar(to, fixed, live[s], p->live_peak);
        text_add(to, "  %s%s", text_or(step->label, "?"), step->run > 0 ? ", again" : "");
        if (step->workspace > 0)
            text_add(to, ", workspace %s", human(a, step->workspace));
        if (step->turns > 1)
            text_add(to, ", %lld turns at once", (long long)step->turns);
        text_add(to, "%s\n", step->guarded ? ", guarded" : "");
    }
}

static const char *steps_of(Arena *a, const PlanRange *r)
{
    return arena_printf(a, "%d-%d", r->from, r->to);
}

static void put_lifetimes(const Plan *p, Text *to)
{
    Arena *a = to->arena;
    const int32_t *taken = report_taken(p, a);
    text_add(to, "\nlifetimes\n  %13s  %10s  %15s  value\n", "steps", "size", "at byte");
    for (int32_t r = 0; r < p->n_ranges; r++) {
        const PlanRange *range = &p->range[r];
        const PlanValue *v = &p->value[range->value];
        text_add(to, "  %13s  %10s  %15s  %s", steps_of(a, range), human(a, v->bytes),
                 report_exact(a, range->offset), text_or(v->name, "?"));
        if (taken[r] >= 0)
            text_add(to, ", over %s", text_or(p->value[p->range[taken[r]].value].name, "?"));
        text_add(to, "%s\n", v->to_end ? ", a result" : "");
    }
}

/* ---- tables ---------------------------------------------------------------------- */

static void put_row(Text *to, const char *what, int64_t bytes, int64_t peak)
{
    Arena *a = to->arena;
    if (bytes > 0)
        text_add(to, "  %-14s  %10s  %18s  %8s\n", what, human(a, bytes), report_exact(a, bytes),
                 share(a, bytes, peak));
}

static void put_roles(const Plan *p, Text *to)
{
    int64_t bytes[N_ROLES];
    plan_by_role(p, -1, bytes);
    text_add(to, "\npeak by role\n");
    for (int r = 0; r < N_ROLES; r++)
        put_row(to, role_name((Role)r), bytes[r], p->peak);
    put_row(to, "holes", p->peak - p->live_peak, p->peak);
    put_row(to, "all", p->peak, p->peak);
}

typedef struct Large {
    int64_t bytes;
    int32_t value;
} Large;

static int by_bytes(const void *a, const void *b)
{
    const Large *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* "12-80", "3-9, 40-44", "always". */
static const char *life_of(const Plan *p, int32_t value, Arena *a)
{
    if (p->value[value].pinned)
        return "always";
    Text life;
    text_init(&life, a);
    for (int32_t r = 0; r < p->n_ranges; r++)
        if (p->range[r].value == value)
            text_add(&life, "%s%s", life.n > 0 ? ", " : "", steps_of(a, &p->range[r]));
    return life.at;
}

static void put_largest(const Ctx *cx, const Plan *p, Text *to)
{
    Arena *a = to->arena;
    Large *large = NEW_ARRAY(a, Large, p->n_values);
    int32_t n = 0;
    for (int32_t v = 0; v < p->n_values; v++)
        if (p->value[v].bytes > 0 && p->value[v].offset >= 0)
            large[n++] = (Large){p->value[v].bytes, v};
    qsort(large, (size_t)n, sizeof *large, by_bytes);
    text_add(to, "\nlargest values\n  %10s  %18s  %13s  %-14s  value\n", "size", "bytes", "steps",
             "role");
    for (int32_t i = 0; i < n && i < LARGEST; i++) {
        const PlanValue *v = &p->value[large[i].value];
        const char *line = report_line(cx, v->origin, a);
        text_add(to, "  %10s  %18s  %13s  %-14s  %s", human(a, v->bytes), report_exact(a, v->bytes),
                 life_of(p, large[i].value, a), role_name(v->role), text_or(v->name, "?"));
        if (line != NULL)
            text_add(to, "  %s", line);
        text_char(to, '\n');
    }
}

static int32_t again(const Plan *p)
{
    int32_t n = 0;
    for (int32_t s = 0; s < p->n_steps; s++)
        n += p->step[s].run > 0;
    return n;
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

/* ": +3.00 % of time, as predicted", or as measured, and what is proved of it. */
static void put_extra(const Plan *p, Text *to)
{
    const PlanBudget *b = &p->budget;
    int64_t once = plan_cost(p, false), steps = plan_cost_of_steps(p) - once;
    bool timed = b->ratio > 0, told = steps > 0 || (!timed && again(p) > 0);
    if (timed)
        text_add(to, ": %+.2f %% of time, as measured beside the program without a budget",
                 percent(plan_extra(p), once));
    if (timed && steps > 0)
        text_add(to, "; %+.2f %% as its kernels add up", percent(steps, once));
    if (!timed && told)
        text_add(to, ": +%.2f %% of time, as predicted", percent(plan_extra(p), once));
    if (told && b->tried)
        text_add(to,
                 timed ? ", of which less than %+.2f %% is proved impossible%s"
                       : "; less than +%.2f %% is proved impossible%s",
                 percent(b->bound, once), b->has_slices ? " with whole values" : "");
}

/* What the budget is, and what it costs. */
static void put_budget(const Plan *p, Text *to)
{
    Arena *a = to->arena;
    const PlanBudget *b = &p->budget;
    int64_t extra = plan_extra(p);
    int32_t n = again(p);
    if (b->bytes > 0 && b->least > 0)
        text_add(to, "budget: %s bytes; %s would do, with nothing run again %s\n",
                 report_exact(a, b->bytes), report_exact(a, b->least), report_exact(a, b->once));
    else if (b->bytes > 0)
        text_add(to, "budget: %s bytes%s\n", report_exact(a, b->bytes),
                 b->levels > 0 || b->again_steps > 0 || p->remade
                     ? ""
                     : ", in which nothing runs again");
    const char *split = plan_split_text(p, a);
    if (split != NULL)
        text_add(to, "%s\n", split);
    const char *scans = plan_scans_text(p, a);
    if (scans != NULL)
        text_add(to, "%s%s", scans, n > 0 ? "; " : "");
    if (b->slices > 0)
        text_add(to, "%swide values are computed in %d slices%s",
                 scans != NULL && n == 0 ? "; " : "", b->slices, n > 0 ? "; " : "");
    if (p->remade)
        text_add(to, "elementwise values are computed again, contractions are not%s",
                 n > 0 ? "; " : "");
    if (n > 0)
        text_add(to, "%d steps run again to save memory", n);
    bool told = scans != NULL || b->slices > 0 || p->remade || n > 0;
    bool waits = p->store_bytes > 0 && extra > 0;
    if (!told && waits)
        text_add(to, "what is offloaded has to be waited for");
    if (told || waits) /* of micro-batches that is said above */
        put_extra(p, to);
    text_add(to, told || waits ? "\n" : "");
    if (b->within > 0)
        text_add(to, "it is the plan for %s bytes, which was measured to be faster\n",
                 report_exact(a, b->within));
    if (b->untimed != NULL)
        text_add(to, "the plan as a whole is not timed: %s\n", b->untimed);
    if (p->cost != NULL && p->cost->from != NULL)
        text_add(to, "times of steps: %s\n", p->cost->from);
}

static const char *place_of(const Ctx *cx, Span at, Arena *a)
{
    const Origin o = {.span = at};
    return text_or(report_line(cx, &o, a), "?");
}

static void put_parts(const Ctx *cx, const Plan *p, Text *to)
{
    Arena *a = to->arena;
    for (int32_t i = 0; i < p->n_parts; i++)
        text_add(to, "budget of %s bytes at %s: %s are kept%s\n",
                 report_exact(a, p->part[i].part->bytes), place_of(cx, p->part[i].part->at, a),
                 report_exact(a, p->part[i].kept),
                 p->part[i].part->less ? ", others of its values computed again" : "");
}

void plan_print(const Ctx *cx, const Plan *p, bool schedule, Text *to)
{
    Arena *a = to->arena;
    text_add(to, "entry %s: %d steps, %s (%s bytes)\n", text_or(p->entry, "?"), p->n_steps,
             human(a, p->peak), report_exact(a, p->peak));
    if (p->n_steps > 0)
        text_add(to, "most is live at step %d, %s: %s (%s bytes); holes: %s bytes\n", p->peak_step,
                 text_or(p->step[p->peak_step].label, "?"), human(a, p->live_peak),
                 report_exact(a, p->live_peak), report_exact(a, p->peak - p->live_peak));
    put_budget(p, to);
    put_parts(cx, p, to);
    if (p->guard_loss > 0)
        text_add(to,
                 "with `guard loss` it would take %s bytes: %s less, for parameters are updated "
                 "while the reverse pass goes on\n",
                 report_exact(a, p->guard_loss), human(a, p->peak - p->guard_loss));
    if (p->pairs)
        text_add(to,
                 "sums of bf16 are those of dot products, in pairs: numerics `fma, bf16 pairs`\n");
    if (p->flush)
        text_add(to, "denormals are flushed, as the class of numerics in the header says\n");
    const char *offloaded = offload_text(p, a);
    if (offloaded != NULL)
        text_add(to, "%s\n", offloaded);
    if (schedule) {
        put_schedule(p, to);
        put_lifetimes(p, to);
    }
    put_roles(p, to);
    put_largest(cx, p, to);
}

/* ---- budget ------------------------------------------------------------------------ */

/* A note at the place in the model that led there. */
static void put_origin(Ctx *cx, Diag *d, const Origin *o, const char *what)
{
    while (o != NULL && (o->span.file < 0 || cx->source.at[o->span.file]->library))
        o = o->parent;
    if (o != NULL)
        diag_note(cx, d, o->span, "%s", what);
}

static void put_step_at(Ctx *cx, Diag *d, const char *what, const PlanStep *s)
{
    if (s != NULL)
        put_origin(cx, d, s->origin,
                   arena_printf(&cx->perm, "%s `%s`", what, text_or(s->label, "?")));
}

/* What the model keeps can't make room. */
static void note_kept(Ctx *cx, Diag *d, const Plan *p)
{
    int64_t bytes = 0;
    const PlanValue *largest = NULL;
    for (int32_t i = 0; i < p->n_values; i++) {
        const PlanValue *v = &p->value[i];
        if (!v->kept || plan_offloads(p, i))
            continue;
        bytes += v->bytes;
        largest = largest == NULL || v->bytes > largest->bytes ? v : largest;
    }
    if (largest != NULL)
        put_origin(cx, d, largest->origin,
                   arena_printf(&cx->perm, "`keep` holds %s bytes, most of them here",
                                report_exact(&cx->perm, bytes)));
}

static Diag *refuse_proved(Ctx *cx, const Plan *p, const char *budget, Span at)
{
    const PlanBudget *b = &p->budget;
    Diag *d = diag_error(
        cx, E0601, at, "a budget of %s is proved impossible for entry `%s`: %s `%s`", budget,
        text_or(p->entry, "?"), b->impossible, text_or(b->impossible_at->label, "?"));
    put_step_at(cx, d, "this is", b->impossible_at);
    return d;
}

static Diag *refuse_not_found(Ctx *cx, const Plan *p, const char *budget, Span at)
{
    Diag *d =
        diag_error(cx, E0601, at,
                   "no plan of entry `%s` within a budget of %s was found; that there is none "
                   "is not proved",
                   text_or(p->entry, "?"), budget);
    put_step_at(cx, d, "most of the least that is found is there in", p->budget.least_at);
    return d;
}

bool plan_fits(Ctx *cx, const Plan *p, int64_t budget_bytes, Span at)
{
    if (budget_bytes <= 0 || p->peak <= budget_bytes)
        return true;
    Arena *a = &cx->perm;
    const char *budget =
        arena_printf(a, "%s (%s bytes)", human(a, budget_bytes), report_exact(a, budget_bytes));
    if (p->budget.least == 0) {
        Diag *d =
            diag_error(cx, E0601, at, "the budget is %s, but entry `%s` needs %s (%s bytes)",
                       budget, text_or(p->entry, "?"), human(a, p->peak), report_exact(a, p->peak));
        diag_help(cx, d, "the smallest budget that works is %lld bytes", (long long)p->peak);
        return false;
    }
    Diag *d = p->budget.impossible != NULL ? refuse_proved(cx, p, budget, at)
                                           : refuse_not_found(cx, p, budget, at);
    note_kept(cx, d, p);
    const char *help = arena_printf(a, "the smallest budget that is found to work is %lld bytes",
                                    (long long)p->budget.least);
    if (p->budget.least < p->budget.once)
        help = arena_printf(a, "%s; with nothing run again it is %lld", help,
                            (long long)p->budget.once);
    if (p->budget.unsplit != NULL)
        help = arena_printf(a, "%s; %s", help, plan_split_text(p, a));
    diag_help(cx, d, "%s", help);
    return false;
}
