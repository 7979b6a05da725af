package decode

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"io"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// JSONConfig says what a [JSON] prints beside startup frames, findings and summaries.
type JSONConfig struct {
	FPDUs bool // FPDUs, missing bytes and Reads
	Bytes bool // FPDUs too, and the bytes of these and of startup frames

	// Version and Time are for the totals: of the program that decodes, and when it began. Without them, the totals have none.
	Version string
	Time    time.Time
}

// A JSON is a [Consumer] that prints one JSON object for each event, each on a line of
// its own: docs/decode-json.md.
type JSON struct {
	Ignore

	cfg JSONConfig
	w   *bufio.Writer
	enc *json.Encoder
}

var _ Consumer = (*JSON)(nil)

// NewJSON returns a JSON that prints to w. Call Flush at the end.
func NewJSON(w io.Writer, cfg JSONConfig) *JSON {
	b := bufio.NewWriter(w)
	return &JSON{cfg: cfg, w: b, enc: encoder(b)}
}

func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// Flush writes what was kept back, and returns the first error of the writer below.
func (j *JSON) Flush() error { return j.w.Flush() }

// put prints an object, whose members may be in several parts. An error of the writer stays in it, for Flush.
func (j *JSON) put(parts ...any) {
	if len(parts) == 1 {
		_ = j.enc.Encode(parts[0])
		return
	}
	_, _ = j.w.Write(append(object(parts), '\n'))
}

// jsonAt is what most events begin with.
type jsonAt struct {
	Event      string     `json:"event"`
	Network    string     `json:"network,omitempty"`
	Connection int        `json:"connection"`
	Dir        string     `json:"dir,omitempty"`
	Offset     *uint64    `json:"offset,omitempty"`
	Packet     uint64     `json:"packet,omitempty"`
	Time       *time.Time `json:"time,omitempty"`
}

func at(event string, c *Connection, d capture.Dir, offset uint64, p capture.Stamp) jsonAt {
	a := jsonAt{Event: event, Network: c.network(), Connection: c.TCP.Number, Dir: dirName(d),
		Offset: &offset, Packet: p.Number}
	if !p.Time.IsZero() {
		t := p.Time.UTC()
		a.Time = &t
	}
	return a
}

// dirName names a direction.
func dirName(d capture.Dir) string {
	if d == capture.Forward {
		return "forward"
	}
	return "backward"
}

type jsonFound struct {
	Event      string `json:"event"`
	Network    string `json:"network,omitempty"`
	Connection int    `json:"connection"`
	*jsonSession
	Forward  string `json:"forward"`
	Backward string `json:"backward"`
	Packet   uint64 `json:"packet"`
}

// Found is part of Consumer.
func (j *JSON) Found(c *Connection) {
	j.put(jsonFound{"connection", c.network(), c.TCP.Number, sessionOf(c), c.TCP.Halves[capture.Forward].Addr.String(),
		c.TCP.Halves[capture.Backward].Addr.String(), c.TCP.First.Number})
}

type jsonStartup struct {
	jsonAt
	Frame    string `json:"frame"`
	Size     int    `json:"size"`
	Text     string `json:"text"`
	M        *bool  `json:"m,omitempty"`
	C        *bool  `json:"c,omitempty"`
	R        *bool  `json:"r,omitempty"`
	S        *bool  `json:"s,omitempty"`
	Rev      *int   `json:"rev,omitempty"`
	PDLength *int   `json:"pd_length,omitempty"`
	*jsonControl
	Enhanced    *jsonEnhanced `json:"enhanced,omitempty"`
	PrivateData string        `json:"private_data,omitempty"`
	Looks       string        `json:"private_data_looks,omitempty"`
	Cut         int           `json:"cut,omitempty"`
	Bytes       string        `json:"bytes,omitempty"`
}

type jsonEnhanced struct {
	A   bool      `json:"a"`
	B   bool      `json:"b"`
	C   bool      `json:"c"`
	D   bool      `json:"d"`
	IRD mpa.Depth `json:"ird"`
	ORD mpa.Depth `json:"ord"`
}

func enhancedOf(e *mpa.Enhanced) *jsonEnhanced {
	if e == nil {
		return nil
	}
	return &jsonEnhanced{e.A, e.B, e.C, e.D, e.IRD, e.ORD}
}

