package transfer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// What a process that a test kills is to be is in its environment: a server of a directory, or a client that puts or
// gets f, or gets d with all that is in it.
const (
	childRole = "IWARP_TRANSFER_CHILD"
	childDir  = "IWARP_TRANSFER_DIR"
	childAddr = "IWARP_TRANSFER_ADDR"
)

// child is such a process. It prints a line as soon as it listens, or for each block that has moved.
func child(role string) int {
	ctx := context.Background()
	var err error
	switch role {
	case "serve":
		err = serveChild(ctx)
	default:
		err = clientChild(ctx, role)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func serveChild(ctx context.Context) error {
	s, err := NewServer(ServerConfig{Dir: os.Getenv(childDir), Writable: true})
	if err != nil {
		return err
	}
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	for {
		req, err := ln.Accept(ctx)
		if err != nil {
			return err
		}
		go func() { _ = s.Serve(ctx, req) }()
	}
}

func clientChild(ctx context.Context, role string) (err error) {
	c := &Client{Dial: dialTo(os.Getenv(childAddr)), Resume: true, Watch: func(e Event) { fmt.Printf("%T\n", e) }}
	switch role {
	case "put":
		_, err = c.Put(ctx, []string{filepath.Join(os.Getenv(childDir), "f")}, "")
	case "get":
		_, err = c.Get(ctx, []string{"f"}, os.Getenv(childDir))
	default: // "tree" or "force"
		c.Recursive, c.Force = true, role == "force"
		_, err = c.Get(ctx, []string{"d"}, os.Getenv(childDir))
	}
	return err
}

func dialTo(addr string) func(context.Context, *iwarp.Dialer) (*iwarp.QP, error) {
	return func(ctx context.Context, d *iwarp.Dialer) (*iwarp.QP, error) { return d.Dial(ctx, "tcp", addr) }
}

// A process is a child, and what it prints.
type process struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

func start(t *testing.T, role, dir, addr string) *process {
	t.Helper()
	self, err := os.Executable()
	testrig.Must(t, err)
	p := &process{cmd: exec.CommandContext(testrig.Within(t), self)}
	p.cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir, childAddr+"="+addr)
	out, err := p.cmd.StdoutPipe()
	testrig.Must(t, err)
	p.out = bufio.NewScanner(out)
	testrig.Must(t, p.cmd.Start())
	t.Cleanup(p.kill)
	return p
}

// kill kills it, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	for p.out.Scan() {
	}
	_ = p.cmd.Wait()
}

// line returns the next that it prints.
func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("it has ended: %v", io.ErrUnexpectedEOF)
	}
	return p.out.Text()
}

// These tests run alone: a process that is being started holds the files of this one until it is another program, and
// so the locks of copies that have ended.

// TestServerKilled kills a server at any moment, again and again, and goes on each time with another one.
func TestServerKilled(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	data := randomBytes(20<<20+5, 27)
	for _, way := range []string{"put", "get"} {
		r := newRig(t)
		made(t, data, r.from(way), "f")
		for kills := range 4 {
			s := start(t, "serve", r.there, "")
			at := random.IntN(18)
			to := func(c *Client) {
				c.Dial = dialTo(s.line(t))
				c.Resume = true
				c.Watch = func(e Event) {
					if _, moved := e.(Moved); moved {
						if at--; at == 0 && kills < 3 {
							s.kill()
						}
					}
				}
			}
			err := ways[way](r, to)
			if (err == nil) != (kills == 3 || at > 0) {
				t.Logf("%s, killed after %d blocks: %v", way, at, err) // it may have had everything by then
			}
			if kills == 3 {
				testrig.Must(t, err)
			}
			s.kill()
		}
		has(t, data, r.to(way), "f")
		lists(t, r.to(way), "f")
	}
}

// finishes has a client come to its end, which another one has to wait for if the server does not know yet that its
// client is dead.
func finishes(t *testing.T, client func() *process) {
	t.Helper()
	for over := testrig.Within(t); ; {
		var last string
		c := client()
		for c.out.Scan() {
			last = c.out.Text()
		}
		if c.cmd.Wait() == nil {
			return
		}
		if over.Err() != nil {
			t.Fatal(last)
		}
	}
}

// TestClientKilled kills a client at any moment, again and again, and another one goes on.
func TestClientKilled(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	data := randomBytes(20<<20+6, 28)
	for _, way := range []string{"put", "get"} {
		r := newRig(t)
		made(t, data, r.from(way), "f")
		s := start(t, "serve", r.there, "")
		addr := s.line(t)
		for range 4 {
			c := start(t, way, r.here, addr)
			for range 1 + random.IntN(18) {
				if !c.out.Scan() {
					break
				}
			}
			c.kill()
		}
		finishes(t, func() *process { return start(t, way, r.here, addr) })
		has(t, data, r.to(way), "f")
		lists(t, r.to(way), "f")
	}
}
