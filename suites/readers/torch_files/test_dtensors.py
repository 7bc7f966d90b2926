# SPDX-License-Identifier: BSD-3-Clause
"""DTensors, which FSDP2 and tensor parallelism leave in state dicts: whole ones are read as their tensors, parts as parts."""

import json

import pytest
from dialect_files import read_safetensors
from qcts_program import inspect, pinned, qcts

torch = pinned("torch", "2.13")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402
from torch_samples import CONTAINERS, counting, raw  # noqa: E402

pytestmark = pytest.mark.parametrize("container", CONTAINERS)


@pytest.fixture
def world():
    """Starts `ranks` processes, of which only this one, `rank`, is there."""

    def start(ranks, rank=0):
        torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)

    yield start
    torch.distributed.destroy_process_group()


def assert_kept(state, tmp_path, container):
    path, copy = tmp_path / "a.pt", tmp_path / "copy.pt"
    torch.save(state, path, **CONTAINERS[container])
    qcts("check", path)
    assert "taken over" not in qcts("resave", path, copy).stderr and copy.read_bytes() == path.read_bytes()
    diff = json.loads(qcts("diff", path, copy, "--json").stdout)
    assert diff["e2"]["equal"] and diff["e3"]["equal"]
    return path


def placements(mesh_dims):
    kinds = [Replicate(), Shard(0), Shard(1), Partial(), Partial("max")]
    return [kinds] if mesh_dims == 1 else [[a, b] for a in kinds[:4] for b in kinds[:4]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn])
@pytest.mark.parametrize("dims", [1, 2])
def test_of_one_rank(dims, dtype, container, world, tmp_path):
    """A mesh of one rank: every placement holds the whole tensor."""
    world(1)
    mesh = init_device_mesh("cpu", (1,) * dims)
    data = counting((3, 4)).to(dtype)
    chosen = [[p] for p in placements(1)[0]] if dims == 1 else placements(2)
    chosen = [c for c in chosen if len({type(p) for p in c if isinstance(p, Partial)}) < 2]
    state = {f"w{i}": DTensor.from_local(data, mesh, c) for i, c in enumerate(chosen)}
    state["p"] = torch.nn.Parameter(DTensor.from_local(data.float(), mesh, [Replicate()] * dims))
    path = assert_kept(state, tmp_path, container)
    for tensor in inspect(path)["tensors"]:
        assert tensor["type"] == "DTensor" and tensor["shape"] == [3, 4] and tensor["payload"][0]["name"] == "data"
        assert len(tensor["attributes"]["dtensor.placements"]) == dims
    qcts("dequantize", path, tmp_path / "o.safetensors")
    held = read_safetensors(tmp_path / "o.safetensors")
    assert set(held) == set(state) and all(held[f"w{i}"][2] == raw(data) for i in range(len(chosen)))


def test_a_part_is_no_whole(container, world, tmp_path):
    world(4, rank=1)
    mesh, grid = init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    data = counting((3, 4))
    parts = {
        "rows": DTensor.from_local(data, mesh, [Shard(0)]),
        "columns": DTensor.from_local(data, grid, [Replicate(), Shard(1)]),
        "sum": DTensor.from_local(data, mesh, [Partial()]),
    }
    state = {**parts, "copy": DTensor.from_local(data, mesh, [Replicate()]), "plain": data}
    path = assert_kept(state, tmp_path, container)
    seen = {t["name"]: t for t in inspect(path)["tensors"]}
    assert [seen[n]["shape"] for n in state] == [[12, 4], [3, 8], [3, 4], [3, 4], [3, 4]]
    assert seen["columns"]["attributes"]["dtensor.placements"] == ["Replicate()", "Shard(1)"]
    refused = qcts("dequantize", path, tmp_path / "o.safetensors", code=1).stderr
    assert "rows: a DTensor's part [3,4] of one rank" in refused and "full_tensor()" in refused
    qcts("dequantize", "--partial", path, tmp_path / "o.safetensors")
    assert sorted(read_safetensors(tmp_path / "o.safetensors")) == ["copy", "plain"]


def test_differences(container, world, tmp_path):
    world(2)
    mesh = init_device_mesh("cpu", (2,))
    data = counting((3, 4))
    state = lambda w, p: {"w": DTensor.from_local(w, mesh, [p])}  # noqa: E731
    files = {}
    for name, value in {"a": (data, Shard(0)), "b": (data + 1, Shard(0)), "c": (data, Shard(1))}.items():
        files[name] = tmp_path / f"{name}.pt"
        torch.save(state(*value), files[name], **CONTAINERS[container])
    assert "_local_tensor" in qcts("diff", files["a"], files["b"], code=1).stdout
    assert "placements" in (told := qcts("diff", files["a"], files["c"], code=1).stdout) and "w" in told


def test_fsdp2(container, world, tmp_path):
    world(1)
    mesh = init_device_mesh("cpu", (1,))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    state = model.state_dict()
    path = assert_kept({"model": state, "step": 3}, tmp_path, container)
    qcts("dequantize", path, tmp_path / "o.safetensors")
    held = read_safetensors(tmp_path / "o.safetensors")
    assert {n: b for n, (_, _, b) in held.items()} == {f"model.{n}": raw(t.to_local()) for n, t in state.items()}
    qcts("quantize", "--scheme", "int8_row", path, tmp_path / "q.pt", code=3)


def test_a_quantized_local_tensor(container, world, tmp_path):
    pinned("torchao", "0.18")
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    world(1)
    mesh = init_device_mesh("cpu", (1,))
    layer = torch.nn.Linear(64, 32, dtype=torch.bfloat16)
    quantize_(layer, Int8WeightOnlyConfig())
    local = layer.weight.detach()
    spec = DTensor.from_local(torch.empty(32, 64, dtype=torch.bfloat16), mesh, [Replicate()])._spec
    path = assert_kept({"w": DTensor(local, spec, requires_grad=False)}, tmp_path, container)
    (seen,) = inspect(path)["tensors"]
    assert seen["scheme"] == "int8_row" and seen["type"] == "Int8Tensor"
    qcts("dequantize", path, tmp_path / "o.safetensors")
    assert read_safetensors(tmp_path / "o.safetensors")["w"][2] == raw(local.dequantize())
