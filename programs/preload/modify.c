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

/* What it lacks, and what it has too much. */
static int judge_attributes(int lacking, int alien, struct iw_why *why)
{
	if (lacking)
		return iw_because_of(why, EINVAL, "the transition needs", lacking);
	return alien ? iw_because_of(why, EINVAL, "the transition does not take", alien) : 0;
}

static int judge_transition(const struct transition *all, size_t n, enum ibv_qp_state from, enum ibv_qp_state to, int mask, struct iw_why *why)
{
	mask &= ~IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) /* from all states */
		return judge_attributes(0, mask, why);
	for (size_t i = 0; i < n; i++)
		if (all[i].from == from && all[i].to == to)
			return judge_attributes(all[i].needed & ~mask, mask & ~(all[i].needed | all[i].taken), why);
	return iw_because(why, EINVAL, "there is no transition from %s to %s", iw_state_name(from), iw_state_name(to));
}

static int judge_values(const struct ibv_qp_attr *a, int mask, struct iw_why *why)
{
	const struct {
		int flag;
		unsigned value, least, most;
		const char *name;
	} all[] = {
		{IBV_QP_PORT, a->port_num, 1, 1, "port_num"},
		{IBV_QP_PKEY_INDEX, a->pkey_index, 0, 0, "pkey_index"},
		{IBV_QP_AV, a->ah_attr.port_num, 1, 1, "ah_attr.port_num"},
		{IBV_QP_PATH_MTU, a->path_mtu, IBV_MTU_256, IBV_MTU_4096, "path_mtu"},
		{IBV_QP_MAX_QP_RD_ATOMIC, a->max_rd_atomic, 0, MAX_READS, "max_rd_atomic"},
		{IBV_QP_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic, 0, MAX_READS, "max_dest_rd_atomic"},
		{IBV_QP_TIMEOUT, a->timeout, 0, 31, "timeout"},
		{IBV_QP_RETRY_CNT, a->retry_cnt, 0, 7, "retry_cnt"},
		{IBV_QP_RNR_RETRY, a->rnr_retry, 0, 7, "rnr_retry"},
		{IBV_QP_MIN_RNR_TIMER, a->min_rnr_timer, 0, 31, "min_rnr_timer"},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (mask & all[i].flag && (all[i].value < all[i].least || all[i].value > all[i].most))
			return iw_because(why, EINVAL, "%s is %u, and may be from %u to %u", all[i].name, all[i].value, all[i].least, all[i].most);
	return 0;
}

/* SQD is for the engine to refuse. */
int iw_check_modify(bool ud, enum ibv_qp_state now, const struct ibv_qp_attr *attr, int mask, struct iw_why *why)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : now;
	if (to == IBV_QPS_SQD)
		return 0;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != now)
		return iw_because(why, EINVAL, "cur_qp_state is %s, and the QP is in %s", iw_state_name(attr->cur_qp_state), iw_state_name(now));
	int error = ud ? judge_transition(datagrams, sizeof datagrams / sizeof *datagrams, now, to, mask, why)
		       : judge_transition(connected, sizeof connected / sizeof *connected, now, to, mask, why);
	return error ? error : judge_values(attr, mask, why);
}
