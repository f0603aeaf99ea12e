"""Opens connections to a server: its address, its port, how many. Then, for each line "REQUESTS_PER_SECOND SECONDS" that it reads, sends requests on
them in turn at that rate, and prints: the number of requests, the seconds until the last answer, and the 99th percentile of answer times, ms."""

import select, socket, sys, time

poll, open = select.epoll(), {}
for _ in range(int(sys.argv[3])):
    connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    open[connection.fileno()] = connection
    poll.register(connection, select.EPOLLIN)
print("ready", flush=True)
numbers = list(open)
for line in sys.stdin:
    rate, seconds = map(float, line.split())
    total, asked, took = int(rate * seconds), 0, []
    waiting, left = {}, {}
    began = time.monotonic()
    while len(took) < total:
        now = time.monotonic()
        due = min(total, int((now - began) * rate) + 1)
        while asked < due:
            number = numbers[asked % len(numbers)]
            # not yet answered: all of them are asked already
            if number in waiting:
                break
            open[number].send(b"r")
            waiting[number], left[number] = now, 10_000
            asked += 1
        for number, _ in poll.poll(0.001 if asked < total else 5):
            left[number] -= len(open[number].recv(65_536))
            if not left[number]:
                took.append(time.monotonic() - waiting.pop(number))
    if not total:
        time.sleep(seconds)
    took.sort()
    p99 = took[len(took) * 99 // 100] * 1000 if took else 0
    print(total, f"{time.monotonic() - began:.3f} {p99:.2f}", flush=True)
