package probe_test

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/mpa"
)

// names are those of the questions that were asked.
func names(r *probe.Report) (all []string) {
	for _, q := range r.Questions {
		all = append(all, q.Name)
	}
	return all
}

// stays neither answers nor ends a connection before the probe has left it.
func stays(c net.Conn) {
	answering(nil, holds, false)(c)
	time.Sleep(time.Minute)
}

// TestGiveUp asks a server that holds each connection open and answers nothing: in the time that there is
// for that it is asked about each kind of frame, and it is told what it was not asked.
func TestGiveUp(t *testing.T) {
	var began, last time.Time
	r := probing(t, probe.Config{Progress: func(string) {
		if last = time.Now(); began.IsZero() {
			began = last
		}
	}}, stays)
	asked := []string{"revision 1", "revision 2, peer-to-peer", "revision 0, markers",
		"revision 1 with S: the Rtr frame", "Start Key"}
	if got := names(r); !slices.Equal(got, asked) {
		t.Errorf("asked %q", got)
	}
	left := []string{"revision 2, client-server (A=0)", "revision 2 without S", "revision 3 with S",
		"revision 3 without S", "revision 1, SMB Direct"}
	if !slices.Equal(r.NotAsked, left) {
		t.Errorf("not asked %q", r.NotAsked)
	}
	if spent := last.Sub(began); spent > probe.DefaultGiveUp-time.Second {
		t.Errorf("the last question came after %v", spent)
	}
	if s := text(t, r); !strings.Contains(s, "Not asked") ||
		!strings.Contains(s, "revision 3 with S; revision 3 without S") {
		t.Error(s)
	}
}

// TestGiveUpLater asks a server that knows revision 0 only, and is silent about all else: as soon as it
// has answered there is no hurry any more.
func TestGiveUpLater(t *testing.T) {
	r := probing(t, probe.Config{}, func(c net.Conn) {
		b := make([]byte, 64)
		if n, _ := c.Read(b); n >= mpa.KeyLen+2 && b[mpa.KeyLen+1] == 0 {
			_, _ = c.Write(startup(mpa.StartupFields{Key: mpa.KeyReply, M: true, C: true}))
		}
		_, _ = c.Read(b)
	})
	if len(r.NotAsked) > 0 || r.Revisions.ThreePlain == nil || !slices.Contains(r.Dialects, mpa.DialectRevision0) {
		t.Errorf("%+v", r)
	}
	if all := names(r); !slices.Contains(all, "revision 1, SMB Direct") {
		t.Errorf("asked %q", all)
	}
}

// TestGiveUpNever asks a silent server everything, each question once.
func TestGiveUpNever(t *testing.T) {
	r := probing(t, probe.Config{GiveUp: -1, Slow: true}, stays)
	all := names(r)
	slices.Sort(all)
	if len(r.NotAsked) > 0 || len(all) != 11 || len(slices.Compact(all)) != 11 || r.NoRequest == nil {
		t.Errorf("asked %q, not %q", all, r.NotAsked)
	}
	for _, q := range r.Questions[:10] {
		if q.Milliseconds != 3000 {
			t.Errorf("%+v", q)
		}
	}
}

// TestGiveUpAtOnce has less time for a silent server than one answer may take.
func TestGiveUpAtOnce(t *testing.T) {
	r := probing(t, probe.Config{GiveUp: time.Second, Slow: true}, stays)
	if got := names(r); !slices.Equal(got, []string{"revision 1", "no Request"}) || len(r.NotAsked) != 9 {
		t.Errorf("asked %q, not %q", got, r.NotAsked)
	}
	if q := r.Revisions.One; q.Milliseconds != 1000 {
		t.Errorf("%+v", q)
	}
}
