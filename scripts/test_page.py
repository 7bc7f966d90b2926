# SPDX-License-Identifier: BSD-3-Clause
"""Tests report.html in a real browser: what it shows at once, what it costs, and that it takes no text for HTML."""

import fnmatch
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
import run_record

sys.path.insert(0, str(Path(__file__).resolve().parent))
import browser  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
pytestmark = pytest.mark.skipif(browser.program() is None, reason="no Chromium (Debian: chromium)")

OPS = ["quantize", "dequantize", "pack", "unpack", "linear"]
VARIANTS = ["scalar", "avx2", "avx512", "avx512vnni", "amx"]
VIEWS = ["", "failures", "cases", "schemes", "providers", "files", "sizes", "speed", "trend"]
VIEWS += ["readers", "choices", "coverage", "environment"]
HOSTILE = "</script><script>hacked = true</script><img src=x onerror='hacked = true'>"
WRONG = "row 3, column 0: want 0.25, got 0.5; hypothesis: scale of the row before (predicts 9 of 9)"


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


def merged(folder, head, verdicts):
    """Writes the reports of a made-up record by `qcts merge`."""
    folder.mkdir()
    ids = sorted(f"{one['case_id']}/acme_{one['variant']}\n" for one in verdicts)
    head = head | {"cases": len(ids), "all_cases": len(ids), "cases_sha256": hashlib.sha256("".join(ids).encode()).hexdigest()}
    (folder / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [head, *verdicts]))
    out = folder.with_name("out")
    done = subprocess.run([QCTS, "merge", folder, "--out", out], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The reports of 100,000 verdicts on the schemes of a real report, compared with a run before."""
    folder = tmp_path_factory.mktemp("page")
    words = ["run", "--no-progress", "--out", folder / "real", "--kind", "size", "--provider", "qcts"]
    subprocess.run([QCTS, *words], capture_output=True, timeout=300, check=False)
    head = run_record.head(folder / "real") | {"selection": []}
    schemes = [scheme["name"] for scheme in json.loads((folder / "real/report.json").read_text())["schemes"]]
    verdicts = [verdict(i, schemes) for i in range(100_000)]
    before = [one | {"status": "pass", "reason": ""} if one["status"] == "fail" else one for one in verdicts[:1000]]
    (folder / "out").mkdir()
    (folder / "out/before.jsonl.gz").write_text("".join(json.dumps(line) + "\n" for line in [head, *before]))
    merged(folder / "part", head, verdicts)
    return folder / "out"


@pytest.fixture(scope="module")
def opened(whole):
    with browser.Browser() as tab:
        tab.first_frame = tab.open(whole / "report.html")
        yield tab


@pytest.fixture
def tab(opened):
    opened.resize(1400)
    opened.media()
    opened.go("#/")
    yield opened
    assert opened.errors == []


def text(tab):
    return tab.evaluate("document.querySelector('main').innerText")


def test_a_whole_run_is_small(whole):
    for name, limit in browser.LIMITS_BYTES.items():
        assert (whole / name).stat().st_size < limit, name
    assert not (whole / "run.jsonl").exists()


def test_it_opens_fast_and_filters_at_once(tab):
    """The limits of bench_page are for a quiet machine; tests share theirs."""
    assert tab.first_frame < 3 * browser.FIRST_FRAME_S
    times = tab.type("scheme:int8 op:linear noise")
    assert sorted(times)[len(times) // 2] < browser.KEYSTROKE_MS and max(times[1:]) < 5 * browser.KEYSTROKE_MS, times


def test_the_first_screen_tells_what_happened(tab):
    """On 1400 x 900: the verdict, what changed, the heat map's first rows, and a failure group with its line to copy."""
    seen = tab.evaluate("""[...document.querySelectorAll("h1, h2, .heat th, .group, .group code, button")]
      .filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.bottom <= 900 && r.right <= 1400; })
      .map(e => e.innerText)""")
    assert "Not conformant" in seen and "Since the run before" in seen and "Families and operations" in seen
    assert {"family", "linear", "dequantize", "fp8"} <= set(seen)
    assert any("scale of the row before" in one for one in seen) and "copy" in seen
    assert any(one.startswith("qcts run --filter numerics.") for one in seen)
    assert "44 pass → fail" in text(tab)


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_is_small_and_fits_a_phone(tab, view):
    tab.go(f"#/{view}")
    assert text(tab).strip() and tab.evaluate("document.querySelectorAll('*').length") < browser.ELEMENTS
    assert tab.evaluate("document.querySelector('nav [aria-current]').hash") == f"#/{view}"
    tab.resize(390, 844)
    tab.go("#/environment" if view != "environment" else "#/")
    tab.go(f"#/{view}")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_filter_rebuilds_only_what_is_seen(tab):
    tab.go("#/cases")
    tab.evaluate("""seen = {list: document.querySelector(".rows"), menu: document.querySelector("nav a"), made: 0};
      new MutationObserver(changes => {
        for (const node of changes.flatMap(change => [...change.addedNodes]))
          seen.made += 1 + (node.querySelectorAll ? node.querySelectorAll("*").length : 0);
      }).observe(document.body, {childList: true, subtree: true}); 0""")
    tab.type("op:linear")
    assert tab.evaluate("seen.list.isConnected && seen.menu.isConnected && document.querySelectorAll('.rows .row').length < 80")
    assert tab.evaluate("seen.made / 10") < 1000, "elements made a keystroke"
    tab.evaluate("document.querySelector('.rows').scrollTop = 1e5; new Promise(done => setTimeout(done, 100))")
    assert tab.evaluate("document.querySelectorAll('.rows .row').length") < 80
    assert int(tab.evaluate("document.querySelector('.rows .row').getAttribute('aria-rowindex')")) > 1000


def cases(whole):
    found = run_record.verdicts(whole)
    for one in found:
        one["text"] = f"{one['id']} {one['reason']}".lower()
    return found


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("scheme:int8_row", lambda one: one["scheme"] == "int8_row"),
        ("scheme:mxfp", lambda one: "mxfp" in one["scheme"]),
        ("op:linear status:fail", lambda one: one["op"] == "linear" and one["status"] == "fail"),
        ("op:quantize", lambda one: one["op"] == "quantize"),
        ("provider:acme -variant:avx2 k70", lambda one: one["variant"] != "avx2" and "k70" in one["text"]),
        ("provider:nobody", lambda one: False),
        ("status:not_supported reason:tile", lambda one: one["status"] == "not_supported"),
        ("scheme:int4*g32", lambda one: fnmatch.fnmatch(one["scheme"], "int4*g32")),
        ("pack/nf4", lambda one: "pack/nf4" in one["text"]),
        ("row/noise_m3_ AVX512VNNI", lambda one: "row/noise_m3_" in one["text"] and "avx512vnni" in one["text"]),
        ("linear/int8_row/noise_m3_n1227_k70_bf16/acme_", lambda one: "linear/int8_row/noise_m3_n1227_k70_bf16/acme_" in one["id"]),
        ("_bf16/acme_amx", lambda one: one["variant"] == "amx"),
        ("hypothesis", lambda one: "hypothesis" in one["text"]),
    ],
    ids=lambda value: value.replace("/", "|") if isinstance(value, str) else "",
)
def test_search_finds_what_it_names(whole, tab, query, fits):
    tab.go(f"#/cases?q={urllib.parse.quote(query)}")
    want = sum(map(fits, cases(whole)))
    assert tab.evaluate("document.querySelector('main p b').textContent") == f"{want:,}"


