package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// TestPipeUnopened has nobody who asks for a pipe have it opened, in either direction: whoever is about to write to it
// would lose that.
func TestPipeUnopened(t *testing.T) {
	for _, way := range []string{"put", "get"} {
		r := newRig(t)
		pipe := filepath.Join(r.from(way), "f")
		testrig.Must(t, unix.Mkfifo(pipe, 0o600))
		testrig.Must(t, os.Symlink("f", pipe+"l"))
		opens, err := unix.InotifyInit1(unix.IN_NONBLOCK)
		testrig.Must(t, err)
		defer unix.Close(opens)
		_, err = unix.InotifyAddWatch(opens, pipe, unix.IN_OPEN)
		testrig.Must(t, err)
		r.leaves(ways[way](r), message.NotRegular)
		r.told = nil
		if way == "get" {
			r.leaves(r.get("fl"), message.NotRegular)
		} else {
			r.leaves(r.put("fl"), message.NotRegular)
		}
		if n, err := unix.Read(opens, make([]byte, 4096)); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("%s: the pipe was opened: %d, %v", way, n, err)
		}
	}
}
