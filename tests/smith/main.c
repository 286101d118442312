/* Commands of gradc-smith; smith.h says what they do. */
#include "smith.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/op.h"

typedef struct Sum {
    int32_t models, failed, scans, quotients, redrawn, failed_steps, budgets, again, offloaded, cut,
        kept, slices, light, chunked, panels, chains, ties, objects;
    int64_t used[N_OPS];
    int32_t in_models[N_OPS];
    int32_t primal[100000];
    double worst_forward, worst_quotient;
} Sum;

static void *shared(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("gradc-smith: mmap");
        exit(70);
    }
    return p;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static void add(Sum *s, const Verdict *v)
{
    s->primal[s->models++] = v->primal;
    s->failed += v->fault != FAULT_NONE;
    s->scans += v->scan;
    s->quotients += v->quotients;
    s->redrawn += v->redrawn;
    s->failed_steps += v->failed_steps;
    s->budgets += v->budgets;
    s->offloaded += v->offloaded;
    s->cut += v->cut;
    s->kept += v->kept;
    s->slices += v->slices;
    s->light += v->light;
    s->chunked += v->chunked;
    s->panels += v->panels;
    s->chains += v->chains;
    s->objects += v->objects;
    s->ties += v->ties > 0;
    s->again += v->again;
    for (int i = 0; i < N_OPS; i++) {
        s->used[i] += v->used[i];
        s->in_models[i] += v->used[i] > 0;
    }
    s->worst_forward = larger(s->worst_forward, v->worst_forward);
    s->worst_quotient = larger(s->worst_quotient, v->worst_quotient);
}

static void join(Sum *to, const Sum *from)
{
    memcpy(to->primal + to->models, from->primal, sizeof(int32_t) * (size_t)from->models);
    to->models += from->models;
    to->failed += from->failed;
    to->scans += from->scans;
    to->quotients += from->quotients;
    to->redrawn += from->redrawn;
    to->failed_steps += from->failed_steps;
    to->budgets += from->budgets;
    to->offloaded += from->offloaded;
    to->cut += from->cut;
    to->kept += from->kept;
    to->slices += from->slices;
    to->light += from->light;
    to->chunked += from->chunked;
    to->panels += from->panels;
    to->chains += from->chains;
    to->objects += from->objects;
    to->ties += from->ties;
    to->again += from->again;
    for (int i = 0; i < N_OPS; i++) {
        to->used[i] += from->used[i];
        to->in_models[i] += from->in_models[i];
    }
    to->worst_forward = larger(to->worst_forward, from->worst_forward);
    to->worst_quotient = larger(to->worst_quotient, from->worst_quotient);
}

/* ---- run -------------------------------------------------------------------------- */

typedef struct Run {
    uint64_t seed;
    int count, jobs;
    bool nets;   /* of gen_net.c, in place of models */
    bool demand; /* also that every op is used, and so on */
    bool small;  /* reduce what fails */
    bool first;  /* stop at the first one that fails */
} Run;

static Check *check_of(const Run *r)
{
    return r->nets ? check_targets : check_model;
}

static const char *text_of_seed(const Run *r, uint64_t seed, Arena *a)
{
    if (!r->nets)
        return generate(seed, DRAW_ALL, a);
    return seed % 2 == 0 ? net_text(seed, a) : generate(seed, DRAW_LARGE, a);
}

static void report_fault(Check *check, uint64_t seed, const char *text, const Verdict *v,
                         bool small)
{
    Arena a = {0};
    printf("seed %llu: %s: %s\n", (unsigned long long)seed, fault_name(v->fault), v->text);
    printf("%s", small ? reduce(check, text, seed, v->fault, &a) : text);
    fflush(stdout);
    arena_free(&a);
}

static bool any_failed(const Run *r, const Sum *all)
{
    int failed = 0;
    for (int i = 0; i < r->jobs; i++)
        failed += all[i].failed;
    return failed > 0;
}

/* Seeds that no other job has taken. */
static void shard(const Run *r, atomic_int *taken, Sum *s, const Sum *all)
{
    Verdict *v = shared(sizeof *v);
    while (!(r->first && any_failed(r, all))) {
        int i = atomic_fetch_add(taken, 1);
        if (i >= r->count)
            break;
        Arena a = {0};
        uint64_t seed = r->seed + (uint64_t)i;
        const char *text = text_of_seed(r, seed, &a);
        memset(v, 0, sizeof *v);
        check_apart(check_of(r), text, seed, false, v);
        if (v->fault != FAULT_NONE)
            report_fault(check_of(r), seed, text, v, r->small && s->failed < 3);
        add(s, v);
        arena_free(&a);
    }
}

