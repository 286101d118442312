/* A profile as a table, as JSON and as a trace. */
#include "profile.h"

#include <math.h>

#include "../plan/report.h"

static double at_best(const ProfileRow *r)
{
    return r->least[r->limit];
}

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

void profile_text(const Profile *p, Text *to)
{
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
        best += at_best(r);
        text_add(to, "%10.1f %5.1f%% %7lld %9.1f %8.1f %5.0f%%  %-6s %s%s%s\n", r->ns / 1e3,
                 100 * r->ns / p->ns, (long long)r->calls, r->flops / ns, r->bytes / ns,
                 100 * at_best(r) / ns, profile_limit[r->limit], r->line != NULL ? r->line : "",
                 r->line != NULL ? ": " : "", label_of(r));
    }
    double rest = p->ns - in_steps(p);
    text_add(to, "%10.1f %5.1f%% %33s between steps, and to begin and end\n", rest / 1e3,
             100 * rest / p->ns, "");
    text_add(to,
             "%10.1f %5s   the quickest call of the entry, as of each step; %.1f us if every step "
             "were at its roof\n",
             p->ns / 1e3, "", best / 1e3);
    if (p->in_order)
        text_add(to,
                 "turns of loops ran one after another, to be timed; else each lane takes whole "
                 "turns\n");
}

void profile_json(const Profile *p, Text *to)
{
    const Roof *f = &p->roof;
    text_add(to,
             "{\"entry\": \"%s\", \"calls\": %lld, \"threads\": %lld, \"ns\": %.0f, \"roof\": "
             "{\"flops_per_ns\": %.3f, \"work_per_ns\": %.3f, \"bytes_per_ns\": {\"%.0f\": %.3f, "
             "\"%.0f\": %.3f, \"memory\": %.3f}, \"call_ns\": %.1f}, \"steps\": [",
             p->entry, (long long)p->n_calls, (long long)p->threads, p->ns, f->flops, f->work,
             f->near_bytes, f->near_rate, f->middle_bytes, f->middle, f->memory, f->call);
    for (int i = 0; i < p->row.n; i++) {
        const ProfileRow *r = &p->row.at[i];
        text_add(to, "%s\n{", i > 0 ? "," : "");
        text_pair(to, "step", label_of(r));
        text_add(to, ", ");
        text_pair(to, "line", r->line);
        text_add(to,
                 ", \"calls\": %lld, \"ns\": %.0f, \"flops\": %.0f, \"bytes\": %.0f, "
                 "\"roof_ns\": %.0f, \"limit\": \"%s\"}",
                 (long long)r->calls, r->ns, r->flops, r->bytes, at_best(r),
                 profile_limit[r->limit]);
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
