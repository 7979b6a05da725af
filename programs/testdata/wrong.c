/* What programs do wrong with verbs: the error numbers of the manual pages, and no harm. Prints "wrong: ok". It is compiled with pair.h. */
#include <sys/mman.h>

#include "cm.h"
#include "wrong.h"

static int roce; /* the device is in that guise */

/* Brings up a connection between QPs in INIT: by what each knows of the other, or as iWARP has it. */
static void join(struct end *a, struct end *b)
{
	if (roce) {
		ready(a, b);
		ready(b, a);
		return;
	}
	struct rdma_conn_param ours = {.qp_num = a->qp->qp_num}, theirs = {.qp_num = b->qp->qp_num};
	struct rdma_cm_id *listener = listening(), *client = resolved(channel, listener), *server;
	check(!rdma_connect(client, &ours), "rdma_connect");
	check((server = event(RDMA_CM_EVENT_CONNECT_REQUEST, NULL)) && !rdma_accept(server, &theirs), "rdma_accept");
	event(RDMA_CM_EVENT_ESTABLISHED, NULL);
	event(RDMA_CM_EVENT_ESTABLISHED, NULL);
	check(!rdma_destroy_id(server) && !rdma_destroy_id(client) && !rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
}

static struct ibv_qp *qp_with(struct end *e, uint32_t wrs, uint32_t sges, uint32_t inline_data, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = type,
		.cap = {.max_send_wr = wrs, .max_recv_wr = wrs, .max_send_sge = sges, .max_recv_sge = sges, .max_inline_data = inline_data}};
	return ibv_create_qp(pd, &init);
}

static int to_state(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state};
	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE);
}

static void creation(struct end *e)
{
	char memory[8];
	static const char read_only[8] = "constant";
	WRONG(FAILS(NULL, qp_with(e, 1 << 20, 1, 0, IBV_QPT_RC)), EINVAL);
	WRONG(FAILS(NULL, qp_with(e, 1, 1000, 0, IBV_QPT_RC)), EINVAL);
	WRONG(FAILS(NULL, qp_with(e, 1, 1, 1 << 20, IBV_QPT_RC)), EINVAL);
	WRONG(FAILS(NULL, qp_with(e, 1, 1, 0, IBV_QPT_UC)), EOPNOTSUPP);
	WRONG(FAILS(NULL, ibv_create_cq(context, 0, NULL, NULL, 0)), EINVAL);
	WRONG(FAILS(NULL, ibv_create_cq(context, -1, NULL, NULL, 0)), EINVAL);
	WRONG(FAILS(NULL, ibv_create_cq(context, 1, NULL, NULL, 99)), EINVAL);
	WRONG(FAILS(NULL, ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_REMOTE_WRITE)), EINVAL);
	WRONG(FAILS(NULL, ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_ON_DEMAND)), EOPNOTSUPP);
	WRONG(FAILS(NULL, ibv_reg_mr(pd, memory, sizeof memory, 1 << 9)), EOPNOTSUPP); /* IBV_ACCESS_FLUSH_PERSISTENT */
	WRONG(FAILS(NULL, ibv_reg_mr(pd, memory, sizeof memory, 1 << 10)), EINVAL);
	WRONG(FAILS(NULL, ibv_reg_mr(pd, (void *)4096, 8, IBV_ACCESS_LOCAL_WRITE)), EFAULT);
	if (!madvise(NULL, 0, 23) && madvise(NULL, 0, 1 << 30)) /* MADV_POPULATE_WRITE, by which the library knows, from Linux 5.14 on */
		WRONG(FAILS(NULL, ibv_reg_mr(pd, (void *)read_only, 8, IBV_ACCESS_LOCAL_WRITE)), EFAULT);
	WRONG(FAILS(NULL, ibv_alloc_mw(pd, 3)), EINVAL);
	struct ibv_srq_init_attr none = {.attr = {.max_wr = 0, .max_sge = 1}};
	WRONG(FAILS(NULL, ibv_create_srq(pd, &none)), EINVAL);
	union ibv_gid gid;
	WRONG(FAILS(-1, ibv_query_gid(context, 2, 0, &gid)), EINVAL);
	WRONG(FAILS(-1, ibv_query_gid(context, 1, 1000, &gid)), EINVAL);
	struct ibv_port_attr port;
	WRONG(ibv_query_port(context, 2, &port), EINVAL);
	struct ibv_device_attr_ex device;
	WRONG(ibv_query_device_ex(context, NULL, &device), 0);
	WRONG(device.device_cap_flags_ex != device.orig_attr.device_cap_flags, 0);
	/* What is not to change is not given. */
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
	WRONG(FAILS(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 4, IBV_ACCESS_LOCAL_WRITE)), EINVAL);
	WRONG(FAILS(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 4, 0)), EINVAL);
	WRONG(FAILS(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 0, 0)), EINVAL);
	WRONG(ibv_dereg_mr(mr), 0);
}

