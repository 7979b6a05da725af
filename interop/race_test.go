//go:build interop

package interop_test

import (
	"fmt"
	"testing"
	"time"
)

// siw's responder sends its Reply before it listens for what follows it: an
// FPDU that arrives in between lies unread until one more segment comes. With
// two CPUs that hits most first connections of a fresh guest (later ones are
// faster, their code is in the cache), so each round is a boot of its own.
const raceBoots, userRaceBoots = 50, 8

// TestAcceptRace: iwarp gets through all the same, against the unchanged driver; in the last boots over our TCP in user
// space.
func TestAcceptRace(t *testing.T) {
	needIwarp(t)
	boots, user := raceBoots, userRaceBoots
	if testing.Short() {
		boots, user = 4, 1
	}
	for i := range boots + user {
		o, name := Options{CPUs: 2, UserTCP: i >= boots}, fmt.Sprintf("boot %d", i+1)
		if o.UserTCP {
			name += " over usertcp"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := Boot(t, o)
			server := g.Serve(t, "rping -s -v -C 3")
			start := time.Now()
			client := rpingTo(t, g, "-C 3 -v -V")
			client.WantSuccess(t, 10*time.Second)
			t.Logf("first connection and 3 pings in %v", time.Since(start).Round(time.Millisecond))
			server.WantSuccess(t, 10*time.Second)
			wantPings(t, client.Output(), server.Output(), 3, 64)
		})
	}
}
