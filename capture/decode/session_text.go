package decode

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// Label is how the connection is called: by its number, with an "s" in front if it is a
// session over SCTP.
func (c *Connection) Label() string {
	if c.Session != nil {
		return "s" + strconv.Itoa(c.Session.Number)
	}
	return strconv.Itoa(c.TCP.Number)
}

// String is the two ends, and what a session is on.
func (c *Connection) String() string {
	s := c.Session
	switch {
	case s == nil:
		return c.TCP.String()
	case s.None:
		return fmt.Sprintf("%v, SCTP association %d%s, without a session", s.SCTP, s.SCTP.Number, s.udpText())
	}
	return fmt.Sprintf("%v, stream %d of SCTP association %d%s", s.SCTP, s.Stream, s.SCTP.Number, s.udpText())
}

func (s *Session) udpText() string {
	if !s.SCTP.InUDP {
		return ""
	}
	return fmt.Sprintf(" in UDP (%d -> %d)", s.SCTP.Ends[capture.Forward].UDPPort,
		s.SCTP.Ends[capture.Backward].UDPPort)
}

// network names what is below, if it is not TCP.
func (c *Connection) network() string {
	if c.Session != nil {
		return "sctp"
	}
	return ""
}

// sessionRows returns what is known of a session.
func (c *Connection) sessionRows() (rows [][2]string) {
	s := c.Session
	rows = append(rows, [2]string{"association", s.associationText()})
	if s.None {
		return rows
	}
	rows = append(rows, [2]string{"session", c.Outcome()})
	for d, n := range s.Ahead {
		if n+s.Repeated[d] == 0 {
			continue
		}
		text := wording.Count(n, "message") + " ahead of others"
		if s.Repeated[d] > 0 {
			text += ", " + wording.Count(s.Repeated[d], "DDP-SSN") + " used twice"
		}
		rows = append(rows, [2]string{capture.Dir(d).String() + " order", text})
	}
	return rows
}

// associationText says what the ends' INIT and INIT ACK ask for.
func (s *Session) associationText() string {
	var parts []string
	for d := range s.SCTP.Ends {
		e := &s.SCTP.Ends[d]
		text := "not captured"
		if p := &e.Setup; p.Seen() {
			text = fmt.Sprintf("%s, window %d, %s",
				wording.Count(p.Out, "stream"), p.Window,
				wording.If(p.HasAdaptation, fmt.Sprintf("indication %d", p.Adaptation), "no indication"))
		}
		if e.Count.Repeated > 0 {
			text += fmt.Sprintf(", %d DATA chunks sent again", e.Count.Repeated)
		}
		if e.Count.Missing > 0 {
			text += fmt.Sprintf(", %d missing", e.Count.Missing)
		}
		if e.Count.Foreign > 0 {
			text += fmt.Sprintf(", %s with a wrong tag", wording.Count(e.Count.Foreign, "packet"))
		}
		parts = append(parts, capture.Dir(d).String()+" "+text)
	}
	return strings.Join(parts, "; ")
}

// Outcome says what became of a session over SCTP.
func (c *Connection) Outcome() string {
	kind := wording.If(c.Dialect == mpa.DialectRFC6581, "enhanced", "plain")
	switch s := c.Session; {
	case s.None:
		return "without a session"
	case c.Midstream:
		return "its beginning is not in the capture" + s.terminatedText()
	case c.Startups == 0:
		return "never begun"
	case c.Rejected:
		return kind + ", rejected"
	case s.Refused:
		return kind + ", refused by the provider"
	case !c.Agreed:
		return kind + ", not answered"
	default:
		return fmt.Sprintf("%s, accepted; active end %v%s", kind, s.SCTP.Ends[c.Initiator].Addr, s.terminatedText())
	}
}

func (s *Session) terminatedText() string {
	switch s.Terminated {
	case [2]bool{true, true}:
		return "; terminated by both ends"
	case [2]bool{true, false}:
		return "; terminated " + capture.Forward.String() + " alone"
	case [2]bool{false, true}:
		return "; terminated " + capture.Backward.String() + " alone"
	}
	return "; not terminated"
}

