/* librdmacm: names of hosts. */
#include "objects.h"

#include <netdb.h>
#include <netinet/in.h>

static struct sockaddr *copy(const struct sockaddr *a, socklen_t n)
{
	struct sockaddr *c = iw_new(n);
	if (c)
		memcpy(c, a, n);
	return c;
}

/* Whether what is wanted is of datagrams, by the one of the two that the hints have. rdma_create_id refuses these. */
static bool of_datagrams(const struct rdma_addrinfo *hints)
{
	if (!hints || hints->ai_qp_type)
		return hints && hints->ai_qp_type == IBV_QPT_UD;
	return hints->ai_port_space == RDMA_PS_UDP || hints->ai_port_space == RDMA_PS_IPOIB;
}

static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints, struct addrinfo **found)
{
	struct addrinfo h = {.ai_socktype = of_datagrams(hints) ? SOCK_DGRAM : SOCK_STREAM};
	if (hints && hints->ai_flags & RAI_PASSIVE)
		h.ai_flags |= AI_PASSIVE;
	if (hints && hints->ai_flags & RAI_NUMERICHOST)
		h.ai_flags |= AI_NUMERICHOST;
	if (hints && hints->ai_flags & RAI_FAMILY)
		h.ai_family = hints->ai_family;
	return getaddrinfo(node, service, &h, found);
}

/* Without names the addresses are those of the hints, which libfabric has found by itself. */
static bool take(struct rdma_addrinfo *r, const struct rdma_addrinfo *hints)
{
	*r = (struct rdma_addrinfo){.ai_flags = hints->ai_flags, .ai_family = hints->ai_family, .ai_qp_type = hints->ai_qp_type,
		.ai_port_space = hints->ai_port_space, .ai_src_len = hints->ai_src_len, .ai_dst_len = hints->ai_dst_len};
	if (r->ai_src_len)
		r->ai_src_addr = copy(hints->ai_src_addr, r->ai_src_len);
	if (r->ai_dst_len)
		r->ai_dst_addr = copy(hints->ai_dst_addr, r->ai_dst_len);
	return (!r->ai_src_len || r->ai_src_addr) && (!r->ai_dst_len || r->ai_dst_addr);
}

static bool fill(struct rdma_addrinfo *r, const struct rdma_addrinfo *hints, const struct addrinfo *a)
{
	r->ai_flags = hints ? hints->ai_flags : 0;
	r->ai_family = a->ai_family;
	r->ai_qp_type = hints && hints->ai_qp_type ? hints->ai_qp_type : of_datagrams(hints) ? IBV_QPT_UD : IBV_QPT_RC;
	r->ai_port_space = hints && hints->ai_port_space ? hints->ai_port_space : of_datagrams(hints) ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (r->ai_flags & RAI_PASSIVE) {
		r->ai_src_len = a->ai_addrlen;
		r->ai_src_addr = copy(a->ai_addr, a->ai_addrlen);
		return r->ai_src_addr;
	}
	r->ai_dst_len = a->ai_addrlen;
	r->ai_dst_addr = copy(a->ai_addr, a->ai_addrlen);
	if (hints && hints->ai_src_len) {
		r->ai_src_len = hints->ai_src_len;
		r->ai_src_addr = copy(hints->ai_src_addr, hints->ai_src_len);
	}
	return r->ai_dst_addr && (!r->ai_src_len || r->ai_src_addr);
}

EXPORT int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	struct addrinfo *found = NULL;
	if (!node && !service && !hints)
		return iw_set_errno(EINVAL);
	if (hints && hints->ai_qp_type && hints->ai_qp_type != IBV_QPT_RC && hints->ai_port_space == RDMA_PS_TCP)
		return iw_set_errno(EOPNOTSUPP);
	int error = node || service ? look_up(node, service, hints, &found) : 0;
	if (error)
		return error;
	struct rdma_addrinfo *r = iw_new(sizeof *r);
	bool filled = r && (found ? fill(r, hints, found) : take(r, hints));
	if (found)
		freeaddrinfo(found);
	if (!filled) {
		rdma_freeaddrinfo(r);
		return iw_set_errno(ENOMEM);
	}
	*res = r;
	return 0;
}

EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res);
		res = next;
	}
}
