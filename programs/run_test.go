//go:build linux && interposer

package programs

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A pairing is a program that is run at both ends of a connection. PORT stands for its port, and HOST for an address that is not
// loopback.
type pairing struct {
	pkg            string // of Debian, that has it
	server, client string
	verified       string // what is known of the data
	endless        bool   // the server goes on for ever
	says           string // what the client prints, at least
}

const (
	compared  = "compared byte by byte"
	completed = "completions only"
	atomics   = "results of atomics compared"
	rate      = "rates only"
)

// pairings are the programs that are shown to run, unmodified.
var pairings = []pairing{
	{"rdmacm-utils", "rping -s -a 127.0.0.1 -p PORT -C 20 -V", "rping -c -a 127.0.0.1 -p PORT -C 20 -V -v", compared, false, "rdma-ping-19:"},
	{"rdmacm-utils", "rping -s -a 127.0.0.1 -p PORT -P", "rping -c -a 127.0.0.1 -p PORT -C 20 -V -S 60000", compared, true, ""},
	{"rdmacm-utils", "ucmatose -b 127.0.0.1 -p PORT -c 5", "ucmatose -s 127.0.0.1 -p PORT -c 5", completed, false, "return status 0"},
	{"rdmacm-utils", "ucmatose -b 127.0.0.1 -p PORT -c 5 -m", "ucmatose -s 127.0.0.1 -p PORT -c 5 -m", completed, false, "return status 0"},
	{"rdmacm-utils", "rdma_server -p PORT", "rdma_client -s 127.0.0.1 -p PORT", completed, false, "rdma_client: end 0"},
	{"rdmacm-utils", "rdma_xserver -p PORT", "rdma_xclient -s 127.0.0.1 -p PORT", completed, false, "rdma_xclient: end 0"},
	{"rdmacm-utils", "cmtime -b 127.0.0.1 -p PORT", "cmtime -s 127.0.0.1 -p PORT -c 50", completed, true, "connect"},
	{"rdmacm-utils", "rstream -p PORT -T v -S 65536", "rstream -s 127.0.0.1 -p PORT -T v -S 65536", compared, false, "64k"},
	{"rdmacm-utils", "rstream -p PORT -T v -T b -C 20", "rstream -s 127.0.0.1 -p PORT -T v -T b -C 20", compared, false, "custom"},
	{"rdmacm-utils", "riostream -p PORT -T v -S 65536", "riostream -s 127.0.0.1 -p PORT -T v -S 65536", compared, false, "64k"},
	{"perftest", "ib_write_bw -R -p PORT -a -n 100", "ib_write_bw -R -p PORT -a -n 100 127.0.0.1", rate, false, "8388608"},
	{"perftest", "ib_write_bw -R -p PORT -b -n 500", "ib_write_bw -R -p PORT -b -n 500 127.0.0.1", rate, false, "65536"},
	{"perftest", "ib_write_bw -R -p PORT -q 4 -n 200", "ib_write_bw -R -p PORT -q 4 -n 200 127.0.0.1", rate, false, "65536"},
	{"perftest", "ib_send_bw -R -p PORT -a -n 100", "ib_send_bw -R -p PORT -a -n 100 127.0.0.1", rate, false, "8388608"},
	{"perftest", "ib_read_bw -R -p PORT -e -n 500", "ib_read_bw -R -p PORT -e -n 500 127.0.0.1", rate, false, "65536"},
	{"perftest", "ib_read_bw -R -p PORT -a -n 100", "ib_read_bw -R -p PORT -a -n 100 127.0.0.1", rate, false, "8388608"},
	{"perftest", "ib_atomic_bw -R -p PORT -n 500", "ib_atomic_bw -R -p PORT -n 500 127.0.0.1", rate, false, " 8 "},
	{"perftest", "ib_atomic_lat -R -p PORT -A CMP_AND_SWAP -n 200", "ib_atomic_lat -R -p PORT -A CMP_AND_SWAP -n 200 127.0.0.1", rate, false, "t_typical"},
	{"perftest", "ib_write_lat -R -p PORT -n 200", "ib_write_lat -R -p PORT -n 200 127.0.0.1", rate, false, "t_typical"},
	{"perftest", "ib_write_lat -R -p PORT -a -n 20", "ib_write_lat -R -p PORT -a -n 20 127.0.0.1", rate, false, "8388608"},
	{"perftest", "ib_send_lat -R -p PORT -n 200", "ib_send_lat -R -p PORT -n 200 127.0.0.1", rate, false, "t_typical"},
	{"perftest", "ib_send_lat -R -p PORT -a -n 20", "ib_send_lat -R -p PORT -a -n 20 127.0.0.1", rate, false, "8388608"},
	{"perftest", "ib_send_lat -R -p PORT -e -n 200", "ib_send_lat -R -p PORT -e -n 200 127.0.0.1", rate, false, "t_typical"},
	{"perftest", "ib_read_lat -R -p PORT -a -n 20", "ib_read_lat -R -p PORT -a -n 20 127.0.0.1", rate, false, "8388608"},
	{"perftest", "ib_read_lat -R -p PORT -e -n 200", "ib_read_lat -R -p PORT -e -n 200 127.0.0.1", rate, false, "t_typical"},
	{"qperf", "qperf -lp PORT", "qperf 127.0.0.1 -lp PORT -cm 1 -t 1 rc_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_lat", rate, true, "latency"},
	{"qperf", "qperf -lp PORT", "qperf 127.0.0.1 -lp PORT -cm 1 -t 1 rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr", rate, true, "rc_fetch_add_mr:\n    msg_rate"},
	{"qperf", "qperf -lp PORT", "qperf 127.0.0.1 -lp PORT -cm 1 -t 1 ver_rc_compare_swap ver_rc_fetch_add", atomics, true, "ver_rc_fetch_add:\n    msg_rate"},
	{"fio", fioServer, "fio --name=c --ioengine=rdma --rw=write --hostname=127.0.0.1 --port=PORT --verb=write --bs=64k --size=16m --iodepth=8", rate, false, "err= 0"},
	{"fio", fioServer, "fio --name=c --ioengine=rdma --rw=write --hostname=127.0.0.1 --port=PORT --verb=read --bs=64k --size=16m --iodepth=8", rate, false, "err= 0"},
	{"fio", fioReceiver + " --iodepth=64", fioSender + " --iodepth=1", compared, false, "err= 0"},
}

