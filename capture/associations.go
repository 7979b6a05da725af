package capture

import (
	"cmp"
	"container/list"
	"slices"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// An Associations sorts packets into SCTP associations, and puts fragmented messages
// together. It is not safe for concurrent use.
//
// In UDP, a packet counts as SCTP if its checksum is right, as few others' is. One that is cut
// off counts if its ports are those of an association that is known, or one of them is a port
// of SCTP ([PortUDP], [Config.UDPPorts]).
type Associations struct {
	cfg  Config
	sink AssociationSink

	table  map[associationKey]*list.Element
	order  list.List // of *Association, that was silent for the longest first
	opened int
	held   int // memory of parts of messages, in bytes
	now    Stamp
	head   sctpPacket
}

// NewAssociations returns an Associations that tells sink what it finds.
func NewAssociations(cfg Config, sink AssociationSink) *Associations {
	return &Associations{cfg: cfg.withDefaults(), sink: sink, table: map[associationKey]*list.Element{}}
}

// Packet takes the next packet of the capture, and reports whether it is one of SCTP. It
// does not keep any of it.
func (t *Associations) Packet(p *Packet) bool {
	if !t.head.parse(p) || !t.head.sure && !t.expected() {
		return false
	}
	t.now = p.stamp()
	a := t.association()
	d := a.dir(&t.head)
	a.Ends[d].Count.Packets++
	for c, ok := t.head.chunks.Next(); ok; c, ok = t.head.chunks.Next() {
		if a = t.chunk(a, d, &c); a == nil {
			return true
		}
	}
	t.age(a)
	t.sink.Passed(a)
	return true
}

// expected reports whether a packet is one of SCTP by its ports.
func (t *Associations) expected() bool {
	if t.table[t.head.key] != nil {
		return true
	}
	for _, port := range [...]uint16{uint16(t.head.key.udp >> 16), uint16(t.head.key.udp)} {
		if port == PortUDP || port != 0 && slices.Contains(t.cfg.UDPPorts, port) {
			return true
		}
	}
	return false
}

// Flush ends all associations, since the capture is over.
func (t *Associations) Flush() {
	var all []*Association
	for _, e := range t.table {
		all = append(all, e.Value.(*Association))
	}
	slices.SortFunc(all, func(a, b *Association) int { return cmp.Compare(a.Number, b.Number) })
	for _, a := range all {
		t.forget(a, EndCapture)
	}
}

// association returns that of the packet. It may be a new one.
func (t *Associations) association() *Association {
	if e := t.table[t.head.key]; e != nil {
		a := e.Value.(*Association)
		if !a.over || t.head.tag != 0 { // an INIT begins anew
			t.order.MoveToBack(e)
			a.Last = t.now
			a.packets++
			return a
		}
		t.forget(a, EndReplaced)
	}
	return t.open()
}

// open makes an association of a packet, and room for it.
func (t *Associations) open() *Association {
	for len(t.table) >= t.cfg.MaxConnections {
		t.forget(t.order.Front().Value.(*Association), EndEvicted)
	}
	a := &Association{
		Number: t.opened, First: t.now, Last: t.now, key: t.head.key, swapped: t.head.swapped,
		InUDP: t.head.key.udp != 0, packets: 1,
		agedTime: t.now.Time,
	}
	t.opened++
	if len(t.head.chunks.Bytes) > 0 && chunk.Type(t.head.chunks.Bytes[0]) == chunk.TypeInitAck {
		a.swapped = !a.swapped
	}
	x, y := a.key.tuple.ends()
	a.Ends[Forward], a.Ends[Backward] = AssociationEnd{Addr: x, UDPPort: uint16(a.key.udp >> 16)},
		AssociationEnd{Addr: y, UDPPort: uint16(a.key.udp)}
	if a.swapped {
		a.Ends[Forward], a.Ends[Backward] = a.Ends[Backward], a.Ends[Forward]
	}
	t.table[a.key] = t.order.PushBack(a)
	t.sink.AssociationOpened(a)
	return a
}

func (a *Association) dir(h *sctpPacket) Dir {
	if h.swapped == a.swapped {
		return Forward
	}
	return Backward
}

// forget drops an association.
func (t *Associations) forget(a *Association, why EndReason) {
	t.finish(a, Finish{Reason: why, Packet: t.now})
	e := t.table[a.key]
	t.order.Remove(e)
	delete(t.table, a.key)
}

// finish ends an association, once.
func (t *Associations) finish(a *Association, f Finish) {
	if a.over {
		return
	}
	for d := range a.Ends {
		t.drop(&a.Ends[d])
	}
	a.over = true
	t.sink.Finished(a, f)
}

// chunk takes a chunk, and returns the association that those after it are of: nil if they
// are of none.
func (t *Associations) chunk(a *Association, d Dir, c *chunk.Chunk) *Association {
	switch c.Type {
	case chunk.TypeInit, chunk.TypeInitAck:
		t.setup(a, d, c)
		return a
	case chunk.TypeCookieEcho:
		a = t.cookie(a, d)
	}
	if !t.validTag(a, d, c) {
		a.Ends[d].Count.Foreign++
		return nil
	}
	if a.over {
		return nil
	}
	switch c.Type {
	case chunk.TypeData:
		t.data(a, d, c)
	case chunk.TypeSack, chunk.TypeShutdown:
		a.Ends[d.Peer()].acknowledge(c)
	case chunk.TypeShutdownComplete:
		t.finish(a, Finish{Dir: d, Reason: EndShutdown, Packet: t.now})
	case chunk.TypeAbort:
		t.finish(a, Finish{Dir: d, Reason: EndAbort, Packet: t.now, Text: c.Reason()})
	}
	return a
}

// validTag reports whether a packet has the verification tag of its receiver, or what it may
// have instead: RFC 9260, section 8.5.
func (t *Associations) validTag(a *Association, d Dir, c *chunk.Chunk) bool {
	end := &a.Ends[d.Peer()]
	if (c.Type == chunk.TypeAbort || c.Type == chunk.TypeShutdownComplete) && c.Flags&chunk.FlagT != 0 {
		end = &a.Ends[d]
		return !end.tagged || t.head.tag == end.tag
	}
	if !end.tagged && t.head.tag != 0 {
		end.tag, end.tagged = t.head.tag, true
	}
	return t.head.tag == end.tag
}

// setup takes an INIT or INIT ACK. In an association that is up it may begin it anew.
func (t *Associations) setup(a *Association, d Dir, c *chunk.Chunk) {
	s, ok := setup(c, t.now)
	peer := &a.Ends[d.Peer()]
	if !ok || c.Type == chunk.TypeInitAck && peer.tagged && t.head.tag != peer.tag &&
		t.head.tag != a.pending[d.Peer()].Tag {
		return
	}
	if a.up {
		if c.Type == chunk.TypeInit {
			a.pending = [2]Setup{}
		}
		a.pending[d] = s
		return
	}
	t.install(a, d, s)
}

// install has an end be as its INIT or INIT ACK says.
func (t *Associations) install(a *Association, d Dir, s Setup) {
	e := &a.Ends[d]
	e.Setup, e.tag, e.tagged = s, s.Tag, true
	e.tsns = tsns{}
	e.tsns.setFirst(s.TSN)
	t.sink.SetUp(a, d)
}

// cookie takes a COOKIE ECHO: the association is up, and may be another one.
func (t *Associations) cookie(a *Association, d Dir) *Association {
	theirs, ours := a.pending[d.Peer()], a.pending[d]
	if !a.up || !theirs.Seen() || !ours.Seen() || t.head.tag != theirs.Tag || theirs.Tag == a.Ends[d.Peer()].tag {
		a.up = true
		return a
	}
	t.forget(a, EndReplaced)
	next := t.open()
	next.First = ours.Packet
	for i, s := range [...]Setup{ours, theirs} {
		t.install(next, next.dir(&t.head)^Dir(i), s)
	}
	next.up = true
	return next
}

// data takes a DATA chunk.
func (t *Associations) data(a *Association, d Dir, c *chunk.Chunk) {
	e := &a.Ends[d]
	said, ok := c.Data()
	if !ok {
		return
	}
	a.up = true
	m := Message{
		Dir: d, TSN: said.TSN, Stream: said.Stream, PPID: said.PPID, Unordered: c.Flags&chunk.FlagUnordered != 0,
		Chunks: 1, First: t.now, Last: t.now, Data: said.Bytes, Length: said.Length,
	}
	from := e.tsns.next
	if !e.tsns.started {
		from = m.TSN
	}
	fresh, lost := e.tsns.enter(m.TSN)
	e.Count.Missing += lost
	if !fresh {
		e.Count.Repeated++
		return
	}
	if c.Flags&chunk.FlagsWhole == chunk.FlagsWhole {
		t.message(a, d, &m)
	} else {
		t.hold(e, &m, c.Flags)
	}
	t.joinTo(a, d, from)
}

// hold keeps a part of a message.
func (t *Associations) hold(e *AssociationEnd, m *Message, flags byte) {
	before := e.pieces.cost
	e.pieces.add(m, flags)
	t.held += e.pieces.cost - before
	if e.pieces.cost > t.cfg.MaxBuffered || t.held > t.cfg.MaxBufferedTotal {
		t.drop(e)
	}
}

// drop forgets the parts of messages that are not whole.
func (t *Associations) drop(e *AssociationEnd) {
	t.held -= e.pieces.cost
	e.pieces = pieces{}
}

// joinTo puts together what is there of fragmented messages, from a TSN up to the next that
// is missing.
func (t *Associations) joinTo(a *Association, d Dir, from uint32) {
	e := &a.Ends[d]
	if e.tsns.next-from > tsnWindow {
		t.drop(e)
	}
	for ; e.pieces.any() && Before(from, e.tsns.next); from++ {
		before := e.pieces.cost
		m := e.pieces.join(from)
		t.held += e.pieces.cost - before
		if m != nil {
			t.message(a, d, m)
		}
	}
}

// message tells of a message.
func (t *Associations) message(a *Association, d Dir, m *Message) {
	a.Ends[d].Count.Messages++
	a.Ends[d].Count.Bytes += uint64(m.Length)
	t.sink.Message(a, m)
}

// acknowledge takes the cumulative TSN of a SACK or SHUTDOWN.
func (e *AssociationEnd) acknowledge(c *chunk.Chunk) {
	tsn, ok := c.Acknowledged()
	if !ok {
		return
	}
	e.acks++
	if !e.hasAck || Before(e.acked, tsn) {
		e.acked, e.hasAck = tsn, true
	}
}

// age lets acknowledgments become old: what the receiver has had for so long, and is not in
// the capture, will not turn up any more.
func (t *Associations) age(a *Association) {
	if a.packets-a.agedAt < uint64(t.cfg.GapPackets) && t.now.Time.Sub(a.agedTime) < t.cfg.GapTime {
		return
	}
	a.agedAt, a.agedTime = a.packets, t.now.Time
	for d := range a.Ends {
		e := &a.Ends[d]
		e.settled, e.hasOld = e.marked, e.hasMark
		e.marked, e.hasMark = e.acked, e.hasAck
		if from := e.tsns.next; e.hasOld && e.tsns.started && e.settled-from < tsnWindow {
			e.Count.Missing += e.tsns.giveUp(e.settled + 1)
			t.joinTo(a, Dir(d), from)
		}
	}
}
