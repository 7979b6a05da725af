/* Connections of librdmacm's one after the other, each with a channel and ids of its own, an atomic operation and an orderly end: as many.c. Prints "many_cm: ok". It is
 * compiled with pair.h. */
#include "cm.h"
#include "steady.h"

static struct rdma_cm_id *listener;

static void connection(void)
{
	struct rdma_conn_param depths = {.responder_resources = 4, .initiator_depth = 4};
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct rdma_cm_event *request;
	check(own != NULL, "rdma_create_event_channel");
	struct rdma_cm_id *client = resolved(own, listener);
	struct end *a = equip(client);
	check(!rdma_connect(client, &depths), "rdma_connect");
	struct rdma_cm_id *server = event(RDMA_CM_EVENT_CONNECT_REQUEST, &request);
	struct end *b = equip(server);
	check(!rdma_accept(server, &depths), "rdma_accept");
	rdma_ack_cm_event(request);
	event_on(own, RDMA_CM_EVENT_ESTABLISHED, NULL);
	event(RDMA_CM_EVENT_ESTABLISHED, NULL);
	atomics(a, b);
	check(!rdma_disconnect(client), "rdma_disconnect");
	event_on(own, RDMA_CM_EVENT_DISCONNECTED, NULL);
	event(RDMA_CM_EVENT_DISCONNECTED, NULL);
	release(client, a);
	release(server, b);
	rdma_destroy_event_channel(own);
}

int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	listener = listening();
	steady(connection, n / 4, n, 32);
	check(!rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
	puts("many_cm: ok");
	return 0;
}
