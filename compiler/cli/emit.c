/* Commands that compile and show: build, check, show, plan. */
#include "cli.h"

#include <string.h>

#include "../pass/lower.h"
#include "../pass/pass.h"
#include "images.h"

/* ---- from options to the pipeline ------------------------------------------- */

static int read_defines(Cli *c)
{
    VEC(Define) d = {0};
    const char *s;
    for (int i = 0; (s = cli_nth(c, OPT_DEFINE, i)) != NULL; i++) {
        const char *equals = strchr(s, '=');
        if (equals == NULL || equals == s)
            return usage_error(c, "-D wants NAME=VALUE, not `%s`", s);
        Define def = {.name = intern_n(&c->cx->names, s, (size_t)(equals - s)),
                      .value = equals + 1};
        vec_push(&c->cx->perm, &d, def);
    }
    c->options.define = d.at;
    c->options.n_defines = d.n;
    return EXIT_OK;
}

static int read_entries(Cli *c)
{
    const char *list = cli_value(c, OPT_ENTRY, "init,eval,grad,step");
    for (const char *p = list; *p != 0;) {
        size_t n = strcspn(p, ",");
        bool known = false;
        for (int e = 0; e < N_ENTRIES; e++)
            if (strlen(entry_name((EntryKind)e)) == n &&
                strncmp(p, entry_name((EntryKind)e), n) == 0)
                known = c->options.entry[e] = true;
        if (!known)
            return usage_error(c, "--entry takes init, eval, grad and step, not `%.*s`", (int)n, p);
        p += n + (p[n] == ',');
    }
    c->options.entry[ENTRY_INIT] = true;
    return EXIT_OK;
}

static int check_dump(const Cli *c)
{
    static const char *const stage[] = {"ast", "primal", "reverse", "joint", "all"};
    const char *name = cli_value(c, OPT_DUMP, NULL);
    bool known = name == NULL;
    for (size_t i = 0; i < sizeof stage / sizeof *stage && !known; i++)
        known = strcmp(name, stage[i]) == 0;
    return known
               ? EXIT_OK
               : usage_error(c, "--dump takes ast, primal, reverse, joint and all, not `%s`", name);
}

/* --target cpu,cuda: of a build, an object of each. */
static bool wants_both(const Cli *c)
{
    const char *s = cli_value(c, OPT_TARGET, "cpu");
    return strcmp(s, "cpu,cuda") == 0 || strcmp(s, "cuda,cpu") == 0;
}

int read_options(Cli *c)
{
    Options *o = &c->options;
    int64_t threads_max;
    int status = cli_integer(c, OPT_THREADS_MAX, 8, 1, 256, &threads_max);
    if (status == EXIT_OK)
        status = cli_integer(c, OPT_CHUNK, CHUNK_DEFAULT, 0, INT64_MAX, &o->chunk_from);
    if (status == EXIT_OK)
        status = read_defines(c);
    if (status == EXIT_OK)
        status = read_entries(c);
    if (status == EXIT_OK)
        status = check_dump(c);
    if (status != EXIT_OK)
        return status;
    int32_t jobs;
    status = cli_jobs(c, &jobs);
    if (status != EXIT_OK)
        return status;
    o->threads_max = (int32_t)threads_max;
    o->model = cli_value(c, OPT_MODEL, NULL);
    o->target = (TargetOptions){.target = wants_both(c) ? "cpu" : cli_value(c, OPT_TARGET, "cpu"),
                                .cpu = cli_value(c, OPT_CPU, "native"),
                                .triple = cli_value(c, OPT_TRIPLE, NULL),
                                .threads_max = o->threads_max,
                                .jobs = jobs,
                                .cache = cli_cache(c),
                                .arch = cli_value(c, OPT_ARCH, NULL),
                                .laps = c->laps};
    Precision known;
    o->precision = cli_value(c, OPT_PRECISION, NULL);
    if (o->precision != NULL && !precision_find(o->precision, &known))
        return usage_error(c, "--precision takes f32, bf16 and f16, not `%s`", o->precision);
    const char *denormals = cli_value(c, OPT_DENORMALS, "keep");
    o->target.flush = strcmp(denormals, "flush") == 0;
    if (!o->target.flush && strcmp(denormals, "keep") != 0)
        return usage_error(c, "--denormals takes keep and flush, not `%s`", denormals);
    if (target_find(o->target.target) == NULL)
        return usage_error(c, "there is no target `%s`; this gradc has: cpu, cuda",
                           o->target.target);
    if (wants_both(c) && c->command->run != command_build)
        return usage_error(c, "--target takes cpu or cuda here; both of them are for build");
    if (o->target.arch != NULL && strcmp(o->target.target, "cuda") != 0 && !wants_both(c))
        return usage_error(c, "--arch is for --target cuda; --cpu names a processor");
    if (cli_has(c, OPT_CPU) && strcmp(o->target.target, "cuda") == 0)
        return usage_error(c, "--cpu is for --target cpu; --arch names GPUs");
    o->allow_split = cli_has(c, OPT_ALLOW_SPLIT);
    if (o->allow_split && !cli_has(c, OPT_BUDGET))
        return usage_error(c, "--allow-split is for a --budget, and there is none");
    if (o->allow_split && strcmp(cli_value(c, OPT_BUDGET, ""), "light") == 0)
        return usage_error(c, "--budget light takes the batch as a whole, and no --allow-split");
    status = cli_cost(c);
    if (status == EXIT_OK)
        status = cli_offload(c);
    return status == EXIT_OK ? cli_budget(c, &o->budget, &o->effort) : status;
}

