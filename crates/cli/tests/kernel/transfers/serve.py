"""Accepts as many connections as its argument says, and answers each with the received byte count and its SHA-256."""

import hashlib, socket, sys
listener = socket.create_server(("", 9000))
for _ in range(int(sys.argv[1])):
    connection, _ = listener.accept()
    digest, length = hashlib.sha256(), 0
    while block := connection.recv(1 << 20):
        digest.update(block)
        length += len(block)
    connection.sendall(f"{length} {digest.hexdigest()}".encode())
    connection.close()
