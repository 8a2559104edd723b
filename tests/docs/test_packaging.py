"""What an installation contains and where it finds it."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

import tempest_agent

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS: dict[str, Any] = PROJECT["tool"]["setuptools"]
MAPPED: dict[str, str] = SETUPTOOLS["package-dir"]


def folder_of(package: str) -> Path:
    """Where the files of ``package`` are in the checkout."""
    best = max((name for name in MAPPED if f"{package}.".startswith(f"{name}.")), key=len)
    return ROOT.joinpath(MAPPED[best], *package[len(best) :].split("."))


def test_the_version_is_the_same_everywhere() -> None:
    version = PROJECT["project"]["version"]
    assert metadata.version("tempest-agent") == tempest_agent.__version__ == version
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_everything_is_inside_the_one_package() -> None:
    for package in SETUPTOOLS["packages"]:
        assert package.split(".")[0] == "tempest_agent"
        assert (folder_of(package) / "__init__.py").is_file(), package


def test_every_folder_with_code_is_packaged() -> None:
    listed = {folder_of(package).resolve() for package in SETUPTOOLS["packages"]}
    for top in MAPPED.values():
        for code in (ROOT / top).rglob("*.py"):
            assert code.parent.resolve() in listed, f"{code.parent} is missing in pyproject.toml"


def test_every_data_file_is_packaged() -> None:
    data: dict[str, list[str]] = SETUPTOOLS["package-data"]
    for package in SETUPTOOLS["packages"]:
        for file in folder_of(package).iterdir():
            kept = any(file.match(pattern) for pattern in data.get(package, []))
            if file.name == "latest.pt":
                assert not kept, f"{file}, which a run has written, would be packed"
            elif file.is_file() and file.suffix != ".py" and not file.name.startswith("."):
                assert kept, f"{file} would be missing in a wheel"


def test_the_console_script_is_the_command_group() -> None:
    script = next(
        entry
        for entry in metadata.entry_points(group="console_scripts")
        if entry.name == "tempest-agent"
    )
    assert script.value == "tempest_agent.cli:main"


@pytest.mark.parametrize(
    "code",
    [
        "from tempest_agent.config import load_config; load_config('quick')",
        "import gymnasium; gymnasium.make('tempest_agent:Tempest-v0').reset(seed=0)",
        "import tempest_agent, sys; assert 'torch' not in sys.modules",
        # What Ray's workers import is small.
        "import tempest_agent.actors.executor, sys; assert 'torch' not in sys.modules",
    ],
)
def test_it_works_from_any_folder_beside_a_users_own_envs(code: str, tmp_path: Path) -> None:
    for name in ("envs", "experts", "configs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('the wrong package')\n")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr


def test_python_started_in_the_checkout_finds_the_folders_beside_the_package(
    tmp_path: Path,
) -> None:
    """Also where another copy is installed: ``python -c`` and ``-m`` look here first."""
    (tmp_path / "checkout").symlink_to(ROOT)
    code = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "Editable" not in str(finder)]
from tempest_agent import configs, envs, experts
print(envs.__file__)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "checkout", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == ROOT / "envs" / "__init__.py"


def test_nothing_in_the_package_names_a_folder_of_one_machine() -> None:
    for file in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("configs/*.yaml")]:
        text = file.read_text(encoding="utf-8")
        assert "/home/" not in text, file
        assert "/opt/" not in text, file
