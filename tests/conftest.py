"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# Machines are noisy: how long one example takes says nothing about the code.
settings.register_profile("envaudit", deadline=None)
settings.load_profile("envaudit")
