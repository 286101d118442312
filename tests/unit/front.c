/* The front end: what its graphs compute, in double, against what it should be. Texts of
 * graphs and messages are golden tests. */
#include "front_run.h"

#include <dirent.h>

#include "embedded.h"

static void close_to(double is, double want)
{
    ck_assert_double_eq_tol(is, want, 1e-9 * fmax(1, fabs(want)));
}

/* ---- partial batches ----------------------------------------------------- */

/* Every way in which rows are summed, seen and lost. */
static const char *const row_models[] = {
    /* a perceptron, with a weighted loss that ignores some labels */
    "use nn\n"
    "model m(batch = 8) {\n"
    "    input x : f32[batch, 4]\n"
    "    input label : i32[batch] in 0..3\n"
    "    y = nn.dropout(relu(nn.linear(x, 5)), 0.5)\n"
    "    y = nn.linear(y, 3) as last\n"
    "    loss mean(nn.cross_entropy(y, label, weight = [1, 2, 0.5], ignore = 1))\n"
    "    metric a = nn.accuracy(y, label)\n"
    "}\n",
    /* statistics over the batch, kept in state */
    "use nn\n"
    "model m(batch = 8) {\n"
    "    input x : f32[batch, 3, 4, 4]\n"
    "    y = nn.batch_norm(nn.conv2d(x, 2, kernel = 3) as conv)\n"
    "    loss mean(y^2 * x[:, :2, 1:3, 1:3])\n"
    "}\n",
    /* sequences: rows run along [batch * ctx] and [batch * heads] */
    "use nn\n"
    "model m(batch = 8, ctx = 4, width = 8) {\n"
    "    input tokens, next : i32[batch, ctx]\n"
    "    param wte : f32[11, width] = normal(std = 0.5)\n"
    "    x = nn.block(wte[tokens], heads = 2) as h[0]\n"
    "    logits = reshape(nn.layer_norm(x) @ transpose(wte), [batch * ctx, 11])\n"
    "    loss mean(nn.cross_entropy(logits, reshape(next, [-1])))\n"
    "    metric m = mean(logits)\n"
    "}\n",
    /* products over the batch, softmax along it, extremes */
    "model m(batch = 8) {\n"
    "    input x, y : f32[batch, 3]\n"
    "    param w : f32[3, 3] = normal\n"
    "    a = x @ w\n"
    "    s = softmax(a @ transpose(y), axis = 1)\n"
    "    c = transpose(a) @ a\n"
    "    e = einsum(\"bi,bj->ij\", a, y) + einsum(\"ib,bj->ij\", transpose(a), y)\n"
    "    loss mean(s * s) + sum(c) + sum(e) + max(a) - min(a, axis = 0)[1] + prod(a + 3) / 1000\n"
    "    metric any = cast(any(a > 1.3), f32) + 2 * cast(all(a < 1.3), f32)\n"
    "    metric best = cast(argmax(a, axis = 0)[2], f32)\n"
    "    metric sums = mean(cumsum(a, axis = 0)) + sum(a[:4])\n"
    "}\n",
    /* a scan whose carry begins with zeros */
    "use nn\n"
    "model m(batch = 8) {\n"
    "    input x : f32[batch, 5, 3]\n"
    "    hs = nn.lstm(x, 4) as rnn\n"
    "    s = scan i in 0..3, s = 0 {\n"
    "        s = s + mean(hs) * cast(i + 1, f32)\n"
    "    }\n"
    "    loss mean(hs^2) + s\n"
    "}\n",
    /* a rule of its own for the way back; one norm used twice */
    "use nn\n"
    "fn through(x, k) {\n    return round(x * k) / k\n} vjp(ct) {\n    return ct * k\n}\n"
    "model m(batch = 8) {\n"
    "    input x : f32[batch, 3]\n"
    "    y = through(nn.linear(x, 3), 4)\n"
    "    z = (nn.batch_norm(y) as bn) + 2 * (nn.batch_norm(y^2) share bn)\n"
    "    loss mean(z * y)\n"
    "}\n",
    /* a gradient inside of the loss */
    "use nn\n"
    "model m(batch = 8) {\n"
    "    input x : f32[batch, 2]\n"
    "    y = nn.mlp(x, [4, 1]) as critic\n"
    "    g = grad(sum(y^2), x)\n"
    "    loss mean((sqrt(sum(g^2, axis = -1) + 0.1) - 1)^2) + mean(y)\n"
    "}\n",
};
enum { N_ROW_MODELS = sizeof row_models / sizeof *row_models };

