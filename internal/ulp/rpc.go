package ulp

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
)

// RPC-over-RDMA version 1: RFC 8166, section 4.
const (
	rpcRDMAVersion = 1

	rdmaMsg   = 0 // the RPC message follows the header
	rdmaNoMsg = 1 // it is in a chunk
	rdmaError = 4

	rdmaErrVersion = 1
	rdmaErrChunk   = 2

	maxChunks   = 16 // of a kind, in a header
	maxSegments = 64 // of a chunk
)

// An rpc is RPC over RDMA.
type rpc struct {
	calls  [2]memo[uint32, *call] // of the ends that called, by xid
	memory memory
}

// A call is one without an answer.
type call struct {
	program, version, procedure uint32
	name                        string
	n                           int    // of the message
	sealed                      bool   // by RPCSEC_GSS, which may wrap arguments and results
	reply                       []byte // the first bytes of a reply that was written into a chunk
}

func beginRPC(private [2]any, _ [2][]byte) (protocol, bool) {
	return &rpc{}, is[ulpdata.RPCOverRDMA](private)
}

// A segment is a piece of a chunk.
type rdmaSegment struct {
	stag, length uint32
	offset       uint64
}

// A header is that of RPC over RDMA.
type rdmaHeader struct {
	xid, kind   uint32
	read, write []rdmaSegment
	reply       []rdmaSegment
	positions   []uint32 // of read
}

func (p *rpc) size() int { return costRequest*(p.calls[0].len()+p.calls[1].len()) + p.memory.size() }

func (p *rpc) send(end int, m *Message) (line, int) {
	x := &xdr{b: m.Data}
	h := rdmaHeader{xid: x.u32()}
	version, credits := x.u32(), x.u32()
	h.kind = x.u32()
	if x.bad || version != rpcRDMAVersion || credits == 0 || credits > 1<<16 {
		return line{}, against
	}
	if h.kind == rdmaError {
		return p.refused(end, &h, x)
	}
	h.chunks(x)
	if x.bad {
		return line{}, against
	}
	switch h.kind {
	case rdmaMsg:
		return p.message(end, &h, x, m)
	case rdmaNoMsg:
		if len(x.b) == 0 {
			return p.long(end, &h, m.n)
		}
	}
	return line{}, against
}

func (p *rpc) access(end int, a *Access) (line, int) { return p.memory.access(end, a) }

// refused reads RDMA_ERROR.
func (p *rpc) refused(end int, h *rdmaHeader, x *xdr) (line, int) {
	text, advice := "", ""
	switch x.u32() {
	case rdmaErrVersion:
		text = fmt.Sprintf("ERR_VERS, versions %d to %d are supported", x.u32(), x.u32())
	case rdmaErrChunk:
		text, advice = "ERR_CHUNK", "the receiver could not use the chunks of the call: compare their lengths with the message"
	}
	if text == "" || x.bad || len(x.b) > 0 {
		return line{}, against
	}
	c, known := p.calls[1-end].take(h.xid)
	l := line{text: fmt.Sprintf("error for xid %#08x: %s", h.xid, text), failure: text, advice: advice}
	if !known {
		return l, fits
	}
	l.text += ", in answer to " + c.name
	l.answers = c.n
	return l, agrees
}

// chunks reads the three lists of chunks.
func (h *rdmaHeader) chunks(x *xdr) {
	for x.flag() && !x.bad {
		h.positions = append(h.positions, x.u32())
		h.read = append(h.read, segmentOf(x))
		x.bad = x.bad || len(h.read) > maxSegments
	}
	for n := 0; x.flag() && !x.bad; n++ {
		h.write = append(h.write, segmentsOf(x)...)
		x.bad = x.bad || n >= maxChunks
	}
	if x.flag() {
		h.reply = segmentsOf(x)
	}
}

func segmentsOf(x *xdr) (all []rdmaSegment) {
	n := x.u32()
	if n > maxSegments {
		x.bad = true
	}
	for i := uint32(0); i < n && !x.bad; i++ {
		all = append(all, segmentOf(x))
	}
	return all
}

func segmentOf(x *xdr) rdmaSegment {
	return rdmaSegment{stag: x.u32(), length: x.u32(), offset: x.u64()}
}

// bytesOf is the length of a chunk.
func bytesOf(segments []rdmaSegment) (n uint64) {
	for _, s := range segments {
		n += uint64(s.length)
	}
	return n
}

// Of RPC version 2: RFC 5531, section 9.
const (
	rpcCall, rpcReply         = 0, 1
	rpcVersion                = 2
	rpcAccepted, rpcDenied    = 0, 1
	rpcMismatch, rpcAuthError = 0, 1
	maxAuth                   = 400 // bytes
	rpcsecGSS                 = 6   // RFC 2203
)

