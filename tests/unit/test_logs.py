"""Logs, compile times, debug directory and event streams as Python sees them."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading

import cutaway
import pytest
from cutaway._native import debug


@pytest.fixture(autouse=True)
def quiet():
    cutaway.set_logs()
    cutaway.compile_times(reset=True)
    yield
    cutaway.set_logs()
    cutaway.set_debug_dir(0)


def test_warnings_are_the_default(capfd):
    debug.say("capture", "info", "not shown")
    debug.decide("breaks", "print", "has an effect", {"line": 6}, "warning")
    assert re.fullmatch(r"cutaway [\d.]+ breaks warning: print: has an effect  line=6\n", capfd.readouterr().err)


@pytest.mark.parametrize(
    "call",
    [
        lambda: cutaway.set_logs("breaks,+capture"),
        lambda: cutaway.set_logs("graph_breaks,+dynamo"),
        lambda: cutaway.set_logs(breaks=True, capture="debug"),
        lambda: cutaway.set_logs("breaks", capture=logging.DEBUG),
    ],
)
def test_words_and_keywords_say_the_same(call, capfd):
    call()
    assert debug.logs() == "all=warning,capture=debug"
    debug.say("instructions", "debug", "LOAD_FAST 0")
    debug.say("aot", "info", "not shown")
    assert capfd.readouterr().err.endswith("instructions debug: LOAD_FAST 0\n")


def test_false_leaves_errors():
    cutaway.set_logs(aot=False)
    assert debug.logs() == "all=warning,aot=error"
    assert not debug.wants("joint_graph", "warning")
    assert debug.wants("joint_graph", "error")


def test_an_unknown_topic_offers_the_nearest():
    with pytest.raises(cutaway.Error, match='set_logs: unknown topic "captrue"; did you mean "capture"?'):
        cutaway.set_logs("captrue")
    with pytest.raises(cutaway.Error, match='unknown level "loud"'):
        cutaway.set_logs(capture="loud")
    assert debug.logs() == "all=warning"


def test_compile_times_by_phase_and_function():
    for _ in range(2):
        with debug.Phase("capture", "capture", {"function": "toy"}), debug.Phase("native", "fuse"):
            pass
    data = cutaway.compile_times("data")
    assert list(data) == ["native.fuse", "capture"]
    assert len(data["capture"]["toy"]) == 2
    assert all(t >= 0 for t in data["native.fuse"]["toy"])
    assert cutaway.compile_times("data", summed=True)["capture"]["toy"] == pytest.approx(sum(data["capture"]["toy"]))
    text = cutaway.compile_times(reset=True)
    assert re.search(r"^native\.fuse  toy +2 ", text, re.M)
    assert cutaway.compile_times("data") == {}
    with pytest.raises(ValueError, match="csv"):
        cutaway.compile_times("csv")


def test_events_of_a_block_are_recorded(tmp_path):
    path = tmp_path / "e.jsonl"
    debug.say("aot", "info", "before")
    with cutaway.events(path):
        fields = {"graph": "g", "n": 3, "x": 0.5, "ok": True, "huge": 2**70}
        with pytest.raises(KeyError), debug.Phase("aot", "split", fields) as phase:
            debug.count("cache", "hit", 2)
            phase.note("saved", "ä\x00\n")
            phase.note("lone", "\ud800")
            raise KeyError("k")
    debug.say("aot", "info", "after")
    begin, counter, end = cutaway.read_events(path)
    assert begin["fields"] == {**fields, "huge": str(2**70)}
    assert (counter["phase"], counter["fields"]) == (begin["phase"], {"delta": 2})
    assert end["fields"]["failed"] is True
    assert (end["fields"]["saved"], end["fields"]["lone"]) == ("ä\x00\n", "?")
    assert end["fields"]["error"] == "KeyError: 'k'"
    assert begin["pid"] == os.getpid()
    assert cutaway.last_unfinished_phase(path) == ""
    with cutaway.events(path, append=True):
        debug.say("aot", "debug", "more")
    assert len(cutaway.read_events(path)) == 4
    with cutaway.events(path):
        pass
    assert cutaway.read_events(path) == []


def test_bad_streams_are_errors(tmp_path):
    with pytest.raises(cutaway.Error, match="events cannot be written here"), cutaway.events(tmp_path / "no" / "e"):
        pass
    bad = tmp_path / "bad"
    bad.write_text("{}\n")
    with pytest.raises(cutaway.Error, match="bad:1: not a stream of events"):
        cutaway.read_events(bad)


def test_threads_do_not_nest(tmp_path):
    with cutaway.events(tmp_path / "e"):
        with debug.Phase("aot", "outer"):
            thread = threading.Thread(target=lambda: debug.Phase("aot", "other").__enter__().__exit__(None, None, None))
            thread.start()
            thread.join()
    begins = {e["name"]: e for e in cutaway.read_events(tmp_path / "e") if e["kind"] == "begin"}
    assert begins["other"]["outer"] == 0
    assert begins["other"]["thread"] != begins["outer"]["thread"]


def test_debug_directory(tmp_path, capfd):
    assert cutaway.debug_dir() is None
    cutaway.set_debug_dir(4, tmp_path, "-fx_graph_runnable")
    run = cutaway.debug_dir()
    assert re.fullmatch(rf"run_\d{{4}}(_\d\d){{5}}_\d{{6}}-pid_{os.getpid()}", os.path.basename(run))
    assert not os.path.exists(run)
    debug.keep_artifact("aot", "forward 0", "fx_graph_readable.py", "text")
    debug.keep_artifact("aot", "forward 0", "fx_graph_runnable.py", "text")
    assert capfd.readouterr().err.startswith(f"cutaway: debug directory: {run}\n")
    assert sorted(os.listdir(f"{run}/aot/0000.forward_0")) == ["fx_graph_readable.py"]
    assert [e["kind"] for e in cutaway.read_events(f"{run}/events.jsonl")] == ["artifact"]
    with pytest.raises(cutaway.Error, match='no file "diagrm"; did you mean "diagram"?'):
        cutaway.set_debug_dir(1, tmp_path, "diagrm")
    with pytest.raises(ValueError):
        cutaway.set_debug_dir(6)


def run_python(code, **environment):
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **environment})  # fmt: skip


def test_the_environment_is_read_and_torch_too(tmp_path):
    child = run_python(
        "import cutaway; print(cutaway._native.debug.logs()); print(cutaway.debug_dir())\n"
        "with cutaway._native.debug.Phase('aot', 'x'): pass",
        TORCH_LOGS="+dynamo", CUTAWAY_LOGS="-aot", TORCH_COMPILE_DEBUG="1", TORCH_COMPILE_DEBUG_DIR=str(tmp_path),
        CUTAWAY_EVENTS=str(tmp_path / "e"),
    )  # fmt: skip
    out, err = child.communicate()
    assert child.returncode == 0, err
    logs, run = out.split()
    assert logs == "all=warning,capture=debug,aot=error"
    assert run.startswith(str(tmp_path / "cutaway_debug" / "run_"))
    assert os.path.exists(f"{run}/aot/debug.log") and os.path.exists(f"{run}/times.txt")
    assert len(cutaway.read_events(tmp_path / "e")) == 2


def test_a_wrong_variable_is_told_at_import():
    child = run_python("import cutaway", CUTAWAY_DEBUG="lots")
    _, err = child.communicate()
    assert child.returncode != 0
    assert 'CUTAWAY_DEBUG: "lots" is not a level' in err


def test_a_killed_process_leaves_its_last_phase(tmp_path):
    child = run_python(
        "import cutaway, time\nP = cutaway._native.debug.Phase\n"
        "with P('capture', 'capture'): pass\n"
        "with P('backend', 'backend'):\n  with P('native', 'native'):\n    with P('native', 'fuse'): pass\n"
        "    print('here', flush=True); time.sleep(600)",
        CUTAWAY_EVENTS=str(tmp_path / "e"),
    )
    assert child.stdout.readline() == "here\n"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert cutaway.last_unfinished_phase(tmp_path / "e") == "native"
