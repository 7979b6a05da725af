// Package emulation is the part of package iwarp that only the emulation of libibverbs uses. Package iwarp sets these
// functions when it is initialized, so that none of them is in its public API.
package emulation

// Disarm takes back what Arm has asked a *iwarp.CQ for, if a completion that the caller has would have given the
// notice. That is solicited if the peer solicited it, or if it is an error. Disarm reports whether it has taken a
// notice back. It is for a program that keeps completions of its own beside those of the CQ, and has one notice for
// both.
var Disarm func(cq any, solicited bool) bool

// SetPrefix has each OpSend of the next connections of a *iwarp.QP begin with 8 bytes of the consumer's that do not go
// into the memory of the receive: SendWR.Prefix has those to send, and WC.Prefix those that came. Without it, a Send
// with a Prefix is refused. On the wire they are the first bytes of the message, so both ends have to set this, by an
// agreement of their own. No length counts them. The error wraps iwarp.ErrBadState in other states than StateIdle and
// StateClosed.
var SetPrefix func(qp any, on bool) error

// SetRNR replaces QPConfig.RNR of a *iwarp.QP by a *iwarp.RNRPolicy, for its next connections. The error wraps
// iwarp.ErrBadState in other states than StateIdle and StateClosed.
var SetRNR func(qp, policy any) error

// Deny replaces QPConfig.Deny of a *iwarp.QP by iwarp.Access rights, for all that comes from the peer from then on. It
// may be called in any state. The error wraps iwarp.ErrInvalid if they are more than RemoteWrite, RemoteRead and
// RemoteAtomic.
var Deny func(qp any, rights uint8) error

// Waiting returns how many completions of a *iwarp.CQ are there to be polled.
var Waiting func(cq any) int

// Forget drops the completions that wait in a *iwarp.CQ and are of QPs whose QPConfig.UserData is this, as if they had
// been polled. The others stay, in order.
var Forget func(cq, userData any)

// Mute has what a *iwarp.QP completes from then on dropped, as if it had been polled at once: it gives no notice, and
// needs no room in the CQs.
var Mute func(qp any)

// BeginClose begins what Close of a *iwarp.QP does, and does not wait for it: when it returns, no more work is taken.
// QP.Done tells of the end of the connection. Close has to be called all the same: it waits for what is left of that,
// and releases the QP. Where there is no connection, BeginClose does nothing.
var BeginClose func(qp any)

// PostAll posts a *[]iwarp.SendWR to a *iwarp.QP as QP.PostSends does, but all of it or nothing. The error is about the
// first that cannot be posted.
var PostAll func(qp, wrs any) error
