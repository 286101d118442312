/* Weights and checkpoints of a model: what they hold, what is refused, what survives a kill. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/hooks.h"
#include "runtime/safetensors.h"
#include "support/runtime_help.h"

static gradc_error error;

static gradc_checkpoint info_of(int64_t step)
{
    return (gradc_checkpoint){.struct_size = sizeof(gradc_checkpoint),
                              .step = step,
                              .seed = UINT64_MAX,
                              .position = {.seed = 7, .epoch = 3, .row = step * 2}};
}

static int save(const char *path, const Fake *f, int64_t step)
{
    gradc_checkpoint info = info_of(step);
    return gradc_checkpoint_save(&fake_model, f, path, &info, 0, &error);
}

static int load(const char *path, Fake *f, gradc_checkpoint *info)
{
    *info = info_of(-1);
    return gradc_checkpoint_load(&fake_model, f, path, info, &error);
}

static void must_save(const char *path, const Fake *f, int64_t step)
{
    ck_assert_msg(save(path, f, step) == GRADC_OK, "%s", error.text);
}

static void must_load(const char *path, const Fake *want, int64_t step, bool previous)
{
    gradc_checkpoint info;
    Fake *f = fake_new(99);
    ck_assert_msg(load(path, f, &info) == GRADC_OK, "%s", error.text);
    ck_assert(fake_same(f, want, false));
    ck_assert_int_eq(info.step, step);
    ck_assert_int_eq(info.from_previous, previous);
    ck_assert_int_eq(error.status, GRADC_OK);
    ck_assert_int_eq(error.text[0] != '\0', previous);
    fake_free(f);
}

/* ---- weights ---- */

START_TEST(weights_round_trip)
{
    char *d = help_directory();
    const char *path = help_path(d, "w.safetensors");
    Fake *a = fake_new(1), *b = fake_new(2), *c = fake_new(2);
    ck_assert_msg(gradc_weights_save(&fake_model, a, path, &error) == GRADC_OK, "%s", error.text);
    ck_assert_msg(gradc_weights_load(&fake_model, b, path, 0, &error) == GRADC_OK, "%s",
                  error.text);
    ck_assert(fake_same(a, b, true) && !fake_same(a, b, false)); /* no counters, no moments */
    ck_assert(b->value[4][0] == c->value[4][0]);
    gradc_tensors *t;
    ck_assert_int_eq(gradc_tensors_read(path, &t, &error), GRADC_OK);
    ck_assert_int_eq(gradc_tensors_count(t), 4);
    ck_assert_str_eq(gradc_tensors_value(t, "gradc.model"), "fake");
    ck_assert_str_eq(gradc_tensors_value(t, "gradc.hash"), fake_model.hash);
    gradc_tensors_free(t);
    must_save(help_path(d, "c.gck"), a, 5); /* the weights of a checkpoint */
    ck_assert_int_eq(gradc_weights_load(&fake_model, c, help_path(d, "c.gck"), 0, &error),
                     GRADC_OK);
    ck_assert(fake_same(a, c, true) && !fake_same(a, c, false));
    gradc_checkpoint info;
    ck_assert_int_eq(load(path, b, &info), GRADC_FORMAT); /* weights are no checkpoint */
    ck_assert_ptr_nonnull(strstr(error.text, "no checkpoint"));
    fake_free(a);
    fake_free(b);
    fake_free(c);
    help_remove(d);
}
END_TEST

static gradc_named tensor(const char *name, int32_t dtype, const void *data, int32_t rank,
                          int64_t a, int64_t b)
{
    return (gradc_named){.name = name, .dtype = dtype, .rank = rank, .shape = {a, b}, .data = data};
}