// directs are programs that connect Queue Pairs by themselves, with the device in the guise of RoCE, and libfabric.
var directs = []pairing{
	{"ibverbs-utils", "ibv_rc_pingpong -p PORT -c -n 300", "ibv_rc_pingpong -p PORT -c -n 300 127.0.0.1", compared, false, "usec/iter"},
	{"ibverbs-utils", "ibv_rc_pingpong -p PORT -c -n 300 -g 0 -e", "ibv_rc_pingpong -p PORT -c -n 300 -g 0 -e 127.0.0.1", compared, false, "usec/iter"},
	{"ibverbs-utils", "ibv_rc_pingpong -p PORT -c -n 50 -g 0 -s 1000000 -r 10", "ibv_rc_pingpong -p PORT -c -n 50 -g 0 -s 1000000 -r 10 127.0.0.1", compared, false, "usec/iter"},
	{"ibverbs-utils", "ibv_srq_pingpong -p PORT -n 300 -g 0", "ibv_srq_pingpong -p PORT -n 300 -g 0 127.0.0.1", completed, false, "usec/iter"},
	{"perftest", "ib_write_bw -p PORT -a -n 100", "ib_write_bw -p PORT -a -n 100 127.0.0.1", rate, false, "8388608"},
	{"perftest", "ib_write_bw -p PORT -b -q 4 -n 200", "ib_write_bw -p PORT -b -q 4 -n 200 127.0.0.1", rate, false, "65536"},
	{"perftest", "ib_send_bw -p PORT -a -n 100", "ib_send_bw -p PORT -a -n 100 127.0.0.1", rate, false, "8388608"},
	{"perftest", "ib_send_bw -p PORT -e -n 300", "ib_send_bw -p PORT -e -n 300 127.0.0.1", rate, false, "65536"},
	{"perftest", "ib_read_bw -p PORT -a -n 100", "ib_read_bw -p PORT -a -n 100 127.0.0.1", rate, false, "8388608"},
	{"perftest", "ib_atomic_bw -p PORT -n 300", "ib_atomic_bw -p PORT -n 300 127.0.0.1", rate, false, " 8 "},
	{"perftest", "ib_write_lat -p PORT -n 200", "ib_write_lat -p PORT -n 200 127.0.0.1", rate, false, "t_typical"},
	{"perftest", "ib_send_lat -p PORT -n 200", "ib_send_lat -p PORT -n 200 127.0.0.1", rate, false, "t_typical"},
	{"perftest", "ib_read_lat -p PORT -n 200", "ib_read_lat -p PORT -n 200 127.0.0.1", rate, false, "t_typical"},
	{"perftest", "ib_atomic_lat -p PORT -n 200", "ib_atomic_lat -p PORT -n 200 127.0.0.1", rate, false, "t_typical"},
	{"ucx-utils", "ucx_perftest -p PORT -t am_lat -x rc_verbs -d iwarp0:1 -n 300", "ucx_perftest -p PORT -t am_lat -x rc_verbs -d iwarp0:1 -n 300 127.0.0.1", rate, false, "Final:"},
	{"ucx-utils", "ucx_perftest -p PORT -t am_bw -x rc_verbs -d iwarp0:1 -n 3000", "ucx_perftest -p PORT -t am_bw -x rc_verbs -d iwarp0:1 -n 3000 127.0.0.1", rate, false, "Final:"},
	{"ucx-utils", "ucx_perftest -p PORT -t put_lat -x rc_verbs -d iwarp0:1 -n 300", "ucx_perftest -p PORT -t put_lat -x rc_verbs -d iwarp0:1 -n 300 127.0.0.1", rate, false, "Final:"},
	{"libfabric-bin", "fi_pingpong -p verbs -e msg -c -B PORT", "fi_pingpong -p verbs -e msg -c -P PORT HOST", compared, false, "1m"},
	{"libfabric-bin", "fi_pingpong -p verbs;ofi_rxm -e rdm -c -B PORT", "fi_pingpong -p verbs;ofi_rxm -e rdm -c -P PORT HOST", compared, false, "1m"},
	{"ucx-utils", "ucx_perftest -p PORT -t put_bw -x rc_verbs -d iwarp0:1 -n 3000", "ucx_perftest -p PORT -t put_bw -x rc_verbs -d iwarp0:1 -n 3000 127.0.0.1", rate, false, "Final:"},
	{"ucx-utils", connected + "ucx_perftest -p PORT -t tag_lat -n 300", connected + "ucx_perftest -p PORT -t tag_lat -n 300 127.0.0.1", rate, false, "Final:"},
	{"ucx-utils", connected + "ucx_perftest -p PORT -t tag_bw -s 65536 -n 1000", connected + "ucx_perftest -p PORT -t tag_bw -s 65536 -n 1000 127.0.0.1", rate, false, "Final:"},
}

