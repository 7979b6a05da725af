/* Messages of several lengths go round a ring of MPI's processes, and numbers are added up over all of them. Every byte and every sum is
 * compared. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, n;

static void check(int right, const char *what)
{
	if (right)
		return;
	printf("process %d: %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void send_on(unsigned char *bytes, int size)
{
	MPI_Send(bytes, size, MPI_BYTE, (rank + 1) % n, 0, MPI_COMM_WORLD);
}

static void receive(unsigned char *bytes, int size)
{
	memset(bytes, 0, size);
	MPI_Recv(bytes, size, MPI_BYTE, (rank + n - 1) % n, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < size; i++)
		check(bytes[i] == (i + size) % 251, "a message that went round");
}

static void ring(int size)
{
	unsigned char *bytes = malloc(size);
	for (int i = 0; i < size; i++)
		bytes[i] = (i + size) % 251;
	if (rank == 0)
		send_on(bytes, size);
	receive(bytes, size);
	if (rank != 0)
		send_on(bytes, size);
	free(bytes);
}

static void add(int count)
{
	long *mine = malloc(count * sizeof *mine), *sums = malloc(count * sizeof *sums);
	for (int i = 0; i < count; i++)
		mine[i] = 1000L * rank + i;
	MPI_Allreduce(mine, sums, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < count; i++)
		check(sums[i] == 1000L * n * (n - 1) / 2 + (long)n * i, "a sum");
	free(mine);
	free(sums);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (int size = 1; size <= 1 << 20; size *= 32)
		for (int round = 0; round < 10; round++)
			ring(size);
	for (int count = 1; count <= 100000; count *= 10)
		add(count);
	if (rank == 0)
		printf("ring of %d: right\n", n);
	MPI_Finalize();
	return 0;
}
