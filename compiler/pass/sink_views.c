/* Slices that only scans read, and values that are put together of what one scan gives alone.
 *
 * What a scan reads or gives is in memory, so a slice beside it is a copy, and so is what is put
 * together of its results: of queries, keys and values, that is a pass over all of them and one
 * over their gradients. Inside of the body, the slice is a view of what the scan is given whole;
 * and what is put together of a step's results, in caches still, is what the scan stacks. */
#include "elem.h"

/* r = slice of x[before, extent, behind], elements start, start + step, .. of the middle axis. */
typedef struct Part {
    Ref x;
    int64_t before, extent, behind;
    int64_t start, size, step;
} Part;

/* One graph that is copied. */
typedef struct Sinking {
    const Graph *g;
    Arena *a;
    bool *by_scans; /* by node: only scans read it, and their steps can take their parts of it */
    bool *sinks;    /* by slice: its scans take it themselves */
    int *uses;
    bool *stored; /* by node: contractions, scans or several others read it, so it is in memory */
    Ref *joint;   /* by scan: the first value that is put together of its results; by such a value:
                   * the next one of that scan, or NONE */
} Sinking;

static Ref below_reshapes(const Graph *g, Ref r)
{
    while (op_of(g, r) == OP_reshape)
        r = arg(g, r, 0);
    return r;
}

static Part part_of(const Graph *g, Ref slice)
{
    const Attr *at = node(g, slice)->attr;
    Ref x = arg(g, slice, 0);
    const Type *t = type_of(g, x);
    int axis = (int)at[SLICE_AXIS].i;
    return (Part){.x = x,
                  .before = type_elems_before(t, axis),
                  .extent = t->dim[axis],
                  .behind = type_elems_behind(t, axis),
                  .start = at[SLICE_START].i,
                  .size = at[SLICE_SIZE].i,
                  .step = at[SLICE_STEP].i};
}

/* Steps of which operand i of the scan has a slice; 0: it is a carry. */
static int64_t turns_of(const Graph *g, Ref scan, int i)
{
    const Scan is = scan_of(g, scan);
    return i < is.carries ? 0 : i < is.carries + is.sequences ? is.count : 1;
}

/* ---- what is read ------------------------------------------------------------------------- */

/* The steps can take their slices of operand i themselves, if only scans read it. What lies
 * together in memory is no copy as it is; what the model keeps or offloads is to be there. */
static bool can_sink(const Graph *g, Ref scan, int i)
{
    Ref r = below_reshapes(g, arg(g, scan, i));
    int64_t turns = turns_of(g, scan, i);
    if (op_of(g, r) != OP_slice || turns == 0 || type_elems(type_of(g, r)) == 0 ||
        origin_is_kept(node(g, r)->origin))
        return false;
    int64_t before = part_of(g, r).before;
    return before > 1 && before % turns == 0;
}

/* From users to operands. */
static void find_by_scans(Sinking *s)
{
    const Graph *g = s->g;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        s->by_scans[r] = true;
    for (int i = 0; i < g->root.n; i++)
        s->by_scans[g->root.at[i].ref] = false;
    for (Ref r = (Ref)g->node.n; r-- > 1;)
        for (int i = 0; i < node(g, r)->n_args; i++) {
            bool takes = op_of(g, r) == OP_scan ? can_sink(g, r, i)
                                                : op_of(g, r) == OP_reshape && s->by_scans[r];
            s->by_scans[arg(g, r, i)] &= takes;
        }
}

/* By node: of its elements along the axis that is sliced, from the first on, so many are in some
 * slice. To have all of x in place of slices that leave out nothing of it takes no more bytes. */
static int64_t *find_covered(const Sinking *s)
{
    const Graph *g = s->g;
    int64_t *covered = NEW_ARRAY(s->a, int64_t, g->node.n);
    for (bool more = true; more;) {
        more = false;
        for (Ref r = 1; r < (Ref)g->node.n; r++) {
            if (op_of(g, r) != OP_slice || !s->by_scans[r])
                continue;
            const Part p = part_of(g, r);
            int64_t *to = &covered[p.x], end = p.start + p.size;
            if (p.step == 1 && p.start <= *to && *to < end) {
                *to = end;
                more = true;
            }
        }
    }
    return covered;
}

/* Nobody reads x but by slices along one axis that only scans read; or x is there anyway. */
static void find_sinks(Sinking *s)
{
    const Graph *g = s->g;
    bool *whole = NEW_ARRAY(s->a, bool, g->node.n); /* by x: something else reads it */
    int *axis = NEW_ARRAY(s->a, int, g->node.n);    /* by x: one more than that of its slices */
    const int64_t *covered = find_covered(s);
    for (int i = 0; i < g->root.n; i++)
        whole[g->root.at[i].ref] = true;
    for (Ref r = 1; r < (Ref)g->node.n; r++)
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref x = arg(g, r, i);
            bool slice = op_of(g, r) == OP_slice && s->by_scans[r];
            int along = slice ? (int)attr(g, r, SLICE_AXIS)->i + 1 : 0;
            whole[x] |= !slice || (axis[x] != 0 && axis[x] != along);
            axis[x] = along;
        }
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (op_of(g, r) != OP_slice || !s->by_scans[r])
            continue;
        const Part p = part_of(g, r);
        s->sinks[r] = ref_is_source(g, p.x) || (!whole[p.x] && covered[p.x] == p.extent);
    }
}

