/* Progress: what is written where, and how often. */
#define _GNU_SOURCE 1
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/gradc.h"

static char *written;
static size_t written_n;

static gradc_progress *open_progress(gradc_progress_options o, FILE **out)
{
    gradc_progress *p = NULL;
    gradc_error e;
    *out = open_memstream(&written, &written_n);
    o.struct_size = sizeof o;
    o.out = *out;
    ck_assert_msg(gradc_progress_open(&o, &p, &e) == GRADC_OK, "%s", e.text);
    return p;
}

static int count(const char *s, char c)
{
    int n = 0;
    for (; *s != '\0'; s++)
        n += *s == c;
    return n;
}

static void steps(gradc_progress *p, int64_t from, int64_t to)
{
    for (int64_t i = from; i <= to; i++) {
        gradc_progress_values v = {.epoch = 1 + (i - 1) / 500,
                                   .step = i,
                                   .samples = (i - from + 1) * 64,
                                   .loss = 2.5 / (double)i,
                                   .metric = 0.5,
                                   .lr = 1e-3};
        gradc_progress_step(p, &v);
    }
}

START_TEST(plain_lines)
{
    FILE *out;
    gradc_progress *p = open_progress(
        (gradc_progress_options){
            .mode = GRADC_PROGRESS_LINES, .steps = 1000, .epochs = 2, .metric = "accuracy"},
        &out);
    steps(p, 1, 1000);
    gradc_progress_close(p);
    fclose(out);
    /* the first, the last of epoch 1, the last */
    ck_assert_msg(count(written, '\n') == 3, "%s", written);
    ck_assert_ptr_nonnull(
        strstr(written, "epoch 1/2  step 1/1000  loss 2.5  accuracy 0.5  lr 0.001"));
    ck_assert_ptr_nonnull(strstr(written, "epoch 1/2  step 500/1000"));
    ck_assert_ptr_nonnull(strstr(written, "epoch 2/2  step 1000/1000  loss 0.0025"));
    ck_assert_ptr_null(strchr(written, '\r'));
    free(written);
}
END_TEST

START_TEST(a_changing_line)
{
    FILE *out;
    gradc_progress *p = open_progress(
        (gradc_progress_options){.mode = GRADC_PROGRESS_TERMINAL, .steps = 1200}, &out);
    for (int k = 0; k < 12; k++) { /* 0.36 s: the first, three in between, the last */
        steps(p, 1 + 100 * k, 100 + 100 * k);
        if (k == 5)
            gradc_progress_say(p, "half way");
        usleep(30000);
    }
    gradc_progress_close(p);
    fclose(out);
    ck_assert_msg(count(written, '\r') <= 8 && count(written, '\r') >= 4, "%s", written);
    ck_assert_ptr_nonnull(strstr(written, "\rhalf way\n"));
    ck_assert_int_eq(count(written, '\n'), 2);
    ck_assert_int_eq(written[written_n - 1], '\n');
    ck_assert_ptr_nonnull(strstr(written, "step 1200/1200"));
    free(written);
}
END_TEST

/* Every line is JSON; NaN is null. */
START_TEST(json_lines)
{
    FILE *out;
    gradc_progress *p = open_progress(
        (gradc_progress_options){
            .mode = GRADC_PROGRESS_JSON, .every = 10, .steps = 95, .metric = "acc \"x\""},
        &out);
    steps(p, 1, 95);
    gradc_progress_values v = {.step = 100, .loss = NAN, .metric = INFINITY};
    gradc_progress_step(p, &v);
    gradc_progress_say(p, "saved\t\"run.gck\"");
    const char *names[] = {"loss", "accuracy"};
    double figures[] = {0.25, NAN};
    gradc_progress_report(p, "validation", names, figures, 2);
    gradc_progress_close(p);
    fclose(out);
    int lines = 0, steps_shown = 0;
    for (char *line = strtok(written, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_error_t why;
        json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, &why);
        ck_assert_msg(j != NULL, "%s: %s", line, why.text);
        const char *event = json_string_value(json_object_get(j, "event"));
        steps_shown += strcmp(event, "step") == 0;
        if (strcmp(event, "message") == 0)
            ck_assert_str_eq(json_string_value(json_object_get(j, "text")), "saved\t\"run.gck\"");
        if (strcmp(event, "validation") == 0) {
            ck_assert(json_real_value(json_object_get(j, "loss")) == 0.25);
            ck_assert(json_is_null(json_object_get(j, "accuracy")));
        }
        if (json_integer_value(json_object_get(j, "step")) == 100)
            ck_assert(json_is_null(json_object_get(j, "loss")));
        json_decref(j);
        lines++;
    }
    ck_assert_int_eq(steps_shown, 1 + 9 + 1 + 1); /* 1, 10 … 90, 95, 100 */
    ck_assert_int_eq(lines, steps_shown + 2);
    free(written);
}
END_TEST