static const char trained[] =
    "train m {\n    optimizer adamw(lr = 0.1)\n    clip global_norm(1)\n}\n";

static const char *with_training(Arena *a, const char *text, const char *train)
{
    return arena_printf(a, "%s\n%s", text, train);
}

/* The first rows of one are those of the other; behind them stands something else. */
static void same_rows(Run *whole, Run *part)
{
    for (int i = 0; i < pinned(part)->input.n; i++)
        for (int64_t k = 0; k < part->input[i].n; k++)
            part->input[i].x[k] = whole->input[i].x[k];
}

static void compare_roots(Run *whole, Run *part, EntryKind e, const char *text)
{
    const Graph *gw = whole->out.graph[e], *gp = part->out.graph[e];
    Value *vw = run_entry(whole, e), *vp = run_entry(part, e);
    for (int i = 0; i < gp->root.n; i++) {
        const Root *r = &gp->root.at[i];
        if (r->kind == ROOT_OUTPUT || r->kind == ROOT_OTHER)
            continue;
        const Value *x = &vw[run_root(whole, e, r->kind, r->name)->ref], *y = &vp[r->ref];
        ck_assert_int_eq(gw->root.n, gp->root.n);
        ck_assert_int_ge(x->n, y->n); /* a gradient of a batch has rows, too */
        for (int64_t k = 0; k < y->n; k++)
            ck_assert_msg(fabs(x->x[k] - y->x[k]) <= 1e-9 * fmax(1, fabs(y->x[k])),
                          "%s %s[%lld]: %.17g of 5 rows in 8, %.17g of 5\n%s",
                          root_kind_name(r->kind), r->name, (long long)k, x->x[k], y->x[k], text);
    }
}

START_TEST(a_partial_batch_is_a_smaller_model)
{
    Run whole, part;
    Arena a = {0};
    const char *text = with_training(&a, row_models[_i], trained);
    run_open(&whole, text, NULL);
    run_open(&part, text, (Define[]){{"batch", "5"}, {NULL, NULL}});
    ck_assert_msg(pinned(&whole)->rows >= 0, "rows are lost in\n%s", text);
    same_rows(&whole, &part);
    whole.rows = 5;
    compare_roots(&whole, &part, ENTRY_EVAL, text);
    compare_roots(&whole, &part, ENTRY_GRAD, text);
    compare_roots(&whole, &part, ENTRY_STEP, text);
    run_close(&whole);
    run_close(&part);
    arena_free(&a);
}
END_TEST

/* What mixes rows takes whole batches, rather than count what is not there. */
START_TEST(mixed_rows_take_whole_batches)
{
    static const char *const mixed[] = {
        "flip(x, axis = 0)",
        "x[1:]",
        "reshape(transpose(x), [12])",
        "concat([x, x])",
        "pad(x, 0, lo = 1)",
        "cumsum(x, axis = 0, reverse = true) * cast(iota([4, 3]), f32)",
    };
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        Run r;
        char text[400];
        snprintf(text, sizeof text,
                 "model m(batch = 4) {\n"
                 "    input x : f32[batch, 3]\n"
                 "    param w : f32 = 1\n"
                 "    loss w * mean(%s)\n}\n",
                 mixed[i]);
        run_open(&r, text, NULL);
        bool sums_right = i == 5; /* zeros are added from the end */
        ck_assert_msg((pinned(&r)->rows < 0) == !sums_right, "%s", mixed[i]);
        run_close(&r);
    }
}
END_TEST

