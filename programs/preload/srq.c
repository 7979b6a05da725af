/* Shared Receive Queues. */
#include "objects.h"

#include <pthread.h>

static struct iw_srq *srq_of(struct ibv_srq *srq)
{
	return container(srq, struct iw_srq, srq);
}

/* Of srq_limit the manual says that it "is irrelevant for ibv_create_srq". */
EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	uint64_t number;
	if (!iw_ours(pd->context))
		return REAL(ibv_create_srq, pd, attr);
	if (!attr->attr.max_sge)
		attr->attr.max_sge = 1;
	struct iw_srq *s = iw_new(sizeof *s);
	int error = attr->attr.max_wr < 1 || attr->attr.max_wr > MAX_WR || attr->attr.max_sge > MAX_SGE
			    ? EINVAL
		    : !s ? ENOMEM
			    : iw_engine()->srq_create(iw_context_number(pd->context), iw_number(&container(pd, struct iw_pd, pd)->handle),
						      attr->attr.max_wr, attr->attr.max_sge, (uintptr_t)&s->srq, &number);
	if (error) {
		free(s);
		return iw_failed(error);
	}
	s->srq = (struct ibv_srq){.context = pd->context, .srq_context = attr->srq_context, .pd = pd};
	s->max_sge = attr->attr.max_sge;
	pthread_mutex_init(&s->srq.mutex, NULL);
	pthread_cond_init(&s->srq.cond, NULL);
	s->handle = iw_handle(number);
	return &s->srq;
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	if (!iw_ours(srq->context))
		return REAL(ibv_modify_srq, srq, attr, mask);
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR && (attr->max_wr < 1 || attr->max_wr > MAX_WR))
		return EINVAL;
	if (mask & IBV_SRQ_LIMIT && attr->srq_limit > MAX_WR)
		return EINVAL;
	return iw_engine()->srq_modify(iw_number(&srq_of(srq)->handle), mask & IBV_SRQ_MAX_WR ? (int)attr->max_wr : 0,
				       mask & IBV_SRQ_LIMIT ? (int)attr->srq_limit : -1);
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	int32_t depth, limit;
	if (!iw_ours(srq->context))
		return REAL(ibv_query_srq, srq, attr);
	int error = iw_engine()->srq_query(iw_number(&srq_of(srq)->handle), &depth, &limit);
	if (!error)
		*attr = (struct ibv_srq_attr){.max_wr = depth, .max_sge = srq_of(srq)->max_sge, .srq_limit = limit};
	return error;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	if (!iw_ours(srq->context))
		return REAL(ibv_destroy_srq, srq);
	struct iw_srq *s = srq_of(srq);
	int error = iw_engine()->srq_destroy(iw_number(&s->handle));
	if (error)
		return error;
	s->handle.number = 0;
	iw_wait_acked(&srq->events_completed, &s->events);
	iw_retire(s);
	return 0;
}

int iw_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return iw_engine()->srq_post(iw_number(&srq_of(srq)->handle), wr, (void **)bad);
}
