"""The example models again, in JAX: PyTorch's names, weight[out, in], OIHW, NCHW.

A Model has the parameters (name, shape), the buffers that a step updates, a batch of
numpy arrays by input name, and a loss: loss(values, batch) -> (loss, new buffers).
"""
import gzip
import math
import os
from dataclasses import dataclass, field
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "examples", "data")


@dataclass
class Model:
    params: dict                                  # name -> shape
    batch: Callable                               # rng -> {input: array}
    loss: Callable                                # (values, batch) -> (loss, buffers)
    buffers: dict = field(default_factory=dict)   # name -> shape
    options: list = field(default_factory=list)   # of the gradc command line
    rate: dict = field(default_factory=dict)      # optimizer -> learning rate, where not the usual

    def draw(self, seed):
        """Weights of a usual size, for runs without gradc."""
        rng, out = np.random.default_rng(seed), {}
        for name, shape in {**self.params, **self.buffers}.items():
            if name.endswith((".running_mean", ".bias")):
                out[name] = np.zeros(shape, np.float32)
            elif name.endswith(".running_var") or len(shape) == 1:
                out[name] = np.ones(shape, np.float32)
            else:
                scale = 0.02 if name in ("wte", "wpe") else 1 / math.sqrt(math.prod(shape[1:]))
                out[name] = (scale * rng.standard_normal(shape)).astype(np.float32)
        return out


# ---- pieces ---------------------------------------------------------------------------

def linear_shapes(name, inputs, outputs):
    return {name + ".weight": (outputs, inputs), name + ".bias": (outputs,)}


def conv_shapes(name, inputs, outputs, kernel, bias=True):
    shapes = {name + ".weight": (outputs, inputs, kernel, kernel)}
    return {**shapes, name + ".bias": (outputs,)} if bias else shapes


def norm_shapes(name, width):
    return {name + ".weight": (width,), name + ".bias": (width,)}


def linear(p, name, x):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def conv(p, name, x, stride=1, padding=0):
    y = lax.conv_general_dilated(x, p[name + ".weight"], (stride, stride), [(padding, padding)] * 2,
                                 dimension_numbers=("NCHW", "OIHW", "NCHW"))
    bias = p.get(name + ".bias")
    return y if bias is None else y + bias[:, None, None]


def max_pool(x, n):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, n, n), (1, 1, n, n), "VALID")


