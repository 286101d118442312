#include "cli.h"

#include <string.h>

#include "../../runtime/gradc.h"

static void allow_threads(Cli *c, int64_t threads)
{
    c->options.threads_max = c->options.target.threads_max = (int32_t)threads;
}

int cli_threads(Cli *c, int64_t *threads)
{
    int64_t most = usable_cores() < 8 ? usable_cores() : 8;
    int status = cli_integer(c, OPT_THREADS, most, 1, 256, threads);
    if (status == EXIT_OK && *threads > c->options.threads_max) {
        if (cli_has(c, OPT_THREADS_MAX))
            return usage_error(c, "--threads %lld is more than --threads-max %d",
                               (long long)*threads, c->options.threads_max);
        allow_threads(c, *threads);
    }
    return status;
}

/* Before anything is compiled: for the device that is there, unless --arch says otherwise. */
static int open_gpu(Cli *c, Session *s)
{
    gradc_error e = {0};
    TargetOptions *o = &c->options.target;
    if (strcmp(o->target, "cuda") != 0)
        return EXIT_OK;
    if (gradc_cuda_open(NULL, &s->gpu, &e) != GRADC_OK) {
        say("%s", e.text);
        return EXIT_NO_GPU;
    }
    gradc_cuda_device about;
    gradc_cuda_about(s->gpu, &about);
    if (o->arch == NULL)
        o->arch = arena_printf(&c->cx->perm, "sm_%d", about.arch);
    return EXIT_OK;
}

static int compile_session(Cli *c, Session *s)
{
    double start = now_ms();
    int found = open_gpu(c, s);
    if (found != EXIT_OK)
        return found;
    bool ok = compile(c->cx, s->source, &c->options, &s->out);
    if (ok)
        s->loaded = cpu_load(c->cx, &s->out.object, s->out.program->name);
    int status = finish(c, ok && s->loaded != NULL);
    s->compile_ms = now_ms() - start;
    if (status == EXIT_OK)
        s->model = loaded_model(s->loaded);
    if (status == EXIT_OK)
        say_split(c, &s->out);
    return status;
}

/* Where values are that the model, or --offload, keeps out of the block. */
static int open_store(const Cli *c, Session *s, gradc_options *o)
{
    int64_t bytes = s->model->offload_bytes;
    int status = bytes > 0 ? offload_open(c, bytes, &s->store) : EXIT_OK;
    gradc_store_use(s->store, o);
    return status;
}

/* Of a model that is too large for the device: what the least budget would need there. */
static void say_least(const Cli *c, const Session *s)
{
    Ctx own;
    Arena arena = {0};
    Output out = {.arena = &arena};
    Options o = c->options;
    ctx_init(&own);
    const Source *source = c->cx->source.at[s->source];
    int32_t again = source_add(&own, source->path, source->text, strlen(source->text), false);
    o.budget = (BudgetAsked){.kind = BUDGET_LEAST};
    o.define = NULL;
    int64_t behind = s->model->device_bytes - s->out.program->arena_bytes;
    Define *d = NEW_ARRAY(&arena, Define, c->options.n_defines + 1);
    for (int i = 0; i < o.n_defines; i++)
        d[i] = (Define){.name = intern(&own.names, c->options.define[i].name),
                        .value = c->options.define[i].value};
    o.define = d;
    if (compile_planned(&own, again, &o, &out))
        remark("the least budget that is found is %lld bytes, which needs %lld on the device",
               (long long)out.program->arena_bytes, (long long)(out.program->arena_bytes + behind));
    output_free(&out);
    ctx_free(&own);
}

