/* What librdmacm's part still points to when a program has destroyed it by libibverbs, and 1100 other objects after it: the QP of an id that has events to
 * come, and the PD and the context that all ids have. A sanitizer tells of memory that is used then. Prints "outlived: ok". It is compiled with pair.h. */
#include "cm.h"

enum { OTHERS = 1100 };

static void destroy_others(void)
{
	for (int i = 0; i < OTHERS; i++) {
		struct ibv_pd *other = ibv_alloc_pd(context);
		check(other && !ibv_dealloc_pd(other), "ibv_alloc_pd, ibv_dealloc_pd");
	}
}

static struct rdma_cm_id *bound(void)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *id;
	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_bind_addr(id, (struct sockaddr *)&loopback), "rdma_bind_addr");
	return id;
}

/* Events that the program fetches when the QP has gone, and one of a QP that is there. */
static void queue_pair(struct rdma_cm_id *listener)
{
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *client = resolved(channel, listener);
	struct end *a = equip(client);
	check(!rdma_connect(client, &param), "rdma_connect");
	struct rdma_cm_id *server = event(RDMA_CM_EVENT_CONNECT_REQUEST, NULL);
	struct end *b = equip(server);
	check(!rdma_accept(server, &param), "rdma_accept");
	check(event(RDMA_CM_EVENT_ESTABLISHED, NULL) != event(RDMA_CM_EVENT_ESTABLISHED, NULL), "two ends");
	check(b->qp->state == IBV_QPS_RTS, "the state of a QP that is connected");
	check(!ibv_destroy_qp(a->qp), "ibv_destroy_qp");
	destroy_others();
	check(event(RDMA_CM_EVENT_DISCONNECTED, NULL) != event(RDMA_CM_EVENT_DISCONNECTED, NULL), "two ends");
	check(b->qp->state == IBV_QPS_ERR, "the state of a QP whose connection is over");
	check(client->qp == a->qp, "the pointer of the program");
	client->qp = NULL;
	release(client, a);
	release(server, b);
}

/* An id that gets what all have in common. */
static struct rdma_cm_id *next_id(void)
{
	struct rdma_cm_id *id = bound();
	check(id->verbs && id->verbs->async_fd >= 0 && id->pd && id->pd->context == id->verbs, "what the next id has");
	struct end *e = equip(id);
	rdma_destroy_qp(id);
	check(!ibv_dereg_mr(e->mr) && !ibv_destroy_cq(e->cq), "ibv_dereg_mr, ibv_destroy_cq");
	free(e);
	return id;
}

static void protection_domain(void)
{
	struct rdma_cm_id *id = bound();
	check(!ibv_dealloc_pd(id->pd), "ibv_dealloc_pd");
	destroy_others();
	struct rdma_cm_id *next = next_id();
	check(next->verbs == id->verbs, "the context");
	check(!rdma_destroy_id(id) && !rdma_destroy_id(next), "rdma_destroy_id");
}

static void device(void)
{
	struct rdma_cm_id *id = bound();
	check(!ibv_close_device(id->verbs), "ibv_close_device");
	destroy_others();
	check(!rdma_destroy_id(next_id()) && !rdma_destroy_id(id), "rdma_destroy_id");
}

int main(void)
{
	open_device();
	struct rdma_cm_id *listener = listening();
	queue_pair(listener);
	protection_domain();
	device();
	check(!rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
	close_device();
	puts("outlived: ok");
	return 0;
}
