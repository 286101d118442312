"""The models of the comparison, each written once over the operations `o` of a side.

A parameter is (name, shape, start, kind): start is a standard deviation, "ones" or "zeros";
kind tells the JAX side how to turn PyTorch's layout. Every peer starts from the same numbers.
A loss takes (o, parameters, *batch) and gives (loss, buffers that the step changes).
tests/bench/models has the same models for gradc, under the same names.
"""
import math
from dataclasses import dataclass, field
from functools import partial
from typing import Callable

import numpy as np


@dataclass
class Model:
    params: list
    batch: Callable                              # rng -> arrays, pictures as NCHW
    loss: Callable
    rule: dict = field(default_factory=dict)     # kind, lr, ...; clip: limit of the global norm
    frozen: Callable = lambda name: False
    cotangent: bool = False                      # the batch's last array is the output's cotangent
    inputs: tuple = ("image", "label")           # names of the batch's arrays for gradc
    loops: bool = False                          # too long to compile unrolled

    def values(self):
        rng, out = np.random.default_rng(1), {}
        for name, shape, start, _ in self.params:
            if start == "ones":
                out[name] = np.ones(shape, np.float32)
            elif start == "zeros":
                out[name] = np.zeros(shape, np.float32)
            else:
                out[name] = rng.standard_normal(shape, np.float32) * np.float32(start)
        return out


def linear(name, inputs, outputs, start=None, kind="linear"):
    return [(name + ".weight", (outputs, inputs), start or math.sqrt(1 / inputs), kind),
            (name + ".bias", (outputs,), "zeros", "")]


def conv(name, inputs, outputs, kernel, bias=True):
    start = math.sqrt(2 / (inputs * kernel * kernel))
    rows = [(name + ".weight", (outputs, inputs, kernel, kernel), start, "conv")]
    return rows + [(name + ".bias", (outputs,), "zeros", "")] * bias


def norm(name, width, running=False):
    rows = [(name + ".weight", (width,), "ones", ""), (name + ".bias", (width,), "zeros", "")]
    return rows + [(name + ".running_mean", (width,), "zeros", ""),
                   (name + ".running_var", (width,), "ones", "")] * running


def pictures(batch, *shape):
    def draw(rng):
        return rng.standard_normal((batch, *shape), np.float32), rng.integers(0, 10, batch)
    return draw


def adamw(lr=1e-3, betas=(0.9, 0.999), weight_decay=0.01, **more):
    return dict(kind="adamw", lr=lr, betas=betas, weight_decay=weight_decay, **more)


def sgd(lr, momentum=0.0):
    return dict(kind="sgd", lr=lr, momentum=momentum)


# ---- perceptrons and small convolution nets ---------------------------------------------

def mlp(hidden, batch):
    def loss(o, p, x, y):
        return o.cross_entropy(o.linear(p, "fc2", o.relu(o.linear(p, "fc1", x))), y), {}
    return Model(linear("fc1", 784, hidden) + linear("fc2", hidden, 10), pictures(batch, 784), loss,
                 adamw())


def lenet():
    def loss(o, p, x, y):
        x = o.max_pool(o.relu(o.conv(p, "conv1", x, padding=2)))
        x = o.flatten(o.max_pool(o.relu(o.conv(p, "conv2", x))))
        x = o.relu(o.linear(p, "fc2", o.relu(o.linear(p, "fc1", x))))
        return o.cross_entropy(o.linear(p, "fc3", x), y), {}
    params = [*conv("conv1", 1, 6, 5), *conv("conv2", 6, 16, 5),
              *linear("fc1", 400, 120, kind=(16, 5, 5)), *linear("fc2", 120, 84),
              *linear("fc3", 84, 10)]
    return Model(params, pictures(64, 1, 28, 28), loss, sgd(0.01, 0.9))


def conv_fashion():
    def loss(o, p, x, y):
        x = o.relu(o.conv(p, "conv2", o.relu(o.conv(p, "conv1", x))))
        x = o.relu(o.linear(p, "fc1", o.flatten(o.max_pool(x))))
        return o.cross_entropy(o.linear(p, "fc2", x), y), {}
    params = [*conv("conv1", 1, 32, 3), *conv("conv2", 32, 64, 3),
              *linear("fc1", 64 * 144, 128, kind=(64, 12, 12)), *linear("fc2", 128, 10)]
    return Model(params, pictures(64, 1, 28, 28), loss, adamw())