int session_start(const Cli *c, Session *s, int64_t threads)
{
    int64_t seed;
    int status = cli_integer(c, OPT_SEED, 0, 0, INT64_MAX, &seed);
    if (status != EXIT_OK)
        return status;
    gradc_options o = {.struct_size = sizeof o, .abi = GRADC_ABI, .seed = (uint64_t)seed};
    gradc_error e = {0};
    if (threads > 1 && s->pool == NULL && s->gpu == NULL &&
        gradc_pool_open((int32_t)threads, 0, &s->pool, &e) != GRADC_OK) {
        say("%s", e.text);
        return EXIT_FILE;
    }
    if (s->pool != NULL)
        gradc_pool_use(s->pool, &o);
    gradc_cuda_use(s->gpu, &o);
    int status_of_store = open_store(c, s, &o);
    if (status_of_store != EXIT_OK)
        return status_of_store;
    s->block = gradc_alloc(s->model->arena_bytes, s->model->arena_align);
    if (s->block == NULL) {
        say("no memory for the %lld bytes of the model", (long long)s->model->arena_bytes);
        return EXIT_MEMORY;
    }
    int st = s->model->init(s->block, (size_t)s->model->arena_bytes, &o, &s->handle);
    if (st == GRADC_MEMORY && s->gpu != NULL)
        say_least(c, s);
    if (st != GRADC_OK)
        return session_failed(s, "init", st);
    const char *weights = cli_value(c, OPT_WEIGHTS, NULL);
    if (weights != NULL && gradc_weights_load(s->model, s->handle, weights, 0, &e) != GRADC_OK) {
        say("%s", e.text);
        return e.status == GRADC_MISMATCH ? EXIT_INPUT : EXIT_FILE;
    }
    return EXIT_OK;
}

/* Compiles s->source, and makes a handle. */
static int open_compiled(Cli *c, Session *s, int64_t threads)
{
    int status = compile_session(c, s);
    return status == EXIT_OK ? session_start(c, s, threads) : status;
}

int session_open(Cli *c, Session *s, bool wants_grad)
{
    int64_t threads = 1;
    *s = (Session){.out = {.arena = &s->arena}};
    int status = read_options(c);
    if (status == EXIT_OK)
        status = cli_threads(c, &threads);
    if (status == EXIT_OK)
        status = read_source(c, c->operand.at[0], &s->source);
    if (cli_has(c, OPT_ENTRY))
        c->options.entry[ENTRY_EVAL] = true;
    else
        c->options.entry[ENTRY_GRAD] = wants_grad;
    if (status == EXIT_OK)
        say_cache(c);
    return status == EXIT_OK ? open_compiled(c, s, threads) : status;
}

int session_open_text(Cli *c, Session *s, const char *name, const char *text, int64_t threads)
{
    *s = (Session){.out = {.arena = &s->arena}};
    int status = read_options(c);
    if (status != EXIT_OK)
        return status;
    if (threads > c->options.threads_max)
        allow_threads(c, threads);
    s->source = source_add(c->cx, name, text, strlen(text), false);
    return open_compiled(c, s, threads);
}

int session_failed(const Session *s, const char *what, int status)
{
    /* init leaves a sentence about the machine in the block */
    bool machine = status == GRADC_CPU || status == GRADC_MEMORY || status >= GRADC_NO_GPU;
    const void *from = s->handle != NULL ? s->handle : machine ? s->block : NULL;
    const char *text = from != NULL ? s->model->error(from) : NULL;
    if (text == NULL || *text == 0)
        text = gradc_strerror(status);
    say("%s: %s", what, text);
    if (status == GRADC_NO_GPU || status == GRADC_DEVICE)
        return EXIT_NO_GPU;
    return status == GRADC_MEMORY ? EXIT_MEMORY : EXIT_INPUT;
}

void session_close(Session *s)
{
    if (s->handle != NULL && s->model->close != NULL)
        s->model->close(s->handle);
    gradc_cuda_close(s->gpu);
    gradc_pool_close(s->pool);
    gradc_store_close(s->store);
    gradc_free(s->block);
    if (s->loaded != NULL)
        cpu_unload(s->loaded);
    output_free(&s->out);
}
