#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes reference/dialects/encoders/tied_weights.inc from the installed transformers (5.24.0).

    python scripts/transformers_ties.py > reference/dialects/encoders/tied_weights.inc

Reads _tied_weights_keys of every model class, and whether its configuration ties words by default. Patterns that name
no parameter, such as those of detection heads, are left out.
"""

import importlib
import inspect
import pkgutil
import re
import sys
from collections import defaultdict

import transformers
from transformers.modeling_utils import PreTrainedModel

WIDTH, INDENT = 118, "    "
NAME = re.compile(r"[A-Za-z0-9_.]+\.(weight|bias)")


def model_classes():
    for package in pkgutil.iter_modules(importlib.import_module("transformers.models").__path__):
        name = f"transformers.models.{package.name}.modeling_{package.name}"
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        for cls in vars(module).values():
            if inspect.isclass(cls) and issubclass(cls, PreTrainedModel) and cls.__module__ == name:
                yield cls


def ties_by_default(cls):
    try:
        return bool(getattr(cls.config_class(), "tie_word_embeddings", False))
    except Exception:  # a configuration that needs arguments says nothing by default
        return False


def rows():
    """(tied by default, pairs) -> names of architectures."""
    found = defaultdict(set)
    for cls in model_classes():
        keys = cls._tied_weights_keys
        if not isinstance(keys, dict) or cls.config_class is None:
            continue
        pairs = tuple((tied, source) for tied, source in keys.items() if NAME.fullmatch(tied) and NAME.fullmatch(source))
        if pairs:
            found[ties_by_default(cls), pairs].add(cls.__name__)
    return found


def quoted(words, indent):
    """C string literals of words, one a line where they are long."""
    lines, line = [], ""
    for word in words:
        if line and len(indent) + len(line) + len(word) + 6 > WIDTH:
            lines.append(line + " ")
            line = ""
        line += (" " if line else "") + word
    return ("\n" + indent).join(f'"{text}"' for text in [*lines, line])


if __name__ == "__main__":
    print(f"""// SPDX-License-Identifier: BSD-3-Clause
// Made by scripts/transformers_ties.py from transformers {transformers.__version__}.
// QCTS_TIED(by_default, pairs, architectures): pairs are "TIED=SOURCE" of a state dict, architectures the words of
// config.json. by_default says whether a config.json without tie_word_embeddings ties them.
// clang-format off""")
    for (by_default, pairs), names in sorted(rows().items(), key=lambda row: (-len(row[1]), row[0])):
        tied = quoted([f"{name}={source}" for name, source in pairs], INDENT)
        print(f"QCTS_TIED({str(by_default).lower()}, {tied},\n{INDENT}{quoted(sorted(names), INDENT)})")
    print("// clang-format on")
