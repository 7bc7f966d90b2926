# SPDX-License-Identifier: BSD-3-Clause
"""`qcts convert`: the same tensors in another container or dialect, or a refusal that names what the target cannot hold."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
from dialect_files import FIXTURES, GOLDENS, metadata_of, read_safetensors  # noqa: E402
from qcts_program import inspect, pinned, qcts  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

SCHEMES = {
    "int8_row": [],
    "int8_tensor": ["--activation", "dyn_row_sym"],
    "fp8_row": [],
    "fp8_e4m3_tensor": ["--activation", "dyn_tensor"],
    "int4_plain_g32": [],
    "int4_int32_g32": [],
    "int4_tinygemm_g32": [],
    "intx_b4_g32_asym": [],
    "mxfp8_e4m3_floor": [],
    "nvfp4_two_level": [],
}


def floats(path):
    generator = torch.Generator().manual_seed(1)
    state = {
        f"{name}.{part}": torch.randn(*shape, generator=generator).bfloat16()
        for name, n, k in (("up", 32, 64), ("down", 64, 32))
        for part, shape in (("weight", (n, k)), ("bias", (n,)))
    }
    torch.save(state, path)
    return path


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Returns, by scheme, the same quantized tensors as a pickle and as safetensors."""
    folder, found = tmp_path_factory.mktemp("schemes"), {}
    source = floats(folder / "floats.pt")

    def of(scheme):
        if scheme not in found:
            found[scheme] = [folder / f"{scheme}{ending}" for ending in (".pt", ".safetensors")]
            for path in found[scheme]:
                qcts("quantize", "--scheme", scheme, *SCHEMES[scheme], source, path)
        return found[scheme]

    return of


@pytest.mark.parametrize("scheme", SCHEMES)
def test_torchaos_classes_go_to_safetensors_and_back(scheme, written, tmp_path):
    pickled, safe = written(scheme)
    there, back = tmp_path / "there.safetensors", tmp_path / pickled.name
    report = json.loads(qcts("convert", pickled, there, "--json").stdout)
    assert report["dialect"] == "torchao_safetensors" and report["no_place"] == []
    assert there.read_bytes() == safe.read_bytes()
    qcts("convert", there, back)
    assert back.read_bytes() == pickled.read_bytes()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_torchao_loads_what_was_converted(scheme, written, tmp_path):
    pinned("torchao", "0.18")
    from torchao.prototype.safetensors.safetensors_support import unflatten_tensor_state_dict
    from torchao.prototype.safetensors.safetensors_utils import TensorSubclassAttributeJSONEncoder

    pickled, _ = written(scheme)
    out = tmp_path / "out.safetensors"
    qcts("convert", pickled, out)
    with safe_open(out, "pt") as file:
        metadata = file.metadata()
    loaded, rest = unflatten_tensor_state_dict(load_file(out), metadata)
    want = torch.load(pickled, weights_only=True)
    assert not rest and list(loaded) == list(want)
    for name, tensor in want.items():
        assert type(loaded[name]) is type(tensor)
        if type(tensor) is torch.Tensor:
            assert torch.equal(loaded[name], tensor)
            continue
        text = [json.dumps(value, cls=TensorSubclassAttributeJSONEncoder) for value in (loaded[name], tensor)]
        assert text[0] == text[1]
        parts = [value.__tensor_flatten__()[0] for value in (loaded[name], tensor)]
        assert parts[0] == parts[1]
        for part in parts[0]:
            a, b = (getattr(value, part).reshape(-1).view(torch.uint8) for value in (loaded[name], tensor))
            assert torch.equal(a, b), (name, part)


def test_attributes_that_todays_class_lacks_are_left_out_where_they_are_none(tmp_path):
    """torchao 0.13's Float8Tensor had bounds for weights, which its 0.18 does not take."""
    source, out = FIXTURES / GOLDENS["torchao_0_13_0/fp8wo_v2"]["file"], tmp_path / "out.safetensors"
    qcts("convert", source, out)
    assert not any("hp_value" in text for text in metadata_of(out).values())
    qcts("diff", source, out)


