# SPDX-License-Identifier: BSD-3-Clause
"""`qcts diff DENSE QUANTIZED --error` against numpy: SQNR, largest error, saturated codes and zero groups of each layer; `check
--original` shows the same in addition to its verdicts, and no error is a failure."""

import json

import numpy as np
import pytest
from dialect_files import read_safetensors, write_safetensors
from qcts_program import on_terminal, qcts

N, K = 8, 64


def weights():
    random = np.random.default_rng(3)
    w = random.standard_normal((N, K)).astype(np.float32)
    w[2] = 0  # every group is zero
    w[3, :32] = 0
    return w


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("error")
    layers = {"a.weight": weights(), "b.weight": weights() * 3 + 1}
    dense = write_safetensors(folder / "dense.safetensors", {n: ("F32", [N, K], w.tobytes()) for n, w in layers.items()})
    quantized = folder / "quantized.safetensors"
    qcts("quantize", "--scheme", "intx_b4_g32_sym", dense, quantized)
    back = folder / "back.safetensors"
    qcts("dequantize", quantized, back)
    return folder, dense, quantized, layers, {n: np.frombuffer(v[2], np.float32).reshape(N, K) for n, v in read_safetensors(back).items()}


def errors(*words, code=0):
    return json.loads(qcts("diff", *words, "--error", "--json", code=code).stdout)


def test_sqnr_and_the_largest_error_are_numpys(files):
    _, dense, quantized, layers, back = files
    document = errors(dense, quantized)
    assert document["qcts"] == "error" and document["not_compared"] == []
    signal = noise = 0
    for layer in document["layers"]:
        w, v = layers[layer["name"]].astype(np.float64), back[layer["name"]].astype(np.float64)
        assert layer["scheme"] == "intx_b4_g32_sym" and layer["shape"] == [N, K] and layer["elements"] == N * K
        assert layer["sqnr_db"] == pytest.approx(10 * np.log10((w**2).sum() / ((v - w) ** 2).sum()), rel=1e-12)
        assert layer["max_error"] == np.abs(v - w).max() == np.abs(v - w)[tuple(layer["max_error_at"])]
        signal, noise = signal + (w**2).sum(), noise + ((v - w) ** 2).sum()
    assert document["all"]["sqnr_db"] == pytest.approx(10 * np.log10(signal / noise), rel=1e-12)


