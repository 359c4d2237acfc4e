"""The few errors a user can meet, each with its exit code."""


class EnvauditError(Exception):
    """Base of every error that ends in one clear line; `exit_code` is what the shell sees."""

    exit_code = 70

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """What to do next, as one sentence; may be empty."""


class UsageError(EnvauditError):
    """Wrong usage: an option, a reference or a path that cannot be meant."""

    exit_code = 64


class InputError(EnvauditError):
    """A file from outside that cannot be read or is not what it should be."""

    exit_code = 64


class StoreError(EnvauditError):
    """The snapshot store cannot be read or written."""

    exit_code = 64


class MatrixError(EnvauditError):
    """A matrix file that cannot be read or breaks the format; names the file and the place."""

    exit_code = 64
