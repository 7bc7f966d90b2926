# SPDX-License-Identifier: BSD-3-Clause
"""safetensors headers and TorchScript programs with a high reading cost, for test_bounds.py."""

import json
import struct
import sys
from pathlib import Path

MAKE = Path(__file__).resolve().parents[3] / "fixtures/make"
sys.path[:0] = [str(MAKE / "malformed"), str(MAKE / "shared")]
import malformed_torchscript as script  # noqa: E402
import zip_builder  # noqa: E402


def safetensors(header, path, data=b""):
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def described(metadata, entries, path):
    """Writes __metadata__ and entries, name -> (dtype, shape, bytes), with data of zeros."""
    header, at = {"__metadata__": metadata}, 0
    for name, (dtype, shape, size) in entries.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    safetensors(json.dumps(header, separators=(",", ":")).encode(), path, bytes(at))


def st_tensors(path, count=200_000):
    entries = ",".join(
        f'"layers.{i}.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{i + 1}]}}' for i in range(count)
    )
    safetensors(("{" + entries + "}").encode(), path, bytes(count))



def st_million_tensors(path):
    st_tensors(path, 1_000_000)


def st_dims(path):
    """Each dimension takes two bytes in the header, and eight in every shape and stride."""
    shape = "[" + ",".join("1" * 64) + "]"
    entries = ",".join(
        f'"{i}":{{"dtype":"U8","shape":{shape},"data_offsets":[{i},{i + 1}]}}' for i in range(50_000)
    )
    safetensors(("{" + entries + "}").encode(), path, bytes(50_000))


def st_long_names(path):
    entries = ",".join(
        f'"{i}{"x" * 15_000_000}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{i + 1}]}}' for i in range(4)
    )
    safetensors(("{" + entries + "}").encode(), path, bytes(4))


def st_long_metadata(path):
    entries = ",".join(f'"{i}":"{"x" * 15_000_000}"' for i in range(3))
    safetensors(('{"__metadata__":{' + entries + "}}").encode(), path)


def st_names(path):
    """torchao's list of tensors with a million names."""
    names = "[" + ",".join('\\"a\\"' for _ in range(1_000_000)) + "]"
    safetensors(('{"__metadata__":{"tensor_names":"' + names + '"}}').encode(), path)


def st_long_shape(path):
    safetensors(
        b'{"x":{"dtype":"U8","shape":[' + b"1," * 20_000_000 + b'1],"data_offsets":[0,1]}}', path, b"\0"
    )


def st_long_name(path):
    safetensors(
        b'{"' + b"x" * 60_000_000 + b'":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', path, b"\0"
    )


def st_deep(path):
    safetensors(b'{"x":' + b"[" * 40_000_000, path)


def st_blanks(path):
    safetensors(b"{" + b" " * 90_000_000 + b"}", path)


def st_metadata(path):
    entries = ",".join(f'"{i}":""' for i in range(300_000))
    safetensors(('{"__metadata__":{' + entries + "}}").encode(), path)


def int8_tensors(count, attributes=(), plain=0):
    """torchao's own dialect, with additional attributes and with entries that belong to no tensor."""
    metadata = {"tensor_names": json.dumps([f"m{i}.weight" for i in range(count)])}
    entries = {}
    data = {"block_size": [1, 1], "dtype": {"_type": "torch.dtype", "_data": "bfloat16"}, "act_quant_kwargs": None}
    described_as = {"_type": "Int8Tensor", "_data": data | dict(attributes), "_tensor_data_names": ["qdata", "scale"]}
    for i in range(count):
        metadata[f"m{i}.weight"] = json.dumps(described_as)
        entries[f"m{i}._weight_qdata"] = ("I8", [1, 1], 1)
        entries[f"m{i}._weight_scale"] = ("F32", [1, 1], 4)
    entries |= {f"left{i}": ("I8", [1], 1) for i in range(plain)}
    return metadata, entries


def st_int8(path):
    described(*int8_tensors(10_000), path)


def st_left_over(path):
    described(*int8_tensors(12_000, plain=12_000), path)


def st_attributes(path):
    described(*int8_tensors(12, {"x": [1] * 400_000}), path)


def st_attribute_keys(path):
    described(*int8_tensors(4, {str(i): 1 for i in range(200_000)}), path)


def st_2338(path, count=10_000, plain=10_000):
    names = [f"t{i}" for i in range(count)] + [f"p{i}" for i in range(plain)]
    metadata, entries = {"tensor_names": json.dumps(names)}, {}
    for i in range(count):
        metadata[f"t{i}:tensor_type"] = "LinearActivationQuantizedTensor"
        metadata[f"t{i}:input_quant_func"] = "torchao.dtypes.fbgemm_fp8_tensor.to_fbgemm_fp8"
        entries[f"t{i}:original_weight"] = ("F32", [1, 1], 4)
    entries |= {f"p{i}": ("F32", [1], 4) for i in range(plain)}
    described(metadata, entries, path)


def st_tinyq(path):
    entries = {}
    for i in range(12_000):
        entries |= {f"m{i}.int8_weights": ("I8", [1, 1], 1), f"m{i}.scales": ("F32", [1], 4)}
    described({"format": "pt"}, entries, path)


HOSTILE_SAFETENSORS = [
    st_tensors,
    st_million_tensors,
    st_dims,
    st_long_shape,
    st_long_name,
    st_long_names,
    st_long_metadata,
    st_names,
    st_deep,
    st_blanks,
    st_metadata,
    st_int8,
    st_left_over,
    st_attributes,
    st_attribute_keys,
    st_2338,
    st_tinyq,
]
ACCEPTED_SAFETENSORS = {st_tensors, st_long_metadata, st_int8, st_2338, st_tinyq}


def program(code, path):
    """A TorchScript archive with about 30 MB of code that compresses to a few MB."""
    path.write_bytes(zip_builder.build(script.program(text=code)))
    return 50  # minimum number of opcodes


def script_attributes(path):
    return program(script.code(script.FIELDS, "".join(f"  a{i} : int\n" for i in range(1_700_000))), path)


def script_classes(path):
    head = "(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
    classes = "".join(f"class C{i}{head}" for i in range(450_000))
    return program(script.code(script.FIELDS, script.METHOD + classes), path)


def script_parameters(path):
    names = "".join(f'"x{i}", ' for i in range(2_000_000))
    return program(f"class Net(Module):\n  __parameters__ = [{names}]\n  __buffers__ = []\n".encode(), path)


def script_blank(path):
    return program(script.code(script.FIELDS, script.METHOD + "\n" * 30_000_000), path)


HOSTILE_SCRIPTS = [script_attributes, script_classes, script_parameters, script_blank]
