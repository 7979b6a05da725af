/* Two Queue Pairs of one process that connect by themselves, with extended Queue Pairs and Completion Queues: one request of each kind, and its
 * effect. Prints "extended: ok". */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

struct end {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct ibv_mr *mr;
	uint64_t memory[64];
};

static struct ibv_context *context;
static struct ibv_pd *pd, *plain;
static struct ibv_td *td;
static union ibv_gid gid;

/* All is made in a parent domain. */
static void domains(void)
{
	struct ibv_td_init_attr of = {.comp_mask = 1};
	check(!ibv_alloc_td(context, &of) && errno == EINVAL, "ibv_alloc_td");
	of.comp_mask = 0;
	td = ibv_alloc_td(context, &of);
	check(td != NULL, "ibv_alloc_td");
	struct ibv_parent_domain_init_attr attr = {.td = td};
	check(!ibv_alloc_parent_domain(context, &attr) && errno == EINVAL, "a parent domain without a Protection Domain");
	plain = attr.pd = ibv_alloc_pd(context);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	check(!ibv_alloc_parent_domain(context, &attr) && errno == EOPNOTSUPP, "a parent domain that allocates");
	attr.comp_mask = 0;
	pd = ibv_alloc_parent_domain(context, &attr);
	check(pd != NULL, "ibv_alloc_parent_domain");
	attr.pd = pd;
	check(!ibv_alloc_parent_domain(context, &attr) && errno == EINVAL, "a parent domain of another");
}

static void domains_end(struct end *a, struct end *b)
{
	check(ibv_dealloc_pd(plain) == EBUSY && ibv_dealloc_td(td) == EBUSY, "what a parent domain has");
	check(!ibv_dereg_mr(a->mr) && !ibv_dereg_mr(b->mr), "ibv_dereg_mr");
	check(!ibv_dealloc_pd(pd) && ibv_dealloc_pd(pd) == EINVAL && !ibv_dealloc_td(td) && ibv_dealloc_td(td) == EINVAL, "the end of both");
	check(!ibv_dealloc_pd(plain) && !ibv_close_device(context), "ibv_dealloc_pd");
}

static struct end *create(void)
{
	struct end *e = calloc(1, sizeof *e);
	struct ibv_cq_init_attr_ex cq = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = plain};
	check(!ibv_create_cq_ex(context, &cq) && errno == EINVAL, "a CQ in no parent domain");
	cq.parent_domain = pd;
	e->cq = ibv_create_cq_ex(context, &cq);
	check(e->cq != NULL, "ibv_create_cq_ex");
	struct ibv_qp_init_attr_ex init = {
		.send_cq = ibv_cq_ex_to_cq(e->cq), .recv_cq = ibv_cq_ex_to_cq(e->cq), .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {.max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO,
	};
	check(!ibv_create_qp_ex(context, &init) && errno == EOPNOTSUPP, "TSO is refused");
	init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
			      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
	e->qp = ibv_create_qp_ex(context, &init);
	check(e->qp != NULL, "ibv_create_qp_ex");
	e->ex = ibv_qp_to_qp_ex(e->qp);
	check(e->ex != NULL, "ibv_qp_to_qp_ex");
	e->mr = ibv_reg_mr(pd, e->memory, sizeof e->memory,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	check(e->mr != NULL, "ibv_reg_mr");
	return e;
}

static void meet(struct end *e, struct end *with)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
	check(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = with->qp->qp_num, .max_dest_rd_atomic = 4,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}}};
	check(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER), "RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
	check(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
	struct ibv_qp_init_attr init;
	check(!ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init) && a.qp_state == IBV_QPS_RTS && a.dest_qp_num == with->qp->qp_num && a.path_mtu == IBV_MTU_1024 &&
		      a.retry_cnt == 7 && a.max_rd_atomic == 4, "ibv_query_qp");
}

