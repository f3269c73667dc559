"""The settings in force: `system_settings`."""

from typing import Any

from vestige.engine.context import Call
from vestige.operations.registry.arguments import Wire
from vestige.operations.registry.registry import registry
from vestige.operations.shared.text import table
from vestige.settings.effective import effective_settings


class SettingView(Wire):
    """A setting. `source` says where its value comes from: default, file, environment or flag. The file is
    `vestige.toml`; `environment` is the variable that sets it. A secret value is masked."""

    name: str
    value: Any
    source: str
    environment: str
    project: bool
    description: str


class SettingsView(Wire):
    """The settings of the process that answers, and the settings file that it read, if there is one."""

    file: str
    file_exists: bool
    settings: list[SettingView]


def _render(answer: SettingsView) -> str:
    rows = ((one.name, one.value, one.source) for one in answer.settings if one.source != "default")
    head = f"{answer.file}{'' if answer.file_exists else ' (does not exist)'}"
    return f"{table(('setting', 'value', 'from'), rows)}\n\nFile: {head}. All others have their default."


@registry.operation(
    "system_settings",
    permission="admin",
    effect="none",
    example={},
    command="settings",
    title="Settings in force",
    render=_render,
)
def system_settings(call: Call) -> SettingsView:
    """Show the settings of the process that answers, and where each value comes from. Secrets are masked.

    `vestige config` shows the same for a process that would start now.
    """
    settings = call.engine.settings
    return SettingsView(
        file=str(settings.file),
        file_exists=settings.file.is_file(),
        settings=[SettingView.of(one) for one in effective_settings(settings)],
    )
