package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"iwarp": main})
}

// TestScripts runs the command as people do. Beside testscript's own commands
// the scripts have:
//
//	serve NAME iwarp ...   run a server in the background, and set $NAME, $NAME_HOST
//	                       and $NAME_PORT to the address that it says it listens on
//	await NAME             wait until it ends by itself; with ! it must end in failure
//	interrupt NAME         send it an interrupt, and wait
//	captured FILE [OTHER]  print what a capture has, of which nothing is missing; OTHER,
//	                       of the other end, must have the same
//
// What the server has printed is then in the files NAME.stdout and NAME.stderr.
func TestScripts(t *testing.T) {
	// Every process of a race-enabled binary would wait a second at its end.
	const hurry = "atexit_sleep_ms=10"
	t.Setenv("GORACE", hurry)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", hurry)
			env.Values[serversKey{}] = map[string]*backgroundServer{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":     serveCmd,
			"await":     awaitCmd,
			"interrupt": interruptCmd,
			"captured":  capturedCmd,
		},
	})
}

type serversKey struct{}

type backgroundServer struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer // guarded by read
	stderr bytes.Buffer
	read   chan struct{} // closed when stdout has ended
}

// listening is what a server's line with its address begins with.
const listening = "listening on "

func serveCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: serve NAME command...")
	}
	s := &backgroundServer{cmd: exec.Command(findCommand(ts, args[1]), args[2:]...), read: make(chan struct{})}
	s.cmd.Dir, s.cmd.Stderr = ts.MkAbs("."), &s.stderr
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	ts.Defer(func() { s.cmd.Process.Kill() })
	address := make(chan string, 1)
	go s.collect(out, address)
	select {
	case addr := <-address:
		setAddress(ts, args[0], addr)
	case <-time.After(20 * time.Second):
		ts.Fatalf("%s does not say where it listens", args[0])
	}
	ts.Value(serversKey{}).(map[string]*backgroundServer)[args[0]] = s
}

// collect keeps what the server prints, and picks its address out.
func (s *backgroundServer) collect(out io.Reader, address chan<- string) {
	defer close(s.read)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.stdout.WriteString(lines.Text() + "\n")
		if addr, ok := strings.CutPrefix(lines.Text(), listening); ok {
			address <- addr
		}
	}
}

func setAddress(ts *testscript.TestScript, name, addr string) {
	host, port, err := net.SplitHostPort(addr)
	ts.Check(err)
	ts.Setenv(name, addr)
	ts.Setenv(name+"_HOST", host)
	ts.Setenv(name+"_PORT", port)
}

// findCommand looks for a command in the script's own path.
func findCommand(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		for _, suffix := range []string{"", ".exe"} {
			path := filepath.Join(dir, name+suffix)
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	ts.Fatalf("no command %q", name)
	return ""
}

func awaitCmd(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] await NAME")
	}
	s := ts.Value(serversKey{}).(map[string]*backgroundServer)[args[0]]
	if s == nil {
		ts.Fatalf("no server %s", args[0])
	}
	<-s.read
	err := s.cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stdout"), s.stdout.Bytes(), 0o666))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stderr"), s.stderr.Bytes(), 0o666))
	if (err != nil) != neg {
		ts.Fatalf("%s ended with %v\n%s%s", args[0], err, s.stdout.Bytes(), s.stderr.Bytes())
	}
}

func interruptCmd(ts *testscript.TestScript, neg bool, args []string) {
	if s := ts.Value(serversKey{}).(map[string]*backgroundServer)[strings.Join(args, " ")]; s != nil {
		ts.Check(s.cmd.Process.Signal(os.Interrupt))
	}
	awaitCmd(ts, neg, args)
}
