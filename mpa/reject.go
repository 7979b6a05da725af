package mpa

import "slices"

// Reject returns the rejecting Reply, which is to leave in one write, with private
// data of the ULP. MPA is over then, and TCP stays open for the ULP to close it or
// to use it, if KeepsTCP says so. ird and ord go to an enhanced initiator only; ord
// may be the depth that its IRD should have had. The error is as with Accept.
//
// RFC 5044, section 7.1.2: "the implementation SHOULD return an MPA Reply Frame with
// the Rejected Connection bit set to '1'; the MPA Reply Frame MAY include
// ULP-supplied Private Data; the implementation MUST exit MPA, leaving the TCP
// connection open."
func (r *Responder) Reject(privateData []byte, ird, ord Depth) (reply []byte, err error) {
	if err := r.answerable(); err != nil {
		return nil, err
	}
	if err := checkDepths(ird, ord); err != nil {
		return nil, err
	}
	if err := r.check(Answer{PrivateData: privateData}, r.request.Dialect); err != nil {
		return nil, err
	}
	r.answered, r.done = true, true
	if r.request.Dialect == DialectStartKey {
		return r.rejectStartKey(privateData), nil
	}
	f := r.reply(r.request.Dialect)
	f.R, f.S, f.C = true, r.request.Enhanced, r.request.CRC
	if r.request.Dialect.row().always {
		// CARRIER, section 5.3.1: the Responder "sets the revision to zero and the M bit
		// and C bit to one". [N05]
		f.M, f.C = true, true
	}
	if r.request.Enhanced {
		e := r.request.Rejection(ird, ord, rtrAll)
		f.PrivateData = AppendEnhanced(nil, &e)
	}
	f.PrivateData = slices.Concat(f.PrivateData, privateData)
	return AppendStartup(nil, &f), nil
}

// rejectStartKey answers a private data message with ours; to a Start Key there is
// nothing to say.
//
// CULLEY, section 13.3.1: "To reject the connection request, the Responding Consumer
// would send any ULP supplied "Private Data Response" (with reason for rejection)
// and close the TCP connection." [K07]
func (r *Responder) rejectStartKey(privateData []byte) []byte {
	if r.in.arrived != arrivedMessage {
		return nil
	}
	return AppendPrivateDataMessage(nil, privateData, -1)
}

// KeepsTCP reports whether TCP stays open after a rejection: everywhere but with
// Start Keys, where closing it is the rejection.
func (r *Responder) KeepsTCP() bool { return r.request == nil || r.request.Dialect != DialectStartKey }