// waiting are programs whose Sends wait for receives, as on InfiniBand.
var waiting = []pairing{
	{"qperf", "qperf -lp PORT", "qperf 127.0.0.1 -lp PORT -cm 1 -t 1 rc_bw rc_bi_bw rc_rdma_write_bw", rate, true, "rc_rdma_write_bw:\n    bw"},
	{"qperf", "IWARP_AS=roce qperf -lp PORT", "IWARP_AS=roce qperf 127.0.0.1 -lp PORT -cm 1 -t 1 rc_bw rc_bi_bw rc_rdma_write_bw", rate, true, "rc_rdma_write_bw:\n    bw"},
	{"fio", "IWARP_AS=roce " + fioReceiver + " --iodepth=8", "IWARP_AS=roce " + fioSender + " --iodepth=8", compared, false, "err= 0"},
}

// unconnected are programs that have no connection: they send datagrams.
var unconnected = []pairing{
	{"ibverbs-utils", "ibv_ud_pingpong -p PORT -c -n 300 -g 0", "ibv_ud_pingpong -p PORT -c -n 300 -g 0 127.0.0.1", compared, false, "usec/iter"},
	{"ibverbs-utils", "ibv_ud_pingpong -p PORT -c -n 300 -g 0 -e -s 4096", "ibv_ud_pingpong -p PORT -c -n 300 -g 0 -e -s 4096 127.0.0.1", compared, false, "usec/iter"},
	{"perftest", "ib_send_lat -p PORT -c UD -n 200", "ib_send_lat -p PORT -c UD -n 200 127.0.0.1", rate, false, "t_typical"},
	{"perftest", "ib_send_lat -p PORT -c UD -n 200 -e -s 4096", "ib_send_lat -p PORT -c UD -n 200 -e -s 4096 127.0.0.1", rate, false, "t_typical"},
	{"perftest", "ib_send_bw -p PORT -c UD -n 32 -s 1024", "ib_send_bw -p PORT -c UD -n 32 -s 1024 127.0.0.1", rate, false, "1024"}, // more may come than the kernel has room for
	{"ucx-utils", byDatagrams + "ucx_perftest -p PORT -t tag_lat -n 300", byDatagrams + "ucx_perftest -p PORT -t tag_lat -n 300 127.0.0.1", rate, false, "Final:"},
	{"ucx-utils", byDatagrams + "ucx_perftest -p PORT -t tag_bw -s 65536 -n 1000", byDatagrams + "ucx_perftest -p PORT -t tag_bw -s 65536 -n 1000 127.0.0.1", rate, false, "Final:"},
}

