package iwarp

import (
	"encoding/json"

	"github.com/goiwarp/iwarp/rdmap"
)

// MarshalJSON has the RDMAP messages and the codes of Terminates by their names, such as
// "RDMA Write", instead of numbers. All else goes by the names of the fields.
func (s Stats) MarshalJSON() ([]byte, error) {
	type plain Stats // without this method
	return json.Marshal(struct {
		plain
		Sent, Received                     map[string]Traffic
		TerminatesSent, TerminatesReceived map[string]uint64
	}{
		plain(s), named(s.Sent), named(s.Received), named(s.TerminatesSent), named(s.TerminatesReceived),
	})
}

// named has names for keys.
func named[K interface {
	rdmap.Opcode | rdmap.Code
	String() string
}, V any](m map[K]V) map[string]V {
	names := make(map[string]V, len(m))
	for k, v := range m {
		names[k.String()] = v
	}
	return names
}
