//go:build interop

package interop_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/peers"
)

const (
	rpingPort   = 7174 // the port of rping, in the guest
	commandPort = 99   // where the guest's rig-serve listens

	bootTime  = 180 * time.Second // a boot takes 3 s where nothing else runs
	guestLife = 600 * time.Second // the rig ends a guest that a killed test left behind
)

// slots bounds the guests that run at the same time: each keeps a CPU busy.
var slots = make(chan struct{}, 2)

// Options say what guest to boot.
type Options struct {
	SIW  string // the driver's parameters, "K=V,..."; "" is the unchanged driver
	CPUs int    // 0 means 1
	Pcap string // file for what passes the guest's network card
	Tap  string // boot on the tap, with this as the only command: no Start
	// UserTCP gives the guest a second card, for siw, and what iwarp does with it goes over a TCP in user space.
	UserTCP bool
	// Link is where QEMU finds the other end of a second card; "" gives the guest none.
	Link string
	// Put names files of the host's by their paths in the guest.
	Put map[string]string
	// NVMe adds what disks and files over RDMA take: the kernel's host and target of NVMe, nvme, the kernel's initiator
	// and target of iSER, iscsiadm, the kernel's NFS, fio, stress-ng and the tools of ext4.
	NVMe bool
}

// A Guest is a booted Linux with siw. It lives as long as the test that booted it.
type Guest struct {
	*Proc
	command string // host address behind which the guest's rig-serve is
	port    string // host port behind which the guest's rpingPort is
	card    *card  // nil: QEMU's user network
	// stack is the TCP for iwarp's ends; nil is the host's.
	stack iwarp.Stack
	// expendable: that its kernel has not survived is somebody else's to judge.
	expendable bool
	told       sync.Once // its condition
}

// Boot boots a guest and waits until it takes commands.
func Boot(t testing.TB, o Options) *Guest {
	t.Helper()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
	g := new(Guest)
	if o.UserTCP {
		g.card = listenCard(t)
	}
	for tries := 1; !g.boot(t, o); tries++ {
		// somebody else was faster to take a port that was free
		if tries == 3 || !strings.Contains(g.Output(), "Could not set up host forwarding rule") {
			t.Fatalf("the guest did not boot (see README.md)")
		}
	}
	if o.Tap == "" {
		g.Start(t, "true").WantSuccess(t, bootTime)
	}
	if g.card != nil {
		g.stack = g.card.stack(t)
		g.Start(t, setCardUp).WantSuccess(t, 20*time.Second)
	}
	return g
}

// boot starts the guest, and reports whether it has booted.
func (g *Guest) boot(t testing.TB, o Options) bool {
	t.Helper()
	command, port := freePorts(t)
	g.command, g.port = "127.0.0.1:"+command, port
	g.Proc = startHost(t, "siw-vm/siw-vm", g.args(o)...)
	t.Cleanup(func() { g.wantSane(t) })
	return poll(bootTime, func() bool { return g.ready() || g.ended() }) && !g.ended()
}

// server is the address that the guest's server on rpingPort has for iwarp's ends.
func (g *Guest) server() string {
	if g.card != nil {
		return fmt.Sprintf("%s:%d", guestIP, rpingPort)
	}
	return "127.0.0.1:" + g.port
}

// dial has a Dialer connect over the TCP for iwarp's ends.
func (g *Guest) dial(ctx context.Context, d *iwarp.Dialer, addr string) (*iwarp.QP, error) {
	d.Stack = g.stack
	return d.Dial(ctx, "tcp", addr)
}

// dialNudging is dial for an offer of any kind: siw may miss the first FPDU, and not every Reply shows that the peer is
// siw.
func (g *Guest) dialNudging(ctx context.Context, d *iwarp.Dialer, addr string) (*iwarp.QP, error) {
	d.QP.Nudge = peers.Nudge
	return g.dial(ctx, d, addr)
}

// dialConn connects to that server over the TCP for iwarp's ends, and dialTo to an address.
func (g *Guest) dialConn(ctx context.Context) (net.Conn, error) { return g.dialTo(ctx, g.server()) }

