# SPDX-License-Identifier: BSD-3-Clause
"""Files that are not checkpoints: one line says what they are, whatever their name; and options that change nothing."""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import subprocess
import tarfile
import zipfile

import numpy as np
import pytest
from dialect_files import WEIGHT, refusal, write_safetensors
from qcts_program import BIN, qcts

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "3f" * 32 + "\nsize 4976698672\n"


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.safetensors"))
    return out.getvalue()


def numpy_file(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays) if arrays else np.save(out, np.zeros(3))
    return out.getvalue()


def onnx():
    return b"\x08\x08\x12\x07pytorch\x1a\x052.7.0:\x00"


FILES = {
    "lfs": (POINTER.encode(), "git-lfs pointer"),
    "html": (b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n", "HTML"),
    "html_lower": (b"\n  <html lang='en'>\n", "HTML"),
    "xml": (b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>', "XML"),
    "json_error": (b'{"error":"Access to model x is restricted."}', "Access to model x is restricted."),
    "json_index": (json.dumps({"metadata": {}, "weight_map": {"a": "model-1.safetensors"}}).encode(), "shard index"),
    "config": (json.dumps({"model_type": "llama", "architectures": ["L"]}).encode(), "config.json"),
    "text": (b"Entry not found: this revision does not exist", "Entry not found"),
    "link": (b"../../blobs/0123456789abcdef", "symbolic link"),
    "ggml": (b"tjgg\3\0\0\0" + bytes(24), "GGML file from before GGUF"),
    "onnx": (onnx(), "ONNX"),
    "tar": (tar(), "tar archive"),
    "gzip": (gzip.compress(b"x" * 100), "gzip"),
    "bzip2": (bz2.compress(b"x" * 100), "bzip2"),
    "xz": (lzma.compress(b"x" * 100), "xz"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(20), "zstd"),
    "npy": (numpy_file(), "NumPy array"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(40), "HDF5"),
    "zeros": (bytes(5000), "unfinished download or copy"),
    "tensorrt": (b"ftrt" + bytes(60), "TensorRT"),
    "tensorflow_index": (bytes(8) + b"\1" * 40 + b"\x57\xfb\x80\x8b\x24\x75\x47\xdb", "TensorFlow checkpoint"),
    "utf16": (b"\xff\xfe" + "Entry not found".encode("utf-16le"), "UTF-16"),
    "utf16_page": (b"\xff\xfe" + "<!DOCTYPE html><html>".encode("utf-16le"), "UTF-16"),
    "one_word": (b"Unauthorized", "Unauthorized"),
    "one_line": (b"Forbidden\n", "Forbidden"),
    "page_below_empty_lines": (b"\n" * 5000 + b"<!DOCTYPE html><html></html>", "HTML"),
    "page_with_a_comment": (b"<!-- x -->\n<html></html>", "HTML"),
    "page_without_html": (b"<head><title>Sign in</title></head>", "HTML"),
    "xet": (b"# xet version 0\nfilesize = 100\nhash = 'ab'\n", "Xet pointer"),
    "dvc": (b"outs:\n- md5: abc\n  size: 3\n  path: model.pt\n", "dvc pull"),
    "annex": (b"/annex/objects/SHA256E-s100--ab.safetensors\n", "git annex get"),
    "annex_link": (b"../.git/annex/objects/aa/bb/SHA256E-s100--ab/SHA256E-s100--ab", "git annex get"),
    "apple_double": (b"\0\5\x16\7\0\2\0\0Mac OS X        " + bytes(50), "AppleDouble"),
    "coreml_weights": (b"\1\0\0\0\2\0\0\0" + bytes(56) + b"\xef\xbe\xad\xde" + bytes(100), "Core ML"),
    "coreml": (b"\x08\x05\x12\x50com.github.apple.coremltools.version", "Core ML"),
    "openvino": (b'<?xml version="1.0"?>\n<net name="Model0" version="11">\n', "OpenVINO"),
    "answer_of_a_server": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + bytes(80), "save only the body"),
    "upload_form": (b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\n' + bytes(80), "upload form"),
    "header_alone": (b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' + bytes(4), "safetensors header"),
    "openssl": (b"Salted__" + bytes(60), "openssl"),
    "age": (b"age-encryption.org/v1\n-> X25519 abc\n" + bytes(60), "age"),
    "empty_zip": (b"PK\5\6" + bytes(18), "empty zip"),
    "split_zip": (b"PK\7\x08PK\3\4" + bytes(60), "join the parts"),
    "jpeg": (b"\xff\xd8\xff\xe0" + bytes(30), "JPEG"),
    "gif": (b"GIF89a" + bytes(20), "GIF"),
    "windows_program": (b"MZ\x90\0" + bytes(60), "Windows"),
    "shortcut": (b"L\0\0\0\1\x14\2\0" + bytes(60), "shortcut"),
    "sqlite": (b"SQLite format 3\0" + bytes(80), "SQLite"),
    "arrow": (b"ARROW1\0\0" + bytes(30), "Arrow"),
    "adapter_config": (b'{"peft_type": "LORA", "r": 8}', "config.json"),
    "diffusers_config": (b'{"_class_name": "UNet2DConditionModel"}', "config.json"),
    "pickle_protocol_0": (pickle.dumps({"a": [1, 2.5, "three"]}, 0), "protocol 0"),
}


@pytest.mark.parametrize("ending", [".safetensors", ".pt", ".bin"])
@pytest.mark.parametrize("case", FILES)
def test_a_file_of_another_kind_is_named(case, ending, tmp_path):
    data, word = FILES[case]
    path = tmp_path / f"model{ending}"
    path.write_bytes(data)
    found = refusal(path)
    assert found["class"] == "NotArchive" and word in found["detail"], found
    done = qcts("check", path, code=1)
    assert done.stderr.count("\n") == 1 and word in done.stderr


@pytest.mark.parametrize("case", ["lfs", "html", "gguf"])
@pytest.mark.parametrize("sharded", [False, True])
def test_in_a_directory_the_file_is_named(case, sharded, tmp_path):
    data, word = (b"GGUF\3\0\0\0" + bytes(24), "GGUF") if case == "gguf" else FILES[case]
    name = "model-00002-of-00002.safetensors" if sharded else "model.safetensors"
    (tmp_path / name).write_bytes(data)
    if sharded:
        write_safetensors(tmp_path / "model-00001-of-00002.safetensors", {"a": WEIGHT})
        places = {"a": "model-00001-of-00002.safetensors", "b": name}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    detail = refusal(tmp_path)["detail"]
    assert name in detail and word in detail


def test_a_config_that_is_a_pointer_is_named(tmp_path):
    write_safetensors(tmp_path / "model.safetensors", {"a": WEIGHT})
    (tmp_path / "config.json").write_text(POINTER)
    detail = refusal(tmp_path)["detail"]
    assert "config.json" in detail and "git-lfs" in detail


def zipped(path, names, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name in names:
            archive.writestr(name, b"0" * 500)
    return path


def test_other_archives_are_named(tmp_path):
    npz = tmp_path / "x.pt"
    npz.write_bytes(numpy_file(a=np.zeros(3)))
    assert "NumPy archive" in refusal(npz)["detail"]
    around = zipped(tmp_path / "y.pt", ["dir/model.safetensors", "dir/config.json"])
    assert "zip archive that contains dir/model.safetensors" in refusal(around)["detail"]
    again = zipped(tmp_path / "z.pt", ["archive/data.pkl", "archive/data/0", "archive/version"])
    assert "re-zipped" in refusal(again)["detail"]
    assert "other files (a.txt)" in refusal(zipped(tmp_path / "w.pt", ["a.txt", "b.txt"]))["detail"]


def test_programs_and_packages_of_torch_are_named(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.export.save(torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)), tmp_path / "a.pt2")
    assert "torch.export" in refusal(tmp_path / "a.pt2")["detail"]
    with torch.package.PackageExporter(str(tmp_path / "b.pt")) as package:
        package.save_pickle("model", "model.pkl", {"w": torch.ones(2)})
    assert "torch.package" in refusal(tmp_path / "b.pt")["detail"]


@pytest.mark.parametrize("kept", [7, 8, 20, 100, 0.5, 0.9, -1])
def test_a_file_that_is_cut_off_is_told_as_that(kept, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    whole = write_safetensors(tmp_path / "x.safetensors", {"a": WEIGHT, "b": ("F32", [99], bytes(396))}).read_bytes()
    torch.save({"a": torch.ones(200)}, tmp_path / "x.pt")
    for name, data in {"x.safetensors": whole, "x.pt": (tmp_path / "x.pt").read_bytes()}.items():
        (tmp_path / name).write_bytes(data[: int(kept * len(data)) if isinstance(kept, float) else kept])
        detail = refusal(tmp_path / name)["detail"]
        assert any(word in detail for word in ("download complete", "truncated", "shorter than", "ends")), detail


def test_parts_of_a_distributed_checkpoint_are_named(tmp_path):
    for name, data in {".metadata": b"\x80\x04.", "__0_0.distcp": b"PK\3\4"}.items():
        (tmp_path / name).write_bytes(data)
        for path in (tmp_path / name, tmp_path):
            assert "dcp_to_torch_save" in refusal(path)["detail"]


def test_a_class_on_no_list_says_how_to_keep_it(tmp_path):
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\2ccollections\ndefaultdict\nq\0)Rq\1.")
        archive.writestr("archive/version", "3\n")
    assert "(--allow collections.defaultdict keeps it, never run)" in qcts("inspect", path, "--lenient", code=1).stderr


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_plain_pickle_is_told_from_a_file_of_torch_save(protocol, tmp_path):
    (path := tmp_path / "x.pt").write_bytes(pickle.dumps({"a": np.zeros(3)}, protocol))
    assert "pickle.dump" in (told := refusal(path)["detail"]) and "torch.save" in told


ADDRESSES = {
    "https://huggingface.co/a/b/resolve/main/model.safetensors": "download the file first", "hf://a/b": "download the file first",
    "s3://bucket/x.pt": "download the file first", "file:///x.pt": "without file://", "~/x.pt": "replaces ~",
    "*.safetensors": "no file matches", "some-org/Some-Model-7B": "hf download some-org/Some-Model-7B",
}  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("command", ["inspect", "check"])
def test_an_address_is_no_path(address, command):
    told = qcts(command, address, code=2).stderr
    assert ADDRESSES[address] in told and "No such file or directory" in told and told.count("\n") == 1


def test_empty_files_are_named(tmp_path):
    for name in ("x.safetensors", "x.pt", "x.bin"):
        (tmp_path / name).write_bytes(b"")
        assert "empty" in refusal(tmp_path / name)["detail"]


@pytest.mark.parametrize("command", ["inspect", "check"])
def test_a_pipe_is_refused_and_never_waited_for(command, tmp_path):
    data = write_safetensors(tmp_path / "x.safetensors", {"a": WEIGHT}).read_bytes()
    done = subprocess.run([BIN, command, "/dev/stdin"], input=data, capture_output=True, timeout=60)
    assert done.returncode == 1 and b"/dev/stdin is a pipe" in done.stderr and b"save it to a file" in done.stderr
    os.mkfifo(tmp_path / "fifo")
    done = qcts(command, tmp_path / "fifo", code=1)
    assert "is a pipe" in done.stderr
    assert "cannot read standard input" in qcts(command, "-", code=2).stderr
    assert "is a device" in qcts(command, "/dev/null", code=1).stderr


def test_quantize_that_quantizes_nothing_writes_nothing(tmp_path):
    out = tmp_path / "out.pt"
    for name, entries in {
        "float32": {"a.weight": ("F32", [8, 64], bytes(2048))},
        "vector": {"a.weight": ("BF16", [64], bytes(128))},
        "empty": {},
    }.items():
        path = write_safetensors(tmp_path / f"{name}.safetensors", entries)
        for more in ([], ["--strict"], ["--json"]):
            done = qcts("quantize", "--scheme", "int4_tinygemm_g32", path, out, *more, code=3)
            assert "no tensor is quantized" in done.stderr and not out.exists()


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_values_that_are_no_numbers_are_noted(dtype, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    weight = torch.ones(4, 64, dtype={"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[dtype])
    weight[1, 3] = float("nan")
    weight[2, 5], weight[3, 7] = float("inf"), float("-inf")
    torch.save({"a.weight": weight, "b.weight": torch.ones(4, 64)}, tmp_path / "x.pt")
    note = qcts("quantize", "--scheme", "int8_row", tmp_path / "x.pt", tmp_path / "out.pt").stderr
    assert "a.weight: 1 of its values are NaN and 2 infinite" in note and "b.weight" not in note
