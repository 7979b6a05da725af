package iwarp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestToll: of connections that have not ended in order the error wraps the first, and the first that was lost, which
// it quotes. Those that were aborted, as time was up, are told of by themselves.
func TestToll(t *testing.T) {
	odd, later := errors.New("odd"), errors.New("odd, too")
	lost, again := fmt.Errorf("first: %w", ErrConnectionLost), fmt.Errorf("second: %w", ErrConnectionLost)
	var paid toll
	for _, c := range []struct {
		note    error
		aborted int
		quoted  string // "": nothing was lost
		wraps   []error
		not     []error
	}{
		{nil, 0, "", nil, nil},
		{&outOfTime{context.Canceled}, 1, "", nil, nil},
		{odd, 1, "1 of 9; one of them: odd", []error{odd}, []error{ErrConnectionLost}},
		{later, 1, "2 of 9; one of them: odd", []error{odd}, []error{later, ErrConnectionLost}},
		{lost, 1, "3 of 9; one of them: first", []error{odd, lost, ErrConnectionLost}, []error{later}},
		{again, 1, "4 of 9; one of them: first", []error{odd, lost}, []error{again}},
		{&outOfTime{context.Canceled}, 2, "4 of 9; one of them: first", []error{odd, lost}, []error{again}},
	} {
		paid.note(c.note)
		err := paid.lost(9)
		if said := fmt.Sprint(err); (err == nil) != (c.quoted == "") || !strings.Contains(said, c.quoted) {
			t.Errorf("after %v: %v, want %q", c.note, err, c.quoted)
		}
		for _, want := range c.wraps {
			if !errors.Is(err, want) {
				t.Errorf("after %v: %v does not wrap %v", c.note, err, want)
			}
		}
		for _, other := range c.not {
			if errors.Is(err, other) {
				t.Errorf("after %v: %v wraps %v", c.note, err, other)
			}
		}
		if paid.aborted != c.aborted {
			t.Errorf("after %v: %d were aborted, want %d", c.note, paid.aborted, c.aborted)
		}
	}
}
