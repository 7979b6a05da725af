//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/emulation"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// A Send with Immediate Data is none of RFC 7306, whose Immediate Data have a receive of their own. In the guise of
// RoCE, if both ends are ours, each Send begins with a prefix, in network order:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                    reserved                                 |I|
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                    Immediate Data, if I is 1                  |
//
// The one that calls says so by the version of its call. A peer of an earlier version refuses that, and is called once
// more without. Connections of librdmacm have a tag for it: see cm_tag.go.

// prefixImmediate is the bit I.
const prefixImmediate = 1 << 32

// prefix says whether the Sends of the next connection have a prefix, at one end.
func (q *QP) prefix(end *iwarp.QP, on bool) error {
	q.plain.Store(!on)
	return emulation.SetPrefix(end, on)
}

// sendsImmediate reports whether a Send may have Immediate Data. While the connection is not up it may turn out that
// the peer takes none: then the Send fails, by its completion.
func (q *QP) sendsImmediate() bool { return q.device.roce && !q.plain.Load() }

// prefix is that of the request.
func (w *SendWR) prefix() uint64 { return prefixImmediate | w.immediate()>>32 }

// setPrefix tells of the prefix of a Send that was received.
func (w *WC) setPrefix(prefix uint64) {
	if prefix&prefixImmediate == 0 {
		return
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(prefix))
	w.Invalidated, w.Flags = binary.NativeEndian.Uint32(b[:]), wcWithImm
}

// refuseCall refuses a call, as one whose version is known. It waits for the peer to hear of it.
func (d *Device) refuseCall(r *iwarp.Request) {
	_ = d.rejecter.RejectAndWait(r, ulpdata.QPRefusal{}.Append(nil))
}

// refused ends what there is of a call that has failed, and reports whether a peer of an earlier version has refused
// it.
func refused(err error) (earlier bool) {
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) {
		return false
	}
	_, err = ulpdata.ParseQPRefusal(rejected.PrivateData)
	return err != nil
}
