package engine

import "testing"

// States, statuses and transitions have names and bounds.
func TestNames(t *testing.T) {
	if RTS.String() != "RTS" || State(9).String() != "unknown state" {
		t.Error("states")
	}
	if StatusFatal.String() != "fatal error" || Status(99).String() != "unknown status" {
		t.Error("statuses")
	}
	if !Legal(RTS, Closing) || Legal(Idle, Closing) {
		t.Error("transitions")
	}
}

// Every status has a name of its own, and no other has one.
func TestStatusNames(t *testing.T) {
	seen := map[string]bool{}
	for s := StatusSuccess; s <= StatusRegisterFailed; s++ {
		if name := s.String(); name == "" || name == "unknown status" || seen[name] {
			t.Errorf("status %d: %q", s, name)
		}
		seen[s.String()] = true
	}
	if got := (StatusRegisterFailed + 1).String(); got != "unknown status" {
		t.Error(got)
	}
}
