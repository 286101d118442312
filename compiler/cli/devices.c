/* gradc plan M.model --devices SPEC: what the ranks of several devices hold and send, on paper. */
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../pass/devices.h"

/* ---- the SPEC -------------------------------------------------------------------------- */

static const char *const keys[] = {"data", "tensor", "pipe", "zero"};
enum { N_KEYS = sizeof keys / sizeof *keys };

static int key_of(const char *s, size_t n)
{
    for (int i = 0; i < N_KEYS; i++)
        if (strlen(keys[i]) == n && strncmp(keys[i], s, n) == 0)
            return i;
    return -1;
}

static bool small_number(const char *s, size_t n, int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)s[i]) || *out > MAX_WAYS)
            return false;
        *out = *out * 10 + (s[i] - '0');
    }
    return n > 0;
}

/* "data=8": one of them. */
static int read_one(const Cli *c, const char *s, size_t n, bool *given, int64_t *value)
{
    static const int64_t low[] = {1, 1, 1, 0}, high[] = {MAX_WAYS, MAX_WAYS, MAX_STAGES, 3};
    const char *equals = memchr(s, '=', n);
    size_t name = equals == NULL ? n : (size_t)(equals - s);
    int key = key_of(s, name);
    if (key < 0) {
        const char *near = nearest(arena_strndup(&c->cx->perm, s, name), keys, N_KEYS);
        return usage_error(c, "--devices takes data, tensor, pipe and zero, not `%.*s`%s%s%s",
                           (int)name, s, near ? "; did you mean `" : "", near ? near : "",
                           near ? "`?" : "");
    }
    if (given[key])
        return usage_error(c, "--devices has %s twice", keys[key]);
    given[key] = true;
    const char *number = equals == NULL ? s + n : equals + 1;
    size_t digits = (size_t)(s + n - number);
    if (equals != NULL && small_number(number, digits, &value[key]) && value[key] >= low[key] &&
        value[key] <= high[key])
        return EXIT_OK;
    return usage_error(c, "--devices wants %s=N, a whole number from %lld to %lld, not `%.*s`",
                       keys[key], (long long)low[key], (long long)high[key], (int)n, s);
}

static int read_spec(const Cli *c, Devices *d)
{
    const char *s = cli_value(c, OPT_DEVICES, "");
    int64_t value[N_KEYS] = {1, 1, 1, 0};
    bool given[N_KEYS] = {false};
    int status = EXIT_OK;
    for (; status == EXIT_OK; s++) {
        size_t n = strcspn(s, ",");
        status = read_one(c, s, n, given, value);
        s += n;
        if (*s == 0)
            break;
    }
    *d = (Devices){value[0], value[1], value[2], value[3]};
    if (status == EXIT_OK && d->zero > 0 && d->data == 1)
        return usage_error(c, "--devices: zero=%lld shares out what data ranks have, and data is 1",
                           (long long)d->zero);
    return status;
}

/* ---- the report --------------------------------------------------------------------------- */

static int64_t total(const Stage *s)
{
    int64_t sum = 0;
    for (int h = 0; h < N_HOLDS; h++)
        sum += s->held[h];
    return sum;
}

static const char *units_text(Arena *a, const Stage *s)
{
    return s->n_units == 1 ? s->first : arena_printf(a, "%s to %s", s->first, s->last);
}

static void put_line(Text *t, const char *name, const char *note, int64_t bytes)
{
    text_add(t, "    %-42s %18lld\n", arena_printf(t->arena, "%s%s", name, note), (long long)bytes);
}

static void put_stage(const Spread *s, int32_t k, Text *t)
{
    static const char *const hold[] = {
        "parameters",       "gradients", "optimizer state",       "state",
        "kept activations", "transient", "gathered for a moment", "inputs"};
    static const char *const exchange[] = {
        "all-reduce over data ranks",   "reduce-scatter over data ranks",
        "all-gather over data ranks",   "all-reduce over tensor ranks",
        "all-gather over tensor ranks", "send to other stages",
        "all-reduce of tied parameters"};
    const Stage *stage = &s->stage[k];
    text_add(t, "\nstage %d of %d: %s; %.1f %% of the time\n  bytes on each rank\n", k + 1,
             s->n_stages, units_text(t->arena, stage), 100 * stage->share);
    for (int h = 0; h < N_HOLDS; h++) {
        const char *note = "";
        if (h == HOLD_KEPT)
            note = arena_printf(t->arena, ", %lld x %lld", (long long)stage->in_flight,
                                (long long)stage->kept_each);
        if (h != HOLD_GATHERED || stage->held[h] > 0)
            put_line(t, hold[h], note, stage->held[h]);
    }
    put_line(t, "all", "", total(stage));
    bool any = false;
    for (int x = 0; x < N_EXCHANGES; x++) {
        if (stage->sent[x] > 0 && !any)
            text_add(t, "  bytes that a rank gives in a step\n");
        any = any || stage->sent[x] > 0;
        if (stage->sent[x] > 0)
            put_line(t, exchange[x], "", stage->sent[x]);
    }
}

