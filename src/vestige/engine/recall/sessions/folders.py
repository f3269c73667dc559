"""The folders of coding agents on this machine, as the settings name them."""

from pathlib import Path

from vestige.exchange.transcripts.folders import ClientFolders
from vestige.settings.settings import Settings


def client_folders(settings: Settings) -> ClientFolders:
    chosen, home = settings.sessions, settings.clients_home

    def folder(given: str, otherwise: Path) -> Path:
        return Path(given).expanduser() if given and not chosen.home else otherwise

    mac = home / "Library" / "Application Support"
    return ClientFolders(
        home=home,
        claude=folder(chosen.claude_dir, home / ".claude"),
        codex=folder(chosen.codex_dir, home / ".codex"),
        share=folder(chosen.share_dir, home / ".local" / "share"),
        configuration=mac if mac.is_dir() else home / ".config",
    )
