/* The directories of /sys/class/infiniband that have our device, for opendir and what follows it. What Linux lists there comes after it. */
#include "objects.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "sysfs.h"

/* The names in each directory. Those of a number are as many as there are GIDs. */
static const struct {
	const char *path, *names;
} directories[] = {
	{"", "fw_ver node_desc node_guid node_type ports/ sys_image_guid"},
	{"ports", "1/"},
	{"ports/1", "gid_attrs/ gids/ lid link_layer phys_state rate state"},
	{"ports/1/gid_attrs", "ndevs/ types/"},
	{"ports/1/gid_attrs/ndevs", "#"},
	{"ports/1/gid_attrs/types", "#"},
	{"ports/1/gids", "#"},
};

/* The names in a directory of the device's, or NULL. */
static const char *names_in(const char *path)
{
	const char *below = iw_sys_path(path);
	size_t n = below ? strlen(below) : 0;
	if (!below)
		return NULL;
	while (n && below[n - 1] == '/')
		n--;
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
		if (strlen(directories[i].path) == n && !strncmp(directories[i].path, below, n))
			return directories[i].names;
	return NULL;
}

static bool is_class(const char *path)
{
	return path && (!strcmp(path, IW_SYS_CLASS) || !strcmp(path, IW_SYS_CLASS "/"));
}

bool iw_sys_directory(const char *path)
{
	return is_class(path) || names_in(path);
}

/* A stream of ours. Programs hold it as a DIR. */
struct listing {
	struct listing *next;
	DIR *real; /* what Linux has there, or NULL */
	const char *names, *at; /* what is left */
	unsigned gid;
	int dots;
	struct dirent entry;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct listing *listings;

static struct listing *find(DIR *d)
{
	if (!__atomic_load_n(&listings, __ATOMIC_ACQUIRE))
		return NULL;
	pthread_mutex_lock(&lock);
	struct listing *l = listings;
	while (l && (DIR *)l != d)
		l = l->next;
	pthread_mutex_unlock(&lock);
	return l;
}

#define NEXT(name, ...)                                             \
	({                                                          \
		static typeof(&name) real;                          \
		if (!real)                                          \
			real = (typeof(&name))iw_dlsym(RTLD_NEXT, #name); \
		real(__VA_ARGS__);                                  \
	})

EXPORT DIR *opendir(const char *path)
{
	const char *names = is_class(path) ? "iwarp0/" : names_in(path);
	if (!names)
		return NEXT(opendir, path);
	struct listing *l = iw_new(sizeof *l);
	if (!l)
		return NULL;
	l->names = l->at = names;
	if (is_class(path))
		l->real = NEXT(opendir, path);
	pthread_mutex_lock(&lock);
	l->next = listings;
	__atomic_store_n(&listings, l, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return (DIR *)l;
}

static struct dirent *entry(struct listing *l, const char *name, size_t n, bool directory)
{
	l->entry = (struct dirent){.d_ino = 1, .d_reclen = sizeof l->entry, .d_type = directory ? DT_DIR : DT_REG};
	memcpy(l->entry.d_name, name, n);
	return &l->entry;
}

/* The next GID's number, after those that are empty. */
static struct dirent *numbered(struct listing *l)
{
	struct ibv_gid_entry e;
	char name[16];
	while (l->gid < (unsigned)iw_gid_count()) {
		unsigned index = l->gid++;
		if (!iw_gid_entry(index, &e))
			return entry(l, name, snprintf(name, sizeof name, "%u", index), false);
	}
	return NULL;
}

static struct dirent *next_of(struct listing *l)
{
	if (l->dots < 2 && !l->real)
		return entry(l, "..", ++l->dots, true);
	if (*l->at == '#')
		return numbered(l);
	size_t n = strcspn(l->at, " ");
	if (!n)
		return l->real ? NEXT(readdir, l->real) : NULL;
	const char *name = l->at;
	bool directory = name[n - 1] == '/';
	l->at += n + (name[n] == ' ');
	return entry(l, name, n - directory, directory);
}

EXPORT struct dirent *iw_readdir(DIR *d) __asm__("readdir");
EXPORT struct dirent *iw_readdir64(DIR *d) __asm__("readdir64") __attribute__((alias("readdir")));

struct dirent *iw_readdir(DIR *d)
{
	struct listing *l = find(d);
	return l ? next_of(l) : NEXT(readdir, d);
}

EXPORT void rewinddir(DIR *d)
{
	struct listing *l = find(d);
	if (!l) {
		NEXT(rewinddir, d);
		return;
	}
	l->at = l->names;
	l->gid = 0;
	l->dots = 0;
	if (l->real)
		NEXT(rewinddir, l->real);
}

EXPORT int dirfd(DIR *d)
{
	return find(d) ? iw_set_errno(ENOTSUP) : NEXT(dirfd, d);
}

EXPORT int closedir(DIR *d)
{
	struct listing *l = find(d), **at = &listings;
	if (!l)
		return NEXT(closedir, d);
	pthread_mutex_lock(&lock);
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	pthread_mutex_unlock(&lock);
	int failed = l->real ? NEXT(closedir, l->real) : 0;
	free(l);
	return failed;
}
