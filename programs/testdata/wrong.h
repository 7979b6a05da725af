/* For programs that do things wrong. */
#include <errno.h>

static int failed;

#define WRONG(call, number)                                                                            \
	do {                                                                                           \
		int got = (call);                                                                      \
		if (got != (number)) {                                                                 \
			fprintf(stderr, "line %d: %s is %d, want %d\n", __LINE__, #call, got, number); \
			failed = 1;                                                                    \
		}                                                                                      \
	} while (0)
/* Of functions that return a pointer, or -1, and set errno. */
#define FAILS(is, call) (errno = 0, (call) == (is) ? errno : -1)