START_TEST(everything_that_does_not_fit_is_said_at_once)
{
    char *d = help_directory();
    const char *path = help_path(d, "w.safetensors");
    float v[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    gradc_named list[] = {
        tensor("h.0.weight", GRADC_F32, v, 2, 4, 3), tensor("h.0.bias", GRADC_F32, v, 1, 5, 0),
        tensor("extra.1", GRADC_U8, v, 1, 1, 0),     tensor("extra.2", GRADC_U8, v, 1, 1, 0),
        tensor("norm.mean", GRADC_F32, v, 1, 3, 0),
    };
    Fake *a = fake_new(1), *b = fake_new(1);
    ck_assert_int_eq(gradc_tensors_write(path, list, 5, NULL, 0, &error), GRADC_OK);
    ck_assert_int_eq(gradc_weights_load(&fake_model, a, path, 0, &error), GRADC_MISMATCH);
    static const char *const says[] = {"lacks 'h.0.scale'",
                                       "'h.0.weight' (f32[4,3] in the file",
                                       "f32[3,4] in the model",
                                       "'h.0.bias' (f32[5]",
                                       "f16[5]",
                                       "model lacks 'extra.1', 'extra.2'"};
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++)
        ck_assert_msg(strstr(error.text, says[i]) != NULL, "%s: %s", says[i], error.text);
    ck_assert(fake_same(a, b, false)); /* nothing was loaded */
    uint32_t allow = GRADC_ALLOW_EXTRA | GRADC_ALLOW_MISSING | GRADC_ALLOW_CAST;
    ck_assert_int_eq(gradc_weights_load(&fake_model, a, path, allow, &error), GRADC_MISMATCH);
    ck_assert_ptr_null(strstr(error.text, "extra"));
    ck_assert_ptr_null(strstr(error.text, "bias"));
    list[0].shape[0] = 3;
    list[0].shape[1] = 4;
    ck_assert_int_eq(gradc_tensors_write(path, list, 5, NULL, 0, &error), GRADC_OK);
    ck_assert_msg(gradc_weights_load(&fake_model, a, path, allow, &error) == GRADC_OK, "%s",
                  error.text);
    uint16_t half[5] = {0x3C00, 0x4000, 0x4200, 0x4400, 0x4500};
    ck_assert(memcmp(a->value[0], v, 48) == 0 && memcmp(a->value[1], half, 10) == 0);
    ck_assert(memcmp(a->value[2], b->value[2], 6) == 0); /* the missing one keeps its value */
    fake_free(a);
    fake_free(b);
    help_remove(d);
}
END_TEST

/* Twelve missing, twelve extra: five of each are named. */
START_TEST(long_reports_are_cut)
{
    char *d = help_directory(), names[12][200];
    const char *path = help_path(d, "w");
    gradc_tensor list[12];
    gradc_named extra[12];
    gradc_model m = fake_model;
    Fake *f = fake_new(1);
    for (int i = 0; i < 12; i++) {
        memset(names[i], 'a' + i, 199);
        names[i][199] = '\0';
        list[i] = fake_model.tensors[0];
        list[i].name = names[i];
        extra[i] = (gradc_named){.name = names[i] + 1, .rank = 1};
    }
    m.tensors = list;
    m.n_tensors = 12;
    ck_assert_int_eq(gradc_tensors_write(path, extra, 12, NULL, 0, &error), GRADC_OK);
    ck_assert_int_eq(gradc_weights_load(&m, f, path, 0, &error), GRADC_MISMATCH);
    ck_assert_ptr_nonnull(strstr(error.text, "the file lacks 'aaa"));
    ck_assert_ptr_nonnull(strstr(error.text, "and 7 more"));
    fake_free(f);
    help_remove(d);
}
END_TEST

/* A sealed file with metadata of our choice, and no tensors. */
static void write_sealed(const char *path, const gradc_pair *pairs, int64_t n)
{
    Layout l = {.pairs = pairs, .n_pairs = n};
    ck_assert_msg(gr_layout_make(&l, &error) == GRADC_OK, "%s", error.text);
    gr_layout_seal(&l);
    help_write(path, l.head.bytes, l.head.n);
    gr_layout_free(&l);
}

