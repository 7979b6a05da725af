package engine

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// immediate is an Immediate Data message.
func immediate(msn uint32, value uint64) fpdu {
	f := message(rdmap.OpImmediateData, rdmap.AppendImmediateData(nil, value))
	f.H.MSN = msn
	return f
}

// Proves A31, A32, A34, A38: an OpWriteImm is a Write of any number of segments and Immediate Data directly
// after it, on queue 0 as a Send is, and one completion when both are taken.
func TestWriteImm(t *testing.T) {
	p := initiator(t)
	buf := numbered(2000)
	r := p.region(buf, 0)
	p.post(work(1, OpSend))
	w := work(2, OpWriteImm, all(r, 2000))
	w.RemoteSTag, w.RemoteTO, w.Immediate, w.Solicited = 9, 100, 0x0102030405060708, true
	p.post(w)
	p.post(work(3, OpSend))
	p.window = 1560 // of which the last bytes are those of the Write's last segment, in part
	p.want(send(1, nil), write(9, 100, buf[:1430]).more())
	p.completion(success(1, OpSend, 0))
	p.noCompletion()
	p.window = -1
	p.want(write(9, 1530, buf[1430:]), sendAs(rdmap.OpImmediateDataSE, 2, 0,
		[]byte{1, 2, 3, 4, 5, 6, 7, 8}), send(3, nil))
	p.completion(success(2, OpWriteImm, 2000), success(3, OpSend, 0))
}

// Proves A32, A34, A38: Immediate Data go without a Write too, and nothing comes between those of an
// OpWriteImm and its Write, whatever the peer asks for meanwhile.
func TestImmediateTogether(t *testing.T) {
	p := initiator(t)
	buf := numbered(8)
	r := p.region(buf, remoteAll)
	p.window = 0
	p.send(request(1, readOf(r.STag(), 8)))
	for id := range uint64(2) {
		w := work(id, OpWriteImm)
		w.Inline, w.SGL, w.Immediate, w.RemoteSTag = []byte("x"), SGL{}, id, 9
		p.post(w)
	}
	w := work(2, OpImmediate)
	w.Immediate = 2
	p.post(w)
	p.window = -1
	p.want(write(9, 0, []byte("x")), immediate(1, 0), response(readOf(0, 8).SinkSTag, readOf(0, 8).SinkTO, buf),
		write(9, 0, []byte("x")), immediate(2, 1), immediate(3, 2))
	p.completion(success(0, OpWriteImm, 1), success(1, OpWriteImm, 1), success(2, OpImmediate, 0))
}

// Proves A31, A33, A35, A38: Immediate Data consume a receive, in the order of Sends, whose memory stays as it is
// and may be of any length. The completion has the 8 bytes, and how many were written before.
func TestImmediateReceived(t *testing.T) {
	p := responder(t)
	buf := make([]byte, 40)
	r := p.region(buf, remoteAll)
	p.receive(1)
	p.receive(2, SGE{Region: r, Offset: 0, Length: 20})
	p.receive(3, SGE{Region: r, Offset: 0, Length: 20})
	p.receive(4)
	p.receive(5)
	p.send(immediate(1, 0x0102030405060708))
	p.completion(Completion{ID: 1, Op: OpReceive, HasImmediate: true, Immediate: 0x0102030405060708})
	p.send(write(r.STag(), 20, numbered(7)).more(), write(r.STag(), 27, numbered(3)),
		sendAs(rdmap.OpImmediateDataSE, 2, 0, []byte("\x01\x02\x03\x04\x05\x06\x07\x08")))
	if !bytes.Equal(buf[:20], make([]byte, 20)) {
		t.Errorf("the receive's memory has % x", buf[:20])
	}
	p.completion(Completion{ID: 2, Op: OpReceive, HasImmediate: true, Immediate: 0x0102030405060708,
		Solicited: true, Written: 10})
	p.send(write(r.STag(), 20, numbered(7)), send(3, []byte("abc")), immediate(4, 1))
	p.completion(success(3, OpReceive, 3), Completion{ID: 4, Op: OpReceive, HasImmediate: true, Immediate: 1})
	p.send(write(r.STag(), 20, numbered(7)).more(), immediate(5, 1)) // in the middle of a Write
	p.completion(Completion{ID: 5, Op: OpReceive, HasImmediate: true, Immediate: 1})
	if string(buf[:4]) != "abc\x00" {
		t.Errorf("% x", buf[:20])
	}
	p.wantState(RTS)
}

