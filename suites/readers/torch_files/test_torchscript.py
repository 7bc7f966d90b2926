# SPDX-License-Identifier: BSD-3-Clause
"""inspect lists the contents of a TorchScript archive as torch.jit.load sees them; a plug-in loads, saves and runs it."""

import hashlib
import io
import json
import subprocess
import zipfile
from pathlib import Path

import pytest
import run_record
import torch
from qcts_program import BIN, ROOT, inspect, qcts
from safetensors.torch import save_file

MANIFEST = json.loads((ROOT / "fixtures/manifest.json").read_text())
GOLDENS = [ROOT / "fixtures" / g["file"] for g in MANIFEST["goldens"] if "torchscript" in g["flags"]]


def described(tensor):
    """Returns dtype, shape and sha256 of the elements in row-major order, for a quantized tensor of its codes."""
    codes = tensor.detach().int_repr() if tensor.is_quantized else tensor.detach()
    data = codes.contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return "float32" if tensor.is_quantized else str(tensor.dtype)[6:], list(tensor.shape), hashlib.sha256(data).hexdigest()


def listed(report, kind):
    found = {}
    for tensor in report["tensors"]:
        if tensor["type"] == kind:
            inner = tensor["payload"][0]
            found[tensor["name"]] = (tensor["dtype"], tensor["shape"], inner["sha256"])
    return found


def check(path):
    program = torch.jit.load(path)
    report = inspect(path)
    assert report["format"] == "torchscript"
    parameters = {n: described(p) for n, p in program.named_parameters(remove_duplicate=False)}
    buffers = {n: described(b) for n, b in program.named_buffers(remove_duplicate=False)}
    assert listed(report, "Parameter") == parameters
    assert listed(report, "Buffer") == buffers
    modules = [module["path"] for module in report["program"]["modules"]]
    assert modules == [name for name, _ in program.named_modules(remove_duplicate=False)]
    with zipfile.ZipFile(path) as archive:
        names = [name.split("/", 1)[1] for name in archive.namelist()]
        version = next(n for n in (".data/version", "version") if n in names)
        prefix = archive.namelist()[0].split("/")[0]
        assert report["program"]["operator_set"] == int(archive.read(f"{prefix}/{version}"))
    assert [record["name"] for record in report["program"]["code"]] == [
        n for n in names if n.startswith("code/")
    ]
    return report, program


@pytest.mark.parametrize("path", GOLDENS, ids=lambda p: p.parent.name)
def test_inspect_lists_what_torch_loads(path):
    check(path)


def test_inspect_tells_attributes_constants_and_classes():
    path = next(p for p in GOLDENS if p.parent.name == "attributes")
    report, program = check(path)
    root = report["program"]["modules"][0]
    for name in ("names", "table", "flag", "scale", "far", "empty", "bools", "floats"):
        assert root["attributes"][name] == getattr(program, name), name
    assert root["attributes"]["pair"]["_data"] == list(program.pair)
    assert root["constants"]["factor"] == {"type": "int", "value": "3"}
    assert root["class"].endswith(".Attributes") and {"forward", "scaled"} <= set(root["methods"])
    text = qcts("inspect", path).stdout
    assert "program of operator set 3 (record version)" in text and "factor : Final[int] = 3" in text


class Fresh(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
        )
        self.register_buffer("halves", torch.arange(6.0).to(torch.float16)[1:4])

    def forward(self, x):
        return self.layers(x) + self.halves.sum()


@pytest.mark.parametrize("way", ["script", "trace"])
def test_a_program_of_this_moment_is_listed_too(way, tmp_path):
    """Covers what no golden has: the inputs of a trace, and an extra file."""
    module = Fresh().eval()
    program = torch.jit.script(module) if way == "script" else torch.jit.trace(module, torch.ones(2, 3))
    path = tmp_path / "fresh.pt"
    torch.jit.save(program, path, _extra_files={"notes.txt": b"hello"})
    report, _ = check(path)
    assert "extra/notes.txt" in report["program"]["records"]
    assert ("traced_inputs.pkl" in report["program"]["records"]) == (way == "trace")


def test_a_newer_operator_set_is_refused(tmp_path):
    source = next(p for p in GOLDENS if p.parent.name == "divide_v10")
    changed = tmp_path / "newer.pt"
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(changed, "w") as target:
        for info in archive.infolist():
            data = archive.read(info)
            target.writestr(info.filename, b"11\n" if info.filename.endswith("/version") else data)
    done = qcts("inspect", changed, "--lenient", code=1)
    assert done.stderr.startswith("qcts: refused: Version: operator set 11 is newer than 10")


def test_resave_refuses_it_by_name(tmp_path):
    done = qcts("resave", GOLDENS[0], tmp_path / "copy.pt", code=2)
    assert done.stderr == f"qcts: {GOLDENS[0]}: a TorchScript archive, which qcts reads but does not write\n"
    assert not (tmp_path / "copy.pt").exists()


def test_quantize_does_not_drop_the_program(tmp_path):
    path = next(p for p in GOLDENS if p.parent.name == "control_flow_scripted")
    out = tmp_path / "out.safetensors"
    done = qcts("quantize", path, out, "--scheme", "int8_row", code=1)
    assert "TorchScript program" in done.stderr and not out.exists()


def test_diff_compares_tensors():
    """Script and trace of one module: the same tensors, another program."""
    scripted, traced = (
        next(p for p in GOLDENS if p.parent.name == f"control_flow_{way}") for way in ("scripted", "traced")
    )
    found = json.loads(qcts("diff", scripted, traced, "--json").stdout)
    assert found["e1"]["equal"] and found["e2"]["equal"] and not found["e3"]["equal"]
    other = next(p for p in GOLDENS if p.parent.name == "linspace")
    found = json.loads(qcts("diff", scripted, other, "--json", code=1).stdout)
    assert not found["e2"]["equal"]


