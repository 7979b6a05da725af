/* A process has no descriptors left, or no /dev/null: calls say so, and requests that come meanwhile are no crash. Prints "scarce: ok". It is
 * compiled with pair.h. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LIMIT = 100 };

/* That of libc, but there is no /dev/null, as below a chroot. It is seen by the library too, as the program is the first to be asked. */
static int no_null;

int open(const char *name, int flags, ...)
{
	va_list more;
	va_start(more, flags);
	int mode = flags & O_CREAT ? va_arg(more, int) : 0;
	va_end(more);
	if (no_null && !strcmp(name, "/dev/null")) {
		errno = ENOENT;
		return -1;
	}
	return openat(AT_FDCWD, name, flags, mode);
}

static void without_null(struct ibv_device *device)
{
	no_null = 1;
	struct ibv_context *c = ibv_open_device(device);
	check(c && c->cmd_fd >= 0 && !ibv_close_device(c), "ibv_open_device without /dev/null");
	no_null = 0;
}

static void take_all(int *taken, int *n)
{
	struct rlimit r = {.rlim_max = LIMIT};
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = LIMIT;
	check(!setrlimit(RLIMIT_NOFILE, &r), "setrlimit");
	for (*n = 0; (taken[*n] = dup(0)) >= 0;)
		++*n;
}

#define REFUSED(call, what) check((errno = 0, (call)) && errno == EMFILE, what)

static void without_descriptors(struct ibv_device *device)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id, *one;
	check(channel && !rdma_create_id(channel, &one, NULL, RDMA_PS_TCP), "rdma_create_id");
	int taken[LIMIT], n;
	take_all(taken, &n);
	REFUSED(!ibv_open_device(device), "ibv_open_device");
	REFUSED(!ibv_create_comp_channel(context), "ibv_create_comp_channel");
	REFUSED(!rdma_create_event_channel(), "rdma_create_event_channel");
	REFUSED(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	REFUSED(rdma_migrate_id(one, NULL), "rdma_migrate_id");
	while (n > 0)
		close(taken[--n]);
	check(!rdma_destroy_id(one), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	open_device();
	struct ibv_device *device = context->device;
	without_null(device);
	without_descriptors(device);
	close_device();
	puts("scarce: ok");
	return 0;
}
