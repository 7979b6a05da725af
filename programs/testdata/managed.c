/* A connection of librdmacm's with both ends in one process: what the peer may do to a QP that the program says nothing of, and what can be asked on the way. Prints "managed: ok". It
 * is compiled with pair.h. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "cm.h"

/* What rdma_init_qp_attr says for a QP that is led to a state: as siw, or in the guise of RoCE, where rights are those of the QP from the beginning. */
static void attributes(struct rdma_cm_id *id, int connected)
{
	int roce = id->verbs->device->transport_type == IBV_TRANSPORT_IB;
	int rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | (roce ? IBV_ACCESS_REMOTE_ATOMIC : 0);
	connected |= roce;
	for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		struct ibv_qp_attr attr = {.qp_state = state, .port_num = 77};
		int mask, named = !connected || state != IBV_QPS_RTS;
		check(!rdma_init_qp_attr(id, &attr, &mask), "rdma_init_qp_attr");
		int key = roce && state == IBV_QPS_INIT ? IBV_QP_PKEY_INDEX : 0; /* which ibv_modify_qp needs there */
		check(mask == (IBV_QP_PORT | key | (named ? IBV_QP_STATE | IBV_QP_ACCESS_FLAGS : 0)), "the mask");
		check(attr.qp_state == state && attr.port_num == 1, "state and port");
		check(attr.qp_access_flags == (named && connected ? rights : 0), "the rights");
	}
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQE};
	int mask;
	check(!connected || (rdma_init_qp_attr(id, &attr, &mask) < 0 && errno == EINVAL), "a state of no connection");
}

static struct rdma_cm_event *kept;
static int acknowledged;

static void *acknowledge(void *unused)
{
	usleep(20000);
	__atomic_store_n(&acknowledged, 1, __ATOMIC_SEQ_CST);
	check(!rdma_ack_cm_event(kept), "rdma_ack_cm_event");
	return unused;
}

/* To another channel and back: not before the event that was taken is acknowledged. */
static void migrate(struct rdma_cm_id *id)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	pthread_t thread;
	check(other && !pthread_create(&thread, NULL, acknowledge, NULL), "pthread_create");
	check(!rdma_migrate_id(id, other), "rdma_migrate_id");
	check(__atomic_load_n(&acknowledged, __ATOMIC_SEQ_CST), "an id that migrates while its event is looked at");
	check(!pthread_join(thread, NULL), "pthread_join");
	check(id->channel == other && !rdma_migrate_id(id, channel) && id->channel == channel, "rdma_migrate_id");
	rdma_destroy_event_channel(other);
}

/* A synchronous id has its last event itself. */
static void becomes_asynchronous(struct sockaddr *to)
{
	struct rdma_cm_id *id;
	check(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) && !rdma_resolve_addr(id, NULL, to, 1000) && id->event, "a synchronous id");
	check(!rdma_migrate_id(id, channel) && !id->event && id->channel == channel, "rdma_migrate_id");
	check(!rdma_resolve_route(id, 1000) && event(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL) == id, "rdma_resolve_route");
	check(!rdma_destroy_id(id), "rdma_destroy_id");
}

/* Attributes that there are none of, and a port: as the kernel says of any device, or in the guise of RoCE as of a transition that does not take them. */
static void strange_attributes(struct rdma_cm_id *id)
{
	int roce = id->verbs->device->transport_type == IBV_TRANSPORT_IB;
	struct ibv_qp_attr attr = {.port_num = 7};
	check(ibv_modify_qp(id->qp, &attr, IBV_QP_PORT) == EINVAL, "another port");
	attr.port_num = 1;
	check(ibv_modify_qp(id->qp, &attr, IBV_QP_PORT) == 0, "the port");
	check(ibv_modify_qp(id->qp, &attr, 1 << 28) == (roce ? EINVAL : EOPNOTSUPP), "an attribute that there is not");
}

int main(void)
{
	struct rdma_conn_param depths = {.responder_resources = 4, .initiator_depth = 4};
	struct rdma_cm_id *listener = listening(), *client;
	struct rdma_cm_event *request;
	check(!rdma_create_id(channel, &client, NULL, RDMA_PS_TCP), "rdma_create_id");
	becomes_asynchronous(rdma_get_local_addr(listener));
	check(!rdma_resolve_addr(client, NULL, rdma_get_local_addr(listener), 1000), "rdma_resolve_addr");
	event(RDMA_CM_EVENT_ADDR_RESOLVED, &kept);
	uint16_t port = rdma_get_src_port(client);
	check(port != 0, "rdma_get_src_port");
	attributes(client, 0);
	migrate(client);
	check(!rdma_resolve_route(client, 1000), "rdma_resolve_route");
	event(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	struct end *a = equip(client);
	strange_attributes(client);
	check(!rdma_connect(client, &depths), "rdma_connect");
	struct rdma_cm_id *server = event(RDMA_CM_EVENT_CONNECT_REQUEST, &request);
	struct end *b = equip(server);
	check(rdma_get_dst_port(server) == port, "the port that the peer has told");
	attributes(client, 1);
	attributes(server, 1);
	check(!rdma_accept(server, &depths), "rdma_accept");
	rdma_ack_cm_event(request);
	event(RDMA_CM_EVENT_ESTABLISHED, NULL);
	event(RDMA_CM_EVENT_ESTABLISHED, NULL);
	atomics(a, b);
	release(client, a);
	release(server, b);
	check(!rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
	puts("managed: ok");
	return 0;
}
