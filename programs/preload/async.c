/* Asynchronous events. */
#include "objects.h"

/* The counters of an object that an event is about: of those delivered, and those acknowledged. */
struct counter {
	uint32_t *acked, *delivered;
};

static struct counter counter_of(struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_CQ_ERR: {
		struct iw_cq *c = container(e->element.cq, struct iw_cq, cq);
		return (struct counter){&c->cq.async_events_completed, &c->async_events};
	}
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: {
		struct iw_srq *s = container(e->element.srq, struct iw_srq, srq);
		return (struct counter){&s->srq.events_completed, &s->events};
	}
	default: {
		struct iw_qp *q = container(e->element.qp, struct iw_qp, qp);
		return (struct counter){&q->qp.events_completed, &q->events};
	}
	}
}

static int take(struct ibv_context *context, struct ibv_async_event *event)
{
	uint32_t type;
	uint64_t token;
	iw_deliver();
	int error = iw_engine()->async_next(iw_context_number(context), &type, &token);
	if (!error) {
		event->event_type = type;
		event->element.qp = (struct ibv_qp *)(uintptr_t)token;
		iw_count(counter_of(event).delivered, 1);
	}
	iw_delivered();
	return error;
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	if (!iw_ours(context))
		return REAL(ibv_get_async_event, context, event);
	if (!iw_own_async(context))
		return iw_set_errno(EBADF);
	struct iw_waiters *w = &container(context, struct iw_context, v.context)->waiters;
	return AWAIT(w, &context->async_fd, iw_has_events(context) ? take(context, event) : EAGAIN);
}

static struct ibv_context *context_of(struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_CQ_ERR:
		return e->element.cq->context;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return e->element.srq->context;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return e->element.qp->context;
	default:
		return NULL; /* of a port, or of one that we do not know */
	}
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	if (!iw_ours(context_of(event))) {
		REAL(ibv_ack_async_event, event);
		return;
	}
	iw_count(counter_of(event).acked, 1);
}
