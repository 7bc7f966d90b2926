#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes reference/dialects/names/transformers_names.inc: what the installed transformers knows about names.

    python scripts/transformers_names.py [--check]

Each row is a key and JSON. "t:NAME" has the renames and conversions, in order, from names on disk to names in memory for a
model_type or class (conversion_mapping.py). "c:CLASS" is a model class: base_model_prefix, tied weights,
weights that are not saved, the models within it, and the weights that these tie ("within"). "m:TYPE" is a model_type: the classes of
AutoModel and AutoModelForCausalLM, and tie_word_embeddings if config.json has none. "e:" has the names of output embeddings and
their biases with the names of what they are tied to, in any class. --check compares with the file and writes nothing.
"""

import argparse
import inspect
import json
import os
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "fixtures/make/blind"))
import small_models  # noqa: E402
import transformers  # noqa: E402
from transformers import PreTrainedModel, conversion_mapping  # noqa: E402
from transformers import core_model_loading as core  # noqa: E402
from transformers.models.auto import modeling_auto  # noqa: E402

FILE = ROOT / "reference/dialects/names/transformers_names.inc"
CAUSAL_CLASSES = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
MAPPING = conversion_mapping._build_checkpoint_conversion_mapping()


def transform_row(transform):
    """Returns one rename: the patterns in the order in which they are tried, and the text instead of a match."""
    row = {}
    order = sorted(range(len(transform.source_patterns)), key=lambda i: -len(transform.source_patterns[i]))
    branches = transform.compiled_sources.pattern
    for place, index in reversed(list(enumerate(order))):
        begin = branches.index(f"(?P<g{index}>")
        row.setdefault("from", {})[str(index)] = branches[begin:].removeprefix(f"(?P<g{index}>").removesuffix(")")
        branches = branches[: begin - 1] if place else ""
    row["from"] = [[int(index), pattern] for index, pattern in reversed(row["from"].items())]
    row["to"] = transform.target_patterns
    if isinstance(transform, core.WeightConverter):
        row["ops"] = [type(op).__name__ for op in transform.operations]
    elif isinstance(transform, core.GroupWeightRename):
        row["group"] = True
    elif isinstance(transform, core.Inkling2IndexOffsetWeightRename):
        row["offset"] = transform.offset
    elif isinstance(transform, core.LayerPairCollapse):
        row["pairs"] = True
    return row


def key_of(config, part, depth=0):
    """Returns the dotted keys under which `part` is in `config`; None if it is not there."""
    if part is config:
        return ""
    for key in getattr(type(config), "sub_configs", None) or {}:
        held = getattr(config, key, None)
        if held is not None and depth < 4 and (found := key_of(held, part, depth + 1)) is not None:
            return f"{key}.{found}".rstrip(".")
    return None


def models_within(model, base_classes):
    """Yields (path, model, key in config.json or None, "base", "lm" or None) of the models in a model: the class is the one of
    AutoModel or AutoModelForCausalLM if it follows from config.json. Models within such a model are left out.
    """
    skipped = ()
    for path, module in model.named_modules():
        if not isinstance(module, PreTrainedModel) or not path or path.startswith(skipped):
            continue
        name, kind, key = type(module).__name__, module.config.model_type, key_of(model.config, module.config)
        auto = "base" if base_classes.get(kind) == name else "lm" if CAUSAL_CLASSES.get(kind) == name else None
        if key and auto:
            skipped += (path + ".",)
        yield path, module, key, auto if key else None


def renames_within(model, base_classes):
    """Returns [path, class, model_type, key in config.json or None] of the models in a model whose names may change.

    The class is None if it follows from config.json, as a vision tower's does, or "lm" if it is AutoModelForCausalLM's.
    """
    rows = []
    for path, module, key, auto in models_within(model, base_classes):
        name, kind = type(module).__name__, module.config.model_type
        if auto:
            rows.append([path, "lm" if auto == "lm" else None, None, key])
        elif name in MAPPING or kind in MAPPING:
            rows.append([path, name, kind, None])
    return rows


def ties_of(model_class):
    """Returns the weights that a class ties, target -> source; None if there are none."""
    ties = getattr(model_class, "_tied_weights_keys", None)
    return ties if isinstance(ties, dict) and ties else None


def ties_within(model, base_classes):
    """Returns [path, key in config.json, its ties] of the models in a model whose class does not follow from config.json;
    the key, which is empty for the model's own configuration, says whether they are tied.
    """
    found = models_within(model, base_classes)
    return [[path, key or "", ties] for path, module, key, auto in found if not auto and (ties := ties_of(type(module)))]


def has_module(model_class, name):
    """Returns whether a model of the class has a module of this name. T5's heads have none with their base_model_prefix."""
    classes = (c for c in model_class.__mro__ if c.__module__.startswith("transformers.") and c is not PreTrainedModel)
    sets = re.compile(rf"\bself\.{name}\s*[:=]|setattr\(self, self\.base_model_prefix,")
    return any(sets.search(inspect.getsource(c)) for c in classes)


