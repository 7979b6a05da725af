package conform_test

import (
	"encoding/binary"
	"sync"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// address has an INIT or INIT ACK announce one more.
func address(b []byte) []byte {
	p := chunk.Parameter{Type: chunk.ParamIPv4, Value: []byte{127, 0, 0, 2}}
	return p.Append(b)
}

// opcode is that of a DDP Segment.
func opcode(m *sctp.Message) rdmap.Opcode {
	seg, err := ddp.Parse(m.Data[sctp.SSNLen:])
	if m.PPID != sctp.PPIDSegment || err != nil {
		return rdmap.OpTerminate + 1
	}
	_, op := rdmap.ParseControl(seg.RsvdULP)
	return op
}

// fragmented has the first two segments of a Write be two fragments of one message.
func fragmented() chunkWay {
	var mu sync.Mutex
	var first *uint32
	return func(kind chunk.Type, flags byte, b []byte) (byte, []byte) {
		if kind != chunk.TypeData {
			return flags, b
		}
		mu.Lock()
		defer mu.Unlock()
		tsn := binary.BigEndian.Uint32(b)
		m := sctp.Message{PPID: binary.BigEndian.Uint32(b[8:]), Data: b[12:]}
		if first == nil && opcode(&m) == rdmap.OpWrite && len(b) > 1000 {
			first = &tsn
		}
		switch {
		case first != nil && tsn == *first:
			flags &^= chunk.FlagEnding
		case first != nil && tsn == *first+1:
			flags &^= chunk.FlagBeginning
		}
		return flags, b
	}
}

// elsewhere has the segments of a Write be for another place than that which they come to.
func elsewhere(m *sctp.Message) {
	if opcode(m) == rdmap.OpWrite {
		m.Data[sctp.SSNLen+13]++
	}
}

// delayed does not send what the second stream has while there is no acknowledgment, and in its case there is none.
func delayed(kind chunk.Type, flags byte, b []byte) (byte, []byte) {
	if kind == chunk.TypeData && binary.BigEndian.Uint16(b[4:]) == 2 &&
		binary.BigEndian.Uint32(b[8:]) == sctp.PPIDSegment {
		b = b[:4]
	}
	return flags, b
}

// unlessTerminate has an RDMAP Terminate be harmless.
func unlessTerminate(m *sctp.Message) {
	if opcode(m) == rdmap.OpTerminate {
		harmless(m)
	}
}

// terminating puts an RDMAP Terminate in front of an ABORT.
func terminating() func([]byte) []byte {
	var mu sync.Mutex
	var last uint32
	return func(p []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		all, _ := chunk.In(p)
		for _, c := range all {
			if d, ok := c.Data(); ok && c.Type == chunk.TypeData {
				last = d.TSN
			}
			if c.Type == chunk.TypeAbort {
				h := rdmap.OpTerminate.Header(1)
				h.Last, h.MSN = true, 1
				d := chunk.Data{TSN: last + 1000, PPID: sctp.PPIDSegment,
					Bytes: sctp.AppendSegment(nil, 9, h.Append(nil), make([]byte, 4))}
				told := d.Chunk(chunk.FlagsWhole | chunk.FlagUnordered)
				return c.Append(told.Append(p[:chunk.HeaderLen:chunk.HeaderLen]))
			}
		}
		return p
	}
}
