"""Records of frames that could not be captured."""

def summary(path: str) -> str:
    """What a record holds, for people. Executes nothing."""

def modules(path: str) -> list[str]:
    """Modules that replaying it imports."""

def run(path: str) -> dict:
    """
    Makes the record's objects, which runs its code, and captures its frame.
    """
