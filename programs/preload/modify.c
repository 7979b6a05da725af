/* What ibv_modify_qp takes in the guise of RoCE: which attributes a transition needs, and which it may have (ibv_modify_qp(3); InfiniBand's "QP State
   Transition Properties"). Programs that leave one out fail on devices of RoCE. */
#include "objects.h"

struct transition {
	enum ibv_qp_state from, to;
	int needed, taken;
};

/* Of reliable connections. */
static const struct transition connected[] = {
	{IBV_QPS_RESET, IBV_QPS_RESET, 0, 0},
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
		IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

/* Of datagrams. */
static const struct transition datagrams[] = {
	{IBV_QPS_RESET, IBV_QPS_RESET, 0, 0},
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

static bool complete(const struct transition *all, size_t n, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	mask &= ~IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) /* from all states */
		return !mask;
	for (size_t i = 0; i < n; i++)
		if (all[i].from == from && all[i].to == to)
			return (mask & all[i].needed) == all[i].needed && !(mask & ~(all[i].needed | all[i].taken));
	return false;
}

static bool in_range(const struct ibv_qp_attr *a, int mask)
{
	return (!(mask & IBV_QP_PORT) || a->port_num == 1) && (!(mask & IBV_QP_PKEY_INDEX) || a->pkey_index == 0) &&
	       (!(mask & IBV_QP_AV) || a->ah_attr.port_num == 1) &&
	       (!(mask & IBV_QP_PATH_MTU) || (a->path_mtu >= IBV_MTU_256 && a->path_mtu <= IBV_MTU_4096)) &&
	       (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) || a->max_rd_atomic <= MAX_READS) &&
	       (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) || a->max_dest_rd_atomic <= MAX_READS) && (!(mask & IBV_QP_TIMEOUT) || a->timeout < 32) &&
	       (!(mask & IBV_QP_RETRY_CNT) || a->retry_cnt < 8) && (!(mask & IBV_QP_RNR_RETRY) || a->rnr_retry < 8) &&
	       (!(mask & IBV_QP_MIN_RNR_TIMER) || a->min_rnr_timer < 32);
}

/* SQD is for the engine to refuse. */
int iw_check_modify(bool ud, enum ibv_qp_state now, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : now;
	if (to == IBV_QPS_SQD)
		return 0;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != now)
		return EINVAL;
	bool ok = ud ? complete(datagrams, sizeof datagrams / sizeof *datagrams, now, to, mask)
		     : complete(connected, sizeof connected / sizeof *connected, now, to, mask);
	return ok && in_range(attr, mask) ? 0 : EINVAL;
}
