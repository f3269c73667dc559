"""`python -m vestige` is `vestige`."""

from vestige.app import main

if __name__ == "__main__":
    main()
