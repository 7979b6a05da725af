package monitor

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// A hall is a Monitor in memory.
type hall struct {
	*testing.T
	ln *testrig.Listener
}

func newHall(t *testing.T) *hall {
	t.Helper()
	h, err := handler(Sources{
		Server: serve.New(serve.Config{Log: slog.New(slog.DiscardHandler)}), RNIC: iwarp.NewRNIC(iwarp.RNICConfig{}),
		SCTP: new(iwarpsctp.Network), Device: "iwarp0",
	})
	testrig.Must(t, err)
	ln := testrig.NewListener("monitor")
	m := startServing(ln, h, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { testrig.Should(t, m.Close()) })
	return &hall{t, ln}
}

// says connects, and says something.
func (h *hall) says(text string) net.Conn {
	h.Helper()
	ours, theirs := testrig.Pipe("client", "monitor")
	testrig.Must(h, theirs.SetWriteBuffer(1<<12))
	testrig.Must(h, h.ln.Offer(h.Context(), theirs))
	_, err := ours.Write([]byte(text))
	testrig.Must(h, err)
	h.Cleanup(func() { _ = ours.Close() })
	return ours
}

// ended reports whether the server has ended a connection.
func (h *hall) ended(c net.Conn) bool {
	h.Helper()
	synctest.Wait()
	testrig.Must(h, c.SetReadDeadline(time.Now().Add(time.Nanosecond)))
	_, err := io.Copy(io.Discard, c)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// healthy has the server say so at once.
func (h *hall) healthy(c net.Conn) {
	h.Helper()
	testrig.Must(h, c.SetReadDeadline(time.Now().Add(time.Second)))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	testrig.Must(h, err)
	text, err := io.ReadAll(answer.Body)
	if err != nil || string(text) != "ok\n" {
		h.Errorf("%q, %v", text, err)
	}
	testrig.Must(h, answer.Body.Close())
}

const (
	health = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	slow   = "GET /healthz HTTP/1.1\r\nHost: "
)

// TestSlowClients has 700 clients that do not come to the end of a request: 64 of them are there at a time, the last
// that came, and /healthz answers within a second, to one who comes then as to one who has come before and asks now
// and then.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		regular := h.says(health)
		h.healthy(regular)
		var all []net.Conn
		for i := range 700 {
			all = append(all, h.says(slow))
			time.Sleep(time.Millisecond)
			if i%60 == 59 {
				_, err := regular.Write([]byte(health))
				testrig.Must(t, err)
				h.healthy(regular)
			}
		}
		last := h.says(health)
		h.healthy(last)
		for i, c := range all {
			if gone := i < len(all)-(most-2); h.ended(c) != gone {
				t.Errorf("client %d has ended: %t", i, !gone)
			}
		}
		if h.ended(regular) || h.ended(last) {
			t.Error("one that asks has to leave")
		}
	})
}

// TestPlacesAgain has clients leave: others get their places, and nobody has to go for that.
func TestPlacesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		first := h.says(slow)
		for range 2 {
			for range most - 1 {
				time.Sleep(time.Millisecond)
				c := h.says(slow)
				synctest.Wait()
				testrig.Must(t, c.Close())
			}
		}
		if h.ended(first) {
			t.Error("who is there alone has to leave")
		}
	})
}

// TestTimeouts has a client be ended that is slow with its header, that asks for nothing more, or that does not read
// the answer.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		for _, c := range []struct {
			text string
			time time.Duration
		}{{"", headerTime}, {slow, headerTime}, {health, idleTime}} {
			conn := h.says(c.text)
			time.Sleep(c.time - time.Second)
			if h.ended(conn) {
				t.Errorf("%q: it has ended within %v", c.text, c.time-time.Second)
			}
			time.Sleep(2 * time.Second)
			if !h.ended(conn) {
				t.Errorf("%q: it has not ended after %v", c.text, c.time+time.Second)
			}
		}
		conn := h.says(strings.Repeat(health, 10000))
		time.Sleep(requestTime + time.Second)
		if !h.ended(conn) {
			t.Error("who does not read is still there")
		}
	})
}