static int by_size(const void *x, const void *y)
{
    return *(const int32_t *)x - *(const int32_t *)y;
}

/* What is in no finished graph: bits are what `uniform` is made of inside, and tuples live
 * between reverse mode and the simplification that follows it. */
static bool out_of_reach(OpId op)
{
    return op == OP_random_bits || op == OP_tuple || op == OP_NONE;
}

/* Transposed convolutions with a stride alone are followed by it. */
static int least_of(OpId op, int least)
{
    return op == OP_adjoint ? least / 10 : least;
}

/* How many are used less often; says so. */
static int rare_ops(const Sum *s, int least)
{
    int n = 0;
    printf("nodes of each op, and models with it:\n");
    for (int i = 1; i < N_OPS; i++) {
        printf("%s %lld in %d%s", optab[i]->name, (long long)s->used[i], s->in_models[i],
               i == N_OPS - 1 ? "\n"
               : i % 6 == 0   ? ",\n"
                              : ", ");
        n += s->used[i] < least_of((OpId)i, least) && !out_of_reach((OpId)i);
    }
    return n;
}

static int demands(Sum *s, const Run *r)
{
    qsort(s->primal, (size_t)s->models, sizeof *s->primal, by_size);
    int32_t median = s->models > 0 ? s->primal[s->models / 2] : 0;
    int least = s->models < 500 ? s->models / 10 : 50;
    int rare = rare_ops(s, least), failed = 0;
    printf("%d models within a budget, %d steps that run again there, %d of the models offload;\n"
           "%d with scans cut into runs, %d with the last of their steps kept,\n"
           "%d with wide values in slices, %d with elementwise values computed again, %d in row "
           "chunks, %d with parameters in panels, %d with kernels in chains;\n"
           "%d models whose step is off its definition by roundings alone;\n",
           s->budgets, s->again, s->offloaded, s->cut, s->kept, s->slices, s->light, s->chunked,
           s->panels, s->chains, s->ties);
    printf("%d models, median of %d ops, scan in %d; %d quotients, %d redrawn; NaN met in %d;\n"
           "worst error of forward mode %.2e of what is allowed, of quotients %.2e\n",
           s->models, median, s->scans, s->quotients, s->redrawn, s->failed_steps, s->worst_forward,
           s->worst_quotient);
    if (r->demand && median < 15)
        failed++, printf("FAILED: the median is below 15 ops\n");
    if (r->demand && s->scans * 10 < s->models)
        failed++, printf("FAILED: scan in fewer than a tenth\n");
    if (r->demand && s->quotients * 10 < s->models * 9)
        failed++, printf("FAILED: quotients in fewer than nine tenths\n");
    if (r->demand && s->ties * 20 > s->models)
        failed++, printf("FAILED: roundings decide in more than a twentieth\n");
    if (r->demand && s->chains * 5 < s->models)
        failed++, printf("FAILED: chains in fewer than a fifth\n");
    if (r->demand && rare > 0)
        failed++, printf("FAILED: %d ops used fewer than %d times\n", rare, least);
    return failed;
}

static int run(const Run *r)
{
    Sum *sum = shared(sizeof(Sum) * (size_t)r->jobs);
    atomic_int *taken = shared(sizeof *taken);
    for (int i = 0; i < r->jobs; i++) {
        pid_t child = fork();
        if (child == 0) {
            shard(r, taken, &sum[i], sum);
            exit(0);
        }
    }
    int status, broken = 0;
    while (wait(&status) > 0)
        broken += status != 0;
    for (int i = 1; i < r->jobs; i++)
        join(&sum[0], &sum[i]);
    int failed = sum[0].failed + broken;
    if (r->nets)
        printf("%d nets, %d more objects of them give the same bits\n", sum[0].models,
               sum[0].objects);
    else
        failed += demands(&sum[0], r);
    int passed = sum[0].models - sum[0].failed + 5 * (r->demand && !r->nets);
    bool alone = r->nets && sum[0].objects == 0; /* no other processor's object runs here */
    printf("passed=%d failed=%d skipped=%d\n", alone ? 0 : passed, failed, alone ? passed : 0);
    return failed > 0;
}

/* A model for each seed, in JSON, one after the other. */
static int export(const Run *r)
{
    Verdict v = {.fault = FAULT_NONE};
    for (int i = 0; i < r->count && v.fault == FAULT_NONE; i++) {
        Arena a = {0};
        uint64_t seed = r->seed + (uint64_t)i;
        const char *text = generate(seed, DRAW_PLAIN, &a);
        export_model(text, seed, &v);
        if (v.fault != FAULT_NONE)
            fprintf(stderr, "%sgradc-smith: export: %s\n", text, v.text);
        arena_free(&a);
    }
    return v.fault != FAULT_NONE;
}

