/* librdmacm: endpoints, which are ids with all that they need, and the requests to them. */
#include "objects.h"

#include <rdma/rdma_verbs.h>

static int resolve(struct rdma_cm_id *id, const struct rdma_addrinfo *res)
{
	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, 2000))
		return -1;
	return rdma_resolve_route(id, 2000);
}

/* The passive side makes its QPs when requests come, by what it is told here. */
static int prepare(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	struct iw_id *i = container(id, struct iw_id, id);
	if (rdma_bind_addr(id, res->ai_src_addr))
		return -1;
	if (pd)
		id->pd = pd;
	if (!attr)
		return 0;
	i->attr = iw_new(sizeof *i->attr);
	if (!i->attr)
		return iw_set_errno(ENOMEM);
	*i->attr = *attr;
	i->attr->qp_type = res->ai_qp_type;
	return 0;
}

EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *i;
	if (rdma_create_id(NULL, &i, NULL, res->ai_port_space))
		return -1;
	int failed;
	if (res->ai_flags & RAI_PASSIVE) {
		failed = prepare(i, res, pd, attr);
	} else {
		failed = resolve(i, res);
		if (!failed && attr) {
			attr->qp_type = res->ai_qp_type;
			failed = rdma_create_qp(i, pd, attr);
		}
	}
	if (failed) {
		int error = errno;
		rdma_destroy_ep(i);
		return iw_set_errno(error);
	}
	*id = i;
	return 0;
}

EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

EXPORT int rdma_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **id)
{
	struct iw_id *l = container(listener, struct iw_id, id);
	struct rdma_cm_event *event;
	if (!l->sync)
		return iw_set_errno(EINVAL);
	if (listener->event)
		rdma_ack_cm_event(listener->event);
	listener->event = NULL;
	if (rdma_get_cm_event(listener->channel, &event))
		return -1;
	int error = event->event != RDMA_CM_EVENT_CONNECT_REQUEST ? EINVAL : abs(event->status);
	if (!error && l->attr) {
		struct ibv_qp_init_attr attr = *l->attr;
		if (rdma_create_qp(event->id, listener->pd, &attr))
			error = errno;
	}
	if (error) {
		listener->event = event;
		return iw_set_errno(error);
	}
	*id = event->id;
	(*id)->event = event;
	return 0;
}
