/* Two processes, connected by librdmacm, Write to and Read from each other. One kills the other in the middle: it gets every request back, in order, and an event, and nothing waits
 * for ever. The argument is what the one that is left does: "connect" or "listen". Prints "killed: ok" and ends with status 3. It is compiled with pair.h. */
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 4, MIDDLE = 1000 };

/* Where the other may write and read. */
struct place {
	uint64_t address;
	uint32_t key;
};

static struct rdma_event_channel *channel;
static struct place theirs;
static uint64_t posted, done; /* requests but receives */

static struct rdma_cm_id *event(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;
	check(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	if (e->event != type)
		fprintf(stderr, "%s, want %s\n", rdma_event_str(e->event), rdma_event_str(type));
	check(e->event == type, "the event");
	struct rdma_cm_id *id = e->id;
	if (e->param.conn.private_data_len >= sizeof theirs)
		memcpy(&theirs, e->param.conn.private_data, sizeof theirs);
	rdma_ack_cm_event(e);
	return id;
}

static struct end *equip(struct rdma_cm_id *id)
{
	struct end *e = calloc(1, sizeof *e);
	e->cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
	check(e->cq != NULL, "ibv_create_cq");
	struct ibv_qp_init_attr init = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1}};
	check(!rdma_create_qp(id, NULL, &init), "rdma_create_qp");
	e->qp = id->qp;
	e->mr = ibv_reg_mr(id->pd, e->memory, sizeof e->memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	check(e->mr != NULL, "ibv_reg_mr");
	for (int i = 0; i < DEPTH; i++)
		check(!receive(e, i, i), "ibv_post_recv");
	return e;
}

static struct rdma_conn_param with(struct place *mine, const struct end *e)
{
	*mine = (struct place){(uintptr_t)e->memory, e->mr->rkey};
	return (struct rdma_conn_param){.private_data = mine, .private_data_len = sizeof *mine, .responder_resources = DEPTH, .initiator_depth = DEPTH};
}

static struct rdma_cm_id *listen_for(int port, struct end **e)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *listener, *id;
	struct place mine;
	check(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) && !rdma_bind_addr(listener, (struct sockaddr *)&any) && !rdma_listen(listener, 1), "rdma_listen");
	check(write(port, rdma_get_local_addr(listener), sizeof any) == sizeof any, "write");
	id = event(RDMA_CM_EVENT_CONNECT_REQUEST);
	*e = equip(id);
	struct rdma_conn_param param = with(&mine, *e);
	check(!rdma_accept(id, &param), "rdma_accept");
	event(RDMA_CM_EVENT_ESTABLISHED);
	check(!rdma_destroy_id(listener), "rdma_destroy_id");
	return id;
}

static struct rdma_cm_id *connect_to(int port, struct end **e)
{
	struct sockaddr_in to;
	struct rdma_cm_id *id;
	struct place mine;
	check(read(port, &to, sizeof to) == sizeof to, "read");
	check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) && !rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), "rdma_resolve_addr");
	event(RDMA_CM_EVENT_ADDR_RESOLVED);
	check(!rdma_resolve_route(id, 1000), "rdma_resolve_route");
	event(RDMA_CM_EVENT_ROUTE_RESOLVED);
	*e = equip(id);
	struct rdma_conn_param param = with(&mine, *e);
	check(!rdma_connect(id, &param), "rdma_connect");
	event(RDMA_CM_EVENT_ESTABLISHED);
	return id;
}

/* Writes and Reads in turn, of memory that the other one asks for nothing of. */
static int request(struct end *e)
{
	struct ibv_send_wr wr = {.wr_id = DEPTH + posted, .opcode = posted % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, .wr.rdma = {theirs.address + 256, theirs.key}};
	int error = post(e, &wr, 16, 64);
	posted += !error;
	return error;
}

/* Until one fails, which is returned; or for ever, in the process that is killed. */
static struct ibv_wc stream(struct end *e, pid_t peer)
{
	for (int i = 0; i < DEPTH; i++)
		check(!request(e), "ibv_post_send");
	for (;;) {
		struct ibv_wc wc = next(e);
		if (wc.status)
			return wc;
		check(wc.wr_id == DEPTH + done++, "the order");
		if (done == MIDDLE && peer)
			check(!kill(peer, SIGKILL) && waitpid(peer, NULL, 0) == peer, "kill");
		check(!request(e), "ibv_post_send");
	}
}

/* All that is posted comes back, in the order of its queue, and no more. */
static void drain(struct end *e, struct ibv_wc wc)
{
	for (uint64_t receives = 0;; wc = next(e)) {
		check(wc.status != IBV_WC_SUCCESS, "a request that succeeds after one that failed");
		if (wc.wr_id < DEPTH)
			check(wc.wr_id == receives++ && wc.status == IBV_WC_WR_FLUSH_ERR, "a receive");
		else
			check(wc.wr_id == DEPTH + done++, "the order");
		if (receives == DEPTH && done == posted)
			break;
	}
	check(!ibv_poll_cq(e->cq, 1, &wc), "one completion too many");
}

/* What is posted now is flushed. */
static void late(struct end *e)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	check(!ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR, "the state");
	check(!request(e) && next(e).status == IBV_WC_WR_FLUSH_ERR, "a request that comes late");
	check(!receive(e, 0, 0) && next(e).status == IBV_WC_WR_FLUSH_ERR, "a receive that comes late");
}

int main(int argc, char **argv)
{
	int port[2], listens = argc > 1 && !strcmp(argv[1], "listen");
	check(!pipe(port), "pipe");
	pid_t peer = fork();
	if (!peer) {
		listens = !listens;
		check(!prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
	}
	struct end *e;
	channel = rdma_create_event_channel();
	check(channel != NULL, "rdma_create_event_channel");
	struct rdma_cm_id *id = listens ? listen_for(port[1], &e) : connect_to(port[0], &e);
	struct ibv_wc failed = stream(e, peer);
	printf("the first that fails: %s\n", ibv_wc_status_str(failed.status));
	drain(e, failed);
	check(event(RDMA_CM_EVENT_DISCONNECTED) == id, "whose event it is");
	late(e);
	rdma_disconnect(id);
	rdma_destroy_qp(id);
	check(!ibv_dereg_mr(e->mr) && !ibv_destroy_cq(e->cq) && !rdma_destroy_id(id), "the end");
	rdma_destroy_event_channel(channel);
	free(e);
	puts("killed: ok");
	return 3;
}
