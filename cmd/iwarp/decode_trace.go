package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
)

// maxUnderWay is how many messages of a connection may be without an end.
const maxUnderWay = 4096

// A traceFile is the file of --trace while the capture is read: events in Chrome's JSON format, which Perfetto reads.
// Each connection is a process, with its messages in threads of each direction. It is nil without --trace.
type traceFile struct {
	decode.Ignore

	file  *output
	w     *bufio.Writer
	enc   *json.Encoder
	began time.Time // the first packet
	some  bool      // an event was written
	reads int
	ids   int // processes and threads: Perfetto tells a thread by its number alone
	open  map[*decode.Connection]*traced
}

// A traced is a connection in the file.
type traced struct {
	process  int
	lanes    [2][]traceLane         // of each direction, one at least
	underWay map[underWay]time.Time // since when
}

// A traceLane is a thread. Its events follow each other, as the format demands: those of messages that are cut into
// segments may overlap, and are in several.
type traceLane struct {
	thread int
	end    time.Time // of its last event
}

// An underWay is a message of which there is more to come.
type underWay struct {
	dir capture.Dir
	op  uint8
	of  uint32 // its MSN, or its STag
}

// A traceEvent is one event. Times are in microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Time     float64        `json:"ts"`
	Duration *float64       `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	ID       int            `json:"id,omitempty"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// openTrace opens the file, so that one that cannot be written is known at once.
func (c *decodeCmd) openTrace() (*traceFile, error) {
	if c.Trace == "" {
		return nil, nil
	}
	f, err := openOver("decode", "trace", c.Trace, "a trace", isTrace, c.File)
	if err != nil {
		return nil, err
	}
	return newTraceFile(f), nil
}

func newTraceFile(f *output) *traceFile {
	t := &traceFile{file: f, w: bufio.NewWriter(f), open: map[*decode.Connection]*traced{}}
	t.enc = json.NewEncoder(t.w)
	t.enc.SetEscapeHTML(false) // Perfetto of some versions knows no \u
	return t
}

// isTrace reports whether a trace begins there.
func isTrace(r io.Reader) bool {
	head := []byte{0}
	_, err := io.ReadFull(r, head)
	return err == nil && head[0] == '['
}

// with returns a consumer that tells the file too.
func (t *traceFile) with(to decode.Consumer) decode.Consumer {
	if t == nil {
		return to
	}
	return both{to, t}
}

// after is told of each packet.
func (t *traceFile) after() func(*capture.Packet) {
	if t == nil {
		return nil
	}
	return func(p *capture.Packet) { t.begin(p.Time) }
}

// begin has times count from there, unless they already count.
func (t *traceFile) begin(at time.Time) {
	if t.began.IsZero() {
		t.began = at
	}
}

// put writes an event at a time. An error of the file stays in the writer.
func (t *traceFile) put(c *decode.Connection, thread int, at time.Time, e traceEvent) {
	_, _ = t.w.WriteString(map[bool]string{false: "[", true: ","}[t.some])
	t.some = true
	e.Time = max(float64(at.Sub(t.began))/1e3, 0)
	e.Process, e.Thread = t.open[c].process, thread
	_ = t.enc.Encode(e)
}

// Found is part of decode.Consumer.
func (t *traceFile) Found(c *decode.Connection) {
	t.begin(c.TCP.First.Time)
	t.ids++
	t.open[c] = &traced{process: t.ids, underWay: map[underWay]time.Time{}}
	for _, d := range []capture.Dir{capture.Forward, capture.Backward} {
		t.addLane(c, d)
	}
	t.name(c, t.thread(c, capture.Forward), "process_name", fmt.Sprintf("#%s %v", c.Label(), c))
}

// thread is the first of a direction.
func (t *traceFile) thread(c *decode.Connection, d capture.Dir) int {
	return t.open[c].lanes[d][0].thread
}

