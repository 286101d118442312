#include "curve.h"

#include "svg.h"

static double part_of(int64_t extra, int64_t whole)
{
    return whole > 0 ? (double)extra / (double)whole : 0;
}

static CurvePoint point_at(Within *w, const Plan *p, int64_t budget)
{
    within_plan(w, budget);
    within_prove(w, budget);
    int64_t once = plan_cost(p, false);
    return (CurvePoint){.budget = budget,
                        .peak = p->peak,
                        .overhead = part_of(plan_cost(p, true) - once, once),
                        .bound = part_of(p->budget.bound, once)};
}

Curve curve_of(Plan *p, PlanEffort effort, Arena *arena)
{
    Plan once = *p;
    Within *w = within_open(p, effort, arena);
    Curve c = {.entry = p->entry, .pinned = p->base, .once = p->peak};
    int64_t least = within_least(w), range = c.once - least;
    c.n = range > 0 ? CURVE_POINTS : 1;
    for (int32_t i = 0; i < c.n; i++) {
        int64_t budget = c.n == 1 ? c.once : least + range / (c.n - 1) * i;
        c.at[i] = point_at(w, p, i == c.n - 1 ? c.once : budget);
        *p = once;
    }
    for (int32_t i = c.n - 1; i-- > 0;) /* what keeps to a budget keeps to a larger one */
        if (c.at[i].bound < c.at[i + 1].bound)
            c.at[i].bound = c.at[i + 1].bound;
    within_close(w);
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
