"""Answers each received byte, on as many connections as its argument says, with 10,000 bytes."""

import select, socket, sys

listener = socket.create_server(("", int(sys.argv[1])), backlog=4096)
print("ready", flush=True)
answer, poll, open = bytes(10_000), select.epoll(), {}
for _ in range(int(sys.argv[2])):
    connection, _ = listener.accept()
    open[connection.fileno()] = connection
    poll.register(connection, select.EPOLLIN)
while open:
    for number, _ in poll.poll():
        asked = open[number].recv(1000)
        if asked:
            open[number].sendall(answer * len(asked))
        else:
            open.pop(number).close()
