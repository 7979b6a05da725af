/* Queue Pairs. */
#include "objects.h"

#include <pthread.h>

/* Programs send inline what they have not asked for: rdma_xclient does. */
enum { MIN_INLINE = 256 };

/* Programs that ask for a Send Queue of one post the next Send before they have polled the completion of the last, as devices give more
   than that: ib_send_lat -e does. */
enum { MIN_SENDS = 16 };

static struct iw_qp *qp_of(struct ibv_qp *qp)
{
	return container(qp, struct iw_qp, qp);
}

static uint64_t cq_number(struct ibv_cq *cq)
{
	return cq ? iw_number(&container(cq, struct iw_cq, cq)->handle) : 0;
}

static bool is_ud(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_UD;
}

/* Datagrams are had in the guise of RoCE. "The attributes max_recv_wr and max_recv_sge are ignored ... if the QP is to be associated with an
   SRQ" (ibv_create_qp(3)). */
static int unsupported(const struct ibv_qp_init_attr *attr)
{
	if (attr->qp_type != IBV_QPT_RC && !(attr->qp_type == IBV_QPT_UD && iw_roce()))
		return EOPNOTSUPP;
	if (attr->cap.max_send_sge > MAX_SGE || attr->cap.max_send_wr > MAX_WR || attr->cap.max_inline_data > 4096)
		return EINVAL;
	if (!attr->srq && (attr->cap.max_recv_sge > MAX_SGE || attr->cap.max_recv_wr > MAX_WR))
		return EINVAL;
	return 0;
}

static int create(struct iw_qp *q, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	struct iw_qp_attr a = {
		.context = iw_context_number(pd->context),
		.pd = iw_number(&container(pd, struct iw_pd, pd)->handle),
		.send_cq = cq_number(attr->send_cq),
		.recv_cq = cq_number(attr->recv_cq),
		.srq = attr->srq ? iw_number(&container(attr->srq, struct iw_srq, srq)->handle) : 0,
		.token = (uintptr_t)&q->qp,
		.send_depth = attr->cap.max_send_wr,
		.recv_depth = attr->srq ? 0 : attr->cap.max_recv_wr,
		.send_sges = attr->cap.max_send_sge,
		.recv_sges = attr->cap.max_recv_sge,
		.max_inline = attr->cap.max_inline_data,
		.signal_all = attr->sq_sig_all,
	};
	uint64_t number;
	uint32_t qp_num;
	if (attr->srq && !a.srq) /* it was destroyed */
		return EINVAL;
	int error = attr->qp_type == IBV_QPT_UD ? iw_engine()->ud_create(&a, &number, &qp_num) : iw_engine()->qp_create(&a, &number, &qp_num);
	if (error)
		return error;
	q->handle = iw_handle(number);
	q->qp = (struct ibv_qp){.context = pd->context, .qp_context = attr->qp_context, .pd = pd, .send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq, .srq = attr->srq, .qp_num = qp_num, .handle = qp_num, .state = IBV_QPS_RESET, .qp_type = attr->qp_type};
	return 0;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (!iw_ours(pd->context))
		return REAL(ibv_create_qp, pd, attr);
	int error = unsupported(attr);
	if (error)
		return iw_failed(error);
	if (attr->cap.max_inline_data < MIN_INLINE)
		attr->cap.max_inline_data = MIN_INLINE;
	if (attr->cap.max_send_wr && attr->cap.max_send_wr < MIN_SENDS)
		attr->cap.max_send_wr = MIN_SENDS;
	if (!attr->cap.max_send_sge)
		attr->cap.max_send_sge = 1;
	if (!attr->cap.max_recv_sge && !attr->srq)
		attr->cap.max_recv_sge = 1;
	struct iw_qp *q = iw_new(sizeof *q);
	error = q ? create(q, pd, attr) : ENOMEM;
	if (error) {
		free(q);
		return iw_failed(error);
	}
	pthread_mutex_init(&q->qp.mutex, NULL);
	pthread_cond_init(&q->qp.cond, NULL);
	q->attr = *attr;
	return &q->qp;
}

/* Of the extensions of a QP its PD and the functions of ibv_wr_* are had: a program that wants others falls back, or says so. No flags are
   none that are wanted. */
