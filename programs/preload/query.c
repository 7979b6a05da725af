/* What can be asked of the device, its port and its GIDs. */
#include "objects.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

enum { MAX_GIDS = 64 };

struct gids {
	int n;
	struct ibv_gid_entry entries[MAX_GIDS];
};

/* gid_of writes an IPv4 address as one of IPv6. */
static bool gid_of(const struct sockaddr *a, union ibv_gid *gid)
{
	memset(gid, 0, sizeof *gid);
	if (a->sa_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(gid->raw + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
		return true;
	}
	if (a->sa_family == AF_INET6) {
		memcpy(gid->raw, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
		return true;
	}
	return false;
}

static void add(struct gids *g, const struct ifaddrs *a)
{
	struct ibv_gid_entry *e = &g->entries[g->n];
	if (g->n == MAX_GIDS || !gid_of(a->ifa_addr, &e->gid))
		return;
	e->gid_index = g->n++;
	e->port_num = 1;
	e->gid_type = IBV_GID_TYPE_ROCE_V2;
	e->ndev_ifindex = if_nametoindex(a->ifa_name);
}

/* All addresses of interfaces that are up: those of networks first, IPv4 before IPv6, and those of loopback last. */
static void all_gids(struct gids *g)
{
	struct ifaddrs *all, *a;
	memset(g, 0, sizeof *g);
	if (getifaddrs(&all))
		return;
	for (int turn = 0; turn < 4; turn++)
		for (a = all; a; a = a->ifa_next)
			if (a->ifa_addr && a->ifa_flags & IFF_UP && !(a->ifa_flags & IFF_LOOPBACK) == (turn < 2) &&
			    a->ifa_addr->sa_family == (turn % 2 ? AF_INET6 : AF_INET))
				add(g, a);
	freeifaddrs(all);
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
				    size_t entry_size)
{
	struct gids g;
	if (!iw_ours(context))
		return REAL(_ibv_query_gid_table, context, entries, max, flags, entry_size);
	if (flags || entry_size < sizeof *entries)
		return -EINVAL;
	all_gids(&g);
	if (max < (size_t)g.n)
		return -EINVAL;
	for (int i = 0; i < g.n; i++)
		memcpy((char *)entries + i * entry_size, &g.entries[i], sizeof g.entries[i]);
	return g.n;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry, uint32_t flags,
			     size_t entry_size)
{
	struct gids g;
	if (!iw_ours(context))
		return REAL(_ibv_query_gid_ex, context, port, index, entry, flags, entry_size);
	if (flags || port != 1 || entry_size < sizeof *entry)
		return EINVAL;
	all_gids(&g);
	if (index >= (uint32_t)g.n)
		return ENODATA;
	*entry = g.entries[index];
	return 0;
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	if (!iw_ours(context))
		return REAL(ibv_query_gid, context, port, index, gid);
	if (index < 0 || port != 1)
		return iw_set_errno(EINVAL);
	if (_ibv_query_gid_ex(context, port, index, &entry, 0, sizeof entry))
		return iw_set_errno(EINVAL);
	*gid = entry.gid;
	return 0;
}

/* Not public, and wanted by Python's pyverbs: the type as sysfs has it, where 1 is RoCE v2. */
EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, unsigned *type)
{
	struct ibv_gid_entry entry;
	if (!iw_ours(context))
		return REAL(ibv_query_gid_type, context, port, index, type);
	int error = _ibv_query_gid_ex(context, port, index, &entry, 0, sizeof entry);
	if (error)
		return iw_set_errno(error);
	*type = 1;
	return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (!iw_ours(context))
		return REAL(ibv_query_pkey, context, port, index, pkey);
	if (port != 1 || index)
		return iw_set_errno(EINVAL);
	*pkey = 0xffff;
	return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	if (!iw_ours(context))
		return REAL(ibv_get_pkey_index, context, port, pkey);
	return port == 1 && pkey == 0xffff ? 0 : iw_set_errno(EINVAL);
}

int iw_query_device(struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.fw_ver = "iwarp",
		.node_guid = ibv_get_device_guid(iw_device()),
		.sys_image_guid = ibv_get_device_guid(iw_device()),
		.max_mr_size = UINT64_MAX >> 1,
		.page_size_cap = ~(uint64_t)0xfff,
		.vendor_id = 0x026977, /* nobody's: an OUI that is locally administered, and ends in "iw" */
		.vendor_part_id = 1,
		.max_qp = 1 << 16,
		.max_qp_wr = MAX_WR,
		.device_cap_flags = IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B,
		.max_sge = MAX_SGE,
		.max_sge_rd = 1,
		.max_cq = 1 << 16,
		.max_cqe = MAX_CQE,
		.max_mr = 1 << 20,
		.max_mw = 1 << 20,
		.max_pd = 1 << 16,
		.max_qp_rd_atom = 128,
		.max_res_rd_atom = 1 << 20,
		.max_qp_init_rd_atom = 128,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_ah = 1 << 16,
		.max_srq = 1 << 16,
		.max_srq_wr = MAX_WR,
		.max_srq_sge = MAX_SGE,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
	return 0;
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	return iw_ours(context) ? iw_query_device(attr) : REAL(ibv_query_device, context, attr);
}

int iw_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct gids g;
	if (port != 1)
		return EINVAL;
	all_gids(&g);
	struct ibv_port_attr a = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = g.n,
		.max_msg_sz = 1u << 31,
		.pkey_tbl_len = 1,
		.active_width = 2, /* 4x */
		.active_speed = 4, /* 10 Gb/s */
		.phys_state = 5,   /* LinkUp */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	memcpy(attr, &a, size < sizeof a ? size : sizeof a);
	return 0;
}

/* Of programs that were built with headers older than the inline function, which ends before port_cap_flags2. */
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	if (!iw_ours(context))
		return REAL(ibv_query_port, context, port, attr);
	return iw_query_port(context, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}
