//go:build interop

package interop_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A Proc is a program that runs on the host or in a guest. Its stdout and
// stderr come together, in the order in which they were written.
type Proc struct {
	name string
	done chan struct{} // closed when the program has ended and status is set
	stop func()        // ends the program; may be called at any time

	status int
	out    testrig.Buffer
}

// unknownStatus is the status of a program that was lost, not one that ended.
const unknownStatus = -1

// newProc ties a Proc to a test: it is stopped when the test ends, and a
// failure shows what it printed.
func newProc(t testing.TB, name string) *Proc {
	p := &Proc{name: name, done: make(chan struct{}), status: unknownStatus}
	t.Cleanup(func() {
		p.Stop(t)
		if t.Failed() {
			t.Logf("output of %s (status %d):\n%s", p.name, p.status, brief(p.Output()))
		}
	})
	return p
}

// startHost starts a program on the host.
func startHost(t testing.TB, name string, args ...string) *Proc {
	t.Helper()
	p := newProc(t, strings.Join(append([]string{"host: " + name}, args...), " "))
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	cmd.WaitDelay = 2 * time.Second // a grandchild may hold the pipe open
	if err := cmd.Start(); err != nil {
		close(p.done)
		p.stop = func() {}
		t.Fatalf("%s: %v", p.name, err)
	}
	p.stop = func() { terminate(cmd.Process, p.done) }
	go func() {
		defer close(p.done)
		p.status = exitStatus(cmd.Wait())
	}()
	return p
}

// terminate asks first, since siw-vm has a guest to take down with it.
func terminate(proc *os.Process, done <-chan struct{}) {
	proc.Signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		proc.Kill()
	}
}

func exitStatus(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return unknownStatus
}

// Output is what the program has printed so far.
func (p *Proc) Output() string { return p.out.String() }

// Stop ends the program, if it still runs, and waits for its end.
func (p *Proc) Stop(t testing.TB) {
	select {
	case <-p.done:
		return
	default:
	}
	p.stop()
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		t.Errorf("%s does not end", p.name)
	}
}

// Wait returns the program's exit status. A program that has not ended after d
// is stopped, and fails the test.
func (p *Proc) Wait(t testing.TB, d time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.status
	case <-time.After(d):
	}
	p.Stop(t)
	t.Fatalf("%s: not done after %v", p.name, d)
	return unknownStatus
}

// WantSuccess waits for exit status 0.
func (p *Proc) WantSuccess(t testing.TB, d time.Duration) {
	t.Helper()
	if status := p.Wait(t, d); status != 0 {
		t.Fatalf("%s: status %d, want 0", p.name, status)
	}
}

// WantFailure waits for another exit status than 0.
func (p *Proc) WantFailure(t testing.TB, d time.Duration) {
	t.Helper()
	if status := p.Wait(t, d); status == 0 {
		t.Fatalf("%s: status 0, want a failure", p.name)
	}
}

// WantOutput waits until the program has printed text, for 10 s at most, which
// it may do in a line that is still to come, or with its last breath.
func (p *Proc) WantOutput(t testing.TB, text string) {
	t.Helper()
	ok := poll(10*time.Second, func() bool {
		ended := p.ended()
		return strings.Contains(p.Output(), text) || ended
	})
	if !ok || !strings.Contains(p.Output(), text) {
		t.Errorf("%s: its output has no %q", p.name, text)
	}
}

func (p *Proc) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// poll calls f until it is true, and says whether that came within d.
func poll(d time.Duration, f func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if f() {
			return true
		}
	}
	return f()
}

// brief keeps the middle of a very long output out of a failure's report, and
// the middle of the long lines of ping data.
func brief(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if len(l) > 300 {
			lines[i] = l[:120] + " [...] " + l[len(l)-60:]
		}
	}
	if n := len(lines); n > 100 {
		lines = append(append(lines[:50:50], "[...]"), lines[n-50:]...)
	}
	return strings.Join(lines, "\n")
}