START_TEST(reports_and_quiet)
{
    FILE *out;
    gradc_progress *p = open_progress((gradc_progress_options){.mode = GRADC_PROGRESS_AUTO}, &out);
    const char *names[] = {"loss", "accuracy"};
    double figures[] = {0.231, 0.912};
    gradc_progress_report(p, "validation", names, figures, 2);
    gradc_progress_close(p);
    fclose(out);
    ck_assert_str_eq(written, "validation: loss 0.231, accuracy 0.912\n"); /* no terminal */
    free(written);
    p = open_progress((gradc_progress_options){.mode = GRADC_PROGRESS_QUIET}, &out);
    steps(p, 1, 10);
    gradc_progress_say(p, "x");
    gradc_progress_report(p, "x", names, figures, 2);
    gradc_progress_close(p);
    fclose(out);
    ck_assert_uint_eq(written_n, 0);
    free(written);
    gradc_progress_step(NULL, NULL);
    gradc_progress_say(NULL, "x");
    gradc_progress_report(NULL, "x", names, figures, 2);
    gradc_progress_close(NULL);
    gradc_progress_options o = {.struct_size = sizeof o, .mode = 9};
    ck_assert_int_eq(gradc_progress_open(&o, &p, NULL), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_progress_open(NULL, &p, NULL), GRADC_BAD_ARGUMENT);
    ck_assert_int_eq(gradc_progress_open(&o, NULL, NULL), GRADC_BAD_ARGUMENT);
    o.struct_size = 3;
    ck_assert_int_eq(gradc_progress_open(&o, &p, NULL), GRADC_BAD_ABI);
    o = (gradc_progress_options){.struct_size = sizeof o}; /* no file: quiet */
    ck_assert_int_eq(gradc_progress_open(&o, &p, NULL), GRADC_OK);
    steps(p, 1, 3);
    gradc_progress_close(p);
}
END_TEST

/* A terminal of 40 columns: the line is cut, and never longer than the terminal is wide. */
START_TEST(a_terminal_is_recognised)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        printf("skipped: runtime_progress: no pseudo terminal here\n");
        return;
    }
    FILE *out = fopen(ptsname(master), "w");
    ck_assert_ptr_nonnull(out);
    struct winsize size = {.ws_row = 24, .ws_col = 40};
    ck_assert_int_eq(ioctl(master, TIOCSWINSZ, &size), 0);
    gradc_progress *p;
    gradc_progress_options o = {
        .struct_size = sizeof o, .out = out, .steps = 100000, .metric = "accuracy"};
    ck_assert_int_eq(gradc_progress_open(&o, &p, NULL), GRADC_OK);
    gradc_progress_values v = {.epoch = 1, .step = 1, .samples = 64, .loss = 0.123456, .metric = 1};
    gradc_progress_step(p, &v);
    usleep(110000);
    v.loss = NAN; /* a shorter line: blanks over the rest of the last */
    v.metric = NAN;
    v.samples = 0;
    gradc_progress_step(p, &v);
    gradc_progress_close(p);
    char text[1000];
    ssize_t n = read(master, text, sizeof text - 1);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_msg(strstr(text, "\repoch 1  step 1/100000  loss 0.1235  ac") != NULL, "%s", text);
    int longest = 0, length = 0;
    for (ssize_t i = 0; i < n; i++) {
        length = text[i] == '\r' || text[i] == '\n' ? 0 : length + 1;
        longest = length > longest ? length : longest;
    }
    ck_assert_int_eq(longest, 39);
    fclose(out);
    close(master);
}
END_TEST

/* A resumed run: the rate and the time left count its own steps only. */
START_TEST(time_left_of_a_resumed_run)
{
    FILE *out;
    gradc_progress *p =
        open_progress((gradc_progress_options){.mode = GRADC_PROGRESS_JSON, .steps = 1000}, &out);
    usleep(50000);
    steps(p, 901, 910);
    gradc_progress_close(p);
    fclose(out);
    json_error_t why;
    json_t *j = json_loads(strrchr(strtok(written, "\n"), '{'), 0, &why);
    double rate = json_real_value(json_object_get(j, "samples_per_s"));
    ck_assert_msg(rate > 64 && rate < 64 / 0.05, "%g", rate);
    json_decref(j);
    free(written);
}
END_TEST

Suite *suite_runtime_progress(void);

Suite *suite_runtime_progress(void)
{
    Suite *s = suite_create("runtime_progress");
    TCase *c = tcase_create("progress");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, plain_lines);
    tcase_add_test(c, a_changing_line);
    tcase_add_test(c, json_lines);
    tcase_add_test(c, reports_and_quiet);
    tcase_add_test(c, a_terminal_is_recognised);
    tcase_add_test(c, time_left_of_a_resumed_run);
    suite_add_tcase(s, c);
    return s;
}