def test_colon_keys_become_todays(tmp_path):
    """torchao 0.14's keys, which its 0.18 no longer reads."""
    source = FIXTURES / GOLDENS["torchao_0_14_1/fp8_row/colon_keys"]["file"]
    out = tmp_path / "out.safetensors"
    qcts("convert", source, out)
    assert set(read_safetensors(out)) == {"0._weight_qdata", "0._weight_scale", "0.bias"}
    before, after = inspect(source), inspect(out)
    hashes = [[part["sha256"] for t in report["tensors"] for part in t["payload"]] for report in (before, after)]
    assert hashes[0] == hashes[1]
    assert "resave" in qcts("convert", out, tmp_path / "again.safetensors", code=2).stderr


def test_metadata_of_ones_own_goes_along(tmp_path):
    source, out = FIXTURES / GOLDENS["torchao_0_14_1/fp8_row/colon_keys"]["file"], tmp_path / "out.safetensors"
    save_file(load_file(source), tmp_path / "own.safetensors", metadata=metadata_of(source) | {"author": "me"})
    qcts("convert", tmp_path / "own.safetensors", out)
    assert metadata_of(out)["author"] == "me"


def golden_2338(form):
    return FIXTURES / GOLDENS[f"torchao_0_13_0/ao_2338/{form}"]["file"]


def tied():
    whole = torch.arange(12.0).reshape(3, 4)
    return {"embed.weight": whole, "head.weight": whole, "turned.weight": whole.t(), "half": whole[1:]}


def test_plain_tensors_and_what_safetensors_has_no_place_for(tmp_path):
    """Every value is kept; ties, views, strides and the kind of dict are named."""
    state = torch.nn.BatchNorm1d(3).state_dict() | tied() | {"p": torch.nn.Parameter(torch.ones(2))}
    torch.save(state, tmp_path / "a.pt")
    done = qcts("convert", tmp_path / "a.pt", tmp_path / "b.safetensors", "--json")
    report = json.loads(done.stdout)
    got = load_file(tmp_path / "b.safetensors")
    assert set(got) == set(state) and all(torch.equal(got[name], value) for name, value in state.items())
    assert metadata_of(tmp_path / "b.safetensors") == {"format": "pt"}
    said = {(lost["path"], lost["field"]) for lost in report["no_place"]}
    assert {("head.weight", "storage"), ("turned.weight", "stride"), ("p", "type"), ("p", "requires_grad")} <= said
    assert any(path == "" and field == "type" for path, field in said)  # an OrderedDict
    assert "head.weight: storage" in done.stderr
    qcts("convert", tmp_path / "b.safetensors", tmp_path / "c.pt")
    back = torch.load(tmp_path / "c.pt", weights_only=True)
    assert all(torch.equal(back[name], value) and back[name].dtype == value.dtype for name, value in state.items())


@pytest.mark.parametrize("old", [True, False], ids=["legacy", "zip"])
def test_every_dtype_comes_through(old, tmp_path):
    data = torch.arange(16, dtype=torch.uint8) % 2
    names = "float32 float64 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 int16 int32 int64 uint16 uint32 uint64 bool complex64"
    state = {name: data.bool() if name == "bool" else data.clone().view(getattr(torch, name)) for name in names.split()} | {
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
    }
    torch.save(state, tmp_path / "a.pt", _use_new_zipfile_serialization=not old)
    qcts("convert", tmp_path / "a.pt", tmp_path / "b.safetensors")
    qcts("convert", tmp_path / "b.safetensors", tmp_path / "c.bin")
    back = torch.load(tmp_path / "c.bin", weights_only=True)
    for name, value in state.items():
        assert back[name].dtype == value.dtype and back[name].shape == value.shape
        assert torch.equal(back[name].reshape(-1).view(torch.uint8), value.reshape(-1).view(torch.uint8)), name


