# SPDX-License-Identifier: BSD-3-Clause
"""Loads folders of `qcts quantize` with transformers: the logits must be those of the model that transformers quantizes
itself, bit for bit, and the folder that it writes must say the same.
"""

import json
import subprocess

import pytest
from qcts_program import BIN, pinned, qcts

torch = pytest.importorskip("torch", reason="torch is not installed")
pinned("torchao", "0.18")
pinned("transformers", "5.24")

import torchao.quantization as q  # noqa: E402
from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig  # noqa: E402
from torchao.quantization.granularity import PerGroup  # noqa: E402
from transformers import (  # noqa: E402
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    LlamaConfig,
    LlavaConfig,
    MixtralConfig,
    OPTConfig,
    Qwen2Config,
    TorchAoConfig,
)

SIZES = {
    "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 96, "max_position_embeddings": 64,
}  # fmt: skip
OPT = {"hidden_size": 128, "ffn_dim": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 96}
MODELS = {
    "llama": LlamaConfig(**SIZES),
    "llama_tied": LlamaConfig(**SIZES, tie_word_embeddings=True),
    "llama_12_layers": LlamaConfig(**SIZES | {"num_hidden_layers": 12}),
    "qwen2": Qwen2Config(**SIZES),
    "opt": OPTConfig(**OPT, word_embed_proj_dim=128, max_position_embeddings=64),
}
PACK = {"DEFAULT": "default", "AVX2": "avx2", "AVX512": "avx512"}.get(torch.backends.cpu.get_cpu_capability(), "avx512")
CONFIGS = {
    "int8_row weight_only": lambda: q.Int8WeightOnlyConfig(version=2),
    "int8_row dyn_row_sym": lambda: q.Int8DynamicActivationInt8WeightConfig(version=2),
    "int8_g32 weight_only": lambda: q.Int8WeightOnlyConfig(version=2, granularity=PerGroup(32)),
    "fp8_row weight_only": lambda: q.Float8WeightOnlyConfig(),
    "intx_b4_g32_sym weight_only": lambda: q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
    "intx_b4_g128_sym dyn_token_asym": lambda: q.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(128)
    ),
    f"int4_tinygemm_g32 weight_only cpu_{PACK}": lambda: PrototypeInt4WeightOnlyConfig(group_size=32),
    f"int4_tinygemm_g128 weight_only cpu_{PACK}": lambda: PrototypeInt4WeightOnlyConfig(group_size=128),
}
PICKLED = "cpu_"  # torchao's safetensors layer has no Int4OpaqueTensor, so transformers cannot save it
# The larger models run with one configuration each.
EVERY = ("llama", "llama_tied", "opt")
PAIRS = [(name, config) for name in MODELS for config in CONFIGS if name in EVERY or config.startswith("int8_row dyn")]


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    """Folders of random models as transformers saves them; nothing is downloaded."""
    folders = {}
    for name, config in MODELS.items():
        torch.manual_seed(len(folders))
        folders[name] = tmp_path_factory.mktemp("floats") / name
        AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folders[name], max_shard_size="300KB")
    return folders


def load(folder, **options):
    return AutoModelForCausalLM.from_pretrained(folder, dtype="auto", **options)


def logits(model):
    with torch.no_grad():
        return model(torch.arange(1, 13)[None]).logits


def words_of(config):
    scheme, policy, *layout = config.split()
    return ["--scheme", scheme, "--activation", policy, *(["--layout", *layout] if layout else [])]


