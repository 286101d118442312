/* Plans as one page for a browser. */
#include "report.h"

static void put_escaped(Text *to, const char *s)
{
    for (; s != NULL && *s != '\0'; s++)
        switch (*s) {
        case '<':
            text_add(to, "&lt;");
            break;
        case '>':
            text_add(to, "&gt;");
            break;
        case '&':
            text_add(to, "&amp;");
            break;
        case '"':
            text_add(to, "&quot;");
            break;
        default:
            text_char(to, *s);
        }
}

static void put_cell(Text *to, const char *s)
{
    text_add(to, "<td>");
    put_escaped(to, s);
    text_add(to, "</td>");
}

static void put_number(Text *to, int64_t n)
{
    text_add(to, "<td class=\"n\">%lld</td>", (long long)n);
}

static const char head[] =
    "<style>\n"
    "body { font: 14px sans-serif; margin: 2em; max-width: 110em }\n"
    "table { border-collapse: collapse; margin: 1em 0 }\n"
    "td, th { padding: 1px 8px; text-align: left; border-bottom: 1px solid #ddd }\n"
    "td.n { text-align: right; font-variant-numeric: tabular-nums }\n"
    "tr.chosen { background: #ffe9a8 } rect.chosen { stroke: black; stroke-width: 2 }\n"
    "svg { max-width: 100%; height: auto } input { width: 24em }\n"
    ".scroll { max-height: 40em; overflow: auto }\n"
    "</style>\n";

/* Rows that do not contain the words are hidden; a click on a row or on its place in the map
 * shows both. */
static const char script[] =
    "<script>\n"
    "for (const section of document.querySelectorAll('section')) {\n"
    "  section.querySelector('input').addEventListener('input', e => {\n"
    "    const words = e.target.value.toLowerCase().split(/\\s+/);\n"
    "    for (const row of section.querySelectorAll('tbody tr'))\n"
    "      row.hidden = !words.every(w => row.textContent.toLowerCase().includes(w));\n"
    "  });\n"
    "  section.addEventListener('click', e => {\n"
    "    const at = e.target.closest('[data-range]');\n"
    "    if (!at) return;\n"
    "    for (const x of section.querySelectorAll('.chosen')) x.classList.remove('chosen');\n"
    "    for (const x of section.querySelectorAll(`[data-range=\"${at.dataset.range}\"]`)) {\n"
    "      x.classList.add('chosen');\n"
    "      if (x !== at) x.scrollIntoView({block: 'nearest'});\n"
    "    }\n"
    "  });\n"
    "}\n"
    "</script>\n";

/* ---- the block, byte by step --------------------------------------------------------- */

enum { MAP_WIDTH = 960, MAP_HEIGHT = 420 };

static int32_t scaled(int64_t x, int64_t of, int32_t to)
{
    return of > 0 ? (int32_t)((double)x * to / (double)of + 0.5) : 0;
}

static void put_rect(const Plan *p, int32_t from, int32_t to_step, int64_t offset, int64_t bytes,
                     Role role, Text *to)
{
    int32_t x0 = scaled(from, p->n_steps, MAP_WIDTH);
    int32_t x1 = scaled(to_step + 1, p->n_steps, MAP_WIDTH);
    int32_t y0 = scaled(offset, p->peak, MAP_HEIGHT);
    int32_t y1 = scaled(offset + bytes, p->peak, MAP_HEIGHT);
    text_add(to, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"", x0,
             MAP_HEIGHT - y1, x1 > x0 ? x1 - x0 : 1, y1 > y0 ? y1 - y0 : 1, report_color(role));
}

static void put_map(const Plan *p, Text *to)
{
    text_add(to,
             "<p>The block: steps from left to right, bytes from the bottom up. A click shows the "
             "value.</p>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#f4f4f4\"/>\n",
             MAP_WIDTH, MAP_HEIGHT, MAP_WIDTH, MAP_HEIGHT);
    put_rect(p, 0, p->n_steps - 1, 0, p->base, ROLE_PARAM, to);
    text_add(to, "><title>pinned storage</title></rect>\n");
    for (int32_t r = 0; r < p->n_ranges; r++) {
        const PlanRange *g = &p->range[r];
        const PlanValue *v = &p->value[g->value];
        put_rect(p, g->from, g->to, g->offset, v->bytes, v->role, to);
        text_add(to, " data-range=\"%d\"><title>", r);
        put_escaped(to, v->name);
        text_add(to, ", %lld bytes</title></rect>\n", (long long)v->bytes);
    }
    for (int32_t s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->step[s];
        int64_t lanes = plan_lanes_bytes(p, step);
        if (step->workspace > 0) {
            put_rect(p, s, s, step->workspace_offset, step->workspace, ROLE_WORKSPACE, to);
            text_add(to, "><title>workspace of step %d</title></rect>\n", s);
        }
        if (lanes > 0) {
            put_rect(p, s, s, plan_lanes_offset(step), lanes, ROLE_LANES, to);
            text_add(to, "><title>lane scratch of step %d</title></rect>\n", s);
        }
    }
    text_add(to, "</svg>\n");
}

