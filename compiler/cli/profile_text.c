/* A profile as a table, as JSON and as a trace. */
#include "profile.h"

#include <math.h>

#include "../plan/report.h"

static const char *label_of(const ProfileRow *r)
{
    return r->call->label != NULL ? r->call->label : "?";
}

static double in_steps(const Profile *p)
{
    double sum = 0;
    for (int i = 0; i < p->row.n; i++)
        sum += p->row.at[i].ns;
    return sum;
}

/* As JSON, up to what is said of its limit. */
static void begin_row(const ProfileRow *r, int i, Text *to)
{
    text_add(to, "%s\n{", i > 0 ? "," : "");
    text_pair(to, "step", label_of(r));
    text_add(to, ", ");
    text_pair(to, "line", r->line);
    text_add(to, ", \"calls\": %lld, \"ns\": %.0f, \"flops\": %.0f, \"bytes\": %.0f, ",
             (long long)r->calls, r->ns, r->flops, r->bytes);
}

/* ---- on a GPU ---------------------------------------------------------------------------- */

static void put_model(const Profile *p, Text *to)
{
    if (p->gpu != NULL)
        text_add(to, "model us: as %s would take, with %.1f us a launch and %.0f %% of %.0f GB/s",
                 p->gpu->title, gpu_launch_ns / 1e3, 100 * gpu_reached, p->gpu->memory);
    else
        text_add(to, "there is no model of this device: --gpu takes another's");
}

static void launches_text(const Profile *p, Text *to)
{
    double sum = in_steps(p), best = 0;
    text_add(to,
             "entry %s, %lld calls on %s, launch by launch; two events of the driver with nothing "
             "between\nthem are %.1f us apart; ",
             p->entry, (long long)p->n_calls, p->device, p->apart / 1e3);
    put_model(p, to);
    text_add(to, "\n\n%10s %6s %7s %9s %8s %9s  %-6s %s\n", "us", "share", "calls", "GFLOP/s",
             "GB/s", "model us", "limit", "step");
    for (int i = 0; i < p->row.n; i++) {
        const ProfileRow *r = &p->row.at[i];
        double ns = r->ns > 0 ? r->ns : 1;
        best += r->best;
        bool known = r->limit != NULL;
        text_add(to, "%10.1f %5.1f%% %7lld %9.1f %8.1f %9s  %-6s %s%s%s\n", r->ns / 1e3,
                 sum > 0 ? 100 * r->ns / sum : 0, (long long)r->calls, r->flops / ns, r->bytes / ns,
                 known ? arena_printf(to->arena, "%.1f", r->best / 1e3) : "-",
                 known ? r->limit : "-", r->line != NULL ? r->line : "",
                 r->line != NULL ? ": " : "", label_of(r));
    }
    text_add(to, "%10.1f %5s   all launches, the quickest of each", sum / 1e3, "");
    if (p->gpu != NULL)
        text_add(to, "; %.1f us by the model", best / 1e3);
    text_add(to, "\n");
}

static void launches_json(const Profile *p, Text *to)
{
    text_add(to, "{\"entry\": \"%s\", \"calls\": %lld, ", p->entry, (long long)p->n_calls);
    text_pair(to, "device", p->device);
    text_add(to, ", ");
    text_pair(to, "gpu", p->gpu != NULL ? p->gpu->name : NULL);
    text_add(to,
             ", \"ns\": %.0f, \"apart_ns\": %.0f, \"launch_ns\": %.0f, \"reached\": %.2f, "
             "\"steps\": [",
             in_steps(p), p->apart, gpu_launch_ns, gpu_reached);
    for (int i = 0; i < p->row.n; i++) {
        const ProfileRow *r = &p->row.at[i];
        begin_row(r, i, to);
        if (r->limit != NULL)
            text_add(to, "\"model_ns\": %.0f, ", r->best);
        else
            text_add(to, "\"model_ns\": null, ");
        text_pair(to, "limit", r->limit);
        text_add(to, "}");
    }
    text_add(to, "]}");
}

/* ---- on any machine ------------------------------------------------------------------------ */