def test_groups_that_came_out_zero_are_counted(files):
    _, dense, quantized, _, back = files
    for layer in errors(dense, quantized)["layers"]:
        groups = back[layer["name"]].reshape(N, K // 32, 32)
        assert layer["groups"] == 2 * N and layer["zero_groups"] == (groups == 0).all(-1).sum()
    first, second = errors(dense, quantized)["layers"]
    assert (first["zero_groups"], first["lost_groups"], second["zero_groups"]) == (3, 0, 0)


def test_codes_at_the_ends_and_clipped_weights(files, tmp_path):
    """Against an original whose weights are beyond the range, every code at an end is clipped."""
    _, dense, quantized, layers, back = files
    for layer in errors(dense, quantized)["layers"]:
        assert 2 * N - 3 <= layer["saturated_codes"] < layer["codes"] == N * K
        assert layer["clipped_weights"] <= 2 * N  # the largest weight of a group is half a step beyond, but for rounding
    far = {n: ("F32", [N, K], (v * np.float32(100)).tobytes()) for n, v in back.items()}
    beyond = errors(write_safetensors(tmp_path / "far.safetensors", far), quantized)["layers"]
    for before, layer in zip(errors(dense, quantized)["layers"], beyond, strict=True):
        assert layer["saturated_codes"] == layer["clipped_weights"] == before["saturated_codes"]


def test_a_group_lost_to_zero_is_told(files, tmp_path):
    _, _, quantized, layers, _ = files
    original = {n: ("F32", [N, K], np.where(w == 0, np.float32(1e-9), w).tobytes()) for n, w in layers.items()}
    first, _ = errors(write_safetensors(tmp_path / "o.safetensors", original), quantized)["layers"]
    assert first["zero_groups"] == first["lost_groups"] == 3
    assert "3, 3 lost" in qcts("diff", tmp_path / "o.safetensors", quantized, "--error").stdout


def test_exact_weights_have_no_ratio(files):
    folder, _, quantized, _, _ = files
    document = errors(folder / "back.safetensors", quantized)
    assert all(layer["sqnr_db"] is None and layer["max_error"] == 0 for layer in document["layers"])
    assert " exact " in qcts("diff", folder / "back.safetensors", quantized, "--error").stdout


def test_what_is_not_finite_counts_apart(files, tmp_path):
    _, _, quantized, layers, _ = files
    w = layers["a.weight"].copy()
    w[0, 0], w[1, 1] = np.nan, np.inf
    entries = {"a.weight": ("F32", [N, K], w.tobytes()), "b.weight": ("F32", [K, N], bytes(4 * N * K))}
    document = errors(write_safetensors(tmp_path / "o.safetensors", entries), quantized)
    (layer,) = document["layers"]
    assert layer["non_finite"] == 2 and layer["elements"] == N * K - 2 and np.isfinite(layer["sqnr_db"])
    assert document["not_compared"] == ["b.weight: the original has the shape [64,8], this [8,64]"]


def test_nothing_to_compare_proves_nothing(files, tmp_path):
    folder, dense, quantized, _, _ = files
    assert "no quantized weight" in qcts("diff", dense, dense, "--error", code=3).stderr
    other = write_safetensors(tmp_path / "o.safetensors", {"c.weight": ("F32", [1], bytes(4))})
    document = errors(other, quantized, code=3)
    assert document["layers"] == [] and len(document["not_compared"]) == 2


def test_what_either_side_lacks_is_named(files, tmp_path):
    """Float tensors too; a tensor that FILE lost fails `check --original`, and "all layers" are all."""
    _, dense, quantized, layers, _ = files
    assert "all layers" in qcts("diff", dense, quantized, "--error").stdout
    more = {n: ("F32", [N, K], w.tobytes()) for n, w in layers.items()} | {
        "c.weight": ("F32", [2], bytes(8)),
        "norm": ("F32", [1], bytes(4)),
    }
    original = write_safetensors(tmp_path / "more.safetensors", more)
    document = errors(original, quantized)
    assert document["missing"] == ["c.weight", "norm"] and document["complete"] is False and len(document["layers"]) == 2
    shown = qcts("diff", original, quantized, "--error").stdout
    assert "missing: c.weight" in shown and "missing: norm" in shown and "all layers" not in shown
    shown = qcts("check", quantized, "--original", original, code=1).stdout
    assert "original: 2 of its tensors are missing" in shown and "missing: norm" in shown
    report = json.loads(qcts("check", quantized, "--original", original, "--json", code=1).stdout)
    assert report["passed"] is False and report["error"]["missing"] == ["c.weight", "norm"]
    less = write_safetensors(tmp_path / "less.safetensors", {"a.weight": more["a.weight"]})
    document = errors(less, quantized)
    assert document["not_compared"] == ["b.weight: the original has no tensor of this name"] and not document["missing"]
    assert "all layers" not in qcts("check", quantized, "--original", less).stdout


def test_float_tensors_are_compared_too(files, tmp_path):
    _, _, _, layers, _ = files
    entries = {n: ("F32", [N, K], w.tobytes()) for n, w in layers.items()} | {
        "norm": ("F32", [2], bytes(8)),
        "steps": ("I64", [1], bytes(8)),
    }
    original = write_safetensors(tmp_path / "d.safetensors", entries)
    qcts("quantize", "--scheme", "int8_row", original, tmp_path / "q.pt")
    document = errors(original, tmp_path / "q.pt")
    assert document["unquantized"] == {"same": 2, "different": []} and document["complete"] is True
    entries["norm"] = ("F32", [2], np.float32([1, 2]).tobytes())
    entries["steps"] = ("I64", [1], np.int64([3]).tobytes())
    other = write_safetensors(tmp_path / "o.safetensors", entries)
    document = errors(other, tmp_path / "q.pt")
    (norm,) = document["unquantized"]["different"]
    assert (norm["name"], norm["max_error"]) == ("norm", 2) and document["not_compared"] == ["steps: not floating-point: int64 and int64"]
    assert "different from the original: norm" in qcts("diff", other, tmp_path / "q.pt", "--error").stdout


def test_a_tied_output_layer_of_a_folder_is_not_missing(files, tmp_path):
    _, _, _, layers, _ = files
    folder = tmp_path / "folder"
    folder.mkdir()
    tied = {"model.embed_tokens.weight": ("F32", [4, K], bytes(16 * K)), "l.weight": ("F32", [N, K], layers["a.weight"].tobytes())}
    write_safetensors(folder / "model.safetensors", tied)
    dense = write_safetensors(tmp_path / "d.safetensors", tied | {"lm_head.weight": tied["model.embed_tokens.weight"]})
    for said, missing in ((True, []), (False, ["lm_head.weight"])):
        (folder / "config.json").write_text(json.dumps({"tie_word_embeddings": said}))
        assert errors(dense, folder, code=3)["missing"] == missing


def test_check_shows_the_error_where_it_gets_the_original(files, tmp_path):
    _, dense, quantized, _, _ = files
    shown = qcts("check", quantized, "--original", dense).stdout
    assert "SQNR dB" in shown and "pass           round_trip.file" in shown
    assert "SQNR" not in qcts("check", quantized).stdout
    document = json.loads(qcts("check", quantized, "--original", dense, "--json").stdout)
    assert document["error"]["layers"] == errors(dense, quantized)["layers"] and document["passed"] is True
    bad = write_safetensors(tmp_path / "o.safetensors", {"a.weight": ("F32", [N, K], bytes(4 * N * K))})
    assert json.loads(qcts("check", quantized, "--original", bad, "--json").stdout)["passed"] is True  # no gate


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_fits(files, columns):
    _, dense, quantized, _, _ = files
    done = on_terminal("diff", dense, quantized, "--error", columns=columns)
    assert done.code == 0 and max(map(len, done.lines)) <= columns and "all layers" in done.text
