# SPDX-License-Identifier: BSD-3-Clause
"""A vendor's verdict travels: a signed statement of his run, which others check offline, against the record, and by judging again."""

import base64
import copy
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nacl.exceptions
import nacl.signing
import pytest
import securesystemslib.exceptions
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey

ROOT = Path(__file__).resolve().parent.parent.parent
QCTS = os.environ.get("QCTS_BIN", str(ROOT / "build/release/bin/qcts"))
sys.path.append(str(ROOT / "suites/run/vendors"))

from vendor import vendor  # noqa: E402

TYPE = "application/vnd.in-toto+json"
SEED = bytes(range(32))
DECLINES = "p->w_dtype == QCTS_F16"


def qcts(*words, code=0):
    done = subprocess.run([QCTS, *map(str, words)], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def run(out, library, *words, code=0):
    qcts("run", "--no-progress", "--plan", "nightly", "--out", out, "--provider", library, *words, code=code)
    return out


def key_file(folder, seed=SEED):
    file = folder / "key"
    file.write_bytes(seed)
    file.chmod(0o600)
    return file


def state(folder, *words, code=0):
    return qcts("statement", folder, "--vendor", "Acme", "--product", "int8", *words, code=code)


def verified(*words, code=0):
    """Returns what `qcts verify` says."""
    document = json.loads(qcts("verify", *words, "--json", code=code).stdout)
    assert document["accepted"] == (code == 0) and bool(document["faults"]) == (code != 0)
    return document


def pae(payload_type, payload):
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def payload_of(envelope):
    return base64.b64decode(envelope["payload"], validate=True)


def key_id(key):
    """SHA-256 of the SubjectPublicKeyInfo, of which RFC 8410 gives the first 12 bytes."""
    return hashlib.sha256(bytes.fromhex("302a300506032b6570032100") + bytes(key.verify_key)).hexdigest()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A library, its complete run, and the signed statement of that."""
    folder = tmp_path_factory.mktemp("made")
    library = vendor(folder / "lib", DECLINES=DECLINES)
    run(folder / "run", library)
    state(folder / "run", "--key", key_file(folder))
    return {"library": library, "run": folder / "run", "file": folder / "run/statement.json"}


@pytest.fixture
def envelope(made):
    return json.loads(made["file"].read_text())


def written(tmp_path, envelope):
    file = tmp_path / "statement.json"
    file.write_text(json.dumps(envelope))
    return file


def test_it_says_who_judged_what(made, envelope):
    statement = json.loads(payload_of(envelope))
    assert (envelope["payloadType"], statement["_type"]) == (TYPE, "https://in-toto.io/Statement/v1")
    assert statement["predicateType"] == "urn:qcts:verdict:v1"
    digest = hashlib.sha256(made["library"].read_bytes()).hexdigest()
    assert statement["subject"] == [{"name": "acme.so", "digest": {"sha256": digest}}]
    predicate = statement["predicate"]
    head = predicate["head"]
    lines = gzip.decompress((made["run"] / "run.jsonl.gz").read_bytes()).splitlines()
    assert [row["sha256"] for row in predicate["verdicts"]] == [hashlib.sha256(line).hexdigest() for line in lines[1:]]
    assert head == json.loads(lines[0]) and predicate["head_sha256"] == hashlib.sha256(lines[0]).hexdigest()
    assert head["program_sha256"] == hashlib.sha256(Path(QCTS).read_bytes()).hexdigest()
    assert head["providers"][0]["isolation"].startswith("isolated") and head["environment"]["cpu_model"]
    assert (predicate["vendor"], predicate["product"]) == ("Acme", "int8")
    assert predicate["claim"] == json.loads((made["run"] / "report.json").read_text())["conformance"]["claims"][0]


def test_it_is_accepted(made):
    said = verified(made["file"], "--run", made["run"])["lines"]
    assert said[0].startswith("CONFORMANT: acme 1, dequantize of int8_row") and "vendor Acme, product int8" in said
    key = key_id(nacl.signing.SigningKey(SEED))
    assert any(line.startswith(f"signed by {key}, the key in the statement itself") for line in said)
    assert "only consistency was checked; no case was judged again (--provider)" in said


def test_another_implementation_accepts_the_signature(envelope):
    key = nacl.signing.SigningKey(SEED)
    (signature,) = envelope["signatures"]
    assert signature["keyid"] == key_id(key)
    text, sig = pae(TYPE, payload_of(envelope)), base64.b64decode(signature["sig"])
    key.verify_key.verify(text, sig)
    for at in range(0, len(text), max(1, len(text) // 50)):
        with pytest.raises(nacl.exceptions.BadSignatureError):
            key.verify_key.verify(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :], sig)


def test_securesystemslib_verifies_it(envelope):
    """Our statement is a DSSE envelope to a tool that knows nothing about us, and a changed byte is refused."""
    key = SSlibKey(
        key_id(nacl.signing.SigningKey(SEED)), "ed25519", "ed25519", {"public": bytes(nacl.signing.SigningKey(SEED).verify_key).hex()}
    )
    assert set(Envelope.from_dict(copy.deepcopy(envelope)).verify([key], 1)) == {key.keyid}
    good = Envelope.from_dict(copy.deepcopy(envelope))
    for at in range(0, len(good.payload), max(1, len(good.payload) // 25)):
        payload = good.payload[:at] + bytes([good.payload[at] ^ 1]) + good.payload[at + 1 :]
        with pytest.raises(securesystemslib.exceptions.VerificationError):
            Envelope(payload, good.payload_type, good.signatures).verify([key], 1)
    with pytest.raises(securesystemslib.exceptions.VerificationError):
        Envelope(good.payload, good.payload_type + " ", good.signatures).verify([key], 1)


def test_a_badge_says_what_was_stated(made, envelope, tmp_path):
    file = written(tmp_path, envelope)
    done = qcts("report", file, "--badge")
    assert done.stdout.split() == [str(tmp_path / "badge.svg"), str(tmp_path / "badge.md")]
    line = verified(file)["lines"][0]
    svg = ElementTree.parse(tmp_path / "badge.svg").getroot()
    assert svg[0].text == line and "".join(svg.itertext()) == line + "qctsconformant"
    text = (tmp_path / "badge.md").read_text()
    head = json.loads(payload_of(envelope))["predicate"]["head"]
    said = text.replace("\\", "")
    for word in (
        line,
        "int8 of Acme",
        head["providers"][0]["sha256"],
        head["started"],
        head["suite_commit"],
        envelope["signatures"][0]["keyid"],
    ):
        assert word in said
    assert hashlib.sha256(file.read_bytes()).hexdigest() in said


def test_a_refused_statement_gets_no_badge(envelope, tmp_path):
    file = written(tmp_path, tampered(envelope, "predicate.claim.text", False))
    assert "no badge: the statement is refused: claim.text: " in qcts("report", file, "--badge", code=1).stderr
    assert not list(tmp_path.glob("badge*"))


def test_a_vendors_name_is_no_markup(made, tmp_path):
    qcts("statement", made["run"], "--vendor", "A](x)\n# <b>", "--product", "p|`q`", "--out", tmp_path / "s.json")
    qcts("report", tmp_path / "s.json", "--badge")
    text = (tmp_path / "badge.md").read_text()
    assert "p\\|\\`q\\` of A\\](x)" in text and "<b>" not in text and "\n# " not in text


def signed_by_securesystemslib(envelope, signer):
    made = Envelope(payload_of(envelope), envelope["payloadType"], {})
    made.sign(signer)
    return made.to_dict()


def test_what_securesystemslib_signed_is_accepted(envelope, tmp_path):
    """Its own envelope over the same payload, under its own key and key id; no changed byte is accepted here either."""
    signer = CryptoSigner.generate_ed25519()
    made = signed_by_securesystemslib(envelope, signer)
    public = public_key(tmp_path, nacl.signing.VerifyKey(bytes.fromhex(signer.public_key.keyval["public"])))
    said = verified(written(tmp_path, made), "--public-key", public)["lines"]
    assert any(line.endswith(", the key given with --public-key") for line in said)
    payload, (signature,) = payload_of(made), made["signatures"]
    for at in range(0, len(payload), max(1, len(payload) // 25)):
        spoiled = base64.b64encode(payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]).decode()
        verified(written(tmp_path, made | {"payload": spoiled}), "--public-key", public, code=1)
    sig = base64.b64decode(signature["sig"])
    for at in range(len(sig)):
        spoiled = base64.b64encode(sig[:at] + bytes([sig[at] ^ 1]) + sig[at + 1 :]).decode()
        changed = made | {"signatures": [signature | {"sig": spoiled}]}
        assert verified(written(tmp_path, changed), "--public-key", public, code=1)["faults"][0].startswith("signatures: ")


def signed_elsewhere(envelope, key):
    sig = key.sign(pae(envelope["payloadType"], payload_of(envelope))).signature
    return envelope | {"signatures": [{"keyid": key_id(key), "sig": base64.b64encode(sig).decode()}]}


def public_key(tmp_path, key):
    der = bytes.fromhex("302a300506032b6570032100") + bytes(getattr(key, "verify_key", key))
    file = tmp_path / "key.pem"
    file.write_text(f"-----BEGIN PUBLIC KEY-----\n{base64.b64encode(der).decode()}\n-----END PUBLIC KEY-----\n")
    return file


def test_a_signature_of_another_implementation_is_accepted(envelope, tmp_path):
    other = nacl.signing.SigningKey(bytes(32))
    file = written(tmp_path, signed_elsewhere(envelope, other))
    said = verified(file, "--public-key", public_key(tmp_path, other))["lines"]
    assert f"signed by {key_id(other)}, the key given with --public-key" in said
    assert "signatures: none by" in verified(file, code=1)["faults"][0], "the statement names another key"


@pytest.mark.parametrize("part", ["payload", "sig", "payloadType"])
def test_no_changed_byte_is_accepted(envelope, tmp_path, part):
    place = envelope["signatures"][0] if part == "sig" else envelope
    if part == "payloadType":
        place[part] = TYPE + " "
        assert verified(written(tmp_path, envelope), code=1)["faults"][0].startswith("payloadType: ")
        return
    good = base64.b64decode(place[part])
    for at in range(0, len(good), max(1, len(good) // 12)):
        place[part] = base64.b64encode(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]).decode()
        verified(written(tmp_path, envelope), code=1)


# Edits of a good statement, for every verifier: each has to be refused.
REFUSED = json.loads((ROOT / "suites/statement/refused.json").read_text())["edits"]


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [*value, "--filter x"]
    return "fail" if value in ("pass", "not_supported") else value + "x" if value else "0" * 64


def tampered(envelope, path, signed):
    statement = json.loads(payload_of(envelope))
    *above, last = [int(word) if word.isdigit() else word for word in path.split(".")]
    place = statement
    for word in above:
        place = place[word]
    place[last] = changed(place[last])
    if not signed:
        statement["predicate"].pop("signer")
        envelope = envelope | {"signatures": []}
    return envelope | {"payload": base64.b64encode(json.dumps(statement).encode()).decode()}


def unsigned(statement):
    statement["predicate"].pop("signer")
    return statement


def applied(edit, document):
    """The document after an edit of RFC 6902."""
    *above, last = [int(word) if word.isdigit() else word for word in edit["path"].split("/")[1:]]
    place = document
    for word in above:
        place = place[word]
    if edit["op"] == "remove":
        del place[last]
    elif edit["op"] == "add" and isinstance(place, list):
        place.insert(last, edit["value"])
    else:
        assert edit["op"] == "add" or (last in place if isinstance(place, dict) else last < len(place)), edit["name"]
        place[last] = edit["value"]
    return document


@pytest.mark.parametrize("edit", REFUSED, ids=[edit["name"].replace(" ", "_") for edit in REFUSED])
def test_what_ships_as_bad_is_refused_by_name(made, envelope, tmp_path, edit):
    """An edit of the statement needs no key, because nobody signed it."""
    if edit["in"] == "statement":
        statement = applied(edit, unsigned(json.loads(payload_of(envelope))))
        bad = envelope | {"payload": base64.b64encode(json.dumps(statement).encode()).decode(), "signatures": []}
    else:
        bad = applied(edit, envelope)
    faults = verified(written(tmp_path, bad), "--run", made["run"], code=1)["faults"]
    assert any(fault.startswith(edit["fault"]) for fault in faults), faults


def test_an_unsigned_one_says_so(made, tmp_path):
    state(made["run"], "--out", tmp_path / "unsigned.json")
    assert "not signed" in verified(tmp_path / "unsigned.json", "--run", made["run"])["lines"]


@pytest.mark.parametrize("path", ["predicate.vendor", "predicate.product", "predicate.claim.text", "predicate.head.suite_commit"])
def test_a_changed_field_does_not_fit_the_signature(envelope, tmp_path, path):
    (first, *_) = verified(written(tmp_path, tampered(envelope, path, True)), code=1)["faults"]
    assert first.startswith("signatures: "), first


def test_a_signer_has_the_id_of_his_key(envelope, tmp_path):
    statement = json.loads(payload_of(envelope))
    statement["predicate"]["signer"]["keyid"] = "0"
    changed = envelope | {"payload": base64.b64encode(json.dumps(statement).encode()).decode()}
    assert verified(written(tmp_path, changed), code=1)["faults"][0].startswith("signer: keyid")


def test_the_record_of_another_run_is_refused(made, tmp_path):
    other = run(tmp_path / "other", made["library"], "--seed", 7)
    faults = verified(made["file"], "--run", other, code=1)["faults"]
    assert any(fault.startswith("head.seed: ") and "another run" in fault for fault in faults), faults


def edited(folder, out, edit):
    """A copy of a run whose record's lines were edited."""
    shutil.copytree(folder, out)
    record = out / "run.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(record.read_bytes()).splitlines()]
    lines = edit(copy.deepcopy(lines)) or lines
    record.write_bytes(gzip.compress("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()))
    return out


def with_head(**fields):
    return lambda lines: [lines[0] | fields, *lines[1:]]


def with_provider(**fields):
    return lambda lines: [lines[0] | {"providers": [lines[0]["providers"][0] | fields]}, *lines[1:]]


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (with_head(selection=["--provider x", "--filter y"]), "a selection (--filter y), and a statement needs a whole run"),
        (with_head(selection=["--plan quick", "--provider x"]), "a selection (--plan quick)"),
        (with_head(shards=2), "one shard of 2"),
        (with_head(arguments=["run", "--seed-file", "s"]), "its seed is secret, but the hash of the seed is missing"),
        (with_head(infrastructure=["provider x: gone"]), "it could not judge: provider x: gone"),
        (with_head(program_sha256=""), "which program judged"),
        (with_provider(isolation="not isolated, as was asked: it can trace"), "the provider was not isolated: not isolated, as was asked"),
        (with_provider(isolation=""), "the provider was not isolated: "),
        (lambda lines: lines[:-1], "it is unfinished: "),
        (lambda lines: [*lines[:-1], lines[-1] | {"status": "fail", "reason": "x"}], "it did not pass: 1 of "),
        (lambda lines: [*lines[:-1], lines[-1] | {"provider": "other"}], "verdicts on other too"),
    ],
)
def test_there_is_none_of_a_lesser_run(made, tmp_path, edit, why):
    folder = edited(made["run"], tmp_path / "run", edit)
    (folder / "statement.json").unlink()
    assert why in state(folder, code=1).stderr
    assert not (folder / "statement.json").exists()


@pytest.mark.parametrize(
    ("declines", "why"),
    [
        ("p->w_dtype != QCTS_F32", "it is partial: dequantize of int8_row: "),
        ("p->n == 37 && p->w_dtype == QCTS_F32", " declined cases follow no rule, first "),
    ],
    ids=["less_than_half", "irregular"],
)
def test_there_is_none_of_a_part(tmp_path, declines, why):
    folder = run(tmp_path / "run", vendor(tmp_path / "lib", DECLINES=declines), code=3)
    said = state(folder, code=1).stderr
    assert "the run cannot support one: it is partial: " in said and why in said
    assert not (folder / "statement.json").exists()


def test_there_is_none_where_all_was_declined(tmp_path):
    folder = run(tmp_path / "run", vendor(tmp_path / "lib", DECLINES="1"), code=3)
    assert "it did not pass: acme declined all " in state(folder, code=1).stderr


def test_there_is_none_of_another_version(made, tmp_path):
    folder = edited(made["run"], tmp_path / "run", with_head(mustpass_sha256="0" * 64))
    assert "another version: mustpass_sha256" in state(folder, code=2).stderr


def test_a_key_is_for_its_owner_alone(made, tmp_path):
    key = key_file(tmp_path)
    key.chmod(0o640)
    assert "users other than its owner have access to it" in state(made["run"], "--key", key, "--out", tmp_path / "s", code=2).stderr


def test_a_sample_is_judged_anew(made):
    said = verified(made["file"], "--provider", made["library"], "--sample", "20%")["lines"]
    (line,) = [line for line in said if "judged again" in line]
    count = int(re.match(r"(\d+) cases, drawn at random, were judged again and are equal", line)[1])
    assert count >= 50
    bits, sums, status = outputs_of(said)
    assert bits + sums + status == count and bits > 20 and sums == 0, "what was declined has no output"


def outputs_of(said):
    """How many outputs of the sample are equal, how many of linear were not compared, and how many have no hash."""
    (line,) = [line for line in said if line.startswith("outputs: ")]
    pattern = r"outputs: (\d+) equal bit for bit; (\d+) of linear status only \(.*\); (\d+) status only \(no output_hash\)"
    return map(int, re.fullmatch(pattern, line).groups())


def passed(line):
    return line["status"] == "pass" and not line["case_id"].startswith("latency.")


def hashes(folder):
    """By full id, of the cases that passed, but for times."""
    lines = [json.loads(line) for line in gzip.decompress((folder / "run.jsonl.gz").read_bytes()).splitlines()[1:]]
    return {(line["case_id"], line["variant"]): line.get("output_hash") for line in lines if passed(line)}


def test_a_record_grows_by_few_bytes(made):
    """A night of 136,000 verdicts by at most 4 MB."""
    lines = gzip.decompress((made["run"] / "run.jsonl.gz").read_bytes())
    without = re.sub(rb'"output_hash":"[0-9a-f]{16}",', b"", lines)
    count = len(hashes(made["run"]))
    assert len(lines) - len(without) == count * len('"output_hash":"0123456789abcdef",') and count > 50
    grown = len(gzip.compress(lines)) - len(gzip.compress(without))
    assert 0 < grown * 136_000 < 4e6 * count, (grown, count)


def test_two_runs_have_the_same_hashes(made, tmp_path):
    again = hashes(run(tmp_path / "again", made["library"], "--jobs", 2))
    assert again == hashes(made["run"]) and None not in again.values()


@pytest.mark.parametrize("forged", ["0" * 16, None], ids=["changed", "removed"])
def test_a_forged_hash_is_found_out_by_judging_anew(made, tmp_path, forged):
    """The record was changed before the statement was signed, so that both agree."""

    def forge(lines):
        for line in lines[1:]:
            if line.pop("output_hash", None) and forged:
                line["output_hash"] = forged
        return lines

    folder = edited(made["run"], tmp_path / "forged", forge)
    state(folder, "--key", key_file(tmp_path))
    assert verified(folder / "statement.json", "--run", folder)["lines"][0].startswith("CONFORMANT: ")
    faults = verified(folder / "statement.json", "--provider", made["library"], code=1)["faults"]
    told = f" has output_hash {forged or 'none'} in the statement, and "
    assert len(faults) > 20 and all(fault.startswith("verdicts: ") and told in fault for fault in faults), faults[:3]


@pytest.fixture(scope="module")
def linear_made(tmp_path_factory):
    """Two right libraries with a linear, of which one adds up as the clock says and claims nothing."""
    folder = tmp_path_factory.mktemp("linear")
    made = {}
    for name, macros in {"fixed": {"LINEAR": "QCTS_CLAIM_DETERMINISTIC"}, "either": {"LINEAR": "0", "EITHER_ORDER": True}}.items():
        library = vendor(folder / name, **macros)
        state(run(folder / name / "run", library))
        made[name] = {"library": library, "run": folder / name / "run"}
    return made


def of_linear(hashed):
    return {key: value for key, value in hashed.items() if ".linear/" in key[0]}


def test_a_right_library_that_adds_up_in_either_order_is_accepted(linear_made):
    of = linear_made["either"]
    assert set(of_linear(hashes(of["run"])).values()) == {None}
    said = verified(of["run"] / "statement.json", "--provider", of["library"], "--sample", "30%")["lines"]
    _, _, status = outputs_of(said)
    assert status > 10


def with_features(lines):
    return [lines[0] | {"environment": lines[0]["environment"] | {"features": ["other"]}}, *lines[1:]]


def test_a_linear_is_compared_where_the_processor_is_the_same(linear_made, tmp_path):
    """Its hashes were forged. With other features, only its status counts; all other outputs are compared."""
    of = linear_made["fixed"]
    without = {key[0] for key, value in of_linear(hashes(of["run"])).items() if value is None}
    assert all("/far_" in case or "_m0_" in case for case in without), without
    words = ["--provider", of["library"], "--sample", "30%"]
    bits, sums, _ = outputs_of(verified(of["run"] / "statement.json", *words)["lines"])
    assert bits > 20 and sums == 0

    def forge(lines):
        for line in lines[1:]:
            if ".linear/" in line["case_id"] and "output_hash" in line:
                line["output_hash"] = "0" * 16
        return lines

    here = edited(of["run"], tmp_path / "here", forge)
    state(here)
    faults = verified(here / "statement.json", *words, code=1)["faults"]
    assert all("numerics.linear/" in fault or "determinism.linear/" in fault for fault in faults), faults
    elsewhere = edited(here, tmp_path / "elsewhere", with_features)
    state(elsewhere)
    bits, sums, _ = outputs_of(verified(elsewhere / "statement.json", *words)["lines"])
    assert bits > 10 and sums > 10



def test_another_library_is_refused(made, tmp_path):
    other = vendor(tmp_path, DECLINES="0")
    (fault,) = verified(made["file"], "--provider", other, code=1)["faults"]
    assert fault.startswith(f"subject: {other} is another file")


def test_a_forged_record_is_found_out(tmp_path):
    """Every wrong answer was made a pass before the statement was signed."""
    library = vendor(tmp_path / "lib", WRONG=True)
    run(tmp_path / "run", library, code=1)

    def forge(lines):
        for line in lines[1:]:
            if line["status"] == "fail":
                line |= {"status": "pass", "reason": ""}
        return lines

    forged = edited(tmp_path / "run", tmp_path / "forged", forge)
    state(forged, "--key", key_file(tmp_path))
    assert verified(forged / "statement.json", "--run", forged)["lines"][0].startswith("CONFORMANT: ")
    faults = verified(forged / "statement.json", "--run", forged, "--provider", library, code=1)["faults"]
    assert any(" is pass in the statement, and fail judged again: " in fault for fault in faults), faults


@pytest.mark.parametrize("sample", ["0%", "101%", "x", "-5%", "%"])
def test_a_share_is_above_0_and_at_most_100(made, sample):
    assert "must be a share such as 5%" in qcts("verify", made["file"], f"--sample={sample}", code=2).stderr
