# SPDX-License-Identifier: BSD-3-Clause
"""A statement is a DSSE envelope to other implementations, theirs to qcts, and no changed byte or field of one is accepted."""

import base64
import copy
import json

import nacl.exceptions
import nacl.signing
import pytest
import securesystemslib.exceptions
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey
from statements import ROOT, SEED, TYPE, key_file, key_id, pae, payload_of, state, tampered, verified, written


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


def test_a_key_is_for_its_owner_alone(made, tmp_path):
    key = key_file(tmp_path)
    key.chmod(0o640)
    assert "users other than its owner have access to it" in state(made["run"], "--key", key, "--out", tmp_path / "s", code=2).stderr
