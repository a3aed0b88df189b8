"""The NVML image: one table of cells, its layout, and the publishing of a State into it."""
