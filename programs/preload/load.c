/* The engine: loaded at the first call that needs it, so that the shells and other tools that a preloaded library gets into
 * pay nothing for it. */
#include "objects.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static struct iw_engine engine;
static const struct iw_engine *loaded; /* NULL until the engine is there, and again in a child after fork */
static unsigned generation;
static bool begun;

static _Noreturn void give_up(const char *what, const char *why)
{
	dprintf(2, "iwarp: %s: %s\n", what, why ? why : "unknown error");
	abort();
}

/* Beside this library, or where IWARP_ENGINE says. */
static const char *engine_path(void)
{
	static char path[4096];
	Dl_info info;
	const char *name = getenv("IWARP_ENGINE");
	if (name && *name)
		return name;
	if (!dladdr((void *)engine_path, &info) || strlen(info.dli_fname) > sizeof path - 32)
		give_up("the engine", "cannot tell where this library is");
	strcpy(path, info.dli_fname);
	char *slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, "libiwarp-engine.so");
	return path;
}

/* In a child after fork Go's runtime of the parent does nothing any more. A second copy works, if it is not taken for the first:
 * it is one of a file of its own, in memory. */
static void *load_copy(const char *path)
{
	char name[64];
	struct stat st;
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("iwarp-engine", MFD_CLOEXEC);
	if (from < 0 || to < 0 || fstat(from, &st))
		give_up(path, strerror(errno));
	for (off_t at = 0; at < st.st_size;)
		if (sendfile(to, from, &at, st.st_size - at) <= 0)
			give_up(path, strerror(errno));
	close(from);
	snprintf(name, sizeof name, "/proc/self/fd/%d", to);
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	close(to);
	return library;
}

/* The threads of Go's runtime take no signals: they have the mask of the thread that loads it. One that is not blocked in them would
 * end a program that has blocked it in its own threads, to receive it by signalfd or sigwait. */
static void *load_deaf(const char *path)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	void *library = generation ? load_copy(path) : dlopen(path, RTLD_NOW | RTLD_LOCAL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return library;
}

/* Go raises the soft limit of descriptors to the hard one, or one less, when it begins. The program, and what it executes, have theirs back:
 * some close all descriptors up to it, or use select. One that is not what Go makes of it has been set by the program meanwhile. */
static void limit_again(const struct rlimit *before)
{
	struct rlimit now;
	if (!getrlimit(RLIMIT_NOFILE, &now) && now.rlim_cur >= now.rlim_max - 1 && now.rlim_max == before->rlim_max)
		setrlimit(RLIMIT_NOFILE, before);
}

/* IWARP_SOURCES comes from the compiler's command line: what the engine's function of that name must say. */
static void load(void)
{
	const char *path = engine_path();
	struct rlimit limit;
	bool limited = !getrlimit(RLIMIT_NOFILE, &limit);
	__atomic_store_n(&begun, true, __ATOMIC_SEQ_CST);
	void *library = load_deaf(path);
	if (!library)
		give_up("the engine cannot be loaded", dlerror());
#define IW_LOAD(name, args)                                       \
	*(void **)&engine.name = dlsym(library, "iw_" #name);     \
	if (!engine.name)                                         \
		give_up("the engine lacks a function", "iw_" #name);
	IW_ENGINE(IW_LOAD)
	uint64_t sources; /* which waits until all of Go has begun */
	int failed = engine.sources(&sources);
	if (failed == EMFILE || failed == ENFILE)
		give_up("the engine needs two file descriptors", strerror(failed));
	if (failed || sources != IWARP_SOURCES)
		give_up("the engine and this library were built from different sources", "iwarp run --build builds both");
	if (limited)
		limit_again(&limit);
	engine.guise(iw_roce());
	__atomic_store_n(&loaded, &engine, __ATOMIC_RELEASE);
}

const struct iw_engine *iw_engine(void)
{
	if (__builtin_expect(!iw_has_stack, 0))
		iw_give_stack();
	const struct iw_engine *e = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
	if (__builtin_expect(!e, 0)) {
		iw_shield();
		pthread_mutex_lock(&loading);
		if (!loaded)
			load();
		pthread_mutex_unlock(&loading);
		iw_unshield();
		e = &engine;
	}
	return e;
}

bool iw_loading(void)
{
	return __atomic_load_n(&begun, __ATOMIC_SEQ_CST);
}

/* A fork waits while another thread loads the engine. A child would have a half of one, and not know that it needs a copy. */
static void hold(void)
{
	pthread_mutex_lock(&loading);
}

static void let_go(void)
{
	pthread_mutex_unlock(&loading);
}

static void in_child(void)
{
	pthread_mutex_init(&loading, NULL);
	if (loaded)
		generation++;
	loaded = NULL;
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_atfork(hold, let_go, in_child);
}

bool iw_live(const struct iw_handle *h)
{
	return h->number && h->generation == generation;
}

uint64_t iw_number(const struct iw_handle *h)
{
	return iw_live(h) ? h->number : 0;
}

struct iw_handle iw_handle(uint64_t number)
{
	return (struct iw_handle){number, generation};
}

/* The libraries are among those of the program, or of a module that it has loaded, as UCX and libfabric do: then only who asks for them
 * by name finds them. */
static void *in_module(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	return handle ? iw_dlsym(handle, name) : NULL;
}

/* Before glibc 2.36 RTLD_NEXT finds the oldest version of a function, whose structures differ. A library's own handle finds the present one. */
void *iw_libc(const char *name)
{
	return in_module("libc.so.6", name);
}

void *iw_real(const char *name)
{
	void *f = in_module("libibverbs.so.1", name);
	if (!f)
		f = in_module("librdmacm.so.1", name);
	if (!f)
		f = iw_dlsym(RTLD_NEXT, name);
	if (!f)
		give_up("no other library has", name);
	return f;
}
