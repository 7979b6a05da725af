// Processes that add up by gloo over verbs, and hear each other. Arguments: rank, number of processes, a directory to meet in. Rank 0 prints "gloo: right".
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

enum { TURNS = 20 };

static int wrong(const std::vector<long> &v, int size, int turn)
{
	int n = 0;
	for (size_t i = 0; i < v.size(); i++)
		n += v[i] != size * ((long)i + turn) + size * (size - 1) / 2;
	return n;
}

static void fill(std::vector<long> &v, int rank, int turn)
{
	for (size_t i = 0; i < v.size(); i++)
		v[i] = (long)i + turn + rank;
}

static std::shared_ptr<gloo::Context> meet(int rank, int size, const char *directory)
{
	gloo::transport::ibverbs::attr attr;
	attr.name = "iwarp0";
	attr.port = 1;
	attr.index = 0;
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	gloo::rendezvous::FileStore store(directory);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
	context->connectFullMesh(store, device);
	return context;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	int rank = atoi(argv[1]), size = atoi(argv[2]), bad = 0;
	auto context = meet(rank, size, argv[3]);
	for (size_t count : {1, 1000, 300000}) {
		std::vector<long> v(count);
		// What it has sent last may not be complete when it is done, and it is not to be destroyed before that.
		auto sum = new gloo::AllreduceRingChunked<long>(context, {v.data()}, count);
		for (int turn = 0; turn < TURNS; turn++) {
			fill(v, rank, turn);
			sum->run();
			bad += wrong(v, size, turn);
		}
		(new gloo::BarrierAllToAll(context))->run();
	}
	if (rank == 0)
		printf("gloo: %s\n", bad ? "wrong" : "right");
	fflush(stdout);
	usleep(300000);
	_exit(bad != 0);
}
