/* What the programs here have in common: two Queue Pairs of one process that connect by themselves, in the guise of RoCE. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint64_t memory[64];
};

static struct ibv_context *context;
static struct ibv_pd *pd;

static inline void open_device(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);
	check(list && n > 0, "ibv_get_device_list");
	context = ibv_open_device(list[0]);
	check(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	check(pd != NULL, "ibv_alloc_pd");
}

static inline void close_device(void)
{
	check(!ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	check(!ibv_close_device(context), "ibv_close_device");
}

static inline struct end *create(unsigned access)
{
	struct end *e = calloc(1, sizeof *e);
	e->cq = ibv_create_cq(context, 64, e, NULL, 0);
	check(e->cq != NULL, "ibv_create_cq");
	struct ibv_qp_init_attr init = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64}};
	e->qp = ibv_create_qp(pd, &init);
	check(e->qp != NULL, "ibv_create_qp");
	e->mr = ibv_reg_mr(pd, e->memory, sizeof e->memory, access);
	check(e->mr != NULL, "ibv_reg_mr");
	return e;
}

static inline void destroy(struct end *e)
{
	check(!ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	check(!ibv_destroy_cq(e->cq), "ibv_destroy_cq");
	check(!ibv_dereg_mr(e->mr), "ibv_dereg_mr");
	free(e);
}

static inline void init(struct end *e)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
	check(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
}

static inline void ready(struct end *e, struct end *with)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = with->qp->qp_num, .max_dest_rd_atomic = 4,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}}};
	check(!ibv_query_gid(context, 1, 0, &a.ah_attr.grh.dgid), "ibv_query_gid");
	check(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER), "RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
	check(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

static inline void meet(struct end *a, struct end *b)
{
	init(a);
	init(b);
	ready(a, b);
	ready(b, a);
}

/* Posts a request of one element, of bytes from an index on. */
static inline int post(struct end *e, struct ibv_send_wr *wr, int at, uint32_t length)
{
	struct ibv_send_wr *bad;
	struct ibv_sge sge = {(uintptr_t)&e->memory[at], length, e->mr->lkey};
	wr->sg_list = &sge;
	wr->num_sge = length > 0;
	return ibv_post_send(e->qp, wr, &bad);
}

static inline int receive(struct end *e, uint64_t id, int at)
{
	struct ibv_sge sge = {(uintptr_t)&e->memory[at], 8, e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	return ibv_post_recv(e->qp, &wr, &bad);
}

static inline struct ibv_wc next(struct end *e)
{
	struct ibv_wc wc;
	int n;
	while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0)
		;
	check(n == 1, "ibv_poll_cq");
	return wc;
}

/* The next completion, which is to be this. */
static inline struct ibv_wc completed(struct end *e, enum ibv_wc_opcode opcode, const char *what)
{
	struct ibv_wc wc = next(e);
	if (wc.status || wc.opcode != opcode)
		fprintf(stderr, "status %d (%s), operation %d\n", wc.status, ibv_wc_status_str(wc.status), wc.opcode);
	check(!wc.status && wc.opcode == opcode, what);
	return wc;
}
