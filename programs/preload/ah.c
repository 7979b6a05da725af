/* Address handles. They are for datagrams, which the device does not have; in the guise of RoCE programs make one to see whether
 * a GID can be used. */
#include "objects.h"

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	union ibv_gid gid;
	if (!iw_ours(pd->context))
		return REAL(ibv_create_ah, pd, attr);
	if (!iw_roce()) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->port_num != 1 || !attr->is_global || ibv_query_gid(pd->context, 1, attr->grh.sgid_index, &gid)) {
		errno = EINVAL;
		return NULL;
	}
	struct ibv_ah *ah = iw_new(sizeof *ah);
	if (ah)
		*ah = (struct ibv_ah){.context = pd->context, .pd = pd};
	return ah;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	if (!iw_ours(ah->context))
		return REAL(ibv_destroy_ah, ah);
	iw_retire(ah);
	return 0;
}
