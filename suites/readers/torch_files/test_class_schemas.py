# SPDX-License-Identifier: BSD-3-Clause
"""Every class of torchao that `dequantize` knows has a schema, so no note says that it has none; slices without elements come out empty."""

import re

import pytest
from dialect_files import read_safetensors
from qcts_program import ROOT, pinned, qcts

torch = pinned("torch", "2.13")
pinned("torchao", "0.18")

from torchao.optim.subclass_4bit import OptimState4bit  # noqa: E402
from torchao.optim.subclass_8bit import OptimState8bit  # noqa: E402
from torchao.optim.subclass_fp8 import OptimStateFp8  # noqa: E402
from torchao.prototype.quantized_training.bitnet import BitNetTrainingLinearWeight  # noqa: E402
from torchao.prototype.quantized_training.int8 import Int8QuantizedTrainingLinearWeight  # noqa: E402
from torchao.quantization import Float8Tensor, Int8Tensor  # noqa: E402
from torchao.quantization.granularity import PerRow, PerTensor  # noqa: E402

CLASSES = ROOT / "reference/dialects/classes"
WEIGHT = torch.linspace(-1, 1, 64 * 128).reshape(64, 128)


def test_every_class_that_is_dequantized_has_a_schema():
    """The words in the sources of dequantize(), compared with the classes of today's generation and their schemas."""
    globals_ = (ROOT / "reference/formats/pickle/globals_torchao.cc").read_text()
    today = set()
    for module, names in re.findall(r'\{"(torchao\.[\w.]+)",\s*((?:"[^"]*"\s*)+)\}', globals_):
        first = module.startswith(
            ("torchao.dtypes", "torchao.prototype.dtypes", "torchao.quantization.linear_activation", "torchao.quantization.weight_tensor")
        )
        today |= set() if first else set(" ".join(re.findall(r'"([^"]*)"', names)).split())
    schemas = set(
        re.findall(r'\{"(\w+)",\n|names_of\("(\w+)"', (CLASSES / "schema.cc").read_text() + (CLASSES / "training_schemas.cc").read_text())
    )
    schemas = {name for pair in schemas for name in pair if name}
    known = set()
    for source in ("training.cc", "flat_affine.cc", "tables.cc", "block_floats.cc", "bit_shards.cc", "nf4.cc", "marlin.cc", "sparse.cc"):
        known |= set(re.findall(r'"([A-Z]\w+)"', (CLASSES / source).read_text()))
    known &= today
    assert len(known) > 12 and not known - schemas


MADE = {
    "OptimState8bit": lambda: OptimState8bit.zeros((4, 256)).copy_(torch.ones(4, 256)),
    "OptimState4bit": lambda: OptimState4bit.zeros((4, 256)).copy_(torch.ones(4, 256)),
    "OptimStateFp8": lambda: OptimStateFp8.zeros((4, 256)).copy_(torch.ones(4, 256)),
    "BitNetTrainingLinearWeight": lambda: BitNetTrainingLinearWeight(WEIGHT),
    "Int8QuantizedTrainingLinearWeight": lambda: Int8QuantizedTrainingLinearWeight.from_float(WEIGHT),
}


@pytest.mark.parametrize("name", MADE)
def test_no_note_says_that_a_class_has_no_schema(name, tmp_path):
    torch.save({"w": MADE[name]()}, tmp_path / "a.pt")
    done = qcts("dequantize", tmp_path / "a.pt", tmp_path / "o.safetensors")
    assert "schema" not in done.stderr and "w" in read_safetensors(tmp_path / "o.safetensors")
    qcts("check", tmp_path / "a.pt")


EMPTY = {
    "int8_tensor": lambda: Int8Tensor.from_hp(WEIGHT, PerTensor()),
    "int8_row": lambda: Int8Tensor.from_hp(WEIGHT, PerRow()),
    "float8_tensor": lambda: Float8Tensor.from_hp(WEIGHT, granularity=PerTensor()),
    "float8_row": lambda: Float8Tensor.from_hp(WEIGHT, granularity=PerRow()),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_a_slice_without_rows_is_empty(kind, tmp_path):
    """What an FSDP rank holds if it has no part of a tensor."""
    torch.save({"0.weight": EMPTY[kind]()[0:0], "0.bias": torch.ones(2)}, tmp_path / "a.pt")
    qcts("dequantize", tmp_path / "a.pt", tmp_path / "o.safetensors")
    assert read_safetensors(tmp_path / "o.safetensors")["0.weight"] == ("F32", [0, 128], b"")
