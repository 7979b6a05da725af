package engine

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// A Shape is what of a request for the Send Queue can be judged before anything is known of the memory that it names,
// and of the connection.
type Shape struct {
	Op     Op
	Has    Parts
	SGEs   int
	Length uint64 // of all elements
	Inline int    // bytes of inline data
}

// Check judges a request for a QP with a bound of inline data: it is the only judge of what a request for the Send
// Queue may have. PostSend takes it as judged.
func (s *Shape) Check(maxInline int) error {
	info := s.Op.Info()
	switch wrong := s.Has &^ info.Takes; {
	case s.Op == OpReceive || info == &noOp:
		return fmt.Errorf("%v cannot be posted to a Send Queue", s.Op)
	case s.SGEs > info.MaxSGE:
		return fmt.Errorf("%d scatter/gather elements, of which %v takes %d at most", s.SGEs, s.Op, info.MaxSGE)
	case s.SGEs > 1 && s.Op == OpRead && s.Has&PartTarget != 0:
		return fmt.Errorf("%d scatter/gather elements of a Read with a Target, which takes 1 at most", s.SGEs)
	case wrong&PartInline != 0 && s.Op == OpRead:
		return ErrInlineRead
	case wrong&PartInline != 0:
		return fmt.Errorf("inline data on %v, which has no payload", s.Op)
	case s.SGEs > 0 && s.Has&PartInline != 0:
		return ErrTwoPayloads
	case wrong != 0:
		return misplaced(wrong, s.Op)
	case info.Result != 0 && s.SGEs > 0 && s.Length != uint64(info.Result):
		return fmt.Errorf("%s for the result of %v, which has %d", wording.Bytes(s.Length), s.Op, info.Result)
	case s.Inline > maxInline:
		return fmt.Errorf("%s of inline data; the QP takes %d at most (QPConfig.MaxInline)",
			wording.Bytes(s.Inline), maxInline)
	case s.Length > MaxMessage:
		return ErrTooLong
	}
	return nil
}

// misplaced names the first of fields that an operation has not, and the operations that have it.
func misplaced(wrong Parts, op Op) error {
	for i, name := range partNames {
		if p := Parts(1) << i; wrong&p != 0 {
			return fmt.Errorf("%s for %s, on %v", name, takers(p), op)
		}
	}
	return nil
}

// takers lists the operations that have a field, as "A, B and C".
func takers(p Parts) string {
	var names []string
	for op := range Op(Ops) {
		if op.Has(p) {
			names = append(names, op.Info().Ident)
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + wording.If(last > 0, " and ", "") + names[last]
}