def resnet8():
    stages = [("layer1", 16, 16, 1), ("layer2", 16, 32, 2), ("layer3", 32, 64, 2)]

    def loss(o, p, x, y):
        new = {}
        x = o.relu(o.batch_norm(p, "bn1", o.conv(p, "conv1", x, padding=1), new))
        for s, i, k, stride in stages:
            h = o.conv(p, s + ".conv1", x, stride=stride, padding=1)
            h = o.conv(p, s + ".conv2", o.relu(o.batch_norm(p, s + ".bn1", h, new)), padding=1)
            h = o.batch_norm(p, s + ".bn2", h, new)
            x = o.relu(h + (x if i == k else o.conv(p, s + ".downsample", x, stride=stride)))
        return o.cross_entropy(o.linear(p, "fc", o.pixel_mean(x)), y), new
    params = conv("conv1", 3, 16, 3, False) + norm("bn1", 16, True) + linear("fc", 64, 10)
    for s, i, k, _ in stages:
        params += conv(s + ".conv1", i, k, 3, False) + norm(s + ".bn1", k, True)
        params += conv(s + ".conv2", k, k, 3, False) + norm(s + ".bn2", k, True)
        params += conv(s + ".downsample", i, k, 1, False) * (i != k)
    return Model(params, pictures(64, 3, 32, 32), loss, sgd(0.01, 0.9),
                 frozen=lambda name: ".running_" in name)


# ---- nets that no goal is of --------------------------------------------------------------

def vgg():
    """The first stages of Simonyan & Zisserman (2015), for pictures of 32 x 32."""
    stages = [("1", 3, 64), ("2", 64, 128), ("3", 128, 256)]

    def loss(o, p, x, y):
        for s, _, _ in stages:
            for half in "ab":
                x = o.relu(o.conv(p, half + s, x, padding=1))
            x = o.max_pool(x)
        x = o.relu(o.linear(p, "fc1", o.flatten(x)))
        return o.cross_entropy(o.linear(p, "fc2", x), y), {}
    params = linear("fc1", 256 * 16, 512, kind=(256, 4, 4)) + linear("fc2", 512, 10)
    for s, i, k in stages:
        params += conv("a" + s, i, k, 3) + conv("b" + s, k, k, 3)
    return Model(params, pictures(16, 3, 32, 32), loss, sgd(0.01, 0.9))


def densenet(growth=16, layers=6):
    """Huang et al. (2017): each layer reads all that came before it in its block."""
    def loss(o, p, x, y):
        new = {}

        def lead(name, x):
            return o.relu(o.batch_norm(p, name, x, new))
        x = o.conv(p, "stem", x, padding=1)
        for i in range(2 * layers):
            if i == layers:
                x = o.avg_pool(o.conv(p, "narrow", lead("between", x)))
            x = o.concat([x, o.conv(p, f"conv.{i}", lead(f"norm.{i}", x), padding=1)])
        return o.cross_entropy(o.linear(p, "fc", o.pixel_mean(lead("last", x))), y), new
    params, width = conv("stem", 3, 32, 3, False), 32
    for i in range(2 * layers):
        if i == layers:
            params += norm("between", width, True) + conv("narrow", width, 64, 1, False)
            width = 64
        params += norm(f"norm.{i}", width, True) + conv(f"conv.{i}", width, growth, 3, False)
        width += growth
    params += norm("last", width, True) + linear("fc", width, 10)
    return Model(params, pictures(32, 3, 32, 32), loss, sgd(0.1, 0.9),
                 frozen=lambda name: ".running_" in name)


def generator(batch=32, latent=64):
    stages = [("up1", 256, 128), ("up2", 128, 64), ("up3", 64, 3)]

    def loss(o, p, noise, want):
        x = o.picture(o.relu(o.linear(p, "fc", noise)), 256, 4, 4)
        for name, _, out in stages:
            x = o.conv_transpose(p, name, x)
            x = o.relu(x) if out != 3 else o.tanh(x)
        return ((x - want) ** 2).mean(), {}
    params = linear("fc", latent, 256 * 16)
    for name, i, k in stages:
        params += [(name + ".weight", (i, k, 4, 4), 0.05, "conv"), (name + ".bias", (k,), "zeros", "")]

    def draw(rng):
        return (rng.standard_normal((batch, latent), np.float32),
                rng.standard_normal((batch, 3, 32, 32), np.float32))
    return Model(params, draw, loss, adamw(2e-4, (0.5, 0.999)), inputs=("noise", "want"))