// shown are those of all tests.
var shown = slices.Concat(pairings, directs, waiting, unconnected)

// Settings of UCX, before the name of the program: its transport rc_verbs, which makes its first contact by ud_verbs, or the latter alone.
const (
	connected   = "UCX_TLS=rc_v,self UCX_NET_DEVICES=iwarp0:1 "
	byDatagrams = "UCX_TLS=ud_v,self UCX_NET_DEVICES=iwarp0:1 "
)

// fio has no flow control for its Sends: as an iWARP device the receiver needs a receive for each. It looks for the pattern in what they bring.
const (
	fioServer   = "fio --name=s --ioengine=rdma --rw=read --port=PORT --bs=64k --size=16m --iodepth=8"
	fioPattern  = " --verify=pattern --verify_pattern=0x5a --verify_state_save=0"
	fioReceiver = "fio --name=s --ioengine=rdma --rw=read --port=PORT --bs=64k --size=4m" + fioPattern
	fioSender   = "fio --name=c --ioengine=rdma --rw=write --hostname=127.0.0.1 --port=PORT --verb=send --bs=64k --size=4m" + fioPattern
)

// TestPrograms runs programs as Debian ships them, both ends on the library. With -update it writes what came of
// them to results.json.
func TestPrograms(t *testing.T) {
	l := built(t)
	t.Run("ibv_devinfo", l.device)
	t.Run("guise", l.guises)
	t.Run("crossing", l.crossing)
	t.Run("signals", l.signals)
	t.Run("handlers", l.handlers)
	t.Run("stacks", l.stacks)
	t.Run("extended", l.extended)
	t.Run("shared", l.shared)
	t.Run("threads", l.threads)
	t.Run("starved", l.starved)
	t.Run("alone", l.alone)
	t.Run("gids", l.gids)
	t.Run("windows", l.windows)
	t.Run("opened", l.opened)
	t.Run("next", l.next)
	t.Run("module", l.module)
	t.Run("sysfs", l.sysfs)
	t.Run("vanish", l.vanishes)
	t.Run("managed", l.managed)
	t.Run("delivered", l.delivered)
	t.Run("given up", l.givenUp)
	t.Run("fork", l.forks)
	t.Run("inherited", l.inherits)
	t.Run("first", l.first)
	t.Run("churn", l.churn)
	t.Run("scarce", l.scarce)
	t.Run("canceled", l.canceled)
	t.Run("restarted", l.restarted)
	t.Run("destroyed", l.destroyed)
	t.Run("refused", l.refused)
	t.Run("unready", l.unready)
	t.Run("sanitized", l.sanitized)
	t.Run("checked", l.checked)
	t.Run("killed", l.killed)
	t.Run("mixed", l.mixed)
	t.Run("leaks", l.leaks)
	t.Run("captures", l.captures)
	results := []result{ran(t, "python3 ctypes_list.py", version("python3"), "finds the device", l.ctypes)}
	for _, p := range shown {
		name := strings.NewReplacer(" -p PORT", "", " -lp PORT", "", " --port=PORT", "", " -P PORT", "", "HOST", "IP", "127.0.0.1", "IP").Replace(p.client)
		results = append(results, ran(t, name, version(p.pkg), p.verified, func(t *testing.T) { p.run(t, l) }))
	}
	wantResults(t, "TestPrograms", results)
}

// built returns the library. Where CI is not true the test is skipped if something is missing for it.
func built(t *testing.T) Library {
	t.Helper()
	l := Library{t.TempDir()}
	if err := l.Build(t.Context(), "(devel)"); err != nil {
		testrig.Lacks(t, err.Error())
	}
	for _, p := range shown {
		_, words := settingsOf(strings.Fields(p.client))
		needs(t, words[0])
	}
	return l
}

// needs skips the test, or fails it where CI is true, if a program is missing.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			testrig.Lacks(t, err.Error())
		}
	}
}

// disturbed is what perftest says when it could not measure the rate of the processor's clock, beside other work; and when, with events, it has taken
// that of a receive for that of its Send, as both queues have one channel: it then reads a status that nobody has set.
var disturbed = regexp.MustCompile(`Can't produce a report|Failed status -?[0-9]{3,}:`)

// run runs both ends, and again where perftest was disturbed, which is no fault of ours.
func (p *pairing) run(t *testing.T, l Library) {
	for range 10 {
		server, client := p.once(t, l)
		if out := server.out.String() + client.out.String(); !disturbed.MatchString(out) {
			p.judge(t, server, client)
			return
		}
		discardCaptures(t)
	}
	t.Error("perftest was disturbed each time")
}

