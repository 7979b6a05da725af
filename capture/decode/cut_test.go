package decode_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// snapped returns a pcap file whose packets were cut at a length.
func snapped(tb testing.TB, file []byte, snap int) []byte {
	tb.Helper()
	r, err := capture.Open(bytes.NewReader(file))
	testrig.Must(tb, err)
	p := &tape{snap: snap}
	for {
		packet, err := r.Next()
		if err != nil {
			return p.file.Bytes()
		}
		if p.file.Len() == 0 {
			p.file.Write(pcapHeader(packet.Link))
		}
		p.now = packet.Time
		p.write(packet.Data)
	}
}

// expecting decodes a capture in which connections to a port are said to be iWARP.
func expecting(tb testing.TB, file []byte, port uint16) *record {
	tb.Helper()
	r := new(record)
	expect := func(c *capture.Connection) bool { return c.Halves[bw].Addr.Port() == port }
	_, err := decode.Run(bytes.NewReader(file), decode.Config{Expect: expect}, r)
	testrig.Must(tb, err)
	return r
}

// TestSnapLengths cuts captures of real connections at many lengths: what is missing leads to no
// accusation, and no connection has failed by it.
func TestSnapLengths(t *testing.T) {
	for _, path := range testrig.Captures(t, testrig.Stored) {
		file, err := os.ReadFile(path)
		testrig.Must(t, err)
		whole := run(t, file)
		failed, port := whole.conns[0].Failed(), whole.conns[0].TCP.Halves[bw].Addr.Port()
		for snap := 60; snap <= 200; snap += 7 {
			cut := snapped(t, file, snap)
			for _, r := range []*record{run(t, cut), expecting(t, cut, port)} {
				for _, text := range r.texts {
					name := strings.Join(strings.Fields(text)[:2], " ")
					if !strings.HasPrefix(name, "note ") && !slices.Contains(whole.findings, name) {
						t.Errorf("%s cut at %d: %s", filepath.Base(path), snap, text)
					}
				}
				for _, c := range r.conns {
					if c.Failed() != "" && c.Failed() != failed && !c.TCP.Halves[0].Midstream {
						t.Errorf("%s cut at %d: failed: %s", filepath.Base(path), snap, c.Failed())
					}
				}
			}
		}
	}
}

// TestCutFrames has startup frames whose private data the snap length has cut off: all that they say
// of the connection is there. If less of them is there, they show that it is iWARP.
func TestCutFrames(t *testing.T) {
	e := mpa.AppendEnhanced(nil, &mpa.Enhanced{A: true, C: true, IRD: 4, ORD: 2})
	frame := func(key string) []byte {
		return mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, C: true, S: true, Rev: 2,
			PrivateData: append(e, "private"...)})
	}
	for _, c := range []struct {
		shown int // of a frame
		iwarp bool
		texts []string // that are found
	}{
		{24, true, []string{"capture-gap [] -> at 24: not judged: 7 bytes cut",
			"capture-gap [] <- at 24: not judged: 7 bytes cut"}},
		{30, true, []string{"capture-gap [] -> at 30: not judged: 1 byte cut",
			"capture-gap [] <- at 30: not judged: 1 byte cut"}},
		{22, true, []string{"capture-gap", "not-decoded", "capture-gap", "not-decoded",
			"startup-missing [] -> at 0: no whole startup frame was found, and the capture lacks 18 bytes"}},
		{12, true, []string{"capture-gap", "not-decoded", "capture-gap", "not-decoded",
			"startup-missing [] -> at 0: no whole startup frame was found, and the capture lacks 38 bytes"}},
		{2, false, nil},
	} {
		p := opened()
		p.snap = 40 + c.shown
		p.data(fw, frame(mpa.KeyRequest))
		p.data(bw, frame(mpa.KeyReply))
		p.packet(fw, finAck, nil)
		p.packet(bw, finAck, nil)
		var out bytes.Buffer
		text := decode.NewText(&out, decode.TextConfig{Hex: true})
		totals, err := decode.Run(bytes.NewReader(p.file.Bytes()), decode.Config{}, text)
		testrig.Must(t, err)
		text.Totals(totals)
		testrig.Must(t, text.Flush())
		r := p.decoded(t)
		var got []string
		for _, text := range r.texts {
			got = append(got, strings.TrimPrefix(text, "note "))
		}
		if !slices.EqualFunc(got, c.texts, strings.HasPrefix) || totals.IWARP == 1 != c.iwarp ||
			totals.Cut != 2 || totals.Failed > 0 {
			t.Errorf("%d bytes: found %q, totals %v, %d cut", c.shown, r.texts, &totals, totals.Cut)
		}
		said := fmt.Sprintf("cut off by the snap length: 2 packets%s; capture whole packets: tcpdump -s 0\n",
			map[bool]string{false: ", so that iWARP may have gone unnoticed"}[c.iwarp])
		if !strings.Contains(out.String(), said) {
			t.Errorf("%d bytes: %q is not in\n%s", c.shown, said, &out)
		}
		if c.shown < 24 {
			continue
		}
		if conn := r.conns[0]; !conn.Agreed || conn.Enhanced[bw].IRD != 4 || conn.PrivateData[fw] != nil {
			t.Errorf("%d bytes: %+v", c.shown, conn)
		}
		if want := fmt.Sprintf("ird 4 ord 2 peer2peer write RTR, cut off: %d byte",
			31-c.shown); !strings.Contains(out.String(), want) {
			t.Errorf("%d bytes: %q is not in\n%s", c.shown, want, &out)
		}
	}
}

