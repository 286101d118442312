/* A planning problem from JSON. Syntax is jansson's; what the numbers mean is checked
 * here, and the first fault found is reported with the node that has it. */
#include <jansson.h>
#include <string.h>

#include "problem.h"

typedef struct Reader {
    Ctx *cx;
    const char *path;
    Arena *arena;
    ProblemMake make;
    int64_t cost, bytes; /* sums so far */
    size_t n_nodes;
    const char **slot; /* names, by hash */
    int32_t *slot_of;  /* the node of each slot */
    size_t n_slots;    /* a power of two */
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

/* ---- one node ----------------------------------------------------------------------- */

/* "node 3 (`conv1`)", or "node 3" while it has no name. */
static const char *label(Reader *r, size_t index, const char *name)
{
    if (name == NULL)
        return arena_printf(r->arena, "node %zu", index);
    return arena_printf(r->arena, "node %zu (`%s`)", index, name);
}

static const char *kind_of(const json_t *v)
{
    static const char *const kinds[] = {"an object", "an array",  "a string",  "an integer",
                                        "a real",    "a boolean", "a boolean", "null"};
    return kinds[json_typeof(v)];
}

static bool known_keys(Reader *r, const char *where, const json_t *object, const char *const *keys,
                       int n)
{
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        bool known = false;
        for (int i = 0; i < n; i++)
            known = known || strcmp(keys[i], key) == 0;
        if (known)
            continue;
        const char *near = nearest(key, keys, n);
        return fault(r, "%s has the unknown key `%s`%s%s%s", where, key,
                     near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
    }
    return true;
}

static bool read_amount(Reader *r, const char *where, const json_t *object, const char *key,
                        bool required, int64_t *out)
{
    const json_t *v = json_object_get(object, key);
    *out = 0;
    if (v == NULL)
        return !required || fault(r, "%s has no `%s`", where, key);
    if (!json_is_integer(v))
        return fault(r, "%s: `%s` is %s, but has to be an integer", where, key, kind_of(v));
    *out = (int64_t)json_integer_value(v);
    if (*out < 0)
        return fault(r, "%s: `%s` is negative: %lld", where, key, (long long)*out);
    return true;
}

static bool read_flag(Reader *r, const char *where, const json_t *object, const char *key,
                      bool otherwise, bool *out)
{
    const json_t *v = json_object_get(object, key);
    *out = otherwise;
    if (v == NULL)
        return true;
    if (!json_is_boolean(v))
        return fault(r, "%s: `%s` is %s, but has to be true or false", where, key, kind_of(v));
    *out = json_is_true(v);
    return true;
}

static bool read_input(Reader *r, const char *where, const json_t *v, size_t index)
{
    if (!json_is_integer(v))
        return fault(r, "%s: an input is %s, but has to be the index of a node", where, kind_of(v));
    json_int_t i = json_integer_value(v);
    if (i < 0 || (uint64_t)i >= r->n_nodes)
        return fault(r, "%s reads node %lld, which is missing: there are %zu nodes", where,
                     (long long)i, r->n_nodes);
    if ((size_t)i == index)
        return fault(r, "%s reads itself: that is a cycle", where);
    if ((size_t)i > index)
        return fault(r,
                     "%s reads node %lld, which comes later: that is a cycle, or the nodes are "
                     "not in order",
                     where, (long long)i);
    if (r->make.input.n >= MAX_EDGES)
        return fault(r, "%s: there are more than %d inputs in all", where, MAX_EDGES);
    problem_input(&r->make, (int32_t)i);
    return true;
}

static bool read_inputs(Reader *r, const char *where, const json_t *object, size_t index)
{
    const json_t *list = json_object_get(object, "inputs");
    if (list == NULL)
        return fault(r, "%s has no `inputs`", where);
    if (!json_is_array(list))
        return fault(r, "%s: `inputs` is %s, but has to be an array of indices", where,
                     kind_of(list));
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_input(r, where, json_array_get(list, i), index))
            return false;
    return true;
}

/* Names are all different. */
static bool enter_name(Reader *r, size_t index, const char *name)
{
    size_t mask = r->n_slots - 1;
    size_t i = (size_t)hash_mix(hash_bytes(HASH_START, name, strlen(name))) & mask;
    for (; r->slot[i] != NULL; i = (i + 1) & mask)
        if (strcmp(r->slot[i], name) == 0)
            return fault(r, "node %zu has the name `%s`, as node %d has", index, name,
                         r->slot_of[i]);
    r->slot[i] = name;
    r->slot_of[i] = (int32_t)index;
    return true;
}

