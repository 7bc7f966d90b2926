# SPDX-License-Identifier: BSD-3-Clause
"""GGUF files: blocks mean what ggml and its package gguf say, files are saved again byte for byte, parts belong together."""

import json
import shutil
import struct
import sys

import pytest
from dialect_files import FIXTURES, GOLDENS, read_safetensors, refusal
from qcts_program import inspect, qcts

sys.path.insert(0, str(FIXTURES / "make/malformed"))
import malformed_gguf as gguf  # noqa: E402

FILES = [id for id, golden in GOLDENS.items() if "gguf" in golden["flags"]]
PARTS = "gguf_0_19_0/parts"
Q4_0, Q8_K, Q4_K = 2, 15, 12


def file_of(id):
    return FIXTURES / GOLDENS[id]["file"]


def parts_of(path):
    return sorted(path.glob("*.gguf")) if path.is_dir() else [path]


@pytest.mark.parametrize("id", FILES)
def test_dequantize_gives_the_bits_of_the_producer(id, tmp_path):
    """Protects: every type of block, and that no tensor of a golden is left out."""
    qcts("dequantize", file_of(id), tmp_path / "out.safetensors")
    written = read_safetensors(tmp_path / "out.safetensors")
    tensors = GOLDENS[id]["tensors"]
    assert list(sorted(written)) == sorted(tensor["name"] for tensor in tensors)
    if "expected" in GOLDENS[id]:
        for key, value in read_safetensors(FIXTURES / GOLDENS[id]["expected"]).items():
            assert written[key.removesuffix("|dequant")] == value, key


def test_the_goldens_hold_every_type_that_is_read():
    types = {tensor["type"] for id in FILES for tensor in inspect(file_of(id))["tensors"]}
    assert len(types - {"Tensor"}) == 25, types


@pytest.mark.parametrize("id", FILES)
def test_the_file_is_judged_and_saved_again_byte_for_byte(id, tmp_path):
    """Protects: order, alignment, metadata and padding, and sizes by the formula of each type."""
    file = file_of(id)
    qcts("check", file)
    qcts("resave", file, tmp_path / ("again" if file.is_dir() else "again.gguf"))
    again = parts_of(next(tmp_path.iterdir()))
    assert [part.read_bytes() for part in again] == [part.read_bytes() for part in parts_of(file)]
    told = inspect(file)
    assert told["dense_bytes"] == GOLDENS[id]["dense_bytes"] and told["payload_bytes"] == GOLDENS[id]["payload_bytes"]
    assert [tensor["name"] for tensor in told["tensors"]] == [tensor["name"] for tensor in GOLDENS[id]["tensors"]]


def test_a_file_is_saved_over_itself(tmp_path):
    """Protects: nothing is read from the input once its copy takes its place."""
    path = tmp_path / "model.gguf"
    shutil.copy(file_of("gguf_0_19_0/super"), path)
    before = path.read_bytes()
    qcts("resave", path, path)
    assert path.read_bytes() == before


def test_inspect_shows_shapes_row_major_and_the_metadata():
    told = inspect(file_of("gguf_0_19_0/experts"))
    tensor = told["tensors"][1]
    assert (tensor["scheme"], tensor["shape"], tensor["dtype"]) == ("gguf_q4_k", [4, 5, 256], "float32")
    assert tensor["payload"][0]["shape"] == [4, 5, 144]
    assert told["format"] == told["dialect"] == "gguf" and told["metadata"]["general.architecture"] == "llama"
    metadata = inspect(file_of("gguf_0_19_0/plain"))["metadata"]
    assert metadata["qcts.uint64"] == str(2**64 - 1) and metadata["qcts.bools"] == "[true, false]"
    assert "qcts.strings = [\"<s>\", \"\", \"ü\"]" in qcts("inspect", file_of("gguf_0_19_0/plain")).stdout


class File:
    """A file of two rows of a block each, with its parts as a test may change them."""

    def __init__(self, type=Q4_0, elements=32, size=18):
        self.pairs = [gguf.ARCHITECTURE]
        self.type, self.dims, self.name = type, (elements, 2), "w"
        self.data = bytearray(2 * size)
        self.data[1] = self.data[size + 1] = 0x3C  # 1 in float16

    def write(self, path):
        description = gguf.tensor(self.name, self.dims, self.type)
        path.write_bytes(gguf.file_of(self.pairs, [description], data=bytes(self.data)))
        return path


