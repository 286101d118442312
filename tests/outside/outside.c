/* A program outside the tree: the emitted object, its header, and libgradc. */
#include <stdio.h>
#include <gradc.h>
#include "outside.h"

int main(void)
{
    const float x = 3;
    float first = 0, second = 0;
    outside *g = NULL;
    gradc_options options = {.struct_size = sizeof options, .abi = GRADC_ABI, .seed = 1};
    outside_inputs in = {.x = &x};
    void *arena = gradc_alloc(OUTSIDE_ARENA_BYTES, (int64_t)outside_arena_align());
    if (arena == NULL || outside_init(arena, OUTSIDE_ARENA_BYTES, &options, &g) != GRADC_OK)
        return 1;
    if (outside_step(g, &in, &first) != GRADC_OK || outside_step(g, &in, &second) != GRADC_OK)
        return 1;
    printf("libgradc %s: loss %g, then %s\n", gradc_version(), (double)first,
           second < first ? "less" : "not less");
    gradc_free(arena);
    return first == 49 && second < first ? 0 : 1;
}
