# SPDX-License-Identifier: BSD-3-Clause
"""The shells' completions know every command and option of --help, and the values that options take."""

import re
import shutil
import subprocess

import pytest
from qcts_program import commands, qcts

BASH = qcts("completion", "bash").stdout


def completed(*words):
    """Returns what bash offers for the last word."""
    script = BASH + '\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _qcts; printf "%s\\n" "${COMPREPLY[@]}"\n'
    done = subprocess.run(["bash", "-c", script, "bash", "qcts", *words], capture_output=True, text=True, timeout=20, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    "words, offered",
    [
        (["ins"], ["inspect"]),
        (["selftest", "k"], ["kill"]),
        (["selftest", "kill", "--mut"], ["--mutant"]),
        (["run", "--fil"], ["--filter"]),
        (["run", "--gate", ""], ["latency"]),
        (["run", "--gate", "=", "la"], ["latency"]),
        (["run", "--filter", "x", "--plan", "qui"], ["quick", "quick_cuda", "quick_files"]),
        (["quantize", "--scheme", "int4_tinygemm_g6"], ["int4_tinygemm_g64"]),
        (["quantize", "--as", "torchao_v"], ["torchao_v2", "torchao_v1", "torchao_v1_qdq"]),
        (["quantize", "--as", "torchao_0."], ["torchao_0.9", "torchao_0.8", "torchao_0.7", "torchao_0.6", "torchao_0.5"]),
        (["completion", ""], ["bash", "zsh"]),
        (["selftest", "kill", "--kind", "k"], ["kernel"]),
        (["list", "--kind", "num"], ["numerics"]),
        (["run", "--out", ""], []),
    ],
    ids=lambda value: " ".join(value) if value else "files",
)
def test_bash_offers(words, offered):
    given = [word for word in completed(*words) if not word.startswith("-") or words[-1].startswith("-")]
    assert given == offered


def commands_and_options():
    for command in commands():
        text = qcts(command, "--help").stdout
        yield command, set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text.split("ptions:", 1)[1]))


def test_every_option_of_help_is_completed():
    seen = 0
    for command, options in commands_and_options():
        assert command in completed("")
        own = {word for word in completed(command, "--")}
        assert "--help" in own
        mentioned_elsewhere = options - own
        for option in mentioned_elsewhere:  # a help text may name another command's option
            assert not re.search(rf"^ +(?:-\w,)?{option}\b", qcts(command, "--help").stdout, re.MULTILINE), (command, option)
        seen += len(own)
    assert seen > 100 and "worker" not in completed("")


def test_a_scripts_shell_must_be_known():
    assert "fish" in qcts("completion", "fish", code=2).stderr


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_takes_the_script():
    script = "autoload -U compinit; compinit -u -D; " + qcts("completion", "zsh").stdout + "; whence -w _qcts _qcts_selftest_kill"
    done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, timeout=20, check=False)
    assert done.stdout.split() == ["_qcts:", "function", "_qcts_selftest_kill:", "function"] and done.stderr == ""
