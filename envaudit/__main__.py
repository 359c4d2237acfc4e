"""Run envaudit as ``python -m envaudit``."""

from envaudit.cli import main

if __name__ == "__main__":
    main()
