package sctpkernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
)

// A notification is what the kernel says of an association, in place of a message: RFC 6458, section 6.1. Of the
// fields those are set that its kind has.
type notification struct {
	kind  uint16
	assoc int32

	// Of eventAssocChange.
	state   uint16
	cause   uint16 // of an ABORT
	out, in uint16 // streams
	info    []byte // the causes of an ABORT that has come

	indication uint32 // of eventAdaptation
}

var errShort = errors.New("a notification that is too short")

// parseNotification reads one. A kind that is not known here has no fields. info is a part of b.
func parseNotification(b []byte) (n notification, err error) {
	if len(b) < 8 || len(b) < leastLen(native.Uint16(b)) {
		return n, errShort
	}
	switch n.kind = native.Uint16(b); n.kind {
	case eventAssocChange:
		n.state, n.cause = native.Uint16(b[8:]), binary.BigEndian.Uint16(b[10:])
		n.out, n.in = native.Uint16(b[12:]), native.Uint16(b[14:])
		n.assoc, n.info = int32(native.Uint32(b[16:])), b[20:]
	case eventAdaptation:
		n.indication, n.assoc = native.Uint32(b[8:]), int32(native.Uint32(b[12:]))
	case eventShutdown, eventSenderDry:
		n.assoc = int32(native.Uint32(b[8:]))
	}
	return n, nil
}

// is reports whether an association has come to a state.
func (n *notification) is(state uint16) bool { return n.kind == eventAssocChange && n.state == state }

// indicates reports whether it is of an Adaptation Layer Indication, and which.
func (n *notification) indicates(adaptation uint32) bool {
	return n.kind == eventAdaptation && n.indication == adaptation
}

// leastLen is the length of a notification without what follows its fields.
func leastLen(kind uint16) int {
	switch kind {
	case eventAssocChange:
		return 20
	case eventAdaptation:
		return 16
	case eventShutdown, eventSenderDry:
		return 12
	}
	return 8
}

// aborted is what the causes of an ABORT say, of which there may be less than they tell.
func aborted(cause uint16, info []byte) error {
	text := (&chunk.Chunk{Value: info, Length: math.MaxUint16}).Reason()
	if text == "" && cause != 0 && cause != chunk.CauseUserAbort {
		return fmt.Errorf("%w (error cause %d)", lowerlayer.ErrAborted, cause)
	}
	return lowerlayer.Aborted(text)
}
