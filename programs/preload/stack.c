/* An alternate stack for each thread that comes to the engine, unless the program has given it one. Go would give the thread one of its own, for
 * good: too small for what some handlers of the program's need, which would overwrite what lies below it, as nothing guards its end. */
#include "objects.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 8 << 20 }; /* as much as the stack of a program has as a rule: no memory until it is used */

__thread bool iw_has_stack;

static int (*real)(const stack_t *, stack_t *);
static pthread_key_t key;
static size_t guard;
static __thread bool ending; /* the thread does, and the engine is done with it */

/* Early, as dlsym may not be called in a handler, where sigaltstack may; but constructors of other libraries may come earlier. */
static void find(void)
{
	if (!real)
		real = (typeof(real))dlsym(RTLD_NEXT, "sigaltstack");
}

/* At the end of the thread. The engine has a destructor of its own, for which the stack is kept: it runs in the first round. */
static void release(void *mapping)
{
	stack_t now, none = {.ss_flags = SS_DISABLE};
	if (!ending) {
		ending = true;
		pthread_setspecific(key, mapping);
		return;
	}
	if (!real(NULL, &now) && now.ss_sp == (char *)mapping + guard && real(&none, NULL))
		return; /* it is in use: the thread ends within a handler */
	munmap(mapping, guard + SIZE);
	ending = iw_has_stack = false;
}

__attribute__((constructor)) static void prepare(void)
{
	find();
	guard = sysconf(_SC_PAGESIZE);
	if (pthread_key_create(&key, release))
		abort();
}

static char *map(void)
{
	char *mapping = mmap(NULL, guard + SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (mapping == MAP_FAILED)
		return NULL;
	if (mprotect(mapping, guard, PROT_NONE) || pthread_setspecific(key, mapping)) {
		munmap(mapping, guard + SIZE);
		return NULL;
	}
	return mapping;
}

/* Where there is no memory for it, it is Go's. */
void iw_give_stack(void)
{
	stack_t now;
	iw_has_stack = true;
	if (real(NULL, &now) || !(now.ss_flags & SS_DISABLE))
		return;
	char *mapping = pthread_getspecific(key);
	if (!mapping)
		mapping = map();
	if (mapping)
		real(&(stack_t){.ss_sp = mapping + guard, .ss_size = SIZE}, NULL);
}

/* The program's own may come later, and go again. */
EXPORT int sigaltstack(const stack_t *stack, stack_t *old)
{
	find();
	if (stack)
		iw_has_stack = false;
	return real(stack, old);
}
