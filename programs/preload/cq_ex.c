/* Extended Completion Queues: completions are read in place, one after the other. */
#include "objects.h"

#include <pthread.h>

static struct iw_cq *cq_of(struct ibv_cq_ex *cq)
{
	return container(cq, struct iw_cq, extended);
}

static int next(struct ibv_cq_ex *cq)
{
	struct iw_cq *c = cq_of(cq);
	int n = iw_poll_cq(&c->cq, 1, &c->wc);
	if (n < 1)
		return n < 0 ? EINVAL : ENOENT;
	cq->wr_id = c->wc.wr_id;
	cq->status = c->wc.status;
	return 0;
}

static void end(struct ibv_cq_ex *cq)
{
	if (!cq_of(cq)->alone)
		pthread_mutex_unlock(&cq_of(cq)->reading);
}

static int start(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	if ((attr && attr->comp_mask) || !iw_live(&cq_of(cq)->handle)) /* the lock of a parent's may be held for ever */
		return EINVAL;
	if (!cq_of(cq)->alone)
		pthread_mutex_lock(&cq_of(cq)->reading);
	int error = next(cq);
	if (error)
		end(cq);
	return error;
}

static enum ibv_wc_opcode opcode(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->wc.opcode;
}

static uint32_t vendor_err(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->wc.vendor_err;
}

static uint32_t byte_len(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->wc.byte_len;
}

static __be32 imm_data(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->wc.imm_data;
}

static uint32_t qp_num(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->wc.qp_num;
}

static uint32_t src_qp(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->wc.src_qp;
}

static unsigned wc_flags(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->wc.wc_flags;
}

static uint32_t slid(struct ibv_cq_ex *cq)
{
	return 0;
}

static uint8_t sl(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->wc.sl;
}

static uint8_t none(struct ibv_cq_ex *cq)
{
	return 0;
}

/* Times, VLANs, flows and tags are not had. */
struct ibv_cq_ex *iw_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	bool flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS;
	if (attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) || attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS)
		return iw_failed(EOPNOTSUPP);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && !iw_is_parent(context, attr->parent_domain))
		return iw_failed(EINVAL);
	if (flags && attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return iw_failed(EOPNOTSUPP);
	struct ibv_cq *cq = ibv_create_cq(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	struct iw_cq *c = container(cq, struct iw_cq, cq);
	c->alone = flags && attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	pthread_mutex_init(&c->reading, NULL);
	struct ibv_cq_ex *x = &c->extended;
	x->start_poll = start;
	x->next_poll = next;
	x->end_poll = end;
	x->read_opcode = opcode;
	x->read_vendor_err = vendor_err;
	x->read_byte_len = byte_len;
	x->read_imm_data = imm_data;
	x->read_qp_num = qp_num;
	x->read_src_qp = src_qp;
	x->read_wc_flags = wc_flags;
	x->read_slid = slid;
	x->read_sl = sl;
	x->read_dlid_path_bits = none;
	return x;
}
