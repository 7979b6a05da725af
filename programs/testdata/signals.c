/* No signal of the library's may reach the program's threads: a poll, or any other call that is never restarted, would
 * fail with EINTR. Several threads call the library while it collects garbage, which is when Go's runtime would send
 * SIGURG; the program has put a handler of its own in its place, which counts.
 *
 * And no thread of the library's may take a signal that the program has blocked in its own, to wait for it. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20000 };

static atomic_int signals;
static struct ibv_context *context;
static struct ibv_pd *pd;

static void count(int signal)
{
	(void)signal;
	signals++;
}

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static void *work(void *unused)
{
	(void)unused;
	char memory[64];
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
		struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, NULL, 0);
		check(mr && cq, "ibv_reg_mr, ibv_create_cq");
		check(!ibv_dereg_mr(mr) && !ibv_destroy_cq(cq), "ibv_dereg_mr, ibv_destroy_cq");
	}
	return NULL;
}

/* tgtd tells itself by such signals that a disk has answered. */
static void blocked(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	for (int i = 0; i < 100; i++) {
		check(!kill(getpid(), SIGUSR2), "kill"); /* without a handler it ends the process */
		check(sigwaitinfo(&set, NULL) == SIGUSR2, "sigwaitinfo");
	}
}

int main(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	struct ibv_device **list = ibv_get_device_list(NULL);
	check(list && list[0], "ibv_get_device_list");
	context = ibv_open_device(list[0]);
	check(context != NULL, "ibv_open_device");
	free(list); /* as qperf does, where ibv_free_device_list is due */
	pd = ibv_alloc_pd(context);
	check(pd != NULL, "ibv_alloc_pd");

	check(!sigprocmask(SIG_BLOCK, &set, NULL), "sigprocmask");
	blocked();

	struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART | SA_ONSTACK};
	check(!sigaction(SIGURG, &action, NULL), "sigaction");
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		check(!pthread_create(&threads[i], NULL, work, NULL), "pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d signals\n", signals);
	return signals != 0;
}