/* Whole files with right checksums that do not say what a checkpoint must. */
START_TEST(checkpoints_that_say_too_little)
{
    static const gradc_pair all[] = {
        {GR_HEADER_CRC, "00000000"}, {GR_KIND, "checkpoint"}, {GR_FORMAT, "1"},
        {"gradc.model", "fake"},     {"gradc.hash", "0"},     {"gradc.version", "0"},
        {"gradc.step", "1"},         {"gradc.seed", "1"},     {"gradc.data.seed", "1"},
        {"gradc.data.epoch", "-1"},  {"gradc.data.row", "1"},
    };
    static const char *const bad[] = {"", "x", "1x", "99999999999999999999", " 1", "2.0"};
    enum { N = sizeof all / sizeof all[0] };
    char *d = help_directory();
    const char *path = help_path(d, "x");
    gradc_checkpoint info = info_of(0);
    gradc_pair some[N];
    write_sealed(path, all, N);
    ck_assert_msg(gradc_checkpoint_peek(path, &info, &error) == GRADC_OK, "%s", error.text);
    ck_assert_int_eq(info.position.epoch, -1);
    for (int without = 1; without < N; without++) {
        int n = 0;
        for (int i = 0; i < N; i++)
            if (i != without)
                some[n++] = all[i];
        write_sealed(path, some, n);
        ck_assert_int_eq(gradc_checkpoint_peek(path, &info, &error), GRADC_FORMAT);
    }
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        for (int i = 1; i < N; i++) {
            if (i >= 3 && i <= 5)
                continue; /* free text */
            memcpy(some, all, sizeof all);
            some[i].value = bad[k];
            write_sealed(path, some, N);
            ck_assert_int_eq(gradc_checkpoint_peek(path, &info, &error), GRADC_FORMAT);
        }
    memcpy(some, all, sizeof all);
    some[2].value = "2";
    write_sealed(path, some, N);
    ck_assert_int_eq(gradc_checkpoint_peek(path, &info, &error), GRADC_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.text, "format 1"));
    help_remove(d);
}
END_TEST