def cross_entropy(logits, label):
    chosen = jnp.take_along_axis(logits, label[..., None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)


def layer_norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[name + ".weight"] + p[name + ".bias"]


def batch_norm(p, name, x, new):
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    n = x.size // x.shape[1]
    new[name + ".running_mean"] = 0.9 * p[name + ".running_mean"] + 0.1 * mean
    new[name + ".running_var"] = 0.9 * p[name + ".running_var"] + 0.1 * var * n / (n - 1)

    def channels(v):
        return v[:, None, None]
    scale = lax.rsqrt(var + 1e-5) * p[name + ".weight"]
    return (x - channels(mean)) * channels(scale) + channels(p[name + ".bias"])


# ---- models ---------------------------------------------------------------------------

def digits(batch=64, hidden=64):
    table = np.loadtxt(gzip.open(os.path.join(DATA, "digits.csv.gz")), delimiter=",",
                       dtype=np.float32)

    def draw(rng):
        rows = table[rng.integers(0, len(table), batch)]
        return dict(image=rows[:, :64].copy(), label=rows[:, 64].astype(np.int32))

    def loss(p, b):
        x = jax.nn.relu(linear(p, "fc1", b["image"] / 16))
        return cross_entropy(linear(p, "fc2", x), b["label"]), {}
    return Model({**linear_shapes("fc1", 64, hidden), **linear_shapes("fc2", hidden, 10)}, draw, loss,
                 options=["-D", f"batch={batch}"])


def fashion(batch=16):
    def draw(rng):
        return dict(image=rng.integers(0, 256, (batch, 1, 28, 28)).astype(np.uint8),
                    label=rng.integers(0, 10, batch).astype(np.int32))

    def loss(p, b):
        x = b["image"].astype(p["fc2.bias"].dtype) / 255
        x = jax.nn.relu(conv(p, "conv1", x))
        x = max_pool(jax.nn.relu(conv(p, "conv2", x)), 2)
        x = jax.nn.relu(linear(p, "fc1", x.reshape(batch, -1)))
        return cross_entropy(linear(p, "fc2", x), b["label"]), {}
    return Model({**conv_shapes("conv1", 1, 32, 3), **conv_shapes("conv2", 32, 64, 3),
                  **linear_shapes("fc1", 64 * 12 * 12, 128), **linear_shapes("fc2", 128, 10)},
                 draw, loss, options=["-D", f"batch={batch}"])


def chargpt(batch=12, ctx=64, vocab=256, layers=4, heads=4, width=128):
    text = np.frombuffer(gzip.open(os.path.join(DATA, "shakespeare.txt.gz")).read(), np.uint8)

    def draw(rng):
        rows = np.stack([text[i:i + ctx + 1] for i in rng.integers(0, len(text) - ctx - 1, batch)])
        rows = rows.astype(np.int32)
        return dict(tokens=rows[:, :-1].copy(), next=rows[:, 1:].copy())

    def attention(p, name, x):
        b, t, c = x.shape
        qkv = linear(p, name + ".c_attn", x).reshape(b, t, 3, heads, c // heads)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        s = q @ k.transpose(0, 1, 3, 2) / math.sqrt(c // heads)
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -jnp.inf)
        y = jax.nn.softmax(s, axis=-1) @ v
        return linear(p, name + ".c_proj", y.transpose(0, 2, 1, 3).reshape(b, t, c))

    def loss(p, b):
        x = p["wte"][b["tokens"]] + p["wpe"]
        for i in range(layers):
            h = f"h.{i}"
            x = x + attention(p, h + ".attn", layer_norm(p, h + ".ln_1", x))
            y = linear(p, h + ".mlp.c_fc", layer_norm(p, h + ".ln_2", x))
            x = x + linear(p, h + ".mlp.c_proj", jax.nn.gelu(y, approximate=True))
        return cross_entropy(layer_norm(p, "ln_f", x) @ p["wte"].T, b["next"]), {}

    shapes = {"wte": (vocab, width), "wpe": (ctx, width), **norm_shapes("ln_f", width)}
    for i in range(layers):
        h = f"h.{i}"
        shapes |= {**norm_shapes(h + ".ln_1", width), **norm_shapes(h + ".ln_2", width),
                   **linear_shapes(h + ".attn.c_attn", width, 3 * width),
                   **linear_shapes(h + ".attn.c_proj", width, width),
                   **linear_shapes(h + ".mlp.c_fc", width, 4 * width),
                   **linear_shapes(h + ".mlp.c_proj", 4 * width, width)}
    return Model(shapes, draw, loss, options=["-D", f"batch={batch}", "-D", f"ctx={ctx}"])


STAGES = [("layer1", 16, 16, 1), ("layer2", 16, 32, 2), ("layer3", 32, 64, 2)]


def resnet8(batch=16):
    def draw(rng):
        return dict(image=rng.standard_normal((batch, 3, 32, 32)).astype(np.float32),
                    label=rng.integers(0, 10, batch).astype(np.int32))

    def loss(p, b):
        new = {}
        x = jax.nn.relu(batch_norm(p, "bn1", conv(p, "conv1", b["image"], padding=1), new))
        for s, inputs, outputs, stride in STAGES:
            h = conv(p, s + ".conv1", x, stride, 1)
            h = jax.nn.relu(batch_norm(p, s + ".bn1", h, new))
            h = batch_norm(p, s + ".bn2", conv(p, s + ".conv2", h, padding=1), new)
            x = jax.nn.relu(h + (conv(p, s + ".downsample", x, stride) if inputs != outputs else x))
        return cross_entropy(linear(p, "fc", x.mean((2, 3))), b["label"]), new

    shapes = {**conv_shapes("conv1", 3, 16, 3, False), **norm_shapes("bn1", 16),
              **linear_shapes("fc", 64, 10)}
    for s, inputs, outputs, _ in STAGES:
        shapes |= {**conv_shapes(s + ".conv1", inputs, outputs, 3, False),
                   **norm_shapes(s + ".bn1", outputs),
                   **conv_shapes(s + ".conv2", outputs, outputs, 3, False),
                   **norm_shapes(s + ".bn2", outputs)}
        if inputs != outputs:
            shapes |= conv_shapes(s + ".downsample", inputs, outputs, 1, False)
    widths = {name[:-len(".weight")]: shape for name, shape in shapes.items()
              if ".bn" in "." + name and name.endswith(".weight")}
    buffers = {f"{name}.running_{what}": shape for name, shape in widths.items()
               for what in ("mean", "var")}
    return Model(shapes, draw, loss, buffers, options=["-D", f"batch={batch}"])


MODELS = dict(digits=digits, fashion=fashion, chargpt=chargpt, resnet8=resnet8)
