"""Tools for the people who keep the matrices: not part of what is installed."""