/* ---- micro-batches ------------------------------------------------------- */

static const char *const accumulated[] = {
    "use nn\n"
    "model m(batch = 8) {\n"
    "    input x : f32[batch, 4] with grad\n"
    "    input scale : f32 with grad\n"
    "    input label : i32[batch] in 0..3\n"
    "    y = nn.linear(tanh(nn.linear(x, 5)), 3) as last\n"
    "    loss scale * mean(nn.cross_entropy(y, label, weight = [1, 2, 0.5], ignore = 1))\n"
    "    metric a = mean(y)\n"
    "    output y\n"
    "}\n",
    "use nn\n"
    "model m(batch = 8, ctx = 4) {\n"
    "    input tokens, next : i32[batch, ctx]\n"
    "    param wte : f32[11, 6] = normal(std = 0.5)\n"
    "    x = nn.gru(wte[tokens], 6) + wte[tokens]\n"
    "    x = nn.block(x, heads = 2)\n"
    "    loss mean(nn.cross_entropy(x @ transpose(wte), next))\n"
    "    output x\n"
    "}\n",
    "fn through(x) {\n    return round(x)\n} vjp(ct) {\n    return 2 * ct\n}\n"
    "model m(batch = 8) {\n"
    "    input x : f32[batch, 3] with grad\n"
    "    param w : f32[3] = [1, 2, 3]\n"
    "    g = grad(sum(sin(w * x)), x)\n"
    "    loss mean(g^2) + mean(through(x * w) * w)\n"
    "}\n",
};
enum { N_ACCUMULATED = sizeof accumulated / sizeof *accumulated };

static void same_root(const Value *x, const Value *y, const Root *r, const char *text)
{
    ck_assert_int_eq(x->n, y->n);
    for (int64_t k = 0; k < x->n; k++)
        ck_assert_msg(fabs(x->x[k] - y->x[k]) < 1e-7, /* constants are rounded to f32 */
                      "%s %s[%lld]: %g and %g in\n%s", root_kind_name(r->kind), r->name,
                      (long long)k, x->x[k], y->x[k], text);
}

START_TEST(micro_batches_are_one_batch)
{
    Run one, four;
    Arena a = {0};
    const char *text = accumulated[_i];
    const char *cut = "train m {\n    optimizer adamw(lr = 0.1)\n    clip global_norm(1)\n"
                      "    accumulate 4\n}\n";
    run_open(&one, with_training(&a, text, trained), NULL);
    run_open(&four, with_training(&a, text, cut), (Define[]){{"batch", "2"}, {NULL, NULL}});
    for (EntryKind e = ENTRY_GRAD; e <= ENTRY_STEP; e++) {
        const Graph *g = one.out.graph[e];
        Value *v1 = run_entry(&one, e), *v4 = run_entry(&four, e);
        for (int i = 0; i < g->root.n; i++) {
            const Root *r = &g->root.at[i];
            const Root *s = run_root(&four, e, r->kind, r->name);
            same_root(&v1[r->ref], &v4[s->ref], r, text);
        }
    }
    run_close(&one);
    run_close(&four);
    arena_free(&a);
}
END_TEST

/* Of four micro-batches of two, one has one row and one has none. */
START_TEST(micro_batches_may_lack_rows)
{
    Run four, one;
    Arena a = {0};
    const char *text = accumulated[_i];
    const char *cut = "train m {\n    optimizer sgd(lr = 0.1)\n    clip value(0.01)\n"
                      "    accumulate 4\n}\n",
               *whole = "train m {\n    optimizer sgd(lr = 0.1)\n    clip value(0.01)\n}\n";
    run_open(&four, with_training(&a, text, cut), (Define[]){{"batch", "2"}, {NULL, NULL}});
    run_open(&one, with_training(&a, text, whole), (Define[]){{"batch", "5"}, {NULL, NULL}});
    same_rows(&four, &one);
    four.rows = 5;
    compare_roots(&four, &one, ENTRY_GRAD, text);
    compare_roots(&four, &one, ENTRY_STEP, text);
    run_close(&four);
    run_close(&one);
    arena_free(&a);
}
END_TEST