def test_versions_differ_in_the_record_alone():
    """The goldens of one operator under several operator sets hold the same code."""
    files = {p.parent.name: zipfile.ZipFile(io.BytesIO(p.read_bytes())) for p in GOLDENS}
    for operator, versions in (("divide", (1, 3, 4, 10)), ("fill", (1, 4, 5, 10))):
        codes = set()
        for version in versions:
            archive = files[f"{operator}_v{version}"]
            codes.add(b"".join(archive.read(n) for n in archive.namelist() if n.endswith(".py")))
            assert archive.read("archive/version") == b"%d\n" % version
        assert len(codes) == 1


HAS_ATEN = any((Path(BIN).resolve().parents[1] / "lib/plugins").glob("*aten*"))


class Branch(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)
        with torch.no_grad():
            self.fc.weight.copy_(torch.arange(8.0).reshape(2, 4))
            self.fc.bias.copy_(torch.tensor([1.0, -1.0]))

    def forward(self, x):
        return self.fc(x) if bool(x.sum() > 0) else x


class Restored(torch.nn.Module):
    """Its __setstate__, which LibTorch runs when it loads the file, writes a file."""

    def __init__(self, place: str):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.place = place

    @torch.jit.export
    def __getstate__(self):
        return self.weight, self.training, self.place

    @torch.jit.export
    def __setstate__(self, state: tuple[torch.Tensor, bool, str]):
        self.training, self.place = state[1], state[2]
        self.weight = state[0] + torch.from_file(state[2], True, 4).fill_(7.0).sum() * 0

    def forward(self, x):
        return x + self.weight


READING = [["inspect"], ["inspect", "--json"], ["check"], ["check", "--json"], ["check", "--lenient"], ["check", "--no-crc"]]


@pytest.mark.parametrize("words", READING, ids="_".join)
def test_code_of_a_file_is_not_run_unasked(words, tmp_path):
    """A program that writes a file as it is loaded: with --run-program it is loaded, which shows that it would have been.

    Where the kernel can confine writes, the plug-in's host refuses that one too, and loading fails.
    """
    place, program = tmp_path / "written", tmp_path / "hostile.pt"
    torch.jit.script(Restored(str(place))).save(program)
    qcts(*words, program)
    qcts("diff", program, program)
    qcts("dequantize", program, tmp_path / "out.safetensors")
    assert not place.exists()
    asked = subprocess.run([BIN, "check", "--run-program", program], capture_output=True, text=True, timeout=300)
    refused = asked.returncode == 1 and "failed in the TorchScript interpreter" in asked.stdout
    assert HAS_ATEN == (place.exists() or refused) and ("not_supported" in asked.stdout) == (not HAS_ATEN)


def test_check_says_that_a_program_is_not_run_unasked(tmp_path):
    torch.jit.script(Branch()).save(tmp_path / "mine.pt")
    done = qcts("check", tmp_path / "mine.pt")
    assert "not_supported  round_trip.file: a program is not loaded unless you ask" in done.stdout and "--run-program" in done.stdout
    assert "pass           size.file" in done.stdout


def test_check_lets_the_plug_in_load_and_save(tmp_path):
    """Without the plug-in it says which one is needed."""
    torch.jit.script(Branch()).save(tmp_path / "mine.pt")
    done = qcts("check", "--run-program", tmp_path / "mine.pt")
    if HAS_ATEN:
        assert "pass           round_trip.file" in done.stdout and "not_supported" not in done.stdout
        assert "its methods were not called: no inputs are known" in done.stderr
    else:
        assert "not_supported  round_trip.file: no provider here loads" in done.stdout
        assert "QCTS_TORCH=ON" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["mine.pt"]


@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_a_golden_of_ones_own_is_a_program_by_its_runs(right, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    program, x = torch.jit.script(Branch()), torch.tensor([[1.0, 2.0, 0.0, -1.0]])
    program.save(folder / "model.pt")
    y = program(x).detach() + (0 if right else 1)
    save_file({"x": x, "y": y}, folder / "expected.safetensors")
    digest = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("model.pt", "expected.safetensors")}
    tensors = [
        {"name": name, "scheme": None, "layout": "", "expected": [], "emulated": []}
        for name in ("fc.weight", "fc.bias")
    ]
    golden = {
        "id": "mine/branch",
        "file": "model.pt",
        "sha256": digest["model.pt"],
        "expected": "expected.safetensors",
        "expected_sha256": digest["expected.safetensors"],
        "producer": "me",
        "versions": {},
        "config": {},
        "generator": "mine",
        "seed": 0,
        "cpu_capability": "default",
        "threads": 1,
        "emulated": [],
        "flags": [],
        "choices": [],
        "runs": [{"method": "forward", "inputs": ["x"], "outputs": ["y"]}],
        "tensors": tensors,
    }
    manifest = {"schema": 1, "notes": {}, "goldens": [golden], "malformed": []}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    words = ["run", "--fixtures", folder, "--filter", "round_trip.file/*mine_branch*", "--out", tmp_path / "out"]
    qcts(*words, code=3 if not HAS_ATEN else 0 if right else 1)
    cases = run_record.verdicts(tmp_path / "out")
    assert [case["status"] for case in cases] == ["not_supported" if not HAS_ATEN else "pass" if right else "fail"]
