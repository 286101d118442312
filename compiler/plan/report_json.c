/* A plan as one JSON object: everything that is known of it, in a fixed order. */
#include "report.h"

#include "offload.h"

#include <math.h>

static void put_int(Text *to, const char *key, int64_t n)
{
    text_add(to, "\"%s\": %lld", key, (long long)n);
}

static void put_bool(Text *to, const char *key, bool b)
{
    text_add(to, "\"%s\": %s", key, b ? "true" : "false");
}

/* JSON has no infinities. */
static void put_double(Text *to, const char *key, double x)
{
    text_add(to, "\"%s\": ", key);
    if (isfinite(x))
        text_double(to, x);
    else
        text_add(to, "null");
}

static void put_list(Text *to, const char *key, const int32_t *list, int32_t n)
{
    text_add(to, "\"%s\": [", key);
    for (int32_t i = 0; i < n; i++)
        text_add(to, "%s%d", i > 0 ? ", " : "", list[i]);
    text_char(to, ']');
}

static void put_comma(Text *to)
{
    text_add(to, ", ");
}

static void put_roles(const Plan *p, Text *to)
{
    int64_t bytes[N_ROLES];
    plan_by_role(p, -1, bytes);
    text_add(to, "  \"by_role\": {");
    for (int r = 0; r < N_ROLES; r++) {
        text_add(to, "%s", r > 0 ? ", " : "");
        put_int(to, role_name((Role)r), bytes[r]);
    }
    text_add(to, "},\n");
}

static void put_step(const Plan *p, int32_t s, int64_t live, Text *to)
{
    const PlanStep *step = &p->step[s];
    static const char *const transfer[] = {
        [STEP_OUT] = "out", [STEP_IN] = "in", [STEP_WAIT] = "wait"};
    text_add(to, "    {");
    text_pair(to, "label", step->label);
    put_comma(to);
    if (step->kind != STEP_RUN) {
        text_pair(to, "transfer", transfer[step->kind]);
        put_comma(to);
    }
    put_int(to, "run", step->run);
    put_comma(to);
    put_int(to, "live", live);
    put_comma(to);
    put_list(to, "reads", step->read, step->n_reads);
    put_comma(to);
    put_list(to, "writes", step->write, step->n_writes);
    put_comma(to);
    put_list(to, "frees", step->frees, step->n_frees);
    put_comma(to);
    put_int(to, "workspace", step->workspace);
    put_comma(to);
    put_int(to, "workspace_offset", step->workspace_offset);
    put_comma(to);
    put_int(to, "turns", step->turns > 1 ? step->turns : 1);
    put_comma(to);
    put_int(to, "lane_bytes", step->lane_bytes);
    put_comma(to);
    put_int(to, "lanes", step->lanes > 0 ? step->lanes : p->threads_max);
    put_comma(to);
    put_double(to, "flops", step->flops);
    put_comma(to);
    put_double(to, "bytes_moved", step->bytes_moved);
    put_comma(to);
    put_int(to, "cost_ns", plan_step_cost(p, step));
    put_comma(to);
    put_bool(to, "guarded", step->guarded);
    if (p->n_parts > 0) {
        put_comma(to);
        put_bool(to, "reverse", step->reverse);
    }
    text_add(to, "}");
}

static void put_value(const Ctx *cx, const Plan *p, int32_t v, Text *to)
{
    const PlanValue *value = &p->value[v];
    text_add(to, "    {");
    text_pair(to, "name", value->name);
    put_comma(to);
    text_pair(to, "role", role_name(value->role));
    put_comma(to);
    put_int(to, "bytes", value->bytes);
    put_comma(to);
    put_bool(to, "pinned", value->pinned);
    put_comma(to);
    put_int(to, "offset", value->offset);
    put_comma(to);
    put_bool(to, "to_end", value->to_end);
    put_comma(to);
    text_pair(to, "line", report_line(cx, value->origin, to->arena));
    put_comma(to);
    put_bool(to, "kept", value->kept);
    put_comma(to);
    put_bool(to, "reverse", value->reverse);
    if (value->origin != NULL && value->origin->part != NULL) {
        put_comma(to);
        put_int(to, "part", value->origin->part->id);
    }
    if (plan_offloads(p, v)) {
        put_comma(to);
        put_int(to, "store", value->store);
    }
    text_add(to, "}");
}

static void put_range(const Plan *p, int32_t r, int32_t taken, Text *to)
{
    const PlanRange *range = &p->range[r];
    text_add(to, "    {");
    put_int(to, "value", range->value);
    put_comma(to);
    put_int(to, "from", range->from);
    put_comma(to);
    put_int(to, "to", range->to);
    put_comma(to);
    put_int(to, "offset", range->offset);
    put_comma(to);
    put_int(to, "storage", range->storage);
    put_comma(to);
    put_int(to, "over", taken);
    put_comma(to);
    text_pair(to, "reason", report_reason(p, range, to->arena));
    text_add(to, "}");
}

static double part_of(int64_t extra, int64_t once)
{
    return (double)extra / (double)(once > 0 ? once : 1);
}

