/* What librdmacm's part still points to when a program has destroyed it by libibverbs, and 1100 other objects after it: the QP of an id that has events to
 * come, and the PD and the context that all ids have. A sanitizer tells of memory that is used then. Prints "outlived: ok". It is compiled with pair.h. */
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

enum { OTHERS = 1100 };

static struct rdma_event_channel *channel;

static void destroy_others(void)
{
	for (int i = 0; i < OTHERS; i++) {
		struct ibv_pd *other = ibv_alloc_pd(context);
		check(other && !ibv_dealloc_pd(other), "ibv_alloc_pd, ibv_dealloc_pd");
	}
}

static struct rdma_cm_id *new_id(void)
{
	struct rdma_cm_id *id;
	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	return id;
}

static struct rdma_cm_id *bound(void)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *id = new_id();
	check(!rdma_bind_addr(id, (struct sockaddr *)&loopback), "rdma_bind_addr");
	return id;
}

static struct rdma_cm_id *event(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;
	check(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	if (e->event != type)
		fprintf(stderr, "%s, want %s\n", rdma_event_str(e->event), rdma_event_str(type));
	check(e->event == type, "the event");
	struct rdma_cm_id *id = e->id;
	check(!rdma_ack_cm_event(e), "rdma_ack_cm_event");
	return id;
}

static void connectable(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	check(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

/* Events that the program fetches when the QP has gone, and one of a QP that is there. */
static void queue_pair(void)
{
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *listener = bound(), *client = new_id();
	check(!rdma_listen(listener, 1) && !rdma_resolve_addr(client, NULL, rdma_get_local_addr(listener), 1000), "rdma_listen, rdma_resolve_addr");
	event(RDMA_CM_EVENT_ADDR_RESOLVED);
	check(!rdma_resolve_route(client, 1000), "rdma_resolve_route");
	event(RDMA_CM_EVENT_ROUTE_RESOLVED);
	connectable(client);
	check(!rdma_connect(client, &param), "rdma_connect");
	struct rdma_cm_id *server = event(RDMA_CM_EVENT_CONNECT_REQUEST);
	connectable(server);
	check(!rdma_accept(server, &param), "rdma_accept");
	check(event(RDMA_CM_EVENT_ESTABLISHED) != event(RDMA_CM_EVENT_ESTABLISHED), "two ends");
	check(server->qp->state == IBV_QPS_RTS, "the state of a QP that is connected");
	struct ibv_qp *destroyed = client->qp;
	check(!ibv_destroy_qp(destroyed), "ibv_destroy_qp");
	destroy_others();
	check(event(RDMA_CM_EVENT_DISCONNECTED) != event(RDMA_CM_EVENT_DISCONNECTED), "two ends");
	check(server->qp->state == IBV_QPS_ERR, "the state of a QP whose connection is over");
	check(client->qp == destroyed, "the pointer of the program");
	check(!ibv_destroy_cq(client->send_cq) && !ibv_destroy_cq(client->recv_cq), "ibv_destroy_cq");
	check(!ibv_destroy_comp_channel(client->send_cq_channel) && !ibv_destroy_comp_channel(client->recv_cq_channel), "ibv_destroy_comp_channel");
	rdma_destroy_qp(server);
	check(!rdma_destroy_id(client) && !rdma_destroy_id(server) && !rdma_destroy_id(listener), "rdma_destroy_id");
}

static void protection_domain(void)
{
	struct rdma_cm_id *id = bound();
	check(!ibv_dealloc_pd(id->pd), "ibv_dealloc_pd");
	destroy_others();
	struct rdma_cm_id *next = bound();
	check(next->verbs == id->verbs && next->pd != NULL, "what the next id has");
	connectable(next);
	rdma_destroy_qp(next);
	check(!rdma_destroy_id(id) && !rdma_destroy_id(next), "rdma_destroy_id");
}

static void device(void)
{
	struct rdma_cm_id *id = bound();
	check(!ibv_close_device(id->verbs), "ibv_close_device");
	destroy_others();
	struct rdma_cm_id *next = bound();
	check(next->verbs && next->verbs->async_fd >= 0 && next->pd && next->pd->context == next->verbs, "what the next id has");
	connectable(next);
	rdma_destroy_qp(next);
	check(!rdma_destroy_id(id) && !rdma_destroy_id(next), "rdma_destroy_id");
}

int main(void)
{
	open_device();
	channel = rdma_create_event_channel();
	check(channel != NULL, "rdma_create_event_channel");
	queue_pair();
	protection_domain();
	device();
	rdma_destroy_event_channel(channel);
	close_device();
	puts("outlived: ok");
	return 0;
}
