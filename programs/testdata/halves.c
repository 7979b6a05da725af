// halves: one end of a stream over rsockets, "halves -s ADDRESS -p PORT TOLD". It connects, and looks at nothing that comes before it has ended its direction;
// it does that when the file TOLD, a FIFO, has said that the other end has done so, too.
#include <arpa/inet.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed(const char *what)
{
	perror(what);
	return 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	char bytes[64], all[64];
	int s, told, n, got = 0;

	if (argc != 6)
		return 2;
	to.sin_port = htons(atoi(argv[4]));
	inet_pton(AF_INET, argv[2], &to.sin_addr);
	s = rsocket(AF_INET, SOCK_STREAM, 0);
	if (s < 0 || rconnect(s, (void *)&to, sizeof to))
		return failed("rconnect");
	told = open(argv[5], O_RDONLY);
	if (told < 0 || read(told, bytes, 1) != 1)
		return failed(argv[5]);
	if (rsend(s, "theirs", 6, 0) != 6)
		return failed("rsend");
	if (rshutdown(s, SHUT_WR))
		return failed("rshutdown");
	while ((n = rrecv(s, bytes, sizeof bytes, 0)) > 0 && got + n < (int)sizeof all) {
		memcpy(all + got, bytes, n);
		got += n;
	}
	if (n)
		return failed("rrecv");
	printf("got %.*s\n", got, all);
	if (got != 4 || memcmp(all, "ours", 4))
		return 3;
	if (rclose(s))
		return failed("rclose");
	return 0;
}
