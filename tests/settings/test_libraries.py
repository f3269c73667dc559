"""What our programs leave out of libraries, and what takes its place when it is needed."""

import subprocess
import sys

import pytest

from testbed.patience import PATIENCE_SECONDS

PREPARED = "from vestige.settings.libraries import prepare_libraries; prepare_libraries()\n"


def printed(program: str) -> list[str]:
    """The lines that a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PREPARED + program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return done.stdout.splitlines()


def test_numpy_is_imported_without_its_types_and_docstrings() -> None:
    program = "import numpy, sys; print([one for one in sys.modules if one.startswith('numpy._typing.')])"
    assert printed(program) == ["[]"]


def test_the_array_type_is_that_of_numpy() -> None:
    ours = "import numpy as np\nfrom numpy.typing import NDArray\nprint(NDArray[np.float64])"
    (line,) = printed(ours)
    import numpy as np
    from numpy.typing import NDArray

    assert line == str(NDArray[np.float64])


@pytest.mark.parametrize(
    "program",
    [
        "from numpy.typing import ArrayLike; print(ArrayLike is not None)",
        "import numpy.typing as types; print(types.DTypeLike is not None)",
        "import numpy; from numpy._typing._array_like import NDArray; print(NDArray[numpy.int8] is not None)",
        "from numpy._typing import NDArray, _ArrayLikeInt; print(_ArrayLikeInt is not None)",
    ],
)
def test_any_other_type_comes_from_numpy(program: str) -> None:
    assert printed(program) == ["True"]
