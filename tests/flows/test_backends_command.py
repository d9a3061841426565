"""cutaway backends, and doctor's part of it."""

import json
import subprocess


def test_backends_in_words_and_as_json(command):
    words = subprocess.run([command, "backends"], capture_output=True, text=True, check=True).stdout
    rows = json.loads(
        subprocess.run([command, "backends", "--json"], capture_output=True, text=True, check=True).stdout
    )
    names = [row["name"] for row in rows["backends"]]
    assert {"eager", "native", "inductor", "fault", "python"} <= set(names) and names == sorted(names)
    for row in rows["backends"]:
        assert f"{row['name']}{row['parameters']}\n    {row['summary']}\n" in words
        assert row["devices"] and isinstance(row["needs_trust"], bool)
    assert "needs compiler" in words and "option for eager random: fallback_random" in words


def test_doctor_has_the_same_rows(command):
    doctor = json.loads(subprocess.run([command, "doctor", "--json"], capture_output=True, text=True).stdout)
    rows = json.loads(subprocess.run([command, "backends", "--json"], capture_output=True, text=True).stdout)
    assert doctor["backends"] == rows["backends"]
