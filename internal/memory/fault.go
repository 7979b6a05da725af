package memory

// A Fault says why an access was refused. The zero value means that it was
// not. Which error code a fault becomes depends on what was attempted: DDP has
// its codes for tagged placement, RDMAP others for Read Requests and
// invalidation, and the consumer a completion status for its own mistakes.
type Fault uint8

const (
	// None: the access is allowed.
	None Fault = iota
	// InvalidSTag: no region has this STag, or it was invalidated.
	InvalidSTag
	// Bounds: the access leaves the region by at least one octet.
	Bounds
	// AccessRights: the region does not grant this kind of access.
	AccessRights
	// Association: the STag belongs to another Protection Domain or stream.
	Association
	// Wrap: tagged offset plus length exceeds 64 bits.
	Wrap
	// NotInvalidatable: the peer may not invalidate this STag.
	NotInvalidatable
)

var faultNames = [...]string{
	"none", "invalid STag", "base or bounds violation", "access rights violation",
	"STag not associated with the stream", "tagged offset wrap", "STag cannot be invalidated",
}

// String names the fault as the RFCs do.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return "unknown fault"
}
