/* For programs that do the same many times: neither memory nor descriptors grow. */
#include <dirent.h>
#include <malloc.h>

static inline int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Does something n times. What is kept for a while is kept when it was done often enough before; of descriptors a few may be more. */
static inline void steady(void (*once)(void), int before, int n, int few)
{
	for (int i = 0; i < before; i++)
		once();
	size_t memory = mallinfo2().uordblks;
	int open = descriptors();
	for (int i = 0; i < n; i++)
		once();
	size_t more = mallinfo2().uordblks;
	printf("%zu bytes, and %zu after %d more; %d descriptors, and %d\n", memory, more, n, open, descriptors());
	check(more < memory + (64 << 10), "memory");
	check(descriptors() < open + few, "descriptors");
}
