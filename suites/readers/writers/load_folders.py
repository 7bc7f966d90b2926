# SPDX-License-Identifier: BSD-3-Clause
"""Loads folders with the installed transformers and torchao.

    python load_folders.py FOLDER...

The last line printed is JSON: folder -> the names of its weights' classes, or the error.
"""

import contextlib
import importlib
import json
import sys

from transformers import AutoModelForCausalLM

# Whoever loads packs of a CPU has to import the class, as `qcts quantize` says.
with contextlib.suppress(ImportError):
    importlib.import_module("torchao.prototype.quantization.int4")


def loaded(folder):
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", output_loading_info=True)
    wrong = [name for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") for name in info[kind]]
    if wrong:
        return f"wrong keys: {wrong}"
    return sorted({type(value.data if hasattr(value, "data") else value).__name__ for value in model.state_dict().values()})


if __name__ == "__main__":
    found = {}
    for folder in sys.argv[1:]:
        try:
            found[folder] = loaded(folder)
        except Exception as error:
            found[folder] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps(found))
