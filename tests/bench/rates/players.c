/* Products of matrices by gradc and by libraries, which take turns: figures of one round can be
 * compared however busy the machine is. Each is a process of its own, for the threads of one
 * library would take the cores of the next. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gradc.h"
#include "rates.h"

typedef void (*Cblas)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                      float, float *, int);
typedef int (*Dnnl)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t,
                    const float *, int64_t, float, float *, int64_t);

/* What a process has of its own. */
typedef struct Turn {
    Rates *r;
    const Matmul *m;
    float *a, *b, *c; /* of halves, a and b hold those */
    Runner runner;
    bool made;
    Probe probe;
    Cblas cblas;
    Dnnl dnnl, dnnl_halves; /* of bf16, with sums in f32 */
} Turn;

typedef struct Player {
    const char *name;
    bool (*open)(Turn *t); /* false: it is not here */
    void (*take)(Turn *t); /* a shape; may be NULL */
    void (*call)(Turn *t);
    pid_t pid;
    int to, from;
} Player;

/* ---- who they are ----------------------------------------------------------------------- */

static bool open_gradc(Turn *t)
{
    lanes_open(t->r, t->r->lanes);
    return true;
}

static void take_gradc(Turn *t)
{
    void *const buf[] = {t->c, t->a, t->b, t->a};
    if (t->made)
        runner_free(&t->runner);
    Kernel *k = make_matmul(&t->r->arena, t->r->halves ? BF16 : F32, t->m);
    k->con.pairs = t->r->halves && t->r->mach->dots;
    t->runner = runner_new(t->r, k, buf);
    t->made = true;
}

static void call_gradc(Turn *t)
{
    runner_call(t->r, &t->runner);
}

/* Of --cpu x86-64-v3 on a processor with wider registers: libraries are kept to it, too. */
static bool is_kept_to_avx2(const Turn *t)
{
    return t->r->o.cpu != NULL && t->r->mach->arch == ARCH_X86_64 && t->r->mach->vec_bytes == 32;
}

static bool open_blas(Turn *t)
{
    char lanes[16];
    snprintf(lanes, sizeof lanes, "%d", t->r->lanes);
    setenv("OPENBLAS_NUM_THREADS", lanes, 1);
    /* The kernels that it chooses for this machine, whatever the environment says. */
    if (is_kept_to_avx2(t))
        setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    else
        unsetenv("OPENBLAS_CORETYPE");
    unsetenv("OPENBLAS_L2_SIZE");
    void *lib = dlopen("libopenblas.so.0", RTLD_NOW);
    if (lib == NULL || t->r->halves)
        return false;
    *(void **)&t->cblas = dlsym(lib, "cblas_sgemm");
    char *(*config)(void) = NULL;
    *(void **)&config = dlsym(lib, "openblas_get_config");
    if (t->cblas != NULL && config != NULL)
        printf("OpenBLAS: %s\n", config());
    return t->cblas != NULL;
}

static void call_blas(Turn *t)
{
    enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
    const Matmul *m = t->m;
    bool ta = (m->form & TRANSPOSE_A) != 0, tb = (m->form & TRANSPOSE_B) != 0;
    int M = (int)m->m, N = (int)m->n, K = (int)m->k;
    t->cblas(ROW_MAJOR, ta ? TRANSPOSED : PLAIN, tb ? TRANSPOSED : PLAIN, M, N, K, 1, t->a,
             ta ? M : K, t->b, tb ? K : N, 0, t->c, N);
}

