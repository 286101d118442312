/* gradc train: compile in memory and train now. */
#include "feed.h"
#include "rate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Train {
    Cli *c;
    Session *s;
    Feed data, valid;
    bool has_valid, own_valid;
    Values in, out;
    int64_t seed, epochs, steps, every;
    int64_t epoch, step, samples;
    int32_t loss, metric; /* indices of results; -1: none */
    gradc_progress *progress;
    Rate *rate; /* NULL: nobody asks for it */
} Train;

static double result(const Train *t, int32_t i)
{
    return i < 0 ? NAN : dtype_value((DType)t->out.tensor[i].dtype, t->out.block->data[i], 0);
}

static void find_results(Train *t)
{
    t->loss = t->metric = -1;
    for (int32_t i = 0; i < t->out.n; i++) {
        int32_t role = t->out.tensor[i].role;
        if (role == GRADC_LOSS)
            t->loss = i;
        else if (role == GRADC_METRIC && t->metric < 0)
            t->metric = i;
        else if (role == GRADC_OUTPUT)
            t->out.block->data[i] = NULL;
    }
}

static int read_settings(Train *t)
{
    Cli *c = t->c;
    int status = cli_integer(c, OPT_SEED, 0, 0, INT64_MAX, &t->seed);
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_EPOCHS, 1, 1, INT32_MAX, &t->epochs);
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_STEPS, 0, 1, INT64_MAX / 2, &t->steps);
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_EVERY, 0, 1, INT64_MAX / 2, &t->every);
    if (status == EXIT_OK && t->s->model->step == NULL)
        status = usage_error(c, "the model has no `train` section, so there is nothing to train");
    if (status == EXIT_OK && t->s->model->batch_rows == 0)
        status = usage_error(c, "train needs a model argument `batch` that leads its inputs");
    return status;
}

static int read_fraction(Cli *c, double otherwise, double *fraction)
{
    const char *s = cli_value(c, OPT_SPLIT, NULL);
    char *end;
    *fraction = otherwise;
    if (s == NULL)
        return EXIT_OK;
    *fraction = strtod(s, &end);
    if (end == s || *end != 0 || !(*fraction >= 0 && *fraction < 1))
        return usage_error(c, "--split wants a fraction from 0 to 1, not `%s`", s);
    return EXIT_OK;
}

static int open_data(Train *t)
{
    Cli *c = t->c;
    const gradc_model *m = t->s->model;
    double fraction;
    int status = feed_read(c, m, OPT_DATA, &t->data);
    if (status == EXIT_OK)
        status = read_fraction(c, t->data.windows ? 0.1 : 0, &fraction);
    if (status != EXIT_OK)
        return status;
    if (cli_has(c, OPT_VALID)) {
        status = feed_read(c, m, OPT_VALID, &t->valid);
        t->has_valid = t->own_valid = true;
    } else if (fraction > 0) {
        int64_t rows = t->data.end - t->data.begin;
        feed_split(&t->data, &t->valid, fraction);
        if (t->valid.begin == t->valid.end && !cli_has(c, OPT_SPLIT))
            return usage_error(c,
                               "%lld tokens are too few to leave a tenth of them for validation, "
                               "and `--split 0` leaves none",
                               (long long)rows);
        if (t->valid.begin == t->valid.end)
            return usage_error(c, "--split %g leaves none of %lld rows for validation", fraction,
                               (long long)rows);
        t->has_valid = true;
    }
    if (status == EXIT_OK)
        status = feed_open(&t->data, m->batch_rows * m->accumulate, (uint64_t)t->seed, true);
    if (status == EXIT_OK && t->data.windows && t->steps == 0)
        t->steps = t->epochs * feed_batches(&t->data);
    if (status == EXIT_OK && t->has_valid)
        status = feed_open(&t->valid, m->batch_rows, 0, false);
    return status;
}

/* Loss and metric over all validation rows, weighted by the rows of a batch. */
static int validate(Train *t)
{
    if (!t->has_valid)
        return EXIT_OK;
    double loss = 0, metric = 0, rows = 0;
    gradc_position start = {0};
    int status = feed_seek(&t->valid, &start);
    while (status == EXIT_OK && feed_next(&t->valid, &t->in)) {
        int st = t->s->model->eval(t->s->handle, t->in.block, t->out.block);
        if (st != GRADC_OK)
            return session_failed(t->s, "eval", st);
        double n = (double)t->in.block->rows;
        loss += n * result(t, t->loss);
        metric += n * result(t, t->metric);
        rows += n;
    }
    if (rows == 0)
        return status;
    const char *names[] = {"loss", t->metric < 0 ? "" : t->out.tensor[t->metric].name};
    double figures[] = {loss / rows, metric / rows};
    gradc_progress_report(t->progress, "validation", names, figures, t->metric < 0 ? 1 : 2);
    return status;
}

static int save(Train *t)
{
    const char *path = cli_value(t->c, OPT_CHECKPOINT, NULL);
    if (path == NULL)
        return EXIT_OK;
    gradc_checkpoint info = {
        .struct_size = sizeof info, .step = t->step, .seed = (uint64_t)t->seed};
    gradc_error e = {0};
    feed_position(&t->data, &info.position);
    if (gradc_checkpoint_save(t->s->model, t->s->handle, path, &info, 0, &e) == GRADC_OK)
        return EXIT_OK;
    say("%s", e.text);
    return EXIT_FILE;
}

