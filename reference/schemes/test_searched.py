# SPDX-License-Identifier: BSD-3-Clause
"""Encodings that search: qcts offers none but NF4's, whose one free number is a mean. Their goldens are decoded bit for bit by the
cases; here what was stored is judged by what its search minimizes, on the weights that it was given and through qcts's decoding.
A wrong decoding of scales, groups, zero points or act_pre_scale would lose what the search won over the closed form.

Objectives, torchao 0.18.0, and what none may be worse than (but for SLACK: 1 %, where a search rounds its result to the dtype
afterwards or compares in float16 or bfloat16):
  HQQ, asymmetric  sum |w - w'|^0.7; the range of each    quantization/quant_primitives.py, _choose_qparams_and_quantize_affine_hqq,
                   group with its zero point rounded,     optimize_weights_proximal_legacy
                   from which it starts
  HQQ, scale only  sum (w - w')^2; scales of the largest  quantization/quant_primitives.py,
                   magnitude, from which it starts        _choose_qparams_and_quantize_scale_only_hqq
  AWQ              sum (x W^T - (x / s) W'^T)^2 on the    prototype/awq/core.py, AWQObserver.calculate_qparams
                   calibration batches; s = 1, which it
                   tries first
  codebook         sum (w / s - w' / s)^2; the farthest   prototype/quantization/codebook/codebook_ops.py,
                   points, from which k-means starts      choose_qparams_codebook, fit_kmeans
  NF4              sum (w - w')^2; the library's own,     quantization/quantize_/workflows/nf4/nf4_tensor.py,
                   plus one part in a thousand            double_quantize_scalers
GPTQ has no golden: "GPTQ only supports CUDA currently".
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchao", minversion="0.18.0", reason="needs torchao 0.18.0, see fixtures/make/requirements.txt")
safetensors_torch = pytest.importorskip("safetensors.torch")

ROOT = Path(__file__).resolve().parents[2]
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
FIXTURES = ROOT / "fixtures"
sys.path.insert(0, str(FIXTURES / "make/shared"))
import weights  # noqa: E402
from golden_writer import DTYPES, dtype_name  # noqa: E402
from models import calibration_batches  # noqa: E402
from torchao.prototype.quantization.int4 import Int4OpaqueTensor  # noqa: E402, F401 (torch.load asks for it)

GOLDENS = {entry["id"]: entry for entry in json.loads((FIXTURES / "manifest.json").read_text())["goldens"]}
SLACK = 1.01
NAME = "0.weight"


def run(*words):
    done = subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def decoded(path, folder, layout=""):
    hint = ["--cpu-pack", layout.removeprefix("cpu_")] if layout.startswith("cpu_") else []
    run("dequantize", path, folder / "dense.safetensors", *hint)
    return safetensors_torch.load_file(folder / "dense.safetensors")[NAME]


def stored(id, folder):
    """Returns the weight that a golden's search was given, and the one that its file means."""
    entry = GOLDENS[id]
    tensor = next(t for t in entry["tensors"] if t["name"] == NAME)
    got = decoded(FIXTURES / entry["file"], folder, tensor["layout"])
    return weights.random_rows(entry["seed"], 0, tuple(got.shape), got.dtype), got


def closed_form(scheme, layout, weight, folder):
    torch.save({NAME: weight}, folder / "in.pt")
    words = ["--layout", layout] if layout.startswith("cpu_") else []
    run("quantize", "--strict", "--scheme", scheme, *words, folder / "in.pt", folder / "out.pt")
    got = decoded(folder / "out.pt", folder, layout)
    assert not torch.equal(got, weight)
    return got


def error(want, got, power=2.0):
    return float((want.double() - got.double()).abs().pow(power).sum())


def too_large(got):
    """Returns the same codes with scales a quarter too large."""
    return got.double() * 1.25


def scheme_and_layout(id):
    tensor = GOLDENS[id]["tensors"][0]
    return tensor["scheme"], tensor["layout"]


HQQ = [id for id in GOLDENS if "/int4_tinygemm" in id and "hqq_" in id]
HQQ_SCALE_ONLY = [id for id in GOLDENS if "/intx_" in id and "/hqq_" in id]
AWQ = [id for id in GOLDENS if "/awq_" in id]
CODEBOOKS = [id for id in GOLDENS if "/codebook/" in id]
NF4 = [id for id in GOLDENS if "/nf4_b64_s256/" in id and "traps" not in id]


