"""The commands that are no operations, in this process."""

import json
from pathlib import Path

import pytest

from tests.transports.cli.harness import invoke
from vestige.settings.effective import MASK
from vestige.transports.cli.catalog import PAGES
from vestige.transports.cli.commands.about import SHELLS


def test_config_shows_what_is_in_force_and_where_it_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "vestige.toml").write_text("[memory]\nlimit = 7\n", encoding="utf-8")
    shown = invoke(["config", "--data-dir", str(tmp_path)], environ={"VESTIGE_MEMORY_SCOPE": "/project/tea"})
    settings = {one["name"]: one for one in json.loads(shown.stdout)["settings"]}
    assert (settings["memory.limit"]["value"], settings["memory.limit"]["source"]) == (7, "file")
    assert settings["data_dir"]["source"] == "flag"
    assert settings["mcp.profile"]["source"] == "default"
    assert settings["memory.scope"] == {
        "name": "memory.scope",
        "value": "/project/tea",
        "source": "environment",
        "environment": "VESTIGE_MEMORY_SCOPE",
        "project": True,
    }


@pytest.mark.parametrize("form", ["--json", "--table"])
def test_config_never_shows_a_secret(form: str, tmp_path: Path) -> None:
    shown = invoke(
        ["config", form, "--data-dir", str(tmp_path)],
        environ={
            "VESTIGE_EMBEDDINGS_API_KEY": "sk-hidden",
            "VESTIGE_EMBEDDINGS_URL": "https://ada:hidden@example.org/v1",
        },
    )
    assert shown.exit_code == 0
    assert "hidden" not in shown.stdout
    assert shown.stdout.count(MASK) == 2
    assert "@example.org/v1" in shown.stdout


def test_settings_that_cannot_be_used_are_refused_with_the_value_of_every_error(tmp_path: Path) -> None:
    refused = invoke(["config", "--config", str(tmp_path / "none.toml")])
    assert refused.exit_code == 2
    assert json.loads(refused.stderr)["error"]["code"] == "config"


@pytest.mark.parametrize("page", PAGES)
def test_every_reference_page_can_be_read(page: str) -> None:
    shown = invoke(["docs", page])
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert shown.stdout.startswith("# ")


def test_the_pages_are_listed_and_a_wrong_one_is_refused_with_the_nearest() -> None:
    assert [one["name"] for one in json.loads(invoke(["docs"]).stdout)["pages"]] == list(PAGES)
    refused = json.loads(invoke(["docs", "settingz"]).stderr)["error"]
    assert refused["hint"] == "Did you mean `settings`?"


def test_the_reference_is_written_checked_and_found_stale(tmp_path: Path) -> None:
    project = str(tmp_path)
    missing = invoke(["docs", "--check", project])
    assert missing.exit_code == 1
    written = json.loads(invoke(["docs", "--write", project]).stdout)["written"]
    assert written == json.loads(missing.stderr)["error"]["details"]["files"]
    assert invoke(["docs", "--check", project]).exit_code == 0
    (tmp_path / "docs/reference/errors.md").write_text("edited by hand", encoding="utf-8")
    (tmp_path / "docs/reference/gone.md").write_bytes((tmp_path / "docs/reference/tools.md").read_bytes())
    stale = ["docs/reference/errors.md", "docs/reference/gone.md"]
    assert json.loads(invoke(["docs", "--check", project]).stderr)["error"]["details"]["files"] == stale
    assert json.loads(invoke(["docs", "--write", project]).stdout)["written"] == stale
    assert invoke(["docs", "--check", project]).exit_code == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_its_completion_script(shell: str) -> None:
    shown = invoke(["completion", shell])
    assert shown.exit_code == 0
    assert "_VESTIGE_COMPLETE" in shown.stdout


@pytest.mark.parametrize("words", [["completion"], ["completion", "powershell"]])
def test_another_shell_is_refused_with_the_ones_there_are(words: list[str]) -> None:
    assert json.loads(invoke(words).stderr)["error"]["details"]["allowed"] == list(SHELLS)


def test_the_model_is_reported_absent_from_an_empty_cache(tmp_path: Path) -> None:
    shown = invoke(["model", "status"], environ={"VESTIGE_EMBEDDINGS_CACHE_DIR": str(tmp_path / "models")})
    assert json.loads(shown.stdout)["state"] == "absent"


def test_installing_a_model_offline_without_a_source_is_refused(tmp_path: Path) -> None:
    refused = invoke(["model", "install"], environ={"VESTIGE_EMBEDDINGS_CACHE_DIR": str(tmp_path / "models")})
    assert refused.exit_code == 1
    assert json.loads(refused.stderr)["error"]["code"] in ("model_unavailable", "missing_extra")


def test_a_server_offers_no_form_of_answers_that_it_does_not_give() -> None:
    shown = invoke(["mcp", "--help"])
    assert (shown.exit_code, "--data-dir" in shown.stdout) == (0, True)
    assert "--json" not in shown.stdout
    assert "--table" not in shown.stdout
