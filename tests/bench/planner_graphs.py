#!/usr/bin/env python3
"""Planning problems for `gradc plan --problem`, from layer shapes or from a seed.

    planner_graphs.py vgg16|vgg19|unet|fcn8|segnet|mobilenet|resnet50 [BATCH]
    planner_graphs.py gpt LAYERS
    planner_graphs.py rl1|rl2|rl3|rl4 [SEED]
    planner_graphs.py rl1s|rl2s|rl3s|rl4s [SEED]     with long skips
    planner_graphs.py random NODES SEED      small DAG with everything in it

One JSON object on stdout. Needs nothing but Python.

Training graphs have one node a layer, one for the loss, and one for the gradient of each
layer: it reads the layer's inputs and output and the gradients of its readers, and is as
large as the layer's input. Costs are flops, a gradient's twice a layer's.
"""
import json
import random
import sys


class Net:
    """Layers in order; shapes are (height, width, channels) without the batch."""

    def __init__(self, batch, height, width):
        self.batch, self.layers, self.shape = batch, [], (height, width, 3)
        self.image = (height, width, 3)

    def add(self, name, shape, flops, inputs=None):
        if inputs is None:
            inputs = [len(self.layers) - 1] if self.layers else []
        self.layers.append((name, shape, max(1, int(flops)), inputs))
        self.shape = shape
        return len(self.layers) - 1

    def elems(self, shape=None):
        h, w, c = shape or self.shape
        return h * w * c

    def conv(self, name, channels, kernel=3, stride=1, valid=False, at=None):
        h, w, c = self.layers[at][1] if at is not None else self.shape
        cut = kernel - 1 if valid else 0
        shape = ((h - cut + stride - 1) // stride, (w - cut + stride - 1) // stride, channels)
        flops = 2 * kernel * kernel * c * self.elems(shape)
        return self.add(name, shape, flops, None if at is None else [at])

    def depthwise(self, name, stride, valid=False):
        h, w, c = self.shape
        cut = 2 if valid else 0
        shape = ((h - cut + stride - 1) // stride, (w - cut + stride - 1) // stride, c)
        return self.add(name, shape, 18 * self.elems(shape))

    def deconv(self, name, channels, kernel, stride):
        h, w, c = self.shape
        shape = ((h - 1) * stride + kernel, (w - 1) * stride + kernel, channels)
        return self.add(name, shape, 2 * kernel * kernel * c * channels * h * w)

    def pool(self, name, kernel=2, stride=2, valid=False):
        h, w, c = self.shape
        cut = kernel - 1 if valid else 0
        shape = ((h - cut) // stride, (w - cut) // stride, c)
        if valid:
            shape = ((h - kernel) // stride + 1, (w - kernel) // stride + 1, c)
        return self.add(name, shape, kernel * kernel * self.elems(shape))

    def same(self, name, per_elem, at=None):
        shape = self.layers[at][1] if at is not None else self.shape
        return self.add(name, shape, per_elem * self.elems(shape), None if at is None else [at])

    def pad(self, name, by=1, low=None):
        h, w, c = self.shape
        more = 2 * by if low is None else low
        return self.add(name, (h + more, w + more, c), self.elems())

    def up(self, name):
        h, w, c = self.shape
        return self.add(name, (2 * h, 2 * w, c), 4 * self.elems())

    def dense(self, name, units):
        return self.add(name, (1, 1, units), 2 * self.elems() * units)

    def problem(self):
        nodes, n, bytes_of = [], len(self.layers), lambda s: 4 * self.batch * self.elems(s)
        readers = [[] for _ in range(n)]
        for i, (name, shape, flops, inputs) in enumerate(self.layers):
            nodes.append(node(name, self.batch * flops, bytes_of(shape), inputs))
            for u in inputs:
                readers[u].append(i)
        nodes.append(node("loss", self.batch, 4 * self.batch, [n - 1]))
        for i in reversed(range(n)):
            name, shape, flops, inputs = self.layers[i]
            size = sum(bytes_of(self.layers[u][1]) for u in inputs) if inputs else \
                bytes_of(self.image)
            if len(inputs) == 2 and self.layers[inputs[0]][1] == shape:
                size = bytes_of(shape)  # the gradient of a sum is one tensor
            later = [2 * n - r for r in readers[i]] or [n]
            nodes.append(node("d_" + name, 2 * self.batch * flops, size,
                              inputs + [i] + sorted(later)))
        return {"nodes": nodes, "pinned_bytes": 0}


def node(name, cost, size, inputs, scratch=0, pure=True, keep=False):
    return {"name": name, "cost": cost, "bytes": size, "inputs": inputs, "scratch": scratch,
            "pure": pure, "keep_until_end": keep}


def vgg_blocks(net, repeats, channels=(64, 128, 256, 512, 512)):
    pools = []
    for b, (times, c) in enumerate(zip(repeats, channels), 1):
        for i in range(times):
            net.conv("block%d_conv%d" % (b, i + 1), c)
        pools.append(net.pool("block%d_pool" % b))
    return pools


def vgg(repeats, batch):
    net = Net(batch, 224, 224)
    vgg_blocks(net, repeats)
    net.add("flatten", (1, 1, net.elems()), net.elems())
    for name, units in (("fc1", 4096), ("fc2", 4096), ("predictions", 1000)):
        net.dense(name, units)
    return net.problem()


def pad_conv_bn(net, name, channels):
    net.pad(name + "_pad")
    net.conv(name, channels, valid=True)
    return net.same(name + "_bn", 8)


CLASSES = {"unet": 10, "segnet": 10, "fcn8": 24}


def head(net, name):
    net.conv("classes", CLASSES[name])
    net.same("reshape", 1)
    return net.same("softmax", 5)


def unet(batch):
    net = Net(batch, 416, 608)
    f1, f2, f3, f4 = vgg_blocks(net, (2, 2, 3, 3))
    pad_conv_bn(net, "centre", 512)
    for level, (skip, channels) in enumerate(((f3, 256), (f2, 128), (f1, 64)), 1):
        up = net.up("up%d" % level)
        h, w, c = net.shape
        shape = (h, w, c + net.layers[skip][1][2])
        net.add("concat%d" % level, shape, net.elems(shape), [up, skip])
        pad_conv_bn(net, "up%d_conv" % level, channels)
    head(net, "unet")
    return net.problem()


def fcn8(batch):
    classes, net = CLASSES["fcn8"], Net(batch, 416, 608)
    _, _, f3, f4, _ = vgg_blocks(net, (2, 2, 3, 3, 3))
    net.conv("fc6", 4096, 7)
    net.same("drop6", 2)
    net.conv("fc7", 4096, 1)
    net.same("drop7", 2)
    net.conv("score5", classes, 1)
    for name, skip in (("4", f4), ("3", f3)):
        net.deconv("up" + name, classes, 4, 2)
        up_h, up_w, _ = net.shape
        h, w, _ = net.layers[skip][1]
        net.add("crop%s_h" % name, (h, up_w, classes), h * up_w * classes)
        crop = net.add("crop%s_w" % name, (h, w, classes), h * w * classes)
        score = net.conv("score" + name, classes, 1, at=skip)
        net.add("add" + name, net.shape, net.elems(), [crop, score])
    net.deconv("up8", classes, 16, 8)
    net.same("reshape", 1)
    net.same("softmax", 5)
    return net.problem()


def segnet(batch):
    net = Net(batch, 416, 608)
    for i, channels in enumerate((64, 128, 256, 256), 1):
        pad_conv_bn(net, "down%d" % i, channels)
        net.same("down%d_relu" % i, 1)
        net.pool("down%d_pool" % i)
    pad_conv_bn(net, "centre", 512)
    for i, channels in enumerate((256, 128, 64), 1):
        net.up("up%d" % i)
        pad_conv_bn(net, "up%d_conv" % i, channels)
    head(net, "segnet")
    return net.problem()


def bn_relu(net, name):
    net.same(name + "_bn", 8)
    return net.same(name + "_relu", 1)


def mobilenet(batch):
    net = Net(batch, 224, 224)
    net.pad("conv1_pad", low=1)
    net.conv("conv1", 32, 3, 2, valid=True)
    bn_relu(net, "conv1")
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + \
        [(1024, 2), (1024, 1)]
    for i, (channels, stride) in enumerate(plan, 1):
        if stride == 2:
            net.pad("pad%d" % i, low=1)
        net.depthwise("dw%d" % i, stride, valid=stride == 2)
        bn_relu(net, "dw%d" % i)
        net.conv("pw%d" % i, channels, 1)
        bn_relu(net, "pw%d" % i)
    net.add("mean", (1, 1, 1024), net.elems())
    net.same("reshape1", 1)
    net.same("dropout", 2)
    net.conv("classes", 1000, 1)
    net.same("reshape2", 1)
    net.same("softmax", 5)
    return net.problem()


def resnet50(batch):
    net = Net(batch, 224, 224)
    net.pad("conv1_pad", 3)
    net.conv("conv1", 64, 7, 2, valid=True)
    bn_relu(net, "conv1")
    net.pad("pool1_pad")
    last = net.pool("pool1", 3, 2, valid=True)
    for stage, (channels, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 2):
        for b in range(1, blocks + 1):
            name, short, start = "conv%d_%d" % (stage, b), last, last
            stride = 2 if stage > 2 and b == 1 else 1
            if b == 1:
                net.conv(name + "_0", 4 * channels, 1, stride, at=start)
                short = net.same(name + "_0_bn", 8)
            net.conv(name + "_1", channels, 1, stride, at=start)
            bn_relu(net, name + "_1")
            net.conv(name + "_2", channels, 3)
            bn_relu(net, name + "_2")
            net.conv(name + "_3", 4 * channels, 1)
            long = net.same(name + "_3_bn", 8)
            net.add(name + "_add", net.shape, net.elems(), [short, long])
            last = net.same(name + "_out", 1)
    net.add("mean", (1, 1, 2048), net.elems())
    net.dense("classes", 1000)
    return net.problem()


def gpt(layers, d=768, heads=12, t=1024, b=8):
    """Per layer 12 forward and 14 backward ops; head in chunks; time = max(flops / 100 GF/s,
    bytes / 20 GB/s), in nanoseconds."""
    nodes = []

    def op(name, flops, out, inputs):
        moved = out + sum(nodes[u]["bytes"] for u in inputs)
        nodes.append(node(name, max(1, int(max(flops / 100, moved / 20))), out, inputs))
        return len(nodes) - 1

    x, att = 4 * b * t * d, 4 * b * heads * t * t
    mm = lambda k, n: 2 * b * t * k * n
    core = 2 * b * heads * t * t * (d // heads)
    saved, h = [], op("embed", b * t * d, x, [])
    for i in range(layers):
        p = "h%d." % i
        ln1 = op(p + "ln1", 8 * b * t * d, x, [h])
        qkv = op(p + "qkv", mm(d, 3 * d), 3 * x, [ln1])
        s = op(p + "scores", core, att, [qkv])
        a = op(p + "softmax", 5 * b * heads * t * t, att, [s])
        o = op(p + "mix", core, x, [a, qkv])
        pr = op(p + "proj", mm(d, d), x, [o])
        r1 = op(p + "add1", b * t * d, x, [h, pr])
        ln2 = op(p + "ln2", 8 * b * t * d, x, [r1])
        f1 = op(p + "up", mm(d, 4 * d), 4 * x, [ln2])
        g = op(p + "gelu", 40 * b * t * d, 4 * x, [f1])
        f2 = op(p + "down", mm(4 * d, d), x, [g])
        r2 = op(p + "add2", b * t * d, x, [r1, f2])
        saved.append((h, ln1, qkv, s, a, o, r1, ln2, f1, g))
        h = r2
    lnf = op("ln_f", 8 * b * t * d, x, [h])
    loss = op("head", 3 * mm(d, 50257), x, [lnf])
    dh = op("d_ln_f", 16 * b * t * d, x, [loss, h])
    for i in reversed(range(layers)):
        p, (h0, ln1, qkv, s, a, o, r1, ln2, f1, g) = "d_h%d." % i, saved[i]
        w = 4 * d * d
        dg = op(p + "down.x", mm(4 * d, d), 4 * x, [dh])
        op(p + "down.w", mm(4 * d, d), 4 * w, [g, dh])
        df1 = op(p + "gelu", 60 * b * t * d, 4 * x, [f1, dg])
        dl2 = op(p + "up.x", mm(d, 4 * d), x, [df1])
        op(p + "up.w", mm(d, 4 * d), 4 * w, [ln2, df1])
        dr1 = op(p + "ln2", 16 * b * t * d, x, [r1, dl2, dh])
        do = op(p + "proj.x", mm(d, d), x, [dr1])
        op(p + "proj.w", mm(d, d), w, [o, dr1])
        da = op(p + "mix.a", core, att, [do, qkv])
        dv = op(p + "mix.v", core, x, [do, a])
        ds = op(p + "softmax", 6 * b * heads * t * t, att, [a, da])
        dqk = op(p + "scores", 2 * core, 2 * x, [ds, qkv])
        dl1 = op(p + "qkv", 2 * mm(d, 3 * d), x, [dqk, dv, ln1])
        dh = op(p + "ln1", 16 * b * t * d, x, [h0, dl1, dr1])
    op("d_embed", b * t * d, 4 * 50257 * d // 8, [dh])
    return {"nodes": nodes, "pinned_bytes": 0}


LAYERED = {"rl1": (100, 236, 8), "rl2": (250, 944, 15), "rl3": (500, 2461, 22),
           "rl4": (1000, 5875, 32)}


def layered(name, seed):
    """n nodes in layers of random width; m edges, mostly from the layer before."""
    n, m, width = LAYERED[name]
    rng = random.Random("%s %d" % (name, seed))
    layers, at = [], 0
    while at < n:
        w = min(n - at, rng.randint(max(1, width // 2), 3 * width // 2))
        layers.append(list(range(at, at + w)))
        at += w
    where = {v: i for i, layer in enumerate(layers) for v in layer}
    edges = set()
    for i, layer in enumerate(layers[1:], 1):
        for v in layer:
            edges.add((rng.choice(layers[i - 1]), v))
    while len(edges) < m:
        v = rng.randrange(len(layers[0]), n)
        back = 1
        while rng.random() < 0.3 and back < where[v]:
            back += 1
        edges.add((rng.choice(layers[where[v] - back]), v))
    nodes = []
    for v in range(n):
        nodes.append(node("n%d" % v, rng.randint(1, 1000), rng.randint(1, 2000),
                          sorted(u for u, w in edges if w == v)))
    return {"nodes": nodes, "pinned_bytes": 0}


# As LAYERED, with the share of edges that begin in any earlier layer. Published graphs of these sizes
# have a peak of 463, 587, 569 and 609 bytes a node and a largest working set of 0.43, 0.60, 0.17 and
# 0.08 of that (sizes of 1.9 thousand on average): an end that reads the last layer, and long skips.
# Of twelve graphs each: 527, 572, 599 and 620; 0.45, 0.23, 0.18 and 0.12.
SKIPPING = {"rl1s": (100, 236, 8, 0.1), "rl2s": (250, 944, 15, 0.2), "rl3s": (500, 2461, 22, 0.2),
            "rl4s": (1000, 5875, 32, 0.2)}


def mixed_size(rng):
    while True:
        mean, deviation = rng.choices(((.5, .5), (1, 1), (3, 1), (5, 1)), (3, 3, 3, 1))[0]
        size = int(1000 * rng.gauss(mean, deviation))
        if size > 0:
            return size


def skipping(name, seed):
    """Every node is read, the last layer by one end; some edges skip any number of layers."""
    n, m, width, skip = SKIPPING[name]
    rng = random.Random("%s %d" % (name, seed))
    layers, at = [], 0
    while at < n - 1:
        w = min(n - 1 - at, max(1, round(rng.gauss(width, width / 2))))
        layers.append(list(range(at, at + w)))
        at += w
    where = {v: i for i, layer in enumerate(layers) for v in layer}
    edges = {(u, n - 1) for u in layers[-1]}
    for i, layer in enumerate(layers[1:], 1):
        edges.update((rng.choice(layers[i - 1]), v) for v in layer)
    read = {u for u, _ in edges}
    edges.update((u, rng.choice(layers[where[u] + 1])) for u in range(n - 1) if u not in read)
    while len(edges) < m:
        v = rng.randrange(len(layers[0]), n - 1)
        back = rng.randrange(where[v]) if rng.random() < skip else where[v] - 1
        edges.add((rng.choice(layers[back]), v))
    nodes = []
    for v in range(n):
        nodes.append(node("n%d" % v, rng.randint(1, 1000), mixed_size(rng),
                          sorted(u for u, w in edges if w == v)))
    return {"nodes": nodes, "pinned_bytes": 0}


def small(n, seed):
    rng = random.Random("small %d %d" % (n, seed))
    nodes = []
    wide = rng.randint(1, 4)
    for v in range(n):
        inputs = sorted(set(rng.randrange(max(0, v - 6), v) for _ in range(rng.randint(0, wide)))
                        if v else [])
        if v > 3 and rng.random() < 0.2:
            inputs = sorted(set(inputs + [rng.randrange(v)]))
        nodes.append(node("n%d" % v, rng.randint(0, 20), rng.randint(0, 20), inputs,
                          rng.choice((0, 0, 0, rng.randint(1, 8))), rng.random() < 0.93,
                          rng.random() < 0.1))
    return {"nodes": nodes, "pinned_bytes": rng.choice((0, 0, 7, 100))}


NETS = {"vgg16": (lambda b: vgg((2, 2, 3, 3, 3), b), 256),
        "vgg19": (lambda b: vgg((2, 2, 4, 4, 4), b), 256), "unet": (unet, 32),
        "fcn8": (fcn8, 32), "segnet": (segnet, 32), "mobilenet": (mobilenet, 512),
        "resnet50": (resnet50, 256)}


def main(args):
    if not args:
        sys.exit(__doc__)
    name, rest = args[0], [int(a) for a in args[1:]]
    if name in NETS:
        make, batch = NETS[name]
        p = make(rest[0] if rest else batch)
    elif name in LAYERED:
        p = layered(name, rest[0] if rest else 1)
    elif name in SKIPPING:
        p = skipping(name, rest[0] if rest else 1)
    elif name == "gpt" and len(rest) == 1:
        p = gpt(rest[0])
    elif name == "random" and len(rest) == 2:
        p = small(*rest)
    else:
        sys.exit(__doc__)
    json.dump(p, sys.stdout)
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
