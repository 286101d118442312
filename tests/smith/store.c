/* A store that is as late as it may be: it copies when it is waited for, and spoils at once what
 * is to come in. A transfer outside of it, or a wait for none, ends the program. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct Begun {
    int64_t at, n;
    const void *from;
    void *to;
} Begun;

typedef struct Late {
    gradc_offload offload;
    Arena *arena;
    char *bytes;
    int64_t size;
    VEC(Begun) begun;
} Late;

static int begin(Late *l, Begun b)
{
    if (b.at < 0 || b.n < 0 || b.at > l->size - b.n)
        abort();
    vec_push(l->arena, &l->begun, b);
    return 0;
}

static int late_write(void *context, int64_t at, const void *bytes, int64_t n)
{
    return begin(context, (Begun){.at = at, .n = n, .from = bytes});
}

static int late_read(void *context, int64_t at, void *bytes, int64_t n)
{
    memset(bytes, 0xff, (size_t)n);
    return begin(context, (Begun){.at = at, .n = n, .to = bytes});
}

static int late_wait(void *context, int64_t at)
{
    Late *l = context;
    int left = 0, met = 0;
    for (int i = 0; i < l->begun.n; i++) {
        Begun b = l->begun.at[i];
        if (at >= 0 && b.at != at) {
            l->begun.at[left++] = b;
            continue;
        }
        met++;
        memcpy(b.from != NULL ? l->bytes + b.at : b.to, b.from != NULL ? b.from : l->bytes + b.at,
               (size_t)b.n);
    }
    l->begun.n = left;
    if (at >= 0 && met != 1)
        abort();
    return 0;
}

const gradc_offload *late_store(int64_t bytes, Arena *a)
{
    Late *l = NEW(a, Late);
    l->offload = (gradc_offload){sizeof l->offload, l, late_write, late_read, late_wait};
    l->arena = a;
    l->size = bytes;
    l->bytes = arena_alloc(a, (size_t)bytes + 1);
    return &l->offload;
}
