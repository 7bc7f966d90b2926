# SPDX-License-Identifier: BSD-3-Clause
"""The wheel, and an environment that has nothing of the repository but the wheel."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def wheel():
    compiled = Path(os.environ.get("QCTS_BUILD", ROOT / "build/release"))
    # Python cannot load a module with a sanitizer's code.
    is_plain = "QCTS_SANITIZE:STRING=\n" in (compiled / "CMakeCache.txt").read_text()
    words = ["--compiled", compiled] if is_plain else []
    made = subprocess.run([ROOT / "scripts/wheel", *words], capture_output=True, text=True, cwd=ROOT)
    assert made.returncode == 0, made.stdout + made.stderr
    return next((ROOT / "dist").glob("qcts-*.whl"))


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory):
    """A virtual environment with the wheel. It finds NumPy, torch and safetensors in the one that runs the tests."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "--quiet", wheel], check=True)
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    (Path(site) / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")) + "\n")
    return folder