static bool open_dnnl(Turn *t)
{
    static const char *const name[] = {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so.1"};
    char lanes[16];
    snprintf(lanes, sizeof lanes, "%d", t->r->lanes);
    setenv("OMP_NUM_THREADS", lanes, 1);
    if (is_kept_to_avx2(t)) {
        setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
        setenv("DNNL_MAX_CPU_ISA", "AVX2", 1); /* before version 2.6 */
    }
    void *lib = NULL;
    for (int i = 0; i < 3 && lib == NULL; i++)
        lib = dlopen(name[i], RTLD_NOW);
    if (lib == NULL)
        return false;
    *(void **)&t->dnnl = dlsym(lib, "dnnl_sgemm");
    *(void **)&t->dnnl_halves = dlsym(lib, "dnnl_gemm_bf16bf16f32");
    if (t->r->halves && t->dnnl_halves == NULL)
        return false;
    const int *(*version)(void) = NULL;
    *(void **)&version = dlsym(lib, "dnnl_version");
    if (t->dnnl != NULL && version != NULL)
        printf("oneDNN: %d.%d.%d\n", version()[0], version()[1], version()[2]);
    return t->dnnl != NULL;
}

static void call_dnnl(Turn *t)
{
    const Matmul *m = t->m;
    bool ta = (m->form & TRANSPOSE_A) != 0, tb = (m->form & TRANSPOSE_B) != 0;
    Dnnl call = t->r->halves ? t->dnnl_halves : t->dnnl;
    call(ta ? 'T' : 'N', tb ? 'T' : 'N', m->m, m->n, m->k, 1, t->a, ta ? m->m : m->k, t->b,
         tb ? m->k : m->n, 0, t->c, m->n);
}

static const int64_t probe_rounds = 100000;

static bool open_probe(Turn *t)
{
    lanes_open(t->r, t->r->lanes);
    t->probe = probe_new(t->r, t->r->halves && t->r->mach->dots ? PROBE_DOT : PROBE_FMA);
    return true;
}

static void probe_piece(void *arg, int64_t i, int32_t lane)
{
    (void)i;
    Turn *t = arg;
    t->probe.code(t->c + lane * 1024, t->b, probe_rounds, NULL);
}

static void call_probe(Turn *t)
{
    if (t->r->lanes > 1)
        gradc_pool_parallel_for(t->r->pool, t->r->lanes, probe_piece, t);
    else
        probe_piece(t, 0, 0);
}

enum { GRADC, DNNL, BLAS, PEAK, N_PLAYERS };

/* ---- in its process ------------------------------------------------------------------------ */

/* A question: reps 0 asks for how many take 15 ms. The answer has the same shape. */
typedef struct Ask {
    int64_t shape, reps;
    double seconds, check, size; /* a sum of results, and of their sizes */
    bool here;
} Ask;

/* Gradc's products of halves are halves, other ones are floats. */
static void check_sum(const Turn *t, bool halves, Ask *q)
{
    int64_t n = t->m->m * t->m->n;
    for (int64_t i = 0; i < n; i += 1 + n / 1000) {
        float x = halves ? bf16_to_f32(((uint16_t *)t->c)[i]) : t->c[i];
        double term = x * ((double)(i % 7) - 3);
        q->check += term;
        q->size += fabs(term);
    }
}

/* The threads that a library has started, each on a core of its own. */
static void pin_threads(void)
{
    cpu_set_t all, one;
    DIR *d = opendir("/proc/self/task");
    if (d == NULL || sched_getaffinity(getpid(), sizeof all, &all) != 0)
        return;
    int cpu = 0, n = 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        int task = atoi(e->d_name);
        if (task <= 0)
            continue;
        cpu = n++ == 0 ? 0 : cpu + 1;
        while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET((size_t)cpu, &all))
            cpu++;
        CPU_ZERO(&one);
        CPU_SET((size_t)cpu, &one);
        sched_setaffinity(task, sizeof one, &one);
    }
    closedir(d);
}

static void answer(const Player *p, Turn *t, Ask *q)
{
    double from = seconds_now(t->r);
    if (q->reps > 0) {
        p->call(t); /* its memory is in the caches, as far as it fits */
        from = seconds_now(t->r);
        for (int64_t i = 0; i < q->reps; i++)
            p->call(t);
        q->seconds = (seconds_now(t->r) - from) / (double)q->reps;
        return;
    }
    do {
        p->call(t);
        q->reps++;
    } while (seconds_now(t->r) - from < 0.015);
    check_sum(t, t->r->halves && p->call == call_gradc, q);
}

static void play(const Player *p, Turn *t, const Product *list, int in, int out)
{
    bool here = p->open(t);
    int64_t shape = -1;
    fflush(stdout);
    for (Ask q; read(in, &q, sizeof q) == sizeof q;) {
        q.here = here;
        if (here && q.shape != shape) {
            shape = q.shape;
            t->m = &list[shape].m;
            if (p->take != NULL)
                p->take(t);
            p->call(t);
            if (t->r->lanes > 1 && p->take == NULL && p->call != call_probe)
                pin_threads();
        }
        if (here)
            answer(p, t, &q);
        if (write(out, &q, sizeof q) != sizeof q)
            break;
    }
}