// message reads an RPC message behind the header.
func (p *rpc) message(end int, h *rdmaHeader, x *xdr, m *Message) (line, int) {
	if x.u32() != h.xid {
		return line{}, against
	}
	switch x.u32() {
	case rpcCall:
		c, ok := callOf(x)
		if !ok {
			return line{}, against
		}
		c.n = m.n
		return line{text: p.called(end, h, c)}, agrees
	case rpcReply:
		c, known := p.calls[1-end].take(h.xid)
		l, ok := replyOf(x, c, m.whole())
		if !ok {
			return line{}, against
		}
		l.text = fmt.Sprintf("reply xid %#08x%s%s", h.xid, wording.If(known, ": "+c.title(), ""), l.text)
		if known {
			l.answers = c.n
			return l, agrees
		}
		return l, fits
	}
	return line{}, against
}

// called takes note of a call, and says what it is.
func (p *rpc) called(end int, h *rdmaHeader, c *call) string {
	p.calls[end].put(h.xid, c, maxRequests)
	parts := []string{fmt.Sprintf("call xid %#08x: %s", h.xid, c.name)}
	note := func(kind string, segments []rdmaSegment, head *[]byte) {
		for i, s := range segments {
			own := piece{to: s.offset, length: uint64(s.length), what: fmt.Sprintf("%s of xid %#08x, %s", kind, h.xid, c.name)}
			if i == 0 {
				own.head = head
			}
			p.memory.add(end, s.stag, own)
		}
		if len(segments) > 0 {
			parts = append(parts, fmt.Sprintf("%s of %s at STag %#08x", kind, wording.Bytes(bytesOf(segments)), segments[0].stag))
		}
	}
	note("read chunk", h.read, nil)
	note("write chunk", h.write, nil)
	note("reply chunk", h.reply, &c.reply)
	return strings.Join(parts, ", ")
}

// long reads a header whose RPC message is in a chunk: a reply in the reply chunk that the call had, or a call at
// position 0.
func (p *rpc) long(end int, h *rdmaHeader, n int) (line, int) {
	if len(h.positions) > 0 && h.positions[0] == 0 {
		return line{text: p.called(end, h, &call{name: "in a read chunk", n: n})}, fits
	}
	if len(h.reply) == 0 {
		return line{}, against
	}
	l := line{text: fmt.Sprintf("reply xid %#08x in the reply chunk", h.xid)}
	c, known := p.calls[1-end].take(h.xid)
	if !known {
		return l, silent
	}
	l.text, l.answers = l.text+": "+c.title(), c.n
	x := &xdr{b: c.reply}
	if len(c.reply) > 8 && x.u32() == h.xid && x.u32() == rpcReply {
		if said, ok := replyOf(x, c, uint64(len(c.reply)) == bytesOf(h.reply)); ok {
			l.text, l.failure, l.advice = l.text+said.text, said.failure, said.advice
		}
	}
	return l, agrees
}

// callOf reads a call from the version on.
func callOf(x *xdr) (*call, bool) {
	version := x.u32()
	c := &call{program: x.u32(), version: x.u32(), procedure: x.u32()}
	c.sealed = x.u32() == rpcsecGSS
	x.opaque(maxAuth)
	x.u32()
	x.opaque(maxAuth)
	if x.bad || version != rpcVersion {
		return nil, false
	}
	c.name = c.title()
	if c.isNFS4() && !c.sealed {
		c.name += operations(x)
	}
	return c, true
}

// replyOf reads a reply behind its xid and type. What it says of the results depends on the call, which may not be known.
func replyOf(x *xdr, c *call, whole bool) (line, bool) {
	switch x.u32() {
	case rpcDenied:
		return denied(x, c)
	case rpcAccepted:
		x.u32()
		x.opaque(maxAuth)
		state := x.u32()
		if x.bad || state >= uint32(len(acceptStates)) {
			return line{}, false
		}
		switch {
		case state > 0 && c.of(programACL): // which clients ask for, to see whether it is there
			return line{text: ": " + acceptStates[state]}, true
		case state > 0:
			return line{text: ": " + acceptStates[state], failure: acceptStates[state] + c.called()}, true
		}
		return c.results(x, whole), true
	}
	return line{}, false
}

var acceptStates = [...]string{"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"}

// called names the call that has failed, if it is known.
func (c *call) called() string {
	if c == nil {
		return ""
	}
	return " of " + c.name
}

func denied(x *xdr, c *call) (line, bool) {
	switch kind, why := x.u32(), x.u32(); {
	case x.bad:
	case kind == rpcMismatch:
		return line{text: ": RPC_MISMATCH", failure: "RPC_MISMATCH" + c.called()}, true
	case kind == rpcAuthError:
		text := fmt.Sprintf("AUTH_ERROR %d", why)
		return line{text: ": " + text, failure: text + c.called(), advice: "the server does not accept the caller's credentials: check the export's security (sec=) and Kerberos"}, true
	}
	return line{}, false
}

// tail is the last two numbers of a message.
func tail(b []byte) (first, second uint32) {
	if len(b) < 8 {
		return 0, 0
	}
	return binary.BigEndian.Uint32(b[len(b)-8:]), binary.BigEndian.Uint32(b[len(b)-4:])
}
