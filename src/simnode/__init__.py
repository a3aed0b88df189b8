"""simnode: a plain Linux machine that looks like a multi-GPU NVIDIA node."""

__version__ = "0.1.0"
