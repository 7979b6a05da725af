/* Queue Pairs of datagrams, one pair after the other as often as the argument says: what comes is what was sent, with the address to answer; what is
 * wrong has the error numbers of the manual pages; and neither memory nor descriptors grow. Prints "datagrams: ok". It is compiled with pair.h. */
#include <errno.h>

#include "steady.h"

enum { KEY = 0x1234, GRH = sizeof(struct ibv_grh) };

/* In place of its connected QP. */
static struct end *speaker(void)
{
	struct end *e = create(IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_init_attr init = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_UD, .sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64}};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = KEY};
	check(!ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	check((e->qp = ibv_create_qp(pd, &init)) != NULL, "ibv_create_qp");
	check(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT) == EINVAL, "INIT without a key");
	check(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "INIT");
	for (a.qp_state = IBV_QPS_RTR; a.qp_state <= IBV_QPS_RTS; a.qp_state++)
		check(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | (a.qp_state == IBV_QPS_RTS ? IBV_QP_SQ_PSN : 0)), "RTR and RTS");
	return e;
}

static int hear(struct end *e)
{
	struct ibv_sge sge = {(uintptr_t)e->memory, GRH + 8, e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1};
	return ibv_post_recv(e->qp, &wr, &bad);
}

static int say(struct end *e, struct ibv_ah *ah, uint32_t number, uint32_t length)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 7, .wr = {.ud = {.ah = ah, .remote_qpn = number, .remote_qkey = KEY}}};
	return post(e, &wr, 32, length);
}

static struct ibv_ah *address(void)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};
	check(!ibv_query_gid(context, 1, 0, &a.grh.dgid), "ibv_query_gid");
	struct ibv_ah *ah = ibv_create_ah(pd, &a);
	check(ah != NULL, "ibv_create_ah");
	return ah;
}

static void conversation(void)
{
	struct end *a = speaker(), *b = speaker();
	struct ibv_ah *ah = address(), *back;
	b->memory[5] = 0;
	a->memory[32] = 0x0123456789abcdef;
	check(say(a, ah, b->qp->qp_num, 5000) == EINVAL, "more than the MTU");
	check(!hear(b) && !say(a, ah, b->qp->qp_num, 8), "post");
	completed(a, IBV_WC_SEND, "Send");
	struct ibv_wc wc = completed(b, IBV_WC_RECV, "receive");
	check(wc.byte_len == GRH + 8 && wc.src_qp == a->qp->qp_num && wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM) && wc.imm_data == 7, "completion");
	check(b->memory[5] == a->memory[32], "bytes");
	back = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)b->memory, 1);
	check(back != NULL, "ibv_create_ah_from_wc");
	check(!hear(a) && !say(b, back, wc.src_qp, 0), "post");
	completed(b, IBV_WC_SEND, "Send");
	check(completed(a, IBV_WC_RECV, "receive").byte_len == GRH, "answer");
	wc.wc_flags = 0;
	check(!ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)b->memory, 1) && errno == EINVAL, "an answer without addresses");
	check(!ibv_destroy_ah(back) && !ibv_destroy_ah(ah), "ibv_destroy_ah");
	check(ibv_destroy_ah(ah) == EINVAL && say(a, ah, b->qp->qp_num, 8) == EINVAL, "an address that was destroyed");
	destroy(a);
	destroy(b);
}

int main(int argc, char **argv)
{
	open_device();
	steady(conversation, 600, atoi(argv[1]), 8);
	close_device();
	puts("datagrams: ok");
	return 0;
}
