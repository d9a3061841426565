"""Tests in Python, and what tests in C++ read. `python -m tests.FOLDER.NAME`, from the root of the tree, runs one of the campaigns."""
