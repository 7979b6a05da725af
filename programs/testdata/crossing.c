/* What the way from a program in C to the engine in Go costs: of a poll in vain, of a receive posted, of a completion
 * polled (16 at a time, and one at a time). Prints nanoseconds, the best of several rounds. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DEPTH = 4096, ROUNDS = 20, VAIN = 20000 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char memory[64];
static double vain = 1e18, post = 1e18, batch = 1e18, single = 1e18;

static void best(double *to, double began, int n)
{
	double each = (now() - began) / n;
	if (each < *to)
		*to = each;
}

static void round_of(int at_once, double *polled)
{
	struct ibv_wc wc[16];
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, DEPTH, 1, 1, 0}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	check(qp != NULL, "ibv_create_qp");
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "INIT");
	double began = now();
	for (int i = 0; i < VAIN; i++)
		check(ibv_poll_cq(cq, 16, wc) == 0, "ibv_poll_cq");
	best(&vain, began, VAIN);

	struct ibv_sge sge = {(uintptr_t)memory, sizeof memory, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	began = now();
	for (int i = 0; i < DEPTH; i++)
		check(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
	best(&post, began, DEPTH);

	attr.qp_state = IBV_QPS_ERR;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ERR");
	while (ibv_poll_cq(cq, 1, wc) == 0)
		;
	began = now();
	for (int n = 1; n < DEPTH;) {
		int got = ibv_poll_cq(cq, at_once, wc);
		check(got >= 0 && wc[0].status == IBV_WC_WR_FLUSH_ERR, "ibv_poll_cq");
		n += got;
	}
	best(polled, began, DEPTH);
	check(!ibv_destroy_qp(qp), "ibv_destroy_qp");
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	check(list && list[0], "ibv_get_device_list");
	struct ibv_context *context = ibv_open_device(list[0]);
	check(context != NULL, "ibv_open_device");
	pd = ibv_alloc_pd(context);
	check(pd != NULL, "ibv_alloc_pd");
	cq = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
	check(cq != NULL, "ibv_create_cq");
	mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
	check(mr != NULL, "ibv_reg_mr");
	for (int i = 0; i < ROUNDS; i++)
		round_of(i % 2 ? 16 : 1, i % 2 ? &batch : &single);
	printf("poll in vain %.0f ns, post %.0f ns, poll of one %.0f ns, poll of 16 %.0f ns each\n", vain, post, single, batch);
	return 0;
}