def textcnn(batch=32, places=64, vocab=5000, width=128, found=100):
    """Kim (2014)."""
    kernels = (3, 4, 5)

    def loss(o, p, words, label):
        x = p["embed.weight"][words]
        return o.cross_entropy(o.linear(p, "fc", o.join([o.most(p, f"by{k}", x) for k in kernels])), label), {}
    params = [("embed.weight", (vocab, width), 1.0, "")] + linear("fc", found * len(kernels), 10)
    for k in kernels:
        params += [(f"by{k}.weight", (found, width, k), math.sqrt(2 / (width * k)), "conv1"),
                   (f"by{k}.bias", (found,), "zeros", "")]

    def draw(rng):
        return rng.integers(0, vocab, (batch, places)), rng.integers(0, 10, batch)
    return Model(params, draw, loss, sgd(0.1), inputs=("words", "label"))


def matrix(loss, n=2048):
    """A matrix of inputs, and one of parameters."""
    return Model([("g", (n, n), 0.1, "")], lambda rng: (rng.standard_normal((n, n), np.float32),), loss,
                 sgd(0.001), inputs=("x",))


def columns():
    def loss(o, p, x):
        h = x * p["g"]
        off = h - h.mean(0)
        return (off * (1 / ((off * off).mean(0) + 0.001) ** 0.5) * x).mean(), {}
    return matrix(loss)


def running():
    return matrix(lambda o, p, x: (o.tanh(o.cumsum(x * p["g"])).mean(), {}))


# ---- transformers -----------------------------------------------------------------------

def gpt(batch, ctx, layers, heads, width, vocab, positions, rule, checkpoint=False):
    def block(o, p, x):
        h = o.linear(p, "attn.c_attn", o.layer_norm(p, "ln_1", x))
        x = x + o.linear(p, "attn.c_proj", o.attention(h, heads))
        h = o.gelu(o.linear(p, "mlp.c_fc", o.layer_norm(p, "ln_2", x)))
        return x + o.linear(p, "mlp.c_proj", h)

    def loss(o, p, tokens, next_tokens):
        x = p["wte"][tokens] + p["wpe"][:ctx]
        run = partial(block, o)
        run = o.checkpoint(run) if checkpoint else run
        for i in range(layers):
            x = run({k: p[f"h.{i}.{k}"] for k in inner}, x)
        x = o.layer_norm(p, "ln_f", x)
        return o.cross_entropy(x @ p["wte"].T, next_tokens), {}

    rows = [*norm("ln_1", width), *linear("attn.c_attn", width, 3 * width, 0.02),
            *linear("attn.c_proj", width, width, 0.02), *norm("ln_2", width),
            *linear("mlp.c_fc", width, 4 * width, 0.02), *linear("mlp.c_proj", 4 * width, width, 0.02)]
    inner = [name for name, *_ in rows]
    params = [("wte", (vocab, width), 0.02, ""), ("wpe", (positions, width), 0.01, "")]
    params += norm("ln_f", width)
    params += [(f"h.{i}.{name}", *rest) for i in range(layers) for name, *rest in rows]

    def draw(rng):
        t = rng.integers(0, vocab, (batch, ctx + 1))
        return np.ascontiguousarray(t[:, :-1]), np.ascontiguousarray(t[:, 1:])
    return Model(params, draw, loss, rule, inputs=("tokens", "next"))


gpt_tiny = partial(gpt, 8, 128, 4, 4, 128, 256, 128, adamw(1e-3, (0.9, 0.95), 0.1, clip=1.0))
gpt_short = partial(gpt, 64, 24, 2, 4, 32, 96, 24, adamw(1e-3, (0.9, 0.95), 0.1))
gpt2 = partial(gpt, layers=12, heads=12, width=768, vocab=50257, positions=1024,
               rule=adamw(1e-4, (0.9, 0.999), 0.1))


def attention(batch, ctx, heads=12, width=64):
    def loss(o, p):
        return o.attend(p["q"], p["k"], p["v"]), {}

    def draw(rng):
        return (rng.standard_normal((batch, heads, ctx, width), np.float32),)
    return Model([(n, (batch, heads, ctx, width), 1.0, "heads") for n in "qkv"], draw, loss,
                 cotangent=True, inputs=("ct",))


