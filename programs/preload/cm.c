/* librdmacm: event channels and ids. */
#include "objects.h"

#include <netinet/in.h>
#include <unistd.h>

static struct iw_cm_channel *channel_of(struct rdma_event_channel *channel)
{
	return container(channel, struct iw_cm_channel, channel);
}

static struct iw_id *id_of(struct rdma_cm_id *id)
{
	return container(id, struct iw_id, id);
}

uint64_t iw_id_number(struct rdma_cm_id *id)
{
	return iw_number(&id_of(id)->handle);
}

static struct ibv_context *common;
static struct ibv_pd *domain;

/* All ids have the same context, as with librdmacm, which programs compare. */
struct ibv_context *iw_cm_context(void)
{
	iw_make();
	if (!common)
		common = iw_open();
	struct ibv_context *context = common;
	iw_made();
	return context;
}

/* And the same Protection Domain, where the program brings none: one for each engine. */
static struct ibv_pd *default_pd(struct ibv_context *context)
{
	iw_make();
	if (!domain || !iw_live(&container(domain, struct iw_pd, pd)->handle))
		domain = ibv_alloc_pd(context);
	struct ibv_pd *pd = domain;
	iw_made();
	return pd;
}

/* Programs can destroy both. The ids that come then have new ones. */
void iw_not_common(const struct ibv_context *context, const struct ibv_pd *pd)
{
	iw_make();
	if (context && context == common)
		common = NULL;
	if (domain && (pd == domain || context == domain->context))
		domain = NULL;
	iw_made();
}

EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct iw_cm_channel *c = iw_new(sizeof *c);
	if (!c)
		return NULL;
	c->channel.fd = iw_descriptor(&c->process);
	iw_prepare_waiters(&c->waiters);
	if (c->channel.fd >= 0)
		return &c->channel;
	free(c);
	return NULL;
}

/* The engine's part of a channel is made when it is needed, and in a child after fork anew. */
static uint64_t channel_number(struct rdma_event_channel *channel)
{
	struct iw_cm_channel *c = channel_of(channel);
	const struct iw_engine *engine = iw_engine();
	uint64_t number;
	iw_make();
	if (!iw_live(&c->handle) && iw_own_descriptor(c->channel.fd, &c->process) && !engine->cm_channel_open(c->channel.fd, &c->waiters, &number))
		c->handle = iw_handle(number);
	number = iw_number(&c->handle);
	iw_made();
	return number;
}

/* Not for events of a parent's ids, which do not come here. */
bool iw_may_wait(struct rdma_event_channel *channel)
{
	struct iw_cm_channel *c = channel_of(channel);
	iw_make();
	bool may = c->handle.number ? iw_live(&c->handle) : iw_own_descriptor(channel->fd, &c->process);
	iw_made();
	return may;
}

EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct iw_cm_channel *c = channel_of(channel);
	if (channel->fd < 0)
		return;
	if (iw_live(&c->handle))
		iw_engine()->cm_channel_close(c->handle.number);
	c->handle.number = 0;
	close(__atomic_exchange_n(&channel->fd, -1, __ATOMIC_SEQ_CST));
	iw_retire_waited(c, &c->waiters);
}

/* An id without a channel of the program's is synchronous: its calls wait for their events, on a channel of its own. */
struct rdma_event_channel *iw_new_channel(struct iw_id *id)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	id->sync = channel != NULL;
	return channel;
}

struct iw_id *iw_new_id(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct iw_id *i = iw_new(sizeof *i);
	if (!i)
		return NULL;
	i->id.channel = channel ? channel : iw_new_channel(i);
	i->id.context = context;
	i->id.ps = ps;
	i->id.qp_type = type;
	if (i->id.channel)
		return i;
	free(i);
	return NULL;
}

/* An id gets them with its address, at events that could not say that they are not to be had. */
static bool has_device(void)
{
	struct ibv_context *context = iw_cm_context();
	return context && default_pd(context);
}

static int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps,
		     enum ibv_qp_type type)
{
	uint64_t number;
	struct iw_id *i = has_device() ? iw_new_id(channel, context, ps, type) : NULL;
	if (!i)
		return -1;
	int error = iw_engine()->id_create(channel_number(i->id.channel), (uintptr_t)&i->id, &number);
	if (error) {
		if (i->sync)
			rdma_destroy_event_channel(i->id.channel);
		free(i);
		return iw_set_errno(error);
	}
	i->handle = iw_handle(number);
	*id = &i->id;
	return 0;
}

EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	if (ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB)
		return iw_set_errno(iw_refuse_datagrams());
	if (ps != RDMA_PS_TCP && ps != RDMA_PS_IB)
		return iw_set_errno(EINVAL);
	return create_id(channel, id, context, ps, IBV_QPT_RC);
}

static void drop_event(struct rdma_cm_id *id)
{
	if (id->event)
		rdma_ack_cm_event(id->event);
	id->event = NULL;
}

EXPORT int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct iw_id *i = id_of(id);
	int error = iw_engine()->id_destroy(iw_number(&i->handle));
	if (error)
		return iw_set_errno(error);
	i->handle.number = 0;
	drop_event(id);
	iw_wait_acked(&i->acked, &i->events);
	if (i->sync)
		rdma_destroy_event_channel(id->channel);
	free(i->attr);
	iw_retire(i);
	return 0;
}

int iw_migrate(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct iw_id *i = id_of(id);
	struct rdma_event_channel *own = i->sync ? id->channel : NULL;
	int sync = !channel;
	if (sync && !(channel = rdma_create_event_channel()))
		return -1;
	int error = iw_engine()->id_migrate(iw_number(&i->handle), channel_number(channel));
	if (error) {
		if (sync)
			rdma_destroy_event_channel(channel);
		return iw_set_errno(error);
	}
	i->sync = sync;
	id->channel = channel;
	if (own) {
		drop_event(id);
		rdma_destroy_event_channel(own);
	}
	return 0;
}

/* When it returns, events of the id come on the new channel only, and none of those before is being looked at. */
EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct iw_id *i = id_of(id);
	if (!channel && i->sync)
		return 0;
	if (iw_migrate(id, channel))
		return -1;
	iw_wait_acked(&i->acked, &i->events);
	return 0;
}

/* An id gets a device when its local address is one of the host's: when it is not that of all. */
static bool is_wildcard(const struct sockaddr *a)
{
	static const struct in6_addr any = IN6ADDR_ANY_INIT;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr == INADDR_ANY;
	return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &any, sizeof any) == 0;
}

void iw_set_addresses(struct rdma_cm_id *id, const uint8_t *local, const uint8_t *peer)
{
	struct rdma_addr *a = &id->route.addr;
	memcpy(&a->src_storage, local, sizeof a->src_storage);
	memcpy(&a->dst_storage, peer, sizeof a->dst_storage);
	if (a->src_addr.sa_family == 0 || is_wildcard(&a->src_addr))
		return;
	iw_gid_of(&a->src_addr, &a->addr.ibaddr.sgid);
	iw_gid_of(&a->dst_addr, &a->addr.ibaddr.dgid);
	if (!id->verbs) {
		id->verbs = iw_cm_context();
		id->port_num = 1;
		id->pd = id->verbs ? default_pd(id->verbs) : NULL;
	}
}

EXPORT struct ibv_context **rdma_get_devices(int *num)
{
	struct ibv_context **list = iw_new(2 * sizeof *list);
	if (!list)
		return NULL;
	list[0] = iw_cm_context();
	if (!list[0]) {
		free(list);
		return NULL;
	}
	if (num)
		*num = 1;
	return list;
}

EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