def test_a_tinyq_file_keeps_its_layers(tmp_path):
    floats(tmp_path / "a.pt")
    qcts("quantize", "--scheme", "tinyq_w8a32", tmp_path / "a.pt", tmp_path / "q.pth")
    qcts("convert", tmp_path / "q.pth", tmp_path / "q.safetensors")
    report = inspect(tmp_path / "q.safetensors")
    assert report["dialect"] == "tinyq"
    want = torch.load(tmp_path / "q.pth", weights_only=True)
    got = load_file(tmp_path / "q.safetensors")
    assert set(got) == set(want) and all(torch.equal(got[name], want[name]) for name in want)


def parameter_with(note):
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.note = note
    return parameter


W = torch.ones(2, 4)
# name: what is saved, words of the command, and what the refusal says
REFUSED = {
    "number": ({"w": W, "optimizer": {"lr": 0.5}}, [], "'optimizer' is not a tensor"),
    "nested": ({"model": {"w": W}}, [], "'model' is not a tensor"),
    "text": ({"w": W, "name": "x"}, [], "'name' is not a tensor"),
    "key": ({3: W}, [], "the key 3 is not a string"),
    "list": ([W, W], [], "a list of 2"),
    "lone": (W, [], "a single tensor has no name"),
    "quantizer": ({"q": torch.quantize_per_tensor(W, 0.5, 0, torch.qint8)}, [], "q: not a single array of elements"),
    "sparse": ({"s": W.to_sparse()}, [], "s: not a single array of elements"),
    "meta": ({"m": torch.empty(2, device="meta")}, [], "m: "),
    "tensor_in_attribute": ({"p": parameter_with(W)}, [], "p.state.note: a part"),
    "module_missing": ({"w": W}, ["--dialect", "torchao_safetensors"], "w: torchao's safetensors reader needs"),
    "none_wrapped": ({"w": W}, ["--dialect", "torchao_2338"], "holds at least one LinearActivationQuantizedTensor"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_safetensors_cannot_hold_is_refused_by_name(name, tmp_path):
    value, words, said = REFUSED[name]
    torch.save(value, tmp_path / "a.pt")
    done = qcts("convert", tmp_path / "a.pt", tmp_path / "b.safetensors", *words, code=1)
    *notes, line = done.stderr.splitlines()
    assert said in line and all(note.startswith("qcts: note: ") for note in notes), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("l.w", "l._w_b.weight"), "l._w_b.weight"),
        (("l.w", "l._w_qdata"), "l._w_qdata: two tensors"),
    ],
    ids=["prefix", "entry"],
)
def test_names_that_torchao_would_mix_up_are_refused(names, said, written, tmp_path):
    """Its reader treats every key with a tensor's prefix as a part, and then leaves out the tensor."""
    weights = torch.load(written("int8_row")[0], weights_only=True)
    torch.save(dict(zip(names, (weights["up.weight"], W), strict=True)), tmp_path / "a.pt")
    done = qcts("convert", tmp_path / "a.pt", tmp_path / "b.safetensors", code=1)
    assert said in done.stderr and not (tmp_path / "b.safetensors").exists()


def test_an_argument_that_torchao_does_not_read_is_refused(tmp_path):
    """torchao 0.18.0 writes PerBlock into the metadata, and its reader has no such class."""
    torch.save({"l.weight": torch.ones(128, 128).bfloat16()}, tmp_path / "a.pt")
    words = ["--scheme", "fp8_e4m3_block128", "--activation", "dyn_block128"]
    qcts("quantize", *words, tmp_path / "a.pt", tmp_path / "q.pt")
    done = qcts("convert", tmp_path / "q.pt", tmp_path / "q.safetensors", code=1)
    assert "l.weight.act_quant_kwargs.granularity: a PerBlock" in done.stderr, done.stderr
    assert not (tmp_path / "q.safetensors").exists()


