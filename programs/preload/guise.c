/* What the device passes for: what IWARP_AS says, or else what the program needs, by its name and arguments. Programs refuse iWARP, or want it:
 * docs/programs.md has which and why. Each process chooses for itself, also those that a shell or timeout starts. */
#include "objects.h"

#include <ctype.h>

/* They connect QPs by themselves. */
static const char *const connecting[] = {"ibv_rc_pingpong", "ibv_srq_pingpong", "ibv_ud_pingpong", "ucx_info", "ucx_perftest", NULL};
/* So do these, unless they are told to use librdmacm. */
static const char *const perftest[] = {"ib_write_bw", "ib_write_lat", "ib_send_bw", "ib_send_lat", "ib_read_bw", "ib_read_lat", "ib_atomic_bw",
	"ib_atomic_lat", NULL};
/* They free what a connection had when they hear RoCE's event of the end of its time-wait state. */
static const char *const waiting[] = {"tgtd", NULL};
/* They start programs of MPI and OpenSHMEM, by whatever name, which connect QPs by themselves. */
static const char *const launching[] = {"mpirun", "mpirun.openmpi", "mpirun.mpich", "mpiexec", "mpiexec.hydra", "mpiexec.openmpi", "mpiexec.mpich",
	"orterun", "oshrun", "shmemrun", NULL};

static bool among(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name))
		names++;
	return *names;
}

/* An option of perftest: --rdma_cm, or an R among short ones. */
static bool uses_cm(const char *option)
{
	const char *end = *option ? option + 1 : option;
	if (!strcmp(option, "--rdma_cm"))
		return true;
	while (isalpha((unsigned char)*end))
		end++;
	return *option == '-' && !*end && strchr(option, 'R');
}

static bool connects(char **argv)
{
	if (!among(perftest, program_invocation_short_name))
		return among(connecting, program_invocation_short_name);
	while (*argv && !uses_cm(*argv))
		argv++;
	return !*argv;
}

/* The engine complains of an IWARP_AS that it does not know. */
bool iw_passes_for_roce(char **argv)
{
	const char *as = getenv("IWARP_AS");
	if (as && *as)
		return !strcmp(as, "roce");
	if (!among(launching, program_invocation_short_name))
		return among(waiting, program_invocation_short_name) || connects(argv);
	setenv("IWARP_AS", "roce", 1);
	return true;
}
