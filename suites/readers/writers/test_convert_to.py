# SPDX-License-Identifier: BSD-3-Clause
"""`qcts convert --to`: weights of one library as another's, or as floats. What was written means the same numbers, by qcts, by
compressed-tensors and by torchao themselves; anything else is refused by name, and nothing is written.
"""

import functools
import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from dialect_files import FIXTURES, GOLDENS, metadata_of, read_safetensors, write_safetensors
from qcts_program import BIN, ROOT, inspect, pinned, qcts

PROGRAM = Path(__file__).with_name("decompress_program.py")
GPTQ, AWQ = "gptqmodel_7_7_0/", "autoawq_0_2_9/"
ACT_ORDER = GPTQ + "int4_g32_act_order"
INTEGERS = "compressed_tensors_0_20_0/integers_bf16"
TARGETS = ["dense", "compressed_tensors", "torchao"]
# Folders of goldens: each has one producer.
PRODUCERS = sorted({id.partition("/")[0] for id in GOLDENS})


def file_of(id):
    return FIXTURES / GOLDENS[id]["file"]


def goldens_of(producer):
    return [id for id in GOLDENS if id.startswith(producer + "/")]


def out_for(source, target, folder):
    return folder / ("out" if source.is_dir() or target == "compressed_tensors" else "out.safetensors")


def convert(source, out, target, *words):
    return subprocess.run([BIN, "convert", source, out, "--to", target, *words], capture_output=True, text=True)


def dense_of(source, out):
    qcts("dequantize", source, out)
    return read_safetensors(out)


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_every_golden_goes_to_every_target_or_is_refused_by_name(producer, target, tmp_path):
    """Protects: no weight is ever written with other values and exit code 0, and a refusal names a tensor or the file."""
    for id in goldens_of(producer):
        source, out = file_of(id), out_for(file_of(id), target, tmp_path)
        done = convert(source, out, target)
        if done.returncode != 0:
            said = done.stderr.splitlines()[-1]
            assert done.returncode in (1, 2) and said.startswith("qcts: "), (id, done.stderr)
            if "refused: " not in said and str(source) not in said:
                assert any(tensor["name"] in said for tensor in inspect(source)["tensors"]), (id, said)
            assert not list(tmp_path.iterdir()), id
            continue
        assert dense_of(out, tmp_path / "b.safetensors") == dense_of(source, tmp_path / "a.safetensors"), id
        types = {tensor["type"] for tensor in inspect(out)["tensors"] if tensor["scheme"]}
        if target != "torchao":
            assert types <= ({"compressed-tensors"} if target == "compressed_tensors" else set()), id
        for path in list(tmp_path.iterdir()):
            remove(path)


