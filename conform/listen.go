package conform

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"time"
)

var errNoInitiator = errors.New("conform: a Responder does not connect by itself")

// A ListenPeer is an Initiator that connects to us. If it has a command, the command is
// started for each connection that a case needs and ended after the case; without one,
// the Initiator has to come again by itself.
type ListenPeer struct {
	ln    net.Listener
	wait  time.Duration
	came  chan arrival
	ended chan struct{}
	once  sync.Once
	starter
}

// An arrival is what Accept has returned.
type arrival struct {
	conn net.Conn
	err  error
}

// DefaultWait is how long a ListenPeer waits for the peer to connect.
const DefaultWait = time.Minute

// Listen listens on a TCP address for a peer. In the words of command, {host} and
// {port} stand for the address. wait bounds the wait for a connection; if zero,
// DefaultWait.
func Listen(ctx context.Context, addr string, command []string, wait time.Duration) (*ListenPeer, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return NewListenPeer(ln, command, wait), nil
}

// NewListenPeer has the peer connect to a net.Listener, such as that of a TCP in user space, and closes it in the end.
// The rest is as in [Listen].
func NewListenPeer(ln net.Listener, command []string, wait time.Duration) *ListenPeer {
	p := &ListenPeer{ln: ln, wait: cmp.Or(wait, DefaultWait), came: make(chan arrival), ended: make(chan struct{})}
	p.starter = newStarter(command, ln.Addr())
	go p.acceptAll()
	return p
}

// acceptAll accepts connections, of which it holds one until it is asked for.
func (p *ListenPeer) acceptAll() {
	for {
		c, err := p.ln.Accept()
		select {
		case p.came <- arrival{c, err}:
		case <-p.ended:
			if err == nil {
				_ = c.Close()
			}
			return
		}
	}
}

// Addr returns the address listened on.
func (p *ListenPeer) Addr() net.Addr { return p.ln.Addr() }

// Close ends listening.
func (p *ListenPeer) Close() error {
	p.Release()
	p.once.Do(func() { close(p.ended) })
	return p.ln.Close()
}

// Connect starts the command, if there is one, and waits for the peer. Connections
// that came before are closed: they belong to a case that is over.
func (p *ListenPeer) Connect(ctx context.Context) (net.Conn, error) {
	p.Release()
	p.drain()
	var c net.Conn
	err := p.await(ctx, p.wait, func(ctx context.Context) (err error) {
		c, err = p.Again(ctx)
		return err
	})
	return c, err
}

// lastCall is how much later than its end a command's connection may be accepted.
const lastCall = 100 * time.Millisecond

// Again waits for another connection of the same peer.
func (p *ListenPeer) Again(ctx context.Context) (net.Conn, error) {
	select {
	case a := <-p.came:
		return a.conn, a.err
	case <-p.ended:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("nobody has connected to %v: %w", p.ln.Addr(), context.Cause(ctx))
	}
}

// drain closes connections that nobody has waited for.
func (p *ListenPeer) drain() {
	for {
		select {
		case a := <-p.came:
			if a.err != nil {
				return
			}
			_ = a.conn.Close()
		case <-time.After(segmentGap):
			return
		}
	}
}

var errCommandEnded = errors.New("the command that was to do so has ended")

// A starter has the command that is the Initiator, if there is one.
type starter struct {
	command []string
	running *process
}

// newStarter puts an address into a command.
func newStarter(command []string, addr net.Addr) (s starter) {
	host, port, _ := net.SplitHostPort(addr.String()) // of a socket
	for _, word := range command {
		s.command = append(s.command, strings.NewReplacer("{host}", host, "{port}", port).Replace(word))
	}
	return s
}

// await starts the command and waits for what comes of it. Nobody will come when it has ended.
func (s *starter) await(ctx context.Context, limit time.Duration, comes func(context.Context) error) (err error) {
	ctx, lapse := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v", limit))
	defer lapse()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if len(s.command) == 0 {
		return comes(ctx)
	}
	if s.running, err = start(s.command); err != nil {
		return err
	}
	defer s.running.afterEnd(func() { time.AfterFunc(lastCall, func() { end(errCommandEnded) }) })()
	if err = comes(ctx); err != nil {
		err = fmt.Errorf("%w; the command %q: %s", err, strings.Join(s.command, " "), s.running.outcome())
	}
	return err
}

// Release ends the command.
func (s *starter) Release() {
	if s.running != nil {
		s.running.kill()
		s.running = nil
	}
}

// process is a command that plays the peer.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	output bytes.Buffer // and err, once ended is closed
	err    error
}

func start(command []string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// afterEnd calls f when the process ends; stop says that it need not any more.
func (p *process) afterEnd(f func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-p.ended:
			f()
		case <-done:
		}
	}()
	return func() { close(done) }
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// outcome says how the process ended, and what it printed last.
func (p *process) outcome() string {
	select {
	case <-p.ended:
	default:
		return "still running"
	}
	text := "ended"
	if p.err != nil {
		text = p.err.Error()
	}
	lines := strings.Split(strings.TrimSpace(p.output.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		text += ": " + last
	}
	return text
}
