# SPDX-License-Identifier: BSD-3-Clause
"""Protects the Python package as `pip install` gives it: in an environment of its own, without a compiler, away from the repository."""

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import textwrap
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = json.loads((ROOT / "fixtures/manifest.json").read_text())
PICKLES = [golden["file"] for golden in MANIFEST["goldens"] if "torchao_0_18_0" in golden["id"] and golden["file"].endswith(".pt")]
GOLDEN = ROOT / "fixtures" / PICKLES[0]


@pytest.fixture(scope="session")
def wheel():
    made = subprocess.run([ROOT / "scripts/wheel"], capture_output=True, text=True, cwd=ROOT)
    assert made.returncode == 0, made.stdout + made.stderr
    return next((ROOT / "dist").glob("qcts-*.whl"))


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory):
    """A virtual environment with the wheel. It finds NumPy, torch and safetensors in the one that runs the tests."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "--quiet", wheel], check=True)
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    (Path(site) / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")) + "\n")
    return folder


def call(environment, cwd, *words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("QCTS_", "PYTHON"))}
    clean["PATH"] = str(environment / "bin")  # no compiler
    return subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=cwd, env=clean, timeout=600)


def python(environment, cwd, program):
    ended = call(environment, cwd, environment / "bin/python", "-c", textwrap.dedent(program))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


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


KERNELS = """
import torch

def floats(planes, problem):
    codes = planes["qdata"].double() - planes["zero_point"].reshape(-1, 1).double()
    return codes * planes["scale"].reshape(-1, 1).double()

def dequantize(planes, problem):
    return floats(planes, problem).float().to(getattr(torch, problem.w_dtype))

def first_scale(planes, problem):
    codes = planes["qdata"].float() - planes["zero_point"].reshape(-1, 1).float()
    return (codes * planes["scale"][0].float()).to(getattr(torch, problem.w_dtype))

def linear(x, planes, bias, problem):
    codes = planes["qdata"].double() - planes["zero_point"].reshape(-1, 1).double()
    y = (x.double() @ codes.T * planes["scale"].reshape(1, -1).double()).float()
    return (y if bias is None else y + bias.float()).to(getattr(torch, problem.y_dtype))

def other_dtype(planes, problem):
    return floats(planes, problem)

def reads_the_judge(planes, problem):
    import glob
    for path in glob.glob("/proc/[0-9]*/mem"):
        try:
            open(path, "r+b").close()
            raise SystemError("opened " + path)
        except (PermissionError, FileNotFoundError, OSError):
            pass
    return first_scale(planes, problem)

def reads_the_goldens(planes, problem):
    import os
    import qcts
    share = os.path.join(os.path.dirname(qcts.__file__), "share/qcts")
    for folder in ("fixtures", "suites/plans", "suites/mustpass"):
        if os.listdir(os.path.join(share, folder)):
            raise SystemError("found files in " + folder)
    return first_scale(planes, problem)

def looks_at_frames(planes, problem):
    import gc, sys
    frame = sys._getframe()
    while frame is not None:
        for value in frame.f_locals.values():
            if type(value).__name__ in ("TestVector", "Expectation"):
                return value
        frame = frame.f_back
    return first_scale(planes, problem)

def patches_torch(planes, problem):
    torch.empty = lambda *a, **k: (_ for _ in ()).throw(SystemError("patched"))
    torch.Tensor.float = lambda self: self
    return first_scale(planes, problem)
"""


WIDE_KERNEL = """
def wide(x, planes, bias, problem):
    y = linear(x, planes, bias, problem)
    y[:, 700:701] = 0
    return y
