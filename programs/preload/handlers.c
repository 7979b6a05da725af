/* A program's handler of a signal must not run on a stack of the engine's: Go's are as small as what runs on them needs, and what the kernel
 * and the handler put there would overwrite what lies below. While a thread is in the engine it has an alternate stack, which handlers
 * with SA_ONSTACK take; where there is none the flag does nothing. So each handler gets it, however it is installed: those that are there when Go
 * is loaded get it of Go, and those that come later here. A program that does not come to the engine has its handlers as it installs them. */
#include "objects.h"

#include <dlfcn.h>
#include <signal.h>

typedef void (*handler)(int);

static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);
static uint64_t interrupting; /* bits of the signals that siginterrupt was told of */

/* Early, as dlsym may not be called in a handler, where sigaction may; but constructors of other libraries may come earlier. */
__attribute__((constructor)) static void find(void)
{
	if (!real_sigaction)
		real_sigaction = (typeof(real_sigaction))dlsym(RTLD_NEXT, "sigaction");
}

EXPORT int sigaction(int signum, const struct sigaction *act, struct sigaction *old)
{
	find();
	if (!act || act->sa_handler == SIG_DFL || act->sa_handler == SIG_IGN)
		return real_sigaction(signum, act, old);
	struct sigaction with = *act;
	if (!iw_loading()) {
		int failed = real_sigaction(signum, act, old);
		if (failed || !iw_loading())
			return failed;
		old = NULL; /* Go has come meanwhile, and may not have seen it */
	}
	with.sa_flags |= SA_ONSTACK;
	return real_sigaction(signum, &with, old);
}

EXPORT int __sigaction(int signum, const struct sigaction *act, struct sigaction *old)
{
	return sigaction(signum, act, old);
}

static uint64_t bit(int signum)
{
	return 1ull << (signum - 1);
}

static handler install(int signum, handler h, struct sigaction *with)
{
	struct sigaction old;
	if (h == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	with->sa_handler = h;
	return sigaction(signum, with, &old) ? SIG_ERR : old.sa_handler;
}

/* As of BSD: the handler stays, the signal is blocked in it, and calls are restarted, unless siginterrupt has said otherwise. */
EXPORT handler signal(int signum, handler h)
{
	struct sigaction with = {0};
	if (signum < 1 || signum >= NSIG) {
		errno = EINVAL;
		return SIG_ERR;
	}
	sigaddset(&with.sa_mask, signum);
	if (!(__atomic_load_n(&interrupting, __ATOMIC_RELAXED) & bit(signum)))
		with.sa_flags = SA_RESTART;
	return install(signum, h, &with);
}

EXPORT handler bsd_signal(int signum, handler h)
{
	return signal(signum, h);
}

EXPORT handler ssignal(int signum, handler h)
{
	return signal(signum, h);
}

EXPORT int siginterrupt(int signum, int interrupt)
{
	static int (*real)(int, int);
	if (!real)
		real = (typeof(real))dlsym(RTLD_NEXT, "siginterrupt");
	if (real(signum, interrupt))
		return -1;
	if (interrupt)
		__atomic_or_fetch(&interrupting, bit(signum), __ATOMIC_RELAXED);
	else
		__atomic_and_fetch(&interrupting, ~bit(signum), __ATOMIC_RELAXED);
	return 0;
}

/* As of System V: the handler goes with the first signal, which is not blocked in it, and calls are interrupted. */
EXPORT handler sysv_signal(int signum, handler h)
{
	struct sigaction with = {.sa_flags = SA_RESETHAND | SA_NODEFER};
	return install(signum, h, &with);
}

EXPORT handler __sysv_signal(int signum, handler h)
{
	return sysv_signal(signum, h);
}

/* sigset tells whether the signal was blocked, and unblocks it, unless it is to be blocked: what is no handler is libc's affair. */
EXPORT handler sigset(int signum, handler h)
{
	static handler (*real)(int, handler);
	if (!real)
		real = (typeof(real))dlsym(RTLD_NEXT, "sigset");
	if (h == SIG_HOLD || h == SIG_DFL || h == SIG_IGN || h == SIG_ERR)
		return real(signum, h);
	struct sigaction with = {0};
	sigset_t only, before;
	handler old = install(signum, h, &with);
	sigemptyset(&only);
	sigaddset(&only, signum);
	if (old == SIG_ERR || sigprocmask(SIG_UNBLOCK, &only, &before))
		return SIG_ERR;
	return sigismember(&before, signum) ? SIG_HOLD : old;
}
