package engine

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A secretive peer has a QP whose memory is known byte by byte.
type secretive struct {
	*peer
	buf      []byte // secrets everywhere but in the regions
	readable *memory.Region
	writable *memory.Region
	receives *memory.Region
}

const secret, public = 0xee, 0x11

// newSecretive registers regions of 100 bytes, with 100 bytes of secrets around each.
func newSecretive(t *testing.T, s *setup) *secretive {
	f := &secretive{peer: &peer{clock: epoch}, buf: bytes.Repeat([]byte{secret}, 700)}
	copy(f.buf[100:200], bytes.Repeat([]byte{public}, 100))
	f.host = newHost(t, &f.clock, s)
	f.readable = f.region(f.buf[100:200], memory.RemoteRead)
	f.writable = f.region(f.buf[300:400], memory.RemoteWrite|memory.RemoteAtomic)
	f.receives = f.region(f.buf[500:600], memory.LocalWrite)
	f.start(s)
	for id := range uint64(4) {
		f.receive(id, SGE{Region: f.receives, Offset: int(id) * 25, Length: 25})
	}
	f.post(work(9, OpRead, SGE{Region: f.receives, Offset: 90, Length: 10}))
	return f
}

// check expects secrets to be where they were, and none of them sent.
func (f *secretive) check() {
	f.Helper()
	for i, b := range f.buf {
		outside := i < 300 || i >= 400 && i < 500 || i >= 600
		if want := byte(secret); outside {
			if i >= 100 && i < 200 {
				want = public
			}
			if b != want {
				f.Fatalf("byte %d has changed", i)
			}
		}
	}
	for s, ok := f.next(); ok; s, ok = f.next() {
		if rdmap.OpcodeOf(&s.H) == rdmap.OpReadResponse && bytes.Count(s.Payload, []byte{public}) != len(s.Payload) {
			f.Fatalf("sent % x", s.Payload)
		}
	}
	if f.Machine.irrq.Len() > 4 || len(f.notices) > 8 || len(f.done) > 5 || len(f.unread) > layout.MaxFPDU {
		f.Fatalf("keeps %d Reads, %d notices, %d completions, %d bytes",
			f.Machine.irrq.Len(), len(f.notices), len(f.done), len(f.unread))
	}
}

// aim puts the STags of the regions where an input has small numbers, so that it gets
// past the first check.
func (f *secretive) aim(ulpdu []byte) {
	regions := []*memory.Region{f.readable, f.writable, f.receives}
	replace := func(b []byte) {
		if len(b) >= 4 && b[0] == 0 && b[1] == 0 && b[2] == 0 && int(b[3]) < len(regions) {
			stag := regions[b[3]].STag()
			copy(b, []byte{byte(stag >> 24), byte(stag >> 16), byte(stag >> 8), byte(stag)})
		}
	}
	if len(ulpdu) > 2 {
		replace(ulpdu[2:]) // of a tagged header, or the Invalidate STag
	}
	if len(ulpdu) >= ddp.UntaggedHeaderLen+rdmap.ReadRequestLen {
		replace(ulpdu[ddp.UntaggedHeaderLen+16:]) // SrcSTag
		replace(ulpdu[ddp.UntaggedHeaderLen+8:])  // Remote STag
	}
}

// Bytes as they come, and ULPDUs in valid FPDUs: no panic, bounded memory, and
// nothing outside the regions that the peer was offered changes or is sent.
//
// Proves Z12, Z31, D42.
func FuzzInput(f *testing.F) {
	for _, s := range fuzzSeeds() {
		for mode := range byte(16) {
			f.Add(mode, s)
		}
	}
	f.Fuzz(func(t *testing.T, mode byte, data []byte) {
		s := newSetup(mpa.RoleResponder)
		s.MarkersReceive, s.CRC = mode&1 != 0, mode&2 != 0
		s.PeerToPeer, s.Negotiated.RTR = mode&8 != 0, mpa.RTRRead|mpa.RTRSend
		x := newSecretive(t, s)
		if mode&4 == 0 {
			for ; len(data) > 0 && x.Machine.State() == RTS; data = data[min(37, len(data)):] {
				x.input(data[:min(37, len(data))])
				x.check()
			}
		}
		for len(data) > 1 && x.Machine.State() == RTS {
			n := min(1+int(data[0]), len(data))
			ulpdu := bytes.Clone(data[1:n])
			data = data[n:]
			x.aim(ulpdu)
			x.sendRaw(ulpdu)
			x.check()
		}
		x.fin()
		x.check()
	})
}

// fuzzSeeds are legal and illegal segments, each after its length.
func fuzzSeeds() [][]byte {
	read := request(1, rdmap.ReadRequest{SinkSTag: 5, Size: 100})
	fs := []fpdu{
		write(1, 0, []byte("abc")), write(1, 99, []byte("ab")), write(0, 0, []byte("abc")), write(1, 0, nil),
		send(1, []byte("abc")), send(1, numbered(26)), sendAs(rdmap.OpSendInvalidate, 1, 1, nil), send(2, nil),
		read, request(1, rdmap.ReadRequest{Size: 101}), request(1, rdmap.ReadRequest{}),
		atomicRequest(1, rdmap.AtomicRequest{STag: 1, TO: 4, Data: 9}), atomicResponse(1, 1, 5), immediate(1, 5),
		response(2, 90, numbered(10)), terminate(0x0100), terminateFor(0x0101, read),
	}
	var seeds [][]byte
	var every []byte
	for _, f := range fs {
		u := f.ulpdu()
		one := append([]byte{byte(len(u))}, u...)
		seeds, every = append(seeds, one), append(every, one...)
	}
	return append(seeds, every, mpaStream(fs))
}

func mpaStream(fs []fpdu) (b []byte) {
	w := mpa.NewWriter(false, true)
	for _, f := range fs {
		b = w.Append(b, f.ulpdu())
	}
	return b
}
