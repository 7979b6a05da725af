// Messages over libtensorpipe, which opens libibverbs by name and connects Queue Pairs by itself: one that listens sends back what it gets. Arguments: the port of
// a server, or the port and the address of a client, which prints "tensorpipe: right".
#include <tensorpipe/tensorpipe.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>

using namespace tensorpipe;

enum { MESSAGES = 20, LARGEST = 3 << 20 };

static void check(const Error &error)
{
	if (error) {
		fprintf(stderr, "%s\n", error.what().c_str());
		exit(1);
	}
}

static std::string content(int i)
{
	std::string s(1 + i * (size_t)LARGEST / MESSAGES, 0);
	for (size_t at = 0; at < s.size(); at++)
		s[at] = at * 7 + (at >> 12) + i;
	return s;
}

static void await(const std::function<void(std::function<void(const Error &)>)> &begin)
{
	std::promise<void> done;
	begin([&](const Error &error) {
		check(error);
		done.set_value();
	});
	done.get_future().get();
}

static void send(Pipe &pipe, std::string &data)
{
	await([&](std::function<void(const Error &)> done) {
		Message m;
		Message::Tensor tensor;
		m.payloads = {{&data[0], data.size() / 2, ""}};
		tensor.buffer = CpuBuffer{&data[data.size() / 2]};
		tensor.length = data.size() - data.size() / 2;
		m.tensors.push_back(tensor);
		pipe.write(m, done);
	});
}

static std::string receive(Pipe &pipe)
{
	std::promise<Descriptor> described;
	pipe.readDescriptor([&](const Error &error, Descriptor d) {
		check(error);
		described.set_value(d);
	});
	Descriptor d = described.get_future().get();
	std::string data(d.payloads[0].length + d.tensors[0].length, 0);
	await([&](std::function<void(const Error &)> done) {
		Allocation a;
		a.payloads = {{&data[0]}};
		a.tensors = {{CpuBuffer{&data[d.payloads[0].length]}}};
		pipe.read(a, done);
	});
	return data;
}

static void serve(Context &context, const std::string &url)
{
	std::promise<std::shared_ptr<Pipe>> accepted;
	auto listener = context.listen({url});
	printf("listening\n");
	fflush(stdout);
	listener->accept([&](const Error &error, std::shared_ptr<Pipe> pipe) {
		check(error);
		accepted.set_value(pipe);
	});
	auto pipe = accepted.get_future().get();
	for (int i = 0; i < MESSAGES; i++) {
		std::string data = receive(*pipe);
		send(*pipe, data);
	}
	// What was sent last may be lost if this end goes first: libtensorpipe closes its socket and its Queue Pair in no order.
	std::promise<void> left;
	pipe->readDescriptor([&](const Error &, Descriptor) { left.set_value(); });
	left.get_future().get();
}

static bool ask(Context &context, const std::string &url)
{
	auto pipe = context.connect(url);
	bool right = true;
	for (int i = 0; i < MESSAGES; i++) {
		std::string data = content(i);
		send(*pipe, data);
		right &= receive(*pipe) == content(i);
	}
	return right;
}

int main(int argc, char **argv)
{
	Context context;
	auto verbs = transport::ibv::create();
	if (argc < 2 || !verbs->isViable()) {
		fprintf(stderr, "no device\n");
		return 1;
	}
	context.registerTransport(0, "ibv", verbs);
	context.registerChannel(0, "basic", channel::basic::create());
	std::string url = std::string("ibv://") + (argc > 2 ? argv[2] : "0.0.0.0") + ":" + argv[1];
	bool right = true;
	if (argc > 2)
		printf("tensorpipe: %s\n", (right = ask(context, url)) ? "right" : "wrong");
	else
		serve(context, url);
	context.join();
	return !right;
}