/* ---- build ------------------------------------------------------------------- */

const char *replace_suffix(Arena *a, const char *path, const char *old, const char *with)
{
    size_t n = strlen(path), k = strlen(old);
    if (n > k && strcmp(path + n - k, old) == 0)
        n -= k;
    return arena_printf(a, "%.*s%s", (int)n, path, with);
}

const char *output_path(const Cli *c, Arena *a, const char *model, const char *suffix)
{
    const char *path = c->operand.at[0], *slash = strrchr(path, '/');
    if (strcmp(path, "-") == 0)
        return arena_printf(a, "%s%s", model, suffix);
    return replace_suffix(a, slash != NULL ? slash + 1 : path, ".model", suffix);
}

static const char *text_of_graph(Output *out, void (*print)(const Graph *, Text *))
{
    Text t;
    text_init(&t, out->arena);
    for (int e = N_ENTRIES; e-- > 0;)
        if (out->graph[e] != NULL)
            print(out->graph[e], &t);
    return t.at;
}

const char *text_of_plans(const Cli *c, Output *out, bool json)
{
    Text t;
    text_init(&t, out->arena);
    bool first = true;
    if (json)
        text_add(&t, "[");
    for (int e = N_ENTRIES; e-- > 0;) {
        if (out->plan[e] == NULL)
            continue;
        if (!first)
            text_add(&t, json ? ",\n" : "\n");
        first = false;
        if (json)
            plan_json(c->cx, out->plan[e], &t);
        else
            plan_print(c->cx, out->plan[e], true, &t);
    }
    if (json)
        text_add(&t, "]\n");
    return t.at;
}

static const char *text_of_kernels(Output *out)
{
    Text t;
    text_init(&t, out->arena);
    program_print(out->program, &t);
    return t.at;
}

/* A name as make and ninja read it. source: GNU make manual, "Rule Syntax" and "Special
 * Characters": backslashes count only before what they escape. */
static void put_name(Text *t, const char *name)
{
    int slashes = 0;
    for (const char *p = name; *p != 0; p++) {
        bool escaped = strchr(" \t#:", *p) != NULL;
        for (int i = 0; i < slashes && escaped; i++)
            text_char(t, '\\');
        slashes = *p == '\\' ? slashes + 1 : 0;
        if (escaped || *p == '$')
            text_char(t, escaped ? '\\' : '$');
        text_char(t, *p);
    }
}

static const char *dep_text(const Cli *c, Output *out, const char *object)
{
    Text t;
    text_init(&t, out->arena);
    put_name(&t, object);
    text_char(&t, ':');
    for (int i = 0; i < c->cx->source.n; i++) {
        const Source *s = c->cx->source.at[i];
        if (s->library || strcmp(c->operand.at[0], "-") == 0) /* no file */
            continue;
        text_char(&t, ' ');
        put_name(&t, s->path);
    }
    text_add(&t, "\n");
    return t.at;
}

