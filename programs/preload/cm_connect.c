/* librdmacm: from an address to a connection. */
#include "objects.h"

#include <netinet/in.h>

/* 0 for none, and for one of another family. */
static socklen_t length_of(const struct sockaddr *a)
{
	if (!a)
		return 0;
	return a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

static void refresh(struct rdma_cm_id *id)
{
	uint8_t local[128], peer[128];
	if (!iw_engine()->id_addresses(iw_id_number(id), local, peer))
		iw_set_addresses(id, local, peer);
}

EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	if (!length_of(addr))
		return iw_set_errno(EINVAL);
	int error = iw_engine()->id_bind(iw_id_number(id), addr, length_of(addr));
	if (!error)
		refresh(id);
	return iw_set_errno(error);
}

EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	if (!length_of(dst) || (src && !length_of(src)))
		return iw_set_errno(EINVAL);
	int error = iw_engine()->id_resolve_addr(iw_id_number(id), src, length_of(src), dst, length_of(dst));
	return error ? iw_set_errno(error) : iw_complete(id);
}

EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	int error = iw_engine()->id_resolve_route(iw_id_number(id));
	return error ? iw_set_errno(error) : iw_complete(id);
}

EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int error = iw_engine()->id_listen(iw_id_number(id));
	if (error)
		return iw_set_errno(error);
	container(id, struct iw_id, id)->begun = true;
	refresh(id);
	return 0;
}

/* The QP of an id, or the one that the program names by its number. */
static uint64_t qp_number(struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	uint64_t number = 0;
	if (id->qp)
		return iw_number(&container(id->qp, struct iw_qp, qp)->handle);
	if (param)
		iw_engine()->qp_find(param->qp_num, &number);
	return number;
}

/* A depth that the program leaves to us is what the device has or, where a peer has asked, what that wants. */
static int depth(int wanted, bool given, bool passive, int asked, uint8_t *out)
{
	int most = passive && asked < MAX_READS ? asked : MAX_READS;
	if (!given || wanted == RDMA_MAX_RESP_RES)
		wanted = most;
	*out = wanted;
	return wanted > MAX_READS ? EINVAL : 0;
}

static int depths(struct rdma_cm_id *id, const struct rdma_conn_param *p, struct iw_conn_param *to)
{
	struct iw_id *i = container(id, struct iw_id, id);
	int error = depth(p ? p->responder_resources : 0, p, i->passive, i->responder_resources, &to->responder_resources);
	return error ? error : depth(p ? p->initiator_depth : 0, p, i->passive, i->initiator_depth, &to->initiator_depth);
}

/* What a program leaves to us is as with librdmacm: 7 retries. */
static int translate(struct rdma_cm_id *id, const struct rdma_conn_param *p, struct iw_conn_param *to)
{
	*to = (struct iw_conn_param){.rnr_retries = p ? p->rnr_retry_count : 7};
	if (p && p->private_data) {
		to->private_data = p->private_data;
		to->length = p->private_data_len;
	}
	if (id->qp)
		to->min_rnr_timer = container(id->qp, struct iw_qp, qp)->set.min_rnr_timer;
	return depths(id, p, to);
}

static void set_timeout(struct rdma_cm_id *id)
{
	uint8_t timeout = container(id, struct iw_id, id)->timeout;
	if (id->qp && timeout)
		container(id->qp, struct iw_qp, qp)->set.timeout = timeout;
}

EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	struct iw_conn_param param;
	set_timeout(id);
	int error = translate(id, p, &param);
	param.responds = iw_roce() && !id->qp;
	if (!error)
		error = iw_engine()->id_connect(iw_id_number(id), qp_number(id, p), &param);
	if (error)
		return iw_set_errno(error);
	container(id, struct iw_id, id)->begun = true;
	return iw_complete(id);
}

EXPORT int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	struct iw_conn_param param;
	set_timeout(id);
	int error = translate(id, p, &param);
	if (!error)
		error = iw_engine()->id_accept(iw_id_number(id), qp_number(id, p), &param);
	return error ? iw_set_errno(error) : iw_complete(id);
}

EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t length)
{
	return iw_set_errno(iw_engine()->id_reject(iw_id_number(id), private_data, private_data ? length : 0));
}

EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t length)
{
	return rdma_reject(id, private_data, length);
}

/* A synchronous id waits for the event of the end, if there is one to come: not where that was had already, or no connection has come up. */
EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	int error = iw_engine()->id_disconnect(iw_id_number(id));
	if (error)
		return iw_set_errno(error);
	return container(id, struct iw_id, id)->up ? iw_complete(id) : 0;
}

/* Only for ids that have no QP, and have got a CONNECT_RESPONSE: as an iWARP device, none has. */
EXPORT int rdma_establish(struct rdma_cm_id *id)
{
	return iw_set_errno(iw_engine()->id_establish(iw_id_number(id)));
}

/* EINVAL, as the kernel says of an id that nothing was begun with. */
EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return iw_id_number(id) && container(id, struct iw_id, id)->begun && event == IBV_EVENT_COMM_EST ? 0 : iw_set_errno(EINVAL);
}

/* How long the value of an option is, or 0 for one that there is not. */
static size_t option_length(int level, int name)
{
	if (level == RDMA_OPTION_IB)
		return name == RDMA_OPTION_IB_PATH ? sizeof(struct ibv_path_data) : 0;
	if (level != RDMA_OPTION_ID)
		return 0;
	switch (name) {
	case RDMA_OPTION_ID_TOS:
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return sizeof(uint8_t);
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		return sizeof(int);
	default:
		return 0;
	}
}

/* Options are taken where they change nothing that matters here: TCP listens with SO_REUSEADDR anyway. There may be several paths. */
EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t length)
{
	size_t one = option_length(level, name);
	if (!iw_id_number(id))
		return iw_set_errno(EINVAL);
	if (!one)
		return iw_set_errno(ENOSYS);
	if (!value || !length || length % one || (level == RDMA_OPTION_ID && length != one))
		return iw_set_errno(EINVAL);
	if (level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_AFONLY)
		return iw_set_errno(iw_engine()->id_family_only(iw_id_number(id), *(int *)value));
	if (level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_ACK_TIMEOUT)
		container(id, struct iw_id, id)->timeout = *(uint8_t *)value;
	return 0;
}

/* As Linux says of iWARP, where the port is always named: state and rights, but of RTS neither once the id connects or listens. There are no rights before
 * that, but in the guise of RoCE, where they are those of the QP. */
EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_state state = attr->qp_state;
	bool begun = iw_roce() || container(id, struct iw_id, id)->begun;
	if (!iw_id_number(id) || !id->verbs || (begun && state != IBV_QPS_INIT && state != IBV_QPS_RTR && state != IBV_QPS_RTS))
		return iw_set_errno(EINVAL);
	*attr = (struct ibv_qp_attr){.qp_state = state, .port_num = id->port_num};
	*mask = IBV_QP_PORT;
	if (begun && state == IBV_QPS_RTS)
		return 0;
	*mask |= IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
	attr->qp_access_flags = begun ? iw_cm_rights() : 0;
	if (iw_roce() && state == IBV_QPS_INIT)
		*mask |= IBV_QP_PKEY_INDEX; /* which this transition needs there */
	return 0;
}
