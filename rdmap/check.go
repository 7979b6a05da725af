package rdmap

import (
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
)

// CheckSegment says whether a segment can be part of a message of RFC 5040, or
// on a stream of version 1 of RFC 7306: its queue exists, and version, opcode,
// T bit, Queue Number, L bit and length agree. version is the stream's, 0 or 1.
//
// The DDP layer has its own checks: [ddp.CheckVersion] before this one, and those of placement
// after it. Whether a message is expected now is not judged here: [ORQ.Check] knows whether a
// Read Response was asked for, and [IRRQ.Check] whether there is room for a Read Request.
//
// The error is, in the order of the checks, [CodeDDPInvalidQN],
// [CodeInvalidVersion], [CodeUnexpectedOpcode] or [CodeCatastrophicStream].
func CheckSegment(s *ddp.Segment, version uint8) *Error {
	// RFC 7306, section 4.1: "All RDMA Messages defined in this specification MUST
	// have: The RDMA Version (RV) field: 01b." [A02]
	extended := version == 1
	v, op := ParseControl(s.RsvdULP)
	if err := checkQueue(s, op, extended); err != nil {
		return err
	}
	// RFC 5040, section 7.2: "The RDMA Version MUST be valid." [P05] [P56]
	if v != version {
		return &Error{CodeInvalidVersion, op, "RV", fmt.Sprintf("expected version %d, got %d", version, v)}
	}
	// RFC 5040, section 7.2: "The RDMA OpCode MUST be valid." [P07] [P56]
	info := op.info()
	if info == &unknown.Info || info.Extension && !extended {
		return &Error{CodeUnexpectedOpcode, op, "Opcode", fmt.Sprintf("%d is not one of the stream's", op)}
	}
	if err := checkModel(s, op, info); err != nil {
		return err
	}
	return checkForm(s, op, info)
}

// checkQueue refuses queues that RDMAP does not have. RFC 5041, section 7.1: "The QN
// is valid for this stream." RFC 5040, section 3.1: "RDMAP uses three queues for
// Untagged Buffers"; RFC 7306, section 4.1, has a fourth. [P01]
func checkQueue(s *ddp.Segment, op Opcode, extended bool) *Error {
	highest := uint32(QNTerminate)
	if extended {
		highest = QNAtomic
	}
	if s.Tagged || s.QN <= highest {
		return nil
	}
	return &Error{CodeDDPInvalidQN, op, "QN", fmt.Sprintf("expected 0 to %d, got %d", highest, s.QN)}
}

// checkModel holds T bit and queue against the opcode. RFC 5040, section 4.1:
// "Figure 4 [...] MUST be used to define the value of the Tagged flag". [P01]
func checkModel(s *ddp.Segment, op Opcode, info *Info) *Error {
	if s.Tagged != info.Tagged {
		return &Error{CodeUnexpectedOpcode, op, "T", fmt.Sprintf("expected tagged %t, got %t", info.Tagged, s.Tagged)}
	}
	if !s.Tagged && s.QN != info.QN {
		return &Error{CodeUnexpectedOpcode, op, "QN", fmt.Sprintf("expected %d, got %d", info.QN, s.QN)}
	}
	return nil
}

// checkForm holds a message without ULP payload to being one segment of the
// right length. RFC 5040, section 4.2: "which RDMA Messages are allowed to carry
// ULP Payload". Its header fits the smallest segment that any LLP allows; no
// RFC gives codes for these errors, that of the RDMAC verbs for a missing L bit
// is taken. [P09] [P10] [P36]
func checkForm(s *ddp.Segment, op Opcode, info *Info) *Error {
	if info.Payload {
		return nil
	}
	if !s.Last {
		return &Error{CodeCatastrophicStream, op, "L",
			"expected the only segment of the message, got one without the L bit"}
	}
	n := s.PayloadLen()
	if n < info.HeaderLen || n > info.HeaderLen && op != OpTerminate {
		return &Error{CodeCatastrophicStream, op, "RDMAP header",
			fmt.Sprintf("expected %d bytes, got %d", info.HeaderLen, n)}
	}
	return nil
}
