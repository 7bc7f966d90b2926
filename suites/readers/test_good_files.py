# SPDX-License-Identifier: BSD-3-Clause
"""Files without a fault, of writers other than torch and safetensors: `check` passes them, or says that nothing is there."""

import io
import json
import pickle
import random
import struct
import zipfile

import pytest
from dialect_files import write_safetensors
from qcts_program import inspect, qcts

SIZES = {"U8": 1, "I8": 1, "BF16": 2, "F32": 4, "I64": 8}


def passes(path):
    done = qcts("check", path)
    assert "fail" not in done.stdout
    return done


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_the_header_passes_and_is_kept(seed, tmp_path):
    """Protects: writers sort by name (MLX), or not at all (torch's distributed checkpoints, converters)."""
    rng = random.Random(seed)
    entries = {}
    for i in rng.sample(range(100), 12):
        dtype = rng.choice(list(SIZES))
        shape = [rng.randrange(1, 6) for _ in range(rng.randrange(3))]
        count = 1
        for size in shape:
            count *= size
        entries[f"layer{i}.weight"] = (dtype, shape, rng.randbytes(count * SIZES[dtype]))
    path = write_safetensors(tmp_path / "x.safetensors", entries)
    passes(path)
    assert [t["name"] for t in inspect(path)["tensors"]] == list(entries)
    copy = tmp_path / "copy.safetensors"
    qcts("resave", path, copy)
    assert copy.read_bytes() == path.read_bytes()


def test_data_in_another_order_than_the_header_passes(tmp_path):
    header = {
        "a": {"dtype": "U8", "shape": [3], "data_offsets": [4, 7]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
    }
    text = json.dumps(header).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(range(7)))
    passes(path)


@pytest.mark.parametrize("size", [20_000, 300_000])
@pytest.mark.parametrize("text", ["x", "\n\"\\", "ü"])
def test_metadata_is_no_overhead_of_the_container(size, text, tmp_path):
    """Protects: workflows and training logs in __metadata__, escaped or not."""
    metadata = {"workflow": text * size, "format": "pt"}
    path = write_safetensors(tmp_path / "x.safetensors", {"a.weight": ("F32", [4], bytes(16))}, metadata)
    verdicts = json.loads(qcts("check", path, "--json").stdout)["verdicts"]
    sizes = [verdict for verdict in verdicts if verdict["case_id"].startswith("size")]
    assert len(sizes) == 1 and sizes[0]["status"] == "pass"


@pytest.mark.parametrize("padding", [5_000, 100_000])
def test_padding_of_the_header_is_no_overhead(padding, tmp_path):
    text = b'{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}' + b" " * padding
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    passes(path)


def test_bytes_that_nobody_accounts_for_are_overhead_still(tmp_path):
    """The blanks stand between the entries: no writer pads there."""
    text = b'{"a":{"dtype":"U8","shape":[8],' + b" " * 60_000 + b'"data_offsets":[0,8]}}'
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    assert "size.file: the container's overhead exceeds its bound" in qcts("check", path, code=1).stdout


VALUES = {
    "string": {"log": "x" * 70_000},
    "numbers": {"loss": [0.5 + i for i in range(20_000)]},
    "history": {"history": [{"step": i, "loss": float(i), "lr": 1e-4} for i in range(3_000)]},
}


@pytest.mark.parametrize("case", VALUES)
@pytest.mark.parametrize("legacy", [False, True])
def test_values_beside_tensors_are_no_overhead(case, legacy, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    path = tmp_path / "x.pt"
    torch.save({"w": torch.ones(4, 4), **VALUES[case]}, path, _use_new_zipfile_serialization=not legacy)
    passes(path)


@pytest.mark.parametrize("alignment", [512, 4096])
def test_alignment_of_records_is_no_overhead(alignment, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from torch.utils.serialization import config

    with config.patch("save.storage_alignment", alignment):
        torch.save({f"w{i}": torch.ones(2) for i in range(40)}, tmp_path / "x.pt")
    passes(tmp_path / "x.pt")


EMPTY_OBJECTS = [{}, None, 3, 2.5, "text", [], (), {"step": 7}, [1, [2]], {"a": {"b": {}}}, True]


def torch_zip(path, value):
    """As torch.save writes an object without a tensor."""
    data = io.BytesIO()
    pickle.dump(value, data, protocol=2)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", data.getvalue())
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/version", "3\n")


def nothing_to_judge(path, out, *words):
    assert "nothing to judge" in qcts("check", path, *words, code=3).stdout
    told = json.loads(qcts("check", path, "--json", *words, code=3).stdout)
    assert told["passed"] is None and not told["verdicts"] and "nothing to judge" in told["not_judged"]
    assert inspect(path, *words)["tensors"] == []
    qcts("dequantize", path, out, *words, code=3)
    assert not out.exists()
    assert "undecided" in qcts("diff", path, path, *words).stdout


@pytest.mark.parametrize("value", EMPTY_OBJECTS, ids=repr)
def test_an_object_without_a_tensor_is_nothing_to_judge(value, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for legacy in (False, True):
        path = tmp_path / f"x{legacy}.pt"
        torch.save(value, path, _use_new_zipfile_serialization=not legacy)
        nothing_to_judge(path, tmp_path / "out.safetensors")


@pytest.mark.parametrize("value", EMPTY_OBJECTS, ids=repr)
def test_the_same_without_torch(value, tmp_path):
    torch_zip(tmp_path / "x.pt", value)
    nothing_to_judge(tmp_path / "x.pt", tmp_path / "out.safetensors", "--lenient")


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"tensor_names": "[]"}])
def test_safetensors_without_a_tensor_is_nothing_to_judge(metadata, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for path in (tmp_path / "x.safetensors", folder / "model.safetensors"):
        write_safetensors(path, {}, metadata)
    for path in (tmp_path / "x.safetensors", folder):
        nothing_to_judge(path, tmp_path / "out.safetensors")


@pytest.mark.parametrize("shape", [[], [0], [0, 4], [4, 0]])
def test_a_tensor_without_elements_is_judged(shape, tmp_path):
    passes(write_safetensors(tmp_path / "x.safetensors", {"a": ("F32", shape, bytes(0 if 0 in shape else 4))}))


@pytest.mark.parametrize("columns, larger", [(256, True), (1024, False)])
def test_weights_that_quantization_makes_larger_are_named(columns, larger, tmp_path):
    """tile_packed_4d pads a row to 1,024 columns: 8 x 256 bfloat16 become 4,352 bytes. `check` passes them all the same."""
    write_safetensors(tmp_path / "dense.safetensors", {"fc.weight": ("BF16", [8, columns], b"\x80\x3f" * (8 * columns))})
    done = qcts("quantize", "--scheme", "int4_tinygemm_g128", tmp_path / "dense.safetensors", tmp_path / "x.pt")
    checked = passes(tmp_path / "x.pt")
    assert ("fc.weight: its codes and scales take 4,352 bytes, more than the dense weight's 4,096" in done.stderr) == larger
    assert ("the quantized weights are larger than dense ones: 4,352 bytes instead of 4,096" in checked.stderr) == larger
    assert "\nSOUND: " in checked.stdout


def test_a_tensor_named_as_the_metadata_has_no_place_in_safetensors(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.save({"__metadata__": torch.ones(2)}, tmp_path / "x.pt")
    qcts("check", tmp_path / "x.pt")
    refused = qcts("dequantize", tmp_path / "x.pt", tmp_path / "out.safetensors", code=1).stderr
    assert "no tensor can be named __metadata__" in refused