static void receive(struct end *e, uint64_t id, int at)
{
	struct ibv_sge sge = {(uintptr_t)&e->memory[at], 8, e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	check(!ibv_post_recv(e->qp, &wr, &bad), "ibv_post_recv");
}

/* The next completion, which is to be this. */
static void completed(struct end *e, uint64_t id, enum ibv_wc_opcode opcode, uint32_t length)
{
	struct ibv_poll_cq_attr attr = {0};
	while (ibv_start_poll(e->cq, &attr))
		;
	printf("%llu: status %d, operation %d\n", (unsigned long long)e->cq->wr_id, e->cq->status, ibv_wc_read_opcode(e->cq));
	check(e->cq->wr_id == id && e->cq->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(e->cq) == opcode, "completion");
	check(ibv_wc_read_qp_num(e->cq) == e->qp->qp_num, "number of the QP");
	check(!ibv_wc_read_vendor_err(e->cq) && !ibv_wc_read_src_qp(e->cq) && !ibv_wc_read_slid(e->cq) && !ibv_wc_read_sl(e->cq) && !ibv_wc_read_dlid_path_bits(e->cq),
	      "what is of errors and datagrams");
	if (opcode & IBV_WC_RECV)
		check(ibv_wc_read_byte_len(e->cq) == length, "length");
	if (opcode == IBV_WC_RECV_RDMA_WITH_IMM || id == 12)
		check(ibv_wc_read_wc_flags(e->cq) & IBV_WC_WITH_IMM && ibv_wc_read_imm_data(e->cq) == 0x01020304, "immediate data");
	else
		check(!(ibv_wc_read_wc_flags(e->cq) & IBV_WC_WITH_IMM), "no immediate data");
	ibv_end_poll(e->cq);
}

int main(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);
	check(list && n > 0, "ibv_get_device_list");
	context = ibv_open_device(list[0]);
	check(context && !ibv_query_gid(context, 1, 0, &gid), "ibv_open_device");
	domains();
	struct end *a = create(), *b = create();
	meet(a, b);
	meet(b, a);

	uint64_t one = 1, two = 2;
	struct ibv_data_buf parts[] = {{&one, 4}, {&two, 4}};
	uint64_t remote = (uintptr_t)b->memory;
	receive(b, 10, 0);
	receive(b, 11, 1);
	receive(b, 12, 4);
	a->memory[8] = 88;
	a->memory[9] = 99;
	ibv_wr_start(a->ex);
	a->ex->wr_id = 1;
	ibv_wr_send(a->ex);
	ibv_wr_set_inline_data_list(a->ex, 2, parts);
	one = 7; /* which the request has already */
	a->ex->wr_id = 2;
	ibv_wr_rdma_write(a->ex, b->mr->rkey, remote + 16);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)&a->memory[8], 8);
	a->ex->wr_id = 3;
	ibv_wr_rdma_write_imm(a->ex, b->mr->rkey, remote + 24, 0x01020304);
	struct ibv_sge sges[] = {{(uintptr_t)&a->memory[9], 4, a->mr->lkey}, {(uintptr_t)&a->memory[9] + 4, 4, a->mr->lkey}};
	ibv_wr_set_sge_list(a->ex, 2, sges);
	a->ex->wr_id = 4;
	ibv_wr_atomic_fetch_add(a->ex, b->mr->rkey, remote + 24, 1);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)&a->memory[20], 8);
	a->ex->wr_id = 5;
	a->ex->wr_flags = IBV_SEND_FENCE;
	ibv_wr_atomic_cmp_swp(a->ex, b->mr->rkey, remote + 24, 100, 55);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)&a->memory[21], 8);
	a->ex->wr_id = 6;
	ibv_wr_rdma_read(a->ex, b->mr->rkey, remote + 16);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)&a->memory[22], 16);
	a->ex->wr_id = 7;
	ibv_wr_send_imm(a->ex, 0x01020304);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)&a->memory[8], 8);
	check(!ibv_wr_complete(a->ex), "ibv_wr_complete");
	completed(a, 1, IBV_WC_SEND, 0);
	completed(a, 2, IBV_WC_RDMA_WRITE, 0);
	completed(a, 3, IBV_WC_RDMA_WRITE, 0);
	completed(a, 4, IBV_WC_FETCH_ADD, 0);
	completed(a, 5, IBV_WC_COMP_SWAP, 0);
	completed(a, 6, IBV_WC_RDMA_READ, 0);
	completed(a, 7, IBV_WC_SEND, 0);
	completed(b, 10, IBV_WC_RECV, 8);
	completed(b, 11, IBV_WC_RECV_RDMA_WITH_IMM, 8);
	completed(b, 12, IBV_WC_RECV, 8);
	check(b->memory[0] == (1 | 2ull << 32) && b->memory[2] == 88 && b->memory[3] == 55 && b->memory[4] == 88, "what b has");
	check(a->memory[20] == 99 && a->memory[21] == 100 && a->memory[22] == 88 && a->memory[23] == 55, "what a has");

	char long_data[300];
	memset(long_data, 0, sizeof long_data);
	ibv_wr_start(a->ex);
	ibv_wr_send(a->ex);
	ibv_wr_set_inline_data(a->ex, long_data, sizeof long_data);
	check(ibv_wr_complete(a->ex) == EINVAL, "too much inline data");
	struct ibv_sge three[3] = {sges[0], sges[0], sges[0]};
	ibv_wr_start(a->ex);
	ibv_wr_send(a->ex);
	ibv_wr_set_sge_list(a->ex, 3, three);
	check(ibv_wr_complete(a->ex) == EINVAL, "more elements than the QP has");
	ibv_wr_start(a->ex);
	ibv_wr_send(a->ex);
	ibv_wr_abort(a->ex);
	for (int n = 1; n <= 64; n += 63) { /* one that is wrong after one that is not, and more than there is room for */
		ibv_wr_start(a->ex);
		for (int i = 0; i < n; i++) {
			ibv_wr_rdma_write(a->ex, b->mr->rkey, remote + 40);
			ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)&a->memory[8], 8);
		}
		if (n == 1) {
			ibv_wr_rdma_write(a->ex, b->mr->rkey, remote + 40);
			ibv_wr_set_sge(a->ex, a->mr->lkey, -(uint64_t)4, 8);
		}
		check(ibv_wr_complete(a->ex) == (n == 1 ? EINVAL : ENOMEM), "a list that cannot be posted as a whole");
	}
	a->memory[8] = 0;
	ibv_wr_start(a->ex);
	a->ex->wr_id = 8;
	ibv_wr_rdma_write(a->ex, b->mr->rkey, remote + 48);
	ibv_wr_set_sge(a->ex, a->mr->lkey, (uintptr_t)&a->memory[8], 8);
	check(!ibv_wr_complete(a->ex), "ibv_wr_complete");
	completed(a, 8, IBV_WC_RDMA_WRITE, 0);
	check(b->memory[5] == 0, "what is posted of such a list");

	struct ibv_poll_cq_attr attr = {0};
	check(ibv_start_poll(a->cq, &attr) == ENOENT, "nothing more");
	check(!ibv_destroy_qp(a->qp) && !ibv_destroy_qp(b->qp), "ibv_destroy_qp");
	check(!ibv_destroy_cq(ibv_cq_ex_to_cq(a->cq)) && !ibv_destroy_cq(ibv_cq_ex_to_cq(b->cq)), "ibv_destroy_cq");
	domains_end(a, b);
	puts("extended: ok");
	return 0;
}
