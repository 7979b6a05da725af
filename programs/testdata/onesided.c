/* Processes of MPI's that put into each other's memory, get it back, and add to one counter, without the owner's part. Prints "onesided: right". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20000, TURNS = 10 };

static long value(int of, int i)
{
	return of * 1000003L + i;
}

static int wrong(const long *block, int of)
{
	int n = 0;
	for (int i = 0; i < COUNT; i++)
		n += block[i] != value(of, i);
	return n;
}

int main(int argc, char **argv)
{
	int me, n, bad = 0, all;
	long *memory, *mine = malloc(COUNT * sizeof *mine), *back = malloc(COUNT * sizeof *back), one = 1;
	MPI_Win window;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	memory = calloc(n * COUNT + 1L, sizeof *memory);
	MPI_Win_create(memory, (n * COUNT + 1L) * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	for (int i = 0; i < COUNT; i++)
		mine[i] = value(me, i);
	MPI_Win_fence(0, window);
	for (int to = 0; to < n; to++)
		MPI_Put(mine, COUNT, MPI_LONG, to, (MPI_Aint)me * COUNT, COUNT, MPI_LONG, window);
	MPI_Win_fence(0, window);
	for (int of = 0; of < n; of++)
		bad += wrong(memory + of * COUNT, of);
	MPI_Get(back, COUNT, MPI_LONG, (me + 1) % n, (MPI_Aint)me * COUNT, COUNT, MPI_LONG, window);
	MPI_Win_fence(0, window);
	bad += wrong(back, me);
	for (int i = 0; i < TURNS; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		MPI_Accumulate(&one, 1, MPI_LONG, 0, (MPI_Aint)n * COUNT, 1, MPI_LONG, MPI_SUM, window);
		MPI_Win_unlock(0, window);
	}
	MPI_Win_fence(0, window);
	bad += me == 0 && memory[n * COUNT] != (long)TURNS * n;
	MPI_Reduce(&bad, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (me == 0)
		printf("onesided: %s\n", all ? "wrong" : "right");
	MPI_Win_free(&window);
	MPI_Finalize();
	return bad != 0;
}