/* State goes through the micro-batches; their draws differ. */
START_TEST(micro_batches_pass_state_on)
{
    Run r;
    run_open(&r,
             "model m(batch = 2) {\n"
             "    input x : f32[batch]\n"
             "    param w : f32 = 1\n"
             "    state seen : f32 = 0\n"
             "    state sum : f32 = 0\n"
             "    seen <- 2 * seen + 1\n"
             "    sum <- sum + mean(x)\n"
             "    output u = uniform([batch])\n"
             "    loss w * mean(x)\n"
             "}\n"
             "train m {\n    optimizer sgd(lr = 1)\n    accumulate 3\n}\n",
             NULL);
    Value *v = run_entry(&r, ENTRY_STEP);
    const Value *u = &v[run_root(&r, ENTRY_STEP, ROOT_OUTPUT, "u")->ref];
    ck_assert_int_eq(u->n, 6);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++)
            ck_assert(u->x[i] != u->x[j]);
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += r.input[0].x[i] / 2;
    ck_assert(run_step(&r, NULL));
    close_to(run_slot(&r, "seen")->x[0], 7);
    close_to(run_slot(&r, "sum")->x[0], sum);
    close_to(run_slot(&r, "w")->x[0], 1 - sum / 3);
    r.rows = 3; /* the third micro-batch is empty: state is as the second left it */
    double half = r.input[0].x[2], w = run_slot(&r, "w")->x[0];
    double mean = (r.input[0].x[0] + r.input[0].x[1]) / 2;
    ck_assert(run_step(&r, NULL));
    close_to(run_slot(&r, "seen")->x[0], 31);
    close_to(run_slot(&r, "sum")->x[0], sum + mean + half);
    close_to(run_slot(&r, "w")->x[0], w - (2 * mean + half) / 3);
    run_close(&r);
}
END_TEST

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
        for (int i = 0; i < N; i++) /* the learning rate is an f32 */
            ck_assert_msg(fabs(run_slot(&r, "w")->x[i] - ref.w[i]) < 1e-7,
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

/* ---- first values and draws ---------------------------------------------- */

START_TEST(first_values)
{
    Run r, other;
    const char *text = "model m {\n"
                       "    param a : f32[4000] = uniform(low = -2, high = 6)\n"
                       "    param b : f32[4000] = normal(mean = 3, std = 0.5)\n"
                       "    param c : f32[64, 50] = kaiming_uniform(fan = 50, a = sqrt(5))\n"
                       "    param d : f32[2, 2] = [[1, 2], [3, 4.5]]\n"
                       "    param e, f : f32[100] = normal\n"
                       "    state s : i32[2] = [7, -7]\n"
                       "    loss sum(a) + sum(b) + sum(c) + sum(d) + sum(e * f) + cast(s[0], f32)\n"
                       "}\n";
    run_open(&r, text, NULL);
    double sum = 0, square = 0, least = 9, most = -9, bound = 0;
    for (int i = 0; i < 4000; i++) {
        least = fmin(least, run_slot(&r, "a")->x[i]);
        most = fmax(most, run_slot(&r, "a")->x[i]);
        sum += run_slot(&r, "b")->x[i] / 4000;
        square += pow(run_slot(&r, "b")->x[i] - 3, 2) / 4000;
    }
    for (int i = 0; i < 64 * 50; i++)
        bound = fmax(bound, fabs(run_slot(&r, "c")->x[i]));
    ck_assert(least >= -2 && least < -1.9 && most < 6 && most > 5.9);
    ck_assert_double_eq_tol(sum, 3, 0.05);
    ck_assert_double_eq_tol(square, 0.25, 0.03);
    ck_assert(bound <= 1 / sqrt(50) && bound > 0.99 / sqrt(50));
    close_to(run_slot(&r, "d")->x[3], 4.5);
    close_to(run_slot(&r, "s")->x[1], -7);
    ck_assert(run_slot(&r, "e")->x[0] != run_slot(&r, "f")->x[0]);
    /* They depend on the name and the seed alone. */
    run_open(&other,
             "model m {\n"
             "    param f : f32[100] = normal\n"
             "    param a : f32[4000] = uniform(low = -2, high = 6)\n"
             "    loss sum(a) + sum(f)\n"
             "}\n",
             NULL);
    ck_assert(run_slot(&other, "f")->x[9] == run_slot(&r, "f")->x[9]);
    ck_assert(run_slot(&other, "a")->x[9] == run_slot(&r, "a")->x[9]);
    run_init(&other, 2);
    ck_assert(run_slot(&other, "f")->x[9] != run_slot(&r, "f")->x[9]);
    run_close(&r);
    run_close(&other);
}
END_TEST

START_TEST(draws_differ_by_step_use_and_iteration)
{
    Run r;
    run_open(&r,
             "block noise(x) {\n    return x * uniform([4])\n}\n"
             "model m {\n"
             "    param w : f32[4] = ones\n"
             "    a = noise(w) as n\n"
             "    b = noise(w) share n\n"
             "    c = noise(w)\n"
             "    s = scan i in 0..3, s = 0 {\n"
             "        s = 0 * s + cast(i, f32)\n"
             "        emit uniform([4])\n"
             "    }\n"
             "    u, _last = s\n"
             "    output a, b, c, u\n"
             "    loss sum(a + b + c)\n"
             "}\n"
             "train m {\n    optimizer sgd(lr = 0)\n}\n",
             NULL);
    double seen[64];
    int n = 0;
    for (int step = 0; step < 2; step++) {
        static const char *const name[] = {"a", "b", "c", "u"};
        Value *v = run_entry(&r, ENTRY_STEP);
        for (int k = 0; k < 4; k++) {
            const Value *x = &v[run_root(&r, ENTRY_STEP, ROOT_OUTPUT, name[k])->ref];
            for (int64_t i = 0; i < x->n; i++)
                seen[n++] = x->x[i];
        }
        run_step(&r, NULL);
    }
    ck_assert_int_eq(n, 2 * (12 + 12));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            ck_assert_msg(seen[i] != seen[j], "draws %d and %d are equal", i, j);
    run_close(&r);
}
END_TEST

/* ---- equal programs ------------------------------------------------------ */

/* Pairs of models that say the same thing. */
static const char *const pairs[][2] = {
    {"h = x[0]\n    for i in 1..4 {\n        h = tanh(h * w + x[i])\n    }\n    loss sum(h)",
     "h = scan g in x[1:], h = x[0] {\n        h = tanh(h * w + g)\n    }\n    loss sum(h)"},
    {"t = transpose(x)\n    s = 0\n    for i in 0..4 {\n        s = s * w[0] + t[:, 3 - i]\n    }\n"
     "    loss sum(s * s)",
     "s = scan g in transpose(x), axis = 1, reverse = true, s = zeros([3]) {\n"
     "        s = s * w[0] + g\n    }\n    loss sum(s * s)"},
    {"s = 0\n    for i in 0..4 {\n        p[i] = x[i] * w\n        s = s + p[i]\n    }\n"
     "    loss sum(s * stack([p[0], p[1], p[2], p[3]], axis = 1)[:, 2])",
     "ps, s = scan g in x, axis = 0, s = zeros([3]) {\n        s = s + g * w\n        emit g * w\n "
     "   }\n"
     "    loss sum(s * ps[2])"},
    {"loss mean(softmax(x * w))",
     "e = exp(x * w)\n    loss mean(e / sum(e, axis = -1, keep = true))"},
    {"loss sum(grad(sum(w^3 * x), w))", "loss sum(3 * w^2 * sum(x, axis = 0))"},
    {"a, b = grad(sum(w^3 * x), (w, x))\n    loss sum(a) + sum(b)",
     "loss sum(3 * w^2 * sum(x, axis = 0)) + 4 * sum(w^3)"},
    {"loss sum((x @ w)^2)", "loss sum(einsum(\"ij,j->i\", x, w)^2)"},
    {"loss sum(max(x, axis = 1) * w[0])", "loss sum(max(max(x[:, 0], x[:, 1]), x[:, 2]) * w[0])"},
    {"loss sum(repeat(w, 2, axis = 0) * concat([x[0], x[1]]))",
     "loss sum(concat([w[:1], w[:1], w[1:2], w[1:2], w[2:], w[2:]]) * flatten(x[:2]))"},
    {"loss sum(one_hot([2, 0], 3, f64) @ w)", "loss w[2] + w[0]"},
    {"loss norm(w) + logsumexp(w)", "loss sqrt(sum(w * w)) + log(sum(exp(w)))"},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

START_TEST(equal_programs_give_equal_gradients)
{
    Run r[2];
    Arena a = {0};
    for (int i = 0; i < 2; i++)
        run_open(&r[i],
                 arena_printf(&a,
                              "model m {\n"
                              "    input x : f64[4, 3]\n"
                              "    param w : f64[3] = [0.5, -0.25, 2]\n"
                              "    %s\n}\n",
                              pairs[_i][i]),
                 NULL);
    Value *x = run_entry(&r[0], ENTRY_GRAD), *y = run_entry(&r[1], ENTRY_GRAD);
    const Root *lx = run_root(&r[0], ENTRY_GRAD, ROOT_LOSS, NULL);
    const Root *ly = run_root(&r[1], ENTRY_GRAD, ROOT_LOSS, NULL);
    close_to(x[lx->ref].x[0], y[ly->ref].x[0]);
    lx = run_root(&r[0], ENTRY_GRAD, ROOT_GRADIENT, "w");
    ly = run_root(&r[1], ENTRY_GRAD, ROOT_GRADIENT, "w");
    for (int i = 0; i < 3; i++)
        ck_assert_msg(fabs(x[lx->ref].x[i] - y[ly->ref].x[i]) < 1e-9, "%s: dw[%d] is %g and %g",
                      pairs[_i][0], i, x[lx->ref].x[i], y[ly->ref].x[i]);
    run_close(&r[0]);
    run_close(&r[1]);
    arena_free(&a);
}
END_TEST

/* ---- whole programs ------------------------------------------------------ */

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    char *text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    text[n] = '\0';
    return text;
}

static void build_file(const char *path)
{
    Run r;
    char *text = read_text(path);
    run_try(&r, path, text, NULL);
    ck_assert_msg(r.fine, "%s\n%s", path, run_messages(&r));
    ck_assert_msg(r.cx.n_warnings == 0, "%s\n%s", path, run_messages(&r));
    run_close(&r);
    free(text);
}

START_TEST(models_build)
{
    static const char *const folder[] = {
        SOURCE_DIR "/tests/run/", SOURCE_DIR "/tests/bench/models/", SOURCE_DIR "/examples/"};
    DIR *d = opendir(folder[_i]);
    int n = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        size_t length = strlen(e->d_name);
        if (length < 7 || strcmp(e->d_name + length - 6, ".model") != 0)
            continue;
        char path[1024];
        snprintf(path, sizeof path, "%s%s", folder[_i], e->d_name);
        build_file(path);
        n++;
    }
    if (d != NULL)
        closedir(d);
    ck_assert(_i == 2 || n > 0);
}
END_TEST

