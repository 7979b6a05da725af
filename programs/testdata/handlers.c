/* A handler of the program's runs on the program's stack, or on an alternate one, also while the thread is in the library: never on a small stack
 * of Go's, where what it writes would be another's. That it is so however the handler was installed, and before or after the library is in use,
 * that handlers are left alone until then, and that each of these functions is otherwise what libc has. */
#define _GNU_SOURCE
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

typedef void (*handler)(int);
extern handler __sysv_signal(int, handler), bsd_signal(int, handler);
extern int __sigaction(int, const struct sigaction *, struct sigaction *);

enum { ROUNDS = 50000 };

static char *own; /* of main */
static volatile int came, on_another, blocked;
static int loaded; /* the library is in use */

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static void handle(int signum)
{
	volatile char room[16384]; /* more than printf takes */
	stack_t s;
	sigset_t mask;
	memset((void *)room, 0x5a, sizeof room);
	sigaltstack(NULL, &s);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	blocked = sigismember(&mask, signum);
	came++;
	if (!(s.ss_flags & SS_ONSTACK) && labs((char *)room - own) > 1 << 20)
		on_another++;
}

/* The flags of a handler that was installed, which takes one signal. */
static int flags(const char *what, handler before)
{
	struct sigaction now;
	check(before == SIG_DFL, what);
	check(!sigaction(SIGUSR1, NULL, &now) && now.sa_handler == handle, what);
	came = 0;
	raise(SIGUSR1);
	check(came == 1 && !!(now.sa_flags & SA_ONSTACK) == loaded, what);
	struct sigaction after;
	check(!sigaction(SIGUSR1, NULL, &after) && (after.sa_handler == SIG_DFL) == !!(now.sa_flags & SA_RESETHAND), what);
	check(blocked == !(now.sa_flags & SA_NODEFER), what);
	signal(SIGUSR1, SIG_DFL);
	return now.sa_flags & (SA_RESTART | SA_RESETHAND | SA_NODEFER);
}

static void each(void)
{
	struct sigaction with = {.sa_handler = handle}, old;
	check(!sigaction(SIGUSR1, &with, &old), "sigaction");
	check(flags("sigaction", old.sa_handler) == 0, "flags of sigaction");
	check(!__sigaction(SIGUSR1, &with, &old), "__sigaction");
	check(flags("__sigaction", old.sa_handler) == 0, "flags of __sigaction");
	check(flags("signal", signal(SIGUSR1, handle)) == SA_RESTART, "flags of signal");
	check(flags("bsd_signal", bsd_signal(SIGUSR1, handle)) == SA_RESTART, "flags of bsd_signal");
	check(flags("ssignal", ssignal(SIGUSR1, handle)) == SA_RESTART, "flags of ssignal");
	check(flags("sysv_signal", sysv_signal(SIGUSR1, handle)) == (int)(SA_RESETHAND | SA_NODEFER), "flags of sysv_signal");
	check(flags("__sysv_signal", __sysv_signal(SIGUSR1, handle)) == (int)(SA_RESETHAND | SA_NODEFER), "flags of __sysv_signal");
	check(flags("sigset", sigset(SIGUSR1, handle)) == 0, "flags of sigset");
	check(!siginterrupt(SIGUSR1, 1), "siginterrupt");
	check(flags("signal", signal(SIGUSR1, handle)) == 0, "flags after siginterrupt");
	check(!siginterrupt(SIGUSR1, 0), "siginterrupt");
	check(flags("signal", signal(SIGUSR1, handle)) == SA_RESTART, "flags after siginterrupt");
	check(sigset(SIGUSR1, SIG_HOLD) == SIG_DFL, "SIG_HOLD");
	check(sigset(SIGUSR1, handle) == SIG_HOLD, "sigset of what is blocked");
	check(flags("sigset", SIG_DFL) == 0, "flags of sigset");
	check(signal(0, handle) == SIG_ERR && signal(NSIG, handle) == SIG_ERR && signal(SIGKILL, handle) == SIG_ERR && signal(SIGUSR1, SIG_ERR) == SIG_ERR, "signals that there are not");
	signal(SIGUSR1, SIG_IGN);
	check(!sigaction(SIGUSR1, NULL, &old) && old.sa_handler == SIG_IGN && !(old.sa_flags & SA_ONSTACK), "SIG_IGN");
	signal(SIGUSR1, SIG_DFL);
}

int main(void)
{
	own = __builtin_frame_address(0);
	each();
	struct sigaction now;
	check(signal(SIGUSR2, handle) == SIG_DFL, "signal");
	struct ibv_device **list = ibv_get_device_list(NULL);
	check(list && list[0], "ibv_get_device_list");
	struct ibv_context *context = ibv_open_device(list[0]);
	check(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	check(pd != NULL, "ibv_alloc_pd");
	loaded = 1;
	each();
	check(!sigaction(SIGUSR2, NULL, &now) && now.sa_handler == handle && now.sa_flags & SA_ONSTACK, "a handler that was there before");

	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {0};
	static char memory[4096];
	check(signal(SIGALRM, handle) == SIG_DFL, "signal");
	came = 0;
	check(!setitimer(ITIMER_REAL, &often, NULL), "setitimer");
	for (int i = 0; i < ROUNDS || came < 10; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
		check(mr && !ibv_dereg_mr(mr), "ibv_reg_mr, ibv_dereg_mr");
	}
	check(!setitimer(ITIMER_REAL, &never, NULL), "setitimer");
	printf("%d signals, %d on another stack\n", came, on_another);
	return on_another != 0;
}
