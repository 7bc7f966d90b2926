# SPDX-License-Identifier: BSD-3-Clause
"""The errors that the package raises."""


class Refused(ValueError):
    """A file is damaged, hostile, or in an unsupported format.

    `refusal` names the class of refusal ("CrcMismatch", "PickleGlobal"), `detail` says what is wrong, `offset` is the position in the file
    if there is one, `security` is true if the file tried to run code, and `allow` has the globals that open(allow=...) would accept."""

    def __init__(self, refusal, detail, offset=None, security=False, allow=()):
        super().__init__(f"{refusal}: {detail}" + (f" (offset {offset})" if offset is not None else ""))
        self.refusal, self.detail, self.offset, self.security, self.allow = refusal, detail, offset, security, list(allow)


class Unreadable(OSError):
    """A file does not exist or cannot be read."""


class NoDevice(RuntimeError):
    """There is no such GPU here, or torch cannot use it."""


class Failed(RuntimeError):
    """The program failed: `code` is its exit code, and `said` what it wrote to standard error."""

    def __init__(self, code, said):
        super().__init__(said.strip() or f"qcts ended with exit code {code}")
        self.code, self.said = code, said
