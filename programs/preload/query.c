/* What can be asked of the device and its port. Its GIDs are in gid.c. */
#include "objects.h"

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
		.max_sge_rd = iw_roce() ? MAX_SGE : 1, /* RDMAP has one sink for each Read */
		.max_cq = 1 << 16,
		.max_cqe = MAX_CQE,
		.max_mr = 1 << 20,
		.max_mw = 1 << 20,
		.max_pd = 1 << 16,
		.max_qp_rd_atom = MAX_READS,
		.max_res_rd_atom = 1 << 20,
		.max_qp_init_rd_atom = MAX_READS,
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
	if (port != 1)
		return EINVAL;
	struct ibv_port_attr a = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = iw_gid_count(),
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