// lane returns the thread of an event from one time to another.
func (t *traceFile) lane(c *decode.Connection, d capture.Dir, from, to time.Time) int {
	lanes := t.open[c].lanes[d]
	i := slices.IndexFunc(lanes, func(l traceLane) bool { return !from.Before(l.end) })
	if i < 0 {
		i = len(lanes)
		lanes = t.addLane(c, d)
	}
	lanes[i].end = to
	return lanes[i].thread
}

// addLane begins a thread.
func (t *traceFile) addLane(c *decode.Connection, d capture.Dir) []traceLane {
	t.ids++
	lanes := append(t.open[c].lanes[d], traceLane{thread: t.ids})
	t.open[c].lanes[d] = lanes
	name := d.String()
	if n := len(lanes); n > 1 {
		name = fmt.Sprintf("%s %d", name, n)
	}
	t.name(c, t.ids, "thread_name", name)
	return lanes
}

// name names a connection, or a thread.
func (t *traceFile) name(c *decode.Connection, thread int, what, name string) {
	t.put(c, thread, t.began, traceEvent{Name: what, Phase: "M", Args: map[string]any{"name": name}})
}

// Ended is part of decode.Consumer.
func (t *traceFile) Ended(c *decode.Connection) { delete(t.open, c) }

// FPDU is part of decode.Consumer. A message is one event, from its first packet to its last.
func (t *traceFile) FPDU(c *decode.Connection, f *decode.FPDU) {
	if !f.HasSegment {
		return
	}
	m := underWay{f.Dir, uint8(f.Op), f.Segment.MSN}
	if f.Segment.Tagged {
		m.of = f.Segment.STag
	}
	open := t.open[c].underWay
	began, known := open[m]
	switch {
	case !known && !f.Segment.Last:
		if len(open) < maxUnderWay {
			open[m] = f.First.Time
		}
		return
	case !f.Segment.Last:
		return
	case !known:
		began = f.First.Time
	}
	delete(open, m)
	// A nanosecond less: a reader that drops fractions of one must not find that it reaches into the next.
	took := max(float64(f.Last.Time.Sub(began)-1)/1e3, 0)
	args := map[string]any{"packet": f.Last.Number, "payload of the last segment": len(f.Segment.Payload)}
	if f.Segment.Tagged {
		args["stag"] = fmt.Sprintf("%#08x", f.Segment.STag)
	} else {
		args["msn"] = f.Segment.MSN
	}
	t.put(c, t.lane(c, f.Dir, began, f.Last.Time), began,
		traceEvent{Name: f.Op.String(), Category: "message", Phase: "X", Duration: &took, Args: args})
}

// Read is part of decode.Consumer. Reads may overlap.
func (t *traceFile) Read(c *decode.Connection, r *decode.Read) {
	t.reads++
	e := traceEvent{Name: "Read", Category: "Read", Phase: "b", ID: t.reads,
		Args: map[string]any{"bytes": r.Size, "packet": r.Request.Number}}
	t.put(c, t.thread(c, r.Dir), r.Request.Time, e)
	e.Phase, e.Args = "e", nil
	t.put(c, t.thread(c, r.Dir), r.Last.Time, e)
}

// Finding is part of decode.Consumer.
func (t *traceFile) Finding(c *decode.Connection, f *decode.Finding) {
	t.put(c, t.thread(c, f.Dir), f.Packet.Time, traceEvent{Name: f.Severity.String() + " " + f.Name, Category: "finding", Phase: "i",
		Scope: "p", Args: map[string]any{"packet": f.Packet.Number, "text": f.Text, "advice": f.Advice}})
}

// end writes what is left. If no packet came, the file stays as it was.
func (t *traceFile) end(came bool) error {
	switch {
	case t == nil:
		return nil
	case !came:
		t.file.leave()
		return nil
	}
	_, _ = t.w.WriteString(map[bool]string{false: "[]\n", true: "]\n"}[t.some])
	err := t.w.Flush()
	return join(err, t.file.finish(err))
}
