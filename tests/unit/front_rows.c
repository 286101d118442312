/* Batches that lack rows and steps of several micro-batches, against whole batches. */
#include "front_run.h"

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
    /* put together of phases, and told of what they are the adjoint; a gradient of a gradient */
    "use nn\n"
    "model m(batch = 8) {\n"
    "    input x : f32[batch, 2, 5, 5]\n"
    "    y = tanh(nn.conv_transpose2d(x, 3, kernel = 3, stride = 2, padding = 1) as up)\n"
    "    z = sin(nn.conv2d(y, 2, kernel = 3, stride = 2) as down)\n"
    "    loss mean(grad(sum(z), y)^2)\n"
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
    /* draws that belong to the rows, in a body and a block, too */
    "use nn\n"
    "block noisy(x, n) {\n    return x @ full([3, 2], 0.5) + normal([n, 2], std = 0.1)\n}\n"
    "model m(batch = 8) {\n"
    "    input x : f32[batch, 3]\n"
    "    param w : f32[3] = normal\n"
    "    z = normal([batch, 3]) * w\n"
    "    u = uniform([dim(x, 0)], f32, -1, 1)\n"
    "    v = normal(shape(x), std = 2) + uniform(shape(z))\n"
    "    s = scan i in 0..3, s = 0 {\n"
    "        s = s + mean((normal(shape(x)) * w)^2)\n"
    "    }\n"
    "    e = scan i in 0..3 {\n"
    "        f = scan j in 0..2 {\n            emit normal([batch, 3]) * w\n        }\n"
    "        emit f\n"
    "    }\n"
    "    c = scan i in 0..3, c = zeros([batch, 3]) {\n        c = c + normal([batch, 3]) * w\n    "
    "}\n"
    "    loss mean(z^2) + mean(u^2) + mean(v * w) + s + mean(noisy(x, batch)) + mean(e^2) + "
    "mean(c^2)\n"
    "    metric sums = sum(max(z, axis = 1)) + sum(u)\n"
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

Suite *suite_front_rows(void);
Suite *suite_front_rows(void)
{
    Suite *s = suite_create("front_rows");
    TCase *t = tcase_create("rows");
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, a_partial_batch_is_a_smaller_model, 0, N_ROW_MODELS);
    tcase_add_test(t, mixed_rows_take_whole_batches);
    tcase_add_loop_test(t, micro_batches_are_one_batch, 0, N_ACCUMULATED);
    tcase_add_loop_test(t, micro_batches_may_lack_rows, 0, N_ACCUMULATED);
    tcase_add_test(t, micro_batches_pass_state_on);
    return s;
}
