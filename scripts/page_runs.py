# SPDX-License-Identifier: BSD-3-Clause
"""Made-up runs for the tests of report.html, and the checks that those tests make on a page."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import run_record

ROOT = Path(__file__).resolve().parent.parent
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))

OPS = ["quantize", "dequantize", "pack", "unpack", "linear"]
VARIANTS = ["scalar", "avx2", "avx512", "avx512vnni", "amx"]
HOSTILE = "</script><script>hacked = true</script><img src=x onerror='hacked = true'>"
WRONG = "row 3, column 0: want 0.25, got 0.5; hypothesis: scale of the previous row (predicts 9 of 9)"


def verdict(i, schemes):
    """Makes verdict i of 100,000; every 23rd failed, every fifth is declined."""
    op, variant = OPS[i % 5], VARIANTS[i // 5 % 5]
    scheme = schemes[i // 25 % len(schemes)]
    label = f"noise_m{1 + i % 17}_n{i}_k{64 + i % 9}_bf16"
    status = "fail" if i % 23 == 0 else "not_supported" if i % 5 == 4 else "pass"
    reason = {"pass": "", "fail": HOSTILE if i == 23 else WRONG, "not_supported": f"needs amx_tile: {i % 7}"}[status]
    case_id = f"numerics.{op}/{scheme}/{label}"
    return {"case_id": case_id, "provider": "acme", "variant": variant, "status": status, "reason": reason, "measures": [],
            "evidence": ["reference"], "rerun": f"qcts run --filter {case_id}/acme_{variant} --provider './a b.so'", "wall_us": 12.5}


def real_run(folder):
    """Judges a few cases of this build. Returns the header of the record and the names of the schemes."""
    words = ["run", "--no-progress", "--out", folder, "--kind", "size", "--provider", "qcts"]
    subprocess.run([QCTS, *words], capture_output=True, timeout=300, check=False)
    head = run_record.head(folder) | {"selection": []}
    return head, [scheme["name"] for scheme in json.loads((folder / "report.json").read_text())["schemes"]]


def write_run(folder, head, verdicts):
    """Writes a finished record of the verdicts."""
    folder.mkdir()
    ids = sorted(f"{one['case_id']}/{one['provider']}_{one['variant']}\n" for one in verdicts)
    head = head | {"cases": len(ids), "all_cases": len(ids), "cases_sha256": hashlib.sha256("".join(ids).encode()).hexdigest()}
    (folder / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [head, *verdicts]))


def text(tab):
    return tab.evaluate("document.querySelector('main').innerText")


# The texts of a page that have too little contrast with their background.
CONTRASTS = """(() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const channel = v => v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const [r, g, b, alpha = 1] = parse(getComputedStyle(e).backgroundColor);
      if (alpha === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const low = new Set();
  for (const e of document.querySelectorAll("body *")) {
    const said = [...e.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
    if (!said || !e.getClientRects().length || e.closest("script, svg, .out-of-sight, .skip")) continue;
    const [dark, bright] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < 4.5) low.add(`${e.tagName} ${e.className} ${e.textContent.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return [...low];
})()"""