/* Halves in place of floats. */
static void round_all(float *x, int64_t n)
{
    uint16_t *half = (uint16_t *)x;
    for (int64_t i = 0; i < n; i++) { /* what is overwritten has been read */
        float one;
        memcpy(&one, (char *)x + i * 4, sizeof one);
        half[i] = f32_to_bf16(one);
    }
}

static void most_memory(const Product *list, int n, int64_t *a, int64_t *b, int64_t *c)
{
    *a = *b = *c = 1 << 16;
    for (int i = 0; i < n; i++) {
        const Matmul *m = &list[i].m;
        *a = *a > m->m * m->k ? *a : m->m * m->k;
        *b = *b > m->k * m->n ? *b : m->k * m->n;
        *c = *c > m->m * m->n ? *c : m->m * m->n;
    }
}

/* `before`: the players that have been started, whose pipes are not this one's. */
static void start(Rates *r, Player *p, int before, const Product *list, int n)
{
    int to[2], from[2];
    fflush(stdout);
    if (pipe(to) != 0 || pipe(from) != 0 || (p->pid = fork()) < 0) {
        perror("gradc-rates");
        exit(1);
    }
    p->to = to[1];
    p->from = from[0];
    if (p->pid != 0) {
        close(to[0]);
        close(from[1]);
        return;
    }
    close(to[1]);
    close(from[0]);
    for (int i = 1; i <= before; i++) {
        close(p[-i].to);
        close(p[-i].from);
    }
    int64_t a, b, c;
    most_memory(list, n, &a, &b, &c);
    Turn t = {.r = r, .a = memory_filled(a, 1), .b = memory_filled(b, 2)};
    t.c = memory_filled(c, 3);
    if (r->halves) {
        round_all(t.a, a);
        round_all(t.b, b);
    }
    play(p, &t, list, to[0], from[1]);
    _exit(0);
}

/* ---- the table
 * ----------------------------------------------------------------------------------- */

static bool ask(Player *p, Ask *q, int lanes)
{
    if (lanes > 1)
        usleep(35000); /* the threads of whoever was before have gone to sleep */
    return write(p->to, q, sizeof *q) == sizeof *q && read(p->from, q, sizeof *q) == sizeof *q &&
           q->here;
}

/* Sums of logarithms, and the least. */
typedef struct Mean {
    double sum, least;
    int n;
    const char *where;
} Mean;

static void mean_add(Mean *m, double ratio, const char *name)
{
    if (m->n == 0 || ratio < m->least) {
        m->least = ratio;
        m->where = name;
    }
    m->sum += log(ratio);
    m->n++;
}

/* Rates by round of all who are here. */
typedef struct Row {
    double rate[N_PLAYERS][MOST_ROUNDS];
    bool here[N_PLAYERS];
} Row;

static Row measure(Rates *r, Player *p, const Product *x, int64_t shape, int lanes)
{
    Row row = {0};
    double flops = 2.0 * (double)x->m.m * (double)x->m.n * (double)x->m.k;
    double peak = probe_flops(r) * (double)probe_rounds * lanes, check[N_PLAYERS], size = 0;
    int64_t reps[N_PLAYERS];
    for (int i = 0; i < N_PLAYERS; i++) {
        Ask q = {.shape = shape};
        row.here[i] = ask(&p[i], &q, lanes);
        reps[i] = q.reps;
        check[i] = q.check;
        size = i == 0 ? q.size : size;
        double differ = r->halves ? 0x1p-8 * size : 1e-3 * (1 + fabs(check[0]));
        if (row.here[i] && i != PEAK && fabs(check[i] - check[0]) > differ)
            printf("! %s: %s and %s differ\n", x->name, p[i].name, p[0].name);
    }
    for (int round = 0; round < r->rounds; round++)
        for (int k = 0; k < N_PLAYERS; k++) {
            int i = (k + round) % N_PLAYERS;
            Ask q = {.shape = shape, .reps = reps[i]};
            if (row.here[i] && ask(&p[i], &q, lanes))
                row.rate[i][round] = (i == PEAK ? peak : flops) / q.seconds * 1e-9;
        }
    return row;
}