/* ---- what is given ------------------------------------------------------------------------ */

/* The scan that stacks r, which nothing else reads; or NONE. */
static Ref stacked_by(const Sinking *s, Ref r)
{
    const Graph *g = s->g;
    while (op_of(g, r) == OP_reshape && s->uses[r] == 1)
        r = arg(g, r, 0);
    if (op_of(g, r) != OP_pick || s->uses[r] != 1 || op_of(g, arg(g, r, 0)) != OP_scan)
        return NONE;
    Ref scan = arg(g, r, 0);
    return attr(g, r, 0)->i < scan_of(g, scan).carries ? NONE : scan;
}

/* The scan whose steps can put r together; or NONE. */
static Ref joined_by(const Sinking *s, Ref r)
{
    const Graph *g = s->g;
    if (op_of(g, r) != OP_concat || !s->stored[r] || type_elems(type_of(g, r)) == 0 ||
        origin_is_kept(node(g, r)->origin))
        return NONE;
    Ref scan = stacked_by(s, arg(g, r, 0));
    for (int i = 1; i < node(g, r)->n_args; i++)
        if (stacked_by(s, arg(g, r, i)) != scan)
            return NONE;
    int64_t before = type_elems_before(type_of(g, r), (int)attr(g, r, 0)->i);
    return scan != NONE && before > 1 && before % scan_of(g, scan).count == 0 ? scan : NONE;
}

static void find_uses(Sinking *s)
{
    const Graph *g = s->g;
    for (int i = 0; i < g->root.n; i++)
        s->uses[g->root.at[i].ref]++;
    for (Ref r = (Ref)g->node.n; r-- > 1;)
        for (int i = 0; i < node(g, r)->n_args; i++) {
            Ref x = arg(g, r, i);
            bool whole = op_of(g, r) == OP_contract || op_of(g, r) == OP_scan;
            s->uses[x]++;
            s->stored[x] |= whole || s->uses[x] > 1 || (op_of(g, r) == OP_reshape && s->stored[r]);
        }
}

static void find_joint(Sinking *s)
{
    const Graph *g = s->g;
    for (Ref r = (Ref)g->node.n; r-- > 1;) {
        Ref scan = joined_by(s, r);
        if (scan != NONE) {
            s->joint[r] = s->joint[scan];
            s->joint[scan] = r;
        }
    }
}

static Sinking look_at(const Graph *g, Arena *a)
{
    Sinking s = {.g = g, .a = a};
    s.by_scans = NEW_ARRAY(a, bool, g->node.n);
    s.sinks = NEW_ARRAY(a, bool, g->node.n);
    s.uses = NEW_ARRAY(a, int, g->node.n);
    s.stored = NEW_ARRAY(a, bool, g->node.n);
    s.joint = NEW_ARRAY(a, Ref, g->node.n);
    find_by_scans(&s);
    find_sinks(&s);
    find_uses(&s);
    find_joint(&s);
    return s;
}

static bool any_sinks(const Graph *g)
{
    Arena scratch = {0};
    bool any = false;
    const Sinking s = look_at(g, &scratch);
    for (Ref r = 1; r < (Ref)g->node.n && !any; r++) {
        any = s.sinks[r];
        if (op_of(g, r) == OP_scan)
            any = any || s.joint[r] != NONE || any_sinks(attr(g, r, SCAN_BODY)->body);
    }
    arena_free(&scratch);
    return any;
}

/* ---- the copy ------------------------------------------------------------------------------- */

/* What becomes of an operand of a scan. */
typedef struct Given {
    Ref outer; /* in the copied graph */
    int number;
    bool is_part; /* the body takes `part` of it, of `rows` times what is behind them */
    Part part;
    int64_t rows;
} Given;

static void copy_into(Graph *to, const Graph *g, const Given *given, Arena *a);

static Given given_for(const Sinking *s, Graph *to, Ref scan, int i, const Ref *map)
{
    const Graph *g = s->g;
    Ref r = below_reshapes(g, arg(g, scan, i));
    Given o = {.outer = map[arg(g, scan, i)]};
    if (!can_sink(g, scan, i) || !s->sinks[r])
        return o;
    int64_t turns = turns_of(g, scan, i);
    const Scan is = scan_of(g, scan);
    o.is_part = true;
    o.part = part_of(g, r);
    o.rows = o.part.before / turns;
    const int64_t size[] = {turns, o.rows, o.part.extent, o.part.behind};
    int skip = i >= is.carries + is.sequences; /* all steps read the same */
    o.outer = g_reshape(to, map[o.part.x], 4 - skip, size + skip);
    return o;
}

static bool is_alike(const Given *o, const Given *p)
{
    return o->is_part && p->is_part && o->part.x == p->part.x && o->rows == p->rows &&
           o->part.extent == p->part.extent;
}