static const char *const kinds[] = {"graph",  "plan", "kernels", "llvm-ir", "asm",   "dot", "json",
                                    "header", "dep",  "cuda",    "ptx",     "cubin", "sass"};
static const char *const suffixes[] = {".gir", ".plan",  ".kernels", ".ll",  ".s",
                                       ".dot", ".json",  ".h",       ".o.d", ".cu",
                                       ".ptx", ".cubin", ".sass"};
/* The only target that has it, or NULL. */
static const char *const only_of[] = {NULL, NULL, NULL,   "cpu",  "cpu",  NULL,  NULL,
                                      NULL, NULL, "cuda", "cuda", "cuda", "cuda"};
enum { KIND_CUDA = 9, KIND_PTX, KIND_CUBIN, KIND_SASS, N_KINDS = sizeof kinds / sizeof *kinds };

static int emit_kind(const char *spec)
{
    size_t n = strcspn(spec, "=");
    for (int i = 0; i < N_KINDS; i++)
        if (strlen(kinds[i]) == n && strncmp(kinds[i], spec, n) == 0)
            return i;
    return -1;
}

static const char *emit_text(Cli *c, Output *out, int kind, const char *object)
{
    switch (kind) {
    case 0:
        return text_of_graph(out, graph_print);
    case 1:
        return text_of_plans(c, out, false);
    case 2:
        return text_of_kernels(out);
    case 3:
        return out->object.ir;
    case 4:
        return out->object.assembly;
    case 5:
        return text_of_graph(out, graph_dot);
    case 6:
        return text_of_plans(c, out, true);
    case 7:
        return out->object.header;
    case KIND_CUDA:
        return out->object.cuda;
    case KIND_PTX:
        return text_of_ptx(out->object.images, out->arena);
    default:
        return dep_text(c, out, object);
    }
}

static int want_emits(Cli *c)
{
    const char *s;
    for (int i = 0; (s = cli_nth(c, OPT_EMIT, i)) != NULL; i++) {
        int kind = emit_kind(s);
        if (kind < 0) {
            const char *near = nearest(s, kinds, N_KINDS);
            return usage_error(c, "--emit does not know `%s`%s%s%s", s,
                               near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
        }
        if (only_of[kind] != NULL && !wants_both(c) &&
            strcmp(only_of[kind], c->options.target.target) != 0)
            return usage_error(c, "--emit %s is for --target %s", kinds[kind], only_of[kind]);
        c->options.target.want_ir |= kind == 3;
        c->options.target.want_asm |= kind == 4;
        c->options.target.want_cuda |= kind == KIND_CUDA;
        c->options.target.want_images |= kind >= KIND_PTX;
    }
    /* kernels alone need no NVRTC */
    const TargetOptions *t = &c->options.target;
    c->options.target.no_object =
        (t->want_cuda || t->want_images) && !cli_has(c, OPT_OUT) && !wants_both(c);
    return EXIT_OK;
}

/* What --emit SPEC writes. */
static int add_emit(Cli *c, Output *out, const char *spec, const char *object, Files *f)
{
    int kind = emit_kind(spec);
    const char *equals = strchr(spec, '=');
    const char *path =
        equals != NULL ? equals + 1 : replace_suffix(out->arena, object, ".o", suffixes[kind]);
    const CudaImages *m = out->object.images;
    bool ptx = kind == KIND_PTX;
    if (kind >= KIND_PTX && !has_images(m, ptx ? IMAGE_PTX : IMAGE_CUBIN))
        return usage_error(c, "--emit %s needs %s in --arch", kinds[kind],
                           ptx ? "compute_N or newest" : "sm_N");
    if (kind == KIND_CUBIN)
        return add_cubins(c, m, path, out->arena, f);
    const char *text;
    int status = EXIT_OK;
    if (kind == KIND_SASS)
        status = text_of_sass(m, out->arena, &text);
    else
        text = emit_text(c, out, kind, object);
    if (status == EXIT_OK)
        files_add(f, path, text, strlen(text));
    return status;
}

/* Whether --emit SPEC is of this target; of two the first has what both have. */
static bool is_of(const char *spec, const char *target, bool first)
{
    const char *only = only_of[emit_kind(spec)];
    return only != NULL ? strcmp(only, target) == 0 : first;
}

static int add_outputs(Cli *c, Output *out, const char *object, bool first, Files *f)
{
    const char *header = replace_suffix(out->arena, object, ".o", ".h");
    if (out->object.bytes != NULL) {
        files_add(f, object, out->object.bytes, out->object.n_bytes);
        files_add(f, header, out->object.header, strlen(out->object.header));
    }
    const char *s;
    int status = EXIT_OK;
    for (int i = 0; (s = cli_nth(c, OPT_EMIT, i)) != NULL && status == EXIT_OK; i++)
        if (is_of(s, c->options.target.target, first))
            status = add_emit(c, out, s, object, f);
    return status;
}

static int64_t parameter_count(const Program *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->tensor.n; i++)
        if (p->tensor.at[i].role == ROLE_PARAM)
            n += p->buffer.at[p->tensor.at[i].buffer].elems;
    return n;
}

