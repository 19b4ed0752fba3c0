"""Files that are damaged, hostile or not supported: the program must refuse each with exit code 2
and words that help; never crash, hang, run what is inside, or take all memory.

    python3 refusals.py build/tessera [--only NAME]... [--keep DIR] [--write-only]
"""

import argparse
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch  # noqa: F401

import outside
from refused import REFUSALS
from refused.pickles import marker_was_written
from refused.refusal import REFUSED, SKIP

TIMEOUT_S = 60
ADDRESS_SPACE_BYTES = 12 << 30  # the libraries alone map some; a blow-up ends here, with a message
AT_A_TIME = max(2, os.cpu_count() or 2)
NEVER = ("terminate called", "Traceback", "frame #0", "INTERNAL ASSERT", "std::", "Segmentation")


def write(refusal, folder):
    """Writes the file into a folder of its own; returns the path to hand over, or SKIP."""
    own = folder / refusal.name
    own.mkdir()
    path = own / "model.pt"
    return refusal.write(path) or path


def source_error(refusal, text):
    """Whether the message points at a line of the user's class."""
    name, first, last = refusal.source
    lines = [int(n) for n in re.findall(re.escape(name) + r'"?[:, ]+(?:line )?(\d+)', text)]
    if any(first <= line <= last for line in lines):
        return None
    return f"no line {first} to {last} of {name} in the message"


def error_in(refusal, outcome, folder):
    """What is wrong with how the program took the file; None where nothing is."""
    text = outcome.out + outcome.err
    if outcome.timed_out:
        return f"still running after {TIMEOUT_S} s"
    if marker_was_written(folder) or marker_was_written("."):
        return "ran a program out of a pickle"
    if outcome.code not in refusal.codes:
        return f"exit code {outcome.code}, expected {' or '.join(map(str, refusal.codes))}"
    for word in NEVER:
        if word in text:
            return f"the message shows the inside: {word}"
    if outcome.code not in REFUSED:
        return None
    if not outcome.err.strip():
        return "no message on stderr"
    if refusal.words and not any(word.lower() in outcome.err.lower() for word in refusal.words):
        return f"none of {refusal.words} in the message"
    return source_error(refusal, outcome.err) if refusal.source else None


def run(program, refusal, path):
    arguments = [program, *refusal.command, path, *refusal.options]
    if refusal.input_shape:
        arguments += ["--input", refusal.input_shape]
    outcome = outside.run(arguments, TIMEOUT_S, ADDRESS_SPACE_BYTES)
    error = error_in(refusal, outcome, path.parent)
    first_line = outcome.err.strip().split("\n")[0][:300]
    verdict = f"FAILED {error}\n{outcome.describe()}" if error else f"ok {first_line}"
    print(f"{refusal.name:<40} {verdict}", flush=True)
    return error is None


def run_all(options, folder):
    refusals = [REFUSALS[name] for name in options.only or REFUSALS]
    outcomes = {}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for refusal in refusals:
            path = write(refusal, folder)
            if path == SKIP:
                outcomes[refusal.name] = None
            elif not options.write_only:
                outcomes[refusal.name] = pool.submit(run, options.program, refusal, path)
        return {name: future and future.result() for name, future in outcomes.items()}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", help="the tessera program")
    parser.add_argument("--only", action="append", choices=sorted(REFUSALS), metavar="NAME")
    parser.add_argument("--keep", type=Path, help="folder that keeps all files")
    parser.add_argument("--write-only", action="store_true", help="run nothing")
    return parser.parse_args()


def main():
    options = parse_options()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tessera_refusals_") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        outcomes = run_all(options, folder)
    failed = [name for name, passed in outcomes.items() if passed is False]
    skipped = [name for name, passed in outcomes.items() if passed is None]
    seconds = time.monotonic() - began
    print(f"{len(outcomes)} files, {len(failed)} failed, {len(skipped)} skipped, {seconds:.0f} s")
    for name in failed + skipped:
        print(f"  {'failed' if name in failed else 'skipped'}: {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
