package iwarp

import (
	"encoding/json"
	"fmt"

	"github.com/goiwarp/iwarp/rdmap"
)

// MarshalJSON has the RDMAP messages and the codes of Terminates by their names, such as
// "RDMA Write", instead of numbers. All else goes by the names of the fields.
func (s Stats) MarshalJSON() ([]byte, error) {
	type plain Stats // without this method
	if s.Startup.Failed == nil {
		s.Startup.Failed = map[string]uint64{}
	}
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

// MarshalJSON goes by the names of the fields: the role and kinds of RTR indications are words, and private data and the reason for a fallback
// are there if there are any. Without MPA it leaves out the fields that are of MPA and TCP.
func (n Negotiated) MarshalJSON() ([]byte, error) {
	type plain Negotiated // without this method
	type named struct {
		plain
		Role, RTR, OfferedRTR, AnsweredRTR, Opener string
		PrivateData                                []byte `json:",omitempty"`
		FallbackReason                             string `json:",omitempty"`
	}
	names := named{
		plain: plain(n), Role: n.Role.String(), RTR: n.RTR.String(), OfferedRTR: n.OfferedRTR.String(), AnsweredRTR: n.AnsweredRTR.String(),
		Opener: n.Opener.String(), PrivateData: n.PrivateData,
	}
	if n.FallbackReason != nil {
		names.FallbackReason = n.FallbackReason.Error()
	}
	if !n.noMPA {
		return json.Marshal(names)
	}
	type absent *struct{}
	return json.Marshal(struct {
		named
		Revision, PeerRevision, MarkersReceive, MarkersSend, CRC, EMSS absent `json:",omitempty"`
	}{named: names})
}

// MarshalText returns what String does.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes what String returns.
func (s *State) UnmarshalText(b []byte) error { return byName(s, StateClosed, "state", b) }

// MarshalText returns what String does.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes what String returns.
func (s *Status) UnmarshalText(b []byte) error { return byName(s, StatusRegisterFailed, "status", b) }

// MarshalText returns what String does.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText takes what String returns.
func (o *Op) UnmarshalText(b []byte) error { return byName(o, OpFastRegister, "operation", b) }

// MarshalText returns what String does.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText takes what String returns.
func (v *Version) UnmarshalText(b []byte) error { return byName(v, Version1, "version", b) }

// MarshalText returns what String does.
func (p CRCPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText takes what String returns.
func (p *CRCPolicy) UnmarshalText(b []byte) error { return byName(p, CRCUnwanted, "CRC policy", b) }

// byName finds the value with a name, among those from 0 to last.
func byName[T interface {
	~uint8
	String() string
}](v *T, last T, what string, name []byte) error {
	for n := range last + 1 {
		if n.String() == string(name) {
			*v = n
			return nil
		}
	}
	return fmt.Errorf("%w: there is no %s %q", ErrInvalid, what, name)
}

// MarshalJSON has the kind, the address and the error as text, and of the QP its number.
func (e Event) MarshalJSON() ([]byte, error) {
	t := struct {
		Kind       string
		QPNum      uint32 `json:",omitempty"`
		RemoteAddr string `json:",omitempty"`
		Err        string `json:",omitempty"`
		Count      int
	}{Kind: e.Kind.String(), QPNum: e.QPNum, Count: e.Count}
	if e.RemoteAddr != nil {
		t.RemoteAddr = e.RemoteAddr.String()
	}
	if e.Err != nil {
		t.Err = e.Err.Error()
	}
	return json.Marshal(t)
}