@pytest.mark.parametrize(("name", "config"), PAIRS)
def test_logits_are_those_of_transformers_own_quantization(name, config, floats, tmp_path):
    qcts("quantize", *words_of(config), floats[name], tmp_path / "out")
    want = load(floats[name], quantization_config=TorchAoConfig(CONFIGS[config]()))
    got, info = load(tmp_path / "out", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    kinds = {key: type(value).__name__ for key, value in want.state_dict().items()}
    assert {key: type(value).__name__ for key, value in got.state_dict().items()} == kinds
    assert len(set(kinds.values())) > 1
    assert torch.equal(logits(got), logits(want))


@pytest.mark.parametrize(("name", "config"), [pair for pair in PAIRS if PICKLED not in pair[1]])
def test_both_write_one_folder(name, config, floats, tmp_path):
    """The same weights and texts, cut by size as transformers cuts them; --like from its folder gives them again."""
    load(floats[name], quantization_config=TorchAoConfig(CONFIGS[config]())).save_pretrained(tmp_path / "theirs", max_shard_size="150KB")
    qcts("quantize", *words_of(config), "--max-shard-size", "150KB", floats[name], tmp_path / "ours")
    qcts("quantize", "--like", tmp_path / "theirs", "--max-shard-size", "150KB", floats[name], tmp_path / "like")
    for folder in ("ours", "like"):
        for path in (tmp_path / "theirs").glob("*.json"):
            assert json.loads((tmp_path / folder / path.name).read_text()) == json.loads(path.read_text()), (folder, path.name)
        done = subprocess.run([BIN, "diff", tmp_path / folder, tmp_path / "theirs", "--json", "--all"], capture_output=True, text=True)
        said = json.loads(done.stdout)
        where = {found["path"].split("[")[0] for found in said["e2"]["differences"]}
        assert said["e1"]["equal"], said["e1"]
        # Only --like knows the order of the modules, in which the metadata lists them; that of tied models lists the
        # head too, which is not stored.
        listed = {"__metadata__.tensor_names", "__metadata__.lm_head.weight"}
        tied = MODELS[name].tie_word_embeddings
        assert where <= (listed if tied else {"__metadata__.tensor_names"} if folder == "ours" else set())


def test_a_choice_of_layers_is_transformers_own(floats, tmp_path):
    """The modules that config.json lists keep transformers from quantizing the same layers."""
    words = ["--scheme", "int8_row", "--include", "*_proj", "--include", "lm_head", "--exclude", "up_proj"]
    qcts("quantize", *words, floats["llama"], tmp_path / "out")
    left = json.loads((tmp_path / "out/config.json").read_text())["quantization_config"]["modules_to_not_convert"]
    assert left == [f"model.layers.{i}.mlp.up_proj" for i in (0, 1)]
    own = load(floats["llama"], quantization_config=TorchAoConfig(CONFIGS["int8_row weight_only"](), modules_to_not_convert=left))
    assert type(own.lm_head.weight).__name__ == "Int8Tensor"
    assert torch.equal(logits(load(tmp_path / "out")), logits(own))


SIGHT = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 28, "patch_size": 14}
RENAMED = {
    "mixtral": (AutoModelForCausalLM, MixtralConfig(**SIZES, num_local_experts=3, num_experts_per_tok=2)),
    "llava": (
        AutoModelForImageTextToText,
        LlavaConfig(
            text_config=SIZES | {"model_type": "llama"},
            vision_config=SIGHT | {"model_type": "clip_vision_model", "projection_dim": 64},
            image_token_index=95,
        ),
    ),
}


@pytest.mark.parametrize("name", RENAMED)
def test_models_with_other_names_on_disk_are_those_of_transformers(name, tmp_path):
    """Experts that are fused in memory, prefixes that are reversed: from_pretrained gives the same bits, and the
    folder that transformers writes is read as the one of quantize.
    """
    auto, config = RENAMED[name]
    torch.manual_seed(3)
    auto.from_config(config, dtype=torch.bfloat16).save_pretrained(tmp_path / "float")
    own = TorchAoConfig(CONFIGS["int8_row weight_only"]())
    want = auto.from_pretrained(tmp_path / "float", dtype="auto", quantization_config=own)
    want.save_pretrained(tmp_path / "theirs")
    qcts("quantize", "--scheme", "int8_row", tmp_path / "float", tmp_path / "ours")
    for folder in ("ours", "theirs"):
        qcts("check", tmp_path / folder)
    got, info = auto.from_pretrained(tmp_path / "ours", dtype="auto", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    theirs, ours = want.state_dict(), got.state_dict()
    assert {key: type(value) for key, value in theirs.items()} == {key: type(value) for key, value in ours.items()}
    assert len({type(value) for value in theirs.values()}) > 1
    for key, value in theirs.items():
        plain = [t.dequantize() if hasattr(t, "qdata") else t for t in (value, ours[key])]
        assert torch.equal(*plain), key
    said = json.loads(
        subprocess.run([BIN, "diff", tmp_path / "ours", tmp_path / "theirs", "--json"], capture_output=True, text=True).stdout
    )
    assert said["e1"]["equal"], said["e1"]
