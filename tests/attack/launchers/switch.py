#!/usr/bin/env python3
"""A network switch in user space, for machines whose kernel has no netem: a TAP device in each
network namespace, and frames that travel between them late, or not at all.

    switch.py NAMESPACE... --delay-ms 50 --loss 0.05 --seed 1

Commands on standard input, one a line: `delay MS`, `loss FRACTION`, `cut PORT` (a cable is pulled:
nothing comes or goes, and nobody is told), `mend PORT`. PORT counts from 0.
"""
import argparse
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
CLONE_NEWNET = 0x40000000


def open_tap(namespace):
    """A TAP device `cable` in the namespace; this process stays where it is."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as home, open(f"/run/netns/{namespace}") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", b"cable", IFF_TAP | IFF_NO_PI))
        if libc.setns(home.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    return tap


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("namespaces", nargs="+")
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    delay, loss = options.delay_ms / 1000, options.loss
    dice = random.Random(options.seed)
    taps = [open_tap(name) for name in options.namespaces]
    port_of = {}  # by hardware address
    cut = set()
    late = []  # (when, number, port, frame): frames under way
    number = 0
    commands = b""
    print("ready", flush=True)
    while True:
        wait = max(0, late[0][0] - time.monotonic()) if late else None
        readable, _, _ = select.select(taps + [sys.stdin], [], [], wait)
        now = time.monotonic()
        if sys.stdin in readable:
            text = os.read(sys.stdin.fileno(), 4096)
            if not text:
                return
            commands += text
            *lines, commands = commands.split(b"\n")
            for line in lines:
                word, value = line.decode().split()
                if word == "delay":
                    delay = float(value) / 1000
                elif word == "loss":
                    loss = float(value)
                elif word == "cut":
                    cut.add(int(value))
                elif word == "mend":
                    cut.discard(int(value))
                print(word, value, flush=True)
        for port, tap in enumerate(taps):
            if tap not in readable:
                continue
            frame = os.read(tap, 65536)
            port_of[frame[6:12]] = port
            known = port_of.get(frame[:6])
            for to in [known] if known is not None else range(len(taps)):
                if to == port or port in cut or to in cut or dice.random() < loss:
                    continue
                number += 1
                heapq.heappush(late, (now + delay, number, to, frame))
        while late and late[0][0] <= time.monotonic():
            _, _, to, frame = heapq.heappop(late)
            if to in cut:
                continue
            try:
                os.write(taps[to], frame)
            except BlockingIOError:
                pass  # a full queue loses frames, as in any switch
            except OSError:
                pass  # the device is down


main()
