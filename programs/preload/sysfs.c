/* Some programs read GIDs, their types and their interfaces from the files that Linux has of a device. For ours, open returns a file in memory. */
#include "objects.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const char port_files[] = "/sys/class/infiniband/iwarp0/ports/1/";

static int write_gid(char *text, size_t size, const struct ibv_gid_entry *e)
{
	const uint8_t *b = e->gid.raw;
	int n = 0;
	for (int i = 0; i < 16; i += 2)
		n += snprintf(text + n, size - n, "%02x%02x%c", b[i], b[i + 1], i < 14 ? ':' : '\n');
	return n;
}

static int write_type(char *text, size_t size, const struct ibv_gid_entry *e)
{
	return snprintf(text, size, "%s\n", iw_roce() ? "RoCE v2" : "IB/RoCE v1"); /* the latter is that of all but RoCE v2 */
}

static int write_interface(char *text, size_t size, const struct ibv_gid_entry *e)
{
	char name[IF_NAMESIZE];
	return if_indextoname(e->ndev_ifindex, name) ? snprintf(text, size, "%s\n", name) : 0;
}

static const struct {
	const char *path;
	int (*write)(char *text, size_t size, const struct ibv_gid_entry *e);
} files[] = {{"gids/%u%n", write_gid}, {"gid_attrs/types/%u%n", write_type}, {"gid_attrs/ndevs/%u%n", write_interface}};

/* The length of what is in a file of the port's, or 0 if there is no such. */
static int contents(const char *path, char *text, size_t size)
{
	struct ibv_gid_entry e;
	unsigned index;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		int end = 0;
		if (sscanf(path, files[i].path, &index, &end) == 1 && end && !path[end])
			return iw_gid_entry(index, &e) ? 0 : files[i].write(text, size, &e);
	}
	return 0;
}

static int in_memory(const char *text, int length, int flags)
{
	int fd = memfd_create("iwarp0", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd >= 0 && pwrite(fd, text, length, 0) != length) {
		close(fd);
		return iw_set_errno(EIO);
	}
	return fd;
}

/* The macros of some headers would rename or redefine it. */
EXPORT int iw_open_file(const char *path, int flags, ...) __asm__("open");
EXPORT int iw_open_file64(const char *path, int flags, ...) __asm__("open64") __attribute__((alias("open")));

int iw_open_file(const char *path, int flags, ...)
{
	char text[64];
	int mode = 0, length;
	va_list arguments;
	va_start(arguments, flags);
	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)
		mode = va_arg(arguments, int);
	va_end(arguments);
	if (path && (flags & O_ACCMODE) == O_RDONLY && !strncmp(path, port_files, sizeof port_files - 1) &&
	    (length = contents(path + sizeof port_files - 1, text, sizeof text)))
		return in_memory(text, length, flags);
	return openat(AT_FDCWD, path, flags, mode);
}
