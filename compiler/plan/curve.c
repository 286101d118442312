#include "curve.h"

#include "svg.h"

static double part_of(int64_t extra, int64_t whole)
{
    return whole > 0 ? (double)extra / (double)whole : 0;
}

/* Plans of one entry, each for all budgets. */
typedef struct Curved {
    int n;
    Plan *const *plan; /* the first is that without a budget */
    Plan once[MOST_CURVED];
    Within *within[MOST_CURVED];
} Curved;

/* The least that one of the plans takes, and what is proved of all. */
static CurvePoint point_at(Curved *x, int64_t budget)
{
    int64_t once = plan_cost(&x->once[0], false), cost = INT64_MAX, bound = INT64_MAX;
    CurvePoint point = {.budget = budget};
    for (int i = 0; i < x->n; i++) {
        Plan *p = x->plan[i];
        bool fits = within_plan(x->within[i], budget);
        within_prove(x->within[i], budget);
        int64_t takes = plan_cost(p, true), least = plan_cost(p, false) + p->budget.bound;
        bound = p->budget.impossible == NULL && least < bound ? least : bound;
        if (fits && (takes < cost || (takes == cost && p->peak < point.peak))) {
            cost = takes;
            point.peak = p->peak;
        }
        *p = x->once[i];
        if (fits && i == 0 && p->peak <= budget)
            break; /* it is the plan without a budget */
    }
    point.overhead = cost > once ? part_of(cost - once, once) : 0;
    point.bound = bound > once && cost > once ? part_of(bound - once, once) : 0;
    return point;
}

static int64_t least_of(Curved *x)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < x->n; i++) {
        int64_t needs = within_least(x->within[i]);
        least = needs < least ? needs : least;
    }
    return least;
}

Curve curve_of(Plan *const *plan, int n, PlanEffort effort, Arena *arena)
{
    Curved x = {.n = n, .plan = plan};
    for (int i = 0; i < n; i++) {
        x.once[i] = *plan[i];
        x.within[i] = within_open(plan[i], effort, arena);
    }
    const Plan *p = plan[0];
    Curve c = {.entry = p->entry, .pinned = p->base, .once = p->peak};
    int64_t least = least_of(&x), range = c.once - least;
    c.n = range > 0 ? CURVE_POINTS : 1;
    for (int32_t i = 0; i < c.n; i++)
        c.at[i] = point_at(&x, i == c.n - 1 ? c.once : least + range / (c.n - 1) * i);
    for (int32_t i = c.n - 1; i-- > 0;) /* what keeps to a budget keeps to a larger one */
        if (c.at[i].bound < c.at[i + 1].bound)
            c.at[i].bound = c.at[i + 1].bound;
    for (int i = 0; i < n; i++)
        within_close(x.within[i]);
    return c;
}

/* ---- text --------------------------------------------------------------------------- */

/* Of the bytes that are not pinned, in percent. */
static double share_of(const Curve *c, int64_t bytes)
{
    return 100 * part_of(bytes - c->pinned, c->once - c->pinned);
}

/* What the scans of the model are like at this point. */
static void put_scans(const CurvePoint *p, Text *to)
{
    if (p->again_steps > 0)
        text_add(to, "  %lld steps kept, %lld again", (long long)p->kept_steps,
                 (long long)p->again_steps);
    else if (p->levels > 0)
        text_add(to, "  cut, %d deep", p->levels);
    else
        text_add(to, "  whole");
}

void curve_print(const Curve *c, Text *to)
{
    text_add(to, "entry %s: %lld bytes pinned, %lld with every step run once\n", c->entry,
             (long long)c->pinned, (long long)c->once);
    text_add(to, "  %16s  %8s  %16s  %12s  %s\n", "budget", "share", "block", "extra time",
             c->has_forms ? "scans" : "  proved least");
    for (int32_t i = 0; i < c->n; i++) {
        const CurvePoint *p = &c->at[i];
        text_add(to, "  %16lld  %6.1f %%  %16lld  %10.2f %%", (long long)p->budget,
                 share_of(c, p->budget), (long long)p->peak, 100 * p->overhead);
        if (c->has_forms)
            put_scans(p, to);
        else
            text_add(to, "  %12.2f %%", 100 * p->bound);
        text_char(to, '\n');
    }
}

static void put_number(Text *to, const char *key, double x)
{
    text_add(to, ", \"%s\": ", key);
    text_double(to, x);
}

void curve_json(const Curve *c, Text *to)
{
    text_add(to, "{\"entry\": \"%s\", \"pinned\": %lld, \"once_peak\": %lld, \"points\": [",
             c->entry, (long long)c->pinned, (long long)c->once);
    for (int32_t i = 0; i < c->n; i++) {
        const CurvePoint *p = &c->at[i];
        text_add(to, "%s\n  {\"budget\": %lld, \"peak\": %lld", i > 0 ? "," : "",
                 (long long)p->budget, (long long)p->peak);
        put_number(to, "overhead", p->overhead);
        put_number(to, "lower_bound", p->bound);
        if (c->has_forms)
            text_add(to,
                     ", \"scan_levels\": %d, \"scan_steps_kept\": %lld, "
                     "\"scan_steps_again\": %lld",
                     p->levels, (long long)p->kept_steps, (long long)p->again_steps);
        text_char(to, '}');
    }
    text_add(to, "]}\n");
}

/* ---- the picture --------------------------------------------------------------------- */

static void put_line(const Curve *c, const SvgFrame *f, bool bound, const char *style, Text *to)
{
    text_add(to, "<polyline fill=\"none\" %s points=\"", style);
    for (int32_t i = 0; i < c->n; i++)
        text_add(to, "%d,%d ", svg_x(f, (double)c->at[i].budget),
                 svg_y(f, 100 * (bound ? c->at[i].bound : c->at[i].overhead)));
    text_add(to, "\"/>\n");
}

void curve_svg(const Curve *c, Text *to)
{
    SvgFrame f = {.x0 = (double)c->at[0].budget, .x1 = (double)c->once};
    for (int32_t i = 0; i < c->n; i++)
        f.y1 = 100 * c->at[i].overhead > f.y1 ? 100 * c->at[i].overhead : f.y1;
    svg_open(
        &f,
        arena_printf(to->arena, "entry %s: extra time in %% over the budget in bytes", c->entry),
        to);
    svg_axes(&f, to);
    if (!c->has_forms)
        put_line(c, &f, true, "stroke=\"#999\" stroke-dasharray=\"40 30\" stroke-width=\"15\"", to);
    put_line(c, &f, false, "stroke=\"#06c\" stroke-width=\"20\"", to);
    svg_legend(&f, 0, "#06c", "the plan, as predicted", to);
    if (!c->has_forms)
        svg_legend(&f, 1, "#999", "proved of every plan", to);
    svg_close(to);
}
