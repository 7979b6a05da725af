//go:build linux && (amd64 || arm64)

package verbs

import (
	"strings"
	"testing"
	"time"
)

// TestRNRWaits has the times of InfiniBand, and our bounds.
func TestRNRWaits(t *testing.T) {
	for code, unit := range map[uint8]time.Duration{
		0: 655360 * time.Microsecond, 1: 10 * time.Microsecond, 2: 20 * time.Microsecond, 3: 30 * time.Microsecond,
		4: 40 * time.Microsecond, 5: 60 * time.Microsecond, 12: 640 * time.Microsecond, 13: 960 * time.Microsecond,
		30: 327680 * time.Microsecond, 31: 491520 * time.Microsecond,
	} {
		want(t, "a timer", rnrTimer(code), unit)
	}
	for _, c := range []struct {
		retries, timer uint8
		want           time.Duration
	}{
		{0, 31, 0}, {1, 1, 100 * time.Millisecond}, {6, 13, 100 * time.Millisecond}, {2, 31, 983040 * time.Microsecond},
		{6, 0, 3932160 * time.Microsecond}, {7, 1, time.Minute}, {255, 0, time.Minute},
	} {
		want(t, "how long", rnrWait(c.retries, c.timer), c.want)
	}
}

const noReceive = "found no posted receive"

// TestRNRRetries: a Send that comes before its receive waits for it, if the program wants that, and ends the connection
// otherwise, as iWARP has it. Then the log says what helps.
func TestRNRRetries(t *testing.T) {
	for _, c := range []struct {
		name  string
		rnr   ConnParam
		waits bool
	}{
		{"no retries", ConnParam{}, false},
		{"retries", ConnParam{RNRRetries: 7}, true},
		{"too few", ConnParam{RNRRetries: 1, MinRNRTimer: 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, log := logged()
			client, server, _, _ := connectPatient(t, Config{}, cfg, c.rnr)
			client.send(1, wrSend, client.region("text", 0), nil)
			if c.waits {
				time.Sleep(2 * rnrLeast)
				server.recv(2, server.region("....", accessLocalWrite))
				want(t, "received", server.completion().ID, 2)
				want(t, "advice", strings.Contains(log.String(), noReceive), false)
				return
			}
			server.event(Disconnected)
			until(t, "advice", func() bool { return strings.Contains(log.String(), noReceive+", which ended the connection: with") })
		})
	}
}

// TestRNRGivenUp: a program that ends a connection while a Send waits is told nothing of that.
func TestRNRGivenUp(t *testing.T) {
	cfg, log := logged()
	client, server, _, passive := connectPatient(t, Config{}, cfg, ConnParam{RNRRetries: 7})
	client.send(1, wrSend, client.region("text", 0), nil)
	time.Sleep(rnrLeast)
	must(t, server.d.Disconnect(passive))
	server.event(Disconnected)
	until(t, "the end in the log", func() bool { return strings.Contains(log.String(), "0x1202") })
	must(t, server.d.DestroyQP(server.qp))
	time.Sleep(rnrLeast)
	want(t, "advice", strings.Contains(log.String(), noReceive), false)
}

// TestRNRHungUp: a program that posts no receive for a last Send learns all the same that the peer has gone.
func TestRNRHungUp(t *testing.T) {
	client, server, active, _ := connectPatient(t, Config{}, Config{}, ConnParam{RNRRetries: 7})
	client.send(1, wrSend, client.region("text", 0), nil)
	client.completion()
	began := time.Now()
	must(t, client.d.Disconnect(active))
	server.event(Disconnected)
	if took := time.Since(began); took > rnrForever/2 {
		t.Errorf("after %v", took)
	}
}