static void print_text(const Spread *s, int64_t rows, Text *t)
{
    const Devices *d = &s->devices;
    text_add(t, "%lld devices: %lld data x %lld tensor x %lld pipeline, ZeRO %lld\n",
             (long long)(d->data * d->tensor * d->pipe), (long long)d->data, (long long)d->tensor,
             (long long)d->pipe, (long long)d->zero);
    text_add(t, "a step of a replica: %lld micro-batch%s", (long long)s->micro_batches,
             s->micro_batches == 1 ? "" : "es");
    if (rows > 0)
        text_add(t, " of %lld rows; all replicas: %lld rows", (long long)rows,
                 (long long)(rows * s->micro_batches * d->data));
    text_char(t, '\n');
    for (int32_t k = 0; k < s->n_stages; k++)
        put_stage(s, k, t);
    if (s->n_whole > 0)
        text_add(t, "\nwhole on each tensor rank\n");
    for (int32_t i = 0; i < s->n_whole; i++)
        text_add(t, "  %s: %s\n", s->whole[i].name, s->whole[i].why);
}

static void json_stage(const Stage *s, Text *t)
{
    text_add(t, "    {");
    text_pair(t, "first", s->first);
    text_add(t, ", ");
    text_pair(t, "last", s->last);
    text_add(t, ", \"share\": ");
    text_double(t, s->share);
    text_add(t, ", \"in_flight\": %lld, \"kept_each\": %lld, \"bytes\": {", (long long)s->in_flight,
             (long long)s->kept_each);
    for (int h = 0; h < N_HOLDS; h++)
        text_add(t, "\"%s\": %lld, ", hold_name((Hold)h), (long long)s->held[h]);
    text_add(t, "\"all\": %lld}, \"sent\": {", (long long)total(s));
    for (int x = 0; x < N_EXCHANGES; x++)
        text_add(t, "%s\"%s\": %lld", x > 0 ? ", " : "", exchange_name((Exchange)x),
                 (long long)s->sent[x]);
    text_add(t, "}}");
}

static void print_json(const Spread *s, int64_t rows, Text *t)
{
    const Devices *d = &s->devices;
    text_add(t,
             "{\"data\": %lld, \"tensor\": %lld, \"pipe\": %lld, \"zero\": %lld, "
             "\"micro_batches\": %lld, \"micro_batch_rows\": %lld,\n  \"stages\": [",
             (long long)d->data, (long long)d->tensor, (long long)d->pipe, (long long)d->zero,
             (long long)s->micro_batches, (long long)rows);
    for (int32_t k = 0; k < s->n_stages; k++) {
        text_add(t, "%s\n", k > 0 ? "," : "");
        json_stage(&s->stage[k], t);
    }
    text_add(t, "],\n  \"whole\": [");
    for (int32_t i = 0; i < s->n_whole; i++) {
        text_add(t, "%s\n    {", i > 0 ? "," : "");
        text_pair(t, "name", s->whole[i].name);
        text_add(t, ", ");
        text_pair(t, "why", s->whole[i].why);
        text_add(t, "}");
    }
    text_add(t, "]}\n");
}

static int report(Cli *c, const Output *out, const Devices *d, bool json)
{
    int64_t loops = model_loops(out->model, ENTRY_GRAD);
    if (out->plan[ENTRY_GRAD] == NULL)
        return usage_error(c, "--devices is about training, and the model has no loss");
    const Spread *s = devices_spread(out->graph[ENTRY_GRAD], out->plan[ENTRY_GRAD],
                                     model_pinned(out->model), loops, d, out->arena);
    if (s->too_short != NULL)
        return usage_error(c, "--devices: %s", s->too_short);
    Text t;
    text_init(&t, out->arena);
    int64_t rows = model_batch(out->model) / model_split(out->model);
    if (json)
        print_json(s, rows, &t);
    else
        print_text(s, rows, &t);
    fputs(t.at, stdout);
    return EXIT_OK;
}

int plan_devices(Cli *c)
{
    static const char *const known[] = {"text", "json"};
    Arena arena = {0};
    Output out = {.arena = &arena};
    Devices d;
    const char *format;
    int status = show_format(c, known, 2, &format);
    if (status == EXIT_OK && cli_has(c, OPT_PARETO))
        return usage_error(c, "--devices has no curve: it goes without --pareto");
    if (status == EXIT_OK && cli_has(c, OPT_ENTRY))
        return usage_error(c, "--devices is about a step: it goes without --entry");
    if (status == EXIT_OK)
        status = read_spec(c, &d);
    if (status == EXIT_OK)
        status = compile_to(c, 2, &out);
    if (status == EXIT_OK)
        status = report(c, &out, &d, strcmp(format, "json") == 0);
    output_free(&out);
    return status;
}
