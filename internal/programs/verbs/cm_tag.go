//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"

	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// Both ends of a connection of librdmacm agree on the prefix of Sends by a tag behind their private data, which neither
// program sees: see ulpdata.AppendPrefixTag. The one that connects shows it first, and the other answers with it.

// showsTag reports whether a Device offers the prefix, and takes the offer of a peer. One that the user has named is not
// under iwarp run.
func (d *Device) showsTag() bool { return d.roce && d.preset == nil }

// offered returns the private data of a Request. If they have the tag, verify settles by the Reply whether Sends have
// a prefix. Otherwise they have none.
func (q *QP) offered(privateData []byte) (tagged []byte, verify func(mpa.Negotiated) error, err error) {
	if !q.device.showsTag() {
		return privateData, nil, q.prefix(q.qp, false)
	}
	return ulpdata.AppendPrefixTag(privateData), func(n mpa.Negotiated) error {
		_, agreed := ulpdata.CutPrefixTag(n.PrivateData)
		return q.prefix(q.qp, agreed)
	}, nil
}

// answered returns the private data of the Reply to a Request that had the tag, or had not.
func (q *QP) answered(privateData []byte, tagged bool) ([]byte, error) {
	if !tagged || !q.device.showsTag() {
		return privateData, q.prefix(q.qp, false)
	}
	return ulpdata.AppendPrefixTag(privateData), q.prefix(q.qp, true)
}

// refuseImmediate says why a Send has no Immediate Data.
func (q *QP) refuseImmediate() syscall.Errno {
	r := Refusal{
		Call: "ibv_post_send", QP: q.number, Errno: syscall.EOPNOTSUPP,
		Why:    "the peer has not agreed to Sends with Immediate Data (IBV_WR_SEND_WITH_IMM)",
		Advice: "only a peer under iwarp run --as roce takes Sends with Immediate Data",
	}
	switch {
	case !q.device.roce:
		r.Why = "iWARP has no Send with Immediate Data (IBV_WR_SEND_WITH_IMM)"
		r.Advice = "this program sends Immediate Data, for which there is iwarp run --as roce, at both ends"
	case !q.meets() && !q.device.showsTag():
		r.Why = "a peer that IWARP_PEER names takes no Sends with Immediate Data (IBV_WR_SEND_WITH_IMM)"
	}
	q.device.Refused(r)
	return r.Errno
}
