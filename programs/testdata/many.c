/* Connections one after the other, with a Send each: neither memory nor descriptors grow with their number, which is the argument. Prints
 * "many: ok". It is compiled with pair.h. */
#include <dirent.h>
#include <malloc.h>

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void connection(void)
{
	struct end *a = create(IBV_ACCESS_LOCAL_WRITE), *b = create(IBV_ACCESS_LOCAL_WRITE);
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND};
	meet(a, b);
	check(!receive(b, 1, 0) && !post(a, &send, 0, 8), "post");
	completed(b, IBV_WC_RECV, "receive");
	completed(a, IBV_WC_SEND, "Send");
	destroy(a);
	destroy(b);
}

int main(int argc, char **argv)
{
	open_device();
	int n = atoi(argv[1]);
	for (int i = 0; i < n / 4; i++) /* what is kept for a while is kept then */
		connection();
	size_t memory = mallinfo2().uordblks;
	int open = descriptors();
	for (int i = 0; i < n; i++)
		connection();
	size_t more = mallinfo2().uordblks;
	printf("%zu octets, and %zu %d connections later; %d descriptors, and %d\n", memory, more, n, open, descriptors());
	check(more < memory + (64 << 10), "memory");
	check(descriptors() < open + 32, "descriptors");
	close_device();
	puts("many: ok");
	return 0;
}