/* ```model blocks build; ```model-error ones begin with `# CODE`, their first error. */
static void manual_example(const char *text, bool good)
{
    Run r;
    run_try(&r, "example.model", text, NULL);
    if (good) {
        ck_assert_msg(r.fine, "%s\n%s", text, run_messages(&r));
    } else {
        ck_assert_msg(!r.fine, "%s", text);
        int i = 0;
        while (i < r.cx.diag.n && r.cx.diag.at[i]->warning)
            i++;
        const char *is = code_id(r.cx.diag.at[i]->code);
        ck_assert_msg(strncmp(text + 2, is, 5) == 0, "%s, and not:\n%s", is, text);
    }
    run_close(&r);
}

START_TEST(examples_of_the_reference_build)
{
    char *page = read_text(SOURCE_DIR "/grammar/language.md");
    int n = 0;
    for (char *p = page; (p = strstr(p, "```model")) != NULL;) {
        bool good = strncmp(p, "```model\n", 9) == 0;
        char *text = strchr(p, '\n') + 1, *end = strstr(text, "```");
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        manual_example(text, good);
        p = end + 1;
        n++;
    }
    ck_assert_int_gt(n, 10);
    free(page);
}
END_TEST

START_TEST(the_functions_are_as_described)
{
    Arena a = {0};
    Text manual;
    text_init(&manual, &a);
    functions_manual(&manual);
    char *page = read_text(SOURCE_DIR "/grammar/functions.md");
    if (strcmp(page, manual.at) != 0) {
        FILE *f = fopen(BUILD_DIR "/functions.md", "wb"); /* to be compared, and copied */
        if (f != NULL) {
            fputs(manual.at, f);
            fclose(f);
        }
        ck_abort_msg("grammar/functions.md is stale; " BUILD_DIR
                     "/functions.md is what it should be");
    }
    int n = 0;
    for (char *row = strtok(page, "\n"); row != NULL; row = strtok(NULL, "\n")) {
        char *end = strrchr(row, '`');
        if (strncmp(row, "| `", 3) != 0 || end == NULL || strcmp(end, "` |") != 0)
            continue;
        *end = '\0';
        const char *example = strrchr(row, '`') + 1;
        Run r;
        run_try(&r, "example.model",
                arena_printf(&a,
                             "model m {\n    input x : f32[2, 3, 4]\n    input i : i32[2, 3]\n"
                             "    param w : f32 = 1\n    _ = %s\n    loss w\n}\n",
                             example),
                NULL);
        ck_assert_msg(r.fine, "%s\n%s", example, run_messages(&r));
        run_close(&r);
        n++;
    }
    ck_assert_int_gt(n, 40);
    free(page);
    arena_free(&a);
}
END_TEST

