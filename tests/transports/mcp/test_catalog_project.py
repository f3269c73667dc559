"""The core profile lists the tools of a project where a project has an index, and nowhere else."""

from pathlib import Path

import pytest

from vestige.transports.mcp.catalog import Catalog, is_in_project, packaged, packaged_data

OF_A_PROJECT = {"project_recall", "project_warm_up"}


def names(catalog: Catalog) -> set[str]:
    return {str(tool["name"]) for tool in catalog.tools}


def test_the_tools_of_a_project_are_listed_below_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    assert not is_in_project()
    assert not names(packaged()) & OF_A_PROJECT
    (tmp_path / ".vestige").mkdir()
    (tmp_path / ".vestige" / "code-0123.db").touch()
    assert is_in_project()
    assert names(packaged()) >= OF_A_PROJECT
    assert packaged().has_tool("project_recall")


def test_a_listed_tool_is_not_named_as_one_that_is_not() -> None:
    catalog = Catalog(packaged_data(), "core", in_project=True)
    gateway = next(tool for tool in catalog.tools if tool["name"] == "vestige")
    assert "project_recall" not in str(gateway["description"])


def test_a_limited_caller_is_offered_no_tools_of_a_project() -> None:
    catalog = Catalog(packaged_data(), "core", granted=frozenset({"read", "write"}), in_project=True)
    assert not names(catalog) & OF_A_PROJECT


def test_the_full_profile_lists_each_tool_once() -> None:
    catalog = Catalog(packaged_data(), "full", in_project=True)
    listed = [tool["name"] for tool in catalog.tools]
    assert len(listed) == len(set(listed))
