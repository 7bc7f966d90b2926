# SPDX-License-Identifier: BSD-3-Clause
"""The libraries that scripts/vector_agreement runs. Each has `answer(document, dtype, vector)`, which returns what the library
computes of x, as hexadecimal: {"codes": .., "scale scale": .., "y": ..} or fewer parts. Nothing of qcts computes here."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import numpy as np

GPU = "its quantizers are MSLK's, whose package needs a GPU"
NOT_MEASURED = [
    {"library": library, "schemes": schemes, "why": why}
    for library, schemes, why in (
        ("torchao", "int4_plain*", GPU + "; fbgemm-gpu-genai has the same functions"),
        ("torchao", "int4_e4m3*", GPU),
        ("ml_dtypes", "int4*", "its cast to int4 truncates, and it has no quantizer"),
        ("onnxruntime", "mxfp4*,mxfp6*,nvfp4*", "its CPU provider has no QuantizeLinear of 4 or 6-bit floats"),
        ("onnxruntime", "int4_tinygemm*,int4_plain_g*,int4_e4m3*", "no floating zero points and no float8 scales"),
        ("microxcaling", "mx*_ceil,mx*_even,mx*_rceil", "it finds its exponents only by floor"),
        ("microxcaling", "nvfp4*,int4*", "it has no such format"),
    )
]
ELEMENTS = {
    "mxfp8_e4m3": "float8_e4m3fn",
    "mxfp8_e5m2": "float8_e5m2",
    "mxfp6_e2m3": "float6_e2m3fn",
    "mxfp6_e3m2": "float6_e3m2fn",
    "mxfp4": "float4_e2m1fn",
}


def mx_parts(scheme):
    element, _, mode = scheme.rpartition("_")
    return element, mode


def is_nan(dtype, codes):
    """Which elements are NaN, by their bits."""
    if dtype == "float8_e4m3fn":
        return codes & 0x7F == 0x7F
    if dtype == "float8_e8m0fnu":
        return codes == 0xFF
    exponent = {"float8_e5m2": 0x7C, "bfloat16": 0x7F80, "float16": 0x7C00, "float32": 0x7F800000}.get(dtype)
    if exponent is None:
        return np.zeros(codes.shape, bool)
    sign = 1 << (8 * codes.dtype.itemsize - 1)
    return codes & np.array(sign - 1, codes.dtype) > exponent


def bits(dtype, text):
    width = {"bfloat16": 2, "float16": 2, "float32": 4}.get(dtype, 1)
    return np.frombuffer(bytes.fromhex(text), f"<u{width}")


def same(document, dtype, part, want, got):
    """Compares bits, but any NaN equals any other."""
    if len(want) != len(got):
        return False
    of = dtype if part == "y" else document["codes"]["dtype"]
    of = next((plane["dtype"] for plane in document["scales"] if part == "scale " + plane["name"]), of)
    a, b = bits(of, want), bits(of, got)
    return bool(np.all((a == b) | (is_nan(of, a) & is_nan(of, b))))


def floats(dtype, text):
    """The values of x as float32, without any library."""
    raw = bits(dtype, text)
    if dtype == "bfloat16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.view({"float16": np.float16, "float32": np.float32}[dtype]).astype(np.float32)


def hexed(array):
    return np.ascontiguousarray(array).tobytes().hex()


def rounded(dtype, y):
    """float32 to the type of the vector, to nearest even."""
    if dtype == "float32":
        return hexed(y.astype(np.float32))
    if dtype == "float16":
        return hexed(y.astype(np.float16))
    raw = np.ascontiguousarray(y, np.float32).view(np.uint32).astype(np.uint64)
    cut = ((raw + 0x7FFF + (raw >> 16 & 1)) >> 16).astype(np.uint16)
    return hexed(np.where(np.isnan(y.reshape(cut.shape)), np.uint16(0x7FC0), cut))


def powers(text):
    """e8m0 scales as float32."""
    codes = np.frombuffer(bytes.fromhex(text), np.uint8).astype(np.int32)
    return np.where(codes == 255, np.float32("nan"), np.ldexp(np.float32(1), codes - 127)).astype(np.float32)


def packed(codes):
    """Two codes a byte, the first in the low half."""
    codes = codes.reshape(-1)
    return hexed((codes[0::2] | codes[1::2] << 4).astype(np.uint8))


class Torchao:
    name, commit = "torchao", ""
    compared = "codes and scales by its quantizers of the scheme; y by its dequantization, except for int4"

    def __init__(self):
        import torch
        from torchao.prototype.mx_formats import mx_tensor, nvfp4_tensor
        from torchao.prototype.mx_formats.config import ScaleCalculationMode
        from torchao.quantization import quant_primitives

        self.torch, self.mx, self.nvfp4, self.modes, self.affine = torch, mx_tensor, nvfp4_tensor, ScaleCalculationMode, quant_primitives
        self.version = f"{importlib.metadata.version('torchao')} with torch {torch.__version__.split('+')[0]}"
        torch.set_num_threads(1)

    def takes(self, scheme, dtype):
        return scheme.startswith(("mx", "nvfp4", "int4_tinygemm", "int4_int32"))

    def tensor(self, dtype, vector):
        raw = self.torch.frombuffer(bytearray.fromhex(vector["x"]), dtype=getattr(self.torch, dtype))
        return raw.reshape(vector["n"], vector["k"])

    def hexed(self, tensor):
        return hexed(tensor.reshape(-1).contiguous().view(self.torch.uint8).numpy())

    def answer(self, document, dtype, vector):
        x, scheme = self.tensor(dtype, vector), document["scheme"]
        if scheme.startswith("mx"):
            return self.mx_answer(scheme, x)
        if scheme.startswith("nvfp4"):
            return self.nvfp4_answer(scheme, x)
        return self.int4_answer(scheme, document["group_elems"], x)

    def mx_answer(self, scheme, x):
        element, mode = mx_parts(scheme)
        types = {"mxfp8_e4m3": self.torch.float8_e4m3fn, "mxfp8_e5m2": self.torch.float8_e5m2, "mxfp6_e2m3": "fp6_e2m3"}
        types |= {"mxfp6_e3m2": "fp6_e3m2", "mxfp4": self.torch.float4_e2m1fn_x2}
        made = self.mx.MXTensor.to_mx(x, types[element], 32, self.modes(mode))
        return {"codes": self.hexed(made.qdata), "scale scale": self.hexed(made.scale), "y": self.hexed(made.dequantize(x.dtype))}

    def nvfp4_answer(self, scheme, x):
        two = scheme == "nvfp4_two_level"
        whole = self.nvfp4.per_tensor_amax_to_scale(self.torch.max(self.torch.abs(x))) if two else None
        made = self.nvfp4.NVFP4Tensor.to_nvfp4(x, per_tensor_scale=whole)
        got = {"codes": self.hexed(made.qdata), "scale scale": self.hexed(made.scale), "y": self.hexed(made.dequantize(x.dtype))}
        return got | ({"scale per_tensor_scale": self.hexed(whole.reshape(1))} if two else {})

    def int4_answer(self, scheme, group, x):
        torch, affine = self.torch, self.affine
        options = ([1, group], torch.int32, 0, 15)
        if scheme.startswith("int4_int32"):
            scale, zero = affine.choose_qparams_affine(x, affine.MappingType.ASYMMETRIC, *options, 1e-6, None, torch.int32)
            codes = affine.quantize_affine(x, [1, group], scale, zero, torch.int32, 0, 15).numpy()
            zeros = zero.to(torch.int8)
            return {"codes": packed(codes), "scale scale": self.hexed(scale.t()), "scale zero_point": self.hexed(zeros.t())}
        scale, zero = affine._choose_qparams_affine_tinygemm(x, affine.MappingType.ASYMMETRIC, *options, 1e-6, None, x.dtype)
        codes = affine._quantize_affine_tinygemm(x, [1, group], scale, zero, torch.int32, 0, 15).numpy()
        pairs = torch.stack([scale.reshape(x.shape[0], -1), zero.reshape(x.shape[0], -1)], -1).transpose(0, 1)
        return {"codes": packed(codes.reshape(-1, 2)[:, ::-1]), "scale scale_and_zero": self.hexed(pairs)}


class Fbgemm:
    name, commit = "fbgemm-gpu-genai", ""
    compared = "codes, scales and zero points by int4_row_quantize_zp or int4_row_quantize, then cast to the type of x"

    def __init__(self):
        import torch

        sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fixtures/make/shared"))
        from fbgemm import fbgemm_quantize  # its functions are Python, but its package wants a GPU

        self.torch, self.module, self.version = torch, fbgemm_quantize(), importlib.metadata.version("fbgemm-gpu-genai")

    def takes(self, scheme, dtype):
        return scheme.startswith("int4_plain")

    def answer(self, document, dtype, vector):
        x = self.torch.frombuffer(bytearray.fromhex(vector["x"]), dtype=getattr(self.torch, dtype)).reshape(vector["n"], vector["k"])
        if document["scheme"].startswith("int4_plain_sym"):
            codes, scale = self.module.int4_row_quantize(x, document["group_elems"])
            zero = self.torch.zeros_like(scale)
        else:
            codes, scale, zero = self.module.int4_row_quantize_zp(x, document["group_elems"])
        planes = {"scale scale": scale, "scale zero_point": zero}
        planes = {name: hexed(plane.to(x.dtype).reshape(-1).contiguous().view(self.torch.uint8).numpy()) for name, plane in planes.items()}
        return {"codes": packed(codes.numpy().astype(np.uint8) & 15)} | planes


class MlDtypes:
    name, commit = "ml_dtypes", ""
    compared = "codes by its cast of x / scale with the vector's scales in float32; y by its decoding of these codes, times the scale"

    def __init__(self):
        import ml_dtypes

        self.types, self.version = ml_dtypes, importlib.metadata.version("ml_dtypes")

    def takes(self, scheme, dtype):
        return scheme.startswith(("mx", "nvfp4"))

    def scales(self, document, vector):
        own = self.types.float8_e8m0fnu if document["scheme"].startswith("mx") else self.types.float8_e4m3fn
        scale = np.frombuffer(bytes.fromhex(vector["scales"]["scale"]), own).astype(np.float32)
        if "per_tensor_scale" in vector["scales"]:
            scale = scale * np.frombuffer(bytes.fromhex(vector["scales"]["per_tensor_scale"]), np.float32)
        return scale[:, None]

    def answer(self, document, dtype, vector):
        scheme, scale = document["scheme"], self.scales(document, vector)
        element = getattr(self.types, ELEMENTS.get(mx_parts(scheme)[0], "float4_e2m1fn"))
        x = floats(dtype, vector["x"]).reshape(len(scale), -1)
        codes = (x / scale).astype(element)
        y = codes.astype(np.float32) * scale
        raw = codes.view(np.uint8)
        return {"codes": packed(raw) if document["codes"]["bits"] == 4 else hexed(raw), "y": rounded(dtype, y)}


class Onnxruntime:
    name, commit = "onnxruntime", ""
    compared = "y by QuantizeLinear and DequantizeLinear of its CPU provider, with the vector's scales and zero points in float32"

    def __init__(self):
        import onnx
        import onnxruntime

        self.onnx, self.runtime, self.version = onnx, onnxruntime, onnxruntime.__version__

    def takes(self, scheme, dtype):
        return scheme.startswith(("mxfp8", "int4_plain_sym", "int4_int32"))

    def answer(self, document, dtype, vector):
        scheme, kinds = document["scheme"], self.onnx.TensorProto
        known = {"mxfp8_e4m3": kinds.FLOAT8E4M3FN, "mxfp8_e5m2": kinds.FLOAT8E5M2, "int4_int32": kinds.UINT4}
        kind = known.get(mx_parts(scheme)[0], kinds.INT4)
        scale = powers(vector["scales"]["scale"]) if scheme.startswith("mx") else floats(dtype, vector["scales"]["scale"])
        zeros = np.zeros(len(scale), np.int64)
        if kind == kinds.UINT4:
            zeros = np.frombuffer(bytes.fromhex(vector["scales"]["zero_point"]), np.int8).astype(np.int64)
        x = floats(dtype, vector["x"]).reshape(len(scale), -1)
        return {"y": rounded(dtype, self.session(kind, x.shape, zeros).run(None, {"x": x, "s": scale})[0])}

    def session(self, kind, shape, zeros):
        make = self.onnx.helper
        value = lambda name, size: make.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, size)  # noqa: E731
        ops = (("QuantizeLinear", "x", "q"), ("DequantizeLinear", "q", "y"))
        nodes = [make.make_node(op, [first, "s", "z"], [last], axis=0) for op, first, last in ops]
        zero = make.make_tensor("z", kind, [shape[0]], zeros)
        graph = make.make_graph(nodes, "both", [value("x", shape), value("s", [shape[0]])], [value("y", shape)], [zero])
        model = make.make_model(graph, opset_imports=[make.make_opsetid("", 21)], ir_version=10)
        return self.runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


class Microxcaling:
    def __init__(self, folder, rounding):
        sys.path.insert(0, folder)
        import torch
        from mx.mx_ops import quantize_mx_op
        from mx.specs import MxSpecs

        self.torch, self.quantize, self.rounding = torch, quantize_mx_op, rounding
        self.specs = MxSpecs({"scale_bits": 8, "block_size": 32, "shared_exp_method": "max", "custom_cuda": False})
        self.name = "microxcaling" if rounding == "nearest" else "microxcaling round=" + rounding
        git = ["git", "-C", folder, "log", "-1", "--format=%H %cs"]
        self.commit, date = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split()
        self.version = "of " + date
        self.compared = f"y by quantize_mx_op on a CPU, round={rounding}" + (", its default" if rounding == "nearest" else "")

    def takes(self, scheme, dtype):
        return scheme.startswith("mx") and scheme.endswith("_floor")

    def answer(self, document, dtype, vector):
        torch, element = self.torch, mx_parts(document["scheme"])[0]
        name = "fp4_e2m1" if element == "mxfp4" else element.removeprefix("mx")
        x = torch.frombuffer(bytearray.fromhex(vector["x"]), dtype=getattr(torch, dtype)).reshape(vector["n"], vector["k"])
        y = self.quantize(x, self.specs, name, axes=[-1], round=self.rounding)
        return {"y": hexed(y.to(x.dtype).contiguous().view(torch.uint8).numpy())}


def found(microxcaling):
    """Returns the libraries that are here, and {name: why} of those that are not."""
    makers = {"torchao": Torchao, "fbgemm-gpu-genai": Fbgemm, "ml_dtypes": MlDtypes, "onnxruntime": Onnxruntime}
    if microxcaling:
        makers |= {f"microxcaling {how}": lambda how=how: Microxcaling(microxcaling, how) for how in ("nearest", "even")}
    here, absent = [], {} if microxcaling else {"microxcaling": "no --microxcaling DIR"}
    for name, make in makers.items():
        try:
            here.append(make())
        except ImportError as error:
            absent[name] = str(error)
    return here, absent
