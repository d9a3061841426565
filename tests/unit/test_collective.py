"""The compiler collective: two processes of a gloo group whose batches differ compile the same graph; one that is lost is named."""

import json
import os
import socket
import subprocess
import sys
import textwrap

import cutaway
import pytest
import torch

COMMON = """
import json, os, sys, time
import torch
import torch.distributed as dist
import cutaway

rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
graphs, breaks = [], []

def backend(module, inputs):
    graphs.append(module.code)
    return module.forward

def tell(**more):
    print(json.dumps({"rank": rank, "graphs": graphs, "breaks": breaks, **more}), flush=True)
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def run_ranks(script, timeout=120):
    port = free_port()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", COMMON + textwrap.dedent(script)],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    out = []
    for process in ranks:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        finally:
            for p in ranks:
                if p.poll() is None and process.poll() is None:
                    p.kill()
        out.append((process.returncode, stdout, stderr))
    return out


def answers(done):
    for code, _, stderr in done:
        assert code == 0, stderr[-3000:]
    return [json.loads(stdout.splitlines()[-1]) for _, stdout, _ in done]


def test_batch_sizes_that_differ_become_symbols_on_all_ranks():
    zero, one = answers(
        run_ranks("""
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        torch.manual_seed(0)
        for p in model.parameters(): torch.nn.init.normal_(p)
        def f(x):
            return model(x) * x.shape[0]
        with cutaway.options(compiler_collective=True, compiler_collective_timeout=60):
            compiled = cutaway.compile(f, backend=backend)
            for batch in (2 + rank, 5 + rank, 9):
                x = torch.ones(batch, 4)
                assert torch.equal(compiled(x), f(x))
        dist.barrier()
        tell()
        """)
    )
    assert len(zero["graphs"]) == len(one["graphs"]) == 1  # one graph serves every batch, from the first call on
    assert zero["graphs"] == one["graphs"]


def test_without_the_option_each_rank_is_alone():
    zero, one = answers(
        run_ranks("""
        def f(x):
            return x.sin() * x.shape[0]
        compiled = cutaway.compile(f, backend=backend)
        compiled(torch.ones(2 + rank, 4))
        dist.barrier()
        tell()
        """)
    )
    assert zero["graphs"] != one["graphs"]


def test_ranks_that_take_different_ways_run_eagerly():
    zero, one = answers(
        run_ranks("""
        def f(x):
            y = x + 1
            if rank == 1:
                print("only here")
            z = y * 2
            return z - 3
        seen = cutaway._explain._listening(lambda r: breaks.append(r["reason"]["id"]) if r["reason"] else None)
        with seen, cutaway.options(compiler_collective=True, compiler_collective_timeout=60):
            compiled = cutaway.compile(f, backend=backend)
            assert torch.equal(compiled(torch.ones(3)), f(torch.ones(3)))
        dist.barrier()
        tell()
        """)
    )
    # Rank 0 does not come past the print, so it cannot end its graph there.
    assert zero["breaks"] == one["breaks"] == ["ranks-differ"]
    assert zero["graphs"] == one["graphs"] == []


def test_breaks_at_a_place_that_both_pass():
    zero, one = answers(
        run_ranks("""
        def inner(x):
            if rank == 1:
                print("only here")
            return x * 2
        def f(x):
            y = x + 1
            z = inner(y)
            return z - 3
        seen = cutaway._explain._listening(lambda r: breaks.append(r["reason"]["id"]) if r["ending"] == "break" else None)
        with seen, cutaway.options(compiler_collective=True, compiler_collective_timeout=60):
            compiled = cutaway.compile(f, backend=backend)
            assert torch.equal(compiled(torch.ones(3)), f(torch.ones(3)))
        dist.barrier()
        tell()
        """)
    )
    assert zero["breaks"][0] == "other-rank" and one["breaks"][0] == "print"
    assert len(zero["graphs"]) == 2 and zero["graphs"] == one["graphs"]  # before the call of inner, and behind it


@pytest.mark.parametrize("way", ["dies", "stalls"])
def test_a_lost_rank_is_named(way):
    done = run_ranks(f"""
        def f(x):
            return x.sin()
        if rank == 1:
            if {way!r} == "dies":
                os._exit(0)
            time.sleep(12)
            os._exit(0)
        began = time.monotonic()
        try:
            with cutaway.options(compiler_collective=True, compiler_collective_timeout=2):
                cutaway.compile(f, backend=backend)(torch.ones(3))
            tell(text="")
        except cutaway.exc.CollectiveError as error:
            tell(text=str(error), seconds=time.monotonic() - began)
        os._exit(0)
        """)
    code, stdout, stderr = done[0]
    assert code == 0, stderr[-3000:]
    text = json.loads(stdout.splitlines()[-1])["text"]
    assert "rank 1 does not answer" in text and "about to compile f" in text and "compiler_collective_timeout" in text


def test_a_group_is_needed():
    with pytest.raises(cutaway.Error, match="init_process_group"), cutaway.options(compiler_collective=True):
        cutaway.compile(lambda x: x + 1)(torch.ones(2))
