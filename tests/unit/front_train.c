/* Optimizers against the formulas of their papers, in double. */
#include "front_run.h"

/* ---- optimizers ---------------------------------------------------------- */

enum { N = 3, STEPS = 6 };

/* Minimises sum(c w^4): the gradient is 4 c w^3. */
static const char quartic[] = "model m {\n"
                              "    param w : f64[3] = [1, -2, 0.5]\n"
                              "    loss sum([0.5, 1, 2] * w^4)\n"
                              "}\n"
                              "train m {\n    optimizer %s\n%s}\n";

typedef struct Reference {
    double w[N], m[N], v[N], g[N];
    int t; /* 1, 2, ... */
} Reference;

static void reference_gradient(Reference *r)
{
    static const double c[N] = {0.5, 1, 2};
    for (int i = 0; i < N; i++)
        r->g[i] = 4 * c[i] * r->w[i] * r->w[i] * r->w[i];
}

static void clip_reference(Reference *r, double limit)
{
    double norm = 0;
    for (int i = 0; i < N; i++)
        norm += r->g[i] * r->g[i];
    double factor = fmin(1, limit / (sqrt(norm) + 1e-6));
    for (int i = 0; i < N; i++)
        r->g[i] *= factor;
}

static void adam_moments(Reference *r, double b1, double b2)
{
    for (int i = 0; i < N; i++) {
        r->m[i] = b1 * r->m[i] + (1 - b1) * r->g[i];
        r->v[i] = b2 * r->v[i] + (1 - b2) * r->g[i] * r->g[i];
    }
}

static double adam_step(const Reference *r, int i, double b1, double b2, double eps)
{
    double m = r->m[i] / (1 - pow(b1, r->t)), v = r->v[i] / (1 - pow(b2, r->t));
    return m / (sqrt(v) + eps);
}

static void ref_sgd(Reference *r)
{
    for (int i = 0; i < N; i++)
        r->w[i] -= 0.01 * r->g[i];
}

static void ref_nesterov(Reference *r)
{
    for (int i = 0; i < N; i++) {
        double g = r->g[i] + 0.1 * r->w[i];
        r->m[i] = 0.9 * r->m[i] + g;
        r->w[i] -= 0.01 * (g + 0.9 * r->m[i]);
    }
}

static void ref_momentum(Reference *r)
{
    for (int i = 0; i < N; i++) {
        r->m[i] = 0.9 * r->m[i] + r->g[i];
        r->w[i] -= 0.01 * r->m[i];
    }
}

static void ref_adam(Reference *r)
{
    for (int i = 0; i < N; i++)
        r->g[i] += 0.1 * r->w[i];
    adam_moments(r, 0.9, 0.999);
    for (int i = 0; i < N; i++)
        r->w[i] -= 0.01 * adam_step(r, i, 0.9, 0.999, 1e-8);
}

static void ref_adamw(Reference *r)
{
    clip_reference(r, 1);
    adam_moments(r, 0.8, 0.95);
    for (int i = 0; i < N; i++) {
        r->w[i] *= 1 - 0.01 * 0.1;
        r->w[i] -= 0.01 * adam_step(r, i, 0.8, 0.95, 1e-6);
    }
}

static void ref_lion(Reference *r)
{
    for (int i = 0; i < N; i++) {
        double turn = 0.9 * r->m[i] + 0.1 * r->g[i];
        r->m[i] = 0.99 * r->m[i] + 0.01 * r->g[i];
        r->w[i] = r->w[i] * (1 - 0.01 * 0.1) - 0.01 * ((turn > 0) - (turn < 0));
    }
}

static void ref_clip_value(Reference *r)
{
    for (int i = 0; i < N; i++)
        r->w[i] -= 0.01 * fmax(-0.5, fmin(0.5, r->g[i]));
}

static double warmup_cosine(int step)
{
    if (step < 2)
        return 0.1 * (step + 1) / 3;
    return 0.01 + 0.09 * (0.5 + 0.5 * cos(acos(-1) * (step - 2) / 3.0 > acos(-1)
                                              ? acos(-1)
                                              : acos(-1) * (step - 2) / 3.0));
}

static void ref_schedule(Reference *r)
{
    for (int i = 0; i < N; i++)
        r->w[i] -= warmup_cosine(r->t - 1) * r->g[i] / 10;
}

static void ref_decay(Reference *r)
{
    for (int i = 0; i < N; i++)
        r->w[i] -= 0.01 * pow(0.5, (r->t - 1) / 2) * r->g[i];
}

