"""Renderers: a report or a comparison in, text out. Each format is one module."""