// once runs both ends until they have ended.
func (p *pairing) once(t *testing.T, l Library) (server, client *process) {
	port := freePort(t)
	at := strings.NewReplacer("PORT", port, "HOST", host(t, strings.Contains(p.client, "HOST")))
	server = start(t, l, at.Replace(p.server))
	server.awaitListening(t, port)
	client = start(t, l, at.Replace(p.client))
	client.await(t)
	if p.endless {
		server.kill()
	} else {
		server.await(t)
	}
	return server, client
}

func (p *pairing) judge(t *testing.T, server, client *process) {
	t.Helper()
	client.awaitSuccess(t)
	if !strings.Contains(client.out.String(), p.says) {
		t.Errorf("%s does not say %q:\n%s", p.client, p.says, client.out.String())
	}
	if !p.endless {
		server.awaitSuccess(t)
	}
	if t.Failed() {
		t.Logf("the server:\n%s", server.out.String())
	}
}

// A process is one end.
type process struct {
	*exec.Cmd
	out  testrig.Buffer
	done chan struct{} // closed when it has ended
	err  error
	stop context.CancelFunc
}

// kill ends the process, if it has not ended.
func (p *process) kill() {
	p.stop()
	<-p.done
}

// stuck is after how long a program that does not end is killed, so that the failure has its name.
const stuck = 3 * time.Minute

func start(t *testing.T, l Library, line string) *process {
	t.Helper()
	return startReading(t, l, line, nil)
}

// startReading starts a program with something to read on its standard input.
func startReading(t *testing.T, l Library, line string, in io.Reader) *process {
	t.Helper()
	return startWords(t, l, in, strings.Fields(line)...)
}

func startWords(t *testing.T, l Library, in io.Reader, words ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	set, words := settingsOf(words)
	p := &process{Cmd: exec.CommandContext(ctx, words[0], words[1:]...), done: make(chan struct{}), stop: cancel}
	p.Env = l.environmentAs(slices.Concat(os.Environ(), captureOf(t), set), "")
	p.Stdin, p.Stdout, p.Stderr = in, &p.out, &p.out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.Wait()
		close(p.done)
	}()
	t.Cleanup(p.kill)
	return p
}

// settingsOf takes the settings of the environment off that are before the name of a program.
func settingsOf(words []string) (set, program []string) {
	i := slices.IndexFunc(words, func(w string) bool { return !strings.Contains(w, "=") })
	return words[:i], words[i:]
}

// awaitSuccess waits for the process to end, in success.
func (p *process) awaitSuccess(t *testing.T) {
	t.Helper()
	p.await(t)
	if p.err != nil && !lateThread.MatchString(p.out.String()) {
		t.Errorf("%s: %v\n%s", p, p.err, p.out.String())
	}
}

// lateThread is the end of an rping that was done: it destroys its event channel while a thread of its own still asks that for
// events, and if the thread comes late, it ends the program with 255. With a kernel's device it is the same.
var lateThread = regexp.MustCompile(`(server|client) DISCONNECT EVENT\.\.\.\n(.*\n)?rdma_get_cm_event: Bad file descriptor\n$`)

// await waits for the process to end.
func (p *process) await(t *testing.T) {
	t.Helper()
	select {
	case <-p.done:
	case <-t.Context().Done():
		t.Fatalf("%s does not end", p)
	}
}

// awaitListening returns when somebody listens on the port. To connect would disturb.
func (p *process) awaitListening(t *testing.T, port string) {
	t.Helper()
	n, _ := strconv.Atoi(port)
	const listening = " 0A "
	local := fmt.Sprintf(":%04X ", n)
	for {
		for _, file := range []string{"tcp", "tcp6"} { // of its network namespace
			table, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", p.Process.Pid, file))
			for line := range strings.Lines(string(table)) {
				if before, _, ok := strings.Cut(line, listening); ok && strings.Contains(before+" ", local) {
					return
				}
			}
		}
		select {
		case <-p.done:
			t.Fatalf("%s has ended: %v\n%s", p, p.err, p.out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// host returns an address of this host that is not loopback, if that is needed.
func host(t *testing.T, needed bool) string {
	t.Helper()
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	if needed {
		testrig.Lacks(t, "this host has no address but loopback")
	}
	return ""
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// version names a package of Debian with its version, where that can be asked for.
func version(pkg string) string {
	out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", pkg).Output()
	if err != nil {
		return pkg
	}
	return pkg + " " + string(out)
}
