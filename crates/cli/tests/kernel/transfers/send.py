"""Sends BYTES to HOST by each ALGORITHM, and prints whether ss showed the algorithm and whether the bytes arrived intact."""

import hashlib, random, socket, subprocess, sys, time
host, length = sys.argv[1], int(sys.argv[2])
for name in sys.argv[3:]:
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    while connection.connect_ex((host, 9000)):
        time.sleep(0.1)
    block, digest, began, seen = random.Random(name).randbytes(1 << 20), hashlib.sha256(), time.monotonic(), False
    for sent in range(0, length, len(block)):
        part = block[: length - sent]
        connection.sendall(part)
        digest.update(part)
        seen = seen or f" {name} " in subprocess.run(["ss", "-Htin", "dport", "9000"], capture_output=True, text=True).stdout
    connection.shutdown(socket.SHUT_WR)
    same = connection.makefile().read() == f"{length} {digest.hexdigest()}"
    print(name, "seen" if seen else "not seen", "whole" if same else "broken", round(8 * length / (time.monotonic() - began) / 1e6), "Mbit/s")
