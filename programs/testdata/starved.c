/* Threads that ask for events in a loop do not keep another from destroying what has none. It is compiled with pair.h. */
#include <fcntl.h>
#include <pthread.h>

enum { ASKERS = 8 };

static int ends;

static void *asker(void *channel)
{
	struct ibv_cq *cq;
	void *cookie;
	while (!__atomic_load_n(&ends, __ATOMIC_SEQ_CST))
		check(ibv_get_cq_event(channel, &cq, &cookie) == -1, "an event");
	return NULL;
}

int main(void)
{
	open_device();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	check(channel && !fcntl(channel->fd, F_SETFL, O_NONBLOCK), "a channel");
	pthread_t threads[ASKERS];
	for (int i = 0; i < ASKERS; i++)
		check(!pthread_create(&threads[i], NULL, asker, channel), "pthread_create");
	for (int i = 0; i < 50; i++) {
		struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, channel, 0);
		check(cq && !ibv_destroy_cq(cq), "a CQ");
	}
	__atomic_store_n(&ends, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < ASKERS; i++)
		check(!pthread_join(threads[i], NULL), "pthread_join");
	check(!ibv_destroy_comp_channel(channel), "ibv_destroy_comp_channel");
	close_device();
	puts("starved: ok");
	return 0;
}
