"""safetensors files in numpy: an 8-byte little-endian size, a JSON header, the data."""
import json
import struct

import numpy as np

DTYPES = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I32": np.int32,
          "I64": np.int64, "U8": np.uint8, "BOOL": np.bool_}


def read(path):
    """A dict of arrays by name; bf16 becomes float32."""
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        data = f.read()
    header.pop("__metadata__", None)
    out = {}
    for name, row in header.items():
        begin, end = row["data_offsets"]
        if row["dtype"] == "BF16":
            wide = np.frombuffer(data[begin:end], np.uint16).astype(np.uint32) << 16
            array = wide.view(np.float32)
        else:
            array = np.frombuffer(data[begin:end], DTYPES[row["dtype"]])
        out[name] = array.reshape(row["shape"]).copy()
    return out


def write(path, tensors):
    names = {np.dtype(t): n for n, t in DTYPES.items()}
    header, at = {}, 0
    for name, value in tensors.items():
        header[name] = dict(dtype=names[value.dtype], shape=list(value.shape),
                            data_offsets=[at, at + value.nbytes])
        at += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            f.write(np.ascontiguousarray(value).tobytes())
