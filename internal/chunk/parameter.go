package chunk

// Parameters of chunks.
const (
	ParamHeartbeatInfo = 1 // of HEARTBEAT and HEARTBEAT ACK
	ParamIPv4          = 5 // an address of the sender, in INIT and INIT ACK; ParamIPv6, too
	ParamIPv6          = 6
	ParamStateCookie   = 7      // of INIT ACK
	ParamAdaptation    = 0xC006 // Adaptation Layer Indication: RFC 5061, section 4.2.6
)

// Error causes of ABORT and ERROR: RFC 9260, section 3.3.10.
const (
	CauseInvalidStream     = 1
	CauseStaleCookie       = 3
	CauseNoUserData        = 9
	CauseUserAbort         = 12 // the sender's consumer has asked for it
	CauseProtocolViolation = 13
)

// A Parameter is one of a chunk's, or an error cause, which has the same form.
type Parameter struct {
	Type  uint16
	Value []byte
}

// Append appends the parameter with its padding.
func (p *Parameter) Append(b []byte) []byte { return appendField(b, p.Type, p.Value) }

// Parameters returns the parameters or error causes in bytes, up to one that is not whole, and whether there is none
// such.
func Parameters(b []byte) (all []Parameter, whole bool) {
	rest := Chunks{b, len(b)}
	for kind, value, _, ok := rest.field(); ok; kind, value, _, ok = rest.field() {
		all = append(all, Parameter{kind, value})
	}
	return all, len(rest.Bytes) < overhead
}

// Reason returns the text of an ABORT of the sender's consumer, or over a violation of the protocol: RFC 9260, sections
// 3.3.10.12 and 3.3.10.13. It is what the peer says, as it says it, and as much of it as is there.
func (c *Chunk) Reason() string {
	rest := Chunks{c.Value, max(c.Length, len(c.Value))}
	for kind, text, _, ok := rest.field(); ok; kind, text, _, ok = rest.field() {
		if kind == CauseUserAbort || kind == CauseProtocolViolation {
			return string(text)
		}
	}
	return ""
}
