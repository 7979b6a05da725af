/* Thread domains and parent domains. By the former a program promises that one thread at a time uses what it makes in the latter. Our locks stay, so both only
 * have to be there: perftest's --no_lock and others give up without them. */
#include "objects.h"

struct iw_td {
	struct ibv_td td;
	uint32_t users; /* parent domains */
	bool gone;
};

static struct iw_td *td_of(struct ibv_td *td)
{
	return container(td, struct iw_td, td);
}

struct ibv_td *iw_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct iw_td *t = attr->comp_mask ? iw_failed(EINVAL) : iw_new(sizeof *t);
	if (!t)
		return NULL;
	t->td.context = context;
	return &t->td;
}

int iw_dealloc_td(struct ibv_td *td)
{
	struct iw_td *t = td_of(td);
	if (__atomic_load_n(&t->users, __ATOMIC_SEQ_CST))
		return EBUSY;
	if (__atomic_exchange_n(&t->gone, true, __ATOMIC_SEQ_CST))
		return EINVAL;
	iw_retire(t);
	return 0;
}

bool iw_is_parent(const struct ibv_context *context, struct ibv_pd *pd)
{
	return pd && pd->context == context && container(pd, struct iw_pd, pd)->of;
}

/* Memory of queues is our own: functions that allocate it are refused. */
static int judge(struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
	if (attr->comp_mask & ~IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		return EOPNOTSUPP;
	if (!attr->pd || attr->pd->context != context || iw_is_parent(context, attr->pd) || !iw_live(&container(attr->pd, struct iw_pd, pd)->handle))
		return EINVAL;
	return attr->td && (attr->td->context != context || td_of(attr->td)->gone) ? EINVAL : 0;
}

struct ibv_pd *iw_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	int error = judge(context, attr);
	struct iw_pd *p = error ? iw_failed(error) : iw_new(sizeof *p);
	if (!p)
		return NULL;
	p->pd.context = context;
	p->of = container(attr->pd, struct iw_pd, pd);
	p->handle = p->of->handle;
	p->td = attr->td;
	__atomic_fetch_add(&p->of->parents, 1, __ATOMIC_SEQ_CST);
	if (p->td)
		__atomic_fetch_add(&td_of(p->td)->users, 1, __ATOMIC_SEQ_CST);
	return &p->pd;
}

int iw_dealloc_parent_domain(struct iw_pd *p)
{
	if (!__atomic_exchange_n(&p->handle.number, 0, __ATOMIC_SEQ_CST))
		return EINVAL;
	__atomic_fetch_sub(&p->of->parents, 1, __ATOMIC_SEQ_CST);
	if (p->td)
		__atomic_fetch_sub(&td_of(p->td)->users, 1, __ATOMIC_SEQ_CST);
	iw_retire(p);
	return 0;
}
