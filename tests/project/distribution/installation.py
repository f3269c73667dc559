"""An installed Vestige, used as its users use it: commands, the MCP server, the HTTP server."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.patience import PATIENCE_SECONDS

KEPT = ("LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "TMPDIR", "SYSTEMROOT")
PROGRAMS = "Scripts" if sys.platform == "win32" else "bin"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def clean_environ(home: Path, **more: str) -> dict[str, str]:
    """The environment of a user with an empty home, without the settings of the one who runs the tests."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.defpath])
    return {**kept, "PATH": path, "HOME": str(home), "VESTIGE_OFFLINE": "1", **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Programs in a folder, and the environment that they run in. What they make is below `home`."""

    programs: Path
    home: Path
    environ: Mapping[str, str]

    def run(self, program: str, *arguments: str) -> str:
        return run([str(self.programs / program), *arguments], self.home, self.environ)

    def initialise(self) -> dict[str, object]:
        """What `vestige-mcp` answers to `initialize`."""
        return initialise([str(self.programs / "vestige-mcp")], self.home, self.environ)

    def health(self) -> int:
        """The status of the health endpoint of a `vestige serve`."""
        command = [str(self.programs / "vestige"), "serve", "--bind", "127.0.0.1:0", "--no-auth", "--json"]
        with subprocess.Popen(
            command, cwd=self.home, env=dict(self.environ), stdout=subprocess.PIPE, encoding="utf-8"
        ) as server:
            assert server.stdout is not None
            try:
                url = json.loads(server.stdout.readline())["url"]
                with urllib.request.urlopen(f"{url}/health", timeout=PATIENCE_SECONDS) as answer:
                    return int(answer.status)
            finally:
                server.terminate()


def run(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=dict(environ), capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def initialise(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> dict[str, object]:
    done = subprocess.run(
        command,
        cwd=folder,
        env=dict(environ),
        input=json.dumps(INITIALIZE) + "\n",
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout.splitlines()[0])["result"]
    assert isinstance(result, dict)
    return result


def python_of(version: str) -> Path | None:
    """An interpreter of a version such as 3.12 on this machine: on the path, or one that pyenv has."""
    named = shutil.which(f"python{version}")
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [Path(named)] if named else []
    found += sorted(versions.glob(f"{version}.*/bin/python"), reverse=True)
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for python in found:
        done = subprocess.run([str(python), "-c", code], capture_output=True, encoding="utf-8", check=False)
        if done.stdout.strip() == version:
            return python
    return None
