/* A process forks while another of its threads is in the first call, which loads the engine: the child has one of its own. And that call leaves
 * the limits of the process as they were. Prints "first: ok". It is compiled with pair.h. */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 200 };

static void *first(void *unused)
{
	check((pd = ibv_alloc_pd(context)) != NULL, "ibv_alloc_pd");
	return NULL;
}

/* Returns when the engine's file is in memory: it takes some milliseconds more until the engine is there. */
static void await_load(void)
{
	for (int found = 0; !found;) {
		char line[4352];
		FILE *maps = fopen("/proc/self/maps", "r");
		check(maps != NULL, "/proc/self/maps");
		while (fgets(line, sizeof line, maps))
			found |= strstr(line, "libiwarp-engine.so") != NULL;
		fclose(maps);
	}
}

static void limited(const char *whose)
{
	struct rlimit r;
	check(!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur == LIMIT, whose);
}

static void child(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		exit(1);
	first(NULL);
	limited("the limit of a child that has used verbs");
	exit(0);
}

int main(void)
{
	struct rlimit r;
	check(!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_max > LIMIT, "getrlimit");
	r.rlim_cur = LIMIT;
	check(!setrlimit(RLIMIT_NOFILE, &r), "setrlimit");
	struct ibv_device **list = ibv_get_device_list(NULL);
	check((context = ibv_open_device(list[0])) != NULL, "ibv_open_device");
	ibv_free_device_list(list);

	pid_t parent = getpid();
	pthread_t thread;
	check(!pthread_create(&thread, NULL, first, NULL), "pthread_create");
	await_load();
	pid_t pid = fork();
	if (pid == 0)
		child(parent);
	int status;
	check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a child of a fork beside the first call");
	check(!pthread_join(thread, NULL), "pthread_join");
	limited("the limit after the first call");
	close_device();
	puts("first: ok");
	return 0;
}
