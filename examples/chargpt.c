/* Trains chargpt.model on Shakespeare and lets it write: FOLDER [STEPS]. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "chargpt.h"
#include "gradc.h"

enum { BATCH = 12, CONTEXT = 64, VOCAB = 256, STEPS = 2000, WRITTEN = 400 };

static int fail(const char *text)
{
    fprintf(stderr, "%s\n", text);
    return 1;
}

/* Mean loss over the validation part, window after window; NAN after a message. */
static double validate(chargpt *g, gradc_windows *w)
{
    static int32_t tokens[BATCH * CONTEXT], next[BATCH * CONTEXT];
    gradc_position begin = {0};
    double sum = 0, rows = 0;
    gradc_windows_seek(w, &begin);
    for (;;) {
        chargpt_inputs in = {.tokens = tokens, .next = next};
        float loss;
        if (gradc_windows_next(w, tokens, next, &in.rows) != GRADC_OK || in.rows == 0)
            return sum / rows;
        if (chargpt_eval(g, &in, &(chargpt_outputs){.loss = &loss}) != GRADC_OK) {
            fprintf(stderr, "%s\n", chargpt_error(g));
            return NAN;
        }
        sum += (double)loss * (double)in.rows;
        rows += (double)in.rows;
    }
}

/* Draws from softmax(logits / temperature). */
static int draw(const float *logits, double temperature, uint64_t seed, int64_t i)
{
    double most = -INFINITY, sum = 0;
    double u = (double)gradc_draw(seed, i, INT64_C(1) << 40) / (double)(INT64_C(1) << 40);
    for (int c = 0; c < VOCAB; c++)
        most = fmax(most, (double)logits[c]);
    for (int c = 0; c < VOCAB; c++)
        sum += exp(((double)logits[c] - most) / temperature);
    for (int c = 0; c < VOCAB; c++) {
        u -= exp(((double)logits[c] - most) / temperature) / sum;
        if (u < 0)
            return c;
    }
    return '\n';
}

/* Writes text: the last CONTEXT characters go in, the next one is drawn. */
static int sample(chargpt *g, int written)
{
    static int32_t tokens[BATCH * CONTEXT];
    static float logits[BATCH * CONTEXT * VOCAB];
    int n = 1;
    tokens[0] = '\n';
    for (int i = 0; i < written; i++) {
        chargpt_inputs in = {.rows = 1, .tokens = tokens};
        if (chargpt_eval(g, &in, &(chargpt_outputs){.logits = logits}) != GRADC_OK)
            return fail(chargpt_error(g));
        int c = draw(logits + (n - 1) * VOCAB, 0.8, 1, i);
        putchar(c);
        if (n == CONTEXT)
            memmove(tokens, tokens + 1, (size_t)--n * sizeof *tokens);
        tokens[n++] = c;
    }
    putchar('\n');
    return 0;
}

int main(int argc, char **argv)
{
    char path[4096];
    gradc_error e;
    gradc_array text;
    snprintf(path, sizeof path, "%s/shakespeare.txt.gz", argc > 1 ? argv[1] : "examples/data");
    int64_t steps = argc > 2 ? atoll(argv[2]) : STEPS;
    if (gradc_bytes_read(path, &text, &e) != GRADC_OK)
        return fail(e.text);

    gradc_pool *pool;
    gradc_windows *train, *valid;
    gradc_progress *progress;
    int64_t cut = text.elems * 9 / 10;
    gradc_window_options wo = {.struct_size = sizeof wo,
                               .rows = BATCH,
                               .context = CONTEXT,
                               .begin = 0,
                               .end = cut,
                               .seed = 1};
    gradc_progress_options po = {.struct_size = sizeof po, .out = stderr, .steps = steps};
    if (gradc_pool_open(0, 0, &pool, &e) != GRADC_OK ||
        gradc_windows_open(&text, &wo, &train, &e) != GRADC_OK ||
        gradc_progress_open(&po, &progress, &e) != GRADC_OK)
        return fail(e.text);
    wo.begin = cut;
    wo.end = text.elems;
    wo.in_order = 1;
    if (gradc_windows_open(&text, &wo, &valid, &e) != GRADC_OK)
        return fail(e.text);

    chargpt *g;
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = 1};
    gradc_pool_use(pool, &o);
    void *block = gradc_alloc(CHARGPT_ARENA_BYTES, CHARGPT_ARENA_ALIGN);
    if (block == NULL || chargpt_init(block, CHARGPT_ARENA_BYTES, &o, &g) != GRADC_OK)
        return fail("chargpt_init failed");

    static int32_t tokens[BATCH * CONTEXT], next[BATCH * CONTEXT];
    gradc_progress_values v = {.epoch = 1, .metric = NAN, .lr = NAN};
    for (v.step = 1; v.step <= steps; v.step++) {
        chargpt_inputs in = {.tokens = tokens, .next = next};
        float loss;
        if (gradc_windows_next(train, tokens, next, &in.rows) != GRADC_OK)
            return fail("no more text");
        if (chargpt_step(g, &in, &loss) != GRADC_OK)
            return fail(chargpt_error(g));
        v.samples += in.rows;
        v.loss = (double)loss;
        gradc_progress_step(progress, &v);
    }
    gradc_progress_close(progress);
    printf("validation loss %.4f nats a character, arena of %u bytes\n", validate(g, valid),
           CHARGPT_ARENA_BYTES);
    return sample(g, argc > 2 ? 40 : WRITTEN);
}
