"""How long a test waits for a program that ought to end.

It only keeps a run of the tests from hanging for ever: a busy machine takes many times what a quiet one does, and that proves
nothing. A test that checks a time says so itself.
"""

PATIENCE_S = 600
