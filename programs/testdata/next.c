/* A program and two libraries that each define who: what comes after the first library in the order of libraries is the second. Compiled with LAYER 0
 * it is the program, and prints "next: ok"; with 1 and 2 it is these libraries. */
#include <dlfcn.h>
#include <stdio.h>

typedef int (*teller)(void);

#if LAYER
int who(void)
{
	return LAYER;
}
#endif

#if LAYER == 1
int who_is_next(void)
{
	return ((teller)dlsym(RTLD_NEXT, "who"))();
}
#elif LAYER == 0
int who(void);
int who_is_next(void);

int main(void)
{
	int first = who(), next = who_is_next(), by_default = ((teller)dlsym(RTLD_DEFAULT, "who"))();
	if (first != 1 || next != 2 || by_default != 1)
		return printf("first %d, next %d, by default %d\n", first, next, by_default), 1;
	puts("next: ok");
	return 0;
}
#endif