START_TEST(models_are_checked)
{
    Fake *f = fake_new(1);
    gradc_model m = fake_model;
    gradc_checkpoint info = info_of(1);
    ck_assert_int_eq(gradc_weights_load(NULL, f, "x", 0, &error), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_weights_load(&m, NULL, "x", 0, &error), GRADC_BAD_ARGUMENT);
    m.abi = GRADC_ABI + 1;
    ck_assert_int_eq(gradc_weights_save(&m, f, "x", &error), GRADC_BAD_ABI);
    ck_assert_ptr_nonnull(strstr(error.text, "ABI 2"));
    m = fake_model;
    m.struct_size = 16;
    ck_assert_int_eq(gradc_checkpoint_save(&m, f, "x", &info, 0, &error), GRADC_BAD_ABI);
    for (int part = 0; part < 8; part++) {
        m = fake_model;
        m.name = part == 0 ? NULL : m.name;
        m.hash = part == 1 ? NULL : m.hash;
        m.version = part == 2 ? NULL : m.version;
        m.read = part == 3 ? NULL : m.read;
        m.write = part == 4 ? NULL : m.write;
        m.error = part == 5 ? NULL : m.error;
        m.tensors = part == 6 ? NULL : m.tensors;
        m.n_tensors = part == 7 ? -1 : m.n_tensors;
        ck_assert_int_eq(gradc_checkpoint_load(&m, f, "x", &info, &error), GRADC_BAD_ARGUMENT);
    }
    gradc_tensor list[FAKE_TENSORS];
    memcpy(list, fake_model.tensors, sizeof list);
    list[2].bytes++;
    m = fake_model;
    m.tensors = list;
    ck_assert_int_eq(gradc_weights_save(&m, f, "x", &error), GRADC_BAD_ARGUMENT);
    list[2].bytes--;
    list[2].rank = 9;
    ck_assert_int_eq(gradc_weights_save(&m, f, "x", &error), GRADC_BAD_ARGUMENT);
    list[2].rank = -1;
    ck_assert_int_eq(gradc_weights_load(&m, f, "/none", 0, &error), GRADC_IO);
    list[2].rank = 1;
    list[2].name = NULL;
    ck_assert_int_eq(gradc_weights_save(&m, f, "x", &error), GRADC_BAD_ARGUMENT);
    list[2].name = list[1].name; /* twice */
    ck_assert_int_eq(gradc_weights_save(&m, f, "x", &error), GRADC_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "two tensors"));
    ck_assert_int_eq(gradc_checkpoint_save(&fake_model, f, "x", NULL, 0, &error),
                     GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_checkpoint_save(&fake_model, f, NULL, &info, 0, &error),
                     GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_checkpoint_load(&fake_model, f, NULL, &info, &error),
                     GRADC_BAD_ARGUMENT);
    info.struct_size--;
    ck_assert_int_eq(gradc_checkpoint_peek("x", &info, &error), GRADC_BAD_ABI);
    f->broken = true;
    char *d = help_directory();
    ck_assert_int_eq(gradc_weights_save(&fake_model, f, help_path(d, "x"), &error),
                     GRADC_BAD_STATE);
    ck_assert_ptr_nonnull(strstr(error.text, "in use"));
    f->broken = false;
    ck_assert_int_eq(gradc_weights_save(&fake_model, f, help_path(d, "w"), &error), GRADC_OK);
    f->read_only = true;
    ck_assert_int_eq(gradc_weights_load(&fake_model, f, help_path(d, "w"), 0, &error),
                     GRADC_BAD_STATE);
    ck_assert_ptr_nonnull(strstr(error.text, "cannot put 'h.0.weight'"));
    ck_assert_int_eq(unlink(help_path(d, "w")), 0);
    f->read_only = false;
    f->reads = 0;
    f->change_at = 6; /* 4 tensors: the second pass meets other bytes */
    ck_assert_int_eq(gradc_weights_save(&fake_model, f, help_path(d, "x"), &error),
                     GRADC_BAD_STATE);
    ck_assert_ptr_nonnull(strstr(error.text, "changed while"));
    ck_assert_int_eq(help_entries(d), 0);
    help_remove(d);
    fake_free(f);
}
END_TEST

/* ---- checkpoints ---- */

START_TEST(checkpoint_round_trip)
{
    char *d = help_directory();
    const char *path = help_path(d, "run.gck");
    Fake *a = fake_new(1), *b = fake_new(2);
    must_save(path, a, 10);
    must_load(path, a, 10, false);
    gradc_checkpoint info = info_of(0);
    ck_assert_int_eq(gradc_checkpoint_peek(path, &info, &error), GRADC_OK);
    ck_assert(info.step == 10 && info.seed == UINT64_MAX && info.format == 1);
    ck_assert(info.position.seed == 7 && info.position.epoch == 3 && info.position.row == 20);
    ck_assert_str_eq(info.model, "fake");
    ck_assert_str_eq(info.hash, fake_model.hash);
    ck_assert_str_eq(info.version, "0.1.0");
    must_save(path, b, 11);
    must_load(path, b, 11, false);
    must_load(help_path(d, "run.gck.prev"), a, 10, false);
    ck_assert_int_eq(help_entries(d), 2);
    must_save(path, a, 12);
    must_load(help_path(d, "run.gck.prev"), b, 11, false);
    ck_assert_int_eq(help_entries(d), 2);
    fake_free(a);
    fake_free(b);
    help_remove(d);
}
END_TEST