def test_every_case_has_an_address_and_its_line(whole, tab):
    listed = run_record.verdicts(whole)
    for one in (listed[0], listed[50_000], listed[-1], next(one for one in listed if one["reason"] == WRONG)):
        tab.go("#/case/" + urllib.parse.quote(one["id"], safe=""))
        shown = text(tab)
        assert one["id"] in shown and one["status"] in shown and one["reason"] in shown
        assert tab.evaluate("document.querySelector('.line code').textContent") == one["rerun"]
    tab.go("#/case/numerics.linear%2Fnone%2Fx")
    assert "No such case" in text(tab)


def test_the_copy_button_copies_the_line(tab):
    tab.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    tab.send("Page.bringToFront")
    tab.evaluate("document.querySelector('.line button').click(); new Promise(done => setTimeout(done, 300))")
    assert tab.evaluate("navigator.clipboard.readText()") == tab.evaluate("document.querySelector('.line code').textContent")
    assert tab.evaluate("document.getElementById('said').textContent") == "copied"


def test_nothing_is_taken_for_html_or_loaded(whole, tab):
    struck = next(one for one in run_record.verdicts(whole) if one["reason"] == HOSTILE)
    for view in ("#/", "#/failures", "#/cases?q=hacked", "#/case/" + urllib.parse.quote(struck["id"], safe="")):
        tab.go(view)
        assert HOSTILE in text(tab), view
    assert tab.evaluate("typeof hacked") == "undefined"
    assert all(url.startswith(("file://", "about:")) for url in tab.requests), tab.requests


