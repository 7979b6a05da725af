package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

func TestMain(m *testing.M) { testscript.Main(suite{m}, map[string]func(){"iwarp": main}) }

// A suite is run where the program is not to be iwarp itself.
type suite struct{ *testing.M }

// Run implements testscript.TestingM.
func (s suite) Run() int {
	_ = os.Unsetenv("GITHUB_STEP_SUMMARY") // of the step that runs the tests
	return testrig.Run(s.M)
}

// TestScripts runs the command as people do. Beside testscript's own commands
// the scripts have:
//
//	serve NAME iwarp ...   run a server in the background, and set $NAME, $NAME_HOST
//	                       and $NAME_PORT to the address that it says it listens on
//	begin NAME TEXT iwarp ...  run a command in the background until it has printed a line
//	                       with TEXT in it
//	await NAME             wait until it ends by itself; with ! it must end in failure
//	interrupt NAME         send it an interrupt, and wait
//	status N command...    run a command that must end with this status
//	certificates           write ca.pem, server.pem and client.pem, which it vouches for, and other.pem
//	pictured FILE COMMAND  compare what was printed with a picture in docs
//	captured FILE [OTHER]  print what a capture has, of which nothing is missing; OTHER,
//	                       of the other end, must have the same
//
// and the conditions [all], which is that IWARP_ALL is set, and [ipv6].
//
// What the server has printed is then in the files NAME.stdout and NAME.stderr.
func TestScripts(t *testing.T) {
	// Every process of a race-enabled binary would wait a second at its end.
	const hurry = "atexit_sleep_ms=10"
	docs, err := filepath.Abs("../../docs")
	testrig.Must(t, err)
	t.Setenv("GORACE", hurry)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", hurry)
			env.Setenv("GOGC", cmp.Or(os.Getenv("GOGC"), "400")) // as testrig has it
			env.Setenv("DOCS", docs)
			env.Values[serversKey{}] = map[string]*backgroundServer{}
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "all":
				return testrig.Everything(), nil
			case "ipv6":
				ln, err := net.Listen("tcp", "[::1]:0")
				if err == nil {
					_ = ln.Close()
				}
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"begin":        beginCmd,
			"serve":        beginServer,
			"await":        awaitCmd,
			"interrupt":    interruptCmd,
			"captured":     capturedCmd,
			"pictured":     picturedCmd,
			"certificates": certificatesCmd,
			"status":       statusCmd,
		},
	})
}

// TestSayAlone names the option that may be why a Responder fails.
func TestSayAlone(t *testing.T) {
	for _, c := range []struct {
		cmd  conformCmd
		said bool
	}{{conformCmd{Peer: "h:1", Say: "hi"}, true}, {conformCmd{Peer: "h:1", Say: "hi", Answer: "ho"}, false},
		{conformCmd{Peer: "h:1"}, false}} {
		err := c.cmd.verdict(&conform.Summary{Failed: 64})
		if statusOf(t.Context(), err) != statusFindings || strings.Contains(err.Error(), "--say") != c.said {
			t.Errorf("%+v: %v", c.cmd, err)
		}
	}
}

// full is where nothing can be written any more.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestNoSpace prints to what is full: the run has failed, and says why.
func TestNoSpace(t *testing.T) {
	for _, args := range []string{"version", "--help", "--version", "matrix --help", "conform --list",
		"matrix --timeout 1ns --figure 2"} {
		var errs bytes.Buffer
		if got := run(strings.Fields(args), streams{full{}, &errs}); got != statusFailed {
			t.Errorf("%s: status %d", args, got)
		}
		if args != "matrix --timeout 1ns --figure 2" && strings.Count(errs.String(), "no space left") != 1 {
			t.Errorf("%s: %q", args, errs.String())
		}
	}
}

