package ulp

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
)

// The header of iSER (RFC 7145, section 9) in front of that of iSCSI (RFC 7143, section 11).
const (
	iserLen      = 28
	iserControl  = 1 // type: there is an iSCSI PDU
	iserWriteTag = 0x08
	iserReadTag  = 0x04
	iscsiLen     = 48
	iscsiCDB     = 32 // where a command has that of SCSI

	iscsiResponses = 0x20 // bit of the opcode
	iscsiOpcode    = 0x3f

	scsiCommand   = 0x01
	scsiResponse  = 0x21
	loginResponse = 0x23
	iscsiReject   = 0x3f
)

var iscsiOpcodes = map[byte]string{
	0x00: "NOP-Out", scsiCommand: "SCSI Command", 0x02: "Task Management Request", 0x03: "Login Request", 0x04: "Text Request",
	0x06: "Logout Request", 0x10: "SNACK Request", 0x20: "NOP-In", scsiResponse: "SCSI Response",
	0x22: "Task Management Response", loginResponse: "Login Response", 0x24: "Text Response", 0x26: "Logout Response",
	0x32: "Asynchronous Message", iscsiReject: "Reject",
}

var loginClasses = map[byte]string{1: "redirection", 2: "error of the initiator", 3: "error of the target"}

// An iser is iSER.
type iser struct {
	asked  [2]memo[uint32, iscsiRequest] // by the Initiator Task Tag
	memory memory
}

// An iscsiRequest is one without a response.
type iscsiRequest struct {
	opcode byte
	name   string // of a SCSI command
	probe  bool   // by which initiators find out what there is: the target may not know it
	n      int    // of the message
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
	if opcode&iscsiResponses != 0 {
		return p.response(end, opcode, name, tag, pdu)
	}
	request := iscsiRequest{opcode: opcode, n: m.n}
	if opcode == scsiCommand {
		request.name, request.probe = scsiName(pdu[iscsiCDB:iscsiLen])
		name += " " + request.name
	}
	l := line{text: fmt.Sprintf("%s, task %#08x", name, tag)}
	p.tell(end, b, l.text)
	p.asked[end].put(tag, request, maxRequests)
	return l, fits
}

// response reads a response, by its name and its Initiator Task Tag.
func (p *iser) response(end int, opcode byte, name string, tag uint32, pdu []byte) (line, int) {
	asked, known := p.asked[1-end].take(tag)
	if known = known && asked.opcode|iscsiResponses == opcode; !known {
		asked = iscsiRequest{}
	}
	l := line{text: fmt.Sprintf("%s, task %#08x", name, tag) + wording.If(asked.name != "", ", "+asked.name, ""), answers: asked.n}
	if status, fails := iscsiStatus(opcode, pdu); status != "" {
		l.text += ": " + status
		if fails && !(asked.probe && status == unknownRequest) {
			l.failure = status + " of " + cmp.Or(asked.name, "a "+name)
		}
	}
	if !known {
		return l, silent
	}
	return l, agrees
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