/* ---- the others ------------------------------------------------------------------- */

static const char *read_text(const char *path, Arena *a)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    char *text = arena_alloc(a, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

/* A file's text, or that of a seed. */
static const char *text_of(const Run *r, const char *what, uint64_t *seed, Arena *a)
{
    char *end;
    *seed = strtoull(what, &end, 10);
    if (*end == '\0')
        return text_of_seed(r, *seed, a);
    const char *text = read_text(what, a);
    const char *line = text == NULL ? NULL : strstr(text, "# seed ");
    *seed = line == NULL ? 1 : strtoull(line + 7, NULL, 10);
    return text;
}

static int check(const Run *r, int n, char **what)
{
    Verdict *v = shared(sizeof *v);
    Arena a = {0};
    int failed = 0;
    for (int i = 0; i < n; i++) {
        uint64_t seed;
        const char *text = text_of(r, what[i], &seed, &a);
        if (text == NULL) {
            perror(what[i]);
            return 3;
        }
        memset(v, 0, sizeof *v);
        check_apart(check_of(r), text, seed, true, v);
        /* in chunks and within a budget, denormals flushed, too */
        const bool no_seed = seed == 1 && !r->nets;
        for (uint64_t more = 4; no_seed && more >= 3 && v->fault == FAULT_NONE; more--)
            check_apart(check_of(r), text, seed = more, true, v);
        printf("%s: %s %s\n", what[i], fault_name(v->fault), v->text);
        if (r->small && v->fault != FAULT_NONE)
            printf("%s", reduce(check_of(r), text, seed, v->fault, &a));
        failed += v->fault != FAULT_NONE;
    }
    arena_free(&a);
    return failed > 0;
}

static int usage(void)
{
    fprintf(stderr,
            "gradc-smith: run [--seed N] [--count N] [--jobs N] [--demand] [--reduce]\n"
            "[--first] |\n"
            "show SEED | export [--seed N] [--count N] | check SEED|FILE... | reduce SEED|FILE |\n"
            "work [--seed N] [--count N] | nets [--seed N] [--count N] [--jobs N] [--reduce] |\n"
            "net SEED|FILE...\n");
    return 2;
}

static bool run_options(int n, char **arg, Run *r)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(arg[i], "--demand") == 0)
            r->demand = true;
        else if (strcmp(arg[i], "--first") == 0)
            r->first = true;
        else if (strcmp(arg[i], "--reduce") == 0)
            r->small = true;
        else if (i + 1 == n)
            return false;
        else if (strcmp(arg[i], "--seed") == 0)
            r->seed = strtoull(arg[++i], NULL, 10);
        else if (strcmp(arg[i], "--count") == 0)
            r->count = atoi(arg[++i]);
        else if (strcmp(arg[i], "--jobs") == 0)
            r->jobs = atoi(arg[++i]);
        else
            return false;
    }
    return r->count > 0 && r->count <= 100000 && r->jobs > 0 && r->jobs <= 256;
}

int main(int argc, char **argv)
{
    Run r = {.seed = 1, .count = 500, .jobs = 2};
    if (argc >= 2 && strcmp(argv[1], "run") == 0)
        return run_options(argc - 2, argv + 2, &r) ? run(&r) : usage();
    if (argc >= 2 && strcmp(argv[1], "nets") == 0) {
        r.nets = true;
        return run_options(argc - 2, argv + 2, &r) ? run(&r) : usage();
    }
    if (argc >= 3 && strcmp(argv[1], "net") == 0) {
        r.nets = true;
        return check(&r, argc - 2, argv + 2);
    }
    if (argc >= 2 && strcmp(argv[1], "work") == 0)
        return run_options(argc - 2, argv + 2, &r) ? work(r.seed, r.count) : usage();
    if (argc >= 2 && strcmp(argv[1], "export") == 0)
        return run_options(argc - 2, argv + 2, &r) ? export(&r) : usage();
    if (argc == 3 && strcmp(argv[1], "show") == 0) {
        Arena a = {0};
        fputs(generate(strtoull(argv[2], NULL, 10), DRAW_ALL, &a), stdout);
        arena_free(&a);
        return 0;
    }
    if (argc >= 3 && strcmp(argv[1], "check") == 0)
        return check(&r, argc - 2, argv + 2);
    if (argc == 3 && strcmp(argv[1], "reduce") == 0) {
        r.small = true;
        return check(&r, 1, argv + 2);
    }
    return usage();
}