void profile_text(const Profile *p, Text *to)
{
    if (p->on_gpu) {
        launches_text(p, to);
        return;
    }
    const Roof *f = &p->roof;
    double best = 0;
    text_add(to,
             "entry %s, %lld calls, %lld thread%s; at best here %.0f GFLOP/s, %.1f GB/s of memory, "
             "%.0f of caches\n\n%10s %6s %7s %9s %8s %6s  %-6s %s\n",
             p->entry, (long long)p->n_calls, (long long)p->threads, p->threads == 1 ? "" : "s",
             f->flops, f->memory, f->near_rate, "us", "share", "calls", "GFLOP/s", "GB/s", "roof",
             "limit", "step");
    for (int i = 0; i < p->row.n; i++) {
        const ProfileRow *r = &p->row.at[i];
        double ns = r->ns > 0 ? r->ns : 1;
        best += r->best;
        text_add(to, "%10.1f %5.1f%% %7lld %9.1f %8.1f %5.0f%%  %-6s %s%s%s\n", r->ns / 1e3,
                 100 * r->ns / p->ns, (long long)r->calls, r->flops / ns, r->bytes / ns,
                 100 * r->best / ns, r->limit != NULL ? r->limit : "-",
                 r->line != NULL ? r->line : "", r->line != NULL ? ": " : "", label_of(r));
    }
    double rest = p->ns - in_steps(p);
    text_add(to, "%10.1f %5.1f%% %33s between steps, and to begin and end\n", rest / 1e3,
             100 * rest / p->ns, "");
    text_add(to,
             "%10.1f %5s   the quickest call of the entry, as of each step; %.1f us if every step "
             "were at its roof\n",
             p->ns / 1e3, "", best / 1e3);
    if (p->n_chains > 0)
        text_add(to,
                 "kernels ran one after another, to be timed; else those of %d chain%s in the "
                 "entries do so slab by slab, while caches have what one hands on to the next\n",
                 p->n_chains, p->n_chains == 1 ? "" : "s");
    if (p->in_order)
        text_add(to,
                 "turns of loops ran one after another, to be timed; else each lane takes whole "
                 "turns\n");
}

void profile_json(const Profile *p, Text *to)
{
    if (p->on_gpu) {
        launches_json(p, to);
        return;
    }
    const Roof *f = &p->roof;
    text_add(to,
             "{\"entry\": \"%s\", \"calls\": %lld, \"threads\": %lld, \"ns\": %.0f, \"roof\": "
             "{\"flops_per_ns\": %.3f, \"work_per_ns\": %.3f, \"bytes_per_ns\": {\"%.0f\": %.3f, "
             "\"%.0f\": %.3f, \"memory\": %.3f}, \"call_ns\": %.1f}, \"chains\": %d, \"steps\": [",
             p->entry, (long long)p->n_calls, (long long)p->threads, p->ns, f->flops, f->work,
             f->near_bytes, f->near_rate, f->middle_bytes, f->middle, f->memory, f->call,
             p->n_chains);
    for (int i = 0; i < p->row.n; i++) {
        const ProfileRow *r = &p->row.at[i];
        begin_row(r, i, to);
        text_add(to, "\"roof_ns\": %.0f, ", r->best);
        text_pair(to, "limit", r->limit != NULL ? r->limit : "calls"); /* a transfer */
        text_add(to, "}");
    }
    text_add(to, "]}");
}

void profile_trace(const Ctx *cx, const Profile *p, Text *to)
{
    text_add(to, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [");
    for (int i = 0; i < p->event.n; i++) {
        const Event *e = &p->event.at[i];
        const Call *call = p->step[e->step];
        text_add(to, "%s\n{", i > 0 ? "," : "");
        text_pair(to, "name", call->label != NULL ? call->label : "?");
        text_add(to,
                 ", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, "
                 "\"dur\": %.3f, \"args\": {",
                 call->kind == CALL_KERNEL ? "kernel" : "transfer", e->from / 1e3,
                 (e->to - e->from) / 1e3);
        text_pair(to, "line", report_line(cx, call->origin, to->arena));
        text_add(to, "}}");
    }
    text_add(to, "]}\n");
}
