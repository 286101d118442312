"""Judges gradc by JAX: the examples' losses and gradients from the same weights and data.

    python judge.py --gradc build/gradc [--models digits,...] [--optimizers sgd,...]
    python judge.py --self-test            JAX against differences and plain numpy, no gradc

JAX computes in double precision. For every model and optimizer, 20 steps on 20 batches:
every loss within 1e-4 relative, and the first step's gradient of every parameter within
1e-5 of the global gradient norm. The last line is "passed=N failed=N skipped=N".

Batch norm on 16 pictures of noise makes resnet8 chaotic: JAX's own losses in single
precision leave those in double by up to 1e-3 within 20 steps. It is held to the 1e-4 for
its first 6 steps in single precision, and for all 20 in double, its inputs made f64.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402
import optax  # noqa: E402

jax.config.update("jax_enable_x64", True)

import models  # noqa: E402
import native  # noqa: E402
import safetensors  # noqa: E402

STEPS = 20
LOSS_TOLERANCE = 1e-4       # relative
SINGLE_STEPS = {"resnet8": 6}
GRADIENT_TOLERANCE = 1e-5   # of the global norm

# name -> (what a train block says, the same in optax)
OPTIMIZERS = {
    "sgd": ("sgd(lr = 0.05)", lambda: optax.sgd(0.05)),
    "momentum": ("sgd(lr = 0.01, momentum = 0.9)", lambda: optax.sgd(0.01, momentum=0.9)),
    "adam": ("adam(lr = 1e-3)", lambda: optax.adam(1e-3)),
    "adamw": ("adamw(lr = 1e-3, weight_decay = 0.1)",
              lambda: optax.adamw(1e-3, weight_decay=0.1)),
}


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, good, what):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print(f"FAILED: {what}", flush=True)

    def close(self):
        print(f"passed={self.passed} failed={self.failed} skipped={self.skipped}")
        return 1 if self.failed else 0


def double(tree):
    return {k: np.asarray(v, np.float64) if v.dtype == np.float32 else np.asarray(v)
            for k, v in tree.items()}


def global_norm(grads):
    return float(np.sqrt(sum(np.sum(np.square(g, dtype=np.float64)) for g in grads.values())))


def jax_run(model, values, batches, optimizer):
    """Losses of all batches in turn, and the gradients of the first."""
    values = double(values)
    params = {k: values[k] for k in model.params}
    buffers = {k: values[k] for k in model.buffers}
    rule = optimizer()

    @jax.jit
    def step(params, buffers, state, batch):
        def f(p):
            return model.loss({**p, **buffers}, batch)
        (loss, new), grads = jax.value_and_grad(f, has_aux=True)(params)
        change, state = rule.update(grads, state, params)
        return optax.apply_updates(params, change), {**buffers, **new}, state, loss, grads
    state, losses, first = rule.init(params), [], None
    for batch in batches:
        params, buffers, state, loss, grads = step(params, buffers, state, double(batch))
        losses.append(float(loss))
        first = first or {k: np.asarray(g) for k, g in grads.items()}
    return losses, first


# ---- gradc ----------------------------------------------------------------------------

def with_optimizer(text, rule):
    """A model's text with another train block, and without dropout (its draws are gradc's own)."""
    name = re.search(r"^model\s+(\w+)", text, re.M).group(1)
    begin = re.search(r"^train\b[^{]*\{", text, re.M)
    if begin:
        depth, end = 1, begin.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[:begin.start()] + text[end:]
    text = re.sub(r"nn\.dropout\((\w+),[^()]*\)", r"\1", text)
    return f"{text}\ntrain {name} {{\n    optimizer {rule}\n}}\n"


class Gradc:
    """The command-line interface, in one folder of files."""

    def __init__(self, program, folder):
        self.program, self.folder = os.path.abspath(program), folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *args):
        done = subprocess.run([self.program, "run", *args, "--json"], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"gradc run: status {done.returncode}: {done.stderr[-2000:]}")
        return json.loads(done.stdout)

    def weights(self, source, options):
        """The initial weights and buffers, as gradc draws them."""
        self.run(source, *options, "--seed", "1", "--weights-out", self.path("0.safetensors"))
        return safetensors.read(self.path("0.safetensors"))

    def gradients(self, source, options, batch):
        """Loss and gradients by name, from the weights that `weights` has left."""
        args = [source, *options, "--weights", self.path("0.safetensors"),
                "--grads-out", self.path("grads.safetensors")]
        for name, value in batch.items():
            np.save(self.path(name + ".npy"), value)
            args += ["--in", f"{name}={self.path(name + '.npy')}"]
        loss = self.run(*args)["loss"]
        grads = safetensors.read(self.path("grads.safetensors"))
        return loss, {k.split(":")[-1]: v for k, v in grads.items()}

    def losses(self, source, options, values, batches):
        """The losses of all batches in turn, by the object that `gradc build` writes."""
        model = native.Native(self.program, source, options, self.folder)
        for name, value in values.items():
            model.write(name, value)
        return [model.call("step", batch)[0] for batch in batches]


def check_losses(counts, what, losses, wanted):
    """Counts every step; the largest relative error."""
    errors = [abs(a - b) / abs(b) for a, b in zip(losses, wanted)]
    for i, error in enumerate(errors):
        counts.check(error <= LOSS_TOLERANCE,
                     f"{what}: loss of step {i + 1}: {losses[i]} instead of {wanted[i]}")
    return max(errors)


def judge(counts, gradc, name, rule):
    model = models.MODELS[name]()
    with open(os.path.join(models.ROOT, "examples", name + ".model")) as f:
        text = with_optimizer(f.read(), OPTIMIZERS[rule][0])
    source = gradc.path(name + ".model")
    with open(source, "w") as f:
        f.write(text)
    values = gradc.weights(source, model.options)
    wanted = {**model.params, **model.buffers}
    got = {k: v.shape for k, v in values.items() if k in wanted}
    if got != wanted:
        odd = {k: (wanted[k], got.get(k)) for k in wanted if got.get(k) != wanted[k]}
        counts.check(False, f"{name}: names and shapes, wanted and got: {odd}; "
                            f"gradc has {sorted(values)}")
        return
    rng = np.random.default_rng(3)
    batches = [model.batch(rng) for _ in range(STEPS)]
    first, grads = gradc.gradients(source, model.options, batches[0])
    steps = SINGLE_STEPS.get(name, STEPS)
    values = {k: values[k] for k in wanted}
    losses = gradc.losses(source, model.options, values, batches[:steps])
    want_losses, want_grads = jax_run(model, values, batches, OPTIMIZERS[rule][1])
    off_run = check_losses(counts, f"{name} {rule}: gradc run", [first], want_losses)
    off_single = check_losses(counts, f"{name} {rule}", losses, want_losses)
    said = f"off by {max(off_run, off_single):.1e} at most"
    if steps < STEPS:
        os.mkdir(gradc.path("double"))  # a library of the same path would be the same
        double_gradc = Gradc(gradc.program, gradc.path("double"))
        wide = double_gradc.path(name + ".model")
        with open(wide, "w") as f:
            f.write(re.sub(r"\bf32\b", "f64", text))
        losses = double_gradc.losses(wide, model.options, values, batches)
        off_double = check_losses(counts, f"{name} {rule} in double", losses, want_losses)
        said += f" in {steps} steps, {off_double:.1e} in double"
    norm = global_norm(want_grads)
    off = {k: float(np.linalg.norm(grads[k] - g)) / norm if k in grads else np.inf
           for k, g in want_grads.items()}
    for k, error in off.items():
        counts.check(error <= GRADIENT_TOLERANCE,
                     f"{name} {rule}: gradient of {k}: off by {error:.2e} of the global norm")
    print(f"{name} {rule}: loss {want_losses[0]:.6f} to {want_losses[-1]:.6f}, {said}; "
          f"gradients off by {max(off.values()):.1e} "
          f"({max(off, key=off.get)})", flush=True)


def judge_all(counts, program, names, rules):
    for name in names:
        if not os.path.exists(os.path.join(models.ROOT, "examples", name + ".model")):
            print(f"skipped: JAX {name}: there is no examples/{name}.model")
            counts.skipped += 1
            continue
        for rule in rules:
            begin = time.time()
            with tempfile.TemporaryDirectory() as folder:
                try:
                    judge(counts, Gradc(program, folder), name, rule)
                except (RuntimeError, KeyError, ValueError, OSError,
                        subprocess.CalledProcessError) as error:
                    counts.check(False, f"{name} {rule}: {error}")
            print(f"    {time.time() - begin:.0f} s", flush=True)


# ---- the judge judged -----------------------------------------------------------------

def numpy_rule(rule, p, g, m, v, t):
    """One update by the formulas of the papers: new p, m, v."""
    if rule == "sgd":
        return p - 0.05 * g, m, v
    if rule == "momentum":
        m = 0.9 * m + g
        return p - 0.01 * m, m, v
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    change = (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8)
    return p - 1e-3 * (change + (0.1 * p if rule == "adamw" else 0)), m, v


def check_rules(counts):
    rng = np.random.default_rng(5)
    for rule, (_, make) in OPTIMIZERS.items():
        p = q = rng.standard_normal(7)
        m, v, opt = np.zeros(7), np.zeros(7), make()
        state = opt.init(p)
        for t in range(1, 11):
            g = rng.standard_normal(7)
            p, m, v = numpy_rule(rule, p, g, m, v, t)
            change, state = opt.update(g, state, q)
            q = optax.apply_updates(q, change)
        counts.check(np.allclose(p, q, rtol=1e-12, atol=1e-14), f"{rule}: optax and the formulas")


def check_gradients(counts, name, make):
    """Central differences along random directions; a kink between the two is drawn again."""
    model = make()
    values = double(model.draw(1))
    batch = double(model.batch(np.random.default_rng(2)))
    params = {k: values[k] for k in model.params}
    f = jax.jit(lambda p: model.loss({**values, **p}, batch)[0])
    loss, grads = f(params), jax.grad(f)(params)
    counts.check(np.isfinite(loss), f"{name}: the loss is {loss}")
    rng, worst, h, drawn = np.random.default_rng(4), 0.0, 1e-6, 0
    for k, shape in model.params.items():
        for _ in range(5):
            u = rng.standard_normal(shape)
            u /= np.linalg.norm(u)

            def at(s):
                return float(f({**params, k: params[k] + s * h * u}))
            forward, backward = (at(1) - float(loss)) / h, (float(loss) - at(-1)) / h
            if abs(forward - backward) < 1e-3 * max(abs(forward), 1e-3):
                break
            drawn += 1
        exact = float(np.sum(np.asarray(grads[k]) * u))
        worst = max(worst, abs((forward + backward) / 2 - exact) / global_norm(grads))
    counts.check(worst < 1e-6, f"{name}: gradients and differences are {worst:.1e} apart")
    print(f"{name}: loss {float(loss):.6f}, {len(params)} parameters, differences agree within "
          f"{worst:.1e}, {drawn} directions drawn again", flush=True)


def check_digits_by_hand(counts):
    """The perceptron once more, in numpy with derivatives by hand."""
    model = models.digits()
    p, b = double(model.draw(1)), double(model.batch(np.random.default_rng(2)))
    x, y = b["image"] / 16, b["label"]
    z = x @ p["fc1.weight"].T + p["fc1.bias"]
    h = np.maximum(z, 0)
    logits = h @ p["fc2.weight"].T + p["fc2.bias"]
    e = np.exp(logits - logits.max(1, keepdims=True))
    soft = e / e.sum(1, keepdims=True)
    loss = -np.log(soft[np.arange(len(y)), y]).mean()
    d = (soft - np.eye(10)[y]) / len(y)
    dz = (d @ p["fc2.weight"]) * (z > 0)
    mine = {"fc2.weight": d.T @ h, "fc2.bias": d.sum(0), "fc1.weight": dz.T @ x, "fc1.bias": dz.sum(0)}
    losses, grads = jax_run(model, p, [b], OPTIMIZERS["sgd"][1])
    counts.check(abs(losses[0] - loss) < 1e-12, f"digits: loss {losses[0]}, by hand {loss}")
    for k, g in mine.items():
        counts.check(np.allclose(g, grads[k], atol=1e-14), f"digits: gradient of {k} by hand")


def check_files(counts):
    rng = np.random.default_rng(6)
    tensors = {"a": rng.standard_normal((2, 3)).astype(np.float32), "b.c": np.arange(5, dtype=np.int64),
               "scalar": np.float64(1.5).reshape(())}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.safetensors")
        safetensors.write(path, tensors)
        back = safetensors.read(path)
    counts.check(list(back) == list(tensors) and
                 all(np.array_equal(back[k], v) and back[k].dtype == v.dtype
                     for k, v in tensors.items()), "safetensors: what is written reads back")


def check_text(counts):
    text = "model a(n = 1) {\n x = nn.dropout(y, 0.25)\n}\ntrain a {\n optimizer b { c }\n}\n# end\n"
    got = with_optimizer(text, "sgd(lr = 1)")
    counts.check(" x = y\n" in got and "optimizer b" not in got and "# end" in got and
                 got.count("train a {") == 1, "another train block")


def check_layout(counts):
    """native.py has the structures of runtime/abi.h, field by field."""
    kinds = {"gradc_tensor": native.Tensor, "gradc_options": native.Options, "gradc_model": native.Table}
    lines = [f'    printf("%zu\\n", offsetof({kind}, {name}));\n'
             for kind, twin in kinds.items() for name, _ in twin._fields_]
    lines += [f'    printf("%zu\\n", sizeof({kind}));\n' for kind in kinds]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "o.c"), os.path.join(folder, "o")
        with open(source, "w") as f:
            f.write('#include <stdio.h>\n#include "abi.h"\nint main(void)\n{\n' + "".join(lines) + "}\n")
        subprocess.run(["cc", "-I", os.path.join(models.ROOT, "runtime"), source, "-o", program], check=True)
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    here = [getattr(twin, name).offset for twin in kinds.values() for name, _ in twin._fields_]
    here += [native.ctypes.sizeof(twin) for twin in kinds.values()]
    counts.check(list(map(int, said)) == here, f"runtime/abi.h and native.py: {said}, {here}")


def self_test(counts):
    check_layout(counts)
    check_files(counts)
    check_text(counts)
    check_rules(counts)
    check_digits_by_hand(counts)
    small = dict(digits=models.digits, fashion=lambda: models.fashion(batch=2),
                 chargpt=lambda: models.chargpt(batch=2, ctx=16, layers=2, width=32),
                 resnet8=lambda: models.resnet8(batch=2))
    for name, make in small.items():
        check_gradients(counts, name, make)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--gradc")
    a.add_argument("--self-test", action="store_true")
    a.add_argument("--models", default=",".join(models.MODELS))
    a.add_argument("--optimizers", default=",".join(OPTIMIZERS))
    args = a.parse_args()
    print(f"JAX {jax.__version__}, optax {optax.__version__}, numpy {np.__version__}")
    counts = Counts()
    if args.self_test:
        self_test(counts)
    if args.gradc:
        judge_all(counts, args.gradc, args.models.split(","), args.optimizers.split(","))
    return counts.close()


if __name__ == "__main__":
    sys.exit(main())