// TestCutBehind has FPDUs in one segment with a Reply, which the snap length has cut within its private data.
func TestCutBehind(t *testing.T) {
	reply := mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: 1,
		PrivateData: []byte("private")})
	p := opened()
	p.data(fw, []byte(request1))
	p.snap = 40 + 22
	p.data(bw, append(reply, sized(1, 100)...))
	p.snap = 0
	p.data(bw, sized(1, 200))
	r := p.decoded(t)
	r.wantTexts(t, "capture-gap [] <- at 22: not judged: 5 bytes cut",
		"capture-gap [] <- at 27: not judged: 100 bytes cut")
	if c := r.conns[0]; !c.Agreed || c.Halves[bw].FPDUs != 1 || len(r.startups) != 2 {
		t.Errorf("%q, %q, %+v", r.texts, r.startups, c.Halves[bw])
	}
}

// TestNoCutFrame has a key that is cut amid text, and a frame of which a part was lost: neither is a frame.
func TestNoCutFrame(t *testing.T) {
	p := opened()
	p.snap = 40 + 28
	p.data(fw, []byte("the key is MPA ID Req Frame, in letters"))
	if r := p.decoded(t); len(r.conns) > 0 {
		t.Errorf("text: %q", r.texts)
	}
	reply := mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: 1,
		PrivateData: []byte("private")})
	p = opened()
	p.data(fw, []byte(request1))
	p.snap = 40 + 24
	p.data(bw, reply[:25])
	p.snap = 0
	p.data(bw, reply[25:])
	if r := p.decoded(t); len(r.startups) != 1 || r.conns[0].Agreed {
		t.Errorf("in two segments: %q, %q", r.startups, r.texts)
	}
	p = opened()
	p.data(fw, []byte(request1))
	p.data(bw, reply[:24])
	p.seq[bw] += 3
	p.packet(fw, finAck, nil)
	if r := p.decoded(t); len(r.startups) != 1 || r.conns[0].Agreed {
		t.Errorf("lost: %q, %q", r.startups, r.texts)
	}
}

// TestCutRejection has a rejection whose private data is cut off.
func TestCutRejection(t *testing.T) {
	p := opened()
	p.data(fw, []byte(request1))
	p.snap = 40 + 23
	p.data(bw, mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, R: true, Rev: 1,
		PrivateData: []byte("no room")}))
	p.decoded(t).wantTexts(t, "rejected [Q10] <- at 0: the Responder has rejected the connection, with private data that was cut off")
}

// TestLateCapture has connections that are said to be iWARP, and whose beginning the capture does not have: what is in
// them, of which nothing can be made, is not blamed for having no key.
func TestLateCapture(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(p *tape)
		want string
	}{
		{"bytes in the middle", func(p *tape) { p.data(fw, []byte("some bytes of something that began before")) },
			"note startup-missing [] -> at 0: the capture begins after the connection, and no FPDU was found in it"},
		{"a FIN alone", func(p *tape) {
			p.packet(fw, finAck, nil)
			p.packet(bw, finAck, nil)
		}, "note startup-open [] -> at 0: the capture begins after the connection, and has no byte of it"},
		{"another protocol, cut", func(p *tape) {
			p.open()
			p.snap = 60
			p.data(fw, []byte("GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"))
		}, "error wrong-key [Q02] -> at 0: no startup frame, in 41 bytes: got an HTTP request"},
		{"a part of a key, and the end", func(p *tape) {
			p.open()
			p.data(fw, []byte("MPA I"))
			p.packet(fw, finAck, nil)
		}, "error wrong-key [Q02] -> at 0: no startup frame, in 5 bytes"},
		{"closed by the other end first", func(p *tape) {
			p.open()
			p.packet(bw, finAck, nil)
			p.packet(fw, finAck, nil)
		}, "warning closed-at-startup [Q16] <- at 0: the connection is closed before a byte was sent: this end has closed it first"},
	} {
		p := newTape(capture.LinkRaw)
		c.play(p)
		r := expecting(t, p.file.Bytes(), server.Port())
		if !slices.ContainsFunc(r.texts, func(text string) bool { return strings.HasPrefix(text, c.want) }) ||
			len(r.serious()) > 1 {
			t.Errorf("%s: found %q, want %q", c.name, r.texts, c.want)
		}
	}
}
