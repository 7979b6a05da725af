/* What programs of librdmacm here have in common: both ends of a connection in one process. It comes after pair.h. */
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

static struct rdma_event_channel *channel; /* of all ids that say nothing else */

/* The next event on a channel, which is to be this. It is acknowledged, unless the caller wants it. */
static inline struct rdma_cm_id *event_on(struct rdma_event_channel *on, enum rdma_cm_event_type type, struct rdma_cm_event **kept)
{
	struct rdma_cm_event *e;
	check(!rdma_get_cm_event(on, &e), "rdma_get_cm_event");
	if (e->event != type)
		fprintf(stderr, "%s, want %s\n", rdma_event_str(e->event), rdma_event_str(type));
	check(e->event == type, "the event");
	struct rdma_cm_id *id = e->id;
	if (kept)
		*kept = e;
	else
		rdma_ack_cm_event(e);
	return id;
}

static inline struct rdma_cm_id *event(enum rdma_cm_event_type type, struct rdma_cm_event **kept) { return event_on(channel, type, kept); }

/* An id that listens, with the channel. */
static inline struct rdma_cm_id *listening(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *id;
	channel = rdma_create_event_channel();
	check(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_bind_addr(id, (struct sockaddr *)&address) && !rdma_listen(id, 1), "rdma_listen");
	return id;
}

/* An id that can connect to it. */
static inline struct rdma_cm_id *resolved(struct rdma_event_channel *on, struct rdma_cm_id *listener)
{
	struct rdma_cm_id *id;
	check(!rdma_create_id(on, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_resolve_addr(id, NULL, rdma_get_local_addr(listener), 1000), "rdma_resolve_addr");
	event_on(on, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	check(!rdma_resolve_route(id, 1000), "rdma_resolve_route");
	event_on(on, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	return id;
}

static inline struct end *equip(struct rdma_cm_id *id)
{
	struct end *e = calloc(1, sizeof *e);
	e->cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	check(e->cq != NULL, "ibv_create_cq");
	struct ibv_qp_init_attr init = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	check(!rdma_create_qp(id, NULL, &init), "rdma_create_qp");
	e->qp = id->qp;
	e->mr = ibv_reg_mr(id->pd, e->memory, sizeof e->memory,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	check(e->mr != NULL, "ibv_reg_mr");
	return e;
}

static inline void release(struct rdma_cm_id *id, struct end *e)
{
	rdma_destroy_qp(id);
	check(!ibv_dereg_mr(e->mr), "ibv_dereg_mr");
	check(!ibv_destroy_cq(e->cq), "ibv_destroy_cq");
	check(!rdma_destroy_id(id), "rdma_destroy_id");
	free(e);
}

static inline void atomics(struct end *a, struct end *b)
{
	struct ibv_send_wr add = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr.atomic = {.remote_addr = (uintptr_t)b->memory, .compare_add = 5, .rkey = b->mr->rkey}};
	b->memory[0] = 7;
	check(!post(a, &add, 1, 8), "an atomic");
	completed(a, IBV_WC_FETCH_ADD, "an atomic");
	check(a->memory[1] == 7 && b->memory[0] == 12, "what it does");
}
