package capsule

import "fmt"

// Bits of FeatureAsyncEvent and IdentifyController.Events.
const (
	EventNamespaces = 1 << 8  // the list of namespaces, or one of them, has changed
	EventDiscovery  = 1 << 31 // the discovery log has changed
)

// An Event is the Result of an Asynchronous Event Request.
type Event struct {
	Type uint8
	Info uint8
	Log  LogPage // to be read, which also has the controller tell of the next such event
}

// The events.
var (
	NamespacesChanged = Event{Type: 2, Info: 0, Log: LogNamespaces}
	DiscoveryChanged  = Event{Type: 2, Info: 0xF0, Log: LogDiscovery}
)

// Result returns the octets of the completion.
func (e Event) Result() uint64 {
	return uint64(e.Type&7) | uint64(e.Info)<<8 | uint64(e.Log)<<16
}

// ParseEvent reads the Result of a completion.
func ParseEvent(result uint64) Event {
	return Event{Type: uint8(result & 7), Info: uint8(result >> 8), Log: LogPage(result >> 16)}
}

// String has the numbers.
func (e Event) String() string {
	return fmt.Sprintf("event type %d info %#02x, log page %#02x", e.Type, e.Info, uint8(e.Log))
}
