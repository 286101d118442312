/* A plan of a bare problem as text, and as one JSON object with its proof. */
#include "recompute.h"

static double ratio(int64_t part, int64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

/* ---- JSON ---------------------------------------------------------------------------- */

static void put_int(Text *to, const char *key, int64_t n)
{
    text_add(to, "  \"%s\": %lld,\n", key, (long long)n);
}

static void put_double(Text *to, const char *key, double x)
{
    text_add(to, "  \"%s\": ", key);
    text_double(to, x);
    text_add(to, ",\n");
}

static void put_positions(Text *to, const char *key, const int32_t *list, int32_t n)
{
    text_add(to, "  \"%s\": [", key);
    for (int32_t i = 0; i < n; i++)
        text_add(to, "%s%d", i > 0 ? ", " : "", list[i]);
    text_add(to, "],\n");
}

static void put_bytes(Text *to, const char *key, const int64_t *list, int32_t n)
{
    text_add(to, "  \"%s\": [", key);
    for (int32_t i = 0; i < n; i++)
        text_add(to, "%s%lld", i > 0 ? ", " : "", (long long)list[i]);
    text_add(to, "],\n");
}

static void put_flows(Text *to, const char *key, const Flows *f)
{
    text_add(to, "\"%s\": [", key);
    for (int32_t i = 0; i < f->n; i++)
        text_add(to, "%s[%d,%lld]", i > 0 ? "," : "", f->at[i].at, (long long)f->at[i].amount);
    text_add(to, "]");
}

static void put_case(Text *to, const ProofCase *k)
{
    text_add(to, "{\"price\": %lld, \"shift\": %d, ", (long long)k->price, k->shift);
    put_flows(to, "in", &k->in);
    text_add(to, ", ");
    put_flows(to, "keep", &k->keep);
    text_add(to, ", ");
    put_flows(to, "edge", &k->edge);
    text_add(to, ", ");
    put_flows(to, "need", &k->need);
    text_add(to, "}");
}

void certificate_json(const Certificate *c, Text *to)
{
    text_add(to, "{\"moment\": %d, \"scale\": %lld, \"tree\": [", c->moment, (long long)c->scale);
    for (int32_t i = 0; i < c->tree.n; i++)
        text_add(to, "%s%d", i > 0 ? ", " : "", c->tree.at[i]);
    text_add(to, "], \"cases\": [");
    for (int32_t i = 0; i < c->proof.n; i++) {
        text_add(to, "%s\n    ", i > 0 ? "," : "");
        put_case(to, &c->proof.at[i]);
    }
    text_add(to, "]}");
}

void recompute_json(const Problem *p, const Recompute *r, double seconds, Text *to)
{
    const Sequence *s = r->plan;
    int64_t extra = s->cost - p->cost_base;
    text_add(to, "{\n");
    put_int(to, "budget", r->budget);
    put_int(to, "peak", s->max_live);
    put_int(to, "arena", s->arena);
    put_int(to, "max_live", s->max_live);
    put_int(to, "store_all", r->store_all);
    put_int(to, "cost_base", p->cost_base);
    put_int(to, "cost_plan", s->cost);
    put_int(to, "cost_bound", p->cost_base + r->bound);
    put_double(to, "overhead", ratio(extra, p->cost_base));
    put_double(to, "lower_bound", ratio(r->bound, p->cost_base));
    put_double(to, "gap", ratio(extra - r->bound, p->cost_base));
    put_positions(to, "schedule", s->node, s->n);
    put_positions(to, "retain", s->retain, s->n);
    put_bytes(to, "offsets", s->offset, s->n);
    put_bytes(to, "scratch_offsets", s->scratch_offset, s->n);
    text_add(to, "  \"certificate\": ");
    certificate_json(&r->proof, to);
    text_add(to, ",\n  \"seconds\": %.3f\n}\n", seconds);
}

/* ---- text ------------------------------------------------------------------------------ */

void recompute_print(const Problem *p, const Recompute *r, double seconds, Text *to)
{
    const Sequence *s = r->plan;
    int64_t extra = s->cost - p->cost_base;
    text_add(to, "budget       %lld bytes\n", (long long)r->budget);
    text_add(to, "arena        %lld bytes, %lld of them live at the peak\n", (long long)s->arena,
             (long long)s->max_live);
    text_add(to, "store all    %lld bytes\n", (long long)r->store_all);
    text_add(to, "nodes        %d, run %d times\n", p->n, s->n);
    text_add(to, "cost         %lld, of which %lld again\n", (long long)s->cost, (long long)extra);
    text_add(to, "overhead     %.4f %%, proved to be at least %.4f %%\n",
             100 * ratio(extra, p->cost_base), 100 * ratio(r->bound, p->cost_base));
    text_add(to, "seconds      %.3f\n", seconds);
}
