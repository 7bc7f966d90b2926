# SPDX-License-Identifier: BSD-3-Clause
"""Protects the Python package as `pip install` gives it: in a separate environment, without a compiler, away from the repository."""

import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from installed import call, python

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = json.loads((ROOT / "fixtures/manifest.json").read_text())
PICKLES = [golden["file"] for golden in MANIFEST["goldens"] if "torchao_0_18_0" in golden["id"] and golden["file"].endswith(".pt")]
GOLDEN = ROOT / "fixtures" / PICKLES[0]


def test_the_wheel_is_small_and_tagged(wheel):
    assert wheel.stat().st_size < 40 << 20
    assert "manylinux" in wheel.name and "linux_x86_64.whl" not in wheel.name.replace("manylinux", "")
    names = zipfile.ZipFile(wheel).namelist()
    assert "qcts/py.typed" in names and "qcts/bin/qcts" in names and "qcts/include/qcts/qcts_kernel.h" in names
    assert not [name for name in names if "libqcts_aten" in name]
    native = next(name for name in names if name.startswith("qcts/_native"))
    assert (".abi3." in native) == ("-abi3-" in wheel.name), (native, wheel.name)


def test_the_source_distribution_has_every_source(tmp_path):
    build = pytest.importorskip("scikit_build_core.build")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("no git checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = build.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        packed = {member.name.split("/", 1)[1] for member in archive.getmembers() if "/" in member.name}
    wanted = {file for file in listed.stdout.splitlines() if not file.startswith(".ci/") and (ROOT / file).exists()}
    assert not wanted - packed, sorted(wanted - packed)[:10]


def test_the_program_is_on_the_path(environment, tmp_path):
    ended = call(environment, tmp_path, environment / "bin/qcts", "check", GOLDEN)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = call(environment, tmp_path, environment / "bin/qcts", "run", "--plan", "quick", "--scheme", "int8_row", "--no-progress")
    assert run.returncode == 0 and (tmp_path / "out/report.html").exists(), run.stdout + run.stderr


def test_every_golden_dequantizes_as_by_the_program(environment, tmp_path):
    files = [str(ROOT / "fixtures" / golden["file"]) for golden in MANIFEST["goldens"]]
    (tmp_path / "files.json").write_text(json.dumps(files))
    compared = python(
        environment,
        tmp_path,
        """
        import json, pathlib, qcts
        compared = 0
        for file in json.loads(pathlib.Path("files.json").read_text()):
            try:
                checkpoint = qcts.open(file)
            except qcts.Refused:
                assert qcts.run("inspect", file).returncode != 0, file
                continue
            assert list(checkpoint) == [tensor["name"] for tensor in qcts.inspect(file)["tensors"]], file
            out = pathlib.Path("dense.safetensors")
            out.unlink(missing_ok=True)
            if qcts.run("dequantize", file, out, "--partial").returncode != 0:
                continue
            dense = qcts.open(out)
            for name in dense:
                try:
                    ours = checkpoint[name]._held.dequantize("")
                except qcts.Refused as refused:
                    assert "which CPU packed it" in str(refused), refused
                    continue
                except ValueError:  # --partial leaves such a tensor as it is
                    ended = qcts.run("dequantize", file, "strict.safetensors")
                    assert ended.returncode != 0 and name.rsplit(".", 1)[0] in ended.stdout + ended.stderr, (file, name)
                    continue
                theirs = dense[name]._held.parts[0][1]  # a plain tensor, whatever its name and neighbours make of it
                assert ours[1:] == theirs[1:] and ours[0].tobytes() == theirs[0].tobytes(), (file, name)
                compared += 1
        print(compared)
        """,
    )
    assert int(compared) > 900


def test_every_refusal_is_raised_by_name(environment, tmp_path):
    wanted = [
        [str(ROOT / "fixtures" / bad["file"]), bad["refusal"], bad.get("security", False)]
        for bad in MANIFEST["malformed"]
        if "refusal" in bad and "strict" in bad["options"]
    ]
    (tmp_path / "wanted.json").write_text(json.dumps(wanted))
    said = python(
        environment,
        tmp_path,
        """
        import json, pathlib, qcts
        classes = set()
        for file, error, security in json.loads(pathlib.Path("wanted.json").read_text()):
            try:
                checkpoint = qcts.open(file)
                for name in checkpoint:
                    checkpoint[name].parts
            except qcts.Refused as refused:
                assert (refused.refusal, refused.security) == (error, security) and refused.detail, (file, error, refused)
                classes.add(error)
            else:
                raise AssertionError(file)
        print(*sorted(classes))
        """,
    )
    header = (ROOT / "reference/formats/refusal.h").read_text()
    every = re.findall(r"^  (\w+),", header[header.index("enum class RefusalClass") : header.index("};")], re.M)
    assert said.split() == sorted(every) and len(every) == 27


def test_a_large_file_is_mapped_and_not_read(environment, tmp_path):
    header = json.dumps({"w": {"dtype": "F32", "shape": [1 << 14, 1 << 14], "data_offsets": [0, 1 << 30]}}).encode()
    header += b" " * (-len(header) % 8)
    with (tmp_path / "large.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + (1 << 30))
    said = python(
        environment,
        tmp_path,
        """
        import resource, qcts
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        weight = qcts.open("large.safetensors")["w"].dequantize()
        assert weight.shape == (1 << 14, 1 << 14) and weight[-1, -1] == 0
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """,
    )
    assert int(said) < 32 << 10  # KiB


def test_parts_are_the_stored_tensors(environment, tmp_path):
    pytest.importorskip("torch")
    python(
        environment,
        tmp_path,
        """
        import numpy as np, qcts, torch
        weight = torch.linspace(-3, 3, 8 * 64).reshape(8, 64)
        torch.save({"a.weight": weight, "b": weight[0].clone()}, "model.pt")
        ended = qcts.run("quantize", "model.pt", "int8.safetensors", "--scheme", "int8_row")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        parts, planes = qcts.open("int8.safetensors")["a.weight"].parts, qcts.quantize(weight, "int8_row")
        assert len(parts) >= 2
        for name, stored in parts.items():
            assert (stored == planes[name].reshape(stored.shape)).all(), name
        assert (qcts.open("model.pt")["b"].parts["data"] == weight[0].numpy()).all()
        """,
    )


def test_quantize_is_the_scheme_s(environment, tmp_path):
    python(
        environment,
        tmp_path,
        """
        import numpy as np, qcts
        weight = np.linspace(-3, 3, 8 * 64, dtype=np.float32).reshape(8, 64)
        planes = qcts.quantize(weight, "int8_row")
        scale = np.abs(weight).max(axis=1, keepdims=True) / np.float32(127.5)
        assert planes["qdata"].dtype == np.int8 and planes["qdata"].shape == (8, 64)
        assert np.allclose(planes["scale"], scale, rtol=1e-6)
        assert "int8_row" in qcts.schemes()
        for wrong in (lambda: qcts.quantize(weight, "int8_rov"), lambda: qcts.quantize(weight[0], "int8_row")):
            try:
                wrong()
            except (ValueError, TypeError) as error:
                assert str(error)
            else:
                raise AssertionError("no error")
        """,
    )


def test_check_and_convert(environment, tmp_path):
    python(
        environment,
        tmp_path,
        f"""
        import pathlib, qcts
        golden = {str(GOLDEN)!r}
        assert qcts.check(golden).ok
        damaged = bytearray(pathlib.Path(golden).read_bytes())
        damaged[len(damaged) // 2] ^= 1
        pathlib.Path("damaged.pt").write_bytes(damaged)
        for judge in (qcts.check, qcts.open):
            try:
                judge("damaged.pt")
            except qcts.Refused as refused:
                assert refused.refusal == "CrcMismatch", refused
            else:
                raise AssertionError("a damaged file passed")
        qcts.convert(golden, "copy.safetensors")
        names = set(qcts.open(golden))
        assert set(qcts.open("copy.safetensors")) == names
        try:
            qcts.open("none.pt")
        except qcts.Unreadable as error:
            assert error.errno == 2
        """,
    )