/* ---- tables ------------------------------------------------------------------------------ */

static void put_head(Text *to, const char *what, const char *const *column)
{
    text_add(to, "<h3>%s</h3>\n<div class=\"scroll\"><table><thead><tr>", what);
    for (; *column != NULL; column++)
        text_add(to, "<th>%s</th>", *column);
    text_add(to, "</tr></thead><tbody>\n");
}

static void put_tail(Text *to)
{
    text_add(to, "</tbody></table></div>\n");
}

static void put_values(const Ctx *cx, const Plan *p, Text *to)
{
    static const char *const column[] = {"value", "role", "bytes", "offset",      "from",
                                         "to",    "line", "why",   "in place of", NULL};
    const int32_t *taken = report_taken(p, to->arena);
    put_head(to, "Values", column);
    for (int32_t r = 0; r < p->n_ranges; r++) {
        const PlanRange *g = &p->range[r];
        const PlanValue *v = &p->value[g->value];
        text_add(to, "<tr data-range=\"%d\">", r);
        put_cell(to, v->name);
        put_cell(to, role_name(v->role));
        put_number(to, v->bytes);
        put_number(to, g->offset);
        put_number(to, g->from);
        put_number(to, g->to);
        put_cell(to, report_line(cx, v->origin, to->arena));
        put_cell(to, report_reason(p, g, to->arena));
        put_cell(to, taken[r] >= 0 ? p->value[p->range[taken[r]].value].name : "");
        text_add(to, "</tr>\n");
    }
    for (int32_t i = 0; i < p->n_values; i++) {
        const PlanValue *v = &p->value[i];
        if (!v->pinned)
            continue;
        text_add(to, "<tr>");
        put_cell(to, v->name);
        put_cell(to, role_name(v->role));
        put_number(to, v->bytes);
        put_number(to, v->offset);
        text_add(to, "<td></td><td></td>");
        put_cell(to, report_line(cx, v->origin, to->arena));
        put_cell(to, arena_printf(to->arena, "it lives between calls; %s",
                                  report_pinned_reason(p, i, to->arena)));
        text_add(to, "<td></td></tr>\n");
    }
    put_tail(to);
}

static void put_steps(const Ctx *cx, const Plan *p, Text *to)
{
    static const char *const column[] = {"step",           "kernel", "run",  "live bytes",
                                         "predicted (ns)", "flops",  "line", NULL};
    const int64_t *live = plan_live(p, to->arena);
    put_head(to, "Steps", column);
    for (int32_t s = 0; s < p->n_steps; s++) {
        const PlanStep *step = &p->step[s];
        text_add(to, "<tr>");
        put_number(to, s);
        put_cell(to, step->label);
        put_number(to, step->run + 1);
        put_number(to, live[s]);
        put_number(to, plan_step_cost(p, step));
        text_add(to, "<td class=\"n\">%.0f</td>", step->flops);
        put_cell(to, report_line(cx, step->origin, to->arena));
        text_add(to, "</tr>\n");
    }
    put_tail(to);
}

static void put_entry(const Ctx *cx, const Plan *p, Text *to)
{
    text_add(to, "<section><h2>entry %s: %lld bytes, %d steps</h2>\n", p->entry, (long long)p->peak,
             p->n_steps);
    if (p->n_steps > 0) {
        text_add(to, "<p>Most is live at step %d, ", p->peak_step);
        put_escaped(to, p->step[p->peak_step].label);
        text_add(to, ": %lld bytes.", (long long)p->live_peak);
    }
    if (p->budget.bytes > 0)
        text_add(to, " The budget is %lld bytes; with nothing run again it would take %lld.",
                 (long long)p->budget.bytes, (long long)p->budget.once);
    const char *split = plan_split_text(p, to->arena);
    if (split != NULL) {
        text_add(to, " In micro-batches: ");
        put_escaped(to, split);
        text_char(to, '.');
    }
    const char *scans = plan_scans_text(p, to->arena);
    if (scans != NULL) {
        text_add(to, " Scans: ");
        put_escaped(to, scans);
        text_char(to, '.');
    }
    text_add(to, "</p>\n");
    plan_svg(p, to);
    put_map(p, to);
    text_add(to, "<p><input type=\"search\" placeholder=\"words of a row\" "
                 "aria-label=\"show rows with these words\"></p>\n");
    put_values(cx, p, to);
    put_steps(cx, p, to);
    text_add(to, "</section>\n");
}

void plan_html(const Ctx *cx, const char *title, const Plan *const *plan, int n, Text *to)
{
    text_add(to, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
    put_escaped(to, title);
    text_add(to, "</title>\n%s</head><body>\n<h1>", head);
    put_escaped(to, title);
    text_add(to, "</h1>\n");
    for (int i = 0; i < n; i++)
        if (plan[i] != NULL)
            put_entry(cx, plan[i], to);
    text_add(to, "%s</body></html>\n", script);
}