START_TEST(a_damaged_file_gives_way_to_the_one_before)
{
    char *d = help_directory();
    const char *path = help_path(d, "run.gck"), *previous = help_path(d, "run.gck.prev");
    Fake *a = fake_new(1), *b = fake_new(2), *c = fake_new(3);
    gradc_checkpoint info;
    must_save(path, a, 1);
    must_save(path, b, 2);
    help_write(path, "nonsense, and too long for a length", 30);
    must_load(path, a, 1, true);
    ck_assert_ptr_nonnull(strstr(error.text, "run.gck.prev, because"));
    ck_assert_int_eq(unlink(path), 0);
    must_load(path, a, 1, true);
    ck_assert_ptr_nonnull(strstr(error.text, "No such file"));
    help_write(previous, "", 0);
    ck_assert_int_eq(load(path, c, &info), GRADC_IO);
    ck_assert_ptr_nonnull(strstr(error.text, "; and "));
    ck_assert_ptr_nonnull(strstr(error.text, "too few"));
    ck_assert_int_eq(unlink(previous), 0);
    ck_assert_int_eq(load(path, c, &info), GRADC_IO);
    ck_assert_int_eq(info.step, -1);
    fake_free(a);
    fake_free(b);
    fake_free(c);
    help_remove(d);
}
END_TEST

START_TEST(another_model_is_refused)
{
    char *d = help_directory();
    const char *path = help_path(d, "run.gck");
    Fake *a = fake_new(1), *b = fake_new(2), *same = fake_new(2);
    gradc_checkpoint info = info_of(0);
    must_save(path, a, 1);
    must_save(path, a, 2); /* there is a .prev, and it is not looked at */
    ck_assert_int_eq(gradc_checkpoint_load(&fake_other_hash, b, path, &info, &error),
                     GRADC_MISMATCH);
    ck_assert_ptr_nonnull(strstr(error.text, "hash"));
    ck_assert_int_eq(gradc_checkpoint_load(&fake_other_shapes, b, path, &info, &error),
                     GRADC_MISMATCH);
    ck_assert_int_eq(gradc_checkpoint_load(&fake_other_names, b, path, &info, &error),
                     GRADC_MISMATCH);
    ck_assert_ptr_nonnull(strstr(error.text, "lacks 'encoder.weight'"));
    ck_assert(fake_same(b, same, false));
    fake_free(a);
    fake_free(b);
    fake_free(same);
    help_remove(d);
}
END_TEST

START_TEST(nonfinite_state_is_not_saved)
{
    static const int tensors[] = {0, 3, 1, 2, 6}; /* 5 is a scalar: NaN is its own */
    char *d = help_directory();
    const char *path = help_path(d, "run.gck");
    Fake *good = fake_new(1), *a = fake_new(2);
    must_save(path, good, 1);
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        uint8_t saved[8], *p = a->value[tensors[i]];
        size_t size = (size_t)fake_model.tensors[tensors[i]].bytes < 8 ? 2 : 8;
        double infinite = -INFINITY;
        uint16_t half = tensors[i] == 1 ? 0x7C00 : 0x7FC0;
        float nan = NAN;
        memcpy(saved, p, size);
        if (tensors[i] == 6)
            memcpy(p, &infinite, 8);
        else if (tensors[i] == 1 || tensors[i] == 2)
            memcpy(p, &half, 2);
        else
            memcpy(p, &nan, 4);
        ck_assert_int_eq(save(path, a, 2), GRADC_NONFINITE);
        ck_assert_int_eq(error.position, 0);
        ck_assert_ptr_nonnull(strstr(error.text, fake_model.tensors[tensors[i]].name));
        must_load(path, good, 1, false);
        ck_assert_int_eq(help_entries(d), 1);
        memcpy(p, saved, size);
    }
    fake_floats(a, 0)[3] = NAN;
    gradc_checkpoint info = info_of(3);
    ck_assert_int_eq(
        gradc_checkpoint_save(&fake_model, a, path, &info, GRADC_ALLOW_NONFINITE, &error),
        GRADC_OK);
    must_load(path, a, 3, false);
    fake_free(a);
    fake_free(good);
    help_remove(d);
}
END_TEST

