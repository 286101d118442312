/* Packing problems for tests, drawn from a seed; and whether a packing is one. */
#ifndef GRADC_TESTS_PACK_MAKE_H
#define GRADC_TESTS_PACK_MAKE_H

#include <check.h>

#include "base/intern.h"
#include "base/vec.h"
#include "plan/pack.h"

typedef struct PackMake {
    Arena *arena;
    uint64_t seed;
    VEC(PackItem) item;
    int32_t n_sections;
} PackMake;

/* 0 <= result < n. */
static inline int32_t draw(PackMake *m, int32_t n)
{
    m->seed = hash_mix(m->seed + 1);
    return (int32_t)(m->seed >> 33) % n;
}

static inline PackItem *add_item(PackMake *m, int32_t from, int32_t to, int64_t size)
{
    vec_push(m->arena, &m->item, ((PackItem){.from = from, .to = to, .size = size}));
    m->n_sections = to >= m->n_sections ? to + 1 : m->n_sections;
    return &m->item.at[m->item.n - 1];
}

/* Up to two parts, where the life is long enough. */
static inline void add_parts(PackMake *m, PackItem *it)
{
    PackPart *part = NEW_ARRAY(m->arena, PackPart, 2);
    int64_t size = it->size;
    int32_t at = it->from;
    while (it->n_parts < 2 && size > 1 && at < it->to) {
        at += 1 + draw(m, it->to - at);
        size = 1 + draw(m, (int32_t)size);
        part[it->n_parts++] = (PackPart){at, size};
    }
    it->part = part;
}

static inline Pack make_pack(PackMake *m)
{
    Pack k = {.arena = m->arena, .n = m->item.n, .n_sections = m->n_sections, .item = m->item.at};
    k.height = INT64_MAX;
    pack_bound(&k);
    return k;
}

/* Looks at each section of a pair; at the first alone where sizes stay. */
static inline bool lie_apart(const PackItem *x, const PackItem *y)
{
    int32_t from = x->from > y->from ? x->from : y->from, to = x->to < y->to ? x->to : y->to;
    if (x->n_parts == 0 && y->n_parts == 0 && from < to)
        to = from;
    for (int32_t s = from; s <= to; s++)
        if (x->offset + pack_size(x, s) > y->offset && y->offset + pack_size(y, s) > x->offset)
            return false;
    return true;
}

static inline void must_be_packed(const Pack *k, const char *what)
{
    int64_t height = 0, low = 0;
    int32_t wrong = -1;
    for (int32_t i = 0; i < k->n; i++) {
        const PackItem *x = &k->item[i];
        low = x->offset < low ? x->offset : low;
        height = x->offset + x->size > height ? x->offset + x->size : height;
        for (int32_t j = 0; j < i; j++)
            wrong = lie_apart(x, &k->item[j]) ? wrong : i;
    }
    ck_assert_msg(wrong < 0, "%s: item %d lies over another one", what, wrong);
    ck_assert_msg(low == 0, "%s: below 0", what);
    ck_assert_msg(height == k->height, "%s: height", what);
    ck_assert_msg(height >= k->bound, "%s: below the bound", what);
}

/* A training step: values that are kept from a layer to its backward pass, others that
 * come and go, small ones that live a little longer, and gradients that stay. */
static inline void make_deep_net(PackMake *m, int32_t layers, int32_t kinds)
{
    enum { STEPS = 4 };
    int64_t size[8];
    int32_t life[8];
    for (int32_t i = 0; i < kinds; i++) {
        size[i] = 1 + draw(m, 1 << (2 * i));
        life[i] = draw(m, STEPS);
    }
    int32_t end = 2 * STEPS * layers;
    for (int32_t l = 0; l < layers; l++)
        for (int32_t i = 0; i < kinds; i++) {
            int32_t at = STEPS * l + i % STEPS, back = end - 1 - at;
            add_item(m, at, back + (i > 0 ? life[i] : -life[i] / 2), size[i]);
            add_item(m, at, at + 1 + life[i] / 2, size[kinds - 1 - i]);
            add_item(m, back, back + 1 + life[i], size[i]);
            add_item(m, back, end + STEPS, size[0]);
        }
}

#endif
