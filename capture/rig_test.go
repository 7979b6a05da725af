package capture_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"time"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)

var server = netip.MustParseAddrPort("10.0.0.2:4791")

// client is the client's end of a connection to server.
func client(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port)
}

func newWriter(tb rapid.TB, to io.Writer, cfg capture.WriterConfig) *capture.Writer {
	tb.Helper()
	w, err := capture.NewWriter(to, cfg)
	testrig.Must(tb, err)
	return w
}

func openFlow(tb rapid.TB, w *capture.Writer, port uint16) *capture.Flow {
	tb.Helper()
	f, err := w.Open(client(port), server, epoch)
	testrig.Must(tb, err)
	return f
}

func openBytes(tb rapid.TB, file []byte) *capture.Reader {
	tb.Helper()
	r, err := capture.Open(bytes.NewReader(file))
	testrig.Must(tb, err)
	return r
}

// track gives a whole capture to a Tracker with the default limits.
func track(tb rapid.TB, file io.Reader, sink capture.Sink) {
	tb.Helper()
	r, err := capture.Open(file)
	testrig.Must(tb, err)
	t := capture.NewTracker(capture.Config{}, sink)
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		testrig.Must(tb, err)
		t.Packet(p)
	}
	t.Flush()
}
