# SPDX-License-Identifier: BSD-3-Clause
"""A disk that is full is named with OUT's path, exit code 5; the old OUT stays as it was, and nothing is left half written."""

import json
import os
import resource
import subprocess

import pytest
from qcts_program import BIN

torch = pytest.importorskip("torch", reason="torch is not installed")

from safetensors.torch import save_file  # noqa: E402

LIMIT = 64 * 1024


def run_with_little_room(*words, cwd):
    """Every write of more than LIMIT bytes to a file fails, as on a full disk."""
    limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))  # noqa: E731
    return subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, timeout=120, cwd=cwd, preexec_fn=limited)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("in")
    state = {f"l{i}.weight": torch.full((256, 256), 0.5 + i) for i in range(2)}
    torch.save(state, folder / "in.pt")
    (folder / "model").mkdir()
    save_file(state, folder / "model/model.safetensors")
    (folder / "model/config.json").write_text(json.dumps({"model_type": "llama"}))
    return folder


WRITERS = {
    "resave": (["resave", "{in}/in.pt", "out.pt"], "out.pt"),
    "resave_folder": (["resave", "{in}/model", "out"], "out"),
    "convert": (["convert", "{in}/in.pt", "out.safetensors"], "out.safetensors"),
    "convert_folder": (["convert", "{in}/model", "out"], "out"),
    "dequantize": (["dequantize", "{in}/in.pt", "out.safetensors"], "out.safetensors"),
    "quantize": (["quantize", "--scheme", "int8_row", "{in}/in.pt", "out.pt"], "out.pt"),
    "quantize_safetensors": (["quantize", "--scheme", "int8_row", "{in}/in.pt", "out.safetensors"], "out.safetensors"),
    "quantize_folder": (["quantize", "--scheme", "int8_row", "{in}/model", "out"], "out"),
}


CASES = [(writer, old) for writer, (_, out) in WRITERS.items() for old in (False, True) if not old or "." in out]


@pytest.mark.parametrize(("writer", "old"), CASES)
def test_a_writer_says_so(writer, old, model, tmp_path):
    words, out = WRITERS[writer]
    if old:
        (tmp_path / out).write_bytes(b"old")
    done = run_with_little_room(*[word.replace("{in}", str(model)) for word in words], cwd=tmp_path)
    assert done.returncode == 5 and "out" in done.stderr and os.strerror(27) in done.stderr, (done.returncode, done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ([out] if old else [])
    assert not old or (tmp_path / out).read_bytes() == b"old"


@pytest.mark.parametrize(
    "words", [["inspect", "{in}/in.pt"], ["inspect", "{in}/in.pt", "--json"], ["check", "{in}/in.pt"], ["diff", "{in}/in.pt", "{in}/in.pt"]]
)
def test_standard_output_on_a_full_device(words, model):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [BIN, *[word.replace("{in}", str(model)) for word in words]], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert done.returncode == 5 and "standard output: write failed" in done.stderr
