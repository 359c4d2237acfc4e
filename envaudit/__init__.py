"""envaudit: what changed on this GPU machine, does it fit together, and what to do about it."""

__version__ = "0.1.0"
