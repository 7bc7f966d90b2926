# SPDX-License-Identifier: BSD-3-Clause
"""Reads the machine code that `cuobjdump -sass` prints: names of kernels, their instructions, and their loops."""

import hashlib
import re
from dataclasses import dataclass, field


@dataclass
class Kernel:
    """`code` has an (address, text) for each instruction; the text begins with the predicate, if there is one."""

    architecture: str
    function: str  # mangled
    code: list[tuple[int, str]] = field(default_factory=list)

    def count(self, pattern):
        return sum(bool(re.match(pattern, operation(text))) for _, text in self.code)

    def digest(self):
        return hashlib.sha256("\n".join(text for _, text in self.code).encode()).hexdigest()[:16]


def operation(text):
    """Returns "LDG.E.128" for "@!P0 LDG.E.128 R4, [R2.64]"."""
    words = text.split()
    return words[1] if words[0].startswith("@") else words[0]


def read_kernels(lines):
    """Yields each Kernel when it is complete, since the text of all of them takes gigabytes."""
    architecture, kernel = "", None
    for line in lines:
        if found := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", line):
            if kernel:
                kernel.code.append((int(found.group(1), 16), found.group(2)))
        elif found := re.match(r"arch = (\w+)", line):
            architecture = found.group(1)
        elif found := re.match(r"\s*Function : (\S+)", line):
            if kernel:
                yield kernel
            kernel = Kernel(architecture, found.group(1))
    if kernel:
        yield kernel


def _names(function):
    """Splits a mangled name into the last of the names after _Z or _ZN, each with its length in front of it, and the rest."""
    rest = function.removeprefix("_Z").removeprefix("N")
    name = function
    while found := re.match(r"\d+", rest):
        end = found.end() + int(found.group())
        name, rest = rest[found.end() : end], rest[end:]
    return name, rest


def frame_of(function):
    """Returns "gemm" for the mangled name of gemm<BF16, Nf4Decoder, 4>."""
    return _names(function)[0]


def arguments_of(function):
    """Returns ["BF16", "Nf4Decoder", "4"] for it. An argument's own arguments follow it in the same list, without brackets."""
    rest = _names(function)[1]
    if not rest.startswith("I"):
        return []
    found, at, depth = [], 1, 1
    while depth > 0 and at < len(rest):
        if value := re.match(r"L[a-z](\d+)E", rest[at:]):
            found.append(value.group(1))
            at += value.end()
        elif length := re.match(r"\d+", rest[at:]):
            end = at + length.end() + int(length.group())
            name = rest[at + length.end() : end]
            if name not in ("qcts", "sm80", "sm90a") and not name.startswith("_GLOBAL__"):
                found.append(name)
            at = end
        elif shorthand := re.match(r"S[0-9A-Z]*_", rest[at:]):
            at += shorthand.end()
        else:
            depth += {"I": 1, "N": 1, "E": -1}.get(rest[at], 0)
            at += 1
    return found


def name_of(function):
    """Returns "gemm<BF16, Nf4Decoder, 4>". It has no part that changes with the path or the text of a source."""
    arguments = arguments_of(function)
    return frame_of(function) + (f"<{', '.join(arguments)}>" if arguments else "")


def _target(text):
    found = re.match(r"(?:@\S+ +)?BRA\b.* (0x[0-9a-f]+)$", text)
    return int(found.group(1), 16) if found else None


def _falls_through(text):
    return not re.match(r"(BRA(\.\w+)* 0x|EXIT|RET|BRX|JMP)", text)  # with a predicate they do


class Graph:
    """The basic blocks of a kernel: their instructions, the blocks that may follow each, and the loops."""

    def __init__(self, kernel):
        starts = {_target(text) for _, text in kernel.code} | {kernel.code[0][0]}
        self.blocks, self.next = [], []
        ends = True
        block_at = {}
        for address, text in kernel.code:
            if ends or address in starts:
                block_at[address] = len(self.blocks)
                self.blocks.append([])
            self.blocks[-1].append(text)
            ends = _target(text) is not None or not _falls_through(text)
        for i, block in enumerate(self.blocks):
            follows = {i + 1} if _falls_through(block[-1]) and i + 1 < len(self.blocks) else set()
            if (target := _target(block[-1])) in block_at:
                follows.add(block_at[target])
            self.next.append(follows)
        self._follow_tables()
        self.before = [set() for _ in self.blocks]
        for i, follows in enumerate(self.next):
            for j in follows:
                self.before[j].add(i)

    def _follow_tables(self):
        """A table branch (BRX) may go to the blocks between it and the next table branch that no other branch goes to."""
        targets = set().union({0}, *self.next)
        table = None
        for i, block in enumerate(self.blocks):
            if table is not None and i not in targets:
                self.next[table].add(i)
            if operation(block[-1]) == "BRX":
                table = i

    def _reached(self, starts, edges, within):
        found, open_ones = set(), [i for i in starts if i in within]
        while open_ones:
            i = open_ones.pop()
            if i not in found:
                found.add(i)
                open_ones += [j for j in edges[i] if j in within]
        return found

    def _dominators(self):
        """Returns, for each reachable block, the blocks that every path from the entry to it passes."""
        reached = self._reached([0], self.next, range(len(self.blocks)))
        order = sorted(reached)
        found = {i: reached for i in order} | {0: {0}}
        changed = True
        while changed:
            changed = False
            for i in order[1:]:
                ways = [found[j] for j in self.before[i] if j in found]
                new = set.intersection(*ways) | {i}
                if new != found[i]:
                    found[i], changed = new, True
        return found

    def loops(self):
        """{first block: blocks}. A loop has the blocks that reach a branch back to its first block without passing that block."""
        found = {}
        for i, dominators in self._dominators().items():
            for first in self.next[i] & dominators:
                within = set(range(len(self.blocks))) - {first}
                found.setdefault(first, {first}).update(self._reached([i], self.before, within))
        return found

    def has(self, i, pattern):
        return any(re.match(pattern, operation(text)) for text in self.blocks[i])


def hot_loop(kernel, mark, cold):
    """Returns the texts of the instructions of the innermost loop around the last instruction in a loop that matches `mark`. Left out are
    blocks with an instruction that matches `cold`, if they have no mark, blocks that only such blocks lead to or follow, and loops that
    wait for a barrier. Returns [] if there is no such loop."""
    graph = Graph(kernel)
    loops = graph.loops()
    marked = [i for i in range(len(graph.blocks)) if graph.has(i, mark) and any(i in blocks for blocks in loops.values())]
    if not marked:
        return []
    first, loop = min(((first, blocks) for first, blocks in loops.items() if marked[-1] in blocks), key=lambda of: len(of[1]))
    waits = [blocks for inner, blocks in loops.items() if blocks < loop and any(graph.has(i, r"SYNCS\.PHASECHK") for i in blocks)]
    left_out = {i for i in loop if cold and graph.has(i, "|".join(cold))}
    left_out |= {i for blocks in waits for i in blocks}
    hot = (loop - left_out) | {i for i in loop if graph.has(i, mark)}
    backs = [i for i in loop if first in graph.next[i]]
    hot = graph._reached([first], graph.next, hot) & graph._reached(backs, graph.before, hot)
    return [text for i in sorted(hot) for text in graph.blocks[i]]
