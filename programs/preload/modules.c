/* A module that is loaded with RTLD_DEEPBIND finds the libraries that it is linked to before this one: Valkey loads its modules so. One that names
 * libibverbs or librdmacm is loaded without that flag. */
#include "objects.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has(const void *data, size_t length, const char *name)
{
	return memmem(data, length, name, strlen(name));
}

/* A file of no path is one that the dynamic linker looks for, and is not known here. */
__attribute__((noinline)) static bool names_verbs(const char *file)
{
	struct stat s;
	bool names = false;
	int fd = file && strchr(file, '/') ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return false;
	void *data = fstat(fd, &s) ? MAP_FAILED : mmap(NULL, s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data != MAP_FAILED) {
		names = has(data, s.st_size, "libibverbs.so.1") || has(data, s.st_size, "librdmacm.so.1");
		munmap(data, s.st_size);
	}
	close(fd);
	return names;
}

/* The real function looks at its caller, for that one's RUNPATH: it is called last, by a jump. */
EXPORT void *dlopen(const char *file, int mode)
{
	void *(*real)(const char *, int) = iw_dlopen();
	if (mode & RTLD_DEEPBIND && names_verbs(file))
		mode &= ~RTLD_DEEPBIND;
	return real(file, mode);
}