// dialTo is described with dialConn.
func (g *Guest) dialTo(ctx context.Context, addr string) (net.Conn, error) {
	if g.stack != nil {
		return g.stack.DialContext(ctx, "tcp", addr)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// listenConn listens there, where the guest reaches it by $PEER_IP and the port.
func (g *Guest) listenConn(ctx context.Context) (ln net.Listener, port string, err error) {
	if g.stack != nil {
		ln, err = g.stack.Listen(ctx, "tcp", ourIP+":0")
	} else {
		ln, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, "", err
	}
	_, port, err = net.SplitHostPort(ln.Addr().String())
	return ln, port, err
}

// listen has iwarp listen where the guest reaches it, by $PEER_IP and the port.
func (g *Guest) listen(ctx context.Context, cfg iwarp.ListenConfig) (ln *iwarp.Listener, port string, err error) {
	cfg.Stack = g.stack
	host := "127.0.0.1"
	if g.card != nil {
		host = ourIP
	}
	if ln, err = cfg.Listen(ctx, "tcp", host+":0"); err != nil {
		return nil, "", err
	}
	_, port, err = net.SplitHostPort(ln.Addr().String())
	return ln, port, err
}

func (g *Guest) args(o Options) []string {
	args := []string{"run", "--timeout", strconv.Itoa(int(guestLife.Seconds())), "--smp", strconv.Itoa(max(o.CPUs, 1))}
	if o.SIW != "" {
		args = append(args, "--siw", o.SIW)
	}
	if o.Pcap != "" {
		args = append(args, "--pcap", o.Pcap)
	}
	if o.NVMe {
		args = append(args, "--nvme")
	}
	if g.card != nil {
		o.Link = g.card.path
	}
	if o.Link != "" {
		args = append(args, "--link", o.Link)
	}
	for path, file := range o.Put {
		args = append(args, "--put", file+":"+path)
	}
	if o.Tap != "" {
		return append(args, "--net", "tap", "--", o.Tap)
	}
	_, command, _ := net.SplitHostPort(g.command)
	return append(args, "--fwd", fmt.Sprintf("%s:%d", command, commandPort),
		"--fwd", fmt.Sprintf("%s:%d", g.port, rpingPort), "--",
		fmt.Sprintf("echo RIG-READY; rig-serve %d", commandPort))
}

func (g *Guest) ready() bool { return strings.Contains(g.Output(), "RIG-READY") }

// wantSane: whatever iwarp sends, a peer's kernel must not be hurt by it.
func (g *Guest) wantSane(t testing.TB) {
	if harm := g.harm(); harm != "" && !g.expendable {
		t.Errorf("the guest's kernel reports %q", harm)
	}
}

// harm returns what the guest's kernel complains of; empty if it is well.
func (g *Guest) harm() string {
	for _, sign := range []string{"BUG:", "kernel BUG", "Oops:", "WARNING: CPU", "Kernel panic"} {
		if strings.Contains(g.Output(), sign) {
			return sign
		}
	}
	return ""
}

// Start starts a shell script in the guest. $GUEST_IP is the guest's address
// and $PEER_IP the one under which it sees the host's 127.0.0.1, or the TCP in user space.
func (g *Guest) Start(t testing.TB, script string) *Proc {
	t.Helper()
	p := newProc(t, "guest: "+script)
	conn, first, err := g.shell(script)
	if err != nil {
		close(p.done)
		t.Fatalf("%s: %v", p.name, err)
	}
	t.Cleanup(func() { // before the program is stopped
		if t.Failed() {
			g.told.Do(func() { t.Logf("the guest:\n%s", g.condition()) })
		}
	})
	pid := strings.TrimPrefix(strings.TrimSpace(first), "RIG-PID ")
	p.stop = func() { g.kill(pid); conn.Close() }
	go func() {
		defer close(p.done)
		io.Copy(&p.out, conn)
		p.status = guestStatus(p.Output())
		conn.Close()
	}()
	return p
}

// condition is what a failure wants to know of the guest: what its kernel has said last, who holds which sockets, and
// where its programs are in the kernel, as one that siw does not let go seems merely silent from outside.
func (g *Guest) condition() string {
	said, err := g.runScript(`dmesg | tail -n 25; cat /proc/net/tcp; cd /proc
		for p in [0-9]*; do c=$(tr '\0' ' ' <$p/cmdline); [ -z "$c" ] || { echo "$p $c"; cat $p/task/*/stack; }; done`)
	if err != nil {
		said += err.Error()
	}
	return said
}

// runScript returns the output of a script that ends by itself.
func (g *Guest) runScript(script string) (string, error) {
	conn, _, err := g.shell(script)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	said, err := io.ReadAll(conn)
	return string(said), err
}

// guestConn is a connection of which a line has been read through r.
type guestConn struct {
	net.Conn
	r *bufio.Reader
}

func (c guestConn) Read(b []byte) (int, error) { return c.r.Read(b) }

// shell hands a script to a new shell in the guest and returns its first line,
// which tells the shell's process id. QEMU accepts a connection before the
// guest does, so that an early one is cut off, and tried again.
func (g *Guest) shell(script string) (conn net.Conn, first string, err error) {
	poll(10*time.Second, func() bool {
		conn, first, err = g.tryShell(script)
		return err == nil || g.ended()
	})
	return conn, first, err
}

func (g *Guest) tryShell(script string) (net.Conn, string, error) {
	raw, err := net.DialTimeout("tcp", g.command, 5*time.Second)
	if err != nil {
		return nil, "", err
	}
	if g.stack != nil {
		fmt.Fprintf(raw, "export GUEST_IP=%s PEER_IP=%s\n", guestIP, ourIP)
	}
	fmt.Fprintf(raw, "echo RIG-PID $$\n(\n%s\n) </dev/null 2>&1; s=$?; echo; echo RIG-STATUS $s; exit\n", script)
	c := guestConn{raw, bufio.NewReader(raw)}
	raw.SetReadDeadline(time.Now().Add(5 * time.Second))
	first, err := c.r.ReadString('\n')
	if err != nil {
		raw.Close()
		return nil, "", err
	}
	raw.SetReadDeadline(time.Time{})
	return c, first, nil
}

// kill ends a shell and all that it started, and returns when they are gone.
func (g *Guest) kill(pid string) {
	script := fmt.Sprintf("kill -KILL -%s; while kill -0 -%[1]s; do usleep 20000; done", pid)
	conn, _, err := g.shell(script)
	if err != nil {
		return // the guest is gone, and the shell with it
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	io.Copy(io.Discard, conn)
}

// guestStatus reads the status from the last line of a script's output.
func guestStatus(out string) int {
	i := strings.LastIndex(out, "RIG-STATUS ")
	if i < 0 {
		return unknownStatus
	}
	status, err := strconv.Atoi(strings.TrimSpace(out[i+len("RIG-STATUS "):]))
	if err != nil {
		return unknownStatus
	}
	if lateThread.MatchString(out) {
		return 0
	}
	return status
}

// lateThread is in the output of an rping of rdma-core's (44) that was done: at its end it destroys its event channel,
// while a thread of its own still asks that for events. If the thread comes late, it ends the program with 255.
var lateThread = regexp.MustCompile(`(server|client) DISCONNECT EVENT\.\.\.\n(.*\n)?rdma_get_cm_event: Bad file descriptor\n\nRIG-STATUS 255\n$`)

// Serve starts a server in the guest and waits until it listens on rpingPort.
func (g *Guest) Serve(t testing.TB, script string) *Proc {
	t.Helper()
	p := g.Start(t, script)
	g.Start(t, untilListening).WantSuccess(t, 20*time.Second)
	return p
}

// untilListening ends when something listens on rpingPort (in hexadecimal, as
// the kernel shows it), which siw does through a socket of its own.
const untilListening = "timeout 15 sh -c 'until grep -q \":1C06 00000000:0000 0A\" /proc/net/tcp; do usleep 50000; done'"

// Set changes parameters ("K=V,...") of a driver that was booted with some.
func (g *Guest) Set(t testing.TB, params string) {
	t.Helper()
	var script strings.Builder
	script.WriteString("cd /sys/module/siw/parameters || exit 1\n")
	for p := range strings.SplitSeq(params, ",") {
		name, value, _ := strings.Cut(p, "=")
		fmt.Fprintf(&script, "echo %s >%s || exit 1\n", value, name)
	}
	g.Start(t, script.String()).WantSuccess(t, 10*time.Second)
}

// freePort returns a port of 127.0.0.1 that nobody had a moment ago.
func freePort(t testing.TB) string {
	port, _ := freePorts(t)
	return port
}

// freePorts returns two of them. They are below those that the system gives to outgoing
// connections, of which there may be many while a guest boots.
func freePorts(t testing.TB) (one, other string) {
	t.Helper()
	var ports []string
	for tries := 0; len(ports) < 2; tries++ {
		port := strconv.Itoa(10000 + rand.IntN(20000))
		ln, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			if tries > 100 {
				t.Fatal(err)
			}
			continue
		}
		defer ln.Close()
		ports = append(ports, port)
	}
	return ports[0], ports[1]
}