def test_the_keyboard_reaches_search_and_rows(tab):
    tab.send("Input.dispatchKeyEvent", type="keyDown", key="/", text="/")
    assert tab.evaluate("document.activeElement.id") == "query"
    tab.go("#/cases?q=status:fail")
    tab.evaluate("document.querySelector('.rows .row a').focus()")
    tab.send("Input.dispatchKeyEvent", type="rawKeyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13)
    tab.send("Input.dispatchKeyEvent", type="char", key="Enter", text="\r")
    tab.evaluate("new Promise(done => setTimeout(done, 200))")
    assert tab.evaluate("location.hash").startswith("#/case/")


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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("view", ["", "cases", "readers", "schemes", "choices"])
def test_text_has_contrast(tab, dark, view):
    tab.media(dark=dark)
    tab.go(f"#/{view}")
    assert tab.evaluate(CONTRASTS) == []


def test_print_leaves_out_what_paper_cannot_do(tab):
    tab.media("print")
    assert tab.evaluate("getComputedStyle(document.querySelector('.top')).display") == "none"
    assert tab.evaluate("getComputedStyle(document.querySelector('.heat')).display") == "table"


def test_the_page_is_made_again_the_same(whole):
    page = (whole / "report.html").read_bytes()
    (whole / "report.html").unlink()
    done = subprocess.run([QCTS, "report", whole], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.strip() == str(whole / "report.html"), done.stderr
    assert (whole / "report.html").read_bytes() == page


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("report.json", None, "cannot be read"),
        ("report.json", "{", "not a JSON object"),
        ("report.json", "[]", "not a JSON object"),
        ("report.json", '{"schema": 1}', "schema"),
        ("report.json", '{"schema": 3}', "not a report"),
        ("load.json", "{", "not a JSON object"),
        ("generate.json", "\xff", "not a JSON object"),
        ("block.json", "3", "not a JSON object"),
        ("run.jsonl", "{}\n", "line 1"),
        ("run.jsonl.gz", "\x1f\x8b\x08", "gzip"),
    ],
)
def test_a_broken_file_is_wrong_usage_and_named(whole, tmp_path, name, content, said):
    (tmp_path / "report.json").write_bytes((whole / "report.json").read_bytes())
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content, encoding="latin-1")
    done = subprocess.run([QCTS, "report", tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and name in done.stderr and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "report.html").exists()


def claim(subject, against, ratio, status, text, required=True):
    return {"claim": "faster", "subject": subject, "against": against, "ratio": ratio, "low": ratio - 0.1, "high": ratio + 0.1,
            "samples": 40, "at_least": 1.01, "required": required, "status": status, "text": text}  # fmt: skip


def claimed(name, provider, speed, **more):
    measures = [{"name": "median_us", "unit": "us", "value": 12.5}]
    more |= {"case_id": f"latency.linear/int8_row/{name}", "provider": provider, "variant": "avx2", "status": "pass"}
    return verdict(0, ["int8_row"]) | more | {"reason": speed["text"], "measures": measures, "speed": [speed]}


def test_claims_about_speed_stand_worst_first(whole, tmp_path):
    """Of the run, of `qcts block` and of generate; a peer's say that they do not gate."""
    slower = claim(f"int8_row {HOSTILE}", "dense bfloat16 (aten_aten)", 0.5, "fail", f"int8_row {HOSTILE}: slower than dense")
    faster = claim("int8_row m=1", "dense bfloat16 (aten_aten)", 2.1, "pass", "int8_row m=1: 2.10x [2.00, 2.20] faster than dense")
    rows = [claimed("m1_cold", "acme", faster), claimed("m2_cold", "peer", slower, peer=True)]
    head = run_record.head(whole) | {"selection": ["--plan latency"], "gate_latency": True}
    ids = sorted(f"{one['case_id']}/{one['provider']}_avx2\n" for one in rows)
    head |= {"cases": 2, "all_cases": 2, "cases_sha256": hashlib.sha256("".join(ids).encode()).hexdigest()}
    (tmp_path / "part").mkdir()
    (tmp_path / "part/run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [head, *rows]))
    subprocess.run([QCTS, "merge", tmp_path / "part", "--out", tmp_path], capture_output=True, timeout=300, check=False)
    us = {"value": 50.0, "samples": 9}
    block = {"scheme": "int8_row", "m": 1, "linear": "builtin_avx2", "status": "pass", "dense_us": us, "before_us": us, "after_us": us,
             "speed": [claim("block", "before saving", 1.0, "inconclusive", "block after loading: not shown to be as fast")]}  # fmt: skip
    (tmp_path / "block.json").write_text(json.dumps({"gate_latency": False, "rows": [block]}))
    generate = {"tokens_equal": True, "tokens_as_dense": 30, "new_tokens": 32, "rows": [], "compiled": "not compiled: no compiler",
                "speed": [faster | {"text": "generate: 2.10x faster"}]}  # fmt: skip
    (tmp_path / "generate.json").write_text(json.dumps(generate))
    done = subprocess.run([QCTS, "report", tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with browser.Browser() as tab:
        tab.open(tmp_path / "report.html")
        tab.go("#/speed")
        seen = tab.evaluate("""[...document.querySelectorAll("[aria-label='claims about speed'] .row")].map(e => e.innerText)""")
        assert [one.split()[0] for one in seen] == ["fail", "inconclusive", "pass", "pass"], seen
        assert HOSTILE in seen[0] and "no: a peer" in seen[0] and "no: --gate latency" in seen[1]
        assert "not compiled: no compiler" in text(tab) and "One decoder block" in text(tab)
        assert tab.errors == [] and tab.evaluate("typeof hacked") == "undefined"


NIGHTS, STEP, SLOWER = 24, 15, 1.08


def timed(i, us):
    """A latency case whose fastest call takes `us`; its roof takes 10 us."""
    numbers = {"median_us": (us * 1.1, "us"), "fastest_us": (us, "us"), "fastest_of_roof": (us / 10, "x"), "alarm": (0, "x")}
    measures = [
        {"name": name, "unit": unit, "value": value, "low": value * 0.995, "high": value, "samples": 90}
        for name, (value, unit) in numbers.items()
    ]
    return verdict(0, ["int8_row"]) | {
        "case_id": f"latency.linear/int8_row/noise_m{i}_bf16_cold",
        "variant": "avx2",
        "status": "pass",
        "reason": "",
        "measures": measures,
        "evidence": [],
    }


def night(head, number):
    """The head and verdicts of a night: case 3 is slower from STEP on, case 5 fails every fourth night, case 7 is not timed once."""
    chance = random.Random(number)
    slower = [SLOWER if i == 3 and number >= STEP else 1 for i in range(10)]
    verdicts = [timed(i, 20 * slower[i] * (1 + 0.002 * chance.gauss(0, 1))) for i in range(10)]
    failing = verdicts[5]
    failing |= {"case_id": "numerics.linear/int8_row/noise_m5_bf16", "measures": []}
    if number % 4 == 1:
        failing |= {"status": "fail", "reason": HOSTILE}
    if number == 9:
        verdicts[7] |= {"status": "inconclusive", "reason": "no time", "measures": []}
    return head | {"started": f"2026-01-{number + 1:02}T00:00:00Z", "suite_commit": f"c{number}"}, verdicts


@pytest.fixture(scope="module")
def trended(whole, tmp_path_factory):
    """The folder of the last of NIGHTS nights, and the history of all."""
    folder = tmp_path_factory.mktemp("trend")
    head = run_record.head(whole)
    for number in range(NIGHTS):
        head, verdicts = night(head, number)
        ids = sorted(f"{one['case_id']}/acme_avx2\n" for one in verdicts)
        head |= {"cases": len(ids), "all_cases": len(ids), "cases_sha256": hashlib.sha256("".join(ids).encode()).hexdigest()}
        part = folder / str(number)
        part.mkdir()
        (part / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [head, *verdicts]))
        last = number == NIGHTS - 1
        words = ["merge", part, "--out", folder / "out", "--history", folder / "h.sqlite"]
        words = words if last else ["history", folder / "h.sqlite", "--add", part]
        done = subprocess.run([QCTS, *words], capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    return folder


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (390, False)], ids=["wide", "dark", "phone"])
def test_the_trend_shows_steps_flips_and_counts(trended, width, dark):
    with browser.Browser() as tab:
        tab.resize(width, 844)
        tab.media(dark=dark)
        tab.open(trended / "out/report.html", "#/trend")
        shown = text(tab)
        for words in (f"{NIGHTS} nights", "Latency: 9 cases, 1 with a step", "Cases whose status changed: 2"):
            assert words in shown
        lines = tab.evaluate("""[...document.querySelectorAll('[aria-label="latency by night"] .row')].map(row =>
          [row.innerText, row.querySelectorAll(".step.slower").length, row.querySelector("path").getAttribute("d").match(/M/g).length])""")
        assert "noise_m3_" in lines[0][0] and lines[0][1] == 1 and "+8" in lines[0][0], lines[0]
        assert sum(steps for _, steps, _ in lines) == 1
        assert next(pieces for words, _, pieces in lines if "noise_m7_" in words) == 2, "a night without a time parts the line"
        bars = [number for number in range(NIGHTS) if number % 4 == 1 or number == 9]
        assert tab.evaluate("document.querySelectorAll('svg .other').length") == len(bars)
        assert tab.evaluate("document.querySelectorAll('*').length") < browser.ELEMENTS
        assert tab.evaluate("document.documentElement.scrollWidth") <= width and tab.evaluate(CONTRASTS) == []
        assert tab.evaluate("typeof hacked") == "undefined" and tab.errors == []
        tab.evaluate("document.querySelector('[aria-label=\"latency by night\"] a').focus()")
        tab.send("Input.dispatchKeyEvent", type="rawKeyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13)
        tab.send("Input.dispatchKeyEvent", type="char", key="Enter", text="\r")
        tab.evaluate("new Promise(done => setTimeout(done, 200))")
        assert tab.evaluate("location.hash").startswith("#/case/latency")


def report_again(folder, *words):
    return subprocess.run([QCTS, "report", folder, *words], capture_output=True, text=True, timeout=300)


def turned(folder):
    changes = json.loads((folder / "report.json").read_text())["changes"]
    counts = {(turn["from"], turn["to"]): turn["count"] for turn in changes["turned"]}
    return changes["before"]["commit"], counts, [one["id"] for one in changes["speed"]]


def test_what_changed_comes_from_the_history_or_from_before(trended, tmp_path):
    """A folder without an earlier run: the history's last one, until --before names another."""
    out = shutil.copytree(trended / "out", tmp_path / "out")
    slow = "latency.linear/int8_row/noise_m3_bf16_cold/acme_avx2"
    assert turned(out) == (f"c{NIGHTS - 2}", {}, [])
    assert report_again(out, "--before", trended / "13").returncode == 0
    assert turned(out) == ("c13", {("fail", "pass"): 1}, [slow])
    for page in (out / "report.html", out / "summary.md"):
        assert page.exists()
    with browser.Browser() as tab:
        tab.open(out / "report.html")
        assert "more than 5 % faster or slower" in text(tab) and "c13" in text(tab)
    assert report_again(out, "--history", trended / "h.sqlite").returncode == 0
    assert turned(out)[0] == "c13", "what --before named stays"


def test_another_question_is_not_the_run_before(whole, trended, tmp_path):
    out = shutil.copytree(trended / "out", tmp_path / "out")
    other = tmp_path / "other"
    other.mkdir()
    head, *verdicts = run_record.lines(trended / "13")
    (other / "run.jsonl").write_text("\n".join([json.dumps(json.loads(head) | {"plan": "mine"}), *verdicts]) + "\n")
    done = report_again(out, "--before", other)
    assert done.returncode == 2 and "another plan" in done.stderr and done.stderr.count("\n") == 1
    assert report_again(out, "--history", tmp_path / "none").returncode == 2
    assert (out / "report.json").read_bytes() == (trended / "out/report.json").read_bytes()


def test_a_new_run_forgets_the_trend_of_the_one_before(trended, tmp_path):
    out = shutil.copytree(trended / "out", tmp_path / "out")
    done = subprocess.run([QCTS, "merge", trended / str(NIGHTS - 1), "--out", out], capture_output=True, timeout=300)
    assert done.returncode in (0, 1, 3) and not (out / "trend.json").exists()


def test_a_run_that_judged_nothing_has_a_page(tmp_path):
    provider = tmp_path / "acme"
    provider.write_text("#!/bin/sh\nexit 3\n")
    provider.chmod(0o755)
    done = subprocess.run([QCTS, "run", "--no-progress", "--out", tmp_path, "--provider", provider], capture_output=True, timeout=300)
    assert done.returncode == 5, done
    with browser.Browser() as tab:
        tab.open(tmp_path / "report.html")
        assert "exit code 3" in text(tab) and tab.evaluate("document.querySelector('h1').textContent") == "Could not judge"
        for view in VIEWS:
            tab.go(f"#/{view}")
            assert text(tab).strip()
        assert tab.errors == []
