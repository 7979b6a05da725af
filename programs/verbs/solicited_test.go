//go:build linux && (amd64 || arm64)

package verbs

import "testing"

// TestSolicitedWithoutMeaning: the flag is for what completes at the peer, and means nothing with the rest.
func TestSolicitedWithoutMeaning(t *testing.T) {
	a, b := met(t)
	to := b.region("12345678", accessLocalWrite|accessRemoteWrite|accessRemoteRead|accessRemoteAtomic)
	r := a.region("........", accessLocalWrite)
	for id, opcode := range []uint32{wrRead, wrWrite, wrFetchAdd, wrCompareSwap} {
		wr := &SendWR{ID: uint64(id), SGL: r.sge(), SGEs: 1, Opcode: opcode, Flags: sendSolicited, RemoteAddr: to.at(), RKey: to.rkey}
		if opcode == wrFetchAdd || opcode == wrCompareSwap {
			*wr.atomic() = atomicArgs{RemoteAddr: to.at(), RKey: to.rkey}
		}
		_, errno := a.d.PostSend(a.qp, wr)
		must(t, errno)
		wc := a.completion()
		want(t, "completion", [2]uint64{wc.ID, uint64(wc.Status)}, [2]uint64{uint64(id), 0})
	}
}
