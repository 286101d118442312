/* Memory over the steps of a plan, by role, with the line of the budget. */
#include "report.h"
#include "svg.h"

static const char *const color[N_ROLES] = {
    [ROLE_PARAM] = "#4e79a7",    [ROLE_OPTIMIZER] = "#a0cbe8", [ROLE_STATE] = "#499894",
    [ROLE_SCALAR] = "#86bcb6",   [ROLE_GRADIENT] = "#e15759",  [ROLE_ACTIVATION] = "#f28e2b",
    [ROLE_CONSTANT] = "#79706e", [ROLE_INPUT] = "#59a14f",     [ROLE_STAGING] = "#8cd17d",
    [ROLE_OUTPUT] = "#b07aa1",   [ROLE_WORKSPACE] = "#edc948", [ROLE_LANES] = "#d7b5a6",
    [ROLE_HANDLE] = "#bab0ac",   [ROLE_PADDING] = "#d3d3d3"};

const char *report_color(Role role)
{
    return color[role];
}

/* By step and role: where the role's bytes end, on top of those before it. */
static int64_t *stack_roles(const Plan *p, Arena *arena)
{
    int64_t *top = NEW_ARRAY(arena, int64_t, (int64_t)p->n_steps * N_ROLES);
    for (int32_t s = 0; s < p->n_steps; s++) {
        int64_t bytes[N_ROLES], sum = 0;
        plan_by_role(p, s, bytes);
        for (int r = 0; r < N_ROLES; r++)
            top[(int64_t)s * N_ROLES + r] = sum += bytes[r];
    }
    return top;
}

/* The outline of a role: along its top, and back along that of the role below. */
static bool put_role(const Plan *p, const SvgFrame *f, const int64_t *top, int role, Text *to)
{
    bool some = false;
    for (int32_t s = 0; s < p->n_steps; s++) {
        const int64_t *at = &top[(int64_t)s * N_ROLES + role];
        some = some || at[0] > (role > 0 ? at[-1] : 0);
    }
    if (!some)
        return false;
    text_add(to, "<path fill=\"%s\" d=\"M%d %d", color[role], svg_x(f, 0), svg_y(f, 0));
    for (int32_t s = 0; s < p->n_steps; s++)
        text_add(to, "V%dH%d", svg_y(f, (double)top[(int64_t)s * N_ROLES + role]), svg_x(f, s + 1));
    for (int32_t s = p->n_steps; s-- > 0;)
        text_add(to, "V%dH%d",
                 svg_y(f, role > 0 ? (double)top[(int64_t)s * N_ROLES + role - 1] : 0),
                 svg_x(f, s));
    text_add(to, "Z\"/>\n");
    return true;
}

static void put_limit(const Plan *p, const SvgFrame *f, int n, Text *to)
{
    if (p->budget.bytes <= 0)
        return;
    int32_t y = svg_y(f, (double)p->budget.bytes);
    text_add(to,
             "<path d=\"M%d %dH%d\" stroke=\"red\" stroke-width=\"15\" "
             "stroke-dasharray=\"60 40\"/>\n",
             svg_x(f, 0), y, svg_x(f, f->x1));
    svg_legend(f, n, "red", "budget", to);
}

void plan_svg(const Plan *p, Text *to)
{
    SvgFrame f = {.x1 = p->n_steps, .y1 = (double)p->peak};
    f.y1 = (double)p->budget.bytes > f.y1 ? (double)p->budget.bytes : f.y1;
    const int64_t *top = stack_roles(p, to->arena);
    int n = 0;
    svg_open(&f, arena_printf(to->arena, "entry %s: bytes live at each step", p->entry), to);
    for (int r = 0; r < N_ROLES; r++)
        if (put_role(p, &f, top, r, to))
            svg_legend(&f, n++, color[r], role_name((Role)r), to);
    svg_axes(&f, to);
    put_limit(p, &f, n, to);
    svg_close(to);
}
