# The standard library is left out of this recording.
