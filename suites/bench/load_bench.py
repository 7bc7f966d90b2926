# SPDX-License-Identifier: BSD-3-Clause
"""Times loading and saving a seeded checkpoint of 1 GiB and 400 tensors with qcts, torch, safetensors and plain system
calls.

    load_bench.py --build build/release --out out/load.json [--bytes N] [--rounds 11] [--cold-rounds 5] [--groups save]

All series of a table are interleaved in one run, so that each round is a set of pairs. Times are medians; ratios are
medians of the paired ratios with 95 % intervals (suites/timing/stats.h). Cold means that mincore found no page of the
file in the page cache before each sample, warm that it found all of them.
"""

import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

PAGE = 4096
# Our figure, its peer, and the target. A ratio is our speed relative to the peer: the peer's time divided by ours.
TARGETS = [
    ("open", "qcts map", None, "us", 2000),
    ("touch", "qcts touch, mapped", "plain touch, mapped", "ratio", 0.9),
    ("touch", "qcts map and touch", "plain map and touch", "shown", None),
    ("load", "qcts into memory", "plain parallel reads", "ratio", 0.9),
    ("check", "qcts map and CRC", "CRC of the mapped bytes", "ratio", 0.9),
    ("save", "qcts torch zip", "plain write", "ratio", 0.9),
    ("save", "qcts safetensors", "plain write", "ratio", 0.9),
]


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{words}: {answer['error']}")
        return answer


