/* librdmacm: events. */
#include "objects.h"

/* valgrind takes a switch between goroutines for a stack that grows, and what Go computed there for undefined. */
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define DEFINED(v) ((void)VALGRIND_MAKE_MEM_DEFINED(&(v), sizeof(v)))
#else
#define DEFINED(v) ((void)0)
#endif

struct event {
	struct rdma_cm_event event;
	/* Some programs read their protocol's header from it unasked: it is never NULL, and zero where there is nothing. */
	uint8_t private_data[sizeof((struct iw_cm_event *)0)->private_data];
};

/* What is counted: a request is an event of the id that listens. */
static struct iw_id *counted(const struct rdma_cm_event *e)
{
	return container(e->listen_id ? e->listen_id : e->id, struct iw_id, id);
}

/* A request for whose id there is no memory or no descriptor is refused. */
static struct rdma_cm_id *refuse(struct iw_id *child, const struct iw_cm_event *e)
{
	iw_engine()->id_destroy(e->child);
	if (child)
		iw_retire(child);
	return NULL;
}

/* The id of a request has the channel that its event was on, as the one that listens may be on another by now, and the context of that. That of a synchronous
 * one is synchronous. */
static struct rdma_cm_id *child_of(struct rdma_event_channel *channel, struct rdma_cm_id *listener, const struct iw_cm_event *e)
{
	struct iw_id *child = iw_new_id(channel, listener->context, listener->ps, listener->qp_type);
	if (!child)
		return refuse(NULL, e);
	child->handle = iw_handle(e->child);
	child->passive = child->begun = true;
	child->responder_resources = e->responder_resources;
	child->initiator_depth = e->initiator_depth;
	iw_engine()->id_name(e->child, (uintptr_t)&child->id);
	iw_set_addresses(&child->id, e->local, e->peer);
	if (!child->id.verbs || (container(listener, struct iw_id, id)->sync && iw_migrate(&child->id, NULL)))
		return refuse(child, e);
	return &child->id;
}

/* The QP of the id, where it is the one that the event names: what a program has destroyed by ibv_destroy_qp stays in id->qp, and its memory may be
 * another's. It stays what it is until the event is delivered, for which ibv_destroy_qp waits. */
static struct ibv_qp *qp_of(struct rdma_cm_id *id, const struct iw_cm_event *e)
{
	return (uintptr_t)id->qp == e->qp ? id->qp : NULL;
}

static void follow(struct rdma_cm_id *id, const struct iw_cm_event *e)
{
	struct iw_id *i = container(id, struct iw_id, id);
	struct ibv_qp *qp = qp_of(id, e);
	iw_set_addresses(id, e->local, e->peer);
	i->up = (i->up && e->type != RDMA_CM_EVENT_DISCONNECTED) || e->type == RDMA_CM_EVENT_ESTABLISHED || e->type == RDMA_CM_EVENT_CONNECT_RESPONSE;
	if (qp && e->type == RDMA_CM_EVENT_ESTABLISHED)
		qp->state = IBV_QPS_RTS;
	if (qp && (e->type == RDMA_CM_EVENT_DISCONNECTED || e->type == RDMA_CM_EVENT_REJECTED))
		qp->state = IBV_QPS_ERR;
}

/* It reports false for a request that is refused, of which the program is not told. */
static bool translate(struct rdma_event_channel *channel, const struct iw_cm_event *e, struct event *out)
{
	struct rdma_cm_id *id = (struct rdma_cm_id *)(uintptr_t)e->token;
	out->event = (struct rdma_cm_event){.id = id, .event = e->type, .status = e->status};
	if (e->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		out->event.listen_id = id;
		if (!(out->event.id = child_of(channel, id, e)))
			return false;
	} else {
		follow(id, e);
		if (e->type == RDMA_CM_EVENT_ADDR_RESOLVED && !id->verbs) { /* the program has closed the one that ids had */
			out->event.event = RDMA_CM_EVENT_ADDR_ERROR;
			out->event.status = -errno;
		}
	}
	memcpy(out->private_data, e->private_data, e->length);
	out->event.param.conn = (struct rdma_conn_param){
		.private_data = out->private_data,
		.private_data_len = e->length < 255 ? e->length : 255,
		.responder_resources = e->responder_resources,
		.initiator_depth = e->initiator_depth,
	};
	return true;
}

static int take(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct iw_cm_event e;
	struct event *out = iw_new(sizeof *out);
	if (!out)
		return ENOMEM;
	int error;
	iw_deliver();
	do {
		error = iw_engine()->cm_next(iw_number(&container(channel, struct iw_cm_channel, channel)->handle), &e);
		DEFINED(e);
	} while (!error && !translate(channel, &e, out));
	if (error) {
		free(out);
	} else {
		*event = &out->event;
		iw_count(&counted(*event)->events, 1);
	}
	iw_delivered();
	return error;
}

/* Where the engine has no channel yet, there will be something. Where another thread has destroyed it meanwhile, there will not: a read of the kernel's
 * waits for ever then, and so programs do, as rping, that end with a thread in it. */
static int take_here(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int error = take(channel, event);
	if (!error || error == ENOMEM)
		return error;
	return channel->fd < 0 || iw_may_wait(channel) ? EAGAIN : EINVAL;
}

EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	if (!channel || !event)
		return iw_set_errno(EINVAL);
	if (channel->fd < 0)
		return iw_set_errno(EBADF);
	struct iw_waiters *w = &container(channel, struct iw_cm_channel, channel)->waiters;
	return AWAIT(w, &channel->fd, take_here(channel, event));
}

EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return iw_set_errno(EINVAL);
	struct iw_id *i = counted(event);
	free(container(event, struct event, event));
	iw_count(&i->acked, 1);
	return 0;
}

/* Ends a call of a synchronous id: with the event that it leads to. */
int iw_complete(struct rdma_cm_id *id)
{
	if (!container(id, struct iw_id, id)->sync)
		return 0;
	if (id->event)
		rdma_ack_cm_event(id->event);
	id->event = NULL;
	if (rdma_get_cm_event(id->channel, &id->event))
		return -1;
	if (!id->event->status)
		return 0;
	return iw_set_errno(id->event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : abs(id->event->status));
}