/* ---- limits -------------------------------------------------------------- */

START_TEST(deep_and_wide_models)
{
    Run r;
    Text t;
    Arena a = {0};
    text_init(&t, &a);
    text_add(&t, "use nn\nmodel m {\n    input x : f32[1, 2, 4]\n");
    for (int i = 0; i < 300; i++)
        text_add(&t, "    x = nn.block(x, heads = 2) as h[%d]\n", i);
    text_add(&t, "    loss mean(x");
    for (int i = 0; i < 900; i++)
        text_add(&t, " + %d", i);
    text_add(&t, ")\n}\n");
    run_try(&r, "m.model", t.at, NULL);
    ck_assert_msg(r.fine, "%s", run_messages(&r));
    int params = 0;
    for (int i = 0; i < pinned(&r)->slot.n; i++)
        params += pinned(&r)->slot.at[i].kind == SLOT_PARAM;
    ck_assert_int_eq(params, 300 * 12);
    run_close(&r);
    arena_free(&a);
}
END_TEST

/* Definitions that call one another, each through many operators. */
START_TEST(nesting_has_an_end)
{
    Run r;
    Text t;
    Arena a = {0};
    text_init(&t, &a);
    for (int i = 0; i < 40; i++) {
        text_add(&t, "fn f%d(x) {\n    return ", i);
        for (int k = 0; k < 200; k++)
            text_add(&t, "-(");
        text_add(&t, i == 39 ? "x" : "f%d(x)", i + 1);
        for (int k = 0; k < 200; k++)
            text_add(&t, ")");
        text_add(&t, "\n}\n");
    }
    text_add(&t, "model m {\n    param w : f32 = 1\n    loss f0(w)\n}\n");
    run_try(&r, "m.model", t.at, NULL);
    ck_assert(!r.fine);
    ck_assert_int_eq(r.cx.n_errors, 1);
    ck_assert_int_eq(r.cx.diag.at[0]->code, E0901);
    run_close(&r);
    arena_free(&a);
}
END_TEST

