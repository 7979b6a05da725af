package ulp

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
)

// The header of SMB2: [MS-SMB2], section 2.2.1.
const (
	smb2Magic     = "\xfeSMB"
	smb2Encrypted = "\xfdSMB"
	smb2HeaderLen = 64
	smb2Response  = 0x0001 // of the flags
	maxCompound   = 16

	smb2Read      = 8
	smb2Write     = 9
	smb2IOCTL     = 11
	smb2QueryInfo = 16

	channelRDMA       = 1
	channelInvalidate = 2
	descriptorLen     = 16
	maxDescriptors    = 64
)

var smb2Commands = [...]string{"NEGOTIATE", "SESSION_SETUP", "LOGOFF", "TREE_CONNECT", "TREE_DISCONNECT", "CREATE", "CLOSE",
	"FLUSH", "READ", "WRITE", "LOCK", "IOCTL", "CANCEL", "ECHO", "QUERY_DIRECTORY", "CHANGE_NOTIFY", "QUERY_INFO",
	"SET_INFO", "OPLOCK_BREAK"}

// A smb2 is what is known of requests.
type smb2 struct {
	asked [2]memo[uint64, smb2Request] // by the message ID
}

// A smb2Request is one without a response.
type smb2Request struct {
	command uint16
	n       int // of the message
}

// read reads the requests or responses in one message. If one of them is not there yet, rest is where it will be.
func (p *smb2) read(end, number int, b []byte, memory *memory) (all line, rest, verdict int) {
	if len(b) >= 4 && string(b[:4]) == smb2Encrypted {
		return line{text: "encrypted SMB2, " + wording.Bytes(len(b))}, 0, fits
	}
	least := agrees
	for n := 0; ; n++ {
		l, next, verdict := p.one(end, number, b[rest:], memory)
		if verdict == against || n >= maxCompound {
			return line{}, 0, against
		}
		all = all.and(l)
		if least = min(least, verdict); next == 0 {
			return all, 0, least
		}
		if next < smb2HeaderLen || next%8 != 0 {
			return all, 0, min(least, fits)
		}
		if rest += int(min(next, maxFragmented)); rest >= len(b) {
			return all, rest, min(least, fits) // it is in the next fragment
		}
	}
}

// and puts two lines into one. Of the failures the first one counts: where the first command of several fails, those that
// build upon it do.
func (l line) and(m line) line {
	if l.text != "" {
		m.text = l.text + "; " + m.text
	}
	if l.failed {
		m.failed, m.failure, m.advice = true, l.failure, l.advice
	}
	m.answers = max(m.answers, l.answers)
	return m
}

// one reads one request or response, and returns where the next one is.
func (p *smb2) one(end, number int, b []byte, memory *memory) (l line, next uint32, verdict int) {
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	if len(b) < smb2HeaderLen || string(b[:4]) != smb2Magic || u16(b[4:]) != smb2HeaderLen {
		return line{}, 0, against
	}
	command, flags, id := u16(b[12:]), u32(b[16:]), binary.LittleEndian.Uint64(b[24:])
	if int(command) >= len(smb2Commands) {
		return line{}, 0, against
	}
	next = u32(b[20:])
	name := smb2Commands[command]
	if flags&smb2Response == 0 {
		p.asked[end].put(id, smb2Request{command, number}, maxRequests)
		l.text = fmt.Sprintf("%s request %d", name, id) + described(end, command, id, b, memory)
		return l, next, agrees
	}
	asked, known := p.asked[1-end].get(id)
	if known && asked.command != command {
		return line{}, 0, against
	}
	status := u32(b[8:])
	l.text = fmt.Sprintf("%s response %d: %s", name, id, ntStatus(status))
	l.failed = status>>30 == 3
	if l.failed && !ordinary[status] && command != smb2IOCTL && command != smb2QueryInfo { // which ask what there is
		l.failure, l.advice = ntStatus(status)+" of "+name, ntAdvice[status]
	}
	if known {
		l.answers = asked.n
		return l, next, agrees
	}
	return l, next, fits
}

// Where the descriptors of a READ or WRITE Request are: [MS-SMB2], sections 2.2.19 and 2.2.21.
var channelAt = map[uint16]struct{ channel, offset, length int }{
	smb2Read:  {100, 108, 110},
	smb2Write: {96, 104, 106},
}

// described takes note of the buffer descriptors of a request, and says what they are: [MS-SMBD], section 2.2.3.1.
func described(end int, command uint16, id uint64, b []byte, memory *memory) string {
	at, has := channelAt[command]
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	if !has || len(b) < at.length+2 {
		return ""
	}
	kind, offset, length := u32(b[at.channel:]), int(u16(b[at.offset:])), int(u16(b[at.length:]))
	if kind != channelRDMA && kind != channelInvalidate || length%descriptorLen != 0 || length > maxDescriptors*descriptorLen ||
		offset+length > len(b) {
		return ""
	}
	if length == 0 {
		return ""
	}
	all := uint64(0)
	for d := b[offset : offset+length]; len(d) > 0; d = d[descriptorLen:] {
		n := uint64(u32(d[12:]))
		memory.add(end, u32(d[8:]), piece{to: binary.LittleEndian.Uint64(d), length: n,
			what: fmt.Sprintf("buffer of %s %d", smb2Commands[command], id)})
		all += n
	}
	return fmt.Sprintf(", %s at STag %#08x", wording.Bytes(all), u32(b[offset+8:]))
}

