/* The products of networks: linear layers of GPT-2 with two sizes of a batch, small ones. */
#include "rates.h"

/* A layer of `in` inputs and `out` outputs: forward and backward with the weights either way. */
#define LINEAR(name, rows, in, out)                                                                \
    {name " fwd NN", {1, rows, out, in, 0, 0}, true},                                              \
        {name " fwd NT", {1, rows, out, in, TRANSPOSE_B, 0}, true},                                \
        {name " dgrad NN", {1, rows, in, out, 0, 0}, true},                                        \
        {name " dgrad NT", {1, rows, in, out, TRANSPOSE_B, 0}, true},                              \
        {name " wgrad TN OxI", {1, out, in, rows, TRANSPOSE_A, 0}, false},                         \
    {                                                                                              \
        name " wgrad TN IxO", {1, in, out, rows, TRANSPOSE_A, 0}, false                            \
    }

static const Product linear_1024[] = {
    LINEAR("qkv 1024x768x2304", 1024, 768, 2304),
    LINEAR("proj 1024x768x768", 1024, 768, 768),
    LINEAR("fc 1024x768x3072", 1024, 768, 3072),
    LINEAR("fcpr 1024x3072x768", 1024, 3072, 768),
};

static const Product linear_256[] = {
    LINEAR("qkv 256x768x2304", 256, 768, 2304),
    LINEAR("proj 256x768x768", 256, 768, 768),
    LINEAR("fc 256x768x3072", 256, 768, 3072),
    LINEAR("fcpr 256x3072x768", 256, 3072, 768),
};

static const Product small[] = {
    {"mlp1 fwd NN 64x784x256", {1, 64, 256, 784, 0, 0}, false},
    {"mlp1 fwd NT 64x784x256", {1, 64, 256, 784, TRANSPOSE_B, 0}, false},
    {"mlp1 wgrad TN 784x64x256", {1, 784, 256, 64, TRANSPOSE_A, 0}, false},
    {"mlp1 wgrad TN 256x64x784", {1, 256, 784, 64, TRANSPOSE_A, 0}, false},
    {"mlp2 fwd NN 64x256x10", {1, 64, 10, 256, 0, 0}, false},
    {"mlp2 fwd NT 64x256x10", {1, 64, 10, 256, TRANSPOSE_B, 0}, false},
    {"mlp2 dgrad NT 64x10x256", {1, 64, 256, 10, TRANSPOSE_B, 0}, false},
    {"mlp2 dgrad NN 64x10x256", {1, 64, 256, 10, 0, 0}, false},
    {"mlp2 wgrad TN 256x64x10", {1, 256, 10, 64, TRANSPOSE_A, 0}, false},
    {"mlp2 wgrad TN 10x64x256", {1, 10, 256, 64, TRANSPOSE_A, 0}, false},
    {"lenet1 50176x25x6", {1, 50176, 6, 25, 0, 0}, false},
    {"lenet1 6x25x50176", {1, 6, 50176, 25, 0, 0}, false},
    {"lenet2 6400x150x16", {1, 6400, 16, 150, 0, 0}, false},
    {"lenet2 16x150x6400", {1, 16, 6400, 150, 0, 0}, false},
    {"lenet2 wgrad NT 16x6400x150", {1, 16, 150, 6400, TRANSPOSE_B, 0}, false},
    {"lenet fc1 64x400x120", {1, 64, 120, 400, 0, 0}, false},
    {"lenet fc2 64x120x84", {1, 64, 84, 120, 0, 0}, false},
    {"QK NT 256x64x256", {1, 256, 256, 64, TRANSPOSE_B, 0}, false},
    {"PV NN 256x256x64", {1, 256, 64, 256, 0, 0}, false},
    {"dV TN 256x256x64", {1, 256, 64, 256, TRANSPOSE_A, 0}, false},
    {"QK NT 64x64x64", {1, 64, 64, 64, TRANSPOSE_B, 0}, false},
    {"PV NN 64x64x64", {1, 64, 64, 64, 0, 0}, false},
};

static const Product more[] = {
    {"256 NN", {1, 256, 256, 256, 0, 0}, false},
    {"512 NN", {1, 512, 512, 512, 0, 0}, false},
    {"1024 NN", {1, 1024, 1024, 1024, 0, 0}, false},
    {"1024 NT", {1, 1024, 1024, 1024, TRANSPOSE_B, 0}, false},
    {"1024 TN", {1, 1024, 1024, 1024, TRANSPOSE_A, 0}, false},
    {"mlp fwd NT 500x784x500", {1, 500, 500, 784, TRANSPOSE_B, 0}, false},
    {"mlp fwd NN 500x784x500", {1, 500, 500, 784, 0, 0}, false},
    {"mlp fwd NN 504x784x512", {1, 504, 512, 784, 0, 0}, false},
    {"mlp wgrad TN 500x500x784", {1, 500, 784, 500, TRANSPOSE_A, 0}, false},
    {"mlp wgrad TN 504x500x768", {1, 504, 768, 500, TRANSPOSE_A, 0}, false},
    {"gpt-tiny c_fc 1024x128x512 NT", {1, 1024, 512, 128, TRANSPOSE_B, 0}, false},
    {"gpt-tiny qkv NT", {1, 768, 384, 128, TRANSPOSE_B, 0}, false},
    {"gpt-tiny mlp NT", {1, 768, 512, 128, TRANSPOSE_B, 0}, false},
    {"row 1x1000x768 NT", {1, 1, 1000, 768, TRANSPOSE_B, 0}, false},
    {"row 1x1000x768 NN", {1, 1, 1000, 768, 0, 0}, false},
    {"wide 16x32768x144 NN", {1, 16, 32768, 144, 0, 0}, false},
    {"wide 32x8192x288 NN", {1, 32, 8192, 288, 0, 0}, false},
    {"column 1000x1x768", {1, 1000, 1, 768, 0, 0}, false},
};

static const struct {
    const char *name, *title;
    const Product *at;
    int n, lanes;
    bool halves;
} list[] = {
#define LIST(name, title, at, lanes, halves)                                                       \
    {                                                                                              \
        name, title, at, (int)(sizeof at / sizeof *at), lanes, halves                              \
    }
    LIST("linear-1024", "linear layers of GPT-2, 1,024 rows", linear_1024, 2, false),
    LIST("linear-256", "linear layers of GPT-2, 256 rows", linear_256, 2, false),
    LIST("small", "small products", small, 1, false),
    LIST("products", "more products", more, 1, false),
    LIST("bf16-1024", "linear layers of GPT-2 in bf16, 1,024 rows", linear_1024, 2, true),
    LIST("bf16-256", "linear layers of GPT-2 in bf16, 256 rows", linear_256, 2, true),
    LIST("bf16-small", "small products in bf16", small, 1, true),
};

void lists_print(Rates *r, const char *which)
{
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        r->halves = list[i].halves;
        for (int lanes = 1; lanes <= list[i].lanes; lanes++)
            if (strcmp(which, list[i].name) == 0 && (r->only == 0 || r->only == lanes))
                players_compare(r, list[i].title, list[i].at, list[i].n, lanes);
    }
    r->halves = false;
}