# The goldens that have to go through, so that the test above cannot pass by refusals.
HELD = {
    "dense": [id for id in GOLDENS if "peer" in GOLDENS[id]["flags"] and id not in ("modelopt_0_47_0/fp8", "modelopt_0_47_0/nvfp4")
              and not id.endswith("fp8_tensor")],
    "compressed_tensors": [
        *goldens_of("gptqmodel_7_7_0"), *goldens_of("autoawq_0_2_9"), "torchao_0_18_0/intx_b4_g32_asym/traps_16x64_f16",
        "torchao_0_18_0/int8_row/odd_96x320", "torchao_0_18_0/int8_tensor/odd_17x40_f32", "torchao_0_18_0/int4_int32_g32/traps_16x96_bf16",
        "torchao_0_18_0/fp8_row/odd_96x320", "torchao_0_18_0/fp8_e4m3_block128/odd_128x256", "torchao_0_9_0/int8wo",
        "torchao_0_13_0/intx4", "torchao_0_13_0/fp8wo",
    ],
    "torchao": [
        *(id for id in goldens_of("gptqmodel_7_7_0") if id != ACT_ORDER), *goldens_of("autoawq_0_2_9"), INTEGERS,
        "compressed_tensors_0_20_0/integers_fp16", "torchao_0_9_0/int4_weight_only", "torchao_0_9_0/int8wo", "torchao_0_5_0/int8wo",
        "torchao_0_13_0/fp8dq_row", "torchao_0_13_0/fp8wo", "torchao_0_13_0/intx4",
    ],
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_these_goldens_go_through(target, tmp_path):
    for number, id in enumerate(HELD[target]):
        out = out_for(file_of(id), target, tmp_path / str(number))
        out.parent.mkdir()
        done = convert(file_of(id), out, target)
        assert done.returncode == 0, (id, done.stderr)


def expected_of(id):
    """Returns what the producer itself dequantized to; for a golden without it, what `dequantize` gives."""
    values = read_safetensors(FIXTURES / GOLDENS[id]["expected"])
    return {key.removesuffix("|dequant"): value for key, value in values.items() if key.endswith("|dequant")}


@functools.cache
def compressed_python(version):
    """The environment and the Python that import this version of compressed-tensors, or None and why there is none."""
    python = os.environ.get("QCTS_GOLDENS_PYTHON")
    if not python:
        return None, "QCTS_GOLDENS_PYTHON names no Python with compressed-tensors 0.20.0 (fixtures/make/requirements-peers.txt)"
    environ = dict(os.environ)
    if version != "0.20.0":
        folder = ROOT / f"build/goldens-env/compressed-tensors-{version}"
        if not folder.exists():
            return None, f"compressed-tensors {version} is not in build/goldens-env, where scripts/make_goldens puts it"
        environ["PYTHONPATH"] = str(folder)
    ask = "import compressed_tensors; print(compressed_tensors.__version__)"
    said = subprocess.run([python, "-W", "ignore", "-c", ask], capture_output=True, text=True, env=environ)
    if said.stdout.strip() != version:
        return None, f"{python} has no compressed-tensors {version}: {said.stdout}{said.stderr[-200:]}"
    return environ, python


def decompress(folders, version):
    """Decompresses folder -> file by the package, all in one process."""
    environ, python = compressed_python(version)
    words = [word for pair in folders.items() for word in pair]
    done = subprocess.run([python, "-W", "ignore", PROGRAM, *words], capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def decompressed(tmp_path_factory):
    """Returns a function: golden -> the weights of its conversion, as compressed-tensors itself decompresses them."""
    folder, made = tmp_path_factory.mktemp("decompressed"), set()

    def of(id):
        version = "0.12.2" if id == ACT_ORDER else "0.20.0"
        ids = [ACT_ORDER] if id == ACT_ORDER else [one for one in HELD["compressed_tensors"] if one != ACT_ORDER]
        if compressed_python(version)[0] is None:
            pytest.skip(compressed_python(version)[1])
        out = {one: folder / one.replace("/", ".") for one in ids}
        if version not in made:
            made.add(version)
            for one, path in out.items():
                qcts("convert", file_of(one), path, "--to", "compressed_tensors")
            decompress({path: folder / f"{path.name}.safetensors" for path in out.values()}, version)
        return read_safetensors(folder / f"{out[id].name}.safetensors")

    return of


@pytest.mark.parametrize("id", HELD["compressed_tensors"])
def test_compressed_tensors_itself_decompresses_to_the_bits_of_the_producer(id, decompressed):
    """Protects: names, shapes, packing, zero points and config.json, against the package and the other library's own values."""
    got, want = decompressed(id), expected_of(id)
    assert want and got == want


def torchao_values(path):
    """Loads a file or folder as torchao 0.18 does. Returns name -> (class, tensor)."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pinned("torchao", "0.18")
    import torchao.quantization  # noqa: F401
    from safetensors import safe_open
    from safetensors.torch import load_file
    from torchao.prototype.safetensors.safetensors_support import unflatten_tensor_state_dict

    if path.suffix == ".pt":
        state = torch.load(path, weights_only=True)
    else:
        files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
        parts, metadata = {}, {}
        for file in files:
            parts |= load_file(file)
            with safe_open(file, "pt") as opened:
                metadata |= opened.metadata()
        state, rest = unflatten_tensor_state_dict(parts, metadata)
        assert not rest
    return {name: (type(tensor).__name__, tensor) for name, tensor in state.items()}


def elements(tensor):
    torch = pytest.importorskip("torch")
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("id", HELD["torchao"])
def test_torchao_itself_dequantizes_to_the_bits_of_the_producer(id, tmp_path):
    """Protects: classes, attributes, dtypes and zero points. Files of torchao's first generation load again."""
    source = file_of(id)
    for out in [out_for(source, "torchao", tmp_path), *([] if source.is_dir() else [tmp_path / "out.pt"])]:
        qcts("convert", source, out, "--to", "torchao")
        got, want = torchao_values(out), expected_of(id)
        assert want and want.keys() <= got.keys()
        for name, value in want.items():
            assert got[name][0] in ("IntxUnpackedToInt8Tensor", "Int8Tensor", "Float8Tensor", "Int4TilePackedTo4dTensor"), name
            if got[name][0] != "Int4TilePackedTo4dTensor":  # whose layer multiplies by a kernel and dequantizes nowhere
                assert elements(got[name][1].dequantize()) == value[2], name


def two_shards(id, folder):
    """A copy of a golden whose tensors are in two shards, one weight across both, with a config.json that says more."""
    source, out = file_of(id), folder / "shards"
    out.mkdir()
    tensors = read_safetensors(source / "model.safetensors")
    tensors |= {"model.embed_tokens.weight": ("F32", [2, 3], bytes(range(24))), "model.0.bias": ("F16", [2], b"bias")}
    names, places = sorted(tensors), {}
    for number, part in enumerate((names[:3], names[3:]), 1):
        name = f"model-0000{number}-of-00002.safetensors"
        write_safetensors(out / name, {key: tensors[key] for key in part}, {"format": "pt", "author": "me"})
        places |= dict.fromkeys(part, name)
    index = {"metadata": {"total_size": 1, "mine": 7}, "weight_map": places}
    (out / "model.safetensors.index.json").write_text(json.dumps(index))
    config = json.loads((source / "config.json").read_text())
    (out / "config.json").write_text(json.dumps({"model_type": "own", **config, "vocab_size": 2}))
    (out / "quantize_config.json").write_text(json.dumps(config["quantization_config"]))
    (out / "tokenizer.json").write_text("{}")
    return out, tensors


def read_folder(folder):
    return {key: value for path in folder.glob("*.safetensors") for key, value in read_safetensors(path).items()}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("id", [GPTQ + "int8_g64_sym", AWQ + "int4_channel"])
def test_a_folder_keeps_its_shards_its_other_tensors_and_its_other_files(id, target, tmp_path):
    source, tensors = two_shards(id, tmp_path)
    out = tmp_path / "out"
    qcts("convert", source, out, "--to", target)
    shards = {f"model-0000{number}-of-00002.safetensors" for number in (1, 2)}
    assert {path.name for path in out.iterdir()} == shards | {"config.json", "model.safetensors.index.json", "tokenizer.json"}
    written = read_folder(out)
    for name in ("model.embed_tokens.weight", "model.0.bias"):
        assert written[name] == tensors[name]
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": sum(len(data) for _, _, data in written.values()), "mine": 7}
    assert index["weight_map"] == {key: path.name for path in out.glob("*.safetensors") for key in read_safetensors(path)}
    config, before = (json.loads((folder / "config.json").read_text()) for folder in (out, source))
    before.pop("quantization_config")
    said = config.pop("quantization_config", None)
    assert config == before
    assert (said or {}).get("quant_method") == {"dense": None, "compressed_tensors": "compressed-tensors", "torchao": "torchao"}[target]
    if id.startswith(GPTQ) or target != "torchao":  # no recipe of torchao writes the subnormal scale of AWQ's golden
        qcts("check", out)
    assert dense_of(out, tmp_path / "b.safetensors") == dense_of(source, tmp_path / "a.safetensors")


def test_dense_floats_have_the_dtype_of_the_producer_and_no_trace_of_codes(tmp_path):
    """Protects: OUT is what transformers would treat as a model that was never quantized."""
    source = file_of("modelopt_0_47_0/fp8_row")
    said = qcts("convert", source, tmp_path / "out", "--to", "dense").stderr
    assert "IN asks for quantized x (quant_algo FP8_PER_CHANNEL_PER_TOKEN" in said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"config.json", "model.safetensors"}
    assert "quantization_config" not in json.loads((tmp_path / "out/config.json").read_text())
    got, before = read_folder(tmp_path / "out"), read_folder(source)
    assert not any(key.endswith("_scale") for key in got) and {dtype for dtype, _, _ in got.values()} == {"BF16"}
    kept = {key for key in before if key in got and before[key][0] == "BF16"}
    assert kept and all(got[key] == before[key] for key in kept)


def test_dense_from_gguf_and_into_a_pickle(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    (id,) = [id for id in GOLDENS if id.startswith("gguf_") and id.endswith("/quantized")]
    said = qcts("convert", file_of(id), tmp_path / "a.safetensors", "--to", "dense").stderr
    assert "the metadata of the GGUF file" in said
    qcts("convert", file_of(id), tmp_path / "b.pt", "--to", "dense")
    want, got = read_safetensors(tmp_path / "a.safetensors"), torch.load(tmp_path / "b.pt", weights_only=True)
    assert want.keys() == got.keys() and all(elements(got[name]) == want[name][2] for name in want)


def ulp_up(value):
    """The next float32, which float16 does not hold."""
    return struct.pack("<I", struct.unpack("<I", value)[0] + 1)


def test_other_rounding_is_counted_and_has_to_be_asked_for(tmp_path):
    """Scales that float16 does not hold stay float32, so compressed-tensors dequantizes to float32 and rounds nothing."""
    source, mine, out = file_of("torchao_0_18_0/int8_row/toy_64_32_64_st"), tmp_path / "in.safetensors", tmp_path / "out"
    tensors = read_safetensors(source)
    (name,) = [name for name in tensors if name.endswith("0._weight_scale") or name.endswith("1._weight_scale")][:1]
    dtype, shape, data = tensors[name]
    tensors[name] = dtype, shape, ulp_up(data[:4]) + data[4:]
    write_safetensors(mine, tensors, metadata_of(source))
    done = convert(mine, out, "compressed_tensors")
    module = name.removesuffix("._weight_scale")
    assert done.returncode == 1 and not out.exists() and sorted(tmp_path.iterdir()) == [mine]
    assert "--other-rounding writes it" in done.stderr and f"of 1 weight differently, first {module}.weight: " in done.stderr
    report = json.loads(qcts("convert", mine, out, "--to", "compressed_tensors", "--other-rounding", "--json").stdout)
    written = read_folder(out)
    assert written[f"{module}.weight_scale"] == ("F32", shape, tensors[name][2])
    a, b = dense_of(mine, tmp_path / "a.safetensors"), dense_of(out, tmp_path / "b.safetensors")
    assert a[f"{module}.weight"][0] != b[f"{module}.weight"][0] == "F32"
    assert 0 < report["rounded_otherwise"] and f" {report['rounded_otherwise']:,} of " in done.stderr


def changed(id, folder, change):
    """A copy of a golden's folder after `change(tensors, config)`."""
    shutil.copytree(file_of(id), folder / "in")
    tensors, config = read_safetensors(folder / "in/model.safetensors"), json.loads((folder / "in/config.json").read_text())
    change(tensors, config)
    write_safetensors(folder / "in/model.safetensors", tensors)
    (folder / "in/config.json").write_text(json.dumps(config))
    return folder / "in"


def scale_of_infinity(tensors, config):
    dtype, shape, data = tensors["model.0.scales"]
    tensors["model.0.scales"] = dtype, shape, data[:2] + b"\x00\x7c" + data[4:]


def asks_for_x(tensors, config):
    next(iter(config["quantization_config"]["config_groups"].values()))["input_activations"] = {"num_bits": 8}


def without_codes(tensors, config):
    tensors["model.0.qweight_secret"] = "F32", [1], bytes(4)


def unread(tensors, config):
    config["quantization_config"]["bits"] = 5


# what is changed -> golden, change, target, words of the refusal
REFUSED = {
    "infinite_scale": (AWQ + "int4_g32", scale_of_infinity, "compressed_tensors", "model.0.weight: row 1, group 0: the scale is inf"),
    "infinite_scale_torchao": (AWQ + "int4_g32", scale_of_infinity, "torchao", "model.0.weight: row 1, group 0: the scale is inf"),
    "act_order": (ACT_ORDER, lambda *_: None, "torchao", "torchao's groups are columns in their order"),
    "asks_for_x": (INTEGERS, asks_for_x, "torchao", "input_activations of group_0 asks for quantized x"),
    "extra_part": (AWQ + "int4_g32", without_codes, "compressed_tensors", "qweight_secret"),
    "not_read": (GPTQ + "int8_g64_sym", unread, "dense", "5 bits"),
    "not_read_ct": (GPTQ + "int8_g64_sym", unread, "compressed_tensors", "5 bits"),
    "same": (INTEGERS, lambda *_: None, "compressed_tensors", "already in compressed-tensors format"),
    "float4": ("compressed_tensors_0_20_0/fp4_bf16", lambda *_: None, "torchao", "mxfp4.weight: codes of 4-bit floats"),
    "experts": ("transformers_5_24_0_peers/gpt_oss", lambda *_: None, "torchao", "a stack of experts"),
    "input_scale": ("modelopt_0_47_0/fp8", lambda *_: None, "dense", "weight.input_scale: it acts on x"),
    "activation_scale": ("transformers_5_24_0_peers/fp8_tensor", lambda *_: None, "dense", "activation_scale: it acts on x"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_target_cannot_hold_is_refused_by_name(case, tmp_path):
    id, change, target, said = REFUSED[case]
    source = changed(id, tmp_path, change)
    done = convert(source, tmp_path / "out", target)
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    assert sorted(tmp_path.iterdir()) == [source]


def float_zero_points():
    return [id for id in GOLDENS if id.startswith("torchao_0_18_0/int4_plain_g32/traps_16x96")]


@pytest.mark.parametrize("id", float_zero_points())
def test_a_float_zero_point_between_two_codes_is_named_with_its_group(id, tmp_path):
    said = qcts("convert", file_of(id), tmp_path / "out", "--to", "compressed_tensors", code=1).stderr
    assert "0.weight: row " in said and ", group " in said and "is not a whole number of scales of" in said
    assert not list(tmp_path.iterdir())


def test_words_that_contradict_each_other(tmp_path):
    source = file_of("torchao_0_9_0/int8wo")
    for words, said in {
        ("--to", "compresed_tensors"): "did you mean 'compressed_tensors'",
        ("--to", "dense", "--as", "torchao_v2"): "--as torchao_v2 writes torchao classes, not --to dense",
        ("--to", "torchao", "--cpu-pack", "avx2"): "--cpu-pack is for --to dense",
        ("--to", "compressed_tensors"): "must be a new folder",
    }.items():
        done = subprocess.run([BIN, "convert", source, tmp_path / "out.safetensors", *words], capture_output=True, text=True)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    (tmp_path / "out").mkdir()
    assert "exists" in qcts("convert", source, tmp_path / "out", "--to", "compressed_tensors", code=2).stderr
    floats = tmp_path / "floats.safetensors"
    qcts("convert", source, floats, "--to", "dense")
    for target in TARGETS:
        said = qcts("convert", floats, out_for(floats, target, tmp_path / "none"), "--to", target, code=1).stderr
        assert "no tensor in it is quantized" in said


def test_dialect_is_another_word_for_to(tmp_path):
    source = file_of("torchao_0_9_0/int8wo")
    for word in ("--to", "--dialect"):
        qcts("convert", source, tmp_path / f"{word}.safetensors", word, "torchao_safetensors")
        qcts("convert", source, tmp_path / f"{word}.dense.safetensors", word, "dense")
    for ending in (".safetensors", ".dense.safetensors"):
        assert (tmp_path / f"--to{ending}").read_bytes() == (tmp_path / f"--dialect{ending}").read_bytes()
    assert inspect(tmp_path / "--to.safetensors")["tensors"][0]["type"] == "Int8Tensor"