# ---- MobileNetV2 (width 0.35, norms folded into the biases), a recurrent net --------------

def eighths(value):
    """MobileNet's rounding to a multiple of 8, at most a tenth down."""
    rounded = max(8, int(value + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * value else rounded


def mobilenet(batch, sparse, width=0.35):
    inputs = eighths(32 * width)
    params, blocks = conv("stem", 3, inputs, 3), []
    for expand, channels, repeat, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                             (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        outputs = eighths(channels * width)
        for k in range(repeat):
            name, middle, step = f"b.{len(blocks)}", expand * inputs, stride if k == 0 else 1
            params += conv(name + ".expand", inputs, middle, 1) * (expand > 1)
            params += conv(name + ".depth", 1, middle, 3) + conv(name + ".project", middle, outputs, 1)
            blocks.append((name, expand > 1, middle, step, step == 1 and inputs == outputs))
            inputs = outputs
    params += conv("head", inputs, 1280, 1) + linear("fc", 1280, 10)

    def loss(o, p, x, y):
        x = o.relu6(o.conv(p, "stem", x, stride=2, padding=1))
        for name, expands, middle, stride, skips in blocks:
            h = o.relu6(o.conv(p, name + ".expand", x)) if expands else x
            h = o.relu6(o.conv(p, name + ".depth", h, stride=stride, padding=1, groups=middle))
            h = o.conv(p, name + ".project", h)
            x = x + h if skips else h
        x = o.pixel_mean(o.relu6(o.conv(p, "head", x)))
        return o.cross_entropy(o.linear(p, "fc", x), y), {}

    def frozen(name):
        return sparse and not name.endswith(".bias") and not name.startswith(("b.15.", "b.16.", "fc."))
    return Model(params, pictures(batch, 3, 96, 96), loss, sgd(1e-3), frozen=frozen)


def rnn(chunk=None, steps=1000, batch=16, inputs=16, width=128):
    def loss(o, p, xs):
        h = o.recur(p, xs, o.zeros(xs, batch, width), chunk)
        return (h * h).mean(), {}
    params = [("W.weight", (width, width), math.sqrt(1 / width), "linear"),
              ("U.weight", (width, inputs), math.sqrt(1 / inputs), "linear"), ("b", (width,), "zeros", "")]
    return Model(params, lambda rng: (rng.standard_normal((steps, batch, inputs), np.float32),), loss,
                 sgd(1e-3), loops=True, inputs=("xs",))


MODELS = {
    "mlp-784-500-10": partial(mlp, 500, 500),
    "mlp-784-256-10": partial(mlp, 256, 64),
    "lenet": lenet,
    "resnet8": resnet8,
    "conv-fashion": conv_fashion,
    "gpt-tiny": gpt_tiny,
    "gpt-tiny-ckpt": partial(gpt_tiny, checkpoint=True),
    "gpt2-124m-b4-t64": partial(gpt2, 4, 64),
    "gpt2-124m-b4-t256": partial(gpt2, 4, 256),
    "gpt2-124m-b4-t256-ckpt": partial(gpt2, 4, 256, checkpoint=True),
    "mobilenetv2-b1-all": partial(mobilenet, 1, False),
    "mobilenetv2-b1-sparse": partial(mobilenet, 1, True),
    "mobilenetv2-b8-all": partial(mobilenet, 8, False),
    "mobilenetv2-b8-sparse": partial(mobilenet, 8, True),
    "rnn-1000": rnn,
    "rnn-1000-ckpt": partial(rnn, 32),
    "attention-b4-t1024": partial(attention, 4, 1024),
    "attention-b1-t4096": partial(attention, 1, 4096),
    "vgg": vgg,
    "densenet": densenet,
    "generator": generator,
    "columns": columns,
    "running": running,
    "textcnn": textcnn,
    "gpt-short": gpt_short,
}

# Timed steps where one takes seconds.
FEW_STEPS = {"attention-b4-t1024": 8, "attention-b1-t4096": 4, "gpt2-124m-b4-t64": 6,
             "gpt2-124m-b4-t256": 4, "gpt2-124m-b4-t256-ckpt": 4}