// TestStatuses has runs for each exit status.
func TestStatuses(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // who accepts nobody
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, c := range []struct {
		args string
		want int
	}{
		{"version", statusFine},
		{"matrix --help", statusFine},
		{"probe --help", statusFine},
		{"conform --help", statusFine},
		{"matrix --timeout 1ns --figure 2", statusFindings},
		{"matrix --figure 5", statusUsage},
		{"matrix --run nothing-like-it", statusUsage},
		{"help nonsense", statusUsage},
		{"help rping perf", statusUsage},
		{"rping", statusUsage},
		{"rping -s -c", statusUsage},
		{"rping -c", statusUsage},
		{"rping -c -a 127.0.0.1 -S 65536", statusUsage},
		{"rping -c -a 127.0.0.1 --mpa-rev 1 --dialect rfc6581", statusUsage},
		{"rping -c -a 127.0.0.1 -S 0", statusUsage},
		{"rping -c -a 127.0.0.1 --count=-1", statusUsage},
		{"rping -c -a 127.0.0.1 --timeout=-1s", statusUsage},
		{"probe --timeout=-1s 127.0.0.1:1", statusUsage},
		{"matrix --timeout=-1s", statusUsage},
		{"conform --quiet=-1s 127.0.0.1:1", statusUsage},
		{"conform", statusUsage},
		{"conform 127.0.0.1:1 --run (", statusUsage},
		{"matrix --run (", statusUsage},
		{"decode --filter nonsense x.pcap", statusUsage},
		{"conform --no-such-option", statusUsage},
		{"conform --list --run ^delayed/ --say hello\\n", statusFine},
		{"conform --list --run nothing-like-it", statusUsage},
		{"conform 127.0.0.1:1 --run startup/rep-whole", statusUsage},
		{"conform 127.0.0.1:1 --say \\y", statusUsage},
		{"conform 127.0.0.1:1 --run startup/req-whole", statusFailed},
		{"decode no-such-file", statusFailed},
		{"probe --timeout TIME " + web.Listener.Addr().String(), statusFindings},
		{"probe --timeout TIME --give-up TIME " + silent.Addr().String(), statusFindings},
		{"probe --give-up=0s 127.0.0.1:1", statusUsage},
		{"probe --limit=0s 127.0.0.1:1", statusUsage},
		{"probe 127.0.0.1:1", statusFailed},
		{"perf --listen=", statusUsage},
		{"perf --connect=", statusUsage},
		{"perf --cc= --processes 1", statusUsage},
		{"perf --listen 999999", statusUsage},
		{"perf --listen :999999", statusUsage},
		{"perf --listen :nothing", statusUsage},
		{"perf --listen 1.2.3.4.5:1", statusUsage},
		{"perf --connect 300.1.1.1", statusUsage},
		{"perf --connect 127.0.0.1:0", statusUsage},
		{"perf --connect [::1", statusUsage},
		{"perf --network sctp --listen 127.0.0.1:nothing", statusUsage},
		{"perf --connect 127.0.0.1:1", statusFailed},
		{"perf --listen 203.0.113.9:0", statusFailed},
		{"perf --kind rdmac --dialect rfc6581 --processes 1", statusUsage},
		{"rping -s -a 999999", statusUsage},
		{"rping -c -a 300.1.1.1", statusUsage},
		{"rping -c -a [::1]", statusUsage},
		{"rping -c -a 127.0.0.1 -p 0", statusUsage},
		{"rping -c -a 127.0.0.1 -I 300.1.1.1", statusUsage},
		{"rping -c -a 127.0.0.1 -p 1", statusFailed},
		{"rping -c -a 127.0.0.1 --kind rdmac --dialect rfc6581", statusUsage},
		{"rping -c -a 127.0.0.1 --private-data " + strings.Repeat("x", 509), statusUsage},
		{"rping -s -a 127.0.0.1 --private-data " + strings.Repeat("x", 513), statusUsage},
		{"rping -s -a 127.0.0.1 --reject " + strings.Repeat("x", 513), statusUsage},
		{"probe 127.0.0.1:nothing", statusUsage},
		{"probe 127.0.0.1:99999", statusUsage},
		{"probe 1.2.3.4.5:1", statusUsage},
		{"probe --private-data " + strings.Repeat("x", 509) + " 127.0.0.1:1", statusUsage},
		{"conform 127.0.0.1:99999", statusUsage},
		{"conform 127.0.0.1:nothing", statusUsage},
		{"conform --network sctp 127.0.0.1:99999", statusUsage},
		{"conform --listen :999999", statusUsage},
		{"conform --listen 300.1.1.1:1", statusUsage},
	} {
		var out, errs bytes.Buffer
		got := run(strings.Fields(strings.ReplaceAll(c.args, "TIME", "50ms")), streams{&out, &errs})
		if got != c.want && strings.Contains(c.args, "TIME") { // too short for a busy machine
			errs.Reset()
			got = run(strings.Fields(strings.ReplaceAll(c.args, "TIME", "20s")), streams{&out, &errs})
		}
		if got != c.want || (got == statusFine) != (errs.Len() == 0) {
			t.Errorf("iwarp %s: status %d, want %d: %s", c.args, got, c.want, errs.Bytes())
		}
		if strings.Contains(c.args, "--help") && !strings.Contains(out.String(), "Exit status") {
			t.Errorf("iwarp %s does not tell of exit statuses: %s", c.args, out.Bytes())
		}
	}
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

func beginServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: serve NAME command...")
	}
	line := startBackground(ts, args[0], listening, args[1:])
	setAddress(ts, args[0], strings.TrimPrefix(line, listening))
}

func beginCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: begin NAME TEXT command...")
	}
	startBackground(ts, args[0], args[1], args[2:])
}

// startBackground runs a command in the background, and returns the first line that it prints with
// a text in it. Words with a "=" in front of the command set its variables.
func startBackground(ts *testscript.TestScript, name, text string, command []string) string {
	first := slices.IndexFunc(command, func(word string) bool { return !strings.Contains(word, "=") })
	set, command := command[:first], command[first:]
	s := &backgroundServer{cmd: exec.Command(findCommand(ts, command[0]), command[1:]...), read: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), set...)
	s.cmd.Dir, s.cmd.Stderr = ts.MkAbs("."), &s.stderr
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	ts.Defer(func() { s.cmd.Process.Kill() })
	ts.Value(serversKey{}).(map[string]*backgroundServer)[name] = s
	awaited := make(chan string, 1)
	go s.collect(out, text, awaited)
	select {
	case line := <-awaited:
		return line
	case <-time.After(testrig.Soon):
		ts.Fatalf("%s does not print %q", name, text)
		return ""
	}
}

// collect keeps what the command prints, and picks the first line out that has a text.
func (s *backgroundServer) collect(out io.Reader, text string, awaited chan<- string) {
	defer close(s.read)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for found := false; lines.Scan(); {
		s.stdout.WriteString(lines.Text() + "\n")
		if !found && strings.Contains(lines.Text(), text) {
			found = true
			awaited <- lines.Text()
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

func statusCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command...")
	}
	var exit *exec.ExitError
	got := 0
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if want := args[0]; strconv.Itoa(got) != want {
		ts.Fatalf("status %d, want %s", got, want)
	}
}

// TestPingTimes has a summary name the least, the mean and the most of the times.
func TestPingTimes(t *testing.T) {
	var out bytes.Buffer
	server := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7174}
	p := rpingPrinter{std: streams{&out, io.Discard}, times: true, remote: server}
	for _, us := range []time.Duration{30, 20, 100, 50} {
		p.event(rping.Pinged{Size: 64, Time: us * time.Microsecond})
	}
	p.summary()
	if !strings.HasSuffix(out.String(), "\n4 pings to 192.0.2.1:7174: min 20.0 µs, avg 50.0 µs, max 100 µs\n") {
		t.Error(out.String())
	}
}

// TestPrintedTexts has a peer's text be printed in one line, whatever is in it.
func TestPrintedTexts(t *testing.T) {
	const nasty = "\x1b[2Jone\ntwo\u009b"
	const shown = `\u001b[2Jone\u000atwo\u009b`
	var out, errs bytes.Buffer
	p := rpingPrinter{std: streams{&out, &errs}, verbose: true, debug: true}
	p.event(rping.Pinged{Server: true, Text: []byte(nasty)})
	if got := out.String(); got != "server ping data: "+shown+"\n" {
		t.Errorf("ping data: %q", got)
	}
	out.Reset()
	p.event(rping.PrivateData(nasty))
	if got := out.String(); strings.ContainsAny(got, "\x1b\u009b") || strings.Count(got, "\n") != 1 {
		t.Errorf("private data: %q", got)
	}
	if got := oneLine(&perf.PeerError{Text: "\x1b[2J\u009b"}); !strings.HasSuffix(got, `\u001b[2J\u009b`) {
		t.Errorf("a responder's words: %q", got)
	}
}