// control returns a line on a session control message.
func (s *Startup) control() string {
	if s.Control == nil {
		return fmt.Sprintf("sctp: session control of %s that cannot be read", wording.Bytes(s.Size))
	}
	line := fmt.Sprintf("sctp: %v ssn %d", s.Control.Function, s.Control.SSN)
	if s.Control.HasEnhanced() {
		line += ": " + enhancedText(s.Control.Enhanced)
	}
	if len(s.PrivateData) > 0 {
		line += ", private data " + ulpdata.Describe(s.PrivateData)
	}
	return line
}

// chunk returns a line on a DDP segment over SCTP.
func (f *FPDU) chunk() string {
	k := f.Chunk
	s := fmt.Sprintf("segment %d ssn %d tsn %d size %d", f.Number, k.SSN, k.TSN, f.Size())
	if k.Ahead {
		s += " ahead"
	}
	if f.Cut > 0 {
		s += fmt.Sprintf(" missing %d", f.Cut)
	}
	if k.Chunks > 1 {
		s += fmt.Sprintf(" in %s", wording.Count(k.Chunks, "chunk"))
	}
	if f.HasSegment {
		s += ": " + f.contents()
	}
	return s
}

// control takes the fields of a session control message.
func (c *cutter) control(s *Startup) {
	k := s.Control
	if k == nil {
		c.cutField(sctp.SSNLen, "DDP-SSN", "")
		return
	}
	c.cutField(sctp.SSNLen, "DDP-SSN", "%d", k.SSN)
	c.cutField(2, "Function Code", "%d: %v", uint16(k.Function), k.Function)
	if e := &k.Enhanced; k.HasEnhanced() {
		c.enhanced(e)
	}
}

// enhanced takes the enhanced data of RFC 6581.
func (c *cutter) enhanced(e *mpa.Enhanced) {
	c.cutField(2, "A B IRD", "A=%d B=%d IRD=%v", wording.Bit(e.A), wording.Bit(e.B), e.IRD)
	c.cutField(2, "C D ORD", "C=%d D=%d ORD=%v", wording.Bit(e.C), wording.Bit(e.D), e.ORD)
}

// chunkFields returns the fields of a DDP segment over SCTP.
func chunkFields(f *FPDU) []field {
	b := f.Bytes
	if b == nil {
		b = append([]byte{byte(f.Chunk.SSN >> 8), byte(f.Chunk.SSN)}, f.ULPDU...)
	}
	c := cutter{b: b}
	c.cutField(sctp.SSNLen, "DDP-SSN", "%d", f.Chunk.SSN)
	c.ulpdu(f)
	return c.list
}

// jsonSession is what there is of SCTP in the first and the last event of a session.
type jsonSession struct {
	Association int            `json:"association"`
	Stream      uint16         `json:"stream"`
	None        bool           `json:"without_session,omitempty"`
	Refused     bool           `json:"refused,omitempty"`
	Ends        [2]jsonSCTPEnd `json:"ends"`
}

// jsonSCTPEnd is one end of it.
type jsonSCTPEnd struct {
	UDPPort    uint16  `json:"udp_port,omitempty"`
	Streams    *uint16 `json:"streams,omitempty"`
	Indication *uint32 `json:"indication,omitempty"`
	Terminated bool    `json:"terminated"`
	Ahead      uint64  `json:"ahead"`
	Repeated   uint64  `json:"ssns_repeated"`
}

func sessionOf(c *Connection) *jsonSession {
	s := c.Session
	if s == nil {
		return nil
	}
	o := &jsonSession{Association: s.SCTP.Number, Stream: s.Stream, None: s.None, Refused: s.Refused}
	for d := range o.Ends {
		e := &s.SCTP.Ends[d]
		o.Ends[d] = jsonSCTPEnd{UDPPort: e.UDPPort, Terminated: s.Terminated[d],
			Ahead: s.Ahead[d], Repeated: s.Repeated[d]}
		if p := &e.Setup; p.Seen() {
			o.Ends[d].Streams = &p.Out
			if p.HasAdaptation {
				o.Ends[d].Indication = &p.Adaptation
			}
		}
	}
	return o
}

// jsonControl is what a session control message has.
type jsonControl struct {
	SSN      uint16 `json:"ssn"`
	Function string `json:"function"`
}

// jsonChunk is what a DDP segment has beside.
type jsonChunk struct {
	SSN     uint16 `json:"ssn"`
	TSN     uint32 `json:"tsn"`
	Ahead   bool   `json:"ahead"`
	Ordered bool   `json:"ordered"`
	Chunks  int    `json:"chunks"`
}
