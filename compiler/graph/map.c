/* Index maps: base + sum of coef * index, indices ascending. */
#include <assert.h>
#include "graph.h"

enum { MAX_TERMS = sizeof((MapDim *)0)->index / sizeof(int32_t) };

MapDim map_const(int64_t base)
{
    return (MapDim){.base = base};
}

int64_t map_coef(const MapDim *m, int index)
{
    for (int i = 0; i < m->n; i++)
        if (m->index[i] == index)
            return m->coef[i];
    return 0;
}

static void drop(MapDim *m, int at)
{
    m->n--;
    for (int i = at; i < m->n; i++) {
        m->index[i] = m->index[i + 1];
        m->coef[i] = m->coef[i + 1];
    }
    m->index[m->n] = 0; /* equal maps are equal bytes */
    m->coef[m->n] = 0;
}

static bool add_term(MapDim *m, int index, int64_t coef)
{
    int at = 0;
    while (at < m->n && m->index[at] < index)
        at++;
    if (at < m->n && m->index[at] == index) {
        m->coef[at] += coef;
        if (m->coef[at] == 0)
            drop(m, at);
        return true;
    }
    if (coef == 0)
        return true;
    if (m->n == MAX_TERMS)
        return false;
    for (int i = m->n++; i > at; i--) {
        m->index[i] = m->index[i - 1];
        m->coef[i] = m->coef[i - 1];
    }
    m->index[at] = index;
    m->coef[at] = coef;
    return true;
}

MapDim map_term(MapDim m, int index, int64_t coef)
{
    bool fits = add_term(&m, index, coef);
    assert(fits);
    (void)fits;
    return m;
}

bool map_replace(MapDim *m, int index, const MapDim *by)
{
    int64_t times = map_coef(m, index);
    if (times == 0)
        return true;
    add_term(m, index, -times);
    m->base += times * by->base;
    for (int i = 0; i < by->n; i++)
        if (!add_term(m, by->index[i], times * by->coef[i]))
            return false;
    return true;
}