def test_a_scale_that_is_no_number_is_found(tmp_path):
    file = File()
    file.data[19] = 0x7E
    done = qcts("check", file.write(tmp_path / "m.gguf"), code=1)
    assert "w: scale: block 1: nan (gguf_q4_0: scales and minima are finite)" in done.stderr
    assert "fail           values.file" in done.stdout


def test_a_type_that_is_not_read_is_named_and_kept(tmp_path):
    path = File(Q8_K, 256, 292).write(tmp_path / "m.gguf")
    assert "w is of type Q8_K, which qcts cannot read" in qcts("check", path, code=3).stdout
    assert "Q8_K" in qcts("dequantize", path, tmp_path / "o.safetensors", code=1).stderr
    tensor = inspect(path)["tensors"][0]
    assert (tensor["type"], tensor["scheme"], tensor["shape"]) == ("Q8_K", None, [2, 256])
    qcts("resave", path, tmp_path / "again.gguf")
    assert (tmp_path / "again.gguf").read_bytes() == path.read_bytes()


def test_a_tensor_that_is_shorter_than_its_type_is_named():
    """Protects: a published file whose tensors were stored too short, and that was read into its neighbours."""
    found = refusal(FIXTURES / "malformed/gguf/g14_shorter_than_type.gguf")
    assert "before the end of x at 288, given its type Q4_K and its shape" in found["detail"], found


def test_no_dialect_and_no_other_ending_fit_a_gguf_file(tmp_path):
    path = File().write(tmp_path / "m.gguf")
    assert refusal(path, "--dialect", "torchao_v2")["class"] == "SubclassSchema"
    for ending in ("pt", "safetensors"):
        assert "the format that resave keeps" in qcts("resave", path, tmp_path / f"o.{ending}", code=2).stderr


@pytest.mark.parametrize("command", [("convert",), ("quantize", "--scheme", "int8_row")])
@pytest.mark.parametrize("id", ["gguf_0_19_0/plain", PARTS])
def test_convert_and_quantize_say_what_to_do_instead(command, id, tmp_path):
    done = qcts(*command, file_of(id), tmp_path / "o.safetensors", code=1)
    assert "qcts dequantize" in done.stderr and not any(tmp_path.iterdir())


def difference(a, b, code=1):
    return json.loads(qcts("diff", a, b, "--json", "--strict", code=code).stdout)


def test_diff_compares_blocks_types_and_metadata(tmp_path):
    a = File().write(tmp_path / "a.gguf")
    other = File()
    other.data[2] = 1
    found = difference(a, other.write(tmp_path / "b.gguf"))
    assert found["e2"]["differences"][0]["path"] == "w" and not found["e1"]["equal"]
    other = File()
    other.pairs.append(gguf.u32("k", 1))
    found = difference(a, other.write(tmp_path / "b.gguf"))
    assert found["e2"]["differences"][0]["path"] == "metadata.k" and found["e1"]["equal"]
    other.pairs[1] = gguf.pair("k", gguf.I32, struct.pack("<i", 1))
    left = tmp_path / "b.gguf"
    found = difference(left, other.write(tmp_path / "c.gguf"))
    assert found["e2"]["differences"][0]["a"] == 'uint32 "1"' and found["e2"]["differences"][0]["b"] == 'int32 "1"'
    other = File(type=20)
    found = difference(a, other.write(tmp_path / "d.gguf"))
    assert found["e2"]["differences"][0]["field"] == "type" and not found["e1"]["equal"]


def test_the_same_model_in_parts_and_in_another_order_is_equal_but_for_spelling(tmp_path):
    whole = tmp_path / "whole.gguf"
    pairs, tensors = [gguf.ARCHITECTURE], [gguf.tensor("a"), gguf.tensor("b", offset=32)]
    whole.write_bytes(gguf.file_of(pairs, tensors, data=gguf.padded(gguf.DATA) + bytes(8)))
    tensors = [gguf.tensor("b"), gguf.tensor("a", offset=32)]
    (tmp_path / "turned.gguf").write_bytes(gguf.file_of(pairs, tensors, data=gguf.padded(bytes(8)) + gguf.DATA))
    found = json.loads(qcts("diff", whole, tmp_path / "turned.gguf", "--json", code=0).stdout)
    assert found["e1"]["equal"] and found["e2"]["equal"] and not found["e3"]["equal"]


