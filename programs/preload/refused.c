/* What an iWARP device does not have, and what has no meaning for ours. The error is EOPNOTSUPP, for which programs and
 * rdma-core's own tests look elsewhere, or leave something out. */
#include "objects.h"

#define REFUSE_POINTER(type, name, context, args, ...)        \
	EXPORT type *name args                                \
	{                                                     \
		if (!iw_ours(context))                        \
			return REAL(name, ##__VA_ARGS__);     \
		errno = EOPNOTSUPP;                           \
		return NULL;                                  \
	}

#define REFUSE(name, context, args, ...)                      \
	EXPORT int name args                                  \
	{                                                     \
		if (!iw_ours(context))                        \
			return REAL(name, ##__VA_ARGS__);     \
		errno = EOPNOTSUPP;                           \
		return EOPNOTSUPP;                            \
	}

REFUSE(ibv_attach_mcast, qp->context, (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid), qp, gid, lid)
REFUSE(ibv_detach_mcast, qp->context, (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid), qp, gid, lid)
REFUSE_POINTER(struct ibv_pd, ibv_import_pd, context, (struct ibv_context *context, uint32_t handle), context, handle)
REFUSE_POINTER(struct ibv_mr, ibv_import_mr, pd->context, (struct ibv_pd *pd, uint32_t handle), pd, handle)
REFUSE_POINTER(struct ibv_dm, ibv_import_dm, context, (struct ibv_context *context, uint32_t handle), context, handle)
REFUSE(ibv_query_ece, qp->context, (struct ibv_qp *qp, struct ibv_ece *ece), qp, ece)
REFUSE(ibv_set_ece, qp->context, (struct ibv_qp *qp, struct ibv_ece *ece), qp, ece)
REFUSE(ibv_resolve_eth_l2_from_gid, context,
       (struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vid), context, attr, mac, vid)

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return iw_ours(qp->context) ? 0 : REAL(ibv_query_qp_data_in_order, qp, op, flags);
}

EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return iw_set_errno(EOPNOTSUPP);
}

EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	return iw_set_errno(EOPNOTSUPP);
}

EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return iw_set_errno(EOPNOTSUPP);
}

EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return iw_set_errno(EOPNOTSUPP);
}

EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return iw_set_errno(EOPNOTSUPP);
}