static bool read_name(Reader *r, const json_t *object, size_t index, const char **name)
{
    const json_t *v = json_object_get(object, "name");
    if (v == NULL)
        return fault(r, "node %zu has no `name`", index);
    if (!json_is_string(v))
        return fault(r, "node %zu: `name` is %s, but has to be a string", index, kind_of(v));
    *name = arena_strdup(r->arena, json_string_value(v));
    return enter_name(r, index, *name);
}

/* Sums stay below what 64 bits hold, with room for running nodes many times. */
static bool add_up(Reader *r, const char *where, const ProblemNode *node)
{
    int64_t most_cost = INT64_C(1) << MAX_COST_LOG2, most_bytes = INT64_C(1) << MAX_BYTES_LOG2;
    if (node->cost > most_cost - r->cost)
        return fault(r, "%s: the costs overflow: they add up to more than 2^%d", where,
                     MAX_COST_LOG2);
    r->cost += node->cost;
    if (node->bytes > most_bytes - r->bytes || node->scratch > most_bytes - r->bytes - node->bytes)
        return fault(r, "%s: the sizes overflow: they add up to more than 2^%d", where,
                     MAX_BYTES_LOG2);
    r->bytes += node->bytes + node->scratch;
    return true;
}

static bool read_node(Reader *r, const json_t *object, size_t index)
{
    static const char *const keys[] = {"name",    "cost", "bytes",         "inputs",
                                       "scratch", "pure", "keep_until_end"};
    ProblemNode node = {0};
    if (!json_is_object(object))
        return fault(r, "node %zu is %s, but has to be an object", index, kind_of(object));
    if (!read_name(r, object, index, &node.name))
        return false;
    const char *where = label(r, index, node.name);
    if (!known_keys(r, where, object, keys, sizeof keys / sizeof *keys) ||
        !read_amount(r, where, object, "cost", true, &node.cost) ||
        !read_amount(r, where, object, "bytes", true, &node.bytes) ||
        !read_amount(r, where, object, "scratch", false, &node.scratch) ||
        !read_flag(r, where, object, "pure", true, &node.pure) ||
        !read_flag(r, where, object, "keep_until_end", false, &node.keep) ||
        !add_up(r, where, &node))
        return false;
    problem_node(&r->make, node);
    return read_inputs(r, where, object, index);
}

/* ---- the whole ------------------------------------------------------------------------ */

static Problem *read_nodes(Reader *r, const json_t *nodes, int64_t pinned)
{
    r->n_nodes = json_array_size(nodes);
    for (r->n_slots = 16; r->n_slots < 2 * r->n_nodes; r->n_slots *= 2)
        continue;
    r->slot = NEW_ARRAY(r->arena, const char *, r->n_slots);
    r->slot_of = NEW_ARRAY(r->arena, int32_t, r->n_slots);
    r->bytes = pinned;
    for (size_t i = 0; i < r->n_nodes; i++)
        if (!read_node(r, json_array_get(nodes, i), i))
            return NULL;
    return problem_end(&r->make, pinned);
}

static Problem *read_root(Reader *r, const json_t *root)
{
    static const char *const keys[] = {"nodes", "pinned_bytes"};
    int64_t pinned;
    if (!json_is_object(root)) {
        fault(r, "the problem is %s, but has to be an object", kind_of(root));
        return NULL;
    }
    if (!known_keys(r, "the problem", root, keys, 2) ||
        !read_amount(r, "the problem", root, "pinned_bytes", false, &pinned))
        return NULL;
    if (pinned > INT64_C(1) << MAX_BYTES_LOG2) {
        fault(r, "the sizes overflow: `pinned_bytes` is more than 2^%d", MAX_BYTES_LOG2);
        return NULL;
    }
    const json_t *nodes = json_object_get(root, "nodes");
    if (nodes == NULL)
        fault(r, "the problem has no `nodes`");
    else if (!json_is_array(nodes))
        fault(r, "`nodes` is %s, but has to be an array", kind_of(nodes));
    else if (json_array_size(nodes) == 0)
        fault(r, "`nodes` is empty: there is nothing to plan");
    else if (json_array_size(nodes) > MAX_NODES)
        fault(r, "there are %zu nodes, and at most %d are planned", json_array_size(nodes),
              MAX_NODES);
    else
        return read_nodes(r, nodes, pinned);
    return NULL;
}

Problem *problem_read(Ctx *cx, const char *path, const char *text, size_t bytes, Arena *out)
{
    Reader r = {.cx = cx, .path = path, .arena = out, .make = {.arena = out}};
    json_error_t e;
    if (bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { /* a byte order mark */
        text += 3;
        bytes -= 3;
    }
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (root == NULL) {
        diag_error(cx, E0610, NO_SPAN, "%s:%d:%d: %s", path, e.line, e.column, e.text);
        return NULL;
    }
    Problem *p = read_root(&r, root);
    json_decref(root);
    return p;
}
