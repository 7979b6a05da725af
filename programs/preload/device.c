/* The device: one port, which is up, with a GID for each address of the host. All of it is answered here, without the
 * engine. */
#include "objects.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sysfs.h"

static struct iw_device device = {
	.device = {
		.node_type = IBV_NODE_RNIC,
		.transport_type = IBV_TRANSPORT_IWARP,
		.name = "iwarp0",
		.dev_name = "iwarp0",
		.ibdev_path = IW_SYS_DEVICE,
	},
};

bool iw_roce(void)
{
	return device.device.transport_type == IBV_TRANSPORT_IB;
}

__attribute__((constructor)) static void choose_guise(int argc, char **argv)
{
	if (!iw_passes_for_roce(argv))
		return;
	device.device.node_type = IBV_NODE_CA;
	device.device.transport_type = IBV_TRANSPORT_IB;
}

struct ibv_device *iw_device(void)
{
	return &device.device;
}

bool iw_ours(const struct ibv_context *context)
{
	return context && context->device == &device.device;
}

/* The list begins where it was allocated, as with rdma-core: qperf gives it to free. After its NULL stands that of the real library, which is
 * freed with it. */
EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
	int n = 0;
	struct ibv_device **real = REAL(ibv_get_device_list, &n);
	if (!real)
		n = 0;
	struct ibv_device **out = iw_new((n + 3) * sizeof *out);
	if (!out)
		return NULL;
	out[0] = &device.device;
	if (n)
		memcpy(out + 1, real, n * sizeof *out);
	out[n + 2] = (struct ibv_device *)real;
	if (num)
		*num = n + 1;
	return out;
}

EXPORT void ibv_free_device_list(struct ibv_device **out)
{
	struct ibv_device **end = out;
	while (*end)
		end++;
	if (end[1])
		REAL(ibv_free_device_list, (struct ibv_device **)end[1]);
	free(out);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *d)
{
	return d == &device.device ? d->name : REAL(ibv_get_device_name, d);
}

EXPORT int ibv_get_device_index(struct ibv_device *d)
{
	return d == &device.device ? -1 : REAL(ibv_get_device_index, d);
}

/* A GUID is that of the first interface that has an address of Ethernet. */
static __be64 guid(void)
{
	uint8_t id[8] = {2, 0, 0, 0xff, 0xfe, 0, 0, 1};
	struct ifaddrs *all, *a;
	if (getifaddrs(&all))
		all = NULL;
	for (a = all; a; a = a->ifa_next) {
		struct sockaddr_ll *ll = (struct sockaddr_ll *)a->ifa_addr;
		if (!ll || ll->sll_family != AF_PACKET || a->ifa_flags & IFF_LOOPBACK || ll->sll_halen != 6)
			continue;
		memcpy(id, ll->sll_addr, 3);
		memcpy(id + 5, ll->sll_addr + 3, 3);
		id[0] ^= 2;
		break;
	}
	freeifaddrs(all);
	__be64 value;
	memcpy(&value, id, sizeof value);
	return value;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *d)
{
	return d == &device.device ? guid() : REAL(ibv_get_device_guid, d);
}

/* There are no commands; programs hand it around. Where there is no /dev/null, as below a chroot, anything will do. */
static int open_commands(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return fd < 0 && errno != EMFILE && errno != ENFILE ? eventfd(0, EFD_CLOEXEC) : fd;
}

static void close_both(const struct ibv_context *context)
{
	if (context->async_fd >= 0)
		close(context->async_fd);
	if (context->cmd_fd >= 0)
		close(context->cmd_fd);
}

struct ibv_context *iw_open(void)
{
	struct iw_context *c = iw_new(sizeof *c);
	if (!c)
		return NULL;
	struct ibv_context *context = &c->v.context;
	pthread_mutex_init(&context->mutex, NULL);
	context->device = &device.device;
	context->cmd_fd = open_commands();
	context->async_fd = iw_descriptor(&c->process);
	iw_prepare_waiters(&c->waiters);
	context->num_comp_vectors = 1;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	iw_set_ops(&c->v);
	if (context->async_fd >= 0 && context->cmd_fd >= 0)
		return context;
	int error = errno;
	close_both(context);
	free(c);
	return iw_failed(error);
}

/* A context is its process's own. Its cmd_fd, or a copy of it that has come here, is one of /dev/null. */
EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct stat s, null;
	if (fstat(cmd_fd, &s) || stat("/dev/null", &null) || s.st_rdev != null.st_rdev)
		return REAL(ibv_import_device, cmd_fd);
	return iw_failed(EOPNOTSUPP);
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	return d == &device.device ? iw_open() : REAL(ibv_open_device, d);
}

static struct iw_context *context_of(struct ibv_context *context)
{
	return container(context, struct iw_context, v.context);
}

/* Whether the engine knows it, which is not loaded for this. */
bool iw_has_events(struct ibv_context *context)
{
	struct iw_context *c = context_of(context);
	iw_make();
	bool live = iw_live(&c->handle);
	iw_made();
	return live;
}

/* Before a child waits for events of its own on a context of its parent's. */
bool iw_own_async(struct ibv_context *context)
{
	struct iw_context *c = context_of(context);
	iw_make();
	bool own = iw_own_descriptor(context->async_fd, &c->process);
	iw_made();
	return own;
}

uint64_t iw_context_number(struct ibv_context *context)
{
	struct iw_context *c = context_of(context);
	uint64_t number;
	const struct iw_engine *engine = iw_engine();
	iw_make();
	if (!iw_live(&c->handle) && iw_own_descriptor(context->async_fd, &c->process) && !engine->context_open(context->async_fd, &c->waiters, &number))
		c->handle = iw_handle(number);
	number = iw_number(&c->handle);
	iw_made();
	return number;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	if (!iw_ours(context))
		return REAL(ibv_close_device, context);
	struct iw_context *c = context_of(context);
	if (iw_live(&c->handle))
		iw_engine()->context_close(c->handle.number);
	c->handle.number = 0;
	if (context->async_fd < 0)
		return EINVAL;
	iw_not_common(context, NULL);
	close_both(context);
	context->async_fd = context->cmd_fd = -1;
	iw_retire_waited(c, &c->waiters);
	return 0;
}
