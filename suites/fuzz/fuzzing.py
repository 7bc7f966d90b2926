# SPDX-License-Identifier: BSD-3-Clause
"""Runs qcts_fuzz over its targets and reports executions, corpus, coverage and findings.

fuzzing.py --build build/fuzz --seconds 600 [--targets zip,pickle] [--jobs 2] [--corpus DIR] [--until 10000000]

Executions accumulate over runs of the same program (totals.json next to the corpus).
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEED_FOLDERS = ("fixtures/golden", "fixtures/malformed", "reference/formats/testdata")
COMPILERS = ("clang++-16", "clang++-19", "clang++-18", "clang++-17", "clang++-15", "clang++-14", "clang++")
# Stack traces for every allocation and a large quarantine halve the speed; findings are replayed with them.
SANITIZER_OPTIONS = "malloc_context_size=1:quarantine_size_mb=16:detect_stack_use_after_return=0"
DICTIONARIES = {
    name: Path(__file__).with_name(f"{name}.dict") for name in ("torch", "safetensors", "gguf")
}
DEBIAN = "Debian: apt-get install clang-16 libclang-rt-16-dev"


@dataclass
class Result:
    target: str
    executions: int = 0
    seconds: float = 0
    corpus_files: int = 0
    corpus_bytes: int = 0
    covered_edges: int = 0
    known_edges: int = 0
    findings: list[str] = field(default_factory=list)
    error: str = ""


def find_clang():
    """Returns (compiler, "") for the first clang that links libFuzzer, otherwise ("", reason)."""
    for name in COMPILERS:
        compiler = shutil.which(name)
        if not compiler:
            continue
        probe = [compiler, "-fsanitize=fuzzer", "-x", "c++", "-", "-o", "/dev/null"]
        body = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
        done = subprocess.run(probe, input=body, capture_output=True, text=True)
        if done.returncode == 0:
            return compiler, ""
        return "", f"{compiler} cannot link libFuzzer: its run-time library is missing ({DEBIAN})"
    return "", f"libFuzzer needs clang, which is not installed ({DEBIAN})"


def build(folder, compiler, jobs=2):
    """Configures preset fuzz with this clang, builds qcts_fuzz and returns its path."""
    plain = compiler.replace("clang++", "clang")
    configure = ["cmake", "--preset", "fuzz", "-B", folder, f"-DCMAKE_CXX_COMPILER={compiler}"]
    configure += [f"-DCMAKE_C_COMPILER={plain}", f"-DPython3_EXECUTABLE={sys.executable}"]
    if not (Path(folder) / "build.ninja").exists():
        subprocess.run(configure, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, f"-j{jobs}", "qcts_fuzz"], cwd=ROOT, check=True, stdout=sys.stderr)
    return Path(folder) / "bin" / "qcts_fuzz"


def target_lengths(program):
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    return {name: int(length) for name, length in (line.split() for line in listed.splitlines())}


def write_seeds(program, folder):
    words = [program, f"--write-seeds={folder}", *(ROOT / f for f in SEED_FOLDERS)]
    subprocess.run(words, check=True, capture_output=True)


def read_log(text, result):
    """Parses the counts in libFuzzer's report."""
    executed = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text) or re.findall(
        r"^#(\d+)\s", text, re.M
    )
    result.executions = int(executed[-1]) if executed else 0
    covered = re.findall(r"cov: (\d+)", text)
    result.covered_edges = int(covered[-1]) if covered else 0
    counters = re.search(r"\((\d+) inline 8-bit counters\)", text)
    result.known_edges = int(counters.group(1)) if counters else 0


