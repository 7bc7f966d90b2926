# SPDX-License-Identifier: BSD-3-Clause
"""How many instructions the inner loops of the CUDA kernels of `linear` may execute, counted in their machine code.

An H100 has 132 multiprocessors of 4 schedulers at 1.755 GHz, and 3.35 TB/s. So memory delivers a byte of codes in the time of 0.277 warp
instructions. A scheduler issues about 60 % of the time: a loop with 0.17 instructions per byte keeps up with memory. mma.sync takes 4
clocks of a scheduler at the rate of wgmma, and its operands come through registers; with at most 6 instructions it has half of the time.
wgmma takes the clocks of its shape, in which the four schedulers issue for its four warps.

Counts the innermost loop around the last tensor instruction, or around the last load of codes, without cold blocks (sass.hot_loop).
A loop inside it counts once, and code that only some rows of x or some groups need always counts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import sass

MOST_PER_BYTE, MOST_PER_MMA, ISSUE_SHARE, SCHEDULERS = 0.17, 6.0, 0.6, 4
REGISTERS, SHARED_BYTES, THREADS, BLOCKS = 64 << 10, 227 << 10, 2048, 32  # of a multiprocessor of an H100
LATENCY_BYTES = 32 << 10  # of codes in flight cover the latency of a multiprocessor's share of memory
ELEMENTWISE = r"LDG\S*\.U8\b"  # codes of buffers that are not aligned
ANY_LOAD = r"LDG\b"  # such codes and x, and the parameters of a window of groups
MMA, WGMMA, CODES = r"[HI]MMA\b", r"[HQ]GMMA\b", r"LDG\.E\.NA\.\S*\b128\b"


@dataclass(frozen=True)
class Block:
    """The resources of a block in a launch: threads, shared memory, and bytes of codes in flight."""

    threads: int
    shared_bytes: int
    in_flight_bytes: int


@dataclass(frozen=True)
class Budget:
    """A frame, as name_of() writes it. `per` is "byte" (of codes), "mma" or "wgmma". A warp uses `bytes_per_mark` codes per
    instruction that matches `mark`, or `bytes_of_loop` in the loop. `block` gets the arguments of the frame."""

    pattern: str
    mark: str
    per: str
    block: Callable[[list[str]], Block]
    bytes_per_mark: float = 0
    bytes_of_loop: int = 0
    cold: tuple[str, ...] = (ELEMENTWISE,)


def decode_block(arguments):
    columns, parts = int(arguments[-2]), int(arguments[-1])
    warps, stages = 8 if parts == 1 else 7, 3 if columns == 1 else 2
    rows = 1 if columns == 1 else 16  # of x: m = 1, m = 16
    return Block(32 * warps, warps * stages * (2048 + 256 * rows + 128 * parts), warps * (stages - 1) * 2048)


# Numbers of a block: sm80/gemv.h and gemv_tiles.h with one row of bfloat16 x and groups of 128, the others from their headers.
BUDGETS = [
    Budget(r"gemv<", CODES, "byte", lambda _: Block(256, 6912, 8192), bytes_of_loop=1024),
    Budget(r"gemv_tiles<", CODES, "byte", lambda _: Block(256, 6912, 8192), bytes_of_loop=1024),
    Budget(r"decode<.*, 1, [14]>", MMA, "byte", decode_block, 256 / 3),
    Budget(r"decode<.*, 2, [14]>", MMA, "byte", decode_block, 128 / 3),
    Budget(r"gemm<.*(Int8|Float)Decoder.*, 1>", MMA, "byte", lambda _: Block(128, 57344, 16384), 128, cold=(ANY_LOAD,)),
    Budget(r"gemm<.*, 1>", MMA, "byte", lambda _: Block(128, 70656, 16384), 64, cold=(ANY_LOAD,)),
    Budget(r"int8_gemm<1>", MMA, "byte", lambda _: Block(128, 49152, 16384), 256, cold=(ANY_LOAD,)),
    Budget(r"fp8_gemm<Fp8Tile, 16,", WGMMA, "byte", lambda _: Block(160, 62464, 40960), 512),
    Budget(r"int4_gemm<Int4Tile, 16,", WGMMA, "byte", lambda _: Block(160, 58368, 32768), 128),
    Budget(r"gemm<.*, 4>", MMA, "mma", lambda _: Block(128, 96256, 8192), cold=(ANY_LOAD,)),
    Budget(r"int8_gemm<4>", MMA, "mma", lambda _: Block(128, 49152, 8192), cold=(ANY_LOAD,)),
    Budget(r"fp8_gemm<", WGMMA, "wgmma", lambda a: Block(32 + 128 * int(a[2]), 201728, 131072)),
    Budget(r"int4_gemm<", WGMMA, "wgmma", lambda a: Block(32 + 128 * int(a[2]), 184320, 65536)),
]


@dataclass(frozen=True)
class Row:
    """A kernel against its budget. `marks` is the number of tensor instructions, or loads of codes, in the loop."""

    key: str
    per: str
    instructions: int
    marks: int
    value: float  # instructions per byte, mma or wgmma; those of wgmma are of four warps
    limit: float
    registers: int
    blocks: int  # on a multiprocessor
    shared_bytes: int
    in_flight_bytes: int  # of a multiprocessor

    @property
    def misses(self):
        return self.value > self.limit

    @property
    def share(self):
        """The share of its roof that a kernel can reach with this count."""
        covered = min(1.0, self.in_flight_bytes / LATENCY_BYTES) if self.per == "byte" else 1.0
        return min(1.0, self.limit / self.value) * covered


def wgmma_clocks(text):
    """Returns the clocks of HGMMA.64x128x16 or QGMMA.64x128x32: 4096 bfloat16 or 8192 float8 operations per clock."""
    rows, columns, depth = (int(number) for number in re.search(r"\.(\d+)x(\d+)x(\d+)", text).groups())
    return 2 * rows * columns * depth / (8192 if sass.operation(text).startswith("Q") else 4096)


def row_of(kernel, registers):
    """Returns the Row of a kernel, or None if it has no budget. Raises ValueError if it has no loop with the budget's instruction."""
    name = sass.name_of(kernel.function)
    budget = next((budget for budget in BUDGETS if re.match(budget.pattern, name)), None)
    if budget is None:
        return None
    key = f"{kernel.architecture} {name}"
    texts = sass.hot_loop(kernel, budget.mark, budget.cold)
    marks = [text for text in texts if re.match(budget.mark, sass.operation(text))]
    if not marks:
        raise ValueError(f"{key}: no loop has {budget.mark}")
    if budget.per == "byte":
        value, limit = len(texts) / (budget.bytes_of_loop or len(marks) * budget.bytes_per_mark), MOST_PER_BYTE
    elif budget.per == "mma":
        value, limit = len(texts) / len(marks), MOST_PER_MMA
    else:
        value, limit = 4 * len(texts) / len(marks), wgmma_clocks(marks[-1]) * SCHEDULERS * ISSUE_SHARE
    block = budget.block(sass.arguments_of(kernel.function))
    of_registers = -(-max(registers, 1) // 8) * 8 * block.threads
    blocks = min(REGISTERS // of_registers, SHARED_BYTES // (block.shared_bytes + 1024), THREADS // block.threads, BLOCKS)
    return Row(key, budget.per, len(texts), len(marks), round(value, 3), round(limit, 3), registers, blocks, block.shared_bytes,
               blocks * block.in_flight_bytes)


def ratchet(rows, written):
    """Compares rows with the misses in the table, {key: value}. Returns (faults, what to write, the misses to write)."""
    faults, improved, misses = [], [], {}
    for row in rows:
        before = written.get(row.key)
        text = f"{row.key}: {row.value} instructions per {row.per}"
        if row.misses:
            misses[row.key] = row.value
        if row.misses and before is None:
            faults.append(f"{text}, over the budget of {row.limit}")
        elif row.misses and row.value > before:
            faults.append(f"{text}, {before} before: a row over its budget may only improve")
        elif before is not None and (not row.misses or row.value < before):
            improved.append(f"{text}, {before} before")
    keys = {row.key for row in rows}
    improved += [f"{key}: is gone" for key in written if key not in keys]
    return faults, improved, misses


def table_text(rows):
    yield "instructions of the innermost loop, H100: kernel, per what, count and budget; registers, blocks, shared and in-flight KiB; share"
    for row in sorted(rows, key=lambda row: row.key):
        yield (f"{row.key:58} {row.per:5} {row.value:8.3f} {'>' if row.misses else '<'} {row.limit:6.2f} {row.registers:4} {row.blocks:2} "
               f"{row.shared_bytes >> 10:4} {row.in_flight_bytes >> 10:4} {row.share:5.2f}")