/* Where there is a budget: bytes, and what is proved of the extra time. */
static void put_budget(const Plan *p, Text *to)
{
    const PlanBudget *b = &p->budget;
    int64_t once = plan_cost(p, false);
    if (b->bytes == 0)
        return;
    text_add(to, ",\n  ");
    put_int(to, "budget", b->bytes);
    if (b->within > 0) {
        text_add(to, ",\n  ");
        put_int(to, "planned_for", b->within);
    }
    text_add(to, ",\n  ");
    put_int(to, "once_peak", b->once);
    if (b->least > 0) {
        text_add(to, ",\n  ");
        put_int(to, "least", b->least);
    }
    text_add(to, ",\n  ");
    put_int(to, "scan_levels", b->levels);
    if (b->again_steps > 0) {
        text_add(to, ",\n  ");
        put_int(to, "scan_steps_kept", b->kept_steps);
        text_add(to, ",\n  ");
        put_int(to, "scan_steps_again", b->again_steps);
    }
    if (b->split > 0) {
        text_add(to, ",\n  ");
        put_int(to, "batch_rows", b->rows);
        text_add(to, ",\n  ");
        put_int(to, "micro_batches", b->split);
    }
    if (b->split > 0 && b->cost_whole > 0) {
        text_add(to, ",\n  ");
        put_int(to, "cost_whole_ns", b->cost_whole);
    }
    if (b->unsplit != NULL) {
        text_add(to, ",\n  ");
        text_pair(to, "unsplit", b->unsplit);
    }
    text_add(to, ",\n  ");
    put_double(to, "overhead", part_of(plan_extra(p), once));
    if (b->ratio > 0) {
        text_add(to, ",\n  ");
        put_int(to, "cost_of_kernels_ns", plan_cost_of_steps(p));
    }
    if (b->untimed != NULL) {
        text_add(to, ",\n  ");
        text_pair(to, "untimed", b->untimed);
    }
    if (b->tried || b->once <= b->bytes) {
        text_add(to, ",\n  ");
        put_double(to, "lower_bound", part_of(b->bound, once));
        if (b->has_slices) {
            text_add(to, ",\n  ");
            text_pair(to, "lower_bound_of", "whole values");
        }
    }
}

/* Where values are offloaded: bytes, and the time that it takes. */
static void put_transfers(const Plan *p, Text *to)
{
    Transfers t = offload_transfers(p, NULL);
    if (t.out_bytes == 0)
        return;
    text_add(to, ",\n  ");
    put_int(to, "store_bytes", p->store_bytes);
    text_add(to, ",\n  ");
    put_int(to, "out_bytes", t.out_bytes);
    text_add(to, ",\n  ");
    put_int(to, "in_bytes", t.in_bytes);
    text_add(to, ",\n  ");
    put_double(to, "transfer_ns", t.busy);
    text_add(to, ",\n  ");
    put_double(to, "waited_ns", t.waited);
}

static void put_head(const Plan *p, Text *to)
{
    text_add(to, "{\n  ");
    text_pair(to, "entry", p->entry);
    text_add(to, ",\n  ");
    put_int(to, "peak", p->peak);
    text_add(to, ",\n  ");
    put_int(to, "cost_ns", plan_cost(p, true));
    text_add(to, ",\n  ");
    put_int(to, "cost_once_ns", plan_cost(p, false));
    if (p->cost != NULL && p->cost->from != NULL) {
        text_add(to, ",\n  ");
        text_pair(to, "times", p->cost->from);
    }
    put_budget(p, to);
    if (p->light)
        text_add(to, ",\n  \"light\": true,\n  \"remade\": %s", p->remade ? "true" : "false");
    if (p->pairs)
        text_add(to, ",\n  \"pairs\": true");
    if (p->flush)
        text_add(to, ",\n  \"denormals\": \"flush\"");
    if (p->guard_loss > 0) {
        text_add(to, ",\n  ");
        put_int(to, "guard_loss_peak", p->guard_loss);
    }
    put_transfers(p, to);
    text_add(to, ",\n  ");
    put_int(to, "live_peak", p->live_peak);
    text_add(to, ",\n  ");
    put_int(to, "peak_step", p->peak_step);
    text_add(to, ",\n  ");
    put_int(to, "holes", p->peak - p->live_peak);
    text_add(to, ",\n  ");
    put_int(to, "base", p->base);
    text_add(to, ",\n  ");
    put_int(to, "threads_max", p->threads_max);
    text_add(to, ",\n");
}

/* `budget` around parts of the model: bytes that they may keep, and keep. */
static void put_parts(const Ctx *cx, const Plan *p, Text *to)
{
    if (p->n_parts == 0)
        return;
    text_add(to, "  \"parts\": [");
    for (int32_t i = 0; i < p->n_parts; i++) {
        const BudgetPart *x = p->part[i].part;
        const Origin at = {.span = x->at};
        text_add(to, "%s{", i > 0 ? ", " : "");
        text_pair(to, "line", report_line(cx, &at, to->arena));
        put_comma(to);
        put_int(to, "id", x->id);
        put_comma(to);
        put_int(to, "in", x->outer == NULL ? -1 : x->outer->id);
        put_comma(to);
        put_int(to, "budget", x->bytes);
        put_comma(to);
        put_int(to, "kept", p->part[i].kept);
        put_comma(to);
        put_bool(to, "less", x->less);
        text_add(to, "}");
    }
    text_add(to, "],\n");
}

void plan_json(const Ctx *cx, const Plan *p, Text *to)
{
    const int64_t *live = plan_live(p, to->arena);
    const int32_t *taken = report_taken(p, to->arena);
    put_head(p, to);
    put_roles(p, to);
    put_parts(cx, p, to);
    text_add(to, "  \"steps\": [");
    for (int32_t s = 0; s < p->n_steps; s++) {
        text_add(to, "%s\n", s > 0 ? "," : "");
        put_step(p, s, live[s], to);
    }
    text_add(to, "],\n  \"values\": [");
    for (int32_t v = 0; v < p->n_values; v++) {
        text_add(to, "%s\n", v > 0 ? "," : "");
        put_value(cx, p, v, to);
    }
    text_add(to, "],\n  \"ranges\": [");
    for (int32_t r = 0; r < p->n_ranges; r++) {
        text_add(to, "%s\n", r > 0 ? "," : "");
        put_range(p, r, taken[r], to);
    }
    text_add(to, "]\n}\n");
}
