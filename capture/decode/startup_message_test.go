package decode_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A place is where a startup frame was found.
type place struct {
	frame       decode.Frame
	dir         capture.Dir
	first, last uint64
}

// places takes note of them.
type places struct {
	decode.Ignore
	all []place
}

func (p *places) Startup(_ *decode.Connection, f *decode.Startup) {
	p.all = append(p.all, place{f.Frame, f.Dir, f.First.Number, f.Last.Number})
}

// TestMessagePackets has private data messages in front of Start Keys. What they are shows later, and still each is
// told of with the packets that it came in.
func TestMessagePackets(t *testing.T) {
	s := newScript(t, 1440)
	s.send(fw, []byte{0, 3, 'a'})
	s.send(fw, []byte("bc"))
	s.send(bw, []byte{0, 2, 'o', 'k'})
	s.send(fw, []byte(startKey))
	s.send(bw, []byte(startKey))
	var got places
	_, err := decode.Run(bytes.NewReader(s.close()), decode.Config{}, &got)
	testrig.Must(t, err)
	const at = 4 // after the handshake
	want := []place{
		{decode.FrameMessage, fw, at, at + 1},
		{decode.FrameMessage, bw, at + 2, at + 2},
		{decode.FrameStartKey, fw, at + 3, at + 3},
		{decode.FrameStartKey, bw, at + 4, at + 4},
	}
	if len(got.all) != len(want) {
		t.Fatalf("%+v", got.all)
	}
	for i, p := range got.all {
		if p != want[i] {
			t.Errorf("%+v, want %+v", p, want[i])
		}
	}
}

// TestMSSOfNothing has the MSS of the SYNs for a connection that carries no FPDU, and no line on memory where nothing
// was ever held.
func TestMSSOfNothing(t *testing.T) {
	s := newScript(t, 1440)
	s.send(fw, []byte(request1))
	s.send(bw, mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, R: true, Rev: 1}))
	for d, h := range run(t, s.close()).conns[0].Halves {
		if h.Wire.MSS != 1440 {
			t.Errorf("direction %d: MSS %d", d, h.Wire.MSS)
		}
	}
	whole := newScript(t, 1440)
	whole.startup(false)
	whole.write(fw, 7, 0, make([]byte, 1000))
	if text := printed(t, whole.close()); strings.Contains(text, "memory") || !strings.Contains(text, "alignment") {
		t.Error(text)
	}
}