/* Of both kinds of sealed files: cut at every length, every bit of the header and of the data. */
START_TEST(every_truncation_and_every_flip_is_refused)
{
    char *d = help_directory();
    const char *path = help_path(d, "x");
    Fake *a = fake_new(1), *b = fake_new(2), *same = fake_new(2);
    int64_t n;
    gradc_checkpoint info;
    if (_i == 0)
        must_save(path, a, 1);
    else
        ck_assert_int_eq(gradc_weights_save(&fake_model, a, path, &error), GRADC_OK);
    uint8_t *bytes = help_read(path, &n);
    for (int64_t cut = 0; cut < n; cut++) {
        gradc_tensors *t;
        ck_assert_int_eq(gradc_tensors_parse("cut", bytes, (size_t)cut, &t, &error), GRADC_FORMAT);
        ck_assert(error.text[0] != '\0');
    }
    for (int64_t bit = 0; bit < 8 * n; bit++) {
        gradc_tensors *t;
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int status = gradc_tensors_parse("flip", bytes, (size_t)n, &t, &error);
        ck_assert_msg(status == GRADC_FORMAT && error.text[0] != '\0', "bit %lld of byte %lld",
                      (long long)(bit % 8), (long long)(bit / 8));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (int64_t cut = 0; cut < n; cut += 97) { /* the same from disk, by the loaders */
        help_write(path, bytes, cut);
        ck_assert_int_eq(load(path, b, &info), GRADC_FORMAT);
        ck_assert_int_eq(gradc_weights_load(&fake_model, b, path, 0, &error), GRADC_FORMAT);
    }
    ck_assert(fake_same(b, same, false));
    free(bytes);
    fake_free(a);
    fake_free(b);
    fake_free(same);
    help_remove(d);
}
END_TEST

/* ---- the file system ---- */

START_TEST(modes_and_links)
{
    char *d = help_directory();
    const char *path = help_path(d, "run.gck"), *other = help_path(d, "other");
    Fake *a = fake_new(1);
    struct stat st;
    mode_t old = umask(027);
    must_save(path, a, 1);
    ck_assert(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640);
    ck_assert_int_eq(chmod(path, 0604), 0);
    must_save(path, a, 2);
    ck_assert(stat(path, &st) == 0 && (st.st_mode & 0777) == 0604);
    umask(old);
    help_write(other, "keep", 4); /* a link is replaced and never followed */
    ck_assert(unlink(path) == 0 && symlink("other", path) == 0);
    must_save(path, a, 3);
    ck_assert(lstat(path, &st) == 0 && S_ISREG(st.st_mode));
    ck_assert(stat(other, &st) == 0 && st.st_size == 4);
    if (geteuid() == 0) { /* the owner stays, as far as one may */
        ck_assert_int_eq(chown(path, 1234, 1234), 0);
        must_save(path, a, 4);
        ck_assert(stat(path, &st) == 0 && st.st_uid == 1234 && st.st_gid == 1234);
    }
    ck_assert_int_eq(mkfifo(help_path(d, "fifo"), 0600), 0);
    ck_assert_int_eq(save(help_path(d, "fifo"), a, 1), GRADC_IO);
    ck_assert_ptr_nonnull(strstr(error.text, "left alone"));
    ck_assert_int_eq(save(d, a, 1), GRADC_IO);
    ck_assert_int_eq(save(help_path(d, "no/such"), a, 1), GRADC_IO);
    ck_assert_int_eq(save(help_path(d, ""), a, 1), GRADC_BAD_ARGUMENT);
    fake_free(a);
    help_remove(d);
}
END_TEST

/* A child is killed while its file is half written; then somebody else saves. */
START_TEST(temporary_files_of_the_dead_are_removed)
{
    char *d = help_directory();
    const char *path = help_path(d, "run.gck");
    static const char *const foreign[] = {
        "run.gck.gradc-00000000-999999-0123456789abcdef",
        "run.gck.gradc-",
        "run.gck.gradc-zz",
        "run.gck.gradc-ffffffffffffffffffff-1-0123456789abcdef",
        "run.gck.gradcx",
        "run.gckx",
    };
    enum { FOREIGN = sizeof foreign / sizeof foreign[0] };
    Fake *a = fake_new(1);
    for (int i = 0; i < FOREIGN; i++)
        help_write(help_path(d, foreign[i]), "of somebody else", 16);
    pid_t child = fork();
    if (child == 0)
        for (int i = 0;; i++)
            save(path, a, i);
    for (int i = 0; i < 20000 && help_entries(d) < FOREIGN + 3; i++)
        usleep(50);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    must_save(path, a, 5);
    must_save(path, a, 6);
    ck_assert_int_eq(help_entries(d), FOREIGN + 2);
    for (int i = 0; i < FOREIGN; i++)
        ck_assert_int_eq(access(help_path(d, foreign[i]), F_OK), 0);
    must_load(path, a, 6, false);
    fake_free(a);
    help_remove(d);
}
END_TEST

static ssize_t nothing_read(int fd, void *bytes, size_t n)
{
    (void)fd;
    (void)bytes;
    (void)n;
    return 0;
}

static ssize_t nothing_written(int fd, const void *bytes, size_t n)
{
    (void)fd;
    (void)bytes;
    (void)n;
    return 0;
}

/* A file that gets shorter while it is read, a device that takes nothing. */
START_TEST(nothing_read_and_nothing_written)
{
    char *d = help_directory();
    const char *path = help_path(d, "run.gck");
    Fake *a = fake_new(1);
    FileOps ops = gr_file_ops;
    gradc_checkpoint info;
    must_save(path, a, 1);
    gr_file_ops.read = nothing_read;
    ck_assert_int_eq(load(path, a, &info), GRADC_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.text, "too early"));
    gr_file_ops = ops;
    gr_file_ops.write = nothing_written;
    ck_assert_int_eq(save(path, a, 2), GRADC_IO);
    gr_file_ops = ops;
    must_load(path, a, 1, false);
    ck_assert_int_eq(help_entries(d), 1);
    fake_free(a);
    help_remove(d);
}
END_TEST

