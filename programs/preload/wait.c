/* Waiting for events. */
#include "objects.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

static unsigned forks; /* between the process that has loaded this library, and this one */

int iw_descriptor(unsigned *process)
{
	*process = forks;
	return eventfd(0, EFD_CLOEXEC);
}

/* An eventfd that was there before fork is the parent's too: who reads it takes what the other is to see. Puts one of this process's own in its place,
 * under the same number and with the same flags. Descriptors of epoll that have come here with it go on with the parent's. */
bool iw_own_descriptor(int fd, unsigned *process)
{
	if (fd < 0 || *process == forks)
		return fd >= 0;
	int blocking = fcntl(fd, F_GETFL), on_exec = fcntl(fd, F_GETFD);
	int own = blocking < 0 ? -1 : eventfd(0, EFD_CLOEXEC | (blocking & O_NONBLOCK ? EFD_NONBLOCK : 0));
	if (own < 0)
		return false;
	if (dup3(own, fd, on_exec & FD_CLOEXEC ? O_CLOEXEC : 0) >= 0)
		*process = forks;
	close(own);
	return *process == forks;
}

int iw_set_errno(int error)
{
	errno = error;
	return error ? -1 : 0;
}

void *iw_failed(int error)
{
	errno = error;
	return NULL;
}

static void wake(struct iw_waiters *w)
{
	for (uint32_t n = __atomic_exchange_n(&w->threads, 0, __ATOMIC_SEQ_CST); n > 0; n--)
		sem_post(&w->wakes);
}

void iw_prepare_waiters(struct iw_waiters *w)
{
	w->wake = wake;
	sem_init(&w->wakes, 0, 0);
}

void iw_begin_waiting(struct iw_waiters *w)
{
	__atomic_fetch_add(&w->threads, 1, __ATOMIC_SEQ_CST);
}

/* One that has been woken meanwhile takes that back. */
void iw_end_waiting(struct iw_waiters *w)
{
	uint32_t n = __atomic_load_n(&w->threads, __ATOMIC_SEQ_CST);
	while (n > 0 && !__atomic_compare_exchange_n(&w->threads, &n, n - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	if (n == 0)
		sem_trywait(&w->wakes);
}

/* Waits as a read of the descriptor would: EAGAIN if it does not block, EINTR after a signal, unless its handler has SA_RESTART, and a point at which the
 * thread can be canceled. Of all calls that leave the descriptor readable for others, sem_wait does that: poll is never restarted (signal(7)). A thread that
 * is canceled stays counted, for which another looks once in vain. */
int iw_wait(struct iw_waiters *w, const int *fd)
{
	int flags = fcntl(__atomic_load_n(fd, __ATOMIC_SEQ_CST), F_GETFL);
	if (__atomic_load_n(fd, __ATOMIC_SEQ_CST) < 0)
		flags = 0;
	int error = flags < 0 ? errno : flags & O_NONBLOCK ? EAGAIN : sem_wait(&w->wakes) ? errno : 0;
	if (error)
		iw_end_waiting(w);
	return error;
}

void iw_use_waiters(struct iw_waiters *w, int32_t more)
{
	__atomic_fetch_add(&w->users, more, __ATOMIC_SEQ_CST);
}

/* A program may destroy what a thread waits on, and end that later: what it waits with stays. A thread that is canceled stays a user. */
void iw_retire_waited(void *object, const struct iw_waiters *w)
{
	if (!__atomic_load_n(&w->users, __ATOMIC_SEQ_CST))
		iw_retire(object);
}

/* Whoever holds what all threads need is not canceled meanwhile, but where it can be next: it would leave it locked for ever. */
static __thread int shields, cancelable;

void iw_shield(void)
{
	if (!shields++)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
}

void iw_unshield(void)
{
	if (!--shields)
		pthread_setcancelstate(cancelable, NULL);
}

/* From when an event leaves its queue until it is counted: what destroys its object meanwhile must not miss it. It goes first, or threads that ask for events
 * in a loop would never let it. */
static pthread_rwlock_t delivering = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

void iw_deliver(void)
{
	iw_shield();
	pthread_rwlock_rdlock(&delivering);
}

void iw_delivered(void)
{
	pthread_rwlock_unlock(&delivering);
	iw_unshield();
}

/* Counters of all events are under one lock. So is what is made at the first call that needs it: a child may have to do with objects of its parent's, whose
 * own locks nobody would let go of if another thread of the parent held them when it forked. */
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER, making = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t counted = PTHREAD_COND_INITIALIZER;

void iw_count(uint32_t *counter, uint32_t n)
{
	pthread_mutex_lock(&counting);
	*counter += n;
	pthread_cond_broadcast(&counted);
	pthread_mutex_unlock(&counting);
}

void iw_make(void)
{
	iw_shield();
	pthread_mutex_lock(&making);
}

void iw_made(void)
{
	pthread_mutex_unlock(&making);
	iw_unshield();
}

/* In a child after fork nobody else has a lock, or waits. A fork does not wait for those of the parent's who do. */
static void in_child(void)
{
	delivering = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
	pthread_mutex_init(&counting, NULL);
	pthread_mutex_init(&making, NULL);
	pthread_cond_init(&counted, NULL);
	forks++;
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static void release(void *lock)
{
	pthread_mutex_unlock(lock);
}

/* What destroys an object waits until its events were acknowledged, those too that are being delivered. Some programs acknowledge more than they have got. A
 * thread can be canceled meanwhile, as with the kernel's. */
void iw_wait_acked(const uint32_t *acked, const uint32_t *delivered)
{
	pthread_rwlock_wrlock(&delivering);
	pthread_rwlock_unlock(&delivering);
	pthread_mutex_lock(&counting);
	pthread_cleanup_push(release, &counting);
	while ((int32_t)(*acked - *delivered) < 0)
		pthread_cond_wait(&counted, &counting);
	pthread_cleanup_pop(true);
}
