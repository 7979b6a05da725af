package iwarp_test

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// noPeer is the one message of a moment at which no peer is known.
const noPeer = "iwarp: cannot accept a TCP connection now"

// A listening is a log handler that wants both addresses in every record.
type listening struct {
	t    *testing.T
	mu   sync.Mutex
	said map[string]bool
}

func (l *listening) hear(r slog.Record) {
	told := map[string]string{}
	r.Attrs(func(a slog.Attr) bool { told[a.Key] = a.Value.String(); return true })
	unconnected := told["from"] == "Idle" && told["to"] == "Error" // a QP that is given up without a connection
	if !unconnected && (told["local"] == "" || told["peer"] == "" && r.Message != noPeer) {
		l.t.Errorf("%q has no addresses: %v", r.Message, told)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said[r.Message] = true
}

// has reports whether a message with that beginning was logged.
func (l *listening) has(beginning string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for said := range l.said {
		if strings.HasPrefix(said, beginning) {
			return true
		}
	}
	return false
}

// messages returns the beginnings of all messages that the package logs, from its source.
func messages(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	must(t, err)
	logged := regexp.MustCompile(`(?:\.Log|logLater|\.record)\(.*?"(iwarp: [^"]+)"`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(t, err)
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		for _, m := range logged.FindAllStringSubmatch(string(text), -1) {
			all = append(all, m[1])
		}
	}
	if len(all) < 9 {
		t.Fatalf("found only %q", all)
	}
	return all
}

// TestLogTellsAddresses brings about every message that is logged: each has the addresses of both ends. (TestLogBounded has that
// about dropped records.)
func TestLogTellsAddresses(t *testing.T) {
	l := &listening{t: t, said: map[string]bool{}}
	rnic := newRNIC(t, iwarp.RNICConfig{Logger: slog.New(handler(l.hear))})
	pd := newPD(t, rnic)
	ini, res := setup{ // which asks for a timeout of a connection that is not TCP's
		Dialer: iwarp.Dialer{PD: pd, QP: iwarp.QPConfig{UserTimeout: time.Second}, Wrap: func(c net.Conn) (net.Conn, error) { return &callback{Conn: c}, nil }},
		accept: iwarp.AcceptConfig{PD: pd},
	}.connect(t)
	works(t, ini, res)
	finish(t, ini, res)
	triesAgain(t, pd)
	failsToStart(t, rnic)
	for _, m := range messages(t) {
		if strings.Contains(m, "records dropped") {
			continue
		}
		until(t, func() bool { return l.has(m) }, m)
	}
}

// triesAgain connects to a peer that knows revision 1 only.
func triesAgain(t *testing.T, pd *iwarp.PD) {
	t.Helper()
	ln := listenTCP(t)
	ini := &end{t: t}
	dialed := ini.dials(iwarp.Dialer{PD: pd}, ln)
	_ = acceptRequest(t, ln).conn.Close()
	p := acceptRequest(t, ln)
	p.send(frame(reply(1)))
	must(t, <-dialed)
	_ = ini.Abort()
}

// failsToStart has a Listener get something that is no Request, after the system had no descriptors for a while.
func failsToStart(t *testing.T, rnic *iwarp.RNIC) {
	t.Helper()
	broken := &brokenListener{Listener: listenTCP(t), errs: []error{temporaryError{errors.New("too many open files")}}}
	ln := iwarp.NewListener(broken, iwarp.ListenConfig{RNIC: rnic})
	t.Cleanup(func() { _ = ln.Close() })
	dialPeer(t, ln.Addr()).send(make([]byte, mpa.StartupHeaderLen))
}