def own_memory(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0


def timed(body):
    """Times a Python function; returns it in the form of a qcts_load answer."""
    Path("/proc/self/clear_refs").write_text("5")
    before, begin = own_memory("VmRSS"), time.perf_counter()
    kept = body()
    us = (time.perf_counter() - begin) * 1e6
    answer = {"us": us, "peak_bytes": own_memory("VmHWM"), "before_bytes": before}
    del kept
    return answer


def python_series(zip_file, safe_file, out):
    """Returns the series that use torch and safetensors; none without torch."""
    try:
        import safetensors.torch as safe
        import torch
    except ImportError:
        return {}
    state = torch.load(zip_file, weights_only=True)

    def touch(tensors):
        return sum(int(t.view(torch.uint8).reshape(-1)[::PAGE].sum()) for t in tensors.values())

    def mapped():
        return torch.load(zip_file, weights_only=True, mmap=True)

    def opened():
        with safe.safe_open(safe_file, framework="pt") as file:
            return list(file.keys())

    def clones(tensors):
        return {name: tensor.clone() for name, tensor in tensors.items()}

    return {
        ("open", "torch.load(mmap=True)"): mapped,
        ("open", "safetensors safe_open"): opened,
        ("touch", "torch.load(mmap=True) and touch"): lambda: touch(mapped()),
        ("touch", "safetensors load_file and touch"): lambda: touch(safe.load_file(safe_file)),
        ("load", "torch.load"): lambda: torch.load(zip_file, weights_only=True),
        ("load", "safetensors load_file, cloned"): lambda: clones(safe.load_file(safe_file)),
        ("save", "torch.save"): lambda: torch.save(state, out / "theirs.pt"),
        ("save", "safetensors save_file"): lambda: safe.save_file(state, out / "theirs.safetensors"),
    }


def our_series(program, zip_file, safe_file, out):
    def save(verb, name, source):
        program("load", source)
        return program(verb, out / name)

    return {
        ("open", "qcts map"): lambda: program("open", zip_file),
        ("open", "qcts map, safetensors"): lambda: program("open", safe_file),
        ("touch", "qcts touch, mapped"): lambda: program("mapped_touch", zip_file),
        ("touch", "plain touch, mapped"): lambda: program("plain_mapped_touch", zip_file),
        ("touch", "qcts map and touch"): lambda: program("touch", zip_file),
        ("touch", "plain map and touch"): lambda: program("plain_touch", zip_file),
        ("load", "qcts into memory"): lambda: program("load", zip_file),
        ("load", "qcts into memory, safetensors"): lambda: program("load", safe_file),
        ("load", "plain parallel reads"): lambda: program("plain_load", zip_file),
        ("check", "qcts map and CRC"): lambda: program("check", zip_file),
        ("check", "CRC of the mapped bytes"): lambda: program("plain_check", zip_file),
        ("save", "qcts torch zip"): lambda: save("save", "ours.pt", zip_file),
        ("save", "qcts safetensors"): lambda: save("save", "ours.safetensors", safe_file),
        ("save", "plain write"): lambda: save("plain_save", "plain.bin", zip_file),
        ("copy", "memcpy"): lambda: program("memcpy", zip_file),
    }


def prepare(program, file, cold):
    """Loads the file into the page cache or evicts it; pages that another CPU has just used are evicted a little later."""
    for _ in range(50):
        share = program("evict" if cold else "warm", file)["resident"]
        if share <= 0.001 if cold else share >= 0.999:
            return
        time.sleep(0.1)
    state = "cold" if cold else "warm"
    raise RuntimeError(f"{file}: {share:.1%} of its pages cached before a {state} sample")


def measure(program, series, files, cold, rounds):
    """Takes one sample per series and round, alternating direction. Warm reads have three times as many rounds, because
    writing takes a hundred times as long.
    """
    read_rounds = rounds if cold else 3 * rounds
    samples = {key: [] for key in series}
    reads = {key: body for key, body in series.items() if key[0] not in ("save", "copy")}
    for round_number in range(read_rounds + 1):  # the first round is a warm-up and is discarded
        if round_number > rounds:
            series = reads
        order = list(series) if round_number % 2 else list(reversed(series))
        for key in order:
            for file in files:
                prepare(program, file, cold)
            answer = series[key]()
            if round_number:
                samples[key].append(answer)
    return samples


def decide(target, value):
    _, _, _, kind, limit = target
    if kind == "shown":
        return "shown"
    if kind == "us":
        return "met" if value["value"] < limit else "missed"
    if value["low"] is None or value["high"] is None:  # too few pairs for an interval
        return "undecided"
    return "met" if value["low"] >= limit else "missed" if value["high"] < limit else "undecided"


def rows_of(samples, cold, tensor_bytes):
    rows = []
    for (group, name), answers in samples.items():
        us = statistics.median(a["us"] for a in answers)
        rows.append(
            {
                "group": group,
                "name": name,
                "cache": "cold" if cold else "warm",
                "median_us": us,
                "samples_us": [a["us"] for a in answers],
                "gigabytes_per_second": None if group == "open" else tensor_bytes / us / 1e3,
                "peak_extra_bytes": max(0, max(a["peak_bytes"] - a["before_bytes"] for a in answers)),
            }
        )
    return rows


def ratios_of(program, samples, cold):
    results = []
    for target in TARGETS:
        group, ours, peer, kind, limit = target
        if (group, ours) not in samples:
            continue
        times = [a["us"] for a in samples[group, ours]]
        if kind == "us":
            value = {"value": statistics.median(times), "low": None, "high": None, "samples": len(times)}
        else:
            pairs = [a["us"] for a in samples[group, peer]]
            value = program("ratio", ",".join(map(repr, pairs)), ",".join(map(repr, times)))
            value = {k: v if v is not None and math.isfinite(v) else None for k, v in value.items()}
        results.append(
            {
                "group": group,
                "name": ours,
                "peer": peer,
                "cache": "cold" if cold else "warm",
                "kind": kind,
                "limit": limit,
                **value,
                "decision": decide(target, value),
            }
        )
    return results


def run(options):
    folder = Path(options.folder or Path(options.build) / "load_bench")
    folder.mkdir(parents=True, exist_ok=True)
    program = Program(Path(options.build) / "bin/qcts_load")
    zip_file, safe_file = folder / "made.pt", folder / "made.safetensors"
    try:
        made = program("make", zip_file, options.bytes, options.tensors, options.seed)
        program("make", safe_file, options.bytes, options.tensors, options.seed)
        series = our_series(program, zip_file, safe_file, folder)
        series |= {
            key: (lambda body=body: timed(body))
            for key, body in python_series(zip_file, safe_file, folder).items()
        }
        series = {key: body for key, body in series.items() if not options.groups or key[0] in options.groups.split(",")}
        report = {
            "qcts": "load",
            "schema": 1,
            "bytes": made["tensor_bytes"],
            "tensors": made["tensors"],
            "seed": options.seed,
            "threads": os.cpu_count(),
            "machine": platform.processor() or platform.machine(),
            "rows": [],
            "ratios": [],
        }
        for cold, rounds in ((False, options.rounds), (True, options.cold_rounds)):
            chosen = {
                k: v for k, v in series.items() if not cold or k[0] in ("open", "touch", "load", "check")
            }
            if rounds:
                samples = measure(program, chosen, (zip_file, safe_file), cold, rounds)
                report["rows"] += rows_of(samples, cold, made["tensor_bytes"])
                report["ratios"] += ratios_of(program, samples, cold)
        return report
    finally:
        program.process.stdin.close()
        program.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def row_text(row):
    speed = f"{row['gigabytes_per_second']:8.2f} GB/s" if row["gigabytes_per_second"] else " " * 13
    figures = f"{row['median_us'] / 1e3:10.2f} ms {speed} {row['peak_extra_bytes'] >> 20:6} MiB"
    return f"  {row['cache']}  {row['group']:<6} {row['name']:<34} {figures}"


def ratio_text(ratio):
    if ratio["kind"] == "us":
        figures = f": {ratio['value'] / 1e3:.2f} ms, limit {ratio['limit'] / 1e3:.0f} ms"
    else:
        known = None not in (ratio["low"], ratio["high"])
        interval = f"[{ratio['low']:.3f}, {ratio['high']:.3f}]" if known else "[too few samples]"
        figures = f" against {ratio['peer']}: {ratio['value']:.3f} {interval}"
        figures += f", at least {ratio['limit']}" if ratio["limit"] else ""
    return f"  {ratio['cache']}  {ratio['name']}{figures}: {ratio['decision']}"


def table(report):
    head = f"{report['bytes']:,} bytes in {report['tensors']} tensors, {report['threads']} threads"
    return "\n".join([head, *map(row_text, report["rows"]), *map(ratio_text, report["ratios"])])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--out", type=Path, default=Path("out/load.json"))
    parser.add_argument(
        "--folder", help="folder for the files; BUILD/load_bench by default, removed at the end"
    )
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--tensors", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--cold-rounds", type=int, default=5)
    parser.add_argument("--groups", default="", help="comma-separated: open,touch,load,check,save,copy; all by default")
    options = parser.parse_args()
    report = run(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1))
    print(table(report))
    return 1 if any(r["decision"] == "missed" and r["cache"] == "warm" for r in report["ratios"]) else 0


if __name__ == "__main__":
    sys.exit(main())
