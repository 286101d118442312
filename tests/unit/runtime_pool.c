/* The thread pool at 1, 2, 3 and 8 lanes. */
#define _GNU_SOURCE 1
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/gradc.h"

static const int32_t lanes_of[] = {1, 2, 3, 8};
enum { CASES = sizeof lanes_of / sizeof lanes_of[0] };

typedef struct Job {
    int64_t count;
    int32_t lanes;
    int32_t *seen;        /* by index: plain memory, so that the sanitizer sees a race */
    atomic_int inside[8]; /* by lane */
    atomic_int bad;
    gradc_pool *pool;
} Job;

static void mark(void *arg, int64_t i, int32_t lane)
{
    Job *j = arg;
    if (i < 0 || i >= j->count || lane < 0 || lane >= j->lanes) {
        atomic_fetch_add(&j->bad, 1);
        return;
    }
    if (atomic_fetch_add(&j->inside[lane], 1) != 0)
        atomic_fetch_add(&j->bad, 1);
    j->seen[i]++;
    atomic_fetch_sub(&j->inside[lane], 1);
}

static gradc_pool *open_pool(int32_t lanes, uint32_t flags)
{
    gradc_pool *p = NULL;
    gradc_error e;
    ck_assert_msg(gradc_pool_open(lanes, flags, &p, &e) == GRADC_OK, "%s", e.text);
    return p;
}

static void run_counts(gradc_pool *p, int32_t lanes)
{
    static const int64_t counts[] = {0, -5, 1, 2, 3, 7, 8, 9, 64, 1000, 4097};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        Job j = {.count = counts[k], .lanes = lanes};
        j.seen = calloc(5000, sizeof *j.seen);
        gradc_pool_parallel_for(p, counts[k], mark, &j);
        ck_assert_int_eq(atomic_load(&j.bad), 0);
        for (int64_t i = 0; i < counts[k]; i++)
            ck_assert_int_eq(j.seen[i], 1);
        free(j.seen);
    }
}

START_TEST(every_index_runs_once)
{
    static const uint32_t flags[] = {0, GRADC_POOL_SLEEPY, GRADC_POOL_FLOATING};
    int32_t lanes = lanes_of[_i % CASES];
    gradc_pool *p = open_pool(lanes, flags[_i / CASES]);
    ck_assert_int_eq(gradc_pool_lanes(p), lanes);
    for (int round = 0; round < 20; round++)
        run_counts(p, lanes);
    gradc_pool_close(p);
}
END_TEST

static void add(void *arg, int64_t i, int32_t lane)
{
    (void)lane;
    int64_t *sum = arg;
    sum[i] += i + 1;
}

typedef struct Start {
    int32_t lanes;
    int64_t first[8]; /* index that each lane begins with; -1: none yet */
    atomic_int begun;
} Start;

/* Until all have begun nobody takes a second index. */
static void begin(void *arg, int64_t i, int32_t lane)
{
    Start *s = arg;
    if (s->first[lane] >= 0)
        return;
    s->first[lane] = i;
    atomic_fetch_add(&s->begun, 1);
    while (atomic_load(&s->begun) < s->lanes)
        sched_yield();
}

START_TEST(lanes_begin_with_their_own_share)
{
    int32_t lanes = lanes_of[_i];
    gradc_pool *p = open_pool(lanes, 0);
    for (int64_t more = 0; more < lanes; more++) {
        Start s = {.lanes = lanes};
        memset(s.first, 0xff, sizeof s.first);
        gradc_pool_parallel_for(p, 20 * lanes + more, begin, &s);
        for (int64_t i = 0; i < lanes; i++)
            ck_assert_int_eq(s.first[i], 20 * i + (i < more ? i : more));
    }
    gradc_pool_close(p);
}
END_TEST

