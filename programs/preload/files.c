/* What a program asks about files: UCX takes a device only if there is one for it under /dev/infiniband, and others look for the directories of
 * sysfs. stat and access know ours. Older programs ask __xstat for stat. */
#include "objects.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sysfs.h"

/* The mode of a file or directory of ours, or 0. */
static mode_t mode_of(const char *path)
{
	char text[64];
	if (!path)
		return 0;
	if (!strcmp(path, "/dev/infiniband/iwarp0"))
		return S_IFCHR | 0666;
	if (iw_sys_file(path, text, sizeof text))
		return S_IFREG | 0444;
	return iw_sys_directory(path) ? S_IFDIR | 0555 : 0;
}

/* Its number tells a directory from others: ls looks for loops. */
static uint32_t number_of(const char *path)
{
	uint32_t n = 5381;
	for (; *path; path++)
		n = n * 33 + (unsigned char)*path;
	return n;
}

static int status(const char *path, struct stat *st, int flags)
{
	mode_t mode = mode_of(path);
	if (!mode)
		return fstatat(AT_FDCWD, path, st, flags);
	memset(st, 0, sizeof *st);
	st->st_ino = number_of(path);
	st->st_mode = mode;
	st->st_nlink = 1;
	return 0;
}

/* Headers have functions of these names, too. */
#define STATUS(own, name, flags)                                         \
	EXPORT int own(const char *path, struct stat *st) __asm__(name); \
	int own(const char *path, struct stat *st)                       \
	{                                                                \
		return status(path, st, flags);                          \
	}

STATUS(iw_stat, "stat", 0)
STATUS(iw_stat64, "stat64", 0)
STATUS(iw_lstat, "lstat", AT_SYMLINK_NOFOLLOW)
STATUS(iw_lstat64, "lstat64", AT_SYMLINK_NOFOLLOW)

#define OLD_STATUS(own, name)                                                         \
	EXPORT int own(int version, const char *path, struct stat *st) __asm__(name); \
	int own(int version, const char *path, struct stat *st)                       \
	{                                                                             \
		return status(path, st, 0);                                           \
	}

OLD_STATUS(iw_xstat, "__xstat")
OLD_STATUS(iw_xstat64, "__xstat64")

/* What ls asks. */
EXPORT int iw_statx(int dir, const char *path, int flags, unsigned mask, struct statx *st) __asm__("statx");

int iw_statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	static typeof(&iw_statx) real;
	mode_t mode = mode_of(path);
	if (mode) {
		*st = (struct statx){.stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_INO, .stx_ino = number_of(path), .stx_mode = mode, .stx_nlink = 1};
		return 0;
	}
	if (!real)
		real = (typeof(real))iw_dlsym(RTLD_NEXT, "statx");
	return real(dir, path, flags, mask, st);
}

EXPORT int iw_access(const char *path, int mode) __asm__("access");

int iw_access(const char *path, int mode)
{
	mode_t of = mode_of(path);
	if (!of)
		return faccessat(AT_FDCWD, path, mode, 0);
	return (mode & X_OK && !(of & 0111)) || (mode & W_OK && !(of & 0222)) ? iw_set_errno(EACCES) : 0;
}

/* What is behind a path that leads through the device's directory, which is a link on Linux: Mooncake asks where two directories above it are. */
static bool resolve(const char *below, char *out)
{
	strcpy(out, IW_SYS_REAL);
	while (*below) {
		size_t n = strcspn(below, "/"), length = strlen(out);
		if (n == 2 && !strncmp(below, "..", 2))
			*strrchr(out, '/') = 0;
		else if (length + n + 2 > PATH_MAX)
			return false;
		else if (n && !(n == 1 && *below == '.'))
			sprintf(out + length, "/%.*s", (int)n, below);
		if (!*out)
			strcpy(out, "/");
		for (below += n; *below == '/';)
			below++;
	}
	return !iw_sys_path(out) || mode_of(out);
}

EXPORT char *iw_realpath(const char *path, char *resolved) __asm__("realpath");
EXPORT char *iw_realpath_chk(const char *path, char *resolved, size_t size) __asm__("__realpath_chk");

char *iw_realpath(const char *path, char *resolved)
{
	static char *(*real)(const char *, char *);
	char out[PATH_MAX];
	const char *below = iw_sys_path(path);
	if (!real)
		real = (char *(*)(const char *, char *))iw_libc("realpath");
	if (!below)
		return real(path, resolved);
	if (!resolve(below, out)) {
		errno = ENOENT;
		return NULL;
	}
	return resolved ? strcpy(resolved, out) : strdup(out);
}

char *iw_realpath_chk(const char *path, char *resolved, size_t size)
{
	return iw_realpath(path, resolved);
}
