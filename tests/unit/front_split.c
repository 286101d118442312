/* A batch that is taken as micro-batches gives what the whole batch does, or is refused. */
#include "front_run.h"
#include "support/few.h"

#define TRAIN "train m {\n    optimizer adamw(lr = 0.1 * batch)\n    clip global_norm(1)\n"

/* What is a mean over rows, in the end. */
static const char *const split_models[] = {
    /* rows in products and sums, a weighted loss that ignores labels, gradients of inputs */
    "use nn\n"
    "model m(batch = 12) {\n"
    "    input x : f32[batch, 4] with grad\n"
    "    input scale : f32 with grad\n"
    "    input label : i32[batch] in 0..3\n"
    "    param v : f32[4] = 1\n"
    "    y = nn.linear(tanh(nn.linear(x * v, 5)), 3) as last\n"
    "    loss scale * mean(nn.cross_entropy(y, label, weight = [1, 2, 0.5], ignore = 0)) + "
    "0.1 * sum(v^2)\n"
    "    metric a = nn.accuracy(y, label)\n"
    "    metric b = sum(y) / count(y)\n"
    "    output y, best = argmax(y, axis = -1)\n"
    "}\n",
    /* sequences: [batch * ctx], attention, a table that rows read */
    "use nn\n"
    "model m(batch = 12, ctx = 4, width = 8) {\n"
    "    input tokens, next : i32[batch, ctx] in 0..11\n"
    "    param wte : f32[11, width] = normal(std = 0.5)\n"
    "    x = nn.block(wte[tokens], heads = 2) as h[0]\n"
    "    logits = reshape(nn.layer_norm(x) @ transpose(wte), [batch * ctx, 11])\n"
    "    loss mean(nn.cross_entropy(logits, reshape(next, [-1])))\n"
    "    output logits\n"
    "}\n",
    /* images: windows, pooling, layouts */
    "use nn\n"
    "model m(batch = 12) {\n"
    "    input x : f32[batch, 2, 6, 6]\n"
    "    y = nn.max_pool2d(relu(nn.conv2d(x, 3, kernel = 3, padding = 1) as c), 2)\n"
    "    y = nn.linear(reshape(y, [batch, 27]), 4) as out\n"
    "    loss sum(y^2) / count(y, axis = 0)\n"
    "    output y\n"
    "}\n",
    /* put together of phases, and told of what they are the adjoint */
    "use nn\n"
    "model m(batch = 12) {\n"
    "    input x : f32[batch, 2, 5, 5] with grad\n"
    "    y = tanh(nn.conv_transpose2d(x, 3, kernel = 3, stride = 2, padding = 1) as up)\n"
    "    loss mean(nn.conv_transpose2d(y, 1, kernel = 4, stride = 2, padding = 1)^2)\n"
    "    output y\n"
    "}\n",
    /* recurrence, and a sum of means carried by a scan */
    "use nn\n"
    "model m(batch = 12) {\n"
    "    input x : f32[batch, 5, 3]\n"
    "    hs = nn.lstm(x, 4) as rnn\n"
    "    s = scan i in 0..3, s = 0 {\n"
    "        s = s + mean(hs) * cast(i + 1, f32)\n"
    "    }\n"
    "    loss mean(hs^2) + s\n"
    "}\n",
    /* a rule of its own; a gradient by each row; a quantised weight */
    "fn through(x) {\n    return round(x)\n} vjp(ct) {\n    return 2 * ct\n}\n"
    "model m(batch = 12) {\n"
    "    input x : f32[batch, 3] with grad\n"
    "    param w : f32[3] = [1, 2, 3]\n"
    "    g = grad(sum(sin(w * x)), x)\n"
    "    loss mean(g^2) + mean(through(x * w) * through(w))\n"
    "}\n",
    /* rows in a later axis, an index map over them, scatter */
    "model m(batch = 12) {\n"
    "    input x : f32[batch, 3]\n"
    "    input k : i32[batch] in 0..5\n"
    "    param w : f32[3, 5] = normal\n"
    "    y = transpose(x @ w)\n"
    "    s = scatter_add(zeros([5], f32), k, sum(x, axis = 1))\n"
    "    loss mean(y * y) + 0.5 * sum(s * w[0]) / count(x, axis = 0)\n"
    "    output z = transpose(y)\n"
    "}\n",
};
enum { N_SPLIT = sizeof split_models / sizeof *split_models };

