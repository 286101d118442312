/* The n-th file operation or allocation fails, for all n, once and from then on: a status, the old
 * file intact, nothing left behind, nothing leaked, and the next call works. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/internal.h"
#include "support/runtime_help.h"

static gradc_error error;
static char *directory;
static Fake *old, *new, *into;
static int injected; /* errno */

static const char *in(const char *name)
{
    return help_path(directory, name);
}

static gradc_checkpoint info_of(int64_t step)
{
    return (gradc_checkpoint){.struct_size = sizeof(gradc_checkpoint), .step = step};
}

static int save_checkpoint(const Fake *f, int64_t step)
{
    gradc_checkpoint info = info_of(step);
    return gradc_checkpoint_save(&fake_model, f, in("run.gck"), &info, 0, &error);
}

/* What is in a checkpoint must be old or new, whole; which of them? */
static bool holds(const char *name, const Fake *f)
{
    Fake *g = fake_new(90);
    gradc_error ignored;
    gradc_tensors *t;
    bool same = false;
    if (gradc_tensors_read(in(name), &t, &ignored) == GRADC_OK) {
        gradc_checkpoint info = info_of(0);
        same = gradc_checkpoint_load(&fake_model, g, in(name), &info, &ignored) == GRADC_OK &&
               info.from_previous == 0 && fake_same(g, f, false);
    }
    gradc_tensors_free(t);
    fake_free(g);
    return same;
}

/* ---- operations, each with its own look at what it left ---- */

static int op_checkpoint_first(void)
{
    return save_checkpoint(new, 2);
}

static void after_first(int status)
{
    bool there = access(in("run.gck"), F_OK) == 0;
    ck_assert(!there || holds("run.gck", new));
    ck_assert(status != GRADC_OK || there);
    ck_assert_int_eq(help_entries(directory), there);
}

static void before_again(void)
{
    ck_assert_int_eq(save_checkpoint(old, 1), GRADC_OK);
}

static void after_again(int status)
{
    gradc_checkpoint info = info_of(0);
    ck_assert_int_eq(gradc_checkpoint_load(&fake_model, into, in("run.gck"), &info, &error),
                     GRADC_OK);
    ck_assert(fake_same(into, old, false) || fake_same(into, new, false));
    if (status == GRADC_OK)
        ck_assert(holds("run.gck", new));
    if (access(in("run.gck.prev"), F_OK) == 0)
        ck_assert(holds("run.gck.prev", old));
    else /* a link that says "no such file" is believed: there was no old one */
        ck_assert(status != GRADC_OK || injected == ENOENT);
    ck_assert_int_le(help_entries(directory), 2);
}

static int op_checkpoint_load(void)
{
    gradc_checkpoint info = info_of(0);
    return gradc_checkpoint_load(&fake_model, into, in("run.gck"), &info, &error);
}

static void before_load(void)
{
    ck_assert_int_eq(save_checkpoint(old, 1), GRADC_OK);
    ck_assert_int_eq(save_checkpoint(old, 1), GRADC_OK);
}

static void after_load(int status)
{
    Fake *untouched = fake_new(3);
    ck_assert(fake_same(into, status == GRADC_OK ? old : untouched, false));
    fake_free(untouched);
}

/* The file is damaged: the one before it is loaded, or nothing. */
static void before_previous(void)
{
    before_load();
    help_write(in("run.gck"), "damaged", 7);
}

static int op_weights_save(void)
{
    return gradc_weights_save(&fake_model, new, in("w"), &error);
}

static void before_weights(void)
{
    ck_assert_int_eq(gradc_weights_save(&fake_model, old, in("w"), &error), GRADC_OK);
}

static void after_weights_save(int status)
{
    ck_assert_int_eq(gradc_weights_load(&fake_model, into, in("w"), 0, &error), GRADC_OK);
    bool is_new = fake_same(into, new, true);
    ck_assert(is_new || (status != GRADC_OK && fake_same(into, old, true)));
    ck_assert_int_eq(help_entries(directory), 1);
}

static int op_weights_load(void)
{
    return gradc_weights_load(&fake_model, into, in("w"), 0, &error);
}

static void after_weights_load(int status)
{
    Fake *untouched = fake_new(3);
    ck_assert(fake_same(into, status == GRADC_OK ? old : untouched, true));
    fake_free(untouched);
}