struct ibv_qp *iw_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	enum { KNOWN = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS };
	bool extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (attr->comp_mask & ~KNOWN || !(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags))
		return iw_failed(EOPNOTSUPP);
	struct ibv_qp *qp = ibv_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr);
	int error = qp && extended ? iw_extend(qp_of(qp), attr->send_ops_flags) : 0;
	if (!error)
		return qp;
	iw_refuse_ops(qp_of(qp), attr->send_ops_flags, error);
	ibv_destroy_qp(qp);
	return iw_failed(error);
}

/* What of a path the program has set, in the guise of RoCE: without a GID the peer is on this host. */
static int meet(struct iw_qp *q, const struct ibv_qp_attr *attr, struct iw_why *why)
{
	struct iw_path path = {.number = attr->dest_qp_num, .ird = attr->max_dest_rd_atomic};
	if (attr->ah_attr.is_global) {
		union ibv_gid gid;
		if (iw_gid(attr->ah_attr.grh.sgid_index, &gid))
			return iw_because(why, EINVAL, "there is no GID of sgid_index %u", attr->ah_attr.grh.sgid_index);
		memcpy(path.local, gid.raw, sizeof path.local);
		memcpy(path.peer, attr->ah_attr.grh.dgid.raw, sizeof path.peer);
	}
	int error = iw_engine()->qp_meet(iw_number(&q->handle), &path);
	return error ? iw_because(why, error, "dest_qp_num %#x is not that of a QP of iwarp run, or librdmacm connects this QP", path.number) : 0;
}

#define KEEP(flag, member)     \
	if (mask & (flag))     \
	q->set.member = attr->member

