package matrix

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A transcript is the bytes of one connection, taken apart without any other knowledge
// of the connection.
type transcript struct {
	frames [2][][]byte // startup frames, by direction
	rest   [2][]byte   // what follows them
	turns  []turn
}

// read takes apart what went over a wire. messages: each side begins with a private
// data message, which has no key.
func (w *wire) read(messages bool) transcript {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := transcript{turns: w.turns}
	for dir, b := range w.bytes {
		t.frames[dir], t.rest[dir] = splitStartup(b, messages)
	}
	return t
}

// splitStartup separates the startup frames at the head of a direction.
func splitStartup(b []byte, message bool) (frames [][]byte, rest []byte) {
	for {
		n := startupLen(b, message && len(frames) == 0)
		if n == 0 {
			return frames, b
		}
		frames = append(frames, b[:n])
		b = b[n:]
	}
}

// startupLen returns the size of the startup frame at the head of b, or 0.
func startupLen(b []byte, message bool) int {
	if _, rest, ok := mpa.CutStartup(b); ok {
		return len(b) - len(rest)
	}
	if message {
		m, _ := mpa.ParsePrivateDataMessage(b)
		return len(m)
	}
	return 0
}

// describe returns a line for each startup frame, those of the initiator first.
func (t *transcript) describe() (lines []string) {
	for dir, frames := range t.frames {
		for _, f := range frames {
			lines = append(lines, direction(dir).String()+" "+mpa.DescribeStartup(f))
		}
	}
	return lines
}

// terms is what a startup frame says about the connection.
type terms struct {
	dialect mpa.Dialect
	rev     uint8
	asked   string
	e       *mpa.Enhanced
	found   bool
	rejects bool // R=1
}

// terms returns what the Request, Reply or Start Key of a direction says.
func (t *transcript) terms(dir direction) (found terms) {
	for _, b := range t.frames[dir] {
		switch found, _, _ := mpa.CutStartup(b); f := found.(type) {
		case mpa.StartKey:
			return terms{mpa.DialectStartKey, f.Rev(), cmp.Or(f.Flags(), "-"), nil, true, false}
		case mpa.StartupFrame:
			if f.Key() == mpa.KeyRequest || f.Key() == mpa.KeyReply {
				return frameTerms(f)
			}
		}
	}
	return found
}

func frameTerms(f mpa.StartupFrame) terms {
	t := terms{dialect: f.Dialect(), rev: f.Rev(), asked: cmp.Or(f.Flags(), "-"), found: true, rejects: f.R()}
	if e, ok := f.Enhanced(); ok {
		t.e = &e
	}
	return t
}

// addFacts notes what the wire shows of an accepting startup, and of what was sent after it.
func (t *transcript) addFacts(f *facts) {
	q, p := t.terms(toResponder), t.terms(toInitiator)
	if q.found && p.found {
		f.sayf(onWire, "rev", "%d/%d", q.rev, p.rev)
		f.sayf(onWire, "asked", "%s/%s", q.asked, p.asked)
	}
	f.addEnhanced(q.e, p.e)
	if n := len(t.frames[toResponder]); n > 1 && bytes.HasPrefix(t.frames[toResponder][n-1], []byte(mpa.KeyRtr)) {
		r := mpa.StartupFrame(t.frames[toResponder][n-1])
		// M is the Request's, and stands in "asked"
		f.say(onWire, "rtrframe", cmp.Or(strings.TrimPrefix(r.Flags(), "M"), "-"))
	}
	// S alone in a Reply is a reserved bit that was echoed.
	if p.dialect == mpa.DialectRtr && q.dialect != mpa.DialectRtr {
		p.dialect = mpa.DialectRFC5044
	}
	if p.found && !p.rejects {
		t.addAccepted(f, p)
	}
}

// addAccepted says what an accepting Reply and the FPDUs after it say.
func (t *transcript) addAccepted(f *facts, reply terms) {
	up, down := readFPDUs(t.rest[toResponder]), readFPDUs(t.rest[toInitiator])
	for _, s := range []fpdus{up, down} {
		s.addFacts(f)
	}
	if up.found && down.found {
		f.sayf(onWire, "M", "%d/%d", wording.Bit(down.markers), wording.Bit(up.markers))
	}
	f.addAccepted(&up.sent, &down.sent, t.first(up.firstEnd), reply.dialect, reply.e)
}

// first says who sent the first FPDU. The responder did if its FPDU came before the
// initiator's first one, which ends at the given byte, was whole.
func (t *transcript) first(end int) string {
	up := len(bytes.Join(t.frames[toResponder], nil)) + end
	down := len(bytes.Join(t.frames[toInitiator], nil))
	for _, turn := range t.turns {
		if turn.sent[toInitiator] > down {
			if turn.sent[toResponder] < up {
				return byResponder
			}
			break
		}
	}
	return byInitiator
}

func short(d mpa.Dialect) string {
	b, _ := d.MarshalText() // fails for none
	return string(b)
}