def fuzz(program, target, longest, folder, seconds, seed=1):
    """Fuzzes one target for a limited time. Findings are kept in folder/findings."""
    result = Result(target)
    corpus, findings = folder / "corpus" / target, folder / "findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    words = [program, f"--target={target}", corpus, folder / "seeds" / target, f"-max_len={longest}"]
    words += [f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={findings}/{target}-"]
    words += ["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]
    words.append(f"-dict={DICTIONARIES.get(target, DICTIONARIES['torch'])}")
    begin = time.monotonic()
    environment = os.environ | {"ASAN_OPTIONS": SANITIZER_OPTIONS}
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, errors="replace", env=environment
    )
    result.seconds = round(time.monotonic() - begin, 1)
    read_log(done.stderr, result)
    result.findings = sorted(str(f) for f in findings.glob(f"{target}-*"))
    files = [f.stat().st_size for f in corpus.iterdir()]
    result.corpus_files, result.corpus_bytes = len(files), sum(files)
    if done.returncode != 0:
        result.error = f"exit code {done.returncode}: " + " | ".join(
            line
            for line in done.stderr.splitlines()
            if "ERROR" in line or "what()" in line or "runtime error" in line
        )
        (findings / f"{target}.log").write_text(done.stderr[-20000:])
    return result


def add_up(results, program, path):
    """Adds this run to the totals of the same program; returns target -> executions in all runs."""
    digest = hashlib.sha256(Path(program).read_bytes()).hexdigest()
    known = json.loads(path.read_text()) if path.exists() else {}
    totals = known.get("executions", {}) if known.get("program") == digest else {}
    for result in results:
        totals[result.target] = totals.get(result.target, 0) + result.executions
    path.write_text(json.dumps({"program": digest, "executions": totals}, indent=1))
    return totals


def table(results):
    rows = [("target", "executions", "per second", "corpus", "bytes", "edges covered", "findings")]
    for r in results:
        share = f"{r.covered_edges} ({100 * r.covered_edges / r.known_edges:.0f} %)" if r.known_edges else "-"
        speed = f"{r.executions / r.seconds:.0f}" if r.seconds else "-"
        rows.append(
            (r.target, f"{r.executions:,}", speed, r.corpus_files, r.corpus_bytes, share, len(r.findings))
        )
    total = sum(r.executions for r in results)
    rows.append(
        (
            "all",
            f"{total:,}",
            "",
            sum(r.corpus_files for r in results),
            "",
            "",
            sum(len(r.findings) for r in results),
        )
    )
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", default=str(ROOT / "build/fuzz"))
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--targets", default="", help="comma-separated; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="number of targets to run in parallel")
    parser.add_argument("--corpus", type=Path, help="kept from run to run; BUILD/fuzzing by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--until", type=int, default=0, help="repeat until there are that many executions")
    options = parser.parse_args()
    compiler, why = find_clang()
    if not compiler:
        print(f"fuzz: {why}", file=sys.stderr)
        return 5
    program = build(options.build, compiler)
    folder = options.corpus or Path(options.build) / "fuzzing"
    write_seeds(program, folder / "seeds")
    lengths = target_lengths(program)
    wanted = options.targets.split(",") if options.targets else list(lengths)
    if unknown := [name for name in wanted if name not in lengths]:
        print(f"fuzz: no target {', '.join(unknown)}; known: {', '.join(lengths)}", file=sys.stderr)
        return 2
    for number in range(1 << 30):
        with ThreadPoolExecutor(options.jobs) as pool:
            seed = options.seed + number
            run = lambda name: fuzz(program, name, lengths[name], folder, options.seconds, seed)  # noqa: E731, B023
            results = list(pool.map(run, wanted))
        totals = add_up(results, program, folder / "totals.json")
        (folder / "results.json").write_text(json.dumps([asdict(r) for r in results], indent=1))
        print(table(results))
        print(f"executions of this program in all: {sum(totals.values()):,} {totals}", flush=True)
        bad = [r for r in results if r.findings or r.error]
        for r in bad:
            print(f"{r.target}: {r.error} {' '.join(r.findings)}")
        if bad or sum(totals.values()) >= options.until:
            return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