/* Numbers them; slices of one value have it together. The operands then, and how many. */
static Ref *number(Given *o, int n, Scan *is, int *n_args, Arena *a)
{
    Ref *args = NEW_ARRAY(a, Ref, n);
    int next = 0, sequences = 0;
    for (int i = 0; i < n; i++) {
        bool sequence = i >= is->carries && i < is->carries + is->sequences;
        int first = sequence ? is->carries : is->carries + is->sequences;
        o[i].number = -1;
        for (int j = first; j < i; j++)
            if (is_alike(&o[j], &o[i]))
                o[i].number = o[j].number;
        if (o[i].number >= 0)
            continue;
        o[i].number = next;
        args[next++] = o[i].outer;
        sequences += sequence;
    }
    is->sequences = sequences;
    *n_args = next;
    return args;
}

/* Argument r of the body, of new operands. */
static Ref copy_arg(Graph *to, const Graph *body, Ref r, const Given *o)
{
    const Type *t = type_of(body, r);
    to->origin = node(body, r)->origin;
    if (!o->is_part)
        return g_body_arg(to, o->number, *t);
    const Part *p = &o->part;
    const int64_t size[] = {o->rows, p->extent, p->behind};
    Ref x = g_body_arg(to, o->number, type_make(t->dtype, 3, size));
    x = g_slice(to, x, 1, p->start, p->size, p->step);
    return g_reshape(to, x, t->rank, t->dim);
}

/* Result i of the body, as part [rows, size, behind] of what a step puts together. */
static Ref step_rows(Graph *body, int i, int64_t rows, int64_t size, int64_t behind)
{
    for (int j = 0; j < body->root.n; j++)
        if (body->root.at[j].kind == ROOT_RESULT && i-- == 0)
            return g_reshape(body, body->root.at[j].ref, 3, (int64_t[]){rows, size, behind});
    return NONE;
}

/* The body puts together value r of the outer graph, and hands it on as one more result. */
static void add_joint(const Sinking *s, Graph *body, Ref r, int64_t turns)
{
    const Graph *g = s->g;
    const Type *t = type_of(g, r);
    int axis = (int)attr(g, r, 0)->i, n = node(g, r)->n_args;
    Ref *x = NEW_ARRAY(s->a, Ref, n);
    body->origin = node(g, r)->origin;
    for (int i = 0; i < n; i++) {
        Ref pick = below_reshapes(g, arg(g, r, i));
        x[i] = step_rows(body, (int)attr(g, pick, 0)->i, type_elems_before(t, axis) / turns,
                         dim(g, arg(g, r, i), axis), type_elems_behind(t, axis));
    }
    graph_root(body, ROOT_RESULT, NULL, g_concat(body, x, n, 1), -1, -1);
}

static Ref copy_scan(const Sinking *s, Graph *to, Ref scan, Ref *map)
{
    const Graph *g = s->g;
    Scan is = scan_of(g, scan);
    int n = node(g, scan)->n_args, n_results = tuple_size(g, scan), n_args;
    Given *o = NEW_ARRAY(s->a, Given, n);
    to->origin = node(g, scan)->origin;
    for (int i = 0; i < n; i++)
        o[i] = given_for(s, to, scan, i, map);
    Ref *args = number(o, n, &is, &n_args, s->a);
    Graph *body = g_body(to);
    copy_into(body, attr(g, scan, SCAN_BODY)->body, o, s->a);
    for (Ref r = s->joint[scan]; r != NONE; r = s->joint[r])
        add_joint(s, body, r, is.count);
    to->origin = node(g, scan)->origin;
    Ref copy = g_scan(to, body, args, n_args, is);
    for (Ref r = s->joint[scan]; r != NONE; r = s->joint[r]) {
        const Type *t = type_of(g, r);
        to->origin = node(g, r)->origin;
        map[r] = g_reshape(to, g_pick(to, copy, n_results++), t->rank, t->dim);
    }
    return copy;
}

/* given: of a body, by argument; else NULL. */
static void copy_into(Graph *to, const Graph *g, const Given *given, Arena *a)
{
    const Sinking s = look_at(g, a);
    Ref *map = NEW_ARRAY(a, Ref, g->node.n);
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        if (r == g->n_primal)
            to->n_primal = (Ref)to->node.n;
        if (map[r] != NONE) /* its scan has put it together */
            continue;
        if (op_of(g, r) == OP_scan)
            map[r] = copy_scan(&s, to, r, map);
        else if (op_of(g, r) == OP_arg && given != NULL)
            map[r] = copy_arg(to, g, r, &given[attr(g, r, 0)->i]);
        else
            map[r] = graph_copy_node(to, g, r, map);
    }
    graph_copy_roots(to, g, map);
}

Graph *sink_views(const Graph *g)
{
    if (!any_sinks(g))
        return NULL;
    Arena scratch = {0};
    Graph *to = graph_new(g->cx, g->name);
    copy_into(to, g, NULL, &scratch);
    arena_free(&scratch);
    return to;
}
