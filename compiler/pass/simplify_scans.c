/* Bodies of scans: simplified, and freed of results that nobody picks, of carries that
 * only serve themselves, and of operands that are then not read. A reverse scan
 * computes the cotangent of every operand, wanted or not; the rest goes here. */
#include <string.h>
#include "pass.h"

typedef struct Shrink {
    Ctx *cx;
    Graph *g, *body;
    Ref n;
    int n_args, carries, n_results;
    bool *result;              /* by result: it is needed */
    bool *arg;                 /* by operand */
    int *new_arg, *new_result; /* their numbers then; -1: dropped */
} Shrink;

static Ref result_ref(const Graph *body, int i)
{
    for (int r = 0; r < body->root.n; r++)
        if (body->root.at[r].kind == ROOT_RESULT && i-- == 0)
            return body->root.at[r].ref;
    return NONE;
}

/* By node of the body: a needed result reads it. */
static bool *reached(const Shrink *s, Arena *a)
{
    const Graph *b = s->body;
    bool *live = NEW_ARRAY(a, bool, b->node.n);
    for (int i = 0; i < s->n_results; i++)
        if (s->result[i])
            live[result_ref(b, i)] = true;
    for (Ref r = (Ref)b->node.n - 1; r >= 1; r--)
        for (int i = 0; live[r] && i < node(b, r)->n_args; i++)
            live[arg(b, r, i)] = true;
    return live;
}

/* A carry whose old value is read needs its new one; so on until no more is found. */
static void find_needed(Shrink *s)
{
    const Graph *b = s->body;
    for (bool more = true; more;) {
        ArenaMark mark = arena_mark(&s->cx->scratch);
        bool *live = reached(s, &s->cx->scratch);
        more = false;
        for (Ref r = 1; r < (Ref)b->node.n; r++) {
            if (!live[r] || op_of(b, r) != OP_arg)
                continue;
            int i = (int)attr(b, r, 0)->i;
            s->arg[i] = true;
            if (i < s->carries && !s->result[i])
                more = s->result[i] = true;
        }
        arena_reset(&s->cx->scratch, mark);
    }
    for (int i = 0; i < s->carries; i++)
        s->arg[i] = s->result[i];
}

/* Numbers what stays; true if something does not. */
static bool renumber(const bool *needed, int n, int *number)
{
    int next = 0;
    for (int i = 0; i < n; i++)
        number[i] = needed[i] ? next++ : -1;
    return next != n;
}

static const Attr *with_int(Graph *g, Ref r, int which, int64_t value)
{
    int n = op_attrs(optab[op_of(g, r)]);
    Attr *a = NEW_ARRAY(&g->arena, Attr, n);
    memcpy(a, node(g, r)->attr, (size_t)n * sizeof *a);
    a[which].i = value;
    return a;
}

static void shrink_body(Shrink *s)
{
    Graph *b = s->body;
    int n = 0, seen = 0;
    for (int i = 0; i < b->root.n; i++) {
        bool is_result = b->root.at[i].kind == ROOT_RESULT;
        if (!is_result || s->result[seen++])
            b->root.at[n++] = b->root.at[i];
    }
    b->root.n = n;
    for (Ref r = 1; r < (Ref)b->node.n; r++)
        if (op_of(b, r) == OP_arg)
            b->node.at[r].attr = with_int(b, r, 0, s->new_arg[attr(b, r, 0)->i]);
    simplify(s->cx, b); /* drops the arguments that have no number now */
}

static void shrink_node(Shrink *s)
{
    Graph *g = s->g;
    Node *n = &g->node.at[s->n];
    int sequences = (int)n->attr[SCAN_SEQUENCES].i, kept = 0, carries = 0, kept_sequences = 0;
    for (int i = 0; i < s->n_args; i++) {
        if (!s->arg[i])
            continue;
        g->arg.at[n->args + (uint32_t)kept++] = g->arg.at[n->args + (uint32_t)i];
        carries += i < s->carries;
        kept_sequences += i >= s->carries && i < s->carries + sequences;
    }
    n->n_args = kept;
    n->attr = with_int(g, s->n, SCAN_CARRIES, carries);
    n->attr = with_int(g, s->n, SCAN_SEQUENCES, kept_sequences);
    n->type.dim[0] = tuple_size(g, s->n);
}

static bool shrink(Shrink *s)
{
    Arena *a = &s->cx->scratch;
    s->n_args = node(s->g, s->n)->n_args;
    s->carries = (int)attr(s->g, s->n, SCAN_CARRIES)->i;
    s->arg = NEW_ARRAY(a, bool, s->n_args);
    s->new_arg = NEW_ARRAY(a, int, s->n_args);
    s->new_result = NEW_ARRAY(a, int, s->n_results);
    find_needed(s);
    bool fewer_args = renumber(s->arg, s->n_args, s->new_arg);
    bool fewer_results = renumber(s->result, s->n_results, s->new_result);
    if (!fewer_args && !fewer_results)
        return false;
    shrink_body(s);
    shrink_node(s);
    return true;
}

/* By scan: which results are picked. */
static bool **find_picked(const Graph *g, const bool *live, Arena *a)
{
    bool **picked = NEW_ARRAY(a, bool *, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (!live[r])
            continue;
        if (optab[op_of(g, r)]->kind == OP_SCAN)
            picked[r] = NEW_ARRAY(a, bool, tuple_size(g, r));
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref x = arg(g, r, i);
            if (picked[x] == NULL)
                continue;
            bool one = op_of(g, r) == OP_pick;
            for (int j = 0; j < tuple_size(g, x); j++)
                picked[x][j] = picked[x][j] || !one || attr(g, r, 0)->i == j;
        }
    }
    return picked;
}

bool simplify_scans(Ctx *cx, Graph *g)
{
    ArenaMark mark = arena_mark(&cx->scratch);
    bool changed = false;
    if (g->body.n > 0) {
        const bool *live = graph_live(g, &cx->scratch);
        bool **picked = find_picked(g, live, &cx->scratch);
        int **number = NEW_ARRAY(&cx->scratch, int *, g->node.n);
        for (Ref r = 1; r < (Ref)g->node.n; r++) {
            if (picked[r] != NULL) {
                Shrink s = {.cx = cx, .g = g, .body = attr(g, r, SCAN_BODY)->body, .n = r};
                simplify(cx, s.body);
                s.result = picked[r];
                s.n_results = tuple_size(g, r);
                if (shrink(&s)) {
                    changed = true;
                    number[r] = s.new_result;
                }
            }
            if (live[r] && op_of(g, r) == OP_pick && number[arg(g, r, 0)] != NULL)
                g->node.at[r].attr = with_int(g, r, 0, number[arg(g, r, 0)][attr(g, r, 0)->i]);
        }
    }
    arena_reset(&cx->scratch, mark);
    return changed;
}
