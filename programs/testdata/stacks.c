/* A handler of the program's that needs much stack has it in a thread that has used the library, and one that needs more ends the program in place of
 * overwriting what is another's. The stacks go with their threads, and the program's own, while it has one, is left alone. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MUCH = 6 << 20, TOO_MUCH = 9 << 20, THREADS = 500, OWN = 1 << 16 };

static volatile size_t taken;

static void handle(int signum)
{
	volatile char room[taken];
	for (size_t i = 0; i < taken; i += 1024)
		room[taken - 1 - i] = 0x5a; /* as a stack grows */
	taken = 0;
}

static void take(size_t size)
{
	taken = size;
	check(!raise(SIGUSR1) && taken == 0, "a handler");
}

static void use(void)
{
	static char memory[4096];
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
	check(mr && !ibv_dereg_mr(mr), "ibv_reg_mr, ibv_dereg_mr");
}

static stack_t stack(void)
{
	stack_t now;
	check(!sigaltstack(NULL, &now), "sigaltstack");
	return now;
}

static void *thread(void *unused)
{
	use();
	take(MUCH);
	use();
	return NULL;
}

/* Kilobytes of memory that is mapped. */
static long mapped(void)
{
	long pages;
	FILE *f = fopen("/proc/self/statm", "r");
	check(f && fscanf(f, "%ld", &pages) == 1, "statm");
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) >> 10);
}

static void threads(int n)
{
	for (int i = 0; i < n; i++) {
		pthread_t t;
		check(!pthread_create(&t, NULL, thread, NULL) && !pthread_join(t, NULL), "a thread");
	}
}

static void overflow(void)
{
	int status;
	pid_t child = fork();
	check(child >= 0, "fork");
	if (!child) {
		take(TOO_MUCH);
		_exit(0);
	}
	check(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "a handler that needs too much");
}

/* The program's own comes, and goes. */
static void own(void)
{
	static char memory[OWN];
	check(!sigaltstack(&(stack_t){.ss_sp = memory, .ss_size = OWN}, NULL), "sigaltstack");
	use();
	check(stack().ss_sp == memory, "the program's own stack");
	check(!sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL), "sigaltstack");
	check(stack().ss_flags & SS_DISABLE, "no stack");
	use();
	check(!(stack().ss_flags & SS_DISABLE), "a stack of the library's");
	take(MUCH);
}

int main(void)
{
	check(signal(SIGUSR1, handle) == SIG_DFL, "signal");
	open_device();
	take(MUCH);
	overflow();
	own();
	threads(20);
	long before = mapped();
	threads(THREADS);
	long more = mapped() - before;
	printf("%ld KiB more after %d threads\n", more, THREADS);
	check(more < 100 << 10, "the stacks of threads that have ended");
	close_device();
	return 0;
}
