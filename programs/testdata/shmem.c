/* Processes of OpenSHMEM that put into each other's memory, get it back, and count and swap in one place. Prints "shmem: right". */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20000, TURNS = 50 };

static long counter, swapped, bad, all, work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long sync_sum[SHMEM_REDUCE_SYNC_SIZE];

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

static void count(int n)
{
	for (int i = 0; i < TURNS; i++) {
		shmem_long_atomic_inc(&counter, n - 1);
		shmem_long_atomic_fetch_add(&counter, 2, 0);
		while (shmem_long_atomic_compare_swap(&swapped, i, i + 1, 0) < i)
			;
	}
}

int main(void)
{
	long *mine = malloc(COUNT * sizeof *mine), *back = malloc(COUNT * sizeof *back);
	for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
		sync_sum[i] = SHMEM_SYNC_VALUE;
	shmem_init();
	int me = shmem_my_pe(), n = shmem_n_pes();
	long *memory = shmem_malloc((size_t)n * COUNT * sizeof *memory);
	for (int i = 0; i < COUNT; i++)
		mine[i] = value(me, i);
	shmem_barrier_all();
	for (int to = 0; to < n; to++)
		shmem_long_put(memory + (size_t)me * COUNT, mine, COUNT, to);
	shmem_barrier_all();
	for (int of = 0; of < n; of++)
		bad += wrong(memory + (size_t)of * COUNT, of);
	shmem_long_get(back, memory + (size_t)me * COUNT, COUNT, (me + 1) % n);
	bad += wrong(back, me);
	count(n);
	shmem_barrier_all();
	bad += counter != (me == n - 1) * (long)TURNS * n + (me == 0) * 2L * TURNS * n;
	bad += me == 0 && swapped != TURNS;
	shmem_long_sum_to_all(&all, &bad, 1, 0, 0, n, work, sync_sum);
	if (me == 0)
		printf("shmem: %s\n", all ? "wrong" : "right");
	fflush(stdout);
	shmem_global_exit(all != 0); /* shmem_finalize of Open MPI 4.1.4 crashes with any transport of UCX */
}