static int resume(Train *t)
{
    const char *path = cli_value(t->c, OPT_CHECKPOINT, NULL);
    struct stat st;
    if (!cli_has(t->c, OPT_RESUME))
        return EXIT_OK;
    if (path == NULL)
        return usage_error(t->c, "--resume needs --checkpoint FILE");
    char previous[4096];
    snprintf(previous, sizeof previous, "%s.prev", path);
    if (stat(path, &st) != 0 && stat(previous, &st) != 0)
        return EXIT_OK; /* nothing was saved yet */
    gradc_checkpoint info = {.struct_size = sizeof info};
    gradc_error e = {0};
    if (gradc_checkpoint_load(t->s->model, t->s->handle, path, &info, &e) != GRADC_OK) {
        say("%s", e.text);
        return e.status == GRADC_MISMATCH ? EXIT_INPUT : EXIT_FILE;
    }
    if (info.from_previous && !cli_has(t->c, OPT_QUIET))
        remark("%s", e.text);
    if (info.seed != (uint64_t)t->seed) {
        say("%s: saved by a run with --seed %llu", path, (unsigned long long)info.seed);
        return EXIT_INPUT;
    }
    t->step = info.step;
    t->epoch = info.position.epoch;
    return feed_seek(&t->data, &info.position);
}

static int open_progress(Train *t)
{
    int64_t per_epoch = feed_batches(&t->data);
    gradc_progress_options o = {.struct_size = sizeof o,
                                .out = t->c->cx->json ? stdout : stderr,
                                .mode = cli_has(t->c, OPT_QUIET) ? GRADC_PROGRESS_QUIET
                                        : t->c->cx->json         ? GRADC_PROGRESS_JSON
                                                                 : GRADC_PROGRESS_AUTO,
                                .steps = t->steps > 0 ? t->steps : t->epochs * per_epoch,
                                .epochs = t->steps > 0 ? 0 : t->epochs,
                                .metric = t->metric < 0 ? NULL : t->out.tensor[t->metric].name};
    gradc_error e = {0};
    if (gradc_progress_open(&o, &t->progress, &e) == GRADC_OK)
        return EXIT_OK;
    say("%s", e.text);
    return EXIT_MEMORY;
}

static bool is_over(const Train *t)
{
    return t->steps > 0 ? t->step >= t->steps : t->epoch >= t->epochs;
}

static int one_step(Train *t)
{
    double lr = t->rate != NULL ? rate_next(t->rate) : NAN;
    int st = t->s->model->step(t->s->handle, t->in.block, t->out.block);
    if (st != GRADC_OK)
        return session_failed(t->s, "step", st);
    t->step++;
    t->samples += t->in.block->rows;
    gradc_progress_values v = {.epoch = t->epoch + 1,
                               .step = t->step,
                               .samples = t->samples,
                               .loss = result(t, t->loss),
                               .metric = result(t, t->metric),
                               .lr = lr};
    gradc_progress_step(t->progress, &v);
    return EXIT_OK;
}

static int end_epoch(Train *t)
{
    t->epoch++;
    int status = save(t);
    return status == EXIT_OK ? validate(t) : status;
}

static int loop(Train *t)
{
    int status = EXIT_OK;
    while (status == EXIT_OK && !is_over(t)) {
        if (!feed_next(&t->data, &t->in)) {
            status = end_epoch(t);
            continue;
        }
        status = one_step(t);
        if (status == EXIT_OK && t->every > 0 && t->step % t->every == 0)
            status = save(t);
    }
    if (status == EXIT_OK && t->steps > 0) {
        status = save(t);
        if (status == EXIT_OK)
            status = validate(t);
    }
    return status;
}

static int finish_training(Train *t)
{
    const char *path = cli_value(t->c, OPT_WEIGHTS_OUT, NULL);
    gradc_error e = {0};
    if (path == NULL || gradc_weights_save(t->s->model, t->s->handle, path, &e) == GRADC_OK)
        return EXIT_OK;
    say("%s", e.text);
    return EXIT_FILE;
}

static int train(Train *t)
{
    t->in = inputs_make(&t->s->arena, t->s->model, 0, 1);
    t->out = results_make(&t->s->arena, t->s->model);
    find_results(t);
    int status = read_settings(t);
    if (status == EXIT_OK)
        status = open_data(t);
    if (status == EXIT_OK)
        status = resume(t);
    if (status == EXIT_OK)
        status = open_progress(t);
    if (status == EXIT_OK && t->c->cx->json)
        t->rate = rate_open(t->c, t->s);
    if (status == EXIT_OK)
        status = loop(t);
    if (status == EXIT_OK)
        status = finish_training(t);
    gradc_progress_close(t->progress);
    rate_close(t->rate);
    feed_close(&t->valid, t->own_valid);
    feed_close(&t->data, true);
    return status;
}

/* A run of hours shall not end in a checkpoint that can't be written. */
static int check_checkpoint(Cli *c)
{
    const char *path = cli_value(c, OPT_CHECKPOINT, NULL);
    struct stat st;
    if (path == NULL)
        return EXIT_OK;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        say("--checkpoint %s: this is not a regular file", path);
        return EXIT_FILE;
    }
    const char *slash = strrchr(path, '/');
    const char *folder =
        slash == NULL ? "." : arena_strndup(&c->cx->perm, path, (size_t)(slash - path + 1));
    if (access(folder, W_OK | X_OK) == 0)
        return EXIT_OK;
    say("--checkpoint %s: %s: %s", path, folder, strerror(errno));
    return EXIT_FILE;
}

int command_train(Cli *c)
{
    Session s;
    int status = cli_has(c, OPT_DATA) ? EXIT_OK : usage_error(c, "train needs --data");
    if (status == EXIT_OK)
        status = check_checkpoint(c);
    if (status != EXIT_OK)
        return status;
    /* By `grad` a refused step finds the gradient to name; a budget is for the step alone. */
    status = session_open(c, &s, !cli_has(c, OPT_BUDGET));
    if (status == EXIT_OK) {
        Train t = {.c = c, .s = &s};
        status = train(&t);
    }
    session_close(&s);
    return status;
}