/* Another order, other names, another library would be another model; a comment is not. */
START_TEST(the_hash_is_of_what_matters)
{
    static const char *const text[] = {
        "model m(n = 3) {\n    param w : f32[n] = ones\n    loss sum(w)\n}\n",
        ("# a comment\nmodel m(n = 3) {\n    param w : f32[n] = ones  # another\n\n    loss "
         "sum(w)\n}\n"),
        "model m(n = 3) {\n    param w : f32[n] = ones\n    loss sum(w^2)\n}\n",
        "model m(n = 4) {\n    param w : f32[n] = ones\n    loss sum(w)\n}\n",
    };
    char hash[5][65];
    for (int i = 0; i < 5; i++) {
        Run r;
        run_open(&r, text[i < 4 ? i : 0], (Define[]){{i == 4 ? "n" : NULL, "5"}, {NULL, NULL}});
        model_hash(r.out.model, hash[i]);
        ck_assert_uint_eq(strlen(hash[i]), 64);
        run_close(&r);
    }
    ck_assert_str_eq(hash[0], hash[1]);
    for (int i = 2; i < 5; i++)
        for (int j = 0; j < i; j++)
            ck_assert_msg(j == 0 || j == 1 || strcmp(hash[i], hash[j]) != 0, "%d %d", i, j);
    ck_assert_str_ne(hash[0], hash[2]);
    ck_assert_str_ne(hash[0], hash[3]);
    ck_assert_str_ne(hash[0], hash[4]);
}
END_TEST