static void keep(struct iw_qp *q, const struct ibv_qp_attr *attr, int mask)
{
	KEEP(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	KEEP(IBV_QP_PKEY_INDEX, pkey_index);
	KEEP(IBV_QP_QKEY, qkey);
	KEEP(IBV_QP_AV, ah_attr);
	KEEP(IBV_QP_PATH_MTU, path_mtu);
	KEEP(IBV_QP_TIMEOUT, timeout);
	KEEP(IBV_QP_RETRY_CNT, retry_cnt);
	KEEP(IBV_QP_RNR_RETRY, rnr_retry);
	KEEP(IBV_QP_RQ_PSN, rq_psn);
	KEEP(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	KEEP(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	KEEP(IBV_QP_SQ_PSN, sq_psn);
	KEEP(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	KEEP(IBV_QP_DEST_QPN, dest_qp_num);
}

static int modify_ud(struct iw_qp *q, const struct ibv_qp_attr *attr, int mask)
{
	uint64_t h = iw_number(&q->handle);
	int error = 0;
	if (mask & IBV_QP_STATE)
		error = iw_engine()->ud_modify(h, attr->qp_state);
	if (!error && mask & IBV_QP_QKEY)
		error = iw_engine()->ud_key(h, attr->qkey);
	return error;
}

/* What rdma_init_qp_attr says of RTR: librdmacm connects the QP, and it stays what it is. */
static bool of_cm(const struct ibv_qp_attr *attr, int mask)
{
	return mask == (IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) && attr->qp_state == IBV_QPS_RTR;
}

/* What the kernel looks at for every device: attributes that it knows, and the port. */
static int judge_any(const struct ibv_qp_attr *attr, int mask, struct iw_why *why)
{
	enum { KNOWN = (IBV_QP_DEST_QPN << 1) - 1 };
	if (mask & ~KNOWN)
		return iw_because(why, EOPNOTSUPP, "attr_mask has %#x, which is not known", mask & ~KNOWN);
	return mask & IBV_QP_PORT && attr->port_num != 1 ? iw_because(why, EINVAL, "port_num is %u, and may be 1", attr->port_num) : 0;
}

/* The rest is judged in the guise of RoCE only, where programs connect by themselves: kernels ask iWARP devices what they make of it. */
static int judge(struct iw_qp *q, const struct ibv_qp_attr *attr, int mask, struct iw_why *why)
{
	uint32_t state;
	int32_t ird, ord;
	bool ud = is_ud(&q->qp);
	uint64_t h = iw_number(&q->handle);
	if (!iw_roce() || (!ud && (of_cm(attr, mask) || iw_engine()->qp_linked(h))))
		return judge_any(attr, mask, why);
	int error = ud ? iw_engine()->ud_query(h, &state) : iw_engine()->qp_query(h, &state, &ird, &ord);
	return error ? error : iw_check_modify(ud, state, attr, mask, why);
}

static int modify(struct iw_qp *q, const struct ibv_qp_attr *attr, int mask, struct iw_why *why)
{
	struct ibv_qp *qp = &q->qp;
	int error;
	if (is_ud(qp))
		error = modify_ud(q, attr, mask);
	else if (!(mask & IBV_QP_STATE))
		error = iw_live(&q->handle) ? 0 : EINVAL;
	else if (iw_roce() && attr->qp_state == IBV_QPS_RTR && mask & IBV_QP_DEST_QPN)
		error = meet(q, attr, why);
	else
		error = iw_engine()->qp_modify(iw_number(&q->handle), attr->qp_state);
	/* Those of an iWARP device come from rdma_init_qp_attr, which names no atomics, and are no bound with siw. */
	if (!error && iw_roce() && !is_ud(qp) && mask & IBV_QP_ACCESS_FLAGS)
		error = iw_engine()->qp_allow(iw_number(&q->handle), attr->qp_access_flags);
	return error;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (!iw_ours(qp->context))
		return REAL(ibv_modify_qp, qp, attr, mask);
	struct iw_qp *q = qp_of(qp);
	struct iw_why why = {.text = ""};
	int error = judge(q, attr, mask, &why);
	if (!error)
		error = modify(q, attr, mask, &why);
	if (error)
		return iw_refuse_modify(q, attr, mask, error, &why);
	keep(q, attr, mask);
	if (mask & IBV_QP_STATE && !of_cm(attr, mask))
		qp->state = attr->qp_state;
	return 0;
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	uint32_t state;
	int32_t ird = 0, ord = 0;
	if (!iw_ours(qp->context))
		return REAL(ibv_query_qp, qp, attr, mask, init);
	struct iw_qp *q = qp_of(qp);
	uint64_t h = iw_number(&q->handle);
	int error = is_ud(qp) ? iw_engine()->ud_query(h, &state) : iw_engine()->qp_query(h, &state, &ird, &ord);
	if (error)
		return error;
	qp->state = state;
	if (state == IBV_QPS_RESET && !iw_roce())
		state = IBV_QPS_INIT; /* as the kernel says of an iWARP device's: they know no RESET */
	*attr = q->set;
	attr->qp_state = attr->cur_qp_state = state;
	attr->cap = q->attr.cap;
	attr->port_num = 1;
	if (!attr->path_mtu)
		attr->path_mtu = IBV_MTU_4096;
	if (!q->set.dest_qp_num) { /* a connection of librdmacm's */
		attr->max_rd_atomic = ord;
		attr->max_dest_rd_atomic = ird;
	}
	*init = q->attr;
	return 0;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	if (!iw_ours(qp->context))
		return REAL(ibv_destroy_qp, qp);
	struct iw_qp *q = qp_of(qp);
	uint64_t h = iw_number(&q->handle);
	int error = is_ud(qp) ? iw_engine()->ud_destroy(h) : iw_engine()->qp_destroy(h);
	if (error)
		return error;
	q->handle.number = 0;
	iw_wait_acked(&qp->events_completed, &q->events);
	iw_shorten(q);
	iw_retire(q);
	return 0;
}

int iw_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	uint64_t h = iw_number(&qp_of(qp)->handle);
	return is_ud(qp) ? iw_engine()->ud_send(h, wr, (void **)bad) : iw_engine()->qp_send(h, wr, (void **)bad);
}

/* All of the list, or nothing of it. */
int iw_post_all(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	uint64_t h = iw_number(&qp_of(qp)->handle);
	return is_ud(qp) ? iw_engine()->ud_send_all(h, wr) : iw_engine()->qp_send_all(h, wr);
}

int iw_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	uint64_t h = iw_number(&qp_of(qp)->handle);
	return is_ud(qp) ? iw_engine()->ud_recv(h, wr, (void **)bad) : iw_engine()->qp_recv(h, wr, (void **)bad);
}
