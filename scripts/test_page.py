# SPDX-License-Identifier: BSD-3-Clause
"""Tests report.html in a real browser: what it shows at once, what it costs, and that it never treats text as HTML."""

import fnmatch
import subprocess
import urllib.parse

import browser
import pytest
import run_record
from page_runs import CONTRASTS, HOSTILE, QCTS, WRONG, real_run, text, verdict, write_run

pytestmark = pytest.mark.skipif(browser.program() is None, reason="no Chromium (Debian: chromium)")

VIEWS = ["", "failures", "cases", "schemes", "providers", "files", "sizes", "speed", "trend"]
VIEWS += ["readers", "choices", "coverage", "environment"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The reports of 100,000 verdicts on the schemes of a real report, compared with an earlier run."""
    folder = tmp_path_factory.mktemp("page")
    head, schemes = real_run(folder / "real")
    verdicts = [verdict(i, schemes) for i in range(100_000)]
    before = [one | {"status": "pass", "reason": ""} if one["status"] == "fail" and i < 1000 else one for i, one in enumerate(verdicts)]
    write_run(folder / "before", head, before)
    (folder / "out").mkdir()
    (folder / "before/run.jsonl").rename(folder / "out/before.jsonl.gz")
    write_run(folder / "part", head, verdicts)
    done = subprocess.run([QCTS, "merge", folder / "part", "--out", folder / "out"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
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
    assert "Not conformant" in seen and "Since the previous run" in seen and "Families and operations" in seen
    assert {"family", "linear", "dequantize", "fp8"} <= set(seen)
    assert any("scale of the previous row" in one for one in seen) and "copy" in seen
    assert any(one.startswith("qcts run --filter numerics.") for one in seen)
    assert "44 newly failing" in text(tab)


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
    assert tab.evaluate("seen.made / 10") < 1000, "elements made per keystroke"
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


def test_two_providers_have_a_map_each_and_a_case_shows_where_it_is_wrong(whole, tmp_path):
    """The tail of y is wrong; the other provider declined a third."""
    head, schemes = real_run(tmp_path / "real")
    wrong = {"of": "y", "rows": 2, "cols": 5, "rows_a_cell": 1, "cols_a_cell": 1, "cells": ["00009", "00009"]}
    mismatch = {"where": "y: row 0, column 4", "want": "1", "got": "0", "count": 2, "total": 10, "map": wrong}
    failed = verdict(0, schemes) | {"variant": "scalar", "mismatch": mismatch, "reason": "y: row 0, column 4: want 1, got 0"}
    failed["measures"] = [{"name": "worst_of_bound", "unit": "x", "value": 7.5}]
    statuses = ((5, "pass"), (10, "pass"), (15, "not_supported"))
    others = [verdict(i, schemes) | {"provider": "other", "status": status} for i, status in statuses]
    write_run(tmp_path / "part", head, [failed | {"status": "fail"}, *others])
    subprocess.run([QCTS, "merge", tmp_path / "part", "--out", tmp_path / "out"], capture_output=True, timeout=300, check=False)
    with browser.Browser() as tab:
        tab.open(tmp_path / "out/report.html")
        assert tab.evaluate("[...document.querySelectorAll('figcaption a')].map(e => e.textContent)") == ["acme", "other"]
        asked = "[...document.querySelectorAll('.square')].map(e => [e.className, e.style.getPropertyValue('--declined').trim()])"
        squares = tab.evaluate(asked)
        assert squares == [["square is-fail", "0%"], ["square is-pass", "33%"]]
        tab.evaluate("document.querySelector('.square').click(); new Promise(done => setTimeout(done, 300))")
        assert "1 of 4 cases" in text(tab)
        tab.go("#/case/" + urllib.parse.quote(failed["case_id"] + "/acme_scalar", safe=""))
        assert "Where y is wrong" in text(tab) and "7.5 x" in text(tab)
        titles = tab.evaluate("[...document.querySelectorAll('svg.wrong title')].map(e => e.textContent)")
        assert titles == ["row 0, column 4: all wrong", "row 1, column 4: all wrong"]
        tab.go("#/cases?q=schem:int8")
        assert "no field is called schem" in text(tab)
        assert tab.errors == []


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
        ("report.json", '{"schema": 4}', "not a report"),
        ("load.json", "{", "not a JSON object"),
        ("generate.json", "\xff", "not a JSON object"),
        ("block.json", "3", "not a JSON object"),
        ("run.jsonl", "{}\n", "line 1"),
        ("run.jsonl.gz", "\x1f\x8b\x08", "gzip"),
    ],
)
def test_a_broken_file_is_wrong_usage_and_named(whole, tmp_path, name, content, said):
    (tmp_path / "report.json").write_bytes((whole / "report.json").read_bytes())
    if not name.startswith("run."):
        (tmp_path / "run.jsonl.gz").write_bytes((whole / "run.jsonl.gz").read_bytes())
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content, encoding="latin-1")
    done = subprocess.run([QCTS, "report", tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and name in done.stderr and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "report.html").exists()


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
