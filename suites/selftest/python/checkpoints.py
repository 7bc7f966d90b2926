#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A provider in Python that has no kernels, but loads and saves: what torch and safetensors make of each file.

qcts run --provider ./checkpoints.py; the adapter has to be next to this file or on PYTHONPATH.
"""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "kernels/abi"))  # in the repository
sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))  # where qcts is installed

import safetensors.torch  # noqa: E402
import torch  # noqa: E402
import torchao  # noqa: E402, F401  allows its tensors to torch.load(weights_only=True)
from qcts_provider import Provider, Refused  # noqa: E402


def load_save(source, target):
    unfinished = target + ".unfinished"
    if os.path.isdir(source):
        raise Refused("this provider cannot read a directory with shards")
    try:
        if source.endswith(".safetensors"):
            with safetensors.safe_open(source, "pt") as file:
                metadata = file.metadata()
            safetensors.torch.save_file(safetensors.torch.load_file(source), unfinished, metadata)
        else:
            torch.save(torch.load(source, weights_only=True), unfinished)
    except Exception as error:
        if os.path.exists(unfinished):
            os.remove(unfinished)
        raise Refused(f"{type(error).__name__}: {error}".splitlines()[0][:300], "invalid") from error
    os.rename(unfinished, target)


if __name__ == "__main__":
    Provider("torchfiles", version=torch.__version__, load_save=load_save).serve()
