# SPDX-License-Identifier: BSD-3-Clause
"""A vendor's day with the program, header and sample that `cmake --install` writes: a first verdict, the word CONFORMANT for a kernel
that serves all types (the test's own), and a statement that a second installation of the same build verifies and judges again. Another
vendor promises profiles that play options of the ledger, and states that he serves them."""

import json
import subprocess
import time

from test_install import BUILD, ROOT, command


class Watch:
    """Seconds since the vendor began, by what he had reached."""

    def __init__(self):
        self.start, self.reached = time.monotonic(), {}

    def note(self, what):
        self.reached[what] = round(time.monotonic() - self.start, 1)


def installed(prefix):
    command("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def test_from_the_sample_to_a_statement_verified_elsewhere(tmp_path):
    package, elsewhere = installed(tmp_path / "vendor"), installed(tmp_path / "customer")
    work = tmp_path / "work"
    work.mkdir()
    qcts, library, watch = package / "bin/qcts", work / "acme.so", Watch()
    source = package / "share/qcts/examples/minimal/minimal.c"
    command("cc", "-std=c11", "-O2", "-shared", "-fPIC", "-I", package / "include/qcts", source, "-o", library)
    first = command(qcts, "run", "--no-progress", "--plan", "quick", "--provider", library, "--out", work / "quick", cwd=work)
    watch.note("first verdict")
    assert "\nPASSED quick plan (" in first.stdout

    # The sample serves only float32, which is less than half; the vendor's own kernel serves all types.
    night = ["run", "--no-progress", "--plan", "nightly", "--provider", library, "--out", work / "night"]
    done = subprocess.run([qcts, *night], capture_output=True, text=True, cwd=work)
    assert done.returncode == 3 and "\nPARTIAL: dequantize of int8_row: " in done.stdout, done.stdout[-2000:]
    watch.note("partial")
    source = ROOT / "suites/selftest/vendor/vendor.c"
    command("cc", "-std=c11", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-I", package / "include/qcts", source, "-o", library)
    last = command(qcts, *night, cwd=work).stdout
    watch.note("conformant")
    assert "\nCONFORMANT: acme 1, dequantize of int8_row" in last, last[-2000:]
    (work / "key").write_bytes(bytes(range(32)))
    (work / "key").chmod(0o600)
    words = ["statement", work / "night", "--vendor", "Acme", "--product", "sample", "--key", work / "key"]
    said = command(qcts, *words, cwd=work).stdout
    (work / "acme.pem").write_text(said[said.index("-----BEGIN") :])
    watch.note("statement")
    command(qcts, "report", work / "night/statement.json", "--badge", cwd=work)
    assert "CONFORMANT: acme 1" in (work / "night/badge.md").read_text()

    handed = tmp_path / "handed"
    handed.mkdir()
    for name in ("night/statement.json", "acme.so", "acme.pem"):
        (handed / name.split("/")[-1]).write_bytes((work / name).read_bytes())
    words = ["verify", "statement.json", "--provider", "./acme.so", "--public-key", "acme.pem", "--json"]
    document = json.loads(command(elsewhere / "bin/qcts", *words, cwd=handed).stdout)
    watch.note("verified elsewhere")
    assert document["accepted"] and any("were judged again and are equal" in line for line in document["lines"])
    print(watch.reached, document["lines"])

    library.write_bytes(library.read_bytes() + b"\0")
    again = [elsewhere / "bin/qcts", "verify", handed / "statement.json", "--provider", library]
    done = subprocess.run(again, capture_output=True, text=True)
    assert done.returncode == 1 and "is another file" in " ".join(done.stdout.split())


def test_to_the_statement_of_promised_profiles(tmp_path):
    package = installed(tmp_path / "vendor")
    qcts, library, watch = package / "bin/qcts", tmp_path / "acme.so", Watch()
    source = ROOT / "suites/selftest/vendor/mx.c"
    flags = ["-std=c11", "-O2", "-ffp-contract=off", "-shared", "-fPIC", '-DPROFILE="nvidia_rceil ocp_mx_1_0"']
    command("cc", *flags, "-I", package / "include/qcts", source, "-lm", "-o", library)
    words = ["run", "--no-progress", "--plan", "nightly", "--provider", library, "--out", tmp_path / "night"]
    last = command(qcts, *words, cwd=tmp_path).stdout
    watch.note("conformant to profiles")
    assert "\nCONFORMANT: nvidia_rceil ocp_mx_1_0: acme 1, quantize of" in last, last[-2000:]
    command(qcts, "statement", tmp_path / "night", "--vendor", "Acme", "--product", "mx", cwd=tmp_path)
    verified = command(qcts, "verify", tmp_path / "night/statement.json", cwd=tmp_path).stdout
    watch.note("statement of profiles")
    assert "CONFORMANT: nvidia_rceil ocp_mx_1_0: acme 1" in verified
    claim = json.loads((tmp_path / "night/report.json").read_text())["conformance"]["claims"][0]
    assert claim["conformant"] and claim["options"] == ["mx_non_finite_any", "mx_rceil_bits", "mx_scale_exact"]
    print(watch.reached)
