package ulp

import (
	"slices"

	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// A kind is a protocol that is known here.
type kind struct {
	name  string
	ports []uint16
	// begin returns a protocol for a connection, by what the private data of the ends is known to be; hinted tells that it
	// speaks for the protocol.
	begin func(private [2]any, raw [2][]byte) (p protocol, hinted bool)
}

// kinds are all, the surest ones first.
var kinds = []kind{
	{"NVMe", []uint16{4420}, beginNVMe},
	{"rsockets", nil, beginRsockets},
	{"RPC", []uint16{20049}, beginRPC},
	{"SMB Direct", []uint16{5445}, beginSMBDirect},
	{"iSER", []uint16{860, 3260}, beginISER},
	{"rping", []uint16{7174}, beginRping},
}

// ServesOn reports whether a port is the usual one of a protocol that is known here.
func ServesOn(port uint16) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return slices.Contains(k.ports, port) })
}

func (k *kind) start(port uint16, raw [2][]byte) (protocol, bool) {
	var private [2]any
	for i, b := range raw {
		private[i] = ulpdata.Recognize(b)
	}
	p, hinted := k.begin(private, raw)
	return p, hinted || slices.Contains(k.ports, port)
}

// is reports whether private data is of one of the types.
func is[T any](private [2]any) bool {
	_, a := private[0].(T)
	_, b := private[1].(T)
	return a || b
}
