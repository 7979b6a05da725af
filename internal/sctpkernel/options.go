package sctpkernel

import (
	"cmp"
	"fmt"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/sctp"
)

// Config configures a Listener, or an association. The zero value is usable.
type Config struct {
	// Streams is how many streams to ask for in both directions. If zero, 16.
	Streams int
	// Window is how many bytes an association takes that were not read yet; the system may allow less. If zero, 1 MiB.
	Window int
	// MaxAssociations bounds those of a Listener. If zero, 1024.
	MaxAssociations int
	// Heartbeat is how long a peer may say nothing before it is asked whether it is there. If zero, 2.5 s. With
	// the default it takes 15 s to notice that one is gone where something was sent to it, and half a minute
	// otherwise.
	Heartbeat time.Duration
	// HandshakeTimeout bounds a handshake of ours. If zero, 10 s.
	HandshakeTimeout time.Duration
	// Control is called with each socket before it is bound, as that of a net.Dialer.
	Control func(network, address string, c syscall.RawConn) error
}

func (c *Config) fill() {
	c.Streams = min(max(cmp.Or(c.Streams, 16), 1), 1<<16-1)
	c.Window = max(cmp.Or(c.Window, 1<<20), 64<<10)
	c.MaxAssociations = cmp.Or(c.MaxAssociations, 1024)
	c.Heartbeat = cmp.Or(c.Heartbeat, 2500*time.Millisecond)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, 10*time.Second)
}

// What SCTP waits for before it sends again, in milliseconds: a QP waits for no end as long as the usual minute.
const (
	firstRTO = 1000
	minRTO   = 200
	maxRTO   = 3000

	maxRetransmissions = 7
)

// Sizes of structures.
const (
	peerParamsLen = 156
	statusLen     = 176
)

// An option is one to set.
type option struct {
	name  string
	opt   int
	value []byte
}

// options are those of every socket. What is peeled off has them too.
//
// RFC 5043, section 11.1: "a DDP/SCTP adaptation layer MUST include an adaptation layer indication in its INIT or
// INIT-ACK". Section 8: "The adaptation MUST initialize all of its SCTP associations with the same number of inbound
// and outbound streams." Section 11.2: segments of untagged messages "SHOULD NOT be delayed to facilitate bundling."
// [C15]
func (c *Config) options() []option {
	all := []option{
		{"the Adaptation Layer Indication", optAdaptation, words(sctp.AdaptationDDP)},
		{"the number of streams", optInitMsg, halves(c.Streams, c.Streams, 0, 0)},
		{"no delay", optNoDelay, words(1)},
		{"what comes with messages", optRecvRcvInfo, words(1)},
		{"retransmission", optRTOInfo, words(0, firstRTO, maxRTO, minRTO)},
		{"the number of retransmissions", optAssocInfo,
			append(append(words(0), halves(maxRetransmissions, 0)...), words(0, 0, 0)...)},
		{"heartbeats", optPeerParams, c.peerParams()},
	}
	for _, e := range []int{eventAssocChange, eventShutdown, eventAdaptation, eventSenderDry} {
		all = append(all, option{fmt.Sprintf("event %x", e), optEvent, append(words(0), append(halves(e), 1, 0)...)})
	}
	return all
}

// peerParams is a struct sctp_paddrparams for all addresses of a peer, which has no padding within.
func (c *Config) peerParams() []byte {
	const heartbeat, retransmissions, flags, heartbeatOn = 132, 136, 146, 1
	b := make([]byte, peerParamsLen)
	native.PutUint32(b[heartbeat:], uint32(c.Heartbeat/time.Millisecond))
	native.PutUint16(b[retransmissions:], maxRetransmissions)
	native.PutUint32(b[flags:], heartbeatOn)
	return b
}

// words are 32 bits each, and halves 16.
func words(all ...int) (b []byte) {
	for _, n := range all {
		b = native.AppendUint32(b, uint32(n))
	}
	return b
}

func halves(all ...int) (b []byte) {
	for _, n := range all {
		b = native.AppendUint16(b, uint16(n))
	}
	return b
}

// fragmentation returns the largest message that the kernel sends as one chunk: struct sctp_status.
func fragmentation(fd int, assoc int32) (int, error) {
	const point = 20
	b := make([]byte, statusLen)
	native.PutUint32(b, uint32(assoc))
	if err := getOption(fd, optStatus, b); err != nil {
		return 0, err
	}
	return int(native.Uint32(b[point:])), nil
}

// peel gives an association a descriptor of its own.
func peel(fd int, assoc int32) (int, error) {
	b := append(append(words(0), words(0)...), words(peelFlags)...)
	native.PutUint32(b, uint32(assoc))
	if err := getOption(fd, optPeelOffFlags, b); err != nil {
		return -1, err
	}
	return int(int32(native.Uint32(b[4:]))), nil
}