static void same_value(const Value *x, const Value *y, const Root *r, int64_t split, int64_t rows)
{
    ck_assert_int_eq(x->n, y->n);
    for (int64_t k = 0; k < x->n; k++) /* constants are rounded to f32 */
        ck_assert_msg((isnan(x->x[k]) && isnan(y->x[k])) ||
                          fabs(x->x[k] - y->x[k]) < 2e-7 * fmax(1, fabs(x->x[k])),
                      "in %lld, %lld rows: %s %s[%lld]: %.17g and %.17g", (long long)split,
                      (long long)rows, root_kind_name(r->kind), r->name, (long long)k, x->x[k],
                      y->x[k]);
}

/* With `rows` valid ones (0: all of them) whole and in parts. */
static void compare(const char *text, int64_t split, int64_t rows)
{
    Run whole, part;
    run_open(&whole, text, NULL);
    run_form(&part, "m.model", text, NULL, (Form){.split = split});
    ck_assert_msg(part.fine, "%s", run_messages(&part));
    run_init(&part, 1);
    run_inputs(&part, 7);
    whole.rows = part.rows = rows;
    ck_assert_int_eq(model_batch(whole.out.model), model_batch(part.out.model));
    char hash[2][65];
    model_hash(whole.out.model, hash[0]);
    model_hash(part.out.model, hash[1]);
    ck_assert_str_eq(hash[0], hash[1]);
    for (EntryKind e = ENTRY_EVAL; e <= ENTRY_STEP; e++) {
        const Graph *g = whole.out.graph[e];
        Value *v = run_entry(&whole, e), *w = run_entry(&part, e);
        ck_assert_int_eq(g->root.n, part.out.graph[e]->root.n);
        for (int i = 0; i < g->root.n; i++) {
            const Root *r = &g->root.at[i], *s = run_root(&part, e, r->kind, r->name);
            ck_assert(type_same(type_of(g, r->ref), type_of(part.out.graph[e], s->ref)));
            if (rows == 0 || r->kind != ROOT_OUTPUT)
                same_value(&v[r->ref], &w[s->ref], r, split, rows);
        }
    }
    run_close(&whole);
    run_close(&part);
}

static const char *refused(const char *text, int64_t split, char *why, size_t n)
{
    static const bool all[] = {true, true, true, true};
    Run r;
    run_open(&r, text, NULL);
    const char *said = model_splits(&r.cx, r.out.model, NULL, 0, split, all);
    ck_assert_int_eq(r.cx.n_errors, 0);
    snprintf(why, n, "%s", said == NULL ? "" : said);
    run_close(&r);
    return said == NULL ? NULL : why;
}

START_TEST(parts_give_what_the_whole_does)
{
    static const int64_t split[] = {2, 12, 3, 6};
    static const int64_t rows[] = {0, 1, 7};
    Arena a = {0};
    char why[300];
    for (uint64_t k = 0; k < few_of(4, 2); k++)
        for (int n = 1; n <= 2; n++) {
            const char *text =
                arena_printf(&a, "%s" TRAIN "    accumulate %d\n}\n", split_models[_i], n);
            if (refused(text, split[k], why, sizeof why) != NULL) {
                /* of one row, some operations have another form */
                ck_assert_msg(split[k] == 12, "in %lld: %s", (long long)split[k], why);
                continue;
            }
            for (int i = 0; i < 3; i++)
                compare(text, split[k], rows[i]);
        }
    arena_free(&a);
}
END_TEST

