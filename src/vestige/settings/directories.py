"""Where memories are when nobody says: the platform's place for data.

Paths as text: who starts within milliseconds has no time to import pathlib.
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
        # The XDG standard says that a relative one is to be ignored.
        parts = [*([data] if data.startswith("/") else [home, ".local", "share"]), "vestige", "core"]
    return os.path.join(*parts)  # noqa: PTH118 - see above
