"""The commands `vestige` (also `python -m vestige`) and `vestige-restore`."""

from typing import NoReturn

from vestige.settings import calm_blas


def main() -> NoReturn:
    """Run `vestige`."""
    calm_blas()
    from vestige.app import main as run  # brings numpy

    run()


def restore() -> NoReturn:
    """Run `vestige-restore FILE`."""
    calm_blas()
    from vestige.app import restore_main  # brings numpy

    restore_main()


if __name__ == "__main__":
    main()
