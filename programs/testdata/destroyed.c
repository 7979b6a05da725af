/* A thread that waits for events of librdmacm while another one destroys the channel waits on, as in a read of the kernel's: rping, and others, end their
 * process with such a thread, and one that came back with an error would end it first. Who calls later is told. Prints "destroyed: ok". It is compiled with
 * pair.h and -rdynamic, so that the library takes fcntl from here: that is the last it does before it waits. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct rdma_event_channel *channel;
static int strikes; /* destroy the channel in the next fcntl */
static int struck, came;

int fcntl(int fd, int command, ...)
{
	va_list rest;
	va_start(rest, command);
	long argument = va_arg(rest, long);
	va_end(rest);
	if (strikes && command == F_GETFL && fd == channel->fd) {
		strikes = 0;
		rdma_destroy_event_channel(channel);
		__atomic_store_n(&struck, 1, __ATOMIC_SEQ_CST);
	}
	return syscall(SYS_fcntl, fd, command, argument);
}

static void *waits(void *unused)
{
	struct rdma_cm_event *e;
	(void)unused;
	check(rdma_get_cm_event(channel, &e) == -1, "an event of nothing");
	perror("rdma_get_cm_event");
	came = 1;
	return NULL;
}

int main(void)
{
	alarm(60);
	for (int i = 0; i < 100; i++) {
		pthread_t thread;
		void *result;
		struct rdma_cm_event *e;
		channel = rdma_create_event_channel();
		strikes = 1;
		__atomic_store_n(&struck, 0, __ATOMIC_SEQ_CST);
		check(channel && !pthread_create(&thread, NULL, waits, NULL), "a thread");
		while (!__atomic_load_n(&struck, __ATOMIC_SEQ_CST))
			sched_yield();
		check(!pthread_cancel(thread) && !pthread_join(thread, &result), "pthread_join");
		check(result == PTHREAD_CANCELED && !came, "one that waits for events of a channel that is destroyed");
		check(rdma_get_cm_event(channel, &e) == -1 && errno == EBADF, "a channel that is destroyed");
	}
	puts("destroyed: ok");
	return 0;
}
