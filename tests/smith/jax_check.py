"""JAX as the judge of random models: it reads the very text, and shares nothing with gradc.

    gradc-smith export --seed 1 --count 30 | python jax_check.py

A line of JSON is a model in f64 (its text, parameters, state and inputs) with what its
object gave: loss, outputs and gradients. All of them must agree to 1e-9 of their norm,
gradients to 1e-9 of the norm of all gradients together. The text is nearly Python: its
expressions are parsed by `ast`, evaluated with jax.numpy, and differentiated by JAX. The
judge is tried first: a gradient of the first model with another sign must not pass.
The last line is "passed=N failed=N skipped=N".
"""
import ast
import json
import os
import re
import sys

import numpy as np

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)  # compile time is what counts

TOLERANCE = 1e-9
DTYPE = {"f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_}


# ---- functions of the language ------------------------------------------------------

def axes_of(x, axis):
    if axis is None:
        return tuple(range(x.ndim))
    axis = axis if isinstance(axis, (list, tuple)) else [axis]
    return tuple(sorted(a % x.ndim for a in axis))


def reduction(f):
    return lambda x, axis=None, keep=False: f(x, axis=axes_of(x, axis), keepdims=keep)


def extreme(pick, choose):
    """Of equals in a reduction the first one has the gradient; of two values the second."""
    def f(x, y=None, axis=None, keep=False):
        if y is not None:
            return choose(x, y)
        gone = axes_of(x, axis)
        for a in reversed(gone):
            x = jnp.take_along_axis(x, jnp.expand_dims(pick(x, axis=a), a), a)
        return x if keep else jnp.squeeze(x, gone)
    return f


def transpose(x, axes=None):
    return jnp.swapaxes(x, -1, -2) if axes is None else jnp.transpose(x, axes)


def cast(x, to):
    x = jnp.asarray(x)
    if jnp.issubdtype(x.dtype, jnp.floating) and jnp.issubdtype(to, jnp.integer):
        x = jnp.trunc(x)
    return x.astype(to)


def pad(x, axis, lo=0, hi=0, value=0):
    widths = [(0, 0)] * x.ndim
    widths[axis] = (lo, hi)
    return jnp.pad(x, widths, constant_values=value)


def window(x, axis, size, stride=1, dilation=1, lo=0, hi=0, fill=0):
    x = pad(x, axis, lo, hi, fill)
    count = (x.shape[axis] - dilation * (size - 1) - 1) // stride + 1
    at = np.arange(count)[:, None] * stride + np.arange(size)[None, :] * dilation
    return jnp.take(x, at, axis=axis)


def split(x, sizes, axis=0):
    return jnp.split(x, np.cumsum(sizes)[:-1], axis=axis)


def cumsum(x, axis, reverse=False):
    y = jnp.cumsum(jnp.flip(x, axis) if reverse else x, axis=axis)
    return jnp.flip(y, axis) if reverse else y


def take_along(x, index, axis):
    return jnp.squeeze(jnp.take_along_axis(x, jnp.expand_dims(index, axis), axis), axis)


def one_hot(index, n, to):
    return (index[..., None] == jnp.arange(n)).astype(to)


def lower_triangle(x):
    return jnp.broadcast_to(jnp.tril(jnp.ones(x.shape[-2:], bool)), x.shape)


def softmax(x, axis=-1):
    e = jnp.exp(x - jax.lax.stop_gradient(jnp.max(x, axis, keepdims=True)))
    return e / jnp.sum(e, axis, keepdims=True)


def conv(x, w, stride, padding, dilation, groups):
    return jax.lax.conv_general_dilated(x, w, stride, [(p, p) for p in padding],
                                        rhs_dilation=dilation, feature_group_count=groups)


def conv_transpose(x, w, stride, padding, output_padding, dilation, groups):
    """By definition: zeros between the elements, then a convolution with turned taps."""
    inner, outer, taps = w.shape[0] // groups, w.shape[1], w.shape[2:]
    w = jnp.swapaxes(w.reshape(groups, inner, outer, *taps), 1, 2)
    w = jnp.flip(w.reshape(groups * outer, inner, *taps), range(2, x.ndim))
    span = [d * (k - 1) for d, k in zip(dilation, taps)]
    pads = [(n - p, n - p + e) for n, p, e in zip(span, padding, output_padding)]
    return jax.lax.conv_general_dilated(x, w, [1] * len(taps), pads, lhs_dilation=stride,
                                        rhs_dilation=dilation, feature_group_count=groups)


def rotary(x, base, first=0):
    """Pairs as complex numbers."""
    half = x.shape[-1] // 2
    angle = jnp.outer(jnp.arange(x.shape[-2]) + first, base ** (-jnp.arange(half) / half))
    z = jax.lax.complex(x[..., :half], x[..., half:]) * jnp.exp(1j * angle)
    return jnp.concatenate([z.real, z.imag], -1).astype(x.dtype)


def floor_divide(x, y):
    zero = jnp.asarray(y) == 0
    return jnp.where(zero, 0, x // jnp.where(zero, 1, y))


def remainder(x, y):
    zero = jnp.asarray(y) == 0
    return jnp.where(zero, 0, x % jnp.where(zero, 1, y))


TIES = []   # of the model that runs: an argmax chose between elements apart by rounding only


def choice(pick, largest):
    def f(x, axis):
        x = jnp.asarray(x)
        if x.shape[axis] > 1 and jnp.issubdtype(x.dtype, jnp.floating):
            ordered = jnp.sort(x, axis)
            a, b = (jnp.take(ordered, k, axis) for k in ((-1, -2) if largest else (0, 1)))
            near = jnp.abs(a - b) <= 1e-9 * (jnp.abs(a) + jnp.abs(b))
            TIES.append(jnp.any(near & (a != 0)))
        return pick(x, axis).astype(np.int32)
    return f


FUNCTIONS = {
    "sum": reduction(jnp.sum), "mean": reduction(jnp.mean), "prod": reduction(jnp.prod),
    "any": reduction(jnp.any), "all": reduction(jnp.all),
    "max": extreme(jnp.argmax, lambda x, y: jnp.where(x > y, x, y)),
    "min": extreme(jnp.argmin, lambda x, y: jnp.where(x < y, x, y)),
    "argmax": choice(jnp.argmax, True), "argmin": choice(jnp.argmin, False),
    "sin": jnp.sin, "cos": jnp.cos, "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid,
    "erf": jax.scipy.special.erf, "exp": jnp.exp, "expm1": jnp.expm1, "log": jnp.log,
    "log1p": jnp.log1p, "sqrt": jnp.sqrt, "rsqrt": lambda x: 1 / jnp.sqrt(x),
    "relu": jax.nn.relu, "abs": jnp.abs, "sign": jnp.sign, "floor": jnp.floor,
    "ceil": jnp.ceil, "round": jnp.round, "is_finite": jnp.isfinite, "where": jnp.where,
    "stop_gradient": jax.lax.stop_gradient, "cast": cast, "reshape": jnp.reshape,
    "transpose": transpose, "pad": pad, "window": window, "split": split,
    "concat": lambda x, axis=0: jnp.concatenate(x, axis),
    "stack": lambda x, axis=0: jnp.stack(x, axis), "flip": jnp.flip,
    "repeat": lambda x, n, axis: jnp.repeat(x, n, axis), "insert_axis": jnp.expand_dims,
    "broadcast": jnp.broadcast_to, "cumsum": cumsum, "take_along": take_along,
    "gather": lambda x, i: x[i], "scatter_add": lambda x, i, y: jnp.asarray(x).at[i].add(y),
    "one_hot": one_hot, "lower_triangle": lower_triangle, "softmax": softmax,
    "log_softmax": lambda x, axis=-1: jax.nn.log_softmax(x, axis),
    "logsumexp": lambda x, axis=-1, keep=False: jax.scipy.special.logsumexp(
        x, axis=axis, keepdims=keep),
    "conv": conv, "conv_transpose": conv_transpose, "einsum": lambda spec, x, y: jnp.einsum(spec, x, y),
    "full": lambda shape, value, to: jnp.full(shape, value, to),
    "floor_divide": floor_divide, "remainder": remainder,
    "both": jnp.logical_and, "either": jnp.logical_or, "negation": jnp.logical_not,
    "gradient": lambda f, x: jax.grad(f)(x),
    "cubed": lambda x: x * x * x, "modulated": lambda x, y: x * jnp.sin(y),
    "true": True, "false": False, "inf": np.inf,
}


class Library:
    """nn: blocks take the path of their parameters first."""

    def __init__(self, values):
        self.values = values

    gelu = staticmethod(lambda x: 0.5 * x * (1 + jax.scipy.special.erf(x * 0.7071067811865476)))
    gelu_tanh = staticmethod(lambda x: jax.nn.gelu(x, approximate=True))
    silu = staticmethod(lambda x: x * jax.nn.sigmoid(x))
    softplus = staticmethod(lambda x: jnp.logaddexp(x, 0.0))
    log_sigmoid = staticmethod(lambda x: -jnp.logaddexp(-x, 0.0))
    leaky_relu = staticmethod(lambda x, slope=0.01: jnp.where(x > 0, x, slope * x))
    elu = staticmethod(lambda x: jnp.where(x > 0, x, jnp.expm1(jnp.where(x > 0, 0.0, x))))
    hard_swish = staticmethod(lambda x: x * jnp.clip(x / 6 + 0.5, 0, 1))

    @staticmethod
    def cross_entropy(logits, label, smoothing=0):
        log_p = jax.nn.log_softmax(logits)
        picked = -take_along(log_p, label, -1)
        return (1 - smoothing) * picked - smoothing * jnp.mean(log_p, -1)

    @staticmethod
    def attend(q, k, v, causal=True):
        score = q @ jnp.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        return softmax(jnp.where(lower_triangle(score), score, -np.inf) if causal else score) @ v

    def linear(self, path, x, out, bias=True):
        y = x @ self.values[path + ".weight"].T
        return y + self.values[path + ".bias"] if bias else y

    def mlp(self, path, x, widths):
        for i, n in enumerate(widths):
            x = self.linear(f"{path}.layers.{i}", x, n)
            x = jax.nn.relu(x) if i < len(widths) - 1 else x
        return x

    def swiglu(self, path, x, hidden):
        gate = self.silu(self.linear(path + ".gate_proj", x, hidden, False))
        up = self.linear(path + ".up_proj", x, hidden, False)
        return self.linear(path + ".down_proj", gate * up, 0, False)

    rotary = staticmethod(rotary)

    def grouped_attention(self, path, x, heads, kv_heads):
        (b, t, c), n = x.shape, x.shape[2] // heads

        def project(name, count):
            y = self.linear(f"{path}.{name}", x, 0, False)
            return jnp.swapaxes(y.reshape(b, t, count, n), 1, 2)

        q, k = rotary(project("q_proj", heads), 10000), rotary(project("k_proj", kv_heads), 10000)
        k, v = (jnp.repeat(y, heads // kv_heads, 1) for y in (k, project("v_proj", kv_heads)))
        score = q @ jnp.swapaxes(k, 2, 3) / np.sqrt(n)
        y = softmax(jnp.where(lower_triangle(score), score, -np.inf)) @ v
        return self.linear(path + ".o_proj", jnp.swapaxes(y, 1, 2).reshape(b, t, c), 0, False)

    def batch_norm(self, path, x):
        axes = tuple(a for a in range(x.ndim) if a != 1)
        shape = [1, -1] + [1] * (x.ndim - 2)
        mean = jnp.mean(x, axes, keepdims=True)
        var = jnp.mean((x - mean) ** 2, axes, keepdims=True)
        weight = self.values[path + ".weight"].reshape(shape)
        return (x - mean) / jnp.sqrt(var + 1e-5) * weight + \
            self.values[path + ".bias"].reshape(shape)

    def group_norm(self, path, x, groups, eps):
        y = self.instance_norm(x.reshape(x.shape[0], groups, -1), eps).reshape(x.shape)
        shape = [1, -1] + [1] * (x.ndim - 2)
        return y * self.values[path + ".weight"].reshape(shape) + \
            self.values[path + ".bias"].reshape(shape)

    @staticmethod
    def instance_norm(x, eps):
        axes = tuple(range(2, x.ndim))
        mean = jnp.mean(x, axes, keepdims=True)
        return (x - mean) / jnp.sqrt(jnp.mean((x - mean) ** 2, axes, keepdims=True) + eps)

    def layer_norm(self, path, x, eps):
        mean = jnp.mean(x, -1, keepdims=True)
        var = jnp.mean((x - mean) ** 2, -1, keepdims=True)
        return (x - mean) / jnp.sqrt(var + eps) * self.values[path + ".weight"] + \
            self.values[path + ".bias"]

    def rms_norm(self, path, x, eps):
        return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * \
            self.values[path + ".weight"]


# ---- expressions --------------------------------------------------------------------

def call(name, *args):
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


class Rewrite(ast.NodeTransformer):
    """What Python's operators would do otherwise."""

    def visit_BoolOp(self, node):
        name = "both" if isinstance(node.op, ast.And) else "either"
        first, *rest = [self.visit(v) for v in node.values]
        for v in rest:
            first = call(name, first, v)
        return first

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return call("negation", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        name = {ast.FloorDiv: "floor_divide", ast.Mod: "remainder"}.get(type(node.op))
        if name is None and not isinstance(node.right, ast.List):
            return node
        right = node.right
        if isinstance(right, ast.List):  # a row of numbers
            right = ast.Call(ast.Attribute(ast.Name("jnp", ast.Load()), "array", ast.Load()),
                             [right], [])
        return call(name, node.left, right) if name else ast.BinOp(node.left, node.op, right)

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "grad":
            x = ast.arg(node.args[1].id)
            f = ast.Lambda(ast.arguments([], [x], None, [], [], None, []), node.args[0])
            return call("gradient", f, node.args[1])
        return node


BLOCK = re.compile(r"nn\.(\w+)\(([^()]*)\) (?:as|share) (\w+)(\[i\])?")


def evaluate(text, env):
    index = f".{env['i']}" if "i" in env else ""
    text = BLOCK.sub(lambda m: f'nn.{m[1]}("{m[3]}{index if m[4] else ""}", {m[2]})', text)
    tree = ast.parse(text.replace("^", "**").strip(), mode="eval")
    tree = ast.fix_missing_locations(Rewrite().visit(tree))
    return eval(compile(tree, text, "eval"), {"__builtins__": {}, "jnp": jnp, **env})


# ---- statements ---------------------------------------------------------------------

def body_of(lines, at):
    """The lines of the block that begins at `at`, and the line behind it."""
    end, depth = at + 1, 1
    while depth > 0:
        depth += lines[end].endswith("{")
        depth -= lines[end].startswith("}")
        end += 1
    return lines[at + 1:end - 1], end


def cut_outside(text, by):
    """text.split(by), but not within brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == by and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def scan(head, body, env):
    names, rest = head.split(" = scan ", 1)
    names = [n.strip() for n in names.split(",")]
    item, what = rest.rstrip("{ ").split(" in ", 1)
    item = [i.strip() for i in item.split(",")]
    what, *options = cut_outside(what, ",")
    carry, axis = {}, 0
    for option in options:
        name, value = option.split(" = ", 1)
        if name.strip() == "axis":
            axis = int(value)
        else:
            carry[name.strip()] = evaluate(value, env)
    counted = re.match(r"(\d+)\.\.(\d+)", what)
    over = None if counted else evaluate(what, env)
    over = [over] if len(item) == 1 else over
    items = range(int(counted[1]), int(counted[2])) if counted else range(over[0].shape[axis])
    emitted = []
    for k in items:
        inner = dict(env, **carry)
        for i, name in enumerate(item):
            inner[name] = k if counted else jnp.take(over[i], k, axis=axis)
        values = run(body, inner)["emit"]
        emitted.append(values if isinstance(values, tuple) else (values,))
        carry = {name: inner[name] for name in carry}
    stacks = [jnp.stack(s, axis) for s in zip(*emitted)]
    env.update(dict(zip(names, [*stacks, *carry.values()])))


def assign(line, env):
    names, value = line.split(" = ", 1)
    value = evaluate(value, env)
    names = [n.strip() for n in names.split(",")]
    env.update(zip(names, value) if len(names) > 1 else [(names[0], value)])


def run(lines, env):
    """Runs statements in env; gives what they say to the outside."""
    said, at = {}, 0
    while at < len(lines):
        line = re.sub(r"^(keep|recompute|offload) ", "", lines[at])
        word, _, rest = line.partition(" ")
        at += 1
        if " = scan " in line:
            body, at = body_of(lines, at - 1)
            scan(line, body, env)
        elif word == "for":
            body, at = body_of(lines, at - 1)
            for i in range(*map(int, re.search(r"(\d+)\.\.(\d+)", rest).groups())):
                env["i"] = i
                run(body, env)
            env.pop("i", None)
        elif word in ("loss", "emit"):
            said[word] = evaluate(rest, env)
        elif word in ("output", "metric"):
            name, _, value = rest.partition(" = ")
            said[name.strip()] = evaluate(value or name, env)
        elif word not in ("param", "input", "state") and " <- " not in line:
            assign(line, env)
    return said


def statements(text):
    """The lines of the model's body, without comments."""
    lines = [line.split("  #")[0].split("#")[0].strip() for line in text.split("\n")]
    lines = [line for line in lines if line]
    start = next(i for i, line in enumerate(lines) if line.startswith("model "))
    return body_of(lines, start)[0]


# ---- models -------------------------------------------------------------------------

def tensor(t):
    return np.array(t[2], DTYPE[t[0]]).reshape(t[1])


def tensors(of):
    return {name: tensor(t) for name, t in of.items()}


def environment(values, batch):
    return {**FUNCTIONS, **DTYPE, "nn": Library(values), "batch": batch, **values}


def judge(model):
    values, lines = tensors(model["values"]), statements(model["text"])
    wanted = tensors(model["gradients"])

    def f(moving):
        TIES.clear()
        said = run(lines, environment({**values, **moving}, model["batch"]))
        return said["loss"], (said, jnp.any(jnp.array(TIES + [False])))
    moving = {name: values[name] for name in wanted}
    (_, (said, tied)), gradients = jax.jit(jax.value_and_grad(f, has_aux=True))(moving)
    return said, gradients, wanted, bool(tied)


def apart(x, y, norm):
    """How far two values are from one another, in units of the norm."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.shape != y.shape:
        return f"shape {x.shape} instead of {y.shape}"
    if np.array_equal(x, y, equal_nan=True):
        return 0.0
    return float(np.linalg.norm(x - y) / max(norm, 1e-3))


def wrong(model):
    """What disagrees, or None; and the largest error, or None where something does that an argmax
    may have chosen by rounding."""
    said, gradients, wanted, tied = judge(model)
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in wanted.values()))
    pairs = [(name, said[name], want, np.linalg.norm(np.asarray(want, np.float64)))
             for name, want in tensors(model["results"]).items()]
    pairs += [("gradient of " + name, gradients[name], want, norm)
              for name, want in wanted.items()]
    worst = 0.0
    for name, got, want, scale in pairs:
        error = apart(got, want, scale)
        if isinstance(error, str) or not error <= TOLERANCE:
            return (None, None) if tied else (f"{name}: off by {error}", worst)
        worst = max(worst, error)
    return None, worst


def with_wrong_sign(model):
    """A copy in which the largest gradient is negated; None where all are 0."""
    gradients = dict(model["gradients"])
    name = max(gradients, key=lambda n: np.linalg.norm(tensor(gradients[n])), default=None)
    if name is None or not np.any(tensor(gradients[name])):
        return None
    dtype, shape, elements = gradients[name]
    gradients[name] = [dtype, shape, [-x for x in elements]]
    return {**model, "gradients": gradients}


def main():
    passed, failed, ties, worst, tried = 0, 0, 0, 0.0, False
    for line in sys.stdin:
        model = json.loads(line)
        planted = None if tried else with_wrong_sign(model)
        if planted is not None:
            bad, error = wrong(planted)
            tried = error is not None
            if tried and bad is None:
                print(f"FAILED: seed {model['seed']}: a wrong sign passes")
                failed += 1
        try:
            bad, error = wrong(model)
        except Exception as e:  # a statement that this reader does not know: a failure too
            bad, error = f"{type(e).__name__}: {e}", 0.0
        if error is None:
            ties += 1
            continue
        passed, failed, worst = passed + (bad is None), failed + (bad is not None), \
            max(worst, error)
        if bad is not None:
            print(f"FAILED: seed {model['seed']} (gradc-smith export): {bad}", flush=True)
    if not tried:
        print("FAILED: no model has a gradient")
        failed += 1
    if ties > 1 + passed // 10:
        print(f"FAILED: in {ties} models an argmax chose by rounding")
        failed += 1
    print(f"{passed + failed} random models against JAX, worst error {worst:.1e}; "
          f"{ties} not judged: an argmax chose by rounding")
    print(f"passed={passed} failed={failed} skipped=0")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