def prefix_of(model_class, base_classes):
    """Returns the base model's name in the class or, for a base model, its name in its heads."""
    prefix = model_class.base_model_prefix
    return prefix if model_class.__name__ in base_classes.values() or (prefix and has_module(model_class, prefix)) else ""


def class_row(model_class, base_classes):
    row = {"prefix": prefix} if (prefix := prefix_of(model_class, base_classes)) else {}
    skip = model_class._keys_to_ignore_on_save
    if ties := ties_of(model_class):
        row["ties"] = ties
    if isinstance(skip, list | set) and skip:
        row["unsaved"] = sorted(skip)
    config_class = model_class.config_class
    parts = getattr(config_class, "sub_configs", None)
    beside = vars(sys.modules[model_class.__module__])  # the classes of its own file, its base model among them
    may_rename = parts or config_class.model_type in MAPPING or not MAPPING.keys().isdisjoint(beside)
    others = [value for value in beside.values() if isinstance(value, type) and value is not model_class]
    if not may_rename and not any(map(ties_of, others)):
        return row
    model = small_models.on_meta(model_class)
    if may_rename:
        row["type"] = config_class.model_type
    if model is None:
        return row | {"unbuilt": True} if may_rename else row  # no small configuration is known: its models within are not
    if may_rename and (models := renames_within(model, base_classes)):
        row["models"] = models
    if within := ties_within(model, base_classes):
        row["within"] = within
    return row


def embedding_pairs(found):
    """Returns the literal names of tied embeddings and biases."""
    pairs = set()
    for row in (row for key, row in found.items() if key.startswith("c:")):
        pairs |= set(row.get("ties", {}).items())
        for path, _, ties in row.get("within", []):
            pairs |= {(f"{path}.{target}", f"{path}.{source}") for target, source in ties.items()}
    plain = re.compile(r"[A-Za-z_.]+\.(weight|bias)")
    of_embedding = re.compile(r"(.*\.)?(\w*embed\w*|wte|shared|w)\.weight|.*\.bias")
    literal = [pair for pair in pairs if all(plain.fullmatch(name) for name in pair)]
    return sorted([target, source] for target, source in literal if of_embedding.fullmatch(source))


def rows():
    classes, base_classes = small_models.architectures(), small_models.base_classes()
    found = {f"t:{name}": [transform_row(transform) for transform in transforms] for name, transforms in MAPPING.items()}
    for name, model_class in classes.items():
        found[f"c:{name}"] = class_row(model_class, base_classes)
    ties = small_models.tie_defaults()
    for kind in sorted(base_classes.keys() | ties.keys()):
        row = {"base": base_classes[kind]} if kind in base_classes else {}
        row |= {"lm": CAUSAL_CLASSES[kind]} if kind in CAUSAL_CLASSES else {}
        found[f"m:{kind}"] = row | ({"tie": ties[kind]} if kind in ties else {})
    found["e:"] = embedding_pairs(found)
    return found


def text():
    lines = [
        "// SPDX-License-Identifier: BSD-3-Clause",
        f"// Made by scripts/transformers_names.py from transformers {transformers.__version__}.",
        "// clang-format off",
    ]
    for key, value in sorted(rows().items()):
        said = json.dumps(value, separators=(",", ":"))
        lines.append(f'{{"{key}", R"json({said})json"}},')
    return "\n".join([*lines, "// clang-format on"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    made = text()
    if not options.check:
        FILE.write_text(made)
        return 0
    before, after = FILE.read_text().splitlines(), made.splitlines()
    changed = [*(set(before) ^ set(after))]
    for line in sorted(changed)[:20]:
        print(("- " if line in before else "+ ") + line[:160])
    print(f"{FILE.relative_to(ROOT)}: {len(changed)} lines differ from transformers {transformers.__version__}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
