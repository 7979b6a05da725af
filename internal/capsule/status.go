package capsule

import (
	"fmt"
	"strings"
)

// A Status is how a command has ended: status code type and code in the lower 11 bits, and flags. It is the Status
// field of a completion without the phase, which is to say shifted by one.
type Status uint16

// Flags of a Status.
const (
	// DNR, Do Not Retry: the same command would end the same way.
	DNR Status = 0x4000
	// More tells that the Error Information log page has more.
	More Status = 0x2000

	statusCode Status = 0x07FF
)

// Statuses: type<<8 | code.
const (
	Success                Status = 0x000
	InvalidOpcode          Status = 0x001
	InvalidField           Status = 0x002
	IDConflict             Status = 0x003
	DataTransferError      Status = 0x004
	InternalError          Status = 0x006
	Aborted                Status = 0x007
	InvalidNamespace       Status = 0x00B
	SequenceError          Status = 0x00C
	InvalidSGLCount        Status = 0x00E
	InvalidSGLLength       Status = 0x00F
	InvalidSGLType         Status = 0x011
	InvalidSGLOffset       Status = 0x016
	HostIDInconsistent     Status = 0x018
	KeepAliveExpired       Status = 0x019
	KeepAliveInvalid       Status = 0x01A
	WriteProtected         Status = 0x020
	TransientTransport     Status = 0x022
	LBAOutOfRange          Status = 0x080
	CapacityExceeded       Status = 0x081
	NamespaceNotReady      Status = 0x082
	ReservationConflict    Status = 0x083
	InvalidQueueID         Status = 0x101
	InvalidQueueSize       Status = 0x102
	AsyncLimit             Status = 0x105
	InvalidLogPage         Status = 0x109
	FeatureNotSaveable     Status = 0x10D
	FeatureNotChangeable   Status = 0x10E
	IncompatibleFormat     Status = 0x180
	ControllerBusy         Status = 0x181
	InvalidParameter       Status = 0x182
	RestartDiscovery       Status = 0x183
	InvalidHost            Status = 0x184
	DiscoverRestart        Status = 0x190
	AuthenticationRequired Status = 0x191
	WriteFault             Status = 0x280
	ReadError              Status = 0x281
	CompareFailure         Status = 0x285
	AccessDenied           Status = 0x286
	DeallocatedBlock       Status = 0x287
	PathError              Status = 0x300
)

var statuses = map[Status]string{
	Success:                "success",
	InvalidOpcode:          "invalid opcode",
	InvalidField:           "invalid field in command",
	IDConflict:             "command ID conflict",
	DataTransferError:      "data transfer error",
	InternalError:          "internal error",
	Aborted:                "aborted on request",
	InvalidNamespace:       "invalid namespace",
	SequenceError:          "command sequence error",
	InvalidSGLCount:        "invalid number of SGL descriptors",
	InvalidSGLLength:       "invalid SGL data length",
	InvalidSGLType:         "invalid SGL descriptor type",
	InvalidSGLOffset:       "invalid SGL offset",
	HostIDInconsistent:     "host identifier in another format",
	KeepAliveExpired:       "keep-alive expired",
	KeepAliveInvalid:       "invalid keep-alive timeout",
	WriteProtected:         "namespace is write protected",
	TransientTransport:     "transient transport error",
	LBAOutOfRange:          "LBA out of range",
	CapacityExceeded:       "capacity exceeded",
	NamespaceNotReady:      "namespace not ready",
	ReservationConflict:    "reservation conflict",
	InvalidQueueID:         "invalid queue ID",
	InvalidQueueSize:       "invalid queue size",
	AsyncLimit:             "too many Asynchronous Event Requests",
	InvalidLogPage:         "invalid log page",
	FeatureNotSaveable:     "feature cannot be saved",
	FeatureNotChangeable:   "feature cannot be changed",
	IncompatibleFormat:     "Connect: incompatible format",
	ControllerBusy:         "Connect: controller busy",
	InvalidParameter:       "Connect: invalid parameter",
	RestartDiscovery:       "Connect: restart discovery",
	InvalidHost:            "Connect: host not allowed",
	DiscoverRestart:        "discovery: read the log page again",
	AuthenticationRequired: "authentication required",
	WriteFault:             "write fault",
	ReadError:              "unrecovered read error",
	CompareFailure:         "compare failure",
	AccessDenied:           "access denied",
	DeallocatedBlock:       "deallocated block",
	PathError:              "internal path error",
}

// Code is the status without flags.
func (s Status) Code() Status { return s & statusCode }

// Retryable reports whether the command may be sent again: DNR is not set.
func (s Status) Retryable() bool { return s&DNR == 0 }

// String names the status and its flags, such as "LBA out of range (0x080), do not retry".
func (s Status) String() string {
	var b strings.Builder
	name, ok := statuses[s.Code()]
	if !ok {
		name = "status"
	}
	fmt.Fprintf(&b, "%s (%#03x)", name, uint16(s.Code()))
	if !s.Retryable() {
		b.WriteString(", do not retry")
	}
	return b.String()
}
