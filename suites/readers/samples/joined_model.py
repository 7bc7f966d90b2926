# SPDX-License-Identifier: BSD-3-Clause
"""A copy of a golden of another library, whose tensors and configuration a test may change, and what qcts has to do with it."""

import json
import shutil

from dialect_files import FIXTURES, GOLDENS, read_safetensors, write_safetensors
from qcts_program import inspect, qcts


def folder_of(id):
    return FIXTURES / GOLDENS[id]["file"]


def dense_of(id):
    """Returns the weights that the library itself dequantized, as name -> (dtype, shape, bytes)."""
    expected = read_safetensors(FIXTURES / GOLDENS[id]["expected"])
    return {name.removesuffix("|dequant"): tensor for name, tensor in expected.items()}


def lone_file(id, folder):
    """Returns a copy of the golden's file without its configuration."""
    return shutil.copy(folder_of(id) / "model.safetensors", folder / "lone.safetensors")


class Model:
    def __init__(self, id, folder):
        self.folder = folder / "model"
        shutil.copytree(folder_of(id), self.folder)
        self.tensors = read_safetensors(self.folder / "model.safetensors")
        self.config = json.loads((self.folder / "config.json").read_text())

    @property
    def said(self):
        return self.config["quantization_config"]

    def write(self):
        write_safetensors(self.folder / "model.safetensors", self.tensors)
        (self.folder / "config.json").write_text(json.dumps(self.config))
        return self.folder

    def spread(self):
        """Writes the tensors to three files and an index of them, in place of one file."""
        places = {name: f"model-{number % 3}.safetensors" for number, name in enumerate(self.tensors)}
        (self.folder / "model.safetensors").unlink()
        for file in set(places.values()):
            write_safetensors(self.folder / file, {name: t for name, t in self.tensors.items() if places[name] == file})
        (self.folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
        return self.folder

    def change(self, name, place, value):
        dtype, shape, data = self.tensors[name]
        self.tensors[name] = dtype, shape, data[:place] + bytes([value]) + data[place + 1 :]


def changed(id, change, folder):
    """Writes a copy of the golden with one change, and returns where it is."""
    model = Model(id, folder)
    change(model)
    return model.write()


def without(*keys):
    def change(model):
        for key in keys:
            model.said.pop(key, None)

    return change


def saying(**words):
    return lambda model: model.said.update(words)


def extra_part(name):
    return lambda model: model.tensors.update({name: ("F32", [1], bytes(4))})


def lacking(name):
    return lambda model: model.tensors.pop(name)


def of_layers(words):
    """Says the words in both places where MLX says what it quantized."""

    def change(model):
        for key in ("quantization", "quantization_config"):
            model.config[key].update(words)

    return change


def require_bits(checkpoint, dense, out):
    qcts("dequantize", checkpoint, out)
    written = read_safetensors(out)
    assert dense and dense.keys() <= written.keys()
    for name, tensor in dense.items():
        assert written[name] == tensor, name


def require_refused_by_name(folder, word, out):
    """Neither check nor dequantize takes a format that qcts does not understand; both say the word."""
    assert word in qcts("check", folder, code=3, COLUMNS="1000").stdout
    assert word in qcts("dequantize", folder, out, code=1).stderr
    assert not out.exists()


def require_finding(folder, word, out, code=1):
    """check ends with the code, inspect has a finding with the word, and dequantize writes nothing."""
    qcts("check", folder, code=code)
    findings = [finding["text"] for finding in inspect(folder)["findings"]]
    assert any(word in text for text in findings), findings
    qcts("dequantize", folder, out, code=1)
    assert not out.exists()
