package ulp

import (
	"encoding/binary"
	"fmt"
)

// The header of iSER (RFC 7145, section 9) in front of that of iSCSI (RFC 7143, section 11).
const (
	iserLen      = 28
	iserControl  = 1 // type: there is an iSCSI PDU
	iserWriteTag = 0x08
	iserReadTag  = 0x04
	iscsiLen     = 48

	iscsiResponses = 0x20 // bit of the opcode
	iscsiOpcode    = 0x3f

	scsiResponse  = 0x21
	loginResponse = 0x23
	iscsiReject   = 0x3f
)

var iscsiOpcodes = map[byte]string{
	0x00: "NOP-Out", 0x01: "SCSI Command", 0x02: "Task Management Request", 0x03: "Login Request", 0x04: "Text Request",
	0x06: "Logout Request", 0x10: "SNACK Request", 0x20: "NOP-In", scsiResponse: "SCSI Response",
	0x22: "Task Management Response", loginResponse: "Login Response", 0x24: "Text Response", 0x26: "Logout Response",
	0x32: "Asynchronous Message", iscsiReject: "Reject",
}

// Statuses of SCSI that tell of a failure: not GOOD (0x00) and CONDITION MET (0x04).
const checkCondition = 0x02

var scsiStatuses = map[byte]string{checkCondition: "CHECK CONDITION", 0x08: "BUSY", 0x18: "RESERVATION CONFLICT",
	0x28: "TASK SET FULL", 0x30: "ACA ACTIVE", 0x40: "TASK ABORTED"}

// Sense keys, of sense data of a CHECK CONDITION. With three of them nothing has failed: each new initiator is told by a
// UNIT ATTENTION that there was a reset.
var senseKeys = [16]string{"NO SENSE", "RECOVERED ERROR", "NOT READY", "MEDIUM ERROR", "HARDWARE ERROR", "ILLEGAL REQUEST",
	"UNIT ATTENTION", "DATA PROTECT", "BLANK CHECK", "VENDOR SPECIFIC", "COPY ABORTED", "ABORTED COMMAND", "0xc",
	"VOLUME OVERFLOW", "MISCOMPARE", "COMPLETED"}

var harmlessSense = [16]bool{0: true, 1: true, 6: true}

var loginClasses = map[byte]string{1: "redirection", 2: "error of the initiator", 3: "error of the target"}

// An iser is iSER.
type iser struct {
	asked  [2]memo[uint32, iscsiRequest] // by the Initiator Task Tag
	memory memory
}

// An iscsiRequest is one without a response.
type iscsiRequest struct {
	opcode byte
	n      int // of the message
}

func beginISER([2]any, [2][]byte) (protocol, bool) { return &iser{}, false }

func (p *iser) access(end int, a *Access) (line, int) { return p.memory.access(end, a) }

func (p *iser) size() int { return costRequest*(p.asked[0].len()+p.asked[1].len()) + p.memory.size() }

func (p *iser) send(end int, m *Message) (line, int) {
	b := m.Data
	if len(b) < iserLen+iscsiLen || b[0]>>4 != iserControl || b[0]&3 != 0 || b[1]|b[2]|b[3] != 0 {
		return line{}, against
	}
	pdu := b[iserLen:]
	opcode := pdu[0] & iscsiOpcode
	name, known := iscsiOpcodes[opcode]
	if !known || pdu[0]&0x80 != 0 {
		return line{}, against
	}
	tag := binary.BigEndian.Uint32(pdu[16:])
	l := line{text: fmt.Sprintf("%s, task %#08x", name, tag)}
	p.tell(end, b, l.text)
	if opcode&iscsiResponses == 0 {
		p.asked[end].put(tag, iscsiRequest{opcode, m.n}, maxRequests)
		return l, fits
	}
	if status, fails := iscsiStatus(opcode, pdu); status != "" {
		l.text += ": " + status
		if fails {
			l.failure = status + " of a " + name
		}
	}
	if asked, known := p.asked[1-end].take(tag); known && asked.opcode|iscsiResponses == opcode {
		l.answers = asked.n
		return l, agrees
	}
	return l, silent
}

// tell takes note of the STags in a header.
func (p *iser) tell(end int, b []byte, what string) {
	u32, u64 := binary.BigEndian.Uint32, binary.BigEndian.Uint64
	// A header has no length: what is read or written is within 2 GiB of its base.
	const length = 1 << 31
	if b[0]&iserWriteTag != 0 {
		p.memory.add(end, u32(b[4:]), piece{to: u64(b[8:]), length: length, what: "data of " + what})
	}
	if b[0]&iserReadTag != 0 {
		p.memory.add(end, u32(b[16:]), piece{to: u64(b[20:]), length: length, what: "data of " + what})
	}
}

// iscsiStatus is what a response says beside that all is well, and whether that is a failure.
func iscsiStatus(opcode byte, pdu []byte) (status string, fails bool) {
	switch opcode {
	case scsiResponse:
		return scsiStatus(pdu)
	case loginResponse:
		if class := loginClasses[pdu[36]]; class != "" {
			return fmt.Sprintf("login status %#02x%02x, %s", pdu[36], pdu[37], class), true
		}
	case iscsiReject:
		return fmt.Sprintf("reason %#02x", pdu[2]), true
	}
	return "", false
}

// scsiStatus is that of a SCSI Response (RFC 7143, section 11.4), with the key of its sense data.
func scsiStatus(pdu []byte) (status string, fails bool) {
	name, known := scsiStatuses[pdu[3]]
	switch {
	case pdu[2] != 0:
		return fmt.Sprintf("target failure, response %#02x", pdu[2]), true
	case !known:
		return "", false
	case pdu[3] != checkCondition:
		return name, true
	}
	sense := senseData(pdu)
	if len(sense) < 3 {
		return name, true
	}
	key := sense[2] // of the fixed format
	if format := sense[0] & 0x7f; format == 0x72 || format == 0x73 {
		key = sense[1] // of descriptors
	}
	return name + ", " + senseKeys[key&0xf], !harmlessSense[key&0xf]
}

// senseData is what follows the header, after additional headers and a length (RFC 7143, section 11.4.7).
func senseData(pdu []byte) []byte {
	rest := pdu[iscsiLen:]
	if more := 4 * int(pdu[4]); more+2 <= len(rest) {
		rest = rest[more:]
		return rest[2:min(len(rest), 2+int(binary.BigEndian.Uint16(rest)))]
	}
	return nil
}
