//go:build linux && interposer

package programs

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// A victim is a program that goes on until one of its ends is killed. The other has to end by itself.
type victim struct {
	server, client string
	connections    int    // that are established before it moves data
	succeeds       bool   // or may, whatever has happened
	says           string // the end that is left
}

var victims = []victim{
	{"rping -s -a 127.0.0.1 -p PORT -V", "rping -c -a 127.0.0.1 -p PORT -V", 1, true, "DISCONNECT EVENT"},
	{"ib_write_bw -R -p PORT -D 100", "ib_write_bw -R -p PORT -D 100 127.0.0.1", 2, false, ""},
	{"ib_read_lat -R -p PORT -D 100", "ib_read_lat -R -p PORT -D 100 127.0.0.1", 2, false, ""},
	{"ib_write_bw -p PORT -D 100", "ib_write_bw -p PORT -D 100 127.0.0.1", 1, false, ""},
}

// killed kills either end of programs, in the middle: testdata/killed.c, which sees what becomes of each request, and
// Debian's. One that only waits for its peer is not among them in the guise of RoCE, where the end of the peer is no
// event.
func (l Library) killed(t *testing.T) {
	binary := l.program(t, "killed", pair...)
	for _, as := range []Guise{IWARP, RoCE} {
		for _, role := range []string{"connect", "listen"} {
			t.Run(string(as)+" "+role, func(t *testing.T) {
				p := start(t, l, guiseVariable+"="+string(as)+" "+binary+" "+role)
				p.await(t)
				p.wantStatus(t, func(status int) bool { return status == 3 })
			})
		}
	}
	for _, v := range victims {
		name, _, _ := strings.Cut(v.client, " 127.0.0.1")
		t.Run("client of "+name, func(t *testing.T) {
			server, client := v.startBoth(t, l)
			client.kill()
			v.judge(t, server)
		})
		t.Run("server of "+name, func(t *testing.T) {
			server, client := v.startBoth(t, l)
			server.kill()
			v.judge(t, client)
		})
	}
}

// startBoth returns when both ends move data.
func (v *victim) startBoth(t *testing.T, l Library) (server, client *process) {
	const logs = "IWARP_LOG=connection "
	port := freePort(t)
	server = start(t, l, logs+strings.ReplaceAll(v.server, "PORT", port))
	server.awaitListening(t, port)
	client = start(t, l, logs+strings.ReplaceAll(v.client, "PORT", port))
	for _, p := range []*process{server, client} {
		p.awaitSaid(t, "connection established", v.connections)
	}
	time.Sleep(200 * time.Millisecond) // in which it could go wrong
	return server, client
}

func (v *victim) judge(t *testing.T, left *process) {
	t.Helper()
	left.await(t)
	if !strings.Contains(left.out.String(), v.says) {
		t.Errorf("%s does not say %q:\n%s", left, v.says, left.out.String())
	}
	left.wantStatus(t, func(status int) bool { return status > 0 || status == 0 && v.succeeds })
}

// crashed is what a program says, or glibc, Go or a sanitizer for it, that has crashed.
var crashed = regexp.MustCompile(`panic|fatal error|goroutine \d|SIG[A-Z]+|Sanitizer|free\(\)|malloc`)

// wantStatus wants a status of the program's own, and no crash.
func (p *process) wantStatus(t *testing.T, right func(status int) bool) {
	t.Helper()
	if !right(p.ProcessState.ExitCode()) || crashed.MatchString(p.out.String()) {
		t.Errorf("%s: %v\n%s", p, p.ProcessState, p.out.String())
	}
}

// awaitSaid waits until a process has said something so many times.
func (p *process) awaitSaid(t *testing.T, what string, times int) {
	t.Helper()
	for strings.Count(p.out.String(), what) < times {
		select {
		case <-p.done:
			t.Fatalf("%s has ended: %v\n%s", p, p.err, p.out.String())
		case <-t.Context().Done():
			t.Fatalf("%s does not say %q\n%s", p, what, p.out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
