"""Many programs in a few worker processes; a worker that dies or hangs is one more answer, and another takes its place.

    python -m tests.random.campaign --count 20000 [--first SEED] [--jobs 2] [--compiler cutaway] [--keep FOLDER] [--time-limit SECONDS]

A failing program is minimised and written to FOLDER (tests/random/found), where the test runs it from then on.
"""

import argparse
import collections
import json
import os
import pathlib
import select
import subprocess
import sys
import threading
import time

from tests.random.minimise import kind_of, minimise

ROOT = pathlib.Path(__file__).parents[2]
QUESTION_LIMIT_S = 60  # of processor time: a machine may be busy with other things
LONGEST_WAIT_S = 1200  # for one that waits for something


class Worker:
    """A process that answers; started again when it is lost."""

    def __init__(self, compiler):
        self.compiler = compiler
        self.process = None

    def start(self):
        environment = dict(
            os.environ, PYTHONFAULTHANDLER="1", OMP_NUM_THREADS="1", PYTHONHASHSEED="0", CUTAWAY_STRICT="1"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.random.worker", self.compiler],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=open(
                os.devnull
                if not os.environ.get("CUTAWAY_DIFFERENTIAL_STDERR")
                else os.environ["CUTAWAY_DIFFERENTIAL_STDERR"],
                "a",
            ),  # noqa: SIM115
            text=True,
            cwd=ROOT,
            env=environment,
        )

    def ask(self, **question):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline() if self.has_answer() else None
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        self.stop()
        if self.compiler != "none" and self.dies_anyway(question):
            return {"verdict": "invalid", "place": "eager", "eager": "", "compiled": "", "graphs": 0, "raised": 0}
        died = f"exit status {self.code}" if line == "" else f"no answer after {QUESTION_LIMIT_S} s"
        return {
            "verdict": "crash" if line == "" else "hang",
            "place": died,
            "eager": "",
            "compiled": died,
            "graphs": 0,
            "raised": 0,
        }

    def used_s(self):
        """Processor time, 0 for a process that has ended."""
        try:
            fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def has_answer(self):
        used, end = self.used_s(), time.monotonic() + LONGEST_WAIT_S
        while self.used_s() - used < QUESTION_LIMIT_S and time.monotonic() < end:
            if select.select([self.process.stdout], [], [], 2)[0]:
                return True
        return False

    def dies_anyway(self, question):
        """A list that doubles in each round of a loop over it ends neither in time nor in memory, and one call of C is not interrupted."""
        eager = Worker("none")
        try:
            return eager.ask(**question)["verdict"] in ("hang", "crash")
        finally:
            eager.stop()

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.code = self.process.wait()
            self.process = None


def confirmed(answer, question, compiler):
    """The answer of a new process, where eager agrees with itself."""
    for name in (compiler, "none"):
        worker = Worker(name)
        again = worker.ask(**question)
        worker.stop()
        if name == compiler and not failed(again):
            return dict(again, verdict="invalid", place="only after other programs")
        if name == "none" and failed(again):
            return dict(again, verdict="invalid", place="not the same twice")
    return answer


def failed(answer):
    return answer["verdict"] not in ("equal", "invalid")


def signature(answer):
    return (answer["verdict"], *kind_of(answer["place"], answer["eager"], answer["compiled"]))


def reduce(text, answer, compiler, native):
    """The smallest program found that fails in the same way."""
    worker, wanted = Worker(compiler), signature(answer)

    def fails(candidate):
        return signature(worker.ask(text=candidate, native=native)) == wanted

    try:
        return minimise(text, fails)
    finally:
        worker.stop()


def is_native(seed):
    return seed % 2 == 1


def run(seeds, jobs, compiler, on_failure=None, time_limit=None, kind="random"):
    """Asks about every seed; gives the counts of verdicts, of programs with at least one graph, and the failures. The kinds are those of worker.py.
    Mutated programs may change their process, or tell where their objects lie: what another process does not show is no failure, nor is what eager
    shows against itself."""
    counts, failures, lock = collections.Counter(), [], threading.Lock()
    waiting = iter(seeds)
    end = time.monotonic() + time_limit if time_limit else None

    def work():
        worker = Worker(compiler)
        while end is None or time.monotonic() < end:
            with lock:
                seed = next(waiting, None)
            if seed is None:
                break
            question = {"seed": seed, "kind": kind}
            answer = worker.ask(**question)
            if failed(answer) and kind == "mutated":
                answer = confirmed(answer, question, compiler)
                worker.stop()
            with lock:
                counts[answer["verdict"]] += 1
                counts["with graphs"] += answer["graphs"] > 0
                counts["asked for graphs"] += not is_native(seed)
                counts["raising"] += answer["raised"] > 0
                if failed(answer):
                    failures.append((seed, answer))
            if failed(answer) and on_failure:
                on_failure(seed, answer)
        worker.stop()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts, sorted(failures, key=lambda pair: pair[0])


def summary(seed, answer):
    return f"program {seed}: {answer['verdict']}: {answer['place']}\n    eager    {answer['eager'][:300]}\n    compiled {answer['compiled'][:300]}"


def add_options(parser):
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--compiler", default="cutaway", choices=["cutaway", "torch", "none"])
    parser.add_argument("--keep", type=pathlib.Path, help="minimise failing programs into this folder")
    parser.add_argument("--time-limit", type=float, help="seconds")


def run_campaign(options, kind, program):
    """`program(seed)` gives the text that workers make of a seed of this kind."""
    kept = set()

    def on_failure(seed, answer):
        print(summary(seed, answer), flush=True)
        if options.keep and signature(answer) not in kept:
            kept.add(signature(answer))
            text = reduce(program(seed), answer, options.compiler, is_native(seed))
            options.keep.mkdir(parents=True, exist_ok=True)
            head = f"# seed {seed}, {'native' if is_native(seed) else 'fx'}: {answer['verdict']}\n"
            (options.keep / f"{kind}_{seed}.py").write_text(head + text + "\n")

    begin = time.monotonic()
    counts, failures = run(
        range(options.first, options.first + options.count),
        options.jobs,
        options.compiler,
        on_failure,
        options.time_limit,
        kind,
    )
    by_kind = collections.Counter(signature(answer) for _, answer in failures)
    for kind, number in by_kind.most_common():
        print(number, *kind)
    print(f"{dict(counts)} in {time.monotonic() - begin:.0f} s")
    return 1 if failures else 0


def main():
    from tests.random import generate

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    return run_campaign(parser.parse_args(), "random", generate.program)


if __name__ == "__main__":
    sys.exit(main())