Suite *suite_front(void);
Suite *suite_front(void)
{
    Suite *s = suite_create("front");
    TCase *t = tcase_create("front");
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, a_partial_batch_is_a_smaller_model, 0, N_ROW_MODELS);
    tcase_add_test(t, mixed_rows_take_whole_batches);
    tcase_add_loop_test(t, micro_batches_are_one_batch, 0, N_ACCUMULATED);
    tcase_add_loop_test(t, micro_batches_may_lack_rows, 0, N_ACCUMULATED);
    tcase_add_test(t, micro_batches_pass_state_on);
    tcase_add_loop_test(t, optimizers_are_those_of_the_papers, 0, N_OPTIMIZERS);
    tcase_add_test(t, the_rate_can_be_set);
    tcase_add_test(t, a_step_that_is_not_finite_changes_nothing);
    tcase_add_test(t, first_values);
    tcase_add_test(t, draws_differ_by_step_use_and_iteration);
    tcase_add_loop_test(t, equal_programs_give_equal_gradients, 0, N_PAIRS);
    tcase_add_loop_test(t, models_build, 0, 3);
    tcase_add_test(t, examples_of_the_reference_build);
    tcase_add_test(t, the_functions_are_as_described);
    tcase_add_test(t, deep_and_wide_models);
    tcase_add_test(t, nesting_has_an_end);
    tcase_add_test(t, the_hash_is_of_what_matters);
    return s;
}
