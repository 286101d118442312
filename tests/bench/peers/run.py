"""One peer on one model in one process; prints one JSON line.

    python run.py gpt-tiny --peer torch-eager|torch-compile|jax --threads 1
"""
import argparse
import json
import os
import time

import harness


def arguments():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("model")
    a.add_argument("--peer", choices=["torch-eager", "torch-compile", "jax"], required=True)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--seconds", type=float, default=3.0)
    a.add_argument("--steps", type=int, help="exactly as many timed steps")
    a.add_argument("--budget", type=float, help="torch: activation_memory_budget of torch.compile")
    a.add_argument("--channels-last", action="store_true", help="torch: pictures as NHWC")
    a.add_argument("--flush", action="store_true",
                   help="torch: denormals are zeros (set_flush_denormal), as JAX always has them")
    a.add_argument("--flops", action="store_true", help="torch: count, don't time")
    a.add_argument("--tensors", action="store_true", help="torch: peak of the tensors of a step")
    a.add_argument("--first", action="store_true", help="stop after the first step")
    a.add_argument("--export", help="write the first weights and the batch to this folder, and stop")
    return a.parse_args()


def export(model, values, batch, folder):
    """weights.safetensors and NAME.npy, as `gradc run` takes them."""
    import sys

    import numpy as np
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../jax"))
    import safetensors
    arrays = dict(zip(model.inputs, batch))
    if model.cotangent:
        arrays.update(values)
    else:
        safetensors.write(os.path.join(folder, "weights.safetensors"), values)
    for name, value in arrays.items():
        value = value.astype(np.int32) if value.dtype == np.int64 else value
        np.save(os.path.join(folder, name + ".npy"), value)


def main():
    args = arguments()
    began = time.perf_counter()
    harness.pin(args.threads)
    import numpy as np
    import models
    model = models.MODELS[args.model]()
    values, batch = model.values(), model.batch(np.random.default_rng(2))
    if args.export:
        return export(model, values, batch, args.export)
    row = dict(model=args.model, peer=args.peer, threads=args.threads, numpy=np.__version__)
    if not (args.first or args.flops):
        row["gemm_gflops_before"] = harness.yardstick()
    begin = time.perf_counter()
    if args.peer == "jax":
        import jax_side as side
    else:
        import torch_side as side
    row.update(version=side.VERSION, import_s=round(time.perf_counter() - begin, 3),
               rss_base_mb=round(harness.resident_mb(), 1))
    if args.peer == "jax":
        step = side.prepare(model, values, batch, row)
    else:
        if args.flush and not side.torch.set_flush_denormal(True):
            raise SystemExit("PyTorch cannot flush denormals on this processor")
        step = side.prepare(model, values, batch, args.threads, args.peer, args.budget,
                            args.channels_last)
    if args.flops:
        row["gflop"] = side.flops(step) / 1e9
        return print(json.dumps(row))
    begin = time.perf_counter()
    row["loss_first"] = float(step())
    row["first_step_s"] = round(time.perf_counter() - begin, 3)
    row["start_to_first_step_s"] = round(time.perf_counter() - began, 3)
    if not args.first:
        row["loss_second"] = float(step())
        row.update(harness.measure(step, args.seconds, args.steps or models.FEW_STEPS.get(args.model)))
        if args.tensors and args.peer != "jax":
            row["tensor_peak_mb"] = round(side.tensor_peak(step) / 2 ** 20, 2)
        row["gemm_gflops_after"] = harness.yardstick()
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
