# SPDX-License-Identifier: BSD-3-Clause
"""Times a real `generate` of a tiny Llama: dense, int4, and int4 saved, re-saved by qcts and reloaded. Needs transformers and torchao
0.18 in this Python. Each model is compiled as torchao's documentation does where there is a C++ compiler; the report says if it was not.

Three claims are decided by intervals, with the statistics of `qcts run`: int4 is faster than dense, before saving and after loading, and as
fast after loading as before. A time is the mean of torch's blocked_autorange after five warm-ups, as in benchmark_fn of the transformers
documentation. All models, and int4 once more, take turns in every round; every other round runs backward.

torchao is a peer, so a claim that fails is reported and does not gate; with `--gate latency` torchao itself is under judgement. Exit codes:
0; 1 if the greedy tokens of int4 differ after loading, if qcts changed a byte, or if a gating claim fails; 4 if one is inconclusive.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torchao
from torch.utils.benchmark import Timer
from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
from torchao.quantization import quantize_
from transformers import LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "kernels/plugins/python"))
import torch_compile  # noqa: E402

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


def us_of(model, least_s):
    timer = Timer(stmt="f(model)", globals={"f": tokens_of, "model": model}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=least_s).mean * 1e6


def compile_all(models):
    """Compiles the models in place. Returns why they are not compiled, or None; if one cannot be compiled, none is.

    Tokens are compared before: autotuning may choose kernels for the loaded weights that round otherwise.
    """
    if why := torch_compile.why_not_compiled():
        return why
    torch_compile.set_up()
    for model in models.values():
        model.generation_config.cache_implementation = "static"  # otherwise each token has another shape
        model.compile(mode=torch_compile.MODE)
    try:
        for model in models.values():
            tokens_of(model)
    except Exception as error:  # torch.compile raises what its passes raise
        for model in models.values():
            model._compiled_call_impl = model.generation_config.cache_implementation = None
        torch._dynamo.reset()
        return f"not compiled: {type(error).__name__}: {str(error).splitlines()[0]}"
    return None


def canary_us():
    """Returns the time of a fixed product: whether the machine's speed changed."""
    x = torch.ones(256, 256)
    timer = Timer("x @ x", globals={"x": x}, num_threads=1)
    return statistics.median(timer.timeit(20).mean for _ in range(11)) * 1e6


def samples_of(models, turns, least_s):
    """Returns {model: microseconds by round} and the canary's drift. `int4_again` is int4 once more."""
    models = models | {"int4_again": models["int4"]}
    for model in models.values():
        for _ in range(WARM_UPS):
            tokens_of(model)
    samples = {name: [] for name in models}
    before = canary_us()
    for turn in range(turns):
        for name in sorted(models, reverse=turn % 2 == 1):
            samples[name].append(us_of(models[name], least_s))
    return samples, canary_us() / before


def claims_of(samples, drift, subject, qcts):
    """Returns what `qcts speed` decides: status, doubt and the claims."""
    faster = {"claim": "faster", "against": "dense bfloat16 (torch)", "against_us": samples["dense"]}
    after = f"{subject} after loading"
    request = {
        "itself": {"again_us": samples["int4_again"], "first_us": samples["int4"]},
        "canary_drift": drift,
        "claims": [
            faster | {"subject": subject, "subject_us": samples["int4"]},
            faster | {"subject": after, "subject_us": samples["int4_reloaded"]},
            {
                "claim": "as_fast",
                "subject": after,
                "subject_us": samples["int4_reloaded"],
                "against": "before saving",
                "against_us": samples["int4"],
            },
        ],
    }
    done = subprocess.run([qcts, "speed"], input=json.dumps(request), capture_output=True, text=True)
    if done.returncode not in (0, 1, 4):
        sys.exit(f"generate_bench: qcts speed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def row_of(name, us):
    return {
        "model": name,
        "tokens_per_s": NEW_TOKENS / statistics.median(us) * 1e6,
        "least_tokens_per_s": NEW_TOKENS / max(us) * 1e6,
        "greatest_tokens_per_s": NEW_TOKENS / min(us) * 1e6,
        "turns": len(us),
    }


def report_of(words, models, file_bytes):
    tokens = {name: tokens_of(model) for name, model in models.items()}
    equal = tokens["int4"] == tokens["int4_reloaded"]
    not_compiled = compile_all(models) if words.compile else "not compiled: --no-compile"
    samples, drift = samples_of(models, words.turns, words.least_s)
    subject = f"generate of a tiny Llama, int4 by torchao {torchao.__version__}{'' if not_compiled else ', compiled'}"
    claims = claims_of(samples, drift, subject, words.qcts)
    return {
        "qcts": "generate",
        "schema": 1,
        "new_tokens": NEW_TOKENS,
        "threads": torch.get_num_threads(),
        "group_size": GROUP_SIZE,
        "compiled": torch_compile.MODE if not_compiled is None else not_compiled,
        "tokens_equal": equal,
        "tokens_as_dense": sum(a == b for a, b in zip(tokens["dense"], tokens["int4"], strict=True)) - PROMPT_TOKENS,
        "dense_bytes": sum(p.numel() * p.element_size() for p in models["dense"].parameters()),
        "file_bytes": file_bytes,
        "rows": [row_of(name, us) for name, us in samples.items() if name in models],
        "gate_latency": words.gate == "latency",
        "status": claims["status"],
        "doubt": claims["doubt"],
        "canary_drift": drift,
        "speed": claims["speed"],
        "samples_us": samples,
    }


def show(report):
    print(f"  generate: {report['compiled'] if report['compiled'].startswith('not') else 'compiled, mode ' + report['compiled']}")
    for row in report["rows"]:
        print(
            f"  generate {row['model']:14} {row['tokens_per_s']:8.1f} tokens/s "
            f"[{row['least_tokens_per_s']:.1f}, {row['greatest_tokens_per_s']:.1f}] over {row['turns']} turns"
        )
    print(f"  int4 and int4 reloaded give {'the same' if report['tokens_equal'] else 'DIFFERENT'} {NEW_TOKENS} tokens")
    for claim in report["speed"]:
        print(f"  {claim['status']:12} {claim['text']}{'' if report['gate_latency'] else ' (a peer: does not gate)'}")
    if report["doubt"]:
        print(f"  the measurement is not to be trusted: {report['doubt']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--qcts", default=str(ROOT / "build/release/bin/qcts"))
    parser.add_argument("--out", type=Path, default=Path("out/latency/generate.json"))
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--turns", type=int, default=16, help="an interval needs ten")
    parser.add_argument("--least-s", type=float, default=0.2, help="minimum seconds of each blocked_autorange")
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="time the models as they are")
    parser.add_argument("--gate", choices=["latency"], help="judge torchao: claims that do not hold fail")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = {"dense": tiny_llama(words.width, words.layers), "int4": quantized(words.width, words.layers)}
        models["int4_reloaded"], file_bytes = reloaded(models["int4"], words.width, words.layers, words.qcts, Path(folder))
    report = report_of(words, models, file_bytes)
    words.out.parent.mkdir(parents=True, exist_ok=True)
    words.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    show(report)
    if not report["tokens_equal"]:
        return 1
    return {"pass": 0, "fail": 1, "inconclusive": 4}[report["status"]] if report["gate_latency"] else 0


if __name__ == "__main__":
    sys.exit(main())