/* Statements of a model of x f32[12, 3] and w f32[3], and what is said of them. */
static const struct {
    const char *text, *why;
} mixed_models[] = {
    {"loss sum(x * w)", "the loss `loss` is no mean over the rows of a batch"},
    {"loss mean(x * w)^2", "is not linear in a sum or mean over the rows"},
    {"loss mean((x * w - mean(x * w, axis = 0))^2)", "gives each row a sum or mean over the rows"},
    {"loss mean(nn.batch_norm(x * w) as bn)", "in `bn`"},
    {"loss mean(nn.dropout(x * w, 0.5))\n    state n : f32 = 0\n    n <- n + 1",
     "the state `n` is set once for all rows of a batch"},
    {"loss mean(x * w) * batch", "the loss depends on the size of `batch`"},
    {"loss sum(x * w) / batch", "the loss depends on the size of `batch`"},
    {"loss sum(x * w) * count(x, axis = 0)", "is no mean over the rows of a batch"},
    {"loss mean(x * w * (batch - 2))", "depends on the size of `batch`"},
    {"loss mean(max(x * w, axis = 0))", "reads several rows of the batch at once"},
    {"loss mean((x @ transpose(x)) * sum(w))", "reads several rows of the batch at once"},
    {"loss mean(flip(x, axis = 0) * x * w)", "reads several rows of the batch at once"},
    {"loss mean(x[2:] * w)", "reads several rows of the batch at once"},
    {"loss mean(cumsum(x, axis = 0) * w)", "reads several rows of the batch at once"},
    {"loss mean(concat([x, x]) * w)", "reads several rows of the batch at once"},
    {"loss mean(reshape(transpose(x), [batch, 3]) * w)", "reads several rows of the batch at once"},
    {"loss mean(x * w * cast(iota([batch, 3]), f32))", "reads several rows of the batch at once"},
    {"loss mean(x * w * uniform([3]))", "draws once for all rows of the batch"},
    {"g = grad(mean((x * w)^2), x)\n    loss sum(g^2)", "no mean over the rows of a batch"},
    {"if batch > 8 {\n        x = x * 2\n    }\n    loss mean(x * w)", "the model is another one"},
    {"for i in 0..batch {\n        x = x * 1.1\n    }\n    loss mean(x * w)", "another one"},
    {"param u : f32[batch] = 1\n    loss mean(u * (x @ w))", "`u` depends on `batch`"},
    {"param u : f32 = batch\n    loss mean(u * (x @ w))", "`u` depends on the size of `batch`"},
    {"input y : f32[2 * batch]\n    loss mean(x * w) + mean(y)",
     "reads an input of which `batch` is not the first size alone"},
    {"output s = sum(x, axis = 0)\n    loss mean(x * w)", "the output `s` has not a part for each"},
    {"output t = transpose(x)\n    loss mean(x * w)", "the output `t` has not a part for each row"},
    {"metric worst = max(x)\n    loss mean(x * w)", "`worst` reads several rows"},
    {"s = scan row in x, s = zeros([3], f32) {\n        s = s + row\n    }\n    loss mean(s * w)",
     "reads several rows of the batch at once"},
    {"s = scan i in 0..3, s = 1 {\n        s = s * batch\n    }\n    loss mean(s * x * w)",
     "the loss depends on the size of `batch`"},
    {"loss mean(clipped(x * w))", "has a `vjp` that is not linear, row by row"},
    {"loss mean(x[0:11] * w)", "the model is another one"},
    {"s = scatter_add(zeros([5], f32), cast(x[:, 0], i32), x[:, 1])\n    loss sum(s) * sum(w)",
     "the loss `loss` is no mean"},
    {"loss mean(reshape(x, [4, 9]) * sum(w))", "and this has 36"},
};
enum { N_MIXED = sizeof mixed_models / sizeof *mixed_models };

START_TEST(what_is_not_known_is_refused)
{
    char why[300];
    Arena a = {0};
    const char *text = arena_printf(
        &a,
        "use nn\nfn clipped(x) {\n    return x\n} vjp(ct) {\n    return clamp(ct, -1, 1)\n}\n"
        "model m(batch = 12) {\n    input x : f32[batch, 3]\n    param w : f32[3] = 1\n    %s\n}\n"
        "train m {\n    optimizer sgd(lr = 1)\n}\n",
        mixed_models[_i].text);
    ck_assert_msg(refused(text, 2, why, sizeof why) != NULL, "%s", mixed_models[_i].text);
    ck_assert_msg(strstr(why, mixed_models[_i].why) != NULL, "%s\n%s", mixed_models[_i].text, why);
    arena_free(&a);
}
END_TEST

Suite *suite_front_split(void);
Suite *suite_front_split(void)
{
    Suite *s = suite_create("front_split");
    TCase *t = tcase_create("split");
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, parts_give_what_the_whole_does, 0, N_SPLIT);
    tcase_add_loop_test(t, what_is_not_known_is_refused, 0, N_MIXED);
    return s;
}
