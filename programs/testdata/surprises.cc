// What a program may do that is none of ours: C++ with threads and exceptions, a seccomp filter, and dlclose.
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <rdma/rdma_cma.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

static void check(bool ok, const char *what) {
	if (!ok) throw std::runtime_error(what);
}

// refuse_ptrace has the kernel refuse ptrace to this process, as containers do.
static void refuse_ptrace() {
	sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	sock_fprog program{sizeof filter / sizeof *filter, filter};
	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
	check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
	check(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == -1 && errno == EPERM, "ptrace is refused");
}

// in_a_thread registers memory again and again, and has an exception of its own.
static void in_a_thread(ibv_device *device, bool *done) {
	std::unique_ptr<ibv_context, int (*)(ibv_context *)> context(ibv_open_device(device), ibv_close_device);
	try {
		for (int i = 0; context && i < 500; i++) {
			std::vector<char> memory(4096);
			std::unique_ptr<ibv_pd, int (*)(ibv_pd *)> pd(ibv_alloc_pd(context.get()), ibv_dealloc_pd);
			check(pd != nullptr, "a protection domain");
			std::unique_ptr<ibv_mr, int (*)(ibv_mr *)> mr(ibv_reg_mr(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE), ibv_dereg_mr);
			check(mr != nullptr, "a region");
		}
		throw std::logic_error("thrown in a thread");
	} catch (const std::logic_error &) {
		*done = context != nullptr;
	} catch (const std::runtime_error &e) {
		std::fprintf(stderr, "%s\n", e.what());
	}
}

static void run() {
	refuse_ptrace();
	int n = 0;
	std::unique_ptr<ibv_device *, void (*)(ibv_device **)> devices(ibv_get_device_list(&n), ibv_free_device_list);
	check(n > 0, "there is a device");
	bool done[4] = {};
	std::vector<std::thread> threads;
	for (bool &d : done) threads.emplace_back(in_a_thread, devices.get()[0], &d);
	for (auto &t : threads) t.join();
	for (bool d : done) check(d, "a thread has come to its end");
	void *library = dlopen("librdmacm.so.1", RTLD_NOW);
	check(library && dlclose(library) == 0, "dlclose");
	rdma_event_channel *channel = rdma_create_event_channel();
	check(channel != nullptr, "an event channel after dlclose");
	rdma_destroy_event_channel(channel);
}

int main() {
	try {
		run();
	} catch (const std::exception &e) {
		std::fprintf(stderr, "%s\n", e.what());
		return 1;
	}
}
