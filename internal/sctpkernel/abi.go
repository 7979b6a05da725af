package sctpkernel

import "encoding/binary"

// Socket options, as Linux numbers those of RFC 6458, section 8.
const (
	optRTOInfo      = 0
	optAssocInfo    = 1
	optInitMsg      = 2
	optNoDelay      = 3
	optAdaptation   = 7
	optPeerParams   = 9
	optStatus       = 14
	optRecvRcvInfo  = 32
	optPRSupported  = 113
	optPeelOffFlags = 122
	optEvent        = 127
)

// Control messages: RFC 6458, section 5.3.
const (
	controlSndInfo = 2
	controlRcvInfo = 3
	sndInfoLen     = 16
	rcvInfoLen     = 28
)

// Flags of a message: RFC 6458, section 5.3.4.
const (
	flagUnordered       = 1
	flagAbort           = 4
	flagSackImmediately = 8
	flagEOF             = 0x200
)

// Flags of recvmsg.
const (
	msgEOR          = 0x80
	msgNotification = 0x8000
)

// Events, which are the types of the notifications too: RFC 6458, section 6.1.
const (
	eventAssocChange = 0x8001
	eventShutdown    = 0x8005
	eventAdaptation  = 0x8007
	eventSenderDry   = 0x8009
)

// States of an assocChange.
const (
	commUp = iota
	commLost
	restart
	shutdownComplete
	cannotStart
)

// native is the order of what passes between us and the kernel. A PPID is passed through as it is, and an error cause
// comes as it was in the packet.
var native = binary.NativeEndian

// wordLen is the size of the kernel's long, to which control messages are aligned.
const wordLen = 4 << (^uintptr(0) >> 63)

// cmsgHeaderLen is the size of a cmsghdr: a long and two ints.
const cmsgHeaderLen = wordLen + 8

// word appends a long.
func word(b []byte, n int) []byte {
	if wordLen == 8 {
		return native.AppendUint64(b, uint64(n))
	}
	return native.AppendUint32(b, uint32(n))
}

// parseWord is word's reverse. What is no size is 0.
func parseWord(b []byte) int {
	n := uint64(native.Uint32(b))
	if wordLen == 8 {
		n = native.Uint64(b)
	}
	if n > 1<<16 {
		return 0
	}
	return int(n)
}

// sndInfo is what goes with a message: RFC 6458, section 5.3.4.
type sndInfo struct {
	stream, flags uint16
	ppid          uint32
	assoc         int32
}

// append appends it as a control message.
func (s sndInfo) append(b []byte) []byte {
	b = word(b, cmsgHeaderLen+sndInfoLen)
	b = native.AppendUint32(b, protocol)
	b = native.AppendUint32(b, controlSndInfo)
	b = native.AppendUint16(b, s.stream)
	b = native.AppendUint16(b, s.flags)
	b = binary.BigEndian.AppendUint32(b, s.ppid)
	b = native.AppendUint32(b, 0) // context
	return native.AppendUint32(b, uint32(s.assoc))
}

// protocol is SCTP's in IP, and the level of its socket options and control messages.
const protocol = 132

// rcvInfo is what comes with a message: RFC 6458, section 5.3.5.
type rcvInfo struct {
	stream, flags uint16
	ppid          uint32
}

// parseControl finds the rcvInfo among control messages.
func parseControl(b []byte) (r rcvInfo, ok bool) {
	for len(b) >= cmsgHeaderLen {
		n := parseWord(b)
		if n < cmsgHeaderLen || n > len(b) {
			return r, false
		}
		level, kind, data := native.Uint32(b[wordLen:]), native.Uint32(b[wordLen+4:]), b[cmsgHeaderLen:n]
		if level == protocol && kind == controlRcvInfo && len(data) >= rcvInfoLen {
			return rcvInfo{
				stream: native.Uint16(data), flags: native.Uint16(data[4:]), ppid: binary.BigEndian.Uint32(data[8:]),
			}, true
		}
		b = b[min((n+wordLen-1)&^(wordLen-1), len(b)):]
	}
	return r, false
}
