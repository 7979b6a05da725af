/* A Send that comes before its receive, on a connection for which the receiver's end has asked for so many retries (an argument), or has left that to
 * the library (none). Prints "rnr: received", or "rnr: ended" if the connection has ended. It is compiled with pair.h. */
#include <unistd.h>

#include "cm.h"

int main(int argc, char **argv)
{
	struct rdma_conn_param param = {.rnr_retry_count = argc > 1 ? atoi(argv[1]) : 0}, active = {.rnr_retry_count = 7};
	struct rdma_cm_id *listener = listening(), *client = resolved(channel, listener), *server;
	struct end *from = equip(client), *to;
	check(!rdma_connect(client, &active), "rdma_connect");
	server = event(RDMA_CM_EVENT_CONNECT_REQUEST, NULL);
	to = equip(server);
	check(!rdma_accept(server, argc > 1 ? &param : NULL), "rdma_accept");
	event(RDMA_CM_EVENT_ESTABLISHED, NULL);
	event(RDMA_CM_EVENT_ESTABLISHED, NULL);

	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	from->memory[0] = 4711;
	check(!post(from, &wr, 0, 8), "ibv_post_send");
	usleep(200000);
	struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR};
	if (!receive(to, 1, 1))
		wc = next(to);
	check(wc.status || to->memory[1] == 4711, "what was received");
	puts(wc.status ? "rnr: ended" : "rnr: received");
	release(client, from);
	release(server, to);
	check(!rdma_destroy_id(listener), "rdma_destroy_id");
	return 0;
}
