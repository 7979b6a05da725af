package engine

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// A Read into several elements asks for each by a request of its own, in their order, and completes once, when all are
// answered. Elements without bytes ask for nothing.
func TestReadList(t *testing.T) {
	everyVariant(t, func(t *testing.T, p *pair, from, to *host, n int) {
		source, one, other := numbered(2*n+9), make([]byte, n+2), make([]byte, n+7)
		rs := to.region(source, remoteAll)
		a, b := from.region(one, remoteAll), from.region(other, remoteAll)
		before := to.Machine.Stats().Received[rdmap.OpReadRequest].Messages
		w := work(4, OpRead, SGE{}, SGE{Region: b, Offset: 1, Length: n + 5}, SGE{}, SGE{Region: a, Length: 2},
			SGE{Region: a, Offset: 2, Length: n}, SGE{})
		w.RemoteSTag, w.RemoteTO = rs.STag(), 2
		from.post(w)
		from.post(work(5, OpRead))
		p.run()
		from.completion(success(4, OpRead, 2*n+7), success(5, OpRead, 0))
		to.noCompletion()
		if !bytes.Equal(other[1:n+6], source[2:n+7]) || !bytes.Equal(one, source[n+7:2*n+9]) || other[0] != 0 {
			t.Fatalf("%d bytes: changed on the way", n)
		}
		want := uint64(4)
		if n == 0 {
			want--
		}
		if got := to.Machine.Stats().Received[rdmap.OpReadRequest].Messages - before; got != want {
			t.Fatalf("%d bytes: %d Read Requests", n, got)
		}
	})
}

// readList posts a Read into two elements of two bytes.
func readList(t *testing.T, depth int) *reader {
	rd := newReader(t, ord(depth))
	w := work(1, OpRead, SGE{Region: rd.r, Offset: 0, Length: 2}, SGE{Region: rd.r, Offset: 4, Length: 2})
	w.RemoteSTag, w.RemoteTO = 7, 100
	rd.post(w)
	return rd
}

func listRequest(rd *reader, msn uint32, sink uint64) fpdu {
	return request(msn, rdmap.ReadRequest{SinkSTag: rd.r.STag(), SinkTO: sink, Size: 2, SrcSTag: 7, SrcTO: 100 + sink/2})
}

// A Read that has asked for some of its elements waits like another for the peer to take more.
func TestReadListWaits(t *testing.T) {
	rd := readList(t, 1)
	rd.post(work(2, OpSend))
	rd.want(listRequest(rd, 1, 0))
	rd.wantNothing()
	rd.send(rd.answer(0, "ab"))
	rd.noCompletion()
	rd.want(listRequest(rd, 2, 4), send(1, nil))
	rd.send(rd.answer(4, "cd"))
	rd.completion(success(1, OpRead, 4), success(2, OpSend, 0))
}

// A peer that refuses one of the requests has refused the Read.
func TestReadListRefused(t *testing.T) {
	for msn := range uint32(2) {
		rd := readList(t, 2)
		requests := []fpdu{listRequest(rd, 1, 0), listRequest(rd, 2, 4)}
		rd.want(requests...)
		rd.send(terminateFor(rdmap.CodeAccessRights, requests[msn]))
		rd.completion(failed(1, OpRead, StatusRemoteAccess))
	}
}

// An element that may not be written to ends the Read, whatever was asked for by then.
func TestReadListLocalError(t *testing.T) {
	rd := newReader(t)
	w := work(1, OpRead, SGE{Region: rd.r, Length: 2}, SGE{Region: rd.region(make([]byte, 2), memory.RemoteRead), Length: 2})
	rd.post(w)
	rd.want(request(1, rdmap.ReadRequest{SinkSTag: rd.r.STag(), Size: 2}))
	rd.wantTerminate(terminate(0x0000))
	rd.completion(failed(1, OpRead, StatusLocalAccess))
}
