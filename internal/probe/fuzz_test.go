package probe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// How a peer goes on after its bytes.
const (
	hangsUp = iota
	resets
	holds
	repeats // its bytes, for as long as they are taken
	drips   // one byte a second
	manners
)

// answering is a peer that says the same whatever it is asked, and even if it is not.
func answering(data []byte, manner uint8, unasked bool) func(net.Conn) {
	return func(c net.Conn) {
		if !unasked {
			_, _ = c.Read(make([]byte, 4096))
		}
		for i := 0; manner%manners == drips && i < len(data); i++ {
			if _, err := c.Write(data[i : i+1]); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
		if len(data) > 0 && manner%manners == repeats {
			for many := bytes.Repeat(data, 1+4096/len(data)); ; {
				if _, err := c.Write(many); err != nil {
					return
				}
			}
		}
		if len(data) > 0 {
			if _, err := c.Write(data); err != nil {
				return
			}
		}
		switch manner % manners {
		case hangsUp:
			return
		case resets:
			_ = script.NewLink(c).Reset()
		default:
			for {
				if _, err := c.Read(make([]byte, 4096)); err != nil {
					return
				}
			}
		}
	}
}

// wantReport holds what is true of every report.
func wantReport(t *testing.T, r *probe.Report) {
	t.Helper()
	if n := len(r.Questions); n < 3 || n > 60 || n < 9 && !r.NotMPA {
		t.Errorf("%d questions", n)
	}
	for _, q := range r.Questions {
		if q.Outcome == probe.None || q.Milliseconds < 0 || q.Milliseconds > 1e3*probe.DefaultTimeout.Seconds()+1 {
			t.Errorf("%+v", q)
		}
	}
	if r.Preset != "" {
		if _, err := iwarp.LookupPreset(r.Preset); err != nil || len(r.Dialects) == 0 {
			t.Errorf("preset %q, dialects %v (%v)", r.Preset, r.Dialects, err)
		}
	}
	if s := text(t, r); !strings.Contains("\n"+s, "\npeer:1: ") || len(s) > 20_000 {
		t.Errorf("%d bytes of text: %.200s", len(s), s)
	}
	if b, err := json.Marshal(r); err != nil || len(b) > 100_000 {
		t.Errorf("%d bytes of JSON (%v)", len(b), err)
	}
}

func startup(f mpa.StartupFields) []byte { return mpa.AppendStartup(nil, &f) }

// accepting is a Reply with enhanced data, and FPDUs after it.
func accepting(fpdus ...[]byte) []byte {
	e := mpa.Enhanced{A: true, D: true, IRD: 1, ORD: 1}
	f := startup(mpa.StartupFields{Key: mpa.KeyReply, C: true, S: true, Rev: 2,
		PrivateData: mpa.AppendEnhanced(nil, &e)})
	return append(f, slices.Concat(fpdus...)...)
}

func fpdu(op rdmap.Opcode, markers bool) []byte {
	l := script.NewLink(nil)
	l.Operate(script.Terms{MarkersSend: markers, CRC: true, Version: 1})
	return l.Segment(l.Header(op), nil)
}

// FuzzPeer has a peer answer anything, by three texts in turns: the probe ends, without
// a panic, and says something. A peer that drips may use up the time for all questions. Without IWARP_ALL each of the texts has two manners.
func FuzzPeer(f *testing.F) {
	garbage := []byte("SSH-2.0-something\r\n")
	ones := slices.Repeat([]byte{0xff}, 70_000)
	long := startup(mpa.StartupFields{Key: mpa.KeyReply, Rev: 1, PrivateData: make([]byte, 512)})
	huge := append([]byte(mpa.KeyReply), 0x40, 2, 0xff, 0xff)
	plain := startup(mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: 1})
	markers := startup(mpa.StartupFields{Key: mpa.KeyReply, M: true, C: true, Rev: 1})
	rdmac := startup(mpa.StartupFields{Key: mpa.KeyReply, M: true, C: true})
	rejecting := startup(mpa.StartupFields{Key: mpa.KeyReply, R: true, S: true, Rev: 2})
	key := mpa.AppendStartKey(nil, &mpa.StartKeyFields{})
	response, terminate := fpdu(rdmap.OpReadResponse, false), fpdu(rdmap.OpTerminate, false)
	for n, texts := range [][3][]byte{
		{nil, nil, nil},
		{garbage, ones, long},
		{huge, append(huge, ones...), plain},
		{accepting(), accepting(response), accepting(terminate)},
		{accepting(ones), accepting(fpdu(rdmap.OpSend, true)), accepting([]byte{0, 0})},
		{markers, slices.Concat(markers, fpdu(rdmap.OpReadResponse, true)), rdmac},
		{rejecting, key, slices.Concat(key, response)},
		{nil, accepting(), nil}, // holds, and uses up the time for all questions
		{startup(mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: 1}), plain[:19], accepting()[:23]},
	} {
		for manner := range manners {
			if testrig.Everything() || (n+manner)%3 == 0 {
				f.Add(texts[0], texts[1], texts[2], uint8(manner), n%4 == 1)
			}
		}
	}
	f.Fuzz(func(t *testing.T, a, b, c []byte, manner uint8, unasked bool) {
		texts := [][]byte{a, b, c}
		r, err := tried(t, probe.Config{}, func(conn net.Conn) {
			number, _ := strconv.Atoi(conn.LocalAddr().String())
			answering(texts[number%len(texts)], manner, unasked)(conn)
		})
		if err != nil && !(errors.Is(err, probe.ErrOutOfTime) && r != nil && r.OutOfTime && r.Incomplete) {
			t.Fatal(err)
		}
		wantReport(t, r)
	})
}

// TestUncivilPeers meets ends that no seed has to stand for: nothing is ever heard.
func TestUncivilPeers(t *testing.T) {
	for name, c := range map[string]struct {
		play func(net.Conn)
		want probe.Outcome
	}{
		"hangs up at once":  {func(net.Conn) {}, probe.Reset},
		"hangs up":          {answering(nil, hangsUp, false), probe.Closed},
		"resets at once":    {func(c net.Conn) { _ = script.NewLink(c).Reset() }, probe.Reset},
		"never says a word": {answering(nil, holds, false), probe.Silent},
		"talks without end": {answering([]byte("HTTP/1.1 200 OK\r\n"), repeats, false), probe.Foreign},
		"one byte a second": {answering([]byte("MPA ID Rep Frame"), drips, false), probe.Incomplete},
	} {
		r := probing(t, probe.Config{}, c.play)
		wantReport(t, r)
		for _, q := range r.Questions {
			if q.Outcome != c.want {
				t.Errorf("%s: %+v", name, q)
			}
		}
		if len(r.Dialects) != 0 || r.Preset != "" || r.FirstFPDUs.Plain != nil {
			t.Errorf("%s: %s", name, text(t, r))
		}
	}
}
