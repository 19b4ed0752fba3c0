"""Are the outputs in the documents those of the commands beside them?

Usage: printed.py TESSERA DOCUMENT... [--tolerance 0.05] [--update]

Runs what needs no data and takes no time: `plan`, `models`, `inspect`, and whatever is refused. A
line of dots stands for any lines; what a document shows by `cat` is a file for the commands that follow. Numbers
may differ by the tolerance, as a share: scratch depends on the CPU. --update writes the true output into
the documents.
"""

import argparse
import difflib
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

DOTS = "..."
NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Shown:
    """A command of a document and the lines printed below it."""

    def __init__(self, begin):
        self.begin = begin  # the index of the first line of output
        self.command = ""
        self.output = []


def shown_in(lines):
    found, inside, current = [], False, None
    for i, line in enumerate(lines):
        if line.startswith("```"):
            inside, current = not inside, None
        elif inside and line.startswith("$ "):
            current = Shown(i + 1)
            current.command = line[2:]
            found.append(current)
        elif current is None:
            continue
        elif current.command.endswith("\\") and not current.output:
            current.command = current.command[:-1] + line
            current.begin = i + 1
        else:
            current.output.append(line)
    return found


def can_run(words, output):
    if len(words) < 2 or Path(words[0]).name != "tessera" or DOTS in words or not output:
        return False
    quick = words[1] in ("plan", "models", "inspect") and not any(word in "<>|" for word in words)
    return quick or output[0].startswith("tessera: [")


def run(program, words, folder):
    result = subprocess.run([program, *words[1:]], cwd=folder, text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return [line.rstrip() for line in result.stdout.rstrip("\n").split("\n")]


def alike(expected, line, tolerance):
    if expected == line:
        return True
    pieces = [NUMBER.split(" ".join(text.split())) for text in (expected, line)]
    if pieces[0] != pieces[1]:
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(line))
    return all(abs(float(a) - float(b)) <= tolerance * abs(float(a)) for a, b in pairs)


def segments_of(output):
    """Lines between dots."""
    segments = [[]]
    for line in output:
        if line.strip() == DOTS:
            segments.append([])
        else:
            segments[-1].append(line)
    return segments


def fits(output, printed, tolerance):
    """Whether the segments occur in this order, the first at the start and the last at the end."""
    segments, at = segments_of(output), 0
    for number, segment in enumerate(segments):
        last = len(printed) - len(segment)
        starts = range(at, last + 1) if number > 0 else range(0, min(0, last) + 1)
        if number == len(segments) - 1:
            starts = [start for start in starts if start == last]
        found = next((start for start in starts
                      if all(alike(a, b, tolerance)
                             for a, b in zip(segment, printed[start:start + len(segment)]))), None)
        if found is None:
            return False
        at = found + len(segment)
    return True


def updated(output, printed):
    """The document's lines with each segment replaced by the part of the output that is most like it."""
    lines, at = [], 0
    segments = segments_of(output)
    if len(segments) == 1:
        return printed
    for number, segment in enumerate(segments):
        def likeness(start):
            return difflib.SequenceMatcher(None, "\n".join(segment), "\n".join(
                printed[start:start + len(segment)])).ratio()
        if number > 0:
            lines.append(next(line for line in output if line.strip() == DOTS))
        if not segment:
            continue
        last = len(printed) - len(segment)
        start = 0 if number == 0 else max(range(at, last + 1), key=likeness, default=at)
        lines += printed[start:start + len(segment)]
        at = start + len(segment)
    return lines


def check(program, path, options):
    lines = path.read_text().split("\n")
    wrong, changes, ran = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for shown in shown_in(lines):
            words = shlex.split(shown.command)
            if words[:1] == ["cat"] and len(words) == 2:
                Path(folder, words[1]).write_text("\n".join(shown.output) + "\n")
            while shown.output and not shown.output[-1].strip():
                shown.output.pop()
            if not can_run(words, shown.output):
                continue
            if any(re.fullmatch(r"[\w./-]+\.(pt|json|npy|toml)", word)
                   and not Path(folder, word).exists() for word in words):
                continue
            ran += 1
            printed = run(program, words, folder)
            if not fits(shown.output, printed, options.tolerance):
                wrong.append((shown, printed))
                changes.append((shown.begin, len(shown.output), updated(shown.output, printed)))
    if options.update:
        for begin, count, new in reversed(changes):
            lines[begin:begin + count] = new
        path.write_text("\n".join(lines))
    return ran, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("documents", nargs="+", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.0)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    all_ran = all_wrong = 0
    for path in options.documents:
        ran, wrong = check(options.program.resolve(), path, options)
        all_ran += ran
        all_wrong += len(wrong)
        for shown, printed in wrong:
            print(f"{path}:{shown.begin}: $ {shown.command}")
            print("\n".join(difflib.unified_diff(shown.output, printed, "document", "printed",
                                                 lineterm="")))
    print(f"{all_ran} commands, {all_wrong} of them print something else")
    if all_ran == 0:
        sys.exit("no command was found that can be run")
    sys.exit(1 if all_wrong and not options.update else 0)


if __name__ == "__main__":
    main()
