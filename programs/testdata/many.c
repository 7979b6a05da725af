/* Connections one after the other, with a Send each: neither memory nor descriptors grow with their number, which is the argument. Prints
 * "many: ok". It is compiled with pair.h. */
#include "steady.h"

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
	steady(connection, n / 4, n, 32);
	close_device();
	puts("many: ok");
	return 0;
}
