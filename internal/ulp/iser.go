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
	iserHello    = 2 // and here is none, and nothing else
	iserReply    = 3
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

// Statuses of a login (RFC 7143, section 11.13.5), by class and detail.
const loginMoved = 0x01 // class: no failure, the target is elsewhere

var loginStatuses = map[uint16]string{
	0x0101: "target moved temporarily", 0x0102: "target moved permanently", 0x0200: "initiator error",
	0x0201: "authentication failure", 0x0202: "authorization failure", 0x0203: "not found", 0x0204: "target removed",
	0x0205: "unsupported version", 0x0206: "too many connections", 0x0207: "missing parameter",
	0x0208: "can't include in session", 0x0209: "session type not supported", 0x020a: "session does not exist",
	0x020b: "invalid during login", 0x0300: "target error", 0x0301: "service unavailable", 0x0302: "out of resources",
}

var loginAdvice = map[uint16]string{
	0x0201: "the target does not accept the initiator's name and secret of CHAP, or wants some",
	0x0202: "the target does not let this initiator in: add its name there",
	0x0203: "there is no such target: compare its name, and the portal group",
	0x0301: "the target is not enabled, or Linux's LIO does not know its name",
}

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
	if name := helloOf(m); name != "" {
		return line{text: name}, silent
	}
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

// helloOf names the messages by which the two ends of iSER agree on versions and depths: sections 9.3 and 9.4.
func helloOf(m *Message) string {
	if len(m.Data) != iserLen || m.Length != iserLen {
		return ""
	}
	switch m.Data[0] >> 4 {
	case iserHello:
		return "Hello"
	case iserReply:
		return "HelloReply"
	}
	return ""
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
	if opcode == loginResponse {
		l.advice = loginAdvice[loginStatus(pdu)]
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

func loginStatus(pdu []byte) uint16 { return binary.BigEndian.Uint16(pdu[36:]) }

// iscsiStatus is what a response says beside that all is well, and whether that is a failure.
func iscsiStatus(opcode byte, pdu []byte) (status string, fails bool) {
	switch opcode {
	case scsiResponse:
		return scsiStatus(pdu)
	case loginResponse:
		if v := loginStatus(pdu); v != 0 {
			return fmt.Sprintf("login status %#04x, %s", v, cmp.Or(loginStatuses[v], "unknown")), v>>8 != loginMoved
		}
	case iscsiReject:
		return fmt.Sprintf("reason %#02x", pdu[2]), true
	}
	return "", false
}
