package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A scene is a QP to which a peer sends a list of segments. Every Write, receive and sink has
// bytes of its own.
type scene struct {
	*peer
	buf         []byte
	window, own *memory.Region // for Writes; and for receives and sinks
	used        int            // completions that the consumer has acted on
}

const (
	sceneSegments = 12
	sceneReceives = 6
	sceneReads    = 3
	sceneSlot     = 40                        // bytes of each Write, receive and sink
	sceneRead     = 12                        // of each Read
	sceneOwn      = sceneSegments * sceneSlot // where those of receives and sinks begin
	sceneSinks    = sceneReceives * sceneSlot // and within them, those of sinks
)

func newScene(t rapid.TB, over func(*setup)) *scene { return newSceneOf(t, over, sceneReceives) }

// newSceneOf is newScene with so many receives posted.
func newSceneOf(t rapid.TB, over func(*setup), receives int) *scene {
	s := newSetup(mpa.RoleResponder)
	over(s)
	x := &scene{peer: &peer{clock: epoch}, buf: make([]byte, sceneOwn+sceneSinks+sceneReads*sceneSlot)}
	x.host = newHost(t, &x.clock, s)
	x.start(s)
	x.window = x.regionOf(x.buf[:sceneOwn], memory.Options{Access: remoteAll | memory.RemoteAtomic,
		PD: testPD, Stream: testStream})
	x.own = x.region(x.buf[sceneOwn:], memory.LocalWrite)
	for i := range receives {
		x.receive(uint64(i), x.slot(i))
	}
	for i := range sceneReads {
		x.post(work(uint64(sceneReceives+i), OpRead,
			SGE{Region: x.own, Offset: sceneSinks + i*sceneSlot, Length: sceneRead}))
	}
	x.output()
	return x
}

// slot is where a receive is for.
func (x *scene) slot(i int) SGE { return SGE{Region: x.own, Offset: i * sceneSlot, Length: sceneSlot} }

// A plot draws segments, most of them legal when they have their turn.
type plot struct {
	*rapid.T
	*scene
	msn, mo  uint32          // of the Send under way
	top      uint32          // its highest MO
	reads    uint32          // Read Requests
	answered int             // Reads
	came     [sceneRead]bool // of the one under way
	ulpdus   [][]byte
	last     []int // indices of what ends a Send
}

func (x *scene) draw(t *rapid.T) *plot {
	p := &plot{T: t, scene: x, msn: 1}
	for range rapid.IntRange(1, sceneSegments).Draw(t, "segments") {
		b := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "payload")
		f := p.segment(rapid.IntRange(0, 19).Draw(t, "kind"), b)
		if info, _ := rdmap.OpcodeOf(&f.H).Info(); f.H.Last && info.QN == rdmap.QNSend && !f.H.Tagged {
			p.last = append(p.last, len(p.ulpdus))
		}
		p.ulpdus = append(p.ulpdus, f.ulpdu())
	}
	return p
}

func (p *plot) segment(kind int, b []byte) fpdu {
	switch {
	case kind < 9:
		return p.send(b, kind > 2)
	case kind == 9 && p.mo == 0:
		p.msn++
		return sendAs(rdmap.OpSendInvalidate, p.msn-1, p.window.STag(), nil)
	case kind < 12:
		p.reads++
		return request(p.reads, readOf(p.window.STag(), uint32(len(b))))
	case kind < 15 && p.answered < sceneReads:
		return p.response()
	case kind == 15:
		return p.wrong(b)
	case kind == 17 && p.mo == 0:
		p.msn++
		return immediate(p.msn-1, uint64(len(b)))
	case kind == 18:
		p.reads++
		r := rdmap.FetchAdd(uint64(len(b)), 0)
		r.STag, r.TO = p.window.STag(), uint64(len(p.ulpdus)*sceneSlot)
		return atomicRequest(p.reads, r)
	}
	f := write(p.window.STag(), uint64(len(p.ulpdus)*sceneSlot), b)
	f.H.Last = kind != 16
	return f
}

// send draws a segment that goes on where the one before ended, or overlaps it.
func (p *plot) send(b []byte, last bool) fpdu {
	mo := p.mo
	if rapid.Bool().Draw(p.T, "overlaps") {
		mo = rapid.Uint32Range(p.top, p.mo).Draw(p.T, "MO")
	}
	f := send(p.msn, b).at(int(mo))
	p.mo, p.top = max(p.mo, mo+uint32(len(b))), mo
	if f.H.Last = last; last {
		p.msn, p.mo, p.top = p.msn+1, 0, 0
	}
	return f
}

// response draws any part of a Read.
func (p *plot) response() fpdu {
	from := rapid.IntRange(0, sceneRead-1).Draw(p.T, "from")
	b := rapid.SliceOfN(rapid.Byte(), 0, sceneRead-from).Draw(p.T, "part")
	f := response(p.own.STag(), p.own.Base()+uint64(sceneSinks+p.answered*sceneSlot+from), b)
	for i := range b {
		p.came[from+i] = true
	}
	f.H.Last = !slices.Contains(p.came[:], false) && rapid.Bool().Draw(p.T, "L")
	if f.H.Last {
		p.answered, p.came = p.answered+1, [sceneRead]bool{}
	}
	return f
}