/* Each job reads what the one before wrote, on other lanes. */
START_TEST(jobs_follow_one_another)
{
    enum { N = 16, JOBS = 20000 };
    gradc_pool *p = open_pool(lanes_of[_i], 0);
    int64_t sum[N] = {0};
    for (int k = 0; k < JOBS; k++)
        gradc_pool_parallel_for(p, N, add, sum);
    for (int64_t i = 0; i < N; i++)
        ck_assert_int_eq(sum[i], (i + 1) * JOBS);
    gradc_pool_close(p);
}
END_TEST

/* Jobs that come after the workers fell asleep. */
START_TEST(sleepers_wake)
{
    gradc_pool *p = open_pool(lanes_of[_i], 0);
    int64_t sum[64] = {0};
    for (int k = 0; k < 20; k++) {
        usleep(3000);
        gradc_pool_parallel_for(p, 64, add, sum);
    }
    for (int64_t i = 0; i < 64; i++)
        ck_assert_int_eq(sum[i], (i + 1) * 20);
    gradc_pool_close(p);
}
END_TEST

static void nested(void *arg, int64_t i, int32_t lane)
{
    Job *j = arg;
    Job inner = {.count = 10, .lanes = 1};
    int32_t seen[10] = {0};
    inner.seen = seen;
    gradc_pool_parallel_for(j->pool, 10, mark, &inner);
    for (int k = 0; k < 10; k++)
        if (seen[k] != 1)
            atomic_fetch_add(&j->bad, 1);
    mark(j, i, lane);
}

START_TEST(nested_use_is_serial)
{
    gradc_pool *p = open_pool(lanes_of[_i], 0);
    int32_t seen[40] = {0};
    Job j = {.count = 40, .lanes = lanes_of[_i], .seen = seen, .pool = p};
    gradc_pool_parallel_for(p, 40, nested, &j);
    ck_assert_int_eq(atomic_load(&j.bad), 0);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(seen[i], 1);
    gradc_pool_close(p);
}
END_TEST

static void *other_thread(void *arg)
{
    gradc_pool *p = arg;
    int64_t *sum = calloc(32, sizeof *sum);
    for (int k = 0; k < 2000; k++)
        gradc_pool_parallel_for(p, 32, add, sum);
    return sum;
}

START_TEST(several_threads_share_a_pool)
{
    enum { THREADS = 4 };
    gradc_pool *p = open_pool(lanes_of[_i], 0);
    pthread_t t[THREADS];
    for (int k = 0; k < THREADS; k++)
        ck_assert_int_eq(pthread_create(&t[k], NULL, other_thread, p), 0);
    for (int k = 0; k < THREADS; k++) {
        void *result;
        pthread_join(t[k], &result);
        for (int64_t i = 0; i < 32; i++)
            ck_assert_int_eq(((int64_t *)result)[i], (i + 1) * 2000);
        free(result);
    }
    gradc_pool_close(p);
}
END_TEST

