/* Requests that are built for a QP that was destroyed: nothing is posted, no harm is done, and nobody waits for ever. It is compiled with pair.h. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static struct ibv_qp_ex *x;
static int waits;

/* Another thread that waits for its turn to build while the QP is destroyed. */
static void *other(void *unused)
{
	__atomic_store_n(&waits, 1, __ATOMIC_SEQ_CST);
	ibv_wr_start(x);
	ibv_wr_send(x);
	check(ibv_wr_complete(x) == EINVAL, "a QP that was destroyed");
	return unused;
}

static struct ibv_qp *create_extended(struct end *e)
{
	struct ibv_qp_init_attr_ex init = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_inline_data = 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = pd, .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);
	check(qp != NULL, "ibv_create_qp_ex");
	__atomic_store_n(&x, ibv_qp_to_qp_ex(qp), __ATOMIC_SEQ_CST);
	return qp;
}

/* It is destroyed while requests are built, by one thread, and another waits for its turn. */
static void meanwhile(struct end *e)
{
	struct ibv_qp *qp = create_extended(e);
	struct ibv_data_buf data = {e->memory, 8};
	pthread_t thread;
	ibv_wr_start(x);
	ibv_wr_send(x);
	check(!pthread_create(&thread, NULL, other, NULL), "pthread_create");
	while (!__atomic_load_n(&waits, __ATOMIC_SEQ_CST))
		;
	usleep(20000); /* in which it could go wrong */
	check(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	ibv_wr_set_inline_data_list(x, 1, &data);
	check(ibv_wr_complete(x) == EINVAL, "a QP that was destroyed");
	check(!pthread_join(thread, NULL), "pthread_join");
}

static int ends;

/* A thread that builds for whatever QP there is. */
static void *builder(void *memory)
{
	while (!__atomic_load_n(&ends, __ATOMIC_SEQ_CST)) {
		struct ibv_qp_ex *qp = __atomic_load_n(&x, __ATOMIC_SEQ_CST);
		ibv_wr_start(qp);
		for (int i = 0; i < 20; i++) {
			ibv_wr_send(qp);
			ibv_wr_set_inline_data(qp, memory, 8);
		}
		ibv_wr_complete(qp); /* of a QP that is not connected, or is no more */
	}
	return NULL;
}

/* QPs are destroyed while threads build for them. */
static void amid(struct end *e)
{
	pthread_t threads[2];
	struct ibv_qp *qp = create_extended(e);
	for (int i = 0; i < 2; i++)
		check(!pthread_create(&threads[i], NULL, builder, e->memory), "pthread_create");
	for (int i = 0; i < 300; i++) {
		struct ibv_qp *old = qp;
		usleep(i * 37 % 1000);
		if (i % 2)
			qp = create_extended(e);
		check(!ibv_destroy_qp(old), "ibv_destroy_qp");
		if (i % 2 == 0)
			qp = create_extended(e);
	}
	__atomic_store_n(&ends, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 2; i++)
		check(!pthread_join(threads[i], NULL), "pthread_join");
	check(!ibv_destroy_qp(qp), "ibv_destroy_qp");
}

static void afterwards(struct end *e)
{
	for (int i = 0; i < 2; i++) {
		ibv_wr_start(x);
		ibv_wr_rdma_write(x, 1, 0);
		ibv_wr_set_sge(x, 1, 0, 8);
		check(ibv_wr_complete(x) == EINVAL, "a QP that was destroyed");
	}
	ibv_wr_start(x);
	ibv_wr_send(x);
	ibv_wr_set_inline_data(x, e->memory, 8);
	ibv_wr_abort(x);
}

int main(void)
{
	open_device();
	struct end *e = create(IBV_ACCESS_LOCAL_WRITE);
	check(!ibv_destroy_qp(create_extended(e)), "ibv_destroy_qp");
	afterwards(e);
	meanwhile(e);
	afterwards(e);
	amid(e);
	destroy(e);
	close_device();
	puts("built: ok");
	return 0;
}
