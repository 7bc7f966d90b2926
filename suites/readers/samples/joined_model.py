# SPDX-License-Identifier: BSD-3-Clause
"""A copy of a golden of another library, whose tensors and configuration a test may change."""

import json
import shutil

from dialect_files import FIXTURES, GOLDENS, read_safetensors, write_safetensors


def folder_of(id):
    return FIXTURES / GOLDENS[id]["file"]


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

    def change(self, name, place, value):
        dtype, shape, data = self.tensors[name]
        self.tensors[name] = dtype, shape, data[:place] + bytes([value]) + data[place + 1 :]


def without(*keys):
    def change(model):
        for key in keys:
            model.said.pop(key, None)

    return change


def saying(**words):
    return lambda model: model.said.update(words)


def extra_part(name):
    return lambda model: model.tensors.update({name: ("F32", [1], bytes(4))})