static const struct {
    const char *optimizer, *more;
    void (*step)(Reference *r);
} optimizers[] = {
    {"sgd(lr = 0.01)", "", ref_sgd},
    {"sgd(lr = 0.01, momentum = 0.9)", "", ref_momentum},
    {"sgd(lr = 0.01, momentum = 0.9, nesterov = true, weight_decay = 0.1)", "", ref_nesterov},
    {"sgd(lr = 0.01)", "    clip value(0.5)\n", ref_clip_value},
    {"sgd(lr = step_decay(from = 0.01, factor = 0.5, every = 2))", "", ref_decay},
    {"sgd(lr = warmup_cosine(peak = 0.01, warmup = 2, steps = 5, to = 0.001))", "", ref_schedule},
    {"adam(lr = 0.01, weight_decay = 0.1)", "", ref_adam},
    {"adamw(lr = 0.01, betas = (0.8, 0.95), eps = 1e-6, weight_decay = 0.1)",
     "    clip global_norm(1)\n", ref_adamw},
    {"lion(lr = 0.01, weight_decay = 0.1)", "    guard off\n", ref_lion},
};
enum { N_OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

START_TEST(optimizers_are_those_of_the_papers)
{
    Run r;
    Arena a = {0};
    Reference ref = {.w = {1, -2, 0.5}};
    run_open(&r, arena_printf(&a, quartic, optimizers[_i].optimizer, optimizers[_i].more), NULL);
    for (int t = 1; t <= STEPS; t++) {
        ref.t = t;
        reference_gradient(&ref);
        optimizers[_i].step(&ref);
        run_step(&r, NULL);
        for (int i = 0; i < N; i++) /* the learning rate is an f64 as they are */
            ck_assert_msg(fabs(run_slot(&r, "w")->x[i] - ref.w[i]) < 1e-12,
                          "%s: step %d, w[%d]: %.12g, not %.12g", optimizers[_i].optimizer, t, i,
                          run_slot(&r, "w")->x[i], ref.w[i]);
    }
    close_to(run_slot(&r, "gradc.step")->x[0], STEPS);
    run_close(&r);
    arena_free(&a);
}
END_TEST

/* NaN in `lr` is the schedule; a number takes its place. */
START_TEST(the_rate_can_be_set)
{
    Run r;
    Arena a = {0};
    run_open(&r, arena_printf(&a, quartic, "sgd(lr = 0.01)", ""), NULL);
    ck_assert(isnan(run_slot(&r, "lr")->x[0]));
    run_slot(&r, "lr")->x[0] = 0.25;
    run_step(&r, NULL);
    close_to(run_slot(&r, "w")->x[0], 1 - 0.25 * 2);
    run_close(&r);
    arena_free(&a);
}
END_TEST

START_TEST(a_step_that_is_not_finite_changes_nothing)
{
    static const char *const guard[] = {"gradients", "loss"};
    for (int i = 0; i < 2; i++) {
        Run r;
        Arena a = {0};
        run_open(&r,
                 arena_printf(&a,
                              "model m {\n"
                              "    input x : f32\n"
                              "    param w : f32 = 2\n"
                              "    state n : f32 = 0\n"
                              "    n <- n + 1\n"
                              "    loss sqrt(w * x) + 1\n"
                              "}\n"
                              "train m {\n    optimizer sgd(lr = 1)\n    guard %s\n}\n",
                              guard[i]),
                 NULL);
        r.input[0].x[0] = 0; /* the loss is 1, the gradient 0/0 */
        ck_assert(run_step(&r, NULL) == (i == 1));
        close_to(run_slot(&r, "n")->x[0], i);
        close_to(run_slot(&r, "gradc.step")->x[0], i);
        close_to(run_slot(&r, "gradc.skipped")->x[0], 1 - i);
        ck_assert(i == 1 || run_slot(&r, "w")->x[0] == 2);
        r.input[0].x[0] = -1;
        ck_assert(!run_step(&r, NULL));
        close_to(run_slot(&r, "gradc.skipped")->x[0], 2 - i);
        run_close(&r);
        arena_free(&a);
    }
}
END_TEST

Suite *suite_front_train(void);
Suite *suite_front_train(void)
{
    Suite *s = suite_create("front_train");
    TCase *t = tcase_create("train");
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, optimizers_are_those_of_the_papers, 0, N_OPTIMIZERS);
    tcase_add_test(t, the_rate_can_be_set);
    tcase_add_test(t, a_step_that_is_not_finite_changes_nothing);
    return s;
}