/* Of several threads the quickest round, in which nobody else had one of the cores. */
static double rate_of(const Rates *r, const Row *row, int player)
{
    double x[MOST_ROUNDS];
    memcpy(x, row->rate[player], sizeof x);
    double middle = median(x, r->rounds);
    return r->lanes > 1 ? x[r->rounds - 1] : middle;
}

static double ratio_of(const Rates *r, const Row *row, int over)
{
    double x[MOST_ROUNDS];
    if (r->lanes > 1)
        return rate_of(r, row, GRADC) / rate_of(r, row, over);
    for (int i = 0; i < r->rounds; i++)
        x[i] = row->rate[GRADC][i] / row->rate[over][i];
    return median(x, r->rounds);
}

static void print_row(const Rates *r, const Row *row, const char *name, const double *ratio)
{
    double peak = rate_of(r, row, PEAK), own = rate_of(r, row, GRADC);
    printf("%-28s %7.1f %8.1f %6.2f", name, peak, own, ratio[PEAK]);
    for (int i = DNNL; i <= BLAS; i++)
        if (row->here[i])
            printf(" %8.1f %6.2f", rate_of(r, row, i), ratio[i]);
        else
            printf(" %8s %6s", "-", "-");
    printf("\n");
    fflush(stdout);
}

static void print_mean(const char *what, const Mean *m)
{
    printf("%-28s", what);
    static const int column[] = {PEAK, DNNL, BLAS};
    for (int i = 0; i < 3; i++)
        if (m[column[i]].n > 0)
            printf("%*s%6.3f", i == 0 ? 18 : 10, "", exp(m[column[i]].sum / m[column[i]].n));
    printf("\n");
}

static void compare_all(Rates *r, Player *p, const Product *list, int n, int lanes)
{
    Mean all[N_PLAYERS] = {0}, some[N_PLAYERS] = {0};
    printf("%-28s %7s %8s %6s %8s %6s %8s %6s\n", "product: M x K x N",
           r->halves && r->mach->dots ? "dots" : "FMA", "gradc", "share", "oneDNN", "ratio",
           "OpenBLAS", "ratio");
    for (int s = 0; s < n; s++) {
        if (r->filter != NULL && strstr(list[s].name, r->filter) == NULL)
            continue;
        Row row = measure(r, p, &list[s], s, lanes);
        double ratio[N_PLAYERS];
        for (int i = DNNL; i < N_PLAYERS; i++) {
            ratio[i] = row.here[i] ? ratio_of(r, &row, i) : 0;
            if (row.here[i])
                mean_add(&all[i], ratio[i], list[s].name);
            if (row.here[i] && list[s].forward_data)
                mean_add(&some[i], ratio[i], list[s].name);
        }
        print_row(r, &row, list[s].name, ratio);
    }
    print_mean("geometric mean", all);
    if (some[PEAK].n > 0)
        print_mean("... of fwd and dgrad", some);
    for (int i = DNNL; i <= BLAS; i++)
        if (all[i].n > 0)
            printf("least beside %-15s %.2f (%s)\n", p[i].name, all[i].least, all[i].where);
}

void players_compare(Rates *r, const char *title, const Product *list, int n, int lanes)
{
    Player p[N_PLAYERS] = {
        [GRADC] = {.name = "gradc", .open = open_gradc, .take = take_gradc, .call = call_gradc},
        [DNNL] = {.name = "oneDNN", .open = open_dnnl, .call = call_dnnl},
        [BLAS] = {.name = "OpenBLAS", .open = open_blas, .call = call_blas},
        [PEAK] = {.name = "FMA", .open = open_probe, .call = call_probe},
    };
    r->lanes = lanes;
    printf("\n%s, %d thread%s, %s of %d rounds\n", title, lanes, lanes > 1 ? "s" : "",
           lanes > 1 ? "the quickest" : "medians", r->rounds);
    for (int i = 0; i < N_PLAYERS; i++)
        start(r, &p[i], i, list, n);
    compare_all(r, p, list, n, lanes);
    for (int i = 0; i < N_PLAYERS; i++) {
        close(p[i].to);
        close(p[i].from);
        waitpid(p[i].pid, NULL, 0);
    }
    r->lanes = 1;
}
