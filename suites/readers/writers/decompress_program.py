# SPDX-License-Identifier: BSD-3-Clause
"""A program that decompresses folders of compressed-tensors with the package itself, for test_convert_to.py:

    python decompress_program.py FOLDER OUT.safetensors [FOLDER OUT.safetensors ...]

It loads the tensors into a model as transformers does, and writes the dense weights. Under 0.12, which reads columns in any
order, it calls the package's decompressor for each weight.
"""

import json
import sys
from pathlib import Path

import compressed_tensors
import torch
from compressed_tensors.quantization import QuantizationConfig
from safetensors.torch import load_file, save_file


def loaded(folder):
    """Returns the tensors of all weight files, and quantization_config."""
    tensors = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        tensors |= load_file(path)
    return tensors, json.loads((Path(folder) / "config.json").read_text())["quantization_config"]


def modules_of(said):
    return [target for group in said["config_groups"].values() for target in group["targets"]]


def model_of(modules, tensors):
    """Returns a model of Linear layers with these dotted names."""
    model = torch.nn.Module()
    for name in modules:
        scale = tensors[f"{name}.weight_scale"]
        shape = tensors.get(f"{name}.weight_shape")
        rows, columns = (int(size) for size in (tensors[f"{name}.weight"].shape if shape is None else shape))
        parent, *inner = model, *name.split(".")[:-1]
        for word in inner:
            if not hasattr(parent, word):
                parent.add_module(word, torch.nn.Module())
            parent = getattr(parent, word)
        layer = torch.nn.Linear(columns, rows, bias=False, dtype=scale.dtype)
        parent.add_module(name.split(".")[-1], layer)
    return model


def decompress(tensors, said):
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization.lifecycle.apply import apply_quantization_config

    said = {key: value for key, value in said.items() if key not in ("quant_method", "version")}
    modules = modules_of(said)
    model = model_of(modules, tensors)
    config = QuantizationConfig(**said)
    apply_quantization_config(model, config)
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    own = {key: value for key, value in tensors.items() if key.rpartition(".")[0] in modules and not key.endswith(".bias")}
    for key, value in model.state_dict().items():
        assert own[key].shape == value.shape and own[key].dtype == value.dtype, (key, own[key].shape, value.shape, value.dtype)
    model.load_state_dict(own, strict=True)
    compressor.decompress_model(model)
    return {f"{name}.weight": model.get_submodule(name).weight.detach().contiguous() for name in modules}


def decompress_0_12(tensors, said):
    from compressed_tensors.compressors.quantized_compressors.pack_quantized import PackedQuantizationCompressor
    from compressed_tensors.quantization import QuantizationArgs

    dense, compressor = {}, PackedQuantizationCompressor()
    for group in said["config_groups"].values():
        args = QuantizationArgs(**group["weights"])
        for name in group["targets"]:
            parts = {key.rpartition(".")[2]: value for key, value in tensors.items() if key.rpartition(".")[0] == name}
            dense[f"{name}.weight"] = compressor.decompress_weight(parts, args).contiguous()
    return dense


def main():
    old = compressed_tensors.__version__.startswith("0.12.")
    for folder, out in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        save_file((decompress_0_12 if old else decompress)(*loaded(folder)), out)


if __name__ == "__main__":
    main()
