"""What `tessera verify` takes beyond the ranks themselves is one oracle, however many workers there
are: nothing whole is collected on all of them.

    python3 verify_memory.py build/tessera
"""

import os
import subprocess
import sys

MODEL = ["resnet50:width=24,classes=10", "--input", "2x3x64x64", "--dtype", "float64"]
WORKERS = 6
MIB = 1 << 20


def peak_bytes(arguments):
    """The largest resident set of a run that must succeed."""
    process = subprocess.Popen(
        [str(argument) for argument in arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{arguments} ended with {process.returncode}: {errors}")
    return usage.ru_maxrss * 1024


def main():
    program = sys.argv[1]
    ranks = ["--update", "--warmup", "1", "--iterations", "1"]
    beyond = {}
    for workers in (1, WORKERS):
        verified = peak_bytes([program, "verify", *MODEL, "--workers", workers, "--steps", "2"])
        alone = peak_bytes([program, "bench", *MODEL, "--workers", workers, *ranks])
        beyond[workers] = verified - alone
        print(f"{workers} workers: bench {alone / MIB:.0f} MiB, verify {verified / MIB:.0f} MiB")
    if beyond[WORKERS] > 1.2 * beyond[1]:
        sys.exit(f"verify takes more than 1.2 oracles beyond what {WORKERS} workers hold")


if __name__ == "__main__":
    main()
