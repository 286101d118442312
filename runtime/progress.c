/* Progress of a run: a changing line on a terminal, plain lines or JSON lines elsewhere. */
#include "internal.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

struct gradc_progress {
    gradc_progress_options o;
    int32_t mode;
    double began, shown; /* seconds of the monotonic clock */
    bool any;            /* something was shown */
    bool pending;        /* the latest values were not */
    int64_t first_step, epoch;
    int32_t width; /* columns of the changing line, as last written */
    gradc_progress_values last;
};

static double now(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int gradc_progress_open(const gradc_progress_options *o, gradc_progress **out, gradc_error *e)
{
    if (o == NULL || out == NULL)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "gradc_progress_open: an argument is missing");
    *out = NULL;
    int status = gr_check_size(o->struct_size, sizeof *o, "gradc_progress_options", e);
    if (status != GRADC_OK)
        return status;
    if (o->mode < GRADC_PROGRESS_AUTO || o->mode > GRADC_PROGRESS_QUIET)
        return gr_fail(e, GRADC_BAD_ARGUMENT, "progress mode %d", (int)o->mode);
    gradc_progress *p = gr_new(1, sizeof *p);
    if (p == NULL)
        return gr_fail_memory(e, "progress", (int64_t)sizeof *p);
    p->o = *o;
    p->mode = o->out == NULL ? GRADC_PROGRESS_QUIET : o->mode;
    if (p->mode == GRADC_PROGRESS_AUTO)
        p->mode = isatty(fileno(o->out)) == 1 ? GRADC_PROGRESS_TERMINAL : GRADC_PROGRESS_LINES;
    if (!(p->o.period_s > 0))
        p->o.period_s = 10;
    p->began = now();
    p->first_step = -1;
    *out = p;
    return gr_ok(e);
}

/* ---- the parts of a line; a text that failed to grow is simply not shown ---- */

static void put_real(Text *t, double v, int digits)
{
    char s[40];
    gr_text_puts(t, gradc_format(s, sizeof s, v, digits));
}

static void put_named(Text *t, const char *name, double v)
{
    if (isnan(v))
        return;
    gr_text_puts(t, "  ");
    gr_text_puts(t, name);
    gr_text_puts(t, " ");
    put_real(t, v, 4);
}

static void put_duration(Text *t, double seconds)
{
    char s[40];
    if (!(seconds >= 0 && seconds < 1e9))
        return;
    long long n = (long long)(seconds + 0.5);
    if (n >= 3600)
        snprintf(s, sizeof s, "%lld:%02lld:%02lld", n / 3600, n / 60 % 60, n % 60);
    else
        snprintf(s, sizeof s, "%lld:%02lld", n / 60, n % 60);
    gr_text_puts(t, s);
}

static double rate(const gradc_progress *p, const gradc_progress_values *v, double at)
{
    double seconds = at - p->began;
    return v->samples > 0 && seconds > 1e-3 ? (double)v->samples / seconds : NAN;
}

/* By the steps of this run alone: a resumed one did not begin at 0. In doubles, which take any
 * numbers that a caller may pass. */
static double seconds_left(const gradc_progress *p, const gradc_progress_values *v, double at)
{
    double step = (double)v->step, steps = (double)p->o.steps;
    double done = step - (double)p->first_step + 1;
    if (steps <= 0 || done < 1 || step > steps)
        return NAN;
    return (at - p->began) / done * (steps - step);
}

static void put_count(Text *t, const char *name, int64_t k, int64_t of)
{
    gr_text_puts(t, name);
    gr_text_puts(t, " ");
    gr_text_int(t, k);
    if (of > 0) {
        gr_text_puts(t, "/");
        gr_text_int(t, of);
    }
}

static void put_line(Text *t, const gradc_progress *p, const gradc_progress_values *v, double at)
{
    if (v->epoch > 0) {
        put_count(t, "epoch", v->epoch, p->o.epochs);
        gr_text_puts(t, "  ");
    }
    put_count(t, "step", v->step, p->o.steps);
    put_named(t, "loss", v->loss);
    if (p->o.metric != NULL)
        put_named(t, p->o.metric, v->metric);
    if (v->lr > 0)
        put_named(t, "lr", v->lr);
    double per_second = rate(p, v, at), left = seconds_left(p, v, at);
    if (!isnan(per_second)) {
        gr_text_puts(t, "  ");
        put_real(t, per_second, per_second >= 1000 ? 6 : 3);
        gr_text_puts(t, "/s");
    }
    if (!isnan(left)) {
        gr_text_puts(t, "  ");
        put_duration(t, left);
        gr_text_puts(t, " left");
    }
}

static void put_json_real(Text *t, const char *key, double v)
{
    gr_text_puts(t, ",");
    gr_text_json(t, key);
    gr_text_puts(t, ":");
    if (isfinite(v))
        put_real(t, v, 0);
    else
        gr_text_puts(t, "null");
}