static int no_links(const char *from, const char *to)
{
    (void)from;
    (void)to;
    errno = EPERM;
    return -1;
}

static int renames;

static int second_rename_fails(const char *from, const char *to)
{
    errno = EIO;
    return ++renames == 2 ? -1 : rename(from, to);
}

/* A file system without hard links: the old file is moved, and moved back if all fails. */
START_TEST(without_hard_links)
{
    char *d = help_directory();
    const char *path = help_path(d, "run.gck");
    Fake *a = fake_new(1), *b = fake_new(2);
    FileOps ops = gr_file_ops;
    must_save(path, a, 1);
    gr_file_ops.link = no_links;
    must_save(path, b, 2);
    must_load(path, b, 2, false);
    must_load(help_path(d, "run.gck.prev"), a, 1, false);
    gr_file_ops.rename = second_rename_fails;
    ck_assert_int_eq(save(path, a, 3), GRADC_IO);
    ck_assert_int_eq(renames, 3);
    gr_file_ops = ops;
    must_load(path, b, 2, false);
    ck_assert_int_eq(help_entries(d), 1);
    fake_free(a);
    fake_free(b);
    help_remove(d);
}
END_TEST

/* The process ends before its n-th file operation, for every n: old or new, and whole. */
START_TEST(death_at_every_operation)
{
    bool first = _i == 0, done = false;
    Fake *a = fake_new(1), *b = fake_new(2);
    for (int n = 1; !done; n++) {
        char *d = help_directory();
        const char *path = help_path(d, "run.gck");
        gradc_checkpoint info;
        if (!first)
            must_save(path, a, 1);
        pid_t child = fork();
        if (child == 0) {
            fault_files(n, FAULT_DEATH, false);
            _exit(save(path, b, 2) == GRADC_OK ? 0 : 1);
        }
        int status;
        waitpid(child, &status, 0);
        done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        ck_assert(done || (WIFEXITED(status) && WEXITSTATUS(status) == 9));
        Fake *f = fake_new(3);
        status = load(path, f, &info);
        ck_assert(status == GRADC_OK || (first && status == GRADC_IO && !done));
        if (status == GRADC_OK)
            ck_assert(fake_same(f, info.step == 2 ? b : a, false) && (!done || info.step == 2));
        ck_assert_int_le(help_entries(d), first ? 1 : 2); /* load removes what was left */
        ck_assert_int_lt(n, 100);
        fake_free(f);
        help_remove(d);
    }
    fake_free(a);
    fake_free(b);
}
END_TEST

