"""Answers questions about programs, one JSON object a line: {"seed": n, "kind": "random"} or {"text": "..."} in, the answer out."""

import dataclasses
import json
import os
import resource
import sys

import torch

from tests.random.check import CALLS, Compiler, check
from tests.random.generate import program
from tests.random.mutate import mutated

PROGRAMS = {"random": program, "mutated": mutated}
MEMORY = 16 << 30  # a list that is repeated 10**10 times raises, and kills nobody


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a program or a library prints may look like an answer
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    compiler = Compiler(sys.argv[1])
    for line in sys.stdin:
        question = json.loads(line)
        try:
            text = question.get("text") or PROGRAMS[question["kind"]](question["seed"])
        except Exception as error:  # a mistake of ours, which must not look like a program that does not run
            told = dict(verdict="no program", place=repr(error), eager="", compiled="", graphs=0, raised=0)
            answers.write(json.dumps(told) + "\n")
            answers.flush()
            continue
        # Every other program runs in the native program, the others in a Python backend that receives an fx graph.
        native = question.get("native", question.get("seed", 0) % 2 == 1)
        answer = check(text, compiler, question.get("calls", CALLS), native=native)
        answers.write(json.dumps(dataclasses.asdict(answer)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