// Startup is part of Consumer.
func (j *JSON) Startup(c *Connection, s *Startup) {
	o := jsonStartup{jsonAt: at("startup", c, s.Dir, s.Offset, s.Last), Frame: s.Frame.String(), Size: s.Size,
		Text: s.String(), Cut: s.Cut}
	if j.cfg.Bytes {
		o.Bytes = hex.EncodeToString(s.Bytes)
	}
	if len(s.PrivateData) > 0 {
		o.PrivateData, o.Looks = hex.EncodeToString(s.PrivateData), ulpdata.Describe(s.PrivateData)
	}
	switch {
	case s.Fields != nil:
		f := s.Fields
		m, cc, r, ss, rev, pd := f.M(), f.C(), f.R(), f.S(), int(f.Rev()), int(f.PDLength())
		o.M, o.C, o.R, o.S, o.Rev, o.PDLength = &m, &cc, &r, &ss, &rev, &pd
		if e, ok := f.Enhanced(); ok && len(f) > mpa.StartupHeaderLen {
			o.Enhanced = enhancedOf(&e)
		}
	case s.Control != nil:
		o.jsonControl = &jsonControl{s.Control.SSN, s.Control.Function.String()}
		if s.Control.HasEnhanced() {
			o.Enhanced = enhancedOf(&s.Control.Enhanced)
		}
	case s.Frame == FrameStartKey:
		k := mpa.StartKey(s.Bytes)
		m, cc, rev := k.M(), k.C(), int(k.Rev())
		o.M, o.C, o.Rev = &m, &cc, &rev
	}
	j.put(o)
}

type jsonFPDU struct {
	jsonAt
	Number      uint64         `json:"number"`
	Size        int            `json:"size"`
	FirstPacket uint64         `json:"first_packet"`
	Begins      bool           `json:"begins_segment"`
	Ends        bool           `json:"ends_segment"`
	Length      int            `json:"ulpdu_length"`
	Chunk       *jsonChunk     `json:"chunk,omitempty"`
	CRC         string         `json:"crc"`
	Cut         int            `json:"missing,omitempty"`
	Error       string         `json:"error,omitempty"`
	Markers     []Marker       `json:"markers,omitempty"`
	DDP         *jsonDDP       `json:"ddp,omitempty"`
	Opcode      *int           `json:"opcode,omitempty"`
	Message     string         `json:"message,omitempty"`
	RTR         string         `json:"rtr,omitempty"`
	Terminate   *jsonTerminate `json:"terminate,omitempty"`
}

// jsonBytes is the last part of an FPDU.
type jsonBytes struct {
	Bytes string `json:"bytes,omitempty"`
}

type jsonDDP struct {
	Tagged  bool    `json:"tagged"`
	Last    bool    `json:"last"`
	Version uint8   `json:"version"`
	STag    *uint32 `json:"stag,omitempty"`
	TO      *uint64 `json:"to,omitempty"`
	ULP     *uint32 `json:"invalidate_stag,omitempty"`
	QN      *uint32 `json:"qn,omitempty"`
	MSN     *uint32 `json:"msn,omitempty"`
	MO      *uint32 `json:"mo,omitempty"`
	Payload int     `json:"payload"`
}

type jsonReadRequest struct {
	SinkSTag uint32 `json:"sink_stag"`
	SinkTO   uint64 `json:"sink_to"`
	Size     uint32 `json:"size"`
	SrcSTag  uint32 `json:"source_stag"`
	SrcTO    uint64 `json:"source_to"`
}

func readRequestOf(r *rdmap.ReadRequest) *jsonReadRequest {
	if r == nil {
		return nil
	}
	return &jsonReadRequest{r.SinkSTag, r.SinkTO, r.Size, r.SrcSTag, r.SrcTO}
}

type jsonTerminate struct {
	Code   uint16 `json:"code"`
	Text   string `json:"text"`
	Layout string `json:"layout"`
}

