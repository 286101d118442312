"""The operations of models.py in PyTorch, and a training step."""
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

VERSION = torch.__version__


class Ops:
    relu = staticmethod(F.relu)
    relu6 = staticmethod(F.relu6)
    compiled_pieces = False

    @staticmethod
    def linear(p, name, x):
        return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))

    @staticmethod
    def conv(p, name, x, stride=1, padding=0, groups=1):
        return F.conv2d(x, p[name + ".weight"], p.get(name + ".bias"), stride, padding, 1, groups)

    tanh = staticmethod(torch.tanh)
    cumsum = staticmethod(lambda x: x.cumsum(1))
    concat = staticmethod(lambda xs: torch.cat(xs, 1))
    avg_pool = staticmethod(lambda x: F.avg_pool2d(x, 2))
    picture = staticmethod(lambda x, *shape: x.view(-1, *shape))

    @staticmethod
    def conv_transpose(p, name, x):
        """To pictures twice as large, by kernels of 4 x 4."""
        return F.conv_transpose2d(x, p[name + ".weight"], p[name + ".bias"], 2, 1)

    join = staticmethod(lambda xs: torch.cat(xs, -1))

    @staticmethod
    def most(p, name, x):
        """The most that windows over the places of x[B, T, C] find: [B, out]."""
        y = F.conv1d(x.transpose(1, 2), p[name + ".weight"], p[name + ".bias"])
        return F.relu(y).amax(2)

    @staticmethod
    def max_pool(x):
        return F.max_pool2d(x, 2)

    @staticmethod
    def flatten(x):
        return x.flatten(1)

    @staticmethod
    def pixel_mean(x):
        return x.mean((2, 3))

    @staticmethod
    def batch_norm(p, name, x, new):
        return F.batch_norm(x, p[name + ".running_mean"], p[name + ".running_var"],
                            p[name + ".weight"], p[name + ".bias"], training=True, momentum=0.1)

    @staticmethod
    def layer_norm(p, name, x):
        return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"])

    @staticmethod
    def gelu(x):
        return F.gelu(x, approximate="tanh")

    @staticmethod
    def attention(qkv, heads):
        """Causal, for qkv[B, T, 3 C]; gives [B, T, C]."""
        b, t, c = qkv.shape
        q, k, v = qkv.view(b, t, 3, heads, c // 3 // heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(b, t, c // 3)

    @staticmethod
    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    @staticmethod
    def cross_entropy(logits, label):
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), label.reshape(-1))

    @staticmethod
    def checkpoint(f):
        return lambda *args: checkpoint(f, *args, use_reentrant=False)

    @classmethod
    def recur(cls, p, xs, h, chunk):
        """h <- tanh(W h + U x + b) along xs[T, B, N]; by pieces of `chunk` if there is one."""
        def run(h, xs):
            for x in xs.unbind(0):
                drive = torch.addmm(p["b"], x, p["U.weight"].t())
                h = torch.tanh(torch.addmm(drive, h, p["W.weight"].t()))
            return h
        f = run
        if cls.compiled_pieces:     # 1000 unrolled steps are too many for one compilation
            f, pieces = compiled(run), xs.split(chunk or 32)
        else:
            pieces = xs.split(chunk) if chunk else [xs]
        f = cls.checkpoint(f) if chunk else f
        for piece in pieces:
            h = f(h, piece)
        return h

    @staticmethod
    def zeros(like, *shape):
        return like.new_zeros(shape)


_compiled = {}


def compiled(f):
    return _compiled.setdefault(f.__qualname__, torch.compile(f, dynamic=False))


def prepare(model, values, batch, threads, how, memory_budget=None, channels_last=False):
    """A function that does one training step and gives its loss."""
    torch.set_num_threads(threads)
    if memory_budget is not None:
        import torch._functorch.config as config
        config.activation_memory_budget = memory_budget

    def place(array):
        t = torch.from_numpy(array)
        return t.to(memory_format=torch.channels_last) if channels_last and t.dim() == 4 else t
    params = {k: place(v) for k, v in values.items()}
    batch = [place(b) for b in batch]
    trained = [v.requires_grad_() for k, v in params.items() if not model.frozen(k)]

    def f(params, *batch):
        return model.loss(Ops, params, *batch)[0]
    if how == "torch-compile":
        Ops.compiled_pieces = model.loops
        f = f if model.loops else torch.compile(f)
    if model.cotangent:
        def step():
            for v in trained:
                v.grad = None
            f(params, *batch[:-1]).backward(batch[-1])
            return params["q"].grad.flatten()[-1]
        return step
    rule = dict(model.rule)
    kind, clip = rule.pop("kind"), rule.pop("clip", None)
    make = torch.optim.AdamW if kind == "adamw" else torch.optim.SGD
    optimizer = make(trained, fused=True, **rule)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = f(params, *batch)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(trained, clip)
        optimizer.step()
        return loss.detach()
    return step


def flops(step):
    """Multiplications and additions of one step's matrix products and convolutions."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as count:
        step()
    return count.get_total_flops()


def tensor_peak(step):
    """Bytes that the tensors of one step take at their peak, above those that stay."""
    from torch.profiler import ProfilerActivity, profile
    step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as run:
        step()
    now = most = 0
    for e in run.profiler.kineto_results.events():
        if e.name() == "[memory]":
            now += e.nbytes()
            most = max(most, now)
    return most
