/* Plans for tests: built by hand or drawn at random from a seed. */
#ifndef GRADC_TESTS_PLAN_MAKE_H
#define GRADC_TESTS_PLAN_MAKE_H

#include "base/intern.h"
#include "plan/plan.h"

typedef struct Make {
    Arena *arena;
    VEC(PlanValue) value;
    VEC(PlanStep) step;
    int64_t base, threads_max;
    uint64_t seed; /* of the random ones */
    bool once;     /* no value is stored twice */
} Make;

static inline int32_t make_value(Make *m, const char *name, Role role, int64_t bytes)
{
    vec_push(m->arena, &m->value,
             ((PlanValue){.name = name, .role = role, .bytes = bytes, .offset = -1}));
    return m->value.n - 1;
}

static inline int32_t make_pinned(Make *m, const char *name, Role role, int64_t bytes)
{
    int32_t v = make_value(m, name, role, bytes);
    m->value.at[v].pinned = true;
    m->value.at[v].offset = m->base;
    m->base = align_up(m->base + bytes, BLOCK_ALIGN);
    return v;
}

static inline PlanStep *make_step(Make *m, const char *label)
{
    vec_push(m->arena, &m->step, ((PlanStep){.label = label, .group = -1}));
    return &m->step.at[m->step.n - 1];
}

static inline int32_t *make_append(Make *m, const int32_t *list, int32_t n, int32_t value)
{
    int32_t *more = NEW_ARRAY(m->arena, int32_t, n + 1);
    for (int32_t i = 0; i < n; i++)
        more[i] = list[i];
    more[n] = value;
    return more;
}

/* These three are about the newest step. */
static inline void make_read(Make *m, int32_t value)
{
    PlanStep *s = &m->step.at[m->step.n - 1];
    s->read = make_append(m, s->read, s->n_reads, value);
    s->n_reads++;
}

static inline void make_write(Make *m, int32_t value)
{
    PlanStep *s = &m->step.at[m->step.n - 1];
    s->write = make_append(m, s->write, s->n_writes, value);
    s->n_writes++;
}

static inline void make_inplace(Make *m, int32_t read, int32_t write)
{
    PlanStep *s = &m->step.at[m->step.n - 1];
    PlanInPlace *more = NEW_ARRAY(m->arena, PlanInPlace, s->n_inplace + 1);
    for (int32_t i = 0; i < s->n_inplace; i++)
        more[i] = s->inplace[i];
    more[s->n_inplace++] = (PlanInPlace){read, write};
    s->inplace = more;
}

static inline Plan *make_plan(Make *m)
{
    Plan *p = NEW(m->arena, Plan);
    *p = (Plan){.arena = m->arena,
                .entry = "step",
                .n_values = m->value.n,
                .n_steps = m->step.n,
                .value = m->value.at,
                .step = m->step.at,
                .base = m->base,
                .threads_max = m->threads_max};
    return p;
}

/* Ends a range elsewhere, in all places that say so. */
static inline void make_end_at(Arena *a, Plan *p, PlanRange *r, int32_t to)
{
    PlanStep *from = &p->step[r->to], *at = &p->step[to];
    int32_t id = (int32_t)(r - p->range);
    for (int32_t i = 0; i < from->n_frees; i++)
        if (from->frees[i] == id)
            from->frees[i] = from->frees[--from->n_frees];
    at->frees = make_append(&(Make){.arena = a}, at->frees, at->n_frees, id);
    at->n_frees++;
    r->to = to;
}

/* ---- random ones ---------------------------------------------------------------- */

static inline uint64_t make_draw(Make *m)
{
    m->seed += 0x9e3779b97f4a7c15u;
    return hash_mix(m->seed);
}

/* In [0, n). */
static inline int32_t make_below(Make *m, int32_t n)
{
    return (int32_t)(make_draw(m) % (uint64_t)n);
}

static inline bool make_chance(Make *m, int32_t percent)
{
    return make_below(m, 100) < percent;
}

/* Mostly few different sizes, as in a net; some odd ones, some of 0 bytes. */
static inline int64_t make_bytes(Make *m)
{
    if (make_chance(m, 4))
        return 0;
    if (make_chance(m, 60))
        return (int64_t)64 << make_below(m, 12);
    return 1 + make_below(m, 1 << (4 + make_below(m, 16)));
}

static inline const char *make_name(Make *m, char kind, int32_t i)
{
    return arena_printf(m->arena, "%c%d", kind, i);
}

/* A value for a step to read: a recent one mostly, or any at all. */
static inline int32_t make_pick(Make *m, const int32_t *stored, int32_t n)
{
    int32_t recent = n < 8 ? n : 8;
    return stored[make_chance(m, 65) ? n - 1 - make_below(m, recent) : make_below(m, n)];
}

/* Pinned storage changes once, and is not read any more. */
static inline void make_changed(const Make *m, int32_t value, int32_t *stored, int32_t *n)
{
    for (int32_t i = 0; i < *n && m->value.at[value].pinned; i++)
        if (stored[i] == value)
            stored[i--] = stored[--*n];
}

static inline void make_random_step(Make *m, int32_t i, int32_t *stored, int32_t *n)
{
    PlanStep *step = make_step(m, make_name(m, 's', i));
    if (make_chance(m, 15))
        step->workspace = make_bytes(m);
    if (make_chance(m, 30))
        step->lane_bytes = make_below(m, 5000);
    int32_t before = *n;
    for (int32_t k = make_below(m, 4); k > 0 && before > 0; k--)
        make_read(m, make_pick(m, stored, before));
    for (int32_t k = 1 + make_below(m, 2); k > 0; k--) {
        if (before > 0 && make_chance(m, 6)) { /* stored again */
            int32_t again = make_pick(m, stored, before);
            bool twice = false;
            for (int32_t j = 0; j < m->step.at[i].n_writes; j++)
                twice |= m->step.at[i].write[j] == again;
            if (!twice && (m->value.at[again].pinned || !m->once))
                make_write(m, again);
            make_changed(m, again, stored, n);
            before = before < *n ? before : *n;
            continue;
        }
        int32_t v = make_value(m, make_name(m, 'v', m->value.n), ROLE_ACTIVATION, make_bytes(m));
        m->value.at[v].to_end = make_chance(m, 2);
        make_write(m, v);
        stored[(*n)++] = v;
    }
    PlanStep *now = &m->step.at[i];
    for (int32_t r = 0; r < now->n_reads; r++)
        for (int32_t w = 0; w < now->n_writes; w++)
            if (make_chance(m, 50))
                make_inplace(m, now->read[r], now->write[w]);
}

/* A valid list of `n` steps. */
static inline Plan *make_random_of(Make m, int32_t n)
{
    Arena *a = m.arena;
    int32_t *stored = NEW_ARRAY(a, int32_t, 2 * n + 64), n_stored = 0;
    m.threads_max = 1 + make_below(&m, 8);
    for (int32_t i = make_below(&m, 5); i > 0; i--)
        stored[n_stored++] =
            make_pinned(&m, make_name(&m, 'p', i), ROLE_PARAM, 1 + make_below(&m, 10000));
    for (int32_t i = make_below(&m, 3); i > 0; i--)
        stored[n_stored++] = make_value(&m, make_name(&m, 'i', i), ROLE_STAGING, make_bytes(&m));
    for (int32_t i = 0; i < n; i++)
        make_random_step(&m, i, stored, &n_stored);
    return make_plan(&m);
}

static inline Plan *make_random(Arena *a, uint64_t seed, int32_t n)
{
    return make_random_of((Make){.arena = a, .base = 1024, .threads_max = 1, .seed = seed}, n);
}

#endif