static void summary(const Cli *c, const Output *out, const char *object, double ms)
{
    const Program *p = out->program;
    if (cli_has(c, OPT_QUIET))
        return;
    if (c->cx->json) {
        printf("{\"model\": \"%s\", \"parameters\": %lld, \"arena_bytes\": %lld, "
               "\"device_bytes\": %lld, \"offload_bytes\": %lld, \"object_bytes\": %zu, "
               "\"kernels\": %d, \"parts\": %d, \"cached\": %d, \"compile_ms\": %.1f}\n",
               p->name, (long long)parameter_count(p), (long long)p->arena_bytes,
               (long long)out->object.device_bytes, (long long)p->store_bytes, out->object.n_bytes,
               out->object.n_kernels, out->object.n_parts, out->object.n_cached, ms);
        return;
    }
    const char *store =
        p->store_bytes == 0
            ? ""
            : arena_printf(out->arena, ", %lld bytes of a store for what is offloaded",
                           (long long)p->store_bytes);
    const char *what = out->object.bytes != NULL ? object : p->name;
    fprintf(stderr, "%s: %lld parameters, %lld bytes of memory%s, %d kernels, %zu bytes, %.0f ms\n",
            what, (long long)parameter_count(p), (long long)p->arena_bytes, store,
            out->object.n_kernels, out->object.n_bytes, ms);
}

void say_split(const Cli *c, const Output *out)
{
    const Plan *p = out->plan[out->plan[ENTRY_STEP] != NULL ? ENTRY_STEP : ENTRY_GRAD];
    const char *text = p == NULL ? NULL : plan_split_text(p, &c->cx->perm);
    if (text != NULL && !cli_has(c, OPT_QUIET))
        remark("%s", text);
}

/* Where the object goes: M.o, and of two the second into M.cuda.o. */
static const char *object_path(const Cli *c, const Output *out, bool second)
{
    const char *path = cli_value(c, OPT_OUT, NULL);
    if (path == NULL)
        path = output_path(c, out->arena, out->program->name, ".o");
    return second ? replace_suffix(out->arena, path, ".o", ".cuda.o") : path;
}

/* The object for one target, whose files are added. */
static int build_one(Cli *c, int32_t source, bool second, Output *out, Files *f)
{
    int status = finish(c, compile(c->cx, source, &c->options, out));
    if (status != EXIT_OK)
        return status;
    say_split(c, out);
    return add_outputs(c, out, object_path(c, out, second), !second, f);
}

/* Its symbols have names of their own, so that one program can have both. */
static int build_second(Cli *c, int32_t source, const Output *first, Output *out, Files *f)
{
    c->options.target.target = "cuda";
    c->options.target.prefix = arena_printf(out->arena, "%s_cuda", first->program->name);
    return build_one(c, source, true, out, f);
}

