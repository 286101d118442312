/* What the model asks of its parts (`budget 8MiB { ... }`): values of a part that is to keep less
 * than it did are to be computed again, as by `recompute`, but for those that it has room for.
 * A scan that runs again has its body's values in the reverse pass alone, and they are left; one
 * whose body keeps values does not run again. */
#include "pass.h"

static bool keeps(const BudgetPart *p, const Origin *o)
{
    for (int i = 0; i < p->kept.n; i++)
        if (origin_same(p->kept.at[i], o))
            return true;
    return false;
}

bool part_drops(const Origin *o)
{
    for (const BudgetPart *p = o == NULL ? NULL : o->part; p != NULL; p = p->outer)
        if (p->less && !keeps(p, o))
            return true;
    return false;
}

static bool runs_once(const Graph *g, Ref r)
{
    return op_of(g, r) == OP_scan && g_kept_in(attr(g, r, SCAN_BODY)->body) != NULL;
}

void ask_parts(Graph *g)
{
    for (Ref r = 1; r < (Ref)g->node.n; r++) {
        Node *n = &g->node.at[r];
        bool drops =
            part_drops(n->origin) && n->origin->memory == MEMORY_PLANNED && !runs_once(g, r);
        if (drops) {
            Origin *asked = NEW(&g->cx->perm, Origin);
            *asked = *n->origin;
            asked->memory = MEMORY_RECOMPUTE;
            n->origin = asked;
        }
        if (n->op == OP_scan && !drops)
            ask_parts(attr(g, r, SCAN_BODY)->body);
    }
}
