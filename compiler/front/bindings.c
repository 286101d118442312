/* Where the definitions of a file bind names, for tools that are asked about one. */
#include "eval.h"

typedef struct Visit {
    void *of;
    BindingFound *found;
    bool in_loop;
} Visit;

static void visit_body(Visit *v, const Body *body);

static void visit_scan(Visit *v, const Expr *scan)
{
    bool outer = v->in_loop;
    v->in_loop = true;
    visit_body(v, &scan->scan.body);
    v->in_loop = outer;
}

static void visit_bind(Visit *v, const Stmt *s)
{
    for (int i = 0; i < s->bind.target.n; i++)
        v->found(v->of, s->bind.target.at[i].name.text, s->span, v->in_loop);
    if (s->bind.value->kind == EXPR_SCAN)
        visit_scan(v, s->bind.value);
}

static void visit_body(Visit *v, const Body *body)
{
    for (int i = 0; i < body->stmt.n; i++) {
        const Stmt *s = body->stmt.at[i];
        switch (s->kind) {
        case STMT_BIND:
            visit_bind(v, s);
            break;
        case STMT_FOR:
            visit_body(v, &s->loop.body);
            break;
        case STMT_IF:
            for (int k = 0; k < s->arm.n; k++)
                visit_body(v, &s->arm.at[k].body);
            break;
        case STMT_BUDGET:
            visit_body(v, &s->budget.body);
            break;
        default:
            break;
        }
    }
}

void model_bindings(const Model *m, BindingFound *found, void *of)
{
    for (int i = 0; i < m->own->ast->item.n; i++) {
        const Item *item = m->own->ast->item.at[i];
        bool computes = item == m->item || item->kind == ITEM_FN || item->kind == ITEM_BLOCK;
        Visit v = {.of = of, .found = found};
        if (computes)
            visit_body(&v, &item->def.body);
    }
}