static void put_json(Text *t, const gradc_progress *p, const gradc_progress_values *v, double at)
{
    gr_text_puts(t, "{\"event\":\"step\",\"epoch\":");
    gr_text_int(t, v->epoch);
    gr_text_puts(t, ",\"step\":");
    gr_text_int(t, v->step);
    gr_text_puts(t, ",\"samples\":");
    gr_text_int(t, v->samples);
    put_json_real(t, "loss", v->loss);
    if (p->o.metric != NULL)
        put_json_real(t, p->o.metric, v->metric);
    put_json_real(t, "lr", v->lr);
    put_json_real(t, "samples_per_s", rate(p, v, at));
    put_json_real(t, "seconds", at - p->began);
    gr_text_puts(t, "}");
}

/* ---- to the file ---- */

static int32_t terminal_columns(FILE *out)
{
    struct winsize w;
    if (ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
        return w.ws_col;
    return 80;
}

/* Over the line before, with blanks for what is left of it. One write: nothing flickers. */
static void show_changing(gradc_progress *p, Text *t)
{
    int32_t columns = terminal_columns(p->o.out) - 1;
    int64_t n = t->n < columns ? t->n : columns;
    if (t->failed)
        return;
    fprintf(p->o.out, "\r%.*s", (int)n, t->bytes);
    if (n < p->width)
        fprintf(p->o.out, "%*s", (int)(p->width - n), "");
    p->width = (int32_t)n;
    fflush(p->o.out);
}

static void show_line(gradc_progress *p, const Text *t)
{
    if (t->failed)
        return;
    if (p->width > 0) { /* wipe the changing line; the next step writes it again */
        fprintf(p->o.out, "\r%*s\r", (int)p->width, "");
        p->width = 0;
        p->pending = true;
    }
    fprintf(p->o.out, "%s\n", t->bytes != NULL ? t->bytes : "");
    fflush(p->o.out);
}

static void show(gradc_progress *p, const gradc_progress_values *v, double at)
{
    Text t = {0};
    if (p->mode == GRADC_PROGRESS_JSON)
        put_json(&t, p, v, at);
    else
        put_line(&t, p, v, at);
    if (p->mode == GRADC_PROGRESS_TERMINAL)
        show_changing(p, &t);
    else
        show_line(p, &t);
    gr_text_free(&t);
    p->shown = at;
    p->any = true;
    p->pending = false;
}

static bool due(const gradc_progress *p, const gradc_progress_values *v, double at)
{
    if (!p->any || (p->o.steps > 0 && v->step >= p->o.steps))
        return true;
    switch (p->mode) {
    case GRADC_PROGRESS_JSON:
        return p->o.every <= 1 || v->step % p->o.every == 0;
    case GRADC_PROGRESS_TERMINAL:
        return at - p->shown >= 0.1;
    default:
        return at - p->shown >= p->o.period_s;
    }
}

void gradc_progress_step(gradc_progress *p, const gradc_progress_values *v)
{
    if (p == NULL || v == NULL || p->mode == GRADC_PROGRESS_QUIET)
        return;
    double at = now();
    if (p->first_step < 0)
        p->first_step = v->step;
    /* a plain line for the last step of the epoch before */
    if (p->mode == GRADC_PROGRESS_LINES && v->epoch != p->epoch && p->pending)
        show(p, &p->last, at);
    p->epoch = v->epoch;
    p->last = *v;
    p->pending = true;
    if (due(p, v, at))
        show(p, v, at);
}

void gradc_progress_say(gradc_progress *p, const char *text)
{
    Text t = {0};
    if (p == NULL || text == NULL || p->mode == GRADC_PROGRESS_QUIET)
        return;
    if (p->mode == GRADC_PROGRESS_JSON) {
        gr_text_puts(&t, "{\"event\":\"message\",\"text\":");
        gr_text_json(&t, text);
        gr_text_puts(&t, "}");
    } else {
        gr_text_puts(&t, text);
    }
    show_line(p, &t);
    gr_text_free(&t);
}

void gradc_progress_report(gradc_progress *p, const char *event, const char *const *names,
                           const double *figures, int32_t n)
{
    Text t = {0};
    if (p == NULL || event == NULL || p->mode == GRADC_PROGRESS_QUIET)
        return;
    if (p->mode == GRADC_PROGRESS_JSON) {
        gr_text_puts(&t, "{\"event\":");
        gr_text_json(&t, event);
        for (int32_t i = 0; i < n; i++)
            put_json_real(&t, names[i], figures[i]);
        gr_text_puts(&t, "}");
    } else {
        gr_text_puts(&t, event);
        for (int32_t i = 0; i < n; i++) {
            gr_text_puts(&t, i == 0 ? ": " : ", ");
            gr_text_puts(&t, names[i]);
            gr_text_puts(&t, " ");
            put_real(&t, figures[i], 4);
        }
    }
    show_line(p, &t);
    gr_text_free(&t);
}

void gradc_progress_close(gradc_progress *p)
{
    if (p == NULL)
        return;
    bool plain = p->mode == GRADC_PROGRESS_LINES || p->mode == GRADC_PROGRESS_TERMINAL;
    if (p->pending && plain)
        show(p, &p->last, now());
    if (p->mode == GRADC_PROGRESS_TERMINAL && p->width > 0) {
        fprintf(p->o.out, "\n");
        fflush(p->o.out);
    }
    gr_free(p);
}
