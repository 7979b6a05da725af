/* Prints what the device passes for. With "exec" and a command as arguments it executes that, as what starts programs does. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "exec"))
		return execvp(argv[2], argv + 2);
	struct ibv_device **list = ibv_get_device_list(NULL);
	puts(list[0]->transport_type == IBV_TRANSPORT_IB ? "roce" : "iwarp");
	ibv_free_device_list(list);
	return 0;
}
