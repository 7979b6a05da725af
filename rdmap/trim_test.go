package rdmap

import "testing"

// A queue of Reads that has held many gives its memory back at the second Trim: at the first
// one it may still be wanted.
func TestTrim(t *testing.T) {
	const many = 64
	orq, irrq := NewORQ(many), NewIRRQ(many)
	s := requestSegment(ReadRequest{})
	for name, q := range map[string]struct {
		slack           func() bool
		push, pop, trim func()
	}{
		"ORQ":  {orq.Slack, func() { orq.Push(Read{}) }, func() { orq.Pop() }, orq.Trim},
		"IRRQ": {irrq.Slack, func() { _ = irrq.Push(s) }, func() { irrq.Pop() }, irrq.Trim},
	} {
		after := func(what string, n int, do func(), slack bool) {
			t.Helper()
			for range n {
				do()
			}
			if q.slack() != slack {
				t.Errorf("%s, %s: slack %t", name, what, !slack)
			}
		}
		after("new", 0, nil, false)
		after("full", many, q.push, false)
		after("emptied", many, q.pop, true)
		after("trimmed", 1, q.trim, true)
		after("trimmed again", 1, q.trim, false)
	}
}