static int op_cast_load(void)
{
    return gradc_weights_load(&fake_model, into, in("f32"), GRADC_ALLOW_CAST, &error);
}

static void before_cast(void)
{
    float v[12] = {1, 2, 3};
    gradc_named list[] = {
        {.name = "h.0.weight", .dtype = GRADC_F32, .rank = 2, .shape = {3, 4}, .data = v},
        {.name = "h.0.bias", .dtype = GRADC_F32, .rank = 1, .shape = {5}, .data = v},
        {.name = "h.0.scale", .dtype = GRADC_F32, .rank = 1, .shape = {3}, .data = v},
        {.name = "norm.mean", .dtype = GRADC_F32, .rank = 1, .shape = {3}, .data = v},
    };
    gradc_pair pair = {"made", "here"};
    ck_assert_int_eq(gradc_tensors_write(in("f32"), list, 4, &pair, 1, &error), GRADC_OK);
}

static void after_cast(int status)
{
    Fake *untouched = fake_new(3);
    ck_assert(status == GRADC_OK || fake_same(into, untouched, true));
    fake_free(untouched);
}

static int op_tensors_write(void)
{
    gradc_named x = {.name = "x", .dtype = GRADC_U8, .rank = 1, .shape = {4}, .data = "wxyz"};
    gradc_pair pair = {"k", "v"};
    return gradc_tensors_write(in("t"), &x, 1, &pair, 1, &error);
}

static int op_npy(void)
{
    gradc_array a, b = {0};
    int64_t shape[2] = {20, 30};
    int status = gradc_array_make(GRADC_F64, 2, shape, &a, &error);
    if (status == GRADC_OK)
        status = gradc_npy_write(in("a.npy"), &a, &error);
    if (status == GRADC_OK)
        status = gradc_npy_read(in("a.npy"), &b, &error);
    gradc_array_free(&a);
    gradc_array_free(&b);
    return status;
}

static void after_new_file(int status)
{
    ck_assert_int_le(help_entries(directory), 1);
    ck_assert(status != GRADC_OK || help_entries(directory) == 1);
}

static int op_csv_gz(void)
{
    gradc_array a, b = {0}, c = {0};
    int status = gradc_csv_read(in("t.csv.gz"), NULL, &a, &error);
    if (status == GRADC_OK)
        status = gradc_array_columns(&a, 1, -1, &b, &error);
    if (status == GRADC_OK)
        status = gradc_array_cast(&b, GRADC_I32, &c, &error);
    gradc_array_free(&a);
    gradc_array_free(&b);
    gradc_array_free(&c);
    return status;
}

static void before_csv(void)
{
    help_write_gz(in("t.csv.gz"), "a,b\n1,2\n3,4\n", 12);
}

static void after_nothing(int status)
{
    (void)status;
    ck_assert_int_eq(help_entries(directory), 1);
}

static int op_idx(void)
{
    gradc_array a;
    int status = gradc_idx_read(in("i"), &a, &error);
    gradc_array_free(&a);
    return status;
}

static void before_idx(void)
{
    static const uint8_t idx[] = {0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3};
    help_write(in("i"), idx, sizeof idx);
}

/* Everything that is opened: only memory can fail. */
static int op_handles(void)
{
    gradc_array a = {0};
    int64_t shape[1] = {64};
    gradc_pool *pool = NULL;
    gradc_batches *b = NULL;
    gradc_windows *w = NULL;
    gradc_progress *p = NULL;
    FILE *sink = fopen("/dev/null", "w");
    const gradc_array *arrays[] = {&a};
    gradc_batch_options bo = {.struct_size = sizeof bo, .rows = 4};
    gradc_window_options wo = {.struct_size = sizeof wo, .rows = 2, .context = 4};
    gradc_progress_options po = {
        .struct_size = sizeof po, .out = sink, .mode = GRADC_PROGRESS_JSON};
    gradc_progress_values v = {.step = 1, .loss = 2};
    int status = gradc_array_make(GRADC_U8, 1, shape, &a, &error);
    if (status == GRADC_OK)
        status = gradc_pool_open(2, 0, &pool, &error);
    if (status == GRADC_OK)
        status = gradc_batches_open(arrays, 1, &bo, &b, &error);
    if (status == GRADC_OK)
        status = gradc_windows_open(&a, &wo, &w, &error);
    if (status == GRADC_OK)
        status = gradc_progress_open(&po, &p, &error);
    gradc_progress_step(p, &v);
    gradc_progress_say(p, "with no memory nothing is shown");
    gradc_progress_close(p);
    gradc_windows_close(w);
    gradc_batches_close(b);
    gradc_pool_close(pool);
    gradc_array_free(&a);
    fclose(sink);
    return status;
}

