package usertcp

import (
	"errors"
	"fmt"
	"net/netip"
)

// Pair returns two stacks that a [Pipe] joins: from a to b as ab says, and back as ba does. cfg is that of both, except for
// Addresses and Link. An MTU of zero is 1500. The addresses of a are 192.0.2.1 and 2001:db8::1, those of b end in 2.
func Pair(cfg Config, ab, ba Path) (a, b *Stack, err error) {
	for _, p := range []Path{ab, ba} {
		if err := p.check(); err != nil {
			return nil, nil, fmt.Errorf("usertcp: %w", err)
		}
	}
	if cfg.MTU == 0 {
		cfg.MTU = 1500
	}
	one, other := Pipe(cfg.MTU, ab, ba)
	a, err = pairEnd(cfg, one, "192.0.2.1", "2001:db8::1")
	if err != nil {
		return nil, nil, err
	}
	b, err = pairEnd(cfg, other, "192.0.2.2", "2001:db8::2")
	if err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	return a, b, nil
}

func pairEnd(cfg Config, l Link, addresses ...string) (*Stack, error) {
	cfg.Link, cfg.Addresses = l, nil
	for _, a := range addresses {
		cfg.Addresses = append(cfg.Addresses, netip.MustParseAddr(a))
	}
	return New(cfg)
}