"""


@pytest.fixture(scope="session")
def judged(environment, tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("judged")
    (folder / "kernels.py").write_text(KERNELS)

    def judge(function, op="dequantize", more=""):
        return python(
            environment,
            folder,
            f"""
            import json, sys
            sys.path.insert(0, ".")
            import qcts
            answer = qcts.judge("kernels:{function}", op="{op}", scheme="int8_row", plan="quick"{more})
            print(json.dumps([answer.ok, answer.passed, answer.failed, [cause["title"] for cause in answer.causes], str(answer)]))
            """,
        )

    return lambda *words: json.loads(judge(*words))


def test_a_right_callable_passes(judged):
    for words in (
        ("dequantize",),
        (
            "linear",
            "linear",
            ', numerics={"accumulator": "float64", "output_cast": "float32", "scale_after_sum": True, "bias_in_output_cast": True}',
        ),
    ):
        ok, passed, failed, _, said = judged(*words)
        assert ok and passed > 5 and failed == 0 and said.startswith("right"), said


@pytest.mark.parametrize(
    "function, title",
    [
        ("first_scale", "scale of the first row"),
        ("other_dtype", "the weight is torch.float64"),
        ("reads_the_judge", "scale of the first row"),
        ("reads_the_goldens", "scale of the first row"),
        ("looks_at_frames", "scale of the first row"),
        ("patches_torch", ""),
    ],
)
def test_a_wrong_callable_is_named(judged, function, title):
    ok, passed, failed, titles, said = judged(function)
    assert not ok and passed == 0 and failed > 5 and any(title in each for each in titles), said


LLAMA = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 704, "num_attention_heads": 8, "num_key_value_heads": 2,
    "vocab_size": 1000, "torch_dtype": "bfloat16",
}  # fmt: skip


def test_the_layers_of_a_model(environment, tmp_path):
    """A right kernel, and one that is wrong in one column of wide layers."""
    pytest.importorskip("torch")
    (tmp_path / "kernels.py").write_text(KERNELS + WIDE_KERNEL)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "other.json").write_text(json.dumps(LLAMA | {"model_type": "mamba"}))
    said = python(
        environment,
        tmp_path,
        """
        import json, sys
        sys.path.insert(0, ".")
        import qcts
        sums = {"accumulator": "float64", "output_cast": "float32", "scale_after_sum": True, "bias_in_output_cast": True}
        how = {"op": "linear", "scheme": "int8_row", "numerics": sums, "options": ("--filter", "*/layer_*"), "model": "config.json"}
        right, wrong = (qcts.judge("kernels:" + name, **how) for name in ("linear", "wide"))
        try:
            qcts.judge("kernels:linear", **how | {"model": "other.json"})
        except qcts.Failed as failed:
            print(json.dumps([right.ok, right.passed, wrong.passed, wrong.failed, str(wrong), failed.said, wrong.causes[0]["rerun"]]))
        """,
    )
    ok, passed, of_narrow, failed, causes, refused, rerun = json.loads(said)
    assert ok and passed == 20  # five sizes with 1, 8, 33 and 512 rows
    assert (of_narrow, failed) == (12, 8) and "column 700" in causes
    assert "'mamba'" in refused and "llama" in refused and "--filter" in refused
    ended = call(environment, tmp_path, *shlex.split(rerun))
    assert ended.returncode == 1 and "column 700" in ended.stdout, ended.stdout + ended.stderr


def test_without_a_gpu_there_is_no_device(environment, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "kernels.py").write_text(KERNELS)
    said = python(
        environment,
        tmp_path,
        """
        import sys
        sys.path.insert(0, ".")
        import qcts, torch
        try:
            print(qcts.judge("kernels:dequantize", op="dequantize", scheme="int8_row", plan="quick", device="cuda:9").ok)
        except qcts.NoDevice as error:
            print(error)
        """,
    )
    assert said.startswith("no GPU cuda:9: ")


def test_a_function_of_no_module_is_judged_with_cloudpickle(environment, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("cloudpickle")
    said = python(
        environment,
        tmp_path,
        KERNELS
        + """
import qcts
answers = [qcts.judge(function, op="dequantize", scheme="int8_row", plan="quick") for function in (dequantize, lambda *a: first_scale(*a))]
print(*(answer.ok for answer in answers), answers[1].passed)
""",
    )
    assert said.split() == ["True", "False", "0"]


def test_the_plug_in_of_pytest(environment, tmp_path):
    """A sound file, a damaged one, one that is not there, a right callable and a wrong one."""
    pytest.importorskip("torch")
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "test_kernels.py").write_text(
        textwrap.dedent(
            """
            HOW = {"op": "dequantize", "scheme": "int8_row", "plan": "quick"}

            def test_right(qcts_judge):
                assert qcts_judge("kernels:dequantize", **HOW).passed > 5

            def test_wrong(qcts_judge):
                qcts_judge("kernels:first_scale", **HOW)
            """
        )
    )
    damaged = bytearray(GOLDEN.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "damaged.pt").write_bytes(damaged)
    files = [f"--qcts-file={file}" for file in (GOLDEN, "damaged.pt", "none.pt")]
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA", "--rootdir", tmp_path, "-o", "pythonpath=.", *files]
    ended = call(environment, tmp_path, environment / "bin/python", *words)
    assert "2 passed, 3 failed" in ended.stdout or "3 failed, 2 passed" in ended.stdout, ended.stdout + ended.stderr
    for text in ("damaged.pt: CrcMismatch", "scale of the first row", "none.pt", "report.html"):
        assert text in ended.stdout, ended.stdout
