# SPDX-License-Identifier: BSD-3-Clause
"""Times a real `generate` of a tiny Llama, to put beside the latency of linear layers: dense, int4, and int4 saved, re-saved by
qcts and reloaded. Needs transformers and torchao 0.18 in this Python. The greedy tokens of int4 must be the same before and after; exits
with 1 if they are not or if qcts changed a byte. Times are measured as in benchmark_fn of the transformers documentation: five warm-ups,
then the mean of torch's blocked_autorange. The three models alternate; figures are medians over the turns, with minimum and maximum.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch.utils.benchmark import Timer
from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
from torchao.quantization import quantize_
from transformers import LlamaConfig, LlamaForCausalLM

WARM_UPS = 5
PROMPT_TOKENS, NEW_TOKENS = 16, 32
GROUP_SIZE = 128


def noise(shape, seed):
    """Returns scaled integers of a linear congruential generator: the same weights on every machine."""
    count = 1
    for side in shape:
        count *= side
    index = torch.arange(count, dtype=torch.int64) + seed * 1_000_003
    bits = (index * 6364136223846793005 + 1442695040888963407) >> 40
    return ((bits & 0xFFFF).to(torch.float32) / 32768.0 - 1.0).reshape(shape) * 0.125


def tiny_llama(width, layers):
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=PROMPT_TOKENS + NEW_TOKENS,
        dtype="bfloat16",
    )
    model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    for seed, (name, parameter) in enumerate(sorted(model.named_parameters())):
        if not name.endswith("norm.weight"):
            parameter.data = noise(tuple(parameter.shape), seed).to(torch.bfloat16)
    return model


def is_quantized(module, name):
    return isinstance(module, torch.nn.Linear) and "lm_head" not in name


def quantized(width, layers):
    model = tiny_llama(width, layers)
    quantize_(model, PrototypeInt4WeightOnlyConfig(group_size=GROUP_SIZE, set_inductor_config=False), filter_fn=is_quantized)
    return model


def reloaded(model, width, layers, qcts, folder):
    """Returns the model after its state dict went through torch.save, qcts resave and torch.load."""
    first, second = folder / "int4.pt", folder / "again.pt"
    torch.save(model.state_dict(), first)
    subprocess.run([qcts, "resave", first, second], check=True, capture_output=True)
    if first.read_bytes() != second.read_bytes():
        sys.exit("generate_bench: qcts resave changed the file")
    again = tiny_llama(width, layers)
    again.load_state_dict(torch.load(second, weights_only=True), assign=True)
    return again, first.stat().st_size


def tokens_of(model):
    prompt = torch.tensor([[1 + 7 * i % 251 for i in range(PROMPT_TOKENS)]])
    with torch.no_grad():
        return model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False,
            pad_token_id=0,
        )[0].tolist()


def seconds_of(model, least_s):
    for _ in range(WARM_UPS):
        tokens_of(model)
    timer = Timer(stmt="f(model)", globals={"f": tokens_of, "model": model}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=least_s).mean


def rows(models, turns, least_s):
    """Times the models interleaved, every other turn in reverse order."""
    samples = {name: [] for name in models}
    for turn in range(turns):
        for name in sorted(models, reverse=turn % 2 == 1):
            samples[name].append(seconds_of(models[name], least_s))
    return [
        {
            "model": name,
            "tokens_per_s": NEW_TOKENS / statistics.median(seconds),
            "least_tokens_per_s": NEW_TOKENS / max(seconds),
            "greatest_tokens_per_s": NEW_TOKENS / min(seconds),
            "turns": turns,
        }
        for name, seconds in samples.items()
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--qcts", default="build/release/bin/qcts")
    parser.add_argument("--out", type=Path, default=Path("out/latency/generate.json"))
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--least-s", type=float, default=1.0, help="minimum seconds of each blocked_autorange")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = {"dense": tiny_llama(words.width, words.layers), "int4": quantized(words.width, words.layers)}
        models["int4_reloaded"], file_bytes = reloaded(models["int4"], words.width, words.layers, words.qcts, Path(folder))
    tokens = {name: tokens_of(model) for name, model in models.items()}
    equal = tokens["int4"] == tokens["int4_reloaded"]
    dense_bytes = sum(p.numel() * p.element_size() for p in models["dense"].parameters())
    report = {
        "qcts": "generate",
        "schema": 1,
        "new_tokens": NEW_TOKENS,
        "threads": torch.get_num_threads(),
        "group_size": GROUP_SIZE,
        "tokens_equal": equal,
        "tokens_as_dense": sum(a == b for a, b in zip(tokens["dense"], tokens["int4"], strict=True)) - PROMPT_TOKENS,
        "dense_bytes": dense_bytes,
        "file_bytes": file_bytes,
        "rows": rows(models, words.turns, words.least_s),
    }
    words.out.parent.mkdir(parents=True, exist_ok=True)
    words.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for row in report["rows"]:
        print(
            f"  generate {row['model']:14} {row['tokens_per_s']:8.1f} tokens/s "
            f"[{row['least_tokens_per_s']:.1f}, {row['greatest_tokens_per_s']:.1f}] over {row['turns']} turns"
        )
    print(f"  int4 and int4 reloaded give {'the same' if equal else 'DIFFERENT'} {NEW_TOKENS} tokens")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