// FPDU is part of Consumer.
func (j *JSON) FPDU(c *Connection, f *FPDU) {
	if !j.cfg.FPDUs && !j.cfg.Bytes {
		return
	}
	o := jsonFPDU{
		jsonAt: at("fpdu", c, f.Dir, f.Offset, f.Last), Number: f.Number, Size: f.Size(), FirstPacket: f.First.Number,
		Begins: f.Begins, Ends: f.Ends, Length: f.Length, CRC: f.CRC.String(), Cut: f.Cut, Markers: f.Markers,
	}
	if f.Err != nil {
		o.Error = f.Err.Error()
	}
	if k := f.Chunk; k != nil {
		o.Chunk = &jsonChunk{k.SSN, k.TSN, k.Ahead, k.Ordered, k.Chunks}
	}
	if f.RTR != 0 {
		o.RTR = f.RTR.String()
	}
	if f.HasSegment {
		op := int(f.Op)
		o.DDP, o.Opcode, o.Message = ddpOf(f), &op, f.Op.String()
	}
	if t := f.Terminate; t != nil {
		o.Terminate = &jsonTerminate{uint16(t.Code), t.String(), t.Layout.String()}
	}
	var data jsonBytes
	if j.cfg.Bytes {
		data.Bytes = hex.EncodeToString(f.Bytes)
	}
	j.put(o, headerOf(f), data)
}

func ddpOf(f *FPDU) *jsonDDP {
	s := &f.Segment
	d := &jsonDDP{Tagged: s.Tagged, Last: s.Last, Version: s.Version, Payload: len(s.Payload)}
	if s.Tagged {
		d.STag, d.TO = &s.STag, &s.TO
		return d
	}
	d.QN, d.MSN, d.MO = &s.QN, &s.MSN, &s.MO
	if f.invalidates() {
		d.ULP = &s.ULP
	}
	return d
}

type jsonMissing struct {
	jsonAt
	Size     uint64 `json:"size"`
	Captured bool   `json:"captured"`
	Cause    string `json:"cause"`
}

// Missing is part of Consumer.
func (j *JSON) Missing(c *Connection, m *Missing) {
	if !j.cfg.FPDUs && !j.cfg.Bytes {
		return
	}
	cause := "no FPDU found"
	if !m.Captured {
		cause = m.Cause.String()
	}
	j.put(jsonMissing{at("missing", c, m.Dir, m.Offset, m.Packet), m.End - m.Offset, m.Captured, cause})
}

type jsonRead struct {
	jsonAt
	Request uint64 `json:"request_packet"`
	Acked   uint64 `json:"acked_packet,omitempty"`
	First   uint64 `json:"first_packet"`
	Latency int64  `json:"latency_ns"`
	*jsonReadRequest
}

// Read is part of Consumer.
func (j *JSON) Read(c *Connection, r *Read) {
	if !j.cfg.FPDUs && !j.cfg.Bytes {
		return
	}
	a := at("read", c, r.Dir, 0, r.Last)
	a.Offset = nil
	j.put(jsonRead{a, r.Request.Number, r.Acked.Number, r.First.Number, r.Latency().Nanoseconds(), readRequestOf(&r.ReadRequest)})
}

type jsonULP struct {
	jsonAt
	Protocol string `json:"protocol"`
	Text     string `json:"text"`
	Latency  int64  `json:"latency_ns,omitempty"`
}

// ULP is part of Consumer.
func (j *JSON) ULP(c *Connection, u *ULP) {
	if j.cfg.FPDUs || j.cfg.Bytes {
		j.put(jsonULP{at("ulp", c, u.Dir, u.Offset, u.Packet), u.Protocol, u.Text, u.Latency.Nanoseconds()})
	}
}

type jsonFinding struct {
	jsonAt
	Severity string `json:"severity"`
	Usual    string `json:"usual_severity,omitempty"`
	Name     string `json:"name"`
	ID       string `json:"id,omitempty"`
	Text     string `json:"text"`
	Advice   string `json:"advice,omitempty"`
	Rule     string `json:"rule,omitempty"`
	*jsonEvidence
}

type jsonEvidence struct {
	Offset uint64 `json:"bytes_offset"`
	Bytes  string `json:"bytes"`
	Want   string `json:"bytes_want,omitempty"`
}

func jsonEvidenceOf(e *Evidence) *jsonEvidence {
	if e == nil {
		return nil
	}
	return &jsonEvidence{e.Offset, hex.EncodeToString(e.Bytes), hex.EncodeToString(e.Want)}
}

// Finding is part of Consumer.
func (j *JSON) Finding(c *Connection, f *Finding) {
	usual := wording.If(f.Usual != f.Severity, f.Usual.String(), "")
	j.put(jsonFinding{at("finding", c, f.Dir, f.Offset, f.Packet), f.Severity.String(), usual, f.Name, f.ID, f.Text, f.Advice,
		f.Rule(), jsonEvidenceOf(f.Evidence)})
}
