package iwarp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/mpa"
)

// badOffer names the setting that package mpa, or a preset, finds a value out of range in, by whatever entry point it came. Other
// errors stay as they are.
func badOffer(setting string, err error) error {
	if err == nil || !errors.Is(err, mpa.ErrOffer) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrInvalid, setting, plain{err})
}

// plain is an error without the package's name in front.
type plain struct{ error }

func (p plain) Error() string { return text(p.error) }

func (p plain) Unwrap() error { return p.error }

// sendable refuses an offer that no startup frame can say, before there is a connection.
func sendable(o mpa.Offer) error {
	_, err := o.Resolved()
	return err
}

// checkKind refuses what is no Kind. The error wraps mpa.ErrOffer.
func checkKind(k mpa.Kind) error {
	if k.Version(0) || k.Version(1) {
		return nil
	}
	return fmt.Errorf("%w: there is no %v", mpa.ErrOffer, k)
}

// checkDialects refuses dialects that are none.
func checkDialects(dialects []mpa.Dialect) error {
	for _, d := range dialects {
		if !slices.Contains(mpa.Dialects(), d) {
			return fmt.Errorf("%w: ListenConfig.Dialects: there is no %v", ErrInvalid, d)
		}
	}
	return nil
}
