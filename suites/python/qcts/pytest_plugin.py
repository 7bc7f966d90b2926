# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plug-in, which pytest finds by itself if qcts is installed.

    pytest --qcts-file model.safetensors          checks a checkpoint as a separate test; may be repeated

    def test_my_linear(qcts_judge):               judges a callable, and fails with the causes
        qcts_judge("my_kernels:linear", op="linear", scheme="int8_row", plan="quick")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import qcts


class FileWrong(Exception):
    """A checkpoint is not sound, or not judged."""


class FileItem(pytest.Item):
    """`qcts check` of one file."""

    def __init__(self, *, file: str, **more: Any) -> None:
        super().__init__(**more)
        self.file = file

    def runtest(self) -> None:
        report = qcts.check(self.file)
        if report.ok:
            return
        lines = [f"{verdict['case_id']}: {verdict['status']}: {verdict['reason']}" for verdict in report.verdicts if _is_bad(verdict)]
        lines += [": ".join(filter(None, (finding["tensor"], finding["text"]))) for finding in report.findings]
        raise FileWrong("\n".join(lines) or f"not judged: {report.data['not_judged']}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, FileWrong | qcts.Refused | qcts.Unreadable):
            return f"{self.file}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, None, str]:
        return self.path, None, self.name


def _is_bad(verdict: dict[str, Any]) -> bool:
    return verdict["status"] not in ("pass", "not_supported")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("qcts").addoption(
        "--qcts-file", action="append", default=[], metavar="FILE", help="check FILE with qcts, as a separate test; may be repeated"
    )


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    for file in config.getoption("qcts_file"):
        items.append(FileItem.from_parent(session, name=f"qcts check {file}", file=file))


@pytest.fixture
def qcts_judge(tmp_path: Any) -> Callable[..., qcts.Judgement]:
    """qcts.judge(), which fails the test unless the answer is `ok`."""

    def judge(function: Callable[..., Any] | str, **how: Any) -> qcts.Judgement:
        answer = qcts.judge(function, **({"out": tmp_path / "qcts"} | how))
        if not answer.ok:
            pytest.fail(f"{answer}\n{answer.folder / 'report.html'}", pytrace=False)
        return answer

    return judge
