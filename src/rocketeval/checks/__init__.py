"""Code-checked items: a library of safe checks, run in a limited process."""
