package mpa

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/wording"
)

// judgeLength judges the length of a private data message. In place of a Request,
// the beginning of another frame's key is none.
func (in *intake) judgeLength(n int) *StartupError {
	if n <= MaxPrivateData {
		in.lastPart(arrivedMessage, n)
		return nil
	}
	// The keys of all frames begin alike. Which one it is tells whether the peer is an
	// Initiator too. [Q03]
	if in.await == awaitRequest || BeginsAsKey(in.buf) {
		in.part, in.want = partKey, KeyLen
		return nil
	}
	return in.fail(FailurePrivateData, &Error{
		Code: CodeStartupFrame, Field: "Private Data Length",
		Reason: fmt.Sprintf("%d bytes (%q), and at most %d are taken", n, in.buf, MaxPrivateData),
		Hint:   "the peer sends no private data message here, or a longer one than is served",
	})
}

// judgeKey judges the key, 16 bytes, which decides what kind of frame it is.
func (in *intake) judgeKey(got string) *StartupError {
	switch {
	case in.await == awaitRequest && isStartKey(got) &&
		in.served(DialectStartKey), in.await == awaitStartKey && isStartKey(got):
		in.dialect = DialectStartKey
		in.lastPart(arrivedStartKey, 0)
		return in.judgeStartKey(StartKey(got))
	case in.await == awaitRtr && isRtr(got), got == in.await.key():
		in.part, in.want = partHeader, StartupHeaderLen
		return nil
	}
	return keyError(in, got) // [Q02] [K04]
}

// judgeStartKey judges the Start Key's last byte.
//
// CULLEY, section 8.1.1: "Res: [...] not checked on reception", and of Rev: "MPA
// receivers compliant with this version of the specification MUST check this field
// for zero, and close the connection if any other value is detected." [K05]
func (in *intake) judgeStartKey(k StartKey) *StartupError {
	if k.Rev() == revision0 {
		return nil
	}
	return in.fail(FailureRevision, &Error{
		Code: CodeStartupFrame, Offset: startKeyBits, Field: "Rev",
		Reason: fmt.Sprintf("Start Key of revision %d, and there is none but 0", k.Rev()),
		Hint:   "the peer must send 0; revisions 1 and 2 begin with a Request Frame",
	})
}

func (in *intake) judgeHeader(f StartupFrame) *StartupError {
	// "if the length of the Private Data field exceeds 512 octets, the receiver MUST
	// close the connection and report an error locally." [Q08]
	tooLong := f.PDLength() > MaxPrivateData
	if err := in.judgeRevision(f, tooLong); err != nil {
		return err
	}
	if tooLong {
		return in.fail(FailurePrivateData, &Error{
			Code: CodeStartupFrame, Offset: startupPDLength, Field: "PD_Length",
			Reason: fmt.Sprintf("%d bytes, and at most %d are allowed", f.PDLength(), MaxPrivateData),
			Hint:   "the peer's private data is too long: send the rest as messages",
		})
	}
	// RFC 6581, section 6: "if the 'S' flag is set, Private Data MUST begin with
	// enhanced RDMA connection establishment data". [E01]
	if in.dialect.row().enhanced && f.PDLength() < EnhancedLen {
		return in.fail(FailurePrivateData, shortEnhanced(int(f.PDLength())))
	}
	in.lastPart(arrivedFrame, int(f.PDLength()))
	return nil
}

// judgeRevision settles the frame's dialect.
//
// RFC 5044, section 7.1.1: "MPA receivers compliant with this version of the
// specification MUST check this field. If the MPA receiver cannot interoperate with
// the received version, then it MUST close the connection and report an error
// locally." [Q07]
func (in *intake) judgeRevision(f StartupFrame, tooLong bool) *StartupError {
	if in.await == awaitRtr {
		return in.judgeRtr(f)
	}
	if in.dialect = in.recognize(f); in.dialect != 0 {
		return nil
	}
	err := in.fail(FailureRevision, in.revisionError(f))
	// A revision 0 Request gets an answer before the connection is closed: it is
	// taken to its end first. [N04]
	if in.await == awaitRequest && f.Rev() == revision0 && !tooLong && in.kind.Version(DialectRFC5044.row().version) {
		in.refusal = err
		return nil
	}
	return err
}

// recognize returns the frame's dialect, or 0.
func (in *intake) recognize(f StartupFrame) Dialect {
	// CARRIER, sections 5.2.2 and 5.3.2: whatever the Request's revision, "the ULP
	// or supporting entity for the RDMAC RNIC responds with an MPA Reply Frame that
	// has the Rev field equal to zero". [N03]
	if in.await == awaitRequest && in.kind == KindRDMAC && in.served(DialectRevision0) {
		return DialectRevision0
	}
	d := recognize(f.Rev(), f.S(), in.served)
	if d == 0 && in.await == awaitReply && f.R() {
		d, in.unserved = DialectRFC5044, true // a rejection in any revision is one
	}
	return d
}

// judgeRtr judges an Rtr frame's header. M, R, S and Private Data mean nothing in
// it. [T02]
func (in *intake) judgeRtr(f StartupFrame) *StartupError {
	if f.Rev() != revision1 {
		return in.fail(FailureRevision, &Error{
			Code: CodeStartupFrame, Offset: startupRev, Field: "Rev",
			Reason: fmt.Sprintf("Rtr frame of revision %d, and there is none but 1", f.Rev()),
			Hint:   "the peer must send the Rtr frame in the revision of its Request",
		})
	}
	// The 2007 proposal: "Rtr frame adhere to C bit as specified in Rep frame". [T05]
	if f.C() != in.settled {
		return in.fail(FailureMismatch, &Error{
			Code: CodeStartupFrame, Offset: startupFlags, Field: "C",
			Reason: fmt.Sprintf("the Rtr frame has C=%d, and our Reply had C=%d",
				wording.Bit(f.C()), wording.Bit(in.settled)),
			Hint: "the two ends do not agree on CRCs: the peer must repeat the Reply's C",
		})
	}
	return nil
}
