# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that a library cannot have written, in weights that are in containers other than their library's own."""

import json
import shutil

import pytest
from dialect_files import read_safetensors, write_safetensors
from joined_model import folder_of
from qcts_program import qcts
from test_poisons import WRITTEN, inspect, parts_of, poisons

torch = pytest.importorskip("torch", reason="the pickles of these tests are made by torch")
safetensors = pytest.importorskip("safetensors.torch", reason="the tensors of these tests are loaded by safetensors")

CHOSEN = [
    "autoawq_0_2_9/int4_g32", "bitsandbytes_0_50_2/int8_bf16", "compressed_tensors_0_20_0/fp4_bf16",
    "gptqmodel_7_7_0/int4_g32_act_order", "mlx_0_32_4/affine_bf16", "modelopt_0_47_0/nvfp4",
    "transformers_5_24_0_peers/fp8_blocks",
]  # fmt: skip
SHARD = "shard-00001-model-00001-of-00001.safetensors"


def as_pickle(folder, tensors):
    """Saves the model as transformers did before safetensors."""
    path = write_safetensors(folder / "model.safetensors", tensors)
    torch.save(safetensors.load_file(path), folder / "pytorch_model.bin")
    path.unlink()


def as_distributed(folder, tensors):
    """Saves the model as the one whole shard of torch.distributed.checkpoint's HuggingFaceStorageWriter."""
    (folder / "model.safetensors").unlink(missing_ok=True)
    offsets = {name: {"saved_offsets": [0] * len(shape)} for name, (_, shape, _) in tensors.items()}
    metadata = {"format": "pt", "DCP_VERSION": "1.0", "DCP_SHARDING_INFO": json.dumps(offsets)}
    write_safetensors(folder / SHARD, tensors, metadata)


@pytest.mark.parametrize("write", [as_pickle, as_distributed])
@pytest.mark.parametrize("id", CHOSEN)
def test_a_poison_is_found_in_every_container(id, write, tmp_path):
    """Protects: values are judged by what they mean, not by the file that holds them."""
    folder = tmp_path / "model"
    shutil.copytree(folder_of(id), folder)
    tensors, dialect = read_safetensors(folder / "model.safetensors"), inspect(folder)["dialect"]
    write(folder, tensors)
    qcts("check", folder)
    looked_at = 0
    for part, name in list(parts_of(id, tensors)):
        dtype, shape, data = tensors[name]
        for number, raw in poisons(name, dtype).items():
            if (dialect, part, dtype, number) in WRITTEN or number not in ("nan", "negative"):
                continue
            place = len(data) // len(raw) * 2 // 3 * len(raw)
            write(folder, tensors | {name: (dtype, shape, data[:place] + raw + data[place + len(raw) :])})
            looked_at += 1
            assert "finding" in qcts("check", folder, code=1).stderr, (name, number)
    assert looked_at
