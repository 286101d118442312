/* Takes a few steps of gpt2.model on drawn tokens and says how long they take:
 * FOLDER [STEPS]. The folder is not read: any text's tokens would do. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "gpt2.h"
#include "gradc.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[2]) : 10;
    const gradc_model *m = &gpt2_model;
    int64_t n = m->inputs[0].elems, vocab = m->inputs[0].hi;
    int32_t *text = gradc_alloc((n + 1) * (int64_t)sizeof *text, 64);
    gradc_error e;
    gradc_pool *pool;
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 1};
    if (text == NULL || gradc_pool_open(0, 0, &pool, &e) != GRADC_OK)
        return fprintf(stderr, "no memory or no threads\n"), 1;
    gradc_pool_use(pool, &o);
    gpt2 *g;
    void *block = gradc_alloc((int64_t)gpt2_arena_bytes(), (int64_t)gpt2_arena_align());
    if (block == NULL || gpt2_init(block, gpt2_arena_bytes(), &o, &g) != GRADC_OK)
        return fprintf(stderr, "no memory for %zu bytes\n", gpt2_arena_bytes()), 1;
    printf("arena of %zu bytes\n", gpt2_arena_bytes());
    for (int64_t i = 0; i <= n; i++)
        text[i] = (int32_t)gradc_draw(1, i, vocab);
    for (int i = 0; i < steps; i++) {
        float loss;
        double start = seconds();
        if (gpt2_step(g, &(gpt2_inputs){.tokens = text, .next = text + 1}, &loss) != GRADC_OK)
            return fprintf(stderr, "%s\n", gpt2_error(g)), 1;
        printf("step %d: loss %.4f, %.2f s\n", i + 1, (double)loss, seconds() - start);
        fflush(stdout);
    }
    return 0;
}