static void after_handles(int status)
{
    (void)status;
}

typedef struct Operation {
    const char *name;
    void (*before)(void);
    int (*run)(void);
    void (*after)(int status);
} Operation;

static const Operation operations[] = {
    {"first checkpoint", NULL, op_checkpoint_first, after_first},
    {"checkpoint over another", before_again, op_checkpoint_first, after_again},
    {"load checkpoint", before_load, op_checkpoint_load, after_load},
    {"load the checkpoint before", before_previous, op_checkpoint_load, after_load},
    {"save weights", before_weights, op_weights_save, after_weights_save},
    {"load weights", before_weights, op_weights_load, after_weights_load},
    {"load weights with casts", before_cast, op_cast_load, after_cast},
    {"write tensors", NULL, op_tensors_write, after_new_file},
    {"npy", NULL, op_npy, after_new_file},
    {"csv.gz", before_csv, op_csv_gz, after_nothing},
    {"idx", before_idx, op_idx, after_nothing},
    {"handles", NULL, op_handles, after_handles},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0], MOST = 5000 };

static void begin(const Operation *o)
{
    directory = help_directory();
    old = fake_new(1);
    new = fake_new(2);
    into = fake_new(3);
    if (o->before != NULL)
        o->before();
}

static void end(void)
{
    fake_free(old);
    fake_free(new);
    fake_free(into);
    help_remove(directory);
}

/* One run with a fault; false when the n-th operation is not reached any more. */
static bool trial(const Operation *o, bool memory, int n, int code, bool always)
{
    begin(o);
    injected = code;
    if (memory)
        fault_memory(n, always);
    else
        fault_files(n, code, always);
    int status = o->run();
    bool reached = fault_end();
    if (!reached)
        ck_assert_msg(status == GRADC_OK, "%s without a fault: %s", o->name, error.text);
    if (status != GRADC_OK)
        ck_assert_msg(error.text[0] != '\0' && error.status == status, "%s: no message", o->name);
    ck_assert_msg(fault_live() == 0, "%s, %d, always %d: %d blocks leaked", o->name, n, always,
                  fault_live());
    ck_assert_msg(fault_open() == 0, "%s, %d: a file is still open", o->name, n);
    if (memory && reached && always && o->run != op_handles) /* a line not shown is no error */
        ck_assert_msg(status == GRADC_MEMORY, "%s: %d: %s", o->name, n, error.text);
    o->after(status);
    end();
    return reached;
}

START_TEST(nth_file_operation)
{
    static const int codes[] = {EIO, ENOSPC, EACCES, EROFS, EDQUOT, EINTR, ENOENT, EPERM};
    const Operation *o = &operations[_i];
    int points = 0;
    for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++)
        for (int always = 0; always < 2; always++) {
            if (codes[k] == EINTR && always)
                continue; /* interrupted for ever is not failed */
            int n = 1;
            while (n < MOST && trial(o, false, n, codes[k], always))
                n++;
            ck_assert_int_lt(n, MOST);
            points += n - 1;
        }
    if (strcmp(o->name, "handles") != 0)
        ck_assert_int_gt(points, 20);
}
END_TEST

START_TEST(nth_allocation)
{
    const Operation *o = &operations[_i];
    for (int always = 0; always < 2; always++) {
        int n = 1;
        while (n < MOST && trial(o, true, n, 0, always))
            n++;
        ck_assert_int_lt(n, MOST);
        ck_assert_int_gt(n, 2);
    }
}
END_TEST

Suite *suite_runtime_faults(void);

Suite *suite_runtime_faults(void)
{
    Suite *s = suite_create("runtime_faults");
    TCase *c = tcase_create("faults");
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, nth_file_operation, 0, OPERATIONS);
    tcase_add_loop_test(c, nth_allocation, 0, OPERATIONS);
    suite_add_tcase(s, c);
    return s;
}
