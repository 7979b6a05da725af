/* A thread that polls while the library may run on one processor only, as in a container that has no more: what it waits for is done meanwhile, and not when its turn of some
 * milliseconds is over. The measure is how often it polls. Prints "alone: ok". It is compiled with pair.h. */
int main(void)
{
	enum { N = 200, MANY = 2000 };
	open_device();
	struct end *a = create(IBV_ACCESS_LOCAL_WRITE), *b = create(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	meet(a, b);
	long polls = 0;
	for (int i = 0; i < N; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE, .wr.rdma = {(uintptr_t)b->memory, b->mr->rkey}};
		struct ibv_wc wc;
		check(!post(a, &wr, 0, 8), "ibv_post_send");
		while (!ibv_poll_cq(a->cq, 1, &wc))
			polls++;
		check(!wc.status, "a Write");
	}
	printf("%ld polls in vain for each\n", polls / N);
	check(polls / N < MANY, "polls in vain");
	destroy(a);
	destroy(b);
	close_device();
	puts("alone: ok");
	return 0;
}