def test_there_are_goldens_of_each():
    assert [len(ids) for ids in (HQQ, HQQ_SCALE_ONLY, AWQ, CODEBOOKS, NF4)] == [5, 3, 9, 3, 4]


@pytest.mark.parametrize("id", HQQ)
def test_hqq(id, tmp_path):
    weight, got = stored(id, tmp_path)
    groups = weight.double().reshape(-1, GOLDENS[id]["config"]["group_size"])
    least, most = groups.amin(1, keepdim=True), groups.amax(1, keepdim=True)
    inverse = 15 / (most - least)
    zero = (-least * inverse).round()
    start = error(groups, ((groups * inverse + zero).round().clamp(0, 15) - zero) / inverse, 0.7)
    assert error(weight, got, 0.7) <= start < error(weight, too_large(got), 0.7)
    # The closed form, whose zero point is not rounded: by what the search stops at, and by the norm but for 2 %.
    plain = closed_form(*scheme_and_layout(id), weight, tmp_path)
    assert error(weight, got, 1) <= error(weight, plain, 1)
    assert error(weight, got, 0.7) <= 1.02 * error(weight, plain, 0.7)


@pytest.mark.parametrize("id", HQQ_SCALE_ONLY)
def test_hqq_of_scales(id, tmp_path):
    weight, got = stored(id, tmp_path)
    _, bits, group, _ = GOLDENS[id]["tensors"][0]["scheme"].split("_")
    most = 2 ** (int(bits[1:]) - 1)
    groups = weight.double().reshape(weight.shape[0], -1, weight.shape[1] if group == "axis" else int(group[1:]))
    scale = groups.abs().amax(-1, keepdim=True) / most
    start = (groups / scale).round().clamp(-most, most - 1) * scale
    bound = SLACK * error(groups, start)
    assert error(weight, got) <= bound < error(weight, too_large(got))


@pytest.mark.parametrize("id", AWQ)
def test_awq(id, tmp_path):
    weight, got = stored(id, tmp_path)
    pre_scale = torch.load(FIXTURES / GOLDENS[id]["file"], weights_only=True)[NAME].act_pre_scale.double()
    dtype = next(word for word, dtype in DTYPES.items() if dtype == weight.dtype)
    x = torch.cat(list(calibration_batches(GOLDENS[id]["seed"], weight.shape[1], dtype))).double()
    plain = closed_form(*scheme_and_layout(id), weight, tmp_path)
    want = x @ weight.double().T
    bound = SLACK * error(want, x @ plain.double().T)
    assert error(want, (x * pre_scale) @ got.double().T) <= bound
    assert error(want, x @ got.double().T) > bound  # act_pre_scale forgotten


def blocks_of(values, block):
    rows, columns = block
    grid = values.reshape(values.shape[0] // rows, rows, values.shape[1] // columns, columns)
    return grid.permute(0, 2, 1, 3).reshape(-1, rows * columns)


def farthest_points(points, count):
    """Returns points, each the farthest from those before it."""
    chosen = points[:1]
    while len(chosen) < count:
        chosen = torch.cat([chosen, points[torch.cdist(points, chosen).amin(1).argmax()][None]])
    return chosen


@pytest.mark.parametrize("id", CODEBOOKS)
def test_codebook(id, tmp_path):
    weight, got = stored(id, tmp_path)
    config = GOLDENS[id]["config"]
    block, entries = config["block_size"], 2 ** int(config["dtype"].removeprefix("torch.uint"))
    groups = weight.reshape(weight.shape[0], -1, config["scale_block_size"])
    scale = groups.amax(-1, keepdim=True) if block == [1, 1] else torch.linalg.vector_norm(groups, dim=-1, keepdim=True)
    scale = scale.double().expand(groups.shape).reshape(weight.shape)
    points = blocks_of(weight.double() / scale, block)
    start = torch.cdist(points, farthest_points(points, entries)).amin(1).pow(2).sum()
    rounding = (2 * torch.finfo(got.dtype).eps) ** 2 * error(points, 0 * points)  # 256 entries may be all that there are
    assert error(points, blocks_of(got.double() / scale, block)) <= SLACK * float(start) + rounding


@pytest.mark.parametrize("id", NF4)
def test_nf4(id, tmp_path):
    """qcts's result is at most one part in a thousand worse than the library's."""
    weight, theirs = stored(id, tmp_path)
    ours = closed_form("nf4_b64_s256", "plain", weight, tmp_path)
    assert dtype_name(ours.dtype) == dtype_name(theirs.dtype)
    assert error(weight, ours) <= 1.001 * error(weight, theirs)
