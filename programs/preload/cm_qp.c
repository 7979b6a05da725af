/* librdmacm: what belongs to an id, and is made and destroyed with it. */
#include "objects.h"

#include <rdma/rdma_verbs.h>

static void destroy_cqs(struct rdma_cm_id *id)
{
	if (!container(id, struct iw_id, id)->own_cqs)
		return;
	if (id->send_cq && id->send_cq != id->recv_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	id->send_cq = id->recv_cq = NULL;
	id->send_cq_channel = id->recv_cq_channel = NULL;
	container(id, struct iw_id, id)->own_cqs = false;
}

static int create_cq(struct rdma_cm_id *id, int depth, struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	container(id, struct iw_id, id)->own_cqs = true;
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -1;
	*cq = ibv_create_cq(id->verbs, depth ? depth : 1, id, *channel, 0);
	return *cq ? 0 : -1;
}

/* The program's CQs, or those of the id, which are made where there are none. */
static int complete_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (!attr->recv_cq && !id->recv_cq && create_cq(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq))
		return -1;
	if (!attr->send_cq && !id->send_cq && create_cq(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq))
		return -1;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	if (!attr->srq)
		attr->srq = id->srq;
	return 0;
}

/* An id that has CQs, which its program may have set, has its QP complete there. */
static bool other_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	return (id->recv_cq && attr->recv_cq && attr->recv_cq != id->recv_cq) || (id->send_cq && attr->send_cq && attr->send_cq != id->send_cq);
}

/* With RoCE the kernel's connection manager grants atomics as it grants Reads; that of iWARP names none. */
unsigned iw_cm_rights(void)
{
	return IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | (iw_roce() ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (id->qp || !id->verbs || !attr)
		return iw_set_errno(EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (!attr->pd || attr->pd->context != id->verbs || other_cqs(id, attr))
		return iw_set_errno(EINVAL);
	if (complete_cqs(id, attr))
		goto failed;
	struct ibv_qp *qp = iw_create_qp_ex(id->verbs, attr);
	if (!qp)
		goto failed;
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = iw_cm_rights()};
	ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	id->pd = attr->pd;
	id->qp = qp;
	return 0;
failed:
	destroy_cqs(id);
	return -1;
}

EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {0};
	if (!attr)
		return iw_set_errno(EINVAL);
	memcpy(&ex, attr, sizeof *attr);
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd ? pd : id->pd;
	if (!ex.pd)
		return iw_set_errno(EINVAL);
	int result = rdma_create_qp_ex(id, &ex);
	memcpy(attr, &ex, sizeof *attr);
	return result;
}

/* Programs that clean up from several places destroy twice, or what was never made. */
EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (!id->qp)
		return;
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(id);
}

EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (!pd)
		pd = id->pd;
	if (!iw_id_number(id) || !id->verbs || !pd || pd->context != id->verbs || id->srq || !attr)
		return iw_set_errno(EINVAL);
	id->srq = ibv_create_srq(pd, attr);
	return id->srq ? 0 : -1;
}

EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	if (!attr)
		return iw_set_errno(EINVAL);
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type != IBV_SRQT_BASIC)
		return iw_set_errno(EOPNOTSUPP);
	return rdma_create_srq(id, attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : NULL, (struct ibv_srq_init_attr *)attr);
}

EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (!id->srq)
		return;
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
}
