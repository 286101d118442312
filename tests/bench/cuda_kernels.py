#!/usr/bin/env python3
"""Bytes, flops and expected times of GPT-2's kernels on a GPU that need not be here.

  python3 tests/bench/cuda_kernels.py [GRADC [GPU [--chunk 0 ...]]]

Runs `gradc show --kernels --target cuda` on examples/gpt2.model with a batch of 64, 1024 tokens and
bf16, and counts the passes over a tensor of B.T.C elements that a layer makes. What a layer's twelve
matrix products read and write at the least (48 passes) is not among them, nor is attention.
"""
import json
import subprocess
import sys

BATCH, TOKENS, WIDTH, LAYERS = 64, 1024, 768, 12
PASS = 2 * BATCH * TOKENS * WIDTH  # bytes
PRODUCTS = 3 * (4 + 2 + 5 + 5)  # qkv, proj, fc, c_proj: forward, gradients of data and of weights
HEADS_TIMES_LAYERS = 12 * LAYERS


def show(gradc, gpu, more):
    command = [gradc, "show", "examples/gpt2.model", "-D", f"batch={BATCH}", "-D", f"ctx={TOKENS}",
               "--precision", "bf16", "--kernels", "--target", "cuda", "--gpu", gpu, "--json", *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def bytes_of(kernel):
    return kernel["calls"] * (kernel["bytes_read"] + kernel["bytes_written"])


def line_of(kernel):
    return (kernel["line"] or ":0").rsplit(":", 1)[1]


def group_of(kernel):
    """Attention is what runs more often than layers have kernels, or on scores."""
    layer = line_of(kernel) == "15"
    scores = max(kernel["bytes_read"], kernel["bytes_written"]) > 12 * PASS
    if layer and (kernel["calls"] >= HEADS_TIMES_LAYERS or scores):
        return "attention"
    if layer:
        return "layers: products" if "contract" in kernel["kernel"] else "layers: the rest"
    return "logits and loss" if line_of(kernel) in ("17", "19") else "embedding, update, check"


def table(kernels):
    print(f"{'':26}{'calls':>9}{'GB':>10}{'TFLOP':>9}{'ms':>10}")
    groups = {}
    for kernel in kernels:
        groups.setdefault(group_of(kernel), []).append(kernel)
    for name, members in [*sorted(groups.items()), ("all", kernels)]:
        print(f"{name:26}{sum(k['calls'] for k in members):9}"
              f"{sum(map(bytes_of, members)) / 1e9:10.2f}"
              f"{sum(k['calls'] * k['flops'] for k in members) / 1e12:9.3f}"
              f"{sum(k['calls'] * k['ns'] for k in members) / 1e6:10.2f}")
    each = {name: sum(map(bytes_of, members)) / PASS / LAYERS for name, members in groups.items()}
    rest, more = each["layers: the rest"], each["layers: products"] - PRODUCTS
    print(f"\npasses a layer: {rest:.1f} in kernels of their own, {more:.1f} beside the {PRODUCTS} of "
          f"the products themselves: {rest + more:.1f}")


def rows(kernels):
    print(f"\n{'calls':>7}{'MB read':>11}{'written':>11}{'GFLOP':>10}{'us':>10}  limit  {'blocks':>7} "
          f"regs shared spill  kernel, line")
    for k in kernels:
        print(f"{k['calls']:7}{k['bytes_read'] / 1e6:11.3f}{k['bytes_written'] / 1e6:11.3f}"
              f"{k['flops'] / 1e9:10.4f}{k['ns'] / 1e3:10.1f}  {k['limit']:6} {k['blocks']:7} "
              f"{k['registers'] or '-':>4} {k['shared_bytes'] if k['registers'] else '-':>6} "
              f"{k['local_accesses'] if k['registers'] else '-':>5}  {k['kernel']}, {line_of(k)}")


def main():
    gradc, gpu = (sys.argv[1:3] + ["build/gradc", "h200"][len(sys.argv[1:3]):])
    told = show(gradc, gpu, sys.argv[3:])
    print(f"gpt2.model, batch={BATCH} ctx={TOKENS}, bf16, entry {told['entry']}, on paper for {gpu}\n")
    table(told["kernels"])
    rows(told["kernels"])


if __name__ == "__main__":
    main()
