package iwarp

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
)

// TestNoBadOffer: only a value out of range is a mistake in a setting. Other errors stay as they are.
func TestNoBadOffer(t *testing.T) {
	for _, err := range []error{nil, errors.New("another"), ErrVersion} {
		if got := badOffer("setting", err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
	if got := badOffer("setting", mpa.ErrOffer); !errors.Is(got, ErrInvalid) || !errors.Is(got, mpa.ErrOffer) {
		t.Errorf("a bad offer is %v", got)
	}
}