// Proves A01, A33, A36, A40, A41: "The Remote Peer MUST check that Immediate Data [...] include exactly 8 bytes"
// (RFC 7306, section 6.3); and Immediate Data that have no receive, or not their turn, end the
// connection as a Send does.
func TestImmediateRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		good []fpdu
		bad  fpdu
		code rdmap.Code
	}{
		{"7 bytes", nil, message(rdmap.OpImmediateData, numbered(7)), 0x0207},
		{"9 bytes", nil, message(rdmap.OpImmediateDataSE, numbered(9)), 0x0207},
		{"none", nil, message(rdmap.OpImmediateData, nil), 0x0207},
		{"not the last segment", nil, immediate(1, 1).more(), 0x0207},
		{"MSN skipped", nil, immediate(2, 1), 0x1203},
		{"MSN repeated", []fpdu{immediate(1, 1)}, immediate(1, 1), 0x1203},
		{"no receive", []fpdu{immediate(1, 1)}, immediate(2, 1), 0x1202},
		{"in the middle of a Send", []fpdu{send(1, []byte("ab")).more()}, immediate(1, 1), 0x1204},
		{"in the middle of a Send, at its end", []fpdu{send(1, []byte("ab")).more()}, immediate(1, 1).at(2), 0x1205},
		{"on queue 1", nil, immediate(1, 1).with(qn(1)), 0x0206},
		{"tagged", nil, immediate(1, 1).with(tagged(true)), 0x0206},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := responder(t)
			r := p.region(make([]byte, 20), memory.LocalWrite)
			p.receive(1, all(r, 20))
			p.send(tt.good...)
			p.send(tt.bad)
			p.wantTerminate(terminateFor(tt.code, tt.bad))
			f := p.wantCause(tt.code, false)
			if strings.Contains(f.Reason, "no receive is posted") != (tt.code == rdmap.CodeDDPInvalidMSNNoBuffer) {
				t.Error(f)
			}
		})
	}
}

// A queue that others share hands out receives to Immediate Data as it does to Sends.
//
// Proves A33.
func TestImmediateFromSource(t *testing.T) {
	q := &recvQueue{}
	q.SetLimit(2)
	p := responder(t, func(s *setup) { s.Source = q })
	*q.Add() = RecvWork{ID: 7}
	p.send(immediate(1, 5))
	p.completion(Completion{ID: 7, Op: OpReceive, HasImmediate: true, Immediate: 5})
	bad := immediate(2, 6)
	p.send(bad)
	p.wantTerminate(terminateFor(0x1202, bad))
}

// A close with everything of RFC 7306 under way.
//
// Proves A19, A22: what was asked for before is answered, and what was posted is sent.
func TestExtensionsDrain(t *testing.T) {
	p := newPair(t)
	data, w := words(1)
	r := p.b.region(data, memory.RemoteAtomic)
	p.b.receive(9)
	for id := range uint64(8) { // twice as many as the ORD
		a := work(id, OpFetchAdd)
		a.RemoteSTag, a.Atomic.Data = r.STag(), 1
		p.a.post(a)
	}
	i := work(8, OpImmediate)
	i.Immediate = 77
	p.a.post(i)
	p.a.closeOrderly()
	p.run()
	p.b.closeOrderly()
	p.run()
	for id := range uint64(8) {
		p.a.completion(fetched(id, OpFetchAdd, id))
	}
	p.a.completion(success(8, OpImmediate, 0))
	p.b.completion(Completion{ID: 9, Op: OpReceive, HasImmediate: true, Immediate: 77})
	if w[0] != 8 {
		t.Errorf("%d", w[0])
	}
}

// Immediate Data that completes a receive is progress of a close, as a Send is.
func TestImmediateIsProgress(t *testing.T) {
	p := initiator(t)
	p.receive(1)
	p.closeOrderly()
	p.advance(closeTime - 1)
	p.send(immediate(1, 5))
	p.completion(Completion{ID: 1, Op: OpReceive, HasImmediate: true, Immediate: 5})
	p.advance(closeTime - 1)
	p.wantState(RTS)
	p.advance(1)
	p.wantState(Error)
}