START_TEST(a_child_works_alone)
{
    gradc_pool *p = open_pool(lanes_of[_i], 0);
    int64_t sum[32] = {0};
    gradc_pool_parallel_for(p, 32, add, sum);
    pid_t child = fork();
    if (child == 0) {
        gradc_pool_parallel_for(p, 32, add, sum);
        bool right = true;
        for (int64_t i = 0; i < 32; i++)
            right = right && sum[i] == 2 * (i + 1);
        gradc_pool_close(p);
        _exit(right ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    gradc_pool_parallel_for(p, 32, add, sum); /* the parent's pool is whole */
    ck_assert_int_eq(sum[31], 64);
    gradc_pool_close(p);
}
END_TEST

/* As in a container with one core: more lanes than cores, nothing pinned, nobody spins. */
START_TEST(one_core_is_enough)
{
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)sched_getcpu(), &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0)
            _exit(2);
        gradc_pool *p = open_pool(0, 0);
        if (gradc_pool_lanes(p) != 1)
            _exit(3);
        gradc_pool_close(p);
        p = open_pool(3, 0);
        run_counts(p, 3);
        gradc_pool_close(p);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

static void note_affinity(void *arg, int64_t i, int32_t lane)
{
    cpu_set_t set;
    int *cores = arg;
    (void)i;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cores[lane] = CPU_COUNT(&set);
    usleep(200);
}

START_TEST(workers_are_pinned_and_the_caller_is_not)
{
    cpu_set_t before, after;
    int cores[2] = {0};
    sched_getaffinity(0, sizeof before, &before);
    if (CPU_COUNT(&before) < 2)
        return;
    gradc_pool *p = open_pool(2, 0);
    for (int k = 0; k < 50 && cores[1] == 0; k++)
        gradc_pool_parallel_for(p, 32, note_affinity, cores);
    ck_assert_int_eq(cores[1], 1);
    ck_assert_int_eq(cores[0], CPU_COUNT(&before));
    gradc_pool_close(p);
    sched_getaffinity(0, sizeof after, &after);
    ck_assert(CPU_EQUAL(&before, &after));
}
END_TEST

/* Sanitizers need more address space than this test leaves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED
START_TEST(too_few_threads_to_be_had)
{
    pid_t child = fork();
    if (child == 0) {
        gradc_pool *p;
        gradc_error e;
        struct rlimit most = {256 << 20, 256 << 20}; /* 255 stacks of 1 MiB and more do not fit */
        setrlimit(RLIMIT_AS, &most);
        int status = gradc_pool_open(GRADC_MAX_LANES, 0, &p, &e);
        _exit(status == GRADC_MEMORY && p == NULL && strstr(e.text, "of 255 threads") ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST
#endif

START_TEST(limits_and_options)
{
    gradc_error e;
    gradc_pool *p = (gradc_pool *)&e;
    ck_assert_int_eq(gradc_pool_open(GRADC_MAX_LANES + 1, 0, &p, &e), GRADC_BAD_ARGUMENT);
    ck_assert_ptr_null(p);
    ck_assert_ptr_nonnull(strstr(e.text, "257"));
    ck_assert_int_eq(gradc_pool_open(-1, 0, &p, NULL), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_pool_open(2, 0, NULL, &e), GRADC_BAD_ARGUMENT);
    p = open_pool(GRADC_MAX_LANES, 0);
    int64_t sum[8] = {0};
    gradc_pool_parallel_for(p, 8, add, sum);
    ck_assert_int_eq(sum[7], 8);
    gradc_options o = {.struct_size = sizeof o};
    gradc_pool_use(p, &o);
    ck_assert_int_eq(o.threads, GRADC_MAX_LANES);
    ck_assert(o.parallel_for == gradc_pool_parallel_for && o.context == p);
    gradc_pool_use(NULL, &o);
    ck_assert(o.threads == 1 && o.parallel_for == NULL);
    gradc_pool_close(p);
    gradc_pool_close(NULL);
    memset(sum, 0, sizeof sum);
    gradc_pool_parallel_for(NULL, 8, add, sum);
    ck_assert_int_eq(sum[7], 8);
}
END_TEST

Suite *suite_runtime_pool(void);

Suite *suite_runtime_pool(void)
{
    Suite *s = suite_create("runtime_pool");
    TCase *c = tcase_create("pool");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, every_index_runs_once, 0, 3 * CASES);
    tcase_add_loop_test(c, lanes_begin_with_their_own_share, 0, CASES);
    tcase_add_loop_test(c, jobs_follow_one_another, 0, CASES);
    tcase_add_loop_test(c, sleepers_wake, 0, CASES);
    tcase_add_loop_test(c, nested_use_is_serial, 0, CASES);
    tcase_add_loop_test(c, several_threads_share_a_pool, 0, CASES);
    tcase_add_loop_test(c, a_child_works_alone, 0, CASES);
    tcase_add_test(c, one_core_is_enough);
    tcase_add_test(c, workers_are_pinned_and_the_caller_is_not);
#ifndef SANITIZED
    tcase_add_test(c, too_few_threads_to_be_had);
#endif
    tcase_add_test(c, limits_and_options);
    suite_add_tcase(s, c);
    return s;
}