// wrong draws a segment that is an error, or will probably be one.
func (p *plot) wrong(b []byte) fpdu {
	return []fpdu{
		message(7, b),
		send(p.msn+rapid.Uint32Range(0, 3).Draw(p.T, "MSN"), b).at(rapid.IntRange(0, 45).Draw(p.T, "MO")),
		write(p.window.STag(), sceneOwn-1, append(b, 1, 2)),
		write(rapid.Uint32().Draw(p.T, "STag"), 0, append(b, 1)),
		response(p.own.STag(), p.own.Base()+sceneSinks+rapid.Uint64Range(0, 45).Draw(p.T, "TO"), append(b, 1)),
		terminate(rdmap.CodeBaseOrBounds),
	}[rapid.IntRange(0, 5).Draw(p.T, "wrong")]
}

// play has the segments of a plot arrive in an order in which each number occurs at least once;
// the one after the last is the end.
func (x *scene) play(p *plot, order []int) {
	for _, i := range order {
		if i == len(p.ulpdus) {
			x.Machine.Ended(x.clock, uint64(i))
			x.collectOutputs()
		} else {
			x.peer.segment(uint64(i), x.translate(p, p.ulpdus[i]))
		}
		x.use(p)
	}
}

// translate names the regions of this scene in a segment.
func (x *scene) translate(p *plot, ulpdu []byte) []byte {
	name := func(r *memory.Region) []byte { return binary.BigEndian.AppendUint32(nil, r.STag()) }
	ulpdu = bytes.ReplaceAll(ulpdu, name(p.window), name(x.window))
	return bytes.ReplaceAll(ulpdu, name(p.own), name(x.own))
}

// use changes memory that the consumer has got back, by a Send that is delivered: the receive, and
// what was written before it. It would show if that were placed again.
func (x *scene) use(p *plot) {
	for ; x.used < len(x.done); x.used++ {
		c := x.done[x.used]
		if c.Op != OpReceive || c.Status != StatusSuccess {
			continue
		}
		x.buf[sceneOwn+int(c.ID)*sceneSlot] ^= 0x80
		for i := range p.last[c.ID] {
			x.buf[i*sceneSlot] ^= 0x40
		}
	}
}

// verdict is what has come of it, with other names for the regions.
func (x *scene) verdict() verdict {
	x.Helper()
	v := verdict{State: x.Machine.State(), Memory: x.buf, Sent: slices.Concat(x.segments()...),
		Done: slices.Clone(x.done), Stats: x.Machine.Stats()}
	v.Stats.Ahead = AheadStats{}
	if x.Machine.Cause() != nil {
		v.Cause = x.anonymous(x.Machine.Cause().Error())
	}
	for _, n := range x.notices {
		v.Notices = append(v.Notices, x.anonymous(noticeText(n)))
	}
	for i, r := range []*memory.Region{x.window, x.own} {
		v.Sent = bytes.ReplaceAll(v.Sent, binary.BigEndian.AppendUint32(nil, r.STag()), []byte{0, 0, 0, byte(i)})
		for j := range v.Done {
			if v.Done[j].Invalidated == r.STag() {
				v.Done[j].Invalidated = uint32(i)
			}
		}
	}
	return v
}

// segments are those that the QP sends.
func (x *scene) segments() (all [][]byte) {
	if x.Machine.Layer == LayerMessages {
		return x.letters()
	}
	for b := x.output(); len(b) > 0; {
		f, n, err := x.r.Next(b)
		if n == 0 {
			x.Fatalf("sent no FPDU: % x (%v)", b, err)
		}
		all, b = append(all, f.ULPDU), b[n:]
	}
	return all
}

func (x *scene) anonymous(s string) string {
	for _, r := range []*memory.Region{x.window, x.own} {
		s = strings.ReplaceAll(s, fmt.Sprintf("%#08x", r.STag()), "0xregion")
	}
	return crcs.ReplaceAllString(s, "other CRC") // they are over names, too
}

var crcs = regexp.MustCompile(`got 0x[0-9a-f]+ want 0x[0-9a-f]+`)

// forgive makes bytes the same that may differ: those of the segments after the last one that
// had its turn, or failed then, those of receives and Reads that did not complete, and those of a receive or Read for
// which the peer has sent more after the last segment.
func (x *scene) forgive(turns int, p *plot, memories ...[]byte) {
	told := make([]int, len(x.buf)/sceneSlot) // bytes of each slot that someone was told of
	for i := range min(turns-1, sceneSegments) {
		told[i] = sceneSlot
	}
	for _, c := range x.done {
		if c.Status == StatusSuccess {
			told[sceneSegments+int(c.ID)] = int(c.Length)
		}
	}
	for i, n := range told {
		for _, m := range memories {
			clear(m[i*sceneSlot+n : (i+1)*sceneSlot])
		}
	}
	for _, part := range p.excess() {
		for _, m := range memories {
			clear(m[part[0]:part[1]])
		}
	}
}

// excess are the bytes of receives and sinks for which there is more after the last segment, which is an error then.
// Where that came ahead, it may have been taken for what was sent last.
func (p *plot) excess() (parts [][2]int) {
	ended := map[uint64]bool{}
	for _, u := range p.ulpdus {
		s, err := ddp.Parse(u)
		if err != nil {
			continue
		}
		slot, at := uint64(s.MSN-1), uint64(s.MO)
		switch op := rdmap.OpcodeOf(&s.Header); {
		case op == rdmap.OpReadResponse:
			at = s.TO - p.own.Base()
			slot, at = at/sceneSlot, at%sceneSlot
		case s.Tagged || s.QN != rdmap.QNSend:
			continue
		}
		if from := sceneOwn + slot*sceneSlot + at; ended[slot] && from < uint64(len(p.buf)) {
			parts = append(parts, [2]int{int(from), int(min(from+uint64(len(s.Payload)), uint64(len(p.buf))))})
		}
		ended[slot] = ended[slot] || s.Last
	}
	return parts
}
