/* An address keeps its GID's index while others come and go, in a network of this process's own, and has files as Linux has them. Prints "gids: ok". It is compiled with pair.h and -D_GNU_SOURCE. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int control;

static void flags(const char *name, short on)
{
	struct ifreq r = {.ifr_flags = on};
	strcpy(r.ifr_name, name);
	check(!ioctl(control, SIOCSIFFLAGS, &r), name);
}

static void address(const char *name, const char *text)
{
	struct ifreq r = {.ifr_addr.sa_family = AF_INET};
	strcpy(r.ifr_name, name);
	inet_pton(AF_INET, text, &((struct sockaddr_in *)&r.ifr_addr)->sin_addr);
	check(!ioctl(control, SIOCSIFADDR, &r), text);
	flags(name, IFF_UP);
}

/* The index of an address that the host has is this, and another index is empty, or has none. */
static void at(int index, const char *text)
{
	union ibv_gid gid, want;
	char name[64];
	snprintf(name, sizeof name, "::ffff:%s", text);
	inet_pton(AF_INET6, name, &want);
	check(!ibv_query_gid(context, 1, index, &gid), "ibv_query_gid");
	inet_ntop(AF_INET6, &gid, name, sizeof name);
	if (memcmp(&gid, &want, sizeof gid))
		fprintf(stderr, "GID %d is %s\n", index, name);
	check(!memcmp(&gid, &want, sizeof gid), text);
}

/* What Linux has of a GID in a file. */
static void file(const char *of, int index, const char *want)
{
	char path[128], text[64] = "";
	snprintf(path, sizeof path, "/sys/class/infiniband/iwarp0/ports/1/%s/%d", of, index);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!want) {
		check(fd < 0 && errno == ENOENT, "no file");
		return;
	}
	check(fd >= 0 && read(fd, text, sizeof text - 1) > 0 && read(fd, text + 63, 1) == 0, path);
	check(!strcmp(text, want), text);
	check(open(path, O_WRONLY) < 0, "a file to read");
	close(fd);
}

static void empty(int index)
{
	union ibv_gid gid, none = {{0}};
	struct ibv_gid_entry entry;
	check(!ibv_query_gid(context, 1, index, &gid) && !memcmp(&gid, &none, sizeof gid), "an empty GID");
	check(ibv_query_gid_ex(context, 1, index, &entry, 0) == ENODATA, "ENODATA");
	file("gids", index, NULL);
}

/* The table has only entries that are not empty, which is n of so many. */
static void table(int n, int of)
{
	struct ibv_gid_entry entries[8];
	struct ibv_port_attr port;
	check(!ibv_query_port(context, 1, &port) && port.gid_tbl_len == of, "gid_tbl_len");
	check(ibv_query_gid_table(context, entries, 8, 0) == n, "ibv_query_gid_table");
	check(ibv_query_gid_ex(context, 1, of, entries, 0) == EINVAL, "EINVAL");
}

int main(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		puts("gids: no network of its own");
		return 0;
	}
	const char *as = getenv("IWARP_AS");
	control = socket(AF_INET, SOCK_DGRAM, 0);
	flags("lo", IFF_UP);
	open_device();
	at(0, "127.0.0.1");
	struct ibv_port_attr port;
	check(!ibv_query_port(context, 1, &port), "ibv_query_port");
	int n = port.gid_tbl_len; /* with ::1, where there is IPv6 */
	address("lo:1", "10.1.1.1");
	at(n, "10.1.1.1");
	address("lo:2", "172.16.1.1");
	at(n + 1, "172.16.1.1");
	file("gids", n + 1, "0000:0000:0000:0000:0000:ffff:ac10:0101\n");
	file("gid_attrs/types", n + 1, as && !strcmp(as, "roce") ? "RoCE v2\n" : "IB/RoCE v1\n");
	file("gid_attrs/ndevs", n + 1, "lo\n");
	file("gids", n + 2, NULL);
	file("gid_attrs/none", n + 1, NULL);
	table(n + 2, n + 2);
	flags("lo:1", 0);
	empty(n);
	at(n + 1, "172.16.1.1");
	table(n + 1, n + 2);
	address("lo:1", "10.1.1.1");
	at(n, "10.1.1.1");
	table(n + 2, n + 2);
	close_device();
	puts("gids: ok");
	return 0;
}
