/* The GIDs of the port, which are the addresses of the host. */
#include "objects.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>

enum { MAX_GIDS = 64 };

struct gids {
	int n;
	bool there[MAX_GIDS]; /* now: others are empty entries */
	struct ibv_gid_entry entries[MAX_GIDS];
};

/* A program tells its peer of an index that it has chosen, or comes back to it: an address keeps the one it had when the process saw it
   first, also while the host does not have it. */
static struct gids seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool iw_gid_of(const struct sockaddr *a, union ibv_gid *gid)
{
	memset(gid, 0, sizeof *gid);
	if (a->sa_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(gid->raw + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
		return true;
	}
	if (a->sa_family == AF_INET6) {
		memcpy(gid->raw, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
		return true;
	}
	return false;
}

/* usable reports whether an address of IPv6 may be used, as far as the system tells: not while it looks for others that have the same, unless it is
   optimistic about that, and not when there are any. */
static bool usable(const struct ibv_gid_entry *e)
{
	enum { OPTIMISTIC = 0x04, FAILED = 0x08, TENTATIVE = 0x40 };
	char hex[33], wanted[33];
	unsigned index, flags;
	bool found = true;
	FILE *f = fopen("/proc/net/if_inet6", "re");
	if (!f)
		return true;
	for (int i = 0; i < 16; i++)
		sprintf(wanted + 2 * i, "%02x", e->gid.raw[i]);
	while (fscanf(f, "%32s %x %*x %*x %x %*s", hex, &index, &flags) == 3)
		if (index == e->ndev_ifindex && !strcmp(hex, wanted))
			found = !(flags & FAILED) && (!(flags & TENTATIVE) || flags & OPTIMISTIC);
	fclose(f);
	return found;
}

static void add(struct gids *g, const struct ifaddrs *a)
{
	struct ibv_gid_entry *e = &g->entries[g->n];
	if (g->n == MAX_GIDS || !iw_gid_of(a->ifa_addr, &e->gid))
		return;
	e->port_num = 1;
	e->gid_type = IBV_GID_TYPE_ROCE_V2;
	e->ndev_ifindex = if_nametoindex(a->ifa_name);
	if (a->ifa_addr->sa_family == AF_INET || usable(e))
		g->n++;
}

/* All addresses of interfaces that are up: those of networks first, IPv4 before IPv6, and those of loopback last. */
static bool present(struct gids *g)
{
	struct ifaddrs *all, *a;
	memset(g, 0, sizeof *g);
	if (getifaddrs(&all))
		return false;
	for (int turn = 0; turn < 4; turn++)
		for (a = all; a; a = a->ifa_next)
			if (a->ifa_addr && a->ifa_flags & IFF_UP && !(a->ifa_flags & IFF_LOOPBACK) == (turn < 2) &&
			    a->ifa_addr->sa_family == (turn % 2 ? AF_INET6 : AF_INET))
				add(g, a);
	freeifaddrs(all);
	return true;
}

/* find returns the index of an entry for the same address of the same interface, or -1. */
static int find(const struct gids *g, const struct ibv_gid_entry *e)
{
	for (int i = 0; i < g->n; i++)
		if (g->entries[i].ndev_ifindex == e->ndev_ifindex && !memcmp(&g->entries[i].gid, &e->gid, sizeof e->gid))
			return i;
	return -1;
}

/* place gives an address an index of its own: in a table that is full, that of one which is gone. */
static void place(const struct ibv_gid_entry *e)
{
	int at = seen.n;
	if (at == MAX_GIDS)
		for (at = 0; at < MAX_GIDS && seen.there[at];)
			at++;
	if (at == MAX_GIDS)
		return;
	seen.entries[at] = *e;
	seen.entries[at].gid_index = at;
	seen.there[at] = true;
	if (at == seen.n)
		__atomic_store_n(&seen.n, at + 1, __ATOMIC_RELEASE); /* a child may be forked at any time, and has whole entries */
}

static void merge(const struct gids *now)
{
	for (int i = 0; i < seen.n; i++)
		seen.there[i] = find(now, &seen.entries[i]) >= 0;
	for (int i = 0; i < now->n; i++)
		if (find(&seen, &now->entries[i]) < 0)
			place(&now->entries[i]);
}

static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static void all_gids(struct gids *g)
{
	bool known = present(g);
	pthread_mutex_lock(&lock);
	if (known)
		merge(g);
	*g = seen;
	pthread_mutex_unlock(&lock);
}

int iw_gid_count(void)
{
	struct gids g;
	all_gids(&g);
	return g.n;
}

int iw_gid(unsigned index, union ibv_gid *gid)
{
	struct gids g;
	all_gids(&g);
	if (index >= (unsigned)g.n || !g.there[index])
		return EINVAL;
	*gid = g.entries[index].gid;
	return 0;
}

int iw_gid_index(const union ibv_gid *gid)
{
	struct gids g;
	all_gids(&g);
	for (int i = 0; i < g.n; i++)
		if (g.there[i] && !memcmp(&g.entries[i].gid, gid, sizeof *gid))
			return i;
	return -1;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
				    size_t entry_size)
{
	struct gids g;
	if (!iw_ours(context))
		return REAL(_ibv_query_gid_table, context, entries, max, flags, entry_size);
	if (flags || entry_size < sizeof *entries)
		return -EINVAL;
	all_gids(&g);
	size_t n = 0;
	for (int i = 0; i < g.n; i++) {
		if (!g.there[i])
			continue;
		if (n == max)
			return -EINVAL;
		memcpy((char *)entries + n++ * entry_size, &g.entries[i], sizeof g.entries[i]);
	}
	return n;
}

int iw_gid_entry(unsigned index, struct ibv_gid_entry *entry)
{
	struct gids g;
	all_gids(&g);
	if (index >= (unsigned)g.n)
		return EINVAL;
	if (!g.there[index])
		return ENODATA;
	*entry = g.entries[index];
	return 0;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry, uint32_t flags,
			     size_t entry_size)
{
	if (!iw_ours(context))
		return REAL(_ibv_query_gid_ex, context, port, index, entry, flags, entry_size);
	if (flags || port != 1 || entry_size < sizeof *entry)
		return EINVAL;
	return iw_gid_entry(index, entry);
}

/* An empty entry is a GID of zeros here, as real devices have it. */
EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry = {0};
	if (!iw_ours(context))
		return REAL(ibv_query_gid, context, port, index, gid);
	if (index < 0 || port != 1)
		return iw_set_errno(EINVAL);
	int error = _ibv_query_gid_ex(context, port, index, &entry, 0, sizeof entry);
	if (error && error != ENODATA)
		return iw_set_errno(error);
	*gid = entry.gid;
	return 0;
}

/* Not public, and wanted by Python's pyverbs: the type as sysfs has it, where 1 is RoCE v2. */
EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, unsigned *type)
{
	struct ibv_gid_entry entry;
	if (!iw_ours(context))
		return REAL(ibv_query_gid_type, context, port, index, type);
	int error = _ibv_query_gid_ex(context, port, index, &entry, 0, sizeof entry);
	if (error)
		return iw_set_errno(error);
	*type = 1;
	return 0;
}