int command_build(Cli *c)
{
    double start = now_ms();
    Arena arena = {0}, other = {0};
    Output out = {.arena = &arena}, second = {.arena = &other};
    int32_t source;
    int status = read_options(c);
    if (status == EXIT_OK)
        status = want_emits(c);
    if (status == EXIT_OK)
        status = read_source(c, c->operand.at[0], &source);
    if (status != EXIT_OK)
        return status;
    say_cache(c);
    Files *f = files_open(&arena);
    status = build_one(c, source, false, &out, f);
    if (status == EXIT_OK && wants_both(c))
        status = build_second(c, source, &out, &second, f);
    if (status == EXIT_OK)
        status = files_commit(f);
    if (status == EXIT_OK)
        summary(c, &out, object_path(c, &out, false), now_ms() - start);
    if (status == EXIT_OK && wants_both(c))
        summary(c, &second, object_path(c, &second, true), now_ms() - start);
    output_free(&second);
    output_free(&out);
    return status;
}

/* ---- check, show --------------------------------------------------------- */

int compile_to(Cli *c, int stage, Output *out)
{
    int32_t source;
    int status = read_options(c);
    if (status == EXIT_OK)
        status = read_source(c, c->operand.at[0], &source);
    if (status != EXIT_OK)
        return status;
    bool ok = stage < 2 ? compile_graphs(c->cx, source, &c->options, stage == 0, out)
                        : compile_planned(c->cx, source, &c->options, out);
    return finish(c, ok);
}

int command_check(Cli *c)
{
    Arena arena = {0};
    Output out = {.arena = &arena};
    int status = compile_to(c, 1, &out);
    if (status == EXIT_OK && !cli_has(c, OPT_QUIET) && !c->cx->json)
        fprintf(stderr, "%s: no errors\n", c->operand.at[0]);
    output_free(&out);
    return status;
}

/* The entry that a look at the graph is about: what trains, else what evaluates. */
static Graph *main_graph(const Output *out)
{
    for (int e = N_ENTRIES; e-- > 0;)
        if (out->graph[e] != NULL && e != ENTRY_INIT)
            return out->graph[e];
    return out->graph[ENTRY_INIT];
}

/* Nodes that the forward graph does not have: the lines of the print from there on. */
static const char *reverse_part(const Graph *g, const char *text)
{
    char first[32];
    snprintf(first, sizeof first, "%%%u =", g->n_primal);
    const char *p = strstr(text, first);
    while (p != NULL && p > text && p[-1] != '\n')
        p--;
    return p != NULL ? p : text;
}

int show_format(const Cli *c, const char *const *known, int n, const char **format)
{
    *format = cli_value(c, OPT_FORMAT, c->cx->json ? "json" : "text");
    for (int i = 0; i < n; i++)
        if (strcmp(*format, known[i]) == 0)
            return EXIT_OK;
    return usage_error(c, "--format does not know `%s`", *format);
}

int command_show(Cli *c)
{
    static const char *const known[] = {"text", "dot", "json"};
    Arena arena = {0};
    Output out = {.arena = &arena};
    const char *format;
    int status = show_format(c, known, 3, &format);
    bool forward = cli_has(c, OPT_FORWARD), backward = cli_has(c, OPT_BACKWARD);
    if (status == EXIT_OK && cli_has(c, OPT_KERNELS) && strcmp(format, "dot") == 0)
        status = usage_error(c, "--kernels is a table: --format text or json");
    if (status == EXIT_OK && !cli_has(c, OPT_KERNELS) && cli_has(c, OPT_GPU))
        status = usage_error(c, "--gpu goes with --kernels");
    if (status != EXIT_OK)
        return status;
    if (cli_has(c, OPT_KERNELS))
        return show_kernels(c, strcmp(format, "json") == 0);
    if (!cli_has(c, OPT_ENTRY) && backward) {
        Given g = {.id = OPT_ENTRY, .value = "grad"};
        vec_push(&c->cx->perm, &c->given, g);
    }
    status = compile_to(c, forward ? 0 : 1, &out);
    if (status == EXIT_OK) {
        Text t;
        text_init(&t, &arena);
        const Graph *g = main_graph(&out);
        if (strcmp(format, "dot") == 0)
            graph_dot(g, &t);
        else if (strcmp(format, "json") == 0)
            graph_json(g, &t);
        else
            graph_print(g, &t);
        fputs(backward && strcmp(format, "text") == 0 ? reverse_part(g, t.at) : t.at, stdout);
    }
    output_free(&out);
    return status;
}
