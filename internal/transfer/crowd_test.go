package transfer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// TestCrowd has a hundred clients at once, of which each puts a file of its own, and gets one that all get.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const clients = 100
	r, all := newRig(t), randomBytes(1<<20+77, 25)
	made(t, all, r.there, "all")
	var crowd sync.WaitGroup
	for i := range clients {
		crowd.Go(func() {
			name := fmt.Sprint(i)
			own := made(t, randomBytes(100000+i, uint64(i)), r.here, name)
			c := &Client{Dial: r.dial}
			_, err := c.Put(testrig.Within(t), []string{own}, "")
			testrig.Should(t, err)
			_, err = c.Get(testrig.Within(t), []string{"all"}, filepath.Join(r.here, name+"-all"))
			testrig.Should(t, err)
		})
	}
	crowd.Wait()
	testrig.Must(t, r.served())
	for i := range clients {
		has(t, randomBytes(100000+i, uint64(i)), r.there, fmt.Sprint(i))
		has(t, all, r.here, fmt.Sprint(i)+"-all")
	}
	if left, err := os.ReadDir(r.there); err != nil || len(left) != clients+1 {
		t.Errorf("%d files, %v", len(left), err)
	}
}

// TestSameName has many clients put files of one name: one of them has it, and the others are told.
func TestSameName(t *testing.T) {
	const clients = 20
	r := newRig(t)
	var crowd sync.WaitGroup
	won := make(chan int, clients)
	for i := range clients {
		crowd.Go(func() {
			own := made(t, randomBytes(300000, uint64(i)), r.here, fmt.Sprint(i), "f")
			_, err := (&Client{Dial: r.dial}).Put(testrig.Within(t), []string{own}, "")
			if err == nil {
				won <- i
			} else if !errors.As(err, new(*IncompleteError)) {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	close(won)
	if len(won) != 1 {
		t.Fatalf("%d have succeeded", len(won))
	}
	has(t, randomBytes(300000, uint64(<-won)), r.there, "f")
	lists(t, r.there, "f")
}

// TestMemory has a client take no more than a client may, however large the file is, and nothing when it has gone.
func TestMemory(t *testing.T) {
	const most = window*message.MaxBlock + recvDepth*message.MaxLen
	r := newRig(t)
	r.rnic = iwarp.NewRNIC(iwarp.RNICConfig{})
	made(t, randomBytes(3*window*message.MaxBlock, 26), r.here, "f")
	var took int
	for _, way := range []string{"put", "get"} {
		testrig.Must(t, ways[way](r, force, func(c *Client) {
			c.Watch = func(Event) { took = max(took, r.rnic.Stats().RegisteredBytes) }
		}))
		r.serving.Wait() // the server hears of the end after the client
	}
	if took > most || took < message.MaxBlock {
		t.Errorf("%d bytes, of at most %d", took, most)
	}
	if n := r.rnic.Stats(); n.RegisteredBytes+n.QPs+n.MRs+n.CQs+n.PDs != 0 {
		t.Errorf("left: %+v", n)
	}
}
