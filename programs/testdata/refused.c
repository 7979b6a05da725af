/* A program that connects Queue Pairs by itself, in the guise of iWARP or of RoCE: it is refused, and the library says why. Prints "refused: ok". It is
 * compiled with pair.h. */
#include <errno.h>
#include <rdma/rdma_cma.h>

#include "wrong.h"

static int to_rtr(struct end *e, struct ibv_qp_attr *a, int but)
{
	a->qp_state = IBV_QPS_RTR;
	a->ah_attr.port_num = 1;
	return ibv_modify_qp(e->qp, a, (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER) ^ but);
}

static int to_rts(struct end *e)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .timeout = 14};
	return ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int extended(struct end *e)
{
	struct ibv_qp_init_attr_ex init = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .pd = pd, .send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);
	return qp ? ibv_destroy_qp(qp) : errno;
}

static void as_iwarp(struct end *e)
{
	struct ibv_qp_attr a = {.path_mtu = IBV_MTU_1024, .dest_qp_num = 77};
	WRONG(extended(e), EOPNOTSUPP);
	WRONG(to_rtr(e, &a, 0), 0);
	WRONG(to_rts(e), EINVAL);
	WRONG(to_rts(e), EINVAL);
}

/* Each for a reason of its own. */
static void as_roce(struct end *e)
{
	struct ibv_qp_attr a = {.path_mtu = IBV_MTU_1024, .dest_qp_num = 77, .cur_qp_state = IBV_QPS_RTS};
	WRONG(extended(e), 0);
	WRONG(to_rts(e), EINVAL);
	WRONG(to_rtr(e, &a, IBV_QP_AV | IBV_QP_RQ_PSN), EINVAL);
	WRONG(to_rtr(e, &a, IBV_QP_QKEY), EINVAL);
	WRONG(to_rtr(e, &a, IBV_QP_CUR_STATE), EINVAL);
	WRONG(to_rtr(e, &a, 0), EINVAL);
	WRONG(to_rtr(e, &a, 1 << 30), EINVAL);
	a.path_mtu = 9;
	WRONG(to_rtr(e, &a, 0), EINVAL);
	a.path_mtu = IBV_MTU_1024;
	a.ah_attr.is_global = 1;
	a.ah_attr.grh.sgid_index = 63;
	WRONG(to_rtr(e, &a, 0), EINVAL);
	a.qp_state = IBV_QPS_SQD;
	WRONG(ibv_modify_qp(e->qp, &a, IBV_QP_STATE), EINVAL);
}

int main(int argc, char **argv)
{
	open_device();
	struct end *e = create(IBV_ACCESS_LOCAL_WRITE);
	init(e);
	if (!strcmp(argv[argc - 1], "roce"))
		as_roce(e);
	else
		as_iwarp(e);
	destroy(e);
	close_device();
	if (!failed)
		puts("refused: ok");
	return failed;
}
