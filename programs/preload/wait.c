/* Waiting for events. */
#include "objects.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

int iw_set_errno(int error)
{
	errno = error;
	return error ? -1 : 0;
}

/* Waits for a descriptor as a read of it would: EAGAIN if it does not block, EINTR after a signal, and a point at
 * which the thread can be cancelled. ppoll, as librspreload has a poll of its own. */
int iw_wait_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return errno;
	if (flags & O_NONBLOCK)
		return EAGAIN;
	if (ppoll(&p, 1, NULL, NULL) < 0)
		return errno;
	return p.revents & POLLNVAL ? EBADF : 0;
}

/* From when an event leaves its queue until it is counted: what destroys its object meanwhile must not miss it. */
static pthread_rwlock_t delivering = PTHREAD_RWLOCK_INITIALIZER;

void iw_deliver(void)
{
	pthread_rwlock_rdlock(&delivering);
}

void iw_delivered(void)
{
	pthread_rwlock_unlock(&delivering);
}

/* In a child after fork nobody delivers. */
static void in_child(void)
{
	pthread_rwlock_init(&delivering, NULL);
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* What destroys an object waits until its events were acknowledged, those too that are being delivered. Some programs acknowledge more than they have got. */
void iw_wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acked, const uint32_t *delivered)
{
	pthread_rwlock_wrlock(&delivering);
	pthread_rwlock_unlock(&delivering);
	pthread_mutex_lock(mutex);
	while ((int32_t)(*acked - *delivered) < 0)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}
