/* Some programs read what Linux says of a device in files, or list its directories. For ours, open and fopen return a file in memory. */
#include "objects.h"

#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sysfs.h"

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

/* Files of which there is one for each GID. */
static const struct {
	const char *path;
	int (*write)(char *text, size_t size, const struct ibv_gid_entry *e);
} gid_files[] = {
	{"ports/1/gids/%u%n", write_gid}, {"ports/1/gid_attrs/types/%u%n", write_type}, {"ports/1/gid_attrs/ndevs/%u%n", write_interface}};

static const struct {
	const char *path, *text;
} fixed[] = {
	{"fw_ver", "iwarp\n"},
	{"node_desc", "iwarp0\n"},
	{"ports/1/state", "4: ACTIVE\n"},
	{"ports/1/phys_state", "5: LinkUp\n"},
	{"ports/1/rate", "40 Gb/sec (4X QDR)\n"},
	{"ports/1/lid", "0x0\n"},
	{"ports/1/link_layer", "Ethernet\n"},
};

static int write_guid(char *text, size_t size)
{
	uint64_t g = be64toh(ibv_get_device_guid(iw_device()));
	return snprintf(text, size, "%04x:%04x:%04x:%04x\n", (unsigned)(g >> 48), (unsigned)(g >> 32) & 0xffff, (unsigned)(g >> 16) & 0xffff,
			(unsigned)g & 0xffff);
}

/* The length of what is in a file of the device's, or 0 if there is no such. */
static int contents(const char *path, char *text, size_t size)
{
	struct ibv_gid_entry e;
	unsigned index;
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (!strcmp(path, fixed[i].path))
			return snprintf(text, size, "%s", fixed[i].text);
	if (!strcmp(path, "node_type"))
		return snprintf(text, size, "%s\n", iw_roce() ? "1: CA" : "4: RNIC");
	if (!strcmp(path, "node_guid") || !strcmp(path, "sys_image_guid"))
		return write_guid(text, size);
	for (size_t i = 0; i < sizeof gid_files / sizeof *gid_files; i++) {
		int end = 0;
		if (sscanf(path, gid_files[i].path, &index, &end) == 1 && end && !path[end])
			return iw_gid_entry(index, &e) ? 0 : gid_files[i].write(text, size, &e);
	}
	return 0;
}

static const char *below(const char *path, const char *directory)
{
	size_t n = strlen(directory);
	if (!path || strncmp(path, directory, n) || (path[n] && path[n] != '/'))
		return NULL;
	for (path += n; *path == '/';)
		path++;
	return path;
}

const char *iw_sys_path(const char *path)
{
	const char *found = below(path, IW_SYS_DEVICE);
	return found ? found : below(path, IW_SYS_REAL);
}

int iw_sys_file(const char *path, char *text, size_t size)
{
	const char *name = iw_sys_path(path);
	return name ? contents(name, text, size) : 0;
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

/* The macros of some headers would rename or redefine them. */
EXPORT int iw_open_file(const char *path, int flags, ...) __asm__("open");
EXPORT int iw_open_file64(const char *path, int flags, ...) __asm__("open64") __attribute__((alias("open")));
EXPORT FILE *iw_fopen(const char *path, const char *mode) __asm__("fopen");
EXPORT FILE *iw_fopen64(const char *path, const char *mode) __asm__("fopen64") __attribute__((alias("fopen")));

int iw_open_file(const char *path, int flags, ...)
{
	char text[64];
	int mode = 0, length;
	va_list arguments;
	va_start(arguments, flags);
	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)
		mode = va_arg(arguments, int);
	va_end(arguments);
	if ((flags & O_ACCMODE) == O_RDONLY && (length = iw_sys_file(path, text, sizeof text)))
		return in_memory(text, length, flags);
	return openat(AT_FDCWD, path, flags, mode);
}

FILE *iw_fopen(const char *path, const char *mode)
{
	static FILE *(*real)(const char *, const char *);
	char text[64];
	int length = *mode == 'r' && !strchr(mode, '+') ? iw_sys_file(path, text, sizeof text) : 0;
	if (length) {
		int fd = in_memory(text, length, strchr(mode, 'e') ? O_CLOEXEC : 0);
		FILE *file = fd < 0 ? NULL : fdopen(fd, mode);
		if (!file && fd >= 0)
			close(fd);
		return file;
	}
	if (!real)
		real = (FILE * (*)(const char *, const char *)) iw_dlsym(RTLD_NEXT, "fopen64");
	return real(path, mode);
}
