"""An emitted object, loaded into Python by its table `NAME_model` (runtime/abi.h)."""
import ctypes
import os
import subprocess
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, \
    c_uint64, c_void_p

import numpy as np

DTYPES = [np.float32, np.float64, np.float16, np.uint16, np.int32, np.int64, np.uint8, np.bool_]
PARAM, GRADIENT, OPTIMIZER, STATE, SCALAR, INPUT, OUTPUT, METRIC, LOSS = range(9)


class Tensor(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_int32), ("role", c_int32), ("rank", c_int32),
                ("reserved", c_int32), ("shape", c_int64 * 8), ("elems", c_int64), ("bytes", c_int64),
                ("offset", c_int64), ("of", c_int64), ("lo", c_int64), ("hi", c_int64)]

    def zeros(self):
        return np.zeros(tuple(self.shape[:self.rank]), DTYPES[self.dtype])


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("abi", c_uint32), ("threads", c_int32), ("seed", c_uint64),
                ("parallel_for", c_void_p), ("context", c_void_p), ("offload", c_void_p),
                ("cuda", c_void_p)]


ENTRY = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)


class Table(ctypes.Structure):
    _fields_ = [("abi", c_uint32), ("struct_size", c_uint32), ("name", c_char_p),
                ("version", c_char_p), ("hash", c_char_p), ("target", c_char_p),
                ("arena_bytes", c_int64), ("arena_align", c_int64), ("batch_rows", c_int64),
                ("accumulate", c_int64), ("threads_max", c_int32), ("n_tensors", c_int32),
                ("n_inputs", c_int32), ("n_outputs", c_int32), ("tensors", POINTER(Tensor)),
                ("inputs", POINTER(Tensor)), ("outputs", POINTER(Tensor)),
                ("init", CFUNCTYPE(c_int, c_void_p, c_size_t, POINTER(Options), POINTER(c_void_p))),
                ("step", ENTRY), ("grad", ENTRY), ("eval", ENTRY),
                ("read", CFUNCTYPE(c_int, c_void_p, c_int32, c_void_p, c_size_t)),
                ("write", CFUNCTYPE(c_int, c_void_p, c_int32, c_void_p, c_size_t)),
                ("error", CFUNCTYPE(c_char_p, c_void_p)), ("offload_bytes", c_int64),
                ("offload_out", c_int64 * 2), ("offload_in", c_int64 * 2), ("device_bytes", c_int64),
                ("wait", CFUNCTYPE(c_int, c_void_p, c_void_p)), ("close", CFUNCTYPE(c_int, c_void_p))]


class Native:
    """One handle of a model. `step`, `grad` and `eval` take {input: array}."""

    def __init__(self, gradc, source, options, folder, seed=1):
        object_file, library = os.path.join(folder, "m.o"), os.path.join(folder, "m.so")
        subprocess.run([gradc, "build", "-q", source, *options, "-o", object_file], check=True)
        subprocess.run(["cc", "-shared", object_file, "-o", library], check=True)
        with open(os.path.join(folder, "m.h")) as f:
            text = f.read()
        words = text.split("extern const gradc_model ")[1:]
        self.library = ctypes.CDLL(library)
        self.table = Table.in_dll(self.library, words[0].split(";")[0].strip())
        t = self.table
        if t.struct_size != ctypes.sizeof(Table):
            raise RuntimeError(f"gradc_model has {t.struct_size} bytes, {ctypes.sizeof(Table)} here")
        self.memory = np.zeros(t.arena_bytes + t.arena_align, np.uint8)
        begin = -self.memory.ctypes.data % t.arena_align + self.memory.ctypes.data
        self.handle = c_void_p()
        o = Options(ctypes.sizeof(Options), t.abi, 1, seed, None, None, None)
        self.check(t.init(begin, t.arena_bytes, byref(o), byref(self.handle)), "init")
        # a gradient has the name of its parameter
        self.tensors = {t.tensors[i].name.decode(): i for i in range(t.n_tensors)
                        if t.tensors[i].role != GRADIENT}

    def check(self, status, what):
        if status:
            words = self.table.error(self.handle) if self.handle else b""
            raise RuntimeError(f"{what}: status {status}: {(words or b'').decode()}")

    def read(self, name):
        i = self.tensors[name]
        out = self.table.tensors[i].zeros()
        self.check(self.table.read(self.handle, i, out.ctypes.data, out.nbytes), f"read {name}")
        return out

    def write(self, name, value):
        i = self.tensors[name]
        value = np.ascontiguousarray(value, DTYPES[self.table.tensors[i].dtype])
        self.check(self.table.write(self.handle, i, value.ctypes.data, value.nbytes), f"write {name}")

    def call(self, entry, batch):
        """Outputs, metrics and loss by name."""
        t = self.table
        arrays = [np.ascontiguousarray(batch[t.inputs[i].name.decode()], DTYPES[t.inputs[i].dtype])
                  for i in range(t.n_inputs)]
        out = {t.outputs[i].name.decode(): t.outputs[i].zeros() for i in range(t.n_outputs)}
        inputs = (c_int64 * (1 + len(arrays)))(0, *(a.ctypes.data for a in arrays))
        outputs = (c_int64 * (1 + len(out)))(0, *(a.ctypes.data for a in out.values()))
        self.check(getattr(t, entry)(self.handle, ctypes.addressof(inputs),
                                     ctypes.addressof(outputs)), entry)
        loss = next(t.outputs[i].name.decode() for i in range(t.n_outputs) if t.outputs[i].role == LOSS)
        return float(out[loss]), out
