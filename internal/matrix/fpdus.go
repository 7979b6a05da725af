package matrix

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// sent is what the DDP Segments of one direction show by themselves.
type sent struct {
	found     bool
	versions  []uint8 // of DDP and of RDMAP, each that occurs once
	rtr       mpa.RTR // what the first is, if it is zero-length
	terminate *rdmap.Terminate
	err       error
}

// fpdus is what the FPDUs of one direction show by themselves.
type fpdus struct {
	sent
	markers, crc bool
	firstEnd     int // where the first FPDU ends
}

// readFPDUs reads a direction after its startup frames. With markers, the first
// four bytes are a marker, and zero; without, the first two are a ULPDU_Length, which
// is not zero, as an FPDU holds a DDP header at least.
func readFPDUs(b []byte) (s fpdus) {
	if len(b) == 0 {
		return s
	}
	s.markers = len(b) >= 4 && bytes.Equal(b[:4], make([]byte, 4))
	s.crc = true
	s.walk(slices.Clone(b))
	if e := new(mpa.Error); errors.As(s.err, &e) && e.Code == mpa.CodeCRC && !s.found {
		s.crc, s.err = false, nil
		s.walk(slices.Clone(b))
	}
	return s
}

// walk goes from FPDU to FPDU.
func (s *fpdus) walk(b []byte) {
	r := mpa.NewReader(s.markers, s.crc)
	for {
		f, n, err := r.Next(b)
		if err != nil {
			s.err = err
			return
		}
		if n == 0 {
			if len(b) > 0 {
				s.err = fmt.Errorf("%s after the last FPDU", wording.Bytes(len(b)))
			}
			return
		}
		seg, err := ddp.Parse(f.ULPDU)
		if err != nil {
			s.err = err
			return
		}
		if !s.found {
			s.firstEnd = n
		}
		s.addSegment(&seg)
		b = b[n:]
	}
}

// addSegment takes account of the next segment.
func (s *sent) addSegment(seg *ddp.Segment) {
	if !s.found {
		s.found, s.rtr = true, mpa.RTROf(rdmap.ZeroLength(seg))
	}
	version, op := rdmap.ParseControl(seg.RsvdULP)
	for _, v := range []uint8{seg.Version, version} {
		if !slices.Contains(s.versions, v) {
			s.versions = append(s.versions, v)
		}
	}
	if op == rdmap.OpTerminate {
		t, err := rdmap.ParseTerminate(seg.Payload)
		s.terminate, s.err = &t, err
	}
}

// addFacts notes what holds for each direction.
func (s *fpdus) addFacts(f *facts) {
	if s.found {
		f.sayf(onWire, "CRC", "%d", wording.Bit(s.crc))
	}
	s.sent.addFacts(f)
}

// addFacts notes what holds for each direction.
func (s *sent) addFacts(f *facts) {
	for _, v := range s.versions {
		f.sayf(onWire, "V", "%d", v)
	}
	if s.terminate != nil {
		f.sayf(onWire, "code", "0x%04x", uint16(s.terminate.Code))
	}
	if s.err != nil {
		f.sayf(onWire, "data", "%v", s.err)
	}
}

// addEnhanced notes the enhanced data of a Request, or an Initiate, and of the answer; nil is none.
func (f *facts) addEnhanced(asked, answered *mpa.Enhanced) {
	if asked != nil {
		f.sayf(onWire, "request", "%d/%d", asked.IRD, asked.ORD)
	}
	if answered != nil {
		f.sayf(onWire, "reply", "%d/%d", answered.IRD, answered.ORD)
		f.sayf(onWire, "flags", "%s/%s", flags(asked), flags(answered))
	}
}

func flags(e *mpa.Enhanced) string {
	if e == nil {
		return "-"
	}
	return cmp.Or(e.Flags(), "-")
}

// addAccepted notes what an accepting answer says, with its enhanced data if it has some, and what both ends have sent
// after it. first is who was the first to send.
func (f *facts) addAccepted(up, down *sent, first string, d mpa.Dialect, e *mpa.Enhanced) {
	if up.found && down.found {
		f.say(onWire, "first", first)
	} else if len(f.said["data"]) > 0 {
		f.say(onWire, "data", "not on the wire")
	}
	if !f.up() {
		return
	}
	f.say(onWire, "dialect", short(d))
	if e != nil {
		f.sayf(onWire, "p2p", "%d", wording.Bit(e.A))
		f.say(onWire, "answer", e.RTR().String())
	}
	if up.found {
		f.say(onWire, "rtr", up.rtr.String())
	}
}
