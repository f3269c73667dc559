"""The default data directory of the platform, and the names of environment variables.

Paths are text: programs that start within milliseconds cannot import pathlib.
"""

import os
from collections.abc import Mapping


def default_data_directory(environ: Mapping[str, str], platform: str) -> str:
    """The data directory for this environment, on a platform as `sys.platform` names it."""
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - see above
    if platform == "darwin":
        parts = [home, "Library", "Application Support", "com.vestige.core"]
    elif platform == "win32":
        roaming = environ.get("APPDATA")
        parts = [*([roaming] if roaming else [home, "AppData", "Roaming"]), "vestige", "core"]
    else:
        data = environ.get("XDG_DATA_HOME", "")
        # The XDG standard requires ignoring a relative path.
        parts = [*([data] if data.startswith("/") else [home, ".local", "share"]), "vestige", "core"]
    return os.path.join(*parts)  # noqa: PTH118 - see above


def environment_name(dotted: str) -> str:
    """The environment variable of a setting."""
    return "VESTIGE_" + dotted.upper().replace(".", "_")
