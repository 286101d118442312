/* Nets of ordinary layers and sizes: convolutions of all kinds, norms, pools, blocks of
 * transformers, recurrent cells. What a target makes of a kernel depends on its sizes, of which
 * the models of gen.c have the smallest; these are as large as a step of some ten milliseconds. */
#include "smith.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"

enum { MOST_AXES = 3, MOST_KEPT = 12, NAME_BYTES = 16 };

/* x[batch, channels, size] */
typedef struct Image {
    char name[NAME_BYTES];
    int64_t channels;
    int axes;
    int64_t size[MOST_AXES];
} Image;

typedef struct Net {
    uint64_t rng;
    Text text;
    int made; /* names */
    int64_t batch;
    double work;           /* multiply-adds so far, ... */
    double most;           /* ... and at the most */
    Image x;               /* the newest one */
    Image kept[MOST_KEPT]; /* the ones before, for residuals */
    int n_kept;
} Net;

static bool chance(Net *n, int percent)
{
    return random_below(&n->rng, 100) < percent;
}

static int64_t pick_of(Net *n, const int64_t *from, size_t count)
{
    return from[random_below(&n->rng, (int64_t)count)];
}
#define PICK(n, ...)                                                                               \
    pick_of(n, (const int64_t[]){__VA_ARGS__},                                                     \
            sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static const char *new_name(Net *n, char *to)
{
    snprintf(to, NAME_BYTES, "v%d", ++n->made);
    return to;
}

static int64_t places(const Image *x)
{
    int64_t all = 1;
    for (int i = 0; i < x->axes; i++)
        all *= x->size[i];
    return all;
}

/* Whether there may be so many multiply-adds and elements more; counts them. */
static bool affords(Net *n, double work, int64_t elems)
{
    enum { MOST_ELEMS = 2000000 };
    if (n->work + work > n->most || elems > MOST_ELEMS)
        return false;
    n->work += work;
    return true;
}

static const char *truth(bool x)
{
    return x ? "true" : "false";
}

/* ---- layers of images --------------------------------------------------------------------- */

static void add_activation(Net *n, char *name)
{
    static const char *const of[] = {"relu",    "relu", "relu", "nn.gelu",     "nn.silu",
                                     "sigmoid", "tanh", "abs",  "nn.gelu_tanh"};
    char x[NAME_BYTES];
    snprintf(x, sizeof x, "%s", name);
    const char *f = of[random_below(&n->rng, (int64_t)(sizeof of / sizeof *of))];
    text_add(&n->text, "    %s = %s(%s)\n", new_name(n, name), f, x);
}

/* A layer is the newest value now, most often with an activation. Gives true, for its caller. */
static bool go_on_with(Net *n, const Image *y)
{
    n->x = *y;
    if (chance(n, 70))
        add_activation(n, n->x.name);
    return true;
}

/* By axis. */
typedef struct Window {
    int64_t kernel[MOST_AXES], stride[MOST_AXES], padding[MOST_AXES], dilation[MOST_AXES];
} Window;

static void draw_window(Net *n, Window *w, int axis)
{
    int64_t k = PICK(n, 1, 2, 3, 3, 3, 3, 4, 5, 5, 7), d = PICK(n, 1, 1, 1, 1, 1, 2, 3);
    int64_t half = (k - 1) * d / 2;
    w->kernel[axis] = k;
    w->dilation[axis] = d;
    w->stride[axis] = PICK(n, 1, 1, 1, 1, 2, 2, 3);
    w->padding[axis] = PICK(n, 0, half, half, half, 1, k * d / 2 + 1);
}

/* The same along all axes, three times of four. */
static void draw_windows(Net *n, Window *w, int axes)
{
    bool same = chance(n, 75);
    for (int i = 0; i < axes; i++) {
        draw_window(n, w, i);
        if (i > 0 && same) {
            w->kernel[i] = w->kernel[0];
            w->stride[i] = w->stride[0];
            w->padding[i] = w->padding[0];
            w->dilation[i] = w->dilation[0];
        }
    }
}

static void add_list(Net *n, const char *name, const int64_t *x, int axes)
{
    text_add(&n->text, ", %s = [", name);
    for (int i = 0; i < axes; i++)
        text_add(&n->text, i > 0 ? ", %lld" : "%lld", (long long)x[i]);
    text_add(&n->text, "]");
}

/* 1, or groups of some channels, or of one: then *out, too, is so many times something. */
static int64_t draw_groups(Net *n, int64_t channels, int64_t *out)
{
    if (chance(n, 70))
        return 1;
    int64_t groups = chance(n, 60) ? channels : PICK(n, 2, 3, 4, 8, 16);
    if (channels % groups != 0)
        return 1;
    *out = groups * (groups == channels ? PICK(n, 1, 1, 1, 2, 3) : PICK(n, 1, 2, 3, 4, 5, 8, 16));
    return groups;
}

static bool add_convolution(Net *n)
{
    Image y = n->x;
    Window w;
    draw_windows(n, &w, y.axes);
    y.channels =
        PICK(n, 1, 2, 3, 4, 6, 8, 12, 16, 16, 24, 32, 32, 40, 48, 64, 64, 96, 128, 130, 256);
    int64_t groups = draw_groups(n, n->x.channels, &y.channels), terms = n->x.channels / groups;
    for (int i = 0; i < y.axes; i++) {
        int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
        int64_t room = n->x.size[i] + 2 * w.padding[i] - reach;
        if (room < 0)
            return false;
        y.size[i] = room / w.stride[i] + 1;
        terms *= w.kernel[i];
    }
    int64_t elems = n->batch * y.channels * places(&y);
    if (!affords(n, (double)elems * (double)terms, elems))
        return false;
    new_name(n, y.name);
    text_add(&n->text, "    %s = nn.conv%dd(%s, %lld", y.name, y.axes, n->x.name,
             (long long)y.channels);
    add_list(n, "kernel", w.kernel, y.axes);
    add_list(n, "stride", w.stride, y.axes);
    add_list(n, "padding", w.padding, y.axes);
    add_list(n, "dilation", w.dilation, y.axes);
    text_add(&n->text, ", groups = %lld, bias = %s) as %s_\n", (long long)groups,
             truth(chance(n, 50)), y.name);
    return go_on_with(n, &y);
}

static bool add_transposed(Net *n)
{
    Image y = n->x;
    y.channels = PICK(n, 1, 2, 3, 4, 8, 16, 32, 33, 64);
    int64_t kernel = PICK(n, 2, 3, 4, 5), stride = PICK(n, 1, 2, 2, 3), padding = PICK(n, 0, 0, 1);
    int64_t more = chance(n, 30) && stride > 1, groups = chance(n, 20) ? PICK(n, 2, 4) : 1;
    if (n->x.channels % groups != 0 || y.channels % groups != 0)
        groups = 1;
    double work = (double)(n->batch * y.channels * n->x.channels / groups * places(&n->x));
    for (int i = 0; i < y.axes; i++) {
        y.size[i] = (n->x.size[i] - 1) * stride - 2 * padding + kernel + more;
        work *= (double)kernel;
        if (y.size[i] < 1)
            return false;
    }
    if (!affords(n, work, n->batch * y.channels * places(&y)))
        return false;
    new_name(n, y.name);
    text_add(
        &n->text,
        "    %s = nn.conv_transpose%dd(%s, %lld, kernel = %lld, stride = %lld, padding = %lld, "
        "output_padding = %lld, groups = %lld, bias = %s) as %s_\n",
        y.name, y.axes, n->x.name, (long long)y.channels, (long long)kernel, (long long)stride,
        (long long)padding, (long long)more, (long long)groups, truth(chance(n, 50)), y.name);
    return go_on_with(n, &y);
}

static bool add_norm(Net *n)
{
    Image y = n->x;
    if (places(&y) < 4)
        return false;
    new_name(n, y.name);
    int64_t groups = PICK(n, 1, 2, 4, 8, y.channels);
    if (chance(n, 60))
        text_add(&n->text, "    %s = nn.batch_norm(%s) as %s_\n", y.name, n->x.name, y.name);
    else if (chance(n, 50))
        text_add(&n->text, "    %s = nn.group_norm(%s, %lld) as %s_\n", y.name, n->x.name,
                 (long long)(y.channels % groups == 0 ? groups : 1), y.name);
    else if (y.axes == 2)
        text_add(&n->text,
                 "    %s = transpose(nn.layer_norm(transpose(%s, [0, 2, 3, 1])) as %s_, "
                 "[0, 3, 1, 2])\n",
                 y.name, n->x.name, y.name);
    else
        text_add(&n->text, "    %s = nn.instance_norm(%s)\n", y.name, n->x.name);
    return go_on_with(n, &y);
}

static bool add_pool(Net *n)
{
    Image y = n->x;
    int64_t kernel = PICK(n, 2, 2, 3), stride = PICK(n, 1, 2, 2, 3);
    int64_t padding = PICK(n, 0, 0, kernel / 2);
    if (y.axes != 2)
        return false;
    for (int i = 0; i < y.axes; i++) {
        int64_t room = n->x.size[i] + 2 * padding - kernel;
        if (room < 0)
            return false;
        y.size[i] = room / stride + 1;
    }
    text_add(&n->text, "    %s = nn.%s_pool2d(%s, %lld, stride = %lld, padding = %lld)\n",
             new_name(n, y.name), chance(n, 60) ? "max" : "avg", n->x.name, (long long)kernel,
             (long long)stride, (long long)padding);
    n->x = y;
    return true;
}

static bool same_size(const Image *x, const Image *y)
{
    return memcmp(x->size, y->size, sizeof x->size[0] * (size_t)x->axes) == 0;
}

/* One of those before, of the same size; NULL: none that was drawn. */
static const Image *draw_kept(Net *n)
{
    const Image *y = n->n_kept > 0 ? &n->kept[random_below(&n->rng, n->n_kept)] : NULL;
    return y != NULL && same_size(y, &n->x) ? y : NULL;
}

static bool add_residual(Net *n)
{
    const Image *z = draw_kept(n);
    char y[NAME_BYTES], projected[NAME_BYTES];
    if (z == NULL)
        return false;
    snprintf(projected, sizeof projected, "%s", z->name);
    int64_t elems = n->batch * n->x.channels * places(&n->x);
    if (z->channels != n->x.channels) {
        if (!affords(n, (double)elems * (double)z->channels, elems))
            return false;
        text_add(&n->text, "    %s = nn.conv%dd(%s, %lld, kernel = 1) as %s_\n",
                 new_name(n, projected), z->axes, z->name, (long long)n->x.channels, projected);
    }
    text_add(&n->text, "    %s = %s + %s\n", new_name(n, y), n->x.name, projected);
    memcpy(n->x.name, y, sizeof y);
    if (chance(n, 50))
        add_activation(n, n->x.name);
    return true;
}

static bool add_joined(Net *n)
{
    enum { MOST_CHANNELS = 300 };
    const Image *z = draw_kept(n);
    char y[NAME_BYTES];
    if (z == NULL || z->channels + n->x.channels > MOST_CHANNELS)
        return false;
    text_add(&n->text, "    %s = concat([%s, %s], axis = 1)\n", new_name(n, y), n->x.name, z->name);
    memcpy(n->x.name, y, sizeof y);
    n->x.channels += z->channels;
    return true;
}

/* Squeeze and excitation. */
static bool add_gate(Net *n)
{
    char gate[NAME_BYTES], y[NAME_BYTES];
    text_add(&n->text, "    %s = sigmoid(nn.linear(nn.global_avg_pool(%s), %lld) as %s_)\n",
             new_name(n, gate), n->x.name, (long long)n->x.channels, gate);
    text_add(&n->text, "    %s = %s * reshape(%s, [%lld, %lld", new_name(n, y), n->x.name, gate,
             (long long)n->batch, (long long)n->x.channels);
    for (int i = 0; i < n->x.axes; i++)
        text_add(&n->text, ", 1");
    text_add(&n->text, "])\n");
    memcpy(n->x.name, y, sizeof y);
    return true;
}

/* Four channels become a square of places. */
static bool add_shuffle(Net *n)
{
    Image y = n->x;
    if (y.axes != 2 || y.channels % 4 != 0)
        return false;
    long long b = n->batch, c = y.channels / 4, h = y.size[0], w = y.size[1];
    y.channels = c;
    y.size[0] *= 2;
    y.size[1] *= 2;
    text_add(&n->text,
             "    %s = reshape(transpose(reshape(%s, [%lld, %lld, 2, 2, %lld, %lld]), "
             "[0, 1, 4, 2, 5, 3]), [%lld, %lld, %lld, %lld])\n",
             new_name(n, y.name), n->x.name, b, c, h, w, b, c, 2 * h, 2 * w);
    n->x = y;
    return true;
}

typedef bool AddLayer(Net *n);

static void add_layer(Net *n)
{
    static AddLayer *const of[] = {add_convolution, add_convolution, add_convolution,
                                   add_convolution, add_transposed,  add_norm,
                                   add_norm,        add_pool,        add_residual,
                                   add_joined,      add_gate,        add_shuffle};
    Image before = n->x;
    bool added = of[random_below(&n->rng, (int64_t)(sizeof of / sizeof *of))](n);
    if (added && n->n_kept < MOST_KEPT)
        n->kept[n->n_kept++] = before;
}

/* ---- layers of rows ------------------------------------------------------------------------- */

static void add_linear(Net *n, char *x, int64_t out)
{
    char y[NAME_BYTES];
    text_add(&n->text, "    %s = nn.linear(%s, %lld, bias = %s) as %s_\n", new_name(n, y), x,
             (long long)out, truth(chance(n, 70)), y);
    memcpy(x, y, sizeof y);
}

/* x[batch, length, width]; none where that takes too much. */
static void add_block(Net *n, char *x, int64_t length, int64_t width)
{
    char y[NAME_BYTES];
    int64_t heads = PICK(n, 1, 2, 3, 4, 6, 8), elems = n->batch * length * width;
    if (!affords(n, (double)elems * (double)(12 * width + 2 * length), 4 * elems))
        return;
    assert(width % 2 == 0); /* rotary positions halve a head */
    while (width % heads != 0 || width / heads % 2 != 0)
        heads--;
    new_name(n, y);
    const char *causal = truth(chance(n, 50)), *rate = chance(n, 20) ? "0.1" : "0";
    if (chance(n, 30))
        text_add(&n->text, "    %s = nn.llama_block(%s, %lld) as %s_\n", y, x, (long long)heads, y);
    else
        text_add(&n->text, "    %s = nn.block(%s, %lld, causal = %s, rate = %s) as %s_\n", y, x,
                 (long long)heads, causal, rate, y);
    memcpy(x, y, sizeof y);
}

static void add_cell(Net *n, char *x, int64_t width)
{
    static const char *const of[] = {"rnn", "gru", "lstm"};
    char y[NAME_BYTES];
    const char *cell = of[random_below(&n->rng, 3)];
    text_add(&n->text, "    %s = nn.%s(%s, %lld) as %s_\n", new_name(n, y), cell, x,
             (long long)width, y);
    memcpy(x, y, sizeof y);
}

/* ---- nets ----------------------------------------------------------------------------------- */

static void add_loss(Net *n, Text *inputs, char *x)
{
    int64_t classes = PICK(n, 2, 3, 10, 17, 100);
    add_linear(n, x, classes);
    text_add(inputs, "    input label : i32[%lld] in 0..%lld\n", (long long)n->batch,
             (long long)classes);
    text_add(&n->text, "    loss mean(nn.cross_entropy(%s, label))\n", x);
}

/* What images end with. */
static void add_head(Net *n, Text *inputs)
{
    char y[NAME_BYTES];
    const char *x = n->x.name;
    long long b = n->batch, c = n->x.channels, all = places(&n->x);
    new_name(n, y);
    switch (random_below(&n->rng, 4)) {
    case 0:
        text_add(&n->text, "    %s = nn.global_avg_pool(%s)\n", y, x);
        break;
    case 1:
        text_add(&n->text, "    %s = max(reshape(%s, [%lld, %lld, %lld]), axis = 2)\n", y, x, b, c,
                 all);
        break;
    case 2:
        if (all <= 400 && c <= 256) {
            int64_t width = PICK(n, 16, 24, 32, 48, 64);
            text_add(&n->text, "    %s = transpose(reshape(%s, [%lld, %lld, %lld]), [0, 2, 1])\n",
                     y, x, b, c, all);
            add_linear(n, y, width);
            add_block(n, y, all, width);
            char rows[NAME_BYTES];
            memcpy(rows, y, sizeof rows);
            text_add(&n->text, "    %s = mean(%s, axis = 1)\n", new_name(n, y), rows);
            add_loss(n, inputs, y);
            return;
        }
        /* fall through */
    default:
        if (c * all > 20000) {
            text_add(&n->text, "    loss mean((nn.batch_norm(%s) as %s)^2)\n", x, y);
            return;
        }
        text_add(&n->text, "    %s = reshape(%s, [%lld, %lld])\n", y, x, b, c * all);
        add_loss(n, inputs, y);
        return;
    }
    add_loss(n, inputs, y);
}

static void net_of_images(Net *n, Text *inputs, const char *type)
{
    n->x = (Image){.name = "x", .axes = (int)PICK(n, 1, 2, 2, 2, 2, 2, 3)};
    n->x.channels = PICK(n, 1, 1, 3, 3, 4, 8, 16, 17, 32, 64);
    text_add(inputs, "    input x : %s[%lld, %lld", type, (long long)n->batch,
             (long long)n->x.channels);
    for (int i = 0; i < n->x.axes; i++) {
        int64_t side = n->x.axes == 1   ? PICK(n, 16, 24, 31, 48, 64, 100, 128, 200)
                       : n->x.axes == 2 ? PICK(n, 5, 6, 7, 8, 9, 12, 14, 16, 20, 28, 32, 33, 56)
                                        : PICK(n, 3, 4, 6, 8, 11);
        n->x.size[i] = i > 0 && chance(n, 70) ? n->x.size[0] : side;
        text_add(inputs, ", %lld", (long long)n->x.size[i]);
    }
    text_add(inputs, "]%s\n", chance(n, 30) ? " with grad" : "");
    for (int64_t layers = 2 + random_below(&n->rng, 7); layers > 0; layers--)
        add_layer(n);
    add_head(n, inputs);
}

static void net_of_words(Net *n, Text *inputs, const char *type)
{
    int64_t length = PICK(n, 7, 16, 24, 31, 48, 64, 77, 128, 130, 197);
    int64_t width = PICK(n, 16, 24, 32, 48, 64, 96, 128, 192), words = PICK(n, 50, 100, 1000);
    char x[NAME_BYTES], y[NAME_BYTES];
    text_add(inputs, "    input words : i32[%lld, %lld] in 0..%lld\n", (long long)n->batch,
             (long long)length, (long long)words);
    text_add(&n->text, "    %s = cast(nn.embedding(words, %lld, %lld, std = 0.5) as table, %s)\n",
             new_name(n, x), (long long)words, (long long)width, type);
    for (int64_t blocks = 1 + random_below(&n->rng, 2); blocks > 0; blocks--)
        add_block(n, x, length, width);
    text_add(&n->text, "    %s = mean(%s, axis = 1)\n", new_name(n, y), x);
    add_loss(n, inputs, y);
}

static void net_of_steps(Net *n, Text *inputs, const char *type)
{
    int64_t length = PICK(n, 3, 8, 17, 30), in = PICK(n, 3, 16, 28, 40, 64), width = in;
    char x[NAME_BYTES] = "x", y[NAME_BYTES];
    text_add(inputs, "    input x : %s[%lld, %lld, %lld]\n", type, (long long)n->batch,
             (long long)length, (long long)in);
    for (int64_t cells = 1 + random_below(&n->rng, 2); cells > 0; cells--) {
        width = PICK(n, 7, 16, 32, 50, 64, 100, 128);
        add_cell(n, x, width);
    }
    text_add(&n->text, "    %s = reshape(%s, [%lld, %lld])\n", new_name(n, y), x,
             (long long)n->batch, (long long)(length * width));
    add_loss(n, inputs, y);
}

/* Layers of any number of rows and columns. */
static void net_of_rows(Net *n, Text *inputs, const char *type)
{
    int64_t width = 1 + random_below(&n->rng, 600);
    char x[NAME_BYTES] = "x";
    n->batch = 1 + random_below(&n->rng, 400);
    text_add(inputs, "    input x : %s[%lld, %lld]\n", type, (long long)n->batch, (long long)width);
    for (int64_t layers = 1 + random_below(&n->rng, 3); layers > 0; layers--) {
        int64_t out = 1 + random_below(&n->rng, 600);
        add_linear(n, x, out);
        add_activation(n, x);
    }
    add_loss(n, inputs, x);
}

const char *net_text(uint64_t seed, Arena *a)
{
    static const char *const train[] = {"sgd(lr = 0.1)", "sgd(lr = 0.01, momentum = 0.9)",
                                        "adam(lr = 0.001)", "adamw(lr = 0.001)"};
    Net n = {.rng = seed};
    Text inputs;
    text_init(&n.text, a);
    text_init(&inputs, a);
    n.batch = PICK(&n, 1, 2, 3, 4, 5, 8, 8, 16, 16, 32);
    n.most = (double)PICK(&n, 30000000, 100000000, 200000000);
    const char *type = chance(&n, 85)   ? "f32"
                       : chance(&n, 50) ? "f64"
                       : chance(&n, 50) ? "bf16"
                                        : "f16";
    int64_t kind = random_below(&n.rng, 10);
    if (kind < 6)
        net_of_images(&n, &inputs, type);
    else if (kind < 8)
        net_of_words(&n, &inputs, type);
    else if (kind < 9)
        net_of_steps(&n, &inputs, type);
    else
        net_of_rows(&n, &inputs, type);
    return arena_printf(a,
                        "# seed %llu\nuse nn\n\nmodel net() {\n%s\n%s}\n\n"
                        "train net {\n    optimizer %s\n}\n",
                        (unsigned long long)seed, inputs.at, n.text.at,
                        train[random_below(&n.rng, 4)]);
}
