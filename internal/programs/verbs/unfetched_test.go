//go:build linux && (amd64 || arm64)

package verbs

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestUnfetchedRequests: requests that the program does not fetch are bounded. The next come when it does, and those
// whose peer has gone are in nobody's way.
func TestUnfetchedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDevice(Config{})
		defer func() { _ = d.Close() }()
		channel, errno := d.OpenCMChannel(-1, nil)
		must(t, errno)
		h, errno := d.CreateID(channel, 1)
		must(t, errno)
		ln := testrig.NewListener("the program's")
		d.ids.get(h).serves(ln)
		ask := func(n int) {
			peer, ours := testrig.Pipe(fmt.Sprint(n), "the program's")
			request := mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: 1, PrivateData: []byte{byte(n)}}
			_, err := peer.Write(mpa.AppendStartup(nil, &request))
			testrig.Must(t, err)
			testrig.Must(t, ln.Offer(t.Context(), ours))
			if n%2 == 0 {
				_ = peer.Close()
			}
			synctest.Wait()
		}
		const asked = unfetchedAtMost + 100
		for n := range asked {
			ask(n)
		}
		events := d.cmChannels.get(channel).events
		want(t, "requests that wait for the program", len(events.events), unfetchedAtMost)
		for n := range asked {
			e, errno := d.NextCM(channel)
			must(t, errno)
			if n < unfetchedAtMost {
				want(t, "the oldest", e.PrivateData[0], byte(n))
			}
			must(t, d.DestroyID(e.Child))
			synctest.Wait()
			want(t, "requests that wait for the program", len(events.events), min(unfetchedAtMost, asked-1-n))
		}
		ask(1000)
		want(t, "requests that wait for the program", len(events.events), 1)
		must(t, d.DestroyID(h))
		must(t, d.CloseCMChannel(channel))
	})
}
