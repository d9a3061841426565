"""Strict everywhere: an error of Cutaway's own fails the test instead of running the function eagerly. Child processes inherit it."""

import os

os.environ["CUTAWAY_STRICT"] = "1"
