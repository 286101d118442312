"""The operations of models.py in JAX (images as NHWC, weights transposed to suit), and a step."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

VERSION = jax.__version__


class Ops:
    relu = staticmethod(jax.nn.relu)
    relu6 = staticmethod(jax.nn.relu6)
    checkpoint = staticmethod(jax.checkpoint)
    attend = staticmethod(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True))

    @staticmethod
    def linear(p, name, x):
        y = x @ p[name + ".weight"]
        return y + p[name + ".bias"] if name + ".bias" in p else y

    @staticmethod
    def conv(p, name, x, stride=1, padding=0, groups=1):
        y = lax.conv_general_dilated(x, p[name + ".weight"], (stride, stride),
                                     [(padding, padding)] * 2, feature_group_count=groups,
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y + p[name + ".bias"] if name + ".bias" in p else y

    tanh = staticmethod(jnp.tanh)
    cumsum = staticmethod(lambda x: jnp.cumsum(x, 1))
    concat = staticmethod(lambda xs: jnp.concatenate(xs, 3))
    picture = staticmethod(lambda x, *shape: x.reshape(-1, *shape).transpose(0, 2, 3, 1))

    @staticmethod
    def conv_transpose(p, name, x):
        """A padding of 1 of the convolution that it is the adjoint of is one of 4 - 1 - 1 here."""
        y = lax.conv_transpose(x, p[name + ".weight"], (2, 2), [(2, 2)] * 2, transpose_kernel=True,
                               dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y + p[name + ".bias"]

    join = staticmethod(lambda xs: jnp.concatenate(xs, -1))

    @staticmethod
    def most(p, name, x):
        y = lax.conv_general_dilated(x, p[name + ".weight"], (1,), "VALID",
                                     dimension_numbers=("NWC", "WIO", "NWC"))
        return jax.nn.relu(y + p[name + ".bias"]).max(1)

    @staticmethod
    def avg_pool(x):
        return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4

    @staticmethod
    def max_pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    @staticmethod
    def flatten(x):
        return x.reshape(x.shape[0], -1)

    @staticmethod
    def pixel_mean(x):
        return x.mean((1, 2))

    @staticmethod
    def batch_norm(p, name, x, new):
        mean = x.mean((0, 1, 2))
        var = jnp.square(x - mean).mean((0, 1, 2))
        n = x.size // x.shape[-1]
        for what, v in (("mean", mean), ("var", var * n / (n - 1))):
            key = f"{name}.running_{what}"
            new[key] = 0.9 * p[key] + 0.1 * lax.stop_gradient(v)
        return (x - mean) * (lax.rsqrt(var + 1e-5) * p[name + ".weight"]) + p[name + ".bias"]

    @staticmethod
    def layer_norm(p, name, x):
        mean = x.mean(-1, keepdims=True)
        var = jnp.square(x - mean).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(var + 1e-5) * p[name + ".weight"] + p[name + ".bias"]

    @staticmethod
    def gelu(x):
        return jax.nn.gelu(x, approximate=True)

    @staticmethod
    def attention(qkv, heads):
        b, t, c = qkv.shape
        q, k, v = jnp.moveaxis(qkv.reshape(b, t, 3, heads, c // 3 // heads), 2, 0)
        return jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(b, t, c // 3)

    @staticmethod
    def cross_entropy(logits, label):
        return optax.softmax_cross_entropy_with_integer_labels(logits, label).mean()

    @staticmethod
    def recur(p, xs, h, chunk):
        def body(h, x):
            return jnp.tanh(h @ p["W.weight"] + x @ p["U.weight"] + p["b"]), None

        def many(h, xs):
            return lax.scan(body, h, xs)
        if chunk:
            whole = len(xs) // chunk * chunk
            h, _ = lax.scan(jax.checkpoint(many), h, xs[:whole].reshape(-1, chunk, *xs.shape[1:]))
            xs = xs[whole:]
        return many(h, xs)[0]

    @staticmethod
    def zeros(like, *shape):
        return jnp.zeros(shape, like.dtype)


def turn(value, kind):
    """From PyTorch's layout of a parameter to the one used here."""
    if kind == "linear":
        value = value.T
    elif kind == "conv":
        value = value.transpose(2, 3, 1, 0)
    elif kind == "conv1":
        value = value.transpose(2, 1, 0)
    elif kind == "heads":                   # B,H,T,D to B,T,H,D
        value = value.transpose(0, 2, 1, 3)
    elif isinstance(kind, tuple):           # a linear after a flattened C,H,W picture
        out = value.shape[0]
        value = value.reshape(out, *kind).transpose(2, 3, 1, 0).reshape(-1, out)
    return np.ascontiguousarray(value)


def device(array, images):
    array = array.transpose(0, 2, 3, 1) if images and array.ndim == 4 else array
    if array.dtype == np.int64:
        array = array.astype(np.int32)
    return jax.device_put(np.ascontiguousarray(array))


def prepare(model, values, batch, row):
    kinds = {name: kind for name, _, _, kind in model.params}
    values = {k: jax.device_put(turn(v, kinds[k])) for k, v in values.items()}
    held = {k: v for k, v in values.items() if model.frozen(k)}
    params = {k: v for k, v in values.items() if k not in held}
    if model.cotangent:
        return direct(model, params, jax.device_put(turn(batch[-1], "heads")), row)
    batch = [device(b, images=True) for b in batch]
    rule = dict(model.rule)
    kind, clip = rule.pop("kind"), rule.pop("clip", None)
    if kind == "adamw":
        update = optax.adamw(rule["lr"], *rule["betas"], weight_decay=rule["weight_decay"])
    else:
        update = optax.sgd(rule["lr"], momentum=rule.get("momentum") or None)
    if clip:
        update = optax.chain(optax.clip_by_global_norm(clip), update)

    def train(params, state, held, batch):
        def f(p):
            return model.loss(Ops, {**p, **held}, *batch)
        (loss, new), grads = jax.value_and_grad(f, has_aux=True)(params)
        change, state = update.update(grads, state, params)
        return optax.apply_updates(params, change), state, {**held, **new}, loss
    now = [params, update.init(params), held]
    fast = compiled(jax.jit(train, donate_argnums=(0, 1, 2)), (*now, batch), row)

    def step():
        *now[:], loss = fast(*now, batch)
        return loss.block_until_ready()
    return step


def direct(model, params, cotangent, row):
    """No loss: the output's cotangent is given."""
    def both(params, ct):
        _, back = jax.vjp(lambda p: model.loss(Ops, p)[0], params)
        return back(ct)[0]
    fast = compiled(jax.jit(both), (params, cotangent), row)
    return lambda: jax.block_until_ready(fast(params, cotangent))["q"].ravel()[-1]


def compiled(f, args, row):
    begin = time.perf_counter()
    fast = f.lower(*args).compile()
    row["compile_s"] = round(time.perf_counter() - begin, 3)
    memory = fast.memory_analysis()
    if memory is not None:
        row["xla_temp_mb"] = round(memory.temp_size_in_bytes / 2 ** 20, 2)
        row["xla_args_mb"] = round(memory.argument_size_in_bytes / 2 ** 20, 2)
    return fast