/* Saves 1, 2, 3… for ever, each state being that of fake_new(step % 50). */
static void save_for_ever(const char *path)
{
    for (int64_t step = 1;; step++) {
        Fake *f = fake_new((int)(step % 50));
        if (save(path, f, step) != GRADC_OK)
            _exit(1);
        fake_free(f);
    }
}

START_TEST(kill_nine)
{
    int kills = getenv("GRADC_FULL") != NULL ? 500 : 20;
    char *d = help_directory();
    const char *path = help_path(d, "run.gck");
    int64_t last = 0;
    srand(1);
    for (int k = 0; k < kills; k++) {
        pid_t child = fork();
        if (child == 0)
            save_for_ever(path);
        struct timespec t = {.tv_nsec = 1000000L * (2 + rand() % 30) + rand() % 1000000};
        nanosleep(&t, NULL);
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        ck_assert(WIFSIGNALED(status));
        if (access(path, F_OK) != 0)
            continue; /* killed before the first one was there */
        gradc_checkpoint info;
        Fake *f = fake_new(77);
        ck_assert_msg(load(path, f, &info) == GRADC_OK, "kill %d: %s", k, error.text);
        ck_assert_int_eq(info.from_previous, 0);
        Fake *want = fake_new((int)(info.step % 50));
        ck_assert_msg(fake_same(f, want, false), "kill %d: a mixture", k);
        last = info.step > last ? info.step : last;
        fake_free(f);
        fake_free(want);
        ck_assert_int_le(help_entries(d), 2); /* load removed what was left */
    }
    ck_assert_int_gt(last, 1);
    help_remove(d);
}
END_TEST

Suite *suite_runtime_checkpoint(void);

Suite *suite_runtime_checkpoint(void)
{
    Suite *s = suite_create("runtime_checkpoint");
    TCase *c = tcase_create("checkpoint");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, weights_round_trip);
    tcase_add_test(c, everything_that_does_not_fit_is_said_at_once);
    tcase_add_test(c, long_reports_are_cut);
    tcase_add_test(c, checkpoints_that_say_too_little);
    tcase_add_test(c, models_are_checked);
    tcase_add_test(c, checkpoint_round_trip);
    tcase_add_test(c, a_damaged_file_gives_way_to_the_one_before);
    tcase_add_test(c, another_model_is_refused);
    tcase_add_test(c, nonfinite_state_is_not_saved);
    tcase_add_loop_test(c, every_truncation_and_every_flip_is_refused, 0, 2);
    tcase_add_test(c, modes_and_links);
    tcase_add_test(c, temporary_files_of_the_dead_are_removed);
    tcase_add_test(c, nothing_read_and_nothing_written);
    tcase_add_test(c, without_hard_links);
    tcase_add_loop_test(c, death_at_every_operation, 0, 2);
    tcase_add_test(c, kill_nine);
    suite_add_tcase(s, c);
    return s;
}