static int modify_srq(struct ibv_srq *srq, uint32_t wr, uint32_t limit, int mask)
{
	struct ibv_srq_attr a = {.max_wr = wr, .srq_limit = limit};
	return ibv_modify_srq(srq, &a, mask);
}

/* A Shared Receive Queue of 8: what is wrong changes nothing. */
static void shared(struct end *e)
{
	struct ibv_srq_init_attr wide = {.attr = {.max_wr = 8, .max_sge = 33}}, deep = {.attr = {.max_wr = (1 << 15) + 1, .max_sge = 1}};
	struct ibv_srq_init_attr some = {.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0x5a5a5a5a}};
	WRONG(FAILS(NULL, ibv_create_srq(pd, &wide)), EINVAL);
	WRONG(FAILS(NULL, ibv_create_srq(pd, &deep)), EINVAL);
	struct ibv_srq *srq = ibv_create_srq(pd, &some);
	check(srq != NULL, "ibv_create_srq");
	WRONG(modify_srq(srq, 16, 1000, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	WRONG(modify_srq(srq, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
	WRONG(modify_srq(srq, (1 << 15) + 1, 0, IBV_SRQ_MAX_WR), EINVAL);
	WRONG(modify_srq(srq, 0, 1u << 31, IBV_SRQ_LIMIT), EINVAL);
	WRONG(modify_srq(srq, 16, 0, 1 << 20 | IBV_SRQ_MAX_WR), EINVAL);
	struct ibv_srq_attr a;
	WRONG(ibv_query_srq(srq, &a), 0);
	WRONG((int)a.max_wr, 8);
	WRONG((int)a.srq_limit, 0);
	struct ibv_sge sges[2] = {{0}};
	struct ibv_recv_wr *bad, wr = {.sg_list = sges, .num_sge = 2};
	WRONG(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	WRONG(bad != &wr, 0);
	wr.num_sge = -1;
	WRONG(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	wr = (struct ibv_recv_wr){.num_sge = 1};
	bad = NULL;
	WRONG(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	WRONG(bad != &wr, 0);
	struct ibv_qp_init_attr init = {.send_cq = e->cq, .recv_cq = e->cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1 << 20, .max_recv_sge = 1000}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init); /* which ignores those of receives */
	check(qp != NULL, "ibv_create_qp");
	WRONG(ibv_destroy_qp(qp), 0);
	WRONG(ibv_destroy_srq(srq), 0);
}

/* States that come too early, and requests in them. */
static void states(struct end *e, struct end *peer)
{
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND};
	WRONG(post(e, &send, 0, 8), EINVAL);
	WRONG(receive(e, 1, 0), EINVAL);
	WRONG(to_state(e, IBV_QPS_RTS), EINVAL);
	WRONG(to_state(e, IBV_QPS_RTR), EINVAL);
	WRONG(to_state(e, 99), EINVAL);
	init(e);
	WRONG(to_state(e, IBV_QPS_RTS), EINVAL);
	WRONG(post(e, &send, 0, 8), EINVAL);
	init(peer);
	join(e, peer);
}

/* What a transition lacks, or does not take, in the guise of RoCE: none is made. */
static void transitions(void)
{
	struct end *a = create(0), *b = create(0);
	const int in = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const struct ibv_qp_attr init_to = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	const struct ibv_qp_attr rtr_to = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = b->qp->qp_num, .ah_attr = {.port_num = 1}};
	const struct ibv_qp_attr rts_to = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_INIT};
	struct ibv_qp_attr w;
	struct ibv_qp_init_attr ignored;
	WRONG(to_state(a, IBV_QPS_INIT), EINVAL);
	for (int bit = 1; bit < 1 << 26; bit <<= 1) {
		if (bit == IBV_QP_STATE)
			continue;
		w = init_to;
		WRONG(ibv_modify_qp(a->qp, &w, in ^ bit), EINVAL);
	}
	w = init_to, w.port_num = 7;
	WRONG(ibv_modify_qp(a->qp, &w, in), EINVAL);
	w = init_to, w.pkey_index = 99;
	WRONG(ibv_modify_qp(a->qp, &w, in), EINVAL);
	init(a);
	init(a);
	for (int bit = 1; bit < 1 << 26; bit <<= 1) {
		if (bit & (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS))
			continue;
		w = rtr_to;
		WRONG(ibv_modify_qp(a->qp, &w, rtr ^ bit), EINVAL);
	}
	w = rtr_to, w.path_mtu = 99;
	WRONG(ibv_modify_qp(a->qp, &w, rtr), EINVAL);
	w = rtr_to, w.max_dest_rd_atomic = 255;
	WRONG(ibv_modify_qp(a->qp, &w, rtr), EINVAL);
	w = rtr_to, w.ah_attr.port_num = 2;
	WRONG(ibv_modify_qp(a->qp, &w, rtr), EINVAL);
	WRONG(to_state(a, IBV_QPS_RTR), EINVAL);
	WRONG(a->qp->state, IBV_QPS_INIT);
	init(b);
	ready(a, b);
	w = rts_to;
	WRONG(ibv_modify_qp(a->qp, &w, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
	w.cur_qp_state = IBV_QPS_RTS;
	WRONG(ibv_modify_qp(a->qp, &w, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	WRONG(ibv_modify_qp(a->qp, &w, IBV_QP_CAP), EINVAL);
	WRONG(ibv_modify_qp(a->qp, &w, IBV_QP_PATH_MIG_STATE), EINVAL);
	WRONG(ibv_modify_qp(a->qp, &w, 1 << 30), EINVAL);
	WRONG(ibv_modify_qp(a->qp, &w, IBV_QP_STATE | IBV_QP_TIMEOUT), EINVAL);
	WRONG(ibv_query_qp(a->qp, &w, IBV_QP_STATE, &ignored), 0);
	WRONG(w.qp_state, IBV_QPS_RTS);
	w.qp_state = IBV_QPS_ERR;
	WRONG(ibv_modify_qp(a->qp, &w, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), EINVAL);
	WRONG(to_state(a, IBV_QPS_ERR), 0);
	WRONG(to_state(a, IBV_QPS_ERR), 0);
	WRONG(to_state(a, IBV_QPS_RTS), EINVAL);
	WRONG(to_state(a, IBV_QPS_RESET), 0);
	destroy(a);
	destroy(b);
}

/* The queues have room for 4. */
static void overflow(struct end *e)
{
	struct ibv_send_wr bad = {.opcode = 99};
	struct ibv_sge sges[40] = {{0}};
	struct ibv_send_wr *at, many = {.opcode = IBV_WR_SEND, .sg_list = sges, .num_sge = 40};
	for (int i = 0; i < 4; i++)
		WRONG(receive(e, i, i), 0);
	WRONG(receive(e, 4, 4), ENOMEM);
	WRONG(post(e, &bad, 0, 8), EINVAL);
	WRONG(ibv_post_send(e->qp, &many, &at), EINVAL);
	WRONG(at != &many, 0);
	many.num_sge = 3; /* more than the QP has */
	WRONG(ibv_post_send(e->qp, &many, &at), EINVAL);
	many.send_flags = IBV_SEND_INLINE;
	WRONG(ibv_post_send(e->qp, &many, &at), EINVAL);
	many.send_flags = 0;
	many.num_sge = -1;
	WRONG(ibv_post_send(e->qp, &many, &at), EINVAL);
	struct ibv_recv_wr *r, less = {.sg_list = sges, .num_sge = -1}, more = {.sg_list = sges, .num_sge = 3};
	WRONG(ibv_post_recv(e->qp, &less, &r), EINVAL);
	WRONG(ibv_post_recv(e->qp, &more, &r), EINVAL);
	/* Elements that are nowhere. */
	many = (struct ibv_send_wr){.opcode = IBV_WR_SEND, .num_sge = 1};
	less = (struct ibv_recv_wr){.num_sge = 1};
	at = NULL, r = NULL;
	WRONG(ibv_post_send(e->qp, &many, &at), EINVAL);
	WRONG(ibv_post_recv(e->qp, &less, &r), EINVAL);
	WRONG(at != &many || r != &less, 0);
	struct ibv_send_wr too_long = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
	WRONG(post(e, &too_long, 0, 512), EINVAL);
}

/* A key of nothing is for the completion to tell, in the guise of RoCE. */
static void wrong_key(void)
{
	struct end *a = create(0), *b = create(0);
	struct ibv_sge sge = {(uintptr_t)a->memory, 8, a->mr->lkey + 1};
	struct ibv_send_wr *at, wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
	init(a);
	init(b);
	join(a, b);
	WRONG(ibv_post_send(a->qp, &wr, &at), roce ? 0 : EINVAL);
	if (roce)
		WRONG(next(a).status, IBV_WC_LOC_PROT_ERR);
	destroy(a);
	destroy(b);
}

/* Programs that do not want to know which request is bad give NULL. */
static void nobody_asks(void)
{
	struct end *a = create(IBV_ACCESS_LOCAL_WRITE), *b = create(IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge from = {(uintptr_t)a->memory, 8, a->mr->lkey}, to = {(uintptr_t)b->memory, 8, b->mr->lkey};
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .sg_list = &from, .num_sge = 1};
	struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1};
	struct ibv_srq_init_attr some = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &some);
	struct ibv_qp *unconnected = roce ? qp_with(a, 1, 1, 0, IBV_QPT_UD) : NULL;
	check(srq && (unconnected || !roce), "ibv_create_srq, ibv_create_qp");
	init(a);
	init(b);
	join(a, b);
	WRONG(ibv_post_recv(b->qp, &receive, NULL), 0);
	WRONG(ibv_post_send(a->qp, &send, NULL), 0);
	completed(b, IBV_WC_RECV, "a receive");
	WRONG(ibv_post_srq_recv(srq, &receive, NULL), 0);
	receive.num_sge = send.num_sge = -1;
	WRONG(ibv_post_recv(b->qp, &receive, NULL), EINVAL);
	WRONG(ibv_post_send(a->qp, &send, NULL), EINVAL);
	WRONG(ibv_post_srq_recv(srq, &receive, NULL), EINVAL);
	if (roce) {
		WRONG(ibv_post_send(unconnected, &send, NULL), EINVAL);
		WRONG(ibv_post_recv(unconnected, &receive, NULL), EINVAL);
		WRONG(ibv_destroy_qp(unconnected), 0);
	}
	WRONG(ibv_destroy_srq(srq), 0);
	destroy(a);
	destroy(b);
}

/* A completion channel is for CQs of its context. */
static void contexts(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *other = ibv_open_device(list[0]);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(other);
	struct ibv_cq_init_attr_ex extended = {.cqe = 1, .channel = channel, .wc_flags = IBV_WC_STANDARD_FLAGS};
	check(channel != NULL, "ibv_create_comp_channel");
	WRONG(FAILS(NULL, ibv_create_cq(context, 1, NULL, channel, 0)), EBADF);
	WRONG(FAILS(NULL, ibv_create_cq_ex(context, &extended)), EBADF);
	WRONG(channel->refcnt, 0);
	struct ibv_cq *cq = ibv_create_cq(other, 1, NULL, channel, 0);
	check(cq != NULL, "ibv_create_cq");
	WRONG(ibv_poll_cq(cq, 1, NULL), 0); /* it is empty */
	WRONG(ibv_destroy_cq(cq), 0);
	WRONG(ibv_destroy_comp_channel(channel), 0);
	WRONG(ibv_close_device(other), 0);
	ibv_free_device_list(list);
}

/* What is in use is not destroyed, and what was destroyed is not used. */
static void ends(struct end *e)
{
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND};
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, channel, 0);
	struct ibv_wc wc;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	WRONG(ibv_destroy_comp_channel(channel), EBUSY);
	WRONG(ibv_resize_cq(cq, (1 << 20) + 1), EINVAL);
	WRONG(ibv_resize_cq(cq, 0), EINVAL);
	WRONG(cq->cqe, 64);
	WRONG(ibv_resize_cq(cq, 1 << 20), 0);
	WRONG(ibv_resize_cq(cq, 1), 0);
	WRONG(cq->cqe, 1);
	WRONG(ibv_destroy_cq(e->cq), EBUSY);
	WRONG(ibv_dealloc_pd(pd), EBUSY);
	WRONG(ibv_destroy_cq(cq), 0);
	WRONG(ibv_destroy_cq(cq), EINVAL);
	WRONG(ibv_poll_cq(cq, 1, &wc), -1);
	WRONG(ibv_req_notify_cq(cq, 0), EINVAL);
	WRONG(ibv_resize_cq(cq, 4), EINVAL);
	WRONG(FAILS(NULL, ({ struct end gone = {.cq = cq}; qp_with(&gone, 1, 1, 0, IBV_QPT_RC); })), EINVAL);
	struct ibv_srq_init_attr some = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &some);
	struct ibv_qp_init_attr on_srq = {.send_cq = e->cq, .recv_cq = e->cq, .srq = srq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1}};
	struct ibv_qp *user = ibv_create_qp(pd, &on_srq);
	WRONG(ibv_destroy_srq(srq), EBUSY);
	WRONG(ibv_destroy_qp(user), 0);
	WRONG(ibv_destroy_srq(srq), 0);
	WRONG(ibv_destroy_srq(srq), EINVAL);
	WRONG(FAILS(NULL, ibv_create_qp(pd, &on_srq)), EINVAL);
	WRONG(ibv_destroy_comp_channel(channel), 0);
	WRONG(ibv_destroy_comp_channel(channel), EINVAL);
	WRONG(FAILS(NULL, ibv_create_cq(context, 1, NULL, channel, 0)), EINVAL);
	WRONG(ibv_destroy_qp(e->qp), 0);
	WRONG(ibv_destroy_qp(e->qp), EINVAL);
	WRONG(post(e, &send, 0, 8), EINVAL);
	WRONG(receive(e, 1, 0), EINVAL);
	WRONG(to_state(e, IBV_QPS_ERR), EINVAL);
	WRONG(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), EINVAL);
	WRONG(ibv_destroy_cq(e->cq), 0);
	WRONG(ibv_dereg_mr(e->mr), 0);
	WRONG(ibv_dereg_mr(e->mr), EINVAL);
	WRONG(ibv_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	free(e);
}

int main(void)
{
	open_device();
	roce = context->device->transport_type == IBV_TRANSPORT_IB;
	struct end *a = create(IBV_ACCESS_LOCAL_WRITE), *b = create(IBV_ACCESS_LOCAL_WRITE);
	creation(a);
	shared(a);
	if (roce)
		transitions();
	states(a, b);
	contexts();
	overflow(a);
	ends(a);
	destroy(b);
	wrong_key();
	nobody_asks();
	WRONG(ibv_dealloc_pd(pd), 0);
	WRONG(ibv_dealloc_pd(pd), EINVAL);
	WRONG(ibv_close_device(context), 0);
	WRONG(ibv_close_device(context), EINVAL);
	WRONG(FAILS(NULL, ibv_alloc_pd(context)), EINVAL);
	WRONG(FAILS(NULL, ibv_create_cq(context, 1, NULL, NULL, 0)), EINVAL);
	if (!failed)
		puts("wrong: ok");
	return failed;
}
