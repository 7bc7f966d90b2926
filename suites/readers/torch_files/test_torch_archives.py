# SPDX-License-Identifier: BSD-3-Clause
"""Archives of torch.save with other than default layouts, byte orders, devices and pickles."""

import json
import struct
import zipfile

import pytest
from qcts_program import inspect, pinned, qcts

torch = pinned("torch", "2.13")

import torch.utils.serialization.config as config  # noqa: E402
from torch_samples import (  # noqa: E402
    CONTAINERS,
    assert_same_tensors,
    counting,
    dtypes,
    raw,
    read,
    repacked,
    saved,
    views,
)


def with_alignment(bytes_):
    before = config.save.storage_alignment
    config.save.storage_alignment = bytes_
    try:
        return saved(views())
    finally:
        config.save.storage_alignment = before


def without_crc():
    torch.serialization.set_crc32_options(False)
    try:
        return saved(views())
    finally:
        torch.serialization.set_crc32_options(True)


NEWER = (".format_version", ".storage_alignment", "byteorder")
ARCHIVES = {
    **{f"alignment_{n}": lambda n=n: with_alignment(n) for n in (1, 48, 512, 4096)},
    "crc_off": without_crc,
    "no_byteorder": lambda: saved(views(), _disable_byteorder_record=True),
    "no_data_records": lambda: saved({"a": 1, "m": torch.empty(2, device="meta")}),
    "torch_2_0": lambda: repacked(saved(views()), drop=NEWER[:2]),
    "torch_1_13": lambda: repacked(saved(views()), drop=NEWER),
    "torch_1_6": lambda: repacked(saved(views()), drop=NEWER, order=lambda names: names[-1:] + names[:-1]),
}


@pytest.mark.parametrize("what", ARCHIVES)
def test_other_archive_layouts_are_kept_and_read(what, tmp_path):
    file, copy = tmp_path / "model.pt", tmp_path / "copy.pt"
    file.write_bytes(ARCHIVES[what]())
    state = read(file)
    done = qcts("resave", file, copy)
    assert copy.read_bytes() == file.read_bytes() and "taken over" not in done.stderr
    assert_same_tensors(inspect(file), state)


def big_endian(state):
    """Converts the archive to what a big-endian machine writes: elements byte-swapped, with the byteorder record set."""
    widths = {}
    for value in state.values():
        width = value.element_size() // (2 if value.is_complex() else 1)
        widths[f"data/{len(widths)}"] = width

    def change(name, body):
        if name == "byteorder":
            return b"big"
        width = widths.get(name, 1)
        return b"".join(body[i : i + width][::-1] for i in range(0, len(body), width)) if width > 1 else None

    return repacked(saved(state), change=change)


def test_big_endian_archives_are_swapped_and_kept(tmp_path):
    state = {name: tensor for name, tensor in dtypes().items() if not name.startswith("bits")}
    file, copy, compact = tmp_path / "model.pt", tmp_path / "copy.pt", tmp_path / "compact.pt"
    file.write_bytes(big_endian(state))
    assert_same_tensors(inspect(file), state)
    loaded = read(file)
    # torch swaps by the storage's own type and leaves byte storages as they are.
    assert all(
        raw(loaded[name]) == raw(state[name]) for name in ("float32", "complex64", "int64", "bfloat16")
    )
    qcts("resave", file, copy)
    assert copy.read_bytes() == file.read_bytes()
    view = {"x": torch.arange(1000)[500:502]}
    file.write_bytes(big_endian(view))
    qcts("resave", "--compact", file, compact)
    assert read(compact)["x"].tolist() == [500, 501] and inspect(compact)["payload_bytes"] == 16


@pytest.fixture
def tagged():
    """Runs torch.save with another machine's location tags, through a package of higher priority than torch's own."""
    registry = torch.serialization._package_registry
    before, tags = list(registry), []
    torch.serialization.register_package(
        5, lambda storage: "".join(tags[0]) if tags else None, lambda storage, location: None
    )
    yield tags
    registry[:] = before


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    "tag", ["cuda:0", "cuda", "mps", "xpu:1", "hpu", "mtia:3", "privateuseone:0", "meta"]
)
def test_location_tags_are_kept_and_loaded_to_the_host(tag, container, tagged, tmp_path):
    file, copy = tmp_path / "model.pt", tmp_path / "copy.pt"
    tagged.append(list(tag))
    torch.save(views(), file, **CONTAINERS[container])
    tagged.clear()
    assert tag.encode() in file.read_bytes()
    qcts("resave", file, copy)
    assert copy.read_bytes() == file.read_bytes()
    seen = inspect(file)
    assert_same_tensors(seen, views())
    assert {p["location"] for t in seen["tensors"] for p in t["payload"]} == {tag}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("tag", ["tpu", "cuda:x", "cuda:-1", "CPU", "cpu:0", ""])
def test_unknown_location_is_refused_unless_allowed(tag, container, tagged, tmp_path):
    file, copy = tmp_path / "model.pt", tmp_path / "copy.pt"
    torch.save({"x": counting((3,))}, file, **CONTAINERS[container])
    data = file.read_bytes().replace(b"X\3\0\0\0cpu", b"X" + struct.pack("<I", len(tag)) + tag.encode())
    if container == "zip":
        pickle = (
            zipfile.ZipFile(file)
            .read("model/data.pkl")
            .replace(b"X\3\0\0\0cpu", b"X" + struct.pack("<I", len(tag)) + tag.encode())
        )
        data = repacked(file.read_bytes(), change=lambda name, body: pickle if name == "data.pkl" else None)
    file.write_bytes(data)
    refusal = json.loads(qcts("inspect", file, "--json", code=1).stdout)["refusal"]
    assert refusal["class"] == "StorageRef" and "unknown device" in refusal["detail"]
    if tag:
        qcts("resave", "--allow-location", tag, file, copy)
        assert copy.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("protocol", [4, 5])
def test_other_pickle_protocols_are_refused_by_name(protocol, container, tmp_path):
    file = tmp_path / "model.pt"
    torch.save({"x": counting((3,))}, file, pickle_protocol=protocol, **CONTAINERS[container])
    refusal = json.loads(qcts("inspect", file, "--json", code=1).stdout)["refusal"]
    assert refusal["class"] == "Version" and f"pickle protocol {protocol}" in refusal["detail"]
