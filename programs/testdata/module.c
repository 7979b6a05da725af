/* A program that loads a module as Valkey does, which is linked to libibverbs: the module has the device. Compiled with MODULE it is the module.
 * Otherwise it is the program, whose argument is the module's file, and it prints "module: ok". */
#ifdef MODULE
#include <infiniband/verbs.h>

const char *first_device(void)
{
	struct ibv_device **all = ibv_get_device_list(0);
	return all && all[0] ? ibv_get_device_name(all[0]) : "none";
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!module)
		return puts(dlerror()), 1;
	const char *(*first)(void) = (const char *(*)(void))dlsym(module, "first_device");
	if (strcmp(first(), "iwarp0"))
		return puts(first()), 1;
	puts("module: ok");
	return 0;
}
#endif
