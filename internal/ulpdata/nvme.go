package ulpdata

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Sizes of the private data of NVMe, in bytes: of a request or a reply, and of a rejection.
const (
	NVMeLen       = 32
	nvmeRejectLen = 4
)

// NVMeRequest is what a host has in the private data of a request for an NVMe queue:
// NVM Express RDMA Transport Specification, record format 0. All fields are
// little-endian, and it has 32 bytes.
//
//	byte 0      2     4         6         8        10
//	      +------+-----+---------+---------+--------+----------+
//	      |RECFMT| QID | HRQSIZE | HSQSIZE | CNTLID | reserved |
//	      +------+-----+---------+---------+--------+----------+
type NVMeRequest struct {
	QID     uint16 // 0 for the Admin Queue
	HRQSize uint16 // entries of the host's receive queue
	HSQSize uint16 // entries of the host's send queue, less one
	CntlID  uint16 // of the controller; 0 of hosts that are older than the field
}

// NVMeReply is what a controller has in an accepting Reply: record format and the
// size of its receive queue, in 32 bytes.
type NVMeReply struct {
	CRQSize uint16 // entries of the controller's receive queue
}

// NVMeReject is what a controller has in a rejecting Reply: record format and
// status, in 4 bytes.
type NVMeReject struct {
	Status uint16
}

// Statuses of an NVMeReject.
const (
	NVMeInvalidLength  = 1 // of the private data
	NVMeInvalidFormat  = 2 // of the record
	NVMeInvalidQID     = 3
	NVMeInvalidHSQSize = 4
	NVMeInvalidHRQSize = 5
	NVMeNoResources    = 6
	NVMeInvalidIRD     = 7
	NVMeInvalidORD     = 8
	NVMeInvalidCntlID  = 9
)

var nvmeStatus = [...]string{
	NVMeInvalidLength:  "invalid length of private data",
	NVMeInvalidFormat:  "invalid record format",
	NVMeInvalidQID:     "invalid queue ID",
	NVMeInvalidHSQSize: "invalid size of the host's send queue",
	NVMeInvalidHRQSize: "invalid size of the host's receive queue",
	NVMeNoResources:    "no resources",
	NVMeInvalidIRD:     "invalid IRD",
	NVMeInvalidORD:     "invalid ORD",
	NVMeInvalidCntlID:  "invalid controller ID",
}

// Append appends the private data.
func (q NVMeRequest) Append(dst []byte) []byte {
	return appendNVMe(dst, NVMeLen, q.QID, q.HRQSize, q.HSQSize, q.CntlID)
}

// Append appends the private data.
func (p NVMeReply) Append(dst []byte) []byte { return appendNVMe(dst, NVMeLen, p.CRQSize) }

// Append appends the private data.
func (p NVMeReject) Append(dst []byte) []byte { return appendNVMe(dst, nvmeRejectLen, p.Status) }

// appendNVMe appends the record format 0, fields, and zero bytes up to a length.
func appendNVMe(dst []byte, length int, fields ...uint16) []byte {
	end := len(dst) + length
	dst = append(dst, 0, 0)
	for _, f := range fields {
		dst = binary.LittleEndian.AppendUint16(dst, f)
	}
	return append(dst, make([]byte, end-len(dst))...)
}

// ParseNVMeRequest returns a host's private data. Reserved bytes are not looked at.
// The error wraps [ErrConvention].
func ParseNVMeRequest(b []byte) (q NVMeRequest, err error) {
	if err := checkNVMe(b, NVMeLen); err != nil {
		return q, err
	}
	u16 := binary.LittleEndian.Uint16
	return NVMeRequest{u16(b[2:]), u16(b[4:]), u16(b[6:]), u16(b[8:])}, nil
}

// ParseNVMeReply returns a controller's private data in an accepting Reply, as
// [ParseNVMeRequest] does.
func ParseNVMeReply(b []byte) (p NVMeReply, err error) {
	if err := checkNVMe(b, NVMeLen); err != nil {
		return p, err
	}
	return NVMeReply{binary.LittleEndian.Uint16(b[2:])}, nil
}

// ParseNVMeReject returns a controller's private data in a rejecting Reply, as
// [ParseNVMeRequest] does.
func ParseNVMeReject(b []byte) (p NVMeReject, err error) {
	if err := checkNVMe(b, nvmeRejectLen); err != nil {
		return p, err
	}
	return NVMeReject{binary.LittleEndian.Uint16(b[2:])}, nil
}

func checkNVMe(b []byte, length int) error {
	if len(b) < length {
		return tooShort("NVMe", len(b), length)
	}
	if format := binary.LittleEndian.Uint16(b); format != 0 {
		return fmt.Errorf("%w: NVMe's record format is 0, and this is %d", ErrConvention, format)
	}
	return nil
}

// recognizeNVMe tells a request from a reply: a host has queues of some size, and
// what a reply leaves zero has nothing but zeros.
func recognizeNVMe(b []byte) fmt.Stringer {
	q, err := ParseNVMeRequest(b)
	switch {
	case err != nil:
	case allZero(b[10:]) && q.HRQSize > 0 && q.HSQSize > 0:
		return q
	case allZero(b[4:]):
		if p, err := ParseNVMeReply(b); err == nil && p.CRQSize > 0 {
			return p
		}
	}
	return nil
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

func (p NVMeReject) known() bool { return p.Status > 0 && int(p.Status) < len(nvmeStatus) }

// String returns, for instance, "NVMe request qid 0 hrqsize 32 hsqsize 31 cntlid 0".
func (q NVMeRequest) String() string {
	return fmt.Sprintf("NVMe request qid %d hrqsize %d hsqsize %d cntlid %d", q.QID, q.HRQSize, q.HSQSize, q.CntlID)
}

// String returns, for instance, "NVMe reply crqsize 32".
func (p NVMeReply) String() string { return fmt.Sprintf("NVMe reply crqsize %d", p.CRQSize) }

// String returns, for instance, "NVMe rejection, status 6: no resources".
func (p NVMeReject) String() string {
	if !p.known() {
		return fmt.Sprintf("NVMe rejection, status %d", p.Status)
	}
	return fmt.Sprintf("NVMe rejection, status %d: %s", p.Status, nvmeStatus[p.Status])
}
