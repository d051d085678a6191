"""The wheel: its tag, what it carries, and that it works where it is installed; types."""
import os
import subprocess
import sys
import zipfile

import pytest
from conftest import PROGRAM, ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Around the program that is built: nothing is compiled."""
    pytest.importorskip("scikit_build_core")
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([ROOT / "tools/build_wheel.sh", out, PROGRAM], check=True,
                   env={**os.environ, "PYTHON": sys.executable})
    return next(out.glob("*.whl"))


@pytest.mark.slow
def test_tag_and_content(wheel):
    assert "-py3-none-manylinux_2_34_" in wheel.name, "auditwheel has confirmed it in build_wheel.sh"
    names = zipfile.ZipFile(wheel).namelist()
    assert {"oomscope/bin/oomscope", "oomscope/py.typed", "oomscope/__init__.py"} <= set(names)
    assert not [name for name in names if "test" in name]


@pytest.mark.slow
def test_installed_it_runs_as_a_module_and_as_a_command(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "site", wheel],
                   check=True)
    environment = {key: value for key, value in os.environ.items() if key != "OOMSCOPE_PROGRAM"}
    environment["PYTHONPATH"] = str(tmp_path / "site")
    for command in ([sys.executable, "-m", "oomscope"], [str(tmp_path / "site/bin/oomscope")]):
        done = subprocess.run([*command, "--version"], env=environment, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0 and done.stdout.startswith("oomscope"), done.stderr


def test_types():
    mypy = pytest.importorskip("mypy.api")
    out, errors, code = mypy.run(["--config-file", str(ROOT / "pyproject.toml"), str(ROOT / "python/oomscope"),
                                  "--cache-dir", os.devnull])
    assert code == 0, out + errors
