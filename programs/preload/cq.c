/* Completion Queues and completion channels. */
#include "objects.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct iw_cq *cq_of(struct ibv_cq *cq)
{
	return container(cq, struct iw_cq, cq);
}

static struct iw_channel *channel_of(struct ibv_comp_channel *channel)
{
	return container(channel, struct iw_channel, channel);
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	uint64_t number;
	if (!iw_ours(context))
		return REAL(ibv_create_comp_channel, context);
	int fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	struct iw_channel *c = iw_new(sizeof *c);
	if (c)
		iw_prepare_waiters(&c->waiters);
	int error = c ? iw_engine()->channel_open(fd, &c->waiters, &number) : ENOMEM;
	if (error) {
		free(c);
		close(fd);
		return iw_failed(error);
	}
	c->channel = (struct ibv_comp_channel){.context = context, .fd = fd};
	c->handle = iw_handle(number);
	return &c->channel;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	if (!iw_ours(channel->context))
		return REAL(ibv_destroy_comp_channel, channel);
	struct iw_channel *c = channel_of(channel);
	if (__atomic_load_n(&channel->refcnt, __ATOMIC_RELAXED) > 0)
		return EBUSY;
	int error = iw_engine()->channel_close(iw_number(&c->handle));
	if (!error) {
		close(channel->fd);
		c->handle.number = 0;
		iw_retire_waited(c, &c->waiters);
	}
	return error;
}

/* A CQ has room for what QPs hold that got more than they had asked for. A program that sets another size later gets just that: rdma-core's own test
   fills it. */
enum { MIN_CQE = 64 };

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
				    int comp_vector)
{
	uint64_t number;
	if (!iw_ours(context))
		return REAL(ibv_create_cq, context, cqe, cq_context, channel, comp_vector);
	if (channel && channel->context != context) /* as the kernel says of a descriptor that is none of the context's */
		return iw_failed(EBADF);
	if (cqe > 0 && cqe < MIN_CQE)
		cqe = MIN_CQE;
	struct iw_cq *c = iw_new(sizeof *c);
	int error = comp_vector || cqe > MAX_CQE || (channel && !iw_live(&channel_of(channel)->handle))
			    ? EINVAL
		    : !c ? ENOMEM
			    : iw_engine()->cq_create(iw_context_number(context), channel ? iw_number(&channel_of(channel)->handle) : 0,
							 cqe, (uintptr_t)&c->cq, &number);
	if (error) {
		free(c);
		return iw_failed(error);
	}
	c->cq = (struct ibv_cq){.context = context, .channel = channel, .cq_context = cq_context, .cqe = cqe};
	pthread_mutex_init(&c->cq.mutex, NULL);
	pthread_cond_init(&c->cq.cond, NULL);
	c->handle = iw_handle(number);
	if (channel)
		__atomic_fetch_add(&channel->refcnt, 1, __ATOMIC_RELAXED);
	return &c->cq;
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	if (!iw_ours(cq->context))
		return REAL(ibv_resize_cq, cq, cqe);
	int error = cqe > MAX_CQE ? EINVAL : iw_engine()->cq_resize(iw_number(&cq_of(cq)->handle), cqe);
	if (!error)
		cq->cqe = cqe;
	return error;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	if (!iw_ours(cq->context))
		return REAL(ibv_destroy_cq, cq);
	struct iw_cq *c = cq_of(cq);
	int error = iw_engine()->cq_destroy(iw_number(&c->handle));
	if (error)
		return error;
	c->handle.number = 0;
	iw_wait_acked(&cq->comp_events_completed, &c->comp_events);
	iw_wait_acked(&cq->async_events_completed, &c->async_events);
	if (cq->channel)
		__atomic_fetch_sub(&cq->channel->refcnt, 1, __ATOMIC_RELAXED);
	iw_retire(c);
	return 0;
}

static int take(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	uint64_t token;
	iw_deliver();
	int error = iw_engine()->channel_next(iw_number(&channel_of(channel)->handle), &token);
	if (!error) {
		*cq = (struct ibv_cq *)(uintptr_t)token;
		*cq_context = (*cq)->cq_context;
		iw_count(&cq_of(*cq)->comp_events, 1);
	}
	iw_delivered();
	return error;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	if (!iw_ours(channel->context))
		return REAL(ibv_get_cq_event, channel, cq, cq_context);
	struct iw_waiters *w = &channel_of(channel)->waiters;
	return AWAIT(w, &channel->fd, take(channel, cq, cq_context));
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	if (!iw_ours(cq->context)) {
		REAL(ibv_ack_cq_events, cq, n);
		return;
	}
	iw_count(&cq->comp_events_completed, n);
}

int iw_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return iw_engine()->cq_poll(iw_number(&cq_of(cq)->handle), n, wc);
}

int iw_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return iw_engine()->cq_arm(iw_number(&cq_of(cq)->handle), solicited_only);
}
