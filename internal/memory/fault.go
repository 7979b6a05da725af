package memory

// A Fault says why an access was refused, and which mistake that is. The zero
// value means that it was not refused. Which error code a fault becomes depends
// on what was attempted: DDP has its codes for tagged placement, RDMAP others for
// Read Requests and invalidation, and the consumer a completion status for its
// own mistakes.
type Fault uint8

const (
	// None: the access is allowed.
	None Fault = iota
	// InvalidSTag: no region has this STag, or its region has been revoked.
	InvalidSTag
	// Invalidated: the region is there, and its STag was invalidated.
	Invalidated
	// Bounds: the access leaves the region by at least one byte.
	Bounds
	// NoRemoteWrite: a peer's RDMA Write, and the region lacks that right.
	NoRemoteWrite
	// NoRemoteRead: a peer's RDMA Read, and the region lacks that right.
	NoRemoteRead
	// NoRemoteAtomic: a peer's Atomic Operation, and the region lacks that right.
	NoRemoteAtomic
	// Unaligned: an Atomic Operation on an address that is no multiple of 8.
	Unaligned
	// NoLocalWrite: the owner's receive, or the sink of the owner's RDMA Read, and
	// the region lacks that right.
	NoLocalWrite
	// Denied: a peer's access of a kind that the QP allows to none.
	Denied
	// OtherDomain: the region belongs to another Protection Domain, or RNIC.
	OtherDomain
	// OtherStream: the region is bound to another stream.
	OtherStream
	// Wrap: tagged offset plus length exceeds 64 bits.
	Wrap
	// NeverOffered: an invalidation by a peer of memory without any remote right.
	NeverOffered
	// NotOffered: an invalidation by a peer of memory that is neither bound to the
	// stream nor registered with RemoteInvalidate.
	NotOffered
	// Shared: an invalidation by a peer of memory that several streams may use.
	Shared
	// HasWindows: the region cannot be invalidated, or deregistered, as windows are bound to it.
	HasWindows
	// FirstType: an invalidation of a window of the first type.
	FirstType
	// StillValid: a window is to be bound, or a region to be registered, and its STag is valid.
	StillValid
	// TooLarge: a region is to be registered with more memory than it was allocated for.
	TooLarge
	// Vanished: the memory is there no more, or may not be used so: see Options.Vanishes.
	Vanished

	numFaults
)

// A fault has the RFCs' name for it, and the mistake.
var faults = [numFaults]struct{ name, mistake string }{
	None:           {"none", ""},
	InvalidSTag:    {"invalid STag", "nothing is registered under it (any more)"},
	Invalidated:    {"invalid STag", "it has been invalidated"},
	Bounds:         {"base or bounds violation", "the access leaves the registered memory"},
	NoRemoteWrite:  {"access rights violation", "the memory was registered without RemoteWrite, which a peer's Writes need"},
	NoRemoteRead:   {"access rights violation", "the memory was registered without RemoteRead, which a peer's Reads need"},
	NoRemoteAtomic: {"access rights violation", "the memory was registered without RemoteAtomic, which a peer's Atomic Operations need"},
	Unaligned:      {"not aligned", "Atomic Operations need an address that is a multiple of 8 bytes"},
	NoLocalWrite:   {"access rights violation", "the memory was registered without LocalWrite, which receives and the sinks of Reads need"},
	Denied:         {"access rights violation", "the QP lets its peer do nothing of the kind (QPConfig.Deny)"},
	OtherDomain: {"STag not associated with the stream",
		"the memory belongs to another Protection Domain than the QP: register it with that of the QP"},
	OtherStream: {"STag not associated with the stream",
		"the memory is bound to another QP, or to an earlier connection of this one"},
	Wrap:         {"tagged offset wrap", "tagged offset and length exceed 64 bits"},
	NeverOffered: {"access rights violation", "the memory was registered without any remote right: a peer has no say over it"},
	NotOffered:   {"STag cannot be invalidated", "the memory is neither bound to the QP nor registered with RemoteInvalidate"},
	Shared:       {"STag cannot be invalidated", "several QPs of the Protection Domain share the memory"},
	HasWindows:   {"STag cannot be invalidated", "Memory Windows are bound to the memory: invalidate them first"},
	FirstType:    {"STag cannot be invalidated", "it is a Memory Window of type 1, which another binding ends, and no invalidation"},
	StillValid:   {"STag not in the Invalid state", "it is in use: invalidate it first"},
	TooLarge:     {"list too long", "the memory is more than the region was allocated for"},
	Vanished:     {"local catastrophic error", "the memory is not mapped any more, or may not be read or written, though it is still registered"},
}

// String is the RFCs' name of the fault, and the mistake.
func (f Fault) String() string {
	if m := f.Mistake(); m != "" {
		return faults[f].name + ": " + m
	}
	if f == None {
		return faults[f].name
	}
	return "unknown fault"
}

// Mistake is what was done wrong, for use beside the code of a Terminate, which names the fault.
func (f Fault) Mistake() string {
	if f < numFaults {
		return faults[f].mistake
	}
	return ""
}