def split_pair(key, value, type=gguf.U16, format="<H"):
    return gguf.pair(f"split.{key}", type, struct.pack(format, value))


def write_parts(folder, tensors="abc", numbers=None, count=None, total=None):
    """Writes a part for each letter: a tensor of that name."""
    folder.mkdir()
    count = len(tensors) if count is None else count
    for place, name in enumerate(tensors):
        pairs = [split_pair("no", (numbers or range(len(tensors)))[place]), split_pair("count", count)]
        pairs.append(split_pair("tensors.count", len(tensors) if total is None else total, gguf.I32, "<i"))
        path = folder / f"m-{place + 1:05}-of-{len(tensors):05}.gguf"
        path.write_bytes(gguf.file_of(pairs, [gguf.tensor(name)]))
    return folder, sorted(folder.iterdir())


def test_all_parts_are_read_from_the_folder_and_from_the_first(tmp_path):
    folder = file_of(PARTS)
    first, second = parts_of(folder)[:2]
    assert inspect(first)["tensors"] == inspect(folder)["tensors"]
    assert inspect(first)["file_bytes"] == sum(part.stat().st_size for part in parts_of(folder))
    alone = qcts("inspect", second, "--json")
    assert len(json.loads(alone.stdout)["tensors"]) == 2 and "it is part 2 of 3" in alone.stderr
    assert "pass the folder" in qcts("resave", first, tmp_path / "o.gguf", code=2).stderr
    qcts("check", first)


def test_a_missing_part_is_named(tmp_path):
    folder, parts = write_parts(tmp_path / "m")
    parts[2].unlink()
    for path in (folder, parts[0]):
        found = refusal(path)
        assert found["class"] == "StorageRef" and parts[2].name in found["detail"]
    parts[0].rename(tmp_path / "other.gguf")
    found = refusal(tmp_path / "other.gguf")
    assert found["class"] == "StorageRef" and "NAME-00001-of-00003.gguf" in found["detail"]


WRONG = {
    "numbers": ({"numbers": [0, 2, 1]}, "GgufHeader", "split.no is 2, not 1"),
    "count": ({"count": 4}, "GgufHeader", "split.count is 4, not 3"),
    "total": ({"total": 4}, "GgufHeader", "split.tensors.count is 4, not 3"),
    "twice": ({"tensors": "aba"}, "DuplicateEntry", "a in two parts"),
}


@pytest.mark.parametrize("case", WRONG)
def test_parts_that_contradict_each_other_are_refused(case, tmp_path):
    words, cls, text = WRONG[case]
    folder, parts = write_parts(tmp_path / "m", **words)
    for path in (folder, parts[0]):
        found = refusal(path)
        assert found["class"] == cls and text in found["detail"], found


def test_numbered_files_that_are_no_parts_are_refused(tmp_path):
    for part in (1, 2):
        File().write(tmp_path / f"m-0000{part}-of-00002.gguf")
    found = refusal(tmp_path)
    assert found["class"] == "GgufHeader" and "split.count is not there" in found["detail"]


def test_a_folder_reads_its_only_gguf_file_and_safetensors_before_it(tmp_path):
    file = File().write(tmp_path / "model.Q4_0.gguf")
    assert inspect(tmp_path)["dialect"] == "gguf"
    (tmp_path / "config.json").write_text("{}")
    assert inspect(tmp_path)["tensors"] == inspect(file)["tensors"]
    shutil.copy(FIXTURES / "malformed/safetensors/s22_zero_at_end.safetensors", tmp_path / "model.safetensors")
    read = qcts("inspect", tmp_path, "--json")
    assert json.loads(read.stdout)["dialect"] == "plain" and file.name in read.stderr


def test_dequantize_says_that_the_metadata_stays_behind(tmp_path):
    done = qcts("dequantize", File().write(tmp_path / "m.gguf"), tmp_path / "o.safetensors")
    assert "the metadata of the GGUF file" in done.stderr