// Statuses that are part of what programs do, and no failures.
var ordinary = map[uint32]bool{0xC0000016: true, 0xC0000011: true, 0xC0000034: true, 0xC0000035: true, 0xC000000F: true,
	0xC000003A: true, 0xC0000120: true, 0xC0000225: true}

// ntStatuses are those that servers are known to send: [MS-ERREF], section 2.3.
var ntStatuses = map[uint32]string{
	0: "STATUS_SUCCESS", 0x00000103: "STATUS_PENDING", 0x0000010B: "STATUS_NOTIFY_CLEANUP", 0x0000010C: "STATUS_NOTIFY_ENUM_DIR",
	0x80000005: "STATUS_BUFFER_OVERFLOW", 0x80000006: "STATUS_NO_MORE_FILES", 0x8000002D: "STATUS_STOPPED_ON_SYMLINK",
	0xC0000001: "STATUS_UNSUCCESSFUL", 0xC0000002: "STATUS_NOT_IMPLEMENTED", 0xC0000003: "STATUS_INVALID_INFO_CLASS",
	0xC0000008: "STATUS_INVALID_HANDLE", 0xC000000D: "STATUS_INVALID_PARAMETER", 0xC000000F: "STATUS_NO_SUCH_FILE",
	0xC0000010: "STATUS_INVALID_DEVICE_REQUEST", 0xC0000011: "STATUS_END_OF_FILE", 0xC0000016: "STATUS_MORE_PROCESSING_REQUIRED",
	0xC0000022: "STATUS_ACCESS_DENIED", 0xC0000023: "STATUS_BUFFER_TOO_SMALL", 0xC0000033: "STATUS_OBJECT_NAME_INVALID",
	0xC0000034: "STATUS_OBJECT_NAME_NOT_FOUND", 0xC0000035: "STATUS_OBJECT_NAME_COLLISION", 0xC000003A: "STATUS_OBJECT_PATH_NOT_FOUND",
	0xC0000043: "STATUS_SHARING_VIOLATION", 0xC0000054: "STATUS_FILE_LOCK_CONFLICT", 0xC0000055: "STATUS_LOCK_NOT_GRANTED",
	0xC000005E: "STATUS_NO_LOGON_SERVERS", 0xC000006D: "STATUS_LOGON_FAILURE", 0xC000006E: "STATUS_ACCOUNT_RESTRICTION",
	0xC0000071: "STATUS_PASSWORD_EXPIRED", 0xC000007F: "STATUS_DISK_FULL", 0xC000009A: "STATUS_INSUFFICIENT_RESOURCES",
	0xC00000B5: "STATUS_IO_TIMEOUT", 0xC00000BA: "STATUS_FILE_IS_A_DIRECTORY", 0xC00000BB: "STATUS_NOT_SUPPORTED",
	0xC00000C9: "STATUS_NETWORK_NAME_DELETED", 0xC00000CC: "STATUS_BAD_NETWORK_NAME", 0xC00000D0: "STATUS_REQUEST_NOT_ACCEPTED",
	0xC0000101: "STATUS_DIRECTORY_NOT_EMPTY", 0xC0000103: "STATUS_NOT_A_DIRECTORY",
	0xC0000128: "STATUS_FILE_CLOSED", 0xC0000184: "STATUS_INVALID_DEVICE_STATE", 0xC000019C: "STATUS_FS_DRIVER_REQUIRED",
	0xC0000203: "STATUS_USER_SESSION_DELETED", 0xC0000225: "STATUS_NOT_FOUND", 0xC0000257: "STATUS_PATH_NOT_COVERED",
	0xC000035C: "STATUS_NETWORK_SESSION_EXPIRED",
}

var ntAdvice = map[uint32]string{
	0xC000000D: "the server does not understand the request: compare the dialects and the sizes that both have negotiated",
	0xC0000022: "the share's or the file's permissions do not let this user in",
	0xC000006D: "the server does not know this user, or the password is wrong",
	0xC000007F: "the share's file system is full",
	0xC000009A: "the server is out of memory, or of credits: look at its log",
	0xC00000C9: "the share is gone: the server has removed it, or has failed over",
	0xC00000CC: "there is no such share on the server",
	0xC0000203: "the server has ended the session: the client has to log on again",
	0xC000035C: "the session has expired: the client has to log on again",
}

func ntStatus(status uint32) string {
	if name, known := ntStatuses[status]; known {
		return name
	}
	return fmt.Sprintf("status %#08x", status)
}
