# SPDX-License-Identifier: BSD-3-Clause
"""Protects qcts.judge and the plug-in of pytest: right callables pass, and wrong or cheating ones fail with a cause."""

import json
import re
import shlex
import textwrap
from pathlib import Path

import pytest
from installed import call, python
from test_package import GOLDEN

ROOT = Path(__file__).resolve().parents[2]
README_KERNEL = re.search(r"```python\n(def linear.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]

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
        except OSError:
            pass
    return floats(planes, problem).float().to(getattr(torch, problem.w_dtype))

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

def searches_objects(planes, problem):
    import gc
    for value in gc.get_objects():
        if type(value).__name__ in ("TestVector", "Expectation"):
            return value.y.clone()
    return first_scale(planes, problem)

def patches_torch(planes, problem):
    y = floats(planes, problem).float().to(getattr(torch, problem.w_dtype))
    torch.empty = lambda *a, **k: y
    torch.Tensor.float = lambda self: self
    return y

def looks_at_its_caller(planes, problem):
    import gc, sys
    assert sys._getframe().f_back and gc.get_objects()
    return dequantize(planes, problem)
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
    (folder / "my_kernels.py").write_text("import torch\n" + README_KERNEL)

    def judge(function, op="dequantize", more="", module="kernels"):
        return python(
            environment,
            folder,
            f"""
            import json, sys
            sys.path.insert(0, ".")
            import qcts
            answer = qcts.judge("{module}:{function}", op="{op}", scheme="int8_row", plan="quick"{more})
            print(json.dumps([bool(answer), answer.passed, answer.failed, [cause["title"] for cause in answer.causes], str(answer)]))
            """,
        )

    return lambda *words: json.loads(judge(*words))


def test_a_right_callable_passes(judged):
    for words in (
        ("dequantize",),
        ("looks_at_its_caller",),
        (
            "linear",
            "linear",
            ', numerics={"accumulator": "float64", "output_cast": "float32", "scale_after_sum": True, "bias_in_output_cast": True}',
        ),
    ):
        ok, passed, failed, _, said = judged(*words)
        assert ok and passed > 5 and failed == 0 and said.startswith("right"), said


def test_the_kernel_of_the_readme_is_right(judged):
    ok, passed, _, _, said = judged("linear", "linear", "", "my_kernels")
    assert ok and passed > 5, said


@pytest.mark.parametrize(
    "function, title",
    [
        ("first_scale", "scale of the first row"),
        ("other_dtype", "the weight is torch.float64"),
        ("reads_the_judge", "it opens the memory of a process (/proc/N/mem)"),
        ("reads_the_goldens", "scale of the first row"),
        ("looks_at_frames", "which is bait"),
        ("searches_objects", "which is bait"),
        ("patches_torch", "it replaces torch.empty, torch.Tensor.float"),
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
