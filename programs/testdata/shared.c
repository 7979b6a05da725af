/* Threads that poll one extended Completion Queue: what one of them reads stays as it is until it says that it is done, and another waits as long. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static struct ibv_cq_ex *cq;
static volatile int began, ended;

static void *other(void *unused)
{
	struct ibv_poll_cq_attr none = {0};
	began = 1;
	while (ibv_start_poll(cq, &none))
		;
	check(cq->wr_id == 2 && !cq->status && ibv_wc_read_opcode(cq) == IBV_WC_RDMA_WRITE, "its completion");
	ended = 1;
	ibv_end_poll(cq);
	return NULL;
}

int main(void)
{
	open_device();
	struct ibv_cq_init_attr_ex init = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
	cq = ibv_create_cq_ex(context, &init);
	check(cq != NULL, "ibv_create_cq_ex");
	struct end *a = create(IBV_ACCESS_LOCAL_WRITE), *b = create(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(!ibv_destroy_qp(a->qp), "ibv_destroy_qp");
	struct ibv_qp_init_attr qp = {.send_cq = ibv_cq_ex_to_cq(cq), .recv_cq = a->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {4, 4, 2, 2, 64}};
	a->qp = ibv_create_qp(pd, &qp);
	check(a->qp != NULL, "ibv_create_qp");
	meet(a, b);
	for (int i = 1; i <= 2; i++) {
		struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE};
		wr.wr.rdma.remote_addr = (uintptr_t)b->memory;
		wr.wr.rdma.rkey = b->mr->rkey;
		check(!post(a, &wr, 0, 8), "ibv_post_send");
	}

	struct ibv_poll_cq_attr none = {0};
	pthread_t t;
	while (ibv_start_poll(cq, &none))
		;
	check(!pthread_create(&t, NULL, other, NULL), "pthread_create");
	while (!began)
		usleep(1000);
	usleep(100000); /* in which it could go wrong */
	check(cq->wr_id == 1 && !ended, "a completion that is being read");
	ibv_end_poll(cq);
	check(!pthread_join(t, NULL) && ended, "the other thread");
	check(ibv_start_poll(cq, &none) == ENOENT && ibv_start_poll(cq, &none) == ENOENT, "an empty CQ");
	destroy(a);
	check(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), "ibv_destroy_cq");
	destroy(b);
	close_device();
	return 0;
}
