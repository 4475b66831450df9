"""Assembles default kernels of the published geometries for every chip.

Usage: ptxas.py PTXAS

Prints one line for each kernel that ptxas refuses, that spills or keeps a stack
frame (a dynamic index into registers makes one without any spill), or whose
wgmma it serializes or setmaxnreg it ignores, and a last line of counts.
"""

import concurrent.futures
import itertools
import os
import re
import subprocess
import sys
import tempfile

CHIPS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a", "sm_121a"]
# Query heads, kv heads and head dimension.
HEADS = [(24, 4, 256), (16, 2, 256), (32, 8, 128), (64, 8, 128), (32, 4, 128)]
TOKENS = [1, 8, 16]

# Clauses behind `tokens` that change what a lane does.
PLAIN = (
    "sees<prefix all, suffix causal> keys<bf16> values<bf16>"
    " paging<page_major page 64>"
)
PAGE_16 = (
    "sees<prefix all, suffix causal> keys<bf16> values<bf16>"
    " paging<nhd page 16>"
)
VARIANTS = [
    "sees<prefix all, suffix causal> keys<fp16> values<bf16>"
    " paging<head_major page 16> output<fp16 token_major with lse>",
    "sees<prefix symmetric within 2048, suffix bidirectional> keys<bf16>"
    " values<fp16> paging<nhd page 16> block<dense>"
    " query<bf16 token_major columns packed>",
    "sees<prefix left within 4096, suffix causal> keys<bf16> values<bf16>"
    " paging<contiguous> query<bf16 head_major columns counted positions given"
    " lengths total> split<keys of 1024>",
    "sees<prefix all, suffix causal> keys<bf16> values<bf16>"
    " paging<page_major page 64> query<bf16 token_major columns counted>"
    " schedule<auto invariant>",
]

# Drafts: a block beside a ring, and joined with its context. 64 heads over 8
# and 32 over 4 make 136 rows.
DRAFTS = [
    "sees<prefix symmetric within 2048, suffix bidirectional> keys<bf16>"
    " values<bf16> paging<page_major page 64 ring 2112> block<dense>"
    " query<bf16 token_major columns counted> sink",
    "sees<prefix symmetric within 4096, suffix bidirectional> keys<bf16>"
    " values<bf16> paging<nhd page 16 ring 4096> block<dense>"
    " query<bf16 token_major columns counted>",
    "sees<prefix all, suffix bidirectional> keys<bf16> values<bf16>"
    " paging<contiguous> query<bf16 token_major columns packed lengths total>"
    " sink",
]

FRAME = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores,"
    r" (\d+) bytes spill loads"
)


def spec(heads, tokens, clauses):
    query, kv, dim = heads
    return (
        f"attn.kernel @k heads<{query} over {kv}, dim {dim}>"
        f" tokens<{tokens}> {clauses}"
    )


def complaint(ptxas, folder, number, chip, heads, tokens, clauses):
    """What is wrong with one kernel, or None."""
    text = spec(heads, tokens, clauses)
    name = f"{chip}: {text}"
    path = os.path.join(folder, f"{number}.ptx")
    pipeline = f"--attn-to-ptx=chip={chip} output={path}"
    made = subprocess.run(
        ["ninfer-opt", pipeline, "-o", os.devnull],
        input=text,
        capture_output=True,
        text=True,
    )
    if made.returncode:
        return f"{name}: {made.stderr.strip()}"
    ran = subprocess.run(
        [ptxas, "-v", f"-arch={chip}", path, "-o", path + ".cubin"],
        capture_output=True,
        text=True,
    )
    said = ran.stdout + ran.stderr
    frames = FRAME.findall(said)
    # The sweep, the merge, and where there is one the sweep of ranges.
    if ran.returncode or len(frames) != 2 + ("'k_ranges'" in said):
        return f"{name}: {said.strip()}"
    for line in said.splitlines():
        if "serialized" in line or "setmaxnreg" in line:
            return f"{name}: {line}"
    for frame in frames:
        if any(map(int, frame)):
            return f"{name}: {frame[0]} bytes of stack, {frame[1]} of spills"
    return None


def main():
    cases = list(itertools.product(CHIPS, HEADS, TOKENS, [PLAIN]))
    cases += itertools.product(
        ["sm_80", "sm_90a"], [(24, 4, 256), (8, 4, 64)], [9], VARIANTS
    )
    cases += itertools.product(
        ["sm_80", "sm_90a"],
        [(32, 8, 128), (64, 8, 128), (32, 4, 128)],
        [17],
        DRAFTS,
    )
    cases += itertools.product(["sm_90a"], HEADS, [4, 10, 16], [PAGE_16])
    workers = os.cpu_count() or 2
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            found = pool.map(
                lambda case: complaint(
                    sys.argv[1], folder, case[0], *case[1]
                ),
                enumerate(cases),
            )
            complaints = [line for line in found if line]
    print("\n".join(complaints))
    print(f"{len(cases)} kernels, {len(complaints)} complaints")


if __name__ == "__main__":
    main()