def test_other_files_are_refused_by_name(written, tmp_path):
    affine, wrapped = (FIXTURES / GOLDENS[f"torchao_0_9_0/{name}"]["file"] for name in ("fp8wo", "fp8dq"))
    int8, _ = written("int8_row")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "script.pt")
    save_file({"w": W}, tmp_path / "own.safetensors", metadata={"format": "pt", "author": "me"})
    out, pt = tmp_path / "out.safetensors", tmp_path / "out.pt"
    for words, code, said in (
        ([affine, out], 1, "dialect torchao_safetensors cannot store the class AffineQuantizedTensor"),
        ([wrapped, out], 1, "dialect torchao_safetensors cannot store the class LinearActivationQuantizedTensor"),
        ([wrapped, out, "--dialect", "torchao_2338"], 1, "cannot store a quantized weight in"),
        ([int8, out, "--dialect", "torchao_2338"], 1, "holds at least one LinearActivationQuantizedTensor"),
        ([int8, out, "--dialect", "plain"], 1, "dialect plain cannot store the class Int8Tensor"),
        ([tmp_path / "script.pt", out], 1, "TorchScript"),
        ([tmp_path / "own.safetensors", pt], 1, '__metadata__.author: "me"'),
        ([golden_2338("dictionary"), out, "--dialect", "torchao_safetensors"], 1, "LinearActivationQuantizedTensor"),
        ([int8, pt], 2, "resave"),
        ([golden_2338("single"), out], 2, "resave"),
        ([int8, tmp_path / "out.txt"], 2, "must end in"),
        ([int8, out, "--dialect", "torchao_v2"], 2, "is not for safetensors"),
        ([golden_2338("single"), pt, "--dialect", "torchao_safetensors"], 2, "is not for pickles"),
        ([int8, out, "--dialect", "torchao_2339"], 2, "did you mean 'torchao_2338'?"),
        ([int8, tmp_path / "none/out.safetensors"], 5, "none/"),
    ):
        done = qcts("convert", *words, code=code)
        assert said in done.stderr, (said, done.stderr)
        assert not out.exists() and not pt.exists()


def model_folder(folder, shards):
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "toy"}')
    index = {}
    for number, (name, state) in enumerate(shards.items()):
        torch.save(state, folder / name)
        index |= dict.fromkeys(state, name)
        assert number < 3
    if len(shards) > 1:
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return folder


@pytest.mark.parametrize("count", [1, 2])
def test_a_folder_becomes_a_folder(count, tmp_path):
    states = [{f"l{i}.weight": W * (i + 1), f"l{i}.bias": torch.ones(2) * i} for i in range(count)]
    names = ["pytorch_model.bin"] if count == 1 else [f"pytorch_model-0000{i + 1}-of-00002.bin" for i in range(2)]
    source = model_folder(tmp_path / "a", dict(zip(names, states, strict=True)))
    (source / "tokenizer.json").write_text("{}")
    qcts("convert", source, tmp_path / "b")
    assert {path.name for path in (tmp_path / "b").iterdir()} == {"config.json", "tokenizer.json", "model.safetensors"}
    got = load_file(tmp_path / "b/model.safetensors")
    want = {name: value for state in states for name, value in state.items()}
    assert set(got) == set(want) and all(torch.equal(got[name], want[name]) for name in want)
    assert metadata_of(tmp_path / "b/model.safetensors") == {"format": "pt"}
    qcts("convert", tmp_path / "b", tmp_path / "c")
    back = torch.load(tmp_path / "c/pytorch_model.bin", weights_only=True)
    assert all(torch.equal(back[name], want[name]) for name in want)
    assert "exists" in qcts("convert", source, tmp_path / "b", code=2).stderr
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "c"}
