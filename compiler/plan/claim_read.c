/* Reads what a report says of a plan, for the checker. */
#include <jansson.h>
#include <stdarg.h>

#include "check_sequence.h"

typedef struct Reader {
    Ctx *cx;
    const char *path;
    Arena *arena;
    PlanClaim *claim;
} Reader;

static bool fault(Reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fault(Reader *r, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const char *text = arena_vprintf(&r->cx->perm, format, ap);
    va_end(ap);
    diag_error(r->cx, E0610, NO_SPAN, "%s: %s", r->path, text);
    return false;
}

static bool read_int(Reader *r, const json_t *object, const char *key, int64_t lo, int64_t hi,
                     int64_t *out)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v) || json_integer_value(v) < lo || json_integer_value(v) > hi)
        return fault(r, "the plan needs an integer `%s`", key);
    *out = (int64_t)json_integer_value(v);
    return true;
}

/* An array of n integers (any number of them if *n is -1) that fit between lo and hi. */
static bool read_list(Reader *r, const json_t *object, const char *key, int64_t lo, int64_t hi,
                      int32_t *n, int64_t **out)
{
    const json_t *list = json_object_get(object, key);
    if (!json_is_array(list) || json_array_size(list) > INT32_MAX / 16)
        return fault(r, "the plan needs an array `%s`", key);
    int32_t size = (int32_t)json_array_size(list);
    if (*n >= 0 && size != *n)
        return fault(r, "`%s` has %d entries, but there are %d positions", key, size, *n);
    *n = size;
    *out = NEW_ARRAY(r->arena, int64_t, size);
    for (int32_t i = 0; i < size; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        if (!json_is_integer(v) || json_integer_value(v) < lo || json_integer_value(v) > hi)
            return fault(r, "entry %d of `%s` is no integer that fits", i, key);
        (*out)[i] = (int64_t)json_integer_value(v);
    }
    return true;
}

static bool read_positions(Reader *r, const json_t *object, const char *key, int32_t *n,
                           const int32_t **out)
{
    int64_t *wide;
    if (!read_list(r, object, key, INT32_MIN, INT32_MAX, n, &wide))
        return false;
    int32_t *list = NEW_ARRAY(r->arena, int32_t, *n);
    for (int32_t i = 0; i < *n; i++)
        list[i] = (int32_t)wide[i];
    *out = list;
    return true;
}

/* ---- the proof ------------------------------------------------------------------------- */

static bool read_flows(Reader *r, const json_t *object, const char *key, Flows *to)
{
    const json_t *list = json_object_get(object, key);
    if (!json_is_array(list))
        return fault(r, "a case of the proof needs an array `%s`", key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i);
        const json_t *at = json_array_get(pair, 0), *amount = json_array_get(pair, 1);
        if (!json_is_integer(at) || !json_is_integer(amount) || json_integer_value(at) < 0 ||
            json_integer_value(at) > INT32_MAX)
            return fault(r, "entry %zu of `%s` is no pair of an index and an amount", i, key);
        FlowOn f = {(int32_t)json_integer_value(at), (int64_t)json_integer_value(amount)};
        vec_push(r->arena, to, f);
    }
    return true;
}

static bool read_case(Reader *r, const json_t *object, Certificate *to)
{
    ProofCase k = {0};
    int64_t shift;
    if (!read_int(r, object, "price", 0, INT64_MAX, &k.price) ||
        !read_int(r, object, "shift", 0, 60, &shift) || !read_flows(r, object, "in", &k.in) ||
        !read_flows(r, object, "keep", &k.keep) || !read_flows(r, object, "edge", &k.edge) ||
        !read_flows(r, object, "need", &k.need))
        return false;
    k.shift = (int32_t)shift;
    vec_push(r->arena, &to->proof, k);
    return true;
}

static bool read_proof(Reader *r, const json_t *object)
{
    Certificate *c = NEW(r->arena, Certificate);
    const json_t *cases = json_object_get(object, "cases");
    const int32_t *tree;
    int32_t n = -1;
    int64_t moment;
    if (!json_is_object(object) || !json_is_array(cases))
        return fault(r, "the plan needs a `certificate` with `cases`");
    if (!read_int(r, object, "moment", -1, INT32_MAX, &moment) ||
        !read_int(r, object, "scale", 0, INT64_MAX, &c->scale) ||
        !read_positions(r, object, "tree", &n, &tree))
        return false;
    c->moment = (int32_t)moment;
    for (int32_t i = 0; i < n; i++)
        vec_push(r->arena, &c->tree, tree[i]);
    for (size_t i = 0; i < json_array_size(cases); i++)
        if (!read_case(r, json_array_get(cases, i), c))
            return false;
    r->claim->proof = c;
    return true;
}

/* ---- the plan --------------------------------------------------------------------------- */

static bool read_sums(Reader *r, const json_t *root)
{
    PlanClaim *c = r->claim;
    int64_t bound;
    if (!read_int(r, root, "budget", 0, INT64_MAX, &c->budget) ||
        !read_int(r, root, "peak", 0, INT64_MAX, &c->peak) ||
        !read_int(r, root, "arena", 0, INT64_MAX, &c->arena) ||
        !read_int(r, root, "max_live", 0, INT64_MAX, &c->max_live) ||
        !read_int(r, root, "cost_base", 0, INT64_MAX, &c->cost_base) ||
        !read_int(r, root, "cost_plan", 0, INT64_MAX, &c->cost_plan) ||
        !read_int(r, root, "cost_bound", 0, INT64_MAX, &bound))
        return false;
    c->bound = bound - c->cost_base;
    return true;
}

/* overhead, lower_bound and gap are those of the sums. */
static bool read_ratio(Reader *r, const json_t *root, const char *key, int64_t part)
{
    const json_t *v = json_object_get(root, key);
    int64_t whole = r->claim->cost_base;
    double is = whole == 0 ? 0 : (double)part / (double)whole, off = json_number_value(v) - is;
    if (!json_is_number(v) || off > 1e-9 || off < -1e-9)
        return fault(r, "`%s` does not follow from the costs", key);
    return true;
}

static bool read_plan(Reader *r, const json_t *root)
{
    PlanClaim *c = r->claim;
    int64_t *offset, *scratch;
    c->n = -1;
    if (!json_is_object(root))
        return fault(r, "the plan has to be an object");
    if (!read_sums(r, root) || !read_positions(r, root, "schedule", &c->n, &c->node) ||
        !read_positions(r, root, "retain", &c->n, &c->retain) ||
        !read_list(r, root, "offsets", 0, INT64_MAX, &c->n, &offset) ||
        !read_list(r, root, "scratch_offsets", -1, INT64_MAX, &c->n, &scratch) ||
        !read_proof(r, json_object_get(root, "certificate")))
        return false;
    c->offset = offset;
    c->scratch_offset = scratch;
    int64_t extra = c->cost_plan - c->cost_base;
    return read_ratio(r, root, "overhead", extra) && read_ratio(r, root, "lower_bound", c->bound) &&
           read_ratio(r, root, "gap", extra - c->bound);
}

PlanClaim *claim_read(Ctx *cx, const char *path, const char *text, size_t bytes, Arena *out)
{
    Reader r = {.cx = cx, .path = path, .arena = out, .claim = NEW(out, PlanClaim)};
    json_error_t e;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &e);
    if (root == NULL) {
        diag_error(cx, E0610, NO_SPAN, "%s:%d:%d: %s", path, e.line, e.column, e.text);
        return NULL;
    }
    bool ok = read_plan(&r, root);
    json_decref(root);
    return ok ? r.claim : NULL;
}
