/* Address handles: where datagrams are sent to. There are some in the guise of RoCE. */
#include "objects.h"

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	union ibv_gid gid;
	uint64_t number;
	if (!iw_ours(pd->context))
		return REAL(ibv_create_ah, pd, attr);
	if (!iw_roce())
		return iw_failed(EOPNOTSUPP);
	if (attr->port_num != 1 || !attr->is_global || iw_gid(attr->grh.sgid_index, &gid))
		return iw_failed(EINVAL);
	int error = iw_engine()->ah_create(iw_number(&container(pd, struct iw_pd, pd)->handle), gid.raw, attr->grh.dgid.raw, &number);
	if (error)
		return iw_failed(error);
	struct iw_ah *a = iw_new(sizeof *a);
	if (!a) {
		iw_engine()->ah_destroy(number);
		return iw_failed(ENOMEM);
	}
	a->handle = iw_handle(number);
	a->ah = (struct ibv_ah){.context = pd->context, .pd = pd, .handle = (uint32_t)number};
	return &a->ah;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	if (!iw_ours(ah->context))
		return REAL(ibv_destroy_ah, ah);
	struct iw_ah *a = container(ah, struct iw_ah, ah);
	int error = iw_engine()->ah_destroy(iw_number(&a->handle));
	if (error)
		return error;
	a->handle.number = ah->handle = 0;
	iw_retire(a);
	return 0;
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	union ibv_gid local;
	if (!iw_ours(context))
		return REAL(ibv_init_ah_from_wc, context, port, wc, grh, attr);
	memset(attr, 0, sizeof *attr);
	if (port != 1 || !(wc->wc_flags & IBV_WC_GRH) || iw_engine()->ah_answer(grh, local.raw, attr->grh.dgid.raw))
		return iw_set_errno(EINVAL);
	int index = iw_gid_index(&local);
	if (index < 0)
		return iw_set_errno(EINVAL);
	attr->grh.sgid_index = index;
	attr->grh.hop_limit = 64;
	attr->is_global = 1;
	attr->port_num = port;
	return 0;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;
	if (!iw_ours(pd->context))
		return REAL(ibv_create_ah_from_wc, pd, wc, grh, port);
	if (!iw_roce())
		return iw_failed(EOPNOTSUPP);
	return ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) ? NULL : ibv_create_ah(pd, &attr);
}
